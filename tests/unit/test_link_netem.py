"""The kernel's link as tc is told of it. Nothing is run here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tunnel_lab.errors import LabError
from tunnel_lab.link import netem
from tunnel_lab.link.spec import End, LinkSpec


def made(**settings: Any) -> LinkSpec:
    ends = {"server": End(pid=11, address="10.99.0.1/24"), "client": End(pid=22, address="10.99.0.2/24")}
    defaults = {"name": "lab", "interface": "link0", "rtt_ms": 80, "rate_mbit": 100, "queue_bytes": 1_000_000}
    return LinkSpec.model_validate({**ends, **defaults, **settings})


def option(command: list[str], name: str) -> str:
    """Return the word after `name`, which is there once."""
    assert command.count(name) == 1, command
    return command[command.index(name) + 1]


def shaping(**settings: Any) -> tuple[list[str], list[str]]:
    delay, rate = netem.shaping(made(**settings), "to-client")
    return delay, rate


def test_delay_then_rate_on_one_device() -> None:
    delay, rate = shaping()
    assert " ".join(delay) == "tc qdisc add dev to-client root handle 1: netem delay 40ms limit 10000000"
    assert " ".join(rate) == (
        "tc qdisc add dev to-client parent 1:1 handle 2: tbf rate 100000000bit burst 12500 limit 1000000"
    )


@pytest.mark.parametrize(("rtt_ms", "delay"), [(80, "40ms"), (25, "12.5ms"), (0.5, "0.25ms"), (299.5, "149.75ms")])
def test_each_direction_has_half_the_round_trip(rtt_ms: float, delay: str) -> None:
    assert option(shaping(rtt_ms=rtt_ms)[0], "delay") == delay


def test_loss_is_told_only_when_there_is_some() -> None:
    assert "loss" not in shaping(loss_pct=0)[0]
    assert option(shaping(loss_pct=0.01)[0], "loss") == "0.01%"
    assert "loss" not in shaping(loss_pct=1)[1]


@pytest.mark.parametrize(("rate_mbit", "rate"), [(100, "100000000bit"), (0.064, "64000bit"), (12.5, "12500000bit")])
def test_rate_is_in_bits(rate_mbit: float, rate: str) -> None:
    assert option(shaping(rate_mbit=rate_mbit)[1], "rate") == rate


def test_queue_is_limited_in_bytes() -> None:
    delay, rate = shaping(queue_bytes=150_000)
    assert option(rate, "limit") == "150000"
    # a thousand packets, netem's default, would be less than 100 Mbit/s hold for 2 s
    assert int(option(delay, "limit")) * 64 > 1e9 / 8 * 2


@pytest.mark.parametrize(("rate_mbit", "mtu", "bucket"), [(1000, 1500, 125_000), (1, 1500, 3028), (1, 9000, 18_028)])
def test_bucket_is_a_millisecond_but_at_least_two_frames(rate_mbit: float, mtu: int, bucket: int) -> None:
    assert option(shaping(rate_mbit=rate_mbit, mtu=mtu)[1], "burst") == str(bucket)


Said = list[tuple[list[str], Path | None]]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Said:
    """Keep the commands instead of running them."""
    commands: Said = []

    def run(argv: list[str], netns: Path | None = None) -> str:
        commands.append((argv, netns))
        return ""

    monkeypatch.setattr(netem, "run", run)
    return commands


def test_both_directions_are_shaped_on_the_middle_hop(said: Said) -> None:
    netem.up(made())
    middle = Path("/run/netns/tunnellab-lab-wan")
    shaped = [(option(argv, "dev"), netns) for argv, netns in said if argv[0] == "tc"]
    assert shaped == [("to-server", middle)] * 2 + [("to-client", middle)] * 2
    assert said[0] == (["ip", "netns", "add", "tunnellab-lab-wan"], None)


def test_no_interface_on_the_path_joins_segments(said: Said) -> None:
    netem.up(made())
    places = [(argv[2], netns) for argv, netns in said if argv[0] == "ethtool"]
    middle = Path("/run/netns/tunnellab-lab-wan")
    hosts = [("link0", Path("/proc/11/ns/net")), ("link0", Path("/proc/22/ns/net"))]
    assert sorted(places) == sorted([("to-server", middle), ("to-client", middle), *hosts])
    for argv, _ in said:
        if argv[0] == "ethtool":
            assert [option(argv, name) for name in ("tso", "gso", "gro", "tx")] == ["off"] * 4


def test_link_that_fails_half_way_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []

    def fail(argv: list[str], netns: Path | None = None) -> str:
        if argv[0] == "tc":
            raise LabError("tc: no")
        return ""

    monkeypatch.setattr(netem, "run", fail)
    monkeypatch.setattr(netem, "down", removed.append)
    with pytest.raises(LabError, match="tc: no"):
        netem.up(made())
    assert removed == ["lab"]


def test_nothing_to_remove_is_fine(said: Said) -> None:
    name = "there-is-no-such-lab"
    netem.down(name)
    assert said == []
    assert netem.running(made(name=name)) is False


@pytest.mark.parametrize("address", ["10.99.0.1", "10.99.0.1/24"])
def test_address_has_a_prefix_length(address: str) -> None:
    assert End(pid=1, address=address).address == f"10.99.0.1/{'24' if '/' in address else '32'}"


def test_address_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        End(pid=1, address="server")


SHOWN = """\
qdisc noqueue 0: dev bridge root refcnt 2
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc netem 1: dev to-server root refcnt 9 limit 10000000 delay 40ms loss 1%
 Sent 5000 bytes 50 pkt (dropped 12, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc tbf 2: dev to-server parent 1:1 rate 100Mbit burst 12500b lat 80ms
 Sent 4900 bytes 49 pkt (dropped 0, overlimits 7 requeues 0)
 backlog 0b 0p requeues 0
qdisc netem 1: dev to-client root refcnt 9 limit 10000000 delay 40ms loss 1%
 Sent 9000 bytes 90 pkt (dropped 30, overlimits 0 requeues 0)
qdisc tbf 2: dev to-client parent 1:1 rate 100Mbit burst 12500b lat 80ms
 Sent 8000 bytes 80 pkt (dropped 25, overlimits 70 requeues 0)
"""


def test_drops_by_the_queue_and_by_chance_are_told_apart() -> None:
    assert netem.drops(SHOWN) == {
        "server_to_client": {"dropped_queue": 25, "dropped_loss": 5},
        "client_to_server": {"dropped_queue": 0, "dropped_loss": 12},
    }
    nothing = {"dropped_queue": 0, "dropped_loss": 0}
    assert netem.drops("") == {"server_to_client": nothing, "client_to_server": nothing}
