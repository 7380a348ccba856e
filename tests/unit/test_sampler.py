"""The sampler's functions over files as kernels have them; and the program itself, with a slice of the tests."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT

from tunnel_lab import samples, sockets

PROGRAM = ROOT / "roles" / "host_base" / "files" / "sampler.py"
Files = Callable[[Mapping[str, str]], None]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tunnel_lab_sampler", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sampler = load()


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    """Let the sampler read these files, and no others."""

    def give(found: Mapping[str, str]) -> None:
        monkeypatch.setattr(sampler, "read", lambda path: found.get(str(path), ""))

    return give


def stat(pid: int, name: str, parent: int = 1, user: int = 0, system: int = 0, pages: int = 0) -> dict[str, str]:
    """/proc/<pid>/stat as the kernel writes it (man proc_pid_stat: utime 14, stime 15, rss 24)."""
    before = f"{pid} ({name}) S {parent} {pid} {pid} 0 -1 4194304 120 0 0 0 "
    after = f" 0 0 20 0 1 0 12345 100000000 {pages} 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0"
    return {f"/proc/{pid}/stat": f"{before}{user} {system}{after}\n"}


def test_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"caf\xe9\n")
    assert sampler.read(tmp_path / "a") == "caf\ufffd\n"
    assert sampler.read(tmp_path / "missing") == sampler.read(tmp_path) == ""


# cpu


PROC_STAT = """cpu  510181 24555 198172 1693738 10892 7 4049 510 3 2
cpu0 255090 12277 99086 846869 5446 3 1581 255 3 0
cpu1 255091 12278 99086 846869 5446 4 2468 255 0 2
intr 12345 0 0
ctxt 1990473
cpufreq 7
"""


def test_cpus(files: Files) -> None:
    files({"/proc/stat": PROC_STAT})
    found = sampler.cpus()
    kinds = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    assert [found[f"cpu|{kind}"] for kind in kinds] == [510181, 24555, 198172, 1693738, 10892, 7, 4049, 510]
    assert found["cpu0|busy"] == 255090 + 12277 + 99086 + 3 + 1581, "guests are in user already, steal is another's"
    assert (found["cpu0|softirq"], found["cpu1|softirq"]) == (1581, 2468)
    assert len(found) == 8 + 2 * 2


def test_cpus_of_a_kernel_that_counts_no_guests(files: Files) -> None:
    files({"/proc/stat": "cpu  1 2 3 4 5 6 7 8\ncpu0 1 2 3 4 5 6 7 8\nintr 1\n"})
    found = sampler.cpus()
    assert (found["cpu|steal"], found["cpu0|busy"]) == (8, 1 + 2 + 3 + 6 + 7)


@pytest.mark.parametrize(("comm", "own"), [("kthreadd\n", True), ("bash\n", False), ("", False)])
def test_own_kernel(files: Files, comm: str, own: bool) -> None:
    files({"/proc/2/comm": comm})
    assert sampler.own_kernel() is own


V2_STAT = "usage_usec 68994\nuser_usec 50000\nsystem_usec 18994\n"
V2_QUOTA = "nr_periods 120\nnr_throttled 7\nthrottled_usec 4500\nnr_bursts 0\nburst_usec 0\n"
V1_QUOTA = "nr_periods 120\nnr_throttled 7\nthrottled_time 4500000\n"


@pytest.mark.parametrize(
    ("found", "used_ns", "limited"),
    [
        ({"/sys/fs/cgroup/cpu.stat": V2_STAT}, 68_994_000, False),
        ({"/sys/fs/cgroup/cpu.stat": V2_STAT + V2_QUOTA}, 68_994_000, True),
        (
            {"/sys/fs/cgroup/cpuacct/cpuacct.usage": "68994276494\n", "/sys/fs/cgroup/cpu/cpu.stat": V1_QUOTA},
            68_994_276_494,
            True,
        ),
        ({"/sys/fs/cgroup/cpu/cpu.stat": V1_QUOTA}, None, True),
        ({}, None, False),
    ],
)
def test_cpu_of_the_host(files: Files, found: dict[str, str], used_ns: int | None, limited: bool) -> None:
    quota = {"host|periods": 120, "host|throttled_periods": 7, "host|throttled_ns": 4_500_000}
    files(found)
    assert sampler.host_cpu() == {**({"host|cpu_ns": used_ns} if used_ns else {}), **(quota if limited else {})}


@pytest.mark.parametrize(
    ("found", "cores"),
    [
        ({"/sys/fs/cgroup/cpu.max": "10000 100000\n"}, 0.1),
        ({"/sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"/sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "10000\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 0.1),
        ({}, None),
    ],
)
def test_quota(files: Files, found: dict[str, str], cores: float | None) -> None:
    files(found)
    assert sampler.quota_cores() == cores


# network


NET_DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo: 525620421   27050    0    0    0     0          0         0 525620421   27050    0    0    0     0       0  0
 link0:1131903983 1028326    1    2    3     4          5         6 1062252999  998175    7    8    9    10     11 12
  tun0: 17 1 0 0 0 0 0 0 18 2 0 94 0 0 0 0
"""


