"""Calls that wait in a queue of DBOS keep the promises of every backend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from tests.scale import IS_FULL

pytest.importorskip("dbos")

from agents_tools.execution import ToolBackend
from agents_tools.persistence.queue import DBOSBackend
from agents_tools.testing import BackendContract
from tests.queue.running import Workers, workers_of


@pytest.fixture(scope="module")
def shared(database: str) -> Iterator[Workers]:
    """Start one worker for all tests: to start takes longer than a test."""
    with workers_of(database) as workers:
        workers.start()
        yield workers


@pytest.mark.requirement("F5", "F22", "F25", "F41", "F45", "S31")
@pytest.mark.slow
@pytest.mark.leaves_behind  # the threads of DBOS end in their own time
@pytest.mark.timeout(180)
class TestDBOSBackend(BackendContract):
    """A queue with workers in processes of their own."""

    kills: ClassVar[int] = 2 if IS_FULL else 1
    streams: ClassVar[int] = 20

    @pytest.fixture(autouse=True)
    def _workers(self, shared: Workers) -> None:
        self.workers = shared

    async def backend(self) -> ToolBackend:
        """Open the queue."""
        return DBOSBackend(self.workers.url, silence=4.0)

    async def kill_worker(self, backend: ToolBackend, pid: int) -> None:
        """Kill the worker, and start another."""
        self.workers.start()
        self.workers.kill(pid)
