"""Hosts whose CPU is emulated: which figures of them say something of real machines."""

from __future__ import annotations

from typing import Any

from tunnel_lab.overhead import COUNTED as OVERHEAD

COLUMN = "cpu_emulation"
"""Of a host's environment and of the table of runs; None where a CPU runs the programs itself."""
FREE_RUNNING, COUNTED = "free-running", "counted"
"""As fast as the emulator happens to be; so many instructions in a second of the guest."""
KEPT = (OVERHEAD, f"{OVERHEAD}_predicted")
"""What is the same on any CPU."""
WITHHELD = "the hosts' CPU is emulated and runs as fast as the emulator happens to be: no verdict on speed or CPU"


def of_hosts(environment: dict[str, Any]) -> str | None:
    """Return how the CPUs of a run's hosts are emulated, that of which least can be said; None: not at all."""
    found = {environment.get(host, {}).get(COLUMN) for host in ("server", "client")}
    return next((kind for kind in (FREE_RUNNING, COUNTED) if kind in found), None)


def is_withheld(emulation: Any, metric: str) -> bool:
    """Return whether nothing is to be concluded from `metric` on hosts so emulated."""
    return bool(emulation == FREE_RUNNING and metric not in KEPT)
