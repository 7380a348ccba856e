"""The whole lab on hosts that it did not make: it says what they lack, installs it, measures, and leaves no trace."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from playbooks import ROOT

from .conftest import LINK, OWNER, make, on, play

INVENTORY = ("-i", "tests/static/inventory")
HOSTS = ("server", "client")
SETTINGS = ("tcp_congestion_control", "tcp_rmem", "tcp_wmem", "tcp_no_metrics_save", "tcp_mtu_probing")
BEFORE = {"tcp_rmem": "4096\t100000\t2000000", "tcp_no_metrics_save": "0"}
"""What the owner has set, unlike the lab's own."""


def state(host: str) -> dict[str, str]:
    """Return everything of a host that the lab may touch."""
    return {
        **{name: on(host, "cat", f"/proc/sys/net/ipv4/{name}") for name in SETTINGS},
        "files": on(host, "find", "/etc", "/var/lib", "/run/tunnel-lab", "-name", "*tunnel*lab*"),
        "units": on(host, "systemctl", "list-units", "--all", "--plain", "--no-legend", "tunnellab*"),
        "links": on(host, "ip", "-o", "link"),
        "routes": on(host, "ip", "route"),
        "packages": on(host, "dpkg-query", "-W"),
    }


def static(*arguments: str, **choices: Any) -> subprocess.CompletedProcess[str]:
    return play(*INVENTORY, *arguments, **choices)


@pytest.fixture(scope="module")
def before() -> dict[str, dict[str, str]]:
    """The hosts as their owner has them."""
    for host in HOSTS:
        on(host, "systemctl", "stop", "tunnellab.slice")  # from the owner's test of the link
        on(host, "mkdir", "-p", "/run/tunnel-lab")
        for name, value in BEFORE.items():
            on(host, "sh", "-c", f"printf '{value}' > /proc/sys/net/ipv4/{name}")
    return {host: state(host) for host in HOSTS}


