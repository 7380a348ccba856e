"""The forwarding loop: reads both TAP devices, delivers each frame when it is due, sleeps in between."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from select import select
from time import monotonic_ns, sleep

from tunnel_lab.relay.channel import Channel
from tunnel_lab.relay.lateness import Histogram
from tunnel_lab.relay.tap import Tap

_BATCH = 64
"""Frames moved in one go, each way, before the other work gets its turn."""
_READ_BYTES = 65535 + 4
"""Largest frame: 65521 (largest MTU) and the Ethernet header, and a VLAN tag. The MTU may be raised later."""
_TICK_NS = 1_000_000_000
_SPIN_LIMIT = 5000
"""Wakeups in one second that move nothing; an idle relay needs one, a waiting frame at most one or two."""
_BUSY_NS = 400_000
_REST_S = 0.0002
"""Pause after moving frames when the last move was less than _BUSY_NS ago, so that a busy link wakes for several
frames at once. At 100 Mbit/s this halved the processor time (50 to 28 % of a core) for frames delivered mostly
within 0.2 ms of their time. It also leaves others room while a flood comes in. Sparse traffic, such as a ping,
is never paused."""
_LONG_WAIT_NS = 2_000_000
_EARLY_NS = 200_000
"""After a wait longer than _LONG_WAIT_NS the processor sleeps so deeply that the timer comes 0.1 to 0.2 ms late, so
ask for it this much early and spend the rest awake: at most 500 times a second, a tenth of a core."""
_DEVICE_GONE = {errno.EBADFD, errno.EBADF, errno.ENODEV, errno.EFAULT}


class Ended(Exception):
    """The relay must end; the text is the reason for its status."""


class Spinning(Exception):
    """The loop woke over and over for nothing: a defect, which must not take the machine with it."""


@dataclass(slots=True)
class Direction:
    """One way over the link. Shares nothing with the other way."""

    name: str
    source: Tap
    sink: Tap
    channel: Channel
    lateness: Histogram = field(default_factory=Histogram)
    frames_out: int = 0
    bytes_out: int = 0
    dropped_write: int = 0

    def receive(self) -> int:
        """Read what waits, up to a batch; returns the number of frames. Ended when the device is gone.

        Each frame is stamped after it was read, so the round trip is never shorter than set.
        """
        fd, offer, read, clock = self.source.fd, self.channel.offer, os.read, monotonic_ns
        count = 0
        try:
            while count < _BATCH:
                offer(read(fd, _READ_BYTES), clock())
                count += 1
        except BlockingIOError:
            pass
        except OSError as error:
            raise _gone(self.source, error) from error
        return count

    def deliver(self, now_ns: int) -> int:
        """Write the frames that are due, up to a batch; returns their number. Ended when the device is gone.

        A device that is down or full refuses the frame: that is a drop, as on a real link.
        """
        in_flight = self.channel.in_flight
        fd, late, write, clock = self.sink.fd, self.lateness.add, os.write, monotonic_ns
        count = 0
        while in_flight and in_flight[0][0] <= now_ns and count < _BATCH:
            due_ns, frame = in_flight.popleft()
            count += 1
            try:
                write(fd, frame)
            except OSError as error:
                if error.errno in _DEVICE_GONE:
                    raise _gone(self.sink, error) from error
                self.dropped_write += 1
            else:
                self.frames_out += 1
                self.bytes_out += len(frame)
                late(now_ns - due_ns)
            now_ns = clock()
        return count


def _gone(tap: Tap, error: OSError) -> Ended:
    return Ended(f"interface {tap.name} in {tap.netns} is gone ({error.strerror})")


@dataclass(slots=True)
class Loop:
    """Forwards both directions; `stops` maps each descriptor that ends the relay when readable to the reason."""

    directions: tuple[Direction, Direction]
    stops: Mapping[int, str]
    wakeups: int = 0

    def run(self, tick: Callable[[], None]) -> None:
        """Forward frames and call `tick` about once a second, until Ended (orderly) or Spinning (a defect).

        select() is the simplest wait with microsecond precision: epoll waits in whole milliseconds, and
        timerfd came to Python with 3.13. Garbage collection stays on: without it, neither the processor time
        nor the lateness was measurably less.
        """
        first, second = self.directions
        sources = {direction.source.fd: direction for direction in self.directions}
        watched = [*sources, *self.stops]
        next_tick = monotonic_ns() + _TICK_NS
        idle_wakeups = 0
        last_move = 0
        while True:
            now = monotonic_ns()
            moved = first.deliver(now) + second.deliver(now)
            if now >= next_tick:
                if idle_wakeups > _SPIN_LIMIT:
                    raise Spinning(f"woke {idle_wakeups} times in a second without moving a frame")
                idle_wakeups = 0
                next_tick = now + _TICK_NS
                tick()

            wake_at = next_tick
            for direction in self.directions:
                in_flight = direction.channel.in_flight
                if in_flight and in_flight[0][0] < wake_at:
                    wake_at = in_flight[0][0]
            wait = wake_at - monotonic_ns()
            early = _EARLY_NS if wait > _LONG_WAIT_NS else 0
            ready, _, _ = select(watched, (), (), max(wait - early, 0) / 1e9)
            self.wakeups += 1
            while early and not ready and monotonic_ns() < wake_at:
                pass

            for fd in ready:
                if fd in self.stops:
                    raise Ended(self.stops[fd])
                moved += sources[fd].receive()
            if not moved:
                idle_wakeups += 1
            elif now - last_move < _BUSY_NS:
                sleep(_REST_S)
                last_move = now
            else:
                last_move = now
