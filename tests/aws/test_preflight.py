"""Everything that keeps hosts from being made is one clear line, and finding it out makes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tunnel_lab.ec2 import api, permissions, tags
from tunnel_lab.ec2.preflight import preflight
from tunnel_lab.errors import LabError

from .cloud import Cloud
from .conftest import KEY, hosts
from .test_destroy import spec

DENIED = ("UnauthorizedOperation", "You are not authorized to perform this operation.")


def check(home: Path, chosen: dict[str, dict[str, Any]] | None = None) -> dict[str, Any]:
    return preflight("mine", chosen or hosts(), home / "ssh" / "management.pub", home)


def refused(home: Path, chosen: dict[str, dict[str, Any]] | None = None) -> list[str]:
    """Return the lines of what is wrong."""
    with pytest.raises(LabError) as error:
        check(home, chosen)
    return str(error.value).splitlines()


def one_host(host: str, **changes: Any) -> dict[str, dict[str, Any]]:
    """Return both hosts' settings with some changed for one of them."""
    chosen = hosts()
    chosen[host].update(changes)
    return chosen


def test_what_is_found_says_how_to_make_the_hosts_and_makes_nothing(aws: Cloud, home: Path) -> None:
    found = check(home)
    assert found["alive"] is False
    assert found["unchecked"] == []
    server = found["hosts"]["server"]
    assert server["zone"] == "us-east-1a"
    assert server["image"] == "ami-0debian13new00000", "the newest of Debian's own for this architecture"
    assert server["image_name"] == "debian-13-amd64-20261103-2218"
    assert server["image_device"] == "/dev/xvda"
    assert server["vcpus"] == 16
    assert found["hosts"]["client"]["zone"].startswith("eu-west-1")
    assert {action for action in aws.asked if not action.startswith("Describe")} == set()


def test_without_credentials(aws: Cloud, home: Path, other_credentials: pytest.MonkeyPatch) -> None:
    other_credentials.delenv("AWS_ACCESS_KEY_ID")
    assert refused(home)[0].startswith("no AWS credentials: neither AWS_PROFILE nor AWS_ACCESS_KEY_ID")


def test_half_of_the_credentials(aws: Cloud, home: Path, other_credentials: pytest.MonkeyPatch) -> None:
    other_credentials.delenv("AWS_SECRET_ACCESS_KEY")
    assert "the AWS credentials could not be used" in refused(home)[0]


def test_profile_that_does_not_exist(aws: Cloud, home: Path, other_credentials: pytest.MonkeyPatch) -> None:
    other_credentials.setenv("AWS_PROFILE", "nobody")
    (line,) = refused(home)
    assert "The config profile (nobody) could not be found" in line


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("ExpiredToken", "the AWS credentials have expired: get new ones: ExpiredToken: Told so."),
        ("InvalidClientTokenId", "AWS does not accept these credentials in the partition aws (asked in us-east-1)"),
    ],
)
def test_credentials_that_aws_refuses(aws: Cloud, home: Path, code: str, said: str) -> None:
    aws.errors["service:sts"] = (code, "Told so.")
    (line,) = refused(home)
    assert line.startswith(said)


def test_aws_that_cannot_be_reached(aws: Cloud, home: Path, other_credentials: pytest.MonkeyPatch) -> None:
    other_credentials.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    other_credentials.setenv("AWS_MAX_ATTEMPTS", "1")
    (line,) = refused(home)
    assert 'Could not connect to the endpoint URL: "http://127.0.0.1:9/"' in line


