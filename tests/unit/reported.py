"""Reports to test: stored runs of a few cells, and the tables that their records would give.

The figures are made up and simple: what is in a report can be told from what is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from builders import HOSTS, record
from sampled import Side, machine, process, receives, sampled, sends, steady

from tunnel_lab import verdicts
from tunnel_lab.choices import Link
from tunnel_lab.claims import Source
from tunnel_lab.plan import Cell, Plan, Step
from tunnel_lab.records import LinkState, Record, Run, raw_path
from tunnel_lab.report import Inputs
from tunnel_lab.summary import summarise
from tunnel_lab.tables import FIXED, LINK

STARTED = "2026-01-02T03:04:05.000+00:00"
GOODPUT = {"none.bare": 95e6, "ssh.plain": 58e6, "openvpn.old_tcp": 4.76e6, "openvpn.new_udp": 92e6}
"""Median goodput of each variant in bit/s; its three repeats are 1 % apart."""
VARIANTS = list(GOODPUT)
WORKLOADS = ["redis_sync", "iperf3"]
EVIDENCE = "the send buffer of 65536 bytes was full for 98% of the transfer"
CONFIGURATION = "proto tcp\nsndbuf 65536\n"
PLACE = {
    **{"lab": "test", "provider": "local", "region_pair": None, "cpu_emulation": None, "link_emulator": "relay"},
    **{"rtt_ms": 80.0, "rate_mbit": 100.0, "queue_bytes": 1_000_000, "loss_pct": 0.0, "sampler": True},
}
POST = Source.model_validate(
    {
        "title": "A post",
        "published": "2016",
        "caveats": ["It gives no round trip."],
        "claims": {
            "tcp": {
                "kind": "value",
                "says": "OpenVPN over TCP takes 21 minutes",
                "place": "table, row 1",
                "cell": "openvpn.old_tcp.redis_sync",
                "figure": {"printed": "21m", "value": 21, "unit": "min", "amount_bytes": [1e9, 1.1e9]},
            }
        },
    }
)


def cell(name: str, workload: str, **changes: Any) -> Cell:
    """Return a cell; `name` is tunnel.variant."""
    tunnel, variant = name.split(".")
    whole = {"id": f"{name}.{workload}", "tunnel": tunnel, "variant": variant, "workload": workload, **changes}
    return record("iperf3", {"duration_s": 10}).cell.model_copy(update=whole)


@dataclass
class Reported:
    """A run on disk and its tables."""

    directory: Path
    run: Run
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Of the runs table."""
    claims: list[dict[str, Any]] = field(default_factory=list)
    sources: dict[str, Source] = field(default_factory=dict)

    def inputs(self, series: str | None = None) -> Inputs:
        """Return what its report is made from."""
        return inputs([self], series)

    def step(self, name: str, repeat: int) -> Step:
        """Return a planned step."""
        return next(step for step in self.run.plan.steps if (step.cell, step.repeat) == (name, repeat))

    def write(self, made: Record, name: str, repeat: int, **changes: Any) -> Path:
        """Write a record as that of a planned step; return its path."""
        step = self.step(name, repeat)
        same = {"run_id": self.run.run_id, "step": step, "cell": self.run.plan.cells[name]}
        path = raw_path(self.directory, step)
        path.unlink(missing_ok=True)
        made.model_copy(update={**same, **changes}).write(path)
        return path

    def fail(self, name: str, repeat: int, reason: str, status: str = "failed") -> None:
        """Make a repeat one that does not count."""
        order = self.step(name, repeat).order
        for row in self.rows:
            if row["order"] == order:
                row |= {"status": status, "reason": reason, "direction": None, "goodput_bit_s": None, "limit": None}


