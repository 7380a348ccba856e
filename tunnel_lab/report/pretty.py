"""Numbers as people read them, in columns whose digits stand below each other."""

from __future__ import annotations

from datetime import datetime
from math import isnan

from tunnel_lab import units

NOTHING = "\N{EN DASH}"
BREAK = "\N{NO-BREAK SPACE}"


def fixed(value: float | None, digits: int) -> str:
    """Return a number with so many digits after the point; '' for none."""
    return "" if value is None or isnan(value) else f"{value:.{digits}f}"


def mbit(bit_s: float | None) -> str:
    """Return a rate in Mbit/s without the unit, for a column."""
    return fixed(None if bit_s is None else bit_s / 1e6, 2)


def between(low: float | None, high: float | None, scale: float = 1.0, digits: int = 2) -> str:
    """Return `low to high` divided by `scale`, for a column; '' where either is not known."""
    if low is None or high is None or isnan(low) or isnan(high):
        return ""
    return f"{low / scale:.{digits}f} to {high / scale:.{digits}f}"


def figure(value: float | None, metric: str) -> str:
    """Return a figure with its unit; a dash where there is none."""
    shown = "" if value is None else units.pretty(value, metric)
    return shown.replace(" ", BREAK) or NOTHING


def span(low: float | None, high: float | None, metric: str) -> str:
    """Return `low to high` with the unit once where both have the same; '' where either is not known."""
    if low is None or high is None:
        return ""
    (first, unit), (last, other) = (units.pretty(each, metric).partition(" ")[::2] for each in (low, high))
    if not first or not last:
        return ""
    ends = f"{first} to {last}" if unit == other else f"{first} {unit} to {last}"
    return f"{ends} {other}".strip().replace(" ", BREAK)


def size(value: float) -> str:
    """Return a number of bytes in a unit of its size."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(value) >= factor:
            return f"{units.digits(value / factor)} {unit}"
    return f"{value:.0f} bytes"


def moment(stamp: str) -> str:
    """Return an ISO 8601 time as a date and a time of day; the text itself where it is none."""
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    return f"{at.day} {at:%B %Y, %H:%M} UTC"


def many(n: int, noun: str) -> str:
    """Return `1 repeat`, `2 repeats`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def listed(items: list[str], most: int = 12) -> str:
    """Return `a, b, c`, and how many more there are after `most`."""
    more = len(items) - most
    return ", ".join(items[:most]) + (f", and {more} more" if more > 0 else "")


def percent(share: float | None, digits: int) -> str:
    """Return a share of 1 in per cent without the sign, for a column; '' for none."""
    return fixed(None if share is None else share * 100, digits)


def capital(sentence: str) -> str:
    """Return a sentence that begins with a capital."""
    return sentence[:1].upper() + sentence[1:]
