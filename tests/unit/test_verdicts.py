"""Verdicts: the rule by a table of edge cases, and each kind of claim on runs made by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan, nan
from typing import Any

import pandas as pd
import pytest

from tunnel_lab import verdicts
from tunnel_lab.claims import Source
from tunnel_lab.stats import Interval
from tunnel_lab.summary import summarise
from tunnel_lab.tables import FIXED
from tunnel_lab.verdicts import CONTRADICTED, INCONCLUSIVE, NOT_COMPARABLE, NOT_MEASURED, REPRODUCED

SSH, VPN, TUNED = "ssh.modern.copy", "vpn.old.copy", "vpn.tuned.copy"


def measured(low: float, high: float, n: int = 6) -> Interval:
    """An interval that needs no values."""
    return Interval(n, (low + high) / 2, low, high, 0.96)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (12, 15, REPRODUCED),
        (10, 20, REPRODUCED),  # the ends belong to the band
        (15, 15, REPRODUCED),
        (9.99, 15, INCONCLUSIVE),
        (15, 20.01, INCONCLUSIVE),
        (5, 40, INCONCLUSIVE),  # the band lies within the interval
        (5, 10, INCONCLUSIVE),  # touches
        (20, 40, INCONCLUSIVE),
        (5, 9.99, CONTRADICTED),
        (20.01, 40, CONTRADICTED),
        (nan, nan, INCONCLUSIVE),  # one repeat
    ],
)
def test_the_rule(low: float, high: float, verdict: str) -> None:
    assert verdicts.decide(measured(low, high), (10, 20)) == verdict
    # as far above as below: turned round, everything gets the same verdict
    assert verdicts.decide(measured(1 / high, 1 / low), (1 / 20, 1 / 10)) == verdict


def test_the_tolerance_widens_as_far_up_as_down() -> None:
    assert verdicts.widened((10, 20), 0.25) == (8, 25)
    low, high = verdicts.widened((10, 10), 0.25)
    assert low * high == pytest.approx(10 * 10)


Rows = Callable[..., list[dict[str, Any]]]


def rows(cell: str, goodputs: Sequence[float], **more: Any) -> list[dict[str, Any]]:
    """One row of the runs table for each goodput (NaN: failed), in bit/s."""
    tunnel, variant, workload = cell.split(".")
    link = {"lab": "l", "provider": "local", "link_emulator": "relay", "rtt_ms": 80.0, "rate_mbit": 100.0}
    same = {**link, "queue_bytes": 10**6, "loss_pct": 0.0, "sampler": True, "override": "", "params": "size=1"}
    named = {"tunnel": tunnel, "variant": variant, "workload": workload, "settings_id": f"set-{variant}"}
    return [
        {
            **dict.fromkeys(FIXED),
            **{"run_id": "r", **same, **named, "repeat": repeat, "order": hash((cell, repeat))},
            **{"status": "failed" if isnan(goodput) else "ok", "reason": "cut" if isnan(goodput) else None},
            **{"direction": None if isnan(goodput) else "server_to_client", "duration_s": 10.0},
            **{"goodput_bit_s": goodput, "overhead_s": 1.0, "wire_overhead": 1.1},
            **more,
        }
        for repeat, goodput in enumerate(goodputs, start=1)
    ]


def judged(claim: dict[str, Any], *found: list[dict[str, Any]], **source: Any) -> list[dict[str, Any]]:
    """Return the verdict rows of one claim."""
    given = {"says": "s", "place": "p", **claim}
    made = Source.model_validate({"title": "t", "published": "2020", "claims": {"a": given}, **source})
    runs = pd.DataFrame([row for each in found for row in each]).infer_objects()
    table = verdicts.judge(runs, summarise(runs), {"post": made})
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def value(printed: float, **more: Any) -> dict[str, Any]:
    """A claim of VPN's goodput in Mbit/s."""
    return {"kind": "value", "cell": VPN, "figure": {"printed": "x", "value": printed, "unit": "Mbit/s"}, **more}


SIX = [10e6, 10.1e6, 10.2e6, 9.9e6, 9.8e6, 10e6]


@pytest.mark.parametrize(
    ("printed", "tolerance", "verdict"),
    [(10, 0.25, REPRODUCED), (12.7, 0.25, INCONCLUSIVE), (20, 0.25, CONTRADICTED), (5, 0.25, CONTRADICTED),
     (15, 1, REPRODUCED), (10, 0, INCONCLUSIVE)],
)  # fmt: skip
def test_a_value(printed: float, tolerance: float, verdict: str) -> None:
    (row,) = judged(value(printed, tolerance=tolerance), rows(VPN, SIX))
    assert (row["verdict"], row["n"], row["provisional"]) == (verdict, 6, False)
    assert (row["measured"], row["measured_low"], row["measured_high"]) == (10e6, 9.8e6, 10.2e6)
    assert "10.0 Mbit/s" in row["reason"]


