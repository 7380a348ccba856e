"""The reports of `latency.py` to measurements: goodput of the bulk, and round trips idle and beside it.

A percentile is that of the nearest rank: the least value that p % of the probes do not exceed, so the 139th of 140 for
p99. A probe that was never answered took longer than any other.
"""

from __future__ import annotations

import itertools
import json
from typing import Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from tunnel_lab.errors import from_validation
from tunnel_lab.parsing import BadOutput, Direction, Measurement, command
from tunnel_lab.records import Record

DIRECTIONS: tuple[Direction, ...] = ("server_to_client", "client_to_server")
FIRST_BYTE = "tunnellab-first-byte.service"
PERCENTILES = (50, 95, 99)
LEAST_ANSWERED = 0.8
"""The share of the probes that must be answered before their percentiles mean anything."""
OUTSTANDING_BYTES = 16 << 20
"""How much the program sends before it waits for acknowledgements, so the most that one reply may acknowledge."""
DRAIN_S = 15
"""How long the program waits for the acknowledgement that ends its count."""
M = TypeVar("M", bound=BaseModel)


class Asked(BaseModel):
    """What the program says that it was asked to do."""

    duration_s: int
    omit_s: int
    per_s: int
    value_bytes: int
    bulk_mbit: int
    seed: int


class Late(BaseModel):
    """By how much probes were sent after they were due."""

    max: float = Field(ge=0)
    mean: float = Field(ge=0)


class Bulk(BaseModel):
    """The transfer beside the probes."""

    bytes: int = Field(gt=0)
    seconds: float = Field(gt=0)
    omitted_bytes: int = Field(ge=0)
    per_s: list[int]
    """Bytes in each second, also of those after the end until the last reply."""


class Report(BaseModel):
    """The JSON of one phase."""

    format: Literal[1]
    phase: str
    asked: Asked
    rtt_ms: list[tuple[float, float]]
    """(seconds at which it was sent, round trip) of the probes that were answered, in their order."""
    unanswered: int = Field(ge=0)
    """Those after them."""
    late_ms: Late
    bulk: Bulk | None
    server_version: str


class FirstByte(BaseModel):
    """The JSON of the probe that was there before the tunnel."""

    first_pong_monotonic: float
    attempts: int = Field(gt=0)


def parse(record: Record) -> list[Measurement]:
    """Return one measurement per direction; BadOutput when anything of the repeat cannot be trusted."""
    params = record.cell.params
    idle = _phase(record, "idle", int(params["idle_s"]), 0)
    common = {
        **_round_trips("idle", idle, 0),
        "latency_tunnel_up_s": _tunnel_up_s(record),
        "latency_server_version": idle.server_version,
    }
    return [_direction(record, name, common) for name in DIRECTIONS]


def _direction(record: Record, name: Direction, common: dict[str, float | int | str | None]) -> Measurement:
    params = record.cell.params
    report = _phase(record, name, int(params["bulk_s"]), int(params["omit_s"]))
    bulk = _bulk(name, report)
    return Measurement(
        direction=name,
        payload_bytes=bulk.bytes,
        duration_s=bulk.seconds,
        goodput_bit_s=bulk.bytes * 8 / bulk.seconds,
        carried_bytes=max(sum(bulk.per_s), bulk.bytes),
        extra={
            **common,
            **_round_trips("loaded", report, report.asked.omit_s),
            "latency_probe_late_ms": report.late_ms.max,
        },
    )


def _read(model: type[M], name: str, text: str) -> M:
    try:
        return model.model_validate(json.loads(text))
    except ValidationError as error:
        raise BadOutput(str(from_validation(name, error)).splitlines()[0]) from error
    except ValueError as error:
        raise BadOutput(f"{name}: the report is not complete JSON ({len(text)} characters): {error}") from error


def _phase(record: Record, name: str, duration_s: int, omit_s: int) -> Report:
    """Return the report of one phase, once it is what was asked for and complete."""
    done = command(record, name)
    report = _read(Report, name, done.stdout)
    if report.phase != name:
        raise BadOutput(f"{name}: this is the report of '{report.phase}'")
    params = record.cell.params
    asked = {"duration_s": duration_s, "omit_s": omit_s, "per_s": params["per_s"]}
    if name != "idle":
        asked |= {key: params[key] for key in ("value_bytes", "bulk_mbit", "seed")}
    for key, value in asked.items():
        if getattr(report.asked, key) != value:
            raise BadOutput(f"{name}: it ran with {key} {getattr(report.asked, key)}, asked was {value}")
    if done.elapsed_s < duration_s:
        raise BadOutput(f"{name}: ended after {done.elapsed_s:g} s, asked were {duration_s} s")
    _check_probes(name, report)
    return report


