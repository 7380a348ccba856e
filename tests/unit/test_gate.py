"""The gate before a measurement: what real logs of OpenVPN and OpenSSH prove, and what does not pass."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from builders import captured, swap

from tunnel_lab import gate, manifests
from tunnel_lab.errors import LabError
from tunnel_lab.manifests import Evidence, Tunnel
from tunnel_lab.plan import Plan

CATALOG = manifests.load()
LOGS = {
    "openvpn.published_tcp_comp": ("server", "client"),
    "openvpn.modern_udp": ("server", "client"),
    "ssh.published_comp": ("client",),
    "ssh.modern": ("client",),
}


def logs_of(name: str) -> dict[str, str]:
    return {host: captured(f"{name}.{host}.txt") for host in LOGS[name]}


def check(name: str, logs: dict[str, str], **override: Any) -> tuple[dict[str, str], list[str]]:
    """Check captured logs of `tunnel.variant` against that variant's settings, some of them overridden."""
    tunnel = CATALOG.tunnels[name.partition(".")[0]]
    return gate.check(tunnel, tunnel.resolve(name.partition(".")[2], override), logs)


def a_tunnel(*evidence: Evidence) -> Tunnel:
    """A tunnel with a cipher and with `evidence`."""
    return Tunnel.model_validate(
        {
            "name": "pipe",
            "description": "d",
            "target": {"address": "10.0.0.1"},
            "defaults": {"cipher": "AES", "level": 0},
            "variants": {"plain": {}},
            "evidence": evidence,
        }
    )


def seen(log: str, pattern: str = r"cipher (\S*)", expect: str | None = "cipher") -> tuple[dict[str, str], list[str]]:
    """Check `log` of the client with one piece of evidence."""
    tunnel = a_tunnel(Evidence(name="cipher", hosts=["client"], pattern=pattern, expect=expect))
    return gate.check(tunnel, tunnel.defaults, {"client": log})


def test_openvpn_as_in_the_post() -> None:
    assert check("openvpn.published_tcp_comp", logs_of("openvpn.published_tcp_comp")) == (
        {
            "client.cipher": "BF-CBC",
            "server.cipher": "BF-CBC",
            "client.compression": "lzo",
            "client.sndbuf": "131072",
            "server.sndbuf": "131072",
            "client.rcvbuf": "131072",
            "server.rcvbuf": "131072",
            "client.device": "TUN/TAP device",
        },
        [],
    )


def test_openvpn_of_today_negotiates_for_itself() -> None:
    negotiated, problems = check("openvpn.modern_udp", logs_of("openvpn.modern_udp"))
    assert problems == []
    assert negotiated["client.cipher"] == negotiated["server.cipher"] == "AES-256-GCM"
    assert negotiated["client.compression"] == ""
    assert negotiated["client.sndbuf"] == "212992", "recorded although the variant asks for none"


def test_openvpn_with_offload() -> None:
    """OpenVPN 2.6.14's own words on a kernel with ovpn-dco."""
    opened = "DCO device tun0 opened\nSocket Buffers: R=[212992->212992] S=[212992->212992]\n"
    logs = {
        "server": opened + "client/10.99.0.2:49057 Data Channel: cipher 'AES-256-GCM', peer-id: 0\n",
        "client": opened + "Data Channel: cipher 'AES-256-GCM', peer-id: 0\n",
    }
    negotiated, problems = check("openvpn.dco_udp", logs)
    assert problems == []
    assert negotiated["server.cipher"] == negotiated["client.cipher"] == "AES-256-GCM"
    assert negotiated["client.device"] == "DCO device"
    silently_off = {host: log.replace("DCO device", "TUN/TAP device") for host, log in logs.items()}
    assert check("openvpn.dco_udp", silently_off)[1] == [
        "client.device is 'TUN/TAP device', the variant says 'DCO device'"
    ]


