"""iperf3: the receiver's figures of real output, and every reason to refuse one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from builders import captured, command, fixture, parse, record, refused

from tunnel_lab.records import Record

DOWN, UP = "server_to_client.json", "client_to_server.json"
Change = Callable[[Any], object]


def made(down: str = DOWN, up: str = UP, duration_s: float = 3, rc: int = 0) -> Record:
    """A record of two files of captured output, or of texts that begin with a brace."""
    texts = [text if text.startswith("{") or not text else fixture("iperf3", text) for text in (down, up)]
    return record(
        "iperf3",
        {"duration_s": duration_s, "omit_s": 0},
        command("server_to_client", texts[0]),
        command("client_to_server", texts[1], rc=rc),
    )


def changed(name: str, change: Change) -> str:
    """Captured output with one thing changed."""
    data = json.loads(fixture("iperf3", name))
    change(data)
    return json.dumps(data)


def test_takes_what_the_receiver_counted() -> None:
    down, up = parse(made())
    assert (down.direction, up.direction) == ("server_to_client", "client_to_server")
    # end.sum_received of both files
    assert (down.payload_bytes, down.duration_s) == (14155776, 3.000878)
    assert (up.payload_bytes, up.duration_s) == (14155776, 3.007064)
    assert down.goodput_bit_s == pytest.approx(113246208 / 3.000878)
    assert up.goodput_bit_s == pytest.approx(37660059.11)
    assert up.extra == {
        "iperf3_version": "iperf 3.18",
        "iperf3_retransmits": 0,
        "iperf3_sent_bytes": 14942208,
        "iperf3_sender_congestion": "bbr",
        "iperf3_receiver_congestion": "bbr",
    }


def test_reads_an_older_version() -> None:
    down, up = parse(made("v3_12_server_to_client.json", "v3_12_client_to_server.json", 2))
    assert (down.payload_bytes, down.extra["iperf3_version"]) == (2578972672, "iperf 3.12")
    assert (up.payload_bytes, up.extra["iperf3_retransmits"]) == (5303173120, 2)


def test_counts_the_time_that_the_end_queued_behind_the_data() -> None:
    down, up = parse(made("ssh_server_to_client.json", "ssh_client_to_server.json", 2))
    assert down.duration_s == 2.000641
    # asked for 2 s, 3 blocks of 128 KiB arrived in 3.3 s
    assert (up.payload_bytes, up.duration_s) == (3 * 131072, 3.319888)


@pytest.mark.parametrize(
    ("name", "because"),
    [
        ("busy.json", "client_to_server: iperf3: the server is busy running a test"),
        ("refused.json", "client_to_server: iperf3: unable to connect to server.*Connection refused"),
        ("server_killed.json", "client_to_server: iperf3: control socket has closed unexpectedly"),
    ],
)
def test_names_the_error_that_iperf3_gives(name: str, because: str) -> None:
    for rc in (0, 1):
        refused(made(up=name, rc=rc), because)


def test_refuses_json_that_is_cut_off() -> None:
    text = fixture("iperf3", UP)
    for length in (len(text) // 2, len(text) - 3):
        refused(made(up=text[:length]), rf"not complete \({length} characters\)")
    refused(made(up=""), r"not complete \(0 characters\)")


def test_refuses_a_direction_that_failed_or_is_missing() -> None:
    good = command("server_to_client", fixture("iperf3", DOWN))
    late = command("client_to_server", "", rc=None, timed_out=True)
    refused(record("iperf3", {"duration_s": 3, "omit_s": 0}, good, late), "client_to_server: no end")
    refused(record("iperf3", {"duration_s": 3, "omit_s": 0}, good), "client_to_server: was not run")


def set_in(path: str, value: Any) -> Change:
    """Return a change of one value, `path` with dots."""
    *parents, last = path.split(".")

    def change(data: Any) -> None:
        for key in parents:
            data = data[int(key)] if key.isdigit() else data[key]
        data[last] = value

    return change


def drop_interval(data: Any) -> None:
    """Lose the second of three intervals."""
    del data["intervals"][1]


def drop_last_interval(data: Any) -> None:
    """Lose the last of three intervals."""
    data["intervals"].pop()


@pytest.mark.parametrize(
    ("change", "because"),
    [
        (set_in("start.version", "iperf 4.0"), "'iperf 4.0'; only that of iperf 3.x"),
        (set_in("start.version", None), "None; only that of iperf 3.x"),
        (set_in("end.sum_received", None), "end.sum_received"),
        (set_in("intervals", []), "intervals: .*at least 1"),
        (set_in("start.test_start.reverse", 1), "client_to_server: .*reverse=1"),
        (set_in("start.test_start.bidir", 1), "bidir=1"),
        (set_in("start.test_start.duration", 10), "asked for 10 s.* instead of 3 s"),
        (set_in("start.test_start.omit", 1), "asked for 3 s after 1 s that do not count, instead of 3 s after 0 s"),
        (set_in("start.test_start.protocol", "UDP"), "1 streams of UDP"),
        (set_in("start.test_start.num_streams", 4), "4 streams of TCP"),
        (set_in("end.sum_received.seconds", 2.4), "2.400 s, asked were 3 s"),
        (set_in("end.sum_received.seconds", 13.1), "13.100 s, asked were 3 s"),
        (set_in("end.sum_received.bits_per_second", 37660059 * 1.002), "14155776 bytes in 3.007064 s"),
        (set_in("end.sum_received.bits_per_second", 37660059 * 0.998), "14155776 bytes in 3.007064 s"),
        (set_in("end.sum_sent.bytes", 14155775), "14155776 bytes were received of 14155775"),
        (set_in("end.sum_sent.bytes", 2 * 14942208), "add up to 14942208 bytes, the total is 29884416"),
        (drop_interval, "do not cover 3 s"),
        (drop_last_interval, "do not cover 3 s"),
        (set_in("intervals.0.sum.start", 0.5), "do not cover 3 s"),
    ],
)
def test_refuses(change: Change, because: str) -> None:
    refused(made(up=changed(UP, change)), because)


def test_refuses_a_transfer_of_nothing() -> None:
    def nothing(data: Any) -> None:
        data["end"]["sum_received"].update(bytes=0, bits_per_second=0)

    refused(made(up=changed(UP, nothing)), "0 bytes were received")


def test_adds_up_the_intervals_of_the_receiver_when_that_is_the_client() -> None:
    refused(made(down=changed(DOWN, set_in("intervals.0.sum.bytes", 4587520 * 2))), "the total is 14155776")


def test_refuses_directions_that_were_exchanged() -> None:
    refused(made(UP, DOWN), "server_to_client: iperf3 ran with reverse=0")


def test_refuses_json_that_is_not_an_object() -> None:
    given = record("iperf3", {"duration_s": 3, "omit_s": 0}, command("server_to_client", "[1]"))
    refused(given, "server_to_client: output of None")


def test_accepts_the_allowed_slack() -> None:
    def short(data: Any) -> None:
        received = data["end"]["sum_received"]
        received.update(seconds=2.5, bits_per_second=received["bytes"] * 8 / 2.5)

    assert parse(made(up=changed(UP, short)))[1].duration_s == 2.5


def without_slow_start(down: Change | None = None, up: Change | None = None, omit_s: int = 3) -> Record:
    """A record of 10 s that count after 3 s that do not, over the bare link."""
    texts = []
    for name, change in (("server_to_client", down), ("client_to_server", up)):
        data = json.loads(captured(f"iperf3.omit.{name}.json"))
        if change:
            change(data)
        texts.append(command(name, json.dumps(data)))
    return record("iperf3", {"duration_s": 10, "omit_s": omit_s}, *texts)


def omit(*which: int) -> Change:
    """Return a change that makes only these intervals omitted ones."""

    def change(data: Any) -> None:
        for number, interval in enumerate(data["intervals"]):
            interval["sum"]["omitted"] = number in which

    return change


def test_omitted_seconds_do_not_count() -> None:
    down, up = parse(without_slow_start())
    assert (down.payload_bytes, down.duration_s) == (119537664, 9.999968)
    # 1048576 bytes more than were sent meanwhile: they were under way when the count began
    assert (up.payload_bytes, up.duration_s, up.extra["iperf3_sent_bytes"]) == (121110528, 10.137733, 120061952)
    assert up.goodput_bit_s == pytest.approx(95572079.48)


def test_interval_that_iperf3_does_not_report_is_no_gap() -> None:
    """Captured: the third omitted interval is missing, the first that counts goes from 0.999 to 1.001 s."""
    text = captured("iperf3.omit.unreported.json")
    up = without_slow_start().commands[1]
    down, _ = parse(record("iperf3", {"duration_s": 10, "omit_s": 3}, command("server_to_client", text), up))
    assert (down.payload_bytes, down.duration_s) == (115212288, 9.999984)


def test_no_more_arrives_than_was_sent_and_under_way() -> None:
    under_way = 9175040 + 10092544 + 13631488

    def received(more: int) -> Change:
        def change(data: Any) -> None:
            end = data["end"]["sum_received"]
            end["bytes"] = 120061952 + under_way + more
            end["bits_per_second"] = end["bytes"] * 8 / end["seconds"]

        return change

    assert parse(without_slow_start(up=received(0)))[1].payload_bytes == 120061952 + under_way
    refused(without_slow_start(up=received(1)), "bytes were received of 120061952 sent")


@pytest.mark.parametrize(
    ("which", "because"),
    [
        ((), "do not cover 10 s without a gap: 0.00-1.00, 1.00-2.00, 2.00-3.00, 0.00-1.00"),
        ((0, 1, 2, 3), "do not cover 10 s"),
        ((0, 1, 2, 7), "do not cover 10 s"),
        (range(13), "no interval counts, all are omitted"),
    ],
)
def test_intervals_that_count_are_those_after_the_omitted(which: Any, because: str) -> None:
    refused(without_slow_start(down=omit(*which)), f"server_to_client: .*{because}")


@pytest.mark.parametrize("omit_s", [0, 2, 4])
def test_other_omission_than_was_asked_for_is_refused(omit_s: int) -> None:
    refused(without_slow_start(omit_s=omit_s), f"after 3 s that do not count, instead of 10 s after {omit_s} s")
