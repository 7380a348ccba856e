"""What both hosts did over the time of each repeat, one value a line: for plotting, and for looking closer."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from tunnel_lab import flow, samples
from tunnel_lab.records import Host, Record
from tunnel_lab.samples import Row, Samples
from tunnel_lab.tables import replacing
from tunnel_lab.usage import KINDS

HEADER = ["run_id", "cell", "repeat", "host", "time_s", "metric", "value"]
RATES = {
    "Tcp|RetransSegs": "tcp_retransmits_per_s",
    "Udp|RcvbufErrors": "udp_rcvbuf_errors_per_s",
    "Udp|SndbufErrors": "udp_sndbuf_errors_per_s",
    "softnet|dropped": "softnet_dropped_per_s",
}
SOCKET_BYTES = 100_000
"""Sockets to the other host that have sent at least this are shown."""

Point = tuple[float, str, float]
"""(seconds since the epoch by the host's clock, metric, value)"""


def write(records: Iterable[Record], path: Path) -> None:
    """Write `timeseries.csv.gz` in one step (0644); the same records give the same bytes."""
    with replacing(path) as draft, draft.open("wb") as raw, gzip.GzipFile("", "wb", 3, raw, mtime=0) as packed:
        stream = io.TextIOWrapper(packed, encoding="utf-8", newline="")
        lines = csv.writer(stream, lineterminator="\n")
        lines.writerow(HEADER)
        for record in records:
            lines.writerows(_lines(record))
        stream.flush()
        stream.detach()


def _lines(record: Record) -> Iterator[list[object]]:
    """Yield the lines of one repeat; time 0 is when its first command began."""
    if not record.commands:
        return
    zero = datetime.fromisoformat(record.commands[0].started_at).timestamp()
    name = [record.run_id, record.cell.id, record.step.repeat]
    for host, series in flow.series(record).items():
        for at, metric, value in points(record, host, series):
            yield [*name, host, f"{at - zero:.3f}", metric, f"{value:.6g}"]


def points(record: Record, host: Host, series: Samples) -> Iterator[Point]:
    """Yield every point of a host's series: a rate belongs to the interval that ends at its time."""
    interfaces = {record.link.interfaces.get(host): "link", record.cell.interface: "tunnel"}
    for before, row in itertools.pairwise(series.rows):
        if row.at - before.at >= samples.SHORTEST_S:
            for metric, value in _rates(interfaces, before, row, float(series.meta["ticks_per_s"])):
                yield row.at, metric, value
    for look in series.looks:
        for socket in look.sockets:
            if socket.netid == "tcp" and socket.crosses and socket.number("bytes_sent") >= SOCKET_BYTES:
                name = f"{socket.process}:{socket.local}"
                yield look.at, f"cwnd_bytes {name}", socket.number("cwnd") * socket.number("mss")
                yield look.at, f"in_flight_bytes {name}", socket.in_flight
                yield look.at, f"snd_wnd_bytes {name}", socket.number("snd_wnd")
                yield look.at, f"rtt_ms {name}", socket.number("rtt")


def _rates(interfaces: dict[str | None, str], before: Row, row: Row, hertz: float) -> Iterator[tuple[str, float]]:
    seconds = row.at - before.at
    risen = {
        name: value - old
        for name in row.places
        if (value := row.get(name)) is not None and (old := before.get(name)) is not None
    }
    ticks = sum(risen.get(f"cpu|{kind}", 0) for kind in KINDS) or 1.0
    for name, rise in risen.items():
        first, *parts = name.split("|")
        if first == "cpu":
            yield f"cpu_{parts[0]}_share", rise / ticks
        elif name == "host|cpu_ns":
            yield "cpu_cores", rise / 1e9 / seconds
        elif first == "net" and parts[0] in interfaces and parts[1] in ("rx_bytes", "tx_bytes"):
            yield f"{interfaces[parts[0]]}_{parts[1][:2]}_bit_s", 8 * rise / seconds
        elif first == "process" and parts[3] == "user":
            used = rise + risen.get(name.removesuffix("user") + "system", 0)
            yield f"process_cores {parts[1]}[{parts[2]}]", used / hertz / seconds
        elif first == "kernel":
            yield f"kernel_cores {parts[0]}", rise / hertz / seconds
        elif name in RATES:
            yield RATES[name], rise / seconds
