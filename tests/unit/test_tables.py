"""The tables row by row: labels, types, reasons, and what is never averaged."""

from __future__ import annotations

import functools
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from conftest import StoredRun, figure

from tunnel_lab import manifests, parsing, show, tables, why
from tunnel_lab.errors import LabError
from tunnel_lab.records import LinkState, raw_path
from tunnel_lab.summary import summarise

Make = Callable[..., StoredRun]
SMALL = "pipe.small.copy"


@pytest.fixture(autouse=True)
def _parser_of_the_tests(roles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "parser_for", functools.partial(parsing.parser_for, roles=roles))


def a_second(step: Any) -> list[dict[str, Any]]:
    """A megabyte in a second."""
    return [figure(1.0)]


def row(stored: StoredRun, cell: str, repeat: int) -> pd.Series[Any]:
    """Collect `stored` and return the only row of one repeat."""
    runs, _ = tables.collect([stored.path])
    found = runs[(runs["order"] == stored.step(cell, repeat).order)]
    assert len(found) == 1
    return found.iloc[0]


def is_empty(found: pd.Series[Any]) -> bool:
    return bool(found[["direction", "duration_s", "payload_bytes", "goodput_bit_s"]].isna().all())


def test_columns_are_in_their_order(make_run: Make) -> None:
    stored = make_run()
    stored.write(lambda step: [figure(1.0, copy_retries=1, copy_cpu_pct=2.5)])
    columns = list(tables.collect([stored.path])[0].columns)
    assert columns[: 1 + len(tables.LINK)] == ["run_id", *tables.LINK]
    rest = columns[columns.index(why.COLUMNS[-1]) + 1 :]
    hosts = [f"{host}.{key}" for host in ("server", "client") for key in ("aes", "cpus", "host", "kernel", "load")]
    assert rest == ["copy_cpu_pct", "copy_retries", "negotiated.server.cipher", *hosts, "git_commit"]


def test_values_of_a_good_row(make_run: Make) -> None:
    stored = make_run(lab_override={"pipe": {"sndbuf": 7, "compress": True}}, lab_params={"copy": {"size_bytes": 5}})
    stored.write(a_second)
    found = row(stored, SMALL, 2)
    assert (found["tunnel"], found["variant"], found["workload"]) == ("pipe", "small", "copy")
    assert (found["override"], found["params"]) == ("compress=true sndbuf=7", "size_bytes=5")
    assert (found["rtt_ms"], found["rate_mbit"], found["queue_bytes"], found["loss_pct"]) == (80, 100, 1_000_000, 0)
    assert (found["status"], found["repeat"], found["direction"]) == ("ok", 2, "server_to_client")
    assert (found["payload_bytes"], found["duration_s"], found["goodput_bit_s"]) == (1_000_000, 1, 8e6)
    assert (found["wall_s"], found["overhead_s"]) == (3.5, 1.5)
    assert (found["server.host"], found["client.cpus"], found["git_commit"]) == ("a", 2, "abc1234")
    assert pd.isna(found["reason"])
    assert pd.isna(found["insecure"])


def test_insecure_variants_carry_the_reason(make_run: Make) -> None:
    stored = make_run(lab_select="pipe.oldest.copy")
    stored.write(a_second)
    assert row(stored, "pipe.oldest.copy", 1)["insecure"] == "breakable (SWEET32)"


def test_csv_reads_back_as_it_was(make_run: Make, tmp_path: Path) -> None:
    stored = make_run()
    stored.write(lambda step: [figure(0.1 + 1 / 3, copy_tiny=1.25e-7, copy_big=2**60, copy_note="a,b")])
    stored.replace(SMALL, 1, "no JSON")
    runs, _ = tables.collect([stored.path])
    tables.write(runs, tmp_path / "runs.csv")
    text = (tmp_path / "runs.csv").read_text()
    assert "0.000000125" in text
    assert f",{2**60}," in text
    assert ",1000000," in text, "an integer stays one although another row has none"
    back = pd.read_csv(tmp_path / "runs.csv")
    for column in ("duration_s", "goodput_bit_s", "wall_s", "copy_tiny", "rtt_ms"):
        assert back[column].dtype == "float64"
        pd.testing.assert_series_equal(back[column], runs[column], check_exact=True)
    assert back["order"].dtype == "int64"
    assert back["server.aes"].dtype == "bool"
    assert (back[back["variant"] == "bare"]["tunnel"] == "none").all()
    assert pd.to_datetime(back["started_at"]).notna().all()


