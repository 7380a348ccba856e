"""The drawings of figures that are measured once for each cell: goodput, CPU, bytes on the link, round trips."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from tunnel_lab.report import blocks
from tunnel_lab.report.figures import (
    COLOURS,
    SMALL,
    drawing,
    finish,
    label_row,
    legend,
    mark,
    row_axes,
)

PER_ROW, TALL = 36, 48
"""Units for a row with one line of marks, and with two."""
LETTERS = 34
"""The left margin where each line of a row has a word before it."""
LINES = (0.54, 0.8)
"""Where in a row its two lines are."""
PALE = 0.3
Range = tuple[float, float]
Side = tuple[float | None, float | None]


@dataclass(frozen=True)
class Dots:
    """A row of the figure of goodput, all in Mbit/s."""

    label: str
    shade: str
    value: str
    repeats: list[float]
    median: float
    interval: Range | None = None
    ceiling: float | None = None
    """The most that the window which limited it lets pass."""
    band: Range | None = None
    """What a published figure allows."""


@dataclass(frozen=True)
class Bars:
    """A row of the figure of CPU cost: CPU seconds per 10^9 bytes, of the host, and of them of the tunnel."""

    label: str
    shade: str
    value: str
    server: Side
    client: Side


@dataclass(frozen=True)
class Pair:
    """A row of the figure of overhead: bytes on the link per byte of payload, of each cell of a variant."""

    label: str
    shade: str
    value: str
    counted: list[float]
    predicted: list[float]


@dataclass(frozen=True)
class Trips:
    """A row of the figure of round trips: median, 95th and 99th percentile in ms, each None where it is not known."""

    label: str
    shade: str
    value: str
    idle: list[float | None] = field(default_factory=list)
    loaded: list[float | None] = field(default_factory=list)


def _axis(on: Axes, least: float, most: float, label: str) -> None:
    on.set_xlim(least, most)
    on.set_xlabel(label)


def _line(on: Axes, at: float, looks: str = "--") -> None:
    on.axvline(at, color=COLOURS["ink"], linewidth=0.9, linestyle=looks, zorder=1)


def goodput(name: str, title: str, says: str, rows: list[Dots], limit: float | None) -> blocks.Figure:
    """Draw repeats as rings, the median as a bar, its interval as a line; the link's limit and windows' ceilings."""
    with drawing(name):
        drawn, on = row_axes(len(rows), PER_ROW, 40)
        for place, row in enumerate(rows):
            label_row(on, place + 0.3, row.label, row.value)
            _dots(on, place + 0.7, row)
        if limit is not None:
            _line(on, limit)
        ends = [limit or 0, *(max([*row.repeats, row.ceiling or 0, *(row.band or ())]) for row in rows)]
        _axis(on, 0, max(ends) * 1.04 or 1, "goodput, Mbit/s")
        legend(on, _goodput_legend(rows, limit))
        return finish(drawn, name, title, says)


def _dots(on: Axes, at: float, row: Dots) -> None:
    shade = row.shade
    if row.band:
        on.barh(at, row.band[1] - row.band[0], 0.36, row.band[0], color=COLOURS["band"], zorder=0.5)
    if row.interval:
        on.hlines(at, *row.interval, color=shade, linewidth=2.2, alpha=0.45, zorder=2)
    rings: dict[str, Any] = {"facecolors": "none", "edgecolors": shade, "linewidths": 1.1, "zorder": 3}
    on.scatter(row.repeats, [at] * len(row.repeats), s=26, **rings)
    on.vlines(row.median, at - 0.2, at + 0.2, color=shade, linewidth=2.4, zorder=4)
    if row.ceiling is not None:
        on.vlines(row.ceiling, at - 0.26, at + 0.26, color=COLOURS["ink"], linewidth=1.3, linestyle=":", zorder=3)


def _goodput_legend(rows: list[Dots], limit: float | None) -> list[Artist]:
    found: list[Artist] = [
        mark("one repeat", marker="o", markerfacecolor="none", markersize=5),
        mark("median", marker="|", markersize=10, markeredgewidth=2.2),
        mark("its interval", linestyle="-", linewidth=2.2, alpha=0.45),
    ]
    if limit is not None:
        found.append(mark("the link's limit", linestyle="--", linewidth=0.9))
    if any(row.ceiling is not None for row in rows):
        found.append(mark("a window's ceiling", linestyle=":", linewidth=1.3))
    if any(row.band for row in rows):
        found.append(Patch(facecolor=COLOURS["band"], label="published"))
    return found


def cost(name: str, title: str, says: str, rows: list[Bars]) -> blocks.Figure:
    """Draw two bars for each row, server and client; the tunnel's own part is solid."""
    with drawing(name):
        drawn, on = row_axes(len(rows), TALL, 24, LETTERS)
        for place, row in enumerate(rows):
            label_row(on, place + 0.22, row.label, row.value, LETTERS)
            for line, word, side in zip(LINES, ("S", "C"), (row.server, row.client), strict=True):
                _word(on, place + line, word)
                _bar(on, place + line, side, row.shade)
        most = max((total or 0 for row in rows for total, _ in (row.server, row.client)), default=0)
        _axis(on, 0, most * 1.04 or 1, "CPU seconds of the host per 10⁹ bytes of payload")
        own = Patch(facecolor=COLOURS["ink"], label="the tunnel's processes")
        legend(on, [own, Patch(facecolor=COLOURS["ink"], alpha=PALE, label="all else on the host")])
        return finish(drawn, name, title, says)


