"""Records around captured output, for the tests of the workloads' parsers."""

from __future__ import annotations

from typing import Any

import pytest

from tunnel_lab.manifests import ROLES
from tunnel_lab.parsing import BadOutput, Measurement, parser_for
from tunnel_lab.plan import Cell, Step
from tunnel_lab.records import Command, Observation, Record


def fixture(workload: str, name: str) -> str:
    """Return the text of a captured file of a workload."""
    return (ROLES / f"workload_{workload}" / "fixtures" / name).read_text(encoding="utf-8")


def command(name: str, stdout: str, stderr: str = "", rc: int | None = 0, timed_out: bool = False) -> Command:
    """Make one command of a record."""
    return Command(
        name=name,
        argv=["tool"],
        rc=rc,
        stdout=stdout,
        stderr=stderr,
        started_at="2026-11-30T16:00:00.000+00:00",
        elapsed_s=12.0,
        timed_out=timed_out,
    )


def record(workload: str, params: dict[str, Any], *commands: Command, **logs: dict[str, str]) -> Record:
    """Make a good record of one repeat; `before` and `after` are the logs of the server's units."""
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
        timeout_s=60,
    )
    return Record(
        run_id="run-1",
        step=Step(order=1, cell=cell.id, repeat=1),
        cell=cell,
        status="ok",
        started_at="2026-11-30T16:00:00.000+00:00",
        wall_s=20.0,
        commands=list(commands),
        before={"server": Observation(at=1.0, logs=logs.get("before", {}))},
        after={"server": Observation(at=20.0, logs=logs.get("after", {}))},
    )


def parse(made: Record) -> list[Measurement]:
    """Parse a record with the parser of its workload."""
    return parser_for(made.cell.workload)(made)


def refused(made: Record, because: str) -> None:
    """Check that a record is refused for a reason that matches `because`."""
    with pytest.raises(BadOutput, match=because):
        parse(made)


def swap(text: str, old: str, new: str) -> str:
    """Replace `old`, which must be there."""
    assert old in text, f"{old!r} is not in the fixture"
    return text.replace(old, new)
