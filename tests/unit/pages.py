"""An HTML document taken apart: its elements, its tables, its text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "wbr", "br", "link", "img", "input", "hr"}


@dataclass
class Element:
    """An element with the text in it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """What a browser would find in a document."""

    source: str
    elements: list[Element] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    """Of each table, its rows of texts."""
    unclosed: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.unclosed.append(self.elements[-1])
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that has nothing in it."""
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        """Note that an element is complete."""
        if tag in VOID or not self.unclosed:
            return
        found = self.unclosed.pop()
        assert found.tag == tag, f"</{tag}> closes <{found.tag}> at {self.getpos()}"
        if tag in ("td", "th"):
            self.tables[-1][-1].append(" ".join(found.text.split()))

    def handle_data(self, data: str) -> None:
        """Note text, of all elements around it."""
        for each in self.unclosed:
            each.text += data

    def all(self, tag: str) -> list[Element]:
        """Return the elements of a kind."""
        return [each for each in self.elements if each.tag == tag]

    @property
    def text(self) -> str:
        """All that is there to be read, in one line."""
        shown = [each.text for each in self.elements if each.tag == "body"]
        return re.sub(r"\s+", " ", shown[0] if shown else "")

    def table(self, *heads: str) -> list[dict[str, str]]:
        """Return the rows of the first table that has these heads, by head; a row of one cell is '' of the last."""
        for found in self.tables:
            if found and set(heads) <= set(found[0]):
                rows: list[dict[str, str]] = []
                for row in found[1:]:
                    if len(row) == 1:
                        rows[-1][""] = row[0]
                    else:
                        rows.append(dict(zip(found[0], row, strict=True)))
                return rows
        raise AssertionError(f"no table has {heads}: {[found[0] for found in self.tables]}")
