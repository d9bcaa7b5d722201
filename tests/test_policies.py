"""Test policies: their effects, and how they combine."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import Any

import pytest

from agents_tools import (
    FunctionTool,
    ModelBehaviorError,
    NotifyStreamEvent,
    RunContextWrapper,
    ToolCancelledError,
    ToolContext,
    ToolDeniedError,
    ToolError,
    ToolTimeoutError,
    UserError,
    function_tool,
    listen,
    streaming_tool,
)
from agents_tools.concurrency.supervisor import abandoned_tasks
from agents_tools.errors import ToolLostError, ToolOverloadedError
from agents_tools.events import ToolAttemptEvent
from agents_tools.policies import (
    exclusive,
    hide,
    limit,
    rename,
    retry,
    timeout,
    truncate,
    with_metadata,
)

# --- timeout


@pytest.mark.requirement("F4")
async def test_a_timeout_returns_at_its_deadline_even_for_a_synchronous_tool() -> None:
    """A thread cannot be stopped, but the caller need not wait for it."""
    release, seen = threading.Event(), threading.Event()

    @timeout(0.05)
    @function_tool
    def tool(ctx: ToolContext[Any]) -> str:
        assert ctx.deadline is not None
        release.wait(600)
        if ctx.cancelled:
            seen.set()
        return "late"

    outcome = await tool.call(None, "{}")
    assert outcome.status == "timeout"
    assert isinstance(outcome.error, ToolTimeoutError)
    assert outcome.output == (
        "Tool 'tool' took longer than 0.05 s. It cannot be stopped and may still take effect. "
        "Check before you call it again."
    )
    release.set()
    assert await asyncio.to_thread(seen.wait, 5)


@pytest.mark.requirement("F5")
async def test_a_timeout_returns_even_if_the_tool_ignores_cancellation() -> None:
    """The tool continues under supervision, and the caller does not wait."""
    release, done = asyncio.Event(), asyncio.Event()

    @timeout(0.05)
    @function_tool
    async def tool() -> str:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        done.set()
        return "late"

    outcome = await tool.call(None, "{}")
    assert outcome.status == "timeout"
    release.set()
    await asyncio.wait_for(done.wait(), 5)
    assert abandoned_tasks() == ()


async def test_a_timeout_does_not_wait_for_slow_cleanup() -> None:
    """The `finally` of the tool runs, but after the result is returned."""
    release, cleaned = asyncio.Event(), asyncio.Event()

    @timeout(0.05, error="Too slow, ask for less.")
    @function_tool
    async def tool() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()
            cleaned.set()
        return "never"

    assert await tool.on_invoke_tool(None, "{}") == "Too slow, ask for less."
    assert not cleaned.is_set()
    release.set()
    await asyncio.wait_for(cleaned.wait(), 5)


async def test_a_tool_that_detects_its_own_deadline_reports_a_timeout() -> None:
    """Whichever notices the deadline first, the result for the model must be the same."""

    @timeout(0.02, error="Too slow, ask for less.")
    @function_tool
    async def tool(ctx: ToolContext[Any]) -> str:
        while True:
            ctx.check()

    outcome = await tool.call(None, "{}")
    assert (outcome.status, outcome.output) == ("timeout", "Too slow, ask for less.")


async def test_a_tool_that_outlives_the_grace_period_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The application must learn that it is still running."""
    monkeypatch.setattr("agents_tools.concurrency.supervisor.GRACE", 0.0)
    release, logged = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    @timeout(0.02)
    @function_tool
    async def tool() -> str:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        return "late"

    monkeypatch.setattr(caplog.handler, "emit", lambda _: loop.call_soon(logged.set))
    await tool.call(None, "{}")
    await asyncio.wait_for(logged.wait(), 5)
    assert [job.name for job in abandoned_tasks()] == ["tool"]
    release.set()
    async with asyncio.timeout(30):
        while abandoned_tasks():  # noqa: ASYNC110 - the supervisor has no event to wait for
            await asyncio.sleep(0)


