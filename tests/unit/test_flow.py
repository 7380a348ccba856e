"""When the payload passed and through which sockets, from series whose course is known."""

from __future__ import annotations

from typing import Any

import pytest
from builders import COMMAND_S, START, command
from sampled import MSS, Side, flow_of, measured, process, receives, sampled, sends, stamped, steady, tcp

from tunnel_lab import flow
from tunnel_lab.parsing import Direction
from tunnel_lab.passage import Passage, buffer_full, cwnd_full, unread, window_full
from tunnel_lab.records import Command, Record
from tunnel_lab.sockets import parse

BOTH: list[Direction] = ["server_to_client", "client_to_server"]


def times(found: tuple[float, float]) -> tuple[float, float]:
    """Return times as seconds since the command began."""
    return found[0] - START.timestamp(), found[1] - START.timestamp()


def passage(line: Any, **changes: Any) -> Passage:
    """The only passage of a flow in which `line` sends."""
    (found,) = flow_of(sampled(Side(process("iperf3", 0.1), [line]), **changes)).passages
    return found


@pytest.mark.parametrize("direction", BOTH)
def test_transfer_is_when_the_bytes_came_but_for_two_percent_at_each_end(direction: Direction) -> None:
    # 4 s from 1 s on: 2 % are after 0.08 s, in the row at 1.0 nothing has come, in that at 4.8 95 %, at 5.0 all
    made = sampled(link=steady(5e6, start=1, end=5), direction=direction)
    assert times(flow_of(made, direction=direction).transfer) == pytest.approx((1.0, 5.0), abs=0.001)


def test_transfer_leaves_out_the_wait_and_the_handshakes() -> None:
    # 1000 bytes a second all the time beside 20 MB between 2 s and 4 s
    def came(at: float) -> float:
        return steady(10e6, start=2, end=4)(at) + steady(1000, start=-1, end=7)(at)

    assert times(flow_of(sampled(link=came)).transfer) == pytest.approx((2.0, 4.0), abs=0.001)


def test_transfer_of_which_one_percent_trickles_in_at_the_end() -> None:
    def came(at: float) -> float:
        return steady(9.9e6, start=0, end=2)(at) + steady(0.05e6, start=2, end=6)(at)  # 19.8 MB and 0.2 MB

    assert times(flow_of(sampled(link=came)).transfer)[1] == pytest.approx(2.0, abs=0.001)


def test_transfer_without_any_byte_is_not_without_length() -> None:
    start, end = times(flow_of(sampled(link=0.0)).transfer)
    assert end > start


def test_transfer_where_the_interface_was_not_counted_is_the_whole_command() -> None:
    made = sampled()
    made = made.model_copy(update={"link": made.link.model_copy(update={"interfaces": {"server": "a", "client": "b"}})})
    found = flow_of(made)
    assert times(found.transfer) == pytest.approx((0, COMMAND_S))
    assert found.over_time(lambda rate: rate) == 0


def test_rates_are_weighted_by_their_time() -> None:
    # 60 Mbit/s for 2 s, nothing for 1 s, 30 Mbit/s for 3 s
    def came(at: float) -> float:
        return steady(7.5e6, end=2)(at) + steady(3.75e6, start=3)(at)

    found = flow_of(sampled(link=came))
    assert found.over_time(lambda rate: rate) == pytest.approx((60e6 * 2 + 30e6 * 3) / 6, rel=0.001)
    assert found.over_time(lambda rate: float(rate > 50e6)) == pytest.approx(2 / 6, abs=0.001)


