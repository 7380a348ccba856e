"""The playbook that is run when ansible-playbook ends: in every way that it can end, once, and heard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT

MAIN = """
import os, pathlib, sys, time
from tunnel_lab import at_end
for fd in (0, 1, 2):
    os.set_inheritable(fd, False)  # as Ansible does
at_end.LOG = pathlib.Path({script!r}).with_name("log")
at_end.arm([sys.executable, {script!r}, "end.yml"])
try:
    print("armed", flush=True)
    {body}
except KeyboardInterrupt:
    sys.exit(99)
"""
END = """
import os, sys, time
time.sleep({wait})
print("removed", flush=True)
open({mark!r}, "a").write(os.environ["TUNNEL_LAB_HELD_BY"] + "\\n")
sys.exit({status})
"""
WAYS = {
    "done": "pass",
    "failed": "sys.exit(2)",
    "fork": "os.fork() or sys.exit(0); os.wait()",
    # in short sleeps, as Ansible waits: a signal just before a long one is heard only after it
    "long": "for _ in range(1200): time.sleep(0.05)",
}


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """Where the playbook at the end writes a line."""
    return tmp_path / "mark"


def start(mark: Path, body: str, status: int = 0, wait: float = 0) -> subprocess.Popen[str]:
    script = mark.with_name("end.py")
    script.write_text(END.format(mark=str(mark), status=status, wait=wait))
    main = MAIN.format(script=str(script), body=body)
    return subprocess.Popen(
        [sys.executable, "-c", main], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize(("way", "status"), [("done", 0), ("failed", 2), ("fork", 0)])
def test_it_runs_once_however_the_main_process_ends(mark: Path, way: str, status: int) -> None:
    process = start(mark, WAYS[way])
    out, _ = process.communicate(timeout=20)
    assert process.returncode == status
    assert mark.read_text() == f"{process.pid}\n"
    assert "At the end: end.yml\nremoved\n" in out


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_runs_after_a_signal(mark: Path, ending: signal.Signals) -> None:
    process = start(mark, WAYS["long"])
    assert process.stdout
    assert process.stdout.readline() == "armed\n"
    process.send_signal(ending)
    process.communicate(timeout=20)
    assert process.returncode == 99
    assert mark.read_text() == f"{process.pid}\n"


def test_its_failure_is_the_whole_commands(mark: Path) -> None:
    process = start(mark, WAYS["done"], status=4)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 4
    assert "end.yml did not end well (status 4). Run it again: " in said


def test_second_interrupt_does_not_stop_it(mark: Path) -> None:
    process = start(mark, WAYS["done"], wait=1.5)
    assert process.stdout
    while "At the end" not in process.stdout.readline():
        pass
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 99
    assert "goes on as process" in said
    for _ in range(100):
        if mark.exists():
            break
        time.sleep(0.1)
    assert mark.read_text() == f"{process.pid}\n"


def test_it_runs_when_the_terminal_is_lost(mark: Path) -> None:
    """A terminal that is gone refuses what is written to it, and a playbook that writes to it would die."""
    script = mark.with_name("end.py")
    script.write_text(END.format(mark=str(mark), status=0, wait=0))
    main = MAIN.format(script=str(script), body=WAYS["long"])
    ours, its = os.openpty()
    process = subprocess.Popen([sys.executable, "-c", main], cwd=ROOT, stdin=its, stdout=its, stderr=its)
    os.close(its)
    assert os.read(ours, 100).startswith(b"armed")
    os.close(ours)
    process.send_signal(signal.SIGHUP)
    process.wait(timeout=20)
    assert mark.read_text() == f"{process.pid}\n"
    assert mark.with_name("log").read_text() == "removed\n"


@pytest.mark.parametrize("apart_s", [0, 0.005, 0.02, 0.05, 0.1, 0.3])
def test_ctrl_c_again_does_not_keep_it_from_running(mark: Path, apart_s: float) -> None:
    process = start(mark, WAYS["long"], wait=0.5)
    assert process.stdout
    assert process.stdout.readline() == "armed\n"
    process.send_signal(signal.SIGINT)
    time.sleep(apart_s)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)  # also until the playbook that nobody waits for has closed its output
    assert mark.read_text() == f"{process.pid}\n"
