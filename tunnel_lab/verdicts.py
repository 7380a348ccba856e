"""What the measurements say of each published figure. The rule, the same for all, is in docs/verdicts.md.

A claim is a band: from the least to the greatest value that its print allows, widened on both sides by the factor
1 + tolerance. What was measured is a median with its 95 % interval. The whole interval within the band: reproduced;
wholly outside: contradicted; else inconclusive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import Any

import pandas as pd

from tunnel_lab import emulation, stats
from tunnel_lab.cases import Case, Unmeasured, cases, measure, named
from tunnel_lab.claims import Band, Cause, Claim, Order, Ratio, Source, Value
from tunnel_lab.comparable import differences
from tunnel_lab.stats import Interval
from tunnel_lab.tables import LINK, Row
from tunnel_lab.units import digits, pretty

REPRODUCED, CONTRADICTED, INCONCLUSIVE = "reproduced", "contradicted", "inconclusive"
NOT_COMPARABLE, NOT_MEASURED = "not comparable", "not measured"
VERDICTS = [REPRODUCED, CONTRADICTED, INCONCLUSIVE, NOT_COMPARABLE, NOT_MEASURED]

COLUMNS = [
    *LINK,
    *("source", "claim", "kind", "says", "place", "printed", "claimed_low", "claimed_high", "tolerance"),
    *("cell", "direction", "metric", "params", "n", "n_failed", "measured", "measured_low", "measured_high"),
    *("coverage", "verdict", "provisional", "reason", "best_cell", "best_measured"),
]


@dataclass(frozen=True)
class Finding:
    """A verdict and what it rests on."""

    verdict: str
    reason: str
    measured: Interval = stats.NOTHING


def judge(runs: pd.DataFrame, summary: pd.DataFrame, sources: dict[str, Source]) -> pd.DataFrame:
    """Return a row for every claim and every link (and set of parameters) over which its cells were measured.

    `runs` and `summary` are the tables of that name. A figure is as published only without an override.
    """
    labelled = runs.assign(cell=runs["tunnel"] + "." + runs["variant"] + "." + runs["workload"])
    rows = []
    for link, measured in labelled.groupby(LINK, dropna=False, sort=False):
        place = dict(zip(LINK, link, strict=True))
        plain = {str(cell): found for cell, found in measured[measured["override"] == ""].groupby("cell")}
        beside = summary[_same(summary, place)]
        for name, source in sources.items():
            for claim_name, claim in source.claims.items():
                about = {**place, "source": name, "claim": claim_name}
                rows += [{**about, **row} for row in _rows(source, claim, plain, beside)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _same(table: pd.DataFrame, values: dict[str, Any]) -> pd.Series[bool]:
    """Return which rows have these values; an empty one equals an empty one."""
    found = pd.Series(True, index=table.index)
    for name, value in values.items():
        found &= table[name].isna() if pd.isna(value) else table[name] == value
    return found


def _rows(source: Source, claim: Claim, plain: dict[str, pd.DataFrame], beside: pd.DataFrame) -> Iterator[Row]:
    band = _band(source, claim)
    measured: list[Case | None] = [*cases(claim, plain)]
    for case in measured or [None]:
        finding = _finding(source, claim, band, case)
        found = finding.measured
        yield {
            "kind": claim.kind,
            "says": claim.says,
            "place": claim.place,
            "printed": _printed(source, claim),
            "claimed_low": _end(band[0]),
            "claimed_high": _end(band[1]),
            "tolerance": claim.tolerance,
            "cell": named(claim),
            "direction": claim.direction,
            "metric": claim.metric,
            "params": case.params if case else "",
            "n": found.n,
            "n_failed": len(case.failed) if case else 0,
            "measured": found.median,
            "measured_low": found.low,
            "measured_high": found.high,
            "coverage": found.coverage,
            "verdict": finding.verdict,
            "provisional": finding.verdict in VERDICTS[:3] and not found.nominal,
            "reason": finding.reason,
            **_best(claim, case, beside),
        }


def _end(value: float) -> float:
    return value if isfinite(value) else nan


def _band(source: Source, claim: Claim) -> Band:
    """Return what the print allows; without an end on a side where it allows all."""
    if not claim.cells and not isinstance(claim, Value):
        return -inf, inf
    if isinstance(claim, Value):
        return claim.figure.band(claim.metric)
    if isinstance(claim, Ratio):
        return source.band(claim)
    return (1, inf) if isinstance(claim, Order) else claim.band


def _printed(source: Source, claim: Claim) -> str:
    if isinstance(claim, Value):
        return claim.figure.printed
    if isinstance(claim, Ratio) and claim.figure:
        return claim.figure.printed
    if isinstance(claim, Ratio) and claim.cells:
        one, other = (source.figure_of(claim, cell).printed for cell in claim.cells)
        (figure, _, unit), (its, _, same) = one.partition(" "), other.partition(" ")
        return f"{figure}:{its} {unit}".strip() if unit == same else f"{one}:{other}"
    return ""


def _finding(source: Source, claim: Claim, band: Band, case: Case | None) -> Finding:
    try:
        if claim.not_measured:
            raise Unmeasured(claim.not_measured)
        if case is None or len(case.rows) < len(claim.cells):
            missing = [cell for cell in claim.cells if case is None or cell not in case.rows]
            raise Unmeasured(f"this run has no {' and no '.join(missing)}")
        measured, name = measure(claim, case)
    except Unmeasured as error:
        return Finding(NOT_MEASURED, str(error))
    differ = differences({**source.conditions, **claim.conditions}, case)
    if any(emulation.is_withheld(kind, claim.metric) for kind in case.column(emulation.COLUMN)):
        differ.insert(0, emulation.WITHHELD)
    if differ:
        return Finding(NOT_COMPARABLE, "; ".join(differ), measured)
    tolerance = claim.tolerance if isinstance(claim, Value | Ratio) else 0
    return Finding(decide(measured, widened(band, tolerance)), _reason(claim, band, measured, name), measured)


def decide(measured: Interval, band: Band) -> str:
    """Return the verdict on a band: by where the interval lies, and by nothing else."""
    if not measured.known:
        return INCONCLUSIVE
    if band[0] <= measured.low and measured.high <= band[1]:
        return REPRODUCED
    return CONTRADICTED if measured.high < band[0] or measured.low > band[1] else INCONCLUSIVE


def widened(band: Band, tolerance: float) -> Band:
    """Return the band widened by the factor 1 + tolerance on both sides: as far up as down."""
    return band[0] / (1 + tolerance), band[1] * (1 + tolerance)


def _reason(claim: Claim, band: Band, measured: Interval, name: str) -> str:
    """Return the sentence that the verdict rests on."""
    metric = claim.metric if isinstance(claim, Value | Cause) else "ratio"
    said = f"measured {pretty(measured.median, metric)}"
    if measured.known:
        said += f", 95 % interval {pretty(measured.low, metric)} to {pretty(measured.high, metric)}"
    said += f"; {_wanted(claim, band, metric)}"
    if isinstance(claim, Order):
        said = f"the pair closest to the contrary, {name}: {said}"
    caution = stats.caution(measured)
    return f"{said} ({caution})" if caution else said


def _wanted(claim: Claim, band: Band, metric: str) -> str:
    if isinstance(claim, Order):
        return "above 1 if the ranking holds"
    if isinstance(claim, Cause):
        limits = [
            f"at {word} {pretty(end, metric)}"
            for word, end in zip(("least", "most"), band, strict=True)
            if isfinite(end)
        ]
        return f"{' and '.join(limits)} if that is the cause"
    low, high = widened(band, claim.tolerance)
    return (
        f"published {pretty(band[0], metric)} to {pretty(band[1], metric)}, "
        f"with a tolerance of {digits(claim.tolerance * 100)} % {pretty(low, metric)} to {pretty(high, metric)}"
    )


def _best(claim: Claim, case: Case | None, beside: pd.DataFrame) -> Row:
    """Return the fastest variant of the same tunnel that was measured with the same workload, with its median."""
    if not isinstance(claim, Value) or claim.metric != "goodput_bit_s" or case is None or not claim.cell:
        return {"best_cell": "", "best_measured": nan}
    tunnel, _, workload = claim.cell.split(".")
    same = {"tunnel": tunnel, "workload": workload, "params": case.params, "direction": claim.direction}
    rows = beside[_same(beside, same) & (beside["n"] > 0)]
    if rows.empty:
        return {"best_cell": "", "best_measured": nan}
    best = max(rows.to_dict("records"), key=lambda row: float(row["goodput_median_bit_s"]))
    label = ".".join(str(best[part]) for part in ("tunnel", "variant", "workload"))
    return {"best_cell": f"{label} {best['override']}".strip(), "best_measured": best["goodput_median_bit_s"]}
