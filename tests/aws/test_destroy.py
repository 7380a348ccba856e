"""Everything with the lab's tag goes, in every region, and nothing else; what stays is named."""

from __future__ import annotations

from typing import Any

import pytest

from tunnel_lab.ec2 import api, kinds, permissions, tags
from tunnel_lab.ec2.destroy import Item, destroy
from tunnel_lab.errors import LabError

from .cloud import Cloud
from .conftest import KEY

REGION = "us-east-1"
EXPIRES = "2026-01-01T00:00:00Z"


def spec(kind: str, lab: str) -> list[dict[str, Any]]:
    """Return the tags of a new resource as EC2 takes them."""
    every = tags.of(lab, EXPIRES, "server")
    return [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in every.items()]}]


def plant(lab: str, region: str = REGION) -> Any:
    """Make one of every kind for `lab`, entangled as they can be; return the client."""
    ec2 = api.client(region)
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=spec("vpc", lab))["Vpc"]["VpcId"]
    gateway = ec2.create_internet_gateway(TagSpecifications=spec("internet-gateway", lab))["InternetGateway"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway["InternetGatewayId"], VpcId=vpc)
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24", TagSpecifications=spec("subnet", lab))["Subnet"]
    table = ec2.create_route_table(VpcId=vpc, TagSpecifications=spec("route-table", lab))["RouteTable"]
    ec2.associate_route_table(RouteTableId=table["RouteTableId"], SubnetId=subnet["SubnetId"])
    groups = [
        ec2.create_security_group(
            GroupName=f"{lab}{n}", Description="d", VpcId=vpc, TagSpecifications=spec("security-group", lab)
        )["GroupId"]
        for n in range(2)
    ]
    for one, other in (groups, groups[::-1]):
        rule = {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "UserIdGroupPairs": [{"GroupId": other}]}
        ec2.authorize_security_group_ingress(GroupId=one, IpPermissions=[rule])
    machine: dict[str, Any] = {
        "ImageId": "ami-0debian13new00000",
        "InstanceType": "t3.micro",
        "SubnetId": subnet["SubnetId"],
    }
    instance = ec2.run_instances(
        MinCount=1, MaxCount=1, **machine, TagSpecifications=spec("instance", lab) + spec("volume", lab)
    )["Instances"][0]
    ec2.request_spot_instances(LaunchSpecification=machine, TagSpecifications=spec("spot-instances-request", lab))
    address = ec2.allocate_address(Domain="vpc", TagSpecifications=spec("elastic-ip", lab))
    ec2.associate_address(AllocationId=address["AllocationId"], InstanceId=instance["InstanceId"])
    ec2.create_volume(Size=1, AvailabilityZone=f"{region}a", TagSpecifications=spec("volume", lab))
    ec2.create_network_interface(SubnetId=subnet["SubnetId"], TagSpecifications=spec("network-interface", lab))
    ec2.create_launch_template(
        LaunchTemplateName=lab, LaunchTemplateData={"ImageId": "x"}, TagSpecifications=spec("launch-template", lab)
    )
    ec2.import_key_pair(KeyName=lab, PublicKeyMaterial=KEY.encode(), TagSpecifications=spec("key-pair", lab))
    return ec2


def found(ec2: Any, lab: str | None) -> dict[str, int]:
    """Return how many of each kind there are."""
    return {kind.name: len(kind.find(ec2, lab)) for kind in kinds.KINDS}


def test_all_of_a_lab_goes_and_nothing_of_another(aws: Cloud) -> None:
    ec2 = plant("mine")
    plant("other")
    plant("mine", "eu-west-1")
    before = found(ec2, "mine")
    assert all(before.values()), f"one of each kind was planted: {before}"
    others = found(ec2, "other")
    said: list[str] = []
    removed = destroy("mine", ["us-east-1", "eu-west-1", "us-east-1"], said.append)
    assert set(found(ec2, "mine").values()) == {0}
    assert set(found(api.client("eu-west-1"), "mine").values()) == {0}
    assert found(ec2, "other") == others
    assert {item.region for item in removed} == {"us-east-1", "eu-west-1"}
    assert {item.kind for item in removed} == set(before)
    assert "us-east-1: removing 2 security groups" in said
    assert destroy("mine", ["us-east-1", "eu-west-1"], said.append) == []


def test_what_only_has_a_tag_of_the_same_name_is_not_ours(aws: Cloud) -> None:
    ec2 = api.client(REGION)
    made = ec2.create_vpc(
        CidrBlock="10.0.0.0/16",
        TagSpecifications=[{"ResourceType": "vpc", "Tags": [{"Key": "lab", "Value": "mine"}]}],
    )
    assert destroy("mine", [REGION], print) == []
    assert ec2.describe_vpcs(VpcIds=[made["Vpc"]["VpcId"]])["Vpcs"]


def test_every_action_that_the_policy_has_for_removing_is_used(aws: Cloud) -> None:
    plant("mine")
    aws.asked.clear()
    destroy("mine", [REGION], print)
    assert set(permissions.DELETE) <= set(aws.asked)
    assert set(aws.asked) <= set(permissions.ACTIONS)


def test_what_aws_does_not_let_go_is_named_with_its_words(aws: Cloud) -> None:
    ec2 = plant("mine")
    volumes = [each["VolumeId"] for each in ec2.describe_volumes()["Volumes"] if not each["Attachments"]]
    aws.errors["DeleteVolume"] = ("UnauthorizedOperation", "You may not.")
    with pytest.raises(LabError) as error:
        destroy("mine", [REGION], print)
    assert f"us-east-1: volume {volumes[0]}: UnauthorizedOperation: You may not." in str(error.value)
    assert sum(found(ec2, "mine").values()) == 1, "the rest has gone all the same"
    aws.errors.clear()
    assert destroy("mine", [REGION], print) == [Item(REGION, "volume", volumes[0])]


def test_what_is_in_use_is_tried_for_a_while_and_then_named(aws: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    plant("mine")
    quick = [kind if kind.name != "VPC" else kinds.Kind(**{**vars(kind), "wait_s": 0.3}) for kind in kinds.KINDS]
    monkeypatch.setattr("tunnel_lab.ec2.destroy.KINDS", quick)
    aws.errors["DeleteVpc"] = ("DependencyViolation", "It has dependencies.")
    aws.asked.clear()
    with pytest.raises(LabError, match=r"us-east-1: VPC vpc-\w+: DependencyViolation: It has dependencies\."):
        destroy("mine", [REGION], print)


def test_region_that_cannot_be_looked_at_is_a_failure_and_others_are_cleared(aws: Cloud) -> None:
    ec2 = plant("mine")
    aws.errors["region:eu-west-1"] = ("AuthFailure", "Not for you.")
    with pytest.raises(LabError, match=r"eu-west-1: could not be looked at: AuthFailure: Not for you\.") as error:
        destroy("mine", ["eu-west-1", REGION], print)
    assert "us-east-1" not in str(error.value)
    assert set(found(ec2, "mine").values()) == {0}
