"""`verify`: whether a bundle is what it says."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from tunnel_lab import verification
from tunnel_lab.outcome import TABLES
from tunnel_lab.verbs.common import Verb, print_json
from tunnel_lab.verification import Verdict

MOST = 10
"""How many differences, and how many notes, are shown to people."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", metavar="BUNDLE", type=Path, help="a file that `bundle` made")


def _run(arguments: argparse.Namespace) -> int:
    found = verification.verify(arguments.bundle)
    if arguments.format == "json":
        print_json({"verified": not found.differences, **asdict(found)})
    else:
        _show(found)
    return 1 if found.differences else 0


def _show(found: Verdict) -> None:
    for each in (found.notes, found.differences):
        print(*each[:MOST], sep="\n", end="\n" if each else "")
        if len(each) > MOST:
            print(f"and {len(each) - MOST} more; --format json has them all")
    if found.differences:
        number = len(found.differences)
        print(f"NOT verified: {found.run_id}: {number} difference{'s' if number > 1 else ''}")
    else:
        counted = f"{found.records} records, {found.figures} figures in {len(TABLES)} tables"
        print(f"verified: {counted} are what the records say")


VERB = Verb(
    summary="whether a bundle was changed, and whether its figures are what its records say",
    description="Unpack a bundle into a temporary directory, check the hash of every file, make tables, time series "
    "and report again from the records, and compare. Exit status: 0 when all is as it should be, 1 when not, 2 when "
    "it is no bundle that can be read.",
    arguments=_arguments,
    run=_run,
)
