"""The section on goodput, and how the other figures are told in words."""

from __future__ import annotations

from statistics import median

from tunnel_lab.report import plots, pretty
from tunnel_lab.report.blocks import Block, Column, Figure, Figures, Folded, Section, Text, table
from tunnel_lab.report.facts import MOST_FIGURES, RATE, Facts, Group
from tunnel_lab.report.rows import Row, number, text, way

SOME = 12
"""Rows that a figure's text alternative names one by one."""
NOT_DRAWN = "Only the first figures are drawn; summary.csv has the rest."
GOODPUT_CAPTION = "A ring is one repeat, the upright bar their median, the pale line its interval."
CEILING_CAPTION = " Dotted: the most that the window which limited this row lets pass."
BAND_CAPTION = " Shaded: what the published figure allows, with its tolerance."


def goodput(facts: Facts) -> Section:
    """Return the figures and tables of goodput, one for each workload."""
    groups = list(facts.with_any(["goodput_median_bit_s"]))
    found: list[Block] = []
    if not groups:
        found.append(Text("No repeat has a figure. The reasons are below, under failed repeats."))
    else:
        found.append(Figures([_goodput_figure(facts, group) for group in groups[:MOST_FIGURES]]))
    found += [Text(NOT_DRAWN, note=True)] if len(groups) > MOST_FIGURES else []
    rows = [row for group in facts.groups for row in group.rows]
    return Section(
        "goodput", "Goodput", [*found, Folded("All goodput figures as a table", [_goodput_table(facts, rows)])]
    )


def _goodput_figure(facts: Facts, group: Group) -> Figure:
    shown, names, left_out = facts.drawn(group.rows)
    limit = facts.goodput_limit(shown[0])
    drawn = [_dots(facts, row, name) for row, name in zip(shown, names, strict=True)]
    said = says(f"Goodput of {group.title}, medians", [f"{each.label} {each.value}" for each in drawn])
    if limit:
        said += f" The link's limit is {pretty.figure(limit, RATE)}."
    title = f"{group.title}: goodput"
    made = plots.goodput(f"goodput-{group.name}", title, said, drawn, None if limit is None else limit / 1e6)
    caption = GOODPUT_CAPTION
    caption += CEILING_CAPTION if any(each.ceiling is not None for each in drawn) else ""
    caption += BAND_CAPTION if any(each.band for each in drawn) else ""
    return Figure(made.title, made.says, made.svg, caption + left_out)


def _dots(facts: Facts, row: Row, name: str) -> plots.Dots:
    repeats = facts.of(row)
    held = [one for one in repeats if text(one, "limit") == "window"]
    ceilings = [each for one in held if (each := number(one, "limit_ceiling_bit_s")) is not None]
    middle = number(row, "goodput_median_bit_s") or 0.0
    low, high = number(row, "goodput_low_bit_s"), number(row, "goodput_high_bit_s")
    band = facts.band(row)
    return plots.Dots(
        label=f"{name} {way(row)}",
        shade=facts.shade(row),
        value=pretty.figure(middle, RATE),
        repeats=[(number(one, RATE) or 0.0) / 1e6 for one in repeats],
        median=middle / 1e6,
        interval=None if low is None or high is None else (low / 1e6, high / 1e6),
        ceiling=median(ceilings) / 1e6 if ceilings else None,
        band=(band[0] / 1e6, band[1] / 1e6) if band else None,
    )


def says(head: str, items: list[str]) -> str:
    """Return the text alternative of a figure: what it shows, and its first SOME rows."""
    return f"{head}: {pretty.listed(items, SOME)}."


def _goodput_table(facts: Facts, rows: list[Row]) -> Block:
    columns = [
        Column("Cell", "code"),
        Column("Way"),
        *(Column(title, "number") for title in ("n", "Failed", "Median Mbit/s", "Interval", "Least to most", "CV %")),
        Column("Caution", "long"),
    ]
    made = [
        [
            name,
            way(row),
            pretty.fixed(number(row, "n"), 0),
            pretty.fixed(number(row, "n_failed"), 0),
            pretty.mbit(number(row, "goodput_median_bit_s")),
            pretty.between(number(row, "goodput_low_bit_s"), number(row, "goodput_high_bit_s"), 1e6),
            pretty.between(number(row, "goodput_min_bit_s"), number(row, "goodput_max_bit_s"), 1e6),
            pretty.percent(number(row, "goodput_cv"), 1),
            text(row, "caution"),
        ]
        for name, row in zip(facts.names(rows), rows, strict=True)
    ]
    return table("Goodput of every cell and direction", columns, made, "summary.csv")
