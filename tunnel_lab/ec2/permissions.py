"""What the lab does at EC2, and whether these credentials may: each action is tried as a dry run, which does nothing.

The policy in docs/aws.md is this table.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore import xform_name

from tunnel_lab.ec2 import api

_NONE = "00000000000000000"
"""The end of an id that nobody has."""
_RULE = [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "192.0.2.1/32"}]}]

CREATE: dict[str, dict[str, Any] | None] = {
    "AllocateAddress": {"Domain": "vpc"},
    "AssociateAddress": {"AllocationId": f"eipalloc-{_NONE}", "InstanceId": f"i-{_NONE}"},
    "AssociateRouteTable": {"RouteTableId": f"rtb-{_NONE}", "SubnetId": f"subnet-{_NONE}"},
    "AttachInternetGateway": {"InternetGatewayId": f"igw-{_NONE}", "VpcId": f"vpc-{_NONE}"},
    "AuthorizeSecurityGroupIngress": {"GroupId": f"sg-{_NONE}", "IpPermissions": _RULE},
    "CreateInternetGateway": {},
    "CreateRoute": {
        "RouteTableId": f"rtb-{_NONE}",
        "GatewayId": f"igw-{_NONE}",
        "DestinationCidrBlock": "0.0.0.0/0",
    },
    "CreateRouteTable": {"VpcId": f"vpc-{_NONE}"},
    "CreateSecurityGroup": {"GroupName": "tunnel-lab", "Description": "tunnel-lab", "VpcId": f"vpc-{_NONE}"},
    "CreateSubnet": {"VpcId": f"vpc-{_NONE}", "CidrBlock": "10.0.0.0/24"},
    "CreateTags": {"Resources": [f"vpc-{_NONE}"], "Tags": [{"Key": "lab", "Value": "lab"}]},
    "CreateVpc": {"CidrBlock": "10.0.0.0/24"},
    "ImportKeyPair": {"KeyName": "tunnel-lab", "PublicKeyMaterial": b"ssh-ed25519 AAAA"},
    "ModifyVpcAttribute": None,
    "RunInstances": {
        "ImageId": f"ami-{_NONE}",
        "MinCount": 1,
        "MaxCount": 1,
        "MetadataOptions": {"HttpTokens": "required"},  # some organizations allow no other
    },
}
"""{action: arguments of its dry run, or None where EC2 has no dry run of it}"""
DESCRIBE: dict[str, dict[str, Any] | None] = {
    "DescribeAddresses": {},
    "DescribeImages": {"Owners": ["self"]},
    "DescribeInstanceTypeOfferings": {},
    "DescribeInstanceTypes": {},
    "DescribeInstances": {},
    "DescribeInternetGateways": {},
    "DescribeKeyPairs": {},
    "DescribeLaunchTemplates": {},
    "DescribeNetworkInterfaces": {},
    "DescribeRegions": {},
    "DescribeRouteTables": {},
    "DescribeSecurityGroups": {},
    "DescribeSpotInstanceRequests": {},
    "DescribeSubnets": {},
    "DescribeTags": {},
    "DescribeVolumes": {},
    "DescribeVpcAttribute": {"VpcId": f"vpc-{_NONE}", "Attribute": "enableDnsSupport"},
    "DescribeVpcs": {},
}
DELETE: dict[str, dict[str, Any] | None] = {
    "CancelSpotInstanceRequests": {"SpotInstanceRequestIds": ["sir-00000000"]},
    "DeleteInternetGateway": {"InternetGatewayId": f"igw-{_NONE}"},
    "DeleteKeyPair": {"KeyName": "tunnel-lab-of-nobody"},
    "DeleteLaunchTemplate": {"LaunchTemplateId": f"lt-{_NONE}"},
    "DeleteNetworkInterface": {"NetworkInterfaceId": f"eni-{_NONE}"},
    "DeleteRouteTable": {"RouteTableId": f"rtb-{_NONE}"},
    "DeleteSecurityGroup": {"GroupId": f"sg-{_NONE}"},
    "DeleteSubnet": {"SubnetId": f"subnet-{_NONE}"},
    "DeleteVolume": {"VolumeId": f"vol-{_NONE}"},
    "DeleteVpc": {"VpcId": f"vpc-{_NONE}"},
    "DetachInternetGateway": {"InternetGatewayId": f"igw-{_NONE}", "VpcId": f"vpc-{_NONE}"},
    "DisassociateAddress": {"AssociationId": f"eipassoc-{_NONE}"},
    "DisassociateRouteTable": {"AssociationId": f"rtbassoc-{_NONE}"},
    "ReleaseAddress": {"AllocationId": f"eipalloc-{_NONE}"},
    "RevokeSecurityGroupEgress": {"GroupId": f"sg-{_NONE}", "IpPermissions": _RULE},
    "RevokeSecurityGroupIngress": {"GroupId": f"sg-{_NONE}", "IpPermissions": _RULE},
    "TerminateInstances": {"InstanceIds": [f"i-{_NONE}"]},
}
ACTIONS = {**CREATE, **DESCRIBE, **DELETE}


def missing(client: Any, image: str, instance_type: str) -> list[str]:
    """Return the actions that AWS refuses to these credentials, sorted; an empty `image` is one that was not found.

    EC2 answers a dry run with DryRunOperation when it is allowed. Other answers, such as that the id of the dry run
    does not exist, say nothing, and the action counts as allowed.
    """
    start = {"InstanceType": instance_type, **({"ImageId": image} if image else {})}
    tries = {action: arguments for action, arguments in ACTIONS.items() if arguments is not None}
    tries["RunInstances"] = {**tries["RunInstances"], **start}
    with ThreadPoolExecutor(max_workers=8) as pool:
        tried = {action: pool.submit(_refused, client, action, tries[action]) for action in sorted(tries)}
    return [action for action, result in tried.items() if result.result()]


def _refused(client: Any, action: str, arguments: dict[str, Any]) -> bool:
    try:
        getattr(client, xform_name(action))(DryRun=True, **arguments)
    except api.ERRORS as error:
        return api.code(error) in api.REFUSED
    return False