def test_network(files: Files) -> None:
    files({"/proc/net/dev": NET_DEV})
    assert sampler.network(["link0", "wg0"]) == {
        "net|link0|rx_bytes": 1131903983,
        "net|link0|rx_packets": 1028326,
        "net|link0|rx_dropped": 2,
        "net|link0|tx_bytes": 1062252999,
        "net|link0|tx_packets": 998175,
        "net|link0|tx_dropped": 8,
    }
    assert sampler.network(["tun0"])["net|tun0|tx_dropped"] == 94


def test_protocols(files: Files) -> None:
    snmp = (
        "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
        "Tcp: RtoAlgorithm RtoMin InSegs OutSegs RetransSegs InErrs OutRsts\nTcp: 1 200 1208711 1183794 2802 0 33\n"
        "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 164424 9 4 178340 3 1\n"
        "UdpLite: InDatagrams RcvbufErrors\nUdpLite: 99 99\n"
    )
    netstat = (
        "TcpExt: SyncookiesSent TCPTimeouts TCPFastRetrans NewInThisKernel\nTcpExt: 0 35 2781 5\nIpExt: A\nIpExt: 1\n"
    )
    files({"/proc/net/snmp": snmp, "/proc/net/netstat": netstat})
    assert sampler.protocols() == {
        **{"Tcp|InSegs": 1208711, "Tcp|OutSegs": 1183794, "Tcp|RetransSegs": 2802, "Tcp|InErrs": 0},
        **{"Udp|InDatagrams": 164424, "Udp|InErrors": 4, "Udp|OutDatagrams": 178340},
        **{"Udp|RcvbufErrors": 3, "Udp|SndbufErrors": 1, "TcpExt|TCPTimeouts": 35, "TcpExt|TCPFastRetrans": 2781},
    }


def test_softnet(files: Files) -> None:
    files({"/proc/net/softnet_stat": "000003e8 00000002 0000000a 00000000\n000003e8 0000000f 00000001 00000000\n"})
    assert sampler.softnet() == {"softnet|dropped": 2 + 15, "softnet|squeezed": 10 + 1}


# processes


@pytest.mark.parametrize("name", ["redis-server", "tmux: server", "a) R 5 (b", "kworker/1:0-wg-crypt-wg0", "()", ")"])
def test_process_of_any_name(files: Files, name: str) -> None:
    files(stat(7, name, parent=3, user=41, system=8891, pages=1136))
    assert sampler.process(7) == (name, 3, 41, 8891, 1136)


def test_process_that_is_gone(files: Files) -> None:
    files({"/proc/8/stat": ""})
    assert sampler.process(7) is sampler.process(8) is None


def test_usage(files: Files) -> None:
    files(
        {**stat(9, "open|vpn", user=3, system=34, pages=1123), **stat(7, "redis-server", user=75, system=41, pages=8)}
    )
    assert sampler.usage({9: "tunnel.service", 7: "redis.service", 8: "gone.service"}) == {
        "process|redis.service|redis-server|7|user": 75,
        "process|redis.service|redis-server|7|system": 41,
        "process|redis.service|redis-server|7|rss_pages": 8,
        "process|tunnel.service|open_vpn|9|user": 3,
        "process|tunnel.service|open_vpn|9|system": 34,
        "process|tunnel.service|open_vpn|9|rss_pages": 1123,
    }


