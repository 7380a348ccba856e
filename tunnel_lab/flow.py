"""One direction of one repeat: when its payload passed, and which sockets it passed through."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from statistics import fmean, median
from typing import TYPE_CHECKING

from tunnel_lab import samples
from tunnel_lab.accounting import RECEIVER, SENDER
from tunnel_lab.records import Host, Record
from tunnel_lab.samples import Samples
from tunnel_lab.sockets import Socket

if TYPE_CHECKING:
    from tunnel_lab.parsing import Measurement

EDGE = 0.02
"""The transfer is the time in which the bytes passed but for the first and the last of this share: not the handshakes,
not the wait for a server that saves its data first."""
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
    busy: float
    """Share of the time with data to send (tcp_info: tcpi_busy_time)."""
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
    unread: float
    """Share of looks in which over half of its receive buffer waited for the process to read."""
    window_bytes: float
    """The peer's receive window (snd_wnd), median."""
    buffer_bytes: float
    """The send buffer without the kernel's bookkeeping, half of `tb`, median."""
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
    def retransmitted(self) -> float:
        """Retransmitted share of the bytes sent."""
        return self.retransmitted_bytes / self.sent_bytes if self.sent_bytes else 0.0


@dataclass(frozen=True)
class Flow:
    """A measurement with the evidence around it."""

    record: Record
    measurement: Measurement
    samples: dict[Host, Samples]

    @property
    def sender(self) -> Host:
        """The host that the payload came from."""
        return SENDER[self.measurement.direction]

    @property
    def receiver(self) -> Host:
        """The host that it went to."""
        return RECEIVER[self.measurement.direction]

    @cached_property
    def command(self) -> tuple[float, float]:
        """When the command ran, in seconds since the epoch by the client's clock."""
        found = next(each for each in self.record.commands if each.name == self.measurement.direction)
        begun = datetime.fromisoformat(found.started_at).timestamp()
        return begun, begun + found.elapsed_s

    @property
    def starts(self) -> list[float]:
        """When each command of the repeat began."""
        return [datetime.fromisoformat(each.started_at).timestamp() for each in self.record.commands]

    @property
    def seconds(self) -> float:
        """How long the command ran."""
        return self.command[1] - self.command[0]

    @property
    def link(self) -> str:
        """The link's interface on the receiver."""
        return f"net|{self.record.link.interfaces[self.receiver]}|rx_bytes"

    @cached_property
    def transfer(self) -> tuple[float, float]:
        """When all but the first and last EDGE of the bytes came over the link to the receiver."""
        series, (start, end) = self.samples[self.receiver], self.command
        times = [start, *(row.at for row in series.rows if start < row.at < end), end]
        counts = [series.value(self.link, at) or 0.0 for at in times]
        low, high = (counts[0] + share * (counts[-1] - counts[0]) for share in (EDGE, 1 - EDGE))
        first = max((at for at, count in zip(times, counts, strict=True) if count <= low), default=start)
        last = min((at for at, count in zip(times, counts, strict=True) if count >= high), default=end)
        return first, max(last, first + samples.SHORTEST_S)

    def rates(self) -> list[float]:
        """Return the bit rate at which bytes came over the link, for each interval between two rows of the transfer."""
        series, (start, end) = self.samples[self.receiver], self.transfer
        times = [start, *(row.at for row in series.rows if start < row.at < end), end]
        pairs = [(a, b) for a, b in itertools.pairwise(times) if b - a > samples.SHORTEST_S / 2]
        return [8 * series.rise(self.link, a, b) / (b - a) for a, b in pairs]

    @cached_property
    def passages(self) -> list[Passage]:
        """The connections of both hosts that carried at least a tenth of the payload, over the transfer."""
        found = []
        for host, series in self.samples.items():
            owner = owners(series)
            for looked in _by_socket(series, self.transfer).values():
                passage = _passage(host, owner, looked)
                if max(passage.sent_bytes, passage.received_bytes) >= self.measurement.payload_bytes / 10:
                    found.append(passage)
        return found

    def is_tunnel(self, host: Host, unit: str) -> bool:
        """Whether `unit` carries the tunnel on `host`."""
        return self.record.cell.tunnel_units.get(host) == unit


def flow(record: Record, measurement: Measurement) -> Flow | None:
    """Return the evidence around a measurement; None where the hosts were not sampled."""
    read = {host: samples.of(record.after[host].samples) for host in record.after}
    return Flow(record, measurement, read) if len(read) == 2 and all(read.values()) else None


def owners(series: Samples) -> dict[int, str]:
    """Return {pid: unit} of every process that was sampled."""
    parts = (name.split("|") for name in series.names if name.startswith("process|"))
    return {int(part[3]): part[1] for part in parts}


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
        unit=next((owner[pid] for _, pid in last.holders if pid in owner), ""),
        process=last.process or first.process,
        key=last.key,
        crosses=last.crosses,
        looks=len(looked),
        seconds=seconds,
        sent_bytes=rise("bytes_sent"),
        received_bytes=rise("bytes_received"),
        retransmitted_bytes=rise("bytes_retrans"),
        busy=time_share("busy"),
        rwnd_limited=time_share("rwnd_limited"),
        sndbuf_limited=time_share("sndbuf_limited"),
        cwnd_full=_share(sockets, cwnd_full),
        window_full=_share(sockets, window_full),
        buffer_full=_share(sockets, buffer_full),
        unread=_share(sockets, unread),
        window_bytes=median(socket.number("snd_wnd") for socket in sockets),
        buffer_bytes=median(socket.memory.get("tb", 0) / 2 for socket in sockets),
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
    window = socket.number("snd_wnd")
    return window > 0 and not cwnd_full(socket) and socket.in_flight >= FULL_WINDOW * window - socket.number("mss")


def buffer_full(socket: Socket) -> bool:
    """Whether the send buffer is full of what has been sent already, and the congestion window would let more be."""
    limit = socket.memory.get("tb", 0)
    full = limit > 0 and socket.memory.get("w", 0) >= FULL_BUFFER * limit
    return full and not cwnd_full(socket) and socket.number("notsent") <= 2 * socket.number("mss")


def unread(socket: Socket) -> bool:
    """Whether the process leaves over half of the receive buffer unread."""
    limit = socket.memory.get("rb", 0)
    return limit > 0 and socket.memory.get("r", 0) > limit / 2
