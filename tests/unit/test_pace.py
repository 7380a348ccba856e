"""The relay's own counters over one repeat: known differences, and when a repeat does not count."""

from __future__ import annotations

from typing import Any

from tunnel_lab.pace import pace, problem
from tunnel_lab.records import LinkSeen

BEFORE = {"frames": 1000, "late": 10, "queue": 5, "unread": 1}


def reading(frames: int, late: int, queue: int, unread: int) -> dict[str, Any]:
    """One direction's counters as the relay's status has them."""
    return {
        "lateness_ms_buckets": {"le_1": 0, "le_2": frames - late, "le_inf": frames},
        "dropped_queue": queue,
        "dropped_unread": unread,
    }


def seen(started_at: str = "a", **after: int) -> LinkSeen:
    """A repeat after which one direction shows `after`, the other what it showed before."""
    states = [
        {
            "started_at": "a",
            "directions": {"server_to_client": reading(**BEFORE), "client_to_server": reading(**BEFORE)},
        },
        {
            "started_at": started_at,
            "directions": {"server_to_client": reading(**{**BEFORE, **after}), "client_to_server": reading(**BEFORE)},
        },
    ]
    return LinkSeen(before=states[0], after=states[1])


def test_differences_are_of_this_repeat_alone() -> None:
    found = pace(seen(frames=2000, late=60, queue=25, unread=4))
    assert found is not None
    assert (found.frames, found.late_share, found.dropped_queue, found.unread) == (1000, 0.05, 20, 3)


def test_late_frames_fail_a_repeat_beyond_the_limit_only() -> None:
    assert problem(seen(frames=2000, late=210)) is None  # 200 of 1000, 20 %
    said = problem(seen(frames=2000, late=211))
    assert said == "the relay did not keep up: 20.1% of its frames were over 2 ms late"


def test_frames_that_were_not_read_fail_a_repeat() -> None:
    assert problem(seen(frames=2000, unread=2)) is None  # 1 of 1000
    assert problem(seen(frames=2000, unread=3)) == "the relay did not keep up: it lost 2 of 1000 frames unread"


def test_drops_of_the_queue_are_congestion_and_no_fault() -> None:
    assert problem(seen(frames=2000, queue=900)) is None


def test_few_frames_say_nothing() -> None:
    assert problem(seen(frames=1099, late=109)) is None
    assert problem(seen(frames=1100, late=110)) is not None


def test_nothing_to_judge_without_the_relay_or_when_it_was_started_anew() -> None:
    assert pace(LinkSeen()) is None
    assert pace(LinkSeen(before={"emulator": "netem", "tc": ""}, after={"emulator": "netem", "tc": ""})) is None
    assert pace(seen(started_at="b", frames=2000, late=900)) is None
