"""What a repeat used, by arithmetic on ticks, nanoseconds and pages."""

from __future__ import annotations

from typing import Any

import pytest
from builders import COMMAND_S, START
from sampled import BEGUN_S, HERTZ, Side, flow_of, machine, measured, process, quota, sampled, steady

from tunnel_lab import flow, samples, usage
from tunnel_lab.usage import Cpu

TUNNEL = "tunnellab-openvpn@x.service"
OWN = {"kernel": "own"}


def cpu(side: Side, start: float = 0.0, end: float = COMMAND_S) -> Cpu:
    """What a host used between two times of the command."""
    return usage.cpu(samples.read(side.text()), (START.timestamp() + start, START.timestamp() + end))


def columns(side: Side, bit_s: float = 28e6, **cell: Any) -> dict[str, Any]:
    """The columns of the server."""
    found = usage.columns(flow_of(sampled(side, **cell), bit_s))
    return {name.removeprefix("server."): value for name, value in found.items() if name.startswith("server.")}


# cpu


def test_split_adds_up_to_one() -> None:
    used = {"user": 0.5, "nice": 0.1, "system": 0.3, "iowait": 0.2, "irq": 0.05, "softirq": 0.15, "steal": 0.1}
    found = cpu(Side(machine(cpus=2, **used)))
    assert sum(found.split.values()) == pytest.approx(1)
    for kind, cores in used.items():
        assert found.split[kind] == pytest.approx(cores / 2, abs=0.001)
    assert found.split["idle"] == pytest.approx(0.6 / 2, abs=0.001)
    # not idle: 2 - 0.6 - 0.2 of iowait, steal is not idle
    assert found.machine == pytest.approx(1.2 / 2, abs=0.001)
    assert found.softirq == pytest.approx(0.15, abs=0.001)


def test_cores_of_a_host_that_is_the_machine() -> None:
    found = cpu(Side(machine(user=0.5, system=0.3, softirq=0.1, iowait=0.4, steal=0.2), meta=OWN))
    assert found.cores == pytest.approx(0.9, abs=0.001)


def test_cores_of_a_host_that_shares_its_machine_are_its_cgroups() -> None:
    assert cpu(Side({**machine(user=1.5), **quota(0, 0, 0.25)})).cores == pytest.approx(0.25)


@pytest.mark.parametrize("counters", [machine(user=0.5), {**machine(user=1.5), **quota(0, 0, 0.5)}])
def test_the_sampler_is_taken_out(counters: dict[str, Any]) -> None:
    found = cpu(Side({**counters, "sampler|cpu_us": steady(0.02 * 1e6)}))
    assert found.sampler == pytest.approx(0.02)
    assert found.cores == pytest.approx(0.48, abs=0.001)


def test_less_than_the_sampler_is_nothing() -> None:
    assert cpu(Side({**quota(0, 0, 0.001), "sampler|cpu_us": steady(0.02 * 1e6)})).cores == 0


def test_quota() -> None:
    found = cpu(Side(quota(periods=10, throttled=4, cores=0.1), meta={"quota_cores": 0.1}))
    assert found.quota == 0.1
    assert found.throttled == pytest.approx(0.4)
    without = cpu(Side(machine()))
    assert (without.quota, without.throttled) == (None, 0)


def test_processes() -> None:
    found = cpu(Side({**process("openvpn", 0.4, TUNNEL, pid=9), **process("redis-server", 0.1)}))
    assert [(each.unit, each.name) for each in found.processes] == [
        (TUNNEL, "openvpn[9]"),
        ("work.service", "redis-server[7]"),
    ]
    assert [each.cores for each in found.processes] == pytest.approx([0.4, 0.1])


def test_process_that_began_in_mid_run() -> None:
    late = {"process|s|iperf|9|user": steady(HERTZ * 0.5, start=3, base=0), "process|s|iperf|9|system": steady(0)}
    assert cpu(Side(late)).processes[0].cores == pytest.approx(0.25)


def test_kernel_threads() -> None:
    found = cpu(Side({**machine(system=0.5), "kernel|wg-crypt-wg0|cpu": steady(HERTZ * 0.3)}, meta=OWN))
    assert [(each.unit, each.name) for each in found.processes] == [("", "kernel thread wg-crypt-wg0")]
    assert found.processes[0].cores == pytest.approx(0.3)


