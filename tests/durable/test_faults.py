"""Durable runs under abuse: damaged files, hostile ids and texts, forks, threads, other tools."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
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
from agents_tools.persistence.durable import DurableStoreError, LocalDurableStore, RunInUseError
from agents_tools.persistence.durable.codec import read, written
from agents_tools.testing import ScriptedModel, tool_call
from tests.sqlite_faults import FULL, failing_disk, has_disk

WITHIN = 45.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[LocalDurableStore]:
    """Give a store, and close it."""
    opened = LocalDurableStore(tmp_path / "runs.db", timeout=0.2)
    yield opened
    await opened.aclose()


@function_tool
async def pay() -> str:
    """Pay."""
    return "paid"


def kept(store: LocalDurableStore, **more: Any) -> RunConfig:
    """Give a configuration that keeps runs."""
    return RunConfig(durable=store, **more)


def statuses(result: RunResult) -> list[str]:
    """Give how each call ended."""
    return [item.status for item in result.new_items if isinstance(item, ToolCallOutputItem)]


# --- texts


@pytest.mark.parametrize("known", [True, False], ids=["registered", "not registered"])
def test_a_mark_that_somebody_copied_gives_no_secret(known: bool) -> None:
    """S: whoever can read the file, as a tool may, must not be handed what is hidden in it."""
    from agents_tools.text import secrets as _secrets

    register_secret("a-secret-of-the-house")
    try:
        mark = read(written("key", "so: a-secret-of-the-house").replace("\\ue000", "@"), store="s")
        mark = mark.replace("@", "\ue000")
        assert "agents-tools secret" in mark
        if not known:
            _secrets.forget_secret("a-secret-of-the-house")
        text = written("key", {mark: [mark, "\ue000", "\ue000\ue001"]})
        assert read(text, store="s") == {mark: [mark, "\ue000", "\ue000\ue001"]}
    finally:
        _secrets.forget_secret("a-secret-of-the-house")


@pytest.mark.parametrize(
    "value",
    [10**5000, {"a": float("nan")}, object(), {1: 2}, b"\xff"],
    ids=["number", "not a number", "object", "keys", "bytes"],
)
async def test_a_value_without_a_json_form_does_not_end_the_run(
    store: LocalDurableStore, value: Any
) -> None:
    """What the tool did is done; the model gets its text now and later."""

    @function_tool
    def give() -> Any:
        """Give it."""
        return value

    model = ScriptedModel([tool_call("give"), "ok"])
    agent = Agent("A", tools=[give], model=model)
    first = await Runner.run(agent, "x", run_id="r", run_config=kept(store))
    again = await Runner.resume(agent, "r", durable=store)
    assert again.to_input_list() == first.to_input_list()
    assert statuses(again) == statuses(first)


@pytest.mark.parametrize(
    "run_id", ["../../etc/passwd", "'; DROP TABLE run; --", "%", "_", "r" * 500, "läuft"]
)
async def test_an_id_is_a_name_and_nothing_more(store: LocalDurableStore, run_id: str) -> None:
    """S: ids come from users; none of them is a path, a query or a pattern."""
    agent = Agent("A", tools=[pay], model=ScriptedModel([tool_call("pay", call_id="\ud800'\0/")]))
    agent.model.add("ok", "other")  # type: ignore[union-attr]
    await Runner.run(agent, "x", run_id=run_id, run_config=kept(store))
    await Runner.run(agent, "x", run_id="other", run_config=kept(store))
    again = await Runner.resume(agent, run_id, durable=store)
    assert (again.final_output, statuses(again)) == ("ok", ["ok"])
    await store.delete(run_id)
    assert [run.run_id for run in await store.runs()] == ["other"]


@pytest.mark.parametrize("run_id", ["", "r" * 501, "a\0b", "\ud800", "a\nb", 7], ids=ascii)
async def test_an_id_that_some_store_cannot_have_is_refused(
    store: LocalDurableStore, run_id: Any
) -> None:
    """It would work here and fail elsewhere, or write lines of its own into a log."""
    agent = Agent("A", model=ScriptedModel())
    with pytest.raises(
        UserError, match="run_id is not valid: expected 1 to 500 printable characters"
    ):
        await Runner.resume(agent, run_id, durable=store)


# --- files


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE step SET value = '{'",
        "UPDATE step SET value = '[]'",
        "UPDATE step SET value = '{}'",
        "UPDATE step SET value = x'ff'",
        "UPDATE run SET start = '{'",
        "UPDATE run SET start = '3'",
        "UPDATE run SET start = '{}'",
        "DROP TABLE step",
    ],
)
async def test_what_is_damaged_is_said_in_our_words(
    store: LocalDurableStore, tmp_path: Path, damage: str
) -> None:
    """No foreign exception, and nothing is done on half a knowledge."""
    done: list[int] = []

    @function_tool
    def act() -> str:
        """Act."""
        done.append(1)
        return "acted"

    agent = Agent("A", tools=[act], model=ScriptedModel([tool_call("act"), "ok"]))
    await Runner.run(agent, "x", run_id="r", run_config=kept(store))
    connection = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    connection.execute(damage)
    connection.close()
    with pytest.raises((DurableStoreError, UserError), match=r"damaged|could not be read"):
        await Runner.resume(agent, "r", durable=store)
    assert done == [1]


async def test_a_file_that_another_program_holds_is_waited_for_and_told_of(
    store: LocalDurableStore, tmp_path: Path
) -> None:
    """Once it is free, the same run begins as if nothing had been."""
    agent = Agent("A", model=ScriptedModel(["ok"]))
    connection = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(DurableStoreError, match=r"held it for more than 0\.2 s"):
        await Runner.run(agent, "x", run_id="r", run_config=kept(store))
    connection.execute("ROLLBACK")
    connection.close()
    result = await Runner.run(agent, "x", run_id="r", run_config=kept(store))
    assert result.final_output == "ok"


@pytest.mark.requirement("F42")
@pytest.mark.skipif(not has_disk(), reason="needs an SQLite that can load the test file system")
async def test_a_full_disk_stops_the_run_and_what_could_not_be_kept_is_lost(
    tmp_path: Path,
) -> None:
    """The call took effect and nobody could write that down; it is not made again."""
    done: list[int] = []
    with failing_disk() as disk:
        store = LocalDurableStore(tmp_path / "runs.db")

        @function_tool
        def act() -> str:
            """Act."""
            done.append(1)
            disk.fails = lambda step: FULL if step.kind == "write" else 0
            return "acted " * 2000

        agent = Agent("A", tools=[act], model=ScriptedModel([tool_call("act")]))
        with pytest.raises(DurableStoreError, match="Free some room"):
            await Runner.run(agent, "x", run_id="r", run_config=kept(store))
        disk.fails = lambda _: 0
        agent.model.add("I see.")  # type: ignore[union-attr]
        result = await Runner.resume(agent, "r", durable=store)
        await store.aclose()
    assert (statuses(result), done) == (["lost"], [1])


async def test_a_store_that_is_closed_meanwhile_ends_the_run(
    store: LocalDurableStore, tmp_path: Path
) -> None:
    """What was done stays known; a store that is opened again goes on."""

    @function_tool
    async def close() -> str:
        """Close the store."""
        await store.aclose()
        return "closed"

    agent = Agent("A", tools=[close], model=ScriptedModel([tool_call("close")]))
    with pytest.raises(DurableStoreError, match="was closed"):
        await Runner.run(agent, "x", run_id="r", run_config=kept(store))
    agent.model.add("ok")  # type: ignore[union-attr]
    other = LocalDurableStore(tmp_path / "runs.db")
    result = await Runner.resume(agent, "r", durable=other)
    await other.aclose()
    assert statuses(result) == ["lost"]


# --- other tools, other agents


async def test_a_call_that_was_refused_is_not_made_when_its_tool_turns_up(
    store: LocalDurableStore,
) -> None:
    """The model was told that there is no such tool, and went another way."""
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
    run = asyncio.ensure_future(Runner.run(first, "x", run_id="r", run_config=kept(store)))
    await asyncio.wait_for(reached.wait(), WITHIN)
    run.cancel()
    await asyncio.wait({run})
    second = Agent("A", tools=[wait, late], model=ScriptedModel(["ok"]))
    result = await Runner.resume(second, "r", durable=store)
    assert (statuses(result), done) == (["invalid_args", "lost"], [])


# --- processes, threads and loops


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_store_does_not_follow_a_fork(tmp_path: Path) -> None:
    """Its thread and its locks stay with the parent; the child is told so at once."""
    store = LocalDurableStore(tmp_path / "runs.db")
    asyncio.run(store.claim("held"))
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        told = "nothing"
        try:
            asyncio.run(asyncio.wait_for(store.claim("r"), WITHIN))
        except BaseException as error:  # noqa: BLE001 - told to the parent
            told = f"{type(error).__name__}: {error}"
        asyncio.run(store.aclose())
        os.write(into, told.encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as said:
        assert "Open one here" in said.read()
    os.waitpid(pid, 0)
    other = LocalDurableStore(tmp_path / "runs.db")
    with pytest.raises(RunInUseError):  # the child has not freed what the parent has
        asyncio.run(other.claim("held"))
    for each in (store, other):
        asyncio.run(each.aclose())


def test_threads_with_loops_of_their_own_do_not_carry_the_same_run_on(tmp_path: Path) -> None:
    """A web server with several threads gets the same request twice."""
    store = LocalDurableStore(tmp_path / "runs.db")
    at_once = threading.Barrier(4)
    won: list[str] = []

    def claim() -> None:
        for number in range(50):
            at_once.wait(WITHIN)
            try:
                asyncio.run(store.claim(f"run {number}"))
            except RunInUseError:
                continue
            won.append(f"run {number}")

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(store.aclose())
    assert sorted(won) == sorted(f"run {number}" for number in range(50))


# --- cancellation


class Counting(LocalDurableStore):
    """Cancels the task that uses it at one of its waits."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.left = 0
        self.task: asyncio.Future[Any] | None = None

    async def _do(self, work: Callable[..., Any], *given: Any) -> Any:
        self.left -= 1
        if self.left == 0 and self.task is not None:
            self.task.cancel()
        return await super()._do(work, *given)


