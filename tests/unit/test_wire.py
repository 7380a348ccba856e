"""Known answers, added up by hand in the comments from the packet formats, never from the program's own output.

Every header once: Ethernet 14, IPv4 20, TCP 20 + 12 of timestamps, UDP 8. So TCP over an MTU of 1500 has 1514 bytes on
the link for 1448 of its stream.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from tunnel_lab import manifests, wire
from tunnel_lab.wire import Conditions, Prediction

CATALOG = manifests.load()
STREAM = 1514 / 1448
NAT = {"cipher": "AES_GCM_16_256", "nat": "NAT"}
LOGGED = {
    "openvpn": {"server.cipher": "AES-256-GCM", "client.cipher": "AES-256-GCM", "client.compression": ""},
    "ssh": {"client.cipher": "chacha20-poly1305@openssh.com", "client.mac": "<implicit>", "client.compression": "none"},
    "none": {},
    "wireguard": {},
    "ipsec": {"server.cipher": "AES_GCM_16_256", "client.cipher": "AES_GCM_16_256"},
}
"""What today's programs log where a variant leaves it to them, from records of the lab."""
VARIANTS = [(tunnel.name, variant) for tunnel in CATALOG.tunnels.values() for variant in tunnel.variants]


def predicted(tunnel: str, logged: dict[str, str] | None = None, **conditions: Any) -> Prediction:
    """The prediction for the defaults of `tunnel`, with `settings` changed."""
    settings = {**CATALOG.tunnels[tunnel].defaults, **conditions.pop("settings", {})}
    found = wire.predict(tunnel, Conditions(settings=settings, negotiated=logged or {}, **conditions))
    assert isinstance(found, Prediction), found
    return found


def openvpn(mtu: int = 1500, **settings: Any) -> Prediction:
    return predicted("openvpn", settings=settings, link_mtu=mtu)


def reason(tunnel: str, logged: dict[str, str] | None = None, **settings: Any) -> str:
    """Why there is no prediction."""
    known = CATALOG.tunnels[tunnel].defaults
    found = wire.predict(tunnel, Conditions(settings={**known, **settings}, negotiated=logged or {}))
    assert isinstance(found, str), found
    return found


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, 1514 / 1448),
        ({"timestamps": False}, 1514 / 1460),
        ({"link_mtu": 9001}, 9015 / 8949),  # 9001 + 14, 9001 - 52
    ],
)
def test_bare_link(conditions: dict[str, Any], expected: float) -> None:
    found = predicted("none", **conditions)
    assert found.ratio == pytest.approx(expected, rel=1e-12)
    assert found.inner_mss is None


@pytest.mark.parametrize(
    ("cipher", "mac", "packet"),
    [
        # 32768 + 9 channel data + 5 length and padding length = 32782 = 2048 * 16 + 14: 2 would do for the block,
        # but 4 is the least, so 18; and 16 of MAC
        ("aes128-ctr", "hmac-md5", 32782 + 18 + 16),
        # the length is not among what is padded: 32778 = 4097 * 8 + 2, so 6; and the tag of 16
        ("chacha20-poly1305@openssh.com", "<implicit>", 32782 + 6 + 16),
        # 32778 = 2048 * 16 + 10, so 6
        ("aes256-gcm@openssh.com", "", 32782 + 6 + 16),
        ("aes128-ctr", "hmac-sha2-256-etm@openssh.com", 32782 + 6 + 32),
        ("aes256-ctr", "umac-128@openssh.com", 32782 + 18 + 16),
        # 32782 = 4097 * 8 + 6: 2 would do, so 10; and 20
        ("3des-cbc", "hmac-sha1", 32782 + 10 + 20),
    ],
)
def test_ssh(cipher: str, mac: str, packet: int) -> None:
    found = predicted("ssh", {"client.cipher": cipher, "client.mac": mac, "client.compression": "none"})
    assert found.units[0].bytes == packet
    assert found.ratio == pytest.approx(packet / 32768 * STREAM, rel=1e-12)
    assert found.inner_mss is None
    assert predicted("ssh", settings={"cipher": cipher, "mac": mac}).ratio == found.ratio, "the setting where no log"


