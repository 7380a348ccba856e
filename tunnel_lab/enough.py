"""`lab_repeats: auto`: whether a cell has been measured often enough, asked before each round and when collecting."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tunnel_lab import stats
from tunnel_lab.errors import LabError
from tunnel_lab.parsing import evaluate
from tunnel_lab.plan import Plan, Step
from tunnel_lab.records import Record, raw_path

Goodputs = dict[str, list[float]]
"""{direction: goodput of each good repeat}"""


def enough(found: Goodputs, precision: float) -> bool:
    """Whether the interval of each direction's median is within `precision` of it, on either side, and nominal."""
    intervals = [stats.interval(values) for values in found.values()]
    return bool(intervals) and all(each.nominal and each.half_width <= precision for each in intervals)


def to_measure(plan: Plan, repeat: int, run_dir: Path) -> list[Step]:
    """Return the steps of a round, in their order, that are still needed after what is recorded in `run_dir`.

    What is not possible on these hosts was recorded as such when the run began.
    """
    steps = [step for step in plan.steps if step.repeat == repeat and not raw_path(run_dir, step).exists()]
    if plan.precision is None or not 1 <= repeat <= plan.repeats:
        return steps
    return [step for step in steps if not enough(_goodputs(plan, step, run_dir), plan.precision)]


def _goodputs(plan: Plan, step: Step, run_dir: Path) -> Goodputs:
    found: Goodputs = {}
    for before in plan.steps:
        if before.cell == step.cell and before.repeat < step.repeat:
            for direction, goodput in _read(raw_path(run_dir, before)):
                found.setdefault(direction, []).append(goodput)
    return found


def _read(path: Path) -> Iterable[tuple[str, float]]:
    try:
        return [(each.direction, each.goodput_bit_s) for each in evaluate(Record.read(path))[1]]
    except LabError:  # what cannot be read does not count
        return []


def unneeded(plan: Plan, good: dict[tuple[str, int], dict[str, float]]) -> set[Step]:
    """Return the steps that were rightly left out, given {(cell, repeat): {direction: goodput}} of the good ones.

    A step is left out when what was measured of its cell in the rounds before was enough.
    """
    if plan.precision is None:
        return set()
    left: set[Step] = set()
    found: dict[str, Goodputs] = {}
    for step in plan.steps:
        before = found.setdefault(step.cell, {})
        if 1 <= step.repeat <= plan.repeats and enough(before, plan.precision):
            left.add(step)
        for direction, goodput in good.get((step.cell, step.repeat), {}).items():
            before.setdefault(direction, []).append(goodput)
    return left
