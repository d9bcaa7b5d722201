"""Fixture for the tests of models: a server with scripted answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.models.http_server import scripted_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.models.http_server import ScriptedServer


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """Serve on the loopback while the test runs."""
    with scripted_server() as running:
        yield running
