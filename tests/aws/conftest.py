"""AWS is moto's server on loopback. Nothing here leaves this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tunnel_lab import manifests
from tunnel_lab.ec2 import api, destroy, launch

from .cloud import Cloud
from .plays import REGIONS, forget

DUMMY = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/nonexistent",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
}


@pytest.fixture(scope="session")
def server() -> Iterator[Cloud]:
    """The stand-in for AWS."""
    cloud = Cloud()
    yield cloud
    cloud.stop()


@pytest.fixture(scope="session", autouse=True)
def _environment(server: Cloud) -> Iterator[None]:
    """Credentials of nobody, and AWS on loopback."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(DUMMY, AWS_ENDPOINT_URL=server.url)
    destroy.POLL_S = launch.POLL_S = 0.1
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def cloud(server: Cloud) -> Cloud:
    """An AWS that the tests of a file share."""
    server.reset()
    return server


@pytest.fixture(scope="module")
def no_lab() -> Iterator[None]:
    """Begin and end without a lab of the playbooks' name."""
    forget()
    yield
    forget()


@pytest.fixture
def aws(server: Cloud) -> Cloud:
    """An AWS in which nobody has made anything yet."""
    server.reset()
    return server


@pytest.fixture
def other_credentials(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """What changes the environment for a new session, and then back."""
    api.session.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    api.session.cache_clear()


def hosts(**changes: Any) -> dict[str, dict[str, Any]]:
    """Return the settings of both hosts with some changed."""
    defaults = manifests.provider("aws").settings
    chosen = {"aws_operator_cidr": "203.0.113.7/32", **changes}
    return {host: {**defaults, "aws_region": region, **chosen} for host, region in REGIONS.items()}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A lab's private directory with keys of its own."""
    (tmp_path / "ssh").mkdir()
    for name in ("management", "host_key"):
        (tmp_path / "ssh" / name).write_text(f"private {name}\n")
        (tmp_path / "ssh" / f"{name}.pub").write_text(KEY + "\n")
    return tmp_path


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPmVZ2jZ0hZyJ2dYvX1m3Q0hWJ9iNf5R0oD0qS7H3K2L tunnel-lab"
