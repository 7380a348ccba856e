"""Manifests: what a variant resolves to, what a wrong one is told, and that the project's own are right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tunnel_lab import choices, manifests, plan
from tunnel_lab.errors import LabError


def refused(roles: Path, *said: str, **arguments: Any) -> None:
    """Check that loading, or resolving every variant, is a LabError that says all of `said`."""
    with pytest.raises(LabError) as error:
        resolve_all(manifests.load(roles, **arguments))
    assert all(part in str(error.value) for part in said), error.value


def resolve_all(catalog: manifests.Catalog) -> None:
    for tunnel in catalog.tunnels.values():
        for variant in tunnel.variants:
            assert set(tunnel.resolve(variant)) == set(tunnel.defaults)
            tunnel.insecure(variant)


def add_to_pipe(roles: Path, text: str) -> str:
    """Append `text` to the tunnel's manifest and return the manifest's path."""
    path = roles / "tunnel_pipe" / "tunnel.yml"
    path.write_text(path.read_text() + text)
    return str(path)


def test_roles_are_found_by_their_folders(roles: Path) -> None:
    (roles / "tunnel_unfinished").mkdir()
    catalog = manifests.load(roles)
    assert (set(catalog.tunnels), set(catalog.workloads)) == ({"none", "pipe"}, {"copy", "iperf3"})


def test_chain_of_variants(roles: Path) -> None:
    pipe = manifests.load(roles).tunnels["pipe"]
    assert pipe.resolve("plain") == pipe.defaults
    assert pipe.resolve("oldest") == {"cipher": "BF-CBC", "sndbuf": 65536, "compress": False}
    assert pipe.resolve("oldest", {"sndbuf": 1})["sndbuf"] == 1
    assert pipe.resolve("small")["cipher"] == "AES-256-GCM", "a variant is not changed by what extends it"
    assert (pipe.insecure("small"), pipe.insecure("oldest")) == (None, "breakable (SWEET32)")


def test_cycle_is_refused(roles: Path) -> None:
    loop = {"a": {"extends": "b"}, "b": {"extends": "c"}, "c": {"extends": "a"}}
    refused(roles, "tunnel pipe", "extends itself", extra_variants={"pipe": loop})
    refused(roles, "'a' extends itself", extra_variants={"pipe": {"a": {"extends": "a"}}})


def test_unknown_names_are_told_what_exists(roles: Path) -> None:
    refused(roles, "no variant 'smal'", "'small'?", extra_variants={"pipe": {"a": {"extends": "smal"}}})
    wrong = {"pipe": {"a": {"settings": {"ciphre": 1}}}}
    refused(roles, "variant a: unknown setting 'ciphre'", "'cipher'?", extra_variants=wrong)
    refused(roles, "lab_variants: no tunnel 'pip'", "'pipe'?", extra_variants={"pip": {}})


def test_user_variants_are_added(roles: Path) -> None:
    pipe = manifests.load(roles, {"pipe": {"mine": {"settings": {"sndbuf": 3}}}}).tunnels["pipe"]
    assert pipe.resolve("mine")["sndbuf"] == 3
    assert set(pipe.variants) == {"plain", "small", "small_old", "oldest", "mine"}


@pytest.mark.parametrize(
    ("variants", "said"),
    [
        ({"small": {}}, ["'small' exists already", "lab_override"]),
        ({"mine": {"setings": {}}}, ["mine.setings", "not permitted"]),
        ({"mine": 3}, ["mine", "got 3"]),
        ({"my.own": {}}, ["my.own", "got 'my.own'"]),
        ("mine", ["expected a mapping", "'mine'"]),
    ],
)
def test_wrong_user_variants(roles: Path, variants: Any, said: list[str]) -> None:
    refused(roles, "lab_variants.pipe", *said, extra_variants={"pipe": variants})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour: red\n", ["colour", "not permitted", "'red'"]),
        ("  x: [\n", ["not valid YAML", "line"]),
        ("evidence: [{name: a, hosts: [client], pattern: '('}]\n", ["evidence.0.pattern: not a regular", "got '('"]),
        ("evidence: [{name: a, hosts: [client], pattern: b}]\n", ["evidence.0.pattern: needs one group", "got 'b'"]),
        ("evidence: [{name: a, hosts: [router], pattern: b}]\n", ["evidence.0.hosts.0", "'router'"]),
    ],
)
def test_wrong_manifest_names_its_file(roles: Path, text: str, said: list[str]) -> None:
    refused(roles, add_to_pipe(roles, text), *said)


def test_files_that_are_no_mapping(roles: Path) -> None:
    path = roles / "workload_copy" / "workload.yml"
    for content, said in {b"- a\n": "found list", b"": "found NoneType", b"a: \xff\n": "not valid YAML"}.items():
        path.write_bytes(content)
        refused(roles, str(path), said)
    path.write_text("description: d\nservice_port: many\ntimeout_s: 1\n")
    refused(roles, f"{path}: service_port", "'many'")


def test_own_manifests_and_profiles_fit_together() -> None:
    """The project's roles and profiles.yml: every variant resolves, every pattern and parameter exists."""
    catalog = manifests.load()
    resolve_all(catalog)
    for name in choices.profiles():
        chosen = choices.Choices(lab_name="test", lab_provider="local", lab_profile=name)
        assert plan.build(catalog, chosen, "192.0.2.1").steps
    for path in sorted(manifests.ROLES.glob("workload_*/workload.yml")):
        assert (path.parent / "parser.py").is_file(), f"{path.parent.name} needs a parser"
