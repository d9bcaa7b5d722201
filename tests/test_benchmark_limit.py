"""Test that the by-hand call that calls are measured against keeps the promises of a call."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks import limit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

seen: ContextVar[str] = ContextVar("seen", default="nothing")
TURN = 0.001


async def returns(city: str, days: int) -> str:
    seen.set(city)
    return f"{city} {days}"


async def waits(city: str) -> str:
    seen.set(city)
    await asyncio.sleep(TURN)
    async with asyncio.timeout(5):
        await asyncio.sleep(TURN)
    call = limit.current_call.get()
    return "no call" if call is None else call.name


async def fails(city: str) -> str:
    raise ValueError(city)


async def cancels_itself() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return "done"


async def waits_and_cancels_itself() -> str:
    await asyncio.sleep(TURN)
    return await cancels_itself()


async def test_a_call_returns_an_outcome() -> None:
    outcome = await limit.caller(returns)('{"city": "Rome", "days": 2}')
    assert (outcome.status, outcome.value, outcome.output) == ("ok", "Rome 2", "Rome 2")
    assert (await limit.caller(returns)("{}")).status == "invalid_args"
    outcome = await limit.caller(fails)('{"city": "Rome"}')
    assert (outcome.status, outcome.output) == ("tool_error", "ValueError: Rome")


async def test_context_variables_do_not_reach_the_caller() -> None:
    assert (await limit.caller(waits)('{"city": "Rome"}')).value == "waits"
    assert (seen.get(), limit.current_call.get()) == ("nothing", None)


@pytest.mark.parametrize("function", [cancels_itself, waits_and_cancels_itself])
async def test_a_function_that_cancels_its_task_does_not_cancel_the_caller(
    function: Callable[[], Awaitable[str]],
) -> None:
    assert (await _call(function)).value == "done"
    await asyncio.sleep(TURN)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_cancelled_caller_waits_no_longer_than_the_grace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limit, "GRACE", TURN)
    started, release, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def cleans_up() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()
            ended.set()
        return "never"

    task = asyncio.create_task(_call(cleans_up))
    async with asyncio.timeout(5):
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not ended.is_set()
        release.set()
        await ended.wait()


async def _call(function: Callable[[], Awaitable[str]]) -> limit.Outcome:
    return await limit.caller(function)("{}")
