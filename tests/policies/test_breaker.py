"""Circuit breaker: a failing service is not called until it works again."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from agents_tools import (
    NotifyStreamEvent,
    ToolDeniedError,
    ToolTimeoutError,
    UserError,
    function_tool,
    listen,
)
from agents_tools.errors import ToolLostError, ToolOverloadedError
from agents_tools.policies import circuit_breaker, retry


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("agents_tools.policies._breaker.time.monotonic", clock)
    return clock


class Service:
    """A tool of a service with an adjustable error."""

    def __init__(self, **options: Any) -> None:
        self.error: BaseException | None = ConnectionError("refused")
        self.calls = 0
        self.hold: asyncio.Event | None = None
        self.entered = asyncio.Semaphore(0)

        @circuit_breaker(3, **options)
        @function_tool
        async def ask(question: str = "") -> str:
            del question
            self.calls += 1
            self.entered.release()
            error, hold = self.error, self.hold
            if hold is not None:
                await hold.wait()
            if error is not None:
                raise error
            return "answer"

        self.tool = ask

    async def ask(self) -> str:
        return (await self.tool.call(None, "{}")).status

    async def fail(self, times: int) -> None:
        for _ in range(times):
            assert await self.ask() != "ok"


async def test_consecutive_failures_open_the_circuit(clock: Clock) -> None:
    """The service gets no calls, and the model reads what to do."""
    service = Service()
    async with listen() as events:
        await service.fail(3)
    outcome = await service.tool.call(None, "{}")
    assert (outcome.status, service.calls) == ("overloaded", 3)
    assert outcome.output == (
        "Tool 'ask' is unavailable: its last 3 calls failed (ConnectionError). The call was not "
        "started. Try again in about 30 s, or continue without it."
    )
    clock.now += 29
    assert await service.ask() == "overloaded"
    warnings = [event for event in events if isinstance(event, NotifyStreamEvent)]
    assert [event.level for event in warnings] == ["warning"]


async def test_one_call_probes_the_service_and_closes_the_circuit(clock: Clock) -> None:
    """After a success, all calls pass."""
    service = Service()
    await service.fail(3)
    clock.now += 30
    service.error = None
    assert [await service.ask() for _ in range(3)] == ["ok"] * 3


async def test_a_failed_probe_opens_the_circuit_again(clock: Clock) -> None:
    """One failure is enough then."""
    service = Service()
    await service.fail(3)
    clock.now += 30
    assert [await service.ask() for _ in range(3)] == ["tool_error", "overloaded", "overloaded"]
    clock.now += 30
    service.error = None
    assert await service.ask() == "ok"


async def test_only_one_of_many_concurrent_calls_is_the_probe(clock: Clock) -> None:
    """A recovering service must not be flooded."""
    service = Service()
    await service.fail(3)
    clock.now += 30
    service.error, service.hold = None, asyncio.Event()
    calls = [asyncio.create_task(service.ask()) for _ in range(10)]
    await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    service.hold.set()
    assert sorted(await asyncio.gather(*calls)) == ["ok"] + ["overloaded"] * 9
    assert service.calls == 4


async def test_a_cancelled_probe_lets_another_call_probe(clock: Clock) -> None:
    """Otherwise the circuit would stay open forever."""
    service = Service()
    await service.fail(3)
    clock.now += 30
    service.error, service.hold = None, asyncio.Event()
    tries = asyncio.create_task(service.ask())
    for _ in range(4):
        await asyncio.wait_for(service.entered.acquire(), 5)
    tries.cancel()
    with pytest.raises(asyncio.CancelledError):
        await tries
    service.hold = None
    assert await service.ask() == "ok"


async def test_a_hanging_probe_does_not_block_other_probes(clock: Clock) -> None:
    """After another reset time, the next call probes."""
    service = Service()
    await service.fail(3)
    clock.now += 30
    service.error, service.hold = None, asyncio.Event()
    hanging = asyncio.create_task(service.ask())
    for _ in range(4):
        await asyncio.wait_for(service.entered.acquire(), 5)
    assert "in a moment" in str((await service.tool.call(None, "{}")).output)
    service.hold, stuck = None, service.hold
    clock.now += 29
    assert await service.ask() == "overloaded"
    clock.now += 1
    assert [await service.ask(), await service.ask()] == ["ok", "ok"]
    stuck.set()
    assert await hanging == "ok"


async def test_late_results_from_before_the_opening_do_not_count(clock: Clock) -> None:
    """A call that started before the failure says nothing about the current state."""
    service = Service()
    service.hold, service.error = asyncio.Event(), None
    late_success = asyncio.create_task(service.ask())
    await asyncio.wait_for(service.entered.acquire(), 5)
    service.error = ConnectionError("late")
    late_failure = asyncio.create_task(service.ask())
    await asyncio.wait_for(service.entered.acquire(), 5)
    hold, service.hold = service.hold, None
    service.error = ConnectionError("refused")
    await service.fail(3)
    hold.set()
    assert await late_success == "ok"
    assert await service.ask() == "overloaded"
    clock.now += 30
    service.error = None
    assert await service.ask() == "ok"
    await late_failure
    assert await service.ask() == "ok"


@pytest.mark.parametrize(
    "error", [ValueError("no such page"), ToolDeniedError("no"), ToolOverloadedError("full")]
)
async def test_other_errors_do_not_open_the_circuit(error: Exception) -> None:
    """A `ValueError` of the tool is an answer; a refusal proves nothing."""
    service = Service()
    service.error = error
    await service.fail(10)
    assert service.calls == 10


async def test_a_success_resets_the_failure_count() -> None:
    """Only consecutive failures count, and an error of the tool itself is an answer."""
    service = Service()
    for answer in (None, ValueError("no such page")):
        await service.fail(2)
        service.error = answer
        await service.ask()
        service.error = ConnectionError("refused")
    await service.fail(2)
    assert service.calls == 8


@pytest.mark.parametrize(
    "error", [TimeoutError(), ToolTimeoutError("late"), ToolLostError("gone"), BrokenPipeError()]
)
async def test_infrastructure_errors_open_the_circuit(error: Exception) -> None:
    """Lost connections, timeouts and lost calls."""
    service = Service()
    service.error = error
    await service.fail(3)
    assert await service.ask() == "overloaded"
    assert service.calls == 3


async def test_invalid_arguments_do_not_count() -> None:
    """They never reach the service."""
    service = Service(on=Exception)
    for _ in range(5):
        assert (await service.tool.call(None, '{"question": 1}')).status == "invalid_args"
    service.error = None
    assert await service.ask() == "ok"


async def test_the_counted_errors_can_be_configured() -> None:
    """By classes, or by a function of the error."""
    service = Service(on=lambda error: "503" in str(error))
    service.error = RuntimeError("404")
    await service.fail(5)
    service.error = RuntimeError("503")
    await service.fail(3)
    assert await service.ask() == "overloaded"


async def test_tools_of_one_service_can_share_a_breaker() -> None:
    """A failure of one tool also counts for the other."""
    shared = circuit_breaker(1)

    @shared
    @function_tool
    async def one() -> str:
        raise ConnectionError

    @shared
    @function_tool
    async def other() -> str:
        return "fine"

    await one.call(None, "{}")
    assert (await other.call(None, "{}")).status == "overloaded"


async def test_a_probe_can_call_the_service_in_nested_calls(clock: Clock) -> None:
    """They are part of the probe."""
    shared = circuit_breaker(1, reset_after=5)
    broken = True

    @shared
    @function_tool
    async def inner() -> str:
        if broken:
            raise ConnectionError
        return "fine"

    @shared
    @function_tool
    async def outer() -> str:
        return await inner.invoke()

    await inner.call(None, "{}")
    clock.now += 5
    broken = False
    assert await outer.invoke() == "fine"


async def test_a_circuit_without_an_end_stays_open() -> None:
    """The rejection has no time at which the model can try again."""
    service = Service(reset_after=math.inf)
    for _ in range(3):
        await service.tool.call(None, "{}")
    outcome = await service.tool.call(None, "{}")
    assert outcome.status == "overloaded"
    assert str(outcome.output).endswith("The call was not started. Continue without it.")


async def test_retries_stop_at_an_open_circuit() -> None:
    """Each attempt counts, and none reaches a failing service."""
    service = Service()
    service.tool = retry(10, backoff=0)(service.tool)
    outcome = await service.tool.call(None, "{}")
    assert (outcome.status, service.calls) == ("overloaded", 3)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((0,), {}),
        ((1,), {"reset_after": 0}),
        ((1,), {"on": "all"}),
        ((1,), {"on": lambda: True}),
        ((1,), {"on": asyncio.sleep}),
    ],
)
def test_invalid_breaker_options_are_refused(arguments: Any, options: dict[str, Any]) -> None:
    """At construction."""
    with pytest.raises(UserError, match="circuit_breaker"):
        circuit_breaker(*arguments, **options)
