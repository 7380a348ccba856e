#!/usr/bin/python
"""Run a workload's commands inside the lab's slice and return their output verbatim."""

from __future__ import annotations

import subprocess
import time
from datetime import datetime, timezone

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: lab_run
short_description: Run commands in the lab's slice and keep their output verbatim
description:
  - Each command runs as a transient unit of C(tunnellab.slice), one after the other, so that stopping the
    slice ends it whatever became of the playbook that started it.
  - A command that fails or exceeds its time is a result, not an error; the commands after it are not run.
options:
  commands:
    description: What to run.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The name that the workload's parser knows the command by.
        type: str
        required: true
      argv:
        description: The program and its arguments.
        type: list
        elements: str
        required: true
  timeout_s:
    description: The longest that one command may take.
    type: float
    required: true
author: tunnel-lab
"""

EXAMPLES = r"""
- name: Measure
  lab_run:
    timeout_s: 60
    commands:
      - {name: client_to_server, argv: [iperf3, -c, 10.8.0.1, -J]}
"""

RETURN = r"""
commands:
  description: For each command that was run its name, argv, rc, stdout, stderr, started_at, elapsed_s, timed_out.
  type: list
  returned: always
"""

UNIT = "tunnellab-run.service"
IN_SLICE = ["systemd-run", "--quiet", "--pipe", "--wait", "--collect", "--slice=tunnellab.slice", "--unit=" + UNIT]


def run(name, argv, timeout_s):
    """Run one command; return what the record keeps of it."""
    started_at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    begun = time.monotonic()
    process = subprocess.Popen(
        [*IN_SLICE, "--", *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    timed_out = False
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        subprocess.run(["systemctl", "stop", UNIT], check=False, timeout=60, capture_output=True)
        stdout, stderr = process.communicate(timeout=30)
    return {
        "name": name,
        "argv": argv,
        "rc": None if timed_out else process.returncode,
        "stdout": stdout.decode(errors="replace"),
        "stderr": stderr.decode(errors="replace"),
        "started_at": started_at,
        "elapsed_s": round(time.monotonic() - begun, 4),
        "timed_out": timed_out,
    }


def main():
    """Run the module."""
    command = {"name": {"type": "str", "required": True}, "argv": {"type": "list", "elements": "str", "required": True}}
    module = AnsibleModule(
        argument_spec={
            "commands": {"type": "list", "elements": "dict", "required": True, "options": command},
            "timeout_s": {"type": "float", "required": True},
        }
    )
    done = []
    for each in module.params["commands"]:
        done.append(run(each["name"], each["argv"], module.params["timeout_s"]))
        if done[-1]["rc"] != 0:
            break
    module.exit_json(changed=False, commands=done)


if __name__ == "__main__":
    main()
