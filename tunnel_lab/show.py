"""The tables for people: pretty units, at most 100 columns, plain text when nobody looks at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from tunnel_lab import emulation
from tunnel_lab.manifests import Workload
from tunnel_lab.overhead import COUNTED
from tunnel_lab.stats import CONFIDENCE, WIDE
from tunnel_lab.tables import LINK

WIDTH = 100
ARROWS = {"server_to_client": "S→C", "client_to_server": "C→S"}
FAILURES = 10
"""How many repeats without a good record are listed one by one."""


def summary(summed: pd.DataFrame) -> None:
    """Print a summary table, one block for each link."""
    for link, rows in summed.groupby(LINK, dropna=False, sort=False):
        print(_title(dict(zip(LINK, link, strict=True))))
        console().print(_block(rows))
    print("S server, C client; n repeats; cv standard deviation / mean; overhead: the lab's own time per repeat")


def cautions(summed: pd.DataFrame) -> None:
    """Print what n and spread of the figures cannot support."""
    good = summed[summed["n"] > 0]
    few = good[good["goodput_coverage"] < CONFIDENCE]
    if len(few):
        least = few["goodput_coverage"].min() * 100
        print(f"{len(few)} of {len(good)} figures have so few repeats that an interval covers {least:.0f} %, not 95 %.")
    rough = good[good["caution"].str.contains("rough")]
    if len(rough):
        named = [f"{label} {ARROWS[way]}" for label, way in zip(_labels(rough), rough["direction"], strict=True)]
        print(f"Rough, the interval reaches further than ±{WIDE * 100:.0f} %: {', '.join(named)}")


def console(width: int = WIDTH) -> Console:
    """Return where tables are printed: the terminal's width, or `width` where nobody looks at one."""
    return Console(width=width if not sys.stdout.isatty() else None, markup=False, emoji=False, highlight=False)


def table(texts: list[str], numbers: list[str], more: list[str] | None = None) -> Table:
    """Return an empty table: columns of text, of numbers, of text."""
    block = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for head in texts:
        block.add_column(head, overflow="fold")
    for head in numbers:
        block.add_column(head, justify="right", no_wrap=True)
    for head in more or []:
        block.add_column(head, overflow="fold")
    return block


def why(summed: pd.DataFrame) -> None:
    """Print what limited each cell, what it cost, and what of its distance from the bare link headers explain."""
    for _, rows in summed.groupby(LINK, dropna=False, sort=False):
        if rows["limit"].notna().any():
            console().print(_why_block(rows))
            print(
                "overhead: bytes on the link per byte of payload; headers: how much of the distance from the bare\n"
                "link they explain; CPU s/GB: CPU seconds of the whole host per 10^9 bytes of payload"
            )


def own_figures(summed: pd.DataFrame, workloads: dict[str, Workload]) -> None:
    """Print the medians of what each workload measures beside goodput, as its manifest asks for."""
    for name, workload in workloads.items():
        rows = summed[(summed["workload"] == name) & (summed["n"] > 0)]
        columns = {f"{column}_median": head for column, head in workload.shown.items() if f"{column}_median" in summed}
        if len(rows) and columns:
            block = table(["cell", "way"], list(columns.values()))
            for label, row in zip(_labels(rows), rows.to_dict("records"), strict=True):
                figures = [_number(row[column], 2 if row[column] < 100 else 0) for column in columns]
                block.add_row(label, ARROWS.get(row["direction"], ""), *figures)
            console().print(block)


def _why_block(rows: pd.DataFrame) -> Table:
    numbers = ["median\nMbit/s", "bare\nMbit/s", "over-\nhead", "headers\n%", "CPU s/GB\nS", "\nC"]
    block = table(["cell", "way", "limit"], numbers)
    for label, row in zip(_labels(rows), rows.to_dict("records"), strict=True):
        block.add_row(
            label,
            ARROWS.get(row["direction"], ""),
            _limit(row),
            _mbit(row["goodput_median_bit_s"]),
            _mbit(row["bare_goodput_bit_s"]),
            _number(row[f"{COUNTED}_median"], 3),
            _number(row["gap_explained_by_overhead"] * 100, 0),
            _number(row["server.cpu_s_per_gb_median"], 1),
            _number(row["client.cpu_s_per_gb_median"], 1),
        )
    return block


