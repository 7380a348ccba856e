"""The `aws_*` variables of both hosts: what must hold of them that needs nobody at AWS to tell."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from tunnel_lab.ec2 import api
from tunnel_lab.errors import LabError

Hosts = dict[str, dict[str, Any]]
"""{host: {variable: value}}"""
MTU = (576, 9001)
"""The least that IPv4 asks for, and the most that EC2's interfaces take, in bytes."""
BROADEST = 8
"""The shortest prefix of an operator's network; shorter ones are the world in pieces."""


def problems(hosts: Hosts) -> list[str]:
    """Return a sentence for everything that is wrong, naming variable and host."""
    found = [said for host, settings in hosts.items() for said in _of(host, settings)]
    regions = [settings["aws_region"] for settings in hosts.values()]
    if len(set(regions)) < len(regions) and regions[0]:
        found.append(
            f"aws_region: both hosts are in {regions[0]}, and the lab measures between two. Choose another for one."
        )
    known = {api.partition(region) for region in regions if region and not _wrong_region(region)}
    if len(known) > 1:
        found.append(
            f"aws_region: {' and '.join(sorted(regions))} are in different partitions ({', '.join(sorted(known))}), "
            "and no credentials are good for two. Choose both in one."
        )
    return found


def _of(host: str, settings: dict[str, Any]) -> Iterator[str]:
    where = f"of {host}"
    if said := _wrong_region(settings["aws_region"]):
        yield f"aws_region {where}: {said}"
    elif settings["aws_zone"] and not settings["aws_zone"].startswith(settings["aws_region"]):
        zone, region = settings["aws_zone"], settings["aws_region"]
        yield f"aws_zone {where}: '{zone}' is not in {region}, such as {region}a."
    if not MTU[0] <= settings["aws_mtu"] <= MTU[1]:
        yield f"aws_mtu {where} must be from {MTU[0]} to {MTU[1]}, it is {settings['aws_mtu']}."
    if settings["aws_volume_gb"] < 1:
        yield f"aws_volume_gb {where} must be at least 1, it is {settings['aws_volume_gb']}."
    for name in ("aws_instance_type", "aws_image_owner", "aws_image_name", "aws_image_user"):
        if not settings[name]:
            yield f"{name} {where} is empty; leave it out for the lab's own choice."
    yield from _wrong_operator(where, settings["aws_operator_cidr"])


def _wrong_region(region: str) -> str:
    if not region:
        return "is not set. Name a region, such as us-east-1."
    try:
        api.partition(region)
    except LabError as error:
        return str(error)
    return ""


def _wrong_operator(where: str, given: str) -> Iterator[str]:
    if given == "auto":
        return
    try:
        network = ipaddress.IPv4Network(given)
    except ValueError as error:
        yield f"aws_operator_cidr {where} must be `auto` or an IPv4 network such as 203.0.113.7/32: {error}."
        return
    if network.prefixlen < BROADEST:
        yield f"aws_operator_cidr {where}: {network} would open the hosts to the world. Name your own network."
