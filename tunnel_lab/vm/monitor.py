"""What QEMU says of a running machine, over its QMP socket."""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path
from typing import Any

from tunnel_lab.errors import LabError

TIMEOUT_S = 10
CAUGHT_UP_MS = 100
"""A repeat begins when no counted CPU is further behind."""
CATCH_UP_S = 60
LATE = re.compile(r"Host - Guest clock\s+(-?\d+) ms")


def ask(path: Path, command: str, **arguments: Any) -> Any:
    """Return the answer to one QMP command; a LabError when there is none."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(TIMEOUT_S)
            connection.connect(str(path))
            with connection.makefile("rw", encoding="utf-8") as stream:
                _answer(stream)  # its greeting
                for request in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
                    stream.write(json.dumps(request) + "\n")
                    stream.flush()
                    said = _answer(stream)
                return said["return"]
    except (OSError, ValueError, LookupError) as error:
        raise LabError(f"{path}: QEMU does not answer: {error}") from None


def _answer(stream: Any) -> dict[str, Any]:
    """Return the next message that is no event."""
    while True:
        line = stream.readline()
        if not line:
            raise ValueError("the machine has ended")
        said: dict[str, Any] = json.loads(line)
        if "event" not in said:
            return said


def lateness_ms(path: Path) -> float:
    """Return by how much a machine that counts instructions is behind the host's clock."""
    text = ask(path, "human-monitor-command", **{"command-line": "info jit"})
    if not (found := LATE.search(text)):
        raise LabError(f"{path}: QEMU says nothing of its clock, `info jit`: {' '.join(text.split())[:200]}")
    return float(found[1])


def lateness(paths: dict[str, Path]) -> dict[str, dict[str, float]]:
    """Return {host: {at_s: this machine's monotonic clock, lateness_ms}}."""
    return {host: {"at_s": time.monotonic(), "lateness_ms": lateness_ms(path)} for host, path in paths.items()}


def caught_up(paths: dict[str, Path]) -> dict[str, dict[str, float]]:
    """Return the same as soon as no machine is far behind, or after CATCH_UP_S; then the gate says what was wrong."""
    end = time.monotonic() + CATCH_UP_S
    while True:
        found = lateness(paths)
        if all(each["lateness_ms"] <= CAUGHT_UP_MS for each in found.values()) or time.monotonic() > end:
            return found
        time.sleep(0.2)
