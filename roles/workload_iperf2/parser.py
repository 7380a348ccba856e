"""iperf 2's reports to a measurement: the server's own, which is the receiver's.

Both ends run with `-e -f b`, so that bytes and bit/s are printed in full, as integers and without prefixes.
The server is one unit for all cells: what it wrote between the record's two observations is this repeat's.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeVar

from tunnel_lab.parsing import BadOutput, Measurement, command
from tunnel_lab.records import Command, Record

UNIT = "tunnellab-iperf2.service"
COMMAND = "client_to_server"
T = TypeVar("T")

CONNECTED = re.compile(r"^\[ *(\d+)\] local .* connected with [^(]*(.*)$", re.MULTILINE)
REPORT = re.compile(r"^\[ *(\d+)\] +([\d.]+)-([\d.]+) sec +(\S+) +(\S+) +(\S+) +(\S+)(?: .*)?$", re.MULTILINE)
TROUBLE = re.compile(r"^\[ *\d+\] .*failed.*$", re.MULTILINE)
VERSION = re.compile(r"^iperf version (\S+)", re.MULTILINE)
PEER = re.compile(r"\(peer ([^)]+)\)")
WRITE_SIZE = re.compile(r"^Write buffer size: +(\d+) Byte\b", re.MULTILINE)


class Report(NamedTuple):
    """One line of figures; `flow` is iperf's number of the connection."""

    flow: int
    start_s: float
    end_s: float
    bytes: int
    bit_s: int


def parse(record: Record) -> list[Measurement]:
    """Return the one measurement; BadOutput when it cannot be trusted."""
    asked_s = float(record.cell.params["duration_s"])
    run = command(record, COMMAND)
    sent = _client(run, asked_s)
    log = _log(record, "after")
    got, peer = _server(_written_since(_log(record, "before"), log), asked_s)
    block = int(_one(WRITE_SIZE.findall(run.stdout), "client", "line with the write buffer's size"))
    if not 0 <= sent.bytes - got.bytes <= block:
        raise BadOutput(f"server: got {got.bytes} bytes, the client sent {sent.bytes}")
    return [
        Measurement(
            direction="client_to_server",
            payload_bytes=got.bytes,
            duration_s=got.end_s,
            goodput_bit_s=got.bytes * 8 / got.end_s,
            extra={
                "iperf2_server_version": _version(log),
                "iperf2_client_version": peer,
                "iperf2_client_bit_s": sent.bit_s,
                "iperf2_client_duration_s": sent.end_s,
                "iperf2_sent_bytes": sent.bytes,
            },
        )
    ]


def _client(run: Command, asked_s: float) -> Report:
    """Return the client's total: its last line, after those of the intervals.

    iperf exits with 0 even when it could not connect.
    """
    if run.stderr.strip():
        raise BadOutput(f"client: {run.stderr.strip().splitlines()[-1]}")
    found = _reports(run.stdout, "client")
    if not found or found[-1].start_s != 0:
        raise BadOutput(f"client: its total is missing; the last line is {_last_line(run.stdout)!r}")
    _check(found[-1], "client", asked_s)
    return found[-1]


def _server(text: str, asked_s: float) -> tuple[Report, str]:
    """Return the server's report of the only connection in `text`, and the client's version."""
    trouble = TROUBLE.search(text)
    if trouble:
        raise BadOutput(f"server: {trouble.group()}")
    flow, details = _one(CONNECTED.findall(text), "server", "connection")
    report = _one(_reports(text, "server"), "server", "report")
    if report.flow != int(flow) or report.start_s != 0:
        raise BadOutput(f"server: the report is of [{report.flow}] from {report.start_s} s, not of [{flow}] from 0 s")
    _check(report, "server", asked_s)
    peer = PEER.search(details)
    if not peer or not peer.group(1).startswith("2."):
        raise BadOutput(f"server: the client is not known to be iperf 2.x: {details or 'nothing said'}")
    return report, peer.group(1)


def _check(report: Report, end: str, asked_s: float) -> None:
    """Too short is a test that was cut off. Longer is not: data queues on the way, and it is the server's time
    until the last byte that counts."""
    if report.bytes == 0:
        raise BadOutput(f"{end}: nothing was transferred in {report.end_s} s")
    least = asked_s - max(0.5, 0.05 * asked_s)
    if report.end_s < least:
        raise BadOutput(f"{end}: measured {report.end_s} s, asked were {asked_s:g} s (at least {least:g} s)")
    computed = report.bytes * 8 / report.end_s
    rounding = 1 + computed * 0.00005 / report.end_s  # the time is printed with four decimals
    if abs(computed - report.bit_s) > 1.01 * rounding:
        raise BadOutput(
            f"{end}: {report.bytes} bytes in {report.end_s} s are {computed:.0f} bit/s, iperf says {report.bit_s}"
        )


def _reports(text: str, end: str) -> list[Report]:
    found = []
    for flow, start, stop, size, size_unit, rate, rate_unit in REPORT.findall(text):
        if (size_unit, rate_unit) != ("Bytes", "bits/sec"):
            raise BadOutput(f"{end}: figures in {size_unit} and {rate_unit}; only Bytes and bits/sec are exact")
        found.append(Report(int(flow), float(start), float(stop), _whole(size, end), _whole(rate, end)))
    return found


def _whole(text: str, end: str) -> int:
    """Read a whole number; iperf prints nothing as `0.000`."""
    if text == "0.000":
        return 0
    if not text.isdecimal():
        raise BadOutput(f"{end}: {text!r} is not a whole number")
    return int(text)


def _log(record: Record, when: str) -> str:
    observed = (record.before if when == "before" else record.after).get("server")
    text = observed.logs.get(UNIT, "") if observed else ""
    if not text.strip():
        raise BadOutput(f"server: the record has no log of {UNIT} from {when} the workload")
    return text


def _written_since(before: str, after: str) -> str:
    before = before.rstrip()
    if not after.startswith(before):
        raise BadOutput(f"server: the log of {UNIT} does not continue the earlier one; was it restarted?")
    return after[len(before) :]


def _version(log: str) -> str:
    found = VERSION.search(log)
    if not found or not found.group(1).startswith("2."):
        raise BadOutput(f"server: {found.group() if found else 'version unknown'}; only iperf 2.x is understood")
    return found.group(1)


def _one(found: list[T], end: str, what: str) -> T:
    if len(found) != 1:
        raise BadOutput(f"{end}: {len(found) or 'no'} {what}{'s' * (len(found) > 1)} instead of one")
    return found[0]


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]
