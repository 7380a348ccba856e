"""Hosts whose CPU is emulated: which figures of them say something of real machines."""

from __future__ import annotations

from typing import Any

from tunnel_lab.overhead import COUNTED as OVERHEAD

COLUMN = "cpu_emulation"
"""Of a host's environment and of the table of runs; None where a CPU runs the programs itself."""
FREE_RUNNING = "free-running"
"""As fast as the emulator happens to be."""
COUNTED = "counted {mips:g} MIPS"
"""So many instructions in a second of the host's own clock, which keeps pace with time (tunnel_lab/counted.py)."""
KEPT = (OVERHEAD, f"{OVERHEAD}_predicted")
"""What is the same on any CPU."""
WITHHELD = "the hosts' CPU is emulated and runs as fast as the emulator happens to be: no verdict on speed or CPU"


def of_hosts(environment: dict[str, Any]) -> str | None:
    """Return how the CPUs of a run's hosts are emulated, each host's where they differ; None: not at all."""
    found = {host: environment.get(host, {}).get(COLUMN) for host in ("server", "client")}
    kinds = set(found.values())
    if len(kinds) == 1:
        return None if kinds == {None} else str(kinds.pop())
    return ", ".join(f"{host} {kind}" for host, kind in found.items() if kind)


def is_withheld(emulation: Any, metric: str) -> bool:
    """Return whether nothing is to be concluded from `metric` on hosts so emulated."""
    return isinstance(emulation, str) and FREE_RUNNING in emulation and metric not in KEPT
