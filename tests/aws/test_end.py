"""How a lab on EC2 ends: half made, failed, interrupted. Each test makes one of its own."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest

from .cloud import Cloud
from .plays import HOME, YES, made, play, started

pytestmark = pytest.mark.usefixtures("no_lab")


def test_half_a_lab_is_removed(cloud: Cloud) -> None:
    cloud.reset()
    cloud.errors["AllocateAddress"] = ("AddressLimitExceeded", "The maximum number of addresses has been reached.")
    status, printed = play("playbooks/provision", *YES)
    assert status != 0
    assert "AddressLimitExceeded" in printed
    assert made()["us-east-1"]["instance"] == 1
    cloud.errors.clear()
    status, printed = play("playbooks/teardown")
    assert status == 0, printed
    assert made() == {"us-east-1": {}, "eu-west-1": {}}
    assert not HOME.exists()


def test_lab_that_fails_is_removed_at_its_end(cloud: Cloud) -> None:
    cloud.reset()
    status, printed = play("lab", *YES)
    assert status == 2, "the failure stays one when the removal succeeds"
    before, _, after = printed.partition("At the end: ")
    assert "FAILED: Hosts may be reached [localhost]: lab_wait_for_ssh is false" in before
    assert "us-east-1: removing 1 instance" in after
    assert "FAILED" not in after
    assert len(cloud.asked["RunInstances"]) == len(cloud.asked["TerminateInstances"]) == 2
    assert made() == {"us-east-1": {}, "eu-west-1": {}}
    assert not HOME.exists()


def test_interrupted_lab_is_removed_at_its_end(cloud: Cloud) -> None:
    cloud.reset()
    with started("lab", *YES) as process:
        deadline = time.monotonic() + 120
        while [counts.get("instance") for counts in made().values()] != [1, 1]:
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline, "no instances after two minutes"
            time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        printed, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "At the end: " in printed
    assert "nothing is installed" not in printed, "it was interrupted before its own end"
    # a worker of Ansible's may be interrupted anywhere and say so; nothing of the lab's own may
    assert not re.search(r'File "[^"]*/(tunnel_lab|plugins)/', printed)
    assert made() == {"us-east-1": {}, "eu-west-1": {}}
    assert not HOME.exists()
