"""Everything that keeps the hosts from being made, found before anything is; and what AWS has to tell about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tunnel_lab.ec2 import api, memory, permissions, quotas, settings, tags
from tunnel_lab.ec2.kinds import INSTANCES
from tunnel_lab.errors import LabError


@dataclass
class Found:
    """What one host's region says."""

    lab: str
    host: str
    settings: dict[str, Any]
    public_key: str
    """Of the lab, in one line."""
    ec2: Any = None
    facts: dict[str, Any] = field(default_factory=dict)
    """zone, image, image_name, image_device, vcpus, architectures; instance, the id of the host if it is there."""
    problems: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    @property
    def region(self) -> str:
        """Return the host's region."""
        return str(self.settings["aws_region"])

    @property
    def type(self) -> str:
        """Return the host's instance type."""
        return str(self.settings["aws_instance_type"])


def preflight(lab: str, hosts: settings.Hosts, public_key: Path, home: Path) -> dict[str, Any]:
    """Return {hosts: {host: facts}, alive: whether any is there, unchecked}; a LabError says all that is wrong."""
    problems = settings.problems(hosts)
    if problems:
        raise LabError("\n".join(problems))
    regions = sorted({each["aws_region"] for each in hosts.values()})
    who = api.identity(api.BASE.get(api.partition(regions[0]), regions[0]))
    key = " ".join(public_key.read_text(encoding="utf-8").split()[:2])
    found = [Found(lab, host, chosen, key) for host, chosen in hosts.items()]
    states = _states(regions[0])
    with ThreadPoolExecutor(max_workers=len(found)) as pool:
        list(pool.map(lambda each: _look(each, states, who), found))
    problems = [*(problem for each in found for problem in each.problems), *_elsewhere(lab, regions, home)]
    if problems:
        raise LabError("\n".join(problems))
    return {
        "hosts": {each.host: each.facts for each in found},
        "alive": any(each.facts["instance"] for each in found),
        "unchecked": [said for each in found for said in each.unchecked],
    }


def _states(region: str) -> dict[str, str] | None:
    """Return the regions' states, None when these credentials may not ask."""
    try:
        return api.regions(region)
    except api.ERRORS as error:
        if api.code(error) in api.REFUSED:
            return None
        raise LabError(f"the regions could not be listed: {api.said(error)}") from None


def _look(found: Found, states: dict[str, str] | None, who: str) -> None:
    """Fill in what the host's region says; what depends on something that is wrong is left out."""
    where = f"aws_region of {found.host}: {found.region}"
    if states is not None and found.region not in states:
        found.problems.append(f"{where} does not exist. This account knows {', '.join(sorted(states))}.")
        return
    if states is not None and states[found.region] == "not-opted-in":
        found.problems.append(f"{where} is not enabled in this account: enable it, or choose another.")
        return
    found.ec2 = api.client(found.region)
    for check in CHECKS:
        try:
            found.problems += list(check(found))
        except api.ERRORS as error:
            if api.code(error) not in api.REFUSED:  # else it is among the missing below
                found.problems.append(f"{where}: {api.said(error)}")
    if missing := permissions.missing(found.ec2, found.facts.get("image", ""), found.type):
        actions = ", ".join(f"ec2:{action}" for action in missing)
        found.problems.append(f"{where}: {who} may not: {actions}. docs/aws.md has the policy that it needs.")


def _own(found: Found) -> Iterator[str]:
    """The lab's key pair is ours, and the host that is there is the one that is wanted."""
    chosen = [{"Name": "key-name", "Values": [tags.name(found.lab)]}]
    for pair in found.ec2.describe_key_pairs(Filters=chosen, IncludePublicKey=True)["KeyPairs"]:
        if pair.get("PublicKey", "").split()[:2] != found.public_key.split():
            yield (
                f"the lab '{found.lab}' in {found.region} was made from another machine or checkout: its key "
                f"pair {pair['KeyName']} has another public key. Give this lab another lab_name, or tear that one down "
                "there, or here if that place is gone (playbooks/teardown.yml)."
            )
    own = tags.name(found.lab, found.host)
    living = [each for each in INSTANCES.find(found.ec2, found.lab) if tags.read(each)["Name"] == own]
    found.facts["instance"] = living[0]["InstanceId"] if living else ""
    for each in living:
        kind = each["InstanceType"] + " (spot)" * (each.get("InstanceLifecycle") == "spot")
        wanted = found.type + " (spot)" * found.settings["aws_spot"]
        there = f"{found.host} ({each['InstanceId']}) in {found.region}"
        if each["State"]["Name"] not in ("pending", "running"):
            yield f"{there} is {each['State']['Name']}: run playbooks/teardown.yml first."
        elif kind != wanted:
            yield f"{there} is a {kind} already, and {wanted} is wanted: run playbooks/teardown.yml first."