def test_only_what_lies_between_the_times_counts() -> None:
    side = Side({**process("a", 0.5), **quota(0, 0, 0.5)})
    for start, end, cores in ((1, 4, 0.5), (-1, 1, 0.25), (-1, 0, 0)):
        found = cpu(side, start, end)
        assert (found.cores, found.processes[0].cores) == pytest.approx((cores, cores), abs=0.001)


def test_time_outside_of_the_samples_used_nothing() -> None:
    found = cpu(Side({**machine(user=1.5), **process("a", 0.5)}, meta=OWN), 100, 106)
    assert (found.cores, found.machine, found.softirq, found.processes[0].cores) == (0, 0, 0, 0)


# columns


def test_cpu_seconds_per_gigabyte() -> None:
    # 2 CPU seconds for half a gigabyte are 4; of them the tunnel 1.2: 2.4
    side = Side(
        {**quota(0, 0, 2 / COMMAND_S), **process("openvpn", 1.2 / COMMAND_S, TUNNEL, pid=9), **process("iperf3", 0.1)}
    )
    found = columns(side, bit_s=0.5e9 * 8 / COMMAND_S, tunnel_units={"server": TUNNEL})
    assert found["cpu_cores"] == pytest.approx(1 / 3, abs=0.001)
    assert found["cpu_s_per_gb"] == pytest.approx(4, rel=0.001)
    assert found["tunnel_cpu_cores"] == pytest.approx(0.2, abs=0.001)
    assert found["tunnel_cpu_s_per_gb"] == pytest.approx(2.4, rel=0.01)
    assert (found["busiest_process"], found["busiest_process_cores"]) == ("openvpn[9]", pytest.approx(0.2, abs=0.002))


def test_cpu_is_shared_out_over_all_that_was_carried() -> None:
    made = sampled(Side(quota(0, 0, 2 / COMMAND_S)))
    measurement = measured(0.25e9 * 8 / COMMAND_S).model_copy(update={"carried_bytes": 500_000_000})
    found = flow.flow(made, measurement)
    assert found is not None
    assert usage.columns(found)["server.cpu_s_per_gb"] == pytest.approx(4, rel=0.001)


def test_hosts_have_columns_of_their_own() -> None:
    found = usage.columns(flow_of(sampled(Side(quota(0, 0, 0.5)), Side(quota(0, 0, 0.25)))))
    assert (found["server.cpu_cores"], found["client.cpu_cores"]) == pytest.approx((0.5, 0.25))
    assert {name.partition(".")[0] for name in found} == {"server", "client"}


def test_host_without_a_tunnel_has_no_figures_of_one() -> None:
    found = columns(Side(process("iperf3", 0.1)))
    names = ("tunnel_cpu_cores", "tunnel_cpu_s_per_gb", "tunnel_rss_bytes", "tunnel_dropped")
    assert [found[name] for name in names] == [None] * 4


def test_host_without_processes() -> None:
    found = columns(Side())
    assert (found["busiest_process"], found["busiest_process_cores"]) == (None, None)


def test_tunnel_in_the_kernel_is_no_process_of_its_unit() -> None:
    side = Side({**machine(system=0.4), "kernel|wg-crypt-wg0|cpu": steady(HERTZ * 0.3)}, meta=OWN)
    found = columns(side, tunnel_units={"server": TUNNEL})
    assert (found["busiest_process"], found["tunnel_cpu_cores"]) == ("kernel thread wg-crypt-wg0", None)


@pytest.mark.parametrize(("kernel", "of"), [("own", "host"), ("shared", "machine")])
def test_whose_the_split_is(kernel: str, of: str) -> None:
    found = columns(Side(machine(user=0.5, nice=0.1, softirq=0.4, iowait=0.2), meta={"kernel": kernel}))
    assert found["cpu_split_of"] == of
    shares = [
        name for name in found if name.startswith("cpu_") and name.endswith("_share") and name != "cpu_throttled_share"
    ]
    assert len(shares) == 6
    assert sum(found[name] for name in shares) == pytest.approx(1)
    assert (found["cpu_user_share"], found["cpu_softirq_share"], found["cpu_idle_share"]) == pytest.approx(
        (0.3, 0.2, 0.5), abs=0.001
    )


