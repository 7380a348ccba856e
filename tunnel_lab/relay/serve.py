"""One relay's life: take everything it needs, forward until something ends it, give everything back."""

from __future__ import annotations

import os
import signal
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

from tunnel_lab.relay.channel import Channel
from tunnel_lab.relay.config import RelayConfig
from tunnel_lab.relay.errors import RelayError
from tunnel_lab.relay.loop import Direction, Ended, Loop
from tunnel_lab.relay.pidfile import pid_file
from tunnel_lab.relay.realtime import realtime
from tunnel_lab.relay.reporter import Reporter
from tunnel_lab.relay.tap import Tap

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def serve(config: RelayConfig, ready: Callable[[], None]) -> int:
    """Run one relay to its end; `ready` is called when forwarding begins. Returns the exit code.

    0: asked to stop, or a device, namespace or watched process is gone. 1: a defect ended it; the status and
    stderr say which. RelayError when it cannot start, with nothing left behind.
    """
    with ExitStack() as stack:
        stack.enter_context(pid_file(config.pid_file))
        server, client = (stack.enter_context(closing(tap)) for tap in _taps(config))
        stops = {stack.enter_context(_signal_descriptor()): "received a signal to stop"}
        for pid in config.watch_pids:
            stops[stack.enter_context(_process_descriptor(pid))] = f"watched process {pid} ended"
        loop = Loop(_directions(config, server, client), stops)
        reporter = Reporter(config, loop)
        return _run(config, loop, reporter, ready)


def _taps(config: RelayConfig) -> Iterator[Tap]:
    """Lazy, so that the first is already being looked after when the second fails."""
    try:
        same = config.server_netns.samefile(config.client_netns)
    except OSError:
        same = False  # opening it below says which is wrong
    if same:
        both = f"{config.server_netns} and {config.client_netns}"
        raise RelayError(f"{both} are one network namespace; give two different ones")
    for netns in (config.server_netns, config.client_netns):
        yield Tap(netns, config.interface, config.mtu)


def _directions(config: RelayConfig, server: Tap, client: Tap) -> tuple[Direction, Direction]:
    def direction(name: str, source: Tap, sink: Tap) -> Direction:
        channel = Channel(
            rate_mbit=config.rate_mbit,
            delay_ms=config.rtt_ms / 2,
            queue_bytes=config.queue_bytes,
            loss_pct=config.loss_pct,
            seed=f"{config.seed} {name}",
        )
        return Direction(name, source, sink, channel)

    return direction("server_to_client", server, client), direction("client_to_server", client, server)


def _run(config: RelayConfig, loop: Loop, reporter: Reporter, ready: Callable[[], None]) -> int:
    def tick() -> None:
        for direction in loop.directions:
            if direction.source.namespace_gone():
                raise Ended(f"network namespace {direction.source.netns} is gone")
        reporter.tick()

    try:
        with realtime(config.priority):
            reporter.first()
            ready()
            loop.run(tick)
    except Ended as end:
        reporter.last(str(end))
        return 0
    except RelayError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the status must say why the link is gone
        traceback.print_exc()
        reporter.last(f"defect: {error!r}")
    return 1


@contextmanager
def _signal_descriptor() -> Iterator[int]:
    """A descriptor that becomes readable at SIGTERM or SIGINT, so that the loop ends between two frames."""
    receiver, sender = socket.socketpair()
    with receiver, sender:
        sender.setblocking(False)
        for number in _STOP_SIGNALS:
            signal.signal(number, lambda *_: sender.send(b"!"))
        try:
            yield receiver.fileno()
        finally:  # from here on it is ending anyway
            for number in _STOP_SIGNALS:
                signal.signal(number, signal.SIG_IGN)


@contextmanager
def _process_descriptor(pid: int) -> Iterator[int]:
    """A descriptor that becomes readable when the process ends. RelayError when there is none."""
    try:
        fd = os.pidfd_open(pid)
    except OSError as error:
        raise RelayError(f"cannot watch process {pid}: {error.strerror}; is it running?") from error
    try:
        yield fd
    finally:
        os.close(fd)
