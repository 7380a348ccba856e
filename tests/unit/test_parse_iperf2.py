"""iperf 2: the server's own report of this repeat in real output, and every reason to refuse one."""

from __future__ import annotations

import pytest
from builders import command, fixture, parse, record, refused, swap

from tunnel_lab.records import Command, Record

UNIT = "tunnellab-iperf2.service"


def read(name: str) -> str:
    return fixture("iperf2", f"{name}.txt")


def made(client: str | Command, before: str, after: str, duration_s: float = 3) -> Record:
    run = client if isinstance(client, Command) else command("client_to_server", client)
    return record("iperf2", {"duration_s": duration_s}, run, before={UNIT: before}, after={UNIT: after})


def captured(name: str, duration_s: float) -> Record:
    return made(read(f"{name}.client"), read(f"{name}.server_before"), read(f"{name}.server_after"), duration_s)


CLIENT, BEFORE, AFTER = (read(f"direct.{part}") for part in ("client", "server_before", "server_after"))


def test_takes_what_the_server_reports() -> None:
    [got] = parse(captured("direct", 3))
    # [  1] 0.0000-3.2160 sec  15204416 Bytes  37821413 bits/sec
    assert (got.direction, got.payload_bytes, got.duration_s) == ("client_to_server", 15204416, 3.216)
    assert got.goodput_bit_s == pytest.approx(15204416 * 8 / 3.216)
    assert got.extra == {
        "iperf2_server_version": "2.2.1",
        "iperf2_client_version": "2.2.1-rc",
        "iperf2_client_bit_s": 37722498,
        "iperf2_client_duration_s": 3.2245,
        "iperf2_sent_bytes": 15204416,
    }


def test_counts_the_time_until_the_tunnel_was_empty() -> None:
    [got] = parse(captured("ssh", 2))
    # the client was done after 4.3642 s, the server saw the last byte after 5.2054 s; its log also holds
    # the report of an earlier repeat and a connection that was only looked at
    assert (got.payload_bytes, got.duration_s) == (1614584, 5.2054)
    assert got.extra["iperf2_client_bit_s"] == 2959691


def test_reads_large_figures_and_an_older_version() -> None:
    [fast] = parse(captured("fast", 2))
    assert (fast.payload_bytes, fast.duration_s) == (4499439680, 2.0015)
    [old] = parse(captured("v2_1_8", 2))
    assert (old.payload_bytes, old.extra["iperf2_server_version"]) == (5075894332, "2.1.8")
    assert old.extra["iperf2_client_version"] == "2.1.8"


def test_reads_a_client_without_intervals() -> None:
    lines = [line for line in CLIENT.splitlines() if ".0000 sec" not in line]
    [got] = parse(made("\n".join(lines), BEFORE, AFTER))
    assert got.extra["iperf2_sent_bytes"] == 15204416


def test_names_a_refused_connection_although_iperf_exits_with_0() -> None:
    run = command("client_to_server", read("refused.client"), read("refused.client.stderr"))
    refused(made(run, BEFORE, AFTER), "client: .*Connection refused")


def test_refuses_a_client_that_failed() -> None:
    failed = command("client_to_server", CLIENT, rc=1)
    refused(made(failed, BEFORE, AFTER), "client_to_server: exit status 1")
    late = command("client_to_server", CLIENT, rc=None, timed_out=True)
    refused(made(late, BEFORE, AFTER), "client_to_server: no end")


def test_refuses_a_client_without_its_total() -> None:
    lines = CLIENT.splitlines()
    refused(made(read("refused.client"), BEFORE, AFTER), "client: its total is missing")
    refused(made("", BEFORE, AFTER), "client: its total is missing")
    total = lines.pop()
    assert "0.0000-3.2245" in total
    refused(made("\n".join(lines), BEFORE, AFTER), "client: its total is missing; the last line is .*2.0000-3.0000")
    refused(made("\n".join(lines[:-2]), BEFORE, AFTER), "client: measured 1.0 s, asked were 3 s")


def test_refuses_a_server_that_has_not_reported() -> None:
    given = made(read("ssh.client"), read("ssh.server_before"), read("unfinished.server_after"), 2)
    refused(given, "server: no report instead of one")
    refused(made(CLIENT, BEFORE, AFTER[: AFTER.index("15204416 B")]), "server: no report instead of one")
    refused(made(CLIENT, BEFORE, BEFORE), "server: no connection instead of one")


def test_refuses_a_connection_that_broke() -> None:
    before, after = read("killed.server_before"), read("killed.server_after")
    refused(made(CLIENT, before, after), r"server: \[  5\] tcp recv failed: Connection reset by peer")


