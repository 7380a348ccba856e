#!/usr/bin/env python3
"""Turn the raw records of a run into tables. `./collect.py --help` lists what it can do."""

import os
import sys
from pathlib import Path

OWN = Path(__file__).resolve().parent / ".venv" / "bin" / "python"

try:
    from tunnel_lab.cli import main
except ImportError as error:
    if OWN.exists() and Path(sys.prefix) != OWN.parent.parent:
        os.execv(OWN, [str(OWN), __file__, *sys.argv[1:]])  # called by another Python than the project's own
    print(f"collect.py: {error}. Run ./setup.sh, it installs what the lab needs.", file=sys.stderr)
    sys.exit(2)

if __name__ == "__main__":
    sys.exit(main())