def test_ssh_with_and_without_compression() -> None:
    negotiated, problems = check("ssh.published_comp", logs_of("ssh.published_comp"))
    assert (negotiated, problems) == (
        {
            "client.cipher": "aes128-ctr",
            "client.mac": "hmac-md5",
            "client.compression": "zlib@openssh.com",
            "client.forward": "Local forwarding listening on 127.0.0.1 port 20000",
        },
        [],
    )
    negotiated, problems = check("ssh.modern", logs_of("ssh.modern"))
    assert problems == []
    assert negotiated["client.cipher"] == "chacha20-poly1305@openssh.com"
    assert (negotiated["client.mac"], negotiated["client.compression"]) == ("<implicit>", "none")


@pytest.mark.parametrize(
    ("name", "override", "said"),
    [
        (
            "openvpn.published_tcp_comp",
            {"cipher": "AES-256-CBC"},
            ["server.cipher is 'BF-CBC', the variant says 'AES-256-CBC'", "client.cipher is 'BF-CBC'.*'AES-256-CBC'"],
        ),
        ("openvpn.published_tcp_comp", {"compression": "no"}, ["client.compression is 'lzo', the variant says ''"]),
        (
            "openvpn.published_tcp_comp",
            {"dco": True},
            ["client.device is 'TUN/TAP device', the variant says 'DCO device'"],  # compression switches it off
        ),
        ("openvpn.modern_udp", {"compression": "lzo"}, ["client.compression is '', the variant says 'lzo'"]),
        ("ssh.published_comp", {"cipher": "aes256-ctr"}, ["client.cipher is 'aes128-ctr'.*says 'aes256-ctr'"]),
        ("ssh.published_comp", {"mac": "hmac-sha2-256"}, ["client.mac is 'hmac-md5'.*says 'hmac-sha2-256'"]),
        ("ssh.published_comp", {"compression": "no"}, ["client.compression is 'zlib@openssh.com'.*says 'none'"]),
        ("ssh.modern", {"compression": "yes"}, ["client.compression is 'none'.*says 'zlib@openssh.com'"]),
    ],
)
def test_tunnel_that_is_not_what_its_variant_says(name: str, override: dict[str, Any], said: list[str]) -> None:
    _, problems = check(name, logs_of(name), **override)
    assert len(problems) == len(said)
    for problem, pattern in zip(problems, said, strict=True):
        assert re.match(pattern, problem), problem


@pytest.mark.parametrize(("key", "ends"), [("sndbuf", ("server", "client")), ("rcvbuf", ("server", "client"))])
def test_kernel_doubles_the_buffers_that_were_asked_for(key: str, ends: tuple[str, str]) -> None:
    """The log has S=[16384->131072] where 65536 were set."""
    name = "openvpn.published_tcp_comp"
    assert check(name, logs_of(name), **{key: 65536})[1] == []
    assert check(name, logs_of(name), **{key: 0})[1] == [], "0 leaves it to the kernel"
    for asked in (32768, 131072):
        said = [f"{end}.{key} is '131072', the variant says '{2 * asked}'" for end in ends]
        assert check(name, logs_of(name), **{key: asked})[1] == said


def test_sending_and_receiving_buffers_are_not_mixed_up() -> None:
    name = "openvpn.published_tcp_comp"
    logs = logs_of(name)
    logs["client"] = swap(logs["client"], "R=[131072->131072] S=[16384->131072]", "R=[131072->65536] S=[16384->32768]")
    negotiated, problems = check(name, logs)
    assert (negotiated["client.rcvbuf"], negotiated["client.sndbuf"]) == ("65536", "32768")
    assert len(problems) == 2


@pytest.mark.parametrize("name", sorted(LOGS))
@pytest.mark.parametrize("how", ["gone", "empty"])
def test_log_without_evidence_does_not_pass(name: str, how: str) -> None:
    tunnel = CATALOG.tunnels[name.partition(".")[0]]
    negotiated, problems = check(name, {} if how == "gone" else dict.fromkeys(LOGS[name], ""))
    assert negotiated == {}
    assert problems == [
        f"{host}.{evidence.name} is not in the log of the {host}'s {tunnel.name}"
        for evidence in tunnel.evidence
        for host in evidence.hosts
    ]


def test_one_line_that_is_missing_is_one_problem() -> None:
    logs = logs_of("ssh.published_comp")
    logs["client"] = swap(logs["client"], "Local forwarding listening", "Local forwarding failed")
    negotiated, problems = check("ssh.published_comp", logs)
    assert problems == ["client.forward is not in the log of the client's ssh"]
    assert "client.cipher" in negotiated


