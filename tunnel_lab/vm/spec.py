"""What one virtual machine shall be."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from tunnel_lab import emulation
from tunnel_lab.manifests import Strict

Accelerator = Literal["kvm", "tcg"]
SHIFTS = range(8)
"""Of QEMU's instruction counter: an instruction takes 2 to the power of this nanoseconds."""


class Cpu(Strict):
    """The variable `vm_cpu`: what programs find, and how fast it is."""

    model: str = ""
    """QEMU's name; empty: this machine's under KVM, qemu64 when instructions are counted, else all that TCG can do."""
    mips: float = 0
    """Million instructions in a second, exactly, whatever this machine is; 0: as fast as it goes."""
    aes: bool = True
    """Whether it has AES instructions."""

    @field_validator("mips")
    @classmethod
    def _is_a_shift(cls, value: float) -> float:
        possible = [1000 / 2**shift for shift in SHIFTS]
        if value and value not in possible:
            raise ValueError(f"must be 0 or one of {', '.join(f'{each:g}' for each in possible)}")
        return value

    @property
    def shift(self) -> int:
        """Of QEMU's instruction counter."""
        return next(shift for shift in SHIFTS if 1000 / 2**shift == self.mips)


class VmSpec(Strict):
    """Everything that decides what the machine is; equal specs are the same machine."""

    host: str
    """`server` or `client`."""
    image: Path
    """Directory with root.ext4, vmlinuz and initrd (roles/provider_vm/files/build_disk.sh)."""
    keys: Path
    """Directory with host_key, the machine's own, and management.pub, by which it is reached."""
    link_address: str
    """The guest's end of the link with its prefix length, such as 10.99.0.1/24."""
    cpus: int = Field(ge=1)
    memory_mb: int = Field(ge=256)
    accelerator: Literal["auto", "kvm", "tcg"] = "auto"
    cpu: Cpu = Cpu()

    @field_validator("link_address")
    @classmethod
    def _is_interface_address(cls, value: str) -> str:
        return str(ipaddress.ip_interface(value))

    @model_validator(mode="after")
    def _can_be_counted(self) -> VmSpec:
        if self.cpu.mips and self.accelerator == "kvm":
            raise ValueError("vm_cpu.mips counts instructions, which KVM cannot: set vm_accelerator to auto or tcg")
        if self.cpu.mips and self.cpus != 1:
            raise ValueError(f"vm_cpu.mips is of one CPU: set vm_cpus to 1, it is {self.cpus}")
        return self


class VmState(Strict):
    """A machine that was started: kept in `vm/<host>/vm.json` of the lab's directory."""

    spec: VmSpec
    accelerator: Accelerator
    qemu: str
    """Its version."""

    @property
    def environment(self) -> dict[str, Any]:
        """What a run's record says of the host, beside what the host says itself."""
        known = {"accelerator": self.accelerator, "qemu": self.qemu}
        if self.accelerator == "kvm":
            return known
        mips = self.spec.cpu.mips
        return known | {emulation.COLUMN: emulation.COUNTED.format(mips=mips) if mips else emulation.FREE_RUNNING}
