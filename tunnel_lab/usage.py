"""What a repeat used and what it lost: CPU, memory, drops, from the samples of both hosts."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tunnel_lab.flow import Flow
from tunnel_lab.records import Host
from tunnel_lab.samples import Samples

KINDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
BASELINE_S = 0.9
"""lab_observe leaves the host alone for a second after the first sample."""
QUEUE = "frames by the full queue of the link"
DROPS = {
    "Udp|RcvbufErrors": "datagrams by full receive buffers of the {host}'s UDP sockets",
    "Udp|SndbufErrors": "datagrams by full send buffers of the {host}'s UDP sockets",
    "softnet|dropped": "packets by the full backlog of the {host}'s machine",
}


@dataclass(frozen=True)
class Process:
    """CPU of one process or kind of kernel thread."""

    unit: str
    name: str
    cores: float
    """CPU seconds per second."""


@dataclass(frozen=True)
class Cpu:
    """CPU of a host over a time."""

    cores: float
    """CPU seconds per second of the host without its sampler; of the machine, where the host is one."""
    quota: float | None
    """Cores that the host's cgroup allows."""
    throttled: float
    """Share of the quota's periods in which the host was held up."""
    machine: float
    """Share of all cores of the machine that was not idle."""
    softirq: float
    """Share of the core that spent most on softirqs."""
    split: dict[str, float]
    """Shares of the machine's CPU time by kind; together 1."""
    processes: list[Process]
    sampler: float
    """Cores that the sampler used."""


def cpu(series: Samples, when: tuple[float, float]) -> Cpu:
    """Return what was used between two times."""
    start, end = when
    seconds, hertz = end - start, float(series.meta["ticks_per_s"])

    def rise(name: str) -> float:
        return series.rise(name, start, end)

    ticks = {kind: rise(f"cpu|{kind}") for kind in KINDS}
    total = sum(ticks.values()) or 1.0
    busy = sum(ticks[kind] for kind in KINDS if kind not in ("idle", "iowait"))
    sampler = rise("sampler|cpu_us") / 1e6 / seconds
    own = rise("host|cpu_ns") / 1e9 if "host|cpu_ns" in series.names else (busy - ticks["steal"]) / hertz
    cores = [name.partition("|")[0] for name in series.names if name.startswith("cpu") and name.endswith("|busy")]
    return Cpu(
        cores=max(0.0, own / seconds - sampler),
        quota=series.meta.get("quota_cores"),
        throttled=rise("host|throttled_periods") / (rise("host|periods") or 1.0),
        machine=busy / total,
        softirq=max((rise(f"{core}|softirq") / hertz / seconds for core in cores), default=0.0),
        split={kind: each / total for kind, each in ticks.items()},
        processes=[*_processes(series, start, end, hertz), *_kernel(series, start, end, hertz)],
        sampler=sampler,
    )


def _processes(series: Samples, start: float, end: float, hertz: float) -> list[Process]:
    found = []
    for name in series.names:
        if name.startswith("process|") and name.endswith("|user"):
            stem = name.removesuffix("user")
            used = series.rise(name, start, end) + series.rise(f"{stem}system", start, end)
            _, unit, title, pid, _ = name.split("|")
            found.append(Process(unit, f"{title}[{pid}]", used / hertz / (end - start)))
    return found


def _kernel(series: Samples, start: float, end: float, hertz: float) -> list[Process]:
    names = (name for name in series.names if name.startswith("kernel|"))
    return [
        Process("", f"kernel thread {name.split('|')[1]}", series.rise(name, start, end) / hertz / (end - start))
        for name in names
    ]


