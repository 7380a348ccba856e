"""What one virtual machine shall be."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from tunnel_lab import emulation
from tunnel_lab.manifests import Strict

Accelerator = Literal["kvm", "tcg"]


class VmSpec(Strict):
    """Everything that decides what the machine is; equal specs are the same machine."""

    host: str
    """`server` or `client`."""
    image: Path
    """Directory with root.ext4, vmlinuz and initrd (roles/provider_vm/files/build_disk.sh)."""
    link_address: str
    """The guest's end of the link with its prefix length, such as 10.99.0.1/24."""
    cpus: int = Field(ge=1)
    memory_mb: int = Field(ge=256)
    accelerator: Literal["auto", "kvm", "tcg"] = "auto"
    cpu: str = ""
    """QEMU's CPU model; empty: the host's under KVM, all that TCG can do under TCG."""

    @field_validator("link_address")
    @classmethod
    def _is_interface_address(cls, value: str) -> str:
        return str(ipaddress.ip_interface(value))


class VmState(Strict):
    """A machine that was started: kept in `vm/<host>/vm.json` of the lab's directory."""

    spec: VmSpec
    accelerator: Accelerator
    pid: int
    qemu: str
    """Its version."""

    @property
    def environment(self) -> dict[str, str]:
        """What a run's record says of the host, beside what the host says itself."""
        known = {"accelerator": self.accelerator, "qemu": self.qemu}
        return known | ({emulation.COLUMN: emulation.FREE_RUNNING} if self.accelerator == "tcg" else {})