def test_refuses_more_than_one_connection() -> None:
    refused(made(CLIENT, BEFORE, read("fast.server_after")), "server: 3 connections instead of one")
    second = [line for line in read("fast.server_after").splitlines() if line.startswith("[  3] 0")]
    refused(made(CLIENT, BEFORE, "\n".join([AFTER.rstrip(), *second])), "server: 2 reports instead of one")


def test_refuses_a_report_of_another_connection() -> None:
    refused(made(CLIENT, BEFORE, swap(AFTER, "[  1] 0.0000", "[  2] 0.0000")), r"report is of \[2\]")
    refused(made(CLIENT, BEFORE, swap(AFTER, "0.0000-3", "1.0000-3")), r"from 1\.0 s")


def test_refuses_figures_with_prefixes() -> None:
    refused(made(read("human.client"), BEFORE, AFTER, 1), "client: figures in GBytes and Gbits/sec")
    start, report = read("human.server").rsplit("[ ID]", 1)
    given = made(CLIENT, start[: start.index("[  1]")], start + "[ ID]" + report)
    refused(given, "server: figures in GBytes and Gbits/sec")
    refused(made(CLIENT, BEFORE, swap(AFTER, "15204416 Bytes", "15204.4 Bytes")), "'15204.4' is not a whole number")


def test_refuses_figures_that_contradict_each_other() -> None:
    # 15204416 * 8 / 3.2160 is 37821930; the time is rounded to 0.1 ms, so 600 bit/s either way are rounding
    for rate in (37821930 - 700, 37821930 + 700):
        text = swap(AFTER, "37821413", str(rate))
        refused(made(CLIENT, BEFORE, text), "server: 15204416 bytes in 3.216 s are 37821930 bit/s")
    refused(made(swap(CLIENT, "37722498", "37822498"), BEFORE, AFTER), "client: 15204416 bytes in 3.2245 s")


def test_refuses_other_bytes_than_were_sent() -> None:
    block = 131072
    for missing, fine in ((0, True), (block, True), (block + 1, False), (-1, False)):
        size = 15204416 - missing
        rate = round(size * 8 / 3.21604)
        text = swap(swap(AFTER, "15204416", str(size)), "37821413", str(rate))
        given = made(CLIENT, BEFORE, text)
        if fine:
            assert parse(given)[0].payload_bytes == size
        else:
            refused(given, f"server: got {size} bytes, the client sent 15204416")
    refused(made(swap(CLIENT, "Write buffer size", "Write size"), BEFORE, AFTER), "write buffer's size")


def test_refuses_a_test_that_ended_early() -> None:
    refused(made(CLIENT, BEFORE, AFTER, duration_s=4), r"client: measured 3\.2245 s, asked were 4 s")
    short = swap(swap(AFTER, "0.0000-3.2160", "0.0000-2.4000"), "37821413", str(round(15204416 * 8 / 2.4)))
    refused(made(CLIENT, BEFORE, short), r"server: measured 2\.4 s, asked were 3 s")


def test_refuses_a_transfer_of_nothing() -> None:
    zero = swap(swap(AFTER, "15204416 Bytes", "0.000 Bytes"), "37821413 bits", "0.000 bits")
    refused(made(CLIENT, BEFORE, zero), "server: nothing was transferred")


def test_refuses_unknown_versions() -> None:
    header = "iperf version 2.2.1"
    for version, because in (("iperf version 3.1", "iperf version 3.1; only"), ("iperf x", "version unknown")):
        given = made(CLIENT, swap(BEFORE, header, version), swap(AFTER, header, version))
        refused(given, because)
    refused(made(CLIENT, BEFORE, swap(AFTER, "(peer 2.2.1-rc) ", "")), "client is not known to be iperf 2")
    refused(made(CLIENT, BEFORE, swap(AFTER, "(peer 2.2.1-rc)", "(peer 3.1)")), "client is not known to be iperf 2")


def test_refuses_a_log_that_is_missing_or_begins_anew() -> None:
    refused(made(CLIENT, BEFORE, ""), "no log of tunnellab-iperf2.service from after")
    refused(made(CLIENT, "", AFTER), "no log of tunnellab-iperf2.service from before")
    refused(made(CLIENT, swap(BEFORE, "pid 944", "pid 900"), AFTER), "was it restarted")
    bare = record("iperf2", {"duration_s": 3}, command("client_to_server", CLIENT))
    refused(bare.model_copy(update={"after": {}}), "no log of")
