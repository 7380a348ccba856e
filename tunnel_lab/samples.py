"""What a host's sampler wrote during one repeat, as series that can be asked for a time."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from tunnel_lab.sockets import Socket, parse

SHORTEST_S = 0.05
"""A shorter time than this between two rows says nothing about a rate."""
UNITS = ("ticks_per_s", "page_bytes")
"""What `meta` must hold: without it the counters have no units."""


@dataclass(frozen=True)
class Row:
    """All values at one moment."""

    at: float
    """Seconds since the epoch, by the host's clock."""
    places: dict[str, int]
    values: list[Any]

    def get(self, name: str) -> float | None:
        """Return one of the values."""
        place = self.places.get(name)
        return None if place is None else float(self.values[place])


@dataclass(frozen=True)
class Look:
    """The sockets of the lab's processes at one moment, and the machine's sensors."""

    at: float
    text: str
    cpu_khz: list[int]
    temperature_millic: dict[str, int]

    @cached_property
    def sockets(self) -> list[Socket]:
        """The sockets, parsed."""
        return parse(self.text)


@dataclass(frozen=True)
class Samples:
    """The series of one host."""

    meta: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)

    def __bool__(self) -> bool:
        """There are figures only between two rows, and when their units are known."""
        return len(self.rows) > 1 and all(_is_number(unit := self.meta.get(name, 0)) and unit > 0 for name in UNITS)

    @cached_property
    def names(self) -> list[str]:
        """Every name that any row has, in the order of their appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row.places))

    def value(self, name: str, at: float) -> float | None:
        """Return a counter at a time, on the line between the two rows around it.

        A process that is not there yet has used nothing, and one that is gone has used what it had last.
        Other counters are None before they appear (a tunnel's interface, for instance).
        """
        known = [(row.at, value) for row in self._around(at) if (value := row.get(name)) is not None]
        if len(known) == 2:
            (t0, v0), (t1, v1) = known
            return v0 + (v1 - v0) * min(1.0, max(0.0, (at - t0) / (t1 - t0))) if t1 > t0 else v1
        before = [value for row in self.rows if row.at <= at and (value := row.get(name)) is not None]
        if before:
            return before[-1]
        return 0.0 if name.startswith("process|") else None

    def _around(self, at: float) -> list[Row]:
        place = bisect_right(self.rows, at, key=lambda row: row.at)
        return self.rows[max(0, place - 1) : place + 1]

    def rise(self, name: str, start: float, end: float) -> float:
        """Return by how much a counter rose between two times; 0 for one that is not there."""
        first, last = self.value(name, start), self.value(name, end)
        return 0.0 if first is None or last is None else last - first

    def between(self, start: float, end: float) -> Iterator[Look]:
        """Yield the looks at the sockets between two times."""
        return (look for look in self.looks if start <= look.at <= end)

    def shifted(self, seconds: float) -> Samples:
        """Return the same series by a clock that shows `seconds` more."""
        if not seconds:
            return self
        rows = [replace(row, at=row.at + seconds) for row in self.rows]
        return Samples(self.meta, rows, [replace(look, at=look.at + seconds) for look in self.looks])


@lru_cache(maxsize=4)
def of(text: str) -> Samples:
    """Return read(text); the same text is asked for again for each direction of a repeat."""
    return read(text)


def read(text: str) -> Samples:
    """Parse what sampler.py wrote; a last line that was cut off is left out, as is what another format may hold."""
    meta: dict[str, Any] = {}
    rows: list[Row] = []
    looks: list[Look] = []
    places: dict[str, int] = {}
    for line in text.splitlines():
        try:
            document = json.loads(line)
        except ValueError:
            break
        if isinstance(document, list) and document[:1] == ["at"] and all(isinstance(name, str) for name in document):
            places = {name: place for place, name in enumerate(document) if place}
        elif isinstance(document, list) and len(document) == len(places) + 1 and all(map(_is_number, document)):
            if not rows or document[0] > rows[-1].at:  # not while a clock that was set back repeats itself
                rows.append(Row(document[0], places, document))
        elif isinstance(document, dict) and isinstance(document.get("meta"), dict):
            meta = document["meta"]
        elif isinstance(document, dict) and isinstance(document.get("sockets"), str) and _is_number(document.get("at")):
            sensors = document.get("cpu_khz", []), document.get("temperature_millic", {})
            looks.append(Look(document["at"], document["sockets"], *sensors))
    return Samples(meta, rows, looks)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