def _type(found: Found) -> Iterator[str]:
    """The instance type exists and is offered in a zone."""
    where = f"aws_instance_type of {found.host}: {found.type}"
    try:
        described = found.ec2.describe_instance_types(InstanceTypes=[found.type])["InstanceTypes"][0]
    except api.ERRORS as error:
        if api.code(error) != "InvalidInstanceType":
            raise
        yield f"{where} does not exist in {found.region}. Choose another."
        return
    found.facts["vcpus"] = described["VCpuInfo"]["DefaultVCpus"]
    found.facts["architectures"] = described["ProcessorInfo"]["SupportedArchitectures"]
    offers = found.ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": [found.type]}]
    )["InstanceTypeOfferings"]
    # a zone of the region itself, not one of a city nearby, whose name is longer
    zones = sorted(each["Location"] for each in offers if len(each["Location"]) == len(found.region) + 1)
    wanted = found.settings["aws_zone"]
    if not zones:
        yield f"{where} is not offered in {found.region}. Choose another type or region."
    elif wanted and wanted not in zones:
        yield f"{where} is not offered in {wanted}, the aws_zone of {found.host}. It is in {', '.join(zones)}."
    else:
        found.facts["zone"] = wanted or zones[0]


def _image(found: Found) -> Iterator[str]:
    """There is an image; the newest counts."""
    owner, name, wanted = (found.settings[f"aws_image_{part}"] for part in ("owner", "name", "architecture"))
    chosen = {"name": name, "state": "available", "root-device-type": "ebs", "virtualization-type": "hvm"}
    listed = found.ec2.describe_images(
        Owners=[owner], Filters=[{"Name": key, "Values": [value]} for key, value in chosen.items()]
    )["Images"]
    fitting = [each for each in listed if each["Architecture"] == wanted]
    if not fitting:
        others = ", ".join(sorted({each["Architecture"] for each in listed}))
        yield (
            f"aws_image_name of {found.host}: {owner} has no image '{name}' for {wanted} in {found.region}"
            + (f", only for {others}. Set aws_image_architecture." if others else ". aws_image_owner says whose it is.")
        )
        return
    newest = max(fitting, key=lambda each: str(each["CreationDate"]))
    yield from _runs(found, newest)
    found.facts |= {
        "image": newest["ImageId"],
        "image_name": newest["Name"],
        "image_device": newest["RootDeviceName"],
    }


def _runs(found: Found, image: dict[str, Any]) -> Iterator[str]:
    """The type runs the image, and it fits on the disk."""
    runs = found.facts.get("architectures", [image["Architecture"]])
    if image["Architecture"] not in runs:
        yield (
            f"aws_image_architecture of {found.host}: {found.type} does not run {image['Architecture']}, it runs "
            f"{', '.join(runs)}. Set that, and aws_image_name."
        )
    disks = [each for each in image["BlockDeviceMappings"] if each["DeviceName"] == image["RootDeviceName"]]
    needed = max((each.get("Ebs", {}).get("VolumeSize", 0) for each in disks), default=0)
    size = found.settings["aws_volume_gb"]
    if needed > size:
        yield f"aws_volume_gb of {found.host} is {size}, and the image {image['Name']} needs {needed}."


def _quota(found: Found) -> Iterator[str]:
    """The account may run it."""
    if found.facts.get("instance") or "vcpus" not in found.facts:
        return
    quota = api.client(found.region, "service-quotas")
    wrong, unknown = quotas.problem(quota, found.ec2, found.type, found.facts["vcpus"], found.settings["aws_spot"])
    if wrong:
        yield f"{found.region}: {wrong}"
    if unknown:
        found.unchecked.append(f"{found.region}: {unknown}")


CHECKS: list[Callable[[Found], Iterator[str]]] = [_own, _type, _image, _quota]


def _elsewhere(lab: str, regions: list[str], home: Path) -> Iterator[str]:
    """The lab has no hosts in a region that the inventory does not name any more."""
    remembered = memory.read(home)
    for region in remembered.regions if remembered else []:
        if region not in regions and INSTANCES.find(api.client(region), lab):
            yield f"the lab '{lab}' has hosts in {region}, no aws_region any more: run playbooks/teardown.yml first."
