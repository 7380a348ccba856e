"""`collect.py sockets CELL`: the sockets of a tunnel and its workload on both hosts, as the 2016 post shows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.table import Table

from tunnel_lab import samples, show
from tunnel_lab.errors import LabError, closest
from tunnel_lab.flow import flow
from tunnel_lab.parsing import evaluate
from tunnel_lab.passage import buffer_full, cwnd_full, owners, unread, window_full
from tunnel_lab.plan import Step
from tunnel_lab.records import Host, Record, raw_path
from tunnel_lab.sockets import Socket, parse
from tunnel_lab.tables import read_run

HOSTS: tuple[Host, Host] = ("client", "server")
WHEN = ("before", "during", "after")
LIMITS = {"cwnd": cwnd_full, "window": window_full, "buffer": buffer_full, "its reader": unread}
RUN_UNIT = "tunnellab-run.service"
"""The unit that lab_run runs the workload's commands in."""
LEGEND = """\
In bytes: cwnd, the congestion window; window, the peer's receive window; buffer, for sending (skmem's tb / 2).
waits for: which of them is full, or the process that has to read what has arrived."""


def record_of(run_dir: Path, cell: str, repeat: int | None) -> Record:
    """Return the record of a cell's repeat, by default its first good one; a LabError when there is none."""
    run = read_run(run_dir)
    if cell not in run.plan.cells:
        raise LabError(f"{cell}: no such cell in run {run.run_id}.{closest(cell, run.plan.cells)}")
    steps = [step for step in run.plan.steps if step.cell == cell]
    if repeat is not None and repeat not in [step.repeat for step in steps]:
        known = ", ".join(str(step.repeat) for step in steps)
        raise LabError(f"--repeat {repeat}: {cell} has the repeats {known} in run {run.run_id}.")
    found = list(_records(run_dir, [step for step in steps if repeat in (None, step.repeat)]))
    if not found:
        raise LabError(f"{cell}: run {run.run_id} has no record of it that can be read.")
    return next((record for record in found if record.status == "ok"), found[0])


def _records(run_dir: Path, steps: list[Step]) -> Iterator[Record]:
    for path in (raw_path(run_dir, step) for step in steps):
        if path.is_file():
            yield Record.read(path)


def sockets_of(record: Record, host: Host, when: str) -> list[Socket]:
    """Return the sockets of the cell's units on a host before the workload ran, in mid-transfer, or after it."""
    looks = record.before if when == "before" else record.after
    if host not in looks:
        return []
    units = {*record.cell.units[host], RUN_UNIT}
    if when == "during":
        owner = owners(samples.of(looks[host].samples))
        return [each for each in _during(record, host) if units & {owner.get(pid, "") for _, pid in each.holders}]
    return [each for each in parse(looks[host].sockets) if each.info.get("cgroup", "").rpartition("/")[2] in units]


def _during(record: Record, host: Host) -> list[Socket]:
    """Return the look that is nearest to the middle of the first transfer."""
    _, measurements = evaluate(record)
    found = flow(record, measurements[0]) if measurements else None
    if found is None:
        return []
    middle = sum(found.transfer) / 2
    look = min(found.samples[host].looks, key=lambda each: abs(each.at - middle), default=None)
    return look.sockets if look else []


def show_sockets(record: Record, moments: list[str]) -> None:
    """Print a block for each moment and host."""
    for when in moments:
        for host in HOSTS:
            found = described(record, host, when)["sockets"]
            print(f"{record.cell.id} r{record.step.repeat}: {host}, {when} the transfer")
            show.console(120).print(_block(found) if found else "  nothing was recorded", "")
    print(LEGEND)


def described(record: Record, host: Host, when: str) -> dict[str, Any]:
    """Return the sockets of a host at one moment as JSON has them, the columns named as people see them."""
    return {
        "cell": record.cell.id,
        "repeat": record.step.repeat,
        "host": host,
        "when": when,
        "sockets": [_columns(each) for each in sorted(sockets_of(record, host, when), key=_place)],
    }


def _place(socket: Socket) -> tuple[bool, str]:
    return socket.state != "LISTEN", socket.process


def _columns(socket: Socket) -> dict[str, Any]:
    """Return what is shown of a socket; None for what only a connection has."""
    connected = socket.netid == "tcp" and socket.state == "ESTAB"
    figures: dict[str, Any] = {
        "cwnd": socket.number("cwnd") * socket.number("mss"),
        "window": socket.number("snd_wnd"),
        "buffer": socket.memory.get("tb", 0) / 2,
        "rtt_ms": socket.number("rtt"),
        "waits_for": next((name for name, test in LIMITS.items() if test(socket)), None),
    }
    return {
        "process": socket.process or "kernel",
        "state": "UDP" if socket.netid == "udp" and socket.state != "LISTEN" else socket.state,
        "local": socket.local,
        "peer": socket.peer,
        "recv_q": socket.recv_q,
        "send_q": socket.send_q,
        **(figures if connected else dict.fromkeys(figures)),
    }


def _block(found: list[dict[str, Any]]) -> Table:
    heads = ("recv-q", "send-q", "cwnd", "window", "buffer", "rtt ms")
    block = show.table(["process", "state", "local", "peer"], list(heads), ["waits for"])
    for socket in found:
        figures = (socket[name] for name in ("cwnd", "window", "buffer"))
        block.add_row(
            *(socket[name] for name in ("process", "state", "local", "peer")),
            *(str(socket[name]) for name in ("recv_q", "send_q")),
            *("" if figure is None else f"{figure:.0f}" for figure in figures),
            "" if socket["rtt_ms"] is None else f"{socket['rtt_ms']:.1f}",
            socket["waits_for"] or "",
        )
    return block
