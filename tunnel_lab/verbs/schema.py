"""`schema`: the JSON Schema of what the lab stores."""

from __future__ import annotations

import argparse

from tunnel_lab import schema
from tunnel_lab.verbs.common import Verb


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", choices=[*schema.MODELS], help="of which document: record or run")


def _run(arguments: argparse.Namespace) -> int:
    print(schema.text(arguments.name), end="")
    return 0


VERB = Verb(
    summary="the JSON Schema of a record or of run.json",
    description="Print the JSON Schema of raw/*.json (record) or run.json (run), as this program writes them. "
    "docs/schema/ holds the same.",
    arguments=_arguments,
    run=_run,
)
