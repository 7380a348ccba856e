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


def rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table as JSON has it: a mapping for each row, null for what is empty."""
    found: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=15))
    return found


def print_json(answer: Any) -> None:
    """Print an answer for a program."""
    print(json.dumps(answer, indent=1, ensure_ascii=False))
