#!/usr/bin/python
"""Describe the host that measurements are made on."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: lab_environment
short_description: Describe kernel, CPU, packages, sysctls, qdiscs and offloads of a host
options:
  packages:
    description: The packages whose versions are wanted.
    type: list
    elements: str
    default: []
  interface:
    description: The link's interface.
    type: str
  peer:
    description: The other host's address, by which the interface is found where C(interface) is not given.
    type: str
  probes:
    description:
      - What some cells need of the host, each with the shell command that succeeds where it is there.
      - They leave nothing behind, but may load a kernel module. One that fails is no error.
    type: dict
    default: {}
author: tunnel-lab
"""

EXAMPLES = r"""
- name: Describe the host
  lab_environment:
    packages: [openvpn]
    interface: link0
    probes:
      WireGuard in the kernel: ip link add probe0 type wireguard && ip link delete probe0
"""

RETURN = r"""
environment:
  description: >-
    One flat mapping for columns, with nested mappings for what only the record keeps; among these C(lacks), what was
    probed for and is not there, each with the last line that its command said.
  type: dict
  returned: always
interface:
  description: The link's interface.
  type: str
  returned: always
"""

SYSCTLS = (
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.core.rmem_default",
    "net.core.wmem_default",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.default_qdisc",
)


def read(path):
    """Return a file's text without its line end, or None where the kernel has no such file."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def output(argv):
    """Return what a command printed, or None where there is no such command."""
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30).stdout.strip()
    except OSError:
        return None


def cpu():
    """Return model, count and whether the CPU has AES instructions, from /proc/cpuinfo."""
    fields = {}
    count = 0
    for line in (read("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        count += key.strip() == "processor"
        fields.setdefault(key.strip(), value.strip())
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    return {"cpu_model": fields.get("model name", "unknown"), "cpus": count, "cpu_aes": "aes" in flags}


def versions(packages):
    """Return {package: version} as the package manager has them."""
    shown = output(["dpkg-query", "-W", "-f", "${Package} ${Version}\n"]) or output(
        ["rpm", "-qa", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\n"]
    )
    known = dict(line.split(" ", 1) for line in (shown or "").splitlines() if " " in line)
    return {name: known.get(name) for name in packages}


def os_name():
    """Return PRETTY_NAME of /etc/os-release."""
    for line in (read("/etc/os-release") or "").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.split("=", 1)[1].strip('"')
    return "unknown"


def sysctl(name):
    """Return the value of one sysctl in the host's network namespace."""
    return read("/proc/sys/" + name.replace(".", "/"))


def leads_to(peer):
    """Return the interface through which packets for `peer` leave, or None when there is no way."""
    try:
        return json.loads(output(["ip", "-json", "route", "get", peer]) or "[]")[0]["dev"]
    except (ValueError, LookupError):
        return None


def fields_of(text):
    """Return {key: value} of lines such as `driver: ena` or `NTPSynchronized=yes`."""
    found = (re.match(r"([^:=]+)[:=](.*)", line) for line in (text or "").splitlines())
    return {line[1].strip(): line[2].strip() for line in found if line}


def network_card(interface):
    """Return the driver of an interface, its version, and its MTU."""
    card = fields_of(output(["ethtool", "-i", interface]))
    return {
        "link_mtu": int(read(f"/sys/class/net/{interface}/mtu") or 0),
        "link_driver": card.get("driver"),
        "link_driver_version": card.get("version"),
    }


def clock_is_synchronized():
    """Return what systemd knows of the clock; None where it does not say, as in a container."""
    said = fields_of(output(["timedatectl", "show", "-p", "NTPSynchronized"])).get("NTPSynchronized")
    return None if said is None else said == "yes"


def reason(command):
    """Return why a probe failed, in one line; None when it did not."""
    try:
        done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False, timeout=30)
    except subprocess.TimeoutExpired:
        return "no answer in 30 s"
    if done.returncode == 0:
        return None
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return said[-1] if said else f"status {done.returncode}"


def lacks(probes):
    """Return {what is not there: why}."""
    found = {what: reason(command) for what, command in probes.items()}
    return {what: why for what, why in found.items() if why is not None}


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "packages": {"type": "list", "elements": "str", "default": []},
            "interface": {"type": "str"},
            "peer": {"type": "str"},
            "probes": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    interface = module.params["interface"] or leads_to(module.params["peer"])
    if not interface:
        module.fail_json(msg="no interface of this host leads to {}".format(module.params["peer"]))
    environment = {
        "os": os_name(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "virtualization": output(["systemd-detect-virt"]) or "unknown",
        "clock_synchronized": clock_is_synchronized(),
        "clocksource": read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "congestion_control": sysctl("net.ipv4.tcp_congestion_control"),
        "image": read("/etc/tunnel-lab-image"),
        "packages": versions(module.params["packages"]),
        "lacks": lacks(module.params["probes"]),
        "sysctls": {name: sysctl(name) for name in SYSCTLS},
        "network": {
            "qdiscs": output(["tc", "-s", "qdisc", "show"]),
            "addresses": output(["ip", "-details", "address", "show"]),
            "offloads": output(["ethtool", "-k", interface]),
        },
    }
    environment.update(cpu())
    environment.update(network_card(interface))
    module.exit_json(changed=False, environment=environment, interface=interface)


if __name__ == "__main__":
    main()
