"""Round trips: known answers by arithmetic, real reports, and every reason to refuse them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from builders import command, fixture, parse, record, refused

from tunnel_lab.parsing import Measurement
from tunnel_lab.records import Record

IDLE, DOWN, UP = PHASES = ("idle", "server_to_client", "client_to_server")
PARAMS = {"idle_s": 2, "bulk_s": 4, "omit_s": 1, "per_s": 20, "value_bytes": 1 << 20, "bulk_mbit": 0, "seed": 2016}
CLIENT, PROBE = "tunnellab-ssh@modern.service", "tunnellab-first-byte.service"
Change = Callable[[Any], object]


def captured(name: str) -> Any:
    return json.loads(fixture("latency", f"{name}.json"))


def made(*changes: tuple[str, Change], **reports: Any) -> Record:
    """A repeat of the captured reports, or of `reports`; changes are (phase, what to do to its report)."""
    reports = {name: reports[name] if name in reports else captured(name) for name in PHASES}
    for phase, change in changes:
        change(reports[phase])
    return record("latency", PARAMS, *(command(name, json.dumps(report)) for name, report in reports.items()))


def put(path: str, value: Any) -> Change:
    *parents, last = path.split("/")

    def change(data: Any) -> None:
        for key in parents:
            data = data[int(key) if isinstance(data, list) else key]
        data[int(last) if isinstance(data, list) else last] = value

    return change


def tunnel(log: str, units: dict[str, float] | None = None, when: str = "after") -> Record:
    """The repeat through a tunnel whose client's unit started at 1000 s, and what the early probe wrote."""
    it = made()
    cell = it.cell.model_copy(update={"tunnel_units": {"client": CLIENT}})
    looks = {"before": dict(it.before), "after": dict(it.after)}
    for name, look in looks.items():
        update = {"logs": {PROBE: log if name == when else ""}, "units": {CLIENT: 1000.0} if units is None else units}
        look["client"] = look["client"].model_copy(update=update)
    return it.model_copy(update={"cell": cell, **looks})


def report(phase: str, rtt_ms: list[float], unanswered: int = 0) -> Any:
    """A report with these round trips of probes that were sent when they were due."""
    data = captured(phase)
    data["rtt_ms"] = [[n / 20, rtt] for n, rtt in enumerate(rtt_ms)]
    data["unanswered"] = unanswered
    data["late_ms"] = {"max": 0, "mean": 0}
    return data


def extra(found: list[Measurement]) -> dict[str, Any]:
    return found[0].extra


def test_percentiles_are_those_of_the_nearest_rank() -> None:
    idle = random.Random(1).sample([n / 1000 for n in range(1, 41)], 40)
    # 20 before omit_s, which do not count, then 60: 1 ... 60
    loaded = [0.5] * 20 + random.Random(1).sample([1 + n / 1000 for n in range(1, 61)], 60)
    got = extra(parse(made(**{IDLE: report(IDLE, idle), DOWN: report(DOWN, loaded)})))
    # of 40: rank 20, 38, 39.6 -> 40; of 60: rank 30, 57, 59.4 -> 60
    assert [got[f"latency_idle_p{p}_ms"] for p in (50, 95, 99)] == [0.020, 0.038, 0.040]
    assert [got[f"latency_loaded_p{p}_ms"] for p in (50, 95, 99)] == [1.030, 1.057, 1.060]
    assert (got["latency_idle_n"], got["latency_loaded_n"]) == (40, 60)


def test_p99_of_140_is_the_139th() -> None:
    reports = {name: report(name, [1.0] * 20 + [1 + n / 1000 for n in range(1, 141)]) for name in (DOWN, UP)}
    for each in reports.values():
        each["asked"]["duration_s"], each["bulk"]["seconds"] = 8, 7
        each["bulk"]["per_s"] += [0] * 4
    commands = [command(IDLE, json.dumps(captured(IDLE)))]
    commands += [
        command(name, json.dumps(each)).model_copy(update={"elapsed_s": 9.0}) for name, each in reports.items()
    ]
    got = extra(parse(record("latency", {**PARAMS, "bulk_s": 8}, *commands)))
    assert (got["latency_loaded_n"], got["latency_loaded_p50_ms"], got["latency_loaded_p99_ms"]) == (140, 1.07, 1.139)


def test_unanswered_probes_are_slower_than_any_other() -> None:
    # 20 before omit_s, 50 answered and 10 not of the 60 after it: rank 30 is known, ranks 57 and 60 are not
    got = extra(parse(made(**{DOWN: report(DOWN, [1 + n / 1000 for n in range(70)], unanswered=10)})))
    assert [got[f"latency_loaded_p{p}_ms"] for p in (50, 95, 99)] == [1.049, None, None]
    assert got["latency_loaded_n"] == 50


