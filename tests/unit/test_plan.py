"""The plan: what is measured, in which order, with which settings; and what a wrong choice is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tunnel_lab.errors import LabError
from tunnel_lab.plan import Plan

MakePlan = Callable[..., Plan]
BARE = "none.bare.iperf3"


def order(plan: Plan) -> list[tuple[str, int]]:
    return [(step.cell, step.repeat) for step in plan.steps]


def test_same_seed_gives_the_same_plan(make_plan: MakePlan) -> None:
    assert make_plan(lab_seed=7) == make_plan(lab_seed=7)
    assert order(make_plan(lab_seed=7)) != order(make_plan(lab_seed=8))
    assert sorted(order(make_plan(lab_seed=7))) == sorted(order(make_plan(lab_seed=8)))


def test_repeats_are_interleaved_between_two_bare_ones(make_plan: MakePlan) -> None:
    plan = make_plan(lab_repeats=4)
    steps = order(plan)
    assert [step.order for step in plan.steps] == list(range(1, len(steps) + 1))
    assert (steps[0], steps[-1]) == ((BARE, 0), (BARE, 5))
    size = len(plan.cells)
    blocks = [steps[1:-1][start : start + size] for start in range(0, 4 * size, size)]
    for repeat, block in enumerate(blocks, start=1):
        assert sorted(block) == [(cell, repeat) for cell in sorted(plan.cells)]
    assert len({tuple(cell for cell, _ in block) for block in blocks}) > 1, "each block has an order of its own"


def test_bare_link_frames_a_run_that_does_not_select_it(make_plan: MakePlan) -> None:
    steps = order(make_plan(lab_select=["pipe.plain.copy"], lab_repeats=2))
    assert steps == [(BARE, 0), ("pipe.plain.copy", 1), ("pipe.plain.copy", 2), (BARE, 3)]


def test_every_repeat_is_planned_once(make_plan: MakePlan) -> None:
    steps = order(make_plan(lab_select=["pipe.*", "none.*", "pipe.plain.*"]))
    assert len(set(steps)) == len(steps)


def test_cell_is_fully_resolved(make_plan: MakePlan) -> None:
    plan = make_plan(lab_select=["pipe.oldest.copy"], lab_override={"pipe": {"compress": True}})
    cell = plan.cells["pipe.oldest.copy"]
    assert cell.tunnel_settings == {"cipher": "BF-CBC", "sndbuf": 65536, "compress": True}
    assert (cell.override, cell.insecure) == ({"compress": True}, "breakable (SWEET32)")
    assert (cell.target_address, cell.target_port, cell.service_port) == ("10.0.0.1", 7000, 22)
    assert cell.units["server"] == ["pipe@oldest.service"]
    bare = plan.cells[BARE]
    assert (bare.target_address, bare.target_port, bare.override) == ("192.0.2.1", 5201, {})
    assert bare.units == {"server": ["iperf3.service"], "client": []}
    assert (bare.fresh_units, bare.done_log) == (["iperf3.service"], "the end")
    assert (cell.fresh_units, cell.done_log) == ([], None)
    assert (cell.interface, bare.interface) == ("pipe0", None)
    assert (cell.compresses, bare.compresses) == (True, False)
    assert plan.tunnels == {"pipe": {"oldest": cell.tunnel_settings}, "none": {"bare": {}}}
    assert plan.workloads == {"copy": {"size_bytes": 1000}, "iperf3": {"duration_s": 10}}


def test_parameters_and_limit_come_from_the_user(make_plan: MakePlan) -> None:
    plan = make_plan(lab_params={"copy": {"size_bytes": 5}}, lab_timeout_s=1)
    assert plan.cells["pipe.plain.copy"].params == {"size_bytes": 5}
    assert {cell.timeout_s for cell in plan.cells.values()} == {1}


def test_units_are_started_anew_only_where_the_workload_wants_it(roles: Path, make_plan: MakePlan) -> None:
    path = roles / "workload_iperf3" / "workload.yml"
    path.write_text(path.read_text().replace("fresh: true", "fresh: false"))
    bare = make_plan().cells[BARE]
    assert (bare.units["server"], bare.fresh_units) == (["iperf3.service"], [])


def test_units_of_the_tunnel_come_before_those_of_the_workload(make_plan: MakePlan) -> None:
    """The gate reads the log of the tunnel's; the workload's are its own."""
    cell = make_plan().cells["pipe.small.iperf3"]
    assert cell.units == {"server": ["pipe@small.service", "iperf3.service"], "client": []}
    assert cell.fresh_units == ["iperf3.service"]


def test_user_variant_is_a_cell_like_others(make_plan: MakePlan) -> None:
    mine = {"pipe": {"mine": {"extends": "small", "settings": {"compress": True}}}}
    cell = make_plan(lab_variants=mine, lab_select="pipe.mine.copy").cells["pipe.mine.copy"]
    assert cell.tunnel_settings == {"cipher": "AES-256-GCM", "sndbuf": 65536, "compress": True}


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"lab_select": "pype.*"}, ["lab_select: 'pype.*' matches no cell", "pipe.small_old.copy", BARE]),
        ({"lab_override": {"pipe": {"sndbuff": 1}}}, ["pipe, lab_override: unknown setting", "Did you mean 'sndbuf'"]),
        ({"lab_override": {"pip": {}}}, ["lab_override: 'pip' does not exist", "Did you mean 'pipe'"]),
        ({"lab_params": {"copi": {}}}, ["lab_params: 'copi' does not exist", "Did you mean 'copy'"]),
        ({"lab_params": {"copy": {"size": 1}}}, ["lab_params.copy: unknown parameter 'size'", "size_bytes"]),
        ({"lab_profile": "quik"}, ["lab_profile: 'quik'", "Did you mean 'quick'"]),
    ],
)
def test_unknown_names_are_told_what_exists(make_plan: MakePlan, variables: dict[str, object], said: list[str]) -> None:
    with pytest.raises(LabError) as error:
        make_plan(**variables)
    assert all(part in str(error.value) for part in said), error.value


@pytest.mark.parametrize(
    ("choice", "sampled"), [(True, [0, 1, 2, 3, 4]), (False, []), ("alternate", [1, 3]), ("false", [])]
)
def test_repeats_are_sampled_as_chosen(make_plan: MakePlan, choice: object, sampled: list[int]) -> None:
    steps = make_plan(lab_sampler=choice).steps
    assert sorted({step.repeat for step in steps if step.sampled}) == sampled
