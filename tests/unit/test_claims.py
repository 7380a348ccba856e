"""Claim files: what they mean, and what is said of wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tunnel_lab import claims, manifests, plan
from tunnel_lab.claims import Order, Ratio, Value
from tunnel_lab.errors import LabError

SPEED: dict[str, Any] = {
    "kind": "value",
    "says": "fast",
    "place": "page 1",
    "cell": "ssh.modern.iperf3",
    "figure": {"printed": "13 Mb/s", "value": 13, "unit": "Mb/s", "rounding": 0.5},
}
SLOW = {**SPEED, "cell": "openvpn.modern_tcp.iperf3", "figure": {"printed": "5", "value": 5, "unit": "Mb/s"}}
RATIO = {"kind": "ratio", "says": "s", "place": "p", "of": "ssh.modern.iperf3", "to": "openvpn.modern_tcp.iperf3"}
ORDER = {"kind": "order", "says": "s", "place": "p", "groups": [["a.b.w"], ["c.d.w", "e.f.w"]]}
CAUSE = {"kind": "cause", "says": "s", "place": "p", "cell": "a.b.w", "against": "c.d.w", "at_least": 0.5}
Load = Callable[..., dict[str, claims.Source]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Write one source with these claims, and load it."""

    def load(known: Any = None, /, **given: Any) -> dict[str, claims.Source]:
        content = {"title": "t", "published": "2020", "claims": given}
        (tmp_path / "post.yml").write_text(yaml.safe_dump(content), encoding="utf-8")
        return claims.load(tmp_path, known)

    return load


def test_every_claim_of_the_lab_is_about_cells_that_exist() -> None:
    sources = claims.load(known_cells=plan.cell_ids(manifests.load()))
    assert {"ssh-vs-openvpn-2016", "openvpn-266mhz-router-2006"} <= set(sources)


def test_both_tables_of_2016_are_there_as_printed() -> None:
    found = claims.load()["ssh-vs-openvpn-2016"].claims.values()
    printed = [each.figure.printed for each in found if isinstance(each, Value)]
    tables = ["21m", "15m", "6m", "5m", "1m50s", "1m30s", "2m30s"]
    assert printed == [*tables, "13 Mb/s", "12 Mb/s", "43 Mb/s", "36 Mb/s", "91 Mb/s"]


def test_a_profile_measures_every_cell_of_2016(make_plan: Any) -> None:
    wanted = {cell for each in claims.load()["ssh-vs-openvpn-2016"].claims.values() for cell in each.cells}
    ids = plan.cell_ids(manifests.load())
    for profile in yaml.safe_load((manifests.ROOT / "profiles.yml").read_text(encoding="utf-8")).values():
        assert wanted <= set(plan.select(profile["select"], ids))


@pytest.mark.parametrize(
    ("figure", "metric", "band"),
    [
        ({"value": 13, "unit": "Mb/s", "rounding": 0.5}, "goodput_bit_s", (12.5e6, 13.5e6)),
        ({"value": 800, "unit": "kB/s"}, "goodput_bit_s", (6.4e6, 6.4e6)),
        ({"value": 28.5, "unit": "%", "rounding": 0.05}, "server.cpu_softirq_share", (0.2845, 0.2855)),
        ({"value": 90.4, "unit": "%"}, "server.tunnel_cpu_cores", (0.904, 0.904)),
        ({"value": 2, "unit": "min"}, "duration_s", (120, 120)),
        ({"value": 52, "unit": "°C"}, "server.temperature_c", (52, 52)),
        # 8 * 10^9 bit in 99 to 101 s
        (
            {"value": 100, "unit": "s", "rounding": 1, "amount_bytes": [1e9, 2e9]},
            "goodput_bit_s",
            (8e9 / 101, 16e9 / 99),
        ),
    ],
)
def test_a_print_allows_a_band(figure: dict[str, Any], metric: str, band: tuple[float, float]) -> None:
    assert claims.Figure(printed="p", **figure).band(metric) == pytest.approx(band)


def test_a_ratio_without_a_figure_is_made_of_its_cells(load: Load) -> None:
    source = load(a=SPEED, b=SLOW, c=RATIO)["post"]
    found = source.claims["c"]
    assert isinstance(found, Ratio) and source.band(found) == pytest.approx((12.5 / 5, 13.5 / 5))


