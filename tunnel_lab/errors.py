"""One kind of error for everything a user can get wrong or the lab cannot do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError


class LabError(Exception):
    """A message for the user: what is wrong, where, what was expected, what to do."""


def closest(name: str, known: Iterable[str]) -> str:
    """Return ' Did you mean X?' or an empty string, then the known names as one sentence."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return f"{hint} Known: {', '.join(known) or 'none'}."


def from_validation(where: str, error: ValidationError) -> LabError:
    """Turn pydantic's findings into one line each: file or variable, key, what was expected, what came."""
    lines = []
    for item in error.errors():
        key = ".".join(str(part) for part in item["loc"]) or "(the whole)"
        lines.append(f"{where}: {key}: {_said(item['msg'], item.get('input'))}")
    return LabError("\n".join(lines))


def _said(message: str, value: Any) -> str:
    message = message.removeprefix("Value error, ")
    if isinstance(value, str | int | float | bool):
        return f"{message} (got {value!r})"
    return message
