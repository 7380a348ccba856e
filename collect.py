#!/usr/bin/env python3
"""Turn the raw records of a run into tables. `collect.py --help` lists what it can do."""

import sys

try:
    from tunnel_lab.cli import main
except ImportError as error:
    print(
        f"collect.py: {error}. It needs Python 3.11 or later with the packages of requirements.txt: "
        f"run it with the project's own environment.",
        file=sys.stderr,
    )
    sys.exit(2)

if __name__ == "__main__":
    sys.exit(main())
