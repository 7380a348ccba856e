"""The command line: `collect.py VERB ...`. Exit status 0: all is well, 1: it is not, 2: bad input."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tunnel_lab import manifests, show, socketview, summary, tables, timeseries
from tunnel_lab.errors import LabError

LATEST = manifests.ROOT / "results" / "latest"


class Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Print `message` and end with status 2."""
        self.exit(2, f"{self.prog}: {message}. See {self.prog} --help\n")


@dataclass(frozen=True)
class Verb:
    """One thing that collect.py can do."""

    summary: str
    description: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    """Returns the exit status; raises LabError for bad input."""


def _collect_arguments(parser: argparse.ArgumentParser) -> None:
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
        help="where the CSV files go (default: into RUN_DIR); needed when there are several",
    )


def _latest() -> Path:
    if not LATEST.is_dir():
        raise LabError(f"{LATEST}: there is no run yet. Run the lab first, or name a directory of a run.")
    return LATEST


def _collect(arguments: argparse.Namespace) -> int:
    run_dirs: list[Path] = arguments.run_dir or [_latest()]
    if len(run_dirs) > 1 and arguments.output is None:
        raise LabError("several run directories: say with --output DIR where their tables go.")
    output: Path = arguments.output or run_dirs[0]
    runs, problems = tables.collect(run_dirs)
    for problem in problems:
        print(problem, file=sys.stderr)
    summed = summary.summarise(runs)
    tables.write(runs, output / "runs.csv")
    tables.write(summed, output / "summary.csv")
    records = (record for run_dir in run_dirs for record in tables.records(run_dir, tables.read_run(run_dir)))
    timeseries.write(records, output / "timeseries.csv.gz")
    show.summary(summed)
    show.why(summed)
    show.own_figures(summed, manifests.load().workloads)
    show.drift(runs)
    show.failures(runs)
    print(*(output / name for name in ("runs.csv", "summary.csv", "timeseries.csv.gz")), sep="\n")
    return 0 if (runs["status"] == "ok").all() else 1


def _sockets_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cell", metavar="CELL", help="a cell's id, tunnel.variant.workload")
    parser.add_argument(
        "--run",
        metavar="RUN_DIR",
        dest="run_dir",
        type=Path,
        help="directory of the run, results/<run_id> (default: results/latest)",
    )
    parser.add_argument("--repeat", metavar="N", type=int, help="which repeat (default: the first good one)")
    parser.add_argument(
        "--when", choices=socketview.WHEN, help="only one moment (default: before the transfer, and in its middle)"
    )


def _sockets(arguments: argparse.Namespace) -> int:
    run_dir = arguments.run_dir or _latest()
    record = socketview.record_of(run_dir, arguments.cell, arguments.repeat)
    socketview.show_sockets(record, [arguments.when] if arguments.when else ["before", "during"])
    return 0


VERBS = {
    "collect": Verb(
        summary="raw records to runs.csv, summary.csv and timeseries.csv.gz",
        description="Read run.json and raw/*.json of each RUN_DIR, parse them again, and write runs.csv (a row "
        "per repeat and direction), summary.csv (a row per cell and direction) and timeseries.csv.gz (what both "
        "hosts did meanwhile). No host is needed, and the "
        "records are not changed. Exit status: 0 when every planned repeat has a good record, 1 when not, "
        "2 for bad input.",
        arguments=_collect_arguments,
        run=_collect,
    ),
    "sockets": Verb(
        summary="the sockets of a tunnel and its workload on both hosts",
        description="Show the listening and connected sockets of the tunnel's and the workload's processes on both "
        "hosts, before a transfer, in its middle, or after it, as `ss` showed them: who is connected to whom, how much "
        "waits, how large the windows and buffers are, and which of them is full.",
        arguments=_sockets_arguments,
        run=_sockets,
    ),
}
"""Every verb of collect.py. A new one is an entry here."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = Parser(prog="collect.py", description="Turn the raw records of the lab's runs into results.")
    verbs = top.add_subparsers(metavar="VERB", required=True, title="verbs")
    for name, verb in VERBS.items():
        sub = verbs.add_parser(name, help=verb.summary, description=verb.description)
        verb.arguments(sub)
        sub.set_defaults(run=verb.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 has no arrows
    arguments = parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except LabError as error:
        print(f"collect.py: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status
