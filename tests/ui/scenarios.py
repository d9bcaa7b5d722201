"""Runs of every kind, offline, for the tests of all user interfaces."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from agents_tools import (
    Agent,
    Event,
    MessageOutputItem,
    ModelRequest,
    ModelResponse,
    NotifyStreamEvent,
    ReasoningItem,
    RunConfig,
    Runner,
    RunResultStreaming,
    ToolContext,
    ToolError,
    ToolOutputImage,
    ToolOutputText,
    ToolProgressEvent,
    artifact,
    function_tool,
    progress,
    streaming_tool,
)
from agents_tools.agents import call_delta, call_started, message_started, text_delta
from agents_tools.content import ToolCallItem
from agents_tools.errors import ModelError
from agents_tools.events import Emit
from agents_tools.policies import background, needs_approval
from agents_tools.testing import ScriptedModel, tool_call

__all__ = ["LONG", "SCENARIOS", "Scenario", "decided_events_of", "events_of", "watched"]

AT_MOST = 15.0
DELTAS = 10_000
LONG = "0123456789" * (DELTAS // 10)
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

Status = Literal["ok", "interrupted", "cancelled", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run, as something to watch.

    Attributes:
        name: What it is called.
        make: Makes the agent; to be called for each run, for its model's script is used up.
        input: What the agent is asked.
        max_turns: How often its model may answer.
        ends: How the run ends.
        text: What the agent has said in the end: the texts of its messages, in order, as its
            model wrote them.
        calls: The ids of the calls of the agent itself, in order.
        cancel_at: Whether the run is to be cancelled at this event.
        approve: For a run that waits for a person: what that person says, and then
            `text_after` is what the agent says when it goes on.
        text_after: See `approve`.
    """

    name: str
    make: Callable[[], Agent[Any, Any]]
    input: str = "Go."
    max_turns: int = 10
    ends: Status = "ok"
    text: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    cancel_at: Callable[[Event], bool] | None = None
    approve: bool | None = None
    text_after: tuple[str, ...] = ()


async def events_of(scenario: Scenario) -> list[Event]:
    """Run a scenario, and return its events up to the end or the first wait."""
    events, _ = await watched(scenario)
    return events


async def decided_events_of(scenario: Scenario) -> tuple[list[Event], list[Event]]:
    """Run a scenario with an approval, and return the events before and after the decision."""
    before, run = await watched(scenario)
    state = run.to_state()
    for item in state.interruptions:
        if scenario.approve:
            state.approve(item)
        else:
            state.reject(item, "not today")
    agent = run.last_agent
    async with asyncio.timeout(AT_MOST):
        after = [event async for event in Runner.run_streamed(agent, state).stream_events()]
    return before, after


async def watched(scenario: Scenario) -> tuple[list[Event], RunResultStreaming]:
    """Run a scenario, and return its events and the run."""
    events: list[Event] = []
    run = Runner.run_streamed(
        scenario.make(),
        scenario.input,
        max_turns=scenario.max_turns,
        run_config=RunConfig(model_retries=2, retry_backoff=0.0),
    )
    async with asyncio.timeout(AT_MOST):
        with suppress(Exception):  # the last event has the exception of the run
            async for event in run.stream_events():
                events.append(event)
                if scenario.cancel_at is not None and scenario.cancel_at(event):
                    run.cancel()
    return events, run


# --- tools


@function_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@streaming_tool
async def crawl(url: str):
    """Read a page, telling how far it is, and keep a copy."""
    yield NotifyStreamEvent(data=f"Reading {url}", tag="http")
    for page in range(1, 4):
        progress(page, 3, f"page {page}")
        yield NotifyStreamEvent(data=f"line {page} ", is_delta=True)
    artifact("page.html", "<p>Hello</p>", mime_type="text/html")
    yield f"Read {url}."


@streaming_tool(enable_bracketing=False)
async def murmur(x: int):
    """Say little, and neither when it begins nor when it ends."""
    progress(1, 2, "half")
    yield f"murmur {x}"


@function_tool
def broken(x: int) -> str:
    """Fail."""
    raise ToolError(f"no {x} today")


@function_tool
async def picture(context: ToolContext[Any]) -> list[Any]:
    """Give a picture with a caption."""
    context.artifact("pixel.png", PIXEL, mime_type="image/png")
    return [
        ToolOutputText(text="A pixel."),
        ToolOutputImage(data=PIXEL, mime_type="image/png"),
    ]


@function_tool
async def wait_for_ever(context: ToolContext[Any]) -> str:
    """Say that it waits, and wait."""
    context.progress(1, 2, "waiting")
    await asyncio.Event().wait()
    return "never"


