"""The commands that a report gives measure what the run measured: they are read back as a shell and Ansible do."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Collect, StoredRun, figure
from reported import stored

from tunnel_lab.choices import from_variables
from tunnel_lab.manifests import ROOT
from tunnel_lab.report import commands

AWKWARD = 'it\'s "odd"; $(id) | \\ é'


def variables(command: str) -> dict[str, Any]:
    """Return the variables that a command gives, as ansible-playbook would take them."""
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:2] == [".venv/bin/ansible-playbook", "lab.yml"]
    given: dict[str, Any] = {}
    for option, value in zip(words[2::2], words[3::2], strict=True):
        assert option in ("-e", "-i")
        if option == "-e":
            given |= json.loads(value) if value.startswith("{") else dict([value.split("=", 1)])
    return given


def run(tmp_path: Path, inventories: list[str] | None = None, **choices: Any) -> Any:
    """Return a run with these choices besides the usual ones."""
    usual = {"lab_name": "local", "lab_provider": "local", "lab_profile": "quick", "lab_seed": 2016}
    usual |= {
        "lab_link": {"rtt_ms": 80.0, "rate_mbit": 100.0, "queue_bytes": None, "loss_pct": 0.0, "emulator": "auto"}
    }
    environment = {"controller": {"inventories": inventories or ["inventories/local"]}}
    return stored(tmp_path / "run", choices={**usual, **choices}, environment=environment).run


def test_a_plain_run(tmp_path: Path) -> None:
    made = run(tmp_path)
    assert commands.of_cell(made, "ssh.plain.iperf3") == (
        ".venv/bin/ansible-playbook lab.yml -e lab_profile=quick -e lab_select=ssh.plain.iperf3 "
        """-e '{"lab_link": {"rtt_ms": 80.0, "rate_mbit": 100.0}}'"""
    )
    assert "lab_select" not in variables(commands.whole(made)), "the profile says which cells"


def test_everything_that_was_chosen_is_in_it(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {
        "lab_override": {"openvpn": {"extra_options": [AWKWARD], "sndbuf": 0}},
        "lab_params": {"redis_sync": {"dataset_bytes": 1048576}},
        "lab_repeats": 7,
        "lab_seed": 3,
        "lab_sampler": False,
        "lab_select": ["ssh.*.redis_sync", "openvpn.modern_*.*"],
        "lab_link": {
            **{"rtt_ms": 20.0, "rate_mbit": 50.0, "queue_bytes": 9000, "loss_pct": 0.5, "emulator": "relay"},
            "rtt_tolerance_ms": 2.0,
        },
        "lab_timeout_s": 12.5,
    }
    made = run(tmp_path, **chosen)
    given = variables(commands.whole(made))
    assert given["lab_override"] == chosen["lab_override"]
    again = from_variables({"lab_name": "local", "lab_provider": "local", **given})
    for name, value in chosen.items():
        found = getattr(again, name)
        assert (found.model_dump() if hasattr(found, "model_dump") else found) == value, name
    alone = variables(commands.of_cell(made, "ssh.modern.redis_sync"))
    assert alone == {**given, "lab_select": "ssh.modern.redis_sync"}


def test_another_inventory_is_named_and_says_what_the_hosts_are(tmp_path: Path) -> None:
    made = run(tmp_path, ["inventories/my lab", "more"], lab_name="mine", lab_provider="other", lab_sysctls={"a": 1})
    command = commands.whole(made)
    assert "-i 'inventories/my lab'" in command and "-i more" in command
    given = variables(command)
    assert given["lab_sysctls"] == {"a": 1}
    assert "lab_name" not in given and "lab_provider" not in given


def test_a_lab_of_another_name_in_the_usual_inventory(tmp_path: Path) -> None:
    assert variables(commands.whole(run(tmp_path, lab_name="second")))["lab_name"] == "second"


def test_a_run_that_was_a_rerun_gives_the_plan_itself(tmp_path: Path) -> None:
    assert "lab_rerun" not in variables(commands.whole(run(tmp_path, lab_rerun="run-0", lab_select=["ssh.*.*"])))


def test_what_the_usual_inventory_says_is_what_it_says() -> None:
    said = yaml.safe_load((ROOT / "inventories/local/group_vars/all.yml").read_text())
    for name, value in commands.LOCAL.items():
        assert said[name] == value, name


@pytest.fixture
def good(make_run: Any) -> StoredRun:
    """A run of the tests' roles with all records."""
    made: StoredRun = make_run()
    made.write(lambda step: [figure(float(step.repeat + 1))])
    return made


def test_the_verb_writes_both_files_and_says_where(good: StoredRun, collect: Collect) -> None:
    result = collect("report", good.path)
    assert (result.returncode, result.stderr) == (0, "")
    paths = [str(good.path / name) for name in ("report.html", "report.md")]
    assert result.stdout.splitlines() == paths
    assert json.loads(collect("report", good.path, "--format", "json").stdout) == {"files": paths}
    assert {path.name for path in good.path.iterdir()} == {"raw", "run.json", "report.html", "report.md"}


def test_the_verb_refuses_a_series_that_there_is_not(good: StoredRun, collect: Collect) -> None:
    result = collect("report", good.path, "--series", "pipe.smal.copy")
    assert (result.returncode, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1 and "Did you mean 'pipe.small.copy'?" in result.stderr
    assert not (good.path / "report.html").exists()


def test_the_verb_merges_runs_into_a_directory(
    good: StoredRun, make_run: Any, collect: Collect, tmp_path: Path
) -> None:
    other: StoredRun = make_run(run_id="run-2")
    other.write(lambda step: [figure(2.0)])
    assert "--output DIR" in collect("report", good.path, other.path).stderr
    assert collect("report", good.path, other.path, "--output", tmp_path / "both").returncode == 0
    assert "on 2 runs" in (tmp_path / "both" / "report.md").read_text()