def test_credentials_of_another_partition(aws: Cloud, home: Path) -> None:
    aws.errors["service:sts"] = ("InvalidClientTokenId", "The security token included in the request is invalid.")
    chosen = one_host("server", aws_region="cn-north-1")
    chosen["client"]["aws_region"] = "cn-northwest-1"
    (line,) = refused(home, chosen)
    assert line.startswith("AWS does not accept these credentials in the partition aws-cn (asked in cn-north-1)")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"aws_region": ""}, "aws_region of client: is not set. Name a region, such as us-east-1."),
        ({"aws_region": "eu-wst"}, "aws_region of client: 'eu-wst' is no region of AWS. Did you mean 'eu-west-"),
        ({"aws_region": "us-east-1"}, "aws_region: both hosts are in us-east-1, and the lab measures between two."),
        ({"aws_region": "us-gov-west-1"}, "aws_region: us-east-1 and us-gov-west-1 are in different partitions"),
        ({"aws_zone": "us-east-1a"}, "aws_zone of client: 'us-east-1a' is not in eu-west-1, such as eu-west-1a."),
        ({"aws_mtu": 100}, "aws_mtu of client must be from 576 to 9001, it is 100."),
        ({"aws_volume_gb": 0}, "aws_volume_gb of client must be at least 1, it is 0."),
        ({"aws_image_user": ""}, "aws_image_user of client is empty"),
        (
            {"aws_operator_cidr": "0.0.0.0/0"},
            "aws_operator_cidr of client: 0.0.0.0/0 would open the hosts to the world.",
        ),
        ({"aws_operator_cidr": "128.0.0.0/1"}, "aws_operator_cidr of client: 128.0.0.0/1 would open the hosts to"),
        ({"aws_operator_cidr": "me"}, "aws_operator_cidr of client must be `auto` or an IPv4 network"),
        ({"aws_operator_cidr": "::/0"}, "aws_operator_cidr of client must be `auto` or an IPv4 network"),
    ],
)
def test_wrong_setting_is_told_without_asking_aws(aws: Cloud, home: Path, changes: dict[str, Any], said: str) -> None:
    (line,) = refused(home, one_host("client", **changes))
    assert line.startswith(said)
    assert aws.asked == {}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"aws_region": "eu-west-9"}, "aws_region of client: eu-west-9 does not exist. This account knows af-south-1"),
        ({"aws_region": "ap-east-1"}, "aws_region of client: ap-east-1 is not enabled in this account: enable it"),
        ({"aws_instance_type": "c5.huge"}, "aws_instance_type of client: c5.huge does not exist in eu-west-1."),
        ({"aws_instance_type": "{absent}"}, "aws_instance_type of client: {absent} is not offered in eu-west-1."),
        (
            {"aws_zone": "eu-west-1z"},
            "aws_instance_type of client: c5.4xlarge is not offered in eu-west-1z, the aws_zone of client. It is in",
        ),
        (
            {"aws_image_name": "nosuch-*"},
            "aws_image_name of client: 136693071363 has no image 'nosuch-*' for x86_64 in eu-west-1. aws_image_owner",
        ),
        (
            {"aws_image_name": "debian-13-arm64-*"},
            "aws_image_name of client: 136693071363 has no image 'debian-13-arm64-*' for x86_64 in eu-west-1, "
            "only for arm64. Set aws_image_architecture.",
        ),
        (
            {"aws_image_name": "debian-13-arm64-*", "aws_image_architecture": "arm64"},
            "aws_image_architecture of client: c5.4xlarge does not run arm64, it runs x86_64. Set that,",
        ),
        ({"aws_volume_gb": 1}, "aws_volume_gb of client is 1, and the image debian-13-amd64-20261103-2218 needs "),
    ],
)
def test_what_the_region_does_not_have(aws: Cloud, home: Path, changes: dict[str, Any], said: str) -> None:
    absent = only_in("us-east-1", "eu-west-1") if "{absent}" in changes.values() else ""
    changes = {key: absent if value == "{absent}" else value for key, value in changes.items()}
    (line,) = refused(home, one_host("client", **changes))
    assert line.startswith(said.replace("{absent}", absent))


def only_in(region: str, other: str) -> str:
    """Return a small instance type that is offered in one region, and exists but is not offered in the other."""
    of_amd64 = [{"Name": "processor-info.supported-architecture", "Values": ["x86_64"]}]
    described = api.client(region).describe_instance_types(Filters=of_amd64)["InstanceTypes"]
    small = {each["InstanceType"] for each in described if each["VCpuInfo"]["DefaultVCpus"] <= 16}
    offered = [
        {each["InstanceType"] for each in api.client(name).describe_instance_type_offerings()["InstanceTypeOfferings"]}
        for name in (region, other)
    ]
    return str(min((offered[0] - offered[1]) & small))


def test_problems_of_both_hosts_are_told_at_once(aws: Cloud, home: Path) -> None:
    aws.quotas["L-1216C47A"] = 8
    lines = refused(home, hosts(aws_image_name="nosuch"))
    assert len(lines) == 4
    assert [line.split(" ")[0] for line in lines] == ["aws_image_name", "us-east-1:", "aws_image_name", "eu-west-1:"]


@pytest.mark.parametrize("action", ["RunInstances", "CreateVpc", "TerminateInstances", "DescribeImages"])
def test_missing_permission_is_named(aws: Cloud, home: Path, action: str) -> None:
    aws.errors[action] = DENIED
    lines = refused(home, one_host("client"))
    who = "arn:aws:sts::123456789012:user/moto"
    assert lines == [
        f"aws_region of {host}: {region}: {who} may not: ec2:{action}. docs/aws.md has the policy that it needs."
        for host, region in (("server", "us-east-1"), ("client", "eu-west-1"))
    ]