def test_rows_far_apart_count_for_the_time_between_them() -> None:
    side = Side({"net|link0|rx_bytes": lambda at: steady(1e6, end=2)(at) + steady(10e6, start=2)(at)})
    made = sampled()
    lines = [side.text(ended=2, row_s=0.1).splitlines(), side.text(begun=4, row_s=1).splitlines()[2:]]
    seen = made.after["client"].model_copy(update={"samples": "\n".join([*lines[0], *lines[1]])})
    found = flow_of(made.model_copy(update={"after": {**made.after, "client": seen}}))
    assert found.transfer[1] - START.timestamp() == pytest.approx(6)
    # 98 % of 42 MB: the first 0.84 MB come in 0.84 s, the row before is at 0.8 s
    assert found.over_time(lambda rate: rate) == pytest.approx(8 * (1.2e6 + 40e6) / 5.2, rel=0.001)


@pytest.mark.parametrize("direction", BOTH)
def test_sender_and_receiver(direction: Direction) -> None:
    sender = Side(process("iperf3", 0.1), [sends(28e6)])
    receiver = Side(process("iperf3", 0.1, pid=8), [receives(28e6)])
    found = flow_of(sampled(sender, receiver, direction=direction), direction=direction)
    assert (found.sender, found.receiver) == tuple(direction.split("_to_"))
    assert {(each.host, each.unit) for each in found.passages} == {
        (found.sender, "work.service"),
        (found.receiver, "work.service"),
    }
    by_host = {each.host: each for each in found.passages}
    sent, received = by_host[found.sender], by_host[found.receiver]
    # looks at 0.001 + every 0.4 s, from 0.001 to 5.601 s: transfer to 6 s, of which 2 % are 0.12 s
    assert sent.looks == received.looks
    assert sent.sent_bytes == pytest.approx(28e6 / 8 * sent.seconds, rel=0.001)
    assert received.received_bytes == pytest.approx(28e6 / 8 * received.seconds, rel=0.001)
    assert (sent.received_bytes, received.sent_bytes) == (0, 0)


def test_shares_of_the_time_and_of_the_looks() -> None:
    found = passage(sends(28e6, rwnd_limited=0.25, sndbuf_limited=0.125, again=0.01))
    assert (found.rwnd_limited, found.sndbuf_limited) == pytest.approx((0.25, 0.125), abs=0.001)
    assert found.retransmitted == pytest.approx(0.01, rel=0.001)
    assert (found.cwnd_full, found.window_full, found.buffer_full, found.unread) == (0, 0, 0, 0)
    assert (found.cwnd, found.ssthresh, found.min_rtt_ms, found.window_bytes) == ((400, 400), None, 80, 3_000_000)
    assert found.buffer_bytes == 4_194_304 / 2
    assert found.new_bit_s == pytest.approx(28e6 * 0.99, rel=0.001)
    assert found.name == "iperf3's socket 10.99.0.1:5201 to 10.99.0.2:40000 on the server"


def test_congestion_window_in_use_for_some_looks() -> None:
    # in the first half; the looks lie evenly from 0 to 6 s
    found = passage(sends(28e6, unacked=400, cwnd=lambda at: 400 if at < 3 else 600))
    assert found.cwnd_full == pytest.approx(0.5, abs=0.1)
    assert found.cwnd == (400, 600)


def test_other_connections_are_left_out() -> None:
    control = sends(1e5, local="10.99.0.1:5201", peer="10.99.0.2:39998")
    found = flow_of(sampled(Side(process("iperf3", 0.1), [control, sends(28e6)])))
    assert [each.key[2] for each in found.passages] == ["10.99.0.2:40000"]


def test_connection_of_a_tunnel_that_compresses_is_not_left_out() -> None:
    inner = sends(28e6, local="10.8.0.1:5201", peer="10.8.0.2:40000")
    outer = sends(0.95e6, local="10.99.0.1:1194", peer="10.99.0.2:1194", holder=("openvpn", 9))
    unit = "tunnellab-openvpn@x.service"
    counters = {**process("iperf3", 0.1), **process("openvpn", 0.1, unit, pid=9)}
    found = flow_of(sampled(Side(counters, [inner, outer]), link=1e6, tunnel_units={"server": unit}))
    assert [each.process for each in found.passages] == ["iperf3", "openvpn"]
    assert [found.is_tunnel(each.host, each.unit) for each in found.passages] == [False, True]


