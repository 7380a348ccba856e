"""QEMU's command line for one machine, and whether this kernel's KVM can be used."""

from __future__ import annotations

import ipaddress
import subprocess
from pathlib import Path

from tunnel_lab.errors import LabError
from tunnel_lab.vm.spec import Accelerator, VmSpec

PROGRAM = "qemu-system-x86_64"
SSH_PORT = 2222
"""On the loopback interface of the machine's own namespace, which nothing else can reach."""
MANAGEMENT_MAC = "52:54:00:00:00:01"


def version() -> str:
    """Return QEMU's version, `7.2.22`; a LabError when it is not installed."""
    try:
        said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise LabError(f"{PROGRAM} does not run: {error}. Run ./setup.sh --vm, it installs it.") from None
    return said.split("version ", 1)[1].split()[0].rstrip(")")


def accelerator(wanted: str) -> Accelerator:
    """Return what the machine will run on. KVM is tried by running a CPU; /dev/kvm may be there and not work."""
    if wanted == "tcg":
        return "tcg"
    if _kvm_works():
        return "kvm"
    if wanted == "kvm":
        raise LabError("vm_accelerator: KVM does not work on this machine. Use tcg, or auto.")
    return "tcg"


def _kvm_works() -> bool:
    if not Path("/dev/kvm").exists():
        return False
    command = [PROGRAM, "-machine", "q35,accel=kvm", "-cpu", "host", "-display", "none", "-nodefaults", "-qmp", "stdio"]
    # the CPU runs the firmware meanwhile
    talk = '{"execute":"qmp_capabilities"}\n{"execute":"query-status"}\n{"execute":"quit"}\n'
    try:
        done = subprocess.run(command, input=talk, capture_output=True, text=True, check=False, timeout=20)
    except subprocess.SubprocessError:
        return False
    return done.returncode == 0 and '"running": true' in done.stdout


def argv(spec: VmSpec, runs_on: Accelerator, directory: Path) -> list[str]:
    """Return the command line; `directory` holds the machine's disk and credentials, and gets its sockets and log."""
    cpu = spec.cpu or ("host" if runs_on == "kvm" else "max")
    command = [PROGRAM, "-name", spec.host, "-machine", f"q35,accel={runs_on}", "-cpu", cpu, "-smp", str(spec.cpus)]
    command += [
        "-m",
        str(spec.memory_mb),
        "-kernel",
        str(spec.image / "vmlinuz"),
        "-initrd",
        str(spec.image / "initrd"),
    ]
    command += ["-append", "root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 mitigations=off"]
    command += ["-drive", f"file={directory / 'disk.qcow2'},if=virtio,format=qcow2,discard=unmap"]
    command += ["-netdev", f"user,id=management,restrict=on,hostfwd=tcp:127.0.0.1:{SSH_PORT}-:22"]
    command += ["-device", f"virtio-net-pci,netdev=management,mac={MANAGEMENT_MAC}"]
    command += ["-netdev", "tap,id=link,ifname=vm0,script=no,downscript=no"]
    command += ["-device", f"virtio-net-pci,netdev=link,mac={_mac(spec.link_address)}"]
    command += ["-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng"]
    for credential in sorted(directory.glob("credential.*")):
        command += ["-smbios", f"type=11,path={credential}"]
    command += ["-display", "none", "-nodefaults", "-serial", f"file:{directory / 'console.log'}"]
    command += ["-qmp", f"unix:{directory / 'qmp'},server=on,wait=off"]
    return [*command, "-pidfile", str(directory / "pid"), "-daemonize"]


def _mac(address: str) -> str:
    """Return a locally administered MAC address that no other end of the link has: 52:54 and the IPv4 address."""
    return ":".join(f"{byte:02x}" for byte in (0x52, 0x54, *ipaddress.ip_interface(address).packed))
