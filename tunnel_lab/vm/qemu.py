"""QEMU's command line for one machine, and whether this kernel's KVM can be used."""

from __future__ import annotations

import ipaddress
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO

from tunnel_lab.errors import LabError
from tunnel_lab.vm.spec import Accelerator, Cpu, VmSpec

PROGRAM = "qemu-system-x86_64"
MANAGEMENT_PORT = 2222
"""On the loopback interface of the machine's own namespace, which nothing else can reach."""
KVM_BOOTS_S = 20
"""How long a kernel may take that misses its root; some 2 s is usual."""
AES_TOO = ",+ssse3,+sse4.1,+pclmulqdq,+aes"
"""What qemu64 lacks for OpenSSL to use AES instructions."""
MANAGEMENT_MAC = "52:54:00:00:00:01"


def version() -> str:
    """Return QEMU's version, `7.2.22`; a LabError when it is not installed."""
    try:
        said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise LabError(f"{PROGRAM} does not run: {error}. Run ./setup.sh --vm, it installs it.") from None
    return said.split("version ", 1)[1].split()[0].rstrip(")")


def accelerator(wanted: str, kernel: Path) -> Accelerator:
    """Return what the machine will run on. KVM is tried by booting `kernel`; /dev/kvm may be there and not work."""
    if wanted == "tcg":
        return "tcg"
    if _kvm_boots(kernel):
        return "kvm"
    if wanted == "kvm":
        raise LabError("vm_accelerator: KVM does not work on this machine. Use tcg, or auto.")
    return "tcg"


def _kvm_boots(kernel: Path) -> bool:
    """Return whether a kernel under KVM gets as far as to miss its root; on some machines it stops much earlier."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    command = [PROGRAM, "-machine", "q35,accel=kvm", "-cpu", "host", "-nodefaults", "-display", "none", "-no-reboot"]
    command += ["-serial", "stdio", "-kernel", str(kernel), "-append", "console=ttyS0 panic=-1"]
    with tempfile.TemporaryFile() as said:
        try:
            tried = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
        except OSError:
            return False
        with tried:
            end = time.monotonic() + KVM_BOOTS_S
            while tried.poll() is None and time.monotonic() < end and b"KVM internal error" not in _all(said):
                time.sleep(0.1)
            tried.kill()
        return b"Kernel panic" in _all(said)


def _all(file: IO[bytes]) -> bytes:
    return os.pread(file.fileno(), 1 << 20, 0)


def argv(spec: VmSpec, runs_on: Accelerator, directory: Path) -> list[str]:
    """Return the command line; `directory` holds the machine's disk and credentials, and gets its sockets and log."""
    command = [PROGRAM, "-name", spec.host, "-machine", "q35", "-smp", str(spec.cpus), "-cpu", _cpu(spec.cpu, runs_on)]
    if spec.cpu.mips:
        command += ["-accel", "tcg,thread=single", "-icount", f"shift={spec.cpu.shift},align=on"]
    else:
        command += ["-accel", runs_on]
    command += ["-m", str(spec.memory_mb), "-kernel", str(spec.image / "vmlinuz")]
    command += ["-initrd", str(spec.image / "initrd"), "-no-reboot"]
    command += ["-append", "root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 panic=-1"]
    command += ["-drive", f"file={directory / 'disk.qcow2'},if=virtio,format=qcow2,discard=unmap"]
    command += ["-netdev", f"user,id=management,restrict=on,hostfwd=tcp:127.0.0.1:{MANAGEMENT_PORT}-:22"]
    command += ["-device", f"virtio-net-pci,netdev=management,mac={MANAGEMENT_MAC}"]
    command += ["-netdev", "tap,id=link,ifname=vm0,script=no,downscript=no"]
    command += ["-device", f"virtio-net-pci,netdev=link,mac={_mac(spec.link_address)}"]
    command += ["-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng"]
    for credential in sorted(directory.glob("credential.*")):
        command += ["-smbios", f"type=11,path={credential}"]
    command += ["-display", "none", "-nodefaults", "-serial", f"file:{directory / 'console.log'}"]
    command += ["-qmp", f"unix:{directory / 'qmp'},server=on,wait=off"]
    return [*command, "-pidfile", str(directory / "pid"), "-daemonize"]


def _cpu(cpu: Cpu, runs_on: Accelerator) -> str:
    """Return the CPU's model and what it has more or less of than that."""
    if not cpu.model and cpu.mips:
        return f"qemu64{AES_TOO if cpu.aes else ''}"
    model = cpu.model or ("host" if runs_on == "kvm" else "max")
    return model if cpu.aes else f"{model},-aes"


def _mac(address: str) -> str:
    """Return a locally administered MAC address that no other end of the link has: 52:54 and the IPv4 address."""
    return ":".join(f"{byte:02x}" for byte in (0x52, 0x54, *ipaddress.ip_interface(address).packed))
