"""`bundle`: a run as one file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tunnel_lab import bundle
from tunnel_lab.verbs.common import Verb, latest, print_json


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run_dir",
        metavar="RUN_DIR",
        nargs="?",
        type=Path,
        help="directory of a run, results/<run_id> (default: results/latest)",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help=f"the file to make, which must not exist (default: <run_id>{bundle.SUFFIX} beside the run directory)",
    )


def _run(arguments: argparse.Namespace) -> int:
    made = bundle.make(arguments.run_dir or latest(), arguments.output)
    for warning in made.warnings:
        print(warning, file=sys.stderr)
    size = made.path.stat().st_size
    if arguments.format == "json":
        print_json({"path": str(made.path), "files": made.members, "bytes": size, "warnings": made.warnings})
    else:
        print(f"{made.members} files, {size / 1e6:.1f} MB; RERUN.md in it says how to verify, rerun and compare it")
        print(made.path)
    return 0


VERB = Verb(
    summary="one archive with all that a run is, to publish or to keep",
    description="Pack a run with its records, tables and report, the tunnels' configuration files, the choices and the "
    "claims into one archive with a hash of every file. Tables and report are made anew for it; files that are "
    "not the lab's, links, and secrets are not put in. The same run gives the same bytes.",
    arguments=_arguments,
    run=_run,
)
