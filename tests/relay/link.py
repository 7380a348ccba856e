"""What the live tests stand on: two namespaces, a relay between them, and a ping of their own."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tunnel_lab.relay.status import Status
from tunnel_lab.relay.tap import inside

REPOSITORY = Path(__file__).parents[2]
INTERFACE = "link0"
SERVER, CLIENT = "10.99.0.1", "10.99.0.2"
_ECHO_REQUEST, _ECHO_REPLY = 8, 0
_IP_MTU_DISCOVER, _IP_PMTUDISC_DO = 10, 2
_SO_TIMESTAMPNS = 35  # also the type of the message that carries it


def run(*command: str | Path, limit_s: float = 30) -> subprocess.CompletedProcess[str]:
    """Run to the end with a time limit; never raises for the exit code."""
    return subprocess.run(
        [str(word) for word in command],
        check=False,
        capture_output=True,
        text=True,
        timeout=limit_s,
        cwd=REPOSITORY,
    )


def eventually(condition: Callable[[], bool], limit_s: float) -> bool:
    """Whether the condition came true within the time limit."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


@dataclass(frozen=True)
class Link:
    """Two fresh namespaces and the files of the relay that joins them."""

    server: str
    client: str
    directory: Path

    @property
    def pid_file(self) -> Path:
        return self.directory / "relay.pid"

    @property
    def status_file(self) -> Path:
        return self.directory / "relay.json"

    def arguments(self, *extra: str | Path) -> list[str | Path]:
        """A whole command line; an extra option overrides the same one given before."""
        return [
            *(sys.executable, "-m", "tunnel_lab.relay"),
            *("--server-netns", f"/run/netns/{self.server}", "--client-netns", f"/run/netns/{self.client}"),
            *("--interface", INTERFACE, "--rtt-ms", "20", "--rate-mbit", "100"),
            *("--status-file", self.status_file, "--pid-file", self.pid_file),
            *("--log-file", self.directory / "relay.log", *extra),
        ]

    def start(self, *extra: str | Path) -> subprocess.CompletedProcess[str]:
        return run(*self.arguments("--daemonize", *extra))

    def start_up(self, *extra: str | Path) -> None:
        """Start, give both ends their addresses, and wait until they reach each other."""
        started = self.start(*extra)
        assert started.returncode == 0, started.stderr
        for netns, address in ((self.server, SERVER), (self.client, CLIENT)):
            for command in (f"addr add {address}/24 dev {INTERFACE}", f"link set {INTERFACE} up"):
                done = run("ip", "-n", netns, *command.split())
                assert done.returncode == 0, done.stderr
        assert eventually(lambda: self.ping(1, 0)[0] is not None, 10), "no answer over the link"

    def pid(self) -> int:
        return int(self.pid_file.read_text())

    def status(self) -> Status:
        return Status.read(self.status_file)

    def fresh_status(self) -> Status:
        """A status written after this call."""
        before = self.status().updated_at
        assert eventually(lambda: self.status().updated_at != before, 5), "the status is no longer updated"
        return self.status()

    def stopped(self, limit_s: float = 3) -> bool:
        """Whether the relay ends within the limit, with its pid file and both devices gone."""
        return eventually(lambda: self.status().state == "stopped" and not self.leftovers(), limit_s)

    def leftovers(self) -> list[str]:
        found = [name for name in (self.server, self.client) if self.has_interface(name)]
        return [*found, str(self.pid_file)] if self.pid_file.exists() else found

    def has_interface(self, netns: str) -> bool:
        return run("ip", "-n", netns, "link", "show", INTERFACE).returncode == 0

    def ping(self, count: int, interval_s: float, size: int = 56) -> list[float | None]:
        """Round-trip times in ms of echo requests from the server's end; None for one not answered within 1 s.

        Sends `size` bytes of ICMP payload, never fragmented. As in ping(8) the kernel notes when the answer
        came, so that this process's own wakeup does not count.
        """
        with inside(Path("/run/netns") / self.server):
            icmp = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        with icmp:
            icmp.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)
            icmp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            icmp.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            icmp.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            identity = os.getpid() & 0xFFFF
            sent: list[float] = []
            times: list[float | None] = [None] * count
            next_send = time.perf_counter()
            while len(sent) < count or (None in times and time.time() < sent[-1] + 1):
                if len(sent) < count and time.perf_counter() >= next_send:
                    packet = _echo_request(identity, len(sent), size)
                    sent.append(time.time())
                    icmp.sendto(packet, (CLIENT, 0))
                    next_send += interval_s
                pause = next_send - time.perf_counter() if len(sent) < count else 0.1
                if pause > 0:
                    icmp.settimeout(pause)
                    _receive(icmp, identity, sent, times)
            return times


def _echo_request(identity: int, sequence: int, size: int) -> bytes:
    def packet(checksum: int) -> bytes:
        return struct.pack("!BBHHH", _ECHO_REQUEST, 0, checksum, identity, sequence) + bytes(size)

    total = sum(struct.unpack("!4H", packet(0)[:8]))  # the payload is zero and adds nothing
    total = (total & 0xFFFF) + (total >> 16)
    return packet(~total & 0xFFFF)


def _receive(icmp: socket.socket, identity: int, sent: list[float], times: list[float | None]) -> None:
    try:
        answer, notes, _, _ = icmp.recvmsg(1 << 16, 64)
    except TimeoutError:
        return
    seconds, nanoseconds = next(struct.unpack("qq", data) for _, kind, data in notes if kind == _SO_TIMESTAMPNS)
    kind, _, _, whose, sequence = struct.unpack_from("!BBHHH", answer, 20)
    if kind == _ECHO_REPLY and whose == identity and sequence < len(sent):
        times[sequence] = (seconds + nanoseconds / 1e9 - sent[sequence]) * 1000


@contextmanager
def new_link(name: str, directory: Path) -> Iterator[Link]:
    """Make the namespaces; whatever happens, end the relay by its own pid and remove them."""
    link = Link(f"{name}-server", f"{name}-client", directory)
    try:
        for netns in (link.server, link.client):
            made = run("ip", "netns", "add", netns)
            assert made.returncode == 0, made.stderr
        yield link
    finally:
        end_relay(link)
        for netns in (link.server, link.client):
            run("ip", "netns", "del", netns)


def end_relay(link: Link) -> None:
    """End the link's relay, if it is one: a test may have put another process's id into the pid file."""
    try:
        pid = link.pid()
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return
    if os.fsencode(link.pid_file) in command:
        os.kill(pid, signal.SIGTERM)
        if not eventually(lambda: not Path(f"/proc/{pid}").exists(), 5):
            os.kill(pid, signal.SIGKILL)
