"""docs/aws.md says what the code does."""

from __future__ import annotations

import json
import re

import yaml

from playbooks import ROOT
from tunnel_lab.ec2 import permissions


def test_policy_in_the_documentation_is_what_is_asked() -> None:
    text = (ROOT / "docs" / "aws.md").read_text(encoding="utf-8")
    policy = json.loads(re.findall(r"```json\n(.*?)```", text, re.DOTALL)[0])
    listed = {action for statement in policy["Statement"] for action in statement["Action"]}
    assert listed == {f"ec2:{action}" for action in permissions.ACTIONS} | {"servicequotas:GetServiceQuota"}


def test_settings_in_the_documentation_are_those_of_the_manifest() -> None:
    text = (ROOT / "docs" / "aws.md").read_text(encoding="utf-8")
    manifest = yaml.safe_load((ROOT / "roles" / "provider_aws" / "provider.yml").read_text())["settings"]
    listed = dict(re.findall(r"^\| (aws_\w+) \| (\S*?) *\|", text, re.MULTILINE))
    assert listed == {name: str(value).lower() for name, value in manifest.items()}
