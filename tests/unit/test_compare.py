"""Comparison: the right pairs, ratios known beforehand, and every circumstance that differs."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from bundles import PLAIN, SMALL, bundled, by_repeat
from conftest import StoredRun, environment, figure

from tunnel_lab import compare, parsing, stats, tables
from tunnel_lab.circumstances import differences
from tunnel_lab.cli import main
from tunnel_lab.compare import Compared, Side
from tunnel_lab.errors import LabError
from tunnel_lab.plan import Step
from tunnel_lab.records import Run

Make = Callable[..., StoredRun]


@pytest.fixture(autouse=True)
def _parser_of_the_tests(roles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "parser_for", functools.partial(parsing.parser_for, roles=roles))


def side(stored: StoredRun) -> Side:
    return Side(stored.run, tables.collect([stored.path])[0])


def durations(stored: StoredRun, seconds: dict[str, Sequence[float]], other: float = 1.0) -> StoredRun:
    """Write a run in which a megabyte takes so long in repeats 1, 2, ... of some cells, and `other` in all others."""

    def output(step: Step) -> Any:
        given = seconds.get(step.cell, ())
        return [figure(given[step.repeat - 1] if 0 < step.repeat <= len(given) else other)]

    stored.write(output)
    return stored


def only(rows: list[Compared], cell: str) -> Compared:
    (found,) = (row for row in rows if row.cell == cell)
    return found


def test_runs_are_independent_samples(make_run: Make) -> None:
    slow = durations(make_run("run-1"), {SMALL: [4, 2, 8], PLAIN: [1, 2, 4]})
    fast = durations(make_run("run-2"), {SMALL: [1, 0.5, 0.8], PLAIN: [4, 1, 2]})
    found = compare.of_runs([side(slow), side(fast)])
    small, plain = only(found.rows, SMALL), only(found.rows, PLAIN)
    assert (small.base, small.value) == (2e6, 10e6)  # a megabyte in 4 and in 0.8 s
    assert small.ratio == stats.ratio([8e6, 16e6, 10e6], [2e6, 4e6, 1e6])
    assert (small.verdict, plain.verdict) == ("faster", "no difference shown")
    assert plain.ratio.median == 1
    assert compare.of_runs([side(fast), side(slow)]).rows[-1].verdict == "slower"
    assert (small.n_base, small.n, small.direction, small.params) == (3, 3, "server_to_client", "size_bytes=1000")


def test_cells_of_one_run_are_pairs(make_run: Make) -> None:
    # both get slower from round to round: the medians' quotient would be lost in that
    stored = durations(make_run(lab_repeats=6), {SMALL: [1, 2, 4, 8, 16, 32], PLAIN: [2, 4, 8, 16, 32, 64]})
    (row,) = compare.of_cells(side(stored), [PLAIN, SMALL]).rows
    assert (row.ratio.median, row.ratio.low, row.ratio.high) == (2, 2, 2)
    assert row.verdict == "faster"
    (row,) = compare.of_cells(side(stored), ["*.small.*", "*.plain.*"]).rows
    assert (row.ratio.median, row.verdict, row.cell) == (0.5, "slower", PLAIN)


def test_pairs_are_of_the_same_round(make_run: Make) -> None:
    stored = make_run()
    stored.write(by_repeat, (SMALL, 1), (PLAIN, 3))
    (row,) = compare.of_cells(side(stored), [SMALL, PLAIN]).rows
    assert (row.n_base, row.n, row.base, row.value) == (1, 1, 4e6, 4e6)  # only round 2: a megabyte in 2 s
    assert row.verdict == "n too small"
    (row,) = compare.of_cells(side(stored), [SMALL, "none.*"]).rows  # the bare link is before and after the rounds
    assert (row.n, row.verdict) == (0, "n too small")


def test_only_shared_directions_are_compared(make_run: Make) -> None:
    stored = make_run()
    both = [figure(1.0), figure(2.0, "client_to_server")]
    stored.write(lambda step: both if step.cell == SMALL else [figure(4.0)])
    found = compare.of_cells(side(stored), [SMALL, PLAIN])
    assert [row.direction for row in found.rows] == ["server_to_client"]
    assert found.left_out == [f"{PLAIN} client_to_server: only A has it, B does not"]
    other = make_run("run-2")
    other.write(lambda step: [figure(1.0)])
    rows = [row for row in compare.of_runs([side(stored), side(other)]).rows if row.cell == SMALL]
    assert [(row.direction, row.n_base, row.n) for row in rows] == [
        ("client_to_server", 3, 0),
        ("server_to_client", 3, 3),
    ]
    assert rows[0].verdict == "n too small"


def test_what_only_one_run_has_or_measured_otherwise_is_told(make_run: Make) -> None:
    base = durations(make_run("run-1"), {})
    other = durations(make_run("run-2", lab_select=f"{SMALL},pipe.oldest.copy"), {})
    found = compare.of_runs([side(base), side(other)])
    assert found.left_out == ["pipe.oldest.copy: only B has it", f"{PLAIN}: only A has it"]
    larger = durations(make_run("run-3", lab_params={"copy": {"size_bytes": 7}}), {})
    found = compare.of_runs([side(base), side(larger)])
    assert found.left_out == [f"{cell}: params differ: size_bytes 1000 -> 7" for cell in (PLAIN, SMALL)]
    assert [row.cell for row in found.rows] == ["none.bare.iperf3"]
    empty = make_run("run-4")
    found = compare.of_runs([side(empty), side(empty)])
    assert found.rows == []
    assert f"{SMALL}: neither A nor B has a good repeat of it" in found.left_out


def test_two_good_repeats_make_an_interval_and_one_does_not(make_run: Make) -> None:
    one, two = make_run("run-1"), make_run("run-2")
    one.write(by_repeat, (SMALL, 1), (SMALL, 2))
    two.write(by_repeat)
    row = only(compare.of_runs([side(one), side(two)]).rows, SMALL)
    assert (row.n_base, row.n, row.verdict) == (1, 3, "n too small")


@pytest.mark.parametrize(
    ("metric", "said"), [("duration_s", "lower"), ("goodput_bit_s", "faster"), ("payload_bytes", "no difference shown")]
)
def test_other_metrics_are_higher_or_lower(make_run: Make, metric: str, said: str) -> None:
    base, other = (
        durations(make_run(f"run-{number}"), {SMALL: [number, number, number]}, other=number) for number in (2, 1)
    )
    assert only(compare.of_runs([side(base), side(other)], metric).rows, SMALL).verdict == said


def test_zero_has_no_ratio(make_run: Make) -> None:
    base, other = make_run("run-1"), make_run("run-2")
    base.write(lambda step: [figure(1.0, copy_retries=0)])
    other.write(lambda step: [figure(1.0, copy_retries=3)])
    row = only(compare.of_runs([side(base), side(other)], "copy_retries").rows, SMALL)
    assert (row.base, row.value, row.verdict) == (0, 3, "no ratio of zero")


def test_bad_input_is_told(make_run: Make) -> None:
    stored = side(durations(make_run(), {}))
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: compare.of_runs([stored]), "needs two runs or more, was given 1"),
        (lambda: compare.of_runs([stored] * 27), "27 runs: at most 26"),
        (lambda: compare.of_cells(stored, [SMALL]), "needs two cells or more, was given 1"),
        (lambda: compare.of_cells(stored, [SMALL, "pipe.smal.copy"]), "Did you mean 'pipe.small.copy'"),
        (lambda: compare.of_cells(stored, [SMALL, "pipe.*"]), f"matches 2 cells, {PLAIN}, {SMALL}"),
        (lambda: compare.of_cells(stored, [SMALL, "*small*"]), f"{SMALL}: named twice"),
        (lambda: compare.of_runs([stored, stored], "godput_bit_s"), "Did you mean 'goodput_bit_s'"),
        (lambda: compare.of_runs([stored, stored], "variant"), "no column of numbers 'variant'"),
    ]
    for call, said in calls:
        with pytest.raises(LabError) as error:
            call()
        assert said in str(error.value)


def test_same_circumstances(make_run: Make) -> None:
    assert differences(make_run("run-1").run, make_run("run-2").run) == []


def changed(run: Run, **fields: Any) -> Run:
    return Run.model_validate({**run.model_dump(), **fields})


def test_every_circumstance_that_differs_is_told(make_run: Make) -> None:
    base = make_run("run-1").run
    hosts = {
        "server": {**environment("a"), "kernel": "6.2.0", "packages": {"openvpn": "2.6"}, "sysctls": {"a": "b\tc"}},
        "client": {**environment("b"), "kernel": "6.2.0", "sysctls": {"a": "b\tc"}},
        "controller": {"git_commit": "fff0000", "python": "3.12"},
    }
    other = make_run("run-2", rtt_ms=20, lab_override={"pipe": {"cipher": "BF-CBC"}}, lab_seed=7, lab_repeats=4).run
    measured = other.link.model_copy(update={"emulator": "netem", "measured_rtt_ms": 20.1})
    found = differences(base, changed(other, environment=hosts, provider="cloud", link=measured.model_dump()))
    told = {each.what: (each.base, each.other) for each in found}
    assert told == {
        "link rtt_ms": ("80.0", "20.0"),
        "link queue_bytes": ("1000000", "250000"),  # 100 Mbit/s for 80 and for 20 ms
        "link emulator": ("relay", "netem"),
        "link round trip as measured": ("none", "20.1 ms"),
        "provider": ("local", "cloud"),
        "git commit": ("abc1234", "fff0000"),
        "lab_seed": ("2016", "7"),
        "lab_repeats": ("3", "4"),
        "lab_override": ("{}", '{"pipe": {"cipher": "BF-CBC"}}'),
        "server and client kernel": ("6.1.0", "6.2.0"),
        "server and client sysctl a": ("b", "b c"),
        "server package openvpn": ("none", "2.6"),
        "controller python": ("none", "3.12"),
        "pipe cipher of plain, small": ("AES-256-GCM", "BF-CBC"),
    }


def test_measured_link_may_differ_by_a_hundredth(make_run: Make) -> None:
    run = make_run("run-1").run
    links = [
        run.link.model_copy(update={"measured_rtt_ms": 80.2, "measured_goodput_bit_s": goodput}).model_dump()
        for goodput in (95.0e6, 95.9e6, 96.1e6)
    ]
    base, near, far = (changed(run, link=link) for link in links)
    assert differences(base, near) == []
    assert [str(each) for each in differences(base, far)] == ["link bare TCP as measured: 95 Mbit/s -> 96.1 Mbit/s"]


@pytest.fixture
def two(make_run: Make) -> tuple[Path, Path]:
    """Two runs, the second twice as fast."""
    runs = durations(make_run("run-1"), {}, 2.0), durations(make_run("run-2", lab_seed=7), {}, 1.0)
    return runs[0].path, runs[1].path


def test_table_for_people(two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *map(str, two)]) == 0
    shown = capsys.readouterr().out
    assert not [line for line in shown.splitlines() if len(line) > 100]
    lines = shown.splitlines()
    assert lines[:4] == ["A  run-1  (the base)", "B  run-2", "B differs from A in", "  lab_seed: 2016 -> 7"]
    (row,) = (line for line in lines if line.startswith(SMALL))
    assert row.split() == [SMALL, "S→C", "3", "4.00", "8.00", "2.000", "2-2", "faster"]
    # 3 and 3 values: the interval leaves out the two most extreme of 20 orders
    assert "With n = 3 an interval covers 90%, not 95 %." in lines
    assert "With n = 2 an interval covers 67%, not 95 %." in lines  # the bare link: 2 of 6 orders


def test_three_runs_each_against_the_first(
    two: tuple[Path, Path], make_run: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    third = durations(make_run("run-3"), {}, 4.0).path
    assert main(["compare", *map(str, two), str(third), "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    ratios = {row["label"]: row["ratio"] for row in shown["rows"] if row["cell"] == SMALL}
    assert ratios == {"B": 2, "C": 0.5}
    assert shown["different"] == {"B": [{"what": "lab_seed", "base": "2016", "other": "7"}], "C": []}
    assert main(["compare", *map(str, two), str(third)]) == 0
    assert f"{SMALL}" in capsys.readouterr().out


def test_a_bundle_is_a_run(make_run: Make, capsys: pytest.CaptureFixture[str]) -> None:
    stored = durations(make_run(), {}, 2.0)
    path = bundled(stored)
    assert main(["compare", str(stored.path), str(path), "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {row["ratio"] for row in shown["rows"]} == {1}
    assert shown["different"] == {"B": []}
    assert main(["compare", "--run", str(path), SMALL, "*plain*", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in shown["compared"]] == [SMALL, PLAIN]


def test_arguments_that_do_not_fit_together(two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    one, other = map(str, two)
    for arguments, said in (
        ([one, SMALL], f"{SMALL}: is no run, the others are"),
        ([one, other, "--run", one], "--run"),
        ([one], "needs two runs"),
        ([SMALL, PLAIN, "--run", f"{one}/gone"], "no such file"),
        (["nonsense", "more"], "nonsense: no such run directory or bundle"),
        ([one, "gone/run"], "gone/run"),
        ([one, "gone.tar.gz"], "gone.tar.gz: no such file"),
    ):
        assert main(["compare", *arguments]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert len(shown.err.splitlines()) == 1
        assert said in shown.err
