"""`report`: the records of one run or several as a page to read."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tunnel_lab import outcome, report
from tunnel_lab.errors import LabError
from tunnel_lab.verbs.common import Verb, latest, print_json


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run_dir",
        metavar="RUN_DIR",
        nargs="*",
        type=Path,
        help="directory of a run, results/<run_id>; several are merged (default: results/latest)",
    )
    parser.add_argument(
        "--series",
        metavar="CELL[:REPEAT]",
        help="whose time series is shown (default: the cell of the first published figure that has a verdict, else the "
        "slowest cell; the repeat nearest to its median)",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        help="where the report goes (default: into RUN_DIR); needed when there are several",
    )


def _run(arguments: argparse.Namespace) -> int:
    run_dirs: list[Path] = arguments.run_dir or [latest()]
    if len(run_dirs) > 1 and arguments.output is None:
        raise LabError("several run directories: say with --output DIR where their report goes.")
    found = outcome.make(run_dirs)
    for problem in found.problems:
        print(problem, file=sys.stderr)
    inputs = report.Inputs(
        run_dirs=found.run_dirs,
        runs=found.runs,
        summary=found.summary,
        claims=found.claims,
        sources=found.sources,
        series=arguments.series,
    )
    paths = report.write(inputs, arguments.output or run_dirs[0])
    if arguments.format == "json":
        print_json({"files": [str(path) for path in paths]})
    else:
        print(*paths, sep="\n")
    return 2 if found.problems else 0


VERB = Verb(
    summary="report.html and report.md: verdicts, figures, circumstances, commands",
    description="Read the records of each RUN_DIR again, judge them, and write report.html (one file, for any browser, "
    "without a network) and report.md (the same as text). No host is needed, and nothing else is changed. Exit status: "
    "0, or 2 for bad input; what can be read is in the report all the same.",
    arguments=_arguments,
    run=_run,
)
