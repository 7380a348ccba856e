"""The project's own playbooks against moto, from the first refusal to a teardown of nothing.

The tests of this file follow each other: one lab is made, looked at from all sides, and removed.
"""

from __future__ import annotations

import json
import re
import stat
import subprocess
from datetime import UTC, datetime
from typing import Any

import pytest

from playbooks import BIN, ROOT
from tunnel_lab.ec2 import api, kinds, memory, tags

from .cloud import Cloud
from .plays import HOME, INVENTORY, LAB, REGIONS, YES, made, play

pytestmark = pytest.mark.usefixtures("no_lab")

PEERS = {"server": "client", "client": "server"}


def written(host: str) -> dict[str, Any]:
    """Return what the lab has written down of a host."""
    told: dict[str, Any] = json.loads((HOME / "hosts" / f"{host}.json").read_text())
    return told


def instance(host: str) -> dict[str, Any]:
    """Return the host's instance as EC2 describes it."""
    (found,) = kinds.INSTANCES.find(api.client(REGIONS[host]), LAB)
    return found


@pytest.fixture(scope="module")
def lab(cloud: Cloud) -> str:
    """The lab, made by lab.yml and kept; returns what was printed."""
    status, printed = play("lab", *YES, "-e", "lab_keep=true")
    assert status == 2, printed
    return printed


def test_nothing_is_made_without_consent_to_the_cost(cloud: Cloud) -> None:
    status, printed = play("playbooks/provision")
    assert status != 0
    assert re.search(r"  server +\$\d\.\d\d  c5.xlarge in us-east-1, with 16 GB", printed)
    assert re.search(r"  client +\$\d\.\d\d  c5.xlarge \(spot: at most\) in eu-west-1, with 20 GB", printed)
    assert re.search(r"  at most +\$\d+\.\d\d  for 120 minutes", printed)
    assert "Nothing was made. If you agree to what it may cost, say so: add -e lab_confirm_cost=yes" in printed
    assert cloud.asked == {}, "AWS was not asked anything yet"
    assert not memory.path(HOME).exists()


def test_wrong_variable_is_told_by_name(cloud: Cloud) -> None:
    status, printed = play("playbooks/provision", *YES, "-e", "aws_regoin=us-east-1")
    assert status != 0
    assert "aws_regoin: no such variable. Did you mean 'aws_region'?" in printed
    assert cloud.asked == {}


