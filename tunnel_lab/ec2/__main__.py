"""python -m tunnel_lab.ec2 VERB --option VALUE ...: the lab at EC2, for roles and playbooks.

Prints JSON, a line each: {"say": TEXT} for what goes on, and at the end the answer. When something is wrong it is one
line or more on stderr, and exit status 2. Values of options that are mappings or lists are JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tunnel_lab.ec2 import api, cost, labs, memory, origin, tags, userdata
from tunnel_lab.ec2.destroy import destroy
from tunnel_lab.ec2.launch import launch
from tunnel_lab.ec2.preflight import preflight
from tunnel_lab.ec2.rules import peer_rules
from tunnel_lab.errors import LabError

_ONE_AT_A_TIME = threading.Lock()


def say(text: str) -> None:
    """Tell what goes on, at once and in one piece: regions are at work side by side."""
    with _ONE_AT_A_TIME:
        print(json.dumps({"say": text}), flush=True)


def _cost(args: argparse.Namespace) -> dict[str, Any]:
    return cost.bound(args.hosts, args.ttl_minutes, args.transfer)


def _preflight(args: argparse.Namespace) -> dict[str, Any]:
    return preflight(args.lab, args.hosts, args.key.with_suffix(".pub"), args.home)


def _begin(args: argparse.Namespace) -> dict[str, Any]:
    """Remember where the lab is going to be, before the first resource is made there."""
    regions = [each["aws_region"] for each in args.hosts.values()]
    operators = {host: origin.cidr(each["aws_operator_cidr"]) for host, each in args.hosts.items()}
    changed, memorized = memory.remember(args.home, regions, args.ttl_minutes, args.alive)
    return {
        "changed": changed,
        "tags": {host: tags.of(args.lab, memorized.expires, host) for host in args.hosts},
        "key_pair": tags.name(args.lab),
        "operators": operators,
        "peer_rules": peer_rules(args.ports),
    }


def _launch(args: argparse.Namespace) -> dict[str, Any]:
    minutes = max(1, memory.minutes_left(args.request["expires"]))
    request = {**args.request, "user_data": userdata.user_data(minutes, args.key)}
    return launch(args.lab, args.host, args.hosts[args.host], request)


def _destroy(args: argparse.Namespace) -> dict[str, Any]:
    remembered = memory.read(args.home)
    regions = {*(remembered.regions if remembered else []), *labs.chosen(args.regions, args.hosts)}
    if not regions:
        say("No region is known in which the lab could have anything: -e teardown_regions=all looks at all of them.")
        return {"changed": False, "removed": []}
    api.identity(api.BASE.get(api.partition(min(regions)), min(regions)))
    removed = destroy(args.lab, regions, say)
    return {"changed": bool(removed), "removed": [item._asdict() for item in removed]}


def _labs(args: argparse.Namespace) -> dict[str, Any]:
    regions = labs.chosen(args.regions, args.hosts)
    if not regions:
        raise LabError("no region to look in: choose an inventory that names some with -i, or -e labs_regions=all.")
    return {"changed": False, "shown": labs.shown(labs.find(regions), regions)}


VERBS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "cost": _cost,
    "preflight": _preflight,
    "begin": _begin,
    "launch": _launch,
    "destroy": _destroy,
    "labs": _labs,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tunnel_lab.ec2", description=__doc__)
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("--lab", default="", help="the lab's name")
    parser.add_argument("--home", type=Path, help="the lab's private directory")
    parser.add_argument("--hosts", type=json.loads, default={}, help="{host: its aws_* variables}")
    parser.add_argument("--host", default="", help="launch: which of them")
    parser.add_argument("--key", type=Path, help="preflight: the key for managing the hosts; launch: their own")
    parser.add_argument("--ttl-minutes", type=int, default=0)
    parser.add_argument("--transfer", type=json.loads, default={}, help="cost: {bytes, seconds}")
    parser.add_argument("--ports", type=json.loads, default=[], help="begin: what the hosts must reach of each other")
    parser.add_argument("--alive", type=json.loads, default=False, help="begin: whether any host is there")
    parser.add_argument("--request", type=json.loads, default={}, help="launch: see tunnel_lab/ec2/launch.py")
    parser.add_argument("--regions", default="", help="destroy, labs: `all`, or names with commas between them")
    return parser


def main() -> int:
    """Exit status 0, or 2 with the reason on stderr."""
    args = _parser().parse_args()
    try:
        answer = VERBS[args.verb](args)
    except LabError as error:
        print(error, file=sys.stderr)
        return 2
    except api.ERRORS as error:
        print(f"AWS: {api.said(error)}", file=sys.stderr)
        return 2
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
