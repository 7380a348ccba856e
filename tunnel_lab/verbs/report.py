"""`report`: the records of one run or several as a page to read."""

from __future__ import annotations

import argparse
import sys

from tunnel_lab import outcome
from tunnel_lab.verbs.common import Verb, add_run_dirs, print_json, run_dirs


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_run_dirs(parser, "report goes")
    parser.add_argument(
        "--series",
        metavar="CELL[:REPEAT]",
        help="whose time series is shown (default: the cell of the first published figure that has a verdict, else the "
        "slowest cell; the repeat nearest to its median)",
    )


def _run(arguments: argparse.Namespace) -> int:
    directories, output = run_dirs(arguments)
    found = outcome.make(directories)
    for problem in found.problems:
        print(problem, file=sys.stderr)
    paths = outcome.write_report(found, output, arguments.series)
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
