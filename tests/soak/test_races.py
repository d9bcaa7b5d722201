"""The race campaign: it has no findings, finds planted bugs, and regressions are tested."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import EventStream, function_tool
from agents_tools.concurrency import limiter
from agents_tools.errors import ToolOverloadedError
from agents_tools.mcp import MCPToolManager, mcp_server
from agents_tools.policies import _breaker
from agents_tools.tool import FunctionTool
from tests.soak import _race_crowd, races
from tests.soak._race_kinds import RACES
from tests.soak.campaign import Budget, Finding

if TYPE_CHECKING:
    from collections.abc import Generator

_PATIENCE = 20.0


def _found(*names: str, seconds: float = 2.0) -> list[Finding]:
    chosen = {name: RACES[name] for name in names} or RACES
    return races.run(Budget(seconds=seconds, seed=7), chosen).findings


def test_the_campaign_has_no_findings() -> None:
    """Each race runs at least once if there is time."""
    outcome = races.run(Budget(seconds=1, seed=7))

    assert outcome.findings == []
    assert outcome.cases > 0


def test_starvation_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A breaker that never closes again rejects all calls; the time limit detects it."""
    enter = _breaker._Breaker.enter
    tripped: list[bool] = []

    def for_ever(self: Any, context: Any) -> Any:
        if tripped:
            raise ToolOverloadedError("The service is out of order.")
        try:
            return enter(self, context)
        except ToolOverloadedError:
            tripped.append(True)
            raise

    monkeypatch.setattr(_breaker._Breaker, "enter", for_ever)
    monkeypatch.setattr(_race_crowd, "WITHIN", 1.0)

    [finding] = _found("turns of a circuit breaker")

    assert "StuckError" in finding.what
    assert "waited for ever" in finding.what
    assert 'RACES["turns of a circuit breaker"]' in finding.reproduce


def test_an_exceeded_concurrency_limit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of concurrent calls is counted inside the tool."""
    enter = limiter.Limiter._take_slot_or_queue

    def too_generous(self: Any, *args: Any) -> Any:
        self._free += 1
        return enter(self, *args)

    monkeypatch.setattr(limiter.Limiter, "_take_slot_or_queue", too_generous)

    [finding] = _found("places of a limit")

    assert "calls ran at once where" in finding.what


def test_a_missed_event_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every event with an id must reach each subscriber that started before it."""
    publish = EventStream.publish
    turn = itertools.count()

    def forgetful(self: EventStream, event: Any) -> Any:
        if next(turn) == 60:
            return event.replace(id=100_000)
        return publish(self, event)

    monkeypatch.setattr(EventStream, "publish", forgetful)

    [finding] = _found("readers of an event stream")

    assert "RaceError" in finding.what


def test_a_result_of_another_call_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call has a unique number, and knows its expected result."""
    call = FunctionTool.call
    turn = itertools.count()

    async def mixed_up(self: Any, ctx: Any, args_json: str) -> Any:
        other = args_json if next(turn) % 50 else '{"n": 5}'
        return await call(self, ctx, other)

    monkeypatch.setattr(FunctionTool, "call", mixed_up)

    assert _found("one tool from loops and threads")
    assert _found("results of a cache")


# --- bugs that the campaign has found


@pytest.fixture
def other_loop() -> Generator[asyncio.AbstractEventLoop]:
    """Yield a loop that runs in its own thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join(_PATIENCE)
    loop.close()


@pytest.mark.requirement("F44")
async def test_a_call_continues_if_the_other_loop_stops_before_running_it(
    other_loop: asyncio.AbstractEventLoop,
) -> None:
    """A loop drops callbacks that were scheduled just before it stopped; the call then runs here."""
    manager = MCPToolManager()
    server: Any = mcp_server([function_tool(_double)])._server.server
    adding = manager.add_server("other", server=server)
    [tool] = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(adding, other_loop))
    entered, opened = threading.Event(), threading.Event()

    def stand_still_then_stop() -> None:
        entered.set()
        opened.wait(_PATIENCE)
        other_loop.stop()

    other_loop.call_soon_threadsafe(stand_still_then_stop)
    await asyncio.to_thread(entered.wait, _PATIENCE)
    async with asyncio.timeout(_PATIENCE):
        call = asyncio.ensure_future(tool.call(None, '{"n": 2}'))
        await asyncio.sleep(0)  # it waits for the other loop now
        opened.set()
        outcome = await call
        await manager.cleanup()

    assert (outcome.status, outcome.value.structured) == ("ok", 4)


def test_a_slot_is_not_lost_if_a_loop_closes_during_the_handover(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A loop can be closed after `is_closed` was checked: the next waiter gets the slot."""
    gate = limiter.Limiter(1, None, 10)
    other = asyncio.new_event_loop()

    async def take() -> Any:
        return gate._take_slot_or_queue()

    assert other.run_until_complete(take()) is None, "the slot was free"
    assert other.run_until_complete(take()) is not None, "the next call has to wait"
    other.close()
    with monkeypatch.context() as lying:
        lying.setattr(other, "is_closed", lambda: False)
        gate.release()

    assert asyncio.run(take()) is None, "the slot is free again"


async def _double(n: int) -> int:
    """Double a number."""
    return 2 * n
