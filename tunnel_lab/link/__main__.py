"""python -m tunnel_lab.link up|down|show --home DIR: JSON on stdout, one line on stderr when something is wrong."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tunnel_lab.answer import answer
from tunnel_lab.link import manage
from tunnel_lab.link.spec import LinkSpec


def main() -> int:
    """Exit status 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m tunnel_lab.link", description=__doc__)
    parser.add_argument("verb", choices=["up", "down", "show"])
    parser.add_argument("--home", type=Path, required=True, help="the lab's private directory")
    parser.add_argument("--spec", help="up: the link as JSON, see tunnel_lab/link/spec.py")
    args = parser.parse_args()

    def act() -> Mapping[str, Any]:
        if args.verb == "up":
            changed, state = manage.up(LinkSpec.model_validate_json(args.spec or "{}"), args.home)
            return {"changed": changed, "emulator": state.emulator}
        if args.verb == "down":
            return {"changed": manage.down(args.home)}
        return manage.statistics(args.home)

    return answer("lab_link", act)


if __name__ == "__main__":
    sys.exit(main())
