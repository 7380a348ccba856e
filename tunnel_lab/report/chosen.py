"""Which repeat's time series a report shows, and its record."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from tunnel_lab.errors import LabError, closest
from tunnel_lab.plan import Step
from tunnel_lab.records import Record, Run, raw_path
from tunnel_lab.report.facts import Facts
from tunnel_lab.report.rows import Row, cell, number, rows, text

JUDGED = ("reproduced", "contradicted", "inconclusive")


def record(facts: Facts) -> tuple[Record, Row] | None:
    """Return the chosen repeat's record and its row of the runs table; None where there is none to show.

    Without a repeat it is the sampled one whose goodput is nearest to the median of its cell. Raises LabError when
    `series` names a cell or repeat that there is not, or whose record cannot be read.
    """
    wanted, _, which = (facts.inputs.series or "").partition(":")
    if wanted:
        return _named(facts, wanted, which)
    name = _default(facts)
    return _nearest(facts, name) if name else None


def _named(facts: Facts, wanted: str, which: str) -> tuple[Record, Row]:
    cells = {each for _, run in facts.inputs.stored for each in run.plan.cells}
    if wanted not in cells:
        near = difflib.get_close_matches(wanted, cells, n=5, cutoff=0)
        raise LabError(f"--series {wanted}: no such cell in this run.{closest(wanted, near)}")
    if not which:
        found = _nearest(facts, wanted)
        if found is None:
            raise LabError(f"--series {wanted}: it has no good repeat whose record can be read. Choose another cell.")
        return found
    repeats = [str(step.repeat) for _, step in _steps(facts, wanted)]
    if which not in repeats:
        raise LabError(f"--series {wanted}:{which}: {wanted} has the repeats {', '.join(dict.fromkeys(repeats))}.")
    for run_dir, step in _steps(facts, wanted):
        if str(step.repeat) == which and raw_path(run_dir, step).is_file():
            return Record.read(raw_path(run_dir, step)), _row(facts, run_dir, step)
    raise LabError(f"--series {wanted}:{which}: there is no record of this repeat. Choose another one.")


def _steps(facts: Facts, wanted: str) -> list[tuple[Path, Step]]:
    return [(run_dir, step) for run_dir, run in facts.inputs.stored for step in run.plan.steps if step.cell == wanted]


def _row(facts: Facts, run_dir: Path, step: Step) -> Row:
    run_id = next(run.run_id for found, run in facts.inputs.stored if found == run_dir)
    runs = facts.inputs.runs
    return rows(runs[(runs["run_id"] == run_id) & (runs["order"] == step.order)].head(1))[0]


def _default(facts: Facts) -> str | None:
    """Return the cell of the first claim that has a verdict, else the slowest cell."""
    measured = [row for row in facts.summary if number(row, "goodput_median_bit_s") is not None]
    cells = {cell(row) for row in measured}
    for claim in facts.claims:
        if text(claim, "verdict") in JUDGED:
            named = [each for each in re.split(r"[\s,/>]+", text(claim, "cell")) if each in cells]
            if named:
                return named[0]
    slowest = min(measured, key=lambda row: number(row, "goodput_median_bit_s") or 0, default=None)
    return cell(slowest) if slowest else None


def _nearest(facts: Facts, name: str) -> tuple[Record, Row] | None:
    runs = facts.inputs.runs
    tunnel, variant, workload = name.split(".")
    good = runs[
        (runs["status"] == "ok")
        & (runs["tunnel"] == tunnel)
        & (runs["variant"] == variant)
        & (runs["workload"] == workload)
    ]
    good = good[good["sampler"].astype(bool)] if good["sampler"].any() else good
    distance = (good["goodput_bit_s"] - good["goodput_bit_s"].median()).abs()
    ordered = good.loc[distance.sort_values(kind="stable").index].head(3)
    for row in rows(ordered):
        found = _read(facts, row)
        if found:
            return found, row
    return None


def _read(facts: Facts, row: Row) -> Record | None:
    run_dir, run = _run(facts, row["run_id"])
    step = next(each for each in run.plan.steps if each.order == row["order"])
    try:
        return Record.read(raw_path(run_dir, step))
    except LabError:
        return None


def _run(facts: Facts, run_id: str) -> tuple[Path, Run]:
    return next(each for each in facts.inputs.stored if each[1].run_id == run_id)
