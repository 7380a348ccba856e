"""Is the link what it was set to? Judged by what ping and iperf3 say between the hosts."""

from __future__ import annotations

import json
import re
from typing import Any

from tunnel_lab.choices import Link
from tunnel_lab.errors import LabError
from tunnel_lab.manifests import Strict
from tunnel_lab.records import Command

PORT = 5299
"""Where the server of the test listens."""
SECONDS = 9
"""How long the test transfers over a real network, slow start included (roles/link/vars)."""
RATE_SHARE = 0.94
"""Of the set rate as TCP goodput. With 1500-byte packets and timestamps 1448 of 1514 bytes, 95.6 %, is the most."""
RATE_MOST = 1.0
"""The same, with room for what was sent just before the time began."""


class Measured(Strict):
    """The link as found."""

    rtt_ms: float
    """Median of ping is not printed; this is its minimum, which queues of others cannot raise."""
    goodput_bit_s: float
    """Receiver's TCP goodput, server to client, slow start left out."""


def measured(commands: list[Command]) -> Measured:
    """Read the figures; LabError when a tool failed."""
    by_name = {command.name: command for command in commands}
    for name in ("rtt", "rate"):
        command = by_name.get(name)
        if command is None or command.rc != 0:
            said = " ".join((command.stdout + command.stderr).split())[-300:] if command else "was not run"
            raise LabError(f"the link could not be measured: {name}: {said}")
    rtt = re.search(r"rtt min/avg/max/mdev = ([\d.]+)/", by_name["rtt"].stdout)
    if not rtt:
        raise LabError(f"the link could not be measured: ping said: {' '.join(by_name['rtt'].stdout.split())}")
    received = json.loads(by_name["rate"].stdout)["end"]["sum_received"]
    return Measured(rtt_ms=float(rtt[1]), goodput_bit_s=received["bytes"] * 8 / received["seconds"])


def problems(found: Measured, setting: Link | None, emulator: dict[str, Any]) -> list[str]:
    """Return what is wrong, as sentences with numbers; the rate is not judged on a link that loses packets.

    Of a real network, where `setting` is None, nothing is expected.
    """
    if setting is None:
        return []
    wrong = []
    if abs(found.rtt_ms - setting.rtt_ms) > setting.rtt_tolerance_ms:
        wrong.append(f"round trip is {found.rtt_ms:.2f} ms, set are {setting.rtt_ms:g} ms")
    share = found.goodput_bit_s / (setting.rate_mbit * 1e6)
    if share < RATE_SHARE and not setting.loss_pct:
        wrong.append(
            f"bare TCP goodput is {found.goodput_bit_s / 1e6:.2f} Mbit/s, {share:.1%} of the set "
            f"{setting.rate_mbit:g} Mbit/s; at least {RATE_SHARE:.0%} are needed"
        )
    if share > RATE_MOST:
        wrong.append(
            f"bare TCP goodput is {found.goodput_bit_s / 1e6:.2f} Mbit/s of {setting.rate_mbit:g} Mbit/s set: "
            "the clocks of the hosts do not keep time"
        )
    if wrong and emulator.get("keeps_up_reason"):
        wrong.append(f"the relay cannot keep up: {emulator['keeps_up_reason']}")
    return wrong
