#!/usr/bin/env python3
"""Replicate the server's Redis into an empty one started here, once, and report what both say of it.

Prints one JSON object with the replica's log, both INFO dumps, digests and the settings in force, verbatim;
nothing is computed from them here. Exit status 0 means that the synchronisation finished.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SETTINGS = (
    "repl-diskless-sync",
    "repl-diskless-sync-delay",
    "repl-diskless-load",
    "repl-rdb-channel",
    "repl-timeout",
    "repl-disable-tcp-nodelay",
    "repl-backlog-size",
    "client-output-buffer-limit",
    "rdbcompression",
    "rdbchecksum",
    "save",
    "appendonly",
    "maxmemory",
    "replica-lazy-flush",
    "io-threads",
)
"""What decides how a synchronisation goes; none of them holds a secret."""

STARTED = re.compile(r"MASTER <-> (?:REPLICA|SLAVE) sync started")
FINISHED = re.compile(r"MASTER <-> (?:REPLICA|SLAVE) sync: Finished with success")
NEVER = re.compile(
    r"MASTER aborted replication|Unable to AUTH to MASTER|Unable to connect to MASTER|MASTER timeout"
    r"|Error condition on socket for SYNC|Error reply to PING|I/O error|Bad protocol from MASTER"
    r"|Timeout (?:connecting to|receiving bulk data from)|Write error or short write|Error truncating"
    r"|Opening the temp file|Failed trying|Unexpected reply|Master does not support PSYNC|unable to PSYNC"
    r"|Connection with master lost|Short read or OOM|Can't handle RDB"
)
"""What the replica's log says when a synchronisation ends without success."""

MARKER = ".tunnel-lab-redis-sync"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
POLL_S = 0.05
START_S = 30
QUIET_S = 60
REPLY_S = 600


class Failure(Exception):
    """Why it cannot be done, in one line for the user."""


class Redis:
    """One connection to one server; just enough of its protocol (RESP2)."""

    def __init__(self, name: str, host: str, port: int, password: str) -> None:
        """Connect and authenticate; `name` is what messages call the server."""
        self.name = f"{name} at {host}:{port}"
        try:
            self.socket = socket.create_connection((host, port), timeout=15)
        except OSError as error:
            raise Failure(f"{self.name}: no connection: {error.strerror or error}") from error
        self.reader = self.socket.makefile("rb")
        self.call("AUTH", password)
        if self.call("PING") != "PONG":
            raise Failure(f"{self.name}: does not answer PING")
        self.socket.settimeout(REPLY_S)

    def __enter__(self) -> Redis:
        """Return the connection."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.reader.close()
        self.socket.close()

    def call(self, *words: str) -> Any:
        """Send one command, return its reply."""
        command = f"*{len(words)}\r\n" + "".join(f"${len(w.encode())}\r\n{w}\r\n" for w in words)
        try:
            self.socket.sendall(command.encode())
            return self._reply(words[0])
        except OSError as error:
            raise Failure(f"{self.name}: {words[0]}: {error.strerror or error}") from error

    def _reply(self, command: str) -> Any:
        line = self.reader.readline()
        if not line.endswith(b"\r\n"):
            raise Failure(f"{self.name}: {command}: the connection was closed without an answer")
        kind, rest = line[:1], line[1:-2].decode(errors="replace")
        if kind == b"-":
            raise Failure(f"{self.name}: {command}: {rest}")
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == "-1" else self.reader.read(int(rest) + 2)[:-2].decode(errors="replace")
        if kind == b"*":
            return [self._reply(command) for _ in range(int(rest))]
        raise Failure(f"{self.name}: {command}: this is not Redis: {line[:40]!r}")

    def info(self) -> str:
        """Return the sections of INFO that a record keeps."""
        return "".join(self.call("INFO", part) for part in ("server", "memory", "persistence", "stats", "replication"))

    def settings(self) -> dict[str, str | None]:
        """Return the settings in force; None for one that this version does not have."""
        found: dict[str, str | None] = {}
        for name in SETTINGS:
            reply = self.call("CONFIG", "GET", name)
            found[name] = reply[1] if reply else None
        return found

    def state(self) -> dict[str, Any]:
        """Return everything that is compared between the two afterwards."""
        return {
            "info_after": self.info(),
            "config": self.settings(),
            "dbsize": self.call("DBSIZE"),
            "digest": self.call("DEBUG", "DIGEST"),
        }


def field(info: str, name: str) -> str:
    """Return one field of an INFO dump, empty when it is not there."""
    found = re.search(rf"^{name}:(.*?)\r?$", info, re.MULTILINE)
    return found.group(1) if found else ""


def quiet_master(master: Redis) -> int:
    """Wait until the master serves nobody else; return how many replicas were left over and had to be cut off.

    A repeat that was cut off leaves its half of the connection behind, and a background save may still run:
    the next replica would be given that old snapshot.
    """
    killed = 0
    deadline = time.monotonic() + QUIET_S
    while True:
        info = master.info()
        if field(info, "connected_slaves") == "0" and field(info, "rdb_bgsave_in_progress") == "0":
            return killed
        if time.monotonic() > deadline:
            raise Failure(f"{master.name}: still serves another replica or saves after {QUIET_S} s")
        killed += int(master.call("CLIENT", "KILL", "TYPE", "replica"))
        time.sleep(POLL_S)


def version(binary: str) -> tuple[int, ...]:
    """Return the version of the local Redis."""
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"{binary}: cannot be run: {error}") from error
    found = re.search(r"v=(\d+)\.(\d+)\.(\d+)", done.stdout)
    if not found:
        raise Failure(f"{binary} --version: no version in {done.stdout[:80]!r}")
    return tuple(int(part) for part in found.groups())


def config(port: int, workdir: Path, password: str, redis: tuple[int, ...]) -> str:
    """Return the replica's configuration; settings that its version does not know are left out."""
    lines = [
        "bind 127.0.0.1",
        f"port {port}",
        f"dir {workdir}",
        f"logfile {workdir}/replica.log",
        "daemonize no",
        'save ""',
        "appendonly no",
        "rdbcompression no",
        "repl-diskless-sync no",
        "repl-diskless-load disabled",
        "repl-timeout 3600",
        "client-output-buffer-limit replica 0 0 0",
        f"requirepass {password}",
        f"masterauth {password}",
    ]
    if redis >= (7,):
        lines.append("enable-debug-command yes")
    if redis >= (8,):
        lines.append("repl-rdb-channel no")
    return "\n".join(lines) + "\n"