@pytest.fixture(scope="module")
def measured(before: dict[str, dict[str, str]]) -> Iterator[tuple[str, pd.DataFrame]]:
    """What lab.yml printed, and its table of runs."""
    done = static("lab.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    run_dir = (ROOT / "results" / "latest").resolve()
    yield done.stdout, pd.read_csv(run_dir / "runs.csv")


def test_port_in_use_is_told_before_anything_is_changed(before: dict[str, dict[str, str]]) -> None:
    on("server", "systemd-run", "--unit=own-redis", "redis-server", "--port", "6379")
    try:
        refused = static("playbooks/provision.yml")
    finally:
        on("server", "systemctl", "stop", "own-redis")
    assert refused.returncode != 0
    assert "port 6379/tcp is in use by redis-server (pid " in refused.stdout
    assert {host: state(host) for host in HOSTS} == before


def test_what_a_tunnel_would_take_from_the_host_is_told(before: dict[str, dict[str, str]]) -> None:
    on("client", "ip", "tuntap", "add", "tun0", "mode", "tun")
    on("client", "ip", "address", "add", "10.8.0.77/32", "dev", "lo")
    try:
        refused = static("playbooks/provision.yml")
    finally:
        on("client", "ip", "link", "delete", "tun0")
        on("client", "ip", "address", "delete", "10.8.0.77/32", "dev", "lo")
    assert refused.returncode != 0
    assert "the interface tun0 is there already, and a tunnel of the lab has that name" in refused.stdout
    assert "10.8.0.77 is in use here, and a tunnel of the lab uses 10.8.0.0/24 inside" in refused.stdout
    assert {host: state(host) for host in HOSTS} == before


def test_example_inventory_is_refused() -> None:
    refused = play("-i", "inventories/static", "playbooks/provision.yml")
    assert refused.returncode != 0
    assert "The inventory still names the example 'server.example.net'" in refused.stdout


def test_rows_carry_the_provider_and_the_real_network(measured: tuple[str, pd.DataFrame]) -> None:
    printed, runs = measured
    assert set(runs["status"]) == {"ok"}, runs[["variant", "workload", "reason"]]
    assert set(runs["workload"]) == {"iperf3", "redis_sync"}
    for column, value in {"provider": "static", "link_emulator": "none", "region_pair": "east west"}.items():
        assert set(runs[column]) == {value}
    # 95.6 % of the owner's rate are the most that TCP can carry
    assert runs["link_rtt_ms"].between(LINK["rtt_ms"] - 1, LINK["rtt_ms"] + 2).all()
    assert runs["link_goodput_bit_s"].between(0.85e6 * LINK["rate_mbit"], 0.96e6 * LINK["rate_mbit"]).all()
    assert runs["rtt_ms"].isna().all()
    assert runs["server.os"].str.contains("12 .bookworm").all()
    assert "link (none): round trip 80." in printed


def test_second_install_changes_nothing(measured: tuple[str, pd.DataFrame]) -> None:
    again = static("playbooks/install.yml")
    assert again.returncode == 0, again.stdout
    assert "changed" not in again.stdout.replace("changed=0", ""), again.stdout


def test_host_of_one_lab_is_refused_to_another(measured: tuple[str, pd.DataFrame]) -> None:
    other = static("playbooks/install.yml", name="other")
    assert other.returncode != 0
    assert "this host is held by the lab 'owned' of " in other.stdout
    assert static("playbooks/teardown.yml", name="other").returncode == 0
    assert "owned" in on("server", "cat", "/etc/tunnel-lab/host.json"), "another lab's teardown leaves it alone"


def test_teardown_leaves_the_hosts_as_they_were(
    before: dict[str, dict[str, str]], measured: tuple[str, pd.DataFrame]
) -> None:
    on("server", "systemd-run", "--slice=tunnellab.slice", "--unit=tunnellab-left", "sleep", "1000")
    assert state("server") != before["server"]
    done = static("playbooks/teardown.yml")
    assert done.returncode == 0, done.stdout
    for host in HOSTS:
        on(host, "mkdir", "-p", "/run/tunnel-lab")
        assert state(host) == before[host]
    on("client", "rmdir", "/run/tunnel-lab")
    on("server", "rmdir", "/run/tunnel-lab")
    again = static("playbooks/teardown.yml")
    assert (again.returncode, again.stdout) == (0, ""), again.stdout
    assert not (ROOT / ".lab" / "owned").exists()


REPACK = r"""
set -e
mkdir -p /srv/repo /srv/root/DEBIAN
cp /var/lib/dpkg/info/redis-server.*inst /var/lib/dpkg/info/redis-server.*rm /srv/root/DEBIAN/
dpkg-query -W -f 'Package: ${Package}\nVersion: ${Version}\nArchitecture: ${Architecture}\nMaintainer: ${Maintainer}\nDepends: ${Depends}\nDescription: Redis\n' redis-server > /srv/root/DEBIAN/control
dpkg -L redis-server | while read -r path; do [ -d "$path" ] || [ ! -e "$path" ] || cp --parents -a "$path" /srv/root; done
dpkg-deb --build --root-owner-group /srv/root /srv/repo/redis-server.deb
{ cat /srv/root/DEBIAN/control; echo Filename: ./redis-server.deb; stat -c 'Size: %s' /srv/repo/redis-server.deb
  sha256sum /srv/repo/redis-server.deb | sed 's/^/SHA256: /; s/ .srv.*//'; } > /srv/repo/Packages
echo 'deb [trusted=yes] file:/srv/repo ./' > /etc/apt/sources.list
systemctl unmask redis-server.service
dpkg --purge redis-server
"""  # fmt: skip  # noqa: E501
"""Redis's package made again out of its installed files, in a repository of its own; then it is removed."""


def test_missing_package_is_installed_and_does_not_run_by_itself() -> None:
    """Debian starts and enables a service as soon as its package is installed."""
    on("client", "sh", "-c", REPACK)
    done = static("playbooks/install.yml", select=["ssh.modern.redis_sync"])
    assert done.returncode == 0, done.stdout
    assert "Install | With apt, starting nothing" in done.stdout
    assert on("client", "dpkg-query", "-W", "-f", "${Status}", "redis-server") == "install ok installed"
    shown = on("client", "systemctl", "show", "-p", "ActiveState,UnitFileState", "redis-server.service")
    assert shown.split() == ["ActiveState=inactive", "UnitFileState=disabled"]
    again = static("playbooks/install.yml", select=["ssh.modern.redis_sync"])
    assert (again.returncode, again.stdout) == (0, ""), again.stdout


def test_host_whose_processes_were_killed_is_made_anew() -> None:
    """Podman is not told when a host and its monitor are killed; it goes on to say "Up"."""
    server = f"tunnellab-{OWNER}-server"
    inspect = ["podman", "inspect", "--format", "{{.State.Status}} {{.State.ConmonPid}} {{.State.Pid}}", server]
    state, *pids = subprocess.run(inspect, capture_output=True, text=True, check=True).stdout.split()
    for pid in pids:
        os.kill(int(pid), signal.SIGKILL)
    assert state == subprocess.run(inspect, capture_output=True, text=True, check=True).stdout.split()[0] == "running"
    make("provision")
    assert on("server", "hostname") == "server\n"
