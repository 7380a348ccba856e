"""One direction of the link as pure arithmetic: loss, bottleneck with drop-tail queue, propagation delay."""

from __future__ import annotations

import random
from collections import deque


class Channel:
    """Decides for each frame whether it is lost and when it arrives; holds it until then.

    Works like `netem delay` behind `tbf` in the kernel:

        departure = max(now, previous departure) + frame bytes * 8 / rate
        arrival   = departure + delay

    Frame bytes are layer-2 bytes as `tc` counts them: Ethernet header included; preamble, checksum and
    inter-frame gap not. Times are integer nanoseconds of any one steady clock, given by the caller.

    Since frames leave back to back while any wait, `departure - now` IS the queue, measured in time: the
    bytes not yet sent, including the rest of the frame being sent, but nothing in propagation. The limit
    is compared in that form, which needs no second list. Rounding is below 1 ns for each queued frame.
    """

    __slots__ = (
        "_delay_ns",
        "_departure_ns",
        "_limit_ns",
        "_loss",
        "_ns_per_byte",
        "_random",
        "_wait_max_ns",
        "bytes_in",
        "dropped_loss",
        "dropped_queue",
        "frames_in",
        "in_flight",
    )

    def __init__(
        self, *, rate_mbit: float | None, delay_ms: float, queue_bytes: int, loss_pct: float = 0.0, seed: str = ""
    ) -> None:
        """rate_mbit None or 0 is unlimited, and then nothing ever queues. delay_ms is one-way."""
        self._ns_per_byte = 8000 / rate_mbit if rate_mbit else 0.0
        self._limit_ns = int(queue_bytes * self._ns_per_byte)
        self._delay_ns = round(delay_ms * 1e6)
        self._loss = loss_pct / 100
        self._random = random.Random(seed).random
        self._departure_ns = 0
        self._wait_max_ns = 0
        self.in_flight: deque[tuple[int, bytes]] = deque()
        """(arrival time, frame), earliest first: the delay is constant, so order never changes."""
        self.frames_in = 0
        self.bytes_in = 0
        self.dropped_loss = 0
        self.dropped_queue = 0

    def offer(self, frame: bytes, now_ns: int) -> None:
        """Take a frame that reached the link at now_ns: lose it, drop it, or put it in flight."""
        size = len(frame)
        self.frames_in += 1
        self.bytes_in += size
        if self._loss and self._random() < self._loss:
            self.dropped_loss += 1
            return
        departure = max(self._departure_ns, now_ns) + int(size * self._ns_per_byte)
        wait = departure - now_ns
        if wait > self._limit_ns:
            self.dropped_queue += 1
            return
        self._wait_max_ns = max(self._wait_max_ns, wait)
        self._departure_ns = departure
        self.in_flight.append((departure + self._delay_ns, frame))

    @property
    def queue_bytes_max(self) -> int:
        """Most bytes that ever waited at once, the frame just taken included."""
        return round(self._wait_max_ns / self._ns_per_byte) if self._ns_per_byte else 0
