"""From run directories to everything that is made of their records: the tables, the series and the report.

One way for `collect`, which writes it beside the records, for `bundle`, which packs it, and for `verify`, which
makes it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tunnel_lab import claims, manifests, plan, report, summary, tables, timeseries, verdicts
from tunnel_lab.claims import CLAIMS, Source
from tunnel_lab.errors import LabError
from tunnel_lab.records import Record

TABLES = ("runs.csv", "summary.csv", "claims.csv")
SERIES = "timeseries.csv.gz"


@dataclass(frozen=True)
class Outcome:
    """What the records of some runs say."""

    run_dirs: list[Path]
    runs: pd.DataFrame
    """A row per repeat and direction."""
    summary: pd.DataFrame
    """A row per cell and direction."""
    claims: pd.DataFrame
    """A row per link and claim."""
    sources: dict[str, Source]
    """{name: source} of the claims."""
    problems: list[str]
    """A line (path, why) for every file that cannot be used."""

    @property
    def complete(self) -> bool:
        """Whether every planned repeat has a good record, but for those that these hosts could not have made."""
        return bool(self.runs["status"].isin(["ok", "not_possible"]).all())

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """{file name: table} of the three tables."""
        return dict(zip(TABLES, (self.runs, self.summary, self.claims), strict=True))


def make(run_dirs: list[Path], claims_dir: Path = CLAIMS) -> Outcome:
    """Read and judge every record of `run_dirs`, and hold the figures against the claims of `claims_dir`.

    Raises LabError when a directory is not a run or holds no record, when two hold the same one, or when a claim is
    not well formed.
    """
    runs, problems = tables.collect(run_dirs)
    for run_dir in run_dirs:
        if not any((run_dir / "raw").glob("*.json")):
            raise LabError(f"{run_dir}: holds no record, nothing was measured. Run the lab again.")
    summed = summary.summarise(runs)
    cells = runs["tunnel"] + "." + runs["variant"] + "." + runs["workload"]
    sources = claims.load(claims_dir, {*plan.cell_ids(manifests.load()), *cells})
    return Outcome(run_dirs, runs, summed, verdicts.judge(runs, summed, sources), sources, problems)


def write_tables(outcome: Outcome, directory: Path) -> list[Path]:
    """Write runs.csv, summary.csv and claims.csv into `directory`; return their paths."""
    for name, table in outcome.tables.items():
        tables.write(table, directory / name)
    return [directory / name for name in TABLES]


def write(outcome: Outcome, directory: Path) -> list[Path]:
    """Write the tables, timeseries.csv.gz and the report into `directory`; return the paths of all.

    The same records give the same bytes. A LabError when a file cannot be written.
    """
    paths = write_tables(outcome, directory)
    timeseries.write(_records(outcome.run_dirs), directory / SERIES)
    return [*paths, directory / SERIES, *write_report(outcome, directory)]


def write_report(outcome: Outcome, directory: Path, series: str | None = None) -> list[Path]:
    """Write report.html and report.md; `series` is the `cell` or `cell:repeat` whose time series they show.

    A LabError when a file cannot be written, and when there is no such cell or repeat.
    """
    inputs = report.Inputs(
        run_dirs=outcome.run_dirs,
        runs=outcome.runs,
        summary=outcome.summary,
        claims=outcome.claims,
        sources=outcome.sources,
        series=series,
    )
    return report.write(inputs, directory)


def _records(run_dirs: list[Path]) -> Iterator[Record]:
    for run_dir in run_dirs:
        yield from tables.records(run_dir, tables.read_run(run_dir))
