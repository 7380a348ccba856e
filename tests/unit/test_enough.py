"""`lab_repeats: auto`: when a cell is measured enough, and that collecting agrees with measuring."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import StoredRun, figure

from tunnel_lab import enough, parsing, tables
from tunnel_lab.plan import Step


@pytest.fixture(autouse=True)
def _parser_of_the_tests(roles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "parser_for", functools.partial(parsing.parser_for, roles=roles))


TIGHT, WIDE = [100.0, 101, 102, 103, 100, 101], [100.0, 101, 102, 130, 100, 101]


@pytest.mark.parametrize(
    ("found", "is_enough"),
    [
        ({}, False),
        ({"server_to_client": TIGHT}, True),
        ({"server_to_client": TIGHT[:5]}, False),  # five cannot make a 95 % interval
        ({"server_to_client": WIDE}, False),
        ({"server_to_client": TIGHT, "client_to_server": WIDE}, False),
        ({"server_to_client": TIGHT, "client_to_server": TIGHT}, True),
    ],
)
def test_enough_is_a_narrow_interval_in_each_direction(found: dict[str, list[float]], is_enough: bool) -> None:
    assert enough.enough(found, 0.05) is is_enough


AUTO = {"lab_repeats": "auto", "lab_repeats_max": 9}


def seconds(step: Step) -> float:
    """`small` scatters, `plain` does not."""
    return 1.0 + (step.repeat % 3 if "small" in step.cell else 0.0)


def simulate(stored: StoredRun) -> list[tuple[str, int]]:
    """Measure as measure.yml does, round by round; return the steps that were measured."""
    done = []
    for repeat in range(stored.run.plan.repeats + 2):
        for step in enough.to_measure(stored.run.plan, repeat, stored.path):
            stored.record(step, [figure(seconds(step))]).write(stored.file(step.cell, step.repeat))
            done.append((step.cell, step.repeat))
    return done


def test_auto_measures_until_it_is_enough_and_no_further(make_run: Callable[..., StoredRun]) -> None:
    stored = make_run(**AUTO)
    done = simulate(stored)
    assert [repeat for cell, repeat in done if cell == "pipe.plain.copy"] == [1, 2, 3, 4, 5, 6]
    assert [repeat for cell, repeat in done if cell == "pipe.small.copy"] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [repeat for cell, repeat in done if cell == "none.bare.iperf3"] == [0, 10]


def test_what_was_not_needed_is_no_row_and_what_is_missing_is(make_run: Callable[..., StoredRun]) -> None:
    stored = make_run(**AUTO)
    simulate(stored)
    runs, problems = tables.collect([stored.path])
    assert not problems and (runs["status"] == "ok").all() and len(runs) == 6 + 9 + 2
    stored.file("pipe.small.copy", 9).unlink()
    stored.file("pipe.plain.copy", 6).unlink()  # then five are left, and 7 to 9 were needed
    runs, _ = tables.collect([stored.path])
    lost = runs[runs["status"] == "aborted"]
    assert sorted(zip(lost["variant"], lost["repeat"], strict=True)) == [
        *(("plain", repeat) for repeat in (6, 7, 8, 9)),
        ("small", 9),
    ]


def test_without_auto_every_round_is_measured_in_full(make_run: Callable[..., StoredRun]) -> None:
    stored = make_run()
    planned = [(step.cell, step.repeat) for step in stored.run.plan.steps]
    assert simulate(stored) == planned


def test_what_cannot_be_read_does_not_count(make_run: Callable[..., StoredRun]) -> None:
    stored = make_run(**AUTO)
    simulate(stored)
    stored.file("pipe.plain.copy", 3).write_text("{", encoding="utf-8")
    left = enough.to_measure(stored.run.plan, 7, stored.path)
    assert "pipe.plain.copy" in [step.cell for step in left]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"lab_repeats": "many"}, "lab_repeats"),
        ({"lab_repeats": 0}, "lab_repeats"),
        ({"lab_repeats_max": 5}, "lab_repeats_max: Input should be greater than or equal to 6"),
        ({"lab_precision": 0}, "lab_precision"),
    ],
)
def test_wrong_choices_are_refused(make_run: Callable[..., Any], variables: dict[str, Any], said: str) -> None:
    with pytest.raises(Exception, match=said):
        make_run(**variables)
