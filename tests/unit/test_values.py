"""Values of settings and parameters that the hosts' programs would choke on are refused by the plan."""

from __future__ import annotations

from typing import Any

import pytest

from tunnel_lab import choices, manifests, plan
from tunnel_lab.errors import LabError


def planned(**variables: Any) -> plan.Plan:
    """Plan the project's own cells."""
    chosen = choices.from_variables({"lab_name": "test", "lab_provider": "local", **variables})
    return plan.build(manifests.load(extra_variants=chosen.lab_variants), chosen, "192.0.2.1")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"sndbuf": "lots"}, "tunnel openvpn, lab_override: sndbuf must be of type int, it is 'lots'."),
        ({"sndbuf": True}, "tunnel openvpn, lab_override: sndbuf must be of type int, it is True."),
        ({"mssfix": "1400"}, "tunnel openvpn, lab_override: mssfix must be of type int, it is '1400'."),
        ({"fast_io": 1}, "tunnel openvpn, lab_override: fast_io must be of type bool, it is 1."),
        (
            {"extra_options": "ping 1"},
            "tunnel openvpn, lab_override: extra_options must be of type list, it is 'ping 1'.",
        ),
        ({"sndbuf": -5}, "tunnel openvpn, lab_override: sndbuf must not be negative, it is -5."),
        ({"proto": "tpc"}, "tunnel openvpn, lab_override: proto must be one of 'udp', 'tcp', it is 'tpc'."),
    ],
)
def test_wrong_setting_is_one_clear_sentence(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(LabError) as error:
        planned(lab_override={"openvpn": settings})
    assert str(error.value) == said


class TaggedInt(int):
    """As Ansible hands over the numbers of -e and inventories."""


class TaggedStr(str):
    """Likewise."""


def test_values_as_ansible_hands_them_over_are_taken() -> None:
    cells = planned(lab_override={"openvpn": {"sndbuf": TaggedInt(7), "proto": TaggedStr("tcp")}}).cells
    assert cells["openvpn.modern_udp.iperf3"].tunnel_settings["sndbuf"] == 7


def test_number_that_is_not_set_can_be_set_and_unset() -> None:
    cells = planned(lab_override={"openvpn": {"mssfix": 0}}).cells
    assert cells["openvpn.modern_udp.iperf3"].tunnel_settings["mssfix"] == 0
    cells = planned(lab_override={"openvpn": {"mssfix": None}}).cells
    assert cells["openvpn.published_tcp.redis_sync"].tunnel_settings["mssfix"] is None


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"redis_sync": {"dataset_bytes": "many"}}, "lab_params.redis_sync: dataset_bytes must be a number"),
        ({"redis_sync": {"dataset_bytes": 1.5}}, "lab_params.redis_sync: dataset_bytes must be a whole number"),
        ({"iperf3": {"duration_s": -1}}, "lab_params.iperf3: duration_s must be from 1 to 3600, it is -1."),
        ({"iperf3": {"duration_s": 0}}, "lab_params.iperf3: duration_s must be from 1 to 3600, it is 0."),
        (
            {"redis_sync": {"compressibility": 7}},
            "lab_params.redis_sync: compressibility must be from 0 to 1, it is 7.",
        ),
        ({"iperf2": {"duration_s": True}}, "lab_params.iperf2: duration_s must be a number, it is True."),
    ],
)
def test_wrong_parameter_is_one_clear_sentence(params: dict[str, Any], said: str) -> None:
    with pytest.raises(LabError, match=said):
        planned(lab_params=params)


def test_every_variant_of_the_project_passes_its_own_checks() -> None:
    for tunnel in manifests.load().tunnels.values():
        for variant in tunnel.variants:
            assert tunnel.resolve(variant).keys() == tunnel.defaults.keys()
        for key, allowed in tunnel.choices.items():
            assert tunnel.defaults[key] in allowed


def test_variant_can_say_that_it_is_not_insecure() -> None:
    variants = {
        "openvpn": {"mine": {"extends": "published_tcp", "settings": {"cipher": "AES-256-GCM"}, "insecure": ""}}
    }
    cells = planned(lab_variants=variants, lab_select="openvpn.mine.iperf3,openvpn.published_tcp.iperf3").cells
    assert cells["openvpn.mine.iperf3"].insecure is None
    assert cells["openvpn.published_tcp.iperf3"].insecure == "BF-CBC has 64-bit blocks (SWEET32)"


def test_plan_as_text_shows_zeros_that_were_chosen_and_the_override() -> None:
    made = planned(lab_select="openvpn.published_tcp.redis_sync", lab_override={"openvpn": {"sndbuf": 0}})
    text = plan.describe(made, manifests.load())
    assert "    override: sndbuf=0\n" in text
    assert "reneg_bytes=0" in text
    assert "fast_io" not in text


def test_time_limit_follows_the_parameters() -> None:
    cells = planned(
        lab_params={"iperf3": {"duration_s": 20, "omit_s": 2}, "redis_sync": {"dataset_bytes": 1_000_000}}
    ).cells
    assert cells["none.bare.iperf3"].timeout_s == 20 + 2 + 60
    assert cells["none.bare.redis_sync"].timeout_s == 120 + 8, "a megabyte at a megabit per second, and two minutes"
    assert planned(lab_timeout_s=5).cells["none.bare.iperf3"].timeout_s == 5


def test_parameters_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(LabError, match=r"lab_params\.latency: omit_s < bulk_s must hold; it has bulk_s=4, omit_s=4\."):
        planned(lab_params={"latency": {"bulk_s": 4, "omit_s": 4}})


def test_own_variant_is_measured_without_being_selected_and_checked_in_any_case() -> None:
    mine = {"openvpn": {"mine": {"extends": "modern_tcp"}}}
    assert "openvpn.mine.redis_sync" in planned(lab_variants=mine).cells
    assert "openvpn.mine.redis_sync" not in planned(lab_variants=mine, lab_select="ssh.*.*").cells
    with pytest.raises(LabError, match="no variant 'nosuch'"):
        planned(lab_variants={"openvpn": {"mine": {"extends": "nosuch"}}}, lab_select="ssh.*.*")


@pytest.mark.parametrize("nothing", ["", " , ", []])
def test_selection_of_nothing_is_refused(nothing: Any) -> None:
    with pytest.raises(LabError, match="lab_select: names no cell"):
        planned(lab_select=nothing)


def test_provider_that_does_not_exist_is_refused() -> None:
    manifests.provider("local")
    with pytest.raises(LabError, match=r"lab_provider: 'lokal' does not exist. Did you mean 'local'\?"):
        manifests.provider("lokal")
