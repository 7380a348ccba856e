"""What the sampler of a host would have written, from what is known to have happened.

Times are seconds since the command began, which lasts COMMAND_S. Counters are functions of that time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from builders import COMMAND_S, HOSTS, LINK, START, command, record

from tunnel_lab import flow
from tunnel_lab.accounting import RECEIVER, SENDER
from tunnel_lab.flow import Flow
from tunnel_lab.parsing import Direction, Measurement
from tunnel_lab.records import LinkSeen, Record

Counter = Callable[[float], float]
Line = Callable[[float], str]
BEGUN_S, ENDED_S = -1.2, COMMAND_S + 0.6
"""When the sampler starts and stops."""
HERTZ = 100
META = {"format": 1, "interval_s": 0.2, "ticks_per_s": HERTZ, "page_bytes": 4096, "cpus": 2, "quota_cores": None}
MSS, FRAME = 1448, 1514
"""Bytes of payload in a full segment, and of the frame around it."""


def steady(per_second: float, start: float = 0.0, end: float = COMMAND_S, base: float = 5000) -> Counter:
    """A counter that rises from `base` between `start` and `end`."""
    return lambda at: base + per_second * min(max(0.0, at - start), end - start)


def machine(cpus: int = 2, **cores: float) -> dict[str, Counter]:
    """CPU ticks of a machine on which `cores` are used while the command runs; softirqs all on its first core."""
    kinds = ("user", "nice", "system", "iowait", "irq", "softirq", "steal")
    used = {kind: steady(HERTZ * cores.get(kind, 0.0)) for kind in kinds}
    all_of = steady(HERTZ * cpus, BEGUN_S, ENDED_S)
    idle: Counter = lambda at: all_of(at) - sum(used[kind](at) - 5000 for kind in kinds)  # noqa: E731
    found = {f"cpu|{kind}": used[kind] if kind != "idle" else idle for kind in ("user", "nice", "system", "idle")}
    found |= {f"cpu|{kind}": used[kind] for kind in ("iowait", "irq", "softirq", "steal")}
    found |= {
        "cpu0|busy": steady(0),
        "cpu0|softirq": used["softirq"],
        "cpu1|busy": steady(0),
        "cpu1|softirq": steady(0),
    }
    return found


def process(
    name: str, cores: float, unit: str = "work.service", pid: int = 7, pages: float = 100
) -> dict[str, Counter]:
    """The counters of a process that uses `cores`, a quarter of them in the kernel."""
    stem = f"process|{unit}|{name}|{pid}"
    return {
        f"{stem}|user": steady(HERTZ * cores * 0.75, base=30),
        f"{stem}|system": steady(HERTZ * cores * 0.25, base=40),
        f"{stem}|rss_pages": lambda at: pages,
    }


def quota(periods: float, throttled: float, cores: float) -> dict[str, Counter]:
    """The cgroup's counters of a host that uses `cores`."""
    return {
        "host|cpu_ns": steady(cores * 1e9),
        "host|periods": steady(periods),
        "host|throttled_periods": steady(throttled),
        "host|throttled_ns": steady(0),
    }


def tcp(
    local: str = "10.99.0.1:5201",
    peer: str = "10.99.0.2:40000",
    holder: tuple[str, int] | None = ("iperf3", 7),
    state: str = "ESTAB",
    queues: tuple[int, int] = (0, 0),
    skmem: Mapping[str, int] | None = None,
    **info: object,
) -> str:
    """A line of ss."""
    users = f'users:(("{holder[0]}",pid={holder[1]},fd=5)) ' if holder else ""
    memory = {"r": 0, "rb": 131072, "t": 0, "tb": 4194304, "f": 0, "w": 0, "o": 0, "bl": 0, "d": 0, **(skmem or {})}
    sizes = ",".join(f"{name}{size}" for name, size in memory.items())
    pairs = " ".join(f"{name}:{value}" for name, value in info.items())
    return f"tcp {state} {queues[0]} {queues[1]} {local} {peer} {users}skmem:({sizes}) cubic wscale:7,7 {pairs}"


