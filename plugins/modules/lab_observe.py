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
short_description: Read counters, sockets and unit logs of a host in one call, and start or stop its sampler
options:
  units:
    description: The units whose log is wanted.
    type: list
    elements: str
    default: []
  files:
    description: Files whose text is wanted.
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
  sampler:
    description:
      - C(start) the sampler last of all and return when it has seen the host idle for C(baseline_s).
      - C(stop) it last of all; what it wrote goes into the observation.
    type: str
    choices: [start, stop]
  interfaces:
    description: The interfaces that the sampler counts, and of whose drivers the counters are wanted too.
    type: list
    elements: str
    default: []
  baseline_s:
    description: How long the sampler looks at the idle host.
    type: float
    default: 1
  sampler_max_s:
    description: After this time the sampler ends by itself, if nobody stops it.
    type: float
    default: 3600
author: tunnel-lab
"""

EXAMPLES = r"""
- name: Look at both hosts
  lab_observe:
    units: [tunnellab-ssh@published_default.service]
"""

RETURN = r"""
observation:
  description:
    - at, counters, logs, files, sockets, qdiscs, units (when each was started, by the monotonic clock), and ping and
      samples when they were asked for, all as the kernel and the tools give them.
  type: dict
  returned: always
"""


SAMPLER = "tunnellab-sampler.service"
SAMPLES = Path("/run/tunnel-lab/sampler.jsonl")


def counters(interfaces):
    """Return {interface: {counter: value}} from /sys/class/net, loopback included; more of `interfaces`."""
    found = {}
    for device in sorted(Path("/sys/class/net").iterdir()):
        statistics = device / "statistics"
        if statistics.is_dir():
            found[device.name] = {f.name: int(f.read_text()) for f in sorted(statistics.iterdir())}
    for name in set(found) & set(interfaces):
        found[name].update(allowances(name))
    return found


def allowances(interface):
    """Return how often a cloud's own limits held packets up, as EC2's ena counts: {bw_out_allowance_exceeded: n}."""
    shown = output(["ethtool", "-S", interface], may_fail=True)
    pairs = (line.split(":") for line in shown.splitlines() if "_allowance_exceeded:" in line)
    return {name.strip(): int(value) for name, value in pairs}


def log_of(unit):
    """Return what `unit` wrote since its last start."""
    path = Path("/run/tunnel-lab") / (unit + ".log")
    return path.read_text(errors="replace") if path.exists() else ""


def wait(units, pattern, timeout_s):
    """Return when a log shows `pattern`, or when the time is over: whether it matters is not known here."""
    end = time.monotonic() + timeout_s
    while not any(re.search(pattern, log_of(unit), re.MULTILINE) for unit in units) and time.monotonic() < end:
        time.sleep(0.05)


def sockets():
    """Return what `ss` shows of the lab's own processes, and of sockets that no process holds."""
    # ss pads every line to the width of the widest
    lines = (line.rstrip() for line in output(["ss", "-tunapimOe"]).splitlines())
    return "\n".join(line for line in lines if "/tunnellab.slice/" in line or "users:" not in line)


def started(units):
    """Return {unit: when systemd started its main process, in seconds of the monotonic clock}."""
    shown = output(["systemctl", "show", "-p", "ExecMainStartTimestampMonotonic", "--value", *units]) if units else ""
    return {unit: int(microseconds) / 1e6 for unit, microseconds in zip(units, shown.split())}


def start_sampler(module):
    """Start the sampler in the lab's slice and let it see the idle host."""
    SAMPLES.parent.mkdir(exist_ok=True)
    SAMPLES.unlink(missing_ok=True)
    output(["systemctl", "stop", SAMPLER], may_fail=True)  # of a repeat that did not come to its end
    properties = [f"StandardOutput=truncate:{SAMPLES}", "RuntimeMaxSec={}".format(module.params["sampler_max_s"])]
    output(
        ["systemd-run", "--quiet", "--collect", "--slice=tunnellab.slice", "--unit=" + SAMPLER]
        + ["--property=" + each for each in properties]
        + ["python3", "-I", "-S", "/etc/tunnel-lab/sampler.py"]
        + ["--interfaces", ",".join(module.params["interfaces"])]
    )
    end = time.monotonic() + 10
    while not (SAMPLES.exists() and "\n[" in SAMPLES.read_text().partition("\n")[2]):
        if time.monotonic() > end:
            module.fail_json(msg="the sampler does not start: " + sampler_log())
        time.sleep(0.02)
    time.sleep(module.params["baseline_s"])


def sampler_log():
    """Return the sampler's last words."""
    shown = output(["journalctl", "-u", SAMPLER, "-n", "5", "-o", "cat", "--no-pager"], may_fail=True)
    return " | ".join(shown.split("\n"))[-400:]


def stop_sampler(module):
    """Stop the sampler and return what it wrote."""
    if output(["systemctl", "is-active", SAMPLER], may_fail=True).strip() != "active":
        module.fail_json(msg="the sampler ended before the workload did: " + sampler_log())
    output(["systemctl", "stop", SAMPLER])
    return SAMPLES.read_text()


def output(argv, may_fail=False):
    """Return what a command printed."""
    return subprocess.run(argv, capture_output=True, text=True, check=not may_fail, timeout=30).stdout


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "units": {"type": "list", "elements": "str", "default": []},
            "files": {"type": "list", "elements": "str", "default": []},
            "ping": {"type": "str"},
            "until_log": {"type": "str"},
            "timeout_s": {"type": "float", "default": 30.0},
            "sampler": {"choices": ["start", "stop"]},
            "interfaces": {"type": "list", "elements": "str", "default": []},
            "baseline_s": {"type": "float", "default": 1.0},
            "sampler_max_s": {"type": "float", "default": 3600.0},
        },
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
        "counters": counters(module.params["interfaces"]),
        "sockets": sockets(),
        "qdiscs": output(["tc", "-s", "qdisc", "show"]),
        "logs": {unit: log_of(unit) for unit in module.params["units"]},
        "files": {path: Path(path).read_text() for path in module.params["files"]},
        "units": started(module.params["units"]),
        "ping": ping,
        "samples": stop_sampler(module) if module.params["sampler"] == "stop" else "",
    }
    if module.params["sampler"] == "start":
        start_sampler(module)
    module.exit_json(changed=False, observation=observation)


if __name__ == "__main__":
    main()
