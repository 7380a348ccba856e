"""Every verb answers a program with one JSON document, and with nothing else on standard output."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from bundles import PLAIN, SMALL, by_repeat
from conftest import Collect, StoredRun

from tunnel_lab.cli import VERBS

Make = Callable[..., StoredRun]
ARGUMENTS = {
    "collect": ["RUN"],
    "sockets": [SMALL, "--run", "RUN"],
    "compare": [SMALL, PLAIN, "--run", "RUN"],
    "bundle": ["RUN", "--output", "NEW"],
    "verify": ["BUNDLE"],
    "report": ["RUN", "--output", "NEW"],
    "schema": ["record"],
}
"""{verb: arguments}; RUN is a stored run, BUNDLE its bundle, NEW a path that is not there."""


def refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


@pytest.mark.parametrize("verb", VERBS)
def test_one_document(verb: str, make_run: Make, collect: Collect, tmp_path: Path) -> None:
    stored = make_run()
    stored.write(by_repeat)
    places = {"RUN": stored.path, "BUNDLE": tmp_path / "a.tar.gz", "NEW": tmp_path / "b.tar.gz"}
    if "BUNDLE" in ARGUMENTS[verb]:
        assert collect("bundle", stored.path, "--output", places["BUNDLE"]).returncode == 0
    result = collect(verb, *(places.get(each, each) for each in ARGUMENTS[verb]), "--format", "json")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout, parse_constant=refuse)


def test_sockets_have_the_columns_of_the_table(make_run: Make, collect: Collect) -> None:
    stored = make_run()
    stored.write(by_repeat)
    shown = json.loads(collect("sockets", SMALL, "--run", stored.path, "--format", "json").stdout)
    assert [(each["host"], each["when"]) for each in shown] == [
        ("client", "before"),
        ("server", "before"),
        ("client", "during"),
        ("server", "during"),
    ]
    assert all((each["cell"], each["repeat"], each["sockets"]) == (SMALL, 1, []) for each in shown)
