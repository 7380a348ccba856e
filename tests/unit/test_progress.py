"""Beginning a run, writing its records, and telling how far it is."""

from __future__ import annotations

import functools
import os
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import StoredRun, figure

from tunnel_lab import enough, manifests, parsing, progress
from tunnel_lab.errors import LabError
from tunnel_lab.records import Record, Run, raw_path

Make = Callable[..., StoredRun]
GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]


@pytest.fixture(autouse=True)
def _parser_of_the_tests(roles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "parser_for", functools.partial(parsing.parser_for, roles=roles))


@pytest.fixture
def run_of(make_run: Make) -> dict[str, Any]:
    """What `begin` is given: a run without what it adds itself."""
    stored: dict[str, Any] = make_run().run.model_dump(mode="json", exclude={"run_id", "started_at"})
    del stored["environment"]["controller"]
    return stored


def test_begin_writes_what_was_planned(run_of: dict[str, Any], tmp_path: Path) -> None:
    before = datetime.now(UTC)
    directory = progress.begin(run_of, tmp_path / "new" / "results")
    run = Run.read(directory / "run.json")
    assert run.run_id == directory.name
    assert directory.parent == tmp_path / "new" / "results"
    assert datetime.strptime(run.run_id, "%Y%m%dT%H%M%SZ-test-quick").replace(tzinfo=UTC) >= before.replace(
        microsecond=0
    )
    assert before.replace(microsecond=0) <= datetime.fromisoformat(run.started_at) <= datetime.now(UTC)
    assert run.plan.model_dump(mode="json") == run_of["plan"]
    assert run.environment["server"] == run_of["environment"]["server"]
    assert (directory / "raw").is_dir()


def test_begin_keeps_the_controllers_environment(run_of: dict[str, Any], tmp_path: Path) -> None:
    sources = [str(manifests.ROOT / "inventories" / "local"), "/elsewhere/mine"]
    begun = progress.begin(run_of, tmp_path / "r", inventories=sources)
    controller = Run.read(begun / "run.json").environment["controller"]
    assert controller.pop("inventories") == ["inventories/local", "/elsewhere/mine"]
    assert controller["cpus"] == os.cpu_count()
    assert controller["kernel"] == os.uname().release
    assert set(controller) == {"kernel", "cpus", "python", "ansible_core", "git_commit"}


def test_latest_is_the_newest(run_of: dict[str, Any], tmp_path: Path) -> None:
    results = tmp_path / "r"
    for lab in ("first", "second"):
        directory = progress.begin({**run_of, "lab": lab}, results)
        assert (results / "latest").is_symlink()
        assert (results / "latest").readlink() == Path(directory.name), "relative, so that results/ can be moved"
    assert sorted(path.name[-12:] for path in results.iterdir()) == ["-first-quick", "latest", "second-quick"]


