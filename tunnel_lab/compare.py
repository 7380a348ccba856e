"""Set figures side by side: those of several runs, or of several cells of one run; the first is the base.

Whether a difference is real is said by an interval of the ratio: two runs are independent samples; two cells of one
run were measured in the same rounds, so their repeats are pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from tunnel_lab import emulation, stats
from tunnel_lab.circumstances import Difference, differences
from tunnel_lab.errors import LabError, closest
from tunnel_lab.plan import Cell
from tunnel_lab.records import Run
from tunnel_lab.stats import Interval
from tunnel_lab.tables import canonical

METRIC = "goodput_bit_s"
LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
TOO_FEW = "n too small"
NO_DIFFERENCE = "no difference shown"
NO_RATIO = "no ratio of zero"
EMULATED = "withheld: emulated CPU"

Figures = dict[tuple[str, str], dict[int, float]]
"""{(cell, direction): {repeat: value}} of the good repeats of one run."""


@dataclass(frozen=True)
class Side:
    """A run with the table that its records give."""

    run: Run
    runs: pd.DataFrame


@dataclass(frozen=True)
class Compared:
    """One cell and direction of the base beside the same, or another, of one of the others."""

    label: str
    """Of the other one: B, C, ..."""
    cell: str
    """Of the other one."""
    direction: str
    params: str
    n_base: int
    n: int
    base: float
    """Median of the base; NaN for n_base = 0."""
    value: float
    """Median of the other one."""
    ratio: Interval
    """Other / base."""
    verdict: str
    """`faster` or `slower` (other metrics than rates: `higher`, `lower`), or why that is not known."""


@dataclass(frozen=True)
class Comparison:
    """Everything that a comparison tells."""

    metric: str
    paired: bool
    names: dict[str, str]
    """{label: run_id or cell}, the base first."""
    rows: list[Compared]
    left_out: list[str]
    """What could not be compared, and why."""
    different: dict[str, list[Difference]]
    """{label: in which circumstances it differs from the base}"""


def of_runs(sides: list[Side], metric: str = METRIC) -> Comparison:
    """Compare every cell and direction that two runs have with the same parameters; the first run is the base.

    Raises LabError for less than two runs, more than there are letters, and an unknown metric.
    """
    _check_number(len(sides), "runs")
    _check_metric(metric, sides)
    base, *others = sides
    rows: list[Compared] = []
    left_out: list[str] = []
    for label, other in zip(LABELS[1:], others, strict=False):
        rows += _judged(_shared(label, base, other, metric, left_out), [base, other], metric)
    return Comparison(
        metric=metric,
        paired=False,
        names={label: side.run.run_id for label, side in zip(LABELS, sides, strict=False)},
        rows=rows,
        left_out=left_out,
        different={label: differences(base.run, other.run) for label, other in zip(LABELS[1:], others, strict=False)},
    )


def of_cells(side: Side, patterns: list[str], metric: str = METRIC) -> Comparison:
    """Compare cells of one run, repeat by repeat; each pattern is a cell's id or a glob that matches one.

    Raises LabError for less than two, for one that is named twice, and for an unknown cell or metric.
    """
    _check_number(len(patterns), "cells")
    _check_metric(metric, [side])
    ids = [cell_of(side.run, pattern) for pattern in patterns]
    twice = [cell for cell in ids if ids.count(cell) > 1]
    if twice:
        raise LabError(f"{twice[0]}: named twice; it would be compared with itself.")
    base, *others = ids
    rows: list[Compared] = []
    left_out: list[str] = []
    found = figures(side.runs, metric)
    for label, other in zip(LABELS[1:], others, strict=False):
        cells = side.run.plan.cells[base], side.run.plan.cells[other]
        rows += _judged(_paired(label, cells, found, metric, left_out), [side], metric)
    names = dict(zip(LABELS, ids, strict=False))
    return Comparison(metric, True, names, rows, left_out, {label: [] for label in names if label != LABELS[0]})


def _judged(found: Iterable[Compared], sides: list[Side], metric: str) -> list[Compared]:
    """Return what was compared, without verdicts where a side's hosts allow none on this metric."""
    kinds = [emulation.of_hosts(side.run.environment) for side in sides]
    withheld = any(emulation.is_withheld(kind, metric) for kind in kinds)
    return [replace(row, verdict=EMULATED) for row in found] if withheld else list(found)


def cell_of(run: Run, pattern: str) -> str:
    """Return the id of the one cell of `run` that `pattern` matches; a LabError when it is none or several."""
    found = [cell for cell in run.plan.cells if fnmatchcase(cell, pattern)]
    if not found:
        raise LabError(f"{pattern}: no such cell in run {run.run_id}.{closest(pattern, run.plan.cells)}")
    if len(found) > 1:
        raise LabError(f"{pattern}: matches {len(found)} cells, {', '.join(found)}. Name one of them.")
    return found[0]


