"""Figures as SVG inside a page: text stays text, colours are the page's own, and the same data give the same bytes.

They are drawn WIDTH units wide, which a phone shows at about their size. Colours are drawn as sentinels and become CSS
variables, so that a figure follows the page into dark mode and onto paper.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from tunnel_lab.report import blocks

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # its font cache is nobody's concern here

WIDTH = 420
LEFT, RIGHT, VALUES = 8, 8, 96
"""Margins in units: of the drawing, and of axes whose rows have a value beside them."""
NAMES = ["ink", "muted", "rule", "band", "accent", *(f"tunnel-{number}" for number in range(6))]
COLOURS = {name: f"#01{number:02x}fe" for number, name in enumerate(NAMES)}
"""{CSS variable: sentinel that stands for it while matplotlib draws}"""
SMALL, NORMAL = 11, 12
LONGEST = 44
"""Characters of a label that fit beside the figure's value."""
STYLE: Any = {
    "svg.fonttype": "none",
    "font.size": NORMAL,
    "text.color": COLOURS["ink"],
    "axes.edgecolor": COLOURS["rule"],
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "axes.labelcolor": COLOURS["muted"],
    "axes.labelsize": SMALL,
    "axes.linewidth": 0.8,
    "axes.unicode_minus": False,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "grid.color": COLOURS["rule"],
    "grid.linewidth": 0.6,
    "xtick.color": COLOURS["rule"],
    "xtick.labelcolor": COLOURS["muted"],
    "xtick.labelsize": SMALL,
    "xtick.major.size": 3,
    "ytick.color": COLOURS["rule"],
    "ytick.labelcolor": COLOURS["muted"],
    "ytick.labelsize": SMALL,
    "ytick.major.size": 0,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "lines.solid_capstyle": "butt",
}


@contextmanager
def drawing(name: str) -> Iterator[None]:
    """Draw a figure in here; `name` sets its ids apart from those of the page's other figures."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        yield


def canvas(height: float) -> Canvas:
    """Return an empty drawing, WIDTH units wide."""
    return Canvas(figsize=(WIDTH / 72, height / 72), dpi=72)


def axes(drawn: Canvas, top: float, height: float, left: float = LEFT, right: float = RIGHT) -> Axes:
    """Return axes `height` units high that begin `top` units below the upper edge."""
    whole = drawn.get_size_inches()[1] * 72
    place = (left / WIDTH, 1 - (top + height) / whole, (WIDTH - left - right) / WIDTH, height / whole)
    made = drawn.add_axes(place)
    made.grid(axis="x")
    return made


def row_axes(n: int, per_row: float, top: float, left: float = LEFT) -> tuple[Canvas, Axes]:
    """Return a drawing with a band of `per_row` units for each of `n` rows, the first on top; y counts the rows."""
    drawn = canvas(top + n * per_row + 40)
    made = axes(drawn, top, n * per_row, left, VALUES)
    made.set_ylim(n, 0)
    made.set_yticks([])
    across = made.get_yaxis_transform()
    made.hlines(range(1, n), *_edges(left), transform=across, color=COLOURS["rule"], linewidth=0.5, clip_on=False)
    return drawn, made


def _edges(left: float) -> tuple[float, float]:
    """Return where the drawing's own margins are, counted in widths of axes that leave room for values."""
    width = WIDTH - left - VALUES
    return (LEFT - left) / width, 1 + (VALUES - RIGHT) / width


def label_row(on: Axes, at: float, label: str, value: str, left: float = LEFT) -> None:
    """Write what a row is called at the left, and its value at the right, at height `at`."""
    across = on.get_yaxis_transform()
    begin, end = _edges(left)
    shown = label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"
    on.text(begin, at, shown, transform=across, va="center", parse_math=False)
    on.text(end, at, value, transform=across, va="center", ha="right", parse_math=False, color=COLOURS["muted"])


def legend(on: Axes, handles: Sequence[Artist], columns: int = 3) -> None:
    """Put a legend above the axes, row by row."""
    across = [handles[place] for start in range(columns) for place in range(start, len(handles), columns)]
    made = on.legend(
        handles=across,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        borderpad=0.2,
        borderaxespad=0.3,
        handlelength=1.4,
        handletextpad=0.5,
        columnspacing=1.2,
    )
    for said in made.get_texts():
        said.set_color(COLOURS["muted"])
        said.set_parse_math(False)


def mark(label: str, **looks: Any) -> Line2D:
    """Return an entry of a legend."""
    return Line2D([], [], label=label, **{"color": COLOURS["ink"], "linestyle": "none", **looks})


def shade(place: int) -> str:
    """Return one of the colours that tell tunnels apart; the first is that of no tunnel, and the others come again."""
    names = [name for name in NAMES if name.startswith("tunnel-")]
    return COLOURS[names[0] if place == 0 else names[1 + (place - 1) % (len(names) - 1)]]


def finish(drawn: Canvas, name: str, title: str, says: str, caption: str = "") -> blocks.Figure:
    """Return a drawing as a figure of the report; `says` is its text alternative."""
    buffer = io.StringIO()
    drawn.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return blocks.Figure(title=title, says=says, svg=inline(buffer.getvalue(), name, title, says), caption=caption)


def inline(svg: str, name: str, title: str, says: str) -> str:
    """Return matplotlib's SVG as an element of a page."""
    box = re.search(r'viewBox="([^"]+)"', svg)
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", svg, flags=re.DOTALL)
    body = svg[svg.index(">", svg.index("<svg")) + 1 :].replace("xlink:href", "href")
    body = re.sub(r'<g id="[^"]*"', "<g", body)
    body = re.sub(r'font: (\d{3} )?([\d.]+)px [^;"]*', r"font: \1calc(\2px * var(--text)) var(--sans)", body)
    for variable, sentinel in COLOURS.items():
        body = body.replace(sentinel, f"var(--{variable})")
    words = escape(says, quote=True)
    body = re.sub(r"[ ]*\n[ ]*", "\n", body).strip()
    head = f'<svg role="img" aria-label="{words}" viewBox="{box[1] if box else ""}" data-figure="{escape(name)}">'
    return f"{head}<title>{escape(title)}</title>{body}"
