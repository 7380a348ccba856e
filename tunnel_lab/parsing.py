"""From a record's raw output to measurements, by the parser that lives beside each workload's role.

A workload's `roles/workload_<name>/parser.py` defines

    def parse(record: Record) -> list[Measurement]

and raises BadOutput when a figure cannot be trusted: the output is incomplete, of an unexpected version,
the tool did not run as long as it was asked to, or its figures contradict each other.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal, cast

from pydantic import Field

from tunnel_lab import accounting, counted, pace
from tunnel_lab.errors import LabError
from tunnel_lab.manifests import ROLES, Strict
from tunnel_lab.records import Command, Record

Direction = Literal["server_to_client", "client_to_server"]


class BadOutput(Exception):
    """The output of a tool is not a figure that may be counted; the text says why."""


class Measurement(Strict):
    """One figure of one repeat: payload that arrived, and how long it took."""

    direction: Direction
    payload_bytes: int = Field(gt=0)
    """Bytes that the receiving application got."""
    duration_s: float = Field(gt=0)
    goodput_bit_s: float = Field(gt=0)
    """payload_bytes * 8 / duration_s"""
    carried_bytes: int | None = None
    """Payload that the command moved in this direction, counted or not; None: payload_bytes."""
    extra: dict[str, float | int | str | None] = Field(default_factory=dict)
    """Columns of this workload; the names begin with the workload's name or its program's."""

    @property
    def carried(self) -> int:
        """All payload that the command moved: what its CPU time is shared out over."""
        return self.carried_bytes or self.payload_bytes


Parser = Callable[[Record], list[Measurement]]


@cache
def parser_for(workload: str, roles: Path = ROLES) -> Parser:
    """Load `parse` from the workload's role; a LabError when there is none."""
    path = roles / f"workload_{workload}" / "parser.py"
    spec = importlib.util.spec_from_file_location(f"tunnel_lab_workload_{workload}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise LabError(f"{path}: not found; every workload brings its own parser.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return cast(Parser, module.parse)


def command(record: Record, name: str) -> Command:
    """Return the command called `name`; BadOutput when it is missing, timed out or failed."""
    for found in record.commands:
        if found.name == name:
            if found.timed_out:
                raise BadOutput(f"{name}: no end in time, stopped after {found.elapsed_s:.0f} s")
            if found.rc != 0:
                raise BadOutput(f"{name}: exit status {found.rc}: {_last_line(found)}")
            return found
    raise BadOutput(f"{name}: was not run")


def _last_line(command: Command) -> str:
    lines = (command.stderr.strip() or command.stdout.strip()).splitlines()
    return lines[-1][:200] if lines else "no output"


def evaluate(record: Record) -> tuple[str | None, list[Measurement]]:
    """Return (None, measurements) or (the reason why this repeat does not count, [])."""
    if record.status != "ok":
        return record.reason or f"{record.status} without a reason", []
    try:
        found = parser_for(record.cell.workload)(record)
    except BadOutput as error:
        return str(error), []
    except Exception as error:  # noqa: BLE001  a parser that fails on one record must not lose the others
        return f"the parser of {record.cell.workload} failed: {type(error).__name__}: {error}", []
    directions = [measurement.direction for measurement in found]
    if not found or len(set(directions)) < len(directions):
        return f"the parser of {record.cell.workload} must give one figure per direction, not {directions}", []
    late = pace.problem(record.link)
    unaccounted = accounting.problems(record, found) + ([late] if late else []) + counted.problems(record.clocks)
    return ("; ".join(unaccounted), []) if unaccounted else (None, found)
