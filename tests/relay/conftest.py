"""Fixtures of the live tests."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .link import Link, new_link

_numbers = itertools.count()


@pytest.fixture(autouse=True, scope="session")
def _root() -> None:
    """Without root nothing here can be tested, and that must not look like a pass."""
    if os.geteuid() != 0:
        pytest.fail("the live relay tests make network namespaces: run them as root", pytrace=False)


@pytest.fixture
def link(tmp_path: Path) -> Iterator[Link]:
    with new_link(f"relay{os.getpid()}x{next(_numbers)}", tmp_path) as made:
        yield made
