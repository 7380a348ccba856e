"""The emulated link as its traffic sees it. Absolute times: repeat a failure on a busy machine."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from .link import CLIENT, INTERFACE, SERVER, Link, eventually, run


def test_round_trip_is_the_set_one(link: Link) -> None:
    link.start_up("--rtt-ms", "80")
    times = [each for each in link.ping(20, 0.03) if each is not None]
    assert len(times) == 20
    assert statistics.median(times) == pytest.approx(80, abs=0.5)
    assert min(times) >= 80


def test_tcp_fills_the_set_rate(link: Link) -> None:
    link.start_up("--rtt-ms", "40", "--rate-mbit", "20")
    goodput = _iperf(link, "--time", "8", "--omit", "3", "--congestion", _loss_based())
    assert 0.94 * 20 <= goodput <= 20
    status = link.fresh_status()
    assert status.keeps_up, status.keeps_up_reason


def test_udp_flood_meets_rate_and_queue_and_every_frame_is_accounted_for(link: Link) -> None:
    queue = 60_000
    link.start_up("--rate-mbit", "20", "--queue-bytes", str(queue))
    before = link.fresh_status()
    goodput = _iperf(link, "--udp", "--bitrate", "30M", "--length", "1472", "--time", "4")
    time.sleep(0.1)
    after = link.fresh_status()
    old, new = before.directions["server_to_client"], after.directions["server_to_client"]
    assert goodput == pytest.approx(20 * 1472 / 1514, rel=0.02)
    assert new.dropped_queue - old.dropped_queue > 1000
    assert queue - 1514 < new.queue_bytes_max <= queue
    dropped = new.dropped_queue + new.dropped_loss + new.dropped_write
    assert new.frames_in == new.frames_out + dropped
    assert new.lateness_ms_buckets["le_inf"] == new.frames_out


def test_loss_applies_to_each_direction(link: Link) -> None:
    link.start_up("--loss-pct", "5")
    count, survives = 2000, 0.95**2
    lost = link.ping(count, 0.001).count(None)
    bound = 4.5 * (count * survives * (1 - survives)) ** 0.5
    assert abs(lost - count * (1 - survives)) < bound
    directions = link.fresh_status().directions
    assert all(each.dropped_loss > 0 for each in directions.values())


@pytest.mark.parametrize("mtu", [9000, 65521])
def test_jumbo_frames_pass(link: Link, mtu: int) -> None:
    link.start_up("--mtu", str(mtu))
    assert None not in link.ping(3, 0.05, size=mtu - 28)
    assert link.fresh_status().directions["server_to_client"].frames_out >= 3


def test_device_that_is_down_costs_nothing_and_drops_what_it_is_sent(link: Link) -> None:
    assert link.start("--rate-mbit", "0").returncode == 0
    time.sleep(2.2)
    idle = link.status()
    assert idle.wakeups < 100
    assert idle.cpu_s < 0.5
    run("ip", "-n", link.server, "addr", "add", f"{SERVER}/24", "dev", INTERFACE)
    run("ip", "-n", link.server, "link", "set", INTERFACE, "up")
    link.ping(1, 0)  # asks for the other's hardware address; nobody is there to answer
    assert eventually(lambda: link.status().directions["server_to_client"].dropped_write > 0, 5)
    assert link.status().state == "running"


def _iperf(link: Link, *options: str) -> float:
    """Received Mbit/s of payload, server's end to client's end."""
    server = subprocess.Popen(
        ["ip", "netns", "exec", link.client, "iperf3", "--server", "--one-off"],
        stdout=subprocess.DEVNULL,
    )
    try:
        assert eventually(lambda: "5201" in run("ip", "netns", "exec", link.client, "ss", "-ltnH").stdout, 5)
        client = ("ip", "netns", "exec", link.server, "iperf3", "--client", CLIENT, "--json", *options)
        report = json.loads(run(*client, limit_s=40).stdout)
        assert "error" not in report, report["error"]
        total = report["end"].get("sum_received") or report["end"]["sum"]
        return float(total["bits_per_second"]) / 1e6
    finally:
        server.terminate()
        server.wait(5)


def _loss_based() -> str:
    """A congestion control that fills the queue; one that paces itself below the rate would measure itself."""
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    return "cubic" if "cubic" in allowed else "reno"