def test_all_missing_permissions_are_told_at_once(aws: Cloud, home: Path) -> None:
    checked = [action for action, arguments in permissions.ACTIONS.items() if arguments is not None]
    aws.errors.update(dict.fromkeys(checked, DENIED))
    for line in refused(home):
        assert all(f"ec2:{action}" in line for action in checked)


def test_quota_that_is_too_low(aws: Cloud, home: Path) -> None:
    aws.quotas["L-1216C47A"] = 5
    lines = refused(home)
    assert lines[0].startswith(
        "us-east-1: the quota of vCPUs for on-demand standard instances (L-1216C47A) is 5, "
        "0 are in use, and c5.4xlarge needs 16."
    )
    check(home, hosts(aws_spot=True))  # spot has a quota of its own
    aws.quotas["L-34B43A08"] = 15
    assert "the quota of vCPUs for spot standard instances (L-34B43A08) is 15" in refused(home, hosts(aws_spot=True))[0]


def test_quota_counts_what_runs_already(aws: Cloud, home: Path) -> None:
    aws.quotas["L-1216C47A"] = 31
    check(home)
    api.client("us-east-1").run_instances(
        ImageId="ami-0debian13new00000", InstanceType="c5.4xlarge", MinCount=1, MaxCount=1
    )
    (line,) = refused(home)
    assert "(L-1216C47A) is 31, 16 are in use, and c5.4xlarge needs 16." in line


def test_quota_that_may_not_be_read_stops_nobody(aws: Cloud, home: Path) -> None:
    aws.errors["service:servicequotas"] = ("AccessDeniedException", "No.")
    said = check(home)["unchecked"]
    assert said[0].startswith("us-east-1: the quota L-1216C47A could not be read (AccessDeniedException: No.)")
    assert len(said) == 2


def test_quota_of_a_family_of_its_own_is_not_known(aws: Cloud, home: Path) -> None:
    said = check(home, hosts(aws_instance_type="g4dn.xlarge"))["unchecked"]
    assert said[0] == "us-east-1: the quota of g4dn.xlarge's family is not among those that the lab knows"


def test_key_pair_of_another_checkout(aws: Cloud, home: Path) -> None:
    ec2 = api.client("us-east-1")
    ec2.import_key_pair(KeyName="tunnel-lab-mine", PublicKeyMaterial=KEY.encode())
    check(home)
    (home / "ssh" / "management.pub").write_text(KEY.replace("IPmVZ", "IPmVY"))
    (line,) = refused(home)
    assert line.startswith(
        "the lab 'mine' in us-east-1 was made from another machine or checkout: its key pair "
        "tunnel-lab-mine has another public key."
    )


def start(region: str, kind: str) -> str:
    """Start the lab's server in a region, as another command would have done."""
    made = api.client(region).run_instances(
        ImageId="ami-0debian13new00000", InstanceType=kind, MinCount=1, MaxCount=1,
        TagSpecifications=spec("instance", "mine"),
    )  # fmt: skip
    return str(made["Instances"][0]["InstanceId"])


def test_host_that_is_there_already_is_found(aws: Cloud, home: Path) -> None:
    name = start("us-east-1", "c5.4xlarge")
    aws.quotas["L-1216C47A"] = 16  # which it uses up, and nothing more is needed
    found = check(home)
    assert found["alive"] is True
    assert found["hosts"]["server"]["instance"] == name
    assert found["hosts"]["client"]["instance"] == ""


def test_host_of_another_type_is_not_silently_kept(aws: Cloud, home: Path) -> None:
    name = start("us-east-1", "m5.large")
    (line,) = refused(home)
    there = f"server ({name}) in us-east-1"
    assert line == f"{there} is a m5.large already, and c5.4xlarge is wanted: run playbooks/teardown.yml first."


def test_host_that_was_stopped_is_no_host(aws: Cloud, home: Path) -> None:
    name = start("us-east-1", "c5.4xlarge")
    api.client("us-east-1").stop_instances(InstanceIds=[name])
    (line,) = refused(home)
    assert line == f"server ({name}) in us-east-1 is stopped: run playbooks/teardown.yml first."


def test_hosts_in_a_region_that_the_inventory_has_left(aws: Cloud, home: Path) -> None:
    start("us-west-2", "c5.4xlarge")
    (home / "aws.json").write_text('{"regions": ["us-west-2"], "expires": "2026-01-01T00:00:00Z"}')
    (line,) = refused(home)
    assert line.startswith("the lab 'mine' has hosts in us-west-2, no aws_region any more")


def test_tags_of_a_lab_are_those_that_are_looked_for() -> None:
    every = tags.of("mine", "2026-01-01T00:00:00Z", "server")
    assert every == {
        "Name": "tunnel-lab-mine-server",
        "lab": "mine",
        "tunnel-lab": "1",
        "expires": "2026-01-01T00:00:00Z",
    }