def test_ssh_with_messages_that_are_not_full() -> None:
    """A full message and one of 4 KiB end alike in their block, so the same 48 bytes fall on less."""
    model = wire.model_for("ssh")
    assert model
    found = cast(Any, model)(Conditions(settings={"cipher": "aes128-ctr", "mac": "hmac-md5"}), data=4096)
    assert found.units[0].bytes == 4096 + 48


BF = {"cipher": "BF-CBC", "auth": "SHA1", "mssfix": 1450, "tun_mtu": 1500}
AES = {**BF, "cipher": "AES-256-CBC"}
GCM: dict[str, Any] = {"cipher": "AES-256-GCM"}


@pytest.mark.parametrize(
    ("settings", "logged_mss_fix"),
    [  # `mss_fix` as OpenVPN 2.6.14 logged it in the lab
        ({"proto": "tcp", **BF}, 1371),
        ({"proto": "udp", **BF}, 1371),
        ({"proto": "tcp", **GCM}, 1386),
        ({"proto": "udp", **GCM}, 1400),
        ({"proto": "udp", **GCM, "data_ciphers": "AES-256-GCM", "tun_mtu": 1500}, 1400),
    ],
)
def test_openvpn_computes_the_mss_that_the_program_logs(settings: dict[str, Any], logged_mss_fix: int) -> None:
    assert openvpn(**settings).inner_mss == logged_mss_fix - 12
    assert predicted("openvpn", settings=settings, timestamps=False).inner_mss == logged_mss_fix


@pytest.mark.parametrize(
    ("settings", "inner_mss", "packet"),
    [
        # 1359 + 52 = 1411 inner, + 4 packet id = 1415, padded to 177 * 8 = 1416;
        # + IV 8 + HMAC 20 + opcode 4 + length 2 = 1450
        (BF, 1359, 1450),
        # 1450 - 2 - 4 - 16 - 20 = 1408 = 88 * 16, - 1 of padding - 4 - 40 = 1363, - 12;
        # 1351 + 52 + 4 = 1407, padded to 1408; + 16 + 20 + 4 + 2 = 1450
        (AES, 1351, 1450),
        # 1492 - 40 outside - 2 - 4 - 4 - 16 = 1426, - 40 - 12; 1374 + 52 + 24 + 2
        (GCM, 1374, 1452),
        ({**GCM, "mssfix": 0}, 1448, 1526),  # 1500 + 24 + 2
        # 1500 + 4 = 94 * 16 is full, so a whole block more: 1520; + 16 + 20 + 4 + 2
        ({**AES, "mssfix": 0}, 1448, 1562),
    ],
)
def test_openvpn_over_tcp(settings: dict[str, Any], inner_mss: int, packet: int) -> None:
    found = openvpn(proto="tcp", **settings)
    assert (found.inner_mss, found.units[0].bytes) == (inner_mss, packet)
    assert found.ratio == pytest.approx(packet / inner_mss * STREAM, rel=1e-12)


@pytest.mark.parametrize(
    ("settings", "inner_mss", "frame"),
    [
        # 1492 - 28 outside - 4 - 4 - 16 = 1440, - 40 - 12; 1388 + 52 + 24 + 28 + 14
        (GCM, 1388, 1506),
        ({"cipher": "AES-128-GCM"}, 1388, 1506),
        ({"cipher": "CHACHA20-POLY1305"}, 1388, 1506),
        # 1450 - 4 - 8 - 20 = 1418, of that 177 * 8 = 1416, - 1 - 4 - 40 = 1371, - 12;
        # 1359 + 52 + 4 = 1415, padded to 1416; + 32 + 28 + 14
        (BF, 1359, 1490),
        # 1450 - 4 - 16 - 20 = 1410, of that 1408: 1351 as over TCP; 1408 + 40 + 28 + 14
        (AES, 1351, 1490),
        # 1450 - 4 - 16 - 32 = 1398, of that 87 * 16 = 1392, - 1 - 4 - 40 - 12 = 1335;
        # 1335 + 52 + 4 = 1391, padded to 1392; + 52 + 28 + 14
        ({**AES, "auth": "SHA256"}, 1335, 1486),
        # 1500 + 24 + 8 = 1532, more than 1480: two fragments, each with IPv4 and Ethernet
        ({**GCM, "mssfix": 0}, 1448, 1532 + 2 * 34),
        # another tun_mtu is its own limit: 1400 - 52; 1400 + 24 + 28 + 14
        ({**GCM, "tun_mtu": 1400}, 1348, 1466),
        # explicit and larger than the tun_mtu: 1500 - 52, in two fragments
        ({**GCM, "mssfix": 9000}, 1448, 1600),
    ],
)
def test_openvpn_over_udp(settings: dict[str, Any], inner_mss: int, frame: int) -> None:
    found = openvpn(proto="udp", **settings)
    assert (found.inner_mss, found.units[-1].bytes) == (inner_mss, frame)
    assert found.ratio == pytest.approx(frame / inner_mss, rel=1e-12)


