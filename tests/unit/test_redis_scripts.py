"""The two scripts that run on the hosts: the data they make and the arguments they refuse, without Redis."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType

import pytest

from tunnel_lab.manifests import ROLES

FILES = ROLES / "workload_redis_sync" / "files"
PASSWORD = "a-password-of-the-tests"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FILES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


load, sync = loaded("redis_load"), loaded("redis_sync")


def data(size: int = 1_000_000, value: int = 4096, compressibility: float = 0.0, seed: int = 1) -> bytes:
    return b"".join(load.values(size, value, compressibility, seed))


def test_the_same_arguments_make_the_same_data_for_ever() -> None:
    # a change of these bytes needs a new GENERATOR
    known = "db2d440efe40f450707d90f2a18e521977dad239971c499e5cd727c147143dd3"
    assert hashlib.sha256(data(100_000, 4096, 0.5, 2016)).hexdigest() == known
    assert data() == data() != data(seed=2)
    assert load.GENERATOR == 1


@pytest.mark.parametrize(("compressibility", "left"), [(0.0, 1.0), (0.25, 0.75), (0.5, 0.5), (0.9, 0.1), (1.0, 0.0)])
def test_compressibility_is_the_share_that_a_compressor_removes(compressibility: float, left: float) -> None:
    made = data(compressibility=compressibility)
    assert len(zlib.compress(made)) / len(made) == pytest.approx(left, abs=0.02)


@pytest.mark.parametrize(("size", "value", "count"), [(8192, 4096, 2), (8193, 4096, 3), (10, 4096, 1), (7, 1, 7)])
def test_values_add_up_to_the_data_set(size: int, value: int, count: int) -> None:
    made = list(load.values(size, value, 0.5, 1))
    assert sum(map(len, made)) == size
    assert len(made) == count == load.count(size, value)
    assert {len(each) for each in made[:-1]} <= {value}


def test_estimates_the_rdb() -> None:
    # what Redis 8.0.2 announced for this data set was 10049020, of which about 180 are its header
    assert load.rdb_estimate(10_000_000, 4096) == pytest.approx(10049020, abs=200)


def test_encodes_commands() -> None:
    assert load.encode(b"SET", b"k", b"\r\n\x00") == b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\n\r\n\x00\r\n"


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(FILES / f"{script}.py"), *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(PASSWORD + "\n", encoding="utf-8")
    return path


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("wrong", "because"),
    [
        (["--dataset-bytes", "0"], "0 is not above 0"),
        (["--dataset-bytes", "1G"], "invalid positive value"),
        (["--compressibility", "1.5"], "1.5 is not between 0 and 1"),
        (["--value-bytes", "-1"], "-1 is not above 0"),
        (["--unknown"], "unrecognized arguments"),
    ],
)
def test_load_refuses_arguments(secret: Path, tmp_path: Path, wrong: list[str], because: str) -> None:
    done = run("redis_load", "--password-file", secret, "--state-file", tmp_path / "s", "--dataset-bytes", "9", *wrong)
    assert done.returncode == 2
    assert because in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("wrong", "because"),
    [
        (["--target", "192.0.2.1"], "'192.0.2.1' is not HOST:PORT"),
        (["--target", "192.0.2.1:99999"], "is not HOST:PORT"),
        (["--workdir", "relative"], "'relative' is not an absolute path"),
        (["--workdir", "/a\nrequirepass x"], "is not an absolute path"),
        (["--timeout-s", "soon"], "invalid float value"),
    ],
)
def test_sync_refuses_arguments(secret: Path, tmp_path: Path, wrong: list[str], because: str) -> None:
    common = ["--password-file", secret, "--workdir", tmp_path / "w", "--timeout-s", 5, "--target", "127.0.0.1:1"]
    done = run("redis_sync", *common, *wrong)
    assert done.returncode == 2
    assert because in done.stderr


def test_load_says_in_one_line_that_nobody_answers(secret: Path, tmp_path: Path, closed_port: int) -> None:
    state = tmp_path / "s"
    given = ["--password-file", secret, "--state-file", state, "--dataset-bytes", 9, "--port", closed_port]
    done = run("redis_load", *given)
    assert done.returncode == 1
    assert done.stderr == f"redis_load: redis at 127.0.0.1:{closed_port}: no connection: Connection refused\n"
    assert (done.stdout, state.exists()) == ("", False)


@pytest.mark.parametrize("text", ["", "short", "with spaces in it", 'quoted"quoted'])
@pytest.mark.parametrize("script", [load, sync])
def test_refuses_a_password_that_would_need_quoting(script: ModuleType, tmp_path: Path, text: str) -> None:
    path = tmp_path / "password"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(script.Failure, match="expected one password") as caught:
        script.read_password(path)
    assert not text or text not in str(caught.value)
    with pytest.raises(script.Failure, match="No such file"):
        script.read_password(tmp_path / "none")


def fake_redis(folder: Path, body: str) -> Path:
    path = folder / "redis-server"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


VERSION = 'if [ "$1" = --version ]; then echo "Redis server v=8.0.2 sha=0"; exit; fi\n'


def test_sync_cleans_up_and_keeps_the_password_to_itself(secret: Path, tmp_path: Path, closed_port: int) -> None:
    # a server that dies and shows its whole configuration on the way
    server = fake_redis(tmp_path, VERSION + 'tr "\\n" " " < "$1" >&2; exit 3')
    work = tmp_path / "work"
    common = ["--password-file", secret, "--workdir", work, "--timeout-s", 5, "--target", "127.0.0.1:1"]
    done = run("redis_sync", *common, "--redis-server", server, "--port", closed_port)
    assert done.returncode == 1
    assert done.stderr.startswith("redis_sync: the replica ended with status 3: ")
    assert "requirepass (password) masterauth (password)" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert PASSWORD not in done.stderr + done.stdout
    assert json.loads(done.stdout)["error"] in done.stderr
    assert not work.exists()


def test_sync_says_when_there_is_no_redis(secret: Path, tmp_path: Path, closed_port: int) -> None:
    common = ["--password-file", secret, "--workdir", tmp_path / "w", "--timeout-s", 5, "--port", closed_port]
    target = ["--target", "127.0.0.1:1"]
    done = run("redis_sync", *common, *target, "--redis-server", tmp_path / "none")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "cannot be run" in done.stderr
    done = run("redis_sync", *common, *target, "--redis-server", fake_redis(tmp_path, "echo hello"))
    assert "no version in 'hello" in done.stderr


def test_sync_does_not_touch_a_folder_that_it_did_not_make(tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    with pytest.raises(sync.Failure, match="not empty, and not made by this program"):
        sync.make_workdir(tmp_path)
    assert (tmp_path / "kept").exists()


def test_sync_replaces_what_an_earlier_run_left_behind(tmp_path: Path) -> None:
    work = tmp_path / "work"
    for _ in range(2):
        sync.make_workdir(work)
        assert [path.name for path in work.iterdir()] == [sync.MARKER]
        assert work.stat().st_mode & 0o777 == 0o700
        (work / "dump.rdb").touch()


def test_sync_refuses_a_port_that_is_in_use(secret: Path, tmp_path: Path) -> None:
    common = ["--password-file", secret, "--workdir", tmp_path / "w", "--timeout-s", 5, "--target", "127.0.0.1:1"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run(
            "redis_sync", *common, "--redis-server", fake_redis(tmp_path, VERSION), "--port", taken.getsockname()[1]
        )
    assert "is in use" in done.stderr
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    ("version", "present", "absent"),
    [
        ((6, 0, 16), [], ["enable-debug-command", "repl-rdb-channel"]),
        ((7, 0, 15), ["enable-debug-command yes"], ["repl-rdb-channel"]),
        ((8, 0, 2), ["enable-debug-command yes", "repl-rdb-channel no"], []),
    ],
)
def test_configures_what_the_version_knows(version: tuple[int, ...], present: list[str], absent: list[str]) -> None:
    text = sync.config(6379, Path("/w"), PASSWORD, version)
    lines = text.splitlines()
    assert {"bind 127.0.0.1", 'save ""', "repl-timeout 3600", *present} <= set(lines)
    assert not [word for word in absent if word in text]


def test_secrets_are_for_their_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        sync.write_secret(tmp_path / "conf", "x")
    finally:
        os.umask(old)
    assert (tmp_path / "conf").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "said",
    [
        "I/O error trying to sync with MASTER: connection lost",
        "Error condition on socket for SYNC: Connection refused",
        "MASTER aborted replication with an error: ERR",
        "Unable to AUTH to MASTER: -WRONGPASS",
        "Timeout connecting to the MASTER...",
        "Timeout receiving bulk data from MASTER... If the problem persists",
        "MASTER timeout: no data nor PING received...",
        "Failed trying to load the MASTER synchronization DB from disk",
    ],
)
def test_knows_the_lines_after_which_nothing_comes(said: str) -> None:
    assert sync.NEVER.search(f"1:S 30 Nov 2026 16:04:16.820 # {said}")


def test_takes_no_good_line_for_a_failure() -> None:
    for name in ("finished.json", "v7_0_15.json"):
        log = json.loads((ROLES / "workload_redis_sync" / "fixtures" / name).read_text())["replica_log"]
        until, _ = log.split("sync: Finished with success")
        assert not sync.NEVER.search(until)
        assert len(sync.STARTED.findall(log)) == len(sync.FINISHED.findall(log)) == 1
