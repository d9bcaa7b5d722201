"""What the adapters share: an agent of another framework, driven as a tool."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from agents_tools._agent_tool import Hearing, extracted, tool_of_agent
from agents_tools._channel import listeners
from agents_tools.context import RunScope, ToolContext, enter_scope, leave_scope
from agents_tools.errors import ToolDeniedError, ToolError
from agents_tools.events import (
    Event,
    NotifyStreamEvent,
    RunFinishedEvent,
    RunStartedEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.outputs import UnserializableOutput, to_json
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.events import CallStatus
    from agents_tools.tool import FunctionTool

__all__ = [
    "Answer",
    "CallBegan",
    "CallEnded",
    "Said",
    "Told",
    "Waits",
    "arguments_of",
    "claimed",
    "custom",
    "foreign_tool",
    "shown",
]


@dataclass(frozen=True, slots=True)
class Told:
    """The agent writes: a piece of text, or with `whole` something of its own.

    Attributes:
        text: What.
        whole: Whether it stands by itself.
        tag: What kind of thing it is, in the framework's words.
        call_id: The call that says it; the agent itself by default.
    """

    text: str
    whole: bool = False
    tag: str | None = None
    call_id: str | None = None


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
    """

    output: Any
    result: Any


@dataclass(frozen=True, slots=True)
class Waits:
    """The agent stopped without an answer, because a person has to decide something.

    Attributes:
        what: What for.
    """

    what: str


Said: TypeAlias = Told | CallBegan | CallEnded | Event | Answer | Waits
"""What an adapter makes of what a framework tells."""


