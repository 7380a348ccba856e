"""What the programs that roles call have in common: JSON on stdout, or what is wrong on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from tunnel_lab.errors import LabError, from_validation


def answer(settings: str, act: Callable[[], Mapping[str, Any]]) -> int:
    """Print what `act` returns; return exit status 0, or 1 with the reason said; `settings` names its input."""
    try:
        found = act()
    except ValidationError as error:
        print(from_validation(settings, error), file=sys.stderr)
        return 1
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(found, default=str))
    return 0
