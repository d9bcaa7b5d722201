"""Workers of a queue as processes of a test."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Generator
from pathlib import Path
from typing import Any

from agents_tools.execution import CallEnvelope, CallEvent, ToolBackend

__all__ = ["BOUND", "Workers", "call_of", "lines_in", "messages_of", "status_of", "workers_of"]

ROOT = Path(__file__).parents[2]
BOUND = 60.0
"""The bound of every wait, in seconds; each takes a fraction of it."""


class Workers:
    """The worker processes of one database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, **options: Any) -> subprocess.Popen[bytes]:
        """Start a worker, and wait until it takes calls."""
        worker = self.start_soon(**options)
        self.wait_until_ready(worker)
        return worker

    def start_soon(self, **options: Any) -> subprocess.Popen[bytes]:
        """Start a worker."""
        command = [sys.executable, "-m", "tests.queue.worker", self.url, json.dumps(options)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)  # noqa: S603
        self.running.append(worker)
        return worker

    def wait_until_ready(self, worker: subprocess.Popen[bytes]) -> None:
        """Wait until a worker takes calls."""
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"

    def kill(self, pid: int) -> None:
        """Kill a worker with SIGKILL."""
        os.kill(pid, signal.SIGKILL)
        next(worker for worker in self.running if worker.pid == pid).wait(10)

    def end(self) -> None:
        """Kill all workers."""
        for worker in self.running:
            with contextlib.suppress(ProcessLookupError):
                worker.kill()
            worker.wait(10)
            assert worker.stdout is not None
            worker.stdout.close()
        self.running.clear()


@contextlib.contextmanager
def workers_of(url: str) -> Generator[Workers]:
    """Yield the workers of a database, and kill them at the end."""
    workers = Workers(url)
    try:
        yield workers
    finally:
        workers.end()


def call_of(tool: str, arguments: dict[str, Any] | None = None, **more: Any) -> CallEnvelope:
    """Return a call with an id of its own."""
    options: dict[str, Any] = {
        "call_id": uuid.uuid4().hex,
        "arguments": json.dumps(arguments or {}),
        **more,
    }
    return CallEnvelope(tool=tool, **options)


async def messages_of(backend: ToolBackend, call: CallEnvelope) -> list[CallEvent]:
    """Submit a call and return all messages about it."""
    return [message async for message in backend.submit(call)]


async def status_of(backend: ToolBackend, call: CallEnvelope) -> str:
    """Submit a call and return its status."""
    return str((await messages_of(backend, call))[-1].payload["status"])


def lines_in(path: Path) -> list[str]:
    """Return the lines of a file that may not be there yet."""
    return path.read_text().splitlines() if path.exists() else []
