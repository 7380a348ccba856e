"""The section that shows one repeat over time."""

from __future__ import annotations

from statistics import median

from tunnel_lab import units
from tunnel_lab.parsing import Direction
from tunnel_lab.records import Record
from tunnel_lab.report import chosen, curves, pretty, timeline
from tunnel_lab.report.blocks import Column, Figures, Folded, Section, Table, Text
from tunnel_lab.report.curves import Panel
from tunnel_lab.report.facts import RATE, Facts
from tunnel_lab.report.rows import Row, number, sentence_way, text

TITLE = "One repeat over time"
CAPTION = (
    "Time 0 is when the first command began; before it the hosts are idle. A rate is that of the interval which ends "
    "at its time. In flight: sent and not yet acknowledged."
)

ANOTHER = "Another one is shown by ./collect.py report --series CELL:REPEAT."


def section(facts: Facts) -> Section:
    """Return the link, one socket and the CPU of one repeat over time, or why that is not shown."""
    found = chosen.record(facts)
    if found is None:
        return Section("series", TITLE, [Text("There is no good repeat whose record could be shown.")])
    record, row = found
    direction: Direction = "client_to_server" if text(row, "direction") == "client_to_server" else "server_to_client"
    shown = curves.panels(record, direction)
    name = f"{record.cell.id}, repeat {record.step.repeat}"
    if not shown:
        return Section("series", TITLE, [Text(f"{name}: its hosts were not sampled, so there is nothing to show.")])
    seconds = curves.seconds(record)
    says = _says(shown, name, seconds)
    rate = number(row, "rate_mbit")
    figure = timeline.draw(name, says, shown, None if rate is None else rate, CAPTION)
    table = Folded("The curves as a table", [_table(shown, seconds)])
    return Section("series", TITLE, [Text(_intro(record, row)), Figures([figure]), table, Text(ANOTHER, note=True)])


def _intro(record: Record, row: Row) -> str:
    goodput = pretty.figure(number(row, RATE), RATE)
    said = f"{record.cell.id}, repeat {record.step.repeat} of run {record.run_id}"
    measured = f": {sentence_way(row)}, {goodput}." if number(row, RATE) is not None else ": no figure."
    evidence = text(row, "limit_evidence")
    limited = f" {pretty.capital(evidence)}." if evidence else ""
    return f"{said}{measured}{limited}"


def _says(panels: list[Panel], name: str, seconds: float) -> str:
    parts = [
        f"{panel.title}: "
        + ", ".join(f"{curve.name} {_value(median(curve.during(seconds)), panel)}" for curve in panel.curves)
        for panel in panels
    ]
    return f"{name} over {units.digits(seconds)} s, medians. {'. '.join(parts)}."


def _value(value: float, panel: Panel) -> str:
    return pretty.size(value) if panel.metric.endswith("_bytes") else units.pretty(value, panel.metric)


def _table(panels: list[Panel], seconds: float) -> Table:
    rows = [
        [panel.title, curve.name, *(_value(of(curve.during(seconds)), panel) for of in (min, median, max))]
        for panel in panels
        for curve in panel.curves
    ]
    numbers = [Column(title, "number") for title in ("Least", "Median", "Most")]
    return Table("While the commands ran", [Column("What", "long"), Column("Curve"), *numbers], rows)