def _limit(row: dict[Hashable, Any]) -> str:
    if pd.isna(row["limit"]):
        return ""
    return str(row["limit"]) if row["limit_n"] == row["n"] else f"{row['limit']} {row['limit_n']}/{row['n']}"


def _title(link: dict[str, Any]) -> str:
    where = f"{link['lab']} ({link['provider']}), link {link['link_emulator']}"
    where += "" if pd.isna(link["region_pair"]) else f", {link['region_pair']}"
    where += "" if pd.isna(link[emulation.COLUMN]) else f", CPU emulated ({link[emulation.COLUMN]})"
    where += "" if link["sampler"] else ", not sampled"
    if pd.isna(link["rtt_ms"]):
        return where
    return (
        f"{where}: {link['rtt_ms']:g} ms round trip, {link['rate_mbit']:g} Mbit/s, "
        f"queue {link['queue_bytes']} bytes, loss {link['loss_pct']:g} %"
    )


def _block(rows: pd.DataFrame) -> Table:
    block = table(
        ["cell", "way"], ["n", "failed", "median\nMbit/s", "min-max\nMbit/s", "cv\n%", "median\ns", "overhead\ns"]
    )
    for label, row in zip(_labels(rows), rows.to_dict("records"), strict=True):
        block.add_row(
            label,
            ARROWS.get(row["direction"], ""),
            str(row["n"]),
            str(row["n_failed"]),
            _mbit(row["goodput_median_bit_s"]),
            f"{_mbit(row['goodput_min_bit_s'])}-{_mbit(row['goodput_max_bit_s'])}".strip("-"),
            _number(row["goodput_cv"] * 100, 1),
            _number(row["duration_median_s"], 2),
            _number(row["overhead_median_s"], 1),
        )
    return block


def _labels(rows: pd.DataFrame) -> pd.Series[str]:
    """Return what each row is called: its cell, what was overridden, and what else tells it from another."""
    labels = rows["tunnel"] + "." + rows["variant"] + "." + rows["workload"]
    labels = labels + (" " + rows["override"]).where(rows["override"] != "", "")
    twice = pd.DataFrame({"label": labels, "way": rows["direction"]}).duplicated(keep=False)
    return labels + (" [" + rows["settings_id"] + " " + rows["params"] + "]").where(twice, "")


def _mbit(bit_s: float) -> str:
    return _number(bit_s / 1e6, 1 if bit_s >= 1e8 else 2)


def _number(value: float, digits: int) -> str:
    return "" if pd.isna(value) else f"{value:.{digits}f}"


def drift(runs: pd.DataFrame) -> None:
    """Print, for each run, how the bare link changed between the first and the last repeat of all."""
    for run_id, rows in runs[runs["status"] == "ok"].groupby("run_id"):
        planned = runs.loc[runs["run_id"] == run_id, "order"]
        first, last = (
            rows[rows["order"] == order].set_index("direction")["goodput_bit_s"]
            for order in (planned.min(), planned.max())
        )
        for direction in first.index.intersection(last.index):
            change = (last[direction] / first[direction] - 1) * 100
            print(
                f"Bare link of {run_id}, first and last repeat, {ARROWS[direction]}: "
                f"{_mbit(first[direction])} and {_mbit(last[direction])} Mbit/s, drift {change:+.1f} %"
            )


def failures(runs: pd.DataFrame) -> None:
    """Print how many planned repeats have no good record, and the first of them with their reasons."""
    bad = runs[runs["status"] != "ok"]
    if bad.empty:
        return
    planned = len(runs.drop_duplicates(["run_id", "order"]))
    print(f"{len(bad)} of {planned} planned repeats have no good record:")
    for row in bad.head(FAILURES).to_dict("records"):
        cell = f"{row['tunnel']}.{row['variant']}.{row['workload']}"
        print(f"  {row['run_id']} {cell} repeat {row['repeat']}: {row['status']}: {row['reason']}")
    if len(bad) > FAILURES:
        print(f"  and {len(bad) - FAILURES} more; runs.csv has them all.")
