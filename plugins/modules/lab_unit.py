#!/usr/bin/python
"""Start, restart or stop systemd units of the lab and wait until they are of use."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: lab_unit
short_description: Start or stop the lab's systemd units in one call and wait until they are ready
description:
  - Units write their output to C(/run/tunnel-lab/<unit>.log), anew at each start.
  - A unit that ends while it is waited for fails at once with its last words.
options:
  units:
    description: The units, started in this order and stopped together. A slice stops all it holds.
    type: list
    elements: str
    required: true
  state:
    description: What they shall be.
    type: str
    choices: [started, restarted, stopped]
    required: true
  environment:
    description: Variables for all C(units), written to C(/run/tunnel-lab/<unit>.env) before the start.
    type: dict
    default: {}
  ready_log:
    description: A regular expression that the log of the last unit must show.
    type: str
  ready_port:
    description: A TCP port that must be listened on.
    type: int
  timeout_s:
    description: How long to wait for that.
    type: float
    default: 20
author: tunnel-lab
"""

EXAMPLES = r"""
- name: Start the server
  lab_unit:
    units: [tunnellab-openvpn-server@modern_udp.service]
    state: started
    ready_log: Initialization Sequence Completed
"""

RETURN = r"""
seconds:
  description: From the start command to readiness.
  type: float
  returned: when started
"""

RUN = Path("/run/tunnel-lab")


class NotReady(Exception):
    """Why the units are not as wanted."""


def systemctl(*words):
    """Run systemctl and return the finished process."""
    return subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False, timeout=120)


def is_active(unit):
    """Return whether systemd calls `unit` active."""
    return systemctl("is-active", unit).stdout.strip() == "active"


def log_of(unit):
    """Return what `unit` wrote since its last start."""
    path = RUN / (unit + ".log")
    return path.read_text(errors="replace") if path.exists() else ""


def listening(port):
    """Return whether a TCP socket listens on `port`."""
    shown = subprocess.run(["ss", "-Hltn", f"sport = :{port}"], capture_output=True, text=True, check=True, timeout=10)
    return bool(shown.stdout.strip())


def last_words(unit):
    """Return the end of what `unit` wrote, as one line."""
    return " | ".join(log_of(unit).strip().splitlines()[-4:])[-600:] or "it wrote nothing"


def start(units, verb, environment):
    """Start `units`; environment goes to their EnvironmentFile."""
    for unit in units:
        (RUN / (unit + ".log")).unlink(missing_ok=True)  # what the last start wrote says nothing about this one
        lines = ['{}="{}"\n'.format(*item) for item in sorted(environment.items())]
        (RUN / (unit + ".env")).write_text("".join(lines))
        systemctl("reset-failed", unit)
        done = systemctl(verb, unit)
        if done.returncode != 0:
            raise NotReady(f"{unit} does not start: {done.stderr.strip()} | {last_words(unit)}")


def wait(unit, log, port, timeout_s):
    """Return once `unit` runs, its log shows `log` and `port` is open; raise NotReady otherwise."""
    end = time.monotonic() + timeout_s
    while True:
        state = systemctl("show", "--property=ActiveState,NRestarts", unit).stdout
        if "ActiveState=failed" in state or "ActiveState=inactive" in state:
            raise NotReady(f"{unit} has ended: {last_words(unit)}")
        if (not log or re.search(log, log_of(unit))) and (not port or listening(port)):
            return
        if time.monotonic() > end:
            raise NotReady(f"{unit} is not ready after {timeout_s:g} s: {last_words(unit)}")
        time.sleep(0.02)


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "units": {"type": "list", "elements": "str", "required": True},
            "state": {"choices": ["started", "restarted", "stopped"], "required": True},
            "environment": {"type": "dict", "default": {}},
            "ready_log": {"type": "str"},
            "ready_port": {"type": "int"},
            "timeout_s": {"type": "float", "default": 20.0},
        }
    )
    given = module.params
    units = given["units"]
    RUN.mkdir(exist_ok=True)
    active = [unit for unit in units if is_active(unit)]
    if given["state"] == "stopped":
        if active:
            systemctl("stop", *active)
        left = [unit for unit in active if is_active(unit)]
        systemctl("reset-failed", "tunnellab-*")  # ssh and iperf3 call being stopped a failure
        if left:
            module.fail_json(msg="still running after stop: {}".format(", ".join(left)))
        module.exit_json(changed=bool(active))
    if given["state"] == "started" and len(active) == len(units):
        module.exit_json(changed=False)
    verb = "restart" if given["state"] == "restarted" else "start"
    begun = time.monotonic()
    try:
        start(units, verb, given["environment"])
        wait(units[-1], given["ready_log"], given["ready_port"], given["timeout_s"])
    except NotReady as problem:
        module.fail_json(msg=str(problem))
    module.exit_json(changed=True, seconds=round(time.monotonic() - begun, 3))


if __name__ == "__main__":
    main()
