"""What the hosts let in from each other."""

from __future__ import annotations

from typing import Any

ICMP = {"proto": "icmp", "from_port": -1, "to_port": -1, "rule_desc": "ping, and what paths say of packets too big"}
_WITHOUT_PORTS = {"esp": 50}
"""{protocol: its number}"""


def peer_rules(ports: list[str]) -> list[dict[str, Any]]:
    """Return a rule for each of `ports` (`1194/udp`, `esp`) and ICMP, as amazon.aws takes them, without the source."""
    return [ICMP, *(_rule(port) for port in ports)]


def _rule(port: str) -> dict[str, Any]:
    if port in _WITHOUT_PORTS:
        return {"proto": str(_WITHOUT_PORTS[port]), "from_port": -1, "to_port": -1, "rule_desc": port}
    number, _, protocol = port.partition("/")
    return {"proto": protocol, "from_port": int(number), "to_port": int(number), "rule_desc": port}
