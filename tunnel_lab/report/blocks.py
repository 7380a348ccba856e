"""What a report is made of, before it is HTML or Markdown: sections of texts, tables, figures and listings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

MOST_ROWS = 200
"""A table of a report shows at most so many rows; the CSV files have them all."""


@dataclass(frozen=True)
class Text:
    """A paragraph; a note is set smaller."""

    kind: ClassVar[str] = "text"
    text: str
    note: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    kind: ClassVar[str] = "bullets"
    sentences: list[str]


@dataclass(frozen=True)
class Column:
    """The head of a table's column; `sort` is text, number, code, wrap (may be long), or long (sentences)."""

    title: str
    sort: str = "text"


@dataclass(frozen=True)
class Table:
    """A table of texts; `left_out` says what it does not show and where that is."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: list[Column]
    rows: list[list[str]]
    left_out: str = ""


@dataclass(frozen=True)
class Figure:
    """A drawing. `says` tells in words what it shows, with the main numbers."""

    title: str
    says: str
    svg: str
    """The <svg> element, with `says` in it."""
    caption: str = ""


@dataclass(frozen=True)
class Figures:
    """Drawings of the same kind, beside each other where there is room."""

    kind: ClassVar[str] = "figures"
    figures: list[Figure]


@dataclass(frozen=True)
class Listing:
    """Text that is shown as it is: a file, a command."""

    kind: ClassVar[str] = "listing"
    title: str
    text: str


@dataclass(frozen=True)
class Folded:
    """Blocks below a line that opens them."""

    kind: ClassVar[str] = "folded"
    title: str
    blocks: list[Block]


Block = Text | Bullets | Table | Figures | Listing | Folded


@dataclass(frozen=True)
class Section:
    """A part of the report with a heading."""

    id: str
    title: str
    blocks: list[Block] = field(default_factory=list)


def table(caption: str, columns: list[Column], rows: list[list[str]], where: str) -> Table:
    """Return a table of the first MOST_ROWS of `rows`; `where` is the file that has them all."""
    more = len(rows) - MOST_ROWS
    left_out = f"{more} more rows are not shown; {where} has them all." if more > 0 else ""
    return Table(caption, columns, rows[:MOST_ROWS], left_out)
