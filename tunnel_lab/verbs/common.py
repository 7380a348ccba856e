"""What all verbs share: what a verb is, which run they mean, and how they answer a program."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tunnel_lab.errors import LabError
from tunnel_lab.manifests import ROOT

LATEST = ROOT / "results" / "latest"


@dataclass(frozen=True)
class Verb:
    """One thing that collect.py can do."""

    summary: str
    description: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    """Returns the exit status; raises LabError for bad input. `arguments.format` is `text` or `json`."""


def latest() -> Path:
    """Return the directory of the newest run; a LabError when there is none."""
    if not LATEST.is_dir():
        raise LabError(f"{LATEST}: there is no run yet. Run the lab first, or name a directory of a run.")
    return LATEST


def add_run_dirs(parser: argparse.ArgumentParser, what: str) -> None:
    """Let a verb take run directories, and say where `what` it makes of them goes."""
    parser.add_argument(
        "run_dir",
        metavar="RUN_DIR",
        nargs="*",
        type=Path,
        help="directory of a run, results/<run_id>; several are merged (default: results/latest)",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        help=f"where the {what} (default: into RUN_DIR); needed when there are several",
    )


def run_dirs(arguments: argparse.Namespace) -> tuple[list[Path], Path]:
    """Return the run directories, and where what is made of them goes; a LabError when that is not told."""
    found: list[Path] = arguments.run_dir or [latest()]
    if len(found) > 1 and arguments.output is None:
        raise LabError("several run directories: say with --output DIR where what is made of them goes.")
    return found, arguments.output or found[0]


def rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table as JSON has it: a mapping for each row, null for what is empty."""
    found: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=15))
    return found


def print_json(answer: Any) -> None:
    """Print an answer for a program."""
    print(json.dumps(answer, indent=1, ensure_ascii=False))
