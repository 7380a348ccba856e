"""What planned cells need: packages, ports, and how much passes between the hosts."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from conftest import ROOT

from tunnel_lab import choices, manifests, needs, plan
from tunnel_lab.errors import LabError
from tunnel_lab.link import check

CATALOG = manifests.load()


def planned(**variables: Any) -> plan.Plan:
    chosen = choices.from_variables({"lab_name": "test", "lab_provider": "static", **variables})
    return plan.build(CATALOG, chosen, "192.0.2.1")


def test_packages_are_those_of_the_planned_cells_alone() -> None:
    assert needs.packages(planned(lab_select="ssh.modern.redis_sync"), CATALOG) == [
        *("iperf3", "openssh-client", "openssh-server", "redis-server")
    ]


def test_ports_are_those_of_tunnels_services_and_the_test_of_the_link() -> None:
    # the bare link's iperf3 is in every plan
    assert needs.ports(planned(lab_select="openvpn.modern_udp.iperf2"), CATALOG) == [
        *("1194/tcp", "1194/udp", "5001/tcp", "5201/tcp", f"{check.PORT}/tcp")
    ]
    assert "2022/tcp" in needs.ports(planned(lab_select="ssh.modern.iperf2"), CATALOG)


def test_transfer_is_counted_over_all_steps() -> None:
    made = planned(
        lab_select="ssh.modern.redis_sync",
        lab_repeats=3,
        lab_params={"redis_sync": {"dataset_bytes": 1000}, "iperf3": {"duration_s": 5, "omit_s": 1}},
    )
    # iperf3 over the bare link, both directions, opens and closes the run
    assert needs.transfer(made, CATALOG) == {"bytes": 3 * 1000, "seconds": 2 * 2 * (5 + 1) + check.SECONDS}


def test_every_tunnel_that_listens_says_where() -> None:
    """What a tunnel's unit serves on the server must be reachable; a tunnel without a server has no port."""
    for name, tunnel in CATALOG.tunnels.items():
        assert bool(tunnel.ports) == ("server" in tunnel.units), name


def test_every_workload_says_how_much_it_transfers() -> None:
    for name, workload in CATALOG.workloads.items():
        assert workload.transfer_bytes or workload.transfer_s, name


def test_length_of_the_links_test_is_what_its_role_does() -> None:
    text = (ROOT / "roles" / "link" / "vars" / "main.yml").read_text()
    assert "{'rtt_ms': 200}" in text
    assert "__link_seconds: 4" in text
    assert check.SECONDS == 200 * 25 / 1000 + 4


def test_port_that_is_none_is_refused(roles: Any) -> None:
    path = roles / "tunnel_pipe" / "tunnel.yml"
    path.write_text(path.read_text() + "ports: [tcp/1194]\n")
    with pytest.raises(LabError, match="ports"):
        manifests.load(roles)


def with_offload(**variables: Any) -> plan.Plan:
    return planned(lab_select=["wireguard.kernel.iperf3", "wireguard.userspace.iperf3"], **variables)


def test_probes_are_those_that_the_planned_variants_need() -> None:
    assert set(needs.probes(with_offload(), CATALOG)) == {"WireGuard in the kernel", "wireguard-go with a tun device"}
    assert set(needs.probes(planned(lab_select="wireguard.userspace.iperf3"), CATALOG)) == {
        "wireguard-go with a tun device"
    }
    assert needs.probes(planned(lab_select="ssh.modern.iperf3"), CATALOG) == {}


def test_override_decides_what_is_needed() -> None:
    """An override changes the implementation, so also what a cell needs."""
    made = with_offload(lab_override={"wireguard": {"implementation": "wireguard-go"}})
    assert {cell.id: cell.needs for cell in made.cells.values() if cell.tunnel == "wireguard"} == {
        "wireguard.kernel.iperf3": ["wireguard-go with a tun device"],
        "wireguard.userspace.iperf3": ["wireguard-go with a tun device"],
    }


def test_cell_whose_need_a_host_lacks_is_not_possible() -> None:
    cells = with_offload().cells
    lacks = {"client": {"lacks": {"WireGuard in the kernel": "Unknown device type."}}, "server": {"lacks": {}}}
    assert needs.lacking(cells["wireguard.kernel.iperf3"], lacks) == (
        "not possible here: no WireGuard in the kernel (on the client: Unknown device type.)"
    )
    assert needs.lacking(cells["wireguard.userspace.iperf3"], lacks) is None
    assert needs.lacking(cells["wireguard.kernel.iperf3"], {"server": {}, "client": {}}) is None


def test_plan_shows_what_is_needed() -> None:
    assert "wireguard.kernel.iperf3\n    needs: WireGuard in the kernel\n" in plan.describe(with_offload(), CATALOG)


def test_what_tunnels_make_on_the_hosts_is_known_before() -> None:
    made = planned(lab_select=["openvpn.modern_udp.iperf3", "wireguard.userspace.iperf3", "ssh.modern.iperf3"])
    assert needs.interfaces(made, CATALOG) == ["tlwg0", "tun0"]
    assert needs.networks(made, CATALOG) == ["10.8.0.0/24", "10.9.0.0/24"]
    for name, tunnel in CATALOG.tunnels.items():
        inside = [ipaddress.ip_network(network) for network in tunnel.networks]
        if name != "none" and not tunnel.target.address.startswith("127."):
            assert any(ipaddress.ip_address(tunnel.target.address) in network for network in inside), name
