"""`collect.py sockets`: the right sockets at the right moment, and what to do when there are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Collect, StoredRun, figure
from sampled import Side, process, receives, sends, stamped

from tunnel_lab.records import Host

Make = Callable[..., StoredRun]
CELL = "pipe.small.copy"
BEFORE = (
    "Netid State  Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n"
    'tcp LISTEN 0 128 0.0.0.0:7000 0.0.0.0:* users:(("pipe",pid=9,fd=3)) ino:1 sk:2 '
    "cgroup:/x/tunnellab.slice/pipe@small.service <->\n"
    'tcp LISTEN 0 128 0.0.0.0:99 0.0.0.0:* users:(("other",pid=5,fd=3)) ino:1 sk:2 '
    "cgroup:/x/tunnellab.slice/other.service <->\n"
)


def stored(make_run: Make) -> StoredRun:
    """A run whose cell was sampled while the tunnel's socket sent and the workload's received."""
    made = make_run()
    made.write(lambda step: [figure(1.0)])
    step = made.step(CELL, 1)
    record = made.record(step, [figure(1.0)])
    begun = stamped(0)
    server = Side(process("pipe", 0.1, "pipe@small.service", 7), [sends(24e6, holder=("pipe", 7))])
    client = Side(process("copy", 0.1, "tunnellab-run.service", 8), [receives(24e6, holder=("copy", 8))])
    shift = record.before["client"].at + 1 - begun
    sides: dict[Host, Side] = {"server": server, "client": client}
    after = {
        host: record.after[host].model_copy(update={"samples": moved(side.text(), shift)})
        for host, side in sides.items()
    }
    before = {**record.before, "server": record.before["server"].model_copy(update={"sockets": BEFORE})}
    made.replace(CELL, 1, [figure(1.0)], after=after, before=before)
    return made


def moved(text: str, seconds: float) -> str:
    """Return samples as they would be at another time."""
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        if isinstance(line, list) and line[0] != "at":
            line[0] += seconds
        elif isinstance(line, dict) and "at" in line:
            line["at"] += seconds
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_before_shows_the_units_of_the_cell_and_no_other(make_run: Make, collect: Collect) -> None:
    result = collect("sockets", CELL, "--run", stored(make_run).path, "--when", "before")
    assert result.returncode == 0, result.stderr
    client, server = result.stdout.split(f"{CELL} r1: server, before the transfer")
    assert "pipe" in server
    assert "0.0.0.0:7000" in server
    assert "other" not in server
    assert "nothing was recorded" in client


def test_during_shows_a_look_of_each_host(make_run: Make, collect: Collect) -> None:
    result = collect("sockets", CELL, "--run", stored(make_run).path, "--when", "during", "--repeat", "1")
    assert result.returncode == 0, result.stderr
    client, server = result.stdout.split(f"{CELL} r1: server, during the transfer")
    assert "copy" in client
    row = next(line for line in server.splitlines() if line.startswith("pipe"))
    # send-q (200 + 20) x 1448, cwnd 400 x 1448, the peer's window, half of tb 4194304
    assert row.split()[:9] == [
        *("pipe", "ESTAB", "10.99.0.1:5201", "10.99.0.2:40000", "0", "318560", "579200", "3000000", "2097152")
    ]


def test_default_is_before_and_during(make_run: Make, collect: Collect) -> None:
    shown = collect("sockets", CELL, "--run", stored(make_run).path).stdout
    assert shown.count("before the transfer") == 2
    assert shown.count("during the transfer") == 2
    assert "after the transfer" not in shown


def test_record_that_was_not_sampled_says_so(make_run: Make, collect: Collect) -> None:
    made = make_run()
    made.write(lambda step: [figure(1.0)])
    result = collect("sockets", CELL, "--run", made.path, "--when", "during")
    assert (result.returncode, result.stdout.count("nothing was recorded")) == (0, 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pipe.smal.copy"], "pipe.smal.copy: no such cell in run run-1. "),
        ([CELL, "--repeat", "9"], f"--repeat 9: {CELL} has the repeats 1, 2, 3 in run run-1."),
        ([CELL, "--repeat", "x"], "invalid int value: 'x'"),
        ([CELL, "--when", "later"], "invalid choice: 'later'"),
        ([], "the following arguments are required: CELL"),
    ],
)
def test_bad_input_is_one_line(make_run: Make, collect: Collect, arguments: list[str], said: str) -> None:
    made = make_run()
    made.write(lambda step: [figure(1.0)])
    result = collect("sockets", *arguments, "--run", made.path)
    assert result.returncode == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_cell_without_a_record_says_so(make_run: Make, collect: Collect) -> None:
    result = collect("sockets", CELL, "--run", make_run().path)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"{CELL}: run run-1 has no record of it that can be read." in result.stderr


def test_broken_record_is_named(make_run: Make, collect: Collect) -> None:
    made = make_run()
    made.write(lambda step: [figure(1.0)])
    made.file(CELL, 1).write_text("{")
    result = collect("sockets", CELL, "--run", made.path, "--repeat", "1")
    assert result.returncode == 2
    assert f"{made.file(CELL, 1)}: not complete JSON" in result.stderr


def test_first_good_repeat_is_taken(make_run: Make, collect: Collect) -> None:
    made = make_run()
    made.write(lambda step: [figure(1.0)])
    failed: dict[str, Any] = {"status": "failed", "reason": "no tunnel"}
    made.replace(CELL, 1, [figure(1.0)], **failed)
    assert f"{CELL} r2: client" in collect("sockets", CELL, "--run", made.path).stdout
