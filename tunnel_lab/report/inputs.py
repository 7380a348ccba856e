"""What a report is made from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from tunnel_lab import tables
from tunnel_lab.records import Run

if TYPE_CHECKING:
    from tunnel_lab.claims import Source


@dataclass(frozen=True, eq=False)
class Inputs:
    """The tables of one run or of several, and where their records are."""

    run_dirs: list[Path]
    runs: pd.DataFrame
    """As tables.collect makes it."""
    summary: pd.DataFrame
    """As summary.summarise makes it."""
    claims: pd.DataFrame
    """As verdicts.judge makes it; may be empty."""
    sources: dict[str, Source]
    series: str | None = None
    """`cell` or `cell:repeat` whose time series is shown; None: the cell of the first claim that has a verdict, else
    the slowest cell."""

    @cached_property
    def stored(self) -> list[tuple[Path, Run]]:
        """Each run with its directory, the oldest first."""
        found = [(run_dir, tables.read_run(run_dir)) for run_dir in self.run_dirs]
        return sorted(found, key=lambda each: (each[1].started_at, each[1].run_id))