def test_real_network_has_no_link_numbers(make_run: Make) -> None:
    stored = make_run(rtt_ms=None)
    stored.write(a_second)
    found = row(stored, SMALL, 1)
    assert found["link_emulator"] == "none"
    assert found[["rtt_ms", "rate_mbit", "queue_bytes", "loss_pct"]].isna().all()
    assert found["region_pair"] is None or pd.isna(found["region_pair"])
    assert len(summarise(tables.collect([stored.path])[0])) == 3


def test_regions_and_the_link_as_measured(make_run: Make) -> None:
    """Two pairs of regions in one table are never put together."""
    paths = []
    for n, (there, rtt_ms) in enumerate((("eu-west-1", 68.2), ("ap-south-1", 190.4))):
        stored = make_run(f"run-{n}", rtt_ms=None)
        environment = {**stored.run.environment}
        environment["server"] = {**environment["server"], "region": "us-east-1"}
        environment["client"] = {**environment["client"], "region": there}
        measured = LinkState(emulator="none", measured_rtt_ms=rtt_ms, measured_goodput_bit_s=3e8)
        run = stored.run.model_copy(update={"environment": environment, "link": measured})
        (stored.path / "run.json").unlink()
        run.write(stored.path / "run.json")
        stored.write(a_second)
        paths.append(stored.path)
    runs, _ = tables.collect(paths)
    assert sorted(runs["region_pair"].unique()) == ["us-east-1 ap-south-1", "us-east-1 eu-west-1"]
    found = runs[runs["region_pair"] == "us-east-1 eu-west-1"].iloc[0]
    assert (found["link_rtt_ms"], found["link_goodput_bit_s"]) == (68.2, 3e8)
    assert len(summarise(runs)) == 6


def test_what_a_cloud_held_up_is_told(make_run: Make) -> None:
    stored = make_run()
    stored.write(a_second)
    name = "bw_out_allowance_exceeded"
    step = stored.step(SMALL, 1)
    good = stored.record(step, a_second(step))
    counted = {}
    for look, value in (("before", 5), ("after", 17)):
        seen = getattr(good, look)
        counters = {**seen["server"].counters, "link0": {**seen["server"].counters["link0"], name: value}}
        counted[look] = {**seen, "server": seen["server"].model_copy(update={"counters": counters})}
    stored.replace(SMALL, 1, a_second(step), **counted)
    assert row(stored, SMALL, 1)["allowance_exceeded"] == "server.bw_out=12"
    assert pd.isna(row(stored, SMALL, 2)["allowance_exceeded"]), "a driver that counts no such thing"


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("no JSON", "go: not JSON"),
        ("[]", "one figure per direction"),
        ([figure(1.0), figure(1.0)], "one figure per direction"),
        ([{"surprise": 1}], "the parser of copy failed: KeyError"),
        ([figure(-1.0)], "the parser of copy failed: ValidationError"),
    ],
)
def test_output_that_cannot_be_trusted_is_a_failure(make_run: Make, output: Any, reason: str) -> None:
    stored = make_run()
    stored.write(a_second)
    stored.replace(SMALL, 1, output)
    found = row(stored, SMALL, 1)
    assert found["status"] == "failed"
    assert reason in found["reason"]
    assert "\n" not in found["reason"]
    assert is_empty(found)
    assert found["wall_s"] == 3.5, "the time that it took is known all the same"


