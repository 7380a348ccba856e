"""Rows of the tables as plain mappings: which cell and link they belong to, what they are called, what they hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from tunnel_lab import emulation
from tunnel_lab.show import ARROWS
from tunnel_lab.tables import CELL, LINK

Row = dict[str, Any]
Key = tuple[Any, ...]


def rows(table: pd.DataFrame) -> list[Row]:
    """Return the rows of a table."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def known(value: Any) -> bool:
    """Whether a cell of a table holds anything."""
    return value is not None and not (pd.api.types.is_scalar(value) and pd.isna(value))


def number(row: Row, name: str) -> float | None:
    """Return a number of a row; None where the table has no such column, or nothing in it."""
    value = row.get(name)
    return None if value is None or pd.isna(value) else float(value)


def text(row: Row, name: str) -> str:
    """Return a text of a row, '' where there is none; in one line."""
    value = row.get(name)
    return " ".join(str(value).split()) if known(value) else ""


def key(row: Row, names: Sequence[str]) -> Key:
    """Return the values of some columns, so that equal ones are equal: an empty one is None."""
    return tuple(row[name] if known(row.get(name)) else None for name in names)


def cell(row: Row) -> str:
    """Return the id of the row's cell."""
    return f"{row['tunnel']}.{row['variant']}.{row['workload']}"


def way(row: Row) -> str:
    """Return the direction as an arrow, S the server, C the client; '' without one."""
    return ARROWS.get(text(row, "direction"), "")


def sentence_way(row: Row) -> str:
    """Return the direction in words."""
    return text(row, "direction").replace("_", " ")


def links(found: Iterable[Row]) -> list[Key]:
    """Return the links that rows were measured over, in their order."""
    return list(dict.fromkeys(key(row, LINK) for row in found))


def link_name(row: Row) -> str:
    """Return which lab and link a row belongs to, in words."""
    parts = [f"{text(row, 'lab')} ({text(row, 'provider')})"]
    parts += [f"CPU emulated ({kind})"] if (kind := text(row, emulation.COLUMN)) else []
    parts.append(f"link {text(row, 'link_emulator')}")
    rate, rtt = number(row, "rate_mbit"), number(row, "rtt_ms")
    if rtt is not None and rate is not None:
        parts += [f"{rtt:g} ms round trip", f"{rate:g} Mbit/s"]
        parts += [f"queue {queue:.0f} bytes"] if (queue := number(row, "queue_bytes")) is not None else []
        parts += [f"loss {loss:g} %"] if (loss := number(row, "loss_pct")) is not None else []
    return ", ".join(parts + ([] if row.get("sampler", True) else ["not sampled"]))


def labels(found: list[Row], whole: bool = True) -> list[str]:
    """Return what each row is called: its cell (without the workload if not `whole`), what was overridden, and what
    else tells it from another row of the same direction."""
    names = [cell(row) if whole else f"{row['tunnel']}.{row['variant']}" for row in found]
    names = [f"{name} {text(row, 'override')}".strip() for name, row in zip(names, found, strict=True)]
    beside = ["workload", "direction", *LINK]
    places = [(name, *key(row, beside)) for name, row in zip(names, found, strict=True)]
    seen = Counter(places)
    return [
        f"{name} [{text(row, 'settings_id')} {text(row, 'params')}]" if seen[place] > 1 else name
        for name, place, row in zip(names, places, found, strict=True)
    ]


def groups(found: Iterable[Row], names: Sequence[str]) -> dict[Key, list[Row]]:
    """Return the rows by the values of some columns, in the order in which these appear."""
    sorted_out: dict[Key, list[Row]] = {}
    for row in found:
        sorted_out.setdefault(key(row, names), []).append(row)
    return sorted_out


PLACE = [*LINK, *CELL, "direction"]
"""What a row of the summary is about."""


def slug(words: str) -> str:
    """Return words as an id of an HTML element."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "x"
