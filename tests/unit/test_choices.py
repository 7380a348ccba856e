"""The variables that users set: their types as inventories and `-e` give them, and what a wrong one is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tunnel_lab.choices import Choices, Link, from_variables, profiles
from tunnel_lab.errors import LabError

LAB = {"lab_name": "test", "lab_provider": "local"}


def choose(**variables: Any) -> Choices:
    return from_variables({**LAB, **variables})


def test_other_variables_are_not_ours() -> None:
    assert choose(ansible_user="root", labour=1) == choose()


@pytest.mark.parametrize("given", ["a.*, b.c.d,", ["a.*", "b.c.d"]])
def test_select_is_a_list_or_a_string(given: Any) -> None:
    assert choose(lab_select=given).lab_select == ["a.*", "b.c.d"]


def test_strings_of_the_command_line_are_converted() -> None:
    for given, sampler in (("false", False), ("True", True), ("alternate", "alternate")):
        assert choose(lab_sampler=given).lab_sampler == sampler
    chosen = choose(lab_repeats="3", lab_seed="7", lab_timeout_s="1.5")
    assert (chosen.lab_repeats, chosen.lab_seed, chosen.lab_timeout_s) == (3, 7, 1.5)
    assert choose(lab_link={"rtt_ms": "80", "rate_mbit": "100"}).lab_link == Link(rtt_ms=80, rate_mbit=100)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"lab_selekt": "*"}, ["lab_selekt: no such variable", "Did you mean 'lab_select'"]),
        ({"lab_repeats": "many"}, ["lab_repeats", "'many'"]),
        ({"lab_repeats": 0}, ["lab_repeats", "got 0"]),
        ({"lab_name": "My Lab"}, ["lab_name", "'My Lab'"]),
        ({"lab_override": {"ssh": 3}}, ["lab_override.ssh", "got 3"]),
        ({"lab_link": {"rtt_ms": 0, "rate_mbit": 1}}, ["lab_link.rtt_ms", "greater than 0", "got 0"]),
        ({"lab_link": {"rtt_ms": 80, "rate_mbit": -1}}, ["lab_link.rate_mbit", "got -1"]),
        ({"lab_link": {"rtt_ms": 80, "rate_mbit": 1, "loss_pct": 100}}, ["lab_link.loss_pct", "got 100"]),
        ({"lab_link": {"rtt_ms": 80, "rate_mbit": 1, "queue_bytes": 1}}, ["lab_link.queue_bytes", "got 1"]),
        ({"lab_link": {"rtt_ms": 80}}, ["lab_link.rate_mbit", "required"]),
        ({"lab_link": {"rtt_ms": 80, "rate_mbit": 1, "delay_ms": 40}}, ["lab_link.delay_ms", "not permitted"]),
        ({"lab_link": "80"}, ["lab_link", "'80'"]),
        ({"lab_sampler": "sometimes"}, ["lab_sampler", "'sometimes'"]),
    ],
)
def test_wrong_values_are_named(variables: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(LabError) as error:
        choose(**variables)
    assert all(part in str(error.value) for part in said), error.value


def test_all_wrong_values_are_told_at_once() -> None:
    with pytest.raises(LabError) as error:
        choose(lab_repeats="many", lab_link={"rtt_ms": -1})
    assert len(str(error.value).splitlines()) == 3


def test_queue_is_a_bandwidth_delay_product() -> None:
    assert Link(rtt_ms=80, rate_mbit=100).resolved()["queue_bytes"] == 1_000_000
    assert Link(rtt_ms=1, rate_mbit=10).resolved()["queue_bytes"] == 150_000
    assert Link(rtt_ms=80, rate_mbit=100, queue_bytes=5000).resolved()["queue_bytes"] == 5000


def test_unknown_profile_is_told_what_exists() -> None:
    with pytest.raises(LabError, match=r"'quik' is not in profiles\.yml\. Did you mean 'quick'"):
        _ = choose(lab_profile="quik").profile


def test_wrong_profile_is_named(tmp_path: Path) -> None:
    path = tmp_path / "profiles.yml"
    path.write_text("tiny: {description: d, repeats: 0, select: [a]}\n")
    with pytest.raises(LabError, match=r"profiles\.yml: tiny\.repeats: .* \(got 0\)"):
        profiles(path)