@pytest.mark.parametrize("status", ["failed", "aborted", "not_possible"])
@pytest.mark.parametrize("reason", ["no way\nthrough", "", " ", None])
def test_every_bad_status_has_a_reason(make_run: Make, status: str, reason: str | None) -> None:
    stored = make_run()
    stored.write(a_second)
    stored.replace(SMALL, 1, [figure(1.0)], status=status, reason=reason)
    found = row(stored, SMALL, 1)
    assert found["status"] == status
    assert found["reason"] == "no way through" if reason and reason.strip() else found["reason"].strip()
    assert is_empty(found)


def test_planned_repeat_without_record(make_run: Make) -> None:
    stored = make_run()
    stored.write(a_second, (SMALL, 2))
    found = row(stored, SMALL, 2)
    assert (found["status"], found["reason"]) == ("aborted", "no record: the run ended before this repeat")
    assert is_empty(found)
    assert found[["started_at", "wall_s"]].isna().all()


def test_run_without_raw_directory(make_run: Make) -> None:
    runs, problems = tables.collect([make_run().path])
    assert (problems, set(runs["status"])) == ([], {"aborted"})
    summed = summarise(runs)
    assert list(summed["n"]) == [0, 0, 0]
    assert sorted(summed["n_failed"]) == [2, 3, 3]


def test_copy_of_another_record_does_not_count(make_run: Make) -> None:
    stored = make_run()
    stored.write(a_second)
    shutil.copy(stored.file(SMALL, 1), stored.file(SMALL, 2))
    _, problems = tables.collect([stored.path])
    assert len(problems) == 1
    assert row(stored, SMALL, 1)["status"] == "ok"
    assert row(stored, SMALL, 2)["status"] == "failed"
    assert f"it holds {SMALL} repeat 1" in row(stored, SMALL, 2)["reason"]


def test_renamed_record_is_the_reason_for_its_repeat(make_run: Make) -> None:
    stored = make_run()
    stored.write(a_second)
    stored.file(SMALL, 1).rename(stored.path / "raw" / "mine.json")
    found = row(stored, SMALL, 1)
    assert found["status"] == "failed"
    assert found["reason"].startswith("mine.json: no repeat of the plan has this file name")


def test_record_of_other_run_or_settings_does_not_count(make_run: Make) -> None:
    stored = make_run()
    stored.write(a_second)
    stored.replace(SMALL, 1, [figure(1.0)], run_id="run-0")
    other = stored.run.plan.cells["pipe.plain.copy"].model_copy(update={"id": SMALL})
    stored.replace(SMALL, 2, [figure(1.0)], cell=other)
    assert row(stored, SMALL, 1)["reason"].endswith("belongs to another run, run-0.")
    assert "other settings than the plan" in row(stored, SMALL, 2)["reason"]


def test_directions_are_summarised_apart(make_run: Make) -> None:
    stored = make_run()
    stored.write(lambda step: [figure(1.0), figure(2.0, "client_to_server")])
    stored.replace(SMALL, 2, "no JSON")
    runs, _ = tables.collect([stored.path])
    assert len(runs) == 8 * 2 - 1
    small = summarise(runs).query("variant == 'small'").set_index("direction")
    assert list(small.index) == ["client_to_server", "server_to_client"]
    assert list(small["n"]) == [2, 2]
    assert list(small["n_failed"]) == [1, 1]
    assert list(small["goodput_median_bit_s"]) == [4e6, 8e6]


def test_cell_without_any_good_repeat_keeps_its_row(make_run: Make) -> None:
    stored = make_run()
    stored.write(a_second, (SMALL, 1), (SMALL, 2), (SMALL, 3))
    small = summarise(tables.collect([stored.path])[0]).query("variant == 'small'").iloc[0]
    assert (small["n"], small["n_failed"]) == (0, 3)
    assert small[["goodput_median_bit_s", "goodput_cv", "duration_median_s"]].isna().all()


def test_spread_of_one_repeat_is_empty(make_run: Make) -> None:
    stored = make_run(lab_repeats=1)
    stored.write(a_second)
    summed = summarise(tables.collect([stored.path])[0]).set_index("variant")
    assert summed["goodput_cv"].isna()["small"]
    assert summed["goodput_cv"]["bare"] == 0


