"""Sections on the circumstances: the bare link's drift, repeats that do not count, hosts, link, and what differs."""

from __future__ import annotations

from typing import Any

from tunnel_lab.circumstances import differences
from tunnel_lab.records import Run
from tunnel_lab.report import pretty
from tunnel_lab.report.blocks import MOST_ROWS, Block, Column, Folded, Listing, Section, Table, Text, table
from tunnel_lab.report.facts import RATE, Facts
from tunnel_lab.report.rows import Row, cell, groups, number, rows, text
from tunnel_lab.show import ARROWS

HOSTS = ("server", "client", "controller")
ENDS = ["run_id", "order", "status", "direction", RATE]
FAILED = ["run_id", "order", "repeat", "tunnel", "variant", "workload", "status", "reason"]


def drift(facts: Facts) -> Section:
    """Return how the bare link changed between the first and the last measurement of each run."""
    numbers = [Column(title, "number") for title in ("First, Mbit/s", "Last, Mbit/s", "Change")]
    made = [row for _, run in facts.inputs.stored for row in _drift(facts, run)]
    said = Text("The link without a tunnel is measured before and after everything else. Both count as its repeats.")
    if not made:
        return Section("drift", "Drift of the bare link", [said, Text("No run has a good figure at both ends.")])
    shown = table(
        "The bare link, first and last repeat of each run",
        [Column("Way"), *numbers, Column("Run", "code")],
        made,
        "runs.csv",
    )
    return Section("drift", "Drift of the bare link", [said, shown])


def _drift(facts: Facts, run: Run) -> list[list[str]]:
    orders = [step.order for step in run.plan.steps]
    runs = facts.inputs.runs
    ends = rows(runs.loc[(runs["run_id"] == run.run_id) & runs["order"].isin([min(orders), max(orders)]), ENDS])
    good = {(row["order"], row["direction"]): row[RATE] for row in ends if row["status"] == "ok"}
    found = []
    for direction, arrow in ARROWS.items():
        first, last = (good.get((order, direction)) for order in (min(orders), max(orders)))
        if first and last:
            change = round((last / first - 1) * 100, 1) or 0.0  # no -0.0
            change_said = f"{change:+.1f}{pretty.BREAK}%"
            found.append([arrow, pretty.mbit(first), pretty.mbit(last), change_said, run.run_id])
    return found


def failed(facts: Facts) -> Section:
    """Return every planned repeat without a good record, those of one cell and reason together."""
    runs = facts.inputs.runs
    planned = len(runs.drop_duplicates(["run_id", "order"]))
    bad = rows(runs.loc[runs["status"] != "ok", FAILED].drop_duplicates(["run_id", "order"]))
    title = "Failed and missing repeats"
    if not bad:
        said = f"None: each of the {planned} planned repeats has a good record."
        return Section("failed", title, [Text(said)])
    said = f"{len(bad)} of {planned} planned repeats have no good record. They are counted, and nothing was removed."
    same = groups(bad, ["run_id", "tunnel", "variant", "workload", "status", "reason"])
    made = [
        [
            cell(members[0]),
            pretty.listed([str(row["repeat"]) for row in members]),
            text(members[0], "status"),
            text(members[0], "reason"),
            text(members[0], "run_id"),
        ]
        for members in same.values()
    ]
    columns = [Column("Cell", "code"), Column("Repeats", "number"), Column("Status"), Column("Reason", "long")]
    shown = table("Repeats that do not count", [*columns, Column("Run", "code")], made, "runs.csv")
    return Section("failed", title, [Text(said), shown])


def environment(facts: Facts) -> Section:
    """Return link and hosts of each run as set and as found, and in what the runs differ."""
    stored = [run for _, run in facts.inputs.stored]
    blocks: list[Block] = [_link(stored)]
    if len(stored) > 1:
        blocks += _differences(stored)
    for run in stored[:1] if len(stored) > 1 else stored:
        blocks.append(_hosts(run))
        blocks += _network(run)
    return Section("environment", "Environment", blocks)


