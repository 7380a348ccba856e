#!/usr/bin/python
"""The lab's hold on a host: what it was before, and how it gets back to that."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: lab_host
short_description: Take a host for one lab, keep what it installed quiet, give it back as it was
options:
  state:
    description:
      - C(claimed) writes down whose the host is and how its kernel settings are before the lab changes them. A host
        that another lab holds is refused.
      - C(quiet) stops the services of C(packages) that the lab has just installed, now and at boot.
      - C(released) stops what the lab runs, removes its files and gives the kernel settings back. Packages stay.
    type: str
    choices: [claimed, quiet, released]
    required: true
  lab:
    description: The lab's name.
    type: str
  holder:
    description: Who runs the lab, and where; for the message to another one.
    type: str
    default: ""
  sysctls:
    description: The kernel settings that the lab is going to change.
    type: list
    elements: str
    default: []
  packages:
    description: With C(claimed) those that the lab needs, with C(quiet) those that it has installed.
    type: list
    elements: str
    default: []
author: tunnel-lab
"""

EXAMPLES = r"""
- name: Take the host
  lab_host:
    state: claimed
    lab: static
    holder: me@here
    sysctls: [net.ipv4.tcp_rmem]
"""

RETURN = r"""
missing:
  description: Those of C(packages) that are not installed.
  type: list
  elements: str
  returned: claimed
"""

HELD = Path("/etc/tunnel-lab/host.json")
UNITS = Path("/etc/systemd/system")
SYSCTLS = Path("/etc/sysctl.d/90-tunnel-lab.conf")
KINDS = (".service", ".socket", ".timer")
DIRECTORIES = [Path(path) for path in ("/var/lib/tunnel-lab", "/run/tunnel-lab", "/etc/tunnel-lab")]


def output(argv, may_fail=False):
    """Return what a command printed; None where there is no such command, or where it may fail and did."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=not may_fail, timeout=120)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def sysctl(name):
    """Return the file of a kernel setting."""
    return Path("/proc/sys") / name.replace(".", "/")


def installed(package):
    """Return whether the package manager has the package."""
    state = output(["dpkg-query", "-W", "-f", "${Status}", package], may_fail=True)
    if state is not None:
        return state.endswith(" installed")
    return output(["rpm", "-q", package], may_fail=True) is not None


def claim(module):
    """Write down whose the host is; return whether that is new, and which packages are missing."""
    held = json.loads(HELD.read_text()) if HELD.exists() else None
    mine = {"lab": module.params["lab"], "holder": module.params["holder"]}
    if held and any(held[key] != value for key, value in mine.items()):
        module.fail_json(
            msg="this host is held by the lab '{lab}' of {holder} since {since}; two labs would measure each other. "
            "Tear that one down first. If it is gone for good, remove {path} on this host.".format(path=HELD, **held)
        )
    now = held or {**mine, "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "sysctls": {}}
    before = dict(now["sysctls"])
    for name in module.params["sysctls"]:
        if sysctl(name).exists():
            now["sysctls"].setdefault(name, sysctl(name).read_text().strip())
    changed = held is None or now["sysctls"] != before
    if changed:
        HELD.parent.mkdir(mode=0o755, exist_ok=True)
        draft = HELD.with_suffix(".new")
        draft.write_text(json.dumps(now))
        draft.replace(HELD)
    missing = [package for package in module.params["packages"] if not installed(package)]
    module.exit_json(changed=changed, missing=missing)


def quiet(module):
    """Stop and disable the services of packages; the lab starts what it needs in units of its own."""
    units = set()
    for package in module.params["packages"]:
        files = output(["dpkg", "-L", package], may_fail=True) or output(["rpm", "-ql", package], may_fail=True) or ""
        paths = [Path(line) for line in files.splitlines() if "/systemd/system/" in line]
        units |= {path.name for path in paths if path.suffix in KINDS and "@" not in path.name}
    on = [
        unit
        for unit in sorted(units)
        for asked in ("is-enabled", "is-active")
        if (output(["systemctl", asked, unit], may_fail=True) or "").strip() in ("enabled", "active")
    ]
    if on:
        output(["systemctl", "disable", "--now", *dict.fromkeys(on)])
    module.exit_json(changed=bool(on))


def release(module):
    """Undo everything, whose description goes last: what is interrupted can be done again."""
    held = json.loads(HELD.read_text()) if HELD.exists() else None
    if held and held["lab"] != module.params["lab"]:
        module.exit_json(changed=False, msg="held by the lab '{lab}' of {holder}: left alone".format(**held))
    units = sorted(UNITS.glob("tunnellab*"))
    if (UNITS / "tunnellab.slice").exists():
        output(["systemctl", "stop", "tunnellab.slice"])
    for name, value in (held["sysctls"] if held else {}).items():
        sysctl(name).write_text(value)
    there = [path for path in [*units, SYSCTLS, *DIRECTORIES] if path.exists()]
    for path in there:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    if units:
        output(["systemctl", "daemon-reload"])
        output(["systemctl", "reset-failed", "tunnellab*"], may_fail=True)
    module.exit_json(changed=bool(there))


def main():
    """Run the module."""
    strings = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        argument_spec={
            "state": {"choices": ["claimed", "quiet", "released"], "required": True},
            "lab": {"type": "str"},
            "holder": {"type": "str", "default": ""},
            "sysctls": strings,
            "packages": strings,
        },
        required_if=[("state", "claimed", ["lab"]), ("state", "released", ["lab"])],
    )
    try:
        {"claimed": claim, "quiet": quiet, "released": release}[module.params["state"]](module)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        module.fail_json(msg="{}: {}".format(module.params["state"], error))


if __name__ == "__main__":
    main()
