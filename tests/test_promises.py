"""What every call promises, whatever its function does and however it is called."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import subprocess
import sys
import textwrap
import types
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from agents_tools import (
    Agent,
    FunctionTool,
    NotifyStreamEvent,
    Runner,
    ToolContext,
    function_tool,
    listen,
    policies,
    streaming_tool,
)
from agents_tools.concurrency.supervisor import abandoned_tasks
from agents_tools.testing import ScriptedModel, tool_call
from tests.waiting import comes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Generator

    from agents_tools.events import Event

GRACE = 0.05


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait a short time for the cleanup of cancelled calls instead of two seconds."""
    monkeypatch.setattr("agents_tools.concurrency.driver.GRACE", GRACE)
    monkeypatch.setattr("agents_tools.concurrency.supervisor.GRACE", GRACE)


WAYS: dict[str, Callable[[FunctionTool[..., Any]], Awaitable[Any]]] = {
    "call": lambda tool: tool.call(None, "{}"),
    "invoke": lambda tool: tool.invoke(),
    "on_invoke_tool": lambda tool: tool.on_invoke_tool(None, "{}"),
    "limit": lambda tool: policies.limit(concurrent=1)(tool).call(None, "{}"),
    "retry": lambda tool: policies.retry(2)(tool).call(None, "{}"),
    "timeout": lambda tool: policies.timeout(60)(tool).call(None, "{}"),
    "run": lambda tool: Runner.run(
        Agent("a", tools=[tool], model=ScriptedModel([tool_call(tool.name), "done"])), "go"
    ),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_cancelled_call_returns_although_its_function_does_not(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller waits for the cleanup at most for the grace period, then the call is abandoned."""
    started, release = asyncio.Event(), asyncio.Event()

    @function_tool
    async def stubborn() -> str:
        started.set()
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        return "late"

    async def wait_for_tool() -> Any:
        return await WAYS[way](stubborn)

    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(30):
            task = asyncio.create_task(wait_for_tool())
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await comes(lambda: "'stubborn' is still running" in caplog.text)
            assert any(job.name == "stubborn" for job in abandoned_tasks())
            release.set()
            await comes(lambda: not abandoned_tasks())


def test_ctrl_c_ends_a_program_whose_tool_ignores_cancellation() -> None:
    """`asyncio.run` waits for all tasks, so a call that is never done is closed in the end."""
    program = """
        import asyncio, os, signal
        from agents_tools import function_tool

        @function_tool
        async def stubborn() -> str:
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
            while True:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    print("ignored", flush=True)

        try:
            asyncio.run(stubborn.call(None, "{}"))
        except KeyboardInterrupt:
            print("interrupted")
    """
    result = subprocess.run(  # noqa: S603 - the program above
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=_default_sigint,
    )
    assert result.stdout.splitlines() == ["ignored", "ignored", "interrupted"], result.stderr


def _default_sigint() -> None:
    import signal

    signal.signal(signal.SIGINT, signal.default_int_handler)


variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@pytest.mark.parametrize("way", WAYS)
async def test_context_variables_of_a_tool_do_not_reach_the_caller(way: str) -> None:
    """A tool must not change the user, the tenant or the trace of the code that calls it."""

    @function_tool
    async def sets() -> str:
        variable.set("set by the tool")
        await asyncio.sleep(0)
        return variable.get()

    await WAYS[way](sets)
    assert variable.get() == "unset"


@pytest.mark.parametrize("has_subscriber", [False, True])
@pytest.mark.parametrize("moment", ["at once", "after an await", "and return"])
async def test_a_tool_that_cancels_its_own_task_does_not_cancel_the_caller(
    moment: str, has_subscriber: bool
) -> None:
    """That is an error of the tool, or none if it returns a result all the same."""

    @function_tool
    async def cancels() -> str:
        if moment == "after an await":
            await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if moment != "and return":
            await asyncio.sleep(0)
        return "returned"

    with listen() if has_subscriber else contextlib.nullcontext():
        outcome = await cancels.call(None, "{}")
    assert outcome.status == ("ok" if moment == "and return" else "tool_error")
    for _ in range(3):
        await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.parametrize("is_first_step", [True, False])
async def test_a_subscriber_that_cancels_the_task_cancels_the_caller(is_first_step: bool) -> None:
    """The tool emits the event, but the decision is not its own."""

    @function_tool
    async def notifies(context: ToolContext[Any]) -> None:
        if not is_first_step:
            await asyncio.sleep(0)
        context.notify("enough")
        await asyncio.Event().wait()

    def cancel(event: Event) -> None:
        task = asyncio.current_task()
        assert task is not None
        if isinstance(event, NotifyStreamEvent):
            task.cancel()

    context = ToolContext(None, emit=cancel)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(notifies.call(context, "{}"))


async def test_timeouts_groups_and_scopes_inside_a_tool_do_not_cancel_the_caller() -> None:
    """Their cleanup can take longer than the grace period of a cancelled call."""

    async def clean_up_slowly() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(3 * GRACE)

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("one of the group failed")

    @function_tool
    async def with_timeout() -> str:
        try:
            async with asyncio.timeout(GRACE / 10):
                await clean_up_slowly()
        except TimeoutError:
            return "timed out"
        return "not timed out"

    @function_tool
    async def with_group() -> str:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(clean_up_slowly())
                group.create_task(fail())
        except* ValueError:
            pass
        return "group failed"

    @function_tool
    async def with_scope() -> str:
        with anyio.move_on_after(GRACE / 10) as scope:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(3 * GRACE)
            await anyio.sleep(60)
        return f"moved on: {scope.cancelled_caught}"

    async with asyncio.timeout(30):
        assert await with_timeout.on_invoke_tool(None, "{}") == "timed out"
        assert await with_group.on_invoke_tool(None, "{}") == "group failed"
        assert await with_scope.on_invoke_tool(None, "{}") == "moved on: True"


async def test_other_code_can_cancel_a_scope_inside_a_tool() -> None:
    """What the tool does after the scope can take longer than the grace period."""
    scopes: asyncio.Queue[anyio.CancelScope] = asyncio.Queue()

    async def cancel_scope() -> None:
        (await scopes.get()).cancel()

    @function_tool
    async def with_scope() -> str:
        with anyio.CancelScope() as scope:
            scopes.put_nowait(scope)
            await anyio.sleep(60)
        for _ in range(3):
            await asyncio.sleep(GRACE)
        return f"moved on: {scope.cancelled_caught}"

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(cancel_scope())
        assert await with_scope.on_invoke_tool(None, "{}") == "moved on: True"
    assert not abandoned_tasks()


async def test_a_timeout_of_the_caller_ends_a_call_inside_another_one() -> None:
    """The outer tool keeps running, so it gets a `TimeoutError` and not a cancellation."""
    release = asyncio.Event()

    @function_tool
    async def inner() -> str:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        return "late"

    @function_tool
    async def outer() -> str:
        try:
            async with asyncio.timeout(GRACE / 10):
                await inner.call(None, "{}")
        except TimeoutError:
            return "the inner tool took too long"
        return "the inner tool ended"

    async with asyncio.timeout(30):
        assert await outer.on_invoke_tool(None, "{}") == "the inner tool took too long"
        release.set()
        await comes(lambda: not abandoned_tasks())


async def read_for_a_moment(tool: FunctionTool[..., Any]) -> None:
    """Read the events of a call until a timeout."""
    async with asyncio.timeout(GRACE / 10), tool.stream() as stream:
        async for _ in stream:
            pass


async def test_leaving_a_stream_early_with_slow_cleanup_raises_nothing_else() -> None:
    """The block ends after the grace period, with the exception that it has anyway."""
    release = asyncio.Event()

    @streaming_tool
    async def slow_to_close() -> AsyncIterator[Any]:
        try:
            yield NotifyStreamEvent("first")
            await asyncio.sleep(60)
            yield "never"
        finally:
            await release.wait()

    async with asyncio.timeout(30):
        async with slow_to_close.stream() as stream:
            async for event in stream:
                if event.type == "notify_stream_event":
                    break
        with pytest.raises(TimeoutError):
            await read_for_a_moment(slow_to_close)
        release.set()
        await comes(lambda: not abandoned_tasks())


@pytest.mark.parametrize("error", [ValueError("late"), SystemExit(3), KeyboardInterrupt()])
async def test_a_yielded_result_stands(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault after the result, of whatever class, is logged."""

    async def fail() -> None:
        raise error

    @streaming_tool
    async def in_a_group() -> AsyncIterator[Any]:
        async with asyncio.TaskGroup() as group:
            yield "the result"
            if isinstance(error, ValueError):
                group.create_task(fail())
            else:
                raise error

    @streaming_tool
    async def at_the_end() -> AsyncIterator[Any]:
        try:
            yield "the result"
        finally:
            await fail()

    assert await in_a_group.on_invoke_tool(None, "{}") == "the result"
    assert await at_the_end.on_invoke_tool(None, "{}") == "the result"
    assert "'at_the_end' failed while it was closed" in caplog.text


async def test_awaiting_something_that_is_not_of_asyncio_is_an_error_of_the_tool() -> None:
    """The event loop refuses it, and the tool can handle that."""

    @types.coroutine
    def foreign() -> Generator[Any, Any, None]:
        yield "not a future"

    @function_tool
    async def waits_for_it() -> str:
        await asyncio.sleep(0)
        try:
            await foreign()
        except RuntimeError as error:
            return str(error)
        return "nothing"

    assert "bad yield" in str(await waits_for_it.on_invoke_tool(None, "{}"))