async def test_a_run_that_is_cancelled_at_any_wait_is_free_to_go_on(tmp_path: Path) -> None:
    """Whoever cancels a run must be able to resume it in the same process."""
    cut, ends = 0, 0
    for cut in range(1, 40):
        done: list[int] = []

        @function_tool
        async def act() -> str:
            """Act."""
            done.append(1)  # noqa: B023 - used within its turn
            return "acted"

        store = Counting(tmp_path / f"{cut}.db")
        agent = Agent(
            "A",
            tools=[act],
            model=ScriptedModel([_answer] * 4),
        )
        store.left = cut
        run = asyncio.ensure_future(
            Runner.run(agent, "x", run_id="r", run_config=RunConfig(durable=store))
        )
        store.task = run
        await asyncio.wait({run})
        was_cancelled, store.task = run.cancelled(), None
        result = await Runner.run(agent, "x", run_id="r", run_config=RunConfig(durable=store))
        assert result.final_output == "ok"
        assert len(done) <= 1
        assert statuses(result) == ["ok"] if done else statuses(result) == ["lost"]
        await store.aclose()
        ends += was_cancelled
        if not was_cancelled:
            break
    assert ends > 5


def _answer(request: Any) -> Any:
    done = any(isinstance(item, ToolCallOutputItem) for item in request.input)
    return "ok" if done else tool_call("act", call_id="c1")
