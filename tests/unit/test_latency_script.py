"""The program that measures round trips, against a small server of the tests that answers as it is told to."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import queue
import random
import socket
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import pytest

from tunnel_lab.manifests import ROLES

SCRIPT = ROLES / "workload_latency" / "files" / "latency.py"
PASSWORD = "a-password-of-the-tests"
SMALL = 65536


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("latency", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["latency"] = module
    spec.loader.exec_module(module)
    return module


latency = loaded()


class Server:
    """A Redis that knows five commands; its port is taken at once, and refuses until `listen`."""

    def __init__(self, delay_s: float = 0, **replies: bytes | None) -> None:
        """Answer PING after `delay_s`; `replies` are given instead of the usual ones, None closes the connection."""
        self.delay_s, self.replies = delay_s, replies
        self.values: set[bytes] = set()
        self.sets = 0
        self.accepted = 0
        self.mute: set[int] = set()
        """Connections, by number from 1, that are accepted and never answered."""
        self.closed: set[int] = set()
        """Those that are closed at once."""
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.port = int(self.socket.getsockname()[1])
        self.connections: list[socket.socket] = []

    def listen(self) -> Server:
        self.socket.listen(50)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def close(self) -> None:
        for each in [self.socket, *self.connections]:
            with contextlib.suppress(OSError):  # not connected, or no longer
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.accepted += 1
            self.connections.append(connection)
            if self.accepted in self.closed:
                connection.close()
            elif self.accepted not in self.mute:
                due: queue.Queue[tuple[float, bytes | None]] = queue.Queue()
                threading.Thread(target=self._read, args=(connection.makefile("rb"), due), daemon=True).start()
                threading.Thread(target=self._write, args=(connection, due), daemon=True).start()

    def _read(self, stream: BinaryIO, due: queue.Queue[tuple[float, bytes | None]]) -> None:
        try:
            while line := stream.readline():
                words = []
                for _ in range(int(line[1:])):
                    size = int(stream.readline()[1:])
                    words.append(stream.read(size + 2)[:-2])
                name = words[0].decode()
                usual = self._usual(name, words)
                delay = self.delay_s if name == "PING" else 0
                due.put((time.monotonic() + delay, self.replies.get(name, usual)))
        except (OSError, ValueError):
            pass  # the other end is gone

    def _usual(self, name: str, words: list[bytes]) -> bytes:
        if name == "SET":
            self.values.add(words[2])
            self.sets += 1
        reply = next(iter(self.values)) if name == "GET" else b"# Server\r\nredis_version:8.0.2\r\n"
        if name == "AUTH":
            return b"+OK\r\n" if words[1].decode() == PASSWORD else b"-WRONGPASS invalid password\r\n"
        return {"PING": b"+PONG\r\n", "SET": b"+OK\r\n"}.get(name, b"$%d\r\n%s\r\n" % (len(reply), reply))

    def _write(self, connection: socket.socket, due: queue.Queue[tuple[float, bytes | None]]) -> None:
        while True:
            when, reply = due.get()
            time.sleep(max(0.0, when - time.monotonic()))
            try:
                if reply is None:
                    connection.shutdown(socket.SHUT_RDWR)
                    return
                connection.sendall(reply)
            except OSError:
                return


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(PASSWORD + "\n", encoding="utf-8")
    return path


def run(server: Server, secret: Path, phase: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(SCRIPT), "--phase", phase, "--target", f"127.0.0.1:{server.port}"]
    argv += ["--password-file", str(secret), *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


def report(server: Server, secret: Path, phase: str, *arguments: object) -> Any:
    given = ["--duration-s", 1, "--value-bytes", SMALL, *arguments]
    done = run(server.listen(), secret, phase, *given)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def failure(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert PASSWORD not in line
    return line


def test_measures_the_delay_of_replies_without_waiting_for_them(server: Server, secret: Path) -> None:
    server.delay_s = 0.12  # more than two periods of 50 ms
    got = report(server, secret, "idle")
    assert (got["format"], got["phase"], got["bulk"], got["server_version"]) == (1, "idle", None, "8.0.2")
    assert (len(got["rtt_ms"]), got["unanswered"]) == (20, 0)
    # no reply comes early, and half of them in time also on a machine that is busy
    assert min(rtt for _, rtt in got["rtt_ms"]) >= 120
    assert sorted(rtt for _, rtt in got["rtt_ms"])[10] < 150
    for number, (sent, _) in enumerate(got["rtt_ms"]):
        assert 0 <= sent - number / 20 <= got["late_ms"]["max"] / 1000 + 1e-5
    assert 0 <= got["late_ms"]["mean"] <= got["late_ms"]["max"]


def test_downloads_the_value_that_the_arguments_make(server: Server, secret: Path) -> None:
    got = report(server, secret, "server_to_client", "--seed", 7)
    assert server.values == {random.Random(7).randbytes(SMALL)}
    bulk = got["bulk"]
    assert bulk["bytes"] == bulk["per_s"][0] > 100 * SMALL
    assert (bulk["seconds"], bulk["omitted_bytes"], len(got["rtt_ms"])) == (1, 0, 20)


def test_uploads_and_counts_what_is_acknowledged(server: Server, secret: Path) -> None:
    got = report(server, secret, "client_to_server", "--duration-s", 2, "--omit-s", 1, "--bulk-mbit", 100)
    assert server.values == {random.Random(2016).randbytes(SMALL)}
    bulk = got["bulk"]
    assert bulk["bytes"] % SMALL == bulk["omitted_bytes"] % SMALL == 0
    assert 0 < bulk["omitted_bytes"] < bulk["omitted_bytes"] + bulk["bytes"] <= SMALL * server.sets
    assert bulk["seconds"] == pytest.approx(1, abs=0.5)
    assert all(size > 0 for size in bulk["per_s"][:2])


@pytest.mark.parametrize("phase", ["server_to_client", "client_to_server"])
def test_throttled_bulk_stays_at_its_rate(server: Server, secret: Path, phase: str) -> None:
    bulk = report(server, secret, phase, "--duration-s", 2, "--omit-s", 1, "--bulk-mbit", 16)["bulk"]
    # 2,000,000 bytes a second; what it may catch up is 0.05 s, and an acknowledgement more or less are 65536
    assert bulk["per_s"][1] <= 2_000_000 * 1.05 + SMALL
    assert 1_600_000 <= bulk["bytes"] / bulk["seconds"] <= 2_000_000 * 1.05 + SMALL


def test_says_how_many_were_never_answered(server: Server, secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "DRAIN_S", 0.2)
    server.delay_s = 0.7
    args = Namespace(target=("127.0.0.1", server.listen().port), phase="idle", timeout_s=5, per_s=10, duration_s=1)
    args = Namespace(**vars(args), omit_s=0, value_bytes=1, bulk_mbit=0, seed=1)
    got = latency.measure(args, PASSWORD)
    # those sent up to 0.5 s are answered by 1.2 s
    assert (len(got["rtt_ms"]), got["unanswered"]) in {(5, 5), (6, 4)}


def bulk(phase: str, value_bytes: int = 100) -> Any:
    """A transfer of 4 s of which 1 does not count, over no connection at all."""
    return latency.Bulk(None, Namespace(phase=phase, duration_s=4, omit_s=1, bulk_mbit=0), bytes(value_bytes))


def test_counts_downloaded_bytes_from_second_to_second() -> None:
    got = bulk("server_to_client")
    for now, size in ((0.5, 7), (0.999, 10), (1.0, 20), (3.999, 30), (4.0, 40)):
        got.arrived(now, size)
    assert got.report(4.2) == {"bytes": 50, "seconds": 3, "omitted_bytes": 17, "per_s": [17, 20, 0, 30, 40]}


def test_counts_acknowledged_values_from_acknowledgement_to_acknowledgement() -> None:
    got = bulk("client_to_server")
    for now in (0.4, 1.3, 2.2, 3.1, 4.0, 4.9):
        got.arrived(now, 100)
    # after the one at 1.3 come three, in 2.7 s
    assert got.report(5) == {"bytes": 300, "seconds": 2.7, "omitted_bytes": 200, "per_s": [100, 100, 100, 100, 200]}


def test_a_standstill_at_the_end_counts() -> None:
    got = bulk("client_to_server")
    for now in (1.0, 1.5, 2.0):
        got.arrived(now, 100)
    assert got.report(19)["seconds"] == 18
    got.arrived(9.0, 100)
    assert (got.report(19)["bytes"], got.report(19)["seconds"]) == (300, 8)


def test_no_acknowledgement_is_no_time() -> None:
    assert bulk("client_to_server").report(19) == {
        "bytes": 0,
        "seconds": 0.0,
        "omitted_bytes": 0,
        "per_s": [0, 0, 0, 0],
    }


@pytest.mark.parametrize(("value_bytes", "requests"), [(1 << 20, 16), (SMALL, 256), (64 << 20, 2)])
def test_asks_for_more_than_the_buffers_hold(value_bytes: int, requests: int) -> None:
    assert bulk("server_to_client", value_bytes).credit == requests


def test_replies_are_compared_however_they_are_cut() -> None:
    near, far = socket.socketpair()
    with near, far:
        replies = latency.Replies(near, b"$3\r\n-x\n\r\n")
        counts = []
        for piece in (b"$3\r", b"\n", b"-x\n\r\n$3\r\n-", b"x\n\r\n" + b"$3\r\n-x\n\r\n" * 2 + b"$"):
            far.sendall(piece)
            counts.append(replies.receive(4096))
        assert counts == [0, 0, 1, 3]
        far.sendall(b"3\r\n-y")
        with pytest.raises(latency.Failure, match="unexpected reply: b'3"):
            replies.receive(4096)


def test_says_in_one_line_that_nobody_listens(server: Server, secret: Path) -> None:
    line = failure(run(server, secret, "idle"))
    assert line == f"latency: idle at 127.0.0.1:{server.port}: [Errno 111] Connection refused"


@pytest.mark.parametrize("phase", ["idle", "server_to_client", "first_byte"])
def test_says_in_one_line_that_the_password_is_wrong(server: Server, tmp_path: Path, phase: str) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("another-password", encoding="utf-8")
    assert failure(run(server.listen(), wrong, phase)).endswith(": error reply: WRONGPASS invalid password")
    assert "No such file" in failure(run(server, tmp_path / "none", phase))


@pytest.mark.parametrize(
    ("phase", "replies", "because"),
    [
        ("idle", {"PING": None}, "the server closed the connection"),
        ("idle", {"PING": b"-ERR no\r\n"}, "error reply: ERR no"),
        ("idle", {"PING": b"+NO\r\n"}, "unexpected reply: b'+NO"),
        ("idle", {"PING": b"+PONG\r\n" * 2}, "more replies than PINGs"),
        ("server_to_client", {"SET": b"-OOM not allowed\r\n"}, "error reply: OOM not allowed"),
        ("server_to_client", {"GET": None}, "the server closed the connection"),
        ("server_to_client", {"GET": b"$-1\r\n"}, "unexpected reply: b'$-1"),
        ("client_to_server", {"SET": b"-OOM not allowed\r\n"}, "error reply: OOM not allowed"),
        ("client_to_server", {"SET": None}, "the server closed the connection"),
    ],
)
def test_says_in_one_line_what_the_server_did(
    server: Server, secret: Path, phase: str, replies: dict[str, bytes | None], because: str
) -> None:
    server.replies = replies
    line = failure(run(server.listen(), secret, phase, "--duration-s", 1))
    # a server that closes with requests unread resets the connection
    assert because in line or ("closed" in because and line.endswith(("reset by peer", "Broken pipe")))


def test_says_in_one_line_that_nobody_answers(server: Server, secret: Path) -> None:
    server.mute = {1}
    assert failure(run(server.listen(), secret, "idle", "--timeout-s", 0.3)).endswith(": timed out")


def test_first_byte_waits_for_the_server(server: Server, secret: Path) -> None:
    times: list[float] = []

    def appear() -> None:
        times.append(time.monotonic())
        server.listen()

    timer = threading.Timer(1, appear)
    timer.start()
    done = run(server, secret, "first_byte", "--timeout-s", 20)
    timer.join()
    assert (done.returncode, done.stderr) == (0, "")
    [line] = done.stdout.splitlines()
    got = json.loads(line)
    assert times[0] <= got["first_pong_monotonic"] <= times[0] + 0.5
    assert got["attempts"] > 1


def test_first_byte_survives_connections_that_lead_to_nothing(server: Server, secret: Path) -> None:
    # as through a forward whose other end is not there yet
    server.closed, server.mute = {1, 2, 3}, {4}
    began = time.monotonic()
    done = run(server.listen(), secret, "first_byte", "--timeout-s", 20)
    assert (done.returncode, json.loads(done.stdout)["attempts"]) == (0, 5)
    assert json.loads(done.stdout)["first_pong_monotonic"] - began >= latency.ALONE_S


def test_first_byte_gives_up_in_time(server: Server, secret: Path) -> None:
    began = time.monotonic()
    line = failure(run(server, secret, "first_byte", "--timeout-s", 0.5))
    assert ": no PING was answered within 0.5 s and " in line
    assert 0.5 <= time.monotonic() - began < 5


def test_first_byte_keeps_few_attempts(server: Server, secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "ALONE_S", 0)
    server.mute = set(range(1, 1000))
    args = Namespace(target=("127.0.0.1", server.listen().port), timeout_s=1.5)
    with pytest.raises(latency.Failure, match=r"no PING was answered within 1\.5 s"):
        latency.first_byte(args, PASSWORD)
    assert server.accepted == latency.ATTEMPTS


@pytest.mark.parametrize(
    ("wrong", "because"),
    [
        (["--target", "192.0.2.1"], "'192.0.2.1' is not HOST:PORT"),
        (["--target", "192.0.2.1:99999"], "is not HOST:PORT"),
        (["--phase", "both"], "invalid choice: 'both'"),
        (["--omit-s", "10"], "--omit-s is part of --duration-s"),
        (["--duration-s", "0"], "only --omit-s and --bulk-mbit may be 0"),
        (["--bulk-mbit", "-1"], "none may be negative"),
        (["--per-s", "x"], "invalid int value"),
    ],
)
def test_refuses_arguments(server: Server, secret: Path, wrong: list[str], because: str) -> None:
    done = run(server, secret, "idle", *wrong)
    assert done.returncode == 2
    assert because in done.stderr
