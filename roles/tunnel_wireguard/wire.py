"""WireGuard: whole IP packets, each encrypted into a UDP datagram of its own. Program and kernel send the same."""

from __future__ import annotations

from dataclasses import replace

from tunnel_lab.wire import Conditions, Layer, NoModel, Prediction, Unit, size, tcp_ip, udp_datagram

HEADER = Layer("WireGuard header", 16, "WireGuard whitepaper, 5.4.6: type, reserved, receiver, counter")
TAG = Layer("WireGuard tag", 16, "WireGuard whitepaper, 5.4.6: Poly1305")


def predict(conditions: Conditions) -> Prediction:
    """Return the prediction for IPv4 inside and outside; NoModel when the MTU leaves no room."""
    mtu = int(conditions.settings["mtu"])
    inside = tcp_ip(conditions.timestamps)
    mss = mtu - size(inside)
    if mss < 1:
        raise NoModel(f"mtu {mtu} leaves no room for payload ({mss} bytes)")
    # a packet as long as the MTU is not padded: send.c, calculate_skb_padding; send.go, calculatePaddingSize
    layers = [*(replace(layer, name=f"inner {layer.name}") for layer in inside), HEADER, TAG]
    layers += udp_datagram(conditions, mss + size(layers))
    return Prediction((Unit("WireGuard packet", mss, tuple(layers)),), mss)