POD = "/libpod_parent/libpod-2eb5"
OWN = "tunnellab.slice/tunnellab-sampler.service"
V1_GROUPS = f"9:name=systemd:{POD}/{OWN}\n8:cpu,cpuacct:{POD}\n"
HYBRID = [
    f"89 87 0:29 {POD} /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu",
    f"95 87 0:35 {POD} /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd",
    "96 87 0:36 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate",
]
ROOT_MOUNT = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw"


@pytest.mark.parametrize(
    ("groups", "mounts", "directory"),
    [
        # version 2, in a namespace of its own
        (
            f"0::/{OWN}\n",
            ["30 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev - cgroup2 cgroup2 rw,nsdelegate"],
            "/sys/fs/cgroup",
        ),
        # version 2, where the mount's root is the container
        (f"0::{POD}/{OWN}\n", [f"30 24 0:26 {POD} /sys/fs/cgroup rw shared:4 - cgroup2 none rw"], "/sys/fs/cgroup"),
        # version 2, where what is above can be seen too
        (f"0::{POD}/{OWN}\n", ["30 24 0:26 / /sys/fs/cgroup rw - cgroup2 none rw"], f"/sys/fs/cgroup{POD}"),
        # version 1 and 2 side by side: systemd's own hierarchy has the unit
        (V1_GROUPS + f"0::{POD}/{OWN}\n", HYBRID, "/sys/fs/cgroup/systemd"),
        # the same, in a namespace whose paths begin at the container
        (f"9:name=systemd:/{OWN}\n0::/\n", HYBRID, "/sys/fs/cgroup/systemd"),
        # side by side, and only version 2 can be seen
        (V1_GROUPS + f"0::{POD}/{OWN}\n", [HYBRID[0], HYBRID[2]], f"/sys/fs/cgroup/unified{POD}"),
    ],
)
def test_directory_of_the_slice(files: Files, groups: str, mounts: list[str], directory: str) -> None:
    files(
        {
            "/proc/self/cgroup": groups,
            "/proc/self/mountinfo": "\n".join([ROOT_MOUNT, *mounts]),
            f"{directory}/{OWN}/cgroup.procs": f"1\n{os.getpid()}\n",
        }
    )
    found = sampler.Slice()
    assert (str(found.directory), found.own) == (f"{directory}/tunnellab.slice", "tunnellab-sampler.service")


def test_no_directory_of_the_slice(files: Files) -> None:
    files({"/proc/self/cgroup": V1_GROUPS, "/proc/self/mountinfo": "\n".join(HYBRID)})
    with pytest.raises(SystemExit, match="the cgroup of its own unit is not below"):
        sampler.Slice()


def a_slice(directory: Path, **units: list[int]) -> Any:
    """A slice of the tests with these units and their processes."""
    for unit, pids in units.items():
        (directory / f"{unit}.service").mkdir(parents=True)
        (directory / f"{unit}.service" / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
    (directory / "cgroup.procs").write_text("")
    found = sampler.Slice.__new__(sampler.Slice)
    found.directory, found.own = str(directory), "sampler.service"
    return found


def test_processes_of_the_slice_but_its_own(tmp_path: Path) -> None:
    found = a_slice(tmp_path, redis=[7, 8], openvpn=[9], idle=[], sampler=[4711])
    assert found.processes() == {7: "redis.service", 8: "redis.service", 9: "openvpn.service"}


# kernel threads


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, int]]:
    """Sample kernel threads {pid: (name, ticks)} of these moments; the time between two is 6 s."""
    clock = {"now": 100.0}
    found = None

    def sample(**seen: tuple[str, int]) -> dict[str, int]:
        nonlocal found
        table: dict[str, str] = {}
        for pid, (name, ticks) in seen.items():
            table |= stat(int(pid[1:]), name, parent=2, user=1, system=ticks - 1)
        table |= stat(50, "kworker/0:0-of-a-user", parent=1, user=1000)
        monkeypatch.setattr(sampler, "read", lambda path: table.get(str(path), ""))
        monkeypatch.setattr(sampler.os, "listdir", lambda path: ["self", "50", *(pid[1:] for pid in seen)])
        monkeypatch.setattr(sampler.time, "monotonic", lambda: clock["now"])
        clock["now"] += 6
        found = found or sampler.KernelThreads()
        return dict(found.sample())

    return sample


