"""The link by the kernel: a namespace in the middle that bridges both hosts and shapes each direction.

Both qdiscs sit on the middle hop. netem on a sender would disturb TCP small queues, on both hosts it
would count the delay twice.

    server host [link0] -- [to-server] bridge [to-client] -- [link0] client host

Traffic to a host leaves by the port that faces it: netem (half the round trip, loss), then tbf (the rate
and a queue limited in bytes).
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tunnel_lab.errors import LabError
from tunnel_lab.link.spec import End, LinkSpec
from tunnel_lab.processes import attempt, run

_IN_FLIGHT_PACKETS = 10_000_000
"""netem's own limit counts packets under way and would throttle rate x delay at its default of 1000."""

_DROPPED = re.compile(r"^qdisc (netem|tbf) \S+ dev (\S+) .*\n Sent \d+ bytes \d+ pkt \(dropped (\d+),", re.MULTILINE)


def namespace(name: str) -> str:
    """Return the name of the middle hop's namespace in the lab called `name`."""
    return f"tunnellab-{name}-wan"


def _path(name: str) -> Path:
    return Path("/run/netns") / namespace(name)


def available() -> bool:
    """Return whether this kernel has netem, asked of a throw-away namespace."""
    if shutil.which("modprobe"):
        attempt(["modprobe", "-q", "sch_netem"])
    probe = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    return attempt(probe).returncode == 0


def shaping(spec: LinkSpec, device: str) -> list[list[str]]:
    """Return the tc commands for the direction that leaves by `device`."""
    delay = ["delay", f"{spec.rtt_ms / 2:.6g}ms", "limit", str(_IN_FLIGHT_PACKETS)]
    loss = ["loss", f"{spec.loss_pct:.6g}%"] if spec.loss_pct else []
    # a bucket of a millisecond: big enough for the timer, too small to be seen as a burst
    bucket = max(2 * (spec.mtu + 14), round(spec.rate_mbit * 1e6 / 8 / 1000))
    rate = ["rate", f"{round(spec.rate_mbit * 1e6)}bit", "burst", str(bucket), "limit", str(spec.queue_bytes)]
    return [
        ["tc", "qdisc", "add", "dev", device, "root", "handle", "1:", "netem", *delay, *loss],
        ["tc", "qdisc", "add", "dev", device, "parent", "1:1", "handle", "2:", "tbf", *rate],
    ]


def up(spec: LinkSpec) -> None:
    """Make the link; LabError when a command fails, and then nothing is left."""
    middle = _path(spec.name)
    try:
        run(["ip", "netns", "add", namespace(spec.name)])
        run(["ip", "link", "add", "bridge", "type", "bridge", "stp_state", "0", "mcast_snooping", "0"], middle)
        for side, end in (("server", spec.server), ("client", spec.client)):
            _port(spec, f"to-{side}", end)
        run(["ip", "link", "set", "bridge", "up"], middle)
    except LabError:
        down(spec.name)
        raise


def _port(spec: LinkSpec, device: str, end: End) -> None:
    middle = _path(spec.name)
    here = ["ip", "link", "add", device, "mtu", str(spec.mtu), "type", "veth"]
    run([*here, "peer", "name", spec.interface, "mtu", str(spec.mtu), "netns", str(end.pid)], middle)
    run(["ip", "link", "set", device, "master", "bridge", "up"], middle)
    for netns, name in ((middle, device), (end.netns, spec.interface)):
        # segments of 64 KiB would cross the bottleneck as one frame
        run(["ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off", "tx", "off"], netns)
    for command in shaping(spec, device):
        run(command, middle)


def down(name: str) -> None:
    """Remove the middle hop of the lab called `name`, and with it both hosts' interfaces. Nothing to remove is fine."""
    if _path(name).exists():
        run(["ip", "netns", "del", namespace(name)])


def running(spec: LinkSpec) -> bool:
    """Return whether the middle hop is there."""
    return _path(spec.name).exists()


def statistics(spec: LinkSpec) -> dict[str, object]:
    """Return what tc counts on the middle hop, and of that the drops by direction."""
    text = run(["tc", "-s", "qdisc", "show"], _path(spec.name))
    return {"tc": text, "drops": drops(text)}


def drops(text: str) -> dict[str, dict[str, int]]:
    """Return {direction: {dropped_queue, dropped_loss}} from `tc -s qdisc show`.

    netem counts what the tbf inside it drops as its own (sch_netem.c, netem_dequeue); the rest is its random loss.
    """
    counted = {(kind, device): int(dropped) for kind, device, dropped in _DROPPED.findall(text)}
    found = {}
    for direction, device in (("server_to_client", "to-client"), ("client_to_server", "to-server")):
        queue, all_of = counted.get(("tbf", device), 0), counted.get(("netem", device), 0)
        found[direction] = {"dropped_queue": queue, "dropped_loss": max(0, all_of - queue)}
    return found
