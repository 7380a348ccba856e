"""Whether the account may run that many more vCPUs in a region."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from tunnel_lab.ec2 import api

STANDARD = re.compile(r"([acdhimrtz]|im|is)\d")
"""How the names of the instance types begin that EC2's two quotas below count: not hpc, inf, mac, trn and the like."""
ON_DEMAND, SPOT = "L-1216C47A", "L-34B43A08"


def problem(quotas: Any, ec2: Any, instance_type: str, vcpus: int, spot: bool) -> tuple[str, str]:
    """Return (why the quota is too low, why nothing is known of it), of which at most one says something."""
    if not STANDARD.match(instance_type):
        return "", f"the quota of {instance_type}'s family is not among those that the lab knows"
    wanted = SPOT if spot else ON_DEMAND
    try:
        allowed = float(quotas.get_service_quota(ServiceCode="ec2", QuotaCode=wanted)["Quota"]["Value"])
        used = _running(ec2, spot)
    except api.ERRORS as error:
        return "", f"the quota {wanted} could not be read ({api.said(error)}): AWS will say when it is too low"
    if used + vcpus <= allowed:
        return "", ""
    kind = "spot" if spot else "on-demand"
    wrong = (
        f"the quota of vCPUs for {kind} standard instances ({wanted}) is {allowed:g}, {used} are in use, and "
        f"{instance_type} needs {vcpus}. Ask AWS for more (Service Quotas), or choose a smaller aws_instance_type."
    )
    return wrong, ""


def _running(ec2: Any, spot: bool) -> int:
    """Return the vCPUs of the running instances that the quota counts, as many as their types have by default."""
    state = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    counts: Counter[str] = Counter()
    for page in ec2.get_paginator("describe_instances").paginate(Filters=state):
        for reservation in page["Reservations"]:
            counts.update(
                each["InstanceType"]
                for each in reservation["Instances"]
                if STANDARD.match(each["InstanceType"]) and (each.get("InstanceLifecycle") == "spot") == spot
            )
    if not counts:
        return 0
    types = ec2.describe_instance_types(InstanceTypes=sorted(counts))["InstanceTypes"]
    return sum(counts[each["InstanceType"]] * int(each["VCpuInfo"]["DefaultVCpus"]) for each in types)