@needs_approval()
@function_tool
async def drop(table: str) -> str:
    """Drop a table."""
    return f"{table} is gone"


def _is_waiting(event: Event) -> bool:
    return isinstance(event, ToolProgressEvent) and event.message == "waiting"


# --- models with special behaviour


class WholeModel(ScriptedModel):
    """Returns whole answers and streams nothing."""

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Return the next answer."""
        del emit
        return await super().respond(request, lambda _: None)


class PatientModel(ScriptedModel):
    """Yields to other tasks while it streams, so that no events are dropped."""

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Return the next answer, letter by letter."""
        said: list[Event] = []
        response = await super().respond(request, said.append)
        for count, event in enumerate(said):
            emit(event)
            if count % 100 == 0:
                await asyncio.sleep(0)
        return response


class FlakyModel:
    """Breaks off in the middle of its first answer, and then answers normally."""

    def __init__(self, answer: str) -> None:
        self._answer = answer
        self._asked = 0

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Return half an answer first, then a whole one."""
        del request
        self._asked += 1
        emit(message_started())
        if self._asked == 1:
            emit(text_delta("Half of what "))
            emit(call_started("call_lost", "add"))
            emit(call_delta("call_lost", '{"a": '))
            raise ModelError("The connection broke.", retryable=True)
        emit(text_delta(self._answer))
        return ModelResponse(items=[MessageOutputItem(text=self._answer)], finish_reason="stop")


# --- agents


def _agent(
    *steps: Any, tools: Sequence[Any] = (), name: str = "helper", **options: Any
) -> Agent[Any, Any]:
    return Agent(name, model=ScriptedModel(steps, **options), tools=list(tools))


def _call(name: str, call_id: str, **arguments: Any) -> ToolCallItem:
    return tool_call(name, arguments, call_id=call_id)


def _nested() -> Agent[Any, Any]:
    """Return nested agents as tools, three levels deep; each one counts its own calls."""
    leaf = _agent(_call("crawl", "call_1", url="a"), "leaf says", tools=[crawl], name="leaf")
    middle = _agent(
        [_call("ask_leaf", "call_1", input="deep"), _call("add", "call_2", a=1, b=2)],
        "middle says",
        tools=[
            leaf.as_tool(tool_name="ask_leaf", tool_description="Ask leaf.", streaming=True),
            add,
        ],
        name="middle",
    )
    return _agent(
        ["I ask. ", _call("ask_middle", "call_1", input="hi")],
        "top says",
        tools=[
            middle.as_tool(tool_name="ask_middle", tool_description="Ask middle.", streaming=True)
        ],
        name="top",
    )


def _nested_cancelled() -> Agent[Any, Any]:
    leaf = _agent(_call("wait_for_ever", "call_1"), tools=[wait_for_ever], name="leaf")
    tool = leaf.as_tool(tool_name="ask_leaf", tool_description="Ask leaf.", streaming=True)
    return _agent(_call("ask_leaf", "call_1", input="deep"), tools=[tool], name="top")


def _nested_approval() -> Agent[Any, Any]:
    leaf = _agent(_call("drop", "call_1", table="t"), "leaf dropped", tools=[drop], name="leaf")
    tool = leaf.as_tool(tool_name="ask_leaf", tool_description="Ask leaf.", streaming=True)
    return _agent(
        _call("ask_leaf", "call_1", input="deep"), "top is done", tools=[tool], name="top"
    )


def _without_brackets() -> Agent[Any, Any]:
    return _agent(_call("murmur", "call_1", x=1), "ok then", tools=[murmur])


def _approval() -> Agent[Any, Any]:
    return _agent(
        [_call("add", "call_1", a=1, b=2), _call("drop", "call_2", table="t")],
        "Dealt with.",
        tools=[add, drop],
    )


def _background() -> Agent[Any, Any]:
    """Return an agent that goes on to speak while its call runs."""
    has_spoken = asyncio.Event()

    @background()
    @function_tool
    async def report(context: ToolContext[Any], about: str) -> str:
        """Write a report."""
        context.progress(1, 2, "reading")
        await has_spoken.wait()
        context.progress(2, 2, "writing")
        return f"all about {about}"

    def speak(_: ModelRequest) -> str:
        has_spoken.set()
        return "I have begun."

    steps = (_call("report", "call_1", about="tea"), speak, "Here it is.")
    return _agent(*steps, tools=[report])


_PARALLEL = (
    [
        _call("crawl", "call_1", url="a"),
        _call("crawl", "call_2", url="b"),
        _call("add", "call_3", a=1, b=2),
    ],
    "All three.",
)

SCENARIOS: dict[str, Scenario] = {
    one.name: one
    for one in (
        Scenario(
            name="plain",
            make=lambda: _agent("Hello there, this is a whole sentence."),
            text=("Hello there, this is a whole sentence.",),
        ),
        Scenario(
            name="whole",
            make=lambda: Agent(
                "helper",
                model=WholeModel(
                    [
                        [ReasoningItem(text="Hm."), _call("add", "call_1", a=1, b=2)],
                        "It is 3.",
                    ]
                ),
                tools=[add],
            ),
            text=("It is 3.",),
            calls=("call_1",),
        ),
        Scenario(
            name="tool",
            make=lambda: _agent(
                ["I look. ", _call("crawl", "call_1", url="a")], "Looked.", tools=[crawl]
            ),
            text=("I look. ", "Looked."),
            calls=("call_1",),
        ),
        Scenario(
            name="parallel",
            make=lambda: _agent(*_PARALLEL, tools=[crawl, add]),
            text=("All three.",),
            calls=("call_1", "call_2", "call_3"),
        ),
        Scenario(
            name="background",
            make=_background,
            text=("I have begun.", "Here it is."),
            calls=("call_1",),
        ),
        Scenario(name="nested", make=_nested, text=("I ask. ", "top says"), calls=("call_1",)),
        Scenario(
            name="without_brackets",
            make=_without_brackets,
            text=("ok then",),
            calls=("call_1",),
        ),
        Scenario(
            name="tool_error",
            make=lambda: _agent(
                [_call("broken", "call_1", x=1), _call("add", "call_2", a="one", b=2)],
                "It did not work.",
                tools=[broken, add],
            ),
            text=("It did not work.",),
            calls=("call_1", "call_2"),
        ),
        Scenario(
            name="model_fails",
            make=lambda: _agent(
                _call("add", "call_1", a=1, b=2), ModelError("The model is gone."), tools=[add]
            ),
            ends="error",
            calls=("call_1",),
        ),
        Scenario(
            name="max_turns",
            make=lambda: _agent(
                *(_call("add", f"call_{turn}", a=turn, b=2) for turn in (1, 2)), tools=[add]
            ),
            max_turns=2,
            ends="error",
            calls=("call_1", "call_2"),
        ),
        Scenario(
            name="retry",
            make=lambda: Agent("helper", model=FlakyModel("At last a whole answer.")),
            text=("At last a whole answer.",),
        ),
        Scenario(
            name="cancel",
            make=lambda: _agent(
                [_call("wait_for_ever", "call_1"), _call("crawl", "call_2", url="a")],
                tools=[wait_for_ever, crawl],
            ),
            ends="cancelled",
            calls=("call_1", "call_2"),
            cancel_at=_is_waiting,
        ),
        Scenario(
            name="nested_cancel",
            make=_nested_cancelled,
            ends="cancelled",
            calls=("call_1",),
            cancel_at=_is_waiting,
        ),
        Scenario(
            name="approve",
            make=_approval,
            ends="interrupted",
            calls=("call_1", "call_2"),
            approve=True,
            text_after=("Dealt with.",),
        ),
        Scenario(
            name="reject",
            make=_approval,
            ends="interrupted",
            calls=("call_1", "call_2"),
            approve=False,
            text_after=("Dealt with.",),
        ),
        Scenario(
            name="nested_approve",
            make=_nested_approval,
            ends="interrupted",
            calls=("call_1",),
            approve=True,
            text_after=("top is done",),
        ),
        Scenario(
            name="deltas",
            make=lambda: Agent("helper", model=PatientModel([LONG], piece=1)),
            text=(LONG,),
        ),
        Scenario(
            name="slow_reader",
            make=lambda: _agent(LONG, piece=1),
            text=(LONG,),
        ),
        Scenario(
            name="reasoning",
            make=lambda: _agent(
                [ReasoningItem(text="Let me think about this for a while."), "Thought about it."]
            ),
            text=("Thought about it.",),
        ),
        Scenario(
            name="multimodal",
            make=lambda: _agent(_call("picture", "call_1"), "See.", tools=[picture]),
            text=("See.",),
            calls=("call_1",),
        ),
        Scenario(
            name="hostile_text",
            make=lambda: _agent(
                [
                    "\x1b[31mred\x1b[0m\r\n line \u2028",
                    _call("crawl", "call_1", url="\x1b]0;x"),
                ],
                "data: done\n\n: no",
                tools=[crawl],
            ),
            text=("\x1b[31mred\x1b[0m\r\n line \u2028", "data: done\n\n: no"),
            calls=("call_1",),
        ),
    )
}
