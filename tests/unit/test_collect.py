"""The command line as a user calls it: exit statuses, messages, and the files that it leaves."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from conftest import Collect, StoredRun, figure

Make = Callable[..., StoredRun]


def by_repeat(step: Any) -> list[dict[str, Any]]:
    """A megabyte in 1, 2, 4 s for repeats 1, 2, 3: 8, 4, 2 Mbit/s; the bare link in 0.5 and 0.625 s."""
    return [figure({0: 0.5, 1: 1.0, 2: 2.0, 3: 4.0, 4: 0.625}[step.repeat])]


FILES = ["runs.csv", "summary.csv", "claims.csv", "timeseries.csv.gz", "report.html", "report.md"]


def one_line(result: subprocess.CompletedProcess[str], *parts: str | Path) -> None:
    """Check that `result` is one clear line about bad input."""
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert all(str(part) in result.stderr for part in parts), result.stderr


def test_complete_run_gives_known_figures(make_run: Make, collect: Collect) -> None:
    stored = make_run()
    stored.write(by_repeat)
    result = collect("collect", stored.path)
    assert (result.returncode, result.stderr) == (0, "")
    summary = pd.read_csv(stored.path / "summary.csv").set_index("variant")
    small = summary.loc["small"]
    assert (small["n"], small["n_failed"]) == (3, 0)
    assert small["goodput_median_bit_s"] == 4e6
    assert (small["goodput_min_bit_s"], small["goodput_max_bit_s"]) == (2e6, 8e6)
    assert small["goodput_cv"] == pytest.approx(math.sqrt(3 / 7))
    assert (small["duration_median_s"], small["overhead_median_s"]) == (2, 1.5)
    bare = summary.loc["bare"]  # 16 and 12.8 Mbit/s
    assert (bare["n"], bare["goodput_median_bit_s"]) == (2, 14.4e6)
    assert "16.00 and 12.80 Mbit/s, drift -20.0 %" in result.stdout
    assert result.stdout.splitlines()[-6:] == [str(stored.path / name) for name in FILES]


def test_printed_table_is_plain_and_narrow(make_run: Make, collect: Collect) -> None:
    stored = make_run(lab_override={"pipe": {"cipher": "AES-128-GCM", "sndbuf": 1}}, lab_select="pipe.small_old.*")
    stored.write(by_repeat)
    shown = collect("collect", stored.path).stdout
    assert "\x1b" not in shown
    table = shown.split("Bare link")[0].splitlines()
    assert max(len(line) for line in table) <= 100
    assert "80 ms round trip, 100 Mbit/s" in table[0]
    assert any(line.split()[-6:] == ["0", "4.00", "2.00-8.00", "65.5", "2.00", "1.5"] for line in table)
    assert all(word in shown for word in ("pipe.small_old.copy", "cipher=AES-128-GCM", "sndbuf=1"))


def test_second_collect_writes_the_same_bytes(make_run: Make, collect: Collect) -> None:
    stored = make_run()
    stored.write(by_repeat, ("pipe.small.copy", 2))
    before = []
    for _ in range(2):
        assert collect("collect", stored.path).returncode == 1
        before.append([(stored.path / name).read_bytes() for name in FILES])
    assert before[0] == before[1]
    kept = {"raw", "run.json", *FILES}
    assert {path.name for path in stored.path.iterdir()} == kept


def test_broken_records_are_named_and_lose_nothing_else(make_run: Make, collect: Collect) -> None:
    stored = make_run()
    stored.write(by_repeat, ("pipe.small.copy", 3))
    cut, newer, wrong = (stored.file("pipe.plain.copy", repeat) for repeat in (1, 2, 3))
    cut.write_text(cut.read_text()[:200])
    newer.write_text(newer.read_text().replace('"schema_version": 4', '"schema_version": 5'))
    wrong.write_text(json.dumps({**json.loads(wrong.read_text()), "wall_s": "long", "status": "fine"}))
    stranger = stored.path / "raw" / "pipe.plain.copy.r9.json"
    stranger.write_text(stored.file("pipe.small.copy", 1).read_text())
    result = collect("collect", stored.path)
    assert result.returncode == 2
    for path, why in {cut: "not complete JSON", newer: "schema_version is 5", wrong: "(and 1 more)"}.items():
        assert any(str(path) in line and why in line for line in result.stderr.splitlines()), result.stderr
    assert f"{stranger}: no repeat of the plan has this file name" in result.stderr
    assert "Traceback" not in result.stderr
    assert "4 of 8 planned repeats have no good record" in result.stdout
    runs = pd.read_csv(stored.path / "runs.csv")
    assert len(runs) == 8
    assert list(runs[runs["variant"] == "plain"]["status"]) == ["failed"] * 3
    assert list(runs[runs["variant"] == "small"].sort_values("repeat")["status"]) == ["ok", "ok", "aborted"]


def test_failures_beyond_ten_are_counted(make_run: Make, collect: Collect) -> None:
    stored = make_run(lab_repeats=7)
    stored.replace("pipe.small.copy", 1, "cut")
    result = collect("collect", stored.path)
    assert result.returncode == 1
    assert "16 of 16 planned repeats have no good record" in result.stdout
    assert result.stdout.count("aborted: no record: the run ended before this repeat") == 9
    assert "and 6 more" in result.stdout


def test_several_runs_become_one_table(make_run: Make, collect: Collect, tmp_path: Path) -> None:
    first, second = make_run("run-1"), make_run("run-2", rtt_ms=None)
    for stored in (first, second):
        stored.write(by_repeat)
    one_line(collect("collect", first.path, second.path), "--output DIR")
    output = tmp_path / "new" / "merged"
    assert collect("collect", second.path, first.path, "--output", output).returncode == 0
    runs = pd.read_csv(output / "runs.csv")
    assert list(runs["run_id"].unique()) == ["run-1", "run-2"]
    assert len(pd.read_csv(output / "summary.csv")) == 6, "another link is another row"
    assert not (first.path / "runs.csv").exists()
    one_line(collect("collect", first.path, f"{first.path}/.", "--output", output), "run-1", "Name it once")


def test_latest_is_the_default(make_run: Make, collect: Collect, tmp_path: Path) -> None:
    one_line(collect("collect"), tmp_path / "results" / "latest", "Run the lab first")
    stored = make_run()
    stored.write(by_repeat)
    (tmp_path / "results" / "latest").symlink_to("run-1")
    assert collect("collect").returncode == 0
    assert (stored.path / "runs.csv").is_file()


def test_bad_input_is_one_line_with_status_2(make_run: Make, collect: Collect, tmp_path: Path) -> None:
    one_line(collect("collect", tmp_path / "gone"), tmp_path / "gone", "no such run directory")
    (tmp_path / "empty").mkdir()
    one_line(collect("collect", tmp_path / "empty"), tmp_path / "empty", "no run.json")
    one_line(collect("collect", "--fast"), "--fast", "--help")
    one_line(collect("gather"), "gather", "collect")
    one_line(collect(), "VERB")
    run_json = make_run().path / "run.json"
    text = run_json.read_text()
    run_json.write_text(text[:100])
    one_line(collect("collect", run_json.parent), run_json, "not complete JSON")
    run_json.write_text(text.replace('"schema_version": 4', '"schema_version": 7'))
    one_line(collect("collect", run_json.parent), run_json, "schema_version is 7")
    run_json.write_text("{" + '"schema_version": 1, "run_id": 3}')
    one_line(collect("collect", run_json.parent), run_json, "more)")
    one_line(collect("collect", run_json), run_json, "no such run directory")


def test_output_that_cannot_be_written(make_run: Make, collect: Collect, tmp_path: Path) -> None:
    stored = make_run()
    stored.write(by_repeat)
    (tmp_path / "file").write_text("")
    one_line(collect("collect", stored.path, "--output", tmp_path / "file"), "cannot be written")


@pytest.mark.parametrize("arguments", [["--help"], ["collect", "--help"]])
def test_help_says_what_there_is(collect: Collect, arguments: list[str]) -> None:
    result = collect(*arguments)
    assert result.returncode == 0
    assert "collect" in result.stdout
    if "collect" in arguments:
        assert all(word in result.stdout for word in ("RUN_DIR", "--output DIR", "results/latest", "Exit status"))


def test_a_run_without_any_record_is_said_to_be_empty(make_run: Make, collect: Collect) -> None:
    stored = make_run()
    one_line(collect("collect", stored.path), stored.path, "holds no record", "Run the lab again")
    assert not (stored.path / "runs.csv").exists()


CLAIM = """
title: a post
published: "2020"
claims:
  fast:
    {kind: value, says: fast, place: here, cell: pipe.small.copy, figure: {printed: 4 Mb/s, value: 4, unit: Mb/s}}
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("pipe.small.copy", "pipe.smal.copy", "claims.fast: no cell 'pipe.smal.copy'. Did you mean 'pipe.small.copy'?"),
        (", unit: Mb/s", "", "claims.fast.value.figure.unit: Field required"),
        (
            "place: here",
            "place: here, tolerance: -1",
            "claims.fast.value.tolerance: Input should be greater",
        ),
        ("kind: value", "kind: [", "not valid YAML: line 6: expected"),
    ],
)
def test_a_wrong_claim_file_is_one_line(
    make_run: Make, collect: Collect, tmp_path: Path, old: str, new: str, said: str
) -> None:
    stored = make_run()
    stored.write(by_repeat)
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "post.yml").write_text(CLAIM)
    assert collect("collect", stored.path).returncode == 0
    assert list(pd.read_csv(stored.path / "claims.csv")["verdict"]) == ["inconclusive"]  # 2, 4 and 8 of 4 Mbit/s
    (tmp_path / "claims" / "post.yml").write_text(CLAIM.replace(old, new))
    one_line(collect("collect", stored.path), "claims/post.yml", said)
