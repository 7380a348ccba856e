#!/usr/bin/python3
"""Write down what this host's kernel counts, five times a second, until SIGTERM.

One JSON document a line, of one of four kinds:

    {"meta": {...}}                      what the counters cover and in which units; the first line
    ["at", "cpu|user", ...]              the names of the values that follow, again whenever they change
    [1796065499.2, 4711, ...]            a sample; everything but memory is a counter that only rises
    {"at": ..., "sockets": "...", ...}   `ss -tunapimO` of the processes in the lab's slice, and the sensors

It runs in tunnellab.slice, so that it is stopped with everything else there. Python 3.9 or newer, standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

FORMAT = 1
ROW_S, ROW_SHARE = 0.2, 0.005
SOCKETS_S, SOCKETS_SHARE = 0.4, 0.012
"""The least time between two of a kind, and how much of a core they may use; the time is stretched to keep that."""
SOCKETS_KEPT = 75
"""A run of whatever length has a few hundred looks at the sockets: one at each 1/75 of what has passed."""
KERNEL_THREADS_S = 5
"""How often new kernel threads are looked for."""

CPU = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
NET = ("rx_bytes", "rx_packets", "rx_dropped", "tx_bytes", "tx_packets", "tx_dropped")
NET_FIELDS = (0, 1, 3, 8, 9, 11)
"""Their places in a line of /proc/net/dev."""
SNMP = {
    "Tcp": ("InSegs", "OutSegs", "RetransSegs", "InErrs"),
    "Udp": ("InDatagrams", "OutDatagrams", "InErrors", "RcvbufErrors", "SndbufErrors"),
    "TcpExt": ("TCPTimeouts", "TCPLostRetransmit", "TCPFastRetrans", "TCPSlowStartRetrans", "TCPBacklogDrop",
               "PruneCalled", "RcvPruned"),
}  # fmt: skip
THREADS = re.compile(r"^(ksoftirqd|kworker|napi|irq)/")


def read(path):
    """Return a file's text, or an empty one where the kernel has no such file or the process is gone."""
    try:
        with open(path, "rb", buffering=0) as stream:  # noqa: PTH123  five times as fast as a Path's
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


def cpus():
    """Return the ticks of all CPUs together by kind, and of each one: busy and in softirqs."""
    found = {}
    for line in read("/proc/stat").splitlines():
        if not line.startswith("cpu"):
            break
        name, *fields = line.split()
        ticks = dict(zip(CPU, map(int, fields)))
        if name == "cpu":
            found.update({f"cpu|{kind}": value for kind, value in ticks.items()})
        else:
            found[f"{name}|busy"] = sum(ticks.values()) - ticks["idle"] - ticks["iowait"] - ticks["steal"]
            found[f"{name}|softirq"] = ticks["softirq"]
    return found


def own_kernel():
    """Return whether this host is the only one on its kernel: then the kernel's threads can be seen."""
    return read("/proc/2/comm").strip() == "kthreadd"


def host_cpu():
    """Return the CPU time of the host's own cgroup in ns, and how often its quota held it up."""
    found = {}
    usage = read("/sys/fs/cgroup/cpuacct/cpuacct.usage")
    stat = dict(
        line.split() for line in (read("/sys/fs/cgroup/cpu.stat") or read("/sys/fs/cgroup/cpu/cpu.stat")).splitlines()
    )
    if usage:
        found["host|cpu_ns"] = int(usage)
    elif "usage_usec" in stat:
        found["host|cpu_ns"] = int(stat["usage_usec"]) * 1000
    if "nr_periods" in stat:
        throttled = (
            int(stat["throttled_usec"]) * 1000 if "throttled_usec" in stat else int(stat.get("throttled_time", 0))
        )
        found.update(
            {
                "host|periods": int(stat["nr_periods"]),
                "host|throttled_periods": int(stat["nr_throttled"]),
                "host|throttled_ns": throttled,
            }
        )
    return found


def quota_cores():
    """Return how many cores the host's cgroup allows it, None for no limit."""
    words = read("/sys/fs/cgroup/cpu.max").split() or [
        read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").strip(),
        read("/sys/fs/cgroup/cpu/cpu.cfs_period_us").strip(),
    ]
    return None if words[0] in ("", "max", "-1") else int(words[0]) / int(words[1])


