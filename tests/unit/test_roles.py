"""A tunnel or a workload is one role: its manifest and its arguments agree, and no program names it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from tunnel_lab import manifests, plan

CATALOG = manifests.load()
NAMES = {*CATALOG.tunnels, *CATALOG.workloads}
MANAGEMENT = re.compile("lab_wait_for_ssh|ssh_deletekeys|ssh_keys")
"""Not a tunnel: how hosts are managed, here and in the words of cloud-init."""
SOURCES = sorted((ROOT / "tunnel_lab").rglob("*.py"))
TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "list": (list,),
}


def arguments(role: str, entry: str, name: str) -> dict[str, Any]:
    """Return the options of the dict `name` that an entry point of a role takes; none when it takes no such dict."""
    specs = manifests.read_yaml(manifests.ROLES / role / "meta" / "argument_specs.yml")["argument_specs"]
    options: dict[str, Any] = specs[entry]["options"].get(name, {}).get("options", {})
    return options


def check_types(options: dict[str, Any], settings: dict[str, Any]) -> None:
    """Check that each value is of the type that the role takes, and that only what may be null is optional."""
    for key, value in settings.items():
        assert value is None or type(value) in TYPES[options[key]["type"]], f"{key}: {value!r}"
        assert options[key]["required"] is (value is not None), key
        if value is not None and "choices" in options[key]:
            assert value in options[key]["choices"], key


@pytest.mark.parametrize("name", sorted(CATALOG.tunnels))
def test_tunnel_takes_exactly_the_settings_of_its_manifest(name: str) -> None:
    tunnel = CATALOG.tunnels[name]
    options = arguments(f"tunnel_{name}", "up", "tunnel_settings")
    assert options.keys() == tunnel.defaults.keys()
    check_types(options, tunnel.defaults)


@pytest.mark.parametrize(
    ("name", "variant"), [(name, variant) for name, tunnel in CATALOG.tunnels.items() for variant in tunnel.variants]
)
def test_every_variant_is_accepted_by_its_role(name: str, variant: str) -> None:
    options = arguments(f"tunnel_{name}", "up", "tunnel_settings")
    for key, value in CATALOG.tunnels[name].resolve(variant).items():
        if value is not None:
            assert type(value) in TYPES[options[key]["type"]], f"{key}: {value!r}"
            assert value in options[key].get("choices", [value]), f"{key}: {value!r}"


@pytest.mark.parametrize("entry", ["install", "prepare", "run"])
@pytest.mark.parametrize("name", sorted(CATALOG.workloads))
def test_workload_takes_exactly_the_parameters_of_its_manifest(name: str, entry: str) -> None:
    params = CATALOG.workloads[name].params
    options = arguments(f"workload_{name}", entry, "workload_params")
    assert options.keys() == params.keys()
    check_types(options, params)


@pytest.mark.parametrize(
    ("family", "entries"), [("tunnel", {"install", "up", "down"}), ("workload", {"install", "prepare", "run"})]
)
def test_roles_of_a_family_have_the_same_entry_points(family: str, entries: set[str]) -> None:
    found = sorted(manifests.ROLES.glob(f"{family}_*"))
    assert found
    for role in found:
        specs = manifests.read_yaml(role / "meta" / "argument_specs.yml")["argument_specs"]
        workload = CATALOG.workloads.get(role.name.removeprefix("workload_"))
        expected = entries | {"early"} if workload and workload.early else entries
        assert specs.keys() == expected, role.name
        for entry in expected:
            assert (role / "tasks" / f"{entry}.yml").is_file(), role.name


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of every string that a program uses, and of every name: not those that explain."""
    words = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["BARE"]:
            words.update(id(part) for part in ast.walk(node))
    for node in ast.walk(tree):
        if id(node) in words:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id


def compared(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of every string that decides something: compared, matched, or looked up."""
    for node in ast.walk(tree):
        decides: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            decides = [node]
        elif isinstance(node, ast.match_case):
            decides = [node.pattern]
        elif isinstance(node, ast.Dict):
            decides = [key for key in node.keys if key]
        for part in decides:
            for inner in ast.walk(part):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield inner.lineno, inner.value


def branches(source: str) -> list[str]:
    """Return where a program names a tunnel or a workload.

    `none` is an everyday word too, so only where something is decided by it.
    """
    tree = ast.parse(source)
    every = re.compile(rf"(?<![a-z0-9])({'|'.join(sorted(NAMES - {'none'}))})(?![a-z0-9])")
    found = [f"{line}: {text}" for line, text in strings(tree) if every.search(MANAGEMENT.sub("", text.lower()))]
    return found + [f"{line}: {text}" for line, text in compared(tree) if text == "none"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_program_names_a_tunnel_or_a_workload(path: Path) -> None:
    assert branches(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        'if cell.tunnel == "ssh":\n    pass',
        'if cell.tunnel == "none":\n    pass',
        'if cell.tunnel in ("none", "x"):\n    pass',
        'match cell.tunnel:\n    case "none":\n        pass',
        'BUFFERS = {"openvpn": 1}',
        'PARSERS = {"none": 1}',
        'x = f"tunnellab-{side}-openvpn"',
        'x = "ssh.modern.iperf3"',
        "def f():\n    ssh_options = 3",
        'if cell.workload.startswith("redis_"):\n    x = "redis_sync"',
    ],
)
def test_branch_would_be_found(source: str) -> None:
    assert branches(source) != []


@pytest.mark.parametrize(
    "source",
    ['"""What ssh does."""', 'BARE = ("none", "bare", "iperf3")', 'x = "none"', "x: int\n'''As iperf3 counts.'''"],
)
def test_words_that_decide_nothing_are_free(source: str) -> None:
    assert branches(source) == []


def test_bare_link_exists() -> None:
    tunnel, variant, workload = plan.BARE
    assert variant in CATALOG.tunnels[tunnel].variants
    assert workload in CATALOG.workloads
    assert CATALOG.tunnels[tunnel].defaults == {}
