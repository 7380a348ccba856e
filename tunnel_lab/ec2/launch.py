"""Start the instance of one host, on demand or spot, in one call that tags all that comes with it."""

from __future__ import annotations

import re
import time
from typing import Any

from tunnel_lab.ec2 import api, tags
from tunnel_lab.ec2.kinds import INSTANCES
from tunnel_lab.errors import LabError

WAIT_S = 300
POLL_S = 3.0


def launch(lab: str, host: str, chosen: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """Start the host unless it is there, and wait until it runs and has its addresses, at most `WAIT_S`.

    `request` has subnet, group, image, image_device, expires and user_data. Returns what the host is.
    """
    client = api.client(chosen["aws_region"])
    there = _living(client, lab, host)
    if len(there) > 1:
        ids = ", ".join(each["InstanceId"] for each in there)
        raise LabError(f"there are {len(there)} instances of {host} ({ids}): run playbooks/teardown.yml.")
    try:
        made = there[0] if there else client.run_instances(**_arguments(lab, host, chosen, request))["Instances"][0]
        described = _wait(client, made["InstanceId"], host)
    except api.ERRORS as error:
        raise LabError(f"{host} ({chosen['aws_instance_type']}) could not be started: {api.said(error)}") from None
    return {"changed": not there, **_told(client, described)}


def _living(client: Any, lab: str, host: str) -> list[dict[str, Any]]:
    return [each for each in INSTANCES.find(client, lab) if tags.read(each)["Name"] == tags.name(lab, host)]


def _arguments(lab: str, host: str, chosen: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    tagged = ["instance", "volume", "network-interface", *(["spot-instances-request"] if chosen["aws_spot"] else [])]
    every = [{"Key": key, "Value": value} for key, value in tags.of(lab, request["expires"], host).items()]
    arguments: dict[str, Any] = {
        "ImageId": request["image"],
        "InstanceType": chosen["aws_instance_type"],
        "MinCount": 1,
        "MaxCount": 1,
        "KeyName": tags.name(lab),
        "UserData": request["user_data"],
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "BlockDeviceMappings": [
            {
                "DeviceName": request["image_device"],
                "Ebs": {
                    "VolumeSize": chosen["aws_volume_gb"],
                    "VolumeType": "gp3",
                    "Encrypted": True,
                    "DeleteOnTermination": True,
                },
            }
        ],
        "NetworkInterfaces": [
            {
                "DeviceIndex": 0,
                "SubnetId": request["subnet"],
                "Groups": [request["group"]],
                "AssociatePublicIpAddress": True,
                "DeleteOnTermination": True,
            }
        ],
        "TagSpecifications": [{"ResourceType": kind, "Tags": every} for kind in tagged],
    }
    if chosen["aws_spot"]:
        once = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
        arguments["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": once}
    if re.match(r"t\d", chosen["aws_instance_type"]):
        # the list price is the most that it costs then: "unlimited" types buy what they use beyond their credits
        arguments["CreditSpecification"] = {"CpuCredits": "standard"}
    return arguments


def _wait(client: Any, name: str, host: str) -> dict[str, Any]:
    """Return the running instance; a LabError when it ends meanwhile or takes too long."""
    end = time.monotonic() + WAIT_S
    state = "not listed"
    while time.monotonic() < end:
        for each in _described(client, name):
            state = each["State"]["Name"]
            if state == "running" and "PublicIpAddress" in each:
                return dict(each)
            if state not in ("pending", "running"):
                why = each.get("StateReason", {}).get("Message", "no reason given")
                raise LabError(f"{host} ({name}) is {state}: {why}")
        time.sleep(POLL_S)
    raise LabError(f"{host} ({name}) has not started within {WAIT_S} s, it is {state}.")


def _described(client: Any, name: str) -> list[dict[str, Any]]:
    """Return the instance, or nothing for as long as it is so new that EC2 does not know it everywhere."""
    try:
        answer = client.describe_instances(InstanceIds=[name])
    except api.ERRORS as error:
        if "NotFound" not in api.code(error):
            raise
        return []
    return [each for reservation in answer["Reservations"] for each in reservation["Instances"]]


def _told(client: Any, instance: dict[str, Any]) -> dict[str, Any]:
    """Return what the lab keeps of a running instance."""
    images = client.describe_images(ImageIds=[instance["ImageId"]])["Images"]
    return {
        "instance_id": instance["InstanceId"],
        "address": instance["PublicIpAddress"],
        "own_address": instance["PrivateIpAddress"],
        "zone": instance["Placement"]["AvailabilityZone"],
        "image": instance["ImageId"],
        # an image may be withdrawn while a host of it runs
        "image_name": images[0]["Name"] if images else "",
    }
