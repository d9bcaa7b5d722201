"""Agents of other frameworks as tools: the code that all adapters share."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypedDict, TypeVar, cast

from agents_tools.agents.as_tool import EventTap, extracted, tool_of_agent
from agents_tools.content.json_value import UnserializableOutput, to_json
from agents_tools.content.usage import Usage
from agents_tools.errors import ToolDeniedError, ToolError
from agents_tools.events.base import Event
from agents_tools.events.kinds import (
    NotifyStreamEvent,
    RunFinishedEvent,
    RunStartedEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.events.listener import current_listeners
from agents_tools.tool.call import Call, RunScope, enter_scope, leave_scope
from agents_tools.tool.failure import DEFAULT
from agents_tools.tool.options import check_option_names

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.events.kinds import CallStatus
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.records import FailureErrorFunction, IsEnabled
    from agents_tools.tool.tool import FunctionTool

__all__ = [
    "AgentEvent",
    "AgentPaused",
    "AgentToolOptions",
    "CallEnded",
    "CallStarted",
    "FinalAnswer",
    "TextDelta",
    "claim_call",
    "custom_event",
    "display_text",
    "make_agent_tool",
    "parse_arguments",
]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text from an agent: a piece of a longer text, or a complete message.

    Attributes:
        text: The text.
        is_complete: Whether it is a complete message rather than a piece.
        tag: The kind of message, in the framework's terms.
        call_id: The call that emits it; the agent itself by default.
    """

    text: str
    is_complete: bool = False
    tag: str | None = None
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The start of a tool call of the agent.

    Attributes:
        call_id: The id of the call.
        name: The name of the tool.
        arguments: The arguments.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The end of a tool call of the agent.

    Attributes:
        call_id: The id of the call.
        failed: Whether the call failed.
    """

    call_id: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The final output of the agent.

    Attributes:
        output: The output.
        result: The framework's own result, for a `custom_output_extractor`.
    """

    output: Any
    result: Any


@dataclass(frozen=True, slots=True)
class AgentPaused:
    """A pause of the agent without a final output, because it waits for input from a person.

    Attributes:
        waits_for: The missing input, as a noun phrase such as `the approval of 'pay'`.
    """

    waits_for: str


AgentEvent: TypeAlias = TextDelta | CallStarted | CallEnded | Event | FinalAnswer | AgentPaused
"""An event of an agent of another framework, as its adapter reports it."""


ResultT = TypeVar("ResultT")


class AgentToolOptions(TypedDict, Generic[ResultT], total=False):
    """The options of every function `as_tool` that creates a tool from an agent of a framework.

    Attributes:
        tool_name: The name of the tool; derived from the name of the agent by default.
        tool_description: The description of the tool for models; by default that of the agent, if
            it has one.
        streaming: Whether the events of the agent appear in the caller's stream; not by default.
        enable_bracketing: Whether the start and end events of a call appear there, as by default.
        custom_output_extractor: Returns the output of the tool for the framework's result; sync or
            async. By default the output is the final output of the agent.
        is_enabled: Whether agents offer the tool: a boolean, or a function of (context, agent).
        parameters: The type of the input (a pydantic model, a dataclass or a TypedDict), which the
            agent receives as JSON; by default one string `input`.
        on_stream: Called with each event of the agent, in order; sync or async.
        failure_error_function: Returns the error message for the model if the agent fails; `None`
            raises the error. The default is `default_tool_error_function`.
    """

    tool_name: str | None
    tool_description: str | None
    streaming: bool
    enable_bracketing: bool
    custom_output_extractor: Callable[[ResultT], Any] | None
    is_enabled: IsEnabled
    parameters: type[Any] | Mapping[str, Any] | None
    on_stream: Callable[[Event], Any] | None
    failure_error_function: FailureErrorFunction | None


