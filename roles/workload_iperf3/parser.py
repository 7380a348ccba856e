"""iperf3's own JSON to measurements: what the receiver got, and how long it says that took."""

from __future__ import annotations

import itertools
import json
import re

from pydantic import BaseModel, Field, ValidationError

from tunnel_lab.errors import from_validation
from tunnel_lab.parsing import BadOutput, Direction, Measurement, command
from tunnel_lab.records import Record

REVERSE: dict[Direction, int] = {"server_to_client": 1, "client_to_server": 0}
"""{command: what iperf3 calls -R}"""


class Asked(BaseModel):
    """`start.test_start`: what iperf3 says it was asked to do."""

    protocol: str
    num_streams: int
    blksize: int
    omit: int
    duration: int
    reverse: int
    bidir: int = 0


class Start(BaseModel):
    """`start`."""

    test_start: Asked


class Sum(BaseModel):
    """One end's total, or one interval."""

    start: float
    end: float
    seconds: float
    bytes: int
    bits_per_second: float
    retransmits: int | None = None
    omitted: bool = False


class Interval(BaseModel):
    """One second as the client saw it."""

    sum: Sum


class End(BaseModel):
    """`end`."""

    sum_sent: Sum
    sum_received: Sum
    sender_tcp_congestion: str | None = None
    receiver_tcp_congestion: str | None = None


class Output(BaseModel):
    """The part of the JSON that is read."""

    start: Start
    intervals: list[Interval] = Field(min_length=1)
    end: End


def parse(record: Record) -> list[Measurement]:
    """Return one measurement per direction; BadOutput when one of them cannot be trusted."""
    return [_direction(record, name) for name in REVERSE]


def _direction(record: Record, name: Direction) -> Measurement:
    asked_s, omit_s = float(record.cell.params["duration_s"]), int(record.cell.params["omit_s"])
    version, output = _read(record, name)
    got, sent = output.end.sum_received, output.end.sum_sent
    _check_asked(name, output.start.test_start, asked_s, omit_s)
    _check_duration(name, got, asked_s)
    _check_rate(name, got)
    # what was under way when the omitted seconds ended was sent before the count and arrived within it
    under_way = sum(interval.sum.bytes for interval in output.intervals if interval.sum.omitted)
    if not 0 < got.bytes <= sent.bytes + under_way:
        raise BadOutput(f"{name}: {got.bytes} bytes were received of {sent.bytes} sent")
    _check_intervals(name, output, asked_s)
    return Measurement(
        direction=name,
        payload_bytes=got.bytes,
        duration_s=got.seconds,
        goodput_bit_s=got.bytes * 8 / got.seconds,
        carried_bytes=sum(interval.sum.bytes for interval in output.intervals),
        extra={
            "iperf3_version": version,
            "iperf3_retransmits": sent.retransmits,
            "iperf3_sent_bytes": sent.bytes,
            "iperf3_sender_congestion": output.end.sender_tcp_congestion,
            "iperf3_receiver_congestion": output.end.receiver_tcp_congestion,
        },
    )


def _read(record: Record, name: Direction) -> tuple[str, Output]:
    """Return the version and the output of `name`.

    iperf3 explains a failure inside its JSON, so that is looked at before the exit status.
    """
    for found in record.commands:
        error = _error(found.stdout) if found.name == name and not found.timed_out else None
        if error:
            raise BadOutput(f"{name}: iperf3: {error}")
    text = command(record, name).stdout
    try:
        data = json.loads(text)
    except ValueError as error:
        raise BadOutput(f"{name}: iperf3's JSON is not complete ({len(text)} characters): {error}") from error
    start = data.get("start") if isinstance(data, dict) else None
    version = start.get("version") if isinstance(start, dict) else None
    if not isinstance(version, str) or not re.match(r"iperf 3\.\d+", version):
        raise BadOutput(f"{name}: output of {version!r}; only that of iperf 3.x is understood")
    try:
        return version, Output.model_validate(data)
    except ValidationError as error:
        raise BadOutput(str(from_validation(name, error)).splitlines()[0]) from error


def _error(text: str) -> str | None:
    try:
        data = json.loads(text)
    except ValueError:
        return None
    return str(data["error"]) if isinstance(data, dict) and data.get("error") else None


def _check_asked(name: Direction, test: Asked, asked_s: float, omit_s: int) -> None:
    if test.reverse != REVERSE[name] or test.bidir:
        raise BadOutput(f"{name}: iperf3 ran with reverse={test.reverse}, bidir={test.bidir}")
    if (test.duration, test.omit) != (asked_s, omit_s):
        raise BadOutput(
            f"{name}: iperf3 was asked for {test.duration} s after {test.omit} s that do not count, "
            f"instead of {asked_s:g} s after {omit_s} s"
        )
    if test.protocol != "TCP" or test.num_streams != 1:
        raise BadOutput(f"{name}: iperf3 ran {test.num_streams} streams of {test.protocol}, not one of TCP")


def _check_duration(name: Direction, got: Sum, asked_s: float) -> None:
    """Too short is a test that was cut off; longer is usual and counted.

    The receiver goes on until the sender's word of the end reaches it, and through a forward that word queues
    behind the data: up to a tunnel's buffers / its rate. What arrives meanwhile is in the bytes, the time is in
    the seconds. Beyond 50 % (at least 10 s) something else happened.
    """
    least, most = asked_s - max(0.5, 0.05 * asked_s), asked_s + max(10, 0.5 * asked_s)
    if not least <= got.seconds <= most:
        raise BadOutput(
            f"{name}: the receiver measured {got.seconds:.3f} s, asked were {asked_s:g} s "
            f"({least:g} to {most:g} s are accepted)"
        )


def _check_rate(name: Direction, got: Sum) -> None:
    computed = got.bytes * 8 / got.seconds
    if abs(computed - got.bits_per_second) > 0.001 * computed:
        raise BadOutput(
            f"{name}: {got.bytes} bytes in {got.seconds} s are {computed:.0f} bit/s, "
            f"iperf3 says {got.bits_per_second:.0f}"
        )


def _check_intervals(name: Direction, output: Output, asked_s: float) -> None:
    """The client's intervals follow each other over the whole time and add up to the client's own total.

    The last few blocks can fall between the last interval and the end. When the omitted time ends in the moment in
    which an interval does, iperf3 leaves that one out and prints the next with its own start: 1.0 to 1.0 s.
    """
    seconds = [interval.sum for interval in output.intervals if not interval.sum.omitted]
    if not seconds:
        raise BadOutput(f"{name}: no interval counts, all are omitted")
    gaps = [after.start - before.end for before, after in itertools.pairwise(seconds)]
    covered = seconds[-1].end - asked_s
    first_is_there = abs(seconds[0].start) <= 0.01 or max(abs(seconds[0].start - 1), abs(seconds[0].end - 1)) <= 0.01
    if not first_is_there or any(abs(gap) > 0.01 for gap in gaps) or covered < -max(0.5, 0.05 * asked_s):
        raise BadOutput(
            f"{name}: the intervals do not cover {asked_s:g} s without a gap: "
            + ", ".join(f"{second.start:.2f}-{second.end:.2f}" for second in seconds)
        )
    test = output.start.test_start
    total = output.end.sum_received.bytes if test.reverse else output.end.sum_sent.bytes
    added = sum(second.bytes for second in seconds)
    if abs(total - added) > max(4 * test.blksize, 0.01 * total):
        raise BadOutput(f"{name}: the intervals add up to {added} bytes, the total is {total}")
