"""What a lab has to remember between two commands: `aws.json` in its private directory."""

from __future__ import annotations

import math
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from tunnel_lab.errors import LabError
from tunnel_lab.manifests import Strict

FORMAT = "%Y-%m-%dT%H:%M:%SZ"


class Memory(Strict):
    """The regions in which the lab has ever made something, and when its hosts end."""

    regions: list[str]
    expires: str
    """ISO UTC. Fixed, so that a second run finds the tags as they should be."""


def path(home: Path) -> Path:
    """Return the file."""
    return home / "aws.json"


def read(home: Path) -> Memory | None:
    """Return what is remembered, None where nothing is; a LabError when the file cannot be read."""
    try:
        return Memory.model_validate_json(path(home).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ValidationError) as error:
        raise LabError(
            f"{path(home)}: cannot be read: {' '.join(str(error).split())[:200]}. Remove it and run "
            "playbooks/teardown.yml -e teardown_regions=all."
        ) from None


def remember(home: Path, regions: list[str], ttl_minutes: int, alive: bool) -> tuple[bool, Memory]:
    """Add `regions`; return (whether anything is new, what is remembered now).

    The end is that of the hosts that are `alive`; without any, or when it is past, it is `ttl_minutes` from now.
    """
    old = read(home)
    keeps = old is not None and alive and minutes_left(old.expires) > 0
    later = datetime.now(UTC) + timedelta(minutes=ttl_minutes)
    new = Memory(
        regions=sorted({*(old.regions if old else []), *regions}),
        expires=old.expires if old and keeps else later.strftime(FORMAT),
    )
    if new != old:
        draft = path(home).with_suffix(".new")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(new.model_dump_json(indent=1) + "\n")
        draft.replace(path(home))
    return new != old, new


def minutes_left(expires: str) -> int:
    """Return the minutes until then, rounded up; 0 and less when it is past."""
    end = datetime.strptime(expires, FORMAT).replace(tzinfo=UTC)
    return math.ceil((end - datetime.now(UTC)).total_seconds() / 60)
