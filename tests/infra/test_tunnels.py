"""Tunnels on the live hosts: what listens where, what was negotiated, and that it carries traffic."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from testinfra.host import Host

from tunnel_lab import gate, manifests

Up = Callable[..., dict[str, str]]
OPENVPN_UP = "Initialization Sequence Completed"


def listening(host: Host) -> set[str]:
    """Return every TCP and UDP address that something listens on."""
    return {line.split()[4] for line in host.check_output("ss -Hltun").splitlines()}


@pytest.mark.parametrize(
    ("variant", "socket", "cipher"),
    [
        ("modern_udp", "udp", "AES-256-GCM"),
        ("modern_tcp", "tcp", "AES-256-GCM"),
        ("published_tcp", "tcp", "BF-CBC"),
        ("published_udp_aes256", "udp", "AES-256-CBC"),
    ],
)
def test_openvpn(server: Host, client: Host, tunnel: Up, variant: str, socket: str, cipher: str) -> None:
    logs = tunnel("openvpn", variant, OPENVPN_UP, OPENVPN_UP)
    assert listening(server) == {"10.99.0.1:1194"}
    assert server.check_output(f"ss -Hln --{socket} | wc -l") == "1"
    client_sockets = client.check_output("ss -Hltun").splitlines()
    assert not [line for line in client_sockets if line.startswith("tcp")]
    manifest = manifests.load().tunnels["openvpn"]
    negotiated, problems = gate.check(manifest, manifest.resolve(variant), logs)
    assert problems == []
    assert negotiated["client.cipher"] == cipher
    assert client.run("ping -c 1 -w 5 10.8.0.1").rc == 0


def test_small_buffers_are_in_force_on_the_sockets_that_carry_the_tunnel(
    server: Host, client: Host, tunnel: Up
) -> None:
    tunnel("openvpn", "published_tcp", OPENVPN_UP, OPENVPN_UP)
    for host in (server, client):
        memory = host.check_output("ss -Htnm state established")
        # the kernel doubles what it was asked for
        assert re.findall(r"rb(\d+),.*?tb(\d+)", memory) == [("131072", "131072")], memory


@pytest.mark.parametrize(
    ("variant", "cipher", "compression"),
    [
        ("published_default", "aes128-ctr", "none"),
        ("published_comp", "aes128-ctr", "zlib@openssh.com"),
        ("modern", "chacha20-poly1305@openssh.com", "none"),
    ],
)
def test_ssh(server: Host, client: Host, tunnel: Up, variant: str, cipher: str, compression: str) -> None:
    forward = "127.0.0.1:20000:127.0.0.1:6379"
    logs = tunnel("ssh", variant, "Server listening on", "pledge: network", FORWARD=forward)
    assert listening(server) == {"10.99.0.1:2022"}
    assert listening(client) == {"127.0.0.1:20000"}
    manifest = manifests.load().tunnels["ssh"]
    negotiated, problems = gate.check(manifest, manifest.resolve(variant), logs)
    assert problems == []
    assert negotiated["client.cipher"] == cipher
    assert negotiated["client.compression"] == compression
