"""The section on round trips, of whatever workload measures them: its columns end in `_idle_p50_ms` and the like."""

from __future__ import annotations

import re

from tunnel_lab.report import plots, pretty
from tunnel_lab.report.blocks import Block, Column, Figure, Figures, Section, Text, table
from tunnel_lab.report.facts import MOST_FIGURES, Facts, Group
from tunnel_lab.report.measured import says
from tunnel_lab.report.rows import Row, number, way

KINDS = ("idle", "loaded")
PERCENTILES = ("p50", "p95", "p99")
MEASURED = re.compile(rf"(?P<stem>\w+)_({'|'.join(KINDS)})_p50_ms_median")
"""A column of the summary that holds a median round trip."""


def section(facts: Facts) -> Section | None:
    """Return round trips idle and under load; None where none were measured."""
    found = [match for name in facts.inputs.summary if (match := MEASURED.fullmatch(str(name)))]
    stems = list(dict.fromkeys(match["stem"] for match in found))
    groups = list(facts.with_any([match[0] for match in found]))
    if not groups:
        return None
    intro = (
        "Round trips of a small request through the tunnel: alone, and beside a bulk transfer in the given direction "
        "through the same tunnel. What a tunnel has over the bare link under load, it holds in its own buffers."
    )
    drawn = Figures([_figure(facts, group, stems) for group in groups[:MOST_FIGURES]])
    rows = [row for group in groups for row in group.rows]
    blocks: list[Block] = [Text(intro), drawn, _table(facts, rows, stems)]
    return Section("round-trips", "Round trips, idle and under load", blocks)


def _figure(facts: Facts, group: Group, stems: list[str]) -> Figure:
    shown, names, left_out = facts.drawn(group.rows)
    drawn = [_trips(facts, row, name, stems) for row, name in zip(shown, names, strict=True)]
    said = says("Median round trips in ms, idle and under load", [f"{each.label} {each.value}" for each in drawn])
    rtt = number(shown[0], "rtt_ms")
    made = plots.round_trips(f"round-trips-{group.name}", f"{group.title}: round trips", said, drawn, rtt)
    caption = "For each row two lines: idle, and under load. The line ends at the 99th percentile of the probes."
    return Figure(made.title, made.says, made.svg, caption + left_out)


def _measured(row: Row, stems: list[str], name: str) -> float | None:
    """Return what the row's own workload has in a column."""
    values = (number(row, f"{stem}_{name}_median") for stem in stems)
    return next((value for value in values if value is not None), None)


def _percentiles(row: Row, stems: list[str], kind: str) -> list[float | None]:
    return [_measured(row, stems, f"{kind}_{each}_ms") for each in PERCENTILES]


def _trips(facts: Facts, row: Row, name: str, stems: list[str]) -> plots.Trips:
    idle, loaded = (_percentiles(row, stems, kind) for kind in KINDS)
    value = f"{pretty.fixed(idle[0], 0)} → {pretty.fixed(loaded[0], 0)} ms"
    return plots.Trips(f"{name} {way(row)}", facts.shade(row), value, idle, loaded)


def _table(facts: Facts, rows: list[Row], stems: list[str]) -> Block:
    heads = [f"{kind.capitalize()} {each}" for kind in KINDS for each in PERCENTILES]
    numbers = [Column(title, "number") for title in ["n", *heads, "Tunnel up, s"]]
    made = [
        [
            name,
            way(row),
            pretty.fixed(number(row, "n"), 0),
            *(pretty.fixed(each, 1) for kind in KINDS for each in _percentiles(row, stems, kind)),
            pretty.fixed(_measured(row, stems, "tunnel_up_s"), 2),
        ]
        for name, row in zip(facts.names(rows), rows, strict=True)
    ]
    caption = "Round trips in ms: medians over the repeats of each percentile"
    return table(caption, [Column("Cell", "code"), Column("Way"), *numbers], made, "summary.csv")
