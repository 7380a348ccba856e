"""Did what a workload reports really pass, through this tunnel, over this link, and in this repeat?

The gate after a repeat: the kernel's interface counters on both hosts must account for the payload.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from tunnel_lab.records import Host, Record

if TYPE_CHECKING:
    from tunnel_lab.parsing import Measurement

SENDER: dict[str, Host] = {"server_to_client": "server", "client_to_server": "client"}
ALLOWANCE = "_allowance_exceeded"
RECEIVER: dict[str, Host] = {"server_to_client": "client", "client_to_server": "server"}


def problems(record: Record, measurements: Sequence[Measurement]) -> list[str]:
    """Return what does not fit, as sentences with numbers; nothing when all is accounted for."""
    if not (record.before.keys() == record.after.keys() == {"server", "client"}):
        return ["the hosts' counters were not taken before and after"]
    payload: dict[str, int] = defaultdict(int)
    for measurement in measurements:
        payload[measurement.direction] += measurement.payload_bytes
    return [*_time(record), *_interfaces(record, payload)]


def _time(record: Record) -> Iterator[str]:
    """A command that did not run between the two looks at the client belongs to another repeat."""
    before, after = record.before["client"].at, record.after["client"].at
    for command in record.commands:
        started = datetime.fromisoformat(command.started_at).timestamp()
        # started_at is kept in milliseconds
        if not before - 0.001 <= started <= started + command.elapsed_s <= after + 0.001:
            yield f"{command.name} ran at another time than between the looks at the client"


def _interfaces(record: Record, payload: dict[str, int]) -> Iterator[str]:
    for direction, expected in payload.items():
        for host, counter in ((SENDER[direction], "tx_bytes"), (RECEIVER[direction], "rx_bytes")):
            link = record.link.interfaces.get(host)
            # a compressing tunnel may send less than the payload, and any tunnel must send something
            least = {link: 1 if record.cell.compresses else expected}
            if record.cell.interface:
                least[record.cell.interface] = expected
            for interface, bytes_ in least.items():
                passed = passed_bytes(record, host, interface, counter)
                if passed is None or passed < bytes_:
                    yield f"{interface} of the {host} counted {passed} {counter}, the payload is {expected} bytes"


def passed_bytes(record: Record, host: Host, interface: str | None, counter: str) -> int | None:
    """Return by how much a counter of an interface rose over the repeat; None when it was not there."""
    try:
        before, after = record.before[host].counters, record.after[host].counters
        return after[str(interface)][counter] - before[str(interface)][counter]
    except KeyError:
        return None


def allowances(record: Record) -> str | None:
    """Return how many packets a cloud's own limits held up in a repeat: `server.bw_out=12 client.pps=3`, or `none`.

    EC2's driver ena counts them by kind as `<kind>_allowance_exceeded`. None where no card has such counters.
    """
    found = {
        f"{host}.{counter.removesuffix(ALLOWANCE)}": passed_bytes(record, host, interface, counter)
        for host, seen in record.after.items()
        for interface, counters in seen.counters.items()
        for counter in counters
        if counter.endswith(ALLOWANCE)
    }
    told = " ".join(f"{name}={count}" for name, count in sorted(found.items()) if count)
    return (told or "none") if found else None