def figures(runs: pd.DataFrame, metric: str) -> Figures:
    """Return the values of a column for each cell and direction; repeats without one are left out."""
    found: Figures = {}
    if metric in runs:
        good = runs[(runs["status"] == "ok") & runs[metric].notna()]
        for row in good.to_dict("records"):
            cell = f"{row['tunnel']}.{row['variant']}.{row['workload']}"
            found.setdefault((cell, row["direction"]), {})[int(row["repeat"])] = float(row[metric])
    return found


def _check_number(number: int, what: str) -> None:
    if number < 2:
        raise LabError(f"needs two {what} or more, was given {number}: first the base, then what is compared with it.")
    if number > len(LABELS):
        raise LabError(f"{number} {what}: at most {len(LABELS)} can be compared at a time.")


def _check_metric(metric: str, sides: list[Side]) -> None:
    known = {METRIC} | {str(column) for side in sides for column in side.runs.select_dtypes("number").columns}
    if metric not in known:
        raise LabError(f"--metric: runs.csv has no column of numbers '{metric}'.{closest(metric, known)}")


def _shared(label: str, base: Side, other: Side, metric: str, left_out: list[str]) -> Iterator[Compared]:
    """Yield what both runs measured, and say of all else why it is not compared."""
    ones, others = base.run.plan.cells, other.run.plan.cells
    both = (figures(base.runs, metric), figures(other.runs, metric))
    for cell in sorted({*ones, *others}):
        if cell not in ones or cell not in others:
            left_out.append(f"{cell}: only {LABELS[0] if cell in ones else label} has it")
        elif ones[cell].params != others[cell].params:
            left_out.append(f"{cell}: params differ: {_params(ones[cell].params, others[cell].params)}")
        else:
            ways = sorted({way for found in both for name, way in found if name == cell})
            if not ways and metric == METRIC:
                left_out.append(f"{cell}: neither {LABELS[0]} nor {label} has a good repeat of it")
            for way in ways:
                one, two = ([*found.get((cell, way), {}).values()] for found in both)
                yield _compared(label, (cell, way, canonical(others[cell].params)), (one, two), metric, False)


def _params(ones: dict[str, Any], others: dict[str, Any]) -> str:
    changed = [name for name in {**ones, **others} if ones.get(name) != others.get(name)]
    return ", ".join(f"{name} {ones.get(name)} -> {others.get(name)}" for name in changed)


def _paired(
    label: str, cells: tuple[Cell, Cell], found: Figures, metric: str, left_out: list[str]
) -> Iterator[Compared]:
    """Yield the directions that both cells have, by the repeats that both have."""
    ones, others = ({way: values for (name, way), values in found.items() if name == cell.id} for cell in cells)
    for way in sorted({*ones, *others}):
        if way not in ones or way not in others:
            only, none = (LABELS[0], label) if way in ones else (label, LABELS[0])
            left_out.append(f"{cells[1].id} {way}: only {only} has it, {none} does not")
        else:
            rounds = sorted({*ones[way]} & {*others[way]})
            pairs = ([ones[way][each] for each in rounds], [others[way][each] for each in rounds])
            yield _compared(label, (cells[1].id, way, canonical(cells[1].params)), pairs, metric, True)
    if not ones and not others:
        left_out.append(f"{cells[1].id}: neither {LABELS[0]} nor {label} has a good repeat")


def _compared(
    label: str, place: tuple[str, str, str], values: tuple[list[float], list[float]], metric: str, paired: bool
) -> Compared:
    base, other = values
    of_zero = min(base, default=1) <= 0 or min(other, default=1) <= 0
    ratio = stats.paired_ratio if paired else stats.ratio
    found = stats.NOTHING if of_zero else ratio(other, base)
    return Compared(
        label,
        *place,
        n_base=len(base),
        n=len(other),
        base=_median(base),
        value=_median(other),
        ratio=found,
        verdict=NO_RATIO if of_zero else verdict(found, metric),
    )


def verdict(found: Interval, metric: str) -> str:
    """Return what an interval of a ratio says of the other one; a value over 1 means more of the metric."""
    if not found.known:
        return TOO_FEW
    if found.low <= 1 <= found.high:
        return NO_DIFFERENCE
    more, less = ("faster", "slower") if metric.endswith("_bit_s") else ("higher", "lower")
    return more if found.low > 1 else less


def _median(values: list[float]) -> float:
    return float(np.median(values)) if values else nan
