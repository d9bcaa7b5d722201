"""The databases of the tests of the queue, each with its workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.durable.lite import needs_dbos_on_sqlite
from tests.durable.postgres import postgres, why_not
from tests.queue.running import Workers, workers_of


@pytest.fixture(scope="package")
def server() -> Iterator[str]:
    """Start a PostgreSQL server and return the address of its database."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with postgres() as url:
        yield url


@pytest.fixture(
    scope="package",
    params=[
        pytest.param("sqlite", marks=needs_dbos_on_sqlite),
        pytest.param("postgresql", marks=pytest.mark.external("postgres")),
    ],
)
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('queue') / 'queue.db'}"
    return str(request.getfixturevalue("server"))


@pytest.fixture
def workers(database: str) -> Iterator[Workers]:
    """Return the workers of a database; none is started yet."""
    with workers_of(database) as workers:
        yield workers
