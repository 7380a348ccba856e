"""Whether the link is what it was set to, by what ping and iperf3 say."""

from __future__ import annotations

from typing import Any

import pytest
from builders import command, fixture

from tunnel_lab.choices import Link
from tunnel_lab.errors import LabError
from tunnel_lab.link import check
from tunnel_lab.link.check import Measured
from tunnel_lab.records import Command

PING = """PING 10.99.0.1 (10.99.0.1) 56(84) bytes of data.

--- 10.99.0.1 ping statistics ---
20 packets transmitted, 20 received, 0% packet loss, time 982ms
rtt min/avg/max/mdev = 80.101/80.264/80.619/0.120 ms, pipe 2
"""
IPERF = fixture("iperf3", "server_to_client.json")
SETTING = Link(rtt_ms=80, rate_mbit=100)
KEEPS_UP: dict[str, Any] = {"emulator": "relay", "keeps_up_reason": None}


def problems(rtt_ms: float = 80, mbit: float = 95, emulator: dict[str, Any] | None = None, **link: Any) -> list[str]:
    setting = SETTING.model_copy(update=link)
    return check.problems(Measured(rtt_ms=rtt_ms, goodput_bit_s=mbit * 1e6), setting, emulator or KEEPS_UP)


def tools(*changed: Command) -> list[Command]:
    """The good output of both tools, some of it changed."""
    by_name = {"rtt": command("rtt", PING), "rate": command("rate", IPERF)}
    return list({**by_name, **{each.name: each for each in changed}}.values())


def refused(commands: list[Command], *said: str) -> None:
    with pytest.raises(LabError, match=r"^the link could not be measured: ") as error:
        check.measured(commands)
    assert all(part in str(error.value) for part in said), error.value
    assert "\n" not in str(error.value)


def test_reads_the_least_round_trip_and_what_the_receiver_got() -> None:
    # min of ping; end.sum_received of the capture
    assert check.measured(tools()) == Measured(rtt_ms=80.101, goodput_bit_s=14155776 * 8 / 3.000878)


@pytest.mark.parametrize("name", ["rtt", "rate"])
def test_tool_that_failed_is_quoted(name: str) -> None:
    given = tools(command(name, "connect to 10.99.0.1\n", "no route\nto host\n", rc=2))
    refused(given, f"measured: {name}: connect to 10.99.0.1 no route to host")
    refused(tools(command(name, "", rc=None, timed_out=True)), f"measured: {name}: ")


@pytest.mark.parametrize("name", ["rtt", "rate"])
def test_tool_that_was_not_run_is_named(name: str) -> None:
    refused([each for each in tools() if each.name != name], f"{name}: was not run")


def test_long_complaint_is_cut() -> None:
    with pytest.raises(LabError) as error:
        check.measured(tools(command("rate", "x" * 5000 + " the end", rc=1)))
    assert str(error.value).endswith("x the end")
    assert len(str(error.value)) < 400


def test_ping_without_a_round_trip_is_quoted() -> None:
    refused(tools(command("rtt", PING.partition("rtt min")[0])), "ping said: PING 10.99.0.1", "0% packet loss")


@pytest.mark.parametrize(("rtt_ms", "fine"), [(79, True), (81, True), (78.99, False), (81.01, False), (160, False)])
def test_round_trip_is_within_a_millisecond(rtt_ms: float, fine: bool) -> None:
    assert problems(rtt_ms) == ([] if fine else [f"round trip is {rtt_ms:.2f} ms, set are 80 ms"])


def test_round_trip_is_judged_with_loss_too() -> None:
    assert problems(82, loss_pct=1) == ["round trip is 82.00 ms, set are 80 ms"]


@pytest.mark.parametrize(("mbit", "fine"), [(95.6, True), (94, True), (93.99, False), (1, False)])
def test_rate_is_94_percent_of_what_was_set(mbit: float, fine: bool) -> None:
    assert (problems(mbit=mbit) == []) is fine


def test_rate_that_is_missed_is_told_with_numbers() -> None:
    assert problems(mbit=90.5) == [
        "bare TCP goodput is 90.50 Mbit/s, 90.5% of the set 100 Mbit/s; at least 94% are needed"
    ]


def test_rate_of_a_link_that_loses_packets_is_not_judged() -> None:
    assert problems(mbit=1, loss_pct=0.1) == []
    assert len(problems(mbit=1, loss_pct=0)) == 1


def test_reason_of_the_relay_is_added_to_what_is_wrong() -> None:
    late = {"keeps_up_reason": "server_to_client: 900 of 1000 frames were over 2 ms late in one second"}
    said = problems(90, 50, late)
    assert len(said) == 3
    assert said[-1] == f"the relay cannot keep up: {late['keeps_up_reason']}"
    assert problems(80, 95, late) == [], "what was measured is right all the same"
    assert len(problems(90, 95, {"emulator": "netem", "tc": "qdisc"})) == 1


@pytest.mark.parametrize(("mbit", "fine"), [(95.6, True), (100, True), (101, False), (126, False)])
def test_more_than_the_rate_is_a_clock_that_is_wrong(mbit: float, fine: bool) -> None:
    assert problems(mbit=mbit) == (
        []
        if fine
        else [f"bare TCP goodput is {mbit:.2f} Mbit/s of 100 Mbit/s set: the clocks of the hosts do not keep time"]
    )
