"""The program that is killed, and the databases of the tests of runs in a store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.durable.kills import Victims, victims
from tests.durable.postgres import postgres, why_not


@pytest.fixture(scope="session")
def program() -> Iterator[Victims]:
    """Start the program that forks the processes that are killed."""
    with victims() as started:
        yield started


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Start a PostgreSQL server, and return the address of its database."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with postgres() as url:
        yield url
