"""Settings of one emulated link, and the command line that sets them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ETHERNET_OVERHEAD = 18
"""Bytes a frame can have on top of the interface MTU: Ethernet header (14) and one VLAN tag (4)."""

MIN_DEFAULT_QUEUE = 150_000
"""Bytes; smallest default queue: about 100 full-size frames, to absorb bursts on a short round trip."""

MAX_MTU = 65521
"""Bytes; the kernel's limit for a TAP device: 65535 less the Ethernet header."""


@dataclass(frozen=True)
class RelayConfig:
    """One emulated link. All sizes are layer-2 bytes; loss, rate and queue apply to each direction alone."""

    server_netns: Path
    client_netns: Path
    interface: str
    rtt_ms: float
    rate_mbit: float | None
    """Bottleneck of each direction in 10^6 bit/s; None is unlimited."""
    queue_bytes: int
    loss_pct: float
    """Chance of losing a frame in ONE direction; a round trip is lost with about twice this."""
    seed: int
    mtu: int
    status_file: Path
    pid_file: Path
    log_file: Path | None
    watch_pids: tuple[int, ...]
    priority: int
    """SCHED_FIFO priority while the loop runs; 0 keeps the normal scheduler."""
    daemonize: bool


def default_queue_bytes(rate_mbit: float | None, rtt_ms: float) -> int:
    """One bandwidth-delay product, at least MIN_DEFAULT_QUEUE: what one TCP flow needs to fill the link."""
    return max(int((rate_mbit or 0) * rtt_ms * 1000 / 8), MIN_DEFAULT_QUEUE)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit 2 with one line, not argparse's usage block: callers show the line as it is."""
        self.exit(2, f"{self.prog}: {message}\n")


def parse(argv: list[str] | None = None) -> RelayConfig:
    """Read the command line; a wrong or impossible setting exits 2 with one line on stderr."""
    parser = _Parser(
        prog="tunnel-lab relay",
        allow_abbrev=False,
        description="Join two network namespaces with an emulated WAN link.",
    )
    add = parser.add_argument
    add("--server-netns", type=_absolute, required=True, help="one end: /run/netns/NAME or /proc/PID/ns/net")
    add("--client-netns", type=_absolute, required=True, help="the other end, likewise")
    add("--interface", type=_interface, required=True, help="name of the TAP device made in both namespaces")
    add("--rtt-ms", type=float, required=True, help="round-trip time; each direction gets half")
    add("--rate-mbit", type=float, default=0.0, help="each direction's rate in Mbit/s; 0: unlimited (default)")
    add("--queue-bytes", type=int, help="each direction's drop-tail queue (default: rate * round-trip time)")
    add("--loss-pct", type=float, default=0.0, help="random loss of each direction in percent")
    add("--seed", type=int, default=1, help="seed of the random loss")
    add("--mtu", type=int, default=1500, help=f"MTU of both devices, 68 to {MAX_MTU}")
    add("--status-file", type=_absolute, required=True, help="JSON, rewritten once a second")
    add("--pid-file", type=_absolute, required=True, help="held and locked while the relay lives")
    add("--log-file", type=_absolute, help="with --daemonize: where stderr goes (default: nowhere)")
    add("--watch-pid", type=int, nargs="+", action="extend", default=[], help="end when one of these ends")
    add("--priority", type=int, default=10, help="SCHED_FIFO priority, 0 to 99; 0: normal scheduling")
    add("--daemonize", action="store_true", help="return once the link is up and leave it running")
    args = parser.parse_args(argv)

    limits = (
        (0 <= args.rtt_ms <= 10_000, "--rtt-ms must be 0 to 10000"),
        (args.rate_mbit == 0 or 0.001 <= args.rate_mbit <= 10**5, "--rate-mbit must be 0, or 0.001 to 100000"),
        (0 <= args.loss_pct <= 100, "--loss-pct must be 0 to 100"),
        (68 <= args.mtu <= MAX_MTU, f"--mtu must be 68 to {MAX_MTU}"),
        (0 <= args.priority <= 99, "--priority must be 0 to 99"),
        (all(pid > 0 for pid in args.watch_pid), "--watch-pid takes positive process ids"),
    )
    for holds, message in limits:
        if not holds:
            parser.error(message)

    rate_mbit = args.rate_mbit or None
    largest_frame = args.mtu + ETHERNET_OVERHEAD
    queue_bytes = args.queue_bytes
    if queue_bytes is None:
        queue_bytes = default_queue_bytes(rate_mbit, args.rtt_ms)
    elif queue_bytes < largest_frame:
        parser.error(f"--queue-bytes {queue_bytes} cannot hold one full frame; give at least {largest_frame}")

    return RelayConfig(
        server_netns=args.server_netns,
        client_netns=args.client_netns,
        interface=args.interface,
        rtt_ms=args.rtt_ms,
        rate_mbit=rate_mbit,
        queue_bytes=queue_bytes,
        loss_pct=args.loss_pct,
        seed=args.seed,
        mtu=args.mtu,
        status_file=args.status_file,
        pid_file=args.pid_file,
        log_file=args.log_file,
        watch_pids=tuple(args.watch_pid),
        priority=args.priority,
        daemonize=args.daemonize,
    )


def _absolute(text: str) -> Path:
    """Absolute at once, since the detached relay changes directory; links are kept, as a namespace is one."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(text).absolute()


def _interface(name: str) -> str:
    """Only names the kernel takes literally: 1 to 15 bytes, and '%' would be a numbering pattern."""
    unusable = name in {".", ".."} or any(c in "/:%" or c.isspace() for c in name)
    if unusable or not 1 <= len(name.encode()) <= 15:
        raise argparse.ArgumentTypeError(f"{name!r} is not 1 to 15 bytes without '/', ':', '%' and space")
    return name
