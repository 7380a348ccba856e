#!/usr/bin/env python3
"""Fill the server's Redis with a data set that the same arguments always make again, byte by byte.

Prints one JSON object. A data set that is in place already, proven by its digest, is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GENERATOR = 1
"""Raise whenever the same arguments would give other bytes than before."""
BATCH_BYTES = 1 << 20
REPLY_TIMEOUT_S = 600


class Failure(Exception):
    """Why it cannot be done, in one line for the user."""


class Redis:
    """One connection to one server; just enough of its protocol (RESP2)."""

    def __init__(self, host: str, port: int, password: str) -> None:
        """Connect and authenticate."""
        try:
            self.socket = socket.create_connection((host, port), timeout=10)
        except OSError as error:
            raise Failure(f"redis at {host}:{port}: no connection: {error.strerror or error}") from error
        self.socket.settimeout(REPLY_TIMEOUT_S)
        self.reader = self.socket.makefile("rb")
        self.call("AUTH", password)

    def call(self, *words: str) -> Any:
        """Send one command, return its reply."""
        name = words[0].upper()
        try:
            self.socket.sendall(encode(*(word.encode() for word in words)))
            return self._reply(name)
        except OSError as error:
            raise Failure(f"redis: {name}: {error.strerror or error}") from error

    def stream(self, commands: Iterator[bytes]) -> None:
        """Send commands in batches; each must be answered with OK."""
        batch: list[bytes] = []
        size = 0
        for command in commands:
            batch.append(command)
            size += len(command)
            if size >= BATCH_BYTES:
                self._send(batch)
                batch, size = [], 0
        self._send(batch)

    def _send(self, batch: list[bytes]) -> None:
        try:
            self.socket.sendall(b"".join(batch))
            for _ in batch:
                self._reply("SET")
        except OSError as error:
            raise Failure(f"redis: while loading: {error.strerror or error}") from error

    def _reply(self, name: str) -> Any:
        line = self.reader.readline()
        if not line.endswith(b"\r\n"):
            raise Failure(f"redis: {name}: the server closed the connection")
        kind, rest = line[:1], line[1:-2].decode(errors="replace")
        if kind == b"-":
            raise Failure(f"redis: {name}: {rest}")
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        raise Failure(f"redis: {name}: unexpected reply {line[:40]!r}")


def encode(*words: bytes) -> bytes:
    """Return one command as the protocol wants it."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def values(dataset_bytes: int, value_bytes: int, compressibility: float, seed: int) -> Iterator[bytes]:
    """Yield the values: `dataset_bytes` in all, `value_bytes` each, the last one shorter if need be.

    The first part of a value is random and cannot be compressed, the rest is zeros:
    `compressibility` is the share of zeros, 0 for none and 1 for nothing else.
    """
    source = random.Random(seed)
    left = dataset_bytes
    while left > 0:
        size = min(value_bytes, left)
        zeros = round(size * compressibility)
        yield source.randbytes(size - zeros) + bytes(zeros)
        left -= size


def count(dataset_bytes: int, value_bytes: int) -> int:
    """Return how many values there are."""
    return -(-dataset_bytes // value_bytes)


def key(number: int) -> bytes:
    """Return the name of value `number`."""
    return b"value:%010d" % number


def rdb_estimate(dataset_bytes: int, value_bytes: int) -> int:
    """Return about how long the RDB is without compression: per value a type byte, its key, two lengths."""
    length = 1 if value_bytes < 64 else 2 if value_bytes < 16384 else 5
    return dataset_bytes + count(dataset_bytes, value_bytes) * (1 + 1 + len(key(0)) + length)


def read_state(path: Path) -> dict[str, Any]:
    """Return what was remembered of the last load; nothing when there is nothing readable."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Remember the load, in one step."""
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(json.dumps(state) + "\n", encoding="utf-8")
    os.replace(temporary, path)  # noqa: PTH105 - one name for the one step that matters


def read_password(path: Path) -> str:
    """Read the password; only characters that need no quoting anywhere."""
    try:
        password = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise Failure(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not re.fullmatch(r"[A-Za-z0-9_.:@%+=/-]{8,}", password):
        raise Failure(f"{path}: expected one password of 8 or more of A-Z a-z 0-9 _.:@%+=/-")
    return password


def load(args: argparse.Namespace) -> dict[str, Any]:
    """Make sure that the data set is loaded; return what is printed."""
    started = time.monotonic()
    redis = Redis("127.0.0.1", args.port, read_password(args.password_file))
    made_of = {
        "generator": GENERATOR,
        "dataset_bytes": args.dataset_bytes,
        "value_bytes": args.value_bytes,
        "compressibility": args.compressibility,
        "seed": args.seed,
    }
    state = read_state(args.state_file)
    loaded = not (
        state.get("made_of") == made_of
        and state.get("dbsize") == redis.call("DBSIZE")
        and state.get("digest") == redis.call("DEBUG", "DIGEST")
    )
    if loaded:
        args.state_file.unlink(missing_ok=True)
        redis.call("FLUSHALL")
        numbered = enumerate(values(args.dataset_bytes, args.value_bytes, args.compressibility, args.seed))
        redis.stream(encode(b"SET", key(number), value) for number, value in numbered)
        state = {"made_of": made_of, "dbsize": redis.call("DBSIZE"), "digest": redis.call("DEBUG", "DIGEST")}
        expected = count(args.dataset_bytes, args.value_bytes)
        if state["dbsize"] != expected:
            raise Failure(f"redis holds {state['dbsize']} keys after loading {expected}; does anyone else write?")
        write_state(args.state_file, state)
    return {
        "loaded": loaded,
        "dbsize": state["dbsize"],
        "digest": state["digest"],
        **made_of,
        "rdb_bytes_estimate": rdb_estimate(args.dataset_bytes, args.value_bytes),
        "seconds": round(time.monotonic() - started, 3),
    }


def share(text: str) -> float:
    """Read a number from 0 to 1."""
    number = float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return number


def positive(text: str) -> int:
    """Read a whole number above 0."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=positive, default=6379)
    parser.add_argument("--password-file", type=Path, required=True)
    parser.add_argument("--dataset-bytes", type=positive, required=True, help="length of all values together")
    parser.add_argument("--value-bytes", type=positive, default=4096)
    parser.add_argument("--compressibility", type=share, default=0.0, help="share of zeros in each value, 0 to 1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state-file", type=Path, required=True, help="remembers what is loaded")
    return parser.parse_args(argv)


def main() -> int:
    """Do it; one line on stderr and exit status 1 when it cannot be done."""
    args = arguments()
    try:
        print(json.dumps(load(args)))
    except (Failure, OSError) as error:
        print(f"redis_load: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