def test_other_parameters_or_settings_are_other_rows(make_run: Make, capsys: pytest.CaptureFixture[str]) -> None:
    mine = {"pipe": {"mine": {"settings": {"sndbuf": 1}}}}
    yours = {"pipe": {"mine": {"settings": {"sndbuf": 2}}}}
    runs = [
        make_run("run-1", lab_variants=mine, lab_select="pipe.mine.copy"),
        make_run("run-2", lab_variants=yours, lab_select="pipe.mine.copy"),
        make_run("run-3", lab_variants=mine, lab_select="pipe.mine.copy", lab_params={"copy": {"size_bytes": 2}}),
    ]
    for stored in runs:
        stored.write(a_second)
    summed = summarise(tables.collect([stored.path for stored in runs])[0])
    assert list(summed.query("variant == 'mine'")["n"]) == [3, 3, 3]
    assert summed.query("variant == 'bare'")["n"].item() == 6
    show.summary(summed)
    assert "size_bytes=2]" in capsys.readouterr().out.replace("\n", "")


def test_canonical_settings() -> None:
    settings = {"b": "two words", "a": None, "c": [1, "x"], "d": "AES-256-GCM", "e": 1.5}
    assert tables.canonical(settings) == "a=null b='two words' c='[1, \"x\"]' d=AES-256-GCM e=1.5"
    assert tables.canonical({}) == ""


def test_drift_needs_both_ends(make_run: Make, capsys: pytest.CaptureFixture[str]) -> None:
    stored = make_run()
    stored.write(a_second, ("none.bare.iperf3", 4))
    show.drift(tables.collect([stored.path])[0])
    assert capsys.readouterr().out == ""


def test_table_is_written_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame({"a": [1.5]})
    tables.write(table, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").stat().st_mode & 0o777 == 0o644

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(LabError, match=r"a\.csv: cannot be written: No space left"):
        tables.write(table, tmp_path / "a.csv")
    assert [path.name for path in tmp_path.glob("*a.csv*")] == ["a.csv"]
    assert (tmp_path / "a.csv").read_text() == "a\n1.5\n"


def test_thousands_of_records_take_seconds(make_run: Make) -> None:
    stored = make_run(lab_repeats=1000)
    for step in stored.run.plan.steps:
        path = raw_path(stored.path, step)
        path.parent.mkdir(exist_ok=True)
        path.write_text(stored.record(step, a_second(step)).model_dump_json())
    started = time.monotonic()
    runs, _ = tables.collect([stored.path])
    assert len(runs) == 2002
    assert summarise(runs)["n"].sum() == 2002
    assert time.monotonic() - started < 6, "10,000 records must take less than 30 s"


def test_records_come_in_the_order_of_the_run_and_broken_ones_are_left_out(make_run: Make) -> None:
    stored = make_run()
    stored.write(a_second, (SMALL, 3))
    stored.file(SMALL, 1).write_text("{")
    orders = [record.step.order for record in tables.records(stored.path, stored.run)]
    assert orders == sorted(orders)
    assert len(orders) == 6


def test_own_figures_of_a_workload_have_medians_and_are_shown(
    make_run: Make, roles: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = make_run()
    stored.write(lambda step: [figure(1.0, copy_wait_ms=float(step.repeat), copy_version="3.1")])
    summed = summarise(tables.collect([stored.path])[0])
    small = summed.query("variant == 'small'").iloc[0]
    assert small["copy_wait_ms_median"] == 2
    assert "copy_version_median" not in summed
    workload = manifests.load(roles).workloads["copy"]
    shown = workload.model_copy(update={"shown": {"copy_wait_ms": "wait\nms", "copy_gone": "gone"}})
    show.own_figures(summed, {"copy": shown, "iperf3": manifests.load(roles).workloads["iperf3"]})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if "pipe.small" in line] == [["pipe.small.copy", "S→C", "2.00"]]
    assert "wait" in lines[0]
    assert not any("gone" in line or "iperf3" in line for line in lines)