def drops(flow: Flow) -> dict[str, float]:
    """Return {where: how many} packets were dropped during the transfer, of all the places that count them."""
    found: dict[str, float] = {}
    emulator = (flow.record.link.before, flow.record.link.after)
    ways = [(seen.get("drops") or seen.get("directions", {})).get(flow.measurement.direction, {}) for seen in emulator]
    for key, what in (("dropped_queue", QUEUE), ("dropped_loss", "frames by the link's random loss")):
        found[what] = ways[1].get(key, 0) - ways[0].get(key, 0)
    for host, series in flow.samples.items():
        for name, what in DROPS.items():
            found[what.format(host=host)] = series.rise(name, *flow.transfer)
        if flow.record.cell.interface:
            interface = flow.record.cell.interface
            found[f"packets by the queue of the {host}'s {interface}"] = series.rise(
                f"net|{interface}|tx_dropped", *flow.transfer
            )
    return {what: count for what, count in found.items() if count > 0}


def columns(flow: Flow) -> dict[str, Any]:
    """Return the columns of both hosts. docs/result-format.md has every one of them."""
    found: dict[str, Any] = {}
    for host, series in flow.samples.items():
        found.update({f"{host}.{name}": value for name, value in _columns(flow, host, series).items()})
    return found


def _columns(flow: Flow, host: Host, series: Samples) -> dict[str, Any]:
    used = cpu(series, flow.command)
    gigabytes = flow.measurement.carried / 1e9
    busiest = max(used.processes, key=lambda each: each.cores, default=None)
    tunnel = [each for each in used.processes if flow.is_tunnel(host, each.unit)]
    own = series.meta.get("kernel") == "own"
    looks = list(series.between(*flow.command))
    rates = [rate for look in looks for rate in look.cpu_khz]
    heat = [value for look in looks for value in look.temperature_millic.values()]

    def rise(name: str) -> int:
        return round(series.rise(name, *flow.command))

    return {
        "cpu_cores": used.cores,
        "cpu_s_per_gb": used.cores * flow.seconds / gigabytes,
        "tunnel_cpu_cores": sum(each.cores for each in tunnel) if tunnel else None,
        "tunnel_cpu_s_per_gb": sum(each.cores for each in tunnel) * flow.seconds / gigabytes if tunnel else None,
        "busiest_process": busiest.name if busiest else None,
        "busiest_process_cores": busiest.cores if busiest else None,
        "idle_cpu_cores": _idle(flow, series),
        "cpu_throttled_share": used.throttled,
        "cpu_split_of": "host" if own else "machine",
        "cpu_user_share": used.split["user"] + used.split["nice"],
        "cpu_system_share": used.split["system"],
        "cpu_hardirq_share": used.split["irq"],
        "cpu_softirq_share": used.split["softirq"],
        "cpu_steal_share": used.split["steal"],
        "cpu_idle_share": used.split["idle"] + used.split["iowait"],
        "cpu_mhz": fmean(rates) / 1000 if rates else None,
        "temperature_c": max(heat) / 1000 if heat else None,
        "tunnel_rss_bytes": _memory(flow, host, series),
        "tcp_retransmits": rise("Tcp|RetransSegs"),
        "udp_rcvbuf_errors": rise("Udp|RcvbufErrors"),
        "udp_sndbuf_errors": rise("Udp|SndbufErrors"),
        "softnet_dropped": rise("softnet|dropped"),
        "tunnel_dropped": rise(f"net|{flow.record.cell.interface}|tx_dropped") if flow.record.cell.interface else None,
        "sampler_cores": used.sampler,
    }


def _idle(flow: Flow, series: Samples) -> float | None:
    """Return the cores that the host used before the first command of the repeat began, as `cpu_cores` counts them."""
    first = series.rows[0].at
    end = min(first + BASELINE_S, *flow.starts)
    return cpu(series, (first, end)).cores if end - first > BASELINE_S / 2 else None


def _memory(flow: Flow, host: Host, series: Samples) -> int | None:
    """Return the most resident memory that the tunnel's processes had together."""
    unit = flow.record.cell.tunnel_units.get(host)
    names = [name for name in series.names if name.startswith(f"process|{unit}|") and name.endswith("|rss_pages")]
    pages = [sum(row.get(name) or 0 for name in names) for row in series.rows]
    return round(max(pages) * series.meta["page_bytes"]) if names else None
