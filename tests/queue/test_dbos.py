"""DBOS as the transport of queues: one instance in a process, and its effects outside."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbos")

from agents_tools import UserError, function_tool
from agents_tools.execution import run_on
from agents_tools.persistence.queue import DBOSBackend, serve_worker
from agents_tools.persistence.queue.errors import QueueError
from tests.durable.lite import needs_dbos_on_sqlite
from tests.queue.running import BOUND, ROOT, call_of, messages_of

pytestmark = pytest.mark.leaves_behind  # the threads of DBOS end in their own time


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def served(url: str) -> asyncio.Future[Any]:
    """Start a worker in this process, and return its task."""
    ready = asyncio.Event()
    worker = asyncio.ensure_future(serve_worker([add], url, ready=ready.set))
    await asyncio.wait_for(ready.wait(), BOUND)
    return worker


async def stopped(worker: asyncio.Future[Any]) -> None:
    """Stop a worker."""
    worker.cancel()
    await asyncio.wait({worker})


@needs_dbos_on_sqlite
async def test_a_process_is_one_worker(tmp_path: Path) -> None:
    """The second one is refused, and the first one keeps its tools."""
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    worker = await served(url)
    with pytest.raises(UserError, match="process of its own"):
        await serve_worker([add], url)
    async with DBOSBackend(url) as backend:
        assert await asyncio.wait_for(run_on(backend)(add).invoke(a=1, b=2), BOUND) == 3
    await stopped(worker)


@needs_dbos_on_sqlite
async def test_an_application_keeps_the_dbos_that_it_has_launched(tmp_path: Path) -> None:
    """A process has one DBOS: its other uses must not end with a queue."""
    from dbos import DBOS

    url = f"sqlite:///{tmp_path / 'queue.db'}"
    call = call_of("add", {"a": 1, "b": 2})
    async with DBOSBackend(url, launched=True) as backend:
        with pytest.raises(QueueError, match=r"Call DBOS\.launch\(\) first"):
            await messages_of(backend, call)
    DBOS(config={"name": "mine", "system_database_url": url, "log_level": "CRITICAL"})
    DBOS.launch()
    try:
        async with DBOSBackend(url) as backend:
            with pytest.raises(QueueError, match="launched=True"):
                await messages_of(backend, call)
        async with DBOSBackend(url, launched=True) as backend:
            assert not await backend.has_call(call)
        assert await DBOS.list_workflows_async(limit=1) == []
    finally:
        DBOS.destroy()


@pytest.mark.parametrize("url", ["sqlite:///", "sqlite:///:memory:", "sqlite:///?timeout=1"])
def test_a_database_in_memory_is_refused(url: str) -> None:
    """It would end with the process that it has to survive."""
    with pytest.raises(UserError, match="does not survive"):
        DBOSBackend(url)


async def test_the_error_of_a_missing_server_has_no_password() -> None:
    """Errors are logged."""
    async with DBOSBackend("postgresql://u:open-sesame@127.0.0.1:1/x") as backend:
        with pytest.raises(Exception, match=r"u@127\.0\.0\.1:1/x") as caught:
            await backend.has_call(call_of("add"))
    assert "sesame" not in str(caught.value)


_QUIET = """
import asyncio, signal, sys
import agents_tools.persistence.queue
assert not {"dbos", "sqlalchemy", "psycopg"} & set(sys.modules)
handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
from agents_tools.persistence.queue import DBOSBackend
from tests.queue.running import call_of

async def main():
    for _ in range(2):
        async with DBOSBackend("sqlite:///queue.db") as backend:
            assert not await backend.has_call(call_of("add"))
asyncio.run(main())
assert handlers == [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
assert "opentelemetry.exporter" not in sys.modules
"""


@pytest.mark.slow
@needs_dbos_on_sqlite
def test_dbos_prints_nothing_and_changes_nothing_outside(tmp_path: Path) -> None:
    """Launched twice: nothing on the terminal, no signal handlers, no telemetry; late imports."""
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", _QUIET],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