def _check_probes(name: str, report: Report) -> None:
    """Every probe was sent, not before it was due, in order, and enough were answered in a time that can be one."""
    due = report.asked.duration_s * report.asked.per_s
    answered = len(report.rtt_ms)
    if answered + report.unanswered != due:
        raise BadOutput(f"{name}: {answered} probes answered and {report.unanswered} not, but {due} were due")
    if answered < LEAST_ANSWERED * due:
        raise BadOutput(f"{name}: only {answered} of {due} probes were answered")
    for number, (sent_s, rtt_ms) in enumerate(report.rtt_ms):
        due_s = number / report.asked.per_s
        if not -1e-5 < sent_s - due_s < report.late_ms.max / 1000 + 1e-5:
            raise BadOutput(f"{name}: probe {number} was sent at {sent_s:g} s, due at {due_s:g} s")
        if not 0 < rtt_ms < float("inf"):
            raise BadOutput(f"{name}: probe {number} has a round trip of {rtt_ms} ms")
    arrived = [sent_s + rtt_ms / 1000 for sent_s, rtt_ms in report.rtt_ms]
    if any(after < before - 1e-5 for before, after in itertools.pairwise(arrived)):
        raise BadOutput(f"{name}: replies came in another order than the probes")


def _bulk(name: Direction, report: Report) -> Bulk:
    """Return the transfer, once its figures agree with each other.

    The time of client_to_server is from one acknowledgement to another. Regular ones, however rare, make it no less
    than half of what was asked.
    """
    bulk, asked = report.bulk, report.asked
    if bulk is None:
        raise BadOutput(f"{name}: there was no transfer")
    counted_s = asked.duration_s - asked.omit_s
    down = name == "server_to_client"
    least, most = (counted_s - 0.01, counted_s + 0.01) if down else (counted_s / 2, counted_s + DRAIN_S + 1)
    if not least <= bulk.seconds <= most:
        raise BadOutput(
            f"{name}: {bulk.seconds} s were counted, asked were {counted_s} s ({least:g} to {most:g} s are accepted)"
        )
    if len(bulk.per_s) < asked.duration_s or min(bulk.per_s) < 0:
        raise BadOutput(f"{name}: bytes of {len(bulk.per_s)} seconds, asked were {asked.duration_s} s")
    if not down and bulk.bytes % asked.value_bytes:
        raise BadOutput(f"{name}: {bulk.bytes} bytes are not whole values of {asked.value_bytes}")
    # the reply that ends the count of client_to_server comes after the last whole second
    more = 0 if down else max(2 * asked.value_bytes, OUTSTANDING_BYTES)
    whole, by_second = bulk.omitted_bytes + bulk.bytes, sum(bulk.per_s[: asked.duration_s])
    if not by_second <= whole <= by_second + more:
        raise BadOutput(f"{name}: the seconds add up to {by_second} bytes, the whole is {whole}")
    return bulk


def _round_trips(when: str, report: Report, omit_s: int) -> dict[str, float | int | str | None]:
    """Return the percentiles of the probes that were due from `omit_s` on, and how many were answered of these."""
    counted = sorted(rtt_ms for _, rtt_ms in report.rtt_ms[omit_s * report.asked.per_s :])
    probes = len(counted) + report.unanswered
    found: dict[str, float | int | str | None] = {f"latency_{when}_n": len(counted)}
    for percent in PERCENTILES:
        rank = -(-percent * probes // 100)
        found[f"latency_{when}_p{percent}_ms"] = counted[rank - 1] if rank <= len(counted) else None
    return found


def _tunnel_up_s(record: Record) -> float | None:
    """Return the time from the start of the tunnel's client to the first reply through it; None without a tunnel."""
    unit = record.cell.tunnel_units.get("client")
    if unit is None:
        return None
    if not record.before.keys() == record.after.keys() == {"server", "client"}:
        raise BadOutput("first_byte: the client was not looked at before and after")
    before, after = record.before["client"], record.after["client"]
    text = (after.logs.get(FIRST_BYTE) or before.logs.get(FIRST_BYTE) or "").strip()
    if not text.startswith("{"):
        raise BadOutput(f"first_byte: no reply is known: {text.splitlines()[-1][:200] if text else 'no output'}")
    started = before.units.get(unit)
    if not started:  # systemd says 0 of a unit without a main process
        raise BadOutput(f"first_byte: when {unit} was started is not known")
    up_s = _read(FirstByte, "first_byte", text).first_pong_monotonic - started
    if not 0 < up_s < float("inf"):
        raise BadOutput(f"first_byte: the first reply came {-up_s:.3f} s before {unit} was started")
    return round(up_s, 6)
