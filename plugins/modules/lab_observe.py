#!/usr/bin/python
"""Take down the state of one host: interface counters, sockets, logs of the lab's units."""

from __future__ import annotations

import re
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
  until_log:
    description: Look only when a log of C(units) shows this regular expression, or C(timeout_s) is over.
    type: str
  timeout_s:
    description: How long to wait for C(until_log).
    type: float
    default: 30
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


def wait(units, pattern, timeout_s):
    """Return when a log shows `pattern`, or when the time is over: whether it matters is not known here."""
    end = time.monotonic() + timeout_s
    while not any(re.search(pattern, log_of(unit), re.MULTILINE) for unit in units) and time.monotonic() < end:
        time.sleep(0.05)


def output(argv, may_fail=False):
    """Return what a command printed."""
    return subprocess.run(argv, capture_output=True, text=True, check=not may_fail, timeout=30).stdout


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "units": {"type": "list", "elements": "str", "default": []},
            "ping": {"type": "str"},
            "until_log": {"type": "str"},
            "timeout_s": {"type": "float", "default": 30.0},
        },
        supports_check_mode=True,
    )
    target = module.params["ping"]
    # one answer is enough; until it comes, another echo every second
    ping = output(["ping", "-n", "-c", "1", "-w", "5", target], may_fail=True) if target else ""
    if target and " 1 received" not in ping:
        module.fail_json(msg="{} does not answer through the tunnel: {}".format(target, " ".join(ping.split())))
    if module.params["until_log"]:
        wait(module.params["units"], module.params["until_log"], module.params["timeout_s"])
    observation = {
        "at": round(time.time(), 6),
        "counters": counters(),
        # ss pads every line to the width of the widest
        "sockets": "\n".join(line.rstrip() for line in output(["ss", "-tunapimOe"]).splitlines()),
        "logs": {unit: log_of(unit) for unit in module.params["units"]},
        "ping": ping,
    }
    module.exit_json(changed=False, observation=observation)


if __name__ == "__main__":
    main()