def make_workdir(path: Path) -> None:
    """Make an empty folder; one that an earlier run left behind is replaced, anything else is refused."""
    if path.is_dir() and not path.is_symlink() and (path / MARKER).is_file():
        shutil.rmtree(path)
    try:
        if not path.is_dir():
            path.mkdir(mode=0o700)
        path.chmod(0o700)
        if any(path.iterdir()):
            raise Failure(f"{path}: not empty, and not made by this program; name another --workdir")
        (path / MARKER).touch()
    except OSError as error:
        raise Failure(f"{path}: cannot be made: {error.strerror}") from error


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(text, encoding="utf-8")


class Replica:
    """The Redis that is started here and always ended here."""

    def __init__(self, args: argparse.Namespace, password: str) -> None:
        """Start it on an empty folder and wait until it answers."""
        self.log_file: Path = args.workdir / "replica.log"
        self.port: int = args.port
        self.password = password
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", args.port)) == 0:
                raise Failure(f"port {args.port} of 127.0.0.1 is in use; is another Redis running?")
        conf = args.workdir / "replica.conf"
        write_secret(conf, config(args.port, args.workdir, password, version(args.redis_server)))
        # the kernel ends the replica when this program is killed and cannot do it itself
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", args.redis_server, str(conf)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def wait_until_ready(self) -> Redis:
        """Return a connection once it answers, is this very process, and is empty."""
        deadline = time.monotonic() + START_S
        while True:
            self.check_alive()
            try:
                redis = Redis("replica", "127.0.0.1", self.port, self.password)
                break
            except Failure as error:
                if time.monotonic() > deadline:
                    raise Failure(f"the replica did not start within {START_S} s: {error}") from error
                time.sleep(POLL_S)
        info = redis.info()
        if field(info, "process_id") != str(self.process.pid):
            raise Failure(f"{redis.name}: another Redis answers, not the one started here")
        if redis.call("DBSIZE") != 0 or field(info, "role") != "master":
            raise Failure(f"{redis.name}: is not empty and on its own")
        return redis

    def check_alive(self) -> None:
        """Raise a Failure when the process has ended."""
        if self.process.poll() is not None:
            said = self.process.stderr.read().decode(errors="replace") if self.process.stderr else ""
            lines = (said.strip() or self.log().strip() or "it said nothing").splitlines()
            raise Failure(f"the replica ended with status {self.process.returncode}: {lines[-1]}")

    def log(self) -> str:
        """Return its log so far."""
        try:
            return self.log_file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def follow(self, deadline: float) -> None:
        """Return once the log says that the synchronisation finished; a Failure when it never will."""
        position, partial, starts = 0, "", 0
        while True:
            with self.log_file.open("rb") as stream:
                stream.seek(position)
                new = stream.read()
            position += len(new)
            *lines, partial = (partial + new.decode(errors="replace")).split("\n")
            for line in lines:
                starts += bool(STARTED.search(line))
                if FINISHED.search(line):
                    return
                if starts > 1:
                    raise Failure("the synchronisation was started a second time; the log says why")
                if starts and NEVER.search(line):
                    raise Failure(f"the synchronisation failed: {line}")
            self.check_alive()
            if time.monotonic() > deadline:
                raise Failure("the synchronisation did not finish within the time limit")
            time.sleep(POLL_S)

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def synchronise(args: argparse.Namespace, password: str, report: dict[str, Any]) -> None:
    """Do the whole procedure and fill `report`; a Failure leaves in it what is known by then."""
    began = time.monotonic()
    deadline = began + args.timeout_s
    host, port = args.target
    master_report: dict[str, Any] = {}
    timings: dict[str, float] = {}
    report.update(master=master_report, replica={}, timings_s=timings)

    def mark(name: str) -> None:
        timings[name] = round(time.monotonic() - began, 6)

    replica = Replica(args, password)
    try:
        with replica.wait_until_ready() as local:
            mark("replica_ready")
            with Redis("master", host, port, password) as master:
                master_report["stale_replicas_killed"] = quiet_master(master)
                master_report["info_before"] = master.info()
                if not master.call("DBSIZE"):
                    raise Failure(f"{master.name}: holds no data")
            mark("replicaof_sent")
            local.call("REPLICAOF", host, str(port))
            replica.follow(deadline)
            mark("finished_seen")
            report["replica"] = local.state()
            with Redis("master", host, port, password) as master:
                master_report.update(master.state())
            mark("compared")
            local.call("REPLICAOF", "NO", "ONE")
    finally:
        ignore_signals()
        report["replica_log"] = replica.log()
        replica.stop()
    if args.expect_digest and master_report["digest"] != args.expect_digest:
        raise Failure(f"the master's digest is {master_report['digest']}, expected {args.expect_digest}")


