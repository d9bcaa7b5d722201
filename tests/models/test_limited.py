"""Limits on requests to models that agents and runs share."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import Agent, RunConfig, Runner
from agents_tools.agents import ModelRequest, ModelResponse
from agents_tools.concurrency import limiter
from agents_tools.content import MessageOutputItem, Usage
from agents_tools.errors import ModelError, UserError
from agents_tools.models.limited import LimitedModel, RequestLimit
from agents_tools.models.openai_chat import OpenAIChatModel
from agents_tools.testing import ScriptedModel
from tests.waiting import comes

if TYPE_CHECKING:
    from agents_tools.events import Emit

WITHIN = 30


class Slow:
    """A model whose requests end when the test lets them.

    Attributes:
        running: The names of the agents whose requests run.
        started: The names in the order in which the requests started.
    """

    name = "slow"

    def __init__(self) -> None:
        self.running = list[str]()
        self.started = list[str]()
        self.ends: dict[str, asyncio.Event] = {}

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        self.started.append(request.agent)
        self.running.append(request.agent)
        try:
            await self.ends.setdefault(request.agent, asyncio.Event()).wait()
        finally:
            self.running.remove(request.agent)
        return ModelResponse(items=[MessageOutputItem(text=request.agent)], usage=Usage(requests=1))

    def end(self, name: str) -> None:
        self.ends.setdefault(name, asyncio.Event()).set()


async def idle() -> None:
    """Let all tasks continue until they wait."""
    for _ in range(200):
        await asyncio.sleep(0)


async def test_agents_and_runs_share_a_limit_in_the_order_of_their_requests() -> None:
    """The limit is that of the account, however many models and runs use it."""
    slow, limit = Slow(), RequestLimit(concurrent=2)
    models = [LimitedModel(slow, limit), LimitedModel(slow, limit)]
    tasks: list[asyncio.Task[Any]] = []
    for number in range(6):
        agent = Agent(f"a{number}", model=models[number % 2])
        tasks.append(asyncio.create_task(Runner.run(agent, "go")))
        await idle()
    assert slow.running == ["a0", "a1"]
    slow.end("a1")
    await comes(lambda: slow.started == ["a0", "a1", "a2"])
    tasks[3].cancel()  # waits
    tasks[0].cancel()  # runs
    await comes(lambda: slow.started == ["a0", "a1", "a2", "a4"])
    await idle()
    assert slow.running == ["a2", "a4"]
    for number in (2, 4, 5):
        slow.end(f"a{number}")
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), WITHIN)
    assert [getattr(one, "final_output", None) for one in results] == [
        None,
        "a1",
        "a2",
        None,
        "a4",
        "a5",
    ]
    assert slow.started == ["a0", "a1", "a2", "a4", "a5"]


async def test_a_request_that_is_retried_holds_no_place_during_the_delay() -> None:
    """A delay can be long, and other agents can use the time."""
    limit = RequestLimit(concurrent=1)
    failing = ScriptedModel([ModelError("busy", retryable=True, retry_after=60)])
    waiting = Runner.run_streamed(Agent("Waiting", model=LimitedModel(failing, limit)), "go")
    await comes(lambda: failing.requests)
    other = Agent("Other", model=LimitedModel(ScriptedModel(["done"]), limit))
    result = await asyncio.wait_for(Runner.run(other, "go"), WITHIN)
    assert result.final_output == "done"
    waiting.cancel()


async def test_event_loops_of_several_threads_share_a_limit() -> None:
    """Synchronous programs run each agent in a loop of its own."""
    limit, lock = RequestLimit(concurrent=3), threading.Lock()
    running, most, begun = 0, 0, 0
    together = threading.Barrier(3)

    class Counting:
        async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
            nonlocal running, most, begun
            with lock:
                begun, running = begun + 1, running + 1
                most = max(most, running)
                is_first = begun <= together.parties
            if is_first:  # all three places are used at once
                await asyncio.to_thread(together.wait, WITHIN)
            with lock:
                running -= 1
            return ModelResponse(items=[MessageOutputItem(text="x")])

    agent = Agent("A", model=LimitedModel(Counting(), limit))

    def work() -> None:
        for _ in range(5):
            assert Runner.run_sync(agent, "go").final_output == "x"

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    await asyncio.to_thread(lambda: [thread.join(WITHIN) for thread in threads])
    assert not any(thread.is_alive() for thread in threads)
    assert most == 3


async def test_requests_per_minute_are_spaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a pause, a burst can start at once."""
    now, waits = 1_000.0, list[float]()

    async def sleep(seconds: float) -> None:
        nonlocal now
        waits.append(round(seconds, 6))
        now += seconds

    monkeypatch.setattr(limiter, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(asyncio, "sleep", sleep)
    limit = RequestLimit(per_minute=120, burst=3)
    model = LimitedModel(ScriptedModel(["x"] * 6), limit)
    for _ in range(6):
        await model.respond(ModelRequest(input=[]), lambda event: None)
    assert waits == [0.5, 0.5, 0.5]
    now += 60
    await limit.__aenter__()
    assert len(waits) == 3


async def test_a_cancelled_request_gives_its_start_time_back() -> None:
    """Otherwise each cancelled run would delay the others."""
    limit = RequestLimit(per_minute=0.01)
    model = LimitedModel(ScriptedModel(["first", "second"]), limit)
    await Runner.run(Agent("A", model=model), "go")
    waiting = [asyncio.create_task(Runner.run(Agent("A", model=model), "go")) for _ in range(2)]
    await idle()
    times = limit._limiter._rate
    assert times is not None
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert len(times._freed) == 2


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "has no limit"),
        ({"concurrent": 0}, "concurrent"),
        ({"concurrent": 1.5}, "concurrent"),
        ({"per_minute": -1}, "per_minute"),
        ({"per_minute": 60, "burst": True}, "burst"),
    ],
)
def test_invalid_limits_are_refused(options: dict[str, Any], match: str) -> None:
    """A limit of zero would wait forever."""
    with pytest.raises(UserError, match=match):
        RequestLimit(**options)


def test_a_limited_model_has_the_attributes_of_its_model() -> None:
    """The format of the tools and the price depend on them."""
    model = LimitedModel("openai-chat/gpt-5", RequestLimit(concurrent=1))
    assert (model.provider, model.name) == ("openai_chat", "gpt-5")
    assert model.base_url == "https://api.openai.com/v1"
    assert repr(model) == "LimitedModel(OpenAIChatModel('gpt-5'))"
    assert isinstance(OpenAIChatModel("gpt-5"), type(model._model))
    with pytest.raises(AttributeError):
        _ = model.color
    with pytest.raises(UserError, match="is not a model"):
        LimitedModel(5, RequestLimit(concurrent=1))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="expected a RequestLimit, got 4"):
        LimitedModel("openai-chat/gpt-5", 4)  # type: ignore[arg-type]
    assert RunConfig(model=model).model is model
