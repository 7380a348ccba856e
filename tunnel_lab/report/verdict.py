"""The first thing that a report tells: what was published, what was measured, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tunnel_lab import stats
from tunnel_lab.report import pretty
from tunnel_lab.report.facts import RATE, Facts
from tunnel_lab.report.rows import Row, groups, link_name, number, slug, text, way
from tunnel_lab.tables import LINK

SIGNS = {
    "reproduced": "✓",
    "contradicted": "✗",
    "inconclusive": "?",
    "not comparable": "≠",
    "not measured": pretty.NOTHING,
}
"""A sign beside each verdict's word and colour."""
TIMES = "\N{MULTIPLICATION SIGN}"
PURE = ("ratio", "order")
"""Kinds of claims whose measure is one cell's figure divided by another's."""
MOST_VERDICTS = 200
LONG = 80
"""Characters of a list of cells that fit below a figure."""


@dataclass(frozen=True)
class Verdict:
    """A row of the table of verdicts, all texts."""

    printed: str
    says: str
    place: str
    """Where in the source it stands."""
    band: str
    """What of the measure the print allows, and with the tolerance."""
    measured: str
    interval: str
    n: str
    cell: str
    """'' where there are too many."""
    cells: str
    """All of them, '' where `cell` says it."""
    verdict: str
    sign: str
    style: str
    """Of the verdict, a class of the style sheet."""
    provisional: str
    """Why the verdict is provisional, '' when it is not."""
    reason: str
    best: str
    best_cell: str


@dataclass(frozen=True)
class Published:
    """The verdicts on one source over one link."""

    title: str
    when: str
    link: str
    """Which link, '' where there is only one."""
    rows: list[Verdict]
    left_out: str
    unmeasured: list[str]
    """Claims that no cell of these runs measures, each with the reason."""
    caveats: list[str]


def published(facts: Facts) -> list[Published]:
    """Return the verdicts by source and link, those on which there is one first."""
    found = []
    links = set(groups(facts.claims, LINK))
    for (*_, name), rows in groups(facts.claims, [*LINK, "source"]).items():
        source = facts.inputs.sources.get(name)
        judged = [row for row in rows if text(row, "verdict") != "not measured"]
        more = len(judged) - MOST_VERDICTS
        found.append(
            Published(
                title=source.title if source else str(name),
                when=source.published if source else "",
                link=link_name(rows[0]) if len(links) > 1 else "",
                rows=[_verdict(row) for row in judged[:MOST_VERDICTS]],
                left_out=f"{more} more are in claims.csv." if more > 0 else "",
                unmeasured=_unmeasured(rows),
                caveats=list(source.caveats) if source else [],
            )
        )
    return sorted(found, key=lambda each: not each.rows)


def _unmeasured(rows: Iterable[Row]) -> list[str]:
    left = [row for row in rows if text(row, "verdict") == "not measured"]
    by_reason = groups(left, ["reason"])
    return [
        f"{pretty.capital(text(same[0], 'reason'))}: {'; '.join(map(_named, same))}"
        for same in list(by_reason.values())[:MOST_VERDICTS]
    ]


def _named(row: Row) -> str:
    printed = text(row, "printed")
    return f"{text(row, 'says')} ({printed})" if printed else text(row, "says")


def _verdict(row: Row) -> Verdict:
    metric = "ratio" if text(row, "kind") in PURE else text(row, "metric")
    verdict = text(row, "verdict")
    n, failed = number(row, "n") or 0.0, number(row, "n_failed") or 0.0
    cells = text(row, "cell")
    of_pair = "closest pair, " if text(row, "kind") == "order" and n else ""
    return Verdict(
        printed=text(row, "printed"),
        says=text(row, "says"),
        place=text(row, "place"),
        band=_band(row, metric),
        measured=_times(pretty.figure(number(row, "measured"), metric), metric),
        interval=of_pair + pretty.span(number(row, "measured_low"), number(row, "measured_high"), metric),
        n=f"n = {n:.0f}" + (f", {failed:.0f} failed" if failed else "") + f" · {way(row)}",
        cell=cells if len(cells) <= LONG else "",
        cells=cells if len(cells) > LONG else "",
        verdict=verdict,
        sign=SIGNS.get(verdict, ""),
        style=slug(verdict),
        provisional=_provisional(row),
        reason=pretty.capital(text(row, "reason")),
        best=pretty.figure(number(row, "best_measured"), RATE) if text(row, "best_cell") else "",
        best_cell=text(row, "best_cell"),
    )


def _times(shown: str, metric: str) -> str:
    return f"{shown}{pretty.BREAK}{TIMES}" if metric == "ratio" and shown != pretty.NOTHING else shown


def _band(row: Row, metric: str) -> str:
    low, high = number(row, "claimed_low"), number(row, "claimed_high")
    if low is None and high is None:
        return ""
    if low is None or high is None:
        word, end = ("at most", high) if low is None else ("at least", low)
        return f"{word} {pretty.figure(end, metric)}"
    printed = pretty.figure(low, metric) if low == high else pretty.span(low, high, metric)
    more = 1 + (number(row, "tolerance") or 0.0)
    if more == 1 or text(row, "kind") not in ("value", "ratio"):
        return printed
    return f"{printed}; with tolerance {pretty.span(low / more, high * more, metric)}"


def _provisional(row: Row) -> str:
    """Return why a verdict is provisional: with few repeats no interval of theirs covers what it should."""
    if row.get("provisional") is not True and str(row.get("provisional")) != "True":
        return ""
    n, coverage = number(row, "n") or 0.0, number(row, "coverage")
    said = f"{pretty.many(round(n), 'repeat')} of the {stats.FEWEST} that an interval needs"
    covered = f"; this one covers at most {coverage:.0%}" if coverage else "; there is no interval"
    return f"{said} to cover {stats.CONFIDENCE:.0%}{covered}"


def tally(facts: Facts) -> str:
    """Return how many published figures got which verdict, in one sentence."""
    counts = Counter(text(row, "verdict") for row in facts.claims)
    if not counts:
        return "No published figure speaks of what was measured here."
    total = sum(counts.values())
    parts = [f"{counts[verdict]} {verdict}" for verdict in SIGNS if counts[verdict]]
    return f"Of {pretty.many(total, 'published claim')}: {', '.join(parts)}."
