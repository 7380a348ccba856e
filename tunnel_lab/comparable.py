"""Whether what was measured is what a claim speaks of: its conditions, and what of them does not hold."""

from __future__ import annotations

import re
import shlex
from math import inf

import pandas as pd

from tunnel_lab.cases import Case
from tunnel_lab.claims import Condition


def differences(conditions: dict[str, Condition], case: Case) -> list[str]:
    """Return a sentence for every condition that a cell's good rows do not meet.

    What is not known, such as the set rate of a real network, is no difference.
    """
    differ = []
    for cell, rows in case.rows.items():
        if rows["settings_id"].nunique() > 1:
            differ.append(f"{cell} has other settings in one run than in another: collect them one by one")
        for column, condition in conditions.items():
            value = _value_of(column, rows[rows["status"] == "ok"], case.params)
            if value is not None and not _holds(condition, value):
                shown = f"{value:.4g}" if isinstance(value, float) else value
                differ.append(f"{column} of {cell} is {shown}, not {_asked(condition)} ({condition.because})")
    return differ


def _value_of(column: str, rows: pd.DataFrame, params: str) -> float | str | None:
    """Return what the good rows have of a condition: the median of numbers; None where it is not known."""
    if column.startswith("params."):
        given = dict(pair.split("=", 1) for pair in shlex.split(params))
        text = given.get(column.removeprefix("params."))
        return float(text) if text and re.fullmatch(r"[\d.e+-]+", text) else text
    if column in ("rtt_ms", "round_trips"):
        # of a real network no round trip was set, only measured
        round_trip = rows["rtt_ms"].fillna(rows["link_rtt_ms"])
        values = rows["duration_s"] * 1e3 / round_trip if column == "round_trips" else round_trip
    elif column in rows:
        values = rows[column]
    else:
        return None
    values = values.dropna()
    if not len(values):
        return None
    return float(values.median()) if pd.api.types.is_numeric_dtype(values) else str(values.mode().iloc[0])


def _holds(condition: Condition, value: float | str) -> bool:
    if condition.equals is not None and value != condition.equals:
        return False
    if isinstance(value, str):
        return condition.at_least is None and condition.at_most is None
    least = -inf if condition.at_least is None else condition.at_least
    return least <= value <= (inf if condition.at_most is None else condition.at_most)


def _asked(condition: Condition) -> str:
    said = [
        f"{word} {value:g}"
        for word, value in (("at least", condition.at_least), ("at most", condition.at_most))
        if value is not None
    ]
    return " and ".join(said) or str(condition.equals)
