"""Where a lab is: who makes its hosts, with which settings, and where it keeps what is its own."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunnel_lab.manifests import ROOT, Provider, Settings, provider

MACHINE_LOCK = Path("/run/lock/tunnel-lab.lock")


@dataclass(frozen=True)
class Place:
    """What an inventory says of the hosts, checked."""

    lab: str
    provider: Provider
    hosts: dict[str, Settings]
    """{host: every setting of the provider}"""

    @property
    def home(self) -> Path:
        """Return the lab's private directory: keys, passwords, what it has to remember."""
        return ROOT / ".lab" / self.lab

    @property
    def lock(self) -> Path:
        """Return what a run holds: this machine, or where others' hosts are measured the lab alone."""
        return MACHINE_LOCK if self.provider.on_this_machine else ROOT / ".lab" / f"{self.lab}.lock"

    def told(self) -> dict[str, Any]:
        """Return all of it as plain data, for playbooks."""
        return {
            "provider": self.provider.model_dump(mode="json"),
            "hosts": {host: dict(settings) for host, settings in self.hosts.items()},
            "home": str(self.home),
            "holder": f"{getpass.getuser()}@{socket.gethostname()}:{ROOT}",
        }


def place(lab: str, provider_name: str, hostvars: Mapping[str, Mapping[str, Any]], hosts: list[str]) -> Place:
    """Check what the inventory says of `hosts`; a LabError names the variable that is wrong."""
    made_by = provider(provider_name)
    given = {
        host: {key: hostvars[host][key] for key in hostvars[host] if key.startswith(f"{made_by.name}_")}
        for host in hosts
    }
    return Place(lab, made_by, {host: made_by.resolve(host, variables) for host, variables in given.items()})