def make_agent_tool(
    agent: str,
    run: Callable[[str, ToolContext[Any], Usage], AsyncGenerator[AgentEvent]],
    as_tool: Callable[..., Any],
    options: AgentToolOptions[Any],
    *,
    description: str | None = None,
) -> FunctionTool[..., Any]:
    """Create a tool that runs an agent of another framework.

    Args:
        agent: The name of the agent.
        run: Runs the agent on a task and yields its events, a `FinalAnswer` or `AgentPaused` last.
            It is always closed, and has then added all usage of the agent to its third argument.
        as_tool: The public function that creates the tool, for errors about unknown options.
        options: The options that `as_tool` received.
        description: The description of the agent.

    Raises:
        UserError: An option is unknown or has a wrong type.
    """
    known = (*AgentToolOptions.__annotations__, *(as_tool.__kwdefaults__ or ()))
    check_option_names(f"{as_tool.__module__}.{as_tool.__name__}(...)", options, known)
    on_stream = options.get("on_stream")

    async def perform(call: Call, task: str) -> Any:
        used = Usage()
        try:
            async with EventTap(on_stream, agent) as sinks:
                forwarder = _AgentEventForwarder(
                    agent, call, sinks, used, streaming=options.get("streaming", False)
                )
                async with contextlib.aclosing(run(task, call.context, used)) as events:
                    answer = await forwarder.follow(events)
        finally:
            for usage in _usages_to_update(call):
                usage.add(used)
        extractor = options.get("custom_output_extractor")
        return await extracted(extractor, answer.result, answer.output)

    return tool_of_agent(
        agent,
        perform,
        tool_name=options.get("tool_name"),
        tool_description=options.get("tool_description") or description,
        parameters=options.get("parameters"),
        is_enabled=options.get("is_enabled", True),
        enable_bracketing=options.get("enable_bracketing", True),
        failure_error_function=options.get("failure_error_function", DEFAULT),
    )


def _usages_to_update(call: Call) -> list[Usage]:
    """Return the usage counters of the run that makes the call and of all enclosing runs."""
    scope = call.scope
    if scope is not None:
        return cast("list[Usage]", scope.run.usages)
    return [] if call.usage is None else [call.usage]


class _AgentEventForwarder:
    """Emit the events of an agent of another framework as events of this library."""

    def __init__(
        self,
        agent: str,
        call: Call,
        sinks: tuple[Any, ...],
        used: Usage,
        *,
        streaming: bool,
    ) -> None:
        all_sinks = (call.sinks if streaming else current_listeners()) + sinks
        self._agent = agent
        self._used = used
        self._scope: RunScope = RunScope(
            call.app_context,
            agent=agent,
            run_id=f"run_{uuid.uuid4().hex}",
            usage=used,
            sinks=tuple(dict.fromkeys(all_sinks)),
            channel=call.channel if streaming else None,
            parent=call,
            deadline=call.deadline,
            asker=None,
            run=None,
        )
        # Function tools that the agent calls send their events to the agent's subscribers only.
        self._inside = call.again(call.attempt)
        self._inside.sinks = self._scope.sinks
        self._inside.tool_state = self._scope.find_tool_state()
        self._claims: set[str] = set()
        self._calls: dict[str, Call] = {}
        self._id_counts: dict[str, int] = {}

    async def follow(self, events: AsyncGenerator[AgentEvent]) -> FinalAnswer:
        """Emit all events and return the final output.

        Raises:
            ToolDeniedError: The agent paused for input from a person.
            ToolError: The agent ended without a final output.
        """
        scope, status, error_text = self._scope, "cancelled", None
        last: FinalAnswer | AgentPaused | None = None
        scope.emit(RunStartedEvent(run_id=scope.run_id, agent=self._agent))
        token = enter_scope(self._inside)
        claims = _claims.set(self._claims)
        try:
            async for event in events:
                match event:
                    case FinalAnswer() | AgentPaused():
                        last = event
                    case _:
                        self._emit(event)
            status = "interrupted" if isinstance(last, AgentPaused) else "ok"
        except Exception as error:
            status, error_text = "error", f"{type(error).__name__}: {error}"
            raise
        finally:
            leave_scope(token)
            with contextlib.suppress(ValueError):  # the generator is closed in another context
                _claims.reset(claims)
            for call_id in list(self._calls):
                self._end(call_id, _STATUS_OF_OPEN_CALLS.get(status, "lost"))
            try:
                await scope.release()
            finally:
                scope.close(
                    RunFinishedEvent(status=status, usage=self._used.to_dict(), error=error_text)
                )
        if isinstance(last, AgentPaused):
            raise ToolDeniedError(
                f"Agent {self._agent!r} waits for {last.waits_for}, which is not "
                "available where it was called."
            )
        if last is None:
            raise ToolError(f"Agent {self._agent!r} ended without a final output.")
        return last

    def _emit(self, event: TextDelta | CallStarted | CallEnded | Event) -> None:
        match event:
            case TextDelta(text=""):
                pass
            case TextDelta():
                emitter = self._calls.get(event.call_id or "", self._scope)
                emitter.emit(
                    NotifyStreamEvent(event.text, is_delta=not event.is_complete, tag=event.tag)
                )
            case CallStarted():
                self._begin(event)
            case CallEnded():
                self._end(event.call_id, "tool_error" if event.failed else "ok")
            case _:
                self._scope.emit(event)

    def _begin(self, call: CallStarted) -> None:
        if call.call_id in self._calls or not _add_claim(self._claims, call.call_id):
            return
        count = self._id_counts[call.call_id] = self._id_counts.get(call.call_id, 0) + 1
        # Some servers reuse an id in the next turn, but each call needs exactly one start and end.
        call_id = call.call_id if count == 1 else f"{call.call_id}_{count}"
        child = Call.fresh(tool_name=call.name, tool_call_id=call_id, parent=self._scope)
        record = Call.running(child, call.name, "")
        record.sinks = self._scope.sinks
        started = perf_counter()

        def end(status: CallStatus) -> Event:
            return ToolStreamEndEvent(status=status, duration=perf_counter() - started)

        record.begin(ToolStreamStartEvent(input_args=call.arguments), end)
        self._calls[call.call_id] = record

    def _end(self, call_id: str, status: CallStatus) -> None:
        self._claims.discard(call_id)
        record = self._calls.pop(call_id, None)
        if record is not None:
            record.end(status)