def test_lab_without_credentials_is_one_line(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    for playbook in ("provision", "teardown"):
        status, printed = play(f"playbooks/{playbook}", *YES)
        assert status != 0
        (line,) = [line for line in printed.splitlines() if line.startswith("FAILED")]
        assert ": no AWS credentials: neither AWS_PROFILE nor AWS_ACCESS_KEY_ID" in line
        assert "Traceback" not in printed


def test_lab_that_is_to_be_kept_stays_when_a_step_fails(lab: str) -> None:
    (line,) = [line for line in lab.splitlines() if line.startswith("FAILED")]
    assert line.startswith("FAILED: Hosts may be reached")
    assert "lab_wait_for_ssh is false, so no host may be connected to: nothing is installed." in lab
    assert "At the end" not in lab
    assert {host: instance(host)["State"]["Name"] for host in REGIONS} == {"server": "running", "client": "running"}


def test_everything_is_there_once_in_each_region(lab: str) -> None:
    common = dict.fromkeys(
        ["instance", "volume", "security group", "subnet", "route table", "internet gateway", "VPC", "key pair"], 1
    )
    assert made() == {"us-east-1": common, "eu-west-1": {**common, "address": 1}}


def test_what_is_written_down_is_what_there_is(lab: str) -> None:
    for host, region in REGIONS.items():
        told, there = written(host), instance(host)
        assert stat.S_IMODE((HOME / "hosts" / f"{host}.json").stat().st_mode) == 0o600
        assert told["own_address"] == there["PrivateIpAddress"]
        assert told["address"] == there["PublicIpAddress"]
        assert told["user"] == "admin"
        assert told["environment"] == {
            "region": region,
            "zone": there["Placement"]["AvailabilityZone"],
            "instance_type": "c5.xlarge",
            "instance_id": there["InstanceId"],
            "spot": host == "client",
            "ami": "ami-0debian13new00000",
            "ami_name": "debian-13-amd64-20261103-2218",
        }
    (address,) = api.client("eu-west-1").describe_addresses()["Addresses"]
    assert address["PublicIp"] == written("client")["address"], "the client has asked for an elastic one"


def test_settings_of_one_host_are_its_own(lab: str) -> None:
    assert instance("client")["InstanceLifecycle"] == "spot"
    assert "InstanceLifecycle" not in instance("server")
    sizes = [api.client(region).describe_volumes()["Volumes"][0]["Size"] for region in REGIONS.values()]
    assert sizes == [16, 20]


def test_inventory_reads_what_is_written(lab: str) -> None:
    names = ["ansible_host", "link_address", "link_own_address", "ansible_user", "provider_environment.region"]
    told = " ".join(f"{{{{ {name} }}}}" for name in names)
    command = [f"{BIN}/ansible", *INVENTORY, "lab", "-c", "local", "-m", "ansible.builtin.debug", "-a", f"msg='{told}'"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    for host, region in REGIONS.items():
        one = written(host)
        assert f"{one['address']} {one['address']} {one['own_address']} admin {region}" in done.stdout


def test_everything_carries_the_tags(lab: str) -> None:
    remembered = memory.read(HOME)
    assert remembered
    assert remembered.regions == ["eu-west-1", "us-east-1"]
    end = datetime.strptime(remembered.expires, memory.FORMAT).replace(tzinfo=UTC)
    assert 100 * 60 < (end - datetime.now(UTC)).total_seconds() <= 120 * 60
    for host, region in REGIONS.items():
        wanted = tags.of(LAB, remembered.expires, host)
        for kind in kinds.KINDS:
            for resource in kind.find(api.client(region), None):
                assert tags.read(resource) == wanted, (kind.name, resource)


def test_firewall_lets_in_what_it_should_and_nothing_else(lab: str) -> None:
    for host, region in REGIONS.items():
        (group,) = next(kind for kind in kinds.KINDS if kind.name == "security group").find(api.client(region), LAB)
        rules = {
            (rule["IpProtocol"], rule["FromPort"], rule["ToPort"], source["CidrIp"])
            for rule in group["IpPermissions"]
            for source in rule["IpRanges"]
        }
        peer = f"{written(PEERS[host])['address']}/32"
        assert rules == {
            ("tcp", 22, 22, "203.0.113.7/32"),
            ("icmp", -1, -1, peer),
            ("tcp", 1194, 1194, peer),
            ("udp", 1194, 1194, peer),
            ("tcp", 5201, 5201, peer),
            ("tcp", 5299, 5299, peer),
            ("tcp", 6379, 6379, peer),
        }
        assert not any(rule.get("UserIdGroupPairs") or rule.get("Ipv6Ranges") for rule in group["IpPermissions"])
        assert [rule["IpProtocol"] for rule in group["IpPermissionsEgress"]] == ["-1"], "what EC2 makes by itself"
        (interface,) = instance(host)["NetworkInterfaces"]
        assert [each["GroupId"] for each in interface["Groups"]] == [group["GroupId"]]


def test_network_leads_to_the_internet(lab: str) -> None:
    for host, region in REGIONS.items():
        ec2 = api.client(region)
        named = [{"Name": "tag:Name", "Values": [tags.name(LAB, host)]}]
        (table,) = ec2.describe_route_tables(Filters=named)["RouteTables"]
        assert [each.get("SubnetId") for each in table["Associations"]] == [instance(host)["SubnetId"]]
        (gateway,) = ec2.describe_internet_gateways(Filters=named)["InternetGateways"]
        assert {each["DestinationCidrBlock"]: each["GatewayId"] for each in table["Routes"]} == {
            instance(host)["PrivateIpAddress"].rsplit(".", 1)[0] + ".0/24": "local",
            "0.0.0.0/0": gateway["InternetGatewayId"],
        }


def test_host_ends_by_itself(lab: str) -> None:
    for host, region in REGIONS.items():
        told = api.client(region).describe_instance_attribute(
            InstanceId=instance(host)["InstanceId"], Attribute="instanceInitiatedShutdownBehavior"
        )
        assert told["InstanceInitiatedShutdownBehavior"]["Value"] == "terminate"
        assert instance(host)["MetadataOptions"]["HttpTokens"] == "required"


def test_keys_are_private_and_known(lab: str) -> None:
    known = (HOME / "ssh" / "known_hosts").read_text()
    assert known == f"* {(HOME / 'ssh' / 'host_key.pub').read_text().strip()}\n"
    for name in ("management", "host_key", "known_hosts"):
        assert stat.S_IMODE((HOME / "ssh" / name).stat().st_mode) == 0o600
    assert "PRIVATE KEY" not in lab


def test_second_time_changes_nothing(cloud: Cloud, lab: str) -> None:
    before = {host: written(host) for host in REGIONS}
    cloud.asked.clear()
    status, printed = play("playbooks/provision", *YES, "-v")
    assert status == 0, printed
    sums = dict(re.findall(r"^(localhost|server|client): .*changed=(\d+)", printed, re.MULTILINE))
    assert sums == {"localhost": "0", "server": "0", "client": "0"}, printed
    assert {action for action in cloud.asked if not action.startswith("Describe")} == set()
    assert {host: written(host) for host in REGIONS} == before


def test_labs_are_listed(lab: str) -> None:
    status, printed = play("playbooks/labs")
    assert status == 0, printed
    row = next(line for line in printed.splitlines() if line.startswith(LAB))
    assert re.search(r"eu-west-1, us-east-1  c5.xlarge running, c5.xlarge running  \d+ min  \S+Z  \$0\.\d\d$", row)


def test_what_teardown_cannot_remove_is_listed_and_fails(cloud: Cloud, lab: str) -> None:
    every = [{"Key": key, "Value": value} for key, value in tags.of(LAB, "2026-01-01T00:00:00Z").items()]
    planted = api.client("us-west-2").create_volume(
        Size=1, AvailabilityZone="us-west-2a", TagSpecifications=[{"ResourceType": "volume", "Tags": every}]
    )["VolumeId"]
    cloud.errors["DeleteVolume"] = ("UnauthorizedOperation", "You may not.")
    status, printed = play("playbooks/teardown", "-e", "teardown_regions=us-west-2")
    cloud.errors.clear()
    assert status != 0
    assert f"us-west-2: volume {planted}: UnauthorizedOperation: You may not." in printed
    assert memory.path(HOME).exists(), "where to look is not forgotten"
    left = [kind.name for region in REGIONS.values() for kind in kinds.KINDS if kind.find(api.client(region), LAB)]
    assert left == [], "all else has gone"
    status, printed = play("playbooks/teardown", "-e", "teardown_regions=us-west-2")
    assert status == 0, printed
    assert "us-west-2: removing 1 volume" in printed


def test_teardown_of_nothing_changes_nothing(cloud: Cloud, lab: str) -> None:
    cloud.asked.clear()
    status, printed = play("playbooks/teardown", "-v")
    assert status == 0, printed
    assert re.search(r"^localhost: .*changed=0", printed, re.MULTILINE)
    assert {action for action in cloud.asked if not action.startswith("Describe")} == set()
    assert not HOME.exists()
