"""Situations with a known limit, made by hand; each must be found, and its numbers be those of the situation."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sampled import MSS, Counter, Side, flow_of, machine, measured, process, quota, receives, sampled, sends, steady

from tunnel_lab import flow, limit
from tunnel_lab.limit import Limit
from tunnel_lab.parsing import Direction
from tunnel_lab.records import Host

RATE = 100e6
BOTH: list[Direction] = ["server_to_client", "client_to_server"]
TUNNEL = "tunnellab-openvpn@x.service"
WORK = process("iperf3", 0.2)
SMALL_BUFFER: dict[str, Any] = {
    "tb": 131072,
    "w": 88384,
    "unacked": 39,
    "in_flight": 55100,
    "notsent": 4,
    "cwnd": 79,
    "minrtt": 80.099,
}
"""OpenVPN's socket with 65536 bytes, as ss showed it over a link of 80 ms."""
SMALL_WINDOW: dict[str, Any] = {"snd_wnd": 65536, "unacked": 45, "cwnd": 79}
LOSSY: dict[str, Any] = {"again": 0.01, "unacked": 40, "cwnd": 42, "ssthresh": 40}


def diagnosed(
    sender: Side | None = None,
    receiver: Side | None = None,
    *,
    bit_s: float = 28e6,
    rate: float | None = RATE,
    direction: Direction = "server_to_client",
    **situation: Any,
) -> Limit:
    made = sampled(sender, receiver, direction=direction, **situation)
    return limit.diagnose(flow_of(made, bit_s, direction), rate)


def sending(bit_s: float = 28e6, counters: dict[str, Counter] | None = None, **says: Any) -> Side:
    """A sender with one socket."""
    return Side({**WORK, **(counters or {})}, [sends(bit_s, **says)])


def says(found: Limit, kind: str, *patterns: str) -> None:
    assert found.kind == kind, found
    for pattern in patterns:
        assert re.search(pattern, found.evidence), found.evidence


@pytest.mark.parametrize("direction", BOTH)
def test_nothing(direction: Direction) -> None:
    found = diagnosed(sending(), direction=direction)
    says(found, "unclear", r"^the link carried 30% of its rate; no window, buffer, core or loss explains the rest$")
    assert (found.window_bytes, found.ceiling_bit_s) == (None, None)


# link


@pytest.mark.parametrize("direction", BOTH)
def test_link_full(direction: Direction) -> None:
    found = diagnosed(sending(92e6), link=96e6, direction=direction)
    says(found, "link", r"carried 96\.0 of 100\.0 Mbit/s, and was full \(over 90%\) in 100% of the transfer")


def test_link_full_from_nine_tenths_on() -> None:
    says(diagnosed(sending(), link=90.1e6), "link")
    says(diagnosed(sending(), link=89e6), "unclear", "89% of its rate")


def test_link_full_half_of_the_time() -> None:
    def came(at: float) -> float:
        return steady(99e6 / 8, end=3.4)(at) + steady(30e6 / 8, start=3.4)(at)

    found = diagnosed(sending(64e6), link=came, bit_s=64e6)
    # 3.4 * 99 + 2.6 * 30 = 414.6 Mbit; from 0 (2 % come in 0.08 s) to the row at 5.8 s, when 408.6 Mbit have
    says(found, "link", r"carried 70\.4 of 100\.0", r"in 59% of the transfer")  # 408.6 / 5.8, 3.4 / 5.8


def test_link_full_less_than_half_of_the_time() -> None:
    def came(at: float) -> float:
        return steady(99e6 / 8, end=2.4)(at) + steady(40e6 / 8, start=2.4)(at)

    says(diagnosed(sending(60e6), link=came, bit_s=60e6), "unclear")


def test_link_rate_unknown() -> None:
    for rate in (None, 0.0):
        found = diagnosed(sending(92e6), link=96e6, rate=rate)
        says(found, "unclear", "^no window, buffer, core or loss explains the rest$")


def test_utilisation() -> None:
    found = flow_of(sampled(sending(), link=steady(25e6 / 8, start=1, end=5)))
    assert limit.utilisation(found, 100e6) == pytest.approx((0.25, 0), abs=0.001)
    assert limit.utilisation(found, 25e6) == pytest.approx((1, 1), abs=0.001)


# cpu