def _link(stored: list[Run]) -> Table:
    titles = ("Round trip set, ms", "measured", "Rate set, Mbit/s", "bare TCP measured", "Queue, bytes", "Loss, %")
    made = []
    for run in stored:
        setting: dict[str, Any] = run.link.setting.resolved() if run.link.setting else {}
        made.append(
            [
                run.link.emulator,
                _short(setting.get("rtt_ms")),
                pretty.fixed(run.link.measured_rtt_ms, 2),
                _short(setting.get("rate_mbit")),
                pretty.mbit(run.link.measured_goodput_bit_s),
                _short(setting.get("queue_bytes")),
                _short(setting.get("loss_pct")),
                run.run_id,
            ]
        )
    columns = [Column("Emulator"), *(Column(title, "number") for title in titles), Column("Run", "code")]
    caption = "The link as it was set, and as it was measured before the run"
    return table(caption, columns, made, "run.json of each run")


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.12g}"


def _differences(stored: list[Run]) -> list[Block]:
    base, *others = stored
    made = [
        [found.what, found.base, found.other, other.run_id] for other in others for found in differences(base, other)
    ]
    if not made:
        return [Text(f"The circumstances of the {len(stored)} runs are the same.")]
    heads = ["What", f"In {base.run_id}", "In the other", "The other"]
    columns = [Column(heads[0]), Column(heads[1], "long"), Column(heads[2], "long"), Column(heads[3], "code")]
    return [table("In what the runs differ from the first", columns, made, "run.json of each run")]


def _hosts(run: Run) -> Table:
    """Return what each host was; what several have in common is told once."""
    facts = {host: _flat(run.environment.get(host, {})) for host in HOSTS}
    names = dict.fromkeys(name for host in HOSTS for name in facts[host])
    made = []
    for name in names:
        told: dict[str, list[str]] = {}
        for host in HOSTS:
            if facts[host].get(name):
                told.setdefault(facts[host][name], []).append(host)
        made += [[name, value, ", ".join(hosts)] for value, hosts in told.items()]
    columns = [Column("What", "wrap"), Column("Is", "wrap"), Column("Where")]
    return table(f"Hosts of {run.run_id}", columns, made, "run.json")


def _flat(environment: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in environment.items():
        if name in ("packages", "sysctls") and isinstance(value, dict):
            found |= {key: _plain(each) for key, each in value.items()}
        elif not isinstance(value, dict):
            found[name] = _plain(value)
    return found


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else " ".join(str(value).split())


def _network(run: Run) -> list[Block]:
    """Return what a host said of its addresses, qdiscs and offloads, verbatim."""
    listings: list[Block] = [
        Listing(f"{host}: {name}", said)
        for host in HOSTS
        for name, said in sorted(run.environment.get(host, {}).get("network", {}).items())
        if isinstance(said, str)
    ]
    return [Folded("Addresses, queues and offloads of both hosts", listings[:MOST_ROWS])] if listings else []


def line(facts: Facts, run: Run) -> str:
    """Return in one line what a run was."""
    commit, _, state = str(run.environment.get("controller", {}).get("git_commit") or "unknown").partition("-")
    dirty = f" ({state})" if state else ""
    runs = facts.inputs.runs
    cells, steps = len(run.plan.cells), runs.loc[runs["run_id"] == run.run_id, "order"].nunique()
    sampled = "" if any(step.sampled for step in run.plan.steps) else ", not sampled"
    return (
        f"Lab {run.lab} (provider {run.provider}), profile {run.plan.profile}: {pretty.many(cells, 'cell')}, "
        f"{pretty.many(steps, 'measurement')}{sampled}. {_link_words(run)}. "
        f"Started {pretty.moment(run.started_at)}, commit {commit[:7]}{dirty}."
    )


def _link_words(run: Run) -> str:
    if run.link.setting is None:
        return "A real network, nothing emulated"
    setting: Row = run.link.setting.resolved()
    space = pretty.BREAK
    rtt, rate = number(setting, "rtt_ms") or 0, number(setting, "rate_mbit") or 0
    said = f"Link by {run.link.emulator}: {rtt:g}{space}ms round trip, {rate:g}{space}Mbit/s"
    loss = number(setting, "loss_pct")
    return said + (f", {loss:g} % loss" if loss else "")