def inputs(parts: Sequence[Reported], series: str | None = None) -> Inputs:
    """Return what a report on several runs is made from."""
    rows = [row for part in parts for row in part.rows]
    extra = sorted({name for row in rows for name in row} - set(FIXED))
    runs = pd.DataFrame(rows, columns=[*FIXED, *extra])
    numbers = ["goodput_bit_s", "duration_s", "overhead_s", "wire_overhead", "wire_overhead_predicted"]
    numbers += ["link_utilisation", "retransmitted_share", "limit_ceiling_bit_s"]
    runs = runs.astype(dict.fromkeys(numbers, "float64"))
    claims = pd.DataFrame([row for part in parts for row in part.claims], columns=verdicts.COLUMNS)
    sources = {name: source for part in parts for name, source in part.sources.items()}
    return Inputs([part.directory for part in parts], runs, summarise(runs), claims, sources, series)


def stored(
    directory: Path,
    names: Sequence[str] = VARIANTS,
    workloads: Sequence[str] = WORKLOADS,
    repeats: int = 3,
    run_id: str = "run-1",
    **changes: Any,
) -> Reported:
    """Store a run without records and make up its rows; `changes` are fields of Run."""
    cells = {each.id: each for workload in workloads for name in names for each in [cell(name, workload)]}
    bare = cell("none.bare", "iperf3")
    order = [(bare.id, 0), *((name, n) for n in range(1, repeats + 1) for name in cells), (bare.id, repeats + 1)]
    steps = [Step(order=n, cell=name, repeat=repeat, sampled=True) for n, (name, repeat) in enumerate(order, start=1)]
    host = {"kernel": "6.1.0", "cpus": 2, "link_mtu": 1500, "packages": {"openvpn": "2.6.14"}, "cpu_aes": True}
    content: dict[str, Any] = {
        "run_id": run_id,
        "lab": "test",
        "provider": "local",
        "started_at": STARTED,
        "choices": {"lab_name": "local", "lab_profile": "quick", "lab_link": {"rtt_ms": 80.0, "rate_mbit": 100.0}},
        "plan": Plan(profile="quick", seed=7, repeats=repeats, cells={**cells, bare.id: bare}, steps=steps),
        "link": LinkState(
            emulator="relay",
            setting=Link(rtt_ms=80, rate_mbit=100),
            measured_rtt_ms=80.21,
            measured_goodput_bit_s=95.4e6,
        ),
        "environment": {
            "server": host,
            "client": {**host, "network": {"addresses": "1: lo: <LOOPBACK,UP>\n"}},
            "controller": {"git_commit": "abc1234def", "inventories": ["inventories/local"]},
        },
    }
    run = Run(**{**content, **changes})
    run.write(directory / "run.json")
    made = Reported(directory, run)
    made.rows = [row(run, step) for step in steps]
    return made


def row(run: Run, step: Step, **changes: Any) -> dict[str, Any]:
    """Return a good row of the runs table."""
    of = run.plan.cells[step.cell]
    middle = GOODPUT.get(f"{of.tunnel}.{of.variant}", 50e6)
    goodput = middle * (1 + 0.01 * ((step.repeat - 2) if 1 <= step.repeat <= 3 else 0))
    return {
        **PLACE,
        "run_id": run.run_id,
        "tunnel": of.tunnel,
        "variant": of.variant,
        "settings_id": "set-1",
        "override": "",
        "workload": of.workload,
        "params": "duration_s=10",
        "direction": "server_to_client",
        "repeat": step.repeat,
        "order": step.order,
        "status": "ok",
        "goodput_bit_s": goodput,
        "duration_s": 8e7 / goodput,
        "payload_bytes": 10_000_000,
        "overhead_s": 1.5,
        "limit": "window" if of.variant == "old_tcp" else "link",
        "limit_evidence": f"{EVIDENCE}, repeat {step.repeat}",
        "limit_ceiling_bit_s": 6.55e6 if of.variant == "old_tcp" else None,
        "wire_overhead": 1.118 if of.variant == "old_tcp" else 1.046,
        "wire_overhead_predicted": 1.1156 if of.variant == "old_tcp" else 1.0456,
        "server.cpu_s_per_gb": 41.8,
        "server.tunnel_cpu_s_per_gb": 21.5,
        "client.cpu_s_per_gb": 65.7,
        "client.tunnel_cpu_s_per_gb": 33.3,
        **changes,
    }