@pytest.mark.parametrize("host", ["server", "client"])
@pytest.mark.parametrize("direction", BOTH)
def test_quota_used_up(host: Host, direction: Direction) -> None:
    counters = {**process("openvpn", 0.08, TUNNEL, pid=9), **quota(periods=10, throttled=3, cores=0.09)}
    limited = Side({**WORK, **counters}, meta={"quota_cores": 0.1})
    limited.counters.pop("process|work.service|iperf3|7|user")  # its 0.05 cores in the kernel are less
    other = sending()
    sender = direction.split("_to_")[0]
    if host == sender:
        limited.sockets = other.sockets
    sides = (limited, None) if host == sender else (other, limited)
    found = diagnosed(*sides, direction=direction)
    says(
        found,
        "cpu",
        rf"^the {host} used 0\.090 of the 0\.100 cores",
        "in 30% of its periods",
        r"openvpn\[9\] with 0\.08$",
    )


@pytest.mark.parametrize(
    ("throttled", "cores", "kind"),
    [(2, 0.071, "cpu"), (9, 0.069, "unclear"), (0, 0.071, "unclear"), (0, 0.084, "unclear"), (0, 0.086, "cpu")],
)
def test_quota_by_periods_or_by_use(throttled: int, cores: float, kind: str) -> None:
    side = Side({**WORK, **quota(10, throttled, cores)}, [sends(28e6)], {"quota_cores": 0.1})
    says(diagnosed(side), kind)


def test_use_without_a_quota_is_no_limit() -> None:
    says(diagnosed(Side({**WORK, **quota(10, 10, 0.8)}, [sends(28e6)])), "unclear")


@pytest.mark.parametrize("host", ["server", "client"])
def test_process_with_a_whole_core(host: Host) -> None:
    counters = {**WORK, **process("openvpn", 0.97, TUNNEL, pid=9), **machine(user=0.97)}
    sides = (Side(counters, [sends(28e6)]), Side()) if host == "server" else (sending(), Side(counters))
    says(diagnosed(*sides), "cpu", rf"^openvpn\[9\] on the {host} used 97% of a core$")


def test_process_with_most_of_a_core() -> None:
    says(diagnosed(sending(counters=process("openvpn", 0.88, TUNNEL, pid=9))), "unclear")


def test_process_that_was_busy_only_before_the_transfer() -> None:
    counters = {"process|s|redis|9|user": steady(100, end=3), "process|s|redis|9|system": steady(0)}
    says(diagnosed(sending(counters=counters), link=steady(4e6, start=3)), "unclear")


def test_kernel_threads_on_all_cores_are_not_one_core() -> None:
    counters = {"kernel|wg-crypt-wg0|cpu": steady(150), **machine(cpus=8, system=1.5)}
    says(diagnosed(Side({**WORK, **counters}, [sends(28e6)], {"kernel": "own", "cpus": 8})), "unclear")


def test_softirqs_on_one_core() -> None:
    found = diagnosed(sending(counters=machine(cpus=4, softirq=0.95)))
    says(found, "cpu", r"^softirqs used 95% of one of the cores of the server's machine$")


def test_machine_full() -> None:
    found = diagnosed(sending(counters=machine(user=1.1, system=0.6, softirq=0.22)))
    says(found, "cpu", r"cores of the server's machine were busy for 96% of the time", r"iperf3\[7\] with 0\.20$")


def test_machine_waiting_for_its_disk_is_not_full() -> None:
    says(diagnosed(sending(counters=machine(user=0.5, iowait=1.5))), "unclear")


def test_server_without_any_tick_is_not_full() -> None:
    """As when its clock is set in mid-run, so that the transfer lies outside of its samples."""
    made = sampled(sending())
    early = Side(WORK, []).text(begun=-60, ended=-50)
    after = {**made.after, "server": made.after["server"].model_copy(update={"samples": early})}
    says(limit.diagnose(flow_of(made.model_copy(update={"after": after})), RATE), "unclear", "not seen twice")


# application


def test_reader_that_does_not_read() -> None:
    receiver = Side(process("iperf3", 0.1, pid=8), [receives(28e6, unread=70_000, r=100_000)])
    found = diagnosed(sending(snd_wnd=65536, unacked=45, rwnd_limited=0.9), receiver)
    says(
        found, "application", r"^iperf3 on the client left over half of its receive buffer unread in 100% of \d+ looks$"
    )


def test_tunnel_that_does_not_read_is_no_application() -> None:
    receiver = Side(process("openvpn", 0.1, TUNNEL, pid=8), [receives(28e6, unread=70_000, r=100_000)])
    found = diagnosed(sending(**SMALL_WINDOW, rwnd_limited=0.9), receiver, tunnel_units={"client": TUNNEL})
    says(found, "window", "receive window")


@pytest.mark.parametrize("direction", BOTH)
def test_sender_without_data(direction: Direction) -> None:
    found = diagnosed(sending(notsent=0), direction=direction)
    host = direction.split("_to_")[0]
    says(found, "application", rf"^iperf3 on the {host} had given its socket nothing more to send in 100% of \d+ looks")


