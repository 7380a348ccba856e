"""What was measured for a claim: its cells' good repeats, and the one quantity that is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import pandas as pd

from tunnel_lab import overhead, stats
from tunnel_lab.claims import EXPLAINED, Base, Cause, Claim, Order, Ratio
from tunnel_lab.stats import Interval


class Unmeasured(Exception):
    """There is nothing to judge; the text says why."""


@dataclass(frozen=True)
class Case:
    """What was measured for one claim over one link with one set of parameters: rows of the runs table by cell."""

    params: str
    rows: dict[str, pd.DataFrame]

    def good(self, cell: str, *metrics: str) -> pd.DataFrame:
        """Return the good rows of a cell that have all `metrics`, by run and repeat."""
        rows = self.rows[cell]
        if missing := [metric for metric in metrics if metric not in rows]:
            raise Unmeasured(f"the results have no column {missing[0]}")
        return rows[rows["status"] == "ok"].dropna(subset=list(metrics)).set_index(["run_id", "repeat"])

    def column(self, name: str) -> set[Any]:
        """Return every value that the rows of any cell have in a column."""
        return {value for rows in self.rows.values() for value in rows[name]}

    @property
    def failed(self) -> pd.DataFrame:
        """The rows that do not count."""
        return pd.concat([rows[rows["status"] != "ok"] for rows in self.rows.values()])


def named(claim: Claim) -> str:
    """Return the cells of a claim as one text."""
    if isinstance(claim, Order):
        return " > ".join(", ".join(group) for group in claim.groups)
    return (" / " if isinstance(claim, Ratio) else " against ").join(claim.cells)


def cases(claim: Claim, plain: dict[str, pd.DataFrame]) -> list[Case]:
    """Return what was measured of the claim's cells, one case for each set of parameters."""
    found = {cell: plain[cell] for cell in claim.cells if cell in plain}
    every = {params for rows in found.values() for params in rows["params"]}
    found_cases = []
    for params in sorted(every):
        rows = {
            cell: each[(each["params"] == params) & (each["direction"].isna() | (each["direction"] == claim.direction))]
            for cell, each in found.items()
        }
        found_cases.append(Case(params, {cell: each for cell, each in rows.items() if len(each)}))
    return found_cases


def measure(claim: Claim, case: Case) -> tuple[Interval, str]:
    """Return what the claim is about, and, for a ranking, the pair that decides; Unmeasured when there is none."""
    if isinstance(claim, Ratio):
        found, name = _ratio(claim, case, claim.cells[0], claim.cells[1]), named(claim)
    elif isinstance(claim, Order):
        found, name = _closest_pair(claim, case)
    else:
        found, name = _quantity(claim, case), named(claim)
    if not found.n:
        failed = case.failed
        why = f": {failed['reason'].iloc[0]}" if len(failed) else ""
        raise Unmeasured(f"no good repeat of {name} has {claim.metric} ({len(failed)} failed{why})")
    return found, name


def _ratio(claim: Base, case: Case, one: str, other: str) -> Interval:
    """Return one cell's metric divided by another's, of the repeats that both have in the same round."""
    both = _pairs(case, (one, other), [claim.metric])
    return stats.paired_ratio([pair[0] for pair in both], [pair[1] for pair in both])


def _pairs(case: Case, cells: tuple[str, str], columns: list[str]) -> list[tuple[float, ...]]:
    """Return the columns of one cell, then those of the other, of each round in which both have all."""
    one, other = (case.good(cell, *columns)[columns] for cell in cells)
    both = pd.merge(one, other, left_index=True, right_index=True, suffixes=("", "_other"))
    return list(both.itertuples(index=False, name=None))


def _closest_pair(claim: Order, case: Case) -> tuple[Interval, str]:
    """Return the ratio of the pair for which the ranking holds least, better to worse."""
    found = []
    for better, worse in claim.pairs:
        one, other = (better, worse) if claim.best == "highest" else (worse, better)
        ratio = _ratio(claim, case, one, other)
        if not ratio.n:
            return ratio, f"{better} and {worse}"
        found.append((ratio, f"{better} : {worse}"))
    return min(found, key=lambda each: (each[0].high if each[0].known else -inf, each[0].median))


def _quantity(claim: Claim, case: Case) -> Interval:
    """Return a metric of one cell, or what is made of the two cells of a cause."""
    if not isinstance(claim, Cause) or claim.metric != EXPLAINED:
        return stats.interval(list(case.good(claim.cells[0], claim.metric)[claim.metric]))
    columns = ["goodput_bit_s", overhead.COUNTED]
    both = _pairs(case, (claim.cells[0], claim.cells[1]), columns)
    shares = [overhead.explained(goodput, other, ratio, its) for goodput, ratio, other, its in both]
    return stats.interval([share for share in shares if share is not None])
