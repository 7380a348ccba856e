"""One direction of one repeat: when its payload passed, and which sockets it passed through."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from tunnel_lab import passage, samples
from tunnel_lab.accounting import RECEIVER, SENDER
from tunnel_lab.passage import Passage
from tunnel_lab.records import Host, Record
from tunnel_lab.samples import Samples

if TYPE_CHECKING:
    from tunnel_lab.parsing import Measurement

EDGE = 0.02
"""The transfer is the time in which the bytes passed but for the first and the last of this share: not the handshakes,
not the wait for a server that saves its data first."""
CLOCK_S = 0.5
"""Clocks of the hosts that are further apart than this are set right; below, the looks at the hosts cannot tell."""


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
        seen = [each for host, one in self.samples.items() for each in passage.passages(host, one, self.transfer)]
        return [each for each in seen if max(each.sent_bytes, each.received_bytes) >= least]

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