def test_idle_baseline_is_before_the_command() -> None:
    idle = {**quota(0, 0, 0), "host|cpu_ns": lambda at: 0.05e9 * (at - BEGUN_S) + steady(0.4e9, base=0)(at)}
    found = columns(Side(idle))
    assert found["idle_cpu_cores"] == pytest.approx(0.05, abs=0.001)
    assert found["cpu_cores"] == pytest.approx(0.45, abs=0.001)


def test_no_baseline_when_the_command_begins_at_once() -> None:
    made = sampled()
    late = made.after["server"].model_copy(update={"samples": Side().text(begun=-0.2)})
    found = usage.columns(flow_of(made.model_copy(update={"after": {**made.after, "server": late}})))
    assert (found["server.idle_cpu_cores"], found["client.idle_cpu_cores"]) == (None, 0)


def test_most_memory_of_the_tunnels_processes_together() -> None:
    first = process("openvpn", 0.1, TUNNEL, pid=9)
    first[f"process|{TUNNEL}|openvpn|9|rss_pages"] = lambda at: 1000 if 2 < at < 3 else 500
    second = process("helper", 0.1, TUNNEL, pid=10, pages=50)
    other = process("redis-server", 0.1, pages=90_000)
    found = columns(Side({**first, **second, **other}), tunnel_units={"server": TUNNEL})
    assert found["tunnel_rss_bytes"] == 1050 * 4096


def test_counters_of_the_command() -> None:
    names = ("Tcp|RetransSegs", "Udp|RcvbufErrors", "Udp|SndbufErrors", "softnet|dropped", "net|tun0|tx_dropped")
    counters = {name: steady(10 * place) for place, name in enumerate(names, start=1)}
    found = columns(Side(dict(counters)), interface="tun0")
    columns_ = ("tcp_retransmits", "udp_rcvbuf_errors", "udp_sndbuf_errors", "softnet_dropped", "tunnel_dropped")
    assert [found[name] for name in columns_] == [60, 120, 180, 240, 300]


def test_sensors() -> None:
    made = sampled()
    told = made.after["server"].samples.replace('"cpu_khz": []', '"cpu_khz": [2000000, 3000000]')
    told = told.replace('"temperature_millic": {}', '"temperature_millic": {"zone0": 41000, "zone1": 52500}')
    seen = made.after["server"].model_copy(update={"samples": told})
    found = usage.columns(flow_of(made.model_copy(update={"after": {**made.after, "server": seen}})))
    assert (found["server.cpu_mhz"], found["server.temperature_c"]) == (2500, 52.5)
    assert (found["client.cpu_mhz"], found["client.temperature_c"]) == (None, None)


# drops


def test_drops_by_place() -> None:
    server = Side({"Udp|SndbufErrors": steady(1), "net|tun0|tx_dropped": steady(2), "softnet|dropped": steady(0)})
    client = Side({"Udp|RcvbufErrors": steady(3), "softnet|dropped": steady(4)})
    made = sampled(server, client, emulator={"dropped_queue": 5, "dropped_loss": 6}, interface="tun0")
    assert usage.drops(flow_of(made)) == pytest.approx(
        {
            "frames by the full queue of the link": 5,
            "frames by the link's random loss": 6,
            "datagrams by full send buffers of the server's UDP sockets": 6,
            "packets by the queue of the server's tun0": 12,
            "datagrams by full receive buffers of the client's UDP sockets": 18,
            "packets by the full backlog of the client's machine": 24,
        }
    )


def test_no_drops() -> None:
    made = sampled(interface="tun0")
    assert usage.drops(flow_of(made)) == {}
    netem = made.link.model_copy(
        update={"before": {"emulator": "netem", "tc": ""}, "after": {"emulator": "netem", "tc": ""}}
    )
    assert usage.drops(flow_of(made.model_copy(update={"link": netem}))) == {}


def test_drops_of_the_other_direction_are_not_this_ones() -> None:
    made = sampled(emulator={"dropped_queue": 5})
    turned = {"directions": {"client_to_server": {"dropped_queue": 9}}}
    link = made.link.model_copy(update={"before": {}, "after": turned})
    assert usage.drops(flow_of(made.model_copy(update={"link": link}))) == {}