def _word(on: Axes, at: float, word: str) -> None:
    """Write what a line of a row is, to the left of it."""
    looks: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": SMALL, "color": COLOURS["muted"]}
    on.text(-0.012, at, word, transform=on.get_yaxis_transform(), **looks)


def _bar(on: Axes, at: float, side: Side, shade: str) -> None:
    total, own = side
    if total is not None:
        on.barh(at, total, 0.2, color=shade, alpha=PALE)
    if own is not None:
        on.barh(at, own, 0.2, color=shade)


def overhead(name: str, title: str, says: str, rows: list[Pair], bare: float | None) -> blocks.Figure:
    """Draw what was counted as dots, what packet formats predict as a diamond around them."""
    with drawing(name):
        drawn, on = row_axes(len(rows), PER_ROW, 24)
        for place, row in enumerate(rows):
            label_row(on, place + 0.3, row.label, row.value)
            _pairs(on, place + 0.7, row)
        ends = [each for row in rows for each in (*row.counted, *row.predicted)] + ([] if bare is None else [bare])
        room = (max(ends) - min(ends)) * 0.06 or 0.01
        _axis(on, min(ends) - room, max(ends) + room, "bytes on the link per byte of payload")
        marks = [mark("counted", marker="o", markersize=5)]
        marks.append(mark("predicted", marker="D", markersize=7, markerfacecolor="none", markeredgewidth=0.9))
        if bare is not None:
            _line(on, bare)
            marks.append(mark("no tunnel, predicted", linestyle="--", linewidth=0.9))
        legend(on, marks)
        return finish(drawn, name, title, says)


def _pairs(on: Axes, at: float, row: Pair) -> None:
    on.plot(row.counted, [at] * len(row.counted), "o", color=row.shade, markersize=4.5, alpha=0.7, zorder=3)
    looks: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": COLOURS["ink"], "markersize": 9}
    on.plot(row.predicted, [at] * len(row.predicted), "D", **looks, markeredgewidth=0.9, zorder=4)


def round_trips(name: str, title: str, says: str, rows: list[Trips], rtt: float | None) -> blocks.Figure:
    """Draw the median as a dot, a line from it to the 99th percentile, and a tick at the 95th."""
    with drawing(name):
        drawn, on = row_axes(len(rows), TALL, 40, LETTERS)
        for place, row in enumerate(rows):
            label_row(on, place + 0.22, row.label, row.value, LETTERS)
            for line, word, side in zip(LINES, ("idle", "load"), (row.idle, row.loaded), strict=True):
                _word(on, place + line, word)
                _trips(on, place + line, side, row.shade)
        ends = [rtt or 0, *(each or 0 for row in rows for each in [*row.idle, *row.loaded])]
        _axis(on, 0, max(ends) * 1.04 or 1, "round trip, ms")
        marks = [
            mark("median", marker="o", markersize=5),
            mark("95th percentile", marker="|", markersize=8, markeredgewidth=1.2),
            mark("up to the 99th", linestyle="-", linewidth=1.2),
        ]
        if rtt is not None:
            _line(on, rtt)
            marks.append(mark("the link's own", linestyle="--", linewidth=0.9))
        legend(on, marks)
        return finish(drawn, name, title, says)


def _trips(on: Axes, at: float, side: list[float | None], shade: str) -> None:
    middle, high, highest = (*side, None, None, None)[:3]
    if middle is None:
        return
    on.plot([middle], [at], "o", color=shade, markersize=5, zorder=3)
    if highest is not None:
        on.hlines(at, middle, highest, color=shade, linewidth=1.2, zorder=2)
    if high is not None:
        on.vlines(high, at - 0.08, at + 0.08, color=shade, linewidth=1.2, zorder=2)
