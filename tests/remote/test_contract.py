"""What every backend promises, of the one whose workers are MCP servers in other processes."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from agents_tools.mcp import MCPBackend
from agents_tools.testing import BackendContract
from tests.remote.running import WorkerProcess
from tests.scale import IS_FULL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_tools.execution import ToolBackend


@pytest.fixture(scope="module")
def shared() -> Iterator[WorkerProcess]:
    """Start one worker for all tests: to start takes longer than a test."""
    with WorkerProcess(errors="show") as worker:
        yield worker


@pytest.mark.requirement("F5", "F22", "F25", "F41", "F45", "S31")
@pytest.mark.timeout(120)
class TestRemoteWorker(BackendContract):
    """A worker that is started again after it was killed, as a supervisor would do."""

    kills = 5 if IS_FULL else 2
    streams = 100
    worker: WorkerProcess

    @pytest.fixture(autouse=True)
    def _a_worker(self, shared: WorkerProcess) -> None:
        self.worker = shared

    async def backend(self) -> ToolBackend:
        return MCPBackend(self.worker.url)

    async def kill_worker(self, backend: ToolBackend, pid: int) -> None:
        del backend
        os.kill(pid, signal.SIGKILL)
        self.worker.kill()
        self.worker.start()
