"""python -m tunnel_lab.link up|down|show --home DIR: JSON on stdout, one line on stderr when something is wrong."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pydantic import ValidationError

from tunnel_lab.errors import LabError, from_validation
from tunnel_lab.link import manage
from tunnel_lab.link.spec import LinkSpec


def main() -> int:
    """Exit status 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m tunnel_lab.link", description=__doc__)
    parser.add_argument("verb", choices=["up", "down", "show"])
    parser.add_argument("--home", type=Path, required=True, help="the lab's private directory")
    parser.add_argument("--spec", help="up: the link as JSON, see tunnel_lab/link/spec.py")
    args = parser.parse_args()
    try:
        if args.verb == "up":
            changed, state = manage.up(LinkSpec.model_validate_json(args.spec or "{}"), args.home)
            answer: dict[str, object] = {"changed": changed, "emulator": state.emulator}
        elif args.verb == "down":
            answer = {"changed": manage.down(args.home)}
        else:
            answer = manage.statistics(args.home)
    except ValidationError as error:
        print(from_validation("lab_link", error), file=sys.stderr)
        return 1
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(answer, default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())
