"""From where ssh is let in: the network that the user names, or this machine's public address."""

from __future__ import annotations

import ipaddress
import urllib.error
import urllib.request

from tunnel_lab.errors import LabError

SERVICE = "https://checkip.amazonaws.com/"
"""AWS's own: answers with the address that asks."""


def cidr(given: str, service: str = SERVICE) -> str:
    """Return the network, such as 203.0.113.7/32; a LabError when `auto` finds none."""
    if given != "auto":
        return str(ipaddress.IPv4Network(given))
    try:
        with urllib.request.urlopen(service, timeout=10) as answer:
            text = answer.read(100).decode("ascii", "replace").strip()
    except urllib.error.URLError as error:
        why = str(error.reason)
    except OSError as error:
        why = str(error)
    else:
        try:
            return f"{ipaddress.IPv4Address(text)}/32"
        except ValueError:
            why = f"it answers {text[:40]!r}"
    raise LabError(
        f"aws_operator_cidr: this machine's public address is not to be had from {service} ({why}). "
        "Set it, such as 203.0.113.7/32."
    )
