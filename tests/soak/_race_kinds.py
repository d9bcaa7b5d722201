"""The races: each lets many use one thing at once, and looks at what each of them got."""

from __future__ import annotations

import asyncio
import collections
import itertools
import json
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from random import Random
from typing import Any

from agents_tools import (
    Agent,
    Event,
    NotifyStreamEvent,
    Runner,
    ToolContext,
    ToolRegistry,
    function_tool,
    listen,
    notify,
    streaming_tool,
)
from agents_tools.errors import ToolCancelledError, UserError
from agents_tools.mcp import MCPToolManager, mcp_server
from agents_tools.policies import cache, circuit_breaker, exclusive, limit, timeout
from agents_tools.testing import ScriptedModel, check_events, tool_call
from agents_tools.tool import FunctionTool
from tests.soak._race_crowd import Crowd, hold as _check
from tests.soak._race_streams import readers_of_a_stream

__all__ = ["RACES", "Race"]

Race = Callable[[Random], int]
"""Lets many at one thing, and gives how many calls or events that were."""

_TERMINAL = {"ok", "tool_error", "timeout", "cancelled", "denied", "overloaded", "lost"}


# --- one tool


@function_tool
async def double(n: int) -> int:
    """Double a number, with a turn of the loop in between."""
    notify(f"{n}")
    await asyncio.sleep(0)
    return 2 * n


@function_tool
def double_plain(n: int) -> int:
    """Double a number in a thread."""
    notify(f"{n}")
    return 2 * n


@function_tool
def double_inside(n: int) -> int:
    """Double a number by a call from a thread of the pool."""
    return double.invoke_sync(n=n)


@streaming_tool
async def double_aloud(n: int) -> AsyncGenerator[Any]:
    """Double a number, and say so."""
    yield NotifyStreamEvent(f"{n}")
    await asyncio.sleep(0)
    yield f"{2 * n}"


_TOOLS: tuple[FunctionTool[..., Any], ...] = (double, double_plain, double_inside, double_aloud)


def _texts_of(events: list[Event]) -> set[str]:
    return {str(event.to_dict()["data"]) for event in events if event.type == "notify_stream_event"}


async def _one_call(tool: FunctionTool[..., Any], number: int) -> None:
    events: list[Event] = []
    context = ToolContext(emit=events.append)
    outcome = await tool.call(context, json.dumps({"n": number}))
    _check(outcome.status == "ok", f"{tool.name}({number}) ended as {outcome.status}")
    _check(str(outcome.value) == str(2 * number), f"{tool.name}({number}) gave {outcome.value!r}")
    check_events(events)
    _check(_texts_of(events) <= {f"{number}", f"{2 * number}"}, "a call heard another one")


def one_tool(chance: Random) -> int:
    """Call the same tools from loops and from threads."""
    tools = [chance.choice(_TOOLS) for _ in range(20)]

    async def on_a_loop(first: int) -> None:
        await asyncio.gather(*(_one_call(tool, first + n) for n, tool in enumerate(tools)))

    def in_a_thread(first: int) -> None:
        for number, tool in enumerate(tools, first):
            value = tool.invoke_sync(n=number)
            _check(str(value) == str(2 * number), f"{tool.name}({number}) gave {value!r}")

    crowd = Crowd()
    for place in range(4):
        crowd.loop(lambda place=place: on_a_loop(place * 1_000))
        crowd.thread(lambda place=place: in_a_thread(100_000 + place * 1_000))
    crowd.run()
    return 8 * len(tools)


def from_a_loops_thread(chance: Random) -> int:
    """Call without `await` where a loop runs: in its thread, and in threads that it started."""
    del chance

    async def on_a_loop(first: int) -> None:
        def inside(number: int) -> int:
            return double_inside.invoke_sync(n=number)

        others = [asyncio.to_thread(inside, first + number) for number in range(5)]
        begun = asyncio.gather(*others)
        for number in range(5):
            _check(inside(first + number) == 2 * (first + number), "a call gave another's result")
        _check(await begun == [2 * (first + n) for n in range(5)], "calls gave others' results")

    crowd = Crowd()
    for place in range(4):
        crowd.loop(lambda place=place: on_a_loop(place * 1_000))
    crowd.run()
    return 40