def test_connection_that_its_process_has_closed_is_still_the_senders() -> None:
    def line(at: float) -> str:
        before, after = sends(28e6), sends(28e6, holder=None, state="FIN-WAIT-1")
        return before(at) if at < 3 else after(at)

    found = passage(line)
    assert (found.crosses, found.process, found.unit) == (True, "iperf3", "work.service")
    assert found.looks > 12


def test_one_look_at_a_connection_says_nothing() -> None:
    def line(at: float) -> str:
        return sends(28e6)(at) if 3 < at < 3.3 else ""

    found = flow_of(sampled(Side(process("iperf3", 0.1), [line])))
    assert found.passages == []


# tests of single sockets: what counts as full


def cwnd(unacked: int, size: int = 100) -> bool:
    return cwnd_full(parse(tcp(unacked=unacked, cwnd=size))[0])


def test_congestion_window_is_full_from_nine_tenths_on() -> None:
    assert [cwnd(89), cwnd(90), cwnd(100), cwnd(0, 0)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("in_flight", "cwnd", "full"),
    [
        (65536, 100, True),
        (65536 - 1000, 100, True),  # no room for another segment
        (57535, 100, True),  # 0.9 * 65536 - 1448 = 57534.4
        (57534, 100, False),
        (0, 100, False),
        (65536, 46, False),  # 46 segments are in flight: the congestion window would not let more be
    ],
)
def test_receive_window_is_full_when_no_more_may_be_sent(in_flight: int, cwnd: int, full: bool) -> None:
    line = tcp(
        queues=(0, in_flight + 500), notsent=500, unacked=-(-in_flight // MSS), cwnd=cwnd, mss=MSS, snd_wnd=65536
    )
    assert window_full(parse(line)[0]) is full


def test_window_of_less_than_a_segment_is_not_full_of_nothing() -> None:
    line = tcp(queues=(0, 0), cwnd=10, mss=65483, snd_wnd=65536)
    assert not window_full(parse(line)[0])


def test_small_segments_do_not_fill_the_window() -> None:
    # 60 segments of 100 bytes are 6000 bytes, not 60 full ones
    line = tcp(queues=(0, 6000), unacked=60, cwnd=100, mss=MSS, snd_wnd=65536)
    assert not window_full(parse(line)[0])


@pytest.mark.parametrize(
    ("w", "notsent", "cwnd", "full"),
    [
        (88384, 4, 79, True),  # as OpenVPN's with 65536 bytes: tb is twice that
        (78643, 0, 79, False),  # 0.6 * 131072 = 78643.2
        (88384, 2896, 79, True),  # two segments wait
        (88384, 2897, 79, False),  # more could have been sent
        (88384, 4, 39, False),  # the congestion window is what holds it up
    ],
)
def test_send_buffer_is_full_of_what_has_been_sent(w: int, notsent: int, cwnd: int, full: bool) -> None:
    line = tcp(skmem={"w": w, "tb": 131072}, notsent=notsent, unacked=39, cwnd=cwnd, mss=MSS)
    assert buffer_full(parse(line)[0]) is full


@pytest.mark.parametrize(
    ("recv_q", "r", "full"), [(50_000, 66_880, True), (44_390, 65_536, False), (0, 120_000, False)]
)
def test_unread_is_what_the_process_could_read(recv_q: int, r: int, full: bool) -> None:
    # in the last, all of it lies behind a segment that was lost
    line = tcp(queues=(recv_q, 0), skmem={"r": r, "rb": 131072})
    assert unread(parse(line)[0]) is full


# the command


def test_command_of_the_direction() -> None:
    made = sampled()
    later = command("client_to_server", "").model_copy(update={"started_at": "2026-11-30T16:00:09.000+00:00"})
    made = made.model_copy(update={"commands": [later, *made.commands]})
    assert times(flow_of(made).command) == (0, COMMAND_S)
    found = flow.flow(made, measured(direction="client_to_server"))
    assert found is not None
    assert times(found.command) == (9, 9 + COMMAND_S)
    assert found.seconds == COMMAND_S


def test_commands_of_other_names_are_all_of_it() -> None:
    first, second = (
        command(name, "").model_copy(update={"elapsed_s": lasted}) for name, lasted in (("go", 2), ("a", 1))
    )
    second = second.model_copy(update={"started_at": "2026-11-30T16:00:04.500+00:00"})
    assert times(flow_of(with_commands(sampled(), first, second)).command) == (0, 5.5)


def test_command_that_took_no_time_has_a_length() -> None:
    none = command("server_to_client", "").model_copy(update={"elapsed_s": 0.0})
    assert flow_of(with_commands(sampled(), none)).seconds == pytest.approx(0.05)


def with_commands(made: Record, *commands: Command) -> Record:
    return made.model_copy(update={"commands": list(commands)})


# records without usable samples


def without(made: Record, *hosts: str, samples: str = "") -> Record:
    after = {
        host: seen.model_copy(update={"samples": samples}) if host in hosts else seen
        for host, seen in made.after.items()
    }
    return made.model_copy(update={"after": after})


@pytest.mark.parametrize("hosts", [["server"], ["client"], ["server", "client"]])
@pytest.mark.parametrize("samples", ["", "garbage", '{"meta":{}}\n["at","a"]\n[1,2]\n[2,3]\n'])
def test_no_flow_without_the_samples_of_both_hosts(hosts: list[str], samples: str) -> None:
    assert flow.flow(without(sampled(), *hosts, samples=samples), measured()) is None


def test_no_flow_without_hosts_or_commands() -> None:
    made = sampled()
    assert flow.flow(made.model_copy(update={"after": {}}), measured()) is None
    assert flow.flow(with_commands(made), measured()) is None


# clocks


def ahead(made: Record, before: float, after: float) -> Record:
    """The record with a server whose clock is ahead, by what the looks before and after tell."""
    looks = {}
    for name, seen, by in (("before", made.before, before), ("after", made.after, after)):
        looks[name] = {**seen, "server": seen["server"].model_copy(update={"at": seen["client"].at + by})}
    return made.model_copy(update=looks)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        *[(-0.147, 0.006, 0), (0.5, -0.5, 0), (5, 5.1, 5), (-5.1, -5, -5)],
        (4, 5, 4),  # the client waited a second for its ping
        (0.1, 30, 0),  # the server waited for a log
        (-3600, -3601, -3600),
    ],
)
def test_how_far_the_servers_clock_is_ahead(before: float, after: float, expected: float) -> None:
    assert flow.clock_ahead(ahead(sampled(), before, after)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("seconds", [5, -5, 3600])
def test_server_with_another_clock_tells_the_same(seconds: float) -> None:
    sender = Side(process("iperf3", 0.5), [sends(28e6, rwnd_limited=0.75)])
    made = sampled(sender)
    text = made.after["server"].samples
    assert str(stamped(0.4)) in text
    moved = "\n".join(_moved(line, seconds) for line in text.splitlines())
    (here,), (there,) = (
        flow_of(each).passages for each in (made, ahead(without(made, "server", samples=moved), seconds, seconds))
    )
    assert here.looks == there.looks > 10
    assert here.sent_bytes == there.sent_bytes
    assert here.rwnd_limited == pytest.approx(there.rwnd_limited) == pytest.approx(0.75, abs=0.001)


def _moved(line: str, seconds: float) -> str:
    """Return a line of samples with its time changed."""
    begun = str(round(START.timestamp()))[:6]  # all times of a test begin with it
    place = line.find(begun)
    if place < 0:
        return line
    end = min(found for found in (line.find(",", place), line.find("}", place)) if found > 0)
    return f"{line[:place]}{float(line[place:end]) + seconds:.4f}{line[end:]}"