def test_reads_real_reports() -> None:
    down, up = parse(made())
    # 3 whole seconds of server_to_client, and 10 values between acknowledgements of client_to_server
    assert (down.direction, down.payload_bytes, down.duration_s) == (DOWN, 3601529 + 3928932 + 3863449, 3)
    assert (up.direction, up.payload_bytes, up.duration_s) == (UP, 10 << 20, 2.83702)
    # all that arrived: also the first second, and after the end
    assert (down.carried_bytes, up.carried_bytes) == (11393910 + 3472073, 14 << 20)
    # what tbf lets through is 30 Mbit/s
    assert down.goodput_bit_s == pytest.approx(30e6, rel=0.02)
    assert up.goodput_bit_s == pytest.approx(30e6, rel=0.02)
    for got in (down, up):
        assert got.extra["latency_server_version"] == "8.0.2"
        assert got.extra["latency_tunnel_up_s"] is None
        assert got.extra["latency_idle_p50_ms"] == down.extra["latency_idle_p50_ms"] == pytest.approx(0.2, abs=0.05)
        # its queue of 300000 bytes is 80 ms long; on the loopback, a request passes it as well as its reply
        assert got.extra["latency_loaded_p50_ms"] == pytest.approx(110, abs=50)
    assert down.extra["latency_probe_late_ms"] == captured(DOWN)["late_ms"]["max"]
    assert set(down.extra) == set(up.extra)
    assert all(name.startswith("latency_") for name in down.extra)


def test_reads_a_throttled_report() -> None:
    changed = made((UP, put("asked/bulk_mbit", 8)), **{DOWN: captured("throttled")})
    cell = changed.cell.model_copy(update={"params": {**PARAMS, "bulk_mbit": 8}})
    down, _ = parse(changed.model_copy(update={"cell": cell}))
    assert down.goodput_bit_s == pytest.approx(8e6, rel=0.005)
    refused(made(**{DOWN: captured("throttled")}), "server_to_client: it ran with bulk_mbit 8, asked was 0")


FIRST = '{"first_pong_monotonic": 1001.25, "attempts": 3}\n'


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_tunnel_is_up_at_its_first_reply(when: str) -> None:
    assert extra(parse(tunnel(FIRST, when=when)))["latency_tunnel_up_s"] == 1.25


def test_real_first_byte_is_read() -> None:
    log = fixture("latency", "first_byte.json")
    started = json.loads(log)["first_pong_monotonic"] - 0.75
    assert extra(parse(tunnel(log, {CLIENT: started})))["latency_tunnel_up_s"] == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("log", "units", "because"),
    [
        ("", None, "first_byte: no reply is known: no output"),
        (fixture("latency", "first_byte_timeout.stderr.txt"), None, "no PING was answered within 2 s and 193 attempts"),
        (FIRST[:-9], None, "first_byte: the report is not complete JSON"),
        ("{}", None, "first_byte: first_pong_monotonic: Field required"),
        (FIRST, {}, f"first_byte: when {CLIENT} was started is not known"),
        (FIRST, {CLIENT: 0.0}, f"first_byte: when {CLIENT} was started is not known"),
        (FIRST, {CLIENT: 1002.0}, "first_byte: the first reply came 0.750 s before"),
        (FIRST, {CLIENT: 1001.25}, "first_byte: the first reply came"),
    ],
)
def test_refuses_a_first_byte(log: str, units: dict[str, float] | None, because: str) -> None:
    refused(tunnel(log, units), because)


@pytest.mark.parametrize(
    ("name", "because"),
    [
        ("refused", r"idle: exit status 1: latency: idle at .*: \[Errno 111\] Connection refused"),
        ("wrong_password", "idle: exit status 1: .*error reply: WRONGPASS"),
        ("killed", "idle: exit status 1: .*Connection reset by peer"),
    ],
)
def test_refuses_a_failure(name: str, because: str) -> None:
    refused(record("latency", PARAMS, command(IDLE, "", fixture("latency", f"{name}.stderr.txt"), rc=1)), because)


def test_refuses_a_server_that_stood_still() -> None:
    refused(made(**{DOWN: captured("stopped")}), "server_to_client: only 42 of 80 probes were answered")


@pytest.mark.parametrize("name", PHASES)
def test_refuses_a_report_that_is_missing_or_cut_off(name: str) -> None:
    it = made()
    left = [each for each in it.commands if each.name != name]
    refused(it.model_copy(update={"commands": left}), f"{name}: was not run")
    for text in ("", "{}", it.commands[PHASES.index(name)].stdout[:-3]):
        cut = [each.model_copy(update={"stdout": text}) if each.name == name else each for each in it.commands]
        refused(it.model_copy(update={"commands": cut}), f"{name}: ")


