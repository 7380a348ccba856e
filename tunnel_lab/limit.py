"""What limited a transfer? A few rules over the kernel's own evidence, in the order in which they are asked.

    link         the link carried what it can, most of the time
    cpu          a process had a whole core, a host all that its quota allows, or the machine no idle time
    application  the receiving program left what had arrived unread
    window       a socket between the hosts had a full send buffer or receive window, and could have sent more
    loss         segments were lost and sent again, with the congestion window in use
    application  the sending program had nothing to send
    unclear      none of these

docs/why.md says why in this order, and how the rules were tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from tunnel_lab import usage
from tunnel_lab.flow import Flow
from tunnel_lab.passage import Passage

Kind = Literal["link", "window", "cpu", "loss", "application", "unclear"]

LINK_FULL = 0.9
"""A link is full from this share of its rate on. TCP's own recovery from its queue's overflow takes the rest."""
MOST = 0.5
"""What is said of a transfer must have been so for this share of it."""
CORE_FULL = 0.9
QUOTA_FULL = 0.85
HELD_UP, QUOTA_MOSTLY = 0.1, 0.7
"""A host that its quota stopped in this share of the quota's periods, and that used this share of the quota: while it
is stopped its sockets overflow, and the sender's TCP then leaves part of the quota unused."""
MACHINE_FULL = 0.95
STEADY = 1.1
"""If more than this times a window's ceiling passed, the window was not always of the size that was seen mostly."""
LOSS = 0.001
"""Retransmitted share of the bytes from which on loss is told."""


@dataclass(frozen=True)
class Limit:
    """What limited a transfer, and why that is said."""

    kind: Kind
    evidence: str
    """One sentence with numbers."""
    window_bytes: float | None = None
    ceiling_bit_s: float | None = None
    """window_bytes / RTT: no more can pass, whatever the link."""


def diagnose(flow: Flow, rate_bit_s: float | None) -> Limit:
    """Return the first rule that holds. `rate_bit_s` is the link's, in Ethernet frames; None when it is not known."""
    rules: list[Callable[[], Limit | None]] = [
        lambda: _link(flow, rate_bit_s),
        lambda: _cpu(flow),
        lambda: _reader(flow),
        lambda: _window(flow),
        lambda: _loss(flow),
        lambda: _idle(flow),
    ]
    return next((found for rule in rules if (found := rule())), None) or _unclear(flow, rate_bit_s)


def utilisation(flow: Flow, rate_bit_s: float) -> tuple[float, float]:
    """Return the share of the link's rate that was used in the transfer, and the share of its time that it was full."""
    full = flow.over_time(lambda rate: float(rate >= LINK_FULL * rate_bit_s))
    return flow.over_time(lambda rate: rate / rate_bit_s), full


def _link(flow: Flow, rate_bit_s: float | None) -> Limit | None:
    if not rate_bit_s:
        return None
    used, full = utilisation(flow, rate_bit_s)
    if used >= LINK_FULL or full >= MOST:
        return Limit(
            "link",
            f"the link carried {_mbit(used * rate_bit_s)} of {_mbit(rate_bit_s)} Mbit/s, and was full "
            f"(over {LINK_FULL:.0%}) in {full:.0%} of the transfer",
        )
    return None


def _cpu(flow: Flow) -> Limit | None:
    for host, series in flow.samples.items():
        used = usage.cpu(series, flow.transfer)
        busiest = max(used.processes, key=lambda each: each.cores, default=None)
        doing = f"; most of it {busiest.name} with {busiest.cores:.2f}" if busiest else ""
        full = QUOTA_FULL if used.throttled < HELD_UP else QUOTA_MOSTLY
        if used.quota and used.cores >= full * used.quota:
            return Limit(
                "cpu",
                f"the {host} used {used.cores:.3f} of the {used.quota:.3f} cores that its quota allows, and was "
                f"held up in {used.throttled:.0%} of its periods{doing}",
            )
        # a kind of kernel thread has many threads, on all the cores
        single = max((each for each in used.processes if each.unit), key=lambda each: each.cores, default=None)
        if single and single.cores >= CORE_FULL:
            return Limit("cpu", f"{single.name} on the {host} used {single.cores:.0%} of a core")
        if used.softirq >= CORE_FULL:
            return Limit("cpu", f"softirqs used {used.softirq:.0%} of one of the cores of the {host}'s machine")
        if used.machine >= MACHINE_FULL:
            return Limit(
                "cpu", f"the cores of the {host}'s machine were busy for {used.machine:.0%} of the time{doing}"
            )
    return None


