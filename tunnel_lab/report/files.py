"""Sections on what exactly was run: the configuration of every variant as rendered, and which are insecure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tunnel_lab.errors import LabError
from tunnel_lab.plan import Cell
from tunnel_lab.records import Record, Run, raw_path
from tunnel_lab.report.blocks import Block, Column, Folded, Listing, Section, Text, table
from tunnel_lab.report.facts import Facts
from tunnel_lab.tables import canonical

MOST_VARIANTS = 60
TRIES = 3
"""Records of a variant that are tried before it is said that none can be read."""
WITH_FILES = 3
"""The first schema version whose records hold the files."""


@dataclass(frozen=True)
class Variant:
    """A variant as one or several runs had it."""

    cell: Cell
    """One of its cells."""
    run_dir: Path
    run: Run

    @property
    def name(self) -> str:
        """What it is called: with what was overridden."""
        return f"{self.cell.tunnel}.{self.cell.variant} {canonical(self.cell.override)}".strip()


def variants(facts: Facts) -> list[Variant]:
    """Return every variant of the runs once, or as often as it had other settings."""
    found: dict[tuple[str, str], Variant] = {}
    for run_dir, run in facts.inputs.stored:
        for cell in run.plan.cells.values():
            variant = Variant(cell, run_dir, run)
            found.setdefault((variant.name, canonical(cell.tunnel_settings)), variant)
    return sorted(found.values(), key=lambda each: each.name)


def configuration(facts: Facts) -> Section:
    """Return the files of every variant as they were on the hosts; one record is read for each."""
    found = variants(facts)
    blocks: list[Block] = [
        Text("As they were on the hosts, from one record of each variant. They name key files and hold no keys.")
    ]
    blocks += [Folded(each.name, _of(each)) for each in found[:MOST_VARIANTS]]
    if len(found) > MOST_VARIANTS:
        more = len(found) - MOST_VARIANTS
        blocks.append(Text(f"{more} more variants are not shown; the records below raw/ have their files.", note=True))
    return Section("configuration", "Exact configurations", blocks)


def _of(variant: Variant) -> list[Block]:
    settings = canonical(variant.cell.tunnel_settings)
    shown: list[Block] = (
        [Listing("Settings, as the lab resolved them", settings.replace(" ", "\n"))] if settings else []
    )
    record = next(_records(variant), None)
    if record is None:
        return [*shown, Text("No record of it can be read.")]
    files = _files(record)
    if files:
        return [*shown, *(Listing(title, text) for title, text in files)]
    if record.schema_version < WITH_FILES:
        return [*shown, Text(f"Its files are not in this record, which has schema version {record.schema_version}.")]
    if not any(variant.cell.configuration.values()):
        return [*shown, Text("It has no configuration files.")]
    return [*shown, Text("Its files are not in this record: the repeat ended before they were read.")]


def _files(record: Record) -> list[tuple[str, str]]:
    """Return (where, text) of each file; one that is the same on both hosts once."""
    places: dict[tuple[str, str], list[str]] = {}
    for host, look in record.before.items():
        for path, text in look.files.items():
            places.setdefault((path, text), []).append(host)
    return [(f"{path} on the {' and the '.join(hosts)}", text) for (path, text), hosts in places.items()]


def _records(variant: Variant) -> Iterator[Record]:
    """Yield the first few records of a variant that can be read, those with files first among them."""
    mine = {
        cell.id
        for cell in variant.run.plan.cells.values()
        if (cell.tunnel, cell.variant) == (variant.cell.tunnel, variant.cell.variant)
    }
    found = []
    for step in [step for step in variant.run.plan.steps if step.cell in mine][:TRIES]:
        try:
            found.append(Record.read(raw_path(variant.run_dir, step)))
        except LabError:
            continue
        if any(look.files for look in found[-1].before.values()):
            break
    yield from sorted(found, key=lambda record: not any(look.files for look in record.before.values()))


def insecure(facts: Facts) -> Section | None:
    """Return the variants that nobody should use outside a lab, and why; None where there is none."""
    found = [each for each in variants(facts) if each.cell.insecure]
    if not found:
        return None
    rows = [[each.name, each.cell.insecure or ""] for each in found]
    shown = table("Not for use", [Column("Variant", "code"), Column("Why", "long")], rows, "runs.csv")
    said = Text("These are here because something was published about them. Use none of them outside a lab.")
    return Section("insecure", "Insecure variants", [said, shown])
