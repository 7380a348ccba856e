"""What both hosts did during one repeat, as curves: the link, one socket, the CPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean

from tunnel_lab import flow, timeseries
from tunnel_lab.accounting import SENDER
from tunnel_lab.parsing import Direction
from tunnel_lab.passage import owners
from tunnel_lab.records import Host, Record
from tunnel_lab.samples import Samples

MOST_POINTS = 500
"""Of one curve; more are drawn as the mean of several."""
Points = list[tuple[float, float]]
"""(seconds since the first command began, value)"""


@dataclass(frozen=True)
class Curve:
    """One quantity over time."""

    name: str
    points: Points

    def during(self, seconds: float) -> list[float]:
        """Return its values while the commands ran."""
        return [value for at, value in self.points if 0 <= at <= seconds] or [value for _, value in self.points]


@dataclass(frozen=True)
class Panel:
    """Curves that have a unit in common; `metric` says which, as the end of a column's name does."""

    title: str
    metric: str
    curves: list[Curve]


def seconds(record: Record) -> float:
    """Return how long the commands ran, from the start of the first to the end of the last."""
    starts = [datetime.fromisoformat(each.started_at).timestamp() for each in record.commands]
    return max(start + each.elapsed_s for start, each in zip(starts, record.commands, strict=True)) - starts[0]


def panels(record: Record, direction: Direction) -> list[Panel]:
    """Return the curves of a repeat, one panel for each unit; nothing where the hosts were not sampled."""
    series = flow.series(record) if record.commands else {}
    if not series:
        return []
    zero = datetime.fromisoformat(record.commands[0].started_at).timestamp()
    metrics = {host: _by_metric(record, host, one, zero) for host, one in series.items()}
    found = [
        Panel("Bytes that came over the link", "link_bit_s", _link(metrics)),
        _socket(record, direction, series, metrics, zero),
        Panel("CPU of each host", "cpu_cores", _cpu(metrics)),
    ]
    return [panel for panel in found if panel and panel.curves]


Metrics = dict[Host, dict[str, Points]]


def _by_metric(record: Record, host: Host, series: Samples, zero: float) -> dict[str, Points]:
    found: dict[str, Points] = {}
    for at, metric, value in timeseries.points(record, host, series):
        found.setdefault(metric, []).append((at - zero, value))
    return found


def _curves(named: Iterable[tuple[str, Points | None]]) -> list[Curve]:
    return [Curve(name, thin(points)) for name, points in named if points]


def _link(metrics: Metrics) -> list[Curve]:
    return _curves((f"to the {host}", found.get("link_rx_bit_s")) for host, found in metrics.items())


def _cpu(metrics: Metrics) -> list[Curve]:
    return _curves((host, found.get("cpu_cores")) for host, found in metrics.items())


def _socket(
    record: Record, direction: Direction, series: dict[Host, Samples], metrics: Metrics, zero: float
) -> Panel | None:
    """Return the sender's socket to the other host: the tunnel's own where it has one, else the busiest."""
    host = SENDER[direction]
    if host not in series:
        return None
    name = _busiest(record, host, series[host])
    if name is None:
        return None
    shown = [("congestion window", "cwnd_bytes"), ("in flight", "in_flight_bytes"), ("peer's window", "snd_wnd_bytes")]
    curves = _curves((words, metrics[host].get(f"{metric} {name}")) for words, metric in shown)
    buffer = [
        (look.at - zero, socket.memory.get("tb", 0) / 2)
        for look in series[host].looks
        for socket in look.sockets
        if socket.netid == "tcp" and socket.crosses and f"{socket.process}:{socket.local}" == name
    ]
    process, _, address = name.partition(":")
    curves += _curves([("send buffer", [point for point in buffer if point[1] > 0])])
    return Panel(f"Socket {address} of {process or 'the kernel'} on the {host}", "socket_bytes", curves)


def _busiest(record: Record, host: Host, series: Samples) -> str | None:
    """Return `process:local address` of the socket to show, as the time series names it."""
    owner, tunnel = owners(series), record.cell.tunnel_units.get(host)
    sent: dict[str, tuple[bool, float]] = {}
    for look in series.looks:
        for socket in look.sockets:
            if socket.netid == "tcp" and socket.crosses and socket.number("bytes_sent") >= timeseries.SOCKET_BYTES:
                own = tunnel is not None and any(owner.get(pid) == tunnel for _, pid in socket.holders)
                sent[f"{socket.process}:{socket.local}"] = (own, socket.number("bytes_sent"))
    return max(sent, key=lambda name: (*sent[name], name), default=None)


def thin(points: Points) -> Points:
    """Return at most MOST_POINTS points: each the mean of as many as it takes."""
    step = -(-len(points) // MOST_POINTS)
    if step <= 1:
        return points
    chunks = [points[start : start + step] for start in range(0, len(points), step)]
    return [(fmean(at for at, _ in chunk), fmean(value for _, value in chunk)) for chunk in chunks]
