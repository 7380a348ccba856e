"""What a sampler wrote, asked for times between its rows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tunnel_lab import samples
from tunnel_lab.samples import Samples

META = {"meta": {"format": 1, "ticks_per_s": 100, "page_bytes": 4096, "kernel": "own"}}
LOOK = {"at": 10.1, "sockets": "tcp LISTEN 0 511 0.0.0.0:6379 0.0.0.0:*", "cpu_khz": [2400], "temperature_millic": {}}
PROCESS = "process|redis.service|redis-server|7|user"


def text(*documents: Any) -> str:
    return "".join(json.dumps(document) + "\n" for document in (META, *documents))


def read(*documents: Any) -> Samples:
    return samples.read(text(*documents))


ROWS: list[list[Any]] = [["at", "a", "b"], [10, 100, 7], [11, 200, 7], [13, 600, 8]]


def test_reading() -> None:
    found = read(*ROWS[:2], LOOK, *ROWS[2:])
    assert found
    assert found.meta["page_bytes"] == 4096
    assert [row.at for row in found.rows] == [10, 11, 13]
    assert (found.rows[2].get("a"), found.rows[2].get("b"), found.rows[2].get("c")) == (600, 8, None)
    assert found.names == ["a", "b"]
    assert [(look.at, look.cpu_khz, look.sockets[0].state) for look in found.looks] == [(10.1, [2400], "LISTEN")]


@pytest.mark.parametrize("cut", ["[14,700", "[14,700,", '{"at":14,"sockets":"tcp LIS', "["])
def test_a_last_line_that_was_cut_off_is_left_out(cut: str) -> None:
    found = samples.read(text(*ROWS) + cut)
    assert [row.at for row in found.rows] == [10, 11, 13]


@pytest.mark.parametrize(
    "line",
    [
        *("[14,700]", "[14,700,8,9]", '[14,"700",8]', "[14,null,8]", "{}", "[]", '"at"', "7", "null"),
        *('{"sockets":"x"}', '{"at":"x","sockets":"x"}', '{"at":14,"sockets":7}', '{"meta":7}'),
    ],
)
def test_what_another_format_may_hold_is_left_out(line: str) -> None:
    found = samples.read(text(*ROWS) + line + "\n" + "[15,800,9]\n")
    assert [row.at for row in found.rows] == [10, 11, 13, 15]
    assert (found.looks, found.meta) == ([], META["meta"])


def test_what_is_no_number_is_not_counted() -> None:
    found = samples.read(text(*ROWS) + "[14,NaN,8]\n[14.5,1e999,8]\n[15,800,9]\n")
    assert [row.at for row in found.rows] == [10, 11, 13, 15]


@pytest.mark.parametrize(
    "nothing", ["", "\n", "Traceback (most recent call last):\n  File", json.dumps(META), "[1,2]\n"]
)
def test_nothing_to_go_by(nothing: str) -> None:
    found = samples.read(nothing)
    assert not found
    assert (found.rows, found.looks, found.names) == ([], [], [])
    assert (found.value("a", 10), found.rise("a", 10, 11), list(found.between(0, 99))) == (None, 0, [])


def test_one_row_gives_no_figures() -> None:
    assert not read(*ROWS[:2])
    assert read(*ROWS[:3])


@pytest.mark.parametrize("unit", ["ticks_per_s", "page_bytes"])
@pytest.mark.parametrize("value", [None, 0, -1, "many"])
def test_counters_without_units_give_no_figures(unit: str, value: object) -> None:
    assert not read({"meta": {**META["meta"], unit: value}}, *ROWS)


@pytest.mark.parametrize(("at", "expected"), [(10, 100), (10.5, 150), (11, 200), (11.5, 300), (12.9, 580), (13, 600)])
def test_a_counter_between_two_rows(at: float, expected: float) -> None:
    assert read(*ROWS).value("a", at) == pytest.approx(expected)


def test_rise_within_and_outside_of_the_sampled_time() -> None:
    found = read(*ROWS)
    assert found.rise("a", 10.5, 12) == pytest.approx(400 - 150)
    assert found.rise("a", 12, 99) == pytest.approx(200), "nothing is known of what came after the last row"
    assert found.rise("a", 5, 12) == 0, "where it stood before the first row is not known"
    assert found.rise("a", 50, 60) == found.rise("missing", 10, 13) == 0


def test_names_change_in_mid_run() -> None:
    found = read(["at", "a"], [10, 1], [11, 2], ["at", "tun", "a"], [12, 50, 3], [13, 60, 4])
    assert found.names == ["a", "tun"]
    assert [found.value("a", at) for at in (10.5, 11.5, 12.5)] == [1.5, 2.5, 3.5]
    assert [found.value("tun", at) for at in (10.5, 11.9, 12, 12.5)] == [None, None, 50, 55]
    assert found.rise("tun", 12, 13) == 10


def test_a_process_that_appears_has_used_nothing_before() -> None:
    found = read(["at", "a"], [10, 1], [11, 2], ["at", "a", PROCESS], [12, 3, 30], [13, 4, 50])
    assert [found.value(PROCESS, at) for at in (5, 10.5, 11.5, 12, 12.5)] == [0, 0, 0, 30, 40]
    assert found.rise(PROCESS, 10, 13) == 50


def test_a_process_that_vanishes_has_used_what_it_had() -> None:
    found = read(["at", "a", PROCESS], [10, 1, 30], [11, 2, 50], ["at", "a"], [12, 3], [13, 4])
    assert [found.value(PROCESS, at) for at in (10.5, 11, 11.5, 12.5, 99)] == [40, 50, 50, 50, 50]
    assert found.rise(PROCESS, 10, 13) == 20


def test_clock_that_was_set_back_is_not_followed() -> None:
    found = read(["at", "a"], [10, 1], [11, 2], [10.5, 3], [11, 4], [12, 5])
    assert [row.at for row in found.rows] == [10, 11, 12]
    assert found.rise("a", 10, 12) == 4


def test_looks_between_two_times_with_both_ends() -> None:
    found = read(*ROWS, *({**LOOK, "at": at} for at in (10, 11, 12, 13)))
    assert [look.at for look in found.between(11, 12)] == [11, 12]


def test_series_by_another_clock() -> None:
    found = read(*ROWS, LOOK)
    later = found.shifted(-5)
    assert [row.at for row in later.rows] == [5, 6, 8]
    assert later.looks[0].at == pytest.approx(5.1)
    assert later.rise("a", 5.5, 7) == found.rise("a", 10.5, 12)
    assert found.shifted(0) is found