def test_kernel_threads_add_up_by_what_they_are(threads: Callable[..., dict[str, int]]) -> None:
    first = threads(
        p10=("ksoftirqd/0", 100), p11=("ksoftirqd/1", 50), p12=("kworker/1:0-wg-crypt-wg0", 30), p13=("rcu_sched", 9)
    )
    assert first == {"kernel|ksoftirqd|cpu": 0, "kernel|wg-crypt-wg0|cpu": 0}, "what came before does not count"
    assert threads(p10=("ksoftirqd/0", 110), p11=("ksoftirqd/1", 53), p12=("kworker/1:0-wg-crypt-wg0", 37)) == {
        "kernel|ksoftirqd|cpu": 13,
        "kernel|wg-crypt-wg0|cpu": 7,
    }


def test_worker_is_counted_under_what_it_works_on(threads: Callable[..., dict[str, int]]) -> None:
    threads(p12=("kworker/1:0-wg-crypt-wg0", 30), p14=("kworker/u4:3", 5), p15=("kworker/0:1H-kblockd", 1))
    found = threads(p12=("kworker/1:0-events", 40), p14=("kworker/u4:3+flush-8:0", 6), p15=("kworker/0:1H-kblockd", 3))
    assert found == {
        **{"kernel|wg-crypt-wg0|cpu": 0, "kernel|kworker|cpu": 0, "kernel|kblockd|cpu": 2},
        **{"kernel|events|cpu": 10, "kernel|flush-8:0|cpu": 1},
    }


def test_kernel_threads_that_die_and_are_born(threads: Callable[..., dict[str, int]]) -> None:
    threads(p10=("napi/eth0-8193", 100), p11=("irq/24-virtio0", 10))
    assert threads(p10=("napi/eth0-8193", 120), p11=("irq/24-virtio0", 15)) == {
        "kernel|napi|cpu": 20,
        "kernel|irq|cpu": 5,
    }
    # one is gone, its ticks stay; another appears, and what it had does not count
    assert threads(p11=("irq/24-virtio0", 16), p16=("napi/eth0-8194", 70)) == {
        "kernel|napi|cpu": 20,
        "kernel|irq|cpu": 6,
    }
    assert threads(p11=("irq/24-virtio0", 16), p16=("napi/eth0-8194", 75))["kernel|napi|cpu"] == 25


# sockets and sensors


def test_sockets_of_the_slice_and_of_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = "skmem:(r0,rb131072,t0,tb131072,f0,w0,o0,bl0,d0)"
    lines = [
        f'tcp   ESTAB     0      0    10.99.0.1:1194  10.99.0.2:50780 users:(("openvpn",pid=9,fd=6)) {memory} cubic   ',
        f'tcp   ESTAB     0      0    10.0.0.1:22     10.0.0.9:50     users:(("sshd",pid=90,fd=6)) {memory} cubic',
        f'tcp   LISTEN    0      511  0.0.0.0:6379    *:*  users:(("a",pid=70,fd=8),("b",pid=7,fd=8)) {memory}',
        f"udp   UNCONN    0      0    0.0.0.0:51820   0.0.0.0:*   {memory}",
        "tcp   TIME-WAIT 0      0    10.99.0.1:1194  10.99.0.2:56606  timer:(timewait,8.324sec,0)",
        f"tcp   FIN-WAIT-1 0 5 10.99.0.1:5201 10.99.0.2:4 {memory}",
    ]

    def ran(argv: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        assert argv == ["ss", "-tunapimOH"]
        return subprocess.CompletedProcess(argv, 0, "\n".join(lines), "")

    monkeypatch.setattr(sampler.subprocess, "run", ran)
    text = sampler.sockets({7, 9})
    assert "  " not in text
    found = sockets.parse(text)
    assert [(each.state, each.local) for each in found] == [
        ("ESTAB", "10.99.0.1:1194"),
        ("LISTEN", "0.0.0.0:6379"),
        ("UNCONN", "0.0.0.0:51820"),
        ("FIN-WAIT-1", "10.99.0.1:5201"),
    ]


# the program


@pytest.fixture
def written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[Any]]:
    """Make a sampler over a slice of the tests, let it do something, and return what it wrote."""

    def let(do: Callable[[Any], Any], own: bool = False, quota: float | None = None) -> list[Any]:
        units = a_slice(tmp_path / "slice", work=[os.getpid()], sampler=[1])
        monkeypatch.setattr(sampler, "Slice", lambda: units)
        monkeypatch.setattr(sampler, "own_kernel", lambda: own)
        monkeypatch.setattr(sampler, "quota_cores", lambda: quota)
        monkeypatch.setattr(sampler, "sockets", lambda pids: f"of {sorted(pids)}")
        capsys.readouterr()
        do(sampler.Sampler(["lo"]))
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return let


