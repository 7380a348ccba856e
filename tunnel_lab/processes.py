"""Running programs, here and in a network namespace, and ending those that go on by themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from tunnel_lab.errors import LabError


def attempt(argv: list[str], netns: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command (in `netns`), whatever it returns; LabError when it is not installed or hangs."""
    full = ["nsenter", f"--net={netns}", "--", *argv] if netns else argv
    try:
        return subprocess.run(full, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"{' '.join(full)}: {error}") from error


def run(argv: list[str], netns: Path | None = None) -> str:
    """Run a command that must succeed; return what it printed. LabError with its own words otherwise."""
    done = attempt(argv, netns)
    if done.returncode != 0:
        raise LabError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def living(pid_file: Path, word: str) -> int | None:
    """Return the pid that a file holds while that is a process with `word` on its command line, else None.

    After a crash the number may have become another process's.
    """
    try:
        pid = int(pid_file.read_text())
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if word.encode() in argv else None


def end(pid_file: Path, word: str, wait_s: float) -> bool:
    """Ask such a process to end; return whether it is gone within `wait_s`."""
    pid = living(pid_file, word)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + wait_s
    while living(pid_file, word) is not None:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