def _sent(flow: Flow) -> Iterator[Passage]:
    """Yield the sender's connections to the other host through which the payload went."""
    return (each for each in flow.passages if each.host == flow.sender and each.crosses and each.sent_bytes > 0)


def _reader(flow: Flow) -> Limit | None:
    for each in flow.passages:
        last = each.host == flow.receiver and not flow.is_tunnel(each.host, each.unit)
        if last and each.received_bytes > 0 and each.unread >= MOST:
            return Limit(
                "application",
                f"{each.process} on the {each.host} left over half of its receive buffer unread "
                f"in {each.unread:.0%} of {each.looks} looks",
            )
    return None


def _window(flow: Flow) -> Limit | None:
    found = []
    for each in _sent(flow):
        found += [
            (max(each.buffer_full, each.sndbuf_limited), "send buffer", each.buffer_bytes, each),
            (max(each.window_full, each.rwnd_limited), "peer's receive window", each.window_bytes, each),
        ]
    share, what, size, socket = max(found, key=lambda each: each[0], default=(0.0, "", 0.0, None))
    if socket is None or share < MOST or not socket.min_rtt_ms:
        return None
    full = f"the {what} of {socket.name}, {size:.0f} bytes, was full for {share:.0%} of the transfer"
    ceiling = size * 8 / (socket.min_rtt_ms / 1000)
    if ceiling * STEADY < socket.new_bit_s:
        return Limit("window", f"{full}; its size varied, and {_mbit(socket.new_bit_s)} Mbit/s passed")
    return Limit(
        "window",
        f"{full}; {size:.0f} bytes in {socket.min_rtt_ms:.1f} ms are at most {_mbit(ceiling)} Mbit/s, measured "
        f"{_mbit(flow.measurement.goodput_bit_s)}",
        window_bytes=size,
        ceiling_bit_s=ceiling,
    )


def _loss(flow: Flow) -> Limit | None:
    worst = max(_sent(flow), key=lambda each: each.retransmitted, default=None)
    if worst is None or worst.retransmitted < LOSS or worst.cwnd_full < MOST:
        return None
    dropped = usage.drops(flow)
    if set(dropped) == {usage.QUEUE}:
        return Limit("link", f"the link's queue overflowed, and the sender slowed down: {_said(worst, dropped)}")
    return Limit("loss", _said(worst, dropped))


def _said(worst: Passage, dropped: dict[str, float]) -> str:
    where = ", ".join(f"{count:.0f} {what}" for what, count in dropped.items()) or "nowhere that is counted"
    return f"{worst.name} sent {worst.retransmitted:.2%} of its bytes again; dropped: {where}"


def _idle(flow: Flow) -> Limit | None:
    sources = [each for each in flow.passages if each.host == flow.sender and each.sent_bytes > 0]
    own = [each for each in sources if not flow.is_tunnel(each.host, each.unit)]
    if own and all(each.starved >= MOST for each in own):
        least = min(own, key=lambda each: each.starved)
        return Limit(
            "application",
            f"{least.process} on the {flow.sender} had given its socket nothing more to send "
            f"in {least.starved:.0%} of {least.looks} looks",
        )
    return None


def _unclear(flow: Flow, rate_bit_s: float | None) -> Limit:
    sent = list(_sent(flow))
    if not sent:
        lasted = flow.transfer[1] - flow.transfer[0]
        return Limit("unclear", f"the sender's sockets were not seen twice in the {lasted:.1f} s of the transfer")
    used = f"the link carried {utilisation(flow, rate_bit_s)[0]:.0%} of its rate; " if rate_bit_s else ""
    widest = max(sent, key=lambda each: each.cwnd_full)
    if widest.cwnd_full >= MOST:
        return Limit(
            "unclear",
            f"{used}{widest.name} used its congestion window in {widest.cwnd_full:.0%} of the looks, which grew from "
            f"{widest.cwnd[0]} to {widest.cwnd[1]} segments, {_start(widest)}",
        )
    return Limit("unclear", f"{used}no window, buffer, core or loss explains the rest")


def _start(passage: Passage) -> str:
    if passage.ssthresh is None:
        return "still in slow start"
    return f"slowly since slow start ended at {passage.ssthresh}"


def _mbit(bit_s: float) -> str:
    return f"{bit_s / 1e6:.2f}" if bit_s < 1e7 else f"{bit_s / 1e6:.1f}"