def test_log_of_the_other_host_is_no_evidence() -> None:
    logs = logs_of("openvpn.published_tcp_comp")
    _, problems = check("openvpn.published_tcp_comp", {"client": logs["server"], "server": logs["client"]})
    assert "client.compression is not in the log of the client's openvpn" in problems


def test_nothing_expected_is_recorded_all_the_same() -> None:
    assert seen("cipher DES", expect=None) == ({"client.cipher": "DES"}, [])
    assert seen("cipher DES", expect="none") == ({"client.cipher": "DES"}, [])
    assert seen("", expect=None)[1] == ["client.cipher is not in the log of the client's pipe"]


def test_last_of_several_negotiations_counts() -> None:
    assert seen("cipher DES\ncipher AES\n") == ({"client.cipher": "AES"}, [])
    assert seen("cipher AES\ncipher DES\n")[1] == ["client.cipher is 'DES', the variant says 'AES'"]


def test_group_that_took_no_part_is_empty() -> None:
    assert seen("on", pattern=r"on(?: (\S+))?", expect="''") == ({"client.cipher": ""}, [])


def test_beginning_and_end_of_a_pattern_are_those_of_a_line() -> None:
    assert seen("a\ncipher AES\nb", pattern=r"^cipher (\S+)$")[1] == []


def test_numbers_are_compared_as_they_are_printed() -> None:
    assert seen("cipher 0", expect="level") == ({"client.cipher": "0"}, [])
    assert seen("cipher 1", expect="level")[1] == ["client.cipher is '1', the variant says '0'"]


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ("ciphre", "'ciphre' is undefined"),
        ("ciphre or none", "'ciphre' is undefined"),
        ("cipher +", "unexpected 'end of template'"),
        ("cipher + 1", "can only concatenate"),
        ("cipher.__class__.__mro__", "is unsafe"),
    ],
)
def test_expression_that_is_none_is_named(expect: str, said: str) -> None:
    with pytest.raises(LabError) as error:
        seen("cipher AES", expect=expect)
    assert f"the expression '{expect}' of a tunnel.yml: " in str(error.value)
    assert said in str(error.value)


def test_expression_has_the_settings_and_their_types() -> None:
    assert gate.expression("2 * a if a else none", {"a": 3}) == 6
    assert gate.expression("2 * a if a else none", {"a": 0}) is None
    assert gate.expression("a != 'no'", {"a": "no"}) is False


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("cipher (", "not a regular expression"), ("cipher", "one group, has 0"), ("(a)(b)", "one group, has 2")],
)
def test_pattern_that_cannot_be_evidence_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Evidence(name="cipher", hosts=["client"], pattern=pattern)


@pytest.mark.parametrize("name", sorted(CATALOG.tunnels))
def test_own_expressions_hold_for_every_variant(name: str) -> None:
    tunnel = CATALOG.tunnels[name]
    for variant in tunnel.variants:
        settings = tunnel.resolve(variant)
        assert isinstance(gate.expression(tunnel.compresses, settings), bool)
        for evidence in tunnel.evidence:
            assert tunnel.units.keys() >= set(evidence.hosts), "evidence is searched in the log of the tunnel's unit"
            gate.expression(evidence.expect or "none", settings)


def test_which_of_the_own_variants_compress() -> None:
    """By the expression, and by the name that the variant goes by."""
    for tunnel in CATALOG.tunnels.values():
        for variant in tunnel.variants:
            compresses = gate.expression(tunnel.compresses, tunnel.resolve(variant))
            assert compresses == (variant.endswith("_comp") or variant.endswith("_aes256")), variant


def test_planned_cell_knows_whether_it_compresses(make_plan: Callable[..., Plan]) -> None:
    chosen = {"lab_select": "pipe.plain.copy"}
    assert make_plan(**chosen).cells["pipe.plain.copy"].compresses is False
    changed = make_plan(**chosen, lab_override={"pipe": {"compress": True}})
    assert changed.cells["pipe.plain.copy"].compresses is True
