"""The commands that measure again: a whole run, and each cell alone."""

from __future__ import annotations

import json
import shlex
from typing import Any

from tunnel_lab.choices import Choices, Link
from tunnel_lab.records import Run
from tunnel_lab.report.blocks import Block, Column, Folded, Listing, Section, Text, table
from tunnel_lab.report.facts import Facts

PLAYBOOK = ".venv/bin/ansible-playbook lab.yml"
HOME = "inventories/local"
"""The inventory that is used when none is named."""
LOCAL: dict[str, Any] = {
    "lab_name": "local",
    "lab_provider": "local",
    "lab_sysctls": {
        "net.ipv4.tcp_congestion_control": "cubic",
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
        "net.ipv4.tcp_wmem": "4096 16384 4194304",
        "net.ipv4.tcp_no_metrics_save": 1,
        "net.ipv4.tcp_mtu_probing": 0,
    },
}
"""What HOME chooses, so that a command need not. (It is not read: the same records shall give the same report.)"""
STATED = ("lab_profile", "lab_select", "lab_link", "lab_rerun")
"""Variables with a rule of their own; all others are stated where they are not the default. What a rerun chose is in
its other variables."""
MOST_RUNS = 20


def section(facts: Facts) -> Section:
    """Return for each run the command of the whole, and one for each cell."""
    blocks: list[Block] = [
        Text(
            "Run them in a checkout of the commit that the run names, after ./setup.sh. Everything that was "
            "chosen is in the command; what is not there is the default. Where the run's records are at hand, -e "
            "lab_rerun=RUN_DIR takes it all from them. The tables and this report are made again, without any "
            "host, by ./collect.py collect."
        )
    ]
    stored = [run for _, run in facts.inputs.stored]
    for run in stored[:MOST_RUNS]:
        commit = str(run.environment.get("controller", {}).get("git_commit") or "an unknown commit")
        blocks.append(Listing(f"All of {run.run_id}, at {commit}", whole(run)))
        rows = [[cell, of_cell(run, cell)] for cell in run.plan.cells]
        columns = [Column("Cell", "code"), Column("Command", "code")]
        shown = table(f"One cell of {run.run_id} alone", columns, rows, "run.json")
        blocks.append(Folded("A command for each cell", [shown]))
    if len(stored) > MOST_RUNS:
        blocks.append(Text(f"{len(stored) - MOST_RUNS} more runs: their choices are in their run.json.", note=True))
    return Section("commands", "Measure it again", blocks)


def whole(run: Run) -> str:
    """Return the command that makes this run again, a part on each line."""
    select = run.choices.get("lab_select") or []
    return " \\\n  ".join([PLAYBOOK, *_arguments(run, select)])


def of_cell(run: Run, cell: str) -> str:
    """Return the command that measures one cell as this run did."""
    return " ".join([PLAYBOOK, *_arguments(run, [cell])])


def _arguments(run: Run, select: list[str] | str) -> list[str]:
    """Return the arguments, each quoted for a shell."""
    inventories = run.environment.get("controller", {}).get("inventories") or []
    found = [f"-i {shlex.quote(str(each))}" for each in inventories] if inventories != [HOME] else []
    patterns = select if isinstance(select, str) else ",".join(select)
    plain = {"lab_profile": run.plan.profile, **({"lab_select": patterns} if patterns else {})}
    mappings: dict[str, Any] = {}
    for name, value in _chosen(run).items():
        if isinstance(value, dict | list):
            mappings[name] = value
        else:
            plain[name] = value
    found += [f"-e {name}={shlex.quote(_word(value))}" for name, value in plain.items()]
    return found + ([f"-e {shlex.quote(json.dumps(mappings))}"] if mappings else [])


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _chosen(run: Run) -> dict[str, Any]:
    """Return every choice that is neither the default nor, without another inventory, that of HOME."""
    at_home = run.environment.get("controller", {}).get("inventories") in ([HOME], None, [])
    usual = LOCAL if at_home else {}
    found = {}
    for name, value in run.choices.items():
        if name in STATED or value is None or value == usual.get(name, _default(name)):
            continue
        if name in LOCAL and not at_home and name != "lab_sysctls":
            continue  # the inventory that is named says so
        found[name] = value
    return found | _link(run)


def _default(name: str) -> Any:
    field = Choices.model_fields.get(name)
    value: Any = field.get_default(call_default_factory=True, validated_data={}) if field else None
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def _link(run: Run) -> dict[str, Any]:
    """Return the link as it was chosen, without what is the default."""
    link = run.choices.get("lab_link") or (run.link.setting.model_dump() if run.link.setting else None)
    if not isinstance(link, dict):
        return {}
    defaults = {name: field.get_default() for name, field in Link.model_fields.items() if not field.is_required()}
    return {
        "lab_link": {name: value for name, value in link.items() if name not in defaults or value != defaults[name]}
    }
