"""`collect`: raw records to tables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tunnel_lab import manifests, outcome, show, verdictview
from tunnel_lab.verbs.common import Verb, add_run_dirs, print_json, rows, run_dirs


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_run_dirs(parser, "files go")


def _run(arguments: argparse.Namespace) -> int:
    directories, output = run_dirs(arguments)
    found = outcome.make(directories)
    for problem in found.problems:
        print(problem, file=sys.stderr)
    files = outcome.write(found, output)
    if arguments.format == "json":
        print_json(
            {
                **{Path(name).stem: rows(table) for name, table in found.tables.items()},
                "complete": found.complete,
                "files": [str(path) for path in files],
            }
        )
    else:
        _show(found)
        print(*files, sep="\n")
    return 2 if found.problems else 0 if found.complete else 1


def _show(found: outcome.Outcome) -> None:
    show.summary(found.summary)
    show.why(found.summary)
    show.own_figures(found.summary, manifests.load().workloads)
    show.drift(found.runs)
    show.cautions(found.summary)
    show.failures(found.runs)
    print()
    verdictview.show_verdicts(found.claims, found.sources)


VERB = Verb(
    summary="raw records to tables, verdicts on published figures, and a report",
    description="Read run.json and raw/*.json of each RUN_DIR, parse them again, and write runs.csv (a row per repeat "
    "and direction), summary.csv (a row per cell and direction), claims.csv (a verdict on each published figure of "
    "claims/), timeseries.csv.gz (what both hosts did meanwhile), report.html and report.md. No host is needed, and "
    "the records are not changed. Exit status: 0 when every planned repeat that the hosts could make has a good "
    "record, 1 when not, 2 for bad input; what can be read of a run is written all the same.",
    arguments=_arguments,
    run=_run,
)
