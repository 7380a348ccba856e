"""Start and stop virtual machines. `python -m tunnel_lab.vm` is the command line of this."""

from __future__ import annotations

import base64
import os
import shutil
import signal
from pathlib import Path

from tunnel_lab.errors import LabError
from tunnel_lab.processes import attempt, end, living, run
from tunnel_lab.vm import qemu
from tunnel_lab.vm.spec import VmSpec, VmState

NAMESPACE = """
ip link set lo up
ip link add br0 type bridge forward_delay 0 mcast_snooping 0
ip tuntap add vm0 mode tap
for each in br0 vm0; do [ ! -d /proc/sys/net/ipv6 ] || sysctl -qw net.ipv6.conf.$each.disable_ipv6=1; done
ip link set vm0 master br0 up
ip link set br0 up
exec "$@"
"""
"""What is run in the machine's new network namespace: its end of the link is vm0, to which br0 joins the link's."""
STOP_S = 10


def up(spec: VmSpec, home: Path) -> tuple[bool, VmState]:
    """Make the machine be as `spec` says; return (whether it was started, its state)."""
    directory = home / "vm" / spec.host
    old = read(directory)
    if old and old.spec == spec and pid(spec.host, home):
        return False, old
    down(spec.host, home)
    runs_on = qemu.accelerator("tcg" if spec.cpu.mips else spec.accelerator, spec.image / "vmlinuz")
    directory.mkdir(parents=True, mode=0o700)
    _disk(spec, directory)
    _credentials(spec, directory)
    started = attempt(["unshare", "--net", "sh", "-ec", NAMESPACE, "sh", *qemu.argv(spec, runs_on, directory)])
    if started.returncode != 0:
        raise LabError(f"the machine {spec.host} does not start: {' '.join(started.stderr.split())[-400:]}")
    state = VmState(spec=spec, accelerator=runs_on, qemu=qemu.version())
    (directory / "vm.json").write_text(state.model_dump_json(indent=1) + "\n")
    return True, state


def down(host: str, home: Path) -> bool:
    """End the machine and remove all it had; return whether there was one. Safe to repeat, and after a crash."""
    directory = home / "vm" / host
    if not directory.exists():
        return False
    # QEMU ends at once; nothing of the disk is kept
    if not end(*_process(directory), wait_s=STOP_S) and (left := pid(host, home)):
        os.kill(left, signal.SIGKILL)
    shutil.rmtree(directory)
    return True


def counted(home: Path) -> dict[str, Path]:
    """Return {host: its QMP socket} of the lab's machines that count instructions."""
    found = ((path, read(path)) for path in sorted((home / "vm").glob("*")))
    return {state.spec.host: path / "qmp" for path, state in found if state and state.spec.cpu.mips}


def read(directory: Path) -> VmState | None:
    """Return what vm.json says, None when there is none or it cannot be read: then the machine is made anew."""
    try:
        return VmState.model_validate_json((directory / "vm.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def pid(host: str, home: Path) -> int | None:
    """Return the pid of the machine's living QEMU."""
    return living(*_process(home / "vm" / host))


def _process(directory: Path) -> tuple[Path, str]:
    """Return the file with QEMU's pid, and the word of its command line that is no other machine's."""
    return directory / "pid", str(directory / "pid")


def _disk(spec: VmSpec, directory: Path) -> None:
    base = spec.image / "root.ext4"
    run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(base), "-F", "raw", str(directory / "disk.qcow2")])


def _credentials(spec: VmSpec, directory: Path) -> None:
    """Write what systemd in the guest hands to its tunnellab-vm.service; on the command line anybody could read it."""
    texts = {
        "hostname": spec.host,
        "link_address": spec.link_address,
        "host_key": (spec.keys / "host_key").read_text(),
        "authorized_keys": (spec.keys / "management.pub").read_text(),
    }
    for name, text in texts.items():
        path = directory / f"credential.{name}"
        path.touch(mode=0o600)
        encoded = base64.b64encode(text.encode()).decode()
        path.write_text(f"io.systemd.credential.binary:tunnellab.{name}={encoded}")
