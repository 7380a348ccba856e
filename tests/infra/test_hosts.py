"""Both hosts as install leaves them, before and between measurements."""

from __future__ import annotations

import pytest
from testinfra.host import Host

from tunnel_lab import manifests

ADDRESS = {"server": "10.99.0.1", "client": "10.99.0.2"}


def listening(host: Host) -> set[str]:
    """Return every TCP and UDP address that something listens on."""
    return {line.split()[4] for line in host.check_output("ss -Hltun").splitlines()}


def name(host: Host) -> str:
    """Return which host this is."""
    return str(host.check_output("hostname"))


def test_nothing_listens_and_nothing_runs_when_nothing_is_measured(host: Host) -> None:
    assert listening(host) == set()
    assert host.check_output("systemctl list-units --state=active --plain --no-legend 'tunnellab-*'") == ""
    assert host.check_output("systemctl --failed --plain --no-legend") == ""


def test_link_is_the_only_way_out(host: Host) -> None:
    links = host.check_output("ls /sys/class/net").split()
    assert set(links) <= {
        "lo",
        "link0",
        "sit0",
        "ip6tnl0",
        "tunl0",
        "gre0",
        "gretap0",
        "erspan0",
        "ip_vti0",
        "ip6_vti0",
    }
    assert f"{ADDRESS[name(host)]}/24" in host.check_output("ip -br address show dev link0")
    assert (
        host.check_output("ip route").strip()
        == f"10.99.0.0/24 dev link0 proto kernel scope link src {ADDRESS[name(host)]}"
    )
    assert "inet6" not in host.check_output("ip address show dev link0")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("net.ipv4.tcp_congestion_control", "cubic"),
        ("net.ipv4.tcp_no_metrics_save", 1),
        ("net.ipv4.tcp_wmem", "4096\t16384\t4194304"),
    ],
)
def test_kernel_settings_are_pinned(host: Host, key: str, value: str | int) -> None:
    assert host.sysctl(key) == value


@pytest.mark.parametrize(
    "path",
    [
        "/etc/tunnel-lab/openvpn/own.key",
        "/etc/tunnel-lab/ssh/key",
        "/etc/tunnel-lab/redis/password",
    ],
)
def test_secrets_are_for_root_only(host: Host, path: str) -> None:
    file = host.file(path)
    assert (file.mode, file.user) == (0o600, "root")


def test_packages_of_every_tunnel_and_workload_are_installed(host: Host) -> None:
    assert [p for p in manifests.load().packages if not host.package(p).is_installed] == []


def test_distribution_services_of_the_same_programs_are_off(host: Host) -> None:
    for service in ("ssh", "redis-server", "openvpn"):
        assert not host.service(service).is_running
