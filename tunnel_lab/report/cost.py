"""Sections on what a figure cost and what held it back: CPU, bytes on the link, the limit of each cell."""

from __future__ import annotations

from collections import Counter
from statistics import median

from tunnel_lab import wire
from tunnel_lab.report import plots, pretty
from tunnel_lab.report.blocks import Block, Bullets, Column, Figure, Figures, Section, Text, table
from tunnel_lab.report.facts import MOST_DRAWN, MOST_FIGURES, Facts, Group
from tunnel_lab.report.measured import NOT_DRAWN, says
from tunnel_lab.report.rows import Row, groups, number, text, way

HOSTS = ("server", "client")
OVERHEAD_CAPTION = (
    "A dot is the median of one cell and direction, by the kernel's counters. Diamond: predicted from packet formats "
    "alone. Dashed: the bare link."
)
CPU = [f"{host}.cpu_s_per_gb_median" for host in HOSTS]
COUNTED, PREDICTED = "wire_overhead_median", "wire_overhead_predicted_median"
LIMITS = {
    "link": "the link carried what it can, most of the time",
    "cpu": "a process had a whole core, a host all that its quota allows, or the machine no idle time",
    "window": "a socket between the hosts had a full send buffer or receive window, and could have sent more",
    "loss": "segments were lost and sent again, with the congestion window in use",
    "application": "the program at either end did not read what had arrived, or had nothing to send",
    "unclear": "none of these",
}
"""The rules of tunnel_lab.limit in words."""


def costs(facts: Facts) -> Section | None:
    """Return CPU cost and bytes on the link; None where no host was sampled."""
    cpu, wired = list(facts.with_any(CPU)), list(facts.with_any([COUNTED]))
    if not cpu and not wired:
        return None
    drawn = [_cpu_figure(facts, group) for group in cpu[:MOST_FIGURES]]
    blocks: list[Block] = [Figures(drawn)] if drawn else []
    blocks += [Text(NOT_DRAWN, note=True)] if len(cpu) > MOST_FIGURES else []
    overheads = _overhead_figures(facts)
    blocks += [Figures(overheads)] if overheads else []
    rows = [row for row in facts.summary if any(number(row, name) is not None for name in [*CPU, COUNTED, PREDICTED])]
    return Section("cost", "CPU cost and overhead", [*blocks, _table(facts, rows)])


def _cpu_figure(facts: Facts, group: Group) -> Figure:
    shown, names, left_out = facts.drawn(group.rows)
    drawn = [
        plots.Bars(
            label=f"{name} {way(row)}",
            shade=facts.shade(row),
            value=" · ".join(f"{host[0].upper()} {_cpu(row, host) or pretty.NOTHING}" for host in HOSTS),
            server=_sides(row, "server"),
            client=_sides(row, "client"),
        )
        for name, row in zip(names, shown, strict=True)
    ]
    said = says(
        f"CPU seconds per 10⁹ bytes of payload of {group.title}, S the server, C the client",
        [f"{each.label} {each.value}" for each in drawn],
    )
    made = plots.cost(f"cpu-{group.name}", f"{group.title}: CPU cost", said, drawn)
    caption = "S the server, C the client; the whole host, and of it (solid) the processes of the tunnel itself."
    return Figure(made.title, made.says, made.svg, caption + left_out)


def _cpu(row: Row, host: str, kind: str = "cpu") -> str:
    return pretty.fixed(number(row, f"{host}.{kind}_s_per_gb_median"), 1)


def _sides(row: Row, host: str) -> tuple[float | None, float | None]:
    return number(row, f"{host}.cpu_s_per_gb_median"), number(row, f"{host}.tunnel_cpu_s_per_gb_median")


def _overhead_figures(facts: Facts) -> list[Figure]:
    """Return one figure for each link, with the variants for which there is a prediction, or all if there is none."""
    found = []
    for place, link in enumerate(facts.links[:MOST_FIGURES]):
        counted = [row for row in facts.of_link(link) if number(row, COUNTED) is not None]
        rows = [row for row in counted if number(row, PREDICTED) is not None] or counted
        if rows:
            found.append(_overhead_figure(facts, f"overhead-{place}", rows, len(rows) < len(counted)))
    return found


