"""What a link shall be and between whom."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from tunnel_lab.manifests import Strict

Emulator = Literal["netem", "relay"]


class End(Strict):
    """One host's end of the link."""

    pid: int
    """A process in the host's network namespace whose end is the host's end."""
    address: str
    """With its prefix length, such as 10.99.0.1/24."""
    bridge: str | None = None
    """Where the host is a virtual machine: what joins the link to it. The address is then the guest's to set."""

    @field_validator("address")
    @classmethod
    def _is_interface_address(cls, value: str) -> str:
        return str(ipaddress.ip_interface(value))

    @property
    def netns(self) -> Path:
        """The network namespace as a file."""
        return Path(f"/proc/{self.pid}/ns/net")


class LinkSpec(Strict):
    """Everything that decides what the link is; equal specs are the same link."""

    name: str
    """The lab's name."""
    server: End
    client: End
    interface: str
    """Its name in both hosts, such as link0."""
    rtt_ms: float
    """Round trip; each direction gets half."""
    rate_mbit: float
    """Of each direction, 10^6 bit/s, Ethernet headers included."""
    queue_bytes: int
    """Drop-tail queue before the bottleneck of each direction."""
    loss_pct: float = 0
    rtt_tolerance_ms: float = 1
    """What the test of the link allows; the link itself does not know it."""
    mtu: int = 1500
    emulator: Literal["auto", "netem", "relay"] = "auto"
    seed: int = Field(default=1)
    """Of the relay's random loss; netem has none."""

    @property
    def ends(self) -> tuple[End, End]:
        """Server, client."""
        return self.server, self.client
