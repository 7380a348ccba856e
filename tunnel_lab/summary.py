"""From the table of runs to the summary: a row per cell and direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from tunnel_lab import overhead, stats
from tunnel_lab.plan import BARE
from tunnel_lab.tables import CELL, FIXED, LINK, PREFIXES, Row

MEDIANS = [
    *("link_utilisation", "retransmitted_share", overhead.COUNTED, "wire_overhead_predicted"),
    *(f"{host}.{figure}" for host in ("server", "client") for figure in ("cpu_s_per_gb", "tunnel_cpu_s_per_gb")),
]
"""What a summary tells the median of, beside goodput, times, and every figure of a workload's own."""
INTERVAL: dict[str, Callable[[stats.Interval], Any]] = {
    "goodput_low_bit_s": lambda found: found.low,
    "goodput_high_bit_s": lambda found: found.high,
    "goodput_coverage": lambda found: found.coverage,
    "caution": stats.caution,
}
"""What a summary tells of the interval of a median."""
AGAINST_BARE = ["bare_goodput_bit_s", "gap_explained_by_overhead"]


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """Return n, n_failed, median, min, max and spread for every cell and direction of a runs table.

    `goodput_cv` is the sample standard deviation over the mean, empty for n < 2. `n_failed` counts planned
    repeats without a figure in this direction; a cell that has none at all is one row without a direction.
    """
    cell = [*LINK, *CELL]
    planned = runs.drop_duplicates(["run_id", "order"]).groupby(cell, dropna=False).size()
    good = runs[runs["status"] == "ok"].groupby([*cell, "direction"], dropna=False)
    goodput = good["goodput_bit_s"]
    figures = pd.DataFrame(
        {
            "n": goodput.size(),
            "goodput_median_bit_s": goodput.median(),
            "goodput_min_bit_s": goodput.min(),
            "goodput_max_bit_s": goodput.max(),
            **{name: goodput.agg(_of_interval(of)) for name, of in INTERVAL.items()},
            "goodput_cv": goodput.std(ddof=1) / goodput.mean(),
            "duration_median_s": good["duration_s"].median(),
            "overhead_median_s": good["overhead_s"].median(),
            "limit": good["limit"].agg(_commonest),
            "limit_n": good["limit"].agg(lambda limits: int((limits == _commonest(limits)).sum())),
            **{f"{name}_median": good[name].median() for name in [*MEDIANS, *own_figures(runs)] if name in runs},
        }
    )
    table = planned.rename("n_failed").reset_index().merge(figures.reset_index(), on=cell, how="left")
    table["n"] = table["n"].fillna(0).astype("int64")
    table["n_failed"] -= table["n"]
    for name, values in zip(AGAINST_BARE, _against_bare(table), strict=True):
        table[name] = pd.Series(values, index=table.index, dtype="float64")
    return table[[*cell, "direction", "n", "n_failed", *figures.columns[1:], *AGAINST_BARE]]


def _of_interval(of: Callable[[stats.Interval], Any]) -> Callable[[pd.Series[Any]], Any]:
    return lambda values: of(stats.interval(list(values)))


def own_figures(runs: pd.DataFrame) -> list[str]:
    """Return the columns of a runs table that are a workload's own and numbers, in their order."""
    numbers = runs.select_dtypes("number").columns
    return [name for name in numbers if name not in FIXED and not name.startswith(PREFIXES)]


def _commonest(values: pd.Series[Any]) -> str | None:
    """Return what most of `values` are, the first in the alphabet of several; None when there is none."""
    counts = values.dropna().value_counts()
    return min(counts[counts == counts.max()].index) if len(counts) else None


def _against_bare(table: pd.DataFrame) -> tuple[list[float | None], list[float | None]]:
    """Return, for each row, the bare link's goodput and the share of the gap to it that headers explain.

    The bare link's own cell of the same workload is the measure, or its iperf3 where that was not measured.
    """
    rows: list[Row] = [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
    bare: dict[Any, Row] = {}
    for row in rows:
        if (row["tunnel"], row["variant"]) == BARE[:2] and row["n"]:
            bare[_conditions(row, row["workload"], row["params"])] = row
            if row["workload"] == BARE[2]:
                bare.setdefault(_conditions(row, "", ""), row)
    found = [
        bare.get(_conditions(row, row["workload"], row["params"])) or bare.get(_conditions(row, "", "")) for row in rows
    ]
    goodputs = [each["goodput_median_bit_s"] if each else None for each in found]
    return goodputs, [_explained(row, each) for row, each in zip(rows, found, strict=True)]


def _explained(row: Row, bare: Row | None) -> float | None:
    if bare is None or bare is row:
        return None
    names = ("goodput_median_bit_s", f"{overhead.COUNTED}_median")
    (goodput, ratio), (bare_goodput, bare_ratio) = ([_known(each, name) for name in names] for each in (row, bare))
    if goodput is None or ratio is None or bare_goodput is None or bare_ratio is None:
        return None
    return overhead.explained(goodput, bare_goodput, ratio, bare_ratio)


def _known(row: Row, name: str) -> float | None:
    value = row.get(name)
    return None if value is None or pd.isna(value) else float(value)


def _conditions(row: Row, *of: str) -> tuple[Any, ...]:
    return (*(None if pd.isna(row[name]) else row[name] for name in LINK), row["direction"], *of)
