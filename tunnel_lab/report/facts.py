"""The tables of a report sorted out once: rows of the summary by link and workload, their repeats, their claims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tunnel_lab import wire
from tunnel_lab.plan import BARE
from tunnel_lab.report import figures
from tunnel_lab.report.inputs import Inputs
from tunnel_lab.report.rows import PLACE, Key, Row, cell, groups, key, labels, number, rows, text
from tunnel_lab.tables import LINK

MOST_DRAWN = 40
"""Rows of one figure."""
MOST_FIGURES = 6
"""Figures of one kind; what is not drawn is in the tables."""
OF_A_REPEAT = ["run_id", "repeat", "order", "status", "goodput_bit_s"]
OF_A_LIMIT = ["limit", "limit_evidence", "limit_ceiling_bit_s"]
RATE = "goodput_bit_s"


@dataclass(frozen=True)
class Group:
    """The rows of one workload over one link."""

    title: str
    name: str
    """Of the group among all, for ids."""
    link: Key
    workload: str
    rows: list[Row]


class Facts:
    """What the sections of a report ask for."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.summary = rows(inputs.summary)
        self.claims = rows(inputs.claims)

    @cached_property
    def groups(self) -> list[Group]:
        """The summary's rows by link and workload."""
        sorted_out = groups(self.summary, [*LINK, "workload"])
        made = []
        for number_, (found, members) in enumerate(sorted_out.items()):
            link, workload = found[: len(LINK)], str(found[-1])
            title = f"{workload} {self.over(members[0])}".strip()
            made.append(Group(title, f"{workload}-{number_}", link, workload, members))
        return made

    @cached_property
    def links(self) -> list[Row]:
        """One row of the summary for each link."""
        return [members[0] for members in groups(self.summary, LINK).values()]

    @cached_property
    def _differing(self) -> list[str]:
        """Return the columns of LINK that are not the same everywhere."""
        return [name for name in LINK if len({key(link, [name]) for link in self.links}) > 1]

    def over(self, row: Row) -> str:
        """Return what tells the link of a row from the others, `[rtt_ms=20]`; '' where there is only one."""
        told = [f"{name}={text(row, name) or '-'}" for name in self._differing]
        return f"[{' '.join(told)}]" if told else ""

    def names(self, found: list[Row]) -> list[str]:
        """Return what each row of a table is called, with its link where there are several."""
        return [f"{name} {self.over(row)}".strip() for name, row in zip(labels(found), found, strict=True)]

    @cached_property
    def _tunnels(self) -> list[str]:
        """The tunnels that were measured, none of them first."""
        return sorted({text(row, "tunnel") for row in self.summary}, key=lambda name: (name != BARE[0], name))

    def shade(self, row: Row) -> str:
        """Return the colour of a row's tunnel, the same in every figure."""
        found = self._tunnels.index(text(row, "tunnel"))
        return figures.shade(found if BARE[0] in self._tunnels else found + 1)

    def of_link(self, link: Row) -> list[Row]:
        """Return the summary's rows of a link."""
        return [row for row in self.summary if key(row, LINK) == key(link, LINK)]

    @cached_property
    def repeats(self) -> dict[Key, list[Row]]:
        """{PLACE of a summary's row: its good repeats}"""
        runs = self.inputs.runs
        names = [name for name in [*PLACE, *OF_A_REPEAT, *OF_A_LIMIT] if name in runs]
        return groups(rows(runs.loc[runs["status"] == "ok", names]), PLACE)

    def of(self, row: Row) -> list[Row]:
        """Return the good repeats of a row of the summary."""
        return self.repeats.get(key(row, PLACE), [])

    @cached_property
    def bands(self) -> dict[Key, tuple[float, float]]:
        """{(link, cell, direction): goodput in bit/s that a published figure allows, with its tolerance}"""
        found: dict[Key, tuple[float, float]] = {}
        for claim in self.claims:
            low, high = number(claim, "claimed_low"), number(claim, "claimed_high")
            if text(claim, "kind") == "value" and text(claim, "metric") == RATE and low and high:
                more = 1 + (number(claim, "tolerance") or 0)
                place = (key(claim, LINK), text(claim, "cell"), text(claim, "direction"))
                found.setdefault(place, (low / more, high * more))
        return found

    def band(self, row: Row) -> tuple[float, float] | None:
        """Return what a published figure allows this row; a row with an override is not what was published."""
        place = (key(row, LINK), cell(row), text(row, "direction"))
        return None if text(row, "override") else self.bands.get(place)

    def goodput_limit(self, row: Row) -> float | None:
        """Return the most TCP payload in bit/s that the link of a row carries without a tunnel; None if not known."""
        rate = number(row, "rate_mbit")
        if rate is None:
            return None
        segment = wire.tcp_stream(wire.Conditions(link_mtu=self.mtu))
        return rate * 1e6 * segment.carries / segment.bytes

    @cached_property
    def mtu(self) -> int:
        """The link's MTU, as the first host that says it has it."""
        environments = [run.environment.get(host, {}) for _, run in self.inputs.stored for host in ("client", "server")]
        known = [mtu for each in environments if isinstance(mtu := each.get("link_mtu"), int)]
        return known[0] if known and known[0] >= 576 else 1500

    def drawn(self, found: list[Row]) -> tuple[list[Row], list[str], str]:
        """Return which rows a figure shows, what they are called, and a sentence on those it does not show.

        Those that a published figure is about come first; what is shown is in the order of the best median, the two
        directions of a cell together.
        """
        first = sorted(found, key=lambda row: self.band(row) is None)
        chosen = first[:MOST_DRAWN]
        called = labels(chosen, whole=len({row["workload"] for row in chosen}) > 1)
        names = dict(zip(map(id, chosen), called, strict=True))
        best: dict[str, float] = {}
        for row in chosen:
            name = names[id(row)]
            best[name] = max(best.get(name, 0), number(row, "goodput_median_bit_s") or 0)
        chosen.sort(key=lambda row: (-best[names[id(row)]], names[id(row)], text(row, "direction")))
        more = len(found) - len(chosen)
        left_out = f" {more} more rows are not drawn; summary.csv has them all." if more else ""
        return chosen, [names[id(row)] for row in chosen], left_out

    def with_any(self, names: list[str]) -> Iterator[Group]:
        """Yield the groups, each with only those rows that hold any of the columns `names`."""
        for group in self.groups:
            found = [row for row in group.rows if any(number(row, name) is not None for name in names)]
            if found:
                yield Group(group.title, group.name, group.link, group.workload, found)
