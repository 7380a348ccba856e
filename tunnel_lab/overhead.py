"""Bytes on the link for each byte of payload: counted, predicted, and how much of a tunnel's slowness that explains."""

from __future__ import annotations

from typing import Any

from tunnel_lab import wire
from tunnel_lab.flow import Flow
from tunnel_lab.passage import owners
from tunnel_lab.sockets import Socket

COUNTED = "wire_overhead"
AGREE = 0.01
"""Counted and predicted agree within this share of the payload; otherwise the row says what else there was."""
LEAST_BYTES = 5_000_000
"""Between two looks; with less, a few packets under way decide the ratio."""


def counted(flow: Flow) -> float | None:
    """Return bytes that the receiver's link interface counted / bytes that the workload's own socket there received.

    Both are the kernel's counters at the same moments, those of the first and the last look in which no socket of the
    receiver waits for something lost before what has arrived. What was lost on the way is not in it, what arrived twice
    is. None with less than LEAST_BYTES of payload, and where the interface was not counted.
    """
    series = flow.samples[flow.receiver]
    owner = owners(series)
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for look in series.between(*flow.command):
        open_ = [each for each in look.sockets if each.netid == "tcp" and each.state in ("ESTAB", "CLOSE-WAIT")]
        if all(_is_complete(socket) for socket in open_):
            for socket in open_:
                if _is_workload(flow, socket, owner):
                    found.setdefault(socket.key, []).append((look.at, socket.number("bytes_received")))
    if not found:
        return None
    looked = max(found.values(), key=lambda each: each[-1][1] - each[0][1])
    (begun, first), (ended, last) = looked[0], looked[-1]
    crossed = series.rise(flow.link, begun, ended)
    return crossed / (last - first) if last - first >= LEAST_BYTES and crossed > 0 else None


def _is_complete(socket: Socket) -> bool:
    """Whether nothing waits for a lost segment before it: that takes up memory, and is not counted as received.

    What waits for the process to read it is counted, and takes up less than twice its size.
    """
    return socket.memory.get("r", 0) <= 2 * socket.recv_q


def _is_workload(flow: Flow, socket: Socket, owner: dict[int, str]) -> bool:
    units = {owner[pid] for _, pid in socket.holders if pid in owner}
    return bool(units) and not any(flow.is_tunnel(flow.receiver, unit) for unit in units)


def columns(flow: Flow, link_mtu: int | None) -> dict[str, Any]:
    """Return both ratios, and a note where there is something to say of their difference."""
    cell = flow.record.cell
    found = counted(flow)
    conditions = wire.Conditions(
        link_mtu=link_mtu or 1500, settings=cell.tunnel_settings, negotiated=flow.record.negotiated
    )
    predicted = wire.predict(cell.tunnel, conditions)
    if isinstance(predicted, str):
        return {COUNTED: found, "wire_overhead_predicted": None, "wire_note": f"not predicted: {predicted}"}
    return {
        COUNTED: found,
        "wire_overhead_predicted": predicted.ratio,
        "wire_note": _note(flow, found, predicted),
    }


def _note(flow: Flow, found: float | None, predicted: wire.Prediction) -> str | None:
    if found is None:
        return f"not counted: less than {LEAST_BYTES} bytes between two looks at the workload's socket"
    if abs(found - predicted.ratio) <= AGREE:
        return None
    again = sum(each.retransmitted_bytes for each in flow.passages if each.host == flow.sender and each.crosses)
    return (
        f"counted and predicted differ by {found - predicted.ratio:+.3f} bytes per byte of payload; of the "
        f"{flow.measurement.carried} bytes of payload, {again:.0f} were sent again"
    )


def explained(goodput: float, bare: float, ratio: float, bare_ratio: float) -> float | None:
    """Return the share of the gap between a tunnel's goodput and the bare link's that its headers explain.

    If headers were all, the tunnel would carry `bare * bare_ratio / ratio`. None where there is no gap of over 1 %, and
    for a tunnel that puts less on the link than the bare link does, as one that compresses.
    """
    gap = bare - goodput
    return (bare - bare * bare_ratio / ratio) / gap if gap > 0.01 * bare and ratio > bare_ratio else None