def network(interfaces):
    """Return the counters of `interfaces`, those that are there."""
    found = {}
    for line in read("/proc/net/dev").splitlines()[2:]:
        name, _, rest = line.partition(":")
        if name.strip() in interfaces:
            fields = rest.split()
            found.update({f"net|{name.strip()}|{key}": int(fields[place]) for key, place in zip(NET, NET_FIELDS)})
    return found


def protocols():
    """Return what TCP and UDP of this host count, by the names of /proc/net/snmp and /proc/net/netstat."""
    found = {}
    lines = iter((read("/proc/net/snmp") + read("/proc/net/netstat")).splitlines())
    for names, values in zip(lines, lines):
        protocol, _, rest = names.partition(":")
        if protocol in SNMP:
            counted = dict(zip(rest.split(), values.split()[1:]))
            found.update({f"{protocol}|{key}": int(counted[key]) for key in SNMP[protocol] if key in counted})
    return found


def softnet():
    """Return the packets that the CPUs' backlogs dropped, and how often a softirq ran out of its time."""
    rows = [line.split() for line in read("/proc/net/softnet_stat").splitlines()]
    return {
        "softnet|dropped": sum(int(row[1], 16) for row in rows),
        "softnet|squeezed": sum(int(row[2], 16) for row in rows),
    }


def process(pid):
    """Return name, parent, user and system ticks, resident pages of a process; None when it is gone."""
    name, found, rest = read(f"/proc/{pid}/stat").partition("(")[2].rpartition(")")
    if not found:
        return None
    fields = rest.split()
    return name, int(fields[1]), int(fields[11]), int(fields[12]), int(fields[21])


class Slice:
    """The processes of the lab, by unit."""

    def __init__(self):
        """Find the directory of the cgroup that this program's own unit lies in."""
        mounts = [line.split() for line in read("/proc/self/mountinfo").splitlines() if " - cgroup" in line]
        for line in read("/proc/self/cgroup").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers not in ("", "name=systemd"):
                continue
            for fields in mounts:
                options = fields[fields.index("-") + 3].split(",")
                version_2 = fields[fields.index("-") + 1] == "cgroup2"
                if version_2 != (controllers == "") or (controllers and controllers not in options):
                    continue
                root = "" if fields[3] == "/" else fields[3]
                own = Path(fields[4] + path[len(root) :] if path.startswith(root) else fields[4] + path)
                if str(os.getpid()) in read(own / "cgroup.procs").split():
                    self.directory, self.own = own.parent, own.name
                    return
        raise SystemExit("sampler: the cgroup of its own unit is not below /sys/fs/cgroup")

    def processes(self):
        """Return {pid: unit} of everything but this program's own unit."""
        found = {}
        for entry in os.scandir(self.directory):
            if entry.is_dir() and entry.name != self.own:
                found.update(dict.fromkeys(map(int, read(entry.path + "/cgroup.procs").split()), entry.name))
        return found


def usage(processes):
    """Return CPU ticks and memory of each process as `process|unit|name|pid|...`."""
    found = {}
    for pid, unit in sorted(processes.items()):
        seen = process(pid)
        if seen:
            name, _, user, system, pages = seen
            key = f"process|{unit}|{name.replace('|', '_')}|{pid}"
            found.update({key + "|user": user, key + "|system": system, key + "|rss_pages": pages})
    return found


class KernelThreads:
    """CPU ticks of the kernel's own threads that carry traffic, added up by what they are.

    A worker is counted under what it works on at the moment, as in `kworker/1:0-wg-crypt-wg0`.
    """

    def __init__(self):
        """Look for them once."""
        self.ticks = {}
        self.total = {}
        self.due = 0.0

    def sample(self):
        """Return `kernel|kind|cpu` since this program began."""
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + KERNEL_THREADS_S
            for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
                seen = process(pid)
                if seen and seen[1] == 2 and THREADS.match(seen[0]):
                    self.ticks.setdefault(pid, seen[2] + seen[3])
        for pid, before in list(self.ticks.items()):
            seen = process(pid)
            if not seen:
                del self.ticks[pid]
                continue
            now = seen[2] + seen[3]
            kind, _, work = seen[0].partition("/")
            works_on = re.search(r"[-+](\D.*)", work) if kind == "kworker" else None
            key = f"kernel|{works_on[1] if works_on else kind}|cpu"
            self.total[key] = self.total.get(key, 0) + now - before
            self.ticks[pid] = now
        return self.total


