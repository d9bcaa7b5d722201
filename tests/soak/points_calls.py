"""Single calls of tools, for faults at each of their awaits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

from agents_tools import ToolContext, function_tool, notify, streaming_tool
from agents_tools.events import NotifyStreamEvent
from agents_tools.tool.context import call_of
from tests.soak.points_stage import Scenario, Stage, together

__all__ = ["CALLS", "both_ways", "slow_tool"]


def slow_tool(stage: Stage, **more: Any) -> Any:
    """Make an async tool that waits twice and has something to clean up."""

    @function_tool(**more)
    async def slow(text: str) -> str:
        """Wait, and give the text back."""
        with stage.inside("slow"):
            await stage.at("body", body=True)
            notify("half of it")
            try:
                await stage.at("body", body=True)
            finally:
                await asyncio.sleep(0)
            return text

    return slow


def both_ways(name: str, play: Callable[[Stage], Awaitable[Any]], **more: Any) -> list[Scenario]:
    """Create a scenario without a subscriber, and one with a subscriber."""
    deaf = Scenario(name=name, play=play, **more)
    return [deaf, replace(deaf, name=f"{name}, heard", heard=True)]


async def _repeat(stage: Stage) -> None:
    assert await stage.kept["tool"].invoke(text="x") is not None


def _invoked(make: Callable[[Stage], Any]) -> Callable[[Stage], Awaitable[Any]]:
    async def play(stage: Stage) -> None:
        tool = stage.kept["tool"] = make(stage)
        outcome = await tool.call(None, '{"text": "x"}')
        stage.kept["outcome"] = outcome

    return play


def _threaded(stage: Stage) -> Any:
    @function_tool
    def blocking(text: str) -> str:
        """Work in a thread."""
        with stage.inside("blocking"):
            stage.hit("body", body=True)
            return text

    return blocking


def _failing(stage: Stage) -> Any:
    async def told(_: Any, error: Exception) -> str:
        await stage.at("failure function")
        return f"it broke: {type(error).__name__}"

    @function_tool(failure_error_function=told)
    async def failing(text: str) -> str:
        """Fail, but for one text."""
        with stage.inside("failing"):
            await stage.at("body", body=True)
            if stage.trip.at or len(stage.trip.places) < 3:
                raise ValueError(text)
            return text

    return failing


def _nesting(stage: Stage) -> Any:
    inner = slow_tool(stage)

    @function_tool
    async def outer(text: str) -> str:
        """Call two tools at once."""
        with stage.inside("outer"):
            async with asyncio.TaskGroup() as group:
                first = group.create_task(inner.invoke(text=text))
                second = group.create_task(inner.invoke(text="y"))
            await stage.at("body", body=True)
            return first.result() + second.result()

    return outer


def _generating(stage: Stage) -> Any:
    @streaming_tool
    async def lines(text: str) -> AsyncGenerator[Any]:
        """Say three lines."""
        with stage.inside("lines"):
            for number in range(3):
                await stage.at("body", body=True)
                yield NotifyStreamEvent(f"line {number}")
            yield text

    return lines


def _generating_in_a_thread(stage: Stage) -> Any:
    @streaming_tool
    def lines(text: str) -> Iterator[Any]:
        """Say three lines."""
        with stage.inside("lines"):
            for number in range(3):
                stage.hit("body", body=True)
                yield NotifyStreamEvent(f"line {number}")
            yield text

    return lines


def _streamed(make: Callable[[Stage], Any]) -> Callable[[Stage], Awaitable[Any]]:
    async def play(stage: Stage) -> None:
        tool = stage.kept["tool"] = make(stage)
        async with tool.stream(text="x") as stream:
            async for _ in stream:
                await stage.at("reader")

    return play


def _left_early(make: Callable[[Stage], Any]) -> Callable[[Stage], Awaitable[Any]]:
    async def play(stage: Stage) -> None:
        tool = stage.kept["tool"] = make(stage)
        async with tool.stream(text="x") as stream:
            async for _ in stream:
                await stage.at("reader")
                break

    return play


async def _asking(stage: Stage) -> None:
    @function_tool
    async def asking(context: ToolContext[Any], text: str) -> str:
        """Ask a person."""
        with stage.inside("asking"):
            return text + await context.ask("Which?")

    async def answer(_: Any) -> str:
        await stage.at("asker")
        return "this"

    stage.kept["tool"] = asking
    context = ToolContext(None)
    call_of(context).asker = answer
    await asking.call(context, '{"text": "x"}')


async def _threads_at_once(stage: Stage) -> None:
    """Two threads that wait for each other, so that both run when one of them is struck."""
    barrier = threading.Barrier(2, timeout=0.1)

    @function_tool
    def meet(text: str) -> str:
        """Meet the other one."""
        with stage.inside("meet"):
            if text != "alone":
                barrier.wait()
            stage.hit("body", body=True)
            return text

    stage.kept["tool"] = meet
    await together(*(meet.call(None, '{"text": "x"}') for _ in range(2)))


async def _meet_again(stage: Stage) -> None:
    assert await stage.kept["tool"].invoke(text="alone") == "alone"


CALLS: list[Scenario] = [
    *both_ways("async call", _invoked(slow_tool), again=_repeat),
    *both_ways("call in a thread", _invoked(_threaded), again=_repeat),
    *both_ways("failing call", _invoked(_failing)),
    *both_ways("nested calls", _invoked(_nesting), again=_repeat),
    *both_ways("generator", _invoked(_generating), again=_repeat),
    *both_ways("generator in a thread", _invoked(_generating_in_a_thread), again=_repeat),
    *both_ways("stream of a call", _streamed(slow_tool), again=_repeat),
    *both_ways("stream of a generator", _streamed(_generating), again=_repeat),
    *both_ways("stream of a thread", _streamed(_generating_in_a_thread), again=_repeat),
    *both_ways("stream that is left early", _left_early(_generating), again=_repeat),
    *both_ways(
        "stream of a thread left early", _left_early(_generating_in_a_thread), again=_repeat
    ),
    *both_ways("call that asks", _asking),
    *both_ways("two threads at once", _threads_at_once, again=_meet_again),
]
