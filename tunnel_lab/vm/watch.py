"""Look all through a repeat how far counted CPUs are behind: a process of its own, `python -m tunnel_lab.vm watch`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

from tunnel_lab.errors import LabError
from tunnel_lab.processes import end
from tunnel_lab.vm import monitor

PERIOD_S = 0.25
FIRST_LOOK_S = 10


def start(home: Path, paths: dict[str, Path]) -> None:
    """Begin to watch machines, {host: its QMP socket}; return once each has been looked at."""
    stop(home)
    command = [sys.executable, "-m", "tunnel_lab.vm", "watch", "--home", str(home), "--sockets"]
    command.append(json.dumps({host: str(path) for host, path in paths.items()}))
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)
    _pid(home).write_text(str(process.pid))
    until = time.monotonic() + FIRST_LOOK_S
    while not _report(home).exists():
        if process.poll() is not None or time.monotonic() > until:
            raise LabError("the clocks of counted CPUs cannot be watched: QEMU does not answer")
        time.sleep(0.02)


def stop(home: Path) -> dict[str, float]:
    """End that; return {host: the most that it was behind, in ms}, nothing where nobody watched."""
    end(_pid(home), "tunnel_lab.vm", wait_s=2)
    try:
        worst: dict[str, float] = json.loads(_report(home).read_text())
    except (OSError, ValueError):
        worst = {}
    for path in (_pid(home), _report(home)):
        path.unlink(missing_ok=True)
    return worst


def watch(home: Path, paths: dict[str, Path]) -> NoReturn:
    """Keep what `stop` returns up to date, until this process or a machine ends (a LabError)."""
    worst: dict[str, float] = {}
    draft = _report(home).with_suffix(".new")
    while True:
        for host, path in paths.items():
            found = monitor.lateness_ms(path)
            worst[host] = max(worst.get(host, found), found)
        draft.write_text(json.dumps(worst))
        draft.replace(_report(home))
        time.sleep(PERIOD_S)


def _pid(home: Path) -> Path:
    return home / "vm" / "watch.pid"


def _report(home: Path) -> Path:
    return home / "vm" / "watch.json"
