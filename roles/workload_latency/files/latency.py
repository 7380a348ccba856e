#!/usr/bin/env python3
"""Measure the round-trip time of Redis PINGs, idle or beside a bulk transfer through the same tunnel.

Prints one JSON object; that of `first_byte` says when, by the monotonic clock, the first PING was answered.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import math
import random
import re
import select
import socket
import sys
import time
from pathlib import Path
from typing import Any

KEY, PING = b"bulk", b"*1\r\n$4\r\nPING\r\n"
PIECE_BYTES = 256 << 10  # the most that the bulk reads or writes before the probe has its turn
OUTSTANDING_BYTES = 16 << 20  # how much of the bulk is requested in advance: more than the buffers on the way hold
CATCH_UP_S = 0.05  # how much a paced bulk may catch up after it was held up
DRAIN_S = 15  # how long after the end the last replies, and the arrival that ends the count, are waited for
ATTEMPTS = 20  # that first_byte has under way at once, at most
RETRY_S, RETRY_PENDING_S = 0.01, 0.05  # from one to the next: when all before have failed, and while some are pending
CONNECT_S, ANSWER_S, ALONE_S = 1.0, 3.0, 0.5  # to connect; then to be answered, of which no other is begun for ALONE_S
DIRECTIONS = ("server_to_client", "client_to_server")
ASKED = {"duration_s": 10, "omit_s": 0, "per_s": 20, "value_bytes": 1 << 20, "bulk_mbit": 0, "seed": 2016}


class Failure(Exception):
    """Why it cannot be done, in one line for the user."""


def encode(*words: bytes) -> bytes:
    """Return one command as the protocol wants it."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def check(reply: bytes) -> None:
    """Raise when it is an error reply, or the end."""
    if not reply:
        raise ConnectionResetError("the server closed the connection")
    if reply.startswith(b"-"):
        raise Failure("error reply: " + reply[1:].split(b"\r\n")[0].decode(errors="replace"))


