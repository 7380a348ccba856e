"""A lab of its own for transfers whose limit is known beforehand, because it was made so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .hosts import Playbook, play


def pytest_addoption(parser: pytest.Parser) -> None:
    """How often each situation is measured."""
    parser.addoption("--repeats", type=int, default=1, help="how often each situation is measured (default: 1)")


@pytest.fixture(scope="session")
def lab() -> Iterator[Playbook]:
    """Give `play`; what it made is undone at the end."""
    yield play
    play("playbooks/teardown.yml")