def sockets(pids):
    """Return what `ss` shows of the processes `pids`, and sockets that no process holds, as the kernel's own are."""
    argv = ["ss", "-tunapimOH"]
    shown = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=10).stdout
    kept = []
    for line in shown.splitlines():
        holders = {int(pid) for pid in re.findall(r"pid=(\d+)", line)}
        if holders & pids or not (holders or " TIME-WAIT " in line):
            kept.append(" ".join(line.split()))
    return "\n".join(kept)


def sensors():
    """Return the clock rate of the CPUs in kHz and temperatures in millidegrees, where the machine has them."""
    rates = [
        int(rate)
        for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
        if (rate := read(path).strip()).isdigit()  # some drivers say <unknown>
    ]
    zones = Path("/sys/class/thermal").glob("thermal_zone*")
    heat = {f"{zone.name} {read(zone / 'type').strip()}": read(zone / "temp").strip() for zone in zones}
    return {
        "cpu_khz": rates,
        "temperature_millic": {name: int(value) for name, value in heat.items() if value.lstrip("-").isdigit()},
    }


def own_cpu_s():
    """Return the CPU seconds of this program and of the `ss` it has run."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


class Sampler:
    """Writes the lines."""

    def __init__(self, interfaces):
        """Say what will be counted."""
        self.interfaces = interfaces
        self.slice = Slice()
        self.threads = KernelThreads() if own_kernel() else None
        self.names = None
        quota = quota_cores()
        self.cores = min(1.0, quota or 1.0)
        self.write(
            {
                "meta": {
                    "format": FORMAT,
                    "interval_s": ROW_S,
                    "ticks_per_s": os.sysconf("SC_CLK_TCK"),
                    "page_bytes": os.sysconf("SC_PAGE_SIZE"),
                    "cpus": os.cpu_count(),
                    "quota_cores": quota,
                    "kernel": "own" if self.threads else "shared",
                }
            }
        )

    def write(self, document):
        """Write one line."""
        sys.stdout.write(json.dumps(document, separators=(",", ":")) + "\n")
        sys.stdout.flush()

    def row(self):
        """Write one sample; return the processes seen."""
        at = round(time.time(), 4)
        processes = self.slice.processes()
        values = {
            **cpus(),
            **({} if self.threads else host_cpu()),
            **network(self.interfaces),
            **protocols(),
            **softnet(),
            **usage(processes),
            **(self.threads.sample() if self.threads else {}),
            "sampler|cpu_us": int(own_cpu_s() * 1e6),
        }
        if list(values) != self.names:
            self.names = list(values)
            self.write(["at", *self.names])
        self.write([at, *values.values()])
        return set(processes)

    def look(self, pids):
        """Write the sockets of `pids` and the sensors. What ss reads last are the sockets, so it is of when it ends."""
        shown = sockets(pids)
        self.write({"at": round(time.time(), 4), "sockets": shown, **sensors()})

    def cost(self, action, *arguments):
        """Return the CPU seconds that `action` took, and what it returned."""
        before = own_cpu_s()
        returned = action(*arguments)
        return own_cpu_s() - before, returned

    def run(self):
        """Sample until one of the signals comes, once more then, and return."""
        ends = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, ends)
        begun = time.monotonic()
        row_due = sockets_due = begun
        while True:
            spent, pids = self.cost(self.row)
            now = time.monotonic()
            row_due = max(row_due + max(ROW_S, spent / (ROW_SHARE * self.cores)), now)
            if now >= sockets_due:
                spent, _ = self.cost(self.look, pids)
                sockets_due = now + max(SOCKETS_S, (now - begun) / SOCKETS_KEPT, spent / (SOCKETS_SHARE * self.cores))
            if signal.sigtimedwait(ends, max(0.0, row_due - time.monotonic())):
                self.row()
                return


def main():
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interfaces", required=True, help="the interfaces to count, with commas")
    Sampler(parser.parse_args().interfaces.split(",")).run()


if __name__ == "__main__":
    main()
