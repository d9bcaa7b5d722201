"""Calls that wait in a queue of DBOS keep the promises of every backend."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from tests.scale import IS_FULL

pytest.importorskip("dbos")

from agents_tools.execution import ToolBackend
from agents_tools.persistence.durable import DBOSBackend
from agents_tools.testing import BackendContract
from tests.durable.lite import needs_dbos_on_sqlite


class Workers:
    """The worker processes of one database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._running: list[subprocess.Popen[bytes]] = []

    def begin(self, *names: str) -> subprocess.Popen[bytes]:
        """Start one, and wait until it takes calls."""
        worker = subprocess.Popen(  # noqa: S603 - a program of these tests
            [sys.executable, Path(__file__).with_name("worker.py"), self.url, "tools", *names],
            stdout=subprocess.PIPE,
        )
        self._running.append(worker)
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
        return worker

    def kill(self, pid: int) -> None:
        """Kill one without a word."""
        os.kill(pid, signal.SIGKILL)
        next(worker for worker in self._running if worker.pid == pid).wait(10)

    def end(self) -> None:
        """End them all."""
        for worker in self._running:
            with contextlib.suppress(ProcessLookupError):
                worker.kill()
            worker.wait(10)
            assert worker.stdout is not None
            worker.stdout.close()


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("sqlite", marks=needs_dbos_on_sqlite),
        pytest.param("postgresql", marks=pytest.mark.external("postgres")),
    ],
)
def workers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workers]:
    """Start two workers of a database."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('queue') / 'queue.db'}"
    else:
        url = request.getfixturevalue("server")
    started = Workers(url)
    try:
        started.begin()
        yield started
    finally:
        started.end()


@pytest.mark.slow
@pytest.mark.leaves_behind  # the threads of DBOS end in their own time
@pytest.mark.timeout(180)
class TestDBOSBackend(BackendContract):
    """A queue with workers in processes of their own."""

    kills: ClassVar[int] = 2 if IS_FULL else 1
    streams: ClassVar[int] = 20

    @pytest.fixture(autouse=True)
    def _workers(self, workers: Workers) -> None:
        self.workers = workers

    async def backend(self) -> ToolBackend:
        """Open the queue."""
        return DBOSBackend(self.workers.url, silence=4.0)

    async def kill_worker(self, backend: ToolBackend, pid: int) -> None:
        """Kill the worker, and start another."""
        self.workers.begin()
        self.workers.kill(pid)
