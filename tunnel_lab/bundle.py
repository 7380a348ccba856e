"""One archive with everything that a run is: to publish, to keep, to hand on; and how it is opened again.

Only files of known names are put in, and what can be made of the records is made anew for it: whatever else lies in a
run directory stays there.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from tunnel_lab import archive, claims, contents, outcome, progress, tables
from tunnel_lab.archive import Member
from tunnel_lab.claims import CLAIMS
from tunnel_lab.errors import LabError, from_validation
from tunnel_lab.manifests import Strict
from tunnel_lab.outcome import Outcome
from tunnel_lab.records import Run, raw_path

SUFFIX = ".tunnel-lab.tar.gz"
MANIFEST = "MANIFEST.json"
FORMAT_VERSION = 1


class File(Strict):
    """What a file of the bundle must be."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)


class Manifest(Strict):
    """MANIFEST.json: what is in a bundle, of which run, made by which code."""

    format: Literal["tunnel-lab bundle"] = "tunnel-lab bundle"
    format_version: Literal[1] = 1
    run_id: str
    started_at: str
    """Of the run. When the bundle was made is not told: the same run gives the same bundle."""
    git_commit_of_run: str | None
    git_commit_of_bundle: str | None
    """Of the code that made the tables and the report."""
    files: dict[str, File]
    """{path: what it must be} of every file but this one."""


@dataclass(frozen=True)
class Made:
    """A bundle that was just made."""

    path: Path
    members: int
    warnings: list[str]


@dataclass(frozen=True)
class Opened:
    """A bundle that was unpacked, as far as its archive and its manifest are in order."""

    directory: Path
    """Where it is; it has run.json and raw/, as a run directory has."""
    manifest: Manifest
    altered: list[str]
    """The files that are not what the manifest says."""


def make(run_dir: Path, output: Path | None = None, claims_dir: Path = CLAIMS) -> Made:
    """Pack the run of `run_dir` into `output`, by default beside the run directory.

    Raises LabError when the directory is not a run, or when the file exists already or cannot be written.
    """
    run = tables.read_run(run_dir)
    check_names(run, run_dir)
    if (run_dir / "run.json").is_symlink():
        raise LabError(f"{run_dir}/run.json: is a link; a bundle holds what is in the run directory. Copy it there.")
    claims.load(claims_dir)  # whose errors name the file where it is
    path = output or run_dir.resolve().parent / f"{run.run_id}{SUFFIX}"
    if path.exists() or path.is_symlink():
        raise archive.exists(path)
    try:
        with tempfile.TemporaryDirectory(prefix="tunnel-lab-") as scratch:
            root = Path(scratch) / run.run_id
            _copy(run_dir, run, claims_dir, root)
            made = fill(root, root, run)
            (root / MANIFEST).write_text(_manifest(root, run).model_dump_json(indent=1) + "\n", encoding="utf-8")
            archive.pack(root, path, _started(run))
            members = sum(1 for found in root.rglob("*") if found.is_file())
    except OSError as error:
        raise LabError(f"{error.filename or run_dir}: {error.strerror}; no bundle was made.") from error
    problems = [problem.replace(str(root), str(run_dir)) for problem in made.problems]
    return Made(path, members, [*problems, *without_record(made, run)])


def fill(root: Path, directory: Path, run: Run) -> Outcome:
    """Write into `directory` all that is made of the run.json, raw/ and claims/ of `root`; return the tables."""
    made = outcome.make([root], root / "claims")
    outcome.write(made, directory)
    contents.write(root, directory, run, commit())
    return made


def _copy(run_dir: Path, run: Run, claims_dir: Path, root: Path) -> None:
    """Copy what nobody can make again, below `root`."""
    (root / "raw").mkdir(parents=True)
    (root / "claims").mkdir()
    _take(run_dir / "run.json", root / "run.json")
    for step in run.plan.steps if not (run_dir / "raw").is_symlink() else []:
        target = raw_path(root, step)
        _take(run_dir / "raw" / target.name, target)
    for source in sorted(claims_dir.glob("*.yml")):
        _take(source, root / "claims" / source.name)


def _take(source: Path, target: Path) -> None:
    """Copy a file, if it is one and no link to something else."""
    if source.is_file() and not source.is_symlink():
        shutil.copyfile(source, target)


