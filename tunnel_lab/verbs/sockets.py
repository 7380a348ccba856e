"""`sockets`: who was connected to whom."""

from __future__ import annotations

import argparse
from pathlib import Path

from tunnel_lab import socketview
from tunnel_lab.verbs.common import Verb, latest, print_json


def _arguments(parser: argparse.ArgumentParser) -> None:
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


def _run(arguments: argparse.Namespace) -> int:
    run_dir = arguments.run_dir or latest()
    record = socketview.record_of(run_dir, arguments.cell, arguments.repeat)
    moments = [arguments.when] if arguments.when else ["before", "during"]
    if arguments.format == "json":
        hosts = socketview.HOSTS
        print_json([socketview.described(record, host, when) for when in moments for host in hosts])
    else:
        socketview.show_sockets(record, moments)
    return 0


VERB = Verb(
    summary="the sockets of a tunnel and its workload on both hosts",
    description="Show the listening and connected sockets of the tunnel's and the workload's processes on both "
    "hosts, before a transfer, in its middle, or after it, as `ss` showed them: who is connected to whom, how much "
    "waits, how large the windows and buffers are, and which of them is full.",
    arguments=_arguments,
    run=_run,
)
