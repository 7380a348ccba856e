"""Does the lab find the limit of a transfer, where it is known? On real hosts, with the real programs.

`make situations REPEATS=20` measures each situation twenty times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tunnel_lab import tables

from .hosts import Playbook, run_dir, set_quota

RIGHT = 0.95
"""The share of all transfers whose limit must be found; of a few, one may be missed."""
LINK: dict[str, float] = {"rtt_ms": 80, "rate_mbit": 100}
SHORT = {"iperf3": {"duration_s": 4, "omit_s": 0}}
PAST_SLOW_START = {"iperf3": {"duration_s": 8, "omit_s": 1}}
"""Until a TCP inside the tunnel has grown to fill a window outside it, that window limits nothing."""


@dataclass(frozen=True)
class Situation:
    """A transfer, what was done to it, and what must be found."""

    cell: str
    limit: str
    says: str
    """A regular expression that the evidence must match."""
    link: dict[str, float] = field(default_factory=lambda: LINK)
    override: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=lambda: SHORT)
    quota: dict[str, float] = field(default_factory=dict)
    """{host: the share of a core that it may use}"""


SITUATIONS = {
    "small send buffer": Situation(
        "openvpn.modern_tcp.iperf3",
        "window",
        r"send buffer of openvpn's socket .*65536 bytes in 8\d\.\d ms are at most 6\.[345]",
        override={"openvpn": {"sndbuf": 65536}},
        params=PAST_SLOW_START,
    ),
    "small receive buffer": Situation(
        "openvpn.modern_tcp.iperf3",
        "window",
        r"receive window of openvpn's socket",
        override={"openvpn": {"rcvbuf": 32768}},
        params=PAST_SLOW_START,
    ),
    "10 % of a core": Situation(
        "openvpn.modern_udp.iperf3",
        "cpu",
        r"the server used 0\.\d+ of the 0\.100 cores .* openvpn\[\d+\] with 0\.\d\d",
        quota={"server": 0.1},
    ),
    "low link rate": Situation(
        "openvpn.modern_udp.iperf3", "link", r"of 8\.00 Mbit/s", link={"rtt_ms": 80, "rate_mbit": 8}
    ),
    "1 % loss": Situation(
        "openvpn.modern_udp.iperf3",
        "loss",
        r"iperf3's socket .* frames by the link's random loss",
        link={**LINK, "loss_pct": 1},
    ),
    "throttled reader and writer": Situation(
        "openvpn.modern_udp.latency",
        "application",
        r"python3 on the client (left over half of its receive buffer unread|had given its socket nothing more)",
        params={"latency": {"bulk_mbit": 8, "idle_s": 1, "bulk_s": 4, "omit_s": 1}},
    ),
}


@contextmanager
def quotas(of: dict[str, float]) -> Iterator[None]:
    """Hold the hosts to their quotas."""
    try:
        for host, share in of.items():
            set_quota(host, share)
        yield
    finally:
        for host in of:
            set_quota(host, None)


def measure(lab: Playbook, situation: Situation, repeats: int) -> Path:
    """Measure the situation and return the run's directory."""
    choices: dict[str, Any] = {
        "select": [situation.cell],
        "repeats": repeats,
        "link": situation.link,
        "override": situation.override,
        "params": {**SHORT, **situation.params},
    }
    make = ["playbooks/provision.yml", "playbooks/install.yml"]
    if not situation.quota:
        return run_dir(lab(*make, "playbooks/measure.yml", **choices))
    lab(*make, **choices)
    with quotas(situation.quota):
        return run_dir(lab("playbooks/measure.yml", **choices))


@pytest.mark.parametrize("name", SITUATIONS)
def test_limit_is_found(lab: Playbook, name: str, pytestconfig: pytest.Config) -> None:
    situation = SITUATIONS[name]
    repeats = int(pytestconfig.getoption("--repeats"))
    runs, _ = tables.collect([measure(lab, situation, repeats)])
    rows = runs[(runs["tunnel"] + "." + runs["variant"] + "." + runs["workload"]) == situation.cell]
    assert set(rows["status"]) == {"ok"}, list(rows["reason"])
    assert rows["repeat"].nunique() == repeats
    shown = rows[["repeat", "direction", "goodput_bit_s", "limit", "limit_evidence"]].to_dict("records")
    right = (rows["limit"] == situation.limit) & rows["limit_evidence"].str.contains(situation.says)
    print(f"\n{name}: {right.sum()} of {len(right)} right", *shown, sep="\n  ")
    assert (~right).sum() <= math.ceil((1 - RIGHT) * len(right)), shown


def test_every_limit_is_constructed() -> None:
    found = pd.Series([each.limit for each in SITUATIONS.values()])
    assert set(found) == {"link", "window", "cpu", "loss", "application"}
