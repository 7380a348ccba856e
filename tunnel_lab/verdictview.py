"""The verdicts for people: a table for each source and link, most of it in one line a claim."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd
from rich.table import Table

from tunnel_lab import show
from tunnel_lab.claims import Source
from tunnel_lab.tables import LINK
from tunnel_lab.units import digits, units_of
from tunnel_lab.verdicts import NOT_COMPARABLE, NOT_MEASURED, VERDICTS

PROVISIONAL = "*"


def show_verdicts(claims: pd.DataFrame, sources: dict[str, Source]) -> None:
    """Print what the measurements say of each source's claims."""
    for key, rows in claims.groupby(["source", *LINK], dropna=False, sort=False):
        source = sources[str(key[0])]
        print(f"{source.title} ({source.published})")
        if (rows["verdict"] == NOT_MEASURED).all():
            print(f"  none of its {len(rows)} claims was measured: {rows['reason'].iloc[0]}\n")
            continue
        show.console().print(_table(rows[rows["verdict"] != NOT_MEASURED]))
        for line in _notes(rows):
            print(line)


def _table(rows: pd.DataFrame) -> Table:
    block = show.table(["claim", "printed"], ["as figure", "measured", "n"], ["verdict", "best"])
    block.columns[0].no_wrap = True
    for row in rows.to_dict("records"):
        scale = _scale(row)
        block.add_row(
            str(row["claim"]),
            str(row["printed"]).replace(" ", "\u00a0"),
            _range(row["claimed_low"] * scale, row["claimed_high"] * scale),
            _measured(row, scale),
            str(row["n"]),
            f"{row['verdict']}{PROVISIONAL if row['provisional'] else ''}",
            _best(row),
        )
    return block


def _scale(row: dict[Hashable, Any]) -> float:
    """Return what makes Mbit/s of a rate and per cent of a share; 1 for a ratio."""
    if row["kind"] in ("ratio", "order"):
        return 1
    known = units_of(row["metric"])
    return 1e-6 if "Mbit/s" in known else 100 if "share" in known else 1


def _range(low: float, high: float) -> str:
    if pd.isna(low) or pd.isna(high):
        return "" if pd.isna(low) and pd.isna(high) else f"≥ {digits(low)}" if pd.isna(high) else f"≤ {digits(high)}"
    one, other = digits(low), digits(high)
    return one if one == other else f"{one}-{other}"


def _measured(row: dict[Hashable, Any], scale: float) -> str:
    if pd.isna(row["measured"]):
        return ""
    spread = f" ({_range(row['measured_low'] * scale, row['measured_high'] * scale)})"
    return digits(row["measured"] * scale) + ("" if pd.isna(row["measured_low"]) else spread)


def _best(row: dict[Hashable, Any]) -> str:
    if not row["best_cell"]:
        return ""
    cell, _, override = str(row["best_cell"]).partition(" ")
    return f"{digits(row['best_measured'] / 1e6)} {cell.split('.')[1]} {override}".strip()


def _notes(rows: pd.DataFrame) -> list[str]:
    counts = rows["verdict"].value_counts()
    lines = [", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if verdict in counts)]
    lines[0] += "; rates in Mbit/s, shares in %, else ratios; in brackets the 95 % interval"
    if rows["provisional"].any():
        few = rows[rows["provisional"]]
        covers = ", ".join(f"{share * 100:.0f}" for share in sorted(set(few["coverage"])))
        lines.append(f"{PROVISIONAL} provisional: of so few repeats an interval covers {covers} %, not 95")
    for reason, found in rows[rows["verdict"] == NOT_COMPARABLE].groupby("reason", sort=False):
        lines.append(f"{NOT_COMPARABLE}: {', '.join(found['claim'])}: {reason}")
    if (rows["verdict"] == NOT_MEASURED).any():
        lines.append(
            f"{NOT_MEASURED}: {', '.join(rows.loc[rows['verdict'] == NOT_MEASURED, 'claim'])}; claims.csv says why"
        )
    return [*lines, ""]