# --- policies


def places_of_a_limit(chance: Random) -> int:
    """Share a limit between loops and threads, and cancel some of those that wait."""
    inside = 0
    most = 0
    lock = threading.Lock()

    async def body(n: int) -> int:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        try:
            await asyncio.sleep(0.0005 * (n % 3))
        finally:
            with lock:
                inside -= 1
        return 2 * n

    policy = chance.choice([limit(concurrent=2, queue=1_000), exclusive()])
    allowed = 2 if "limit" in repr(policy) else 1
    tool = policy(function_tool(body))
    times = [chance.random() * 0.004 for _ in range(30)]

    async def on_a_loop() -> None:
        tasks = [asyncio.ensure_future(tool.call(None, f'{{"n": {n}}}')) for n in range(30)]
        for number, (task, pause) in enumerate(zip(tasks, times, strict=True)):
            if number % 3 == 0:
                asyncio.get_running_loop().call_later(pause, task.cancel)
        await asyncio.wait(tasks)
        for number, task in enumerate(tasks):
            if not task.cancelled():
                _check(task.result().value == 2 * number, f"{number} ended as {task.result()!r}")

    crowd = Crowd()
    for _ in range(3):
        crowd.loop(on_a_loop)
    crowd.thread(lambda: [tool.invoke_sync(n=n) for n in range(10)])
    crowd.run()
    _check(most <= allowed, f"{most} calls ran at once where {allowed} may")
    return 100


def results_of_a_cache(chance: Random) -> int:
    """Share a cache between loops and threads; some who run the body for others are cancelled."""
    made: collections.Counter[int] = collections.Counter()

    async def body(n: int) -> dict[str, int]:
        made[n] += 1
        await asyncio.sleep(0.001)
        return {"double": 2 * n}

    tool = cache(None, max_entries=10, shared=True)(function_tool(body))
    keys = [chance.randrange(20) for _ in range(30)]

    async def on_a_loop() -> None:
        tasks = [asyncio.ensure_future(tool.call(None, f'{{"n": {n}}}')) for n in keys]
        await asyncio.sleep(0)
        for task in tasks[::7]:
            task.cancel()
        await asyncio.wait(tasks)
        for number, task in zip(keys, tasks, strict=True):
            if not task.cancelled():
                outcome = task.result()
                _check(outcome.status == "ok", f"{number} ended as {outcome.status}")
                _check(outcome.value == {"double": 2 * number}, f"{number} got {outcome.value}")

    crowd = Crowd()
    for _ in range(4):
        crowd.loop(on_a_loop)
    crowd.thread(lambda: [tool.invoke_sync(n=n) for n in keys])
    crowd.run()
    return 5 * len(keys)


def turns_of_a_breaker(chance: Random) -> int:
    """Share a circuit breaker whose service is down for a while, and comes back."""
    down = threading.Event()
    down.set()

    async def body(n: int) -> int:
        await asyncio.sleep(0)
        if down.is_set():
            raise ConnectionError("no answer")
        return 2 * n

    tool = circuit_breaker(3, reset_after=0.01)(function_tool(body))
    pause = chance.random() * 0.02

    async def on_a_loop(*, heals: bool) -> None:
        seen: set[str] = set()
        for number in range(20):
            seen.add((await tool.call(None, f'{{"n": {number}}}')).status)
        _check(seen <= {"tool_error", "overloaded", "ok"}, f"calls ended as {seen}")
        if heals:
            await asyncio.sleep(pause)
            down.clear()
        while (await tool.call(None, '{"n": 1}')).status != "ok":  # noqa: ASYNC110 - until let in
            await asyncio.sleep(0.005)

    crowd = Crowd()
    for place in range(4):
        crowd.loop(lambda place=place: on_a_loop(heals=place == 0))
    crowd.run()
    return 100


