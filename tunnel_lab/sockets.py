"""Sockets as `ss -tunapimO` (or with -e) shows them. Its own words are kept; man ss(8) and tcp(7) explain them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LINE = re.compile(
    r"^(?P<netid>tcp|udp) +(?P<state>\S+) +(?P<recv_q>\d+) +(?P<send_q>\d+) +(?P<local>\S+) +(?P<peer>\S+)(?P<rest>.*)$"
)
HOLDER = re.compile(r'\("([^"]*)",pid=(\d+)')
MEMORY = re.compile(r"skmem:\(([^)]*)\)")
PAIR = re.compile(r"(\w+):([^\s(]+)")
RATE = re.compile(r"\b(send|pacing_rate|delivery_rate) (\d+)bps")
MAPPED = re.compile(r"^\[::ffff:([\d.]+)\]")


@dataclass(frozen=True)
class Socket:
    """One socket at one moment."""

    netid: str
    state: str
    recv_q: int
    """Bytes that the process has not yet read; for a listener, connections it has not accepted."""
    send_q: int
    """Bytes sent or to be sent that are not acknowledged."""
    local: str
    peer: str
    holders: tuple[tuple[str, int], ...]
    """(name, pid) of the processes that hold it."""
    memory: dict[str, int] = field(default_factory=dict)
    """`skmem`, bytes with the kernel's bookkeeping: r received, w queued for sending, rb and tb their limits."""
    info: dict[str, str] = field(default_factory=dict)
    """The rest of `key:value` as printed, rates as bit/s: cwnd, rtt, snd_wnd, busy, ..."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells a connection from the others of its host."""
        return self.netid, self.local, self.peer

    @property
    def process(self) -> str:
        """The name of the process, or nothing where the kernel itself holds the socket."""
        return self.holders[0][0] if self.holders else ""

    @property
    def crosses(self) -> bool:
        """Whether its other end is on another host."""
        return self.state == "ESTAB" and not self.peer.startswith(("127.", "[::1]"))

    def number(self, name: str) -> float:
        """Return a number of `info` without its unit, the first of `a/b`; 0 where ss prints none: so it shows zeros."""
        found = re.match(r"\d+(\.\d+)?", self.info.get(name, ""))
        return float(found[0]) if found else 0.0

    @property
    def retransmitted(self) -> float:
        """Bytes sent more than once."""
        return self.number("bytes_retrans")

    @property
    def in_flight(self) -> float:
        """Bytes sent and not yet acknowledged."""
        return max(0.0, self.send_q - self.number("notsent"))


def parse(text: str) -> list[Socket]:
    """Return the TCP and UDP sockets of ss's output, in its order; other lines, such as its header, are left out."""
    return [_socket(found) for line in text.splitlines() if (found := LINE.match(line))]


def _socket(found: re.Match[str]) -> Socket:
    rest = found["rest"]
    users, _, words = rest.partition(")) ") if "users:((" in rest else ("", "", rest)
    memory = MEMORY.search(words)
    pairs = re.findall(r"([a-z]+)(\d+)", memory[1]) if memory else []
    words = MEMORY.sub(" ", words)
    return Socket(
        netid=found["netid"],
        state=found["state"],
        recv_q=int(found["recv_q"]),
        send_q=int(found["send_q"]),
        local=MAPPED.sub(r"\1", found["local"]),
        peer=MAPPED.sub(r"\1", found["peer"]),
        holders=tuple((name, int(pid)) for name, pid in HOLDER.findall(users or rest)),
        memory={name: int(size) for name, size in pairs},
        info={**dict(PAIR.findall(words)), **dict(RATE.findall(words))},
    )
