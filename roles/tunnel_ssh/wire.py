"""`ssh -L`: payload in channel data messages, those in SSH's binary packets, and their stream in TCP segments.

No TCP connection passes through this tunnel: each end has its own, on its own loopback.
"""

from __future__ import annotations

from tunnel_lab.wire import Conditions, Layer, NoModel, Prediction, Unit, size, tcp_stream

DATA = 32 * 1024
"""The most that one message carries: OpenSSH reads at most CHANNEL_MAX_READ from the forwarded socket at a time
(channels.c, channel_handle_rfd) and sends at most what the other end takes, CHAN_TCP_PACKET_DEFAULT (channels.h); both
are 32 KiB. A read that returns less makes a smaller message; full ones are assumed. Little hangs on it: with aes128-ctr
and hmac-md5, SSH adds 0.15 % to full messages and 1.2 % to those of 4 KiB."""

BLOCK = {
    "3des-cbc": 8,
    **{f"aes{bits}-{mode}": 16 for bits in (128, 192, 256) for mode in ("cbc", "ctr")},
}
"""Block sizes, cipher.c."""
AEAD_BLOCK = {"aes128-gcm@openssh.com": 16, "aes256-gcm@openssh.com": 16, "chacha20-poly1305@openssh.com": 8}
"""The same of the ciphers that bring their own MAC."""
TAG = 16
"""Length of an AEAD cipher's tag: RFC 5647, 7; OpenSSH's PROTOCOL.chacha20poly1305."""
MAC = {
    "hmac-md5": 16,
    "hmac-md5-96": 12,
    "hmac-sha1": 20,
    "hmac-sha1-96": 12,
    "hmac-sha2-256": 32,
    "hmac-sha2-512": 64,
    "umac-64": 8,
    "umac-128": 16,
}
"""Lengths, mac.c; a name may end in -etm and @openssh.com."""

HEADERS = (
    Layer("SSH channel data", 9, "RFC 4254, 5.2: type 1, recipient 4, length 4"),
    Layer("SSH packet and padding length", 5, "RFC 4253, 6: 4 and 1"),
)


def predict(conditions: Conditions, data: int = DATA) -> Prediction:
    """Return the prediction for messages that carry `data` bytes each."""
    conditions.refuse_compression("no", "none")
    block, mac, length_apart = _algorithms(conditions)
    # packet.c, ssh_packet_send2_wrapped: what is encrypted is padded, with at least 4 bytes
    padding = -(data + size(HEADERS) - (4 if length_apart else 0)) % block
    padding += block if padding < 4 else 0
    layers = (*HEADERS, Layer("SSH padding", padding, "RFC 4253, 6: to the cipher's block, at least 4"), mac)
    return Prediction((Unit("SSH packet", data, layers), tcp_stream(conditions)))


def _algorithms(conditions: Conditions) -> tuple[int, Layer, bool]:
    """Return the cipher's block size, the MAC, and whether the packet's length is not among what is padded."""
    cipher, name = conditions.said("cipher"), conditions.said("mac")
    if cipher in AEAD_BLOCK:
        return AEAD_BLOCK[cipher], Layer("SSH tag", TAG, "RFC 5647, 7; PROTOCOL.chacha20poly1305"), True
    if cipher not in BLOCK:
        raise NoModel(f"the block size of the cipher {cipher} is not known" if cipher else "the cipher is not known")
    algorithm = (name or "").removesuffix("@openssh.com")
    if algorithm.removesuffix("-etm") not in MAC:
        raise NoModel(f"the length of the MAC {name} is not known" if name else "the MAC is not known")
    mac = Layer("SSH MAC", MAC[algorithm.removesuffix("-etm")], "RFC 4253, 6.4; OpenSSH's mac.c")
    return BLOCK[cipher], mac, algorithm.endswith("-etm")
