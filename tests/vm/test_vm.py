"""The lab on virtual machines: tunnels in a kernel of its own, what a lost machine leaves, and that nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import playbooks
from playbooks import ROOT
from tunnel_lab import records

LAB = "vmtest"
INVENTORY = ("-i", "inventories/vm")
LAB_IS = {"name": LAB, "profile": "smoke"}
HOME = ROOT / ".lab" / LAB
IN_KERNEL = {
    "openvpn.dco_udp.redis_sync": ("negotiated.client.device", "DCO device"),
    "wireguard.kernel.redis_sync": ("negotiated.client.device", "wireguard"),
    "ipsec.kernel.redis_sync": ("negotiated.client.kernel_sas", "2"),
}
"""Cells that need a kernel which has it, and what proves that the kernel did it."""
CELLS = ["none.bare.iperf3", "ssh.modern.redis_sync", "openvpn.modern_udp.redis_sync", *IN_KERNEL]
MAKE_S, RUN_S = 900, 1800


def play(name: str, limit_s: int = MAKE_S, **choices: Any) -> subprocess.CompletedProcess[str]:
    """Run a playbook to its end."""
    return playbooks.run(*INVENTORY, name, timeout=limit_s, **LAB_IS, **choices)


def machine(host: str) -> int | None:
    """Return the pid of a host's QEMU, None when there is none."""
    try:
        pid = int((HOME / "vm" / host / "pid").read_text())
        return pid if b"qemu" in Path(f"/proc/{pid}/cmdline").read_bytes() else None
    except OSError:
        return None


def commands() -> list[Path]:
    """The command lines of all processes but the tests' own."""
    return [path for path in Path("/proc").glob("[0-9]*/cmdline") if path.parent.name != str(os.getpid())]


@pytest.fixture(scope="module", autouse=True)
def _nothing_before_and_after() -> Iterator[None]:
    try:
        play("playbooks/teardown.yml")
        yield
    finally:
        assert play("playbooks/teardown.yml").returncode == 0


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    """The rows of a whole run."""
    done = play("lab.yml", RUN_S, select=CELLS)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    path = (ROOT / "results" / "latest").resolve() / "runs.csv"
    return pd.read_csv(path, dtype={"negotiated.client.kernel_sas": str})


def test_every_cell_is_good_and_the_kernel_did_what_it_should(runs: pd.DataFrame) -> None:
    assert set(runs["status"]) == {"ok"}, list(runs["reason"].dropna())
    cells = runs["tunnel"] + "." + runs["variant"] + "." + runs["workload"]
    assert set(cells) == set(CELLS)
    for cell, (column, proof) in IN_KERNEL.items():
        assert set(runs[cells == cell][column]) == {proof}, cell
    assert set(runs["provider"]) == {"vm"}
    assert runs["server.kernel"].iloc[0] != os.uname().release, "a kernel of its own"


def test_emulated_cpu_is_marked_and_gets_no_verdict_on_speed(runs: pd.DataFrame) -> None:
    emulated = runs["server.accelerator"].iloc[0] == "tcg"
    assert set(runs["cpu_emulation"].dropna()) == ({"free-running"} if emulated else set())
    claims = pd.read_csv((ROOT / "results" / "latest").resolve() / "claims.csv")
    assert not emulated or set(claims["verdict"]) <= {"not comparable", "not measured"}


def test_second_time_changes_nothing(runs: pd.DataFrame) -> None:
    before = {host: machine(host) for host in ("server", "client")}
    again = play("playbooks/provision.yml")
    assert again.returncode == 0, again.stdout
    assert "changed" not in again.stdout.replace("changed=0", ""), again.stdout
    assert {host: machine(host) for host in before} == before


def test_no_secret_can_be_seen(runs: pd.DataFrame) -> None:
    pid = machine("server")
    words = Path(f"/proc/{pid}/cmdline").read_bytes()
    found = sorted((HOME / "vm" / "server").glob("credential.*"))
    assert [path.suffix for path in found] == [".authorized_keys", ".host_key", ".hostname", ".link_address"]
    for path in found:
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.read_bytes().rpartition(b"=")[2] not in words
    assert b"io.systemd.credential" not in words


def test_lost_machine_fails_its_repeat_and_the_next_lab_makes_it_anew(runs: pd.DataFrame) -> None:
    measure = playbooks.command(*INVENTORY, "playbooks/measure.yml", **LAB_IS, select=CELLS[:2], repeats=2)
    before = (ROOT / "results" / "latest").resolve()
    with subprocess.Popen(
        measure,
        cwd=ROOT,
        env=playbooks.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as measuring:
        try:
            end = time.monotonic() + MAKE_S
            run_dir = before
            while run_dir == before or not any((run_dir / "raw").iterdir()):
                assert time.monotonic() < end and measuring.poll() is None
                time.sleep(0.5)
                run_dir = (ROOT / "results" / "latest").resolve()
            pid = machine("server")
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            printed, _ = measuring.communicate(timeout=MAKE_S)
        finally:
            measuring.kill()
    assert measuring.returncode != 0, printed
    assert "Traceback" not in printed
    found = [records.Record.read(path) for path in (run_dir / "raw").iterdir()]
    assert "failed" in {record.status for record in found}
    assert all(record.reason for record in found if record.status != "ok")
    assert machine("server") is None
    again = play("playbooks/provision.yml")
    assert again.returncode == 0, again.stdout
    assert machine("server") not in (None, pid)


def test_teardown_leaves_nothing(runs: pd.DataFrame) -> None:
    pids = [machine(host) for host in ("server", "client")]
    done = play("playbooks/teardown.yml")
    assert done.returncode == 0, done.stdout
    assert not HOME.exists()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert list(Path("/var/tmp").glob("tunnel-lab-vm-*")) == []
    assert [path.name for path in Path("/var/cache/tunnel-lab").iterdir() if "." in path.name] == []
    assert not any(f"{ROOT}/.lab/{LAB}".encode() in path.read_bytes() for path in commands())
    again = play("playbooks/teardown.yml")
    assert (again.returncode, again.stdout) == (0, ""), again.stdout
