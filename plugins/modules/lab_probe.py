#!/usr/bin/python
"""Find out whether the host can do what some cells need."""

from __future__ import annotations

import subprocess

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: lab_probe
short_description: Run commands that tell whether a host can do something
description: Nothing of the host is changed, unless a kernel module is loaded, and no command that fails is an error.
options:
  probes:
    description: What is asked for, each with the shell command that succeeds where it is there.
    type: dict
    required: true
author: tunnel-lab
"""

EXAMPLES = r"""
- name: Look for what some cells need
  lab_probe:
    probes:
      WireGuard in the kernel: ip link add probe0 type wireguard && ip link delete probe0
"""

RETURN = r"""
lacks:
  description: What is not there, each with the last line that its command said.
  type: dict
  returned: always
"""

TIMEOUT_S = 30


def reason(command):
    """Return why a command failed, in one line; None when it did not."""
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command], capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {TIMEOUT_S} s"
    if done.returncode == 0:
        return None
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return said[-1] if said else f"status {done.returncode}"


def main():
    """Run the module."""
    module = AnsibleModule(argument_spec={"probes": {"type": "dict", "required": True}}, supports_check_mode=True)
    found = {what: reason(command) for what, command in module.params["probes"].items()}
    module.exit_json(changed=False, lacks={what: why for what, why in found.items() if why is not None})


if __name__ == "__main__":
    main()
