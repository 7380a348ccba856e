"""The labs that are alive at EC2, and what is left of others, found by their tags alone."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tunnel_lab.ec2 import api, cost, memory, tags
from tunnel_lab.ec2.kinds import INSTANCES, KINDS, Resource
from tunnel_lab.errors import LabError

FEW = 6
"""How many regions are named one by one."""


@dataclass
class Lab:
    """What carries one lab's tag, in all regions."""

    name: str
    instances: list[tuple[str, Resource]] = field(default_factory=list)
    """(region, as EC2 describes it)"""
    rest: dict[tuple[str, str], int] = field(default_factory=dict)
    """{(region, kind): how many}"""
    disks_gb: dict[str, int] = field(default_factory=dict)
    """{instance: GB}"""
    expires: str = ""

    @property
    def regions(self) -> list[str]:
        """Return where it is, sorted."""
        return sorted({region for region, _ in self.instances} | {region for region, _ in self.rest})

    def usd(self, prices: cost.Table, now: datetime) -> float | None:
        """Return what its living instances have cost so far, transfer left out; None when a price is not known."""
        sums: list[float] = []
        for region, each in self.instances:
            rate = cost.hour(prices, region, each["InstanceType"], self.disks_gb.get(each["InstanceId"], 0))
            if rate is None:
                return None
            sums.append(rate * (now - each["LaunchTime"]).total_seconds() / 3600)
        return sum(sums)


def find(regions: Iterable[str]) -> list[Lab]:
    """Return every lab in `regions`; a LabError names the regions that could not be looked at."""
    names = sorted(set(regions))
    with ThreadPoolExecutor(max_workers=8) as pool:
        looked = list(pool.map(_look, names))
    if unseen := [found for found in looked if isinstance(found, str)]:
        raise LabError("\n".join(unseen))
    labs: dict[str, Lab] = {}
    for region, found in zip(names, looked, strict=True):
        for kind, resource in found if isinstance(found, list) else []:
            _add(labs, region, kind, resource)
    return [labs[name] for name in sorted(labs)]


def _look(region: str) -> list[tuple[str, Resource]] | str:
    try:
        client = api.client(region)
        return [(kind.name, resource) for kind in KINDS for resource in kind.find(client, None)]
    except api.ERRORS as error:
        return f"{region} could not be looked at: {api.said(error)}"


def _add(labs: dict[str, Lab], region: str, kind: str, resource: Resource) -> None:
    name = tags.read(resource).get(tags.LAB, "(no name)")
    lab = labs.setdefault(name, Lab(name))
    lab.expires = max(lab.expires, tags.read(resource).get(tags.EXPIRES, ""))
    if kind == INSTANCES.name:
        lab.instances.append((region, resource))
        return
    lab.rest[region, kind] = lab.rest.get((region, kind), 0) + 1
    for attached in resource.get("Attachments", []) if kind == "volume" else []:
        lab.disks_gb[attached["InstanceId"]] = resource["Size"]


def shown(labs: list[Lab], regions: Iterable[str], now: datetime | None = None) -> str:
    """Return the labs as text, `now` for their age and cost."""
    now = now or datetime.now(UTC)
    names = sorted(set(regions))
    where = ", ".join(names) if len(names) <= FEW else f"{len(names)} regions"
    if not labs:
        return f"No lab is alive in {where}."
    prices = cost.table()
    rows = [("lab", "regions", "instances", "age", "expires", "so far"), *(_row(lab, prices, now) for lab in labs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    for lab in labs:
        if not lab.instances:
            parts = ", ".join(f"{count} x {kind} in {region}" for (region, kind), count in sorted(lab.rest.items()))
            lines.append(f"{lab.name} has no instance, and this is left of it: {parts}")
    return "\n".join([*lines, f"Looked at {where}. So far: instances, disks and addresses by list price, no transfer."])


def _row(lab: Lab, prices: cost.Table, now: datetime) -> tuple[str, ...]:
    kinds = ", ".join(f"{each['InstanceType']} {each['State']['Name']}" for _, each in lab.instances) or "none"
    begun = min((each["LaunchTime"] for _, each in lab.instances), default=None)
    age = f"{(now - begun).total_seconds() / 60:.0f} min" if begun else ""
    past = " (past)" if lab.expires and memory.minutes_left(lab.expires) <= 0 else ""
    so_far = cost.usd(lab.usd(prices, now)).strip() if lab.instances else ""
    return (lab.name, ", ".join(lab.regions), kinds, age, lab.expires + past, so_far)


def chosen(given: str, hosts: dict[str, dict[str, Any]]) -> list[str]:
    """Return the regions that a variable names: `all` that are enabled, `a,b`, or nothing for those of `hosts`."""
    own = sorted({str(settings["aws_region"]) for settings in hosts.values()} - {""})
    if given == "all":
        return api.enabled(own[0] if own else api.BASE["aws"])
    return [part.strip() for part in given.split(",") if part.strip()] or own
