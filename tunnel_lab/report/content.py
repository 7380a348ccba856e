"""Everything that a report tells, in its order."""

from __future__ import annotations

from dataclasses import dataclass

from tunnel_lab.report import (
    commands,
    conditions,
    cost,
    files,
    measured,
    method,
    round_trips,
    series,
    verdict,
)
from tunnel_lab.report.blocks import Section
from tunnel_lab.report.facts import Facts
from tunnel_lab.report.verdict import Published

MOST_LINES = 12
"""Runs that the first lines name one by one."""


@dataclass(frozen=True)
class Content:
    """A report before it is HTML or Markdown."""

    title: str
    lines: list[str]
    """What each run was."""
    tally: str
    provisional: list[str]
    """Why verdicts are provisional, each reason once."""
    published: list[Published]
    sections: list[Section]


def build(facts: Facts) -> Content:
    """Return the content of a report."""
    stored = [run for _, run in facts.inputs.stored]
    lines = [f"{run.run_id}. {conditions.line(facts, run)}" for run in stored[:MOST_LINES]]
    if len(stored) > MOST_LINES:
        lines.append(f"And {len(stored) - MOST_LINES} more runs.")
    published = verdict.published(facts)
    sections = [
        measured.goodput(facts),
        cost.costs(facts),
        cost.limits(facts),
        series.section(facts),
        round_trips.section(facts),
        conditions.drift(facts),
        conditions.failed(facts),
        conditions.environment(facts),
        files.configuration(facts),
        files.insecure(facts),
        method.section(),
        commands.section(facts),
    ]
    reasons = dict.fromkeys(row.provisional for each in published for row in each.rows if row.provisional)
    return Content(
        title="Tunnel lab report" if len(stored) == 1 else f"Tunnel lab report on {len(stored)} runs",
        lines=lines,
        tally=verdict.tally(facts),
        provisional=list(reasons),
        published=published,
        sections=[section for section in sections if section is not None],
    )
