"""How the relay starts, refuses to start, and ends; in each case with nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .link import INTERFACE, REPOSITORY, Link, eventually, run


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """Some other process."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_status_tells_what_runs(link: Link) -> None:
    link.start_up()
    status = link.fresh_status()
    assert (status.state, status.reason, status.pid) == ("running", None, link.pid())
    assert (status.config["rtt_ms"], status.config["queue_bytes"]) == (20, 250_000)
    assert set(status.directions) == {"server_to_client", "client_to_server"}
    assert not list(link.directory.glob("*.tmp"))


def test_term_stops_cleanly(link: Link) -> None:
    link.start_up()
    os.kill(link.pid(), signal.SIGTERM)
    assert link.stopped()
    assert link.status().reason == "received a signal to stop"


def test_foreground_stops_at_interrupt(link: Link) -> None:
    command = [str(word) for word in link.arguments("--priority", "0")]
    with subprocess.Popen(command, cwd=REPOSITORY) as process:
        try:
            assert eventually(link.status_file.exists, 10)
            assert link.status().realtime is False
            process.send_signal(signal.SIGINT)
            assert process.wait(5) == 0
        finally:
            process.kill()
    assert link.stopped()


def test_ends_when_a_namespace_is_deleted(link: Link) -> None:
    link.start_up()
    assert run("ip", "netns", "del", link.client).returncode == 0
    assert link.stopped()
    assert link.client in (link.status().reason or "")


def test_ends_when_a_device_is_deleted(link: Link) -> None:
    link.start_up()
    assert run("ip", "-n", link.server, "link", "del", INTERFACE).returncode == 0
    assert link.stopped()
    assert "gone" in (link.status().reason or "")


def test_ends_when_a_watched_process_ends(link: Link, bystander: subprocess.Popen[bytes]) -> None:
    link.start_up("--watch-pid", str(os.getpid()), str(bystander.pid))
    bystander.kill()
    assert link.stopped()
    assert link.status().reason == f"watched process {bystander.pid} ended"


def test_killed_relay_leaves_no_device_and_its_pid_file_is_replaced(link: Link) -> None:
    link.start_up()
    killed = link.pid()
    os.kill(killed, signal.SIGKILL)
    assert eventually(lambda: link.leftovers() == [str(link.pid_file)], 3)
    link.start_up()
    assert link.pid() != killed


def test_pid_file_naming_another_process_is_stale(link: Link, bystander: subprocess.Popen[bytes]) -> None:
    link.pid_file.write_text(f"{bystander.pid}\n")
    link.start_up()
    assert link.pid() == link.status().pid != bystander.pid
    assert bystander.poll() is None


def test_second_start_is_refused(link: Link) -> None:
    link.start_up()
    pid = link.pid()
    second = link.start()
    assert second.returncode == 1
    assert second.stderr.count("\n") == 1
    assert f"already running: pid {pid}" in second.stderr
    assert link.pid() == pid
    assert None not in link.ping(1, 0)


def test_realtime_work_that_never_pauses_falls_back_to_normal_priority() -> None:
    program = """
import os, time
from tunnel_lab.relay.realtime import realtime
with realtime(10):
    assert os.sched_getscheduler(0) == os.SCHED_FIFO
    end = time.monotonic() + 5
    while os.sched_getscheduler(0) == os.SCHED_FIFO and time.monotonic() < end:
        pass
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
"""
    done = run(sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--rtt-ms", "-1"], "--rtt-ms"),
        (["--rate-mbit", "fast"], "--rate-mbit"),
        (["--mtu", "70000"], "--mtu"),
        (["--interface", "a-name-too-long-for-linux"], "--interface"),
        (["--queue-bytes", "100"], "--queue-bytes"),
        (["--unknown"], "--unknown"),
    ],
)
def test_wrong_arguments(link: Link, options: list[str], complaint: str) -> None:
    _refused(link, options, 2, complaint)


def test_missing_namespace(link: Link) -> None:
    _refused(link, ["--client-netns", "/run/netns/no-such"], 1, "/run/netns/no-such")


def test_path_that_is_no_namespace(link: Link) -> None:
    _refused(link, ["--client-netns", "/dev/null"], 1, "/dev/null")


def test_one_namespace_for_both_ends(link: Link) -> None:
    _refused(link, ["--client-netns", f"/run/netns/{link.server}"], 1, "one network namespace")


def test_interface_that_exists(link: Link) -> None:
    made = run("ip", "-n", link.client, "tuntap", "add", "dev", "taken0", "mode", "tap")
    assert made.returncode == 0, made.stderr
    _refused(link, ["--interface", "taken0"], 1, "already exists")


def test_watched_process_that_is_gone(link: Link, bystander: subprocess.Popen[bytes]) -> None:
    bystander.kill()
    bystander.wait()
    _refused(link, ["--watch-pid", str(bystander.pid)], 1, str(bystander.pid))


@pytest.mark.parametrize("option", ["--status-file", "--pid-file", "--log-file"])
def test_file_in_a_missing_directory(link: Link, option: str) -> None:
    _refused(link, [option, "/no-such-directory/file"], 1, "/no-such-directory/file")


def test_without_root(link: Link) -> None:
    unprivileged = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all")
    link.directory.chmod(0o777)
    for parent in link.directory.parents[:2]:
        parent.chmod(0o755)
    refused = run(*unprivileged, *link.arguments())
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1), refused.stderr
    assert "run as root" in refused.stderr
    assert not link.leftovers()


def _refused(link: Link, options: list[str], code: int, complaint: str) -> None:
    refused = link.start(*options)
    assert refused.returncode == code
    assert refused.stderr.count("\n") == 1, refused.stderr
    assert complaint in refused.stderr
    assert not link.leftovers()
    assert not Path(link.status_file).exists()
