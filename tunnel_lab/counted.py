"""Did a CPU that counts instructions keep pace with time all through one repeat?

Its host's clock goes by instructions, so a figure from it does not depend on this machine's load, as long as that clock
is right. QEMU says by how much it is behind; once behind, the CPU runs faster than it should until it has caught up.
"""

from __future__ import annotations

from tunnel_lab.records import Clocks

LATE_MS = 250
PACE = (0.98, 1.02)
"""Seconds of the host's own clock in a second, over the repeat."""
SHORTEST_S = 0.5
"""Over less, a pace says nothing."""


def columns(clocks: Clocks) -> dict[str, float]:
    """Return `<host>.cpu_pace` and `<host>.cpu_lateness_ms`, the most of the repeat, of each counted host."""
    found: dict[str, float] = {}
    for host, before in clocks.before.items():
        after = clocks.after.get(host)
        if after is None:
            continue
        elapsed_s = after.at_s - before.at_s
        found[f"{host}.cpu_lateness_ms"] = max(
            before.lateness_ms, after.lateness_ms, clocks.worst.get(host, after.lateness_ms)
        )
        if elapsed_s >= SHORTEST_S:
            found[f"{host}.cpu_pace"] = 1 - (after.lateness_ms - before.lateness_ms) / 1e3 / elapsed_s
    return found


def problems(clocks: Clocks) -> list[str]:
    """Return a sentence for everything for which this repeat does not count."""
    wrong = [
        f"the clock of the counted CPU of the {host} was not watched to the end of the repeat"
        for host in clocks.before
        if host not in clocks.after or host not in clocks.worst
    ]
    for name, value in columns(clocks).items():
        host, figure = name.split(".")
        if figure == "cpu_pace" and not PACE[0] <= value <= PACE[1]:
            wrong.append(
                f"the counted CPU of the {host} had {value:.3f} seconds in a second, not {PACE[0]} to {PACE[1]}"
            )
        if figure == "cpu_lateness_ms" and value > LATE_MS:
            wrong.append(f"the counted CPU of the {host} was {value:.0f} ms behind, more than {LATE_MS}")
    return wrong
