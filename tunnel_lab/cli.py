"""The command line: `collect.py VERB ...`. Exit status 0: all is well, 1: it is not, 2: bad input."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from tunnel_lab.errors import LabError
from tunnel_lab.verbs import bundle, collect, compare, report, schema, sockets, verify

VERBS = {
    "collect": collect.VERB,
    "sockets": sockets.VERB,
    "compare": compare.VERB,
    "bundle": bundle.VERB,
    "verify": verify.VERB,
    "schema": schema.VERB,
    "report": report.VERB,
}
"""Every verb of collect.py. A new one is a module in verbs/ and a line here."""


class Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Print `message` and end with status 2."""
        self.exit(2, f"{self.prog}: {message}. See {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = Parser(prog="collect.py", description="Turn the raw records of the lab's runs into results.")
    verbs = top.add_subparsers(metavar="VERB", required=True, title="verbs")
    for name, verb in VERBS.items():
        sub = verbs.add_parser(name, help=verb.summary, description=verb.description)
        verb.arguments(sub)
        sub.add_argument("--format", choices=["text", "json"], default="text", help="for people, or for programs")
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
