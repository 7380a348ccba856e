"""Every kind of resource that a lab may have at EC2, in the order in which they have to go.

One table for listing, deleting and the sweep after it: what is not in it is neither made nor removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tunnel_lab.ec2 import tags

Resource = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """How one kind is listed and deleted."""

    name: str
    operation: str
    """The call that lists it."""
    keys: tuple[str, ...]
    """Below which keys of its answer, each of which holds a list."""
    id: str
    """The key of the resource's id."""
    delete: Callable[[Any, Resource], Any]
    loosen: Callable[[Any, Resource], Any] | None = None
    """What has to be undone of all of them before the first can be deleted."""
    states: tuple[str, tuple[str, ...]] | None = None
    """(filter, values): what counts as being there; a terminated instance stays listed for an hour."""
    wait_s: int = 60
    """How long it may take to be gone once it is asked to go, in seconds."""

    def find(self, client: Any, lab: str | None) -> list[Resource]:
        """Return those of `lab`, or of any lab, as EC2 describes them."""
        chosen = tags.filters(lab)
        if self.states:
            chosen.append({"Name": self.states[0], "Values": list(self.states[1])})
        found: list[Resource] = []
        for page in _pages(client, self.operation, chosen):
            found += _below(page, self.keys)
        return found


def _pages(client: Any, operation: str, filters: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    if client.can_paginate(operation):
        yield from client.get_paginator(operation).paginate(Filters=filters)
    else:
        yield getattr(client, operation)(Filters=filters)


def _below(part: Any, keys: tuple[str, ...]) -> list[Resource]:
    """Return what is below `keys`, where each key holds a list."""
    if not keys:
        return [part]
    return [found for each in part.get(keys[0], []) for found in _below(each, keys[1:])]


def _release(client: Any, address: Resource) -> None:
    if "AssociationId" in address:
        client.disassociate_address(AssociationId=address["AssociationId"])
    client.release_address(AllocationId=address["AllocationId"])


def _no_rules(client: Any, group: Resource) -> None:
    # two groups that name each other could not be deleted in any order
    if group.get("IpPermissions"):
        client.revoke_security_group_ingress(GroupId=group["GroupId"], IpPermissions=group["IpPermissions"])
    if group.get("IpPermissionsEgress"):
        client.revoke_security_group_egress(GroupId=group["GroupId"], IpPermissions=group["IpPermissionsEgress"])


def _route_table(client: Any, table: Resource) -> None:
    for association in table.get("Associations", []):
        if not association.get("Main"):
            client.disassociate_route_table(AssociationId=association["RouteTableAssociationId"])
    client.delete_route_table(RouteTableId=table["RouteTableId"])


def _gateway(client: Any, gateway: Resource) -> None:
    for attachment in gateway.get("Attachments", []):
        client.detach_internet_gateway(InternetGatewayId=gateway["InternetGatewayId"], VpcId=attachment["VpcId"])
    client.delete_internet_gateway(InternetGatewayId=gateway["InternetGatewayId"])


KINDS = [
    # first: a request that is left open could start another instance
    Kind(
        "spot request",
        "describe_spot_instance_requests",
        ("SpotInstanceRequests",),
        "SpotInstanceRequestId",
        lambda c, r: c.cancel_spot_instance_requests(SpotInstanceRequestIds=[r["SpotInstanceRequestId"]]),
        states=("state", ("open", "active")),
    ),
    Kind(
        "instance",
        "describe_instances",
        ("Reservations", "Instances"),
        "InstanceId",
        lambda c, r: c.terminate_instances(InstanceIds=[r["InstanceId"]]),
        states=("instance-state-name", ("pending", "running", "shutting-down", "stopping", "stopped")),
        wait_s=600,
    ),
    Kind(
        "volume",
        "describe_volumes",
        ("Volumes",),
        "VolumeId",
        lambda c, r: c.delete_volume(VolumeId=r["VolumeId"]),
        states=("status", ("creating", "available", "in-use", "error")),
    ),
    Kind("address", "describe_addresses", ("Addresses",), "AllocationId", _release),
    Kind(
        "network interface",
        "describe_network_interfaces",
        ("NetworkInterfaces",),
        "NetworkInterfaceId",
        lambda c, r: c.delete_network_interface(NetworkInterfaceId=r["NetworkInterfaceId"]),
    ),
    Kind(
        "security group",
        "describe_security_groups",
        ("SecurityGroups",),
        "GroupId",
        lambda c, r: c.delete_security_group(GroupId=r["GroupId"]),
        loosen=_no_rules,
    ),
    Kind(
        "subnet",
        "describe_subnets",
        ("Subnets",),
        "SubnetId",
        lambda c, r: c.delete_subnet(SubnetId=r["SubnetId"]),
    ),
    Kind("route table", "describe_route_tables", ("RouteTables",), "RouteTableId", _route_table),
    Kind("internet gateway", "describe_internet_gateways", ("InternetGateways",), "InternetGatewayId", _gateway),
    Kind("VPC", "describe_vpcs", ("Vpcs",), "VpcId", lambda c, r: c.delete_vpc(VpcId=r["VpcId"])),
    Kind(
        "launch template",
        "describe_launch_templates",
        ("LaunchTemplates",),
        "LaunchTemplateId",
        lambda c, r: c.delete_launch_template(LaunchTemplateId=r["LaunchTemplateId"]),
    ),
    Kind(
        "key pair",
        "describe_key_pairs",
        ("KeyPairs",),
        "KeyPairId",
        lambda c, r: c.delete_key_pair(KeyName=r["KeyName"]),
    ),
]
INSTANCES = next(kind for kind in KINDS if kind.name == "instance")
