"""A small lab of its own for the tests: manifests, a parser and stored runs, with no host and no real role."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from builders import HOSTS, LINK, looks, stamp

from tunnel_lab import choices, manifests, plan
from tunnel_lab.plan import Step
from tunnel_lab.records import Command, LinkSeen, LinkState, Record, Run, raw_path

ROOT = Path(__file__).resolve().parents[2]
RUN_START = datetime(2026, 1, 2, 3, tzinfo=UTC)

PIPE = """
description: a tunnel of the tests
target: {address: 10.0.0.1, port: 7000}
interface: pipe0
defaults: {cipher: AES-256-GCM, sndbuf: 0, compress: false}
variants:
  plain: {description: the defaults}
  small: {settings: {sndbuf: 65536}}
  small_old:
    extends: small
    settings: {cipher: BF-CBC}
    insecure: breakable (SWEET32)
  oldest: {extends: small_old}
units: {server: "pipe@{variant}.service"}
compresses: compress
"""

PARSER = '''
"""The output is a list of figures in JSON."""
import json
from tunnel_lab.parsing import BadOutput, Measurement, command

def parse(record):
    try:
        figures = json.loads(command(record, "go").stdout)
    except ValueError as error:
        raise BadOutput(f"go: not JSON: {error}") from error
    return [Measurement(goodput_bit_s=f["payload_bytes"] * 8 / f["duration_s"], **f) for f in figures]
'''

ROLES = {
    "tunnel_none/tunnel.yml": "{description: bare, target: {address: '{server_address}'}, variants: {bare: {}}}",
    "tunnel_pipe/tunnel.yml": PIPE,
    "workload_iperf3/workload.yml": "{description: d, service_port: 5201, timeout_s: 60, params: {duration_s: 10}, "
    "server_units: [iperf3.service], fresh: true, done_log: the end}",
    "workload_copy/workload.yml": "{description: d, service_port: 22, timeout_s: 60, params: {size_bytes: 1000}}",
    "workload_iperf3/parser.py": PARSER,
    "workload_copy/parser.py": PARSER,
}


@pytest.fixture
def roles(tmp_path: Path) -> Path:
    """A tree of roles with two tunnels and two workloads."""
    for name, text in ROLES.items():
        path = tmp_path / "roles" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "roles"


@pytest.fixture
def make_plan(roles: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., plan.Plan]:
    """Build a plan of the tests' roles; keyword arguments are `lab_*` variables."""
    every = choices.Profile(description="all", repeats=3, select=["*"])
    monkeypatch.setattr(choices, "profiles", lambda: {"quick": every})

    def make(**variables: Any) -> plan.Plan:
        chosen = choices.from_variables({"lab_name": "test", "lab_provider": "local", **variables})
        return plan.build(manifests.load(roles, chosen.lab_variants), chosen, "192.0.2.1")

    return make


def figure(duration_s: float, direction: str = "server_to_client", **extra: Any) -> dict[str, Any]:
    """One figure as the tests' parser reads it: a megabyte in `duration_s`."""
    return {"direction": direction, "payload_bytes": 1_000_000, "duration_s": duration_s, "extra": extra}


def payload_of(output: Any) -> dict[str, int]:
    """Return the bytes of each direction that an output claims, nothing for one that is not to be trusted."""
    figures = output if isinstance(output, list) else []
    return {each["direction"]: each["payload_bytes"] for each in figures if "direction" in each}


@dataclass
class StoredRun:
    """A run on disk, and its records one by one."""

    path: Path
    run: Run

    def step(self, cell: str, repeat: int) -> Step:
        """Return the planned step."""
        return next(step for step in self.run.plan.steps if (step.cell, step.repeat) == (cell, repeat))

    def file(self, cell: str, repeat: int) -> Path:
        """Return where its record belongs."""
        return raw_path(self.path, self.step(cell, repeat))

    def record(self, step: Step, output: Any, **changes: Any) -> Record:
        """Make the record of `step`, a minute after the one before; `output` is what its command printed."""
        text = output if isinstance(output, str) else json.dumps(output)
        turn = RUN_START + timedelta(minutes=step.order)
        start, end = turn + timedelta(seconds=1), turn + timedelta(seconds=3)
        command = Command(name="go", argv=["go"], rc=0, stdout=text, stderr="", started_at=stamp(start), elapsed_s=2.0)
        cell = self.run.plan.cells[step.cell]
        before, after = looks(payload_of(output), [LINK, cell.interface or LINK], start, end)
        content: dict[str, Any] = {
            "run_id": self.run.run_id,
            "step": step,
            "cell": cell,
            "status": "ok",
            "started_at": stamp(turn),
            "wall_s": 3.5,
            "negotiated": {"server.cipher": "AES-256-GCM"},
            "commands": [command],
            "before": before,
            "after": after,
            "link": LinkSeen(interfaces=dict.fromkeys(HOSTS, LINK)),
        }
        return Record(**{**content, **changes})

    def write(self, output: Callable[[Step], Any], *missing: tuple[str, int]) -> None:
        """Write a good record for every planned step but those of `missing`."""
        for step in self.run.plan.steps:
            if (step.cell, step.repeat) not in missing:
                self.record(step, output(step)).write(raw_path(self.path, step))

    def replace(self, cell: str, repeat: int, output: Any, /, **changes: Any) -> None:
        """Write the record of one step anew."""
        self.file(cell, repeat).unlink(missing_ok=True)
        self.record(self.step(cell, repeat), output, **changes).write(self.file(cell, repeat))


def environment(host: str) -> dict[str, Any]:
    """What a run keeps of a host: values for columns, and nested ones that stay in run.json."""
    return {"kernel": "6.1.0", "cpus": 2, "aes": True, "load": 0.25, "sysctls": {"a": "b"}, "host": host}


@pytest.fixture
def make_run(tmp_path: Path, make_plan: Callable[..., plan.Plan]) -> Callable[..., StoredRun]:
    """Store a run of three repeats of `pipe.*.copy` and the bare link, without records."""

    def make(run_id: str = "run-1", rtt_ms: float | None = 80, **variables: Any) -> StoredRun:
        setting = None if rtt_ms is None else choices.Link(rtt_ms=rtt_ms, rate_mbit=100)
        run = Run(
            run_id=run_id,
            lab="test",
            provider="local",
            started_at="2026-01-02T03:00:00.000+00:00",
            choices=variables,
            plan=make_plan(**{"lab_select": "pipe.plain.copy,pipe.small.copy", **variables}),
            link=LinkState(emulator="relay" if setting else "none", setting=setting),
            environment={
                "server": environment("a"),
                "client": environment("b"),
                "controller": {"git_commit": "abc1234"},
            },
        )
        stored = StoredRun(tmp_path / "results" / run_id, run)
        run.write(stored.path / "run.json")
        return stored

    return make


Collect = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def collect(tmp_path: Path, roles: Path) -> Collect:
    """Run the real command line, in a copy of the project that has the tests' roles."""
    shutil.copy(ROOT / "collect.py", tmp_path)
    shutil.copytree(ROOT / "tunnel_lab", tmp_path / "tunnel_lab", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "profiles.yml", tmp_path)

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, tmp_path / "collect.py", *arguments],
            env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run