def test_tunnel_without_data_behind_a_sender_with_data() -> None:
    inner = sends(28e6, local="127.0.0.1:40000", peer="127.0.0.1:5201")
    outer = sends(28e6, local="10.99.0.1:22", peer="10.99.0.2:40000", holder=("sshd", 9), notsent=0)
    side = Side({**WORK, **process("sshd", 0.2, TUNNEL, pid=9)}, [inner, outer])
    says(diagnosed(side, tunnel_units={"server": TUNNEL}), "unclear")


# window


@pytest.mark.parametrize("direction", BOTH)
def test_small_send_buffer(direction: Direction) -> None:
    found = diagnosed(sending(5.3e6, **SMALL_BUFFER), bit_s=4.76e6, link=5.5e6, direction=direction)
    host = direction.split("_to_")[0]
    says(
        found,
        "window",
        rf"^the send buffer of iperf3's socket 10\.99\.0\.1:5201 to 10\.99\.0\.2:40000 on the {host}, 65536 bytes, ",
        r"was full for 100% of the transfer; 65536 bytes in 80\.1 ms are at most 6\.55 Mbit/s, measured 4\.76$",
    )
    assert found.window_bytes == 65536
    assert found.ceiling_bit_s == pytest.approx(65536 * 8 / 0.080099)


def test_small_send_buffer_by_the_kernels_own_clock() -> None:
    found = diagnosed(sending(5.3e6, tb=131072, w=20_000, sndbuf_limited=0.8), bit_s=5e6, link=5.5e6)
    says(found, "window", "send buffer", "for 80% of the transfer")


@pytest.mark.parametrize("direction", BOTH)
def test_small_receive_window(direction: Direction) -> None:
    found = diagnosed(sending(6.4e6, **SMALL_WINDOW), bit_s=6.2e6, link=6.6e6, direction=direction)
    says(found, "window", "peer's receive window of iperf3's", r"65536 bytes in 80\.0 ms are at most 6\.55 Mbit/s")
    assert found.window_bytes == 65536
    assert found.ceiling_bit_s == pytest.approx(6_553_600)


def test_receive_window_by_the_kernels_own_clock() -> None:
    found = diagnosed(sending(6.4e6, snd_wnd=65536, unacked=30, rwnd_limited=0.6), bit_s=6.2e6, link=6.6e6)
    says(found, "window", "receive window", "for 60% of the transfer")


def test_window_full_for_less_than_half_of_the_time() -> None:
    says(diagnosed(sending(6.4e6, rwnd_limited=0.4, sndbuf_limited=0.45), bit_s=6.2e6, link=6.6e6), "unclear")


def test_window_that_held_more_than_half_of_its_limit() -> None:
    """Large segments need less bookkeeping than half of the buffer."""
    full: dict[str, Any] = {**SMALL_BUFFER, "in_flight": 100_000, "w": 120_000}
    found = diagnosed(sending(9.5e6, **full), bit_s=9e6, link=9.9e6)
    says(found, "window", r"100000 bytes in 80\.1 ms are at most 9\.99 Mbit/s, measured 9\.00$")


def test_ceiling_below_what_passed_is_not_told() -> None:
    found = diagnosed(sending(20e6, rwnd_limited=0.7, snd_wnd=1000), bit_s=19e6, link=21e6)
    says(found, "window", r"1000 bytes, was full for 100% of the transfer; its size varied, and 20\.0 Mbit/s passed$")
    assert (found.window_bytes, found.ceiling_bit_s) == (None, None)


def test_window_of_a_socket_within_the_host_is_no_limit() -> None:
    inner = sends(28e6, local="127.0.0.1:40000", peer="127.0.0.1:5201", rwnd_limited=0.9, **SMALL_WINDOW)
    outer = sends(28e6, local="10.99.0.1:22", peer="10.99.0.2:40000", holder=("ssh", 9))
    side = Side({**WORK, **process("ssh", 0.2, TUNNEL, pid=9)}, [inner, outer])
    says(diagnosed(side, tunnel_units={"server": TUNNEL}), "unclear")


def test_outer_window_of_a_tunnel_in_a_tunnel() -> None:
    inner = sends(5e6, local="10.8.0.1:5201", peer="10.8.0.2:40000", unacked=632, cwnd=632, ssthresh=28)
    outer = sends(5.3e6, holder=("openvpn", 9), local="10.99.0.1:1194", peer="10.99.0.2:40000", **SMALL_BUFFER)
    side = Side({**WORK, **process("openvpn", 0.2, TUNNEL, pid=9)}, [inner, outer])
    found = diagnosed(side, bit_s=4.76e6, link=5.5e6, tunnel_units={"server": TUNNEL})
    says(found, "window", "send buffer of openvpn's socket 10.99.0.1:1194")


