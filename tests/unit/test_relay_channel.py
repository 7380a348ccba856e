"""The link's arithmetic under a clock of the test's own, against values worked out by hand."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tunnel_lab.relay.channel import Channel
from tunnel_lab.relay.config import default_queue_bytes

MS = 1_000_000
FRAME = bytes(1250)  # 10,000 bit: 1 ms at 10 Mbit/s


def channel(rate_mbit: float | None = 10, delay_ms: float = 0, queue_bytes: int = 10**9, loss: float = 0) -> Channel:
    return Channel(rate_mbit=rate_mbit, delay_ms=delay_ms, queue_bytes=queue_bytes, loss_pct=loss, seed="1")


def arrivals(link: Channel) -> list[int]:
    return [at for at, _ in link.in_flight]


def test_idle_link_adds_one_serialization_and_the_delay() -> None:
    link = channel(delay_ms=40)
    link.offer(FRAME, 5 * MS)
    assert arrivals(link) == [(5 + 1 + 40) * MS]


def test_frames_that_come_together_leave_back_to_back() -> None:
    link = channel(delay_ms=40)
    for _ in range(3):
        link.offer(FRAME, 0)
    assert arrivals(link) == [41 * MS, 42 * MS, 43 * MS]


def test_idle_time_is_not_saved_up() -> None:
    link = channel()
    for now in (0, 100 * MS, 100 * MS):
        link.offer(FRAME, now)
    assert arrivals(link) == [1 * MS, 101 * MS, 102 * MS]


@pytest.mark.parametrize(
    ("rate_mbit", "size", "expected_ns"), [(100, 1514, 121_120), (20, 60, 24_000), (0.5, 1, 16_000)]
)
def test_serialization_time(rate_mbit: float, size: int, expected_ns: int) -> None:
    link = channel(rate_mbit)
    link.offer(bytes(size), 0)
    assert arrivals(link) == [expected_ns]


@pytest.mark.parametrize("unlimited", [None, 0])
def test_unlimited_rate_only_delays_and_never_queues(unlimited: float | None) -> None:
    link = channel(unlimited, delay_ms=10, queue_bytes=1)
    for _ in range(1000):
        link.offer(FRAME, 7)
    assert set(arrivals(link)) == {7 + 10 * MS}
    assert (link.dropped_queue, link.queue_bytes_max) == (0, 0)


def test_queue_takes_exactly_its_bytes() -> None:
    link = channel(queue_bytes=10 * len(FRAME))
    for _ in range(10):
        link.offer(FRAME, 0)
    assert (len(link.in_flight), link.dropped_queue, link.queue_bytes_max) == (10, 0, 12_500)
    link.offer(b"x", 0)
    assert link.dropped_queue == 1


def test_one_byte_less_drops_the_last_frame() -> None:
    link = channel(queue_bytes=10 * len(FRAME) - 1)
    for _ in range(10):
        link.offer(FRAME, 0)
    assert (len(link.in_flight), link.dropped_queue) == (9, 1)


def test_queue_frees_what_was_sent_and_drops_do_not_take_room() -> None:
    link = channel(queue_bytes=2 * len(FRAME))
    for _ in range(5):
        link.offer(FRAME, 0)
    assert link.dropped_queue == 3
    link.offer(FRAME, MS - 1)
    assert link.dropped_queue == 4
    link.offer(FRAME, MS)
    assert link.dropped_queue == 4
    assert arrivals(link) == [1 * MS, 2 * MS, 3 * MS]


def test_propagation_does_not_count_as_queue() -> None:
    link = channel(delay_ms=1000, queue_bytes=len(FRAME))
    for number in range(50):
        link.offer(FRAME, number * MS)
    assert (len(link.in_flight), link.dropped_queue) == (50, 0)


def test_order_and_spacing_hold_for_any_traffic() -> None:
    chance = random.Random(5)
    link = channel(rate_mbit=30, delay_ms=3, queue_bytes=40_000)
    now = 0
    for _ in range(5000):
        now += chance.randrange(300_000)
        link.offer(bytes(chance.randrange(60, 1515)), now)
    assert link.frames_in == len(link.in_flight) + link.dropped_queue
    assert link.dropped_queue > 0
    for (earlier, _), (later, frame) in pairwise(link.in_flight):
        assert later - earlier >= int(len(frame) * 8000 / 30)


def test_directions_share_nothing() -> None:
    full, other = channel(queue_bytes=len(FRAME)), channel(queue_bytes=len(FRAME))
    for _ in range(100):
        full.offer(FRAME, 0)
    other.offer(FRAME, 0)
    assert arrivals(other) == [1 * MS]
    assert (full.dropped_queue, other.dropped_queue) == (99, 0)


def test_loss_rate_and_seed() -> None:
    count, share = 20_000, 0.05
    links = [channel(None, loss=100 * share) for _ in range(2)]
    links.append(Channel(rate_mbit=None, delay_ms=0, queue_bytes=0, loss_pct=100 * share, seed="2"))
    for link in links:
        for number in range(count):
            link.offer(b"x", number)
        assert abs(link.dropped_loss - count * share) < 4.5 * (count * share * (1 - share)) ** 0.5
        assert link.dropped_loss + len(link.in_flight) == link.frames_in == link.bytes_in == count
    assert arrivals(links[0]) == arrivals(links[1]) != arrivals(links[2])


def test_lost_frames_take_no_time_at_the_bottleneck() -> None:
    link = channel(loss=100)
    link.offer(FRAME, 0)
    assert (link.dropped_loss, link.queue_bytes_max, arrivals(link)) == (1, 0, [])


@pytest.mark.parametrize(
    ("rate_mbit", "rtt_ms", "expected"), [(100, 80, 1_000_000), (20, 40, 150_000), (None, 80, 150_000)]
)
def test_default_queue(rate_mbit: float | None, rtt_ms: float, expected: int) -> None:
    assert default_queue_bytes(rate_mbit, rtt_ms) == expected
