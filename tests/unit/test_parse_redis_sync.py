"""Redis: duration, amount and phases from real logs, and every reason to refuse them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from builders import command, fixture, parse, record, refused, swap

from tunnel_lab.records import Record

PARAMS = {"dataset_bytes": 10_000_000, "value_bytes": 4096}
LAST_TIME = re.compile(r"\d\d \w{3} \d{4} \d\d:\d\d:\d\d\.\d{3}")
Change = Callable[[Any], object]


def made(name: str = "finished.json", change: Change | None = None, **params: int) -> Record:
    data = json.loads(fixture("redis_sync", name))
    if change:
        change(data)
    return record("redis_sync", {**PARAMS, **params}, command("server_to_client", json.dumps(data)))


def in_log(old: str, new: str) -> Change:
    def change(data: Any) -> None:
        data["replica_log"] = swap(data["replica_log"], old, new)

    return change


def set_in(path: str, value: Any) -> Change:
    *parents, last = path.split("/")

    def change(data: Any) -> None:
        for key in parents:
            data = data[key]
        data[last] = value

    return change


def info(side: str, when: str, key: str, value: str) -> Change:
    def change(data: Any) -> None:
        text, count = re.subn(rf"(?m)^{key}:.*?\r$", f"{key}:{value}\r", data[side][f"info_{when}"])
        assert count == 1
        data[side][f"info_{when}"] = text

    return change


def both(*changes: Change) -> Change:
    def change(data: Any) -> None:
        for each in changes:
            each(data)

    return change


def stamp(log: str, what: str) -> datetime:
    [line] = [line for line in log.splitlines() if what in line]
    found = LAST_TIME.search(line)
    assert found
    return datetime.strptime(found.group(), "%d %b %Y %H:%M:%S.%f")


def shift(log: str, by: timedelta, form: str = "%d %b %Y %H:%M:%S.%f") -> str:
    def moved(found: re.Match[str]) -> str:
        return (datetime.strptime(found.group(), "%d %b %Y %H:%M:%S.%f") + by).strftime(form)[:-3]

    return LAST_TIME.sub(moved, log)


def test_measures_from_started_to_finished() -> None:
    [got] = parse(made("v7_0_15.json"))
    # 16:06:02.622 started, .659 receiving 10049018 bytes, 16:06:05.490 flushing, 16:06:05.524 finished
    assert (got.direction, got.payload_bytes) == ("server_to_client", 10049018)
    assert got.duration_s == 2.902
    assert got.goodput_bit_s == pytest.approx(10049018 * 8 / 2.902)
    assert got.extra == {
        "redis_save_s": pytest.approx(0.037),
        "redis_transfer_s": pytest.approx(2.831),
        "redis_load_s": pytest.approx(0.034),
        "redis_transfer_goodput_bit_s": pytest.approx(10049018 * 8 / 2.831),
        "redis_keys": 2442,
        "redis_dataset_bytes": 10_000_000,
        "redis_version": "7.0.15",
        "redis_replica_version": "7.0.15",
    }


def test_phases_add_up_to_the_whole() -> None:
    [got] = parse(made())
    log = json.loads(fixture("redis_sync", "finished.json"))["replica_log"]
    whole = stamp(log, "Finished with success") - stamp(log, "sync started")
    phases = [got.extra[f"redis_{name}_s"] for name in ("save", "transfer", "load")]
    assert sum(float(phase or 0) for phase in phases) == pytest.approx(whole.total_seconds()) == got.duration_s
    assert got.extra["redis_transfer_s"] == (stamp(log, "Loading DB") - stamp(log, "receiving")).total_seconds()


@pytest.mark.parametrize("start", ["2026-11-30 23:59:59.500", "2026-12-31 23:59:58.001", "2028-02-28 23:59:59.999"])
@pytest.mark.parametrize("form", ["%d %b %Y %H:%M:%S.%f", "%d %b %H:%M:%S.%f"])
def test_midnight_and_new_year_do_not_matter(start: str, form: str) -> None:
    def late(data: Any) -> None:
        by = datetime.fromisoformat(start) - stamp(data["replica_log"], "sync started")
        data["replica_log"] = shift(data["replica_log"], by, form)

    assert parse(made("v7_0_15.json", late))[0].duration_s == 2.902


def test_reads_the_words_of_old_versions() -> None:
    old = both(
        in_log("MASTER <-> REPLICA", "MASTER <-> SLAVE"),
        in_log(" bytes from master to disk", " bytes from master"),
        set_in("master/config/repl-rdb-channel", None),
    )
    assert parse(made("v7_0_15.json", old))[0].payload_bytes == 10049018


def test_a_transfer_within_a_millisecond_has_no_goodput_of_its_own() -> None:
    def instant(data: Any) -> None:
        log = data["replica_log"]
        data["replica_log"] = swap(log, "16:06:02.659", "16:06:05.490")

    extra = parse(made("v7_0_15.json", instant))[0].extra
    assert (extra["redis_transfer_s"], extra["redis_transfer_goodput_bit_s"]) == (0, None)


@pytest.mark.parametrize(
    ("name", "because"),
    [
        ("timeout", "exit status 1: redis_sync: the synchronisation did not finish within the time limit"),
        ("cut", "exit status 1: .*I/O error trying to sync with MASTER: connection lost"),
    ],
)
def test_names_what_the_script_says(name: str, because: str) -> None:
    out, err = (fixture("redis_sync", f"{name}.{end}") for end in ("json", "stderr.txt"))
    refused(record("redis_sync", PARAMS, command("server_to_client", out, err, rc=1)), because)
    # and even if it had not: the report itself does not pass
    refused(record("redis_sync", PARAMS, command("server_to_client", out)), "redis_sync: ")


def test_refuses_a_diskless_synchronisation() -> None:
    refused(made("diskless.json"), "master: repl-diskless-sync is 'yes', expected 'no'")
    settings = set_in("master/config/repl-diskless-sync", "no")
    refused(made("diskless.json", settings), "receiving streamed RDB from master with EOF.*repl-diskless-sync must")
    parser = in_log("from master to disk", "from master to parser")
    refused(made(change=parser), "repl-diskless-load 'disabled'")


def test_refuses_a_report_that_is_cut_off() -> None:
    text = fixture("redis_sync", "finished.json")
    given = record("redis_sync", PARAMS, command("server_to_client", text[:-9]))
    refused(given, rf"not complete JSON \({len(text) - 9} characters\)")
    refused(made(change=set_in("format", 2)), "redis_sync: format")


LINE = "16:06:05.524 * MASTER <-> REPLICA sync: Finished with success"


@pytest.mark.parametrize(
    ("change", "because"),
    [
        (in_log("sync started", "sync begun"), "sync started' occurs 0 times"),
        (in_log("sync: Finished", "sync: Ended"), "Finished with success' occurs 0 times"),
        (in_log("* Connecting to MASTER", "* MASTER <-> REPLICA sync started"), "sync started' occurs 2 times"),
        (in_log("receiving 10049018", "receiving x"), "receiving .* occurs 0 times"),
        (both(in_log("Flushing", "x"), in_log("Loading DB", "x")), "no line says that the transfer ended"),
        (in_log(LINE, LINE.replace("05.524", "05.400")), "not in order: 16:06:02"),
        (in_log(LINE, LINE.replace("05.524", "61.524")), "replica log: 2026-11-30 .16, 6, 61"),
        (in_log(" Nov ", " Nox "), "unknown month 'Nox'"),
        (in_log("16:06:02.659", "16:06:02.600"), "not in order"),
    ],
)
def test_refuses_a_log(change: Change, because: str) -> None:
    refused(made("v7_0_15.json", change), because)


def test_refuses_a_synchronisation_without_any_duration() -> None:
    def frozen(data: Any) -> None:
        data["replica_log"] = LAST_TIME.sub("30 Nov 2026 16:06:02.622", data["replica_log"])

    refused(made("v7_0_15.json", frozen), "not in order")


def test_refuses_a_wall_clock_that_was_set() -> None:
    # by the monotonic clock 0.065194 to 2.981239, so 2.916 s; the log says 2.902 s
    for seen, because in ((0.065194 + 2.85, "2.902 s by the wall clock, but 2.850 s"), (6.0, "but 5.935 s")):
        refused(made("v7_0_15.json", set_in("timings_s/finished_seen", seen)), because)


@pytest.mark.parametrize(
    ("side", "key", "value"),
    [
        ("master", "repl-diskless-sync-delay", "5"),
        ("master", "rdbcompression", "yes"),
        ("master", "save", "3600 1"),
        ("master", "appendonly", "yes"),
        ("master", "repl-timeout", "60"),
        ("master", "repl-rdb-channel", "yes"),
        ("master", "client-output-buffer-limit", "normal 0 0 0 slave 268435456 67108864 60 pubsub 0 0 0"),
        ("replica", "repl-diskless-load", "swapdb"),
        ("replica", "repl-timeout", "60"),
        ("replica", "save", None),
        ("replica", "appendonly", "yes"),
        ("replica", "client-output-buffer-limit", None),
    ],
)
def test_refuses_settings_that_are_not_in_force(side: str, key: str, value: str | None) -> None:
    refused(made(change=set_in(f"{side}/config/{key}", value)), f"{side}: {key} is ")


@pytest.mark.parametrize(
    ("change", "because"),
    [
        (info("master", "after", "sync_full", "99"), "master: 9. full and 0 partial"),
        (info("master", "before", "sync_full", "99"), "master: -9. full and 0 partial"),
        (info("master", "after", "sync_partial_ok", "1"), "master: 1 full and 1 partial"),
        (info("master", "after", "run_id", "0" * 40), "master: it was restarted"),
        (info("replica", "after", "role", "master"), "replica: not joined"),
        (info("replica", "after", "master_link_status", "down"), "replica: not joined"),
        (info("replica", "after", "total_net_repl_input_bytes", "10000"), "10000 bytes came from the master"),
        (info("replica", "after", "total_net_repl_input_bytes", "20100000"), "20100000 bytes came from the master"),
        (set_in("replica/digest", "1" * 40), "the data differs: master 2442 keys c1ad96.*replica 2442 keys 1111"),
        (set_in("replica/dbsize", 2441), "the data differs: .*replica 2441 keys"),
        (set_in("master/info_before", "# Stats\r\n"), "INFO has no run_id"),
        (set_in("master/digest", "none"), "master: 'none' is not the digest"),
    ],
)
def test_refuses_figures_that_do_not_agree(change: Change, because: str) -> None:
    refused(made(change=change), because)


def test_does_without_a_counter_that_old_versions_lack() -> None:
    def old(data: Any) -> None:
        data["replica"]["info_after"] = swap(data["replica"]["info_after"], "total_net_repl_input_bytes", "other")

    assert parse(made(change=old))[0].payload_bytes == 10049020


def test_refuses_an_empty_data_set() -> None:
    nothing = both(set_in("master/digest", "0" * 40), set_in("replica/digest", "0" * 40))
    refused(made(change=nothing), "is not the digest of any data")


def test_refuses_another_data_set_than_was_asked_for() -> None:
    refused(made(dataset_bytes=20_000_000), "2442 keys instead of the 4883 of a data set of 20000000 bytes")
    # as many keys, but not as many bytes: larger and smaller values
    refused(made(dataset_bytes=20_000_000, value_bytes=8192), "the RDB has 10049020 bytes; a data set of 20000000")
    refused(made(dataset_bytes=5_000_000, value_bytes=2048), "the RDB has 10049020 bytes; a data set of 5000000")
