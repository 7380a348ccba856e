"""`lab_rerun`: the stored plan again, or a line that says why it cannot be."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bundles import bundled, by_repeat, forged, members
from conftest import StoredRun

from tunnel_lab import choices, manifests, parsing, plan, rerun
from tunnel_lab.errors import LabError
from tunnel_lab.plan import Plan
from tunnel_lab.records import Run

Make = Callable[..., StoredRun]
HERE = {
    "lab_name": "here",
    "lab_provider": "local",
    "lab_image": {"suite": "bookworm"},
    "lab_link": {"rtt_ms": 5, "rate_mbit": 5},
    "lab_seed": 99,
    "lab_select": "none.*",
    "lab_sampler": False,
    "lab_sysctls": {"net.ipv4.tcp_congestion_control": "bbr"},
    "lab_profile": "huge",
}
THERE: dict[str, Any] = {
    "lab_seed": 7,
    "lab_repeats": 2,
    "lab_select": "pipe.mine.*",
    "lab_params": {"copy": {"size_bytes": 5}},
    "lab_variants": {"pipe": {"mine": {"extends": "small"}}},
    "lab_override": {"pipe": {"sndbuf": 7}},
    "lab_timeout_s": 9.0,
    "lab_sampler": "alternate",
    "lab_link": {"rtt_ms": 80.0, "rate_mbit": 100.0},
    "lab_sysctls": {"net.ipv4.tcp_congestion_control": "cubic"},
}


def stored(make_run: Make, **variables: Any) -> StoredRun:
    """A run whose choices are whole, as lab_begin gets them; of another lab."""
    made = make_run(**variables)
    chosen = choices.from_variables({"lab_name": "there", "lab_provider": "local", **variables})
    run = made.run.model_copy(update={"choices": chosen.model_dump(mode="json")})
    (made.path / "run.json").unlink()
    run.write(made.path / "run.json")
    return StoredRun(made.path, Run.read(made.path / "run.json"))


def again(run: Run, roles: Path, **here: Any) -> tuple[choices.Choices, Plan]:
    """Plan the stored run with the variables of another inventory."""
    chosen = choices.from_variables(rerun.variables(run, {**HERE, **here}))
    return chosen, plan.build(manifests.load(roles, chosen.lab_variants), chosen, "198.51.100.1")


def test_plan_is_the_stored_one_whatever_the_inventory_says(make_run: Make, roles: Path) -> None:
    run = stored(make_run, **THERE).run
    chosen, made = again(run, roles)
    rerun.check(run, made)
    assert [(step.cell, step.repeat, step.sampled) for step in made.steps] == [
        (step.cell, step.repeat, step.sampled) for step in run.plan.steps
    ]
    assert set(made.cells) == {"pipe.mine.copy", "pipe.mine.iperf3", "none.bare.iperf3"}
    mine = made.cells["pipe.mine.copy"]
    assert mine.tunnel_settings == {"cipher": "AES-256-GCM", "sndbuf": 7, "compress": False}
    assert (mine.params, mine.timeout_s, mine.override) == ({"size_bytes": 5}, 9.0, {"sndbuf": 7})
    assert made.cells["none.bare.iperf3"].target_address == "198.51.100.1", "of the inventory"
    assert chosen.lab_link == choices.Link(rtt_ms=80, rate_mbit=100)
    assert chosen.lab_sysctls == {"net.ipv4.tcp_congestion_control": "cubic"}
    assert (chosen.lab_name, chosen.lab_image.suite) == ("here", "bookworm")
    assert chosen.lab_rerun == "run-1"


def test_bare_link_that_was_not_chosen_is_not_chosen_again(make_run: Make, roles: Path) -> None:
    chosen, made = again(stored(make_run, **{**THERE, "lab_select": "pipe.mine.copy"}).run, roles)
    assert chosen.lab_select == ["pipe.mine.copy"]
    assert [step.repeat for step in made.steps if step.cell == "none.bare.iperf3"] == [0, 3]
    chosen, made = again(stored(make_run, **{**THERE, "lab_select": "none.bare.iperf3"}, run_id="run-2").run, roles)
    assert [step.repeat for step in made.steps] == [0, 1, 2, 3]


def test_automatic_repeats_stay_automatic(make_run: Make, roles: Path) -> None:
    auto = {**THERE, "lab_repeats": "auto", "lab_precision": 0.02, "lab_repeats_max": 8}
    run = stored(make_run, **auto).run
    chosen, made = again(run, roles, lab_repeats=3)
    rerun.check(run, made)
    assert (chosen.lab_repeats, chosen.lab_precision, chosen.lab_repeats_max) == ("auto", 0.02, 8)
    assert (made.precision, made.repeats) == (0.02, 8)


def test_profile_that_measures_otherwise_today_changes_nothing(
    make_run: Make, roles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stored(make_run, lab_link=THERE["lab_link"]).run
    now = choices.Profile(description="", repeats=9, select=["none.*"], params={"copy": {"size_bytes": 1}})
    monkeypatch.setattr(choices, "profiles", lambda: {"quick": now})
    rerun.check(run, again(run, roles)[1])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("sndbuf: 65536", "sndbuf: 4096", "pipe.small.copy: tunnel_settings.sndbuf: it was 65536, now it is 4096"),
        ("compress: false}", "compress: false, mtu: 1400}", "tunnel_settings.mtu: it was None, now it is 1400"),
        ("size_bytes: 1000", "size_bytes: 1000, more: 1", "params.more: it was None, now it is 1"),
        ("service_port: 22", "service_port: 23", "service_port: it was 22, now it is 23"),
        ("timeout_s: 60", "timeout_s: 61", "timeout_s: it was 60.0, now it is 61.0"),
        ("pipe@{variant}", "tube@{variant}", "tunnel_units.server: it was 'pipe@plain.service'"),
    ],
)
def test_what_has_changed_since_is_named(make_run: Make, roles: Path, old: str, new: str, said: str) -> None:
    run = stored(make_run, lab_link=THERE["lab_link"]).run
    for path in roles.rglob("*.yml"):
        path.write_text(path.read_text().replace(old, new))
    with pytest.raises(LabError) as error:
        rerun.check(run, again(run, roles)[1])
    assert said in str(error.value)
    assert "the lab has changed since run run-1" in str(error.value)
    assert "git checkout abc1234." in str(error.value)


def test_fields_that_the_stored_lab_did_not_have_are_not_compared(make_run: Make, roles: Path) -> None:
    made = stored(make_run, lab_link=THERE["lab_link"])
    path = made.path / "run.json"
    data = json.loads(path.read_text())
    for cell in data["plan"]["cells"].values():
        for name in ("early", "tunnel_units", "configuration", "fresh_units"):
            del cell[name]
    path.write_text(json.dumps(data))
    run = Run.read(path)
    rerun.check(run, again(run, roles)[1])


def test_order_that_another_program_shuffles_otherwise(make_run: Make, roles: Path) -> None:
    run = stored(make_run, lab_link=THERE["lab_link"]).run
    first, one, two, *rest = run.plan.steps
    swapped = [first, one.model_copy(update={"cell": two.cell}), two.model_copy(update={"cell": one.cell}), *rest]
    other = run.model_copy(update={"plan": run.plan.model_copy(update={"steps": swapped})})
    with pytest.raises(LabError, match="measurement 2: it was"):
        rerun.check(other, again(run, roles)[1])
    shorter = run.model_copy(update={"plan": run.plan.model_copy(update={"steps": run.plan.steps[:-1]})})
    with pytest.raises(LabError, match="number of measurements: it was 7, now it is 8"):
        rerun.check(shorter, again(run, roles)[1])


def test_variable_that_there_is_no_more(make_run: Make) -> None:
    run = stored(make_run).run
    older = run.model_copy(update={"choices": {**run.choices, "lab_colour": "red"}})
    with pytest.raises(LabError, match="the variable lab_colour: it was 'red'"):
        rerun.variables(older, HERE)


def test_kind_of_link_is_a_matter_of_the_inventory(make_run: Make) -> None:
    run = stored(make_run, rtt_ms=None).run
    with pytest.raises(LabError, match="made over a real network, the inventory has an emulated link"):
        rerun.variables(run, HERE)
    here = {name: value for name, value in HERE.items() if name != "lab_link"}
    assert rerun.variables(run, here)["lab_link"] is None
    with pytest.raises(LabError, match="made over an emulated link, the inventory has a real network"):
        rerun.variables(stored(make_run, run_id="run-2", lab_link=THERE["lab_link"]).run, here)


def test_unknown_variables_of_the_inventory_are_still_refused(make_run: Make, roles: Path) -> None:
    with pytest.raises(LabError, match="lab_selekt: no such variable"):
        again(stored(make_run, lab_link=THERE["lab_link"]).run, roles, lab_selekt="*")


def test_a_run_is_a_directory_a_name_or_a_bundle(
    make_run: Make, roles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "parser_for", functools.partial(parsing.parser_for, roles=roles))
    monkeypatch.setattr(rerun, "ROOT", tmp_path)
    made = stored(make_run)
    made.write(by_repeat)
    path = bundled(made)
    for where in (str(made.path), "results/run-1", "run-1", str(path), path.name):
        assert rerun.stored(where) == made.run
    with pytest.raises(LabError, match="lab_rerun: run-7: no such run directory or bundle"):
        rerun.stored("run-7")
    altered = forged(path, {"run.json": members(path)["run.json"] + b" "}, new_manifest=False)
    with pytest.raises(LabError, match=r"run\.json was changed after the bundle was made"):
        rerun.stored(str(altered))
