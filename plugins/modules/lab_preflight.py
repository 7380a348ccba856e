#!/usr/bin/python
"""Say at once everything that keeps a host from being one of the lab's; change nothing."""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import subprocess
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: lab_preflight
short_description: Check that a host can be used by the lab
options:
  peer:
    description: The other host's address.
    type: str
    required: true
  ports:
    description: What the lab listens on, such as C(5201/tcp).
    type: list
    elements: str
    default: []
  packages:
    description: The packages that the lab installs where they are missing, by the host's own names.
    type: list
    elements: str
    default: []
  needs_tun:
    description: Whether a tunnel makes a network interface of its own.
    type: bool
    default: false
  interfaces:
    description: Network interfaces that tunnels are going to make.
    type: list
    elements: str
    default: []
  networks:
    description: Addresses inside tunnels, such as C(10.8.0.0/24).
    type: list
    elements: str
    default: []
author: tunnel-lab
"""

EXAMPLES = r"""
- name: Look whether the host can be used
  lab_preflight:
    peer: 192.0.2.2
    ports: [5201/tcp]
"""

RETURN = r"""
problems:
  description: A sentence for each thing to mend; the module fails when there is one.
  type: list
  elements: str
  returned: always
"""

MANAGERS = ("apt-get", "dnf")


def output(argv):
    """Return what a command printed, or None where it failed or is missing."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def system():
    """Yield what is wrong with the system itself."""
    if os.geteuid() != 0:
        yield "the lab needs root here: connect as root, or set ansible_become: true for this host"
    if not Path("/run/systemd/system").is_dir():
        yield "systemd does not run this system; the lab starts everything as its units"


def network(peer, needs_tun):
    """Yield what is wrong with the way to the other host."""
    try:
        ipaddress.ip_address(peer)
    except ValueError:
        yield f"link_address of the other host must be an IP address, it is '{peer}'"
        return
    if not shutil.which("ip"):
        yield "the program ip is missing: install iproute2 (Debian) or iproute (Enterprise Linux)"
    elif not output(["ip", "route", "get", peer]):
        yield f"no route leads to {peer}"
    if needs_tun and not Path("/dev/net/tun").exists():
        yield "/dev/net/tun is missing, VPNs need it: modprobe tun"


def in_use(ports):
    """Yield the ports that something else listens on; what the lab itself runs is stopped before it measures."""
    shown = output(["ss", "-H", "-lntupe"]) or ""
    for port in ports:
        number, _, protocol = port.partition("/")
        for line in shown.splitlines():
            fields = line.split()
            if fields[0] == protocol and fields[4].rsplit(":", 1)[1] == number and "/tunnellab.slice/" not in line:
                owner = re.search(r'users:\(\("([^"]+)",pid=(\d+)', line)
                who = "{} (pid {})".format(*owner.groups()) if owner else "something"
                yield f"port {port} is in use by {who}: stop that for as long as the lab measures"
                break


def inside(interfaces, networks):
    """Yield what a tunnel would take from this host; what the lab itself has up is stopped before it measures."""
    if (output(["systemctl", "list-units", "--plain", "--no-legend", "tunnellab-*"]) or "").strip():
        return
    for name in interfaces:
        if Path("/sys/class/net", name).exists():
            yield f"the interface {name} is there already, and a tunnel of the lab has that name: take it down"
    routes = (output(["ip", "-4", "route", "show", "table", "all"]) or "").splitlines()
    words = [word for line in routes for word in line.split()[:2]]
    words += os.environ.get("SSH_CONNECTION", "").split()[:1]  # from where this host is managed
    used = {word for word in words if re.match(r"\d+\.\d+\.\d+\.\d+(/\d+)?$", word)}
    for network in map(ipaddress.ip_network, networks):
        for address in sorted(used):
            if ipaddress.ip_network(address, strict=False).subnet_of(network):
                yield f"{address} is in use here, and a tunnel of the lab uses {network} inside: see `ip route`"
                break


def packages(wanted):
    """Yield what is missing and cannot be installed."""
    missing = [
        name for name in wanted if output(["dpkg-query", "-W", name]) is None and output(["rpm", "-q", name]) is None
    ]
    if missing and not any(shutil.which(name) for name in MANAGERS):
        yield "these packages are missing, and there is neither apt-get nor dnf: {}".format(" ".join(missing))


def main():
    """Run the module."""
    strings = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        argument_spec={
            "peer": {"type": "str", "required": True},
            "ports": strings,
            "packages": strings,
            "needs_tun": {"type": "bool", "default": False},
            "interfaces": strings,
            "networks": strings,
        },
        supports_check_mode=True,
    )
    given = module.params
    problems = [
        *system(),
        *network(given["peer"], given["needs_tun"]),
        *in_use(given["ports"]),
        *inside(given["interfaces"], given["networks"]),
        *packages(given["packages"]),
    ]
    if problems:
        module.fail_json(msg="this host cannot be used yet:\n  " + "\n  ".join(problems), problems=problems)
    module.exit_json(changed=False, problems=[])


if __name__ == "__main__":
    main()