def with_latency(made: Reported) -> None:
    """Give the rows of redis_sync round trips."""
    for each in made.rows:
        if each["workload"] == "redis_sync":
            each |= {f"latency_idle_{p}_ms": 80.0 + n for n, p in enumerate(("p50", "p95", "p99"))}
            each |= {f"latency_loaded_{p}_ms": 160.0 + 10 * n for n, p in enumerate(("p50", "p95", "p99"))}


def claim(**changes: Any) -> dict[str, Any]:
    """Return a row of the table of claims: 21 minutes, contradicted."""
    return {
        **{name: PLACE[name] for name in LINK},
        "source": "post",
        "claim": "tcp",
        "kind": "value",
        "says": "OpenVPN over TCP takes 21 minutes",
        "place": "table, row 1",
        "printed": "21m",
        "claimed_low": 6.2e6,
        "claimed_high": 7.33e6,
        "tolerance": 0.25,
        "cell": "openvpn.old_tcp.redis_sync",
        "direction": "server_to_client",
        "metric": "goodput_bit_s",
        "params": "duration_s=10",
        "n": 3,
        "n_failed": 1,
        "measured": 4.761e6,
        "measured_low": 4.712e6,
        "measured_high": 4.808e6,
        "coverage": 0.75,
        "verdict": "contradicted",
        "provisional": True,
        "reason": "measured 4.76 Mbit/s, published 6.20 Mbit/s to 7.33 Mbit/s",
        "best_cell": "openvpn.new_udp.redis_sync",
        "best_measured": 92.04e6,
        **changes,
    }


def with_claims(made: Reported, *rows: dict[str, Any]) -> Reported:
    """Give it claims, by default the one of `claim`."""
    made.claims = list(rows) or [claim()]
    made.sources = {"post": POST}
    return made


def sampled_record() -> Record:
    """Return a record whose server sent 24 Mbit/s for six seconds, with its configuration files."""
    busy = {
        **machine(user=0.5),
        **process("openvpn", 0.4, unit="tunnel.service"),
        "host|cpu_ns": steady(0.6e9),
    }
    idle = {**machine(user=0.1), "host|cpu_ns": steady(0.2e9)}
    server = Side(busy, [sends(24e6, holder=("openvpn", 7), tb=131_072)])
    made = sampled(server, Side(idle, [receives(24e6)]), link=30e6)
    files = {host: made.before[host].model_copy(update={"files": {"/etc/vpn.conf": CONFIGURATION}}) for host in HOSTS}
    return made.model_copy(update={"before": files})


def whole(directory: Path) -> Reported:
    """Return a run with everything: claims, round trips, a failed repeat, an insecure variant, records."""
    made = stored(directory)
    insecure = {"insecure": "BF-CBC has 64-bit blocks", "tunnel_units": {"server": "tunnel.service"}}
    for name in list(made.run.plan.cells):
        if name.startswith("openvpn.old_tcp"):
            made.run.plan.cells[name] = made.run.plan.cells[name].model_copy(update=insecure)
    (directory / "run.json").unlink()
    made.run.write(directory / "run.json")
    with_latency(made)
    for name in made.run.plan.cells:
        for repeat in (1, 2, 3):
            made.write(sampled_record(), name, repeat)
    made.fail("ssh.plain.redis_sync", 3, "iperf3: exit status 1: unable to connect to server")
    return with_claims(
        made,
        claim(),
        claim(claim="ranking", kind="order", printed="", says="SSH beats OpenVPN", verdict="reproduced", measured=12.2,
              measured_low=11.9, measured_high=12.4, best_cell="", best_measured=float("nan"), claimed_low=1.0,
              claimed_high=float("nan"), cell="ssh.plain.redis_sync > openvpn.old_tcp.redis_sync"),
        claim(claim="open", verdict="inconclusive", printed="91 Mb/s", cell="ssh.plain.redis_sync"),
        claim(claim="other", verdict="not comparable", printed="13 Mb/s", provisional=False, reason="another link"),
        claim(claim="router", verdict="not measured", printed="800 kB/s", n=0, provisional=False, reason="no router"),
    )  # fmt: skip
