"""The lab's two hosts, and tunnels brought up on them for one test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import testinfra
from testinfra.host import Host

from tunnel_lab import manifests
from tunnel_lab.records import Host as Side


@pytest.fixture(scope="session")
def server() -> Host:
    """The host that holds the data."""
    return testinfra.get_host("ansible://server?force_ansible=True")


@pytest.fixture(scope="session")
def client() -> Host:
    """The host that pulls it."""
    return testinfra.get_host("ansible://client?force_ansible=True")


def unit(host: Host, name: str, state: str, **options: Any) -> None:
    """Start or stop a unit by the lab's own module; fail with the unit's last words."""
    result = host.ansible("lab_unit", json.dumps({"units": [name], "state": state, **options}), check=False)
    assert not result.get("failed"), result["msg"]


@pytest.fixture
def tunnel(server: Host, client: Host) -> Iterator[Callable[..., dict[str, str]]]:
    """Bring a tunnel's variant up on both hosts; returns {host: the log of its unit}. Taken down afterwards."""
    started: list[tuple[Host, str]] = []

    def up(name: str, variant: str, server_ready: str, client_ready: str, **environment: str) -> dict[str, str]:
        units = manifests.load().tunnels[name].units
        logs: dict[str, str] = {}
        sides: tuple[tuple[Host, Side, str], ...] = (
            (server, "server", server_ready),
            (client, "client", client_ready),
        )
        for host, side, ready in sides:
            unit_name = units[side].format(variant=variant)
            started.append((host, unit_name))
            unit(host, unit_name, "started", ready_log=ready, environment=environment)
            logs[side] = host.file(f"/run/tunnel-lab/{unit_name}.log").content_string
        logs["server"] = server.file(f"/run/tunnel-lab/{started[0][1]}.log").content_string
        return logs

    yield up
    for host, name in reversed(started):
        unit(host, name, "stopped")