# --- registries


def names_of_a_registry(chance: Random) -> int:
    """Register and unregister while others look up, list and follow changes."""
    registry = ToolRegistry()
    registry.register("always", double)
    told: list[tuple[str, ...]] = []
    registry.subscribe(lambda change: told.append(change.added))
    over = threading.Event()
    won: list[int] = []

    def owner(place: int) -> None:
        for number in range(15):
            name = f"tool_{place}_{number}"
            registry.register(name, double)
            _check(registry.get_tool(name) is not None, f"{name} is not there after register")
            with suppress(UserError):
                registry.register(f"shared_{number}", double)
                won.append(number)
            if chance.random() < 0.5:
                forget = registry.subscribe(lambda change: None)
                forget()
            _check(registry.unregister(name), f"{name} is not there at unregister")
            _check(registry.get_tool(name) is None, f"{name} is there after unregister")

    def reader() -> None:
        while not over.is_set():
            _check("always" in registry.get_tool_names(), "what stays was missing")
            _check(registry.resolve("always"), "what stays was not resolved")
            names = registry.get_tool_names()
            _check(len(names) == len(set(names)), f"names twice: {names}")
            registry.get_tool_specs()

    crowd = Crowd()
    owners = [threading.Event() for _ in range(4)]

    def working(place: int) -> None:
        try:
            owner(place)
        finally:
            owners[place].set()
            if all(one.is_set() for one in owners):
                over.set()

    for place in range(4):
        crowd.thread(lambda place=place: working(place))
        crowd.thread(reader)
    crowd.run()
    _check(sorted(won) == list(range(15)), f"a name was given to several: {sorted(won)}")
    _check(sum("tool_" in name for names in told for name in names) == 60, "changes were not told")
    return 60


# --- listeners


def hearers_of_calls(chance: Random) -> int:
    """Listen in many places at once: each hears its own calls."""
    del chance

    async def on_a_loop(number: int) -> None:
        for _ in range(5):
            with listen() as heard:
                await asyncio.gather(*(double.call(None, f'{{"n": {number}}}') for _ in range(3)))
                await asyncio.to_thread(double_plain.invoke_sync, n=number)
            events = [event async for event in heard]
            _check(_texts_of(events) == {f"{number}"}, "a listener heard another's calls")
            ends = [event for event in events if event.type == "tool_stream_end_event"]
            _check(len(ends) == 4, f"of 4 calls {len(ends)} ends were heard")

    crowd = Crowd()
    for place in range(4):
        crowd.loop(lambda place=place: on_a_loop(place))
    crowd.run()
    return 80


# --- ends


def cancel_against_finish(chance: Random) -> int:
    """Cancel calls about when they end: each has one end, told once."""

    def work(n: int, ctx: ToolContext) -> int:
        for _ in range(n % 50):
            ctx.check()
        return 2 * n

    plain = function_tool(work)
    overdue = timeout(0.002)(plain)
    plan = [(chance.random() * 0.003, chance.choice([plain, overdue, *_TOOLS])) for _ in range(40)]

    async def on_a_loop() -> None:
        loop = asyncio.get_running_loop()

        async def one(number: int, pause: float, tool: FunctionTool[..., Any]) -> None:
            events: list[Event] = []
            context = ToolContext(emit=events.append)
            task = asyncio.ensure_future(tool.call(context, f'{{"n": {number}}}'))
            loop.call_later(pause, task.cancel)
            await asyncio.wait([task])
            if not task.cancelled():
                outcome = task.result()
                _check(outcome.status in _TERMINAL, f"a call ended as {outcome.status}")
                _check(
                    outcome.status != "ok" or str(outcome.value) == str(2 * number), "not its own"
                )
            if events:
                check_events(events)

        await asyncio.gather(*(one(number, *case) for number, case in enumerate(plan)))

    crowd = Crowd()
    for _ in range(3):
        crowd.loop(on_a_loop)
    crowd.run()
    return 3 * len(plan)


