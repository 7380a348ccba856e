"""Verification: what was changed after bundling is found, also when a new manifest covers it up."""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from bundles import PLAIN, SMALL, bundled, by_repeat, forged, members, packed
from conftest import StoredRun

from tunnel_lab import bundle, parsing
from tunnel_lab.cli import main
from tunnel_lab.errors import LabError
from tunnel_lab.records import SCHEMA_VERSION
from tunnel_lab.verification import verify

Make = Callable[..., StoredRun]
SCHEMA = f'"schema_version": {SCHEMA_VERSION}'.encode()


@pytest.fixture(autouse=True)
def _parser_of_the_tests(roles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "parser_for", functools.partial(parsing.parser_for, roles=roles))
    monkeypatch.setattr(bundle, "commit", lambda: "def5678")


@pytest.fixture
def good(make_run: Make) -> Path:
    """The bundle of a whole run."""
    stored = make_run()
    stored.write(by_repeat)
    return bundled(stored)


def changed(path: Path, name: str, old: bytes, new: bytes) -> dict[str, bytes | None]:
    """Return one file of a bundle with `old`, which must be there, replaced."""
    text = members(path)[name]
    assert old in text
    return {name: text.replace(old, new)}


def status(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Return exit status, standard output and standard error of `verify`."""
    result = main(["verify", str(path)])
    shown = capsys.readouterr()
    return result, shown.out, shown.err


def test_untouched_bundle(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = verify(good)
    assert (found.differences, found.notes) == ([], [])
    assert found.records == 8  # 3 repeats of 2 cells, and the bare link twice
    result, out, err = status(good, capsys)
    assert (result, err) == (0, "")
    assert out == f"verified: 8 records, {found.figures} figures in 3 tables are what the records say\n"
    assert found.figures > 8 * 20


def test_run_under_way_says_what_it_lacks(make_run: Make) -> None:
    stored = make_run()
    stored.write(by_repeat, (SMALL, 3))
    stored.file(SMALL, 1).write_text("{")
    found = verify(bundled(stored))
    assert found.differences == []
    assert found.notes[0].startswith(f"raw/{SMALL}.r1.json: not complete JSON")
    assert found.notes[1] == "run-1: 1 of 8 planned repeats have no record"


def test_changed_record_is_found_by_its_hash_and_by_its_figures(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change = changed(good, f"raw/{SMALL}.r2.json", b'\\"duration_s\\": 2.0', b'\\"duration_s\\": 1.0')
    result, out, _ = status(forged(good, change, new_manifest=False), capsys)
    assert result == 1
    assert out.splitlines()[0] == f"raw/{SMALL}.r2.json: not the file that MANIFEST.json was made for"
    assert "goodput_bit_s: 4000000.0, the records give 8000000.0" in out
    found = verify(forged(good, change, new_manifest=True))
    assert not any("MANIFEST" in each for each in found.differences)
    # of repeat 2 itself; of the median of 8, 4 and 2 Mbit/s; of what the claim was held against
    said = " | ".join(found.differences)
    assert "goodput_bit_s: 4000000.0, the records give 8000000.0" in said
    assert "summary.csv row 3, goodput_median_bit_s: 4000000.0, the records give 8000000.0" in said
    assert "claims.csv row 1, measured: 4000000.0, the records give 8000000.0" in said


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("runs.csv", b"8000000", b"9000000"),
        ("runs.csv", b"run-1", b"run-2"),
        ("runs.csv", b"server_to_client", b"client_to_server"),
        ("summary.csv", b"4000000", b"4000001"),
        ("claims.csv", b"table 1", b"table 2"),
        ("claims/paper.yml", b"value: 4", b"value: 8"),
        ("report.md", b"run-1", b"run-2"),
        ("report.html", b"run-1", b"run-2"),
        ("RERUN.md", b"verify", b"trust"),
        ("choices.yml", b"run-1", b"run-2"),
        ("timeseries.csv.gz", b"\x1f\x8b", b"\x1f\x8c"),
        ("run.json", b'"rtt_ms": 80', b'"rtt_ms": 8'),
        ("run.json", b'"git_commit": "abc1234"', b'"git_commit": "abc9999"'),
    ],
)
def test_forged_manifest_does_not_help(good: Path, name: str, old: bytes, new: bytes) -> None:
    found = verify(forged(good, changed(good, name, old, new), new_manifest=True))
    assert found.differences
    assert not any("was made for" in each for each in found.differences), "the manifest fits"


def test_last_digit_of_another_machine_is_no_difference(good: Path) -> None:
    text = members(good)["summary.csv"]
    assert b",4000000.0," in text
    near = text.replace(b",4000000.0,", b",4000000.001,")  # 2.5e-10 of it
    assert verify(forged(good, {"summary.csv": near}, new_manifest=True)).differences == []


def test_text_that_looks_like_the_same_number_is_another_text(good: Path) -> None:
    change = changed(good, "runs.csv", b"6.1.0", b"6.01.0")
    assert verify(forged(good, change, new_manifest=True)).differences


def test_rows_and_columns_that_are_missing(good: Path) -> None:
    lines = members(good)["runs.csv"].splitlines(keepends=True)
    said = verify(forged(good, {"runs.csv": b"".join(lines[:-1])}, new_manifest=True)).differences
    assert said[0] == "runs.csv: has 7 rows, the records give 8"
    head = lines[0].replace(b"goodput_bit_s", b"goodput")
    said = verify(forged(good, {"runs.csv": b"".join([head, *lines[1:]])}, new_manifest=True)).differences
    assert "runs.csv: the records give no column goodput" in said
    assert "runs.csv: has no column goodput_bit_s, which the records give" in said
    for broken in (b"", b"\xff\xfe", b'a,b\n"c', b"a\n1,2,3\n4"):
        said = verify(forged(good, {"runs.csv": broken}, new_manifest=True)).differences
        assert said and said[0].startswith("runs.csv: ")


def test_first_wrong_line_of_the_series_is_told(good: Path) -> None:
    name = "timeseries.csv.gz"
    lines = gzip.decompress(members(good)[name]).splitlines(keepends=True)
    more = {name: gzip.compress(b"".join([*lines, b"run-1,x\n"]))}
    said = verify(forged(good, more, new_manifest=True)).differences
    assert said == [f"{name}: line {len(lines) + 1} is not what the records give"]
    cut = {name: members(good)[name][:-12]}
    assert verify(forged(good, cut, new_manifest=True)).differences[0].startswith(f"{name}: ")


def test_other_code_explains_another_report_but_no_other_figure(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "commit", lambda: "0123456")
    found = verify(good)
    assert found.differences == []
    assert "made by the code of commit def5678, verified by that of 0123456" in found.notes[0]
    assert "RERUN.md: not what the records give" in found.notes
    change = changed(good, "summary.csv", b"4000000", b"5000000")
    assert verify(forged(good, change, new_manifest=True)).differences


def test_code_without_a_commit_is_told(good: Path, make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "commit", lambda: "def5678-dirty")
    stored = make_run("run-2")
    stored.write(by_repeat)
    assert "in no git commit as it is" in verify(bundled(stored, "b.tar.gz")).notes[0]


def manifest(path: Path, **fields: object) -> dict[str, bytes | None]:
    """Return the manifest of a bundle with other fields."""
    return {bundle.MANIFEST: json.dumps({**json.loads(members(path)[bundle.MANIFEST]), **fields}).encode()}


def test_what_is_no_bundle_is_one_line_and_status_2(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stranger, lost = forged(good, {"evil.sh": b"rm"}, False).rename(tmp_path / "1"), {f"raw/{SMALL}.r1.json": None}
    newer: dict[str, bytes | None] = {"run.json": members(good)["run.json"].replace(SCHEMA, b'"schema_version": 99')}
    cases = {
        stranger: "evil.sh is not in its MANIFEST.json",
        forged(good, lost, False).rename(tmp_path / "2"): f"raw/{SMALL}.r1.json is missing, but in its MANIFEST.json",
        forged(good, {bundle.MANIFEST: None}, False).rename(tmp_path / "3"): "not a bundle: it holds no MANIFEST.json",
        forged(good, {bundle.MANIFEST: b"{"}, False).rename(tmp_path / "4"): "MANIFEST.json: not JSON",
        forged(good, {bundle.MANIFEST: b"[]"}, False).rename(tmp_path / "5"): "format_version is None",
        forged(good, manifest(good, format_version=2), False).rename(tmp_path / "6"): "format_version is 2",
        forged(good, manifest(good, files={"a": 3}), False).rename(tmp_path / "7"): "files.a",
        forged(good, manifest(good, run_id=3), False).rename(tmp_path / "8"): "run_id",
        forged(good, newer, True).rename(tmp_path / "9"): "schema_version is 99, this program reads",
        packed({}, tmp_path / "10"): "not a bundle",
        tmp_path / "gone": "no such file",
        tmp_path: "is a directory",
    }
    cut = tmp_path / "11"
    cut.write_bytes(good.read_bytes()[:-400])
    cases[cut] = "not a whole tar.gz archive"
    for path, said in cases.items():
        result, out, err = status(path, capsys)
        assert (result, out, len(err.splitlines())) == (2, "", 1), (said, err)
        assert err.startswith(f"collect.py: {path}")
        assert said in err
        assert "tunnel-lab-" not in err, "where it was unpacked is nothing to the user"


def test_broken_run_json_with_an_old_manifest_is_a_difference(good: Path) -> None:
    found = verify(forged(good, {"run.json": b"{"}, new_manifest=False))
    assert found.differences[0] == "run.json: not the file that MANIFEST.json was made for"
    assert found.differences[1].startswith("the tables cannot be made again: run.json")


@pytest.mark.parametrize(
    "change",
    [
        (b'"started_at": "2026', b'"started_at": "yesterday 2026'),
        (b'"at": 1', b'"at": 1e308, "x": 1'),
        (b'"elapsed_s": 2.0', b'"elapsed_s": 1e308'),
        (b'"status": "ok"', b'"status": "\\u001b[2J"'),
    ],
)
def test_records_that_no_lab_writes_make_no_traceback(
    good: Path, change: tuple[bytes, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    path = forged(good, changed(good, f"raw/{PLAIN}.r1.json", *change), new_manifest=True)
    result, out, err = status(path, capsys)
    assert result in (1, 2)
    assert "Traceback" not in out + err
    assert "\x1b" not in out + err


def test_ten_differences_are_listed_and_the_others_counted(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change = changed(good, "runs.csv", b"run-1", b"run-2")  # in the 8 rows of runs.csv only
    more = {**change, **changed(good, "claims.csv", b"a", b"b"), **changed(good, "summary.csv", b"relay", b"netem")}
    number = len(verify(forged(good, more, new_manifest=True)).differences)
    result, out, _ = status(forged(good, more, new_manifest=True), capsys)
    assert result == 1
    lines = out.splitlines()
    assert (len(lines), lines[-2:]) == (
        12,
        [f"and {number - 10} more; --format json has them all", f"NOT verified: run-1: {number} differences"],
    )


def test_compare_and_rerun_refuse_a_bundle_that_was_altered(good: Path) -> None:
    bad = forged(good, changed(good, "runs.csv", b"run-1", b"run-2"), new_manifest=False)
    with pytest.raises(LabError, match=r"runs\.csv was changed after the bundle was made"), bundle.run_directory(bad):
        pass
