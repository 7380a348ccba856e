"""What the hosts may cost at most, by list prices: before they are made, and so far."""

from __future__ import annotations

import math
from typing import Any

from pydantic import ValidationError

from tunnel_lab.ec2.settings import Hosts
from tunnel_lab.errors import from_validation
from tunnel_lab.manifests import ROLES, ROOT, Strict, read_yaml

LOOK = "See https://aws.amazon.com/ec2/pricing/on-demand/"
FILE = ROLES / "provider_aws" / "prices.yml"
AROUND_MINUTES = 5
"""Before a host arms its own end, and while it is terminated."""
MONTH_HOURS = 30 * 24
"""EBS is billed by the second of a month of 30 days."""
FLOW_BYTES_S = 5e9 / 8
"""What EC2 lets through in one flow outside a placement group, and between regions in all of less than 32 vCPUs."""
ON_WIRE = 1.2
"""Bytes on the wire per byte of payload, at most: headers, repeats of what was lost."""


class Prices(Strict):
    """On-demand list prices of one region in USD. What is not there is unknown."""

    instance_hour: dict[str, float]
    gp3_gb_month: float
    address_hour: float
    transfer_gb: float
    """Out to any other region."""


class Table(Strict):
    """prices.yml."""

    date: str
    source: str
    regions: dict[str, Prices]


def table() -> Table:
    """Read prices.yml; a LabError says what is wrong with it."""
    try:
        return Table.model_validate(read_yaml(FILE))
    except ValidationError as error:
        raise from_validation(str(FILE), error) from error


def hour(prices: Table, region: str, instance_type: str, volume_gb: int) -> float | None:
    """Return what a host costs per hour with its disk and public address, None when that is not known."""
    found = prices.regions.get(region)
    if found is None or instance_type not in found.instance_hour:
        return None
    disk = found.gp3_gb_month * volume_gb / MONTH_HOURS
    return found.instance_hour[instance_type] + found.address_hour + disk


def transferred(transfer: dict[str, float]) -> float:
    """Return the most bytes that can pass, from `bytes` of known size and `seconds` as fast as it goes."""
    return transfer["bytes"] * ON_WIRE + transfer["seconds"] * FLOW_BYTES_S


def bound(hosts: Hosts, ttl_minutes: int, transfer: dict[str, float]) -> dict[str, Any]:
    """Return `most_usd` (None: unknown) and `shown`, how it comes about."""
    prices = table()
    hours = (ttl_minutes + AROUND_MINUTES) / 60
    lines = [f"What this may cost, by AWS's list prices of {prices.date} ({FILE.relative_to(ROOT)}):"]
    sums: list[float | None] = []
    for host, chosen in hosts.items():
        rate = hour(prices, chosen["aws_region"], chosen["aws_instance_type"], chosen["aws_volume_gb"])
        sums.append(None if rate is None else rate * hours)
        kind = chosen["aws_instance_type"] + " (spot: at most)" * chosen["aws_spot"]
        lines.append(
            f"  {host:<10} {usd(sums[-1])}  {kind} in {chosen['aws_region']}, with {chosen['aws_volume_gb']} GB "
            f"and an address {usd(rate).strip()} per hour"
        )
    sums.append(_transfer(hosts, prices, transfer, lines))
    most = None if None in sums else sum(each for each in sums if each is not None)
    lines.append(
        f"  {'at most':<10} {usd(most)}  for {ttl_minutes} minutes, after which the hosts end by themselves, "
        f"and {AROUND_MINUTES} around them"
    )
    if most is None:
        lines.append(f"unknown: {FILE.relative_to(ROOT)} has no price for that type or region. {LOOK}")
    if transfer["seconds"] > ttl_minutes * 60:
        lines.append(
            f"The hosts end before the run does: {transfer['seconds'] / 60:.0f} minutes of transfer alone are planned. "
            "Choose a longer lab_ttl_minutes, or measure less."
        )
    return {"most_usd": most, "shown": "\n".join(lines)}


def _transfer(hosts: Hosts, prices: Table, transfer: dict[str, float], lines: list[str]) -> float | None:
    """Return what the traffic between the hosts costs at most; whoever sends pays, so the dearer of both counts."""
    gigabytes = transferred(transfer) / 1e9
    known = [prices.regions[each["aws_region"]] for each in hosts.values() if each["aws_region"] in prices.regions]
    cost = max(each.transfer_gb for each in known) * gigabytes if len(known) == len(hosts) else None
    lines.append(
        f"  {'transfer':<10} {usd(cost)}  at most {math.ceil(gigabytes)} GB between the regions: {ON_WIRE} x "
        f"{transfer['bytes'] / 1e9:.1f} GB of known size, and {transfer['seconds']:.0f} s at 5 Gbit/s"
    )
    return cost


def usd(amount: float | None) -> str:
    """Return an amount in eight characters, or `unknown`."""
    return f"{'unknown':>8}" if amount is None else f"${amount:.2f}".rjust(8)
