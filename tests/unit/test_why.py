"""A figure is never lost over what was sampled beside it, whatever the samples look like."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, get_args

import pandas as pd
import pytest
from conftest import StoredRun, figure
from sampled import Side, measured, process, receives, sampled, sends

from tunnel_lab import limit, parsing, show, tables, why
from tunnel_lab.choices import Link
from tunnel_lab.records import LinkState, Record, Run
from tunnel_lab.summary import AGAINST_BARE, summarise

Make = Callable[..., StoredRun]
SMALL = "pipe.small.copy"
GOOD = Side(process("iperf3", 0.1), [sends(28e6)]).text()
UNITS = '{"meta":{"ticks_per_s":100,"page_bytes":4096,"kernel":"shared"}}'
GARBAGE = {
    "no JSON": "Traceback (most recent call last):\n  File ...",
    "binary": "\x00\x01\ufffd\n" * 9,
    "other JSON": '7\n"at"\n[]\n{}\nnull\n[[]]\n[{}]\n{"meta":[]}\n{"sockets":{}}\n',
    "no meta": GOOD.partition("\n")[2],
    "meta of another kind": GOOD.replace('"ticks_per_s": 100', '"ticks_per_s": "many"'),
    "no ticks": GOOD.replace('"ticks_per_s": 100', '"ticks_per_s": 0'),
    "one row": "\n".join(GOOD.splitlines()[:4]),
    "cut off": GOOD[: len(GOOD) // 3],
    "names only": "\n".join(GOOD.splitlines()[:2]),
    "odd names": f'{UNITS}\n["at","process|x","cpu|","kernel|"]\n[1,1,1,1]\n[2,1,1,1]\n',
    "two odd names": f'{UNITS}\n["at","process|a|b|c|user",7]\n[1,1,1]\n[2,1,1]\n',
    "no counters": f'{UNITS}\n["at"]\n[1796054400]\n[1796054403]\n[1796054406]\n',
    "rows of one moment": f'{UNITS}\n["at","cpu|user"]\n' + "[1796054401,5]\n" * 9,
    "rows backwards": f'{UNITS}\n["at","cpu|user"]\n[1796054406,9]\n[1796054403,5]\n[1796054400,1]\n',
    "counters that fall": f'{UNITS}\n["at","cpu|user","net|link0|rx_bytes"]\n[1796054400,9,9]\n[1796054406,1,1]\n',
    "odd sensors": GOOD.replace('"cpu_khz": []', '"cpu_khz": ["a"]'),
    "odd sockets": GOOD.replace("tcp ESTAB 0 ", "tcp ESTAB x "),
    "other numbers": GOOD.replace("cwnd:400", "cwnd:..").replace("minrtt:80", "minrtt:-"),
    "NaN": GOOD.replace(", 5000, ", ", NaN, "),
    "huge": GOOD.replace(", 5000, ", ", 1e999, "),
}


@pytest.fixture
def run(make_run: Make) -> Run:
    return make_run().run


def both(made: Record, text: str) -> Record:
    after = {host: seen.model_copy(update={"samples": text}) for host, seen in made.after.items()}
    return made.model_copy(update={"after": after})


def real(run: Run) -> Run:
    """The run over a network whose rate nobody has set."""
    return run.model_copy(update={"link": LinkState(emulator="none")})


def test_columns_of_a_good_record(run: Run) -> None:
    receiver = Side(process("iperf3", 0.1, pid=8), [receives(28e6)])
    made = sampled(Side(process("iperf3", 0.1), [sends(28e6, again=0.0005)]), receiver)
    found = why.columns(run, made, measured(), 100e6)
    assert list(found)[: len(why.COLUMNS)] == why.COLUMNS
    assert found["limit"] == "unclear"
    assert found["link_utilisation"] == pytest.approx(0.3, abs=0.001)
    assert (found["link_full_share"], found["transfer_s"]) == (0, pytest.approx(6, abs=0.001))
    assert found["retransmitted_share"] == pytest.approx(0.0005, rel=0.01)
    assert found["wire_overhead"] == pytest.approx(30 / 28, rel=1e-4)


def test_no_columns_without_samples(run: Run) -> None:
    assert why.columns(run, both(sampled(), ""), measured(), 100e6) == {}


@pytest.mark.parametrize("rate", [100e6, None])
@pytest.mark.parametrize("kind", GARBAGE)
def test_samples_of_garbage(run: Run, kind: str, rate: float | None) -> None:
    found = why.columns(run, both(sampled(), GARBAGE[kind]), measured(), rate)
    said = found[why.NOTE]
    assert "\n" not in said
    assert said.startswith(why.UNUSABLE) == (list(found) == [why.NOTE])
    assert "limit" not in found or found["limit"] in get_args(limit.Kind)


@pytest.mark.parametrize(
    "kind", ["no JSON", "no meta", "one row", "names only", "NaN", "huge", "meta of another kind", "no ticks"]
)
def test_samples_that_cannot_be_used_are_said_to_be_so(run: Run, kind: str) -> None:
    assert list(why.columns(run, both(sampled(), GARBAGE[kind]), measured(), 100e6)) == [why.NOTE]


def test_samples_of_one_host_alone(run: Run) -> None:
    made = sampled()
    after = {**made.after, "server": made.after["server"].model_copy(update={"samples": ""})}
    found = why.columns(run, made.model_copy(update={"after": after}), measured(), 100e6)
    assert found == {why.NOTE: "the samples cannot be used: not complete on both hosts"}


# the link's rate


def test_rate_that_was_set(run: Run) -> None:
    assert why.link_rate(run) == 100e6
    other = run.model_copy(update={"link": LinkState(emulator="netem", setting=Link(rtt_ms=1, rate_mbit=5))})
    assert why.link_rate(other) == 5e6


def test_rate_of_a_real_network_is_the_best_that_the_bare_link_carried(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(why, "evaluate", lambda record: (None, [measured()]))
    bare = [sampled(link=bit_s) for bit_s in (40e6, 45e6, 43e6)]
    tunnel = sampled(link=90e6, tunnel="pipe", variant="small")
    assert why.link_rate(real(run), [*bare, tunnel]) == pytest.approx(45e6, rel=1e-3)
    assert why.link_rate(real(run), [tunnel]) is None
    assert why.link_rate(real(run)) is None
    assert why.link_rate(real(run), [sampled(link=0.0)]) is None


def test_rate_of_records_of_garbage_is_not_known(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(why, "evaluate", lambda record: (None, [measured()]))
    bad = [both(sampled(), text) for text in GARBAGE.values()]
    assert why.link_rate(real(run), bad[:3]) is None
    assert why.link_rate(real(run), [*bad, sampled(link=45e6)]) is not None


# the tables


@pytest.fixture
def _parser(roles: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "parser_for", functools.partial(parsing.parser_for, roles=roles))


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize("rtt_ms", [80, None])
@pytest.mark.parametrize("kind", GARBAGE)
def test_tables_of_records_with_garbage(make_run: Make, kind: str, rtt_ms: float | None) -> None:
    stored = make_run(rtt_ms=rtt_ms)
    stored.write(lambda step: [figure(1.0)])
    for repeat in (1, 2):
        bad = stored.record(stored.step(SMALL, repeat), [figure(1.0)])
        after = {host: seen.model_copy(update={"samples": GARBAGE[kind]}) for host, seen in bad.after.items()}
        stored.replace(SMALL, repeat, [figure(1.0)], after=after)
    runs, problems = tables.collect([stored.path])
    assert (problems, set(runs["status"])) == ([], {"ok"})
    found = runs[(runs["variant"] == "small") & (runs["repeat"] == 1)].iloc[0]
    assert found["goodput_bit_s"] == 8e6
    assert found[why.NOTE]
    summed = summarise(runs)
    assert summed["n"].sum() == len(runs)
    show.summary(summed)
    show.why(summed)


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize("version", [1, 2])
def test_tables_of_records_without_samples(make_run: Make, version: int) -> None:
    stored = make_run()
    for step in stored.run.plan.steps:
        stored.replace(step.cell, step.repeat, [figure(1.0)], schema_version=version)
    runs, problems = tables.collect([stored.path])
    assert problems == []
    assert (runs["goodput_bit_s"] == 8e6).all()
    assert runs[why.COLUMNS].isna().all(axis=None)
    summed = summarise(runs)
    assert list(summed["limit_n"]) == [0, 0, 0]
    assert pd.isna(summed["limit"]).all()
    assert (summed["bare_goodput_bit_s"].dropna() == 8e6).all()
    assert summed[AGAINST_BARE].dtypes.eq("float64").all()
    show.why(summed)


@pytest.mark.usefixtures("_parser")
def test_record_of_the_first_schema_has_fewer_fields(make_run: Make) -> None:
    stored = make_run()
    stored.write(lambda step: [figure(1.0)])
    path = stored.file(SMALL, 1)
    record = Record.read(path).model_dump()
    record["schema_version"] = 1
    for look in (*record["before"].values(), *record["after"].values()):
        for name in ("samples", "qdiscs", "units"):
            del look[name]
    path.unlink()
    path.write_text(json.dumps(record))
    runs, problems = tables.collect([stored.path])
    assert problems == []
    assert set(runs["status"]) == {"ok"}