def test_free_running_emulated_cpu_gets_no_verdict_on_speed() -> None:
    """Its figures are shown all the same; what no CPU changes is judged."""
    (row,) = judged(value(10), rows(VPN, SIX, cpu_emulation="free-running"))
    assert (row["verdict"], row["measured"]) == (NOT_COMPARABLE, 10e6)
    assert row["reason"].startswith("the hosts' CPU is emulated")
    (counted,) = judged(value(10), rows(VPN, SIX, cpu_emulation="counted"))
    assert counted["verdict"] == REPRODUCED
    overhead = {"kind": "cause", "cell": VPN, "metric": "wire_overhead", "at_most": 1.2}
    (kept,) = judged(overhead, rows(VPN, SIX, cpu_emulation="free-running"))
    assert kept["verdict"] == REPRODUCED


def test_few_repeats_make_it_provisional_and_one_inconclusive() -> None:
    (three,) = judged(value(10), rows(VPN, SIX[:3]))
    assert (three["verdict"], three["provisional"], three["coverage"]) == (REPRODUCED, True, 0.75)
    assert "covers 75 %" in three["reason"]
    (one,) = judged(value(10), rows(VPN, SIX[:1]))
    assert (one["verdict"], one["provisional"]) == (INCONCLUSIVE, True)


def test_failed_repeats_are_counted_and_no_good_one_is_not_measured() -> None:
    (some,) = judged(value(10), rows(VPN, [*SIX, nan]))
    assert (some["n"], some["n_failed"], some["verdict"]) == (6, 1, REPRODUCED)
    (none,) = judged(value(10), rows(VPN, [nan, nan]))
    assert (none["n"], none["n_failed"], none["verdict"]) == (0, 2, NOT_MEASURED)
    assert "2 failed: cut" in none["reason"]


def test_what_was_not_run_is_not_measured() -> None:
    (row,) = judged(value(10), rows(SSH, SIX))
    assert (row["verdict"], row["provisional"]) == (NOT_MEASURED, False) and VPN in row["reason"]
    (never,) = judged({**value(10), "cell": None, "not_measured": "no router yet"}, rows(SSH, SIX))
    assert (never["verdict"], never["reason"]) == (NOT_MEASURED, "no router yet")


def test_a_metric_that_the_results_lack_is_not_measured() -> None:
    claim = {**value(10), "metric": "server.temperature_c", "figure": {"printed": "5", "value": 5, "unit": "°C"}}
    (row,) = judged(claim, rows(VPN, SIX))
    assert row["verdict"] == NOT_MEASURED and "no column server.temperature_c" in row["reason"]


def test_an_override_is_not_as_published_but_may_be_the_best() -> None:
    found = [rows(VPN, [20e6] * 6, override="sndbuf=0", settings_id="o"), rows(TUNED, [15e6] * 6), rows(VPN, SIX)]
    (row,) = judged(value(10), *found, rows(SSH, [90e6] * 6))
    assert (row["verdict"], row["measured"]) == (REPRODUCED, 10e6)
    assert (row["best_cell"], row["best_measured"]) == (f"{VPN} sndbuf=0", 20e6)


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        (
            {"rtt_ms": {"at_least": 10, "at_most": 50, "because": "near"}},
            "rtt_ms of vpn.old.copy is 80, not at",
        ),
        ({"round_trips": {"at_least": 200, "because": "long"}}, "round_trips of vpn.old.copy is 125"),
        ({"params.size": {"equals": 2, "because": "big"}}, "params.size of vpn.old.copy is 1, not 2"),
        ({"provider": {"equals": "aws", "because": "far"}}, "provider of vpn.old.copy is local, not aws (far)"),
        ({"rtt_ms": {"at_most": 100, "because": "near"}}, None),
        ({"params.size": {"equals": 1, "because": "small"}}, None),
        ({"client.unheard_of": {"equals": "x", "because": "y"}}, None),  # not known, so no difference
    ],
)
def test_conditions(conditions: dict[str, Any], said: str | None) -> None:
    for where in ("claim", "source"):
        of_claim, of_source = (conditions, {}) if where == "claim" else ({}, conditions)
        (row,) = judged(value(10, conditions=of_claim), rows(VPN, SIX), conditions=of_source)
        assert row["verdict"] == (NOT_COMPARABLE if said else REPRODUCED)
        assert said is None or said in row["reason"]
        assert row["measured"] == 10e6  # what was measured is told all the same


