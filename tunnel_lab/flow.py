"""One direction of one repeat: when its payload passed, and which sockets it passed through."""

from __future__ import annotations

import itertools
import math
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


CLOCK_S = 0.5
"""Clocks of the hosts that are further apart than this are set right; below, the looks at the hosts cannot tell."""


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
        """When the command ran, in seconds since the epoch by the client's clock.

        It is the one that has the direction's name; if none has, the measurement is of all of them together.
        """
        ran = list(zip(self.starts, self.record.commands, strict=True))
        found = [(begun, each) for begun, each in ran if each.name == self.measurement.direction] or ran
        first, last = min(begun for begun, _ in found), max(begun + each.elapsed_s for begun, each in found)
        return first, max(last, first + samples.SHORTEST_S)

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
        counts = [(at, count) for at in times if (count := series.value(self.link, at)) is not None]
        if len(counts) < 2:
            return start, end
        least, most = counts[0][1], counts[-1][1]
        first = max((at for at, count in counts if count <= least + EDGE * (most - least)), default=start)
        last = min((at for at, count in counts if count >= most - EDGE * (most - least)), default=end)
        return first, max(last, first + samples.SHORTEST_S)

    @cached_property
    def rates(self) -> list[tuple[float, float]]:
        """(seconds, bit rate at which bytes came over the link) of each interval between two rows of the transfer."""
        series, (start, end) = self.samples[self.receiver], self.transfer
        times = [start, *(row.at for row in series.rows if start < row.at < end), end]
        pairs = [(a, b) for a, b in itertools.pairwise(times) if b - a > samples.SHORTEST_S / 2]
        return [(b - a, 8 * series.rise(self.link, a, b) / (b - a)) for a, b in pairs]

    def over_time(self, of: Callable[[float], float]) -> float:
        """Return the mean of `of` each bit rate over the time of the transfer."""
        seconds = sum(lasted for lasted, _ in self.rates)
        return sum(lasted * of(rate) for lasted, rate in self.rates) / seconds if seconds else 0.0

    @cached_property
    def passages(self) -> list[Passage]:
        """The connections of both hosts that carried at least a tenth of the payload, over the transfer.

        Where the tunnel compresses, a tenth of what came over the link will do.
        """
        crossed = self.samples[self.receiver].rise(self.link, *self.transfer)
        least = min(self.measurement.payload_bytes, crossed if crossed > 0 else math.inf) / 10
        found = []
        for host, series in self.samples.items():
            owner = owners(series)
            for looked in _by_socket(series, self.transfer).values():
                passage = _passage(host, owner, looked)
                if max(passage.sent_bytes, passage.received_bytes) >= least:
                    found.append(passage)
        return found

    def is_tunnel(self, host: Host, unit: str) -> bool:
        """Whether `unit` carries the tunnel on `host`."""
        return self.record.cell.tunnel_units.get(host) == unit


def flow(record: Record, measurement: Measurement) -> Flow | None:
    """Return the evidence around a measurement; None where the hosts were not sampled."""
    read = series(record)
    return Flow(record, measurement, read) if len(read) == 2 and record.commands else None


def series(record: Record) -> dict[Host, Samples]:
    """Return what was sampled on each host, by the client's clock; hosts whose samples cannot be used are left out."""
    ahead = {"server": clock_ahead(record)}
    read = {host: samples.of(seen.samples).shifted(-ahead.get(host, 0.0)) for host, seen in record.after.items()}
    return {host: each for host, each in read.items() if each}


def clock_ahead(record: Record) -> float:
    """Return by how many seconds the server's clock is ahead of the client's; 0 where that is less than CLOCK_S.

    Both hosts are looked at together, before and after the workload, but either may wait, for a ping or for a log,
    before it looks. So the smaller of the two differences counts.
    """
    looks = (record.before, record.after)
    apart = [look["server"].at - look["client"].at for look in looks if {"server", "client"} <= look.keys()]
    nearest = min(apart, key=abs, default=0.0)
    return nearest if abs(nearest) > CLOCK_S else 0.0


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
        busy=time_share("busy"),
        rwnd_limited=time_share("rwnd_limited"),
        sndbuf_limited=time_share("sndbuf_limited"),
        cwnd_full=_share(sockets, cwnd_full),
        window_full=_share(sockets, window_full),
        buffer_full=_share(sockets, buffer_full),
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


def unread(socket: Socket) -> bool:
    """Whether the process leaves over half of the receive buffer unread: not what waits for lost bytes before it."""
    limit = socket.memory.get("rb", 0)
    return socket.recv_q > 0 and limit > 0 and socket.memory.get("r", 0) > limit / 2
