"""The relay's other parts that need neither root nor a network."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import cast

import pytest

from tunnel_lab.relay.channel import Channel
from tunnel_lab.relay.config import parse
from tunnel_lab.relay.errors import RelayError
from tunnel_lab.relay.lateness import MIN_WINDOW_FRAMES, REMEMBER_S, Histogram, PaceJudge
from tunnel_lab.relay.loop import Direction, Ended, Loop, Spinning
from tunnel_lab.relay.pidfile import pid_file
from tunnel_lab.relay.status import DirectionStatus, Status
from tunnel_lab.relay.tap import Tap

MS = 1_000_000
REQUIRED = [
    *("--server-netns", "a", "--client-netns", "b", "--interface", "l0"),
    *("--rtt-ms", "80", "--status-file", "s", "--pid-file", "p"),
]


def filled(*late_ms: float) -> Histogram:
    histogram = Histogram()
    for each in late_ms:
        histogram.add(int(each * MS))
    return histogram


def test_histogram_counts_up_to_and_including_each_edge() -> None:
    buckets = filled(0.1, 0.11, 2.0, 2.01, 5000).buckets()
    assert (buckets["le_0.05"], buckets["le_0.1"], buckets["le_0.2"]) == (0, 1, 2)
    assert (buckets["le_1"], buckets["le_2"], buckets["le_5"], buckets["le_100"]) == (2, 3, 4, 4)
    assert buckets["le_inf"] == 5


def test_histogram_percentiles_are_upper_edges_within_the_maximum() -> None:
    histogram = filled(*[0.07] * 98, 1.5, 400)
    assert (histogram.percentile_ms(0.5), histogram.percentile_ms(0.99)) == (0.1, 2.0)
    assert histogram.percentile_ms(1) == histogram.max_ms == 400
    assert filled(0.07).percentile_ms(0.5) == 0.07
    assert Histogram().percentile_ms(0.99) == 0


def test_judge_looks_at_each_window_alone_and_remembers_for_a_while() -> None:
    judge, histogram = PaceJudge(), filled(*[0.1] * 10_000)
    judge.observe("down", histogram, 0, 1)
    assert judge.reason(1) is None
    for _ in range(MIN_WINDOW_FRAMES):
        histogram.add(3 * MS)
    judge.observe("down", histogram, 0, 2)
    assert judge.reason(2) == "down: 100 of 100 frames were over 2 ms late in one second"
    judge.observe("down", histogram, 0, 3)
    assert judge.reason(2 + REMEMBER_S) is not None
    assert judge.reason(2.1 + REMEMBER_S) is None
    assert judge.bad_windows == 1


def test_judge_allows_one_percent_and_ignores_sparse_windows() -> None:
    judge = PaceJudge()
    judge.observe("down", filled(*[0.1] * 990, *[3] * 10), 0, 1)
    judge.observe("up", filled(*[3] * (MIN_WINDOW_FRAMES - 1)), 0, 1)
    assert judge.reason(1) is None


def test_judge_blames_unread_frames() -> None:
    judge = PaceJudge()
    judge.observe("up", Histogram(), 7, 1)
    assert judge.reason(1) == "up: 7 frames were lost unread in one second"


def test_command_line() -> None:
    config = parse([*REQUIRED, "--rate-mbit", "100", "--watch-pid", "3", "4", "--watch-pid", "5"])
    assert config.watch_pids == (3, 4, 5)
    assert config.queue_bytes == 1_000_000
    assert config.status_file == Path.cwd() / "s"
    assert parse(REQUIRED).rate_mbit is None


@pytest.mark.parametrize(
    "wrong",
    [
        ["--rtt-ms", "nan"],
        ["--rate-mbit", "-1"],
        ["--loss-pct", "101"],
        ["--mtu", "67"],
        ["--priority", "100"],
        ["--watch-pid", "0"],
        ["--interface", "%d"],
        ["--interface", ""],
        ["--pid-file", ""],
        ["--queue-bytes", "1517"],
    ],
)
def test_wrong_argument_is_one_line_and_exit_2(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse([*REQUIRED, *wrong])
    assert end.value.code == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert wrong[0] in message


def test_pid_file_is_held_then_removed(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    path.write_text("999999999 and more text\n")
    with pid_file(path):
        assert path.read_text() == f"{os.getpid()}\n"
        with pytest.raises(RelayError, match=f"already running: pid {os.getpid()} "), pid_file(path):
            pass
        assert path.exists()
    assert not path.exists()


def test_status_survives_writing_and_reading(tmp_path: Path) -> None:
    one = DirectionStatus(1, 2, 3, 4, 5, 6, 7, 8, 9, 0.1, 0.2, 0.3, {"le_inf": 3})
    status = Status(
        state="running",
        reason=None,
        pid=1,
        realtime=False,
        config={"rtt_ms": 80},
        started_at="a",
        updated_at="b",
        uptime_s=1,
        cpu_s=1,
        wakeups=1,
        bad_windows=0,
        directions={"server_to_client": one},
        keeps_up=True,
        keeps_up_reason=None,
    )
    path = tmp_path / "status"
    status.write(path)
    assert Status.read(path) == status
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 99}', '{"schema_version": 1}'])
def test_foreign_status_is_a_value_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "status"
    path.write_text(text)
    with pytest.raises(ValueError, match="not a relay status"):
        Status.read(path)


class _PipeTap:
    """Stands for a TAP device with one end of a pipe."""

    name, netns = "pipe", Path("nowhere")

    def __init__(self, fd: int) -> None:
        self.fd = fd


class _Stuck(Direction):
    """Always readable, and never reads: the defect that the guard is for."""

    def receive(self) -> int:
        return 0


def _over_pipes(kind: type[Direction], source: int, sink: int) -> Direction:
    link = Channel(rate_mbit=None, delay_ms=0, queue_bytes=0)
    return kind("pipe", cast(Tap, _PipeTap(source)), cast(Tap, _PipeTap(sink)), link)


def test_loop_that_wakes_for_nothing_ends_itself() -> None:
    idle, _ = os.pipe()
    busy, feed = os.pipe()
    os.write(feed, b"x")
    loop = Loop((_over_pipes(_Stuck, busy, feed), _over_pipes(Direction, idle, feed)), {})
    with pytest.raises(Spinning, match="without moving a frame"):
        loop.run(lambda: None)


def test_loop_ends_with_the_reason_of_what_ended() -> None:
    idle, feed = os.pipe()
    with subprocess.Popen(["true"]) as process:
        watched = os.pidfd_open(process.pid)
    loop = Loop((_over_pipes(Direction, idle, feed), _over_pipes(Direction, idle, feed)), {watched: "it ended"})
    with pytest.raises(Ended, match="it ended"):
        loop.run(lambda: None)
