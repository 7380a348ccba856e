"""python -m tunnel_lab.vm up|down|watch --home DIR: JSON on stdout, one line on stderr when something is wrong."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tunnel_lab.errors import LabError, from_validation
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
    try:
        if args.verb == "up":
            changed, state = manage.up(VmSpec.model_validate_json(args.spec), args.home)
            answer: dict[str, Any] = {"changed": changed, "pid": state.pid, "environment": state.environment}
        elif args.verb == "watch":
            watch.watch(args.home, {host: Path(path) for host, path in args.sockets.items()})
        else:
            answer = {"changed": manage.down(args.host, args.home)}
    except ValidationError as error:
        print(from_validation("vm_ variables", error), file=sys.stderr)
        return 1
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
