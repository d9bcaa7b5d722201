"""Runs in a store under abuse: damaged files, hostile ids and texts, forks, threads, other tools."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents_tools import (
    Agent,
    RunConfig,
    Runner,
    UserError,
    function_tool,
    register_secret,
)
from agents_tools.agents import RunResult
from agents_tools.content import ToolCallOutputItem
from agents_tools.errors import EventStoreError, RunInUseError
from agents_tools.persistence import SQLiteRunStore
from agents_tools.persistence.marks import hide_secrets, show_secrets
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.text.secrets import forget_secret
from tests.sqlite_faults import FULL, failing_disk, has_disk
from tests.watched_storage import watched_store

WITHIN = 45.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteRunStore]:
    """Return a store, and close it."""
    async with SQLiteRunStore(tmp_path / "runs.db", timeout=0.2) as opened:
        yield opened


@function_tool
async def pay() -> str:
    """Pay."""
    return "paid"


def config_of(store: SQLiteRunStore, **more: Any) -> RunConfig:
    """Return a configuration with a store."""
    return RunConfig(store=store, **more)


def statuses(result: RunResult) -> list[str]:
    """Return the status of each call."""
    return [item.status for item in result.new_items if isinstance(item, ToolCallOutputItem)]


# --- texts


@pytest.mark.parametrize("known", [True, False], ids=["registered", "not registered"])
def test_a_copied_mark_is_not_replaced_by_its_secret(known: bool) -> None:
    """A tool that can read the file must not get the secrets that are hidden in it."""
    register_secret("a-secret-of-the-house")
    try:
        mark = hide_secrets("so: a-secret-of-the-house")
        assert "agents-tools secret" in mark
        if not known:
            forget_secret("a-secret-of-the-house")
        value = {mark: [mark, "\ue000", "\ue000\ue001"]}
        assert show_secrets(hide_secrets(value), restore=True) == value
    finally:
        forget_secret("a-secret-of-the-house")


@pytest.mark.parametrize(
    "value",
    [10**5000, {"a": float("nan")}, object(), {1: 2}, b"\xff"],
    ids=["number", "not a number", "object", "keys", "bytes"],
)
async def test_a_value_without_a_json_form_does_not_end_the_run(
    store: SQLiteRunStore, value: Any
) -> None:
    """The tool has run; the model gets its text now and when the run is resumed."""

    @function_tool
    def value_of() -> Any:
        """Return the value."""
        return value

    model = ScriptedModel([tool_call("value_of"), "ok"])
    agent = Agent("A", tools=[value_of], model=model)
    first = await Runner.run(agent, "x", run_id="r", run_config=config_of(store))
    again = await Runner.resume(agent, "r", store=store)
    assert again.to_input_list() == first.to_input_list()
    assert statuses(again) == statuses(first)


@pytest.mark.parametrize(
    "run_id", ["../../etc/passwd", "'; DROP TABLE log; --", "%", "_", "r" * 500, "läuft"]
)
async def test_an_id_is_only_a_name(store: SQLiteRunStore, run_id: str) -> None:
    """Ids come from users; none of them is a path, a query or a pattern."""
    agent = Agent("A", tools=[pay], model=ScriptedModel([tool_call("pay", call_id="c'\0/")]))
    agent.model.add("ok", "other")  # type: ignore[union-attr]
    await Runner.run(agent, "x", run_id=run_id, run_config=config_of(store))
    await Runner.run(agent, "x", run_id="other", run_config=config_of(store))
    again = await Runner.resume(agent, run_id, store=store)
    assert (again.final_output, statuses(again)) == ("ok", ["ok"])
    await store.delete(run_id)
    assert [run.run_id for run in await store.runs()] == ["other"]


async def test_ids_that_differ_in_capitals_are_two_runs(store: SQLiteRunStore) -> None:
    """Databases that compare without regard to capitals would mix them up."""
    for name in ("Trip", "trip", "a_b", "aXb"):
        agent = Agent("A", model=ScriptedModel([name]))
        result = await Runner.run(agent, "x", run_id=name, run_config=config_of(store))
        assert result.final_output == name
    await store.delete("Trip")
    await store.delete("a_b")
    assert [run.run_id for run in await store.runs()] == ["trip", "aXb"]


@pytest.mark.parametrize("run_id", ["", "r" * 501, "a\0b", "\ud800", "a\nb", 7], ids=ascii)
async def test_an_id_that_a_store_cannot_hold_is_refused(
    store: SQLiteRunStore, run_id: Any
) -> None:
    """It would work in one store and fail in another, or write lines of its own into a log."""
    agent = Agent("A", model=ScriptedModel())
    with pytest.raises(
        UserError, match="run_id is not valid: expected 1 to 500 printable characters"
    ):
        await Runner.resume(agent, run_id, store=store)


# --- files


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE event SET body = '{'",
        "UPDATE event SET body = '[]'",
        "UPDATE event SET body = x'ff'",
        "UPDATE event SET body = replace(body, '\"run_created\"', '\"run_begun\"')",
        "UPDATE event SET body = replace(body, '\"input_events\"', '\"inputs\"')",
        "UPDATE event SET body = replace(body, '\"reserved\"', '\"kept\"')",
        "DROP TABLE event",
    ],
)
async def test_damage_is_reported_and_nothing_runs(
    store: SQLiteRunStore, tmp_path: Path, damage: str
) -> None:
    """No foreign exception is raised, and no call runs because of half a log."""
    done: list[int] = []

    @function_tool
    def act() -> str:
        """Act."""
        done.append(1)
        return "acted"

    agent = Agent("A", tools=[act], model=ScriptedModel([tool_call("act"), "ok"]))
    await Runner.run(agent, "x", run_id="r", run_config=config_of(store))
    connection = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    connection.execute(damage)
    connection.close()
    with pytest.raises((EventStoreError, UserError)):
        await Runner.resume(agent, "r", store=store)
    assert done == [1]


async def test_a_file_that_another_program_locks_is_reported(
    store: SQLiteRunStore, tmp_path: Path
) -> None:
    """As soon as it is free, the same run begins normally."""
    agent = Agent("A", model=ScriptedModel(["ok"]))
    connection = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(EventStoreError, match=r"runs\.db"):
        await Runner.run(agent, "x", run_id="r", run_config=config_of(store))
    connection.execute("ROLLBACK")
    connection.close()
    result = await Runner.run(agent, "x", run_id="r", run_config=config_of(store))
    assert result.final_output == "ok"


@pytest.mark.requirement("F42")
@pytest.mark.skipif(not has_disk(), reason="needs an SQLite that can load the test file system")
async def test_a_call_whose_output_no_disk_could_store_is_lost(tmp_path: Path) -> None:
    """It took effect, and that could not be recorded; it does not run again."""
    done: list[int] = []
    with failing_disk() as disk:
        store = SQLiteRunStore(tmp_path / "runs.db")

        @function_tool
        def act() -> str:
            """Act."""
            done.append(1)
            disk.fails = lambda step: FULL if step.kind == "write" else 0
            return "acted " * 2000

        agent = Agent("A", tools=[act], model=ScriptedModel([tool_call("act")]))
        with pytest.raises(EventStoreError):
            await Runner.run(agent, "x", run_id="r", run_config=config_of(store))
        disk.fails = lambda _: 0
        agent.model.add("I see.")  # type: ignore[union-attr]
        result = await Runner.resume(agent, "r", store=store)
        await store.aclose()
    assert (statuses(result), done) == (["lost"], [1])


async def test_closing_the_store_ends_its_runs(store: SQLiteRunStore, tmp_path: Path) -> None:
    """A store that is opened again continues them."""

    @function_tool
    async def close() -> str:
        """Close the store."""
        await store.aclose()
        return "closed"

    agent = Agent("A", tools=[close], model=ScriptedModel([tool_call("close")]))
    with pytest.raises(EventStoreError, match="is closed"):
        await Runner.run(agent, "x", run_id="r", run_config=config_of(store))
    agent.model.add("ok")  # type: ignore[union-attr]
    async with SQLiteRunStore(tmp_path / "runs.db") as other:
        result = await Runner.resume(agent, "r", store=other)
    assert statuses(result) == ["lost"]


# --- other tools, other agents


async def test_a_refused_call_does_not_run_when_its_tool_is_added_later(
    store: SQLiteRunStore,
) -> None:
    """The model has read that there is no such tool, and has continued without it."""
    done: list[int] = []
    reached = asyncio.Event()

    @function_tool
    async def late() -> str:
        """Do it."""
        done.append(1)
        return "done"

    @function_tool
    async def wait() -> str:
        """Wait."""
        reached.set()
        return await asyncio.Event().wait() and ""

    model = ScriptedModel([tool_call("late", call_id="c1"), tool_call("wait", call_id="c2")])
    first = Agent("A", tools=[wait], model=model)
    run = asyncio.ensure_future(Runner.run(first, "x", run_id="r", run_config=config_of(store)))
    await asyncio.wait_for(reached.wait(), WITHIN)
    run.cancel()
    await asyncio.wait({run})
    second = Agent("A", tools=[wait, late], model=ScriptedModel(["ok"]))
    result = await Runner.resume(second, "r", store=store)
    assert (statuses(result), done) == (["invalid_args", "lost"], [])


# --- processes, threads and loops


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_does_not_have_the_leases_of_its_parent(tmp_path: Path) -> None:
    """It can use the store for other runs, and cannot end those of the parent."""
    store = SQLiteRunStore(tmp_path / "runs.db")
    log = store.log("held")
    log.take().result(WITHIN)
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        reported: list[str] = []
        for name in ("held", "other"):
            try:
                store.log(name).take().result(WITHIN)
                reported.append("taken")
            except BaseException as error:  # noqa: BLE001 - sent to the parent
                reported.append(type(error).__name__)
        store.close()
        os.write(into, " ".join(reported).encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as answer:
        assert answer.read() == "RunInUseError taken"
    os.waitpid(pid, 0)
    with SQLiteRunStore(tmp_path / "runs.db") as other, pytest.raises(RunInUseError):
        other.log("held").take().result(WITHIN)
    log.close()
    store.close()


def test_of_threads_that_start_the_same_run_one_succeeds(tmp_path: Path) -> None:
    """A web server with several threads gets the same request twice."""
    agent = Agent("A", model=ScriptedModel(["ok"] * 400))
    at_once = threading.Barrier(4)
    results: list[str] = []

    def start() -> None:
        for number in range(25):
            at_once.wait(WITHIN)
            try:
                Runner.run_sync(agent, "x", run_id=f"r{number}", run_config=config_of(store))
            except RunInUseError:
                results.append("refused")
            else:
                results.append("ok")

    with SQLiteRunStore(tmp_path / "runs.db") as store:
        threads = [threading.Thread(target=start) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [run.status for run in store.runs().result()] == ["ok"] * 25
    assert len(results) == 100
    assert len(agent.model.requests) == 25  # type: ignore[union-attr]


# --- cancellation


async def test_a_run_that_is_cancelled_at_any_write_can_be_resumed(tmp_path: Path) -> None:
    """The same process can resume it, because the lease ends with the cancellation."""
    cancelled = 0
    for write in range(1, 40):
        done: list[int] = []
        loop = asyncio.get_running_loop()
        left, task = write, list[asyncio.Future[Any]]()

        @function_tool
        async def act() -> str:
            """Act."""
            done.append(1)  # noqa: B023 - used within its turn
            return "acted"

        def count(_: Sequence[Any]) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                loop.call_soon_threadsafe(task[0].cancel)  # noqa: B023 - as above

        agent = Agent("A", tools=[act], model=ScriptedModel([_answer] * 4))
        async with watched_store(tmp_path / f"{write}.db", before=count) as store:
            config = RunConfig(store=store)
            run = asyncio.ensure_future(Runner.run(agent, "x", run_id="r", run_config=config))
            task.append(run)
            await asyncio.wait({run})
            result = await Runner.run(agent, "x", run_id="r", run_config=config)
            assert result.final_output == "ok"
            assert len(done) <= 1
            assert statuses(result) == ["ok"] if done else statuses(result) == ["lost"]
        cancelled += run.cancelled()
        if left > 0:
            break
    assert cancelled > 3


def _answer(request: Any) -> Any:
    done = any(isinstance(item, ToolCallOutputItem) for item in request.input)
    return "ok" if done else tool_call("act", call_id="c1")
