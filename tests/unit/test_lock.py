"""The lock of the machine: held for as long as the ansible-playbook that took it lives, and by one at a time."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from conftest import ROOT

from tunnel_lab import at_end, manifests
from tunnel_lab.place import Place

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture(scope="module")
def lab_lock() -> Any:
    """The plugin, which no package holds."""
    spec = importlib.util.spec_from_file_location("lab_lock", ROOT / "plugins" / "action" / "lab_lock.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


Take = Callable[..., None]


@pytest.fixture
def take(lab_lock: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> Take:
    """Take the lock as the ansible-playbook with this pid would; this test's own parent when there is none."""

    def run(pid: int | None = None, lab: str = "mine") -> None:
        if pid is not None:
            monkeypatch.setattr(os, "getppid", lambda: pid)
        lab_lock.hold(path, lab)

    return run


@contextlib.contextmanager
def a_process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEP) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def two_processes() -> Iterator[tuple[int, int]]:
    with a_process() as first, a_process() as second:
        yield first.pid, second.pid


def holder(path: Path) -> Any:
    return json.loads(path.read_text())


def test_free_lock_is_taken(take: Take, path: Path, lab_lock: Any) -> None:
    take()
    assert holder(path) == {"pid": os.getppid(), "started": lab_lock.started(os.getppid()), "lab": "mine"}


def test_two_at_a_time_are_refused(take: Take, path: Path) -> None:
    with two_processes() as (first, second):
        take(first, "a-lab")
        text = path.read_text()
        with pytest.raises(AnsibleActionFail, match=f"the lab 'a-lab' .*pid {first}.*Wait for it, or stop it"):
            take(second, "b-lab")
        assert path.read_text() == text, "the holder stays"


def test_same_process_may_take_it_again(take: Take, path: Path) -> None:
    with two_processes() as (first, second):
        take(first, "a-lab-with-a-long-name")
        take(first, "b")
        assert holder(path)["lab"] == "b", "what was longer is gone"
        with pytest.raises(AnsibleActionFail, match="the lab 'b'"):
            take(second)


def test_lock_of_a_process_that_has_ended_is_replaced(take: Take, path: Path) -> None:
    with a_process() as process:
        take(process.pid, "killed")
    assert process.poll() is not None
    with a_process() as other:
        take(other.pid)
        assert (holder(path)["pid"], holder(path)["lab"]) == (other.pid, "mine")


def test_lock_of_a_zombie_is_replaced(take: Take, path: Path) -> None:
    """A killed run stays a zombie for as long as nobody asks for its exit status: for ever, in some containers."""
    with a_process() as process, a_process() as other:
        take(process.pid, "killed")
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert Path(f"/proc/{process.pid}/stat").exists()
        take(other.pid)
        assert holder(path)["pid"] == other.pid


def test_lock_of_a_pid_that_was_given_to_another_is_replaced(take: Take, path: Path) -> None:
    with two_processes() as (first, second):
        take(first, "before-the-reboot")
        path.write_text(json.dumps({**holder(path), "started": "1"}))
        take(second)
        assert holder(path)["pid"] == second


@pytest.mark.parametrize(
    "garbage",
    [
        *("", "{", "[]", "[1]", "3", "null", '"text"', "{}", '{"pid": 1}', '{"started": "1"}', "\x00" * 100),
        *('{"pid": null, "started": null}', '{"pid": "x/y", "started": null}', '{"pid": "\\u0000", "started": "1"}'),
    ],
)
def test_garbage_holds_nothing(take: Take, path: Path, garbage: str) -> None:
    path.write_text(garbage)
    take()
    assert holder(path)["pid"] == os.getppid()


def test_garbage_that_is_no_text_holds_nothing(take: Take, path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x80")
    take()
    assert holder(path)["lab"] == "mine"


def test_lock_of_another_user_is_told(take: Take, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(AnsibleActionFail, match=re.escape(f"{path}: Permission denied") + ".*Run as root"):
        take()


def test_when_a_process_began(lab_lock: Any) -> None:
    with two_processes() as (first, _):
        assert lab_lock.started(first) == lab_lock.started(first)
        assert int(lab_lock.started(first)) > int(lab_lock.started(1))
    assert lab_lock.started(first) is None


def test_playbook_at_the_end_may_take_the_lock(take: Take, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with two_processes() as (first, second):
        take(first, "a-lab")
        monkeypatch.setenv(at_end.HELD_BY, str(first))
        take(second, "a-lab")
        assert holder(path)["pid"] == second


def test_what_is_held() -> None:
    """Hosts on this machine would measure each other; hosts elsewhere are measured side by side, each lab once."""
    local, static = manifests.provider("local"), manifests.provider("static")
    assert Place("a", local, {}).lock == Place("b", local, {}).lock
    assert Place("a", static, {}).lock != Place("b", static, {}).lock


def test_name_of_a_program_does_not_disturb(lab_lock: Any, tmp_path: Path) -> None:
    """/proc/PID/stat has the name in brackets, and the name may have brackets and blanks."""
    odd = tmp_path / ") Z 1 (2"
    odd.symlink_to(Path(sys.executable).resolve())
    with subprocess.Popen([odd, *SLEEP[1:]]) as process:
        try:
            assert int(lab_lock.started(process.pid)) > 1000
        finally:
            process.kill()