def foreign_tool(
    agent: str,
    run: Callable[[str, ToolContext[Any], Usage], AsyncGenerator[Said]],
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
        run: Gives the agent a task and gives what it says, an `Answer` or `Waits` last. It is
            closed on every way out, and counts what the agent used on every one of them.
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
        used = Usage()
        try:
            async with Hearing(on_stream, agent) as sinks:
                voice = _Voice(agent, context, sinks, used, streaming=streaming)
                async with contextlib.aclosing(run(task, context, used)) as said:
                    answer = await voice.follow(said)
        finally:
            for usage in _usages(context):
                usage.add(used)
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


def _usages(context: ToolContext[Any]) -> list[Usage]:
    """Give where to count: in the run that the call is made in, and in all runs around that."""
    scope = context.scope
    if scope is not None:
        return cast("list[Usage]", scope.run.usages)
    return [] if context.usage is None else [context.usage]


class _Voice:
    """Says in our events what happens inside."""

    def __init__(
        self,
        agent: str,
        context: ToolContext[Any],
        sinks: tuple[Any, ...],
        used: Usage,
        *,
        streaming: bool,
    ) -> None:
        heard = (context.sinks if streaming else listeners()) + sinks
        self._agent = agent
        self._used = used
        self._scope: RunScope[Any] = RunScope(
            context.context,
            agent=agent,
            run_id=f"run_{uuid.uuid4().hex}",
            usage=used,
            sinks=tuple(dict.fromkeys(heard)),
            channel=context.channel if streaming else None,
            parent=context,
            deadline=context.deadline,
            asker=None,
            run=None,
        )
        # What our own tools say inside is heard by whoever hears the agent, and by nobody else.
        self._inside = context.again(context.attempt)
        self._inside.sinks = self._scope.sinks
        self._claims: set[str] = set()
        self._calls: dict[str, ToolContext[Any]] = {}
        self._times: dict[str, int] = {}

    async def follow(self, said: AsyncGenerator[Said]) -> Answer:
        """Tell what is said, to the answer."""
        scope, status, told = self._scope, "cancelled", None
        last: Answer | Waits | None = None
        scope.emit(RunStartedEvent(run_id=scope.run_id, agent=self._agent))
        token = enter_scope(self._inside)
        claims = _claims.set(self._claims)
        try:
            async for one in said:
                match one:
                    case Answer() | Waits():
                        last = one
                    case _:
                        self._tell(one)
            status = "interrupted" if isinstance(last, Waits) else "ok"
        except Exception as error:
            status, told = "error", f"{type(error).__name__}: {error}"
            raise
        finally:
            leave_scope(token)
            with contextlib.suppress(ValueError):  # closed from elsewhere, as the scope may be
                _claims.reset(claims)
            for call_id in list(self._calls):
                self._end(call_id, _LEFT.get(status, "lost"))
            scope.close(RunFinishedEvent(status=status, usage=self._used.to_dict(), error=told))
        if isinstance(last, Waits):
            raise ToolDeniedError(
                f"Agent {self._agent!r} waits for {last.what}, and nobody can be asked where it "
                "was called."
            )
        if last is None:
            raise ToolError(f"Agent {self._agent!r} ended without an answer.")
        return last

    def _tell(self, one: Told | CallBegan | CallEnded | Event) -> None:
        match one:
            case Told(text=""):
                pass
            case Told():
                voice = self._calls.get(one.call_id or "", self._scope)
                voice.emit(NotifyStreamEvent(one.text, is_delta=not one.whole, tag=one.tag))
            case CallBegan():
                self._begin(one)
            case CallEnded():
                self._end(one.call_id, "tool_error" if one.failed else "ok")
            case _:
                self._scope.emit(one)

    def _begin(self, call: CallBegan) -> None:
        if call.call_id in self._calls or not _claim(self._claims, call.call_id):
            return
        times = self._times[call.call_id] = self._times.get(call.call_id, 0) + 1
        # Some servers use an id again in the next turn; a call has one start and one end.
        call_id = call.call_id if times == 1 else f"{call.call_id}_{times}"
        fresh: ToolContext[Any] = ToolContext(
            tool_name=call.name, tool_call_id=call_id, parent=self._scope
        )
        context = ToolContext.enter(fresh, call.name, "")
        context.sinks = self._scope.sinks
        started = perf_counter()

        def end(status: CallStatus) -> Event:
            return ToolStreamEndEvent(status=status, duration=perf_counter() - started)

        context.begin(ToolStreamStartEvent(input_args=call.arguments), end)
        self._calls[call.call_id] = context

    def _end(self, call_id: str, status: CallStatus) -> None:
        self._claims.discard(call_id)
        context = self._calls.pop(call_id, None)
        if context is not None:
            context.end(status)


_claims: ContextVar[set[str] | None] = ContextVar("agents_tools_foreign_calls", default=None)


def claimed(call_id: str | None) -> bool:
    """Tell whether whoever asks is the first to say that this call begins.

    A tool of ours inside an agent of another framework says so itself, and so does the agent.
    """
    claims = _claims.get()
    return claims is None or call_id is None or _claim(claims, call_id)


def _claim(claims: set[str], call_id: str) -> bool:
    if call_id in claims:
        return False
    claims.add(call_id)
    return True


_LEFT: dict[str, CallStatus] = {"cancelled": "cancelled", "interrupted": "denied"}
"""How calls end that are still going on when their run has ended in a certain way."""


def custom(data: Any, tag: str | None = None, call_id: str | None = None) -> Said:
    """Give what a program inside says in a form of its own; our own events are said as they are.

    What one of our tools says inside is heard from the tool itself, and not once more from the
    stream of the framework, where it appears as JSON.

    Args:
        data: What it says.
        tag: What kind of thing it is.
        call_id: The call that says it.
    """
    if isinstance(data, Event):
        return data
    if isinstance(data, Mapping) and {"v", "type", "tool_call_id", "path"} <= data.keys():
        return Told("")
    return Told(shown(data), True, tag, call_id)


def shown(data: Any) -> str:
    """Give data as text to look at: JSON, where it is no text already."""
    if isinstance(data, str):
        return data
    try:
        return to_json(data)
    except UnserializableOutput:
        return f"({type(data).__name__}, without a JSON form)"


def arguments_of(given: Any) -> dict[str, Any]:
    """Give arguments as a dictionary, whatever form a framework has them in."""
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}")
        except ValueError:
            return {"": given}
    return cast("dict[str, Any]", given if isinstance(given, dict) else {"": given})
