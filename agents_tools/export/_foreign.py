"""What the adapters share: an agent of another framework, driven as a tool."""

from __future__ import annotations

import contextlib
import json
import uuid
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from agents_tools._agent_tool import Hearing, extracted, tool_of_agent
from agents_tools._channel import listeners
from agents_tools.context import RunScope, ToolContext
from agents_tools.errors import ToolError
from agents_tools.events import (
    NotifyStreamEvent,
    RunFinishedEvent,
    RunStartedEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.events import CallStatus, Event
    from agents_tools.tool import FunctionTool

__all__ = ["Answer", "CallBegan", "CallEnded", "Said", "Told", "arguments_of", "foreign_tool"]


@dataclass(frozen=True, slots=True)
class Told:
    """The agent writes: a piece of text, or with `whole` something of its own.

    Attributes:
        text: What.
        whole: Whether it stands by itself.
    """

    text: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class CallBegan:
    """A tool of the agent's begins.

    Attributes:
        call_id: The id of the call.
        name: The tool.
        arguments: Its arguments.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A tool of the agent's has answered.

    Attributes:
        call_id: The id of the call.
        failed: Whether it failed.
    """

    call_id: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The agent is done.

    Attributes:
        output: Its final output.
        result: The framework's own result, for a `custom_output_extractor`.
        usage: What it used.
    """

    output: Any
    result: Any
    usage: Usage


Said: TypeAlias = Told | CallBegan | CallEnded | Answer
"""What an adapter makes of what a framework tells."""


def foreign_tool(
    agent: str,
    run: Callable[[str, ToolContext[Any]], AsyncGenerator[Said]],
    *,
    tool_name: str | None,
    tool_description: str | None,
    streaming: bool,
    enable_bracketing: bool,
    custom_output_extractor: Callable[[Any], Any] | None,
    is_enabled: Any,
    parameters: Any,
    on_stream: Callable[[Event], Any] | None,
    failure_error_function: Any,
) -> FunctionTool[..., Any]:
    """Make a tool of an agent of another framework; see `Agent.as_tool` for what is meant.

    Args:
        agent: The name of the agent.
        run: Gives the agent a task and gives what it says, an `Answer` last. It is closed on
            every way out.
        tool_name: What models call the tool.
        tool_description: What models are told about it.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the framework's result.
        is_enabled: Whether agents offer it.
        parameters: The type of its input.
        on_stream: Called with each event from inside.
        failure_error_function: What the model is told when the agent fails.
    """

    async def perform(context: ToolContext[Any], task: str) -> Any:
        async with Hearing(on_stream, agent) as sinks:
            voice = _Voice(agent, context, sinks, streaming=streaming)
            async with contextlib.aclosing(run(task, context)) as said:
                answer = await voice.follow(said)
        if context.usage is not None:
            context.usage.add(answer.usage)
        return await extracted(custom_output_extractor, answer.result, answer.output)

    return tool_of_agent(
        agent,
        perform,
        tool_name=tool_name,
        tool_description=tool_description,
        parameters=parameters,
        is_enabled=is_enabled,
        enable_bracketing=enable_bracketing,
        failure_error_function=failure_error_function,
    )


class _Voice:
    """Says in our events what happens inside."""

    def __init__(
        self, agent: str, context: ToolContext[Any], sinks: tuple[Any, ...], *, streaming: bool
    ) -> None:
        heard = (context.sinks if streaming else listeners()) + sinks
        self._agent = agent
        self._scope: RunScope[Any] = RunScope(
            context.context,
            agent=agent,
            run_id=f"run_{uuid.uuid4().hex}",
            usage=Usage(),
            sinks=tuple(dict.fromkeys(heard)),
            channel=context.channel if streaming else None,
            parent=context,
            deadline=context.deadline,
            asker=None,
            run=None,
        )
        self._calls: dict[str, ToolContext[Any]] = {}

    async def follow(self, said: AsyncGenerator[Said]) -> Answer:
        """Tell what is said, to the answer."""
        scope, status = self._scope, "cancelled"
        answer: Answer | None = None
        scope.emit(RunStartedEvent(run_id=scope.run_id, agent=self._agent))
        try:
            async for one in said:
                match one:
                    case Told():
                        scope.emit(NotifyStreamEvent(one.text, is_delta=not one.whole))
                    case CallBegan():
                        self._begin(one)
                    case CallEnded():
                        self._end(one.call_id, "tool_error" if one.failed else "ok")
                    case Answer():
                        answer = one
            status = "ok"
        except Exception:
            status = "error"
            raise
        finally:
            for call_id in list(self._calls):
                self._end(call_id, "cancelled" if status == "cancelled" else "lost")
            usage = None if answer is None else answer.usage.to_dict()
            scope.close(RunFinishedEvent(status=status, usage=usage))
        if answer is None:
            raise ToolError(f"Agent {self._agent!r} ended without an answer.")
        return answer

    def _begin(self, call: CallBegan) -> None:
        if call.call_id in self._calls:
            return
        fresh: ToolContext[Any] = ToolContext(
            tool_name=call.name, tool_call_id=call.call_id, parent=self._scope
        )
        context = ToolContext.enter(fresh, call.name, "")
        context.sinks = self._scope.sinks
        started = perf_counter()

        def end(status: CallStatus) -> Event:
            return ToolStreamEndEvent(status=status, duration=perf_counter() - started)

        context.begin(ToolStreamStartEvent(input_args=call.arguments), end)
        self._calls[call.call_id] = context

    def _end(self, call_id: str, status: CallStatus) -> None:
        context = self._calls.pop(call_id, None)
        if context is not None:
            context.end(status)


def arguments_of(given: Any) -> dict[str, Any]:
    """Give arguments as a dictionary, whatever form a framework has them in."""
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}")
        except ValueError:
            return {"": given}
    return cast("dict[str, Any]", given if isinstance(given, dict) else {"": given})
