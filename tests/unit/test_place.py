"""What an inventory says of hosts: a provider's settings with their defaults, and what a wrong one is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tunnel_lab import manifests
from tunnel_lab.errors import LabError
from tunnel_lab.manifests import ROLES, Provider
from tunnel_lab.place import place

CLOUD = """
description: of the tests
on_this_machine: false
hosts_stay: false
costs: true
settings: {cloud_region: x1, cloud_disk_gb: 8, cloud_spot: false, cloud_owner: "1", cloud_kind: small}
choices: {cloud_kind: [small, big]}
"""
ENTRIES = ("prepare", "create", "ready", "destroy")


@pytest.fixture
def cloud(roles: Path) -> Provider:
    (roles / "provider_cloud").mkdir()
    (roles / "provider_cloud" / "provider.yml").write_text(CLOUD)
    return manifests.provider("cloud", roles)


def test_a_host_has_every_setting(cloud: Provider) -> None:
    given = {"cloud_region": "y2", "cloud_disk_gb": 9, "lab_name": "n", "cloudy": "other"}
    assert cloud.resolve("server", {}) == cloud.settings
    assert cloud.resolve("server", given) == {**cloud.settings, "cloud_region": "y2", "cloud_disk_gb": 9}


@pytest.mark.parametrize(
    ("name", "given", "taken"),
    [("cloud_disk_gb", "12", 12), ("cloud_spot", "yes", True), ("cloud_spot", "false", False), ("cloud_owner", 7, "7")],
)
def test_values_of_the_command_line_are_taken_as_meant(cloud: Provider, name: str, given: Any, taken: Any) -> None:
    assert cloud.resolve("server", {name: given})[name] == taken


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("cloud_regoin", "y2", "cloud_regoin: no such variable. Did you mean 'cloud_region'?"),
        ("cloud_disk_gb", "much", "cloud_disk_gb of client must be of type int, it is 'much'"),
        ("cloud_disk_gb", -1, "cloud_disk_gb of client must not be negative, it is -1"),
        ("cloud_spot", "perhaps", "cloud_spot of client must be of type bool, it is 'perhaps'"),
        ("cloud_region", ["y2"], "cloud_region of client must be of type str, it is ['y2']"),
        ("cloud_kind", "huge", "cloud_kind of client must be one of 'small', 'big', it is 'huge'"),
    ],
)
def test_wrong_settings_are_refused(cloud: Provider, name: str, given: Any, said: str) -> None:
    with pytest.raises(LabError) as error:
        cloud.resolve("client", {name: given})
    assert said in str(error.value)


def test_place_tells_playbooks_all() -> None:
    hostvars = {"server": {"ansible_host": "a"}, "client": {"ansible_host": "b"}}
    told = place("mine", "static", hostvars, ["server", "client"]).told()
    assert told["hosts"] == {"server": {}, "client": {}}
    assert told["home"].endswith("/.lab/mine")
    assert told["provider"]["hosts_stay"] is True


@pytest.mark.parametrize("role", sorted(path.name for path in ROLES.glob("provider_*")))
def test_every_provider_has_a_manifest_and_the_same_entry_points(role: str) -> None:
    name = role.removeprefix("provider_")
    known = manifests.provider(name)
    assert all(setting.startswith(f"{name}_") for setting in known.settings)
    assert known.choices.keys() <= known.settings.keys()
    specs = manifests.read_yaml(ROLES / role / "meta" / "argument_specs.yml")["argument_specs"]
    for entry in ENTRIES:
        assert (ROLES / role / "tasks" / f"{entry}.yml").is_file(), entry
        assert entry in specs
