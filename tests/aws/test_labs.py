"""The list of labs: found by their tags, with what they have cost, and what is left of those that are gone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tunnel_lab.ec2 import api, labs
from tunnel_lab.errors import LabError

from .cloud import Cloud
from .conftest import hosts
from .test_destroy import plant, spec

REGIONS = ["eu-west-1", "us-east-1"]


def start(lab: str, region: str, kind: str) -> None:
    api.client(region).run_instances(
        ImageId="ami-0debian13new00000", InstanceType=kind, MinCount=1, MaxCount=1,
        BlockDeviceMappings=[{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 16}}],
        TagSpecifications=spec("instance", lab) + spec("volume", lab),
    )  # fmt: skip


def test_nothing_is_alive(aws: Cloud) -> None:
    assert labs.shown(labs.find(REGIONS), REGIONS) == "No lab is alive in eu-west-1, us-east-1."


def test_labs_with_their_age_and_cost(aws: Cloud) -> None:
    for region in REGIONS:
        start("mine", region, "c5.4xlarge")
    start("other", "us-east-1", "x2idn.16xlarge")
    now = datetime.now(UTC) + timedelta(hours=2)
    lines = labs.shown(labs.find(REGIONS), REGIONS, now).splitlines()
    assert lines[0].split() == ["lab", "regions", "instances", "age", "expires", "so", "far"]
    spent = 2 * (0.68 + 0.768 + 2 * 0.005 + 16 * (0.08 + 0.088) / 720)
    assert lines[1].split("  ")[0] == "mine"
    assert "eu-west-1, us-east-1  c5.4xlarge running, c5.4xlarge running  120 min" in lines[1]
    assert lines[1].endswith(f"2026-01-01T00:00:00Z (past)  ${spent:.2f}")
    assert lines[2].startswith("other  us-east-1             x2idn.16xlarge running")
    assert lines[2].endswith("unknown")


def test_what_is_left_of_a_lab_is_listed_kind_by_kind(aws: Cloud) -> None:
    ec2 = plant("mine")
    for reservation in ec2.describe_instances()["Reservations"]:
        ec2.terminate_instances(InstanceIds=[each["InstanceId"] for each in reservation["Instances"]])
    text = labs.shown(labs.find(["us-east-1"]), ["us-east-1"])
    assert "mine has no instance, and this is left of it: " in text
    for part in ("1 x VPC in us-east-1", "2 x security group in", "1 x address in us-east-1", "1 x key pair in"):
        assert part in text


def test_region_that_cannot_be_looked_at_is_an_error(aws: Cloud) -> None:
    aws.errors["region:eu-west-1"] = ("UnauthorizedOperation", "No.")
    with pytest.raises(LabError, match=r"^eu-west-1 could not be looked at: UnauthorizedOperation: No\.$"):
        labs.find(REGIONS)


def test_regions_are_those_of_the_inventory_or_as_named(aws: Cloud) -> None:
    assert labs.chosen("", hosts()) == REGIONS
    assert labs.chosen("us-west-2, eu-west-3", hosts()) == ["us-west-2", "eu-west-3"]
    assert labs.chosen("", {}) == []
    every = labs.chosen("all", {})
    assert {"us-east-1", "eu-west-1", "sa-east-1"} <= set(every)
    assert "ap-east-1" not in every, "it is not enabled"
    assert labs.shown([], every) == f"No lab is alive in {len(every)} regions."
