"""One TCP connection over a transfer, from the looks at its socket: what passed through it and what held it up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean, median

from tunnel_lab.records import Host
from tunnel_lab.samples import Samples
from tunnel_lab.sockets import Socket

FULL_CWND, FULL_BUFFER, FULL_WINDOW = 0.9, 0.6, 0.9
"""From which share on a congestion window, a buffer, a receiver's window counts as full. A buffer's: Linux lets a
process write again when two thirds are in use (sk_stream_is_writeable), so a full one is seen at about 0.67."""


@dataclass(frozen=True)
class Passage:
    """One TCP socket over a transfer: what passed through it and what held it up."""

    host: Host
    unit: str
    process: str
    key: tuple[str, str, str]
    crosses: bool
    """Whether its other end is on the other host."""
    looks: int
    seconds: float
    """Between the first and the last look; the byte counts and the kernel's time shares are of this time."""
    sent_bytes: float
    received_bytes: float
    retransmitted_bytes: float
    rwnd_limited: float
    """Share of the time held up by the peer's receive window (tcpi_rwnd_limited)."""
    sndbuf_limited: float
    """Share of the time held up by its own send buffer (tcpi_sndbuf_limited)."""
    cwnd_full: float
    """Share of looks in which its congestion window was in use."""
    window_full: float
    """Share of looks in which the peer's receive window was in use."""
    buffer_full: float
    """Share of looks with a full send buffer, all of it sent, and room in the congestion window."""
    starved: float
    """Share of looks in which its process had given it nothing more to send, and there was room in every window."""
    unread: float
    """Share of looks in which over half of its receive buffer waited for the process to read."""
    window_bytes: float
    """The peer's receive window (snd_wnd), median."""
    buffer_bytes: float
    """What the send buffer holds, median: half of `tb`, the rest is the kernel's bookkeeping; or what was in flight, if
    that was more."""
    min_rtt_ms: float
    cwnd: tuple[int, int]
    """Its congestion window in segments, in the first look and the last."""
    ssthresh: int | None
    """The congestion window at which slow start has ended; None while it has not."""

    @property
    def name(self) -> str:
        """What it is called in a sentence."""
        return f"{self.process or 'the kernel'}'s socket {self.key[1]} to {self.key[2]} on the {self.host}"

    @property
    def new_bit_s(self) -> float:
        """The rate at which it sent, without what it sent again."""
        return 8 * (self.sent_bytes - self.retransmitted_bytes) / self.seconds if self.seconds else 0.0

    @property
    def retransmitted(self) -> float:
        """Retransmitted share of the bytes sent."""
        return self.retransmitted_bytes / self.sent_bytes if self.sent_bytes else 0.0


def owners(series: Samples) -> dict[int, str]:
    """Return {pid: unit} of every process that was sampled."""
    parts = (name.split("|") for name in series.names if name.startswith("process|"))
    return {int(part[3]): part[1] for part in parts}


def passages(host: Host, series: Samples, when: tuple[float, float]) -> list[Passage]:
    """Return every TCP connection of a host that was seen between two times."""
    owner = owners(series)
    return [_passage(host, owner, looked) for looked in _by_socket(series, when).values()]


def _by_socket(series: Samples, when: tuple[float, float]) -> dict[tuple[str, str, str], list[tuple[float, Socket]]]:
    found: dict[tuple[str, str, str], list[tuple[float, Socket]]] = {}
    for look in series.between(*when):
        for socket in look.sockets:
            if socket.netid == "tcp" and socket.state in ("ESTAB", "CLOSE-WAIT", "FIN-WAIT-1"):
                found.setdefault(socket.key, []).append((look.at, socket))
    return found


def _passage(host: Host, owner: dict[int, str], looked: list[tuple[float, Socket]]) -> Passage:
    (begun, first), (ended, last) = looked[0], looked[-1]
    sockets = [socket for _, socket in looked]
    seconds = ended - begun

    def rise(name: str) -> float:
        return last.number(name) - first.number(name)

    def time_share(name: str) -> float:
        return min(1.0, rise(name) / 1000 / seconds) if seconds else 0.0

    return Passage(
        host=host,
        # one that its process has closed has no holder any more, nor is it ESTAB, while its last bytes are under way
        unit=next((owner[pid] for socket in reversed(sockets) for _, pid in socket.holders if pid in owner), ""),
        process=next((socket.process for socket in reversed(sockets) if socket.process), ""),
        key=last.key,
        crosses=any(socket.crosses for socket in sockets),
        looks=len(looked),
        seconds=seconds,
        sent_bytes=rise("bytes_sent"),
        received_bytes=rise("bytes_received"),
        retransmitted_bytes=rise("bytes_retrans"),
        rwnd_limited=time_share("rwnd_limited"),
        sndbuf_limited=time_share("sndbuf_limited"),
        cwnd_full=_share(sockets, cwnd_full),
        window_full=_share(sockets, window_full),
        buffer_full=_share(sockets, buffer_full),
        starved=_share(sockets, starved),
        unread=_share(sockets, unread),
        window_bytes=median(socket.number("snd_wnd") for socket in sockets),
        buffer_bytes=median(max(socket.memory.get("tb", 0) / 2, socket.in_flight) for socket in sockets),
        min_rtt_ms=last.number("minrtt"),
        cwnd=(int(first.number("cwnd")), int(last.number("cwnd"))),
        ssthresh=int(last.number("ssthresh")) or None,
    )


def _share(sockets: Iterable[Socket], test: Callable[[Socket], bool]) -> float:
    return fmean(float(test(socket)) for socket in sockets)


def cwnd_full(socket: Socket) -> bool:
    """Whether as many segments are in flight as the congestion window lets be."""
    return socket.number("unacked") >= FULL_CWND * socket.number("cwnd") > 0


def window_full(socket: Socket) -> bool:
    """Whether as much is in flight as the peer's window takes, and the congestion window would let more be."""
    window, flying = socket.number("snd_wnd"), socket.in_flight
    full = window > 0 and flying > 0 and flying >= FULL_WINDOW * window - socket.number("mss")
    return full and not cwnd_full(socket)


def buffer_full(socket: Socket) -> bool:
    """Whether the send buffer is full of what has been sent already, and the congestion window would let more be."""
    limit = socket.memory.get("tb", 0)
    full = limit > 0 and socket.memory.get("w", 0) >= FULL_BUFFER * limit
    return full and not cwnd_full(socket) and socket.number("notsent") <= 2 * socket.number("mss")


def starved(socket: Socket) -> bool:
    """Whether all that its process has written is sent, and more could be. (tcp_info's busy time goes on until the
    last byte is acknowledged, so a slow writer's socket is busy all the time on a long link.)"""
    all_sent = socket.number("notsent") <= socket.number("mss")
    return all_sent and not (cwnd_full(socket) or window_full(socket) or buffer_full(socket))


def unread(socket: Socket) -> bool:
    """Whether the process leaves over half of the receive buffer unread: not what waits for lost bytes before it."""
    limit = socket.memory.get("rb", 0)
    return socket.recv_q > 0 and limit > 0 and socket.memory.get("r", 0) > limit / 2
