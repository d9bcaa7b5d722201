"""DBOS under abuse: names that differ in capitals, closed stores, an application that has DBOS."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbos")

from agents_tools import Agent, RunConfig, Runner, UserError, function_tool
from agents_tools.agents import RunResult
from agents_tools.content import ToolCallOutputItem
from agents_tools.persistence.durable import DBOSDurableStore, DurableStoreError
from agents_tools.testing import ScriptedModel, tool_call
from tests.durable.lite import needs_dbos_on_sqlite

pytestmark = pytest.mark.leaves_behind  # the threads of DBOS end in their own time

WITHIN = 45.0


def opened(folder: Path, **more: Any) -> DBOSDurableStore:
    """Open a store."""
    return DBOSDurableStore(f"sqlite:///{folder / 'runs.db'}", **more)


async def run(store: DBOSDurableStore, run_id: str, *answers: Any, tools: Any = ()) -> RunResult:
    """Run an agent that says something."""
    agent = Agent("A", tools=list(tools), model=ScriptedModel(answers))
    return await asyncio.wait_for(
        Runner.run(agent, "x", run_id=run_id, run_config=RunConfig(durable=store)), WITHIN
    )


@needs_dbos_on_sqlite
async def test_names_that_differ_in_capitals_are_two_runs(tmp_path: Path) -> None:
    """SQLite compares without regard to them, where it is asked for what begins alike."""
    store = opened(tmp_path)
    for name in ("Trip", "trip", "a_b", "aXb", "é" * 500):
        assert (await run(store, name, name)).final_output == name
    await store.delete("Trip")
    await store.delete("a_b")
    assert [one.run_id for one in await store.runs()] == ["trip", "aXb", "é" * 500]
    assert (await run(store, "trip")).final_output == "trip"
    await store.aclose()


@needs_dbos_on_sqlite
async def test_a_store_that_is_closed_meanwhile_ends_the_run(tmp_path: Path) -> None:
    """The run must not wait for a database that is gone."""
    store = opened(tmp_path)

    @function_tool
    async def close() -> str:
        """Close the store."""
        await store.aclose()
        return "closed"

    with pytest.raises(DurableStoreError, match="was closed"):
        await run(store, "r", tool_call("close"), tools=[close])
    again = opened(tmp_path)
    result = await run(again, "r", "ok", tools=[close])
    await again.aclose()
    statuses = [one.status for one in result.new_items if isinstance(one, ToolCallOutputItem)]
    assert statuses == ["lost"]


@needs_dbos_on_sqlite
async def test_a_claim_that_is_cancelled_is_not_held(tmp_path: Path) -> None:
    """Whoever gave up must be able to try again, here and elsewhere."""
    store = opened(tmp_path)
    await run(store, "r", "ok")
    for turns in range(12):
        claim = asyncio.ensure_future(store.claim("r"))
        for _ in range(turns):
            await asyncio.sleep(0)
        claim.cancel()
        await asyncio.wait({claim})
        if not claim.cancelled():
            await store.leave("r", None)
    assert (await run(store, "r")).final_output == "ok"
    await store.aclose()


@needs_dbos_on_sqlite
async def test_an_application_that_has_dbos_keeps_it(tmp_path: Path) -> None:
    """A process has one DBOS: what it is used for besides must not end with a store."""
    from dbos import DBOS

    with pytest.raises(DurableStoreError, match=r"Call DBOS\.launch\(\) first"):
        await run(opened(tmp_path, launched=True), "r", "ok")
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    DBOS(config={"name": "mine", "system_database_url": url, "log_level": "CRITICAL"})
    DBOS.launch()
    try:
        with pytest.raises(DurableStoreError, match="Pass launched=True"):
            await run(opened(tmp_path), "r", "ok")
        store = opened(tmp_path, launched=True)
        assert (await run(store, "r", "ok")).final_output == "ok"
        await store.aclose()
        assert await DBOS.list_workflows_async(limit=1)
    finally:
        DBOS.destroy()


@needs_dbos_on_sqlite
async def test_a_process_is_one_worker(tmp_path: Path) -> None:
    """The second one is refused, and the first one still has its tools."""
    from agents_tools.execution import run_on
    from agents_tools.persistence.queue import DBOSBackend, serve_worker

    @function_tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    url, ready = f"sqlite:///{tmp_path / 'runs.db'}", asyncio.Event()
    first = asyncio.ensure_future(serve_worker([add], url, ready=ready.set))
    await asyncio.wait_for(ready.wait(), WITHIN)
    with pytest.raises(UserError, match="process of its own"):
        await serve_worker([add], url)
    backend = DBOSBackend(url)
    assert await asyncio.wait_for(run_on(backend)(add).invoke(a=1, b=2), WITHIN) == 3
    await backend.aclose()
    first.cancel()
    await asyncio.wait({first})


@pytest.mark.parametrize("url", ["sqlite:///", "sqlite:///:memory:", "sqlite:///?timeout=1"])
def test_a_database_in_memory_alone_is_refused(url: str) -> None:
    """It would be gone with the process that it is to survive."""
    with pytest.raises(UserError, match="does not survive"):
        DBOSDurableStore(url)


async def test_a_server_that_is_not_there_is_told_of_without_the_password() -> None:
    """S: errors are logged."""
    store = DBOSDurableStore("postgresql://u:open-sesame@127.0.0.1:1/x")
    with pytest.raises(DurableStoreError, match=r"u@127\.0\.0\.1:1/x") as told:
        await run(store, "r", "ok")
    assert "sesame" not in str(told.value)
    await store.aclose()


_QUIET = """
import asyncio, signal, sys
from agents_tools import Agent, RunConfig, Runner
import agents_tools.persistence.durable
assert not {"dbos", "sqlalchemy", "psycopg"} & set(sys.modules)
handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
from agents_tools.persistence.durable import DBOSDurableStore
from agents_tools.testing import ScriptedModel

async def main():
    for _ in range(2):
        store = DBOSDurableStore("sqlite:///runs.db")
        agent = Agent("A", model=ScriptedModel(["ok"]))
        await Runner.run(agent, "x", run_id="r", run_config=RunConfig(durable=store))
        await store.aclose()
asyncio.run(main())
assert handlers == [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
assert "opentelemetry.exporter" not in sys.modules
"""


@needs_dbos_on_sqlite
def test_dbos_says_nothing_and_changes_nothing_outside(tmp_path: Path) -> None:
    """Launched twice: nothing on the terminal, no signal handlers, no telemetry; late imports."""
    root = Path(__file__).parents[2]
    done = subprocess.run(  # noqa: S603 - this very program
        [sys.executable, "-c", _QUIET],
        cwd=tmp_path,
        env={"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
