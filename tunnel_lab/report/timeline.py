"""The drawing of one repeat over time."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from tunnel_lab.report import blocks
from tunnel_lab.report.curves import Panel
from tunnel_lab.report.figures import COLOURS, WIDTH, axes, canvas, drawing, finish, legend, mark
from tunnel_lab.report.figures import RIGHT as MARGIN

HEIGHT, ABOVE, BELOW = 104, 60, 24
"""Units of a panel, of what stands above it and below it."""
LEFT = 40
LOOKS: list[dict[str, Any]] = [
    {"color": COLOURS["accent"], "linestyle": "-", "linewidth": 1.4},
    {"color": COLOURS["tunnel-2"], "linestyle": "--", "linewidth": 1.4},
    {"color": COLOURS["muted"], "linestyle": ":", "linewidth": 1.4},
    {"color": COLOURS["ink"], "linestyle": "-.", "linewidth": 1.1},
]
"""Curves differ in colour and in how they are dashed."""
SCALES: dict[str, list[tuple[float, str]]] = {
    "_bit_s": [(1e6, "Mbit/s")],
    "_bytes": [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes")],
    "_cores": [(1, "cores")],
}


def draw(title: str, says: str, panels: list[Panel], rate_mbit: float | None, caption: str) -> blocks.Figure:
    """Draw the panels below each other over the same time; `rate_mbit` is the link's, for the panel of rates."""
    with drawing("series"):
        each = ABOVE + HEIGHT + BELOW
        drawn = canvas(each * len(panels) + 18)
        times = [at for panel in panels for curve in panel.curves for at, _ in curve.points]
        for place, panel in enumerate(panels):
            on = axes(drawn, place * each + ABOVE, HEIGHT, LEFT)
            on.set_xlim(min(times), max(times))
            _panel(on, panel, rate_mbit)
        on.set_xlabel("seconds")
        return finish(drawn, "series", title, says, caption)


def _panel(on: Axes, panel: Panel, rate_mbit: float | None) -> None:
    most = max(value for curve in panel.curves for _, value in curve.points)
    scale, unit = _scale(panel.metric, most)
    handles = []
    for curve, looks in zip(panel.curves, LOOKS, strict=False):
        on.plot([at for at, _ in curve.points], [value / scale for _, value in curve.points], **looks)
        handles.append(mark(curve.name, **looks))
    top = most / scale
    if panel.metric.endswith("_bit_s") and rate_mbit is not None:
        on.axhline(rate_mbit, color=COLOURS["ink"], linewidth=0.9, linestyle=(0, (6, 3)))
        handles.append(mark("the link's rate", linestyle=(0, (6, 3)), linewidth=0.9))
        top = max(top, rate_mbit)
    on.set_ylim(0, top * 1.08 or 1)
    on.grid(axis="y")
    on.axvline(0, color=COLOURS["rule"], linewidth=1.2, zorder=0.5)
    beginning = (MARGIN - LEFT) / (WIDTH - LEFT - MARGIN)
    columns = 2 if len(handles) > 3 else 3
    above = 30 if len(handles) <= columns else 46
    on.text(beginning, 1 + above / HEIGHT, f"{panel.title}, {unit}", transform=on.transAxes, parse_math=False)
    legend(on, handles, columns)


def _scale(metric: str, most: float) -> tuple[float, str]:
    scales = next(found for suffix, found in SCALES.items() if metric.endswith(suffix))
    return next((each for each in scales if most >= each[0]), scales[-1])