def test_a_ratio_of_two_durations_of_the_same_work_does_not_depend_on_how_much_it_was(load: Load) -> None:
    took = {"printed": "90s", "value": 90, "unit": "s", "rounding": 5, "amount_bytes": [0.9e9, 1.1e9]}
    longer = {**took, "value": 21, "unit": "min", "rounding": 0.5}
    source = load(a={**SPEED, "figure": took}, b={**SLOW, "figure": longer}, c=RATIO)["post"]
    found = source.claims["c"]
    assert isinstance(found, Ratio) and source.band(found) == pytest.approx((20.5 * 60 / 95, 21.5 * 60 / 85))


def test_a_ranking_compares_each_cell_with_each_of_the_next_group(load: Load) -> None:
    found = load(a=ORDER)["post"].claims["a"]
    assert isinstance(found, Order) and found.pairs == [("a.b.w", "c.d.w"), ("a.b.w", "e.f.w")]


def without(claim: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a claim without one key."""
    return {name: value for name, value in claim.items() if name != key}


def figure(**changes: Any) -> dict[str, Any]:
    """Return SPEED with another figure."""
    return {**SPEED, "figure": {**SPEED["figure"], **changes}}


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({**SPEED, "kind": "rumour"}, "claims.a: Input tag 'rumour'"),
        (
            {**SPEED, "tolerance": -0.1},
            "a.value.tolerance: Input should be greater than or equal to 0 (got -0.1)",
        ),
        ({**SPEED, "figure": without(SPEED["figure"], "unit")}, "claims.a.value.figure.unit: Field required"),
        (figure(unit="Mbps"), "unit: 'Mbps' is none of goodput_bit_s. Did you mean"),
        (figure(value=0), "claims.a.value.figure.value: Input should be greater than 0"),
        (figure(rounding=13), "rounding must be less than value"),
        (figure(unit="s", amount_bytes=[2, 1]), "the lesser first"),
        ({**figure(unit="s", amount_bytes=[1, 2]), "metric": "duration_s"}, "duration_s is no rate"),
        ({**SPEED, "speed": 3}, "claims.a.value.speed: Extra inputs are not permitted"),
        (without(SPEED, "cell"), "needs a cell that measures it, or else not_measured"),
        ({**SPEED, "not_measured": "no"}, "needs a cell that measures it, or else not_measured"),
        (without(SPEED, "place"), "claims.a.value.place: Field required"),
        ({**SPEED, "conditions": {"rtt_ms": {"because": "b"}}}, "needs at_least, at_most or equals"),
        (RATIO, "needs a figure, or a value claim of ssh.modern.iperf3"),
        ({**RATIO, "to": "ssh.modern.iperf2"}, "its cells must have the same workload"),
        ({**ORDER, "groups": [["a.b.w"]]}, "needs two groups"),
        ({**ORDER, "groups": [["a.b.w"], ["a.b.w"]]}, "stands in them twice"),
        (without(CAUSE, "at_least"), "needs at_least or at_most"),
        (without(CAUSE, "against"), "against belongs to the metric"),
        ({**CAUSE, "metric": "link_utilisation"}, "against belongs to the metric"),
    ],
)
def test_a_wrong_claim_is_one_line_that_names_file_and_key(load: Load, claim: Any, said: str) -> None:
    with pytest.raises(LabError) as error:
        load(a=claim)
    assert said in str(error.value)
    assert "post.yml: " in str(error.value) and "claims.a" in str(error.value) and "\n" not in str(error.value)


def test_an_unknown_cell_is_named_with_what_is_near(load: Load) -> None:
    with pytest.raises(LabError, match=r"post.yml: claims.a: no cell 'ssh.modern.iperf3'. Did you mean 'ssh.modern.ip"):
        load(["ssh.modern.iperf2", "none.bare.copy"], a=SPEED)


def test_a_file_that_is_no_mapping(tmp_path: Path) -> None:
    (tmp_path / "post.yml").write_text("- a\n", encoding="utf-8")
    with pytest.raises(LabError, match=r"post\.yml: expected a mapping"):
        claims.load(tmp_path)