def connect(args: argparse.Namespace, password: str) -> socket.socket:
    """Return an authenticated connection, blocking until the loop takes it over."""
    connection = socket.create_connection(args.target, timeout=args.timeout_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    call(connection, b"AUTH", password.encode())
    return connection


def call(connection: socket.socket, *words: bytes) -> bytes:
    """Send one command, return its reply."""
    connection.sendall(encode(*words))
    with connection.makefile("rb") as reader:
        line = reader.readline()
        check(line)
        return reader.read(int(line[1:]) + 2) if re.fullmatch(rb"\$\d+\r\n", line) else line


class Replies:
    """What comes over a connection: one reply, again and again."""

    def __init__(self, connection: socket.socket, reply: bytes) -> None:
        self.socket, self.reply, self.at = connection, reply, 0

    def receive(self, most: int) -> int:
        """Read once; return how many replies that completes. A Failure when it is not what was expected."""
        complete, position, data = 0, 0, self.socket.recv(most)
        if self.at == 0 or not data:
            check(data)
        while position < len(data):
            part = data[position : position + len(self.reply) - self.at]
            if not self.reply.startswith(part, self.at):
                raise Failure(f"unexpected reply: {part[:40]!r}")
            position += len(part)
            self.at = (self.at + len(part)) % len(self.reply)
            complete += self.at == 0
        return complete


class Probe:
    """PINGs by the clock, whether or not earlier ones are answered; times are seconds since the start."""

    def __init__(self, connection: socket.socket, per_s: int, duration_s: int) -> None:
        self.socket, self.due = connection, [n / per_s for n in range(duration_s * per_s)]
        self.replies, self.unsent = Replies(connection, b"+PONG\r\n"), b""
        self.sent: list[float] = []
        self.rtt_ms: list[float] = []

    def next_due(self) -> float:
        """Return when the next PING is due, infinity after the last."""
        return self.due[len(self.sent)] if len(self.sent) < len(self.due) else math.inf

    def send(self, now: float) -> None:
        """Send what is due."""
        while self.next_due() <= now:
            self.sent.append(now)
            self.unsent += PING
        with contextlib.suppress(BlockingIOError):
            self.unsent = self.unsent and self.unsent[self.socket.send(self.unsent) :]

    def receive(self, now: float) -> None:
        """Take the replies that were there at `now`; they come in the order of the PINGs."""
        for _ in range(self.replies.receive(4096)):
            if len(self.rtt_ms) == len(self.sent):
                raise Failure("more replies than PINGs")
            self.rtt_ms.append((now - self.sent[len(self.rtt_ms)]) * 1000)

    def report(self) -> dict[str, Any]:
        """Return the round trips, and by how much the PINGs were sent after they were due."""
        late = [(sent - due) * 1000 for sent, due in zip(self.sent, self.due)]
        return {
            "rtt_ms": [[round(sent, 6), round(rtt, 3)] for sent, rtt in zip(self.sent, self.rtt_ms)],
            "unanswered": len(self.due) - len(self.rtt_ms),
            "late_ms": {"max": round(max(late), 3), "mean": round(sum(late) / len(late), 3)},
        }


class Bulk:
    """Pipelined GETs or SETs of one value, as fast as it goes or no faster than `bulk_mbit`.

    What arrives from `omit_s` to `duration_s` is counted. Of SETs, that is from the first acknowledgement after the one
    to the first after the other: acknowledgements are few, and between two of them whole values have arrived.
    """

    def __init__(self, connection: socket.socket, args: argparse.Namespace, value: bytes) -> None:
        self.socket, self.down = connection, args.phase == DIRECTIONS[0]
        self.head, self.size = len(b"$%d\r\n" % len(value)), len(value)
        self.request = memoryview(encode(b"GET", KEY) if self.down else encode(b"SET", KEY, value))
        self.replies = Replies(connection, b"$%d\r\n%s\r\n" % (len(value), value) if self.down else b"+OK\r\n")
        self.credit = max(2, OUTSTANDING_BYTES // len(value))
        self.rate, self.not_before = args.bulk_mbit * 125_000 or math.inf, 0.0
        self.piece = int(min(PIECE_BYTES, max(1024, self.rate / 100)))
        self.omit_s, self.duration_s, self.per_s = args.omit_s, args.duration_s, [0] * args.duration_s
        self.at = self.omitted = self.counted = 0
        self.since, self.until = (args.omit_s, args.duration_s) if self.down else (math.inf, math.inf)

    def wants(self, now: float) -> tuple[bool, bool]:
        """Return whether to read and whether to write at `now`."""
        held = now < self.not_before
        return not (self.down and held), self.credit > 0 and (self.down or not held)

    def receive(self, now: float) -> None:
        """Read once, and count what arrived by it: the bytes of a value, or those that the server has acknowledged."""
        before, complete = self.under_way(), self.replies.receive(self.piece)
        size = complete * self.size + self.under_way() - before
        self.credit += complete
        self.arrived(now, size)
        self.pace(now, size if self.down else 0)

    def under_way(self) -> int:
        """Return how much is there of a value that has not arrived completely."""
        return min(max(self.replies.at - self.head, 0), self.size) if self.down else 0

    def send(self, now: float) -> None:
        """Write once."""
        size = self.socket.send(self.request[self.at : self.at + self.piece])
        self.at = (self.at + size) % len(self.request)
        self.credit -= self.at == 0
        self.pace(now, 0 if self.down else size)

    def pace(self, now: float, size: int) -> None:
        """Say from when on to continue."""
        self.not_before = max(self.not_before, now - CATCH_UP_S) + size / self.rate

    def arrived(self, now: float, size: int) -> None:
        """Count `size` bytes at `now`."""
        self.per_s += [0] * (int(now) + 1 - len(self.per_s))
        self.per_s[int(now)] += size
        if size and now < self.since:
            self.omitted += size
            self.since = now if now >= self.omit_s else self.since
        elif size and now < self.until:
            self.counted += size
            self.until = now if now >= self.duration_s else self.until

    def report(self, now: float) -> dict[str, Any]:
        """Return what was counted by `now`."""
        seconds = round(max(0.0, min(self.until, now) - self.since), 6)
        return {"bytes": self.counted, "seconds": seconds, "omitted_bytes": self.omitted, "per_s": self.per_s}


def measure(args: argparse.Namespace, password: str) -> dict[str, Any]:
    """Do one phase; return what is printed."""
    probe, bulk = Probe(connect(args, password), args.per_s, args.duration_s), None
    version = re.search(rb"redis_version:(\S+)", call(probe.socket, b"INFO", b"server"))
    if args.phase in DIRECTIONS:
        value = random.Random(args.seed).randbytes(args.value_bytes)
        bulk = Bulk(connect(args, password), args, value)
        if bulk.down:
            call(bulk.socket, b"SET", KEY, value)
    seconds = loop(probe, bulk, args.duration_s)
    return {
        "format": 1,
        "phase": args.phase,
        "asked": {name: getattr(args, name) for name in ASKED},
        **probe.report(),
        "bulk": bulk.report(seconds) if bulk else None,
        "server_version": version.group(1).decode() if version else None,
    }


def loop(probe: Probe, bulk: Bulk | None, duration_s: int) -> float:
    """Probe and transfer until the end, and on until what was sent by then is answered; return the seconds."""
    load = [bulk.socket] if bulk else []
    for connection in [probe.socket, *load]:
        connection.setblocking(False)
    started, now, end = time.monotonic(), 0.0, duration_s + DRAIN_S
    while now < end:
        if now >= duration_s and len(probe.rtt_ms) == len(probe.due) and (not bulk or bulk.until < math.inf):
            break
        read, write = bulk.wants(now) if bulk else (False, False)
        wake = min(probe.next_due(), *(at for at in (bulk.not_before if bulk else end, duration_s, end) if at > now))
        reading, writing = [probe.socket] + load * read, [probe.socket] * bool(probe.unsent) + load * write
        ready = select.select(reading, writing, [], max(0.0, wake - now))
        now = time.monotonic() - started
        with contextlib.suppress(BlockingIOError):  # select says ready, and is rarely wrong
            if probe.socket in ready[0]:
                probe.receive(now)
            probe.send(now)
            if bulk and bulk.socket in ready[0]:
                bulk.receive(now)
            if bulk and bulk.socket in ready[1]:
                bulk.send(now)
    return now


def first_byte(args: argparse.Namespace, password: str) -> dict[str, Any]:
    """Begin attempt after attempt, also while earlier ones hang, until a PING is answered."""
    greeting = encode(b"AUTH", password.encode()) + PING
    attempts: dict[socket.socket, tuple[float, Replies | None]] = {}  # dropped are closed; None: connecting
    count, next_at, end = 0, 0.0, time.monotonic() + args.timeout_s
    while (now := time.monotonic()) < end:
        attempts = {each: it for each, it in attempts.items() if now - it[0] < (ANSWER_S if it[1] else CONNECT_S)}
        if now >= next_at and len(attempts) < ATTEMPTS:
            new, count = socket.socket(), count + 1
            new.setblocking(False)
            if new.connect_ex(args.target) in (0, errno.EINPROGRESS):
                attempts[new] = now, None
            next_at = now + (RETRY_PENDING_S if attempts else RETRY_S)
        connected = [each for each, (_, replies) in attempts.items() if replies]
        readable, writable, _ = select.select(connected, [*attempts.keys() - set(connected)], [], RETRY_S)
        now = time.monotonic()
        for each in readable + writable:
            since, replies = attempts.pop(each)
            next_at = min(next_at, now + RETRY_S)
            with contextlib.suppress(OSError):
                if replies and replies.receive(4096):
                    return {"first_pong_monotonic": now, "attempts": count}
                if not replies and each.send(greeting):
                    since, replies, next_at = now, Replies(each, b"+OK\r\n+PONG\r\n"), now + ALONE_S
                attempts[each] = since, replies
    raise Failure(f"no PING was answered within {args.timeout_s:g} s and {count} attempts")


def target(text: str) -> tuple[str, int]:
    """Read HOST:PORT."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host, int(port)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--phase", required=True, choices=["first_byte", "idle", *DIRECTIONS])
    parser.add_argument("--target", type=target, required=True, help="HOST:PORT where the server appears")
    parser.add_argument("--password-file", type=Path, required=True)
    parser.add_argument("--timeout-s", type=float, default=15, help="limit of first_byte, or of connecting")
    for name, default in ASKED.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    args = parser.parse_args()
    if min(args.duration_s - args.omit_s, args.per_s, args.value_bytes, args.omit_s + 1, args.bulk_mbit + 1) < 1:
        parser.error("only --omit-s and --bulk-mbit may be 0, none may be negative, --omit-s is part of --duration-s")
    return args


def main() -> None:
    """Do it; one line on stderr and exit status 1 when it cannot be done."""
    args = arguments()
    try:
        password = args.password_file.read_text(encoding="utf-8").strip()
        print(json.dumps((first_byte if args.phase == "first_byte" else measure)(args, password)))
    except (Failure, OSError, ValueError) as error:
        sys.exit("latency: {} at {}:{}: {}".format(args.phase, *args.target, error))


if __name__ == "__main__":
    main()