# loss


def test_random_loss() -> None:
    found = diagnosed(sending(**LOSSY), emulator={"dropped_loss": 50, "dropped_queue": 0})
    says(found, "loss", r"on the server sent 1\.00% of its bytes again; dropped: 50 frames by the link's random loss$")


def test_random_loss_beside_a_full_queue() -> None:
    found = diagnosed(sending(**LOSSY), emulator={"dropped_loss": 50, "dropped_queue": 7})
    says(found, "loss", "7 frames by the full queue of the link, 50 frames by the link's random loss$")


def test_only_the_links_queue_overflows() -> None:
    found = diagnosed(sending(**LOSSY), emulator={"dropped_queue": 70})
    says(found, "link", "queue overflowed", "sent 1.00% of its bytes again; dropped: 70 frames by the full queue")


def test_loss_that_nothing_counts() -> None:
    says(diagnosed(sending(**LOSSY)), "loss", "dropped: nowhere that is counted$")


def test_receive_buffer_of_a_tunnel_over_udp_drops() -> None:
    found = diagnosed(sending(**LOSSY), Side({"Udp|RcvbufErrors": steady(20)}))
    says(found, "loss", r"dropped: 120 datagrams by full receive buffers of the client's UDP sockets$")


def test_queue_of_the_tunnels_interface_drops() -> None:
    side = sending(**LOSSY, counters={"net|tun0|tx_dropped": steady(10)})
    says(diagnosed(side), "loss", "nowhere that is counted$")
    says(diagnosed(side, interface="tun0"), "loss", r"dropped: 60 packets by the queue of the server's tun0$")


@pytest.mark.parametrize(
    "changes",
    [
        {"again": 0.0009},
        {"cwnd": 80},  # the congestion window, which loss makes small, is not in use
    ],
)
def test_loss_that_holds_nothing_up(changes: dict[str, Any]) -> None:
    says(diagnosed(sending(**{**LOSSY, **changes}), emulator={"dropped_loss": 50}), "unclear")


# unclear


def test_slow_start() -> None:
    def grown(at: float) -> int:
        return round(10 + 100 * at)

    found = diagnosed(sending(unacked=grown, cwnd=grown, in_flight=10 * MSS))
    says(found, "unclear", "used its congestion window in 100% of the looks, which grew from", "still in slow start$")


def test_slow_growth_since_slow_start_ended() -> None:
    found = diagnosed(sending(unacked=400, cwnd=400, ssthresh=28))
    says(found, "unclear", "grew from 400 to 400 segments, slowly since slow start ended at 28$")


def test_sockets_that_never_appear() -> None:
    says(diagnosed(Side(WORK)), "unclear", r"^the sender's sockets were not seen twice in the 6\.0 s of the transfer$")


def test_no_sampler() -> None:
    made = sampled()
    after = {host: seen.model_copy(update={"samples": ""}) for host, seen in made.after.items()}
    assert flow.flow(made.model_copy(update={"after": after}), measured()) is None


# the order


CORE = process("openvpn", 0.97, TUNNEL, pid=9)
LATE_READER = Side(process("iperf3", 0.1, pid=8), [receives(28e6, unread=70_000, r=100_000)])


@pytest.mark.parametrize(
    ("kind", "pattern", "situation"),
    [
        ("link", "carried", {"sender": sending(92e6, counters=CORE), "link": 96e6}),
        ("link", "carried", {"sender": sending(92e6, rwnd_limited=0.9, again=0.01), "link": 96e6}),
        ("cpu", "openvpn", {"sender": sending(counters=CORE, rwnd_limited=0.9, notsent=0), "receiver": LATE_READER}),
        ("cpu", "openvpn", {"sender": sending(counters=CORE, **LOSSY)}),
        ("application", "unread", {"sender": sending(rwnd_limited=0.9, **SMALL_WINDOW), "receiver": LATE_READER}),
        ("application", "unread", {"sender": sending(**LOSSY), "receiver": LATE_READER}),
        ("window", "was full", {"sender": sending(**LOSSY, rwnd_limited=0.6, snd_wnd=400_000)}),
        ("window", "was full", {"sender": sending(notsent=0, sndbuf_limited=0.6)}),
        ("loss", "again", {"sender": sending(**LOSSY, notsent=0)}),
    ],
)
def test_order_when_two_hold(kind: str, pattern: str, situation: dict[str, Any]) -> None:
    says(diagnosed(**situation), kind, pattern)


def test_fuller_one_of_two_windows_is_told() -> None:
    found = diagnosed(sending(5e6, sndbuf_limited=0.6, rwnd_limited=0.7), bit_s=5e6, link=5.5e6)
    says(found, "window", "receive window", "for 70%")
