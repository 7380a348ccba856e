"""How a host is started: what it costs, how it ends, what it lets be read of it, and that it is started once."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from tunnel_lab.ec2 import api, tags, userdata
from tunnel_lab.ec2.launch import launch
from tunnel_lab.errors import LabError

from .cloud import Cloud
from .conftest import KEY, hosts

EXPIRES = "2026-12-01T04:00:00Z"


def start(home: Path, **changes: Any) -> dict[str, Any]:
    """Start the lab's server in a network that is made for it where there is none yet."""
    ec2 = api.client("us-east-1")
    named = [{"Name": "tag:Name", "Values": ["n"]}]
    there = ec2.describe_subnets(Filters=named)["Subnets"]
    if not there:
        ec2.import_key_pair(KeyName="tunnel-lab-mine", PublicKeyMaterial=KEY.encode())
        vpc = ec2.create_vpc(CidrBlock="10.98.1.0/24")["Vpc"]["VpcId"]
        name = [{"ResourceType": "subnet", "Tags": [{"Key": "Name", "Value": "n"}]}]
        there = [ec2.create_subnet(VpcId=vpc, CidrBlock="10.98.1.0/24", TagSpecifications=name)["Subnet"]]
    of_vpc = [{"Name": "vpc-id", "Values": [there[0]["VpcId"]]}]
    request = {
        "subnet": there[0]["SubnetId"],
        "group": ec2.describe_security_groups(Filters=of_vpc)["SecurityGroups"][0]["GroupId"],
        "image": "ami-0debian13new00000",
        "image_device": "/dev/xvda",
        "expires": EXPIRES,
        "user_data": userdata.user_data(120, home / "ssh" / "host_key"),
    }
    return launch("mine", "server", hosts(**changes)["server"], request)


def attribute(name: str, of: str) -> Any:
    """Return an attribute of an instance as EC2 has it."""
    answer = api.client("us-east-1").describe_instance_attribute(InstanceId=name, Attribute=of)
    return answer[of[0].upper() + of[1:]]["Value"]