def without_record(made: Outcome, run: Run) -> list[str]:
    """Return a line when planned repeats have no record, as while a run is under way; none when all have one."""
    without = int((made.runs["status"] == "aborted").sum())
    planned = made.runs["order"].nunique()
    return [f"{run.run_id}: {without} of {planned} planned repeats have no record"] if without else []


def check_names(run: Run, where: Path) -> None:
    """Raise a LabError when the plan's names would lead out of raw/, as no plan of this lab does."""
    for name in (run.run_id, *(step.cell for step in run.plan.steps)):
        if "/" in name or name.startswith(".") or not name.isprintable():
            raise LabError(f"{where}: run.json holds the name {name!r}, which cannot be that of a run or a cell.")


def _manifest(root: Path, run: Run) -> Manifest:
    found = {path.relative_to(root).as_posix(): archive.describe(path) for path in root.rglob("*") if path.is_file()}
    return Manifest(
        run_id=run.run_id,
        started_at=run.started_at,
        git_commit_of_run=run.environment.get("controller", {}).get("git_commit"),
        git_commit_of_bundle=commit(),
        files={name: File(sha256=found[name].sha256, bytes=found[name].size) for name in sorted(found)},
    )


def commit() -> str | None:
    """Return the git commit of this program, with `-dirty` after it when it was changed; None where it has none."""
    found: str | None = progress.controller()["git_commit"]
    return found


def _started(run: Run) -> int:
    """Return when the run began, in seconds since the epoch; 0 where that cannot be read."""
    try:
        return max(0, int(datetime.fromisoformat(run.started_at).timestamp()))
    except ValueError:
        return 0


@contextmanager
def opened(path: Path) -> Iterator[Opened]:
    """Unpack a bundle for as long as the block lasts.

    Raises LabError, in one line, when it is no bundle, of another format version, or when its files are not those
    that its manifest names. Files that were altered are no error: see `altered`.
    """
    if not path.exists():
        raise LabError(f"{path}: no such file.")
    with tempfile.TemporaryDirectory(prefix="tunnel-lab-") as scratch:
        root = Path(scratch) / "bundle"
        found = archive.unpack(path, root)
        manifest = _read_manifest(path, root / MANIFEST)
        try:
            yield Opened(root, manifest, _altered(path, manifest, found))
        except LabError as error:  # the user knows the bundle, not where it was unpacked
            raise LabError(str(error).replace(str(root), str(path))) from error
        except Exception as error:  # records of somebody else can hold anything that the schema allows
            said = f"{type(error).__name__}: {error}".replace(str(root), str(path))
            raise LabError(f"{path}: its run cannot be read: {said}") from error


def _read_manifest(path: Path, file: Path) -> Manifest:
    if not file.is_file():
        raise LabError(f"{path}: not a bundle: it holds no {MANIFEST}. `collect.py bundle` makes one.")
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise LabError(f"{path}: {MANIFEST}: not JSON: {error}") from error
    version = data.get("format_version") if isinstance(data, dict) else None
    if version != FORMAT_VERSION:
        raise LabError(f"{path}: {MANIFEST}: format_version is {version!r}, this program reads {FORMAT_VERSION}.")
    try:
        return Manifest.model_validate(data)
    except ValidationError as error:
        first = str(from_validation(MANIFEST, error)).splitlines()[0]
        raise LabError(f"{path}: {first}") from error


def _altered(path: Path, manifest: Manifest, found: dict[str, Member]) -> list[str]:
    names = set(found) - {MANIFEST}
    for wrong, why in ((names - set(manifest.files), "is not in"), (set(manifest.files) - names, "is missing, but in")):
        if wrong:
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            raise LabError(f"{path}: {min(wrong)}{more} {why} its {MANIFEST}; the bundle was changed or is not whole.")
    return [name for name, file in sorted(manifest.files.items()) if found[name] != Member(file.bytes, file.sha256)]


@contextmanager
def run_directory(given: Path) -> Iterator[Path]:
    """Give the directory of a run, wherever it is: itself, or what a bundle holds, for as long as the block lasts.

    Raises LabError for a bundle that was altered, or that `opened` refuses.
    """
    if given.is_dir():
        yield given
        return
    with opened(given) as found:
        if found.altered:
            raise LabError(
                f"{given}: {found.altered[0]} was changed after the bundle was made; `collect.py verify` says more."
            )
        run = tables.read_run(found.directory)
        check_names(run, given)
        yield found.directory
