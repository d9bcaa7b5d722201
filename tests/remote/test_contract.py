"""What every backend promises, of the one whose workers are MCP servers in other processes."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from agents_tools.mcp import MCPBackend
from agents_tools.testing.backends import BackendContract
from tests.remote.running import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_tools.backend import ToolBackend


@pytest.mark.requirement("F5", "F22", "F25", "F41", "F45", "S31")
@pytest.mark.timeout(120)
class TestRemoteWorker(BackendContract):
    """A worker that is started again after it was killed, as a supervisor would do."""

    kills = 5
    streams = 100
    worker: WorkerProcess

    @pytest.fixture(autouse=True)
    def _a_worker(self) -> Iterator[None]:
        with WorkerProcess(errors="show") as self.worker:
            yield

    async def backend(self) -> ToolBackend:
        return MCPBackend(self.worker.url)

    async def kill_worker(self, backend: ToolBackend, pid: int) -> None:
        del backend
        os.kill(pid, signal.SIGKILL)
        self.worker.kill()
        self.worker.start()
