"""The run that was just measured on these hosts, as the collector reads it."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from tunnel_lab import accounting, manifests
from tunnel_lab.cli import main
from tunnel_lab.records import Host, Record, Run

LATEST = manifests.ROOT / "results" / "latest"
CEILING_BIT_S = 65536 * 8 / 0.080
"""One 64 KiB window per round trip of 80 ms, 6.55 Mbit/s."""


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    """The run's rows."""
    return pd.read_csv(LATEST / "runs.csv")


def record(cell: str) -> Record:
    """Return the first repeat of a cell."""
    return Record.read(LATEST / "raw" / f"{cell}.r1.json")


def test_every_planned_repeat_has_a_good_row(runs: pd.DataFrame) -> None:
    run = Run.read(LATEST / "run.json")
    assert run.lab == "molecule"
    assert set(runs["status"]) == {"ok"}
    planned = {(step.cell, step.repeat) for step in run.plan.steps}
    cells = runs["tunnel"] + "." + runs["variant"] + "." + runs["workload"]
    assert set(zip(cells, runs["repeat"], strict=True)) == planned


def test_every_row_of_the_post_is_measured(runs: pd.DataFrame) -> None:
    rows = set((runs["tunnel"] + "." + runs["variant"] + "." + runs["workload"]).unique())
    assert rows >= {
        "openvpn.published_tcp.redis_sync",
        "openvpn.published_tcp_comp.redis_sync",
        "openvpn.published_udp.redis_sync",
        "openvpn.published_udp_comp.redis_sync",
        "ssh.published_default.redis_sync",
        "ssh.published_nocomp.redis_sync",
        "ssh.published_comp.redis_sync",
        "openvpn.published_tcp_comp.iperf2",
        "openvpn.published_tcp_aes256.iperf2",
        "openvpn.published_udp_comp.iperf2",
        "openvpn.published_udp_aes256.iperf2",
        "ssh.published_aes128ctr.iperf2",
    }


def test_link_was_what_it_was_set_to() -> None:
    link = Run.read(LATEST / "run.json").link
    assert link.emulator in ("relay", "netem")
    assert link.measured_rtt_ms == pytest.approx(80, abs=1)
    assert link.measured_goodput_bit_s == pytest.approx(95e6, rel=0.011)


def test_nothing_is_faster_than_the_link_but_what_compresses(runs: pd.DataFrame) -> None:
    plain = runs[~runs["variant"].str.contains("comp|aes256")]
    assert plain["goodput_bit_s"].max() < 100e6 * 1448 / 1514 * 1.02  # iperf counts in blocks of 128 KiB


def test_published_tcp_stays_under_its_window_and_the_record_proves_the_window(runs: pd.DataFrame) -> None:
    mine = runs[(runs["variant"] == "published_tcp") & (runs["workload"] == "redis_sync")]
    assert mine["goodput_bit_s"].max() < CEILING_BIT_S
    found = record("openvpn.published_tcp.redis_sync")
    hosts: tuple[Host, Host] = ("server", "client")
    for host in hosts:
        carrier = re.search(r"ESTAB.*?:1194.*?rb(\d+),.*?tb(\d+)", found.after[host].sockets)
        assert carrier is not None
        assert carrier.groups() == ("131072", "131072")
    assert found.negotiated["client.cipher"] == "BF-CBC"


def test_compressing_tunnel_sends_less_than_it_carries() -> None:
    found = record("openvpn.published_udp_comp.iperf2")
    inside = accounting.passed_bytes(found, "client", "tun0", "tx_bytes")
    outside = accounting.passed_bytes(found, "client", "link0", "tx_bytes")
    assert inside is not None and outside is not None
    assert outside < inside / 2  # iperf 2 sends a repeating pattern


def test_no_secret_is_in_the_results() -> None:
    home = manifests.ROOT / ".lab" / "molecule"
    password = (home / "redis_password").read_text().strip()
    private = [path for path in home.glob("*/*") if "PRIVATE KEY" in path.read_text().split("\n", 1)[0]]
    keys = [path.read_text().splitlines()[1] for path in private]
    assert len(password) == 32
    # management and host key, both ends of ssh, the authority and both ends of OpenVPN
    assert len(keys) == 7
    for path in LATEST.resolve().rglob("*"):
        text = path.read_text() if path.is_file() else ""
        assert password not in text, path
        assert not [key for key in keys if key in text], path


def test_overhead_of_the_lab_itself_is_small(runs: pd.DataFrame) -> None:
    assert runs["overhead_s"].median() < 5


def test_records_can_be_collected_again_without_the_hosts(tmp_path: Path) -> None:
    assert main(["collect", str(LATEST), "--output", str(tmp_path)]) == 0
    assert (tmp_path / "runs.csv").read_bytes() == (LATEST / "runs.csv").read_bytes()
