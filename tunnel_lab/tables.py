"""From stored records to the table of runs, a row per repeat and direction; and how tables are written.

Everything here is offline and repeatable: no host is asked, and the same records give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd

from tunnel_lab import accounting, counted, emulation, why
from tunnel_lab.enough import unneeded
from tunnel_lab.errors import LabError
from tunnel_lab.manifests import Settings
from tunnel_lab.pace import pace
from tunnel_lab.parsing import evaluate
from tunnel_lab.plan import Cell, Step
from tunnel_lab.records import Record, Run, raw_path

Row = dict[str, Any]

LINK_NUMBERS = ["rtt_ms", "rate_mbit", "queue_bytes", "loss_pct"]
LINK = ["lab", "provider", "region_pair", emulation.COLUMN, "link_emulator", *LINK_NUMBERS, "sampler"]
"""What says between which hosts, over which link and how a figure was measured; empty numbers for a real network."""
LINK_MEASURED = ["link_rtt_ms", "link_goodput_bit_s"]
"""The link as it was found before the run: least round trip, and what TCP carries from server to client."""
CELL = ["tunnel", "variant", "settings_id", "override", "workload", "params"]
"""What says which cell a figure belongs to; figures that differ in one of these are never averaged."""
LINK_SEEN = ["link_late_share", "link_dropped_frames"]
"""How the relay kept its pace in a repeat; empty with another emulator."""
ALLOWANCE = "allowance_exceeded"
"""What a cloud held up in a repeat, by its network cards' own counters; empty where the driver has none."""
STEP = ["direction", "repeat", "order", "status", "reason", "started_at"]
FIGURES = [
    *("duration_s", "payload_bytes", "goodput_bit_s", "wall_s", "overhead_s", "insecure"),
    *(*LINK_MEASURED, *LINK_SEEN, ALLOWANCE, *why.COLUMNS),
]
FIXED = ["run_id", *LINK, *CELL, *STEP, *FIGURES]
"""The columns of every table of runs; those of the workloads follow, then those that begin with one of PREFIXES."""
PREFIXES = ("negotiated.", "server.", "client.", "git_commit")
"""How the columns after those of the workloads begin, in their order."""


def collect(run_dirs: list[Path]) -> tuple[pd.DataFrame, list[str]]:
    """Return the runs table of all `run_dirs` and a line (path, why) for every file that cannot be used.

    Rows are ordered by run, place in the run and direction. Raises LabError when a directory holds no
    readable run.json, or when two of them hold the same run.
    """
    rows: list[Row] = []
    problems: list[str] = []
    seen: dict[str, Path] = {}
    for run_dir in run_dirs:
        run = read_run(run_dir)
        if run.run_id in seen:
            raise LabError(f"{run_dir}: holds run {run.run_id}, as {seen[run.run_id]} does. Name it once.")
        seen[run.run_id] = run_dir
        rows += _rows_of_run(run_dir, run, problems)
    rows.sort(key=lambda row: (row["run_id"], row["order"], row.get("direction", "")))
    return _table(rows), problems


def read_run(run_dir: Path) -> Run:
    """Read run.json of `run_dir`; a LabError of one line says what is wrong and what to do."""
    path = run_dir / "run.json"
    if not run_dir.is_dir():
        raise LabError(f"{run_dir}: no such run directory. Name one of those below results/.")
    if not path.is_file():
        raise LabError(f"{run_dir}: holds no run.json, so it is not a run. Name one of those below results/.")
    try:
        run = Run.read(path)
    except LabError as error:
        raise LabError(f"{path}: {_why(error, path)} Restore it, or run the lab again.") from error
    lost = sorted({step.cell for step in run.plan.steps} - set(run.plan.cells))
    if lost or not run.plan.steps:
        raise LabError(f"{path}: its plan has no {lost[0] if lost else 'step'}. Run the lab again.")
    return run


def _rows_of_run(run_dir: Path, run: Run, problems: list[str]) -> list[Row]:
    """Return at least one row for every planned repeat, whatever the files below raw/ look like."""
    planned = {raw_path(run_dir, step): step for step in run.plan.steps}
    usable: dict[Path, list[Row]] = {}
    broken: dict[Path, str] = {}
    rate = why.link_rate(run, records(run_dir, run))
    for path in sorted((run_dir / "raw").glob("*.json")):
        concerned = {path}
        try:
            record = Record.read(path)
            concerned.add(raw_path(run_dir, record.step))
            _check(record, run, planned.get(path))
            usable[path] = _rows_of_record(run, record, rate)
        except LabError as error:
            reason = _why(error, path)
            problems.append(f"{path}: {reason}")
            broken.update((found, f"{path.name}: {reason}") for found in concerned - set(broken))
    run_columns = _run_columns(run)
    cell_columns = {name: _cell_columns(cell) for name, cell in run.plan.cells.items()}
    good = {(step.cell, step.repeat): _goodputs(usable.get(path, [])) for path, step in planned.items()}
    left_out = unneeded(run.plan, good)
    return [
        {
            **row,
            **run_columns,
            **cell_columns[step.cell],
            "repeat": step.repeat,
            "order": step.order,
            "sampler": step.sampled,
        }
        for path, step in planned.items()
        if path in usable or path in broken or step not in left_out
        for row in usable.get(path) or [_row_without_record(broken.get(path))]
    ]


def _goodputs(rows: list[Row]) -> dict[str, float]:
    return {row["direction"]: row["goodput_bit_s"] for row in rows if row["status"] == "ok"}


def records(run_dir: Path, run: Run) -> Iterator[Record]:
    """Yield the records of a run in its order, one at a time; those that cannot be read are left out."""
    for step in run.plan.steps:
        try:
            yield Record.read(raw_path(run_dir, step))
        except LabError:
            continue