def test_openvpn_on_a_jumbo_link() -> None:
    assert openvpn(9001, proto="udp", **GCM).ratio == openvpn(proto="udp", **GCM).ratio, "tun has an MTU of its own"
    # with 8900: 8848 + 52 + 24 + 28 = 8952 fits
    assert openvpn(9001, proto="udp", **GCM, tun_mtu=8900).ratio == pytest.approx(8966 / 8848)
    # unlimited, and no fragment: 1500 + 24 + 28 + 14
    assert openvpn(9001, proto="udp", **GCM, mssfix=0).ratio == pytest.approx(1566 / 1448)
    assert openvpn(9001, proto="tcp", **GCM).ratio == pytest.approx(1452 / 1374 * 9015 / 8949)


def test_fragments_of_a_small_link() -> None:
    # 1388 + 52 + 24 + 8 = 1472; 576 - 20 = 556 of room, of that 552: 552 + 552 + 368
    assert openvpn(576, proto="udp", **GCM).ratio == pytest.approx((1472 + 3 * 34) / 1388)


@pytest.mark.parametrize(
    ("tunnel", "logged", "settings", "said"),
    [
        ("ssh", {"client.compression": "zlib@openssh.com"}, {}, "compresses (zlib@openssh.com)"),
        ("ssh", {}, {"compression": "yes"}, "compresses (yes)"),
        ("ssh", {}, {}, "the cipher is not known"),
        ("ssh", {"client.cipher": "rot13"}, {}, "cipher rot13 is not known"),
        ("ssh", {"client.cipher": "aes128-ctr"}, {}, "the MAC is not known"),
        ("ssh", {"client.cipher": "aes128-ctr", "client.mac": "crc32"}, {}, "MAC crc32 is not known"),
        ("openvpn", {"client.compression": "lzo"}, GCM, "compresses (lzo)"),
        ("openvpn", {}, {**GCM, "compression": "lz4-v2"}, "compresses (lz4-v2)"),
        ("openvpn", {}, {}, "the cipher is not known"),
        ("openvpn", {"server.cipher": "AES-256-OFB"}, {}, "AES-256-OFB with auth SHA1 is not known"),
        ("openvpn", {}, {**AES, "auth": "WHIRLPOOL"}, "auth WHIRLPOOL is not known"),
        ("openvpn", {"server.cipher": "BF-CBC", "client.cipher": "AES-256-GCM"}, {}, "do not agree on the cipher"),
        ("openvpn", {}, {**GCM, "dco": True}, "data channel offload"),
        ("openvpn", {"client.device": "DCO device"}, GCM, "data channel offload"),
        ("openvpn", {}, {**GCM, "proto": "tcp", "tcp_nodelay": True}, "tcp_nodelay"),
        ("openvpn", {}, {**GCM, "extra_options": ["keepalive 10 60", "fragment 1300"]}, "extra_options has fragment"),
        ("openvpn", {}, {**GCM, "mssfix": 60}, "no room for payload"),
    ],
)
def test_no_prediction_says_why(tunnel: str, logged: dict[str, str], settings: dict[str, Any], said: str) -> None:
    assert said in reason(tunnel, logged, **settings)


def test_what_is_in_force_counts_not_what_was_set() -> None:
    device = {"client.device": "TUN/TAP device"}  # DCO was asked for, the kernel has none
    assert predicted("openvpn", {**LOGGED["openvpn"], **device}, settings={"dco": True, "proto": "udp"}).ratio == (
        openvpn(proto="udp", **GCM).ratio
    )


