"""The project's own playbooks against the stand-in for AWS, and what they leave there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from playbooks import ROOT, command, environment
from tunnel_lab.ec2 import api, kinds

REGIONS = {"server": "us-east-1", "client": "eu-west-1"}
LAB = "awstest"
HOME = ROOT / ".lab" / LAB
INVENTORY = ("-i", "inventories/aws", "-i", "tests/aws/inventory")
YES = ("-e", "lab_confirm_cost=yes")


@contextmanager
def started(name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start one of the playbooks in a process group of its own; none of it outlives the block."""
    with subprocess.Popen(
        command(*INVENTORY, f"{name}.yml", *arguments),
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def play(name: str, *arguments: str) -> tuple[int, str]:
    """Run one of the playbooks to its end; return its status and what it printed."""
    with started(name, *arguments) as process:
        printed, _ = process.communicate(timeout=300)
    return process.returncode, printed


def made() -> dict[str, dict[str, int]]:
    """Return {region: {kind: how many}} of everything that any lab has."""
    counts = {}
    for region in REGIONS.values():
        client = api.client(region)
        counts[region] = {kind.name: len(found) for kind in kinds.KINDS if (found := kind.find(client, None))}
    return counts


def forget() -> None:
    """Remove what this machine knows of the lab."""
    if HOME.exists():
        shutil.rmtree(HOME)
    (ROOT / ".lab" / f"{LAB}.lock").unlink(missing_ok=True)
