"""JSON Schemas: those in docs/ are the models', and they tell a stored document from a damaged one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import StoredRun, figure

from tunnel_lab import schema
from tunnel_lab.cli import main
from tunnel_lab.records import SCHEMA_VERSION

Make = Callable[..., StoredRun]


@pytest.mark.parametrize("name", schema.MODELS)
def test_committed_schema_is_that_of_the_models(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    kept = schema.path(name).read_text(encoding="utf-8")
    assert main(["schema", name]) == 0
    assert capsys.readouterr().out == kept, f"run ./collect.py schema {name} > docs/schema/{name}.schema.json"
    found = json.loads(kept)
    assert found["$id"] == f"urn:tunnel-lab:{name}:{SCHEMA_VERSION}"
    jsonschema.Draft202012Validator.check_schema(found)


def documents(make_run: Make) -> dict[str, dict[str, Any]]:
    """A record and a run.json as they are stored."""
    stored = make_run()
    stored.write(lambda step: [figure(1.0)])
    paths = {"record": stored.file("pipe.small.copy", 1), "run": stored.path / "run.json"}
    return {name: json.loads(path.read_text()) for name, path in paths.items()}


@pytest.mark.parametrize("name", schema.MODELS)
def test_what_is_written_is_valid(make_run: Make, name: str) -> None:
    jsonschema.validate(documents(make_run)[name], schema.schema(name))


def damaged(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a document with one value replaced, or without it when the value is None."""
    *parents, last = path.split("/")
    place: Any = document
    for parent in parents:
        place = place[int(parent)] if isinstance(place, list) else place[parent]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return document


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("record", "cell", None),
        ("record", "status", "fine"),
        ("record", "schema_version", SCHEMA_VERSION + 1),
        ("record", "wall_s", "long"),
        ("record", "before/server/counters/link0/rx_bytes", 1.5),
        ("record", "before/router", {"at": 1}),
        ("record", "commands/0/rc", "0"),
        ("record", "commands/0/colour", "red"),
        ("record", "cell/tunnel", "../../evil"),
        ("run", "plan", None),
        ("run", "plan/steps/0/order", "first"),
        ("run", "plan/colour", "red"),
        ("run", "link/setting/rtt_ms", "far"),
        ("run", "environment/server", ["a"]),
    ],
)
def test_what_is_damaged_is_refused(make_run: Make, name: str, path: str, value: Any) -> None:
    document = damaged(documents(make_run)[name], path, value)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema.schema(name))


def test_unknown_document(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as status:
        main(["schema", "cell"])
    assert status.value.code == 2
    assert "record" in capsys.readouterr().err


def test_schemas_are_no_more_than_the_two() -> None:
    assert {path.name for path in Path(schema.DIRECTORY).iterdir()} == {"record.schema.json", "run.schema.json"}
