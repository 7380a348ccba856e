"""How late frames were delivered: a histogram of fixed size, and the verdict whether the relay keeps up."""

from __future__ import annotations

from bisect import bisect_left

EDGES_MS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_EDGES_NS = [int(edge * 1e6) for edge in EDGES_MS]

LATE_MS = 2.0
"""A frame later than this is late; must be one of EDGES_MS. Small against any WAN round trip."""
LATE_SHARE = 0.01
"""More late frames than this share is not keeping up: the same as "the 99th percentile is over LATE_MS"."""
MIN_WINDOW_FRAMES = 100
"""A window with fewer frames says nothing about the rate: one late frame would decide."""
REMEMBER_S = 10.0
"""How long a bad window keeps the verdict false, so that a reader just after a test still sees it."""


class Histogram:
    """Counts of delivery lateness (actual minus due time), in nanoseconds, since the start."""

    __slots__ = ("_counts", "_max_ns")

    def __init__(self) -> None:
        self._counts = [0] * (len(EDGES_MS) + 1)
        self._max_ns = 0

    def add(self, late_ns: int) -> None:
        self._counts[bisect_left(_EDGES_NS, late_ns)] += 1
        self._max_ns = max(self._max_ns, late_ns)

    @property
    def total(self) -> int:
        return sum(self._counts)

    @property
    def late(self) -> int:
        """Frames later than LATE_MS."""
        return sum(self._counts[EDGES_MS.index(LATE_MS) + 1 :])

    @property
    def max_ms(self) -> float:
        return self._max_ns / 1e6

    def percentile_ms(self, share: float) -> float:
        """Upper edge of the bucket that holds the given share (0 to 1), at most the maximum; 0 when empty."""
        seen = 0
        for edge, count in zip(EDGES_MS, self._counts, strict=False):
            seen += count
            if seen >= share * self.total:
                return min(edge, self.max_ms)
        return self.max_ms

    def buckets(self) -> dict[str, int]:
        """Frames at most that late ("le_0.1": 0.1 ms); "le_inf" is all. Subtract two readings for a window."""
        seen, result = 0, {}
        for edge, count in zip((*EDGES_MS, float("inf")), self._counts, strict=True):
            seen += count
            result[f"le_{edge:g}"] = seen
        return result


class PaceJudge:
    """Says whether the relay itself, not the link it emulates, is the limit. Fed once a second.

    A one-second window is bad when over 1 % of its frames (and it had at least MIN_WINDOW_FRAMES) were
    delivered more than LATE_MS after their due time, or when the kernel had to drop frames because the
    relay did not read them in time. A relay short of processor time shows the first as long as frames
    are in flight, and the second when it cannot even read what comes in.
    """

    def __init__(self) -> None:
        self.bad_windows = 0
        self._reason: str | None = None
        self._bad_at = 0.0
        self._seen: dict[str, tuple[int, int, int]] = {}

    def observe(self, name: str, lateness: Histogram, unread: int, now_s: float) -> None:
        """Judge one direction over the time since its last call; unread is its count of kernel drops."""
        reading = (lateness.total, lateness.late, unread)
        before = self._seen.get(name, (0, 0, 0))
        self._seen[name] = reading
        frames, late, dropped = (new - old for new, old in zip(reading, before, strict=True))
        if dropped > 0:
            self._blame(f"{name}: {dropped} frames were lost unread in one second", now_s)
        elif frames >= MIN_WINDOW_FRAMES and late > frames * LATE_SHARE:
            self._blame(f"{name}: {late} of {frames} frames were over {LATE_MS:g} ms late in one second", now_s)

    def reason(self, now_s: float) -> str | None:
        """Why the relay did not keep up within the last REMEMBER_S seconds; None when it did."""
        return self._reason if self._reason and now_s - self._bad_at <= REMEMBER_S else None

    def _blame(self, reason: str, now_s: float) -> None:
        self.bad_windows += 1
        self._reason = reason
        self._bad_at = now_s