def stop_of_a_run(chance: Random) -> int:
    """Stop watched runs from other threads, about when they end."""
    pauses = [chance.random() * 0.01 for _ in range(5)]

    async def on_a_loop() -> None:
        for pause in pauses:
            steps = [tool_call("double", n=2), tool_call("double_plain", n=3), "Done."]
            agent = Agent("a", tools=[double, double_plain], model=ScriptedModel(steps))
            events: list[Event] = []
            async with Runner.run_streamed(agent, "Go.") as streamed:
                timer = threading.Timer(pause, streamed.cancel)
                timer.start()
                with suppress(asyncio.CancelledError, ToolCancelledError):
                    async for event in streamed.stream_events():
                        events.append(event)  # noqa: PERF401 - kept when it is cancelled
                timer.cancel()
                await asyncio.to_thread(timer.join)
            check_events(events)

    crowd = Crowd()
    for _ in range(3):
        crowd.loop(on_a_loop)
    crowd.run()
    return 3 * len(pauses)


def close_of_a_manager(chance: Random) -> int:
    """Call tools of a server from loops and threads while it is removed, or all is closed."""
    pause = chance.random() * 0.02
    ready = threading.Event()
    leaving = threading.Event()
    over = threading.Event()
    at_work = itertools.count(1)
    tools: dict[str, FunctionTool[..., Any]] = {}
    calls = itertools.count()

    async def owner() -> None:
        async with MCPToolManager() as manager:
            server: Any = mcp_server([double, double_plain])._server.server
            await manager.add_server("other", server=server)
            tools.update({str(tool.origin.wire_name): tool for tool in manager.get_tools()})
            ready.set()
            await asyncio.sleep(pause)
            leaving.set()
            if pause < 0.01:
                await manager.remove_server("other")
        await asyncio.to_thread(over.wait, 30)  # a loop that ends leaves what it was just told

    async def caller(first: int) -> None:
        await asyncio.to_thread(ready.wait, 30)
        for number in range(first, first + 15):
            next(calls)
            was_leaving = leaving.is_set()
            outcome = await tools["double"].call(None, f'{{"n": {number}}}')
            if outcome.status == "ok":
                _check(outcome.value.structured == 2 * number, f"got {outcome.value}")
            else:
                told = {"tool_error", "lost", "cancelled", "timeout"}
                _check(outcome.status in told, f"a call ended as {outcome.status}")
                gone = was_leaving or leaving.is_set()
                _check(gone, f"a call of a server that is there ended as {outcome.status}")

    async def working(first: int) -> None:
        try:
            await caller(first)
        finally:
            if next(at_work) == 3:
                over.set()

    def in_a_thread() -> None:
        ready.wait(30)
        with suppress(Exception):
            for number in range(15):
                tools["double_plain"].invoke_sync(n=number)

    crowd = Crowd()
    crowd.loop(owner)
    for place in range(3):
        crowd.loop(lambda place=place: working(place * 100))
    crowd.thread(in_a_thread)
    crowd.run()
    return next(calls) + 15


RACES: dict[str, Race] = {
    "one tool from loops and threads": one_tool,
    "calls from a loop's own thread": from_a_loops_thread,
    "places of a limit": places_of_a_limit,
    "results of a cache": results_of_a_cache,
    "turns of a circuit breaker": turns_of_a_breaker,
    "names of a registry": names_of_a_registry,
    "readers of an event stream": readers_of_a_stream,
    "listeners": hearers_of_calls,
    "cancel against finish": cancel_against_finish,
    "stop of a streamed run": stop_of_a_run,
    "close of an MCP manager": close_of_a_manager,
}
