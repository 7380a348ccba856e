"""Check a bundle: that nothing was changed since it was made, and that its tables are what its records say.

Hashes show the first; whoever changes a file can write a new manifest, so everything that is made of the records is
made again from them and compared. That the records are true, nobody can see from them.
"""

from __future__ import annotations

import gzip
import itertools
import math
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from tunnel_lab import archive, bundle, tables
from tunnel_lab.bundle import MANIFEST, Opened
from tunnel_lab.errors import LabError
from tunnel_lab.outcome import SERIES, TABLES
from tunnel_lab.records import Run, raw_path

TOLERANCE = 1e-9
"""By which share a number may differ: what the last digit of a float is on another machine."""
PIECE = 1 << 20
"""How much of a time series is compared at a time."""


@dataclass
class Verdict:
    """What was found out about a bundle."""

    run_id: str
    made_by: str | None
    """The git commit of the code that made the bundle."""
    verified_by: str | None
    """That of this code."""
    records: int = 0
    figures: int = 0
    """Cells of the tables, the empty ones left out, that were compared."""
    differences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def same_code(self) -> bool:
        """Whether this code is the one that made the bundle, as far as commits tell."""
        return self.made_by == self.verified_by

    @property
    def depends_on_code(self) -> list[str]:
        """Where a difference belongs that other code explains."""
        return self.differences if self.same_code else self.notes


def verify(path: Path) -> Verdict:
    """Check a bundle; what is not as it should be is in `differences`.

    Raises LabError when it is no bundle, or none that this program can read.
    """
    with bundle.opened(path) as found:
        manifest = found.manifest
        verdict = Verdict(manifest.run_id, manifest.git_commit_of_bundle, bundle.commit())
        verdict.notes += _of_the_code(verdict)
        verdict.differences += [f"{name}: not the file that {MANIFEST} was made for" for name in found.altered]
        try:
            _make_again(found, verdict)
        except LabError as error:
            if not found.altered:
                raise
            verdict.differences.append(f"the tables cannot be made again: {error}".replace(f"{found.directory}/", ""))
    return verdict


def _of_the_code(verdict: Verdict) -> list[str]:
    if not verdict.same_code:
        return [
            f"made by the code of commit {verdict.made_by or '(none)'}, verified by that of "
            f"{verdict.verified_by or '(none)'}: a difference may be one of the code"
        ]
    if verdict.made_by is None or verdict.made_by.endswith("-dirty"):
        return ["this code is in no git commit as it is: it may have been changed since the bundle was made"]
    return []


def _make_again(found: Opened, verdict: Verdict) -> None:
    run = tables.read_run(found.directory)
    bundle.check_names(run, found.directory)
    _check_run(run, found, verdict)
    verdict.records = sum(raw_path(found.directory, step).is_file() for step in run.plan.steps)
    with tempfile.TemporaryDirectory(prefix="tunnel-lab-") as scratch:
        again = Path(scratch)
        made = bundle.fill(found.directory, again, run)
        verdict.notes += [problem.replace(f"{found.directory}/", "") for problem in made.problems]
        verdict.notes += bundle.without_record(made, run)
        for name, table in made.tables.items():
            numbers = {str(column) for column in table.select_dtypes("number").columns}
            _compare_tables(name, (found.directory / name, again / name), numbers, verdict)
        _compare_series(found.directory / SERIES, again / SERIES, verdict)
        _compare_rest(run, found.directory, again, verdict)


def _check_run(run: Run, found: Opened, verdict: Verdict) -> None:
    """Hold what the manifest says of the run against run.json."""
    manifest, commit = found.manifest, run.environment.get("controller", {}).get("git_commit")
    for what, told, stored in (
        ("run_id", manifest.run_id, run.run_id),
        ("started_at", manifest.started_at, run.started_at),
        ("git_commit_of_run", manifest.git_commit_of_run, commit),
    ):
        if told != stored:
            verdict.differences.append(f"{MANIFEST}: {what} is {told!r}, run.json says {stored!r}")


def _compare_tables(name: str, paths: tuple[Path, Path], numbers: set[str], verdict: Verdict) -> None:
    """Compare every cell of a bundled table with the new one, as text, or as numbers in the columns `numbers`."""
    try:
        old, new = (pd.read_csv(path, dtype=str, keep_default_na=False) for path in paths)
    except (OSError, ValueError) as error:
        verdict.differences.append(f"{name}: cannot be read as a table: {error}")
        return
    verdict.differences += [f"{name}: the records give no column {column}" for column in old if column not in new]
    verdict.depends_on_code.extend(
        f"{name}: has no column {column}, which the records give" for column in new if column not in old
    )
    if len(old) != len(new):
        verdict.differences.append(f"{name}: has {len(old)} rows, the records give {len(new)}")
        return
    for column in (column for column in old if column in new):
        for row, (value, again) in enumerate(zip(old[column], new[column], strict=True), start=1):
            verdict.figures += bool(value or again)
            if value != again and not (column in numbers and _same_number(value, again)):
                said = f"{_shown(value)}, the records give {_shown(again)}"
                verdict.differences.append(f"{name} row {row}, {column}: {said}")


def _same_number(one: str, other: str) -> bool:
    try:
        return math.isclose(float(one), float(other), rel_tol=TOLERANCE)
    except ValueError:
        return False


def _shown(value: str) -> str:
    return (value if len(value) <= 40 else f"{value[:39]}…") or "empty"


def _alike(one: bytes, other: bytes) -> Iterator[int]:
    """Yield the bytes with which both begin."""
    return (same for same, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _compare_series(bundled: Path, again: Path, verdict: Verdict) -> None:
    """Compare the time series; the first line that differs is told, there may be thousands."""
    lines = 1
    try:
        with gzip.open(bundled, "rb") as old, gzip.open(again, "rb") as new:
            while True:
                one, other = old.read(PIECE), new.read(PIECE)
                if one != other:
                    lines += bytes(_alike(one, other)).count(b"\n")
                    verdict.differences.append(f"{SERIES}: line {lines} is not what the records give")
                    return
                if not one:
                    return
                lines += one.count(b"\n")
    except (OSError, EOFError, zlib.error) as error:
        verdict.differences.append(f"{SERIES}: cannot be read: {error}")


def _compare_rest(run: Run, bundled: Path, again: Path, verdict: Verdict) -> None:
    """Compare the bytes of what else is made of the records; other code may make another report."""
    given = {"run.json", MANIFEST, *(f"raw/{raw_path(bundled, step).name}" for step in run.plan.steps)}
    given |= {f"claims/{path.name}" for path in (bundled / "claims").glob("*.yml")}
    ours, theirs = (
        {path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()} for top in (again, bundled)
    )
    for name in sorted((ours | theirs) - given - {*TABLES, SERIES}):
        if name not in ours:
            verdict.depends_on_code.append(f"{name}: is in no bundle of this run")
        elif name not in theirs:
            verdict.depends_on_code.append(f"{name}: is not there; the records give it")
        elif archive.describe(bundled / name) != archive.describe(again / name):
            verdict.depends_on_code.append(f"{name}: not what the records give")
