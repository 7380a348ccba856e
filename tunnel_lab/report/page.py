"""From content to files: the two templates, and what escapes a text in each."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from tunnel_lab.report import content
from tunnel_lab.report.blocks import Table
from tunnel_lab.report.facts import Facts
from tunnel_lab.report.inputs import Inputs
from tunnel_lab.tables import replacing

HERE = Path(__file__).parent
MARKED = re.compile(r"([\\`*|\[\]])")
"""What Markdown would take for its own; `<`, `>` and `&` become entities."""


def write(inputs: Inputs, directory: Path) -> list[Path]:
    """Write both files; return their paths."""
    made = content.build(Facts(inputs))
    written = []
    for name, text in (("report.html", html(made)), ("report.md", markdown(made))):
        path = directory / name
        with replacing(path) as draft:
            draft.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def html(made: content.Content) -> str:
    """Return the report as one HTML document that needs nothing else."""
    environment = _environment(autoescape=True)
    environment.filters["breakable"] = breakable
    style = Markup((HERE / "style.css").read_text(encoding="utf-8"))
    return environment.get_template("report.html.j2").render(made=made, style=style) + "\n"


def markdown(made: content.Content) -> str:
    """Return the report as Markdown, tables in the place of figures."""
    environment = _environment(autoescape=False)
    filters: dict[str, Callable[..., str]] = {"md": plain, "code": code, "fenced": fenced, "rows": md_table}
    environment.filters |= filters
    text = environment.get_template("report.md.j2").render(made=made)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _environment(autoescape: bool) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=autoescape,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def breakable(text: str) -> Markup:
    """Return a text for HTML that a narrow column may break after a dot, an underscore or a slash."""
    return Markup(re.sub(r"([._/])", r"\1<wbr>", str(escape(text))))


def plain(text: Any) -> str:
    """Return a text in one line of Markdown that means nothing but itself."""
    one_line = " ".join(str(text).split())
    shown = one_line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return MARKED.sub(r"\\\1", shown)


def code(text: Any) -> str:
    """Return a text in one line as code that may stand in a table; '' stays empty."""
    one_line = " ".join(str(text).split()).replace("|", "\\|")
    if not one_line:
        return ""
    ticks = "`" * (_longest(one_line) + 1)
    room = " " if "`" in one_line else ""
    return f"{ticks}{room}{one_line}{room}{ticks}"


def fenced(text: str) -> str:
    """Return a text of several lines between fences that are longer than any in it."""
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def _longest(text: str) -> int:
    return max(map(len, re.findall(r"`+", text)), default=0)


def md_table(table: Table) -> str:
    """Return a table in Markdown."""
    sorts = [column.sort for column in table.columns]
    lines = [
        [plain(column.title) for column in table.columns],
        ["---:" if sort == "number" else "---" for sort in sorts],
        *(
            [(code if sort == "code" else plain)(each) for sort, each in zip(sorts, row, strict=True)]
            for row in table.rows
        ),
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
