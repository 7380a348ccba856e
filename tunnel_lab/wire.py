"""How many bytes the link must carry for each byte of payload: the headers of every layer, added up.

A tunnel's `roles/tunnel_<name>/wire.py` defines

    def predict(conditions: Conditions) -> Prediction

and raises NoModel where it cannot know. It is arithmetic on packet formats; nothing is fitted to a measurement.

What is predicted is the payload's direction of a bulk transfer over IPv4: full segments, nothing sent twice, no set-up,
no keepalives, no new keys. Bytes are those of a Linux interface's counters: Ethernet header, but no preamble and no
checksum.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from pydantic import Field

from tunnel_lab.manifests import ROLES, Settings, Strict


class NoModel(Exception):
    """The model does not apply; the text says why."""


@dataclass(frozen=True)
class Layer:
    """Bytes that one layer adds to a unit."""

    name: str
    bytes: int
    source: str
    """Where the format is laid down: an RFC, or the program's own source."""


@dataclass(frozen=True)
class Unit:
    """What travels in one piece: so many bytes of what is above it, and the layers put around them."""

    name: str
    carries: int
    layers: tuple[Layer, ...]

    @property
    def bytes(self) -> int:
        """Its whole size."""
        return self.carries + size(self.layers)


@dataclass(frozen=True)
class Prediction:
    """The units that payload is packed into, one inside the stream of the next; the last is what the link carries."""

    units: tuple[Unit, ...]
    inner_mss: int | None = None
    """Payload bytes in a full segment inside the tunnel, as `ss` prints `mss`; None where no TCP runs inside one."""

    @property
    def ratio(self) -> float:
        """Bytes on the link per byte of payload."""
        return math.prod(unit.bytes / unit.carries for unit in self.units)

    @property
    def layers(self) -> list[tuple[Unit, Layer]]:
        """Every layer with the unit that it is added to, from the payload outwards."""
        return [(unit, layer) for unit in self.units for layer in unit.layers]


class Conditions(Strict):
    """What a prediction depends on."""

    link_mtu: int = Field(default=1500, ge=576)
    settings: Settings = Field(default_factory=dict)
    """The variant's, resolved."""
    negotiated: dict[str, str] = Field(default_factory=dict)
    """What the tunnel's logs say is in force: `{server.cipher: ...}`, as in a record."""
    timestamps: bool = True
    """Linux's default, `net.ipv4.tcp_timestamps`."""

    def said(self, fact: str) -> str | None:
        """Return what the logs of the hosts say of `fact`, else the setting of that name, None for neither."""
        logged = sorted({value for key, value in self.negotiated.items() if key.partition(".")[2] == fact})
        if len(logged) > 1:
            raise NoModel(f"the hosts do not agree on the {fact}: {', '.join(logged)}")
        return logged[0] if logged else self.settings.get(fact) or None

    def refuse_compression(self, *off: str) -> None:
        """Raise NoModel where the tunnel compresses, how far depends on the payload; `off` are the words for not."""
        compression = self.said("compression")
        if compression and compression not in off:
            raise NoModel(f"the tunnel compresses ({compression})")


ETHERNET = Layer("Ethernet", 14, "IEEE 802.3: two addresses and a type; neither preamble nor FCS are counted")
IPV4 = Layer("IPv4", 20, "RFC 791, 3.1: without options")
UDP = Layer("UDP", 8, "RFC 768")
TCP = Layer("TCP", 20, "RFC 9293, 3.1: without options")
TIMESTAMPS = Layer("TCP timestamps", 12, "RFC 7323, 3.2: 10 bytes and 2 of padding, as Linux sends it")


def size(layers: Iterable[Layer]) -> int:
    """Return the bytes of `layers` together."""
    return sum(layer.bytes for layer in layers)


def tcp_ip(timestamps: bool) -> tuple[Layer, ...]:
    """Return the layers of a TCP segment in an IPv4 packet."""
    return (TIMESTAMPS, TCP, IPV4) if timestamps else (TCP, IPV4)


def tcp_stream(conditions: Conditions) -> Unit:
    """Return the full-sized segment in which the link carries a stream of bytes."""
    headers = tcp_ip(conditions.timestamps)
    return Unit("TCP segment", conditions.link_mtu - size(headers), (*headers, ETHERNET))


def udp_datagram(conditions: Conditions, carried: int) -> tuple[Layer, ...]:
    """Return the layers around one datagram of `carried` bytes, which the kernel cuts up where the link's MTU is less.

    Every fragment but the last carries a multiple of 8 bytes (RFC 791, 3.2).
    """
    datagram, room = carried + UDP.bytes, conditions.link_mtu - IPV4.bytes
    more = 0 if datagram <= room else math.ceil(datagram / (room // 8 * 8)) - 1
    fragments = Layer(f"{more} more fragments", more * (IPV4.bytes + ETHERNET.bytes), "RFC 791, 3.2: IPv4, Ethernet")
    return (UDP, IPV4, ETHERNET, *([fragments] if more else []))


Model = Callable[[Conditions], Prediction]


@cache
def model_for(tunnel: str, roles: Path = ROLES) -> Model | None:
    """Load `predict` from the tunnel's role; None when it has none."""
    path = roles / f"tunnel_{tunnel}" / "wire.py"
    spec = importlib.util.spec_from_file_location(f"tunnel_lab_wire_{tunnel}", path)
    if spec is None or spec.loader is None or not path.is_file():
        return None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return cast(Model, module.predict)


def predict(tunnel: str, conditions: Conditions, roles: Path = ROLES) -> Prediction | str:
    """Return what the tunnel's model predicts, or why there is no prediction."""
    try:
        model = model_for(tunnel, roles)
        return model(conditions) if model else "no model"
    except NoModel as reason:
        return str(reason)
    except Exception as error:  # noqa: BLE001  a model that fails on one record must not lose the others
        return f"the model of {tunnel} failed: {type(error).__name__}: {error}"
