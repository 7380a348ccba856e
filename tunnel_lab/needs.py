"""What the planned cells need of hosts and of the network between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tunnel_lab import gate
from tunnel_lab.link import check
from tunnel_lab.manifests import Catalog, Settings, Tunnel, Workload
from tunnel_lab.plan import Cell, Plan

LACKS = "lacks"
"""Of a host's environment: {what it cannot do of that which a planned cell needs: what the probe said}"""


def packages(plan: Plan, catalog: Catalog) -> list[str]:
    """Return the packages of the planned tunnels and workloads, sorted."""
    return sorted({package for part in _parts(plan, catalog) for package in part.packages})


def ports(plan: Plan, catalog: Catalog) -> list[str]:
    """Return what the hosts must be able to reach of each other, as `5201/tcp`, sorted; the link's own test included.

    The service of every workload is among them: the bare link's cells connect to it without a tunnel.
    """
    found = {f"{check.PORT}/tcp"}
    found |= {port for tunnel in plan.tunnels for port in catalog.tunnels[tunnel].ports}
    found |= {f"{catalog.workloads[workload].service_port}/tcp" for workload in plan.workloads}
    return sorted(found)


def interfaces(plan: Plan, catalog: Catalog) -> list[str]:
    """Return the interfaces that planned tunnels make on both hosts, sorted."""
    return sorted({name for tunnel in plan.tunnels if (name := catalog.tunnels[tunnel].interface)})


def networks(plan: Plan, catalog: Catalog) -> list[str]:
    """Return the addresses inside planned tunnels, sorted."""
    return sorted({network for tunnel in plan.tunnels for network in catalog.tunnels[tunnel].networks})


def probes(plan: Plan, catalog: Catalog) -> dict[str, str]:
    """Return {what a planned cell needs of both hosts: the command that succeeds where it is there}."""
    wanted = {need for cell in plan.cells.values() for need in cell.needs}
    found = (need for tunnel in plan.tunnels for need in catalog.tunnels[tunnel].needs)
    return {need.what: need.probe for need in found if need.what in wanted}


def lacking(cell: Cell, environment: dict[str, Any]) -> str | None:
    """Return why a cell cannot be measured on these hosts, None when it can."""
    lacks = {host: environment.get(host, {}).get(LACKS, {}) for host in ("server", "client")}
    missing = [
        f"{need} (on the {host}: {found[need]})"
        for need in cell.needs
        for host, found in lacks.items()
        if need in found
    ]
    return f"not possible here: no {'; no '.join(missing)}" if missing else None


def transfer(plan: Plan, catalog: Catalog) -> dict[str, float]:
    """Return how much all steps together transfer: `bytes` of known size, and `seconds` as fast as it goes."""
    amounts = {"bytes": 0.0, "seconds": float(check.SECONDS)}
    for step in plan.steps:
        cell = plan.cells[step.cell]
        workload = catalog.workloads[cell.workload]
        amounts["bytes"] += _amount(workload.transfer_bytes, cell.params)
        amounts["seconds"] += _amount(workload.transfer_s, cell.params)
    return amounts


def _amount(said: float | str, params: Settings) -> float:
    return float(str(gate.expression(str(said), params)))


def _parts(plan: Plan, catalog: Catalog) -> Iterable[Tunnel | Workload]:
    yield from (catalog.tunnels[name] for name in plan.tunnels)
    yield from (catalog.workloads[name] for name in plan.workloads)