def test_refuses_a_command_that_ended_too_soon() -> None:
    it = made()
    commands = [each.model_copy(update={"elapsed_s": 3.9}) for each in it.commands]
    refused(it.model_copy(update={"commands": commands}), r"server_to_client: ended after 3\.9 s, asked were 4 s")


@pytest.mark.parametrize(
    ("phase", "path", "value", "because"),
    [
        (IDLE, "format", 2, "idle: format"),
        (IDLE, "phase", DOWN, "idle: this is the report of 'server_to_client'"),
        (UP, "phase", DOWN, "client_to_server: this is the report of 'server_to_client'"),
        (IDLE, "server_version", None, "idle: server_version"),
        (IDLE, "asked/duration_s", 3, "idle: it ran with duration_s 3, asked was 2"),
        (IDLE, "asked/omit_s", 1, "idle: it ran with omit_s 1, asked was 0"),
        (DOWN, "asked/duration_s", 5, "ran with duration_s 5, asked was 4"),
        (DOWN, "asked/omit_s", 0, "ran with omit_s 0, asked was 1"),
        (DOWN, "asked/per_s", 10, "ran with per_s 10, asked was 20"),
        (UP, "asked/value_bytes", 9, "ran with value_bytes 9, asked was 1048576"),
        (UP, "asked/seed", 1, "ran with seed 1, asked was 2016"),
        (IDLE, "rtt_ms", [], "idle: 0 probes answered and 0 not, but 40 were due"),
        (IDLE, "unanswered", 1, "idle: 40 probes answered and 1 not, but 40 were due"),
        (IDLE, "unanswered", -1, "idle: unanswered"),
        (IDLE, "rtt_ms/7/1", 0, "idle: probe 7 has a round trip of 0.0 ms"),
        (IDLE, "rtt_ms/7/1", -1, "idle: probe 7 has a round trip of -1.0 ms"),
        (IDLE, "rtt_ms/7/1", float("nan"), "idle: probe 7 has a round trip of nan ms"),
        (IDLE, "rtt_ms/7/1", float("inf"), "idle: probe 7 has a round trip of inf ms"),
        (IDLE, "rtt_ms/7/0", 0.34, r"idle: probe 7 was sent at 0\.34 s, due at 0\.35 s"),
        (IDLE, "rtt_ms/7/0", 0.39, r"idle: probe 7 was sent at 0\.39 s, due at 0\.35 s"),
        (IDLE, "rtt_ms/7/0", float("nan"), "idle: probe 7 was sent at nan s"),
        (IDLE, "rtt_ms/7/1", 99.0, "idle: replies came in another order"),
        (IDLE, "late_ms/max", -1, "idle: late_ms.max"),
        (DOWN, "bulk", None, "server_to_client: there was no transfer"),
        (DOWN, "bulk/bytes", 0, "server_to_client: bulk.bytes"),
        (DOWN, "bulk/bytes", 11393911, "server_to_client: the seconds add up to 14865983 bytes, the whole is 14865984"),
        (DOWN, "bulk/seconds", 2.5, "server_to_client: 2.5 s were counted, asked were 3 s"),
        (DOWN, "bulk/seconds", 0, "server_to_client: bulk.seconds"),
        (DOWN, "bulk/per_s", [1, 2, 3], "server_to_client: bytes of 3 seconds, asked were 4 s"),
        (DOWN, "bulk/per_s/0", -1, "server_to_client: bytes of 4 seconds"),
        (UP, "bulk/seconds", 1.4, "client_to_server: 1.4 s were counted, asked were 3 s .1.5 to 19 s are accepted"),
        (UP, "bulk/seconds", 19.5, "client_to_server: 19.5 s were counted"),
        (UP, "bulk/bytes", 10485759, "client_to_server: 10485759 bytes are not whole values of 1048576"),
        (UP, "bulk/bytes", 99 << 20, "client_to_server: the seconds add up to 13631488 bytes, the whole is"),
        (UP, "bulk/bytes", 1 << 20, "client_to_server: the seconds add up to 13631488 bytes, the whole is 5242880"),
    ],
)
def test_refuses_what_does_not_fit(phase: str, path: str, value: Any, because: str) -> None:
    refused(made((phase, put(path, value))), because)


def test_refuses_when_too_few_are_answered() -> None:
    assert parse(made(**{IDLE: report(IDLE, [0.1] * 32, unanswered=8)}))
    refused(made(**{IDLE: report(IDLE, [0.1] * 31, unanswered=9)}), "idle: only 31 of 40 probes were answered")