def _check(record: Record, run: Run, planned: Step | None) -> None:
    """Raise a LabError unless `record` is what the plan of `run` expects under its file name."""
    holds = f"it holds {record.step.cell} repeat {record.step.repeat} (step {record.step.order})"
    if planned is None:
        raise LabError(f"no repeat of the plan has this file name; {holds}.")
    if record.step != planned:
        raise LabError(f"not the planned step {planned.order}; {holds}.")
    if record.run_id != run.run_id:
        raise LabError(f"belongs to another run, {record.run_id}.")
    if record.cell != run.plan.cells[planned.cell]:
        raise LabError("was measured with other settings than the plan says.")


def _why(error: LabError, path: Path) -> str:
    """Return the first of the findings in one line, without the path that they begin with."""
    first, *rest = [line.removeprefix(f"{path}: ") for line in str(error).splitlines()] or ["unreadable"]
    return f"{first} (and {len(rest)} more)" if rest else first


def _rows_of_record(run: Run, record: Record, rate_bit_s: float | None) -> list[Row]:
    reason, figures = evaluate(record)
    shared: Row = {
        "status": "failed" if reason is not None and record.status == "ok" else record.status,
        "started_at": record.started_at,
        "wall_s": record.wall_s,
        "overhead_s": record.overhead_s,
        **{f"negotiated.{key}": value for key, value in record.negotiated.items()},
    }
    shared[ALLOWANCE] = accounting.allowances(record)
    shared |= counted.columns(record.clocks)
    kept = pace(record.link)
    if kept is not None:
        shared |= dict(zip(LINK_SEEN, (kept.late_share, kept.dropped_queue), strict=True))
    if reason is not None:
        return [{**shared, "reason": " ".join(reason.split()) or "no reason was given"}]
    return [
        {
            **found.extra,
            **why.columns(run, record, found, rate_bit_s),
            **shared,
            **found.model_dump(exclude={"extra", "carried_bytes"}),
        }
        for found in figures
    ]


def _row_without_record(broken: str | None) -> Row:
    if broken is not None:
        return {"status": "failed", "reason": broken}
    return {"status": "aborted", "reason": "no record: the run ended before this repeat"}


def _run_columns(run: Run) -> Row:
    link = run.link.setting.resolved() if run.link.setting else {}
    return {
        **{name: link.get(name) for name in LINK_NUMBERS},
        "run_id": run.run_id,
        "lab": run.lab,
        "provider": run.provider,
        "region_pair": _regions(run),
        emulation.COLUMN: emulation.of_hosts(run.environment),
        "link_emulator": run.link.emulator,
        **dict(zip(LINK_MEASURED, (run.link.measured_rtt_ms, run.link.measured_goodput_bit_s), strict=True)),
        "git_commit": run.environment.get("controller", {}).get("git_commit"),
        **{
            f"{host}.{key}": value
            for host in ("server", "client")
            for key, value in run.environment.get(host, {}).items()
            if isinstance(value, str | int | float | bool)
        },
    }


def _regions(run: Run) -> str | None:
    """Return `us-east-1 eu-west-1`, server and client; None where they have none."""
    regions = [run.environment.get(host, {}).get("region") for host in ("server", "client")]
    return " ".join(map(str, regions)) if all(regions) else None


def _cell_columns(cell: Cell) -> Row:
    settings = json.dumps(cell.tunnel_settings, sort_keys=True)
    return {
        "tunnel": cell.tunnel,
        "variant": cell.variant,
        "settings_id": f"set-{hashlib.sha256(settings.encode()).hexdigest()[:8]}",
        "override": canonical(cell.override),
        "workload": cell.workload,
        "params": canonical(cell.params),
        "insecure": cell.insecure,
    }


def canonical(settings: Settings) -> str:
    """Return `key=value key=value` in the order of the keys, quoted as for a shell; empty when there is none."""
    shown = {key: value if isinstance(value, str) else json.dumps(value) for key, value in settings.items()}
    return " ".join(f"{key}={shlex.quote(shown[key])}" for key in sorted(shown))


def _table(rows: list[Row]) -> pd.DataFrame:
    """Return `rows` with columns in a fixed order and of the type of their values."""
    found = {column for row in rows for column in row} - set(FIXED)
    table = pd.DataFrame(rows, columns=[*FIXED, *sorted(found, key=_place)], dtype=object)
    return pd.DataFrame({column: _typed(table[column]) for column in table})


def _place(column: str) -> tuple[int, str]:
    group = (place for place, prefix in enumerate(PREFIXES, start=1) if column.startswith(prefix))
    return next(group, 0), column


def _typed(column: pd.Series[Any]) -> pd.Series[Any]:
    """Keep integers integers where values are missing; make numbers float64 else; leave the rest alone."""
    types = {type(value) for value in column.dropna()}
    if types == {int}:
        return column.astype("Int64")
    return column.astype("float64") if types and types <= {int, float} else column


def write(table: pd.DataFrame, path: Path) -> None:
    """Write `table` as CSV to `path` in one step (0644); numbers in plain digits that read back exactly."""
    with replacing(path) as draft:
        table.to_csv(draft, index=False, lineterminator="\n", float_format=_digits)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a file to write; it takes the place of `path` when all went well. A LabError when it cannot."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        draft = Path(temporary)
        try:
            yield draft
            draft.chmod(0o644)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise LabError(f"{path}: cannot be written: {error.strerror}. Use --output DIR.") from error


def _digits(value: object) -> str:
    return format(Decimal(str(value)), "f")
