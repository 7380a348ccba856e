"""Bytes on the link for each byte of payload: worked examples."""

from __future__ import annotations

from typing import Any

import pytest
from sampled import FRAME, MSS, Side, flow_of, process, receives, sampled, sends

from tunnel_lab import overhead
from tunnel_lab.flow import Flow

PAYLOAD_BIT_S = 28e6
BARE = FRAME / MSS
TUNNEL = "tunnellab-openvpn@x.service"


def made(
    ratio: float = BARE, bit_s: float = PAYLOAD_BIT_S, again: float = 0.0, receiver: Side | None = None, **cell: Any
) -> Flow:
    """A flow in which the link carries `ratio` times the payload."""
    sender = Side(process("iperf3", 0.1), [sends(bit_s, again=again)])
    reader = receiver or Side(process("iperf3", 0.1, pid=8), [receives(bit_s)])
    return flow_of(sampled(sender, reader, link=bit_s * ratio, **cell), bit_s)


def test_bare_flow() -> None:
    found = made()
    assert overhead.counted(found) == pytest.approx(1514 / 1448, rel=1e-5)
    assert overhead.columns(found, 1500) == {
        "wire_overhead": pytest.approx(1.04558, abs=1e-5),
        "wire_overhead_predicted": pytest.approx(1514 / 1448),
        "wire_note": None,
    }


def test_jumbo_frames_are_predicted_by_the_links_mtu() -> None:
    assert overhead.columns(made(9015 / 8949), 9001)["wire_note"] is None
    assert "differ by +0.038" in overhead.columns(made(), 9001)["wire_note"]  # 1.0456 - 1.0074


def test_prediction_of_another_size_than_counted_is_noted() -> None:
    found = overhead.columns(made(BARE + 0.02, again=0.015), None)
    assert found["wire_overhead"] == pytest.approx(1.06558, abs=1e-4)
    # 21 MB of payload; the looks lie between 0 s and 6 s, so that nearly 1.5 % of it are 315 kB
    assert found["wire_note"].startswith(
        "counted and predicted differ by +0.020 bytes per byte of payload; of the 21000000 "
    )
    again = int(found["wire_note"].split(" bytes of payload, ")[1].split(" ")[0])
    assert again == pytest.approx(0.015 * 21e6, rel=0.1)


@pytest.mark.parametrize(("more", "noted"), [(0.009, False), (-0.009, False), (0.011, True), (-0.011, True)])
def test_within_one_percent_they_agree(more: float, noted: bool) -> None:
    assert bool(overhead.columns(made(BARE + more), 1500)["wire_note"]) is noted


def test_fewer_than_five_million_bytes_are_not_counted() -> None:
    # between the looks at 0.001 s and 5.601 s or later, 5.5 Mbit/s are less than five million bytes, 7.5 are more
    assert overhead.counted(made(bit_s=5.5e6)) is None
    assert overhead.counted(made(bit_s=7.5e6)) == pytest.approx(BARE, rel=1e-4)
    assert overhead.columns(made(bit_s=5.5e6), 1500)["wire_note"].startswith("not counted: less than 5000000 bytes")


def test_interface_that_was_not_counted() -> None:
    found = made()
    link = found.record.link.model_copy(update={"interfaces": {"server": "a", "client": "b"}})
    moved = flow_of(found.record.model_copy(update={"link": link}), PAYLOAD_BIT_S)
    assert overhead.counted(moved) is None


def test_only_the_workloads_own_socket_counts() -> None:
    outer = receives(31e6, local="10.99.0.2:1194", peer="10.99.0.1:1194", holder=("openvpn", 9))
    counters = {**process("iperf3", 0.1, pid=8), **process("openvpn", 0.1, TUNNEL, pid=9)}
    inner = receives(PAYLOAD_BIT_S, local="10.8.0.2:40000", peer="10.8.0.1:5201")
    control = receives(1e5, local="10.8.0.2:39998", peer="10.8.0.1:5201")
    stranger = receives(99e6, local="10.99.0.2:22", peer="10.99.0.1:5", holder=("sshd", 4711))
    receiver = Side(counters, [control, outer, inner, stranger])
    found = made(1.2, receiver=receiver, tunnel_units={"client": TUNNEL})
    assert overhead.counted(found) == pytest.approx(1.2, rel=1e-4)


def test_bytes_behind_a_lost_segment_are_not_taken_for_overhead() -> None:
    """As ss showed it of a bare link at 100 Mbit/s: r2114944 and nothing to read in the last look."""
    lost_at = 4.9

    def line(at: float) -> str:
        if at < lost_at:
            return receives(PAYLOAD_BIT_S, unread=44_888, r=60_032)(at)
        return receives(PAYLOAD_BIT_S, r=2_114_944, bytes_received=round(PAYLOAD_BIT_S / 8 * lost_at))(at)

    side = Side(process("iperf3", 0.1, pid=8), [line])
    assert overhead.counted(made(receiver=side)) == pytest.approx(BARE, rel=1e-4)


def test_no_socket_of_the_workload() -> None:
    assert overhead.counted(made(receiver=Side(process("iperf3", 0.1, pid=8)))) is None


def test_socket_that_was_closed_by_the_sender_counts() -> None:
    side = Side(process("iperf3", 0.1, pid=8), [receives(PAYLOAD_BIT_S, state="CLOSE-WAIT")])
    assert overhead.counted(made(receiver=side)) == pytest.approx(BARE, rel=1e-4)


def test_tunnel_that_cannot_be_predicted() -> None:
    found = overhead.columns(made(tunnel="carrier-pigeon"), 1500)
    assert found["wire_overhead"] == pytest.approx(BARE, rel=1e-4)
    assert (found["wire_overhead_predicted"], found["wire_note"]) == (None, "not predicted: no model")


# how much of the gap


def test_gap_of_the_post_of_2016() -> None:
    """6.8 Mbit/s through OpenVPN where ssh did 95, the bare link at most 95.6 of 100.

    With 1.12 bytes for each on the link, headers leave 95.6 * 1.0456 / 1.12 = 89.25: 6.35 of a gap of 88.8.
    """
    assert overhead.explained(6.8, 95.6, 1.12, 1.0456) == pytest.approx(6.35 / 88.8, abs=0.0002)


def test_gap_that_is_all_headers() -> None:
    assert overhead.explained(92.17, 95.63, 1.0849, 1.0456) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("goodput", [95.6, 95.0, 120.0])
def test_no_gap_is_not_explained(goodput: float) -> None:
    assert overhead.explained(goodput, 95.6, 1.12, 1.0456) is None


@pytest.mark.parametrize("ratio", [1.05, 0.5])
def test_tunnel_without_headers_or_that_compresses_has_nothing_to_explain(ratio: float) -> None:
    assert overhead.explained(50, 100, ratio, 1.05) is None