@pytest.mark.parametrize(
    ("link_rtt_ms", "said"), [(80.0, None), (20.0, "rtt_ms of vpn.old.copy is 20"), (float("nan"), None)]
)
def test_round_trip_of_a_real_network_is_the_measured_one(link_rtt_ms: float, said: str | None) -> None:
    conditions = {"rtt_ms": {"at_least": 60, "because": "as far"}}
    (row,) = judged(value(10, conditions=conditions), rows(VPN, SIX, rtt_ms=float("nan"), link_rtt_ms=link_rtt_ms))
    assert row["verdict"] == (NOT_COMPARABLE if said else REPRODUCED)
    assert said is None or said in row["reason"]


def test_one_verdict_for_each_link_and_each_set_of_parameters() -> None:
    found = judged(value(10), rows(VPN, SIX), rows(VPN, [30e6] * 6, rtt_ms=20.0), rows(VPN, [5e6] * 6, params="size=2"))
    assert [(row["rtt_ms"], row["params"], row["verdict"]) for row in found] == [
        (80, "size=1", REPRODUCED),
        (80, "size=2", CONTRADICTED),
        (20, "size=1", CONTRADICTED),
    ]


def test_settings_that_differ_under_one_name_are_never_put_together() -> None:
    (row,) = judged(value(10), rows(VPN, SIX), rows(VPN, SIX, run_id="r2", settings_id="other"))
    assert row["verdict"] == NOT_COMPARABLE and "collect them one by one" in row["reason"]


def test_a_ratio_is_taken_within_a_round() -> None:
    claim = {"kind": "ratio", "of": SSH, "to": VPN, "figure": {"printed": "4x", "value": 4, "unit": "1"}}
    slow_machine = [1.0, 0.5, 2.0, 1.5, 0.7, 0.9]  # both cells of a round alike
    ssh = rows(SSH, [40e6 * each for each in slow_machine])
    vpn = rows(VPN, [10e6 * each for each in slow_machine])
    (row,) = judged(claim, ssh, vpn)
    assert (row["measured"], row["measured_low"], row["measured_high"]) == (4, 4, 4)
    assert (row["verdict"], row["n"]) == (REPRODUCED, 6)
    (fewer,) = judged(claim, ssh, vpn[:3])
    assert fewer["n"] == 3


ORDER = {"kind": "order", "groups": [[SSH], [VPN, TUNED]]}


@pytest.mark.parametrize(
    ("tuned", "verdict"),
    [([20e6] * 6, REPRODUCED), ([50e6] * 6, CONTRADICTED), ([30e6, 50e6] * 3, INCONCLUSIVE)],
)
def test_a_ranking_is_decided_by_its_weakest_pair(tuned: list[float], verdict: str) -> None:
    (row,) = judged(ORDER, rows(SSH, [40e6] * 6), rows(VPN, SIX), rows(TUNED, tuned))
    assert row["verdict"] == verdict
    assert f"{SSH} : {TUNED}" in row["reason"]


def test_a_ranking_needs_all_its_cells_and_can_be_of_the_lowest() -> None:
    (row,) = judged(ORDER, rows(SSH, [40e6] * 6), rows(VPN, SIX))
    assert row["verdict"] == NOT_MEASURED and TUNED in row["reason"]
    lowest = {**ORDER, "groups": [[VPN], [SSH]], "best": "lowest"}
    (row,) = judged(lowest, rows(SSH, [40e6] * 6), rows(VPN, SIX))
    assert (row["verdict"], row["measured"]) == (REPRODUCED, 4)


CAUSE = {"kind": "cause", "cell": VPN, "against": SSH, "at_least": 0.5}


@pytest.mark.parametrize(
    ("overhead", "explained", "verdict"),
    # 40 Mbit/s through ssh with 1.1; headers alone would leave the vpn 40 * 1.1 / overhead; it has 10
    [(1.2, (40 - 40 * 1.1 / 1.2) / 30, CONTRADICTED), (3.3, (40 - 40 * 1.1 / 3.3) / 30, REPRODUCED)],
)
def test_a_cause_is_a_quantity_that_would_have_to_be_true(overhead: float, explained: float, verdict: str) -> None:
    (row,) = judged(CAUSE, rows(SSH, [40e6] * 6), rows(VPN, [10e6] * 6, wire_overhead=overhead))
    assert (row["verdict"], row["measured"]) == (verdict, pytest.approx(explained))


def test_a_cause_without_a_gap_is_not_measured() -> None:
    (row,) = judged(CAUSE, rows(SSH, [10e6] * 6), rows(VPN, [40e6] * 6))
    assert row["verdict"] == NOT_MEASURED


def test_a_cause_may_be_any_column() -> None:
    claim = {"kind": "cause", "cell": VPN, "metric": "link_utilisation", "at_most": 0.2}
    (row,) = judged(claim, rows(VPN, SIX, link_utilisation=0.1))
    assert (row["verdict"], row["measured"]) == (REPRODUCED, 0.1)