def _overhead_figure(facts: Facts, name: str, rows: list[Row], some_left: bool) -> Figure:
    first = sorted(rows, key=lambda row: facts.band(row) is None)
    variants = list(groups(first, ["tunnel", "variant", "override"]).values())
    pairs = [_pair(facts, members) for members in variants[:MOST_DRAWN]]
    drawn = sorted(pairs, key=lambda each: (median(each.counted), each.label))
    segment = wire.tcp_stream(wire.Conditions(link_mtu=facts.mtu))
    bare = segment.bytes / segment.carries
    said = says("Bytes on the link per byte of payload", [f"{each.label} {each.value}" for each in drawn])
    said += f" Without a tunnel, packet formats predict {bare:.3f}."
    made = plots.overhead(name, f"Overhead on the link {facts.over(rows[0])}".strip(), said, drawn, bare)
    caption = OVERHEAD_CAPTION + (" Variants without a prediction are in the table." if some_left else "")
    more = len(variants) - len(drawn)
    caption += f" {more} more variants are not drawn; summary.csv has them all." if more else ""
    return Figure(made.title, made.says, made.svg, caption)


def _pair(facts: Facts, rows: list[Row]) -> plots.Pair:
    counted, predicted = (sorted(filter(None, (number(row, name) for row in rows))) for name in (COUNTED, PREDICTED))
    least, most = f"{counted[0]:.3f}", f"{counted[-1]:.3f}"
    value = least if least == most else f"{least} to {most}"
    label = f"{text(rows[0], 'tunnel')}.{text(rows[0], 'variant')} {text(rows[0], 'override')}".strip()
    return plots.Pair(label, facts.shade(rows[0]), value, counted, sorted(set(predicted)))


def _table(facts: Facts, rows: list[Row]) -> Block:
    heads = [f"{host.capitalize()}{what}" for host in HOSTS for what in (" s/GB", ", tunnel")]
    columns = [
        Column("Cell", "code"),
        Column("Way"),
        *(Column(title, "number") for title in [*heads, "Overhead", "Predicted", "Explains %"]),
    ]
    made = [
        [
            name,
            way(row),
            *(_cpu(row, host, kind) for host in HOSTS for kind in ("cpu", "tunnel_cpu")),
            pretty.fixed(number(row, COUNTED), 3),
            pretty.fixed(number(row, PREDICTED), 3),
            pretty.percent(number(row, "gap_explained_by_overhead"), 0),
        ]
        for name, row in zip(facts.names(rows), rows, strict=True)
    ]
    caption = (
        "CPU seconds per 10⁹ bytes of payload; bytes on the link per byte of payload; and how much of the distance "
        "from the bare link these bytes explain"
    )
    return table(caption, columns, made, "summary.csv")


def limits(facts: Facts) -> Section:
    """Return what limited each cell, with the sentence that it rests on."""
    rows = [row for row in facts.summary if text(row, "limit")]
    title = "What limited each cell"
    if not rows:
        return Section("limits", title, [Text("The hosts were not sampled, so no row says what limited it.")])
    counts = Counter(text(row, "limit") for row in rows)
    words = [f"{kind} ({counts[kind]}): {said}" for kind, said in LIMITS.items() if counts[kind]]
    columns = [Column("Cell", "code"), Column("Way"), Column("Limit"), Column("Repeats", "number")]
    made = [
        [
            name,
            way(row),
            text(row, "limit"),
            f"{pretty.fixed(number(row, 'limit_n'), 0)} of {pretty.fixed(number(row, 'n'), 0)}",
            evidence(facts, row),
        ]
        for name, row in zip(facts.names(rows), rows, strict=True)
    ]
    shown = table(
        "The limit of most repeats, and the evidence of the one whose goodput is nearest to the median",
        [*columns, Column("Evidence", "long")],
        made,
        "summary.csv",
    )
    intro = Text("By the kernel's own counters, and in this order of rules. In brackets: how many rows of the table.")
    return Section("limits", title, [intro, Bullets(words), shown])


def evidence(facts: Facts, row: Row) -> str:
    """Return the evidence of the repeat with the row's limit whose goodput is nearest to the median."""
    middle = number(row, "goodput_median_bit_s") or 0.0
    same = [one for one in facts.of(row) if text(one, "limit") == text(row, "limit")]
    nearest = min(same, key=lambda one: abs((number(one, "goodput_bit_s") or 0.0) - middle), default=None)
    return text(nearest, "limit_evidence") if nearest else ""