_claims: ContextVar[set[str] | None] = ContextVar("agents_tools_foreign_calls", default=None)


def claim_call(call_id: str | None) -> bool:
    """Return whether the caller is the first to report the start of this call.

    If an agent of another framework calls a function tool, both report the start: the tool itself
    and the adapter of the agent. Only the first of them emits events.
    """
    claims = _claims.get()
    return claims is None or call_id is None or _add_claim(claims, call_id)


def _add_claim(claims: set[str], call_id: str) -> bool:
    if call_id in claims:
        return False
    claims.add(call_id)
    return True


_STATUS_OF_OPEN_CALLS: dict[str, CallStatus] = {"cancelled": "cancelled", "interrupted": "denied"}
"""The status of calls that are still open when their run ends, by the status of the run."""


def custom_event(data: Any, tag: str | None = None, call_id: str | None = None) -> AgentEvent:
    """Convert custom data in a framework's stream to an event.

    Events of this library are returned as they are. An event as JSON becomes an empty text, which
    is not emitted: the function tool that produced it has already emitted the event itself.

    Args:
        data: The data.
        tag: The kind of data.
        call_id: The call that emits it.
    """
    if isinstance(data, Event):
        return data
    if isinstance(data, Mapping) and {"v", "type", "tool_call_id", "path"} <= data.keys():
        return TextDelta("")
    return TextDelta(display_text(data), True, tag, call_id)


def display_text(data: Any) -> str:
    """Return data as text: strings unchanged, everything else as JSON."""
    if isinstance(data, str):
        return data
    try:
        return to_json(data)
    except UnserializableOutput:
        return f"({type(data).__name__}, not JSON-serializable)"


def parse_arguments(arguments: Any) -> dict[str, Any]:
    """Return arguments as a dictionary; a value that is not an object gets the key `""`."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError:
            return {"": arguments}
    return cast("dict[str, Any]", arguments if isinstance(arguments, dict) else {"": arguments})
