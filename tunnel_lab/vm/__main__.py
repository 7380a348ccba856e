"""python -m tunnel_lab.vm up|down|watch --home DIR: JSON on stdout, one line on stderr when something is wrong."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tunnel_lab.answer import answer
from tunnel_lab.vm import manage, watch
from tunnel_lab.vm.spec import VmSpec


def main() -> int:
    """Exit status 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m tunnel_lab.vm", description=__doc__)
    parser.add_argument("verb", choices=["up", "down", "watch"])
    parser.add_argument("--home", type=Path, required=True, help="the lab's private directory")
    parser.add_argument("--spec", default="{}", help="up: the machine as JSON, see tunnel_lab/vm/spec.py")
    parser.add_argument("--host", help="down: which machine")
    parser.add_argument("--sockets", type=json.loads, default={}, help="watch: {host: its QMP socket}")
    args = parser.parse_args()

    def act() -> dict[str, Any]:
        if args.verb == "up":
            changed, state = manage.up(VmSpec.model_validate_json(args.spec), args.home)
            return {"changed": changed, "pid": manage.pid(state.spec.host, args.home), "environment": state.environment}
        if args.verb == "watch":
            watch.watch(args.home, {host: Path(path) for host, path in args.sockets.items()})
        return {"changed": manage.down(args.host, args.home)}

    return answer("vm_ variables", act)


if __name__ == "__main__":
    sys.exit(main())
