#!/usr/bin/python
"""Take down the state of one host: interface counters, sockets, logs of the lab's units."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: lab_observe
short_description: Read interface counters, sockets and unit logs of a host in one call
options:
  units:
    description: The units whose log is wanted.
    type: list
    elements: str
    default: []
  ping:
    description: An address that must answer; its round trip goes into the observation.
    type: str
author: tunnel-lab
"""

EXAMPLES = r"""
- name: Look at both hosts
  lab_observe:
    units: [tunnellab-ssh@published_default.service]
"""

RETURN = r"""
observation:
  description: at, counters, logs, sockets, and ping when it was asked for, all as the kernel and the tools give them.
  type: dict
  returned: always
"""


def counters():
    """Return {interface: {counter: value}} from /sys/class/net, loopback included."""
    found = {}
    for device in sorted(Path("/sys/class/net").iterdir()):
        statistics = device / "statistics"
        if statistics.is_dir():
            found[device.name] = {f.name: int(f.read_text()) for f in sorted(statistics.iterdir())}
    return found


def log_of(unit):
    """Return what `unit` wrote since its last start."""
    path = Path("/run/tunnel-lab") / (unit + ".log")
    return path.read_text(errors="replace") if path.exists() else ""


def output(argv, may_fail=False):
    """Return what a command printed."""
    return subprocess.run(argv, capture_output=True, text=True, check=not may_fail, timeout=30).stdout


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"units": {"type": "list", "elements": "str", "default": []}, "ping": {"type": "str"}},
        supports_check_mode=True,
    )
    target = module.params["ping"]
    # three echoes, 50 ms apart; a lost one is no failure, no answer at all is
    ping = output(["ping", "-n", "-c", "3", "-i", "0.05", "-W", "3", target], may_fail=True) if target else ""
    if target and " 0 received" in ping:
        module.fail_json(msg="{} does not answer through the tunnel: {}".format(target, " ".join(ping.split())))
    observation = {
        "at": round(time.time(), 6),
        "counters": counters(),
        "sockets": output(["ss", "-tunapimOe"]),
        "logs": {unit: log_of(unit) for unit in module.params["units"]},
        "ping": ping,
    }
    module.exit_json(changed=False, observation=observation)


if __name__ == "__main__":
    main()
