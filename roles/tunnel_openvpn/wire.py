"""OpenVPN: whole IP packets, each with the headers of its own, encrypted into a UDP datagram or into a TCP stream.

After OpenVPN 2.6: TLS mode with a peer id, IPv4 outside and inside, a tun device. A 2.7 on both ends may agree on data
packets of another format (epoch), 4 bytes longer for AEAD ciphers; that is not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tunnel_lab.wire import (
    IPV4,
    TCP,
    UDP,
    Conditions,
    Layer,
    NoModel,
    Prediction,
    Unit,
    size,
    tcp_ip,
    tcp_stream,
    udp_datagram,
)

TUN_MTU = 1500
"""TUN_MTU_DEFAULT, mtu.h."""
MSSFIX = 1492
"""MSSFIX_DEFAULT, mtu.h: includes the IP and UDP headers (`mssfix 1492 mtu`)."""

AEAD = {"AES-128-GCM", "AES-192-GCM", "AES-256-GCM", "CHACHA20-POLY1305"}
CBC_BLOCK = {
    "BF-CBC": 8,
    "CAST5-CBC": 8,
    "DES-EDE3-CBC": 8,
    **{f"{cipher}-{bits}-CBC": 16 for cipher in ("AES", "CAMELLIA") for bits in (128, 192, 256)},
}
"""Block sizes; the IV is one block."""
HMAC = {"MD5": 16, "SHA1": 20, "SHA224": 28, "SHA256": 32, "SHA384": 48, "SHA512": 64, "NONE": 0}

LENGTH = Layer("OpenVPN length", 2, "mtu.c, frame_calculate_protocol_header_size: before every packet, over TCP only")
OPCODE = Layer("OpenVPN opcode and peer id", 4, "ssl.c, tls_prepend_opcode_v2: P_DATA_V2")
PACKET_ID = Layer("OpenVPN packet id", 4, "mtu.c, calc_packet_id_size_dc: short form in TLS mode; encrypted with CBC")

CHANGES = {
    *("auth", "comp-lzo", "compress", "dev", "dev-type", "fragment", "http-proxy", "link-mtu", "mssfix", "mtu-disc"),
    *("proto", "push", "secret", "socket-flags", "socks-proxy", "tcp-nodelay", "tun-mtu"),
}
"""Options that change what is computed here; `extra_options` may hold any."""


@dataclass(frozen=True)
class Cipher:
    """What encryption puts around a packet."""

    clear: tuple[Layer, ...]
    """Not encrypted."""
    block: int | None
    """CBC pads the packet and its packet id to a multiple of this, with at least one byte."""


def predict(conditions: Conditions) -> Prediction:
    """Return the prediction; NoModel for what compresses, and for what is not known well enough."""
    conditions.refuse_compression("no")
    _refuse_unknown(conditions)
    over_tcp = conditions.settings.get("proto") == "tcp"
    cipher = _cipher(conditions)
    header = (*cipher.clear, OPCODE, *([LENGTH] if over_tcp else []))
    inside = tcp_ip(conditions.timestamps)
    tun_mtu = conditions.settings.get("tun_mtu") or TUN_MTU
    limit = _mss_fix(conditions, size(header), cipher.block, over_tcp)
    mss = min(tun_mtu - IPV4.bytes - TCP.bytes, limit) - (size(inside) - IPV4.bytes - TCP.bytes)
    if mss < 1:
        raise NoModel(f"mssfix or tun_mtu leave no room for payload ({mss} bytes)")
    layers = [replace(layer, name=f"inner {layer.name}") for layer in inside]
    layers += [*_sealed(mss + size(inside), cipher.block), *header]
    if over_tcp:
        return Prediction((Unit("OpenVPN packet", mss, tuple(layers)), tcp_stream(conditions)), mss)
    layers += udp_datagram(conditions, mss + size(layers))
    return Prediction((Unit("OpenVPN packet", mss, tuple(layers)),), mss)


def _refuse_unknown(conditions: Conditions) -> None:
    settings, device = conditions.settings, conditions.said("device")
    if "DCO" in device.upper() if device else settings.get("dco"):
        raise NoModel("data channel offload: whether the kernel heeds mssfix depends on its version")
    if settings.get("proto") == "tcp" and settings.get("tcp_nodelay"):
        raise NoModel("tcp_nodelay: segments need not be full")
    changed = sorted(CHANGES & {option.split()[0] for option in settings.get("extra_options", []) if option.strip()})
    if changed:
        raise NoModel(f"extra_options has {', '.join(changed)}")


def _cipher(conditions: Conditions) -> Cipher:
    """crypto.c, openvpn_encrypt_aead and openvpn_encrypt_v1. `auth` counts for CBC only, by default it is SHA1."""
    name = conditions.said("cipher")
    if not name:
        raise NoModel("the cipher is not known")
    if name in AEAD:
        return Cipher((PACKET_ID, Layer("OpenVPN tag", 16, "crypto.c, openvpn_encrypt_aead")), None)
    auth = str(conditions.said("auth") or "SHA1").upper()
    if name not in CBC_BLOCK or auth not in HMAC:
        raise NoModel(f"the format of cipher {name} with auth {auth} is not known")
    iv = Layer("OpenVPN IV", CBC_BLOCK[name], "crypto.c, openvpn_encrypt_v1: one block")
    return Cipher((iv, Layer("OpenVPN HMAC", HMAC[auth], "crypto.c, openvpn_encrypt_v1")), CBC_BLOCK[name])


def _sealed(packet: int, block: int | None) -> tuple[Layer, ...]:
    """Return what is encrypted along with a packet of so many bytes: nothing, unless in blocks."""
    if block is None:
        return ()
    padding = block - (packet + PACKET_ID.bytes) % block
    return (PACKET_ID, Layer("OpenVPN padding", padding, "RFC 5652, 6.3 (PKCS #7): 1 byte to a whole block"))


def _mss_fix(conditions: Conditions, header: int, block: int | None, over_tcp: bool) -> int:
    """Return the MSS that OpenVPN writes into SYNs, its log's `mss_fix`, as in mss.c, frame_calculate_mssfix.

    Headers without options are taken off: those of the inner packet always, those outside only for the default. The
    default is for a tun_mtu of 1500; any other is itself the only limit (options.c, options_postprocess_mutate_ce).
    """
    mssfix, tun_mtu = conditions.settings.get("mssfix"), conditions.settings.get("tun_mtu") or TUN_MTU
    if mssfix == 0 or (mssfix is None and tun_mtu != TUN_MTU):
        return int(tun_mtu) - IPV4.bytes - TCP.bytes
    outside = IPV4.bytes + (TCP if over_tcp else UDP).bytes if mssfix is None else 0
    room = (MSSFIX if mssfix is None else int(mssfix)) - header - outside
    if block is not None:
        room = room // block * block - 1 - PACKET_ID.bytes
    return room - IPV4.bytes - TCP.bytes
