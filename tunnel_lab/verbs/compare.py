"""`compare`: runs side by side, or cells of one run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import Any

from tunnel_lab import bundle, compare, show, tables, units
from tunnel_lab.compare import LABELS, METRIC, Compared, Comparison, Side
from tunnel_lab.errors import LabError
from tunnel_lab.verbs.common import LATEST, Verb, latest, print_json

MOST = 30
"""How many differences, and how many cells that are left out, are shown to people."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="WHAT",
        nargs="+",
        help="runs (a run directory, its name below results/, or a bundle), or cells of one run (an id, or a glob that "
        "matches one); the first is the base",
    )
    parser.add_argument(
        "--run",
        metavar="RUN_DIR",
        dest="run_dir",
        type=Path,
        help="the run, or the bundle, of which cells are compared (default: results/latest)",
    )
    parser.add_argument("--metric", metavar="COLUMN", default=METRIC, help=f"a column of runs.csv (default: {METRIC})")


def _run(arguments: argparse.Namespace) -> int:
    paths = [_run_of(each) for each in arguments.what]
    runs = [path for path in paths if path is not None]
    if runs and len(runs) < len(paths):
        cell = next(each for each, path in zip(arguments.what, paths, strict=True) if path is None)
        raise LabError(f"{cell}: is no run, the others are. Compare runs, or cells of one run (--run RUN_DIR).")
    if runs and arguments.run_dir:
        raise LabError("--run: says of which run cells are compared; runs are named one after the other.")
    with ExitStack() as opened:
        if runs:
            found = compare.of_runs([opened.enter_context(_side(path)) for path in runs], arguments.metric)
        else:
            side = opened.enter_context(_side(arguments.run_dir or latest()))
            found = compare.of_cells(side, arguments.what, arguments.metric)
    if arguments.format == "json":
        print_json(_plain(found))
    else:
        _show(found)
    return 0


def _run_of(name: str) -> Path | None:
    """Return where the run is that an argument names, or None when it names none and so must be a cell."""
    for path in (Path(name), LATEST.parent / name):
        if path.exists():
            return path
    if "/" in name or name.endswith(".gz"):
        return Path(name)
    if not set(name) & set(".*?["):
        raise LabError(f"{name}: no such run directory or bundle here or in {LATEST.parent}, and no cell's id.")
    return None


@contextmanager
def _side(path: Path) -> Iterator[Side]:
    with bundle.run_directory(path) as directory:
        runs, problems = tables.collect([directory])
        for problem in problems:
            print(problem.replace(str(directory), str(path)), file=sys.stderr)
        yield Side(tables.read_run(directory), runs)


def _plain(found: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON has it."""
    return {
        "metric": found.metric,
        "paired": found.paired,
        "compared": [{"label": label, "name": name} for label, name in found.names.items()],
        "rows": [
            {
                **{key: _number(value) for key, value in asdict(row).items() if key != "ratio"},
                "ratio": _number(row.ratio.median),
                "ratio_low": _number(row.ratio.low),
                "ratio_high": _number(row.ratio.high),
                "coverage": _number(row.ratio.coverage),
            }
            for row in found.rows
        ],
        "left_out": found.left_out,
        "different": {label: [asdict(each) for each in told] for label, told in found.different.items()},
    }


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and isnan(value) else value


def _show(found: Comparison) -> None:
    for label, name in found.names.items():
        print(f"{label}  {name}" + ("  (the base)" if label == LABELS[0] else ""))
    if not found.paired:
        for label, told in found.different.items():
            print(f"{label} differs from {LABELS[0]} in" if told else f"{label}: the same circumstances as {LABELS[0]}")
            _listed([str(each) for each in told])
    if found.rows:
        show.console().print(_block(found), "")
        print(_legend(found))
    if found.left_out:
        print("Not compared:")
        _listed(found.left_out)


def _block(found: Comparison) -> Any:
    unit = units.pretty(1.0, found.metric).partition(" ")[2]
    others = list(found.names)[1:]
    named = ["cell", "way"] if len(others) == 1 else ["cell", "way", "of"]
    second = others[0] if len(others) == 1 else "its"
    block = show.table(named, ["n", f"{LABELS[0]}\n{unit}", f"{second}\n{unit}", "ratio", "interval"], [""])
    for row in found.rows:
        labels = [row.cell, show.ARROWS[row.direction], row.label][: len(named)]
        n = f"{row.n_base}/{row.n}" if row.n_base != row.n else str(row.n)
        block.add_row(
            *labels, n, _digits(row.base, found.metric), _digits(row.value, found.metric), *_ratio(row), row.verdict
        )
    return block


def _digits(value: float, metric: str) -> str:
    return units.pretty(value, metric).partition(" ")[0]


def _ratio(row: Compared) -> tuple[str, str]:
    found = row.ratio
    interval = f"{found.low:.3g}-{found.high:.3g}" if found.known else ""
    return "" if isnan(found.median) else f"{found.median:.3f}", interval


def _legend(found: Comparison) -> str:
    what = "of the repeats of the same rounds" if found.paired else "of all pairs of repeats"
    lines = [
        f"{found.metric}, medians; ratio: to {LABELS[0]}, the median {what}, with its interval",
        f"{compare.NO_DIFFERENCE}: the interval holds 1. {compare.TOO_FEW}: there is no interval.",
    ]
    few = {(row.n_base, row.n): row.ratio.coverage for row in found.rows if row.ratio.known and not row.ratio.nominal}
    for (n_base, n), coverage in sorted(few.items()):
        shown = str(n) if n_base == n else f"{n_base}/{n}"
        lines.append(f"With n = {shown} an interval covers {coverage:.0%}, not 95 %.")
    return "\n".join(lines)


def _listed(lines: list[str]) -> None:
    for line in lines[:MOST]:
        print(f"  {line}")
    if len(lines) > MOST:
        print(f"  and {len(lines) - MOST} more; --format json has them all.")


VERB = Verb(
    summary="several runs, or several cells of one run, side by side",
    description="Compare every cell and direction that runs have in common, or cells of one run, with the first: "
    "medians, their ratio with its 95 % interval, and whether that shows a difference; and say in which circumstances "
    "(link, kernel, packages, sysctls, commit, choices) the runs differ. Runs count as independent samples, cells of "
    "one run as pairs that were measured in the same rounds.",
    arguments=_arguments,
    run=_run,
)
