"""Calls of every kind, to be made very often: each says how many it made, and looks at each end."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from agents_tools import (
    Agent,
    Event,
    EventStream,
    FunctionTool,
    MessageEvent,
    NotifyStreamEvent,
    Runner,
    ToolContext,
    ToolError,
    ToolRegistry,
    Toolset,
    function_tool,
    listen,
    notify,
    register_secret,
    streaming_tool,
)
from agents_tools.policies import (
    cache,
    circuit_breaker,
    limit,
    redact,
    retry,
    timeout,
    truncate,
)
from agents_tools.testing import ScriptedModel, check_events, tool_call
from agents_tools.text import forget_secret

__all__ = ["CALLS", "BrokenError", "Kind"]

_TOGETHER = 50
_WITHIN = 30.0
_MANY = 400


class BrokenError(AssertionError):
    """A call did not end as it has to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of call.

    Attributes:
        name: What it is called in the report.
        run: Makes so many calls; raises `BrokenError` when one does not end as it has to.
        least: How many calls make a batch worth measuring.
        max_seconds: The time of such a batch on a slow machine.
        most: How many bytes may stay per call: no more than noise.
    """

    name: str
    run: Callable[[int], Awaitable[None]]
    least: int = 200
    max_seconds: float = 0.2
    most: float = 24.0


# --- what is called


@function_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    notify("adding")
    return a + b


@function_tool
def add_plain(a: int, b: int) -> int:
    """Add two numbers, in a thread."""
    return a + b


@streaming_tool
async def count(to: int) -> AsyncGenerator[Any]:
    """Count aloud."""
    for number in range(to):
        yield NotifyStreamEvent(f"{number}")
    yield "counted"


@function_tool
async def fail(how: str) -> str:
    """Fail in one way or the other."""
    if how == "told":
        raise ToolError("There is no such city.")
    raise LookupError("inside")


@function_tool
async def wait() -> str:
    """Wait for ever, with a cleanup that waits as well."""
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
    return "never"


@function_tool
async def nest(a: int) -> int:
    """Call another tool."""
    return await add.invoke(a=a, b=1)


_flaky_turn = iter(range(1 << 62))


@retry(3, on=ToolError, backoff=0)
@limit(concurrent=8)
@redact("hunter2")
@truncate(10_000)
@timeout(30)
@cache(0.01, max_entries=16)
@circuit_breaker(1 << 30)
@function_tool
async def careful(a: int) -> str:
    """Go through many policies, and fail now and then."""
    if next(_flaky_turn) % 5 == 0:
        raise ToolError("Try again.")
    return f"{a} hunter2"


overdue = timeout(0.001)(wait)


def _checked(status: str, expected: str) -> None:
    if status != expected:
        raise BrokenError(f"a call ended as {status!r}, not as {expected!r}")


async def _all(made: list[Awaitable[Any]]) -> list[Any]:
    async with asyncio.timeout(_WITHIN):
        return await asyncio.gather(*made)


def _one_by_one(
    tool: FunctionTool[..., Any],
    arguments: dict[str, Any],
    status: str = "ok",
    *,
    heard: bool = False,
) -> Callable[[int], Awaitable[None]]:
    """Call a tool repeatedly, with or without a subscriber to its events."""
    text = json.dumps(arguments)

    async def calls(times: int) -> None:
        for _ in range(times):
            events: list[Event] = []
            context = ToolContext(emit=events.append) if heard else None
            _checked((await tool.call(context, text)).status, status)
            if heard:
                check_events(events)

    return calls


def _together(
    tool: FunctionTool[..., Any], text: str, status: str
) -> Callable[[int], Awaitable[None]]:
    async def calls(times: int) -> None:
        for begun in range(0, times, _TOGETHER):
            many = min(_TOGETHER, times - begun)
            for outcome in await _all([tool.call(None, text) for _ in range(many)]):
                _checked(outcome.status, status)

    return calls


async def cancelled(times: int) -> None:
    """Cancel calls after none, one or a few turns of the loop."""
    chance = Random(times)  # noqa: S311 - no secret
    for _ in range(times):
        tool, text = chance.choice([(wait, "{}"), (nest, '{"a": 1}'), (count, '{"to": 9}')])
        task = asyncio.ensure_future(tool.call(None, text))
        for _ in range(chance.randrange(5)):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            _checked((await task).status, "ok")


async def left_early(times: int) -> None:
    """Leave the block of a stream before its end."""
    for _ in range(times):
        async with count.stream(to=9) as stream:
            async for _ in stream:
                break


async def abandoned(times: int) -> None:
    """Let calls in threads be overdue, and their functions end later."""
    for begun in range(0, times, 20):
        many = min(20, times - begun)
        opened = threading.Event()
        tool = timeout(0.02)(function_tool(_holding(opened)))
        for outcome in await _all([tool.call(None, "{}") for _ in range(many)]):
            _checked(outcome.status, "timeout")
        opened.set()


def _holding(opened: threading.Event) -> Callable[[], bool]:
    def hold() -> bool:
        return opened.wait(_WITHIN)

    return hold


async def from_threads(times: int) -> None:
    """Call from threads without a loop, which come and go."""

    def work(calls: int) -> None:
        for number in range(calls):
            if add.invoke_sync(a=number, b=1) != number + 1:
                raise BrokenError("a call from a thread gave the result of another")

    for begun in range(0, times, 40):
        many = [10] * (min(40, times - begun) // 10)
        threads = [threading.Thread(target=work, args=(calls,)) for calls in many]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join, _WITHIN)


async def from_loops(times: int) -> None:
    """Call from event loops that come and go, as `asyncio.run` makes them."""

    async def some() -> None:
        for tool in (add, add_plain, careful):
            await tool.call(None, '{"a": 1, "b": 2}' if tool is not careful else '{"a": 1}')
        async with count.stream(to=3) as stream:
            async for _ in stream:
                pass
        await overdue.call(None, "{}")

    for _ in range(0, times, 5):
        await asyncio.to_thread(asyncio.run, some())


async def defined(times: int) -> None:
    """Define tools, wrap and export them, and let them go."""
    for number in range(times):

        def made(a: int, b: str = "x") -> str:
            """Return a text.

            Args:
                a: How often.
                b: What.
            """
            return b * a

        tool = timeout(5)(function_tool(name_override=f"made_{number % 7}")(made))
        registry = ToolRegistry()
        registry.register(tool)
        registry.get_tool_specs("openai_chat")
        outcome = await next(iter(Toolset([tool]))).call(None, '{"a": 2}')
        _checked(outcome.status, "ok")


async def runs(times: int) -> None:
    """Run agents inside agents."""
    for _ in range(times):
        inner = ScriptedModel([tool_call("add", a=1, b=2), "Three."])
        helper = Agent("Helper", tools=[add, fail], model=inner)
        outer = ScriptedModel([tool_call("helper", input="?"), tool_call("fail", how="told"), "3"])
        boss = Agent("Boss", tools=[helper.as_tool(tool_name="helper"), fail], model=outer)
        result = await Runner.run(boss, "What is 1 + 2?")
        if result.final_output != "3":
            raise BrokenError(f"a run gave {result.final_output!r}")


async def streamed_runs(times: int) -> None:
    """Watch runs to their end, or leave them in the middle."""
    for number in range(times):
        model = ScriptedModel([tool_call("count", to=3), tool_call("wait"), "Done."])
        agent = Agent("Watched", tools=[count, add, wait], model=model)
        async with Runner.run_streamed(agent, "Go.") as streamed:
            async for event in streamed.stream_events():
                if event.type == "tool_stream_start_event" and number % 3 == 0:
                    streamed.cancel()
                elif event.type == "tool_stream_end_event":
                    break


async def listened(times: int) -> None:
    """Listen to the calls of a block."""
    for _ in range(times):
        async with asyncio.timeout(_WITHIN):
            with listen() as heard:
                await add.call(None, '{"a": 1, "b": 2}')
            if not [event async for event in heard]:
                raise BrokenError("nothing was heard of a call")


async def published(times: int) -> None:
    """Publish to subscribers that come and go, in threads and on the loop."""
    for begun in range(0, times, _MANY):
        many = min(_MANY, times - begun)
        seen: list[int] = []
        async with asyncio.timeout(_WITHIN), EventStream(window=100) as stream:
            stream.subscribe("thread", _noting(seen))
            follower = stream.follow()
            for number in range(many):
                await stream.send(MessageEvent(f"{number}"))
                if number % 20 == 0:
                    stream.subscribe("brief", _heard, f"{number}")
                if number % 20 == 10:
                    stream.unsubscribe("brief", f"{number - 10}")
        followed = [event.id async for event in follower]
        if seen != list(range(many)) or followed[-1] != many - 1:
            raise BrokenError(f"of {many} events a subscriber saw {len(seen)}")


def _noting(seen: list[int]) -> Callable[[Event], None]:
    def note(event: Event) -> None:
        seen.append(event.id)

    return note


async def _heard(event: Event) -> None:
    del event


async def secrets(times: int) -> None:
    """Register secrets, and forget them."""
    for number in range(times):
        secret = f"canary-{number}-7f3a9c"
        register_secret(secret)
        await add.call(None, '{"a": 1, "b": 2}')
        forget_secret(secret)


CALLS: tuple[Kind, ...] = (
    Kind(name="async", run=_one_by_one(add, {"a": 1, "b": 2})),
    Kind(name="async, with a subscriber", run=_one_by_one(add, {"a": 1, "b": 2}, heard=True)),
    Kind(name="in a thread", run=_one_by_one(add_plain, {"a": 1, "b": 2})),
    Kind(name="streaming", run=_one_by_one(count, {"to": 3}, heard=True)),
    Kind(name="nested", run=_one_by_one(nest, {"a": 1}, heard=True)),
    Kind(name="expected failure", run=_one_by_one(fail, {"how": "told"}, "tool_error")),
    Kind(name="crash", run=_one_by_one(fail, {"how": "odd"}, "tool_error")),
    Kind(name="bad arguments", run=_one_by_one(add, {"a": "x"}, "invalid_args")),
    Kind(name="many policies", run=_one_by_one(careful, {"a": 1})),
    Kind(name="cancelled", run=cancelled),
    Kind(name="stream left early", run=left_early),
    Kind(name="timed out", run=_together(overdue, "{}", "timeout")),
    Kind(name="abandoned in a thread", run=abandoned, max_seconds=0.5),
    Kind(name="from threads", run=from_threads),
    Kind(name="from loops that end", run=from_loops, max_seconds=0.5),
    Kind(name="tools defined and dropped", run=defined, max_seconds=0.5),
    Kind(name="runs of agents in agents", run=runs, least=50, max_seconds=0.5, most=64),
    Kind(name="streamed runs", run=streamed_runs, least=50, max_seconds=0.5, most=64),
    Kind(name="listeners", run=listened),
    Kind(name="events published", run=published, least=_MANY),
    Kind(name="secrets registered", run=secrets, least=50),
)