def test_first_line_says_what_is_counted(written: Callable[..., list[Any]]) -> None:
    (line,) = written(lambda made: None, quota=0.1)
    assert line["meta"] == {
        "format": 1,
        "interval_s": 0.2,
        "ticks_per_s": os.sysconf("SC_CLK_TCK"),
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
        "cpus": os.cpu_count(),
        "quota_cores": 0.1,
        "kernel": "shared",
    }


@pytest.mark.parametrize("own", [True, False])
def test_rows_and_looks_can_be_read_back(written: Callable[..., list[Any]], own: bool) -> None:
    def do(made: Any) -> None:
        assert made.row() == {os.getpid()}
        made.look({7, 5})
        made.row()

    lines = written(do, own=own)
    meta, names, first, look, second = lines
    assert meta["meta"]["kernel"] == ("own" if own else "shared")
    assert names[0] == "at"
    assert len(first) == len(second) == len(names)
    assert (look["sockets"], set(look)) == ("of [5, 7]", {"at", "sockets", "cpu_khz", "temperature_millic"})
    read = samples.read("".join(json.dumps(line) + "\n" for line in lines))
    assert read
    mine = [name for name in read.names if name.startswith("process|work.service|") and name.endswith("|user")]
    assert len(mine) == 1
    assert read.rows[1].at >= read.looks[0].at >= read.rows[0].at
    assert "net|lo|rx_bytes" in read.names


def test_names_are_written_again_when_they_change(written: Callable[..., list[Any]], tmp_path: Path) -> None:
    def do(made: Any) -> None:
        made.row()
        made.row()
        (tmp_path / "slice" / "work.service" / "cgroup.procs").write_text("")
        made.row()
        made.row()

    kinds = ["meta" if isinstance(line, dict) else "names" if line[0] == "at" else "row" for line in written(do)]
    assert kinds == ["meta", "names", "row", "row", "names", "row", "row"]


def test_cost_is_the_cpu_time_of_what_was_done(written: Callable[..., list[Any]]) -> None:
    def do(made: Any) -> None:
        spent, returned = made.cost(sum, range(1000))
        assert returned == 499500
        assert 0 <= spent < 1

    written(do)


DRIVER = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("sampler", {str(PROGRAM)!r})
sampler = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sampler)
class Slice:
    def processes(self):
        return {{}}
sampler.Slice = Slice
sampler.sockets = lambda pids: ""
sys.argv = ["sampler.py", "--interfaces", "lo,missing"]
sampler.main()
"""


def test_program_samples_until_it_is_told_to_end() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as ran:
        assert ran.stdout is not None
        begun = [ran.stdout.readline() for _ in range(6)]
        ran.send_signal(signal.SIGTERM)
        rest, errors = ran.communicate(timeout=20)
    assert (ran.returncode, errors) == (0, "")
    read = samples.read("".join(begun) + rest)
    assert len(read.rows) >= 3
    assert len(read.looks) >= 1
    apart = [second.at - first.at for first, second in zip(read.rows, read.rows[1:-1], strict=False)]
    assert min(apart) >= 0.19, "only the last comes when the signal does"
    assert read.rise("sampler|cpu_us", read.rows[0].at, read.rows[-1].at) > 0
