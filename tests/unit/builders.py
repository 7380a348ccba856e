"""Records around captured output, with what the kernel of both hosts would have counted meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tunnel_lab.accounting import RECEIVER, SENDER
from tunnel_lab.manifests import ROLES
from tunnel_lab.parsing import BadOutput, Measurement, evaluate, parser_for
from tunnel_lab.plan import Cell, Step
from tunnel_lab.records import Command, Host, LinkSeen, Observation, Record

FIXTURES = Path(__file__).parent / "fixtures"
LINK = "link0"
START = datetime(2026, 11, 30, 16, tzinfo=UTC)
HOSTS: tuple[Host, Host] = ("server", "client")
COMMAND_S = 6.0
Looks = dict[Host, Observation]


def fixture(workload: str, name: str) -> str:
    """Return the text of a captured file of a workload."""
    return (ROLES / f"workload_{workload}" / "fixtures" / name).read_text(encoding="utf-8")


def captured(name: str) -> str:
    """Return the text of a captured file of the tests."""
    return (FIXTURES / name).read_text(encoding="utf-8")


def stamp(moment: datetime) -> str:
    """Return a moment as records keep it."""
    return moment.isoformat(timespec="milliseconds")


def command(name: str, stdout: str, stderr: str = "", rc: int | None = 0, timed_out: bool = False) -> Command:
    """Make one command of a record."""
    return Command(
        name=name,
        argv=["tool"],
        rc=rc,
        stdout=stdout,
        stderr=stderr,
        started_at=stamp(START),
        elapsed_s=COMMAND_S,
        timed_out=timed_out,
    )


def one_after_the_other(commands: Iterable[Command], start: datetime = START) -> tuple[list[Command], datetime]:
    """Return `commands` with the times that they would have, and when the last one ended."""
    placed = []
    for each in commands:
        placed.append(each.model_copy(update={"started_at": stamp(start)}))
        start += timedelta(seconds=each.elapsed_s)
    return placed, start


def looks(payload: Mapping[str, int], interfaces: Iterable[str], start: datetime, end: datetime) -> tuple[Looks, Looks]:
    """Return what both hosts saw half a second before `start` and after `end`.

    `payload` is {direction: bytes} that passed all `interfaces`, with 4 % of headers; what was counted before
    is not zero, and differs between the hosts as their clocks do.
    """
    before: Looks = {}
    after: Looks = {}
    for number, host in enumerate(HOSTS, start=1):
        old = {"rx_bytes": 7000 * number, "tx_bytes": 9000 * number}
        new = dict(old)
        for direction, size in payload.items():
            new["tx_bytes" if SENDER[direction] == host else "rx_bytes"] += round(size * 1.04)
        apart = 0.25 * (number - 1)
        names = sorted(set(interfaces))
        before[host] = Observation(at=start.timestamp() - 0.5 - apart, counters=dict.fromkeys(names, old))
        after[host] = Observation(at=end.timestamp() + 0.5 + apart, counters=dict.fromkeys(names, new))
    return before, after


def record(workload: str, params: dict[str, Any], *commands: Command, **logs: dict[str, str]) -> Record:
    """Make a good record of one repeat in which nothing passed; `before` and `after` are logs of the server's units."""
    cell = Cell(
        id=f"none.bare.{workload}",
        tunnel="none",
        variant="bare",
        workload=workload,
        tunnel_settings={},
        params=params,
        service_port=5000,
        target_address="192.0.2.1",
        target_port=5000,
        units={"server": [], "client": []},
        compresses=False,
        timeout_s=60,
    )
    placed, end = one_after_the_other(commands)
    before, after = looks({}, [LINK], START, end)
    for seen, when in ((before, "before"), (after, "after")):
        seen["server"] = seen["server"].model_copy(update={"logs": logs.get(when, {})})
    return Record(
        run_id="run-1",
        step=Step(order=1, cell=cell.id, repeat=1),
        cell=cell,
        status="ok",
        started_at=stamp(START - timedelta(seconds=1)),
        wall_s=(end - START).total_seconds() + 2,
        commands=placed,
        before=before,
        after=after,
        link=LinkSeen(interfaces=dict.fromkeys(HOSTS, LINK)),
    )


def accounted(made: Record, found: Iterable[Measurement]) -> Record:
    """Return the record with counters that account for its measurements."""
    after = dict(made.after)
    for measurement in found:
        direction, size = measurement.direction, measurement.payload_bytes
        for host, counter in ((SENDER[direction], "tx_bytes"), (RECEIVER[direction], "rx_bytes")):
            after[host] = counted(after[host], LINK, counter, round(size * 1.04))
    return made.model_copy(update={"after": after})


def counted(seen: Observation, interface: str, counter: str, more: int) -> Observation:
    """Return an observation with one counter raised by `more`."""
    counters = {**seen.counters, interface: {**seen.counters[interface]}}
    counters[interface][counter] += more
    return seen.model_copy(update={"counters": counters})


def parse(made: Record) -> list[Measurement]:
    """Parse a record with the parser of its workload, and check that it then counts as a good one."""
    found = parser_for(made.cell.workload)(made)
    assert evaluate(accounted(made, found)) == (None, found)
    return found


def refused(made: Record, because: str) -> None:
    """Check that a record is refused for a reason that matches `because`."""
    with pytest.raises(BadOutput, match=because) as error:
        parser_for(made.cell.workload)(made)
    assert evaluate(made) == (str(error.value), [])


def swap(text: str, old: str, new: str) -> str:
    """Replace `old`, which must be there."""
    assert old in text, f"{old!r} is not in the fixture"
    return text.replace(old, new)
