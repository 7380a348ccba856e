"""Records: written once and in one step, read back as they were, refused with a reason."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import StoredRun

from tunnel_lab import records
from tunnel_lab.errors import LabError
from tunnel_lab.records import Record, Run, raw_path


@pytest.fixture
def stored(make_run: Callable[..., StoredRun]) -> StoredRun:
    return make_run()


@pytest.fixture
def record(stored: StoredRun) -> Record:
    return stored.record(stored.run.plan.steps[0], "output\n\twith \u2192 and \x00")


def test_comes_back_as_it_was(stored: StoredRun, record: Record, tmp_path: Path) -> None:
    record.write(tmp_path / "new" / "a.json")
    assert Record.read(tmp_path / "new" / "a.json") == record
    assert Run.read(stored.path / "run.json") == stored.run


def test_is_written_once(record: Record, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    record.write(path)
    before = path.read_bytes()
    with pytest.raises(LabError, match=r"a\.json: exists already"):
        record.model_copy(update={"wall_s": 9}).write(path)
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o644
    assert [found.name for found in tmp_path.glob("*a.json*")] == ["a.json"]


def test_is_written_whole_or_not_at_all(record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        record.write(tmp_path / "raw" / "a.json")
    assert list((tmp_path / "raw").iterdir()) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema_version": 5}, "schema_version is 5, this program reads 1 to 4"),
        ({"schema_version": None}, "schema_version is None"),
        ({"status": "fine"}, "status: .*'fine'"),
        ({"wall_s": "long"}, "wall_s: .*'long'"),
        ({"step": {}}, r"step\.order: Field required"),
        ({"cell": 3}, "cell: .*got 3"),
    ],
)
def test_wrong_content_is_named(record: Record, tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**json.loads(record.model_dump_json()), **change}))
    with pytest.raises(LabError, match=f"{path}: {said}"):
        Record.read(path)


@pytest.mark.parametrize("content", [b"", b'{"schema_version": 1, "run', b"\xff\xfe", b"[]", b"3"])
def test_what_is_no_record_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(LabError, match=f"{path}: "):
        Record.read(path)


def test_missing_file_and_directory(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.json", tmp_path):
        with pytest.raises(LabError, match=f"{path}: cannot be read"):
            Record.read(path)


def test_overhead_is_the_time_without_commands(record: Record) -> None:
    assert record.overhead_s == 3.5 - 2.0


def test_place_of_a_record(stored: StoredRun) -> None:
    assert raw_path(Path("r"), stored.run.plan.steps[0]) == Path("r/raw/none.bare.iperf3.r0.json")


def test_now_is_utc_with_milliseconds() -> None:
    assert abs((datetime.now(UTC) - datetime.fromisoformat(records.now())).total_seconds()) < 5
    assert records.now().endswith("+00:00")