def test_two_runs_of_one_second_are_not_mixed(
    run_of: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Stopped:
            return cls(2026, 1, 2, tzinfo=tz)

    monkeypatch.setattr(progress, "datetime", Stopped)
    directory = progress.begin(run_of, tmp_path / "r")
    text = (directory / "run.json").read_bytes()
    with pytest.raises(LabError, match=r"20260102T000000Z-test-quick/run\.json: exists already"):
        progress.begin({**run_of, "provider": "other"}, tmp_path / "r")
    assert (directory / "run.json").read_bytes() == text


def test_begin_refuses_what_is_no_run(run_of: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="link"):
        progress.begin({**run_of, "link": {"emulator": 3}}, tmp_path / "r")
    assert not (tmp_path / "r").exists(), "and leaves nothing"


def git_commit(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(progress, "ROOT", checkout)
    return progress.controller()["git_commit"]


def test_commit_and_whether_something_was_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> str:
        command = [*GIT, "-C", str(tmp_path), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message", "m")
    commit = git("rev-parse", "HEAD")
    assert len(commit) == 40
    for path in tmp_path.iterdir():
        if path.name != ".git":
            assert path.name == "roles"
            git("add", path.name)
    git("commit", "--quiet", "--message", "n")
    commit = git("rev-parse", "HEAD")
    assert git_commit(tmp_path, monkeypatch) == commit
    (tmp_path / "new").write_text("")
    assert git_commit(tmp_path, monkeypatch) == f"{commit}-dirty"


def test_without_git_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_commit(tmp_path, monkeypatch) is None, "no repository"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_commit(progress.RESULTS.parent, monkeypatch) is None, "no program"


def age(run_dir: Path, seconds: float) -> None:
    """Make the newest file of a run this old, and the others older by as much."""
    paths = [run_dir / "run.json", *(run_dir / "raw").glob("*.json")]
    later = max(path.stat().st_mtime for path in paths) - (time.time() - seconds)
    for path in paths:
        os.utime(path, (0, path.stat().st_mtime - later))


def finish(stored: StoredRun, order: int, output: Any, /, **changes: Any) -> tuple[str, Record]:
    """Finish the step at this place of the run, `wall_s` after the one before; return the line and what was written."""
    step = stored.run.plan.steps[order - 1]
    age(stored.path, changes.get("wall_s", 0))
    line = progress.finish(stored.path, stored.record(step, output, **changes))
    return line, Record.read(stored.file(step.cell, step.repeat))


def test_good_record_is_kept_and_told(make_run: Make) -> None:
    stored = make_run()
    line, written = finish(stored, 1, [figure(0.5), figure(2.0, "client_to_server")])
    assert (written.status, written.reason) == ("ok", None)
    assert line.endswith("none.bare.iperf3 r0  server→client 16.0 Mbit/s in 0.5 s, client→server 4.0 Mbit/s in 2.0 s")


def test_ok_with_bad_output_is_written_as_failed_with_its_output(make_run: Make) -> None:
    line, written = finish(make_run(), 1, "Killed\n")
    assert written.status == "failed"
    assert written.reason is not None
    assert written.reason.startswith("go: not JSON")
    assert written.commands[0].stdout == "Killed\n"
    assert written.before.keys() == {"server", "client"}
    assert line.endswith(f"FAILED: {written.reason}")


def test_ok_that_is_not_accounted_for_is_written_as_failed(make_run: Make) -> None:
    line, written = finish(make_run(), 1, [figure(0.5)], after={})
    assert (written.status, written.reason) == ("failed", "the hosts' counters were not taken before and after")
    assert "FAILED: the hosts' counters" in line
    assert "Mbit/s" not in line


@pytest.mark.parametrize("status", ["failed", "aborted", "not_possible"])
def test_bad_record_keeps_its_own_reason(make_run: Make, status: str) -> None:
    line, written = finish(make_run(), 1, [figure(0.5)], status=status, reason="no tunnel")
    assert (written.status, written.reason) == (status, "no tunnel")
    assert line.endswith(f"{status.upper()}: no tunnel")


def test_record_is_finished_once(make_run: Make) -> None:
    stored = make_run()
    finish(stored, 1, [figure(0.5)])
    with pytest.raises(LabError, match="exists already"):
        finish(stored, 1, [figure(0.5)])


def test_time_left_goes_by_what_each_cell_has_needed(make_run: Make) -> None:
    """The bare link, three times two cells in any order, the bare link: eight steps."""
    stored = make_run()
    first, _ = finish(stored, 1, [figure(0.5)], wall_s=10)
    assert first.startswith("1/8   70 s left  none.bare.iperf3 r0  ")
    second, _ = finish(stored, 2, [figure(0.5)], wall_s=40)
    # 2 of the same cell, 3 of the cell that nothing is known of, 1 bare: 2 * 40 + 3 * 25 + 10
    assert second.startswith("2/8  3 min left  pipe.")
    for order in range(3, 8):
        finish(stored, order, "bad", wall_s=1)
    assert finish(stored, 8, [figure(0.5)], wall_s=1)[0].startswith("8/8    0 s left  none.bare.iperf3 r4  ")


@pytest.mark.parametrize(("wall_s", "left"), [(12.7, "89 s left"), (13, "2 min left"), (600, "70 min left")])
def test_time_left_is_in_minutes_from_90_seconds(make_run: Make, wall_s: float, left: str) -> None:
    assert f"1/8 {left:>11}  " in finish(make_run(), 1, [figure(0.5)], wall_s=wall_s)[0]


def test_time_left_of_exactly_90_seconds(make_run: Make) -> None:
    stored = make_run(lab_select="pipe.plain.copy")
    assert "1/5  2 min left  " in finish(stored, 1, [figure(0.5)], wall_s=22.5)[0]


def test_longest_repeat_of_a_cell_counts(make_run: Make) -> None:
    stored = make_run(lab_select="pipe.plain.copy")
    for order, wall_s in ((1, 1), (2, 30), (3, 20)):
        line, _ = finish(stored, order, [figure(0.5)], wall_s=wall_s)
    assert line.startswith("3/5   31 s left")


def test_places_of_a_long_run_are_aligned(make_run: Make) -> None:
    assert finish(make_run(lab_repeats=5), 1, [figure(0.5)])[0].startswith(" 1/12 ")


def test_record_that_cannot_be_read_does_not_stop_the_run(make_run: Make) -> None:
    stored = make_run()
    finish(stored, 1, [figure(0.5)], wall_s=10)
    age(stored.path, 20)
    stored.file("pipe.plain.copy", 1).write_text("{")
    later = next(step.order for step in stored.run.plan.steps if step.repeat == 2)
    assert finish(stored, later, [figure(0.5)], wall_s=10)[0].startswith(f"{later}/8 ")


def test_cell_begins_where_the_one_before_ended(make_run: Make) -> None:
    stored = make_run()
    os.utime(stored.path / "run.json", (1000, 1000))
    assert progress.last_finished(stored.path) == datetime.fromtimestamp(1000, UTC)
    for order, at in ((1, 3000), (2, 2000)):
        step = stored.run.plan.steps[order - 1]
        progress.finish(stored.path, stored.record(step, [figure(0.5)]))
        os.utime(stored.file(step.cell, step.repeat), (at, at))
    assert progress.last_finished(stored.path) == datetime.fromtimestamp(3000, UTC)


def test_what_sudo_made_is_handed_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[Path, int, int]] = []
    monkeypatch.setattr(os, "chown", lambda *arguments: given.append(arguments))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("SUDO_UID", raising=False)
    progress.give_back(tmp_path)
    assert given == []
    monkeypatch.setenv("SUDO_UID", "1001")
    monkeypatch.setenv("SUDO_GID", "1002")
    progress.give_back(tmp_path)
    assert given == [(tmp_path, 1001, 1002)]
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    progress.give_back(tmp_path)
    assert len(given) == 1


def test_what_the_hosts_cannot_do_is_recorded_when_the_run_begins(run_of: dict[str, Any], tmp_path: Path) -> None:
    cells = run_of["plan"]["cells"]
    impossible = next(name for name in cells if not name.startswith("none."))
    cells[impossible]["needs"] = ["a flux capacitor"]
    run_of["environment"]["client"]["lacks"] = {"a flux capacitor": "not found"}
    begun = progress.begin(run_of, tmp_path / "r")
    plan = Run.read(begun / "run.json").plan
    steps = [step for step in plan.steps if step.cell == impossible]
    assert steps
    for step in steps:
        record = Record.read(raw_path(begun, step))
        assert record.status == "not_possible"
        assert record.reason == "not possible here: no a flux capacitor (on the client: not found)"
    assert len(list((begun / "raw").iterdir())) == len(steps), "no other cell has a record yet"
    left = [step for repeat in range(plan.repeats + 2) for step in enough.to_measure(plan, repeat, begun)]
    assert left == [step for step in plan.steps if step.cell != impossible]