def test_host_is_as_it_should_be(aws: Cloud, home: Path) -> None:
    told = start(home)
    assert told["changed"] is True
    assert told["image_name"] == "debian-13-amd64-20261103-2218"
    ec2 = api.client("us-east-1")
    (instance,) = ec2.describe_instances(InstanceIds=[told["instance_id"]])["Reservations"][0]["Instances"]
    assert instance["PublicIpAddress"] == told["address"]
    assert instance["PrivateIpAddress"] == told["own_address"]
    assert instance["InstanceType"] == "c5.4xlarge"
    assert instance["KeyName"] == "tunnel-lab-mine"
    assert "InstanceLifecycle" not in instance
    wanted = {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled"}
    assert instance["MetadataOptions"].items() >= wanted.items()
    assert attribute(told["instance_id"], "instanceInitiatedShutdownBehavior") == "terminate"
    (disk,) = ec2.describe_volumes()["Volumes"]
    assert (disk["Size"], disk["VolumeType"], disk["Encrypted"]) == (16, "gp3", True)
    for resource in (instance, disk):
        assert tags.read(resource) == tags.of("mine", EXPIRES, "server")
    said = base64.b64decode(attribute(told["instance_id"], "userData")).decode()
    assert said == userdata.user_data(120, home / "ssh" / "host_key")


def test_request_tags_what_moto_does_not(aws: Cloud, home: Path) -> None:
    start(home, aws_spot=True)
    (asked,) = aws.asked["RunInstances"]
    tagged = {value[0] for key, value in asked.items() if key.endswith(".ResourceType")}
    assert tagged == {"instance", "volume", "network-interface", "spot-instances-request"}
    assert asked["InstanceMarketOptions.SpotOptions.SpotInstanceType"] == ["one-time"]
    assert asked["InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior"] == ["terminate"]
    assert asked["BlockDeviceMapping.1.Ebs.DeleteOnTermination"] == ["true"]
    assert asked["NetworkInterface.1.DeleteOnTermination"] == ["true"]
    assert "CreditSpecification.CpuCredits" not in asked


def test_spot(aws: Cloud, home: Path) -> None:
    told = start(home, aws_spot=True)
    answer = api.client("us-east-1").describe_instances(InstanceIds=[told["instance_id"]])
    assert answer["Reservations"][0]["Instances"][0]["InstanceLifecycle"] == "spot"


def test_burstable_type_does_not_buy_more_than_its_price(aws: Cloud, home: Path) -> None:
    start(home, aws_instance_type="t3.micro")
    assert aws.asked["RunInstances"][0]["CreditSpecification.CpuCredits"] == ["standard"]


def test_host_is_started_once(aws: Cloud, home: Path) -> None:
    first = start(home)
    assert start(home) == {**first, "changed": False}
    assert len(aws.asked["RunInstances"]) == 1


def test_two_of_a_host_are_one_too_many(aws: Cloud, home: Path) -> None:
    start(home)
    ec2 = api.client("us-east-1")
    every = [{"Key": key, "Value": value} for key, value in tags.of("mine", EXPIRES, "server").items()]
    ec2.run_instances(
        ImageId="ami-0debian13new00000", MinCount=1, MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": every}],
    )  # fmt: skip
    with pytest.raises(LabError, match=r"there are 2 instances of server \(i-\w+, i-\w+\): run playbooks/teardown.yml"):
        start(home)


def test_no_room_is_told_in_the_words_of_aws(aws: Cloud, home: Path) -> None:
    aws.errors["RunInstances"] = ("InsufficientInstanceCapacity", "There is no Spot capacity in us-east-1a.")
    with pytest.raises(LabError) as error:
        start(home)
    said = "InsufficientInstanceCapacity: There is no Spot capacity in us-east-1a."
    assert str(error.value) == f"server (c5.4xlarge) could not be started: {said}"


def test_host_that_ends_at_once_is_no_host(aws: Cloud, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = {"State": {"Name": "terminated"}, "StateReason": {"Message": "Client.InternalError: no such KMS key"}}
    monkeypatch.setattr("tunnel_lab.ec2.launch._described", lambda *_: [dead])
    with pytest.raises(LabError, match=r"server \(i-\w+\) is terminated: Client.InternalError: no such KMS key"):
        start(home)


def test_host_that_does_not_start_is_not_waited_for_for_ever(
    aws: Cloud, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tunnel_lab.ec2.launch.WAIT_S", 0.3)
    monkeypatch.setattr("tunnel_lab.ec2.launch._described", lambda *_: [{"State": {"Name": "pending"}}])
    with pytest.raises(LabError, match=r"server \(i-\w+\) has not started within 0.3 s, it is pending\."):
        start(home)


def test_instance_that_aws_does_not_know_everywhere_yet_is_waited_for(
    aws: Cloud, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tunnel_lab.ec2.launch.WAIT_S", 0.3)
    aws.errors["DescribeInstances"] = ("InvalidInstanceID.NotFound", "no such instance")
    monkeypatch.setattr("tunnel_lab.ec2.launch._living", lambda *_: [])
    with pytest.raises(LabError, match=r"server \(i-\w+\) has not started within 0.3 s, it is not listed\."):
        start(home)


def test_user_data_is_a_configuration_of_cloud_init(home: Path) -> None:
    text = userdata.user_data(90, home / "ssh" / "host_key")
    assert text.startswith("#cloud-config\n")
    told = yaml.safe_load(text)
    assert told["ssh_keys"] == {"ed25519_private": "private host_key\n", "ed25519_public": KEY}
    assert told["ssh_deletekeys"] is True
    assert "date -u -d '+90 minutes'" in told["bootcmd"][0][2]
    assert len(text) < 16384, "EC2 takes no more"