def sends(
    bit_s: float, *, again: float = 0.0, notsent: int = 20 * MSS, w: int = 400_000, tb: int = 4_194_304, **says: Any
) -> Line:
    """A socket that sends at `bit_s` while the command runs, with room everywhere unless `says` tells otherwise.

    `again` is the retransmitted share; `busy`, `rwnd_limited`, `sndbuf_limited` are shares of the time; all else are
    fields of ss, or functions of the time that give one, or arguments of `tcp`.
    """
    told = {"busy": 1.0, "cwnd": 400, "unacked": 200, "snd_wnd": 3_000_000, "minrtt": 80, **says}
    shares = {name: told.pop(name) for name in ("busy", "rwnd_limited", "sndbuf_limited") if name in told}
    in_flight = told.pop("in_flight") if "in_flight" in told else told["unacked"] * MSS

    def line(at: float) -> str:
        passed = steady(bit_s / 8, base=0)(at)
        lasted = 1000 * min(max(0.0, at), COMMAND_S)
        times = {name: f"{share * lasted:.0f}ms({share:.1%})" for name, share in shares.items()}
        retrans = {"bytes_retrans": round(again * passed)} if again else {}
        left = {"notsent": notsent} if notsent else {}
        numbers = {"mss": MSS, "bytes_sent": round(passed), **retrans, "bytes_received": 37, **times, **told, **left}
        fields: dict[str, Any] = {name: value(at) if callable(value) else value for name, value in numbers.items()}
        return tcp(queues=(0, in_flight + notsent), skmem={"w": w, "tb": tb}, **fields)

    return line


def receives(bit_s: float, *, unread: int = 0, r: int = 0, **says: Any) -> Line:
    """A socket that receives at `bit_s` while the command runs."""
    place = {"local": "10.99.0.2:40000", "peer": "10.99.0.1:5201", "holder": ("iperf3", 8), **says}
    passed = steady(bit_s / 8, base=0)

    def line(at: float) -> str:
        numbers = {"mss": MSS, "cwnd": 10, "bytes_sent": 37, "bytes_received": round(passed(at))}
        return tcp(queues=(unread, 0), skmem={"r": r}, **{**numbers, **place})

    return line


@dataclass
class Side:
    """One host: what it counted beside its link, and its sockets."""

    counters: dict[str, Counter] = field(default_factory=dict)
    sockets: list[Line] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)

    def text(self, begun: float = BEGUN_S, ended: float = ENDED_S, row_s: float = 0.2, look_s: float = 0.4) -> str:
        """What its sampler wrote."""
        counted = {**machine(), "sampler|cpu_us": steady(0), **self.counters}
        lines: list[Any] = [{"meta": {**META, "kernel": "shared", **self.meta}}, ["at", *counted]]
        rows, each_look = round((ended - begun) / row_s) + 1, max(1, round(look_s / row_s))
        for number in range(rows):
            at = begun + number * row_s
            lines.append([stamped(at), *(round(counter(at)) for counter in counted.values())])
            if number % each_look == 0:
                shown = "\n".join(line(at + 0.001) for line in self.sockets)
                looked = {"at": stamped(at + 0.001), "sockets": shown, "cpu_khz": [], "temperature_millic": {}}
                lines.append(looked)
        return "".join(json.dumps(line) + "\n" for line in lines)


def stamped(at: float) -> float:
    """Return a time as the sampler writes it."""
    return round(START.timestamp() + at, 4)


def sampled(
    sender: Side | None = None,
    receiver: Side | None = None,
    *,
    link: Counter | float = 30e6,
    direction: Direction = "server_to_client",
    emulator: Mapping[str, int] | None = None,
    **cell: Any,
) -> Record:
    """A record of one command, in which `link` came to the receiver: bit/s in frames, or a counter of bytes.

    `emulator` is what the link dropped: {dropped_queue: 3}. `cell` changes the cell.
    """
    made = record("iperf3", {}, command(direction, ""))
    sides = {SENDER[direction]: sender or Side(), RECEIVER[direction]: receiver or Side()}
    came = link if callable(link) else steady(link / 8, base=10**9)
    sides[RECEIVER[direction]].counters[f"net|{LINK}|rx_bytes"] = came
    after = {host: made.after[host].model_copy(update={"samples": sides[host].text()}) for host in HOSTS}
    dropped = [{name: count * share for name, count in (emulator or {}).items()} for share in (1, 2)]
    seen = [{"directions": {direction: each}} for each in dropped]
    return made.model_copy(
        update={
            "after": after,
            "cell": made.cell.model_copy(update=cell),
            "link": LinkSeen(interfaces=made.link.interfaces, before=seen[0], after=seen[1]),
        }
    )


def measured(bit_s: float = 28e6, direction: Direction = "server_to_client") -> Measurement:
    """The measurement of a command that carried payload at `bit_s`."""
    payload = round(bit_s * COMMAND_S / 8)
    return Measurement(direction=direction, payload_bytes=payload, duration_s=COMMAND_S, goodput_bit_s=bit_s)


def flow_of(made: Record, bit_s: float = 28e6, direction: Direction = "server_to_client") -> Flow:
    """The evidence around the measurement of a record, which is there."""
    found = flow.flow(made, measured(bit_s, direction))
    assert found is not None
    return found
