"""ESP in tunnel mode: whole IP packets, each encrypted into a packet of its own; inside UDP where libipsec makes it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tunnel_lab.wire import (
    ETHERNET,
    IPV4,
    UDP,
    Conditions,
    Layer,
    NoModel,
    Prediction,
    Unit,
    size,
    tcp_ip,
    udp_datagram,
)

ESP = Layer("ESP header", 8, "RFC 4303, 2: SPI and sequence number")
TRAILER = Layer("ESP trailer", 2, "RFC 4303, 2: pad length and next header")
LIBIPSEC_MTU = 1400
"""TUN_DEFAULT_MTU, strongSwan's tun_device.c."""


@dataclass(frozen=True)
class Cipher:
    """What encryption adds to a packet."""

    iv: Layer
    icv: Layer
    block: int
    """The packet and its trailer are padded to a multiple of this."""


CIPHERS = {
    **{
        f"AES_GCM_16_{bits}": Cipher(Layer("ESP IV", 8, "RFC 4106, 3"), Layer("ESP ICV", 16, "RFC 4106, 6"), 4)
        for bits in (128, 256)
    },
    "AES_CBC_256/HMAC_SHA2_256_128": Cipher(
        Layer("ESP IV", 16, "RFC 3602, 3"), Layer("ESP ICV", 16, "RFC 4868, 2.6"), 16
    ),
}


def predict(conditions: Conditions) -> Prediction:
    """Return the prediction for IPv4 inside and outside; NoModel for other ciphers."""
    name = conditions.said("cipher")
    if name not in CIPHERS:
        raise NoModel(f"the format of cipher {name} is not known")
    cipher = CIPHERS[str(name)]
    inside = tcp_ip(conditions.timestamps)
    packet = _mtu(conditions, cipher)
    mss = packet - size(inside)
    padding = -(packet + TRAILER.bytes) % cipher.block
    layers = [replace(layer, name=f"inner {layer.name}") for layer in inside]
    layers += [Layer("ESP padding", padding, "RFC 4303, 2.4"), TRAILER, ESP, cipher.iv, cipher.icv]
    in_udp = _in_udp(conditions) or not _in_kernel(conditions)
    layers += udp_datagram(conditions, mss + size(layers)) if in_udp else (IPV4, ETHERNET)
    return Prediction((Unit("ESP packet", mss, tuple(layers)),), mss)


def _in_kernel(conditions: Conditions) -> bool:
    return bool(conditions.settings["implementation"] == "kernel")


def _in_udp(conditions: Conditions) -> bool:
    """Return whether the kernel puts ESP into UDP, RFC 3948: where NAT was detected, as the log says."""
    return conditions.said("nat") == "NAT"


def _mtu(conditions: Conditions, cipher: Cipher) -> int:
    """Return the longest packet inside: of the kernel as in xfrm_state.c, xfrm_state_mtu."""
    if not _in_kernel(conditions):
        return LIBIPSEC_MTU
    outside = IPV4.bytes + (UDP.bytes if _in_udp(conditions) else 0)
    room = conditions.link_mtu - outside - ESP.bytes - cipher.iv.bytes - cipher.icv.bytes
    return room // cipher.block * cipher.block - TRAILER.bytes
