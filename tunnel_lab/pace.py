"""Was the relay the link that it was set to be, all through one repeat? From its counters before and after.

The kernel's netem keeps no such counters; then there is nothing to judge.
"""

from __future__ import annotations

from typing import Any

from tunnel_lab.manifests import Strict
from tunnel_lab.records import LinkSeen

LATE_MS = 2
LATE_SHARE = 0.2
"""With more than this share of its frames over LATE_MS late, the link was not what the row says it is.

A busy machine makes a few per cent of the frames late now and then; the share is in every row."""
UNREAD_SHARE = 0.001
MIN_FRAMES = 100
"""Fewer say nothing about a share."""


class Pace(Strict):
    """What the relay did in one repeat, the worse direction of the two."""

    late_share: float
    """Frames delivered more than 2 ms after their time, of all delivered."""
    dropped_queue: int
    """Frames that the full queue of the emulated bottleneck dropped, both directions: congestion, as on a real link."""
    unread: int
    """Frames that the relay did not read in time, both directions: a fault of the emulation."""
    frames: int
    """Frames delivered, both directions."""


def pace(link: LinkSeen) -> Pace | None:
    """Return the differences over a repeat; None where the emulator is not the relay or was started anew."""
    before, after = link.before.get("directions"), link.after.get("directions")
    if not before or not after or link.before.get("started_at") != link.after.get("started_at"):
        return None
    ways = [_difference(before[name], after[name]) for name in after]
    return Pace(
        late_share=max(late / frames if frames >= MIN_FRAMES else 0.0 for frames, late, _, _ in ways),
        dropped_queue=sum(way[2] for way in ways),
        unread=sum(way[3] for way in ways),
        frames=sum(way[0] for way in ways),
    )


def _difference(before: dict[str, Any], after: dict[str, Any]) -> tuple[int, int, int, int]:
    """Return frames, frames over LATE_MS late, frames dropped by the queue, frames not read."""

    def rise(key: str) -> int:
        return int(after[key] - before[key])

    def bucket(key: str) -> int:
        return int(after["lateness_ms_buckets"][key] - before["lateness_ms_buckets"][key])

    frames = bucket("le_inf")
    return frames, frames - bucket(f"le_{LATE_MS}"), rise("dropped_queue"), rise("dropped_unread")


def problem(link: LinkSeen) -> str | None:
    """Return why this repeat did not run over the link that was set, with numbers; None when it did."""
    found = pace(link)
    if found is None or found.frames < MIN_FRAMES:
        return None
    if found.late_share > LATE_SHARE:
        return f"the relay did not keep up: {found.late_share:.1%} of its frames were over {LATE_MS} ms late"
    if found.unread > UNREAD_SHARE * found.frames:
        return f"the relay did not keep up: it lost {found.unread} of {found.frames} frames unread"
    return None
