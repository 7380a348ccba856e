"""Hosts that are there already: two of Debian 12, made by the local inventory under another name."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from playbooks import run

OWNER = "owner"
LINK = {"rtt_ms": 80, "rate_mbit": 40}
"""What the owner has between them; the lab that uses the hosts is not told."""


def play(*arguments: str, **choices: Any) -> subprocess.CompletedProcess[str]:
    """Run ansible-playbook with these arguments and `lab_*` variables."""
    return run(*arguments, timeout=900, **choices)


def make(playbook: str) -> None:
    """Make or remove the hosts, as their owner."""
    made = play(f"playbooks/{playbook}.yml", name=OWNER, image={"suite": "bookworm"}, link=LINK)
    assert made.returncode == 0, made.stdout + made.stderr


def on(host: str, *command: str) -> str:
    """Return what a command prints on one of the hosts."""
    argv = ["podman", "exec", f"tunnellab-{OWNER}-{host}", *command]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture(scope="session", autouse=True)
def hosts() -> Iterator[None]:
    """Make the hosts; remove them whatever happens."""
    try:
        make("provision")
        yield
    finally:
        make("teardown")
