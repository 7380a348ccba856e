"""Running ip, tc and ethtool, here and in a namespace."""

from __future__ import annotations

import subprocess
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
