"""What a bundle holds for people beside tables and report: the configuration files, the choices, and how to rerun."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path, PurePosixPath

import yaml

from tunnel_lab import tables
from tunnel_lab.records import Run

CHOICES = "choices.yml"
RERUN = "RERUN.md"
CONFIGURATION = "configuration"
SHOWN = ("os", "kernel", "machine", "virtualization", "cpu_model", "cpus", "image")

TEXT = """\
# {run_id}

A run of tunnel-lab, which measures what tunnels do to real traffic: {cells} cells, {steps} repeats, begun at
{started_at}.

- `report.html`, `report.md`: what came out, with the claims it was held against
- `runs.csv`, `summary.csv`, `claims.csv`, `timeseries.csv.gz`: the same as tables
- `run.json`, `raw/`: what was planned, where, and what every tool printed; all else is made of these
- `configuration/<tunnel>.<variant>/<host>/`: the files that the tunnels ran with
- `choices.yml`: what was chosen for this run; `claims/`: the claims as they were used
- `MANIFEST.json`: size and SHA-256 of every file

No key and no password is in it: those of the lab were made for it and stayed on its hosts and its controller.

## What measured it

{versions}

## Verify, rerun, compare

With a checkout of tunnel-lab at commit {commit} (`git checkout {checkout}`, then `./setup.sh`), and this archive as
`{archive}`:

```
./collect.py verify {archive}
.venv/bin/ansible-playbook lab.yml -e lab_rerun={archive}
./collect.py compare {archive} results/latest
```

The first checks that no file was changed since the bundle was made, and that the tables are what the records say. It
cannot tell whether the records are true; the second can: it measures the same cells with the same settings,
parameters, link and order on your hosts. The third says which figures differ.

The tables and the report were made by commit {made_by}.
"""


def write(root: Path, directory: Path, run: Run, made_by: str | None) -> None:
    """Write configuration/, choices.yml and RERUN.md of the run in `root` into `directory`."""
    for name, text in _configuration(root, run).items():
        path = directory / CONFIGURATION / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    head = f"# What was chosen for the run {run.run_id}; docs/variables.md says what each means.\n"
    (directory / CHOICES).write_text(head + yaml.safe_dump(run.choices, sort_keys=True), encoding="utf-8")
    (directory / RERUN).write_text(_rerun(run, made_by), encoding="utf-8")


def _configuration(root: Path, run: Run) -> dict[str, str]:
    """Return {<tunnel>.<variant>/<host>/<file>: text}; a file that was not always the same is there in each form."""
    found: dict[str, str] = {}
    for record in tables.records(root, run):
        for host, seen in record.before.items():
            for path, text in seen.files.items():
                parts = (f"{record.cell.tunnel}.{record.cell.variant}", host, PurePosixPath(path).name)
                _add(found, "/".join(map(_plain, parts)), text)
    return found


def _add(found: dict[str, str], name: str, text: str) -> None:
    number = 1
    form = name
    while found.setdefault(form, text) != text:
        number += 1
        form = f"{name}.{number}"


def _plain(part: str) -> str:
    """Return a name that stays where it is put, whatever a record says."""
    return re.sub(r"[^A-Za-z0-9@._-]", "_", part).lstrip(".") or "_"


def _rerun(run: Run, made_by: str | None) -> str:
    commit = run.environment.get("controller", {}).get("git_commit")
    return TEXT.format(
        run_id=run.run_id,
        cells=len(run.plan.cells),
        steps=len(run.plan.steps),
        started_at=run.started_at,
        versions="\n".join(_versions(run)),
        commit=commit or "(not known)",
        checkout=(commit or "COMMIT").removesuffix("-dirty"),
        archive=f"{run.run_id}.tunnel-lab.tar.gz",
        made_by=made_by or "(not known)",
    )


def _versions(run: Run) -> list[str]:
    """Return a line for the lab, the controller and each host."""
    controller = run.environment.get("controller", {})
    lines = [
        f"- tunnel-lab {importlib.metadata.version('tunnel-lab')}, commit {controller.get('git_commit')}",
        f"- controller: Python {controller.get('python')}, ansible-core {controller.get('ansible_core')}",
    ]
    if str(controller.get("git_commit")).endswith("-dirty"):
        lines.append("- the checkout had changes that are in no commit: the code of this run cannot be had exactly")
    for host in ("server", "client"):
        found = run.environment.get(host, {})
        packages = found.get("packages", {})
        lines.append(f"- {host}: " + ", ".join(f"{name} {found[name]}" for name in SHOWN if found.get(name)))
        if packages:
            lines.append(f"- {host}'s packages: " + ", ".join(f"{name} {packages[name]}" for name in sorted(packages)))
    return lines
