"""A run of many records that looks like one of the lab's, for measuring how long it takes to collect.

usage: python tests/benchmark/synthetic.py DIRECTORY [--records N] [--no-samples]

The figures are made up: iperf3's captured output with every number of bytes scaled. They must never be mistaken for
measurements, so the lab is called `synthetic`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))

from builders import HOSTS, LINK, START, accounted, command, fixture, record, stamp
from sampled import FRAME, MSS, Side, machine, process, receives, sends, steady

from tunnel_lab.accounting import RECEIVER, SENDER
from tunnel_lab.choices import Link
from tunnel_lab.parsing import parser_for
from tunnel_lab.plan import Plan, Step
from tunnel_lab.records import LinkState, Record, Run, raw_path

REPEATS = 5
DIRECTIONS = ("server_to_client", "client_to_server")
OUTPUTS = {name: fixture("iperf3", f"{name}.json") for name in DIRECTIONS}
SAMPLES_OF = 8
"""How many different sampler texts there are; they are the same for many records, which costs a collector as much."""


def main() -> None:
    """Write one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--no-samples", action="store_true")
    arguments = parser.parse_args()
    write(arguments.directory, arguments.records, sampled=not arguments.no_samples)


def write(directory: Path, records: int, sampled: bool) -> None:
    """Write run.json and `records` records, REPEATS of each cell but for the last one."""
    first = record("iperf3", {"duration_s": 3, "omit_s": 0})
    ids = [f"none.v{number:04d}.iperf3" for number in range(-(-records // REPEATS))]
    steps = [
        Step(order=n + 1, cell=ids[n % len(ids)], repeat=n // len(ids) + 1, sampled=sampled) for n in range(records)
    ]
    cells = {name: first.cell.model_copy(update={"id": name, "variant": name.split(".")[1]}) for name in ids}
    run = Run(
        run_id="synthetic",
        lab="synthetic",
        provider="none",
        started_at=stamp(START),
        choices={},
        plan=Plan(profile="synthetic", seed=1, repeats=REPEATS, cells=cells, steps=steps),
        link=LinkState(emulator="relay", setting=Link(rtt_ms=80, rate_mbit=100)),
        environment={**{host: {"kernel": "6.1.0", "cpus": 2, "link_mtu": 1500} for host in HOSTS}, "controller": {}},
    )
    run.write(directory / "run.json")
    texts = [_samples(number) for number in range(SAMPLES_OF)] if sampled else []
    scatter = random.Random(1)
    for step in steps:
        speed = (1 + int(step.cell.split(".")[1][1:]) % 50 / 50) * scatter.uniform(0.97, 1.03)
        made = _record(first, step, speed).model_copy(update={"cell": cells[step.cell], "run_id": run.run_id})
        if texts:
            after = {
                host: made.after[host].model_copy(update={"samples": texts[step.order % SAMPLES_OF][host]})
                for host in HOSTS
            }
            made = made.model_copy(update={"after": after})
        made.write(raw_path(directory, step))


def _record(first: Record, step: Step, speed: float) -> Record:
    """Return the record of one repeat, in which iperf3 moved `speed` times the bytes of its captured output."""
    outputs = [command(name, json.dumps(_scaled(json.loads(text), speed))) for name, text in OUTPUTS.items()]
    made = record("iperf3", first.cell.params, *outputs)
    made = made.model_copy(update={"step": step, "started_at": stamp(START + timedelta(minutes=step.order))})
    return accounted(made, parser_for("iperf3")(made))


def _scaled(value: Any, speed: float) -> Any:
    """Return iperf3's output with every number of bytes, and every rate, times `speed`."""
    if isinstance(value, list):
        return [_scaled(each, speed) for each in value]
    if not isinstance(value, dict):
        return value
    scaled = {"bytes": lambda each: round(each * speed), "bits_per_second": lambda each: each * speed}
    return {key: scaled[key](each) if key in scaled else _scaled(each, speed) for key, each in value.items()}


def _samples(number: int) -> dict[str, str]:
    """Return what the samplers of both hosts wrote while both directions carried some 30 Mbit/s."""
    bit_s = 28e6 + 1e5 * number
    sender, receiver = SENDER["server_to_client"], RECEIVER["server_to_client"]
    counters = {**machine(user=0.2, system=0.1), **process("iperf3", 0.1)}
    frames = steady(bit_s / 8 * FRAME / MSS, base=10**9)
    sides = {
        sender: Side({**counters, f"net|{LINK}|tx_bytes": frames}, [sends(bit_s)]),
        receiver: Side({**counters, f"net|{LINK}|rx_bytes": frames}, [receives(bit_s)]),
    }
    return {host: side.text() for host, side in sides.items()}


if __name__ == "__main__":
    main()
