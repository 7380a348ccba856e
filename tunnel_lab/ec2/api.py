"""AWS's API: clients with bounded waits, whose credentials these are, and errors as one line each."""

from __future__ import annotations

import difflib
import functools
import threading
from typing import Any

import boto3
import botocore.config
import botocore.exceptions
import botocore.session

from tunnel_lab.errors import LabError

ERRORS = (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError)
"""Whatever boto3 raises."""
REFUSED = ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException")
BASE = {"aws": "us-east-1", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}
"""{partition: the region that answers for it, because nobody can disable it}"""
HOW = "docs/aws.md says how to set them."


_ONE_AT_A_TIME = threading.Lock()


@functools.cache
def session() -> Any:
    """Return the one session, whose description of EC2 takes half a second to read."""
    return boto3.Session()


def client(region: str, service: str = "ec2") -> Any:
    """Return a client that retries what is worth it and waits at most half a minute for an answer."""
    config = botocore.config.Config(
        retries={"mode": "standard", "total_max_attempts": 6}, connect_timeout=10, read_timeout=30
    )
    with _ONE_AT_A_TIME:  # clients may be used by any thread, but a session makes them one by one
        return session().client(service, region_name=region, config=config)


def code(error: Exception) -> str:
    """Return AWS's own code of an error, such as `DependencyViolation`; empty where it has none."""
    if isinstance(error, botocore.exceptions.ClientError):
        return str(error.response.get("Error", {}).get("Code", ""))
    return ""


def said(error: Exception) -> str:
    """Return what boto3 or AWS says, as one line."""
    if isinstance(error, botocore.exceptions.ClientError):
        answer = error.response.get("Error", {})
        return " ".join(f"{answer.get('Code', '')}: {answer.get('Message', '')}".split())
    return " ".join(str(error).split())


def partition(region: str) -> str:
    """Return the partition of a region by the form of its name; a LabError when it has not that of any."""
    # whatever profile the user has chosen: that it is wrong is said where credentials are needed
    offline = botocore.session.Session(session_vars={"profile": (None, None, None, None)})
    try:
        return str(offline.get_partition_for_region(region))
    except botocore.exceptions.UnknownRegionError:
        known = [name for part in BASE for name in offline.get_available_regions("ec2", partition_name=part)]
        near = difflib.get_close_matches(region, known, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise LabError(f"'{region}' is no region of AWS.{hint}") from None


def identity(region: str) -> str:
    """Return who the credentials belong to, as an ARN, asked in `region`; a LabError when they cannot be used."""
    try:
        if session().get_credentials() is None:
            raise LabError(
                "no AWS credentials: neither AWS_PROFILE nor AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY is set, "
                f"and ~/.aws has no default. {HOW}"
            )
        return str(client(region, "sts").get_caller_identity()["Arn"])
    except ERRORS as error:
        if code(error).startswith(("ExpiredToken", "RequestExpired")):
            why = "the AWS credentials have expired: get new ones"
        elif code(error):
            why = f"AWS does not accept these credentials in the partition {partition(region)} (asked in {region})"
        else:
            why = f"the AWS credentials could not be used in {region}"
        raise LabError(f"{why}: {said(error)} {HOW}") from None


def regions(region: str) -> dict[str, str]:
    """Return {region: its state for this account} of the partition of `region`, such as `not-opted-in`."""
    base = BASE.get(partition(region), region)
    answer = client(base).describe_regions(AllRegions=True)["Regions"]
    return {each["RegionName"]: each.get("OptInStatus", "opt-in-not-required") for each in answer}


def enabled(region: str) -> list[str]:
    """Return the regions of the partition of `region` that this account may use, sorted."""
    return sorted(name for name, state in regions(region).items() if state != "not-opted-in")