def read_password(path: Path) -> str:
    """Read the password; only characters that need no quoting anywhere."""
    try:
        password = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise Failure(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not re.fullmatch(r"[A-Za-z0-9_.:@%+=/-]{8,}", password):
        raise Failure(f"{path}: expected one password of 8 or more of A-Z a-z 0-9 _.:@%+=/-")
    return password


def target(text: str) -> tuple[str, int]:
    """Read HOST:PORT."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def absolute(text: str) -> Path:
    """Read an absolute path that fits into Redis's configuration as it is."""
    if not re.fullmatch(r"/[A-Za-z0-9_./+@-]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not an absolute path of plain characters")
    return Path(text)


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", type=target, required=True, help="HOST:PORT where the master appears")
    parser.add_argument("--password-file", type=Path, required=True, help="the password of both")
    parser.add_argument("--port", type=int, default=6379, help="local port of the replica")
    parser.add_argument("--workdir", type=absolute, required=True, help="made empty, removed afterwards")
    parser.add_argument("--timeout-s", type=float, required=True, help="limit from start to finish of the sync")
    parser.add_argument("--expect-digest", help="the digest that the data set must have")
    parser.add_argument("--redis-server", default="redis-server")
    return parser.parse_args(argv)


def ignore_signals() -> None:
    """Let nothing interrupt the cleaning up."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def stop_on_signal(number: int, _: object) -> None:
    """Turn the first signal into a Failure, so that everything is cleaned up."""
    ignore_signals()
    raise Failure(f"stopped by {signal.Signals(number).name}")


def main() -> int:
    """Do it; one line on stderr and exit status 1 when it cannot be done."""
    args = arguments()
    report: dict[str, Any] = {"format": 1, "target": ":".join(map(str, args.target))}
    password = ""
    for number in SIGNALS:
        signal.signal(number, stop_on_signal)
    try:
        password = read_password(args.password_file)
        make_workdir(args.workdir)
        try:
            synchronise(args, password, report)
        finally:
            ignore_signals()
            shutil.rmtree(args.workdir)
    except (Failure, OSError, subprocess.SubprocessError) as error:
        report["error"] = " ".join(str(error).split())
    text = json.dumps(report)
    print(text.replace(password, "(password)") if password else text)
    if "error" in report:
        print(f"redis_sync: {report['error'].replace(password or chr(0), '(password)')}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
