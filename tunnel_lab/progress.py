"""Begin a run, write its records, and tell how far it is. What the playbooks' actions call."""

from __future__ import annotations

import importlib.metadata
import itertools
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tunnel_lab import needs, why
from tunnel_lab.manifests import ROOT
from tunnel_lab.parsing import Measurement, evaluate
from tunnel_lab.records import Record, Run, now, raw_path

RESULTS = ROOT / "results"


def begin(run_of: dict[str, Any], results: Path = RESULTS, inventories: Iterable[str] = ()) -> Path:
    """Make `results/<run_id>/` with its run.json, point `results/latest` at it, return it.

    `run_of` holds everything of a Run but its id, its time and the controller's environment; `inventories` are the
    paths that ansible-playbook was given.
    """
    started = datetime.now(UTC)
    run_id = f"{started:%Y%m%dT%H%M%SZ}-{run_of['lab']}-{run_of['plan']['profile']}"
    environment = {**run_of["environment"], "controller": controller(inventories)}
    run = Run.model_validate({**run_of, "run_id": run_id, "started_at": now(), "environment": environment})
    directory = results / run_id
    (directory / "raw").mkdir(parents=True, exist_ok=True)
    run.write(directory / "run.json")
    for record in _impossible(run):
        record.write(raw_path(directory, record.step))
        give_back(raw_path(directory, record.step))
    link = results / f".latest.{os.getpid()}"
    link.symlink_to(run_id)
    link.replace(results / "latest")
    for path in (results, directory, directory / "raw", directory / "run.json"):
        give_back(path)
    return directory


def _impossible(run: Run) -> Iterator[Record]:
    """Yield the records of all steps that cannot be measured on the run's hosts."""
    why_not = {name: needs.lacking(cell, run.environment) for name, cell in run.plan.cells.items()}
    for step in run.plan.steps:
        if reason := why_not[step.cell]:
            yield Record(
                run_id=run.run_id,
                step=step,
                cell=run.plan.cells[step.cell],
                status="not_possible",
                reason=reason,
                started_at=run.started_at,
                wall_s=0,
            )


def controller(inventories: Iterable[str] = ()) -> dict[str, Any]:
    """Describe the machine that runs the playbooks, and how they were called: paths below the project are relative."""
    commit, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain")
    return {
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "ansible_core": importlib.metadata.version("ansible-core"),
        "git_commit": f"{commit}-dirty" if changes else commit,
        "inventories": [path.removeprefix(f"{ROOT}/") for path in inventories],
    }


def _git(*words: str) -> str | None:
    """Return what git says of this checkout; None where there is no git or no repository."""
    # root may look at a user's checkout
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def give_back(path: Path) -> None:
    """Hand what sudo made to the user who called it."""
    if os.geteuid() == 0 and "SUDO_UID" in os.environ:
        os.chown(path, int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"]))


def finish(directory: Path, record: Record) -> str:
    """Judge and write one record; return the line that tells the user.

    A record that says ok but whose output cannot be trusted is written as failed, with its output.
    """
    reason, measurements = evaluate(record)
    if reason and record.status == "ok":
        record = record.model_copy(update={"status": "failed", "reason": reason})
    path = raw_path(directory, record.step)
    record.write(path)
    give_back(path)
    run = Run.read(directory / "run.json")
    return f"{_place(directory, run, record)}  {_said(run, record, measurements)}"


def last_finished(directory: Path) -> datetime:
    """Return when the newest record, or run.json before the first, was written: there the next cell begins."""
    return datetime.fromtimestamp(_written(directory)[-1][0], UTC)


def _written(directory: Path) -> list[tuple[float, str]]:
    """Return when run.json and each record were written, in seconds since the epoch, with the cell, in this order."""
    paths = [directory / "run.json", *(directory / "raw").glob("*.json")]
    return sorted((path.stat().st_mtime, path.stem.rpartition(".r")[0]) for path in paths)


def _said(run: Run, record: Record, measurements: list[Measurement]) -> str:
    if record.status != "ok":
        return f"{record.status.upper()}: {record.reason}"
    arrows = {"server_to_client": "server→client", "client_to_server": "client→server"}
    said = []
    for each in measurements:
        found = why.columns(run, record, each, why.link_rate(run)).get("limit")
        because = f" ({found})" if found else ""
        said.append(
            f"{arrows[each.direction]} {each.goodput_bit_s / 1e6:.1f} Mbit/s in {each.duration_s:.1f} s{because}"
        )
    return ", ".join(said)


def _place(directory: Path, run: Run, record: Record) -> str:
    """Return ' 7/96  cell  (about 12 min left)', the rest taken from what each cell has needed so far."""
    steps = run.plan.steps
    walls: dict[str, list[float]] = {}
    for (begun, _), (ended, cell) in itertools.pairwise(_written(directory)):
        walls.setdefault(cell, []).append(ended - begun)
    known = [wall for found in walls.values() for wall in found]
    usual = sum(known) / len(known)
    left_s = sum(max(walls.get(step.cell, [usual])) for step in steps[record.step.order :])
    width = len(str(len(steps)))
    most = "≤ " if run.plan.precision and left_s else ""
    left = f"{most}{left_s / 60:.0f} min left" if left_s >= 90 else f"{most}{left_s:.0f} s left"
    return f"{record.step.order:>{width}}/{len(steps)} {left:>11}  {record.cell.id} r{record.step.repeat}"
