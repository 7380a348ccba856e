"""JSON Schemas of the stored documents, made of the models that write them; docs/schema/ holds them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tunnel_lab.manifests import ROOT
from tunnel_lab.records import SCHEMA_VERSION, Record, Run, Stored

DIRECTORY = ROOT / "docs" / "schema"
MODELS: dict[str, type[Stored]] = {"record": Record, "run": Run}


def schema(name: str) -> dict[str, Any]:
    """Return the schema of `record` or `run` as it is written by this program: of SCHEMA_VERSION and no other."""
    made = MODELS[name].model_json_schema(mode="serialization")
    made["properties"]["schema_version"] = {"const": SCHEMA_VERSION}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tunnel-lab:{name}:{SCHEMA_VERSION}",
        **made,
        "title": f"tunnel-lab {name}, schema_version {SCHEMA_VERSION}",
    }


def text(name: str) -> str:
    """Return the schema as its file has it."""
    return json.dumps(schema(name), indent=1, ensure_ascii=False) + "\n"


def path(name: str) -> Path:
    """Return where the schema is kept."""
    return DIRECTORY / f"{name}.schema.json"