def test_a_tunnel_needs_no_model_and_a_broken_one_is_named(roles: Path) -> None:
    assert wire.predict("pipe", Conditions(), roles) == "no model"
    (roles / "tunnel_pipe" / "wire.py").write_text("def predict(conditions): return 1 / 0\n", encoding="utf-8")
    wire.model_for.cache_clear()
    assert wire.predict("pipe", Conditions(), roles) == (
        "the model of pipe failed: ZeroDivisionError: division by zero"
    )


@pytest.mark.parametrize(("tunnel", "variant"), VARIANTS)
def test_every_variant_of_the_lab_costs_more_than_its_link(tunnel: str, variant: str) -> None:
    settings = CATALOG.tunnels[tunnel].resolve(variant)
    logged = {} if settings.get("cipher") else LOGGED[tunnel]
    ratios = []
    for mtu in (576, 1280, 1500, 9001):
        found = wire.predict(tunnel, Conditions(settings=settings, negotiated=logged, link_mtu=mtu))
        if isinstance(found, str):
            compressed = settings["compression"] in ("lzo", "yes") and "compresses" in found
            offloaded = settings.get("dco") and "data channel offload" in found
            assert compressed or offloaded or (settings["tcp_nodelay"] and "tcp_nodelay" in found)
            return
        link = predicted("none", link_mtu=mtu)
        assert found.ratio > link.ratio or tunnel == "none"
        assert all(layer.bytes >= 0 and layer.source for _, layer in found.layers)
        assert sum(layer.bytes for _, layer in found.layers) == sum(unit.bytes - unit.carries for unit in found.units)
        ratios.append(found.ratio)
    assert ratios == sorted(ratios, reverse=True), "falls with the MTU, or does not depend on it"


def test_wireguard() -> None:
    # 1420 of MTU - 52 of inner headers = 1368 of payload; 1420 + 32 + 28 of UDP and IP + 14 of Ethernet = 1494
    found = predicted("wireguard")
    assert found.inner_mss == 1368
    assert found.ratio == pytest.approx(1494 / 1368, rel=1e-12)
    assert predicted("wireguard", settings={"mtu": 1400}).ratio == pytest.approx(1474 / 1348, rel=1e-12)


def test_wireguard_without_room() -> None:
    assert reason("wireguard", mtu=52) == "mtu 52 leaves no room for payload (0 bytes)"


@pytest.mark.parametrize(
    ("settings", "inner_mss", "frame"),
    [
        # 1500 - 20 outer IP - 8 SPI and sequence - 8 IV - 16 ICV = 1448; - 2 of trailer = 1446 inside; - 52 of headers
        ({}, 1394, 1514),
        # 1500 - 20 - 8 - 16 - 16 = 1440, 90 blocks; - 2 = 1438 inside
        ({"cipher": "AES_CBC_256/HMAC_SHA2_256_128"}, 1386, 1514),
        # 1400 inside, 2 of padding to 1404 with the trailer, + 8 + 8 + 16 + 8 of UDP + 20 + 14
        ({"implementation": "libipsec"}, 1348, 1478),
    ],
)
def test_ipsec(settings: dict[str, Any], inner_mss: int, frame: int) -> None:
    found = predicted("ipsec", settings=settings)
    assert found.inner_mss == inner_mss
    assert found.ratio == pytest.approx(frame / inner_mss, rel=1e-12)


def test_ipsec_behind_nat() -> None:
    # 1500 - 20 - 8 of UDP - 8 - 8 - 16 = 1440; - 2 of trailer = 1438 inside; - 52 of headers
    logged = {f"{host}.{name}": said for host in ("server", "client") for name, said in NAT.items()}
    found = predicted("ipsec", logged)
    assert found.inner_mss == 1386
    assert found.ratio == pytest.approx(1514 / 1386, rel=1e-12)


def test_ipsec_with_a_cipher_that_is_not_known() -> None:
    assert reason("ipsec", {"client.cipher": "NULL"}) == "the format of cipher NULL is not known"