async def test_a_timeout_does_not_affect_a_fast_tool() -> None:
    """Its result, its error and its cancellation are passed on unchanged."""

    @timeout(30)
    @function_tool
    async def tool(kind: str) -> str:
        if kind == "raise":
            raise ToolError("no")
        if kind == "wait":
            await asyncio.Event().wait()
        return "done"

    assert await tool.invoke(kind="x") == "done"
    with pytest.raises(ToolError, match="no"):
        await tool.invoke(kind="raise")
    task = asyncio.create_task(tool.invoke(kind="wait"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_deadlines_apply_to_inner_calls() -> None:
    """An inner call never has more time than its outer call."""
    seen: list[float | None] = []

    @timeout(100)
    @function_tool
    async def inner(ctx: ToolContext[Any]) -> None:
        seen.append(ctx.deadline)

    @timeout(10)
    @function_tool
    async def outer(ctx: ToolContext[Any]) -> None:
        seen.append(ctx.deadline)
        await inner.invoke()

    await outer.invoke()
    await inner.invoke()
    assert seen[0] == seen[1]
    assert seen[2] is not None
    assert seen[0] is not None
    assert seen[2] > seen[0] + 50


@pytest.mark.parametrize("seconds", [0, -1, "x", None, float("nan")])
def test_a_timeout_must_be_a_positive_number(seconds: Any) -> None:
    """With zero it would expire before the call starts."""
    with pytest.raises(UserError, match="positive"):
        timeout(seconds)


# --- retry


def failing(times: int, error: Exception) -> tuple[FunctionTool[..., Any], list[int]]:
    """Return a tool that fails the given number of times, and the list of its attempts."""
    attempts: list[int] = []

    @function_tool
    async def tool(ctx: ToolContext[Any], a: int = 0) -> str:
        attempts.append(ctx.attempt)
        if len(attempts) <= times:
            raise error
        return "done"

    return tool, attempts


async def test_a_retry_calls_the_tool_again_and_publishes_an_event() -> None:
    """All attempts have one start event and one end event."""
    tool, attempts = failing(2, OSError("flaky"))
    async with listen() as events:
        assert await retry(3, backoff=0)(tool).invoke() == "done"
    assert attempts == [1, 2, 3]
    found = [event for event in events if isinstance(event, ToolAttemptEvent)]
    assert [event.attempt for event in found] == [1, 2]
    types = [event.type for event in events]
    assert types.count("tool_stream_start_event") == types.count("tool_stream_end_event") == 1


async def test_the_last_attempt_of_a_retry_raises_its_error() -> None:
    """This error is the one that the model receives."""
    tool, attempts = failing(9, OSError("flaky"))
    with pytest.raises(OSError, match="flaky"):
        await retry(3, backoff=lambda attempt: 0)(tool).invoke()
    assert attempts == [1, 2, 3]


@pytest.mark.parametrize(
    "error",
    [
        ToolError("explained"),
        ToolTimeoutError("slow"),
        ToolLostError("unknown"),
        ToolDeniedError("no"),
        ToolCancelledError("stop"),
        KeyError("other"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_retry_repeats_only_safe_failures(error: Exception) -> None:
    """Not repeated: possible side effects, denials, and errors already explained to the model."""
    tool, attempts = failing(1, error)
    with pytest.raises(type(error)):
        await retry(3, backoff=0, on=(OSError, ToolTimeoutError, ToolLostError))(tool).invoke()
    assert attempts == [1]


async def test_an_idempotent_tool_is_repeated_after_a_timeout() -> None:
    """Its author declared that a second call is harmless."""
    tool, attempts = failing(1, ToolTimeoutError("slow"))
    assert await retry(2, backoff=0, idempotent=True, on=ToolTimeoutError)(tool).invoke() == "done"
    assert attempts == [1, 2]


async def test_invalid_arguments_are_never_retried() -> None:
    """They would be invalid again."""
    tool, attempts = failing(0, ValueError())
    async with listen() as events:
        assert "expected" in await retry(3, backoff=0)(tool).on_invoke_tool(None, '{"a": "x"}')
    assert attempts == []
    assert not [event for event in events if isinstance(event, ToolAttemptEvent)]


async def test_policies_nest_and_the_outer_one_sees_errors_of_the_inner_one() -> None:
    """A timeout inside a retry limits each attempt; outside of it, all attempts together."""
    calls: list[int] = []

    @function_tool
    async def tool() -> str:
        calls.append(1)
        if len(calls) < 3:
            await asyncio.Event().wait()
        return "done"

    each = retry(3, backoff=0, on=ToolTimeoutError, idempotent=True)(timeout(0.02)(tool))
    assert await each.invoke() == "done"
    assert repr(each) == "<FunctionTool 'tool' + timeout(0.02) + retry(3)>"
    calls.clear()
    whole = timeout(0.05)(retry(9, backoff=10)(tool))
    with pytest.raises(ToolTimeoutError):
        await whole.invoke()
    assert len(calls) == 1


async def test_max_delay_also_bounds_a_backoff_function() -> None:
    """The documentation of `max_delay` names no exception."""
    tool, attempts = failing(1, OSError("flaky"))
    retried = retry(2, backoff=lambda attempt: 3600, max_delay=0.01)(tool)
    async with listen() as events:
        assert await timeout(30)(retried).invoke() == "done"
    assert attempts == [1, 2]
    assert [event.delay for event in events if isinstance(event, ToolAttemptEvent)] == [0.01]


async def test_a_retry_does_not_wait_past_the_deadline() -> None:
    """No caller would receive the result."""
    tool, attempts = failing(9, OSError("flaky"))
    with pytest.raises(OSError, match="flaky"):
        await timeout(5)(retry(9, backoff=100, max_delay=100)(tool)).invoke()
    assert attempts == [1]


# --- limit


@pytest.mark.requirement("F24")
async def test_a_limit_bounds_running_and_waiting_calls() -> None:
    """Eight calls run, a hundred wait, and further calls are refused at once."""
    release, full = threading.Event(), threading.Event()
    running = 0
    most = 0
    lock = threading.Lock()

    @limit(concurrent=8, queue=100)
    @function_tool
    def tool() -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == 8:
                full.set()
        assert release.wait(10)
        with lock:
            running -= 1
        return "done"

    tasks = [asyncio.create_task(tool.call(None, "{}")) for _ in range(1_000)]
    refused = 0
    for task in asyncio.as_completed(tasks):
        outcome = await task
        refused += outcome.status == "overloaded"
        if refused == 892 and not release.is_set():
            assert await asyncio.to_thread(full.wait, 10)
            release.set()
    statuses = [task.result().status for task in tasks]
    assert statuses.count("ok") == 108
    assert statuses.count("overloaded") == 892
    assert most == 8


async def test_a_cancelled_waiting_call_releases_its_slot() -> None:
    """Otherwise the limit would block all further calls."""
    release = asyncio.Event()

    @limit(concurrent=1)
    @function_tool
    async def tool() -> str:
        await release.wait()
        return "done"

    tasks = [asyncio.create_task(tool.invoke()) for _ in range(4)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[1].cancel()
    await asyncio.sleep(0)
    tasks[2].cancel()
    release.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert results[3] == "done"
    assert await tool.invoke() == "done"


async def test_calls_are_counted_per_run() -> None:
    """Two runs have separate counts, and a call over the limit is denied."""

    @limit(calls=2)
    @function_tool
    async def tool() -> str:
        return "done"

    for run in ("one", "two"):
        statuses = [(await tool.call(ToolContext(run_id=run), "{}")).status for _ in range(3)]
        assert statuses == ["ok", "ok", "denied"]
    with pytest.raises(ToolDeniedError, match="2 times"):
        await tool.invoke(context=ToolContext(run_id="one"))


async def test_starts_are_spaced() -> None:
    """At a hundred per second, the fourth call starts at least 30 milliseconds after the first."""
    starts: list[float] = []

    @limit(per_second=100)
    @function_tool
    async def tool() -> None:
        starts.append(time.monotonic())

    begun = time.monotonic()
    await asyncio.gather(*(tool.invoke() for _ in range(4)))
    assert starts[-1] - begun >= 0.03


async def test_a_limit_applies_across_event_loops() -> None:
    """Synchronous callers run on a loop of their own."""
    together = threading.Barrier(2)
    overlap = False

    @limit(concurrent=1)
    @function_tool
    def tool() -> None:
        nonlocal overlap
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(0.1)
            overlap = True

    await asyncio.gather(asyncio.to_thread(tool.invoke_sync), tool.invoke())
    assert not overlap


@pytest.mark.parametrize("bounds", [{}, {"concurrent": 0}, {"per_second": -1}, {"calls": 0}])
def test_a_limit_needs_a_bound(bounds: dict[str, Any]) -> None:
    """A limit without bounds is a mistake."""
    with pytest.raises(UserError):
        limit(**bounds)


async def test_overloaded_calls_have_started_nothing() -> None:
    """They can therefore be retried."""
    release = asyncio.Event()
    runs: list[int] = []

    @limit(concurrent=1, queue=1)
    @function_tool
    async def tool() -> None:
        runs.append(1)
        await release.wait()

    tasks = [asyncio.create_task(tool.invoke()) for _ in range(2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(ToolOverloadedError, match="was not started"):
        await tool.invoke()
    release.set()
    await asyncio.gather(*tasks)
    assert len(runs) == 2


async def test_an_exclusive_tool_never_overlaps_itself() -> None:
    """The tool is marked as exclusive for the runner."""
    running = 0

    @exclusive()
    @function_tool
    async def tool() -> None:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0)
        running -= 1

    await asyncio.gather(*(tool.invoke() for _ in range(10)))
    assert tool.metadata["agents_tools"]["exclusive"] is True


# --- policies that change the definition


async def test_hidden_arguments_are_set_and_not_shown_to_the_model() -> None:
    """The model neither sees nor sets them."""

    @function_tool
    def tool(city: str, key: str, days: int = 1) -> list[Any]:
        """Ask.

        Args:
            city: Where.
            key: A key.
        """
        return [city, key, days]

    hidden = hide(key="K", days=3)(tool)
    assert list(hidden.params_json_schema["properties"]) == ["city"]
    assert hidden.params_json_schema["required"] == ["city"]
    assert await hidden.invoke(city="x") == ["x", "K", 3]
    with pytest.raises(ModelBehaviorError, match="key: unknown"):
        await hidden.invoke(city="x", key="mine")
    with pytest.raises(ModelBehaviorError, match="city: missing"):
        await hidden.invoke('{"key2": 1}')
    assert list(tool.params_json_schema["properties"]) == ["city", "key", "days"]
    only = hide(city="y")(hidden)
    assert await only.invoke() == ["y", "K", 3]
    with pytest.raises(UserError, match="nowhere"):
        _ = hide(nowhere=1)(tool).params_json_schema


async def test_names_metadata_and_output_limits_can_be_changed() -> None:
    """Each policy returns a copy."""

    @function_tool
    async def tool() -> str:
        return "x" * 100

    changed = truncate(40)(with_metadata(team="a")(rename("other")(tool)))
    assert (changed.name, dict(changed.metadata)) == ("other", {"team": "a"})
    assert len(await changed.on_invoke_tool(None, "{}")) <= 40
    assert len(await changed.invoke()) == 100
    assert tool.name == "tool"
    with pytest.raises(UserError, match="name_override"):
        rename("not a name")
    with pytest.raises(UserError, match="positive"):
        truncate(0)


def test_a_policy_below_the_decorator_is_refused() -> None:
    """It would receive a function instead of a tool."""
    with pytest.raises(UserError, match="above"):
        timeout(1)(lambda: None)  # type: ignore[type-var]


async def test_policies_work_on_hand_made_and_streaming_tools() -> None:
    """The origin of a tool does not matter."""

    async def run(ctx: Any, args: str) -> str:
        return args

    made = FunctionTool(name="made", params_json_schema={"type": "object"}, on_invoke_tool=run)
    assert await retry(2)(timeout(5)(made)).on_invoke_tool(RunContextWrapper(), "x") == "x"

    @limit(concurrent=1)
    @timeout(5)
    @streaming_tool
    async def stream():  # type: ignore[no-untyped-def]
        yield NotifyStreamEvent("x")
        yield "done"

    async with stream.stream() as watching:
        events = [event.type async for event in watching]
    assert watching.result == "done"
    assert "notify_stream_event" in events


def test_a_policy_on_a_method_applies_to_every_instance() -> None:
    """Binding a method retains its policies, and the state belongs to the policy."""

    class Counter:
        def __init__(self) -> None:
            self.count = 0

        @limit(calls=2)
        @function_tool
        def up(self) -> int:
            self.count += 1
            return self.count

    one, two = Counter(), Counter()
    assert [one.up.invoke_sync(), two.up.invoke_sync()] == [1, 1]
    with pytest.raises(ToolDeniedError):
        one.up.invoke_sync()


@pytest.mark.parametrize(
    ("seconds", "named"),
    [
        (10**400, "<integer of about 401 digits>"),
        (10**5000, "<integer of about 5,001 digits>"),
        (float("inf"), "Infinity"),
        (0, "0"),
    ],
    ids=["overflow", "too long to print", "infinite", "zero"],
)
def test_a_time_limit_that_the_loop_cannot_wait_is_refused(seconds: float, named: str) -> None:
    """At the declaration, with the largest value; a call would raise an OverflowError."""
    with pytest.raises(UserError) as caught:
        timeout(seconds)
    assert str(caught.value).endswith(f"number of seconds up to 1e+09, got {named}.")
