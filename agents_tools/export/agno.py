"""Tools in agents of Agno, its tools as ours, and its agents as tools."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, fields
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import TYPE_CHECKING, Any, cast, overload

from agno.exceptions import AgentRunException, RunCancelledException
from agno.run import RunContext
from agno.run.agent import CustomEvent, RunContentEvent
from agno.run.base import BaseRunOutputEvent
from agno.run.cancel import get_cancellation_manager
from agno.run.cancellation_management import InMemoryRunCancellationManager
from agno.team import Team
from agno.tools import Function, FunctionCall, Toolkit
from agno.tools.function import ToolResult

from agents_tools._bridge import run_sync
from agents_tools._records import CallOutcome, ToolAnnotations
from agents_tools.errors import (
    MaxTurnsExceeded,
    ToolCancelledError,
    ToolError,
    UserValueError,
)
from agents_tools.export._approval import decided
from agents_tools.export._foreign import (
    Answer,
    CallBegan,
    CallEnded,
    Said,
    Told,
    Waits,
    arguments_of,
    custom,
    foreign_tool,
    shown,
)
from agents_tools.export._incoming import imported, in_thread, incoming, media, say
from agents_tools.export._outgoing import (
    Tools,
    application_context,
    arguments_json,
    exported,
    followed,
    has_failed,
    text_of,
)
from agents_tools.export._until import LOOK, OverError, until
from agents_tools.policies import needs_approval
from agents_tools.tool import DEFAULT, FunctionTool
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from typing import Self

    from agents_tools.context import ToolContext
    from agents_tools.events import Event

__all__ = ["ToolEvent", "as_tool", "from_agno", "to_agno"]


@dataclass
class ToolEvent(CustomEvent):
    """What one of our tools says while it works, among the events of an agent of Agno.

    Attributes:
        data: The event, as JSON.
    """

    data: dict[str, Any] | None = None

    def __str__(self) -> str:
        """Give nothing: Agno writes the text of each event into the result of the tool."""
        return ""


@overload
def to_agno(tools: FunctionTool[..., Any], *, context: Any = None) -> Function: ...
@overload
def to_agno(tools: Tools, *, context: Any = None) -> list[Function]: ...
def to_agno(tools: Any, *, context: Any = None) -> Function | list[Function]:
    """Make tools for agents of Agno, for `agent.run` as well as for `agent.arun`.

    What a tool says while it works appears among the events of the agent as a `ToolEvent`, and
    never in the result. The result is text: what is no text is described. A failed call is one for
    Agno too. Cancelling the run cancels the calls that are going on. A tool is given the arguments
    as the model wrote them: Agno on its own makes `None` of the text `"none"`.

    A call that needs a person's approval is denied, unless Agno has asked somebody: set
    `requires_confirmation` of the function.

    Args:
        tools: One tool, or several.
        context: The application's object, for tools that ask for it; by default that of the run
            around, or else Agno's `RunContext`.

    Returns:
        One function of Agno for one tool, a list for several.

    Raises:
        UserError: It is no tool, or two have the same name.
    """
    return exported(tools, lambda tool: _function(tool, context), "to_agno")


def from_agno(tool: Any, *, run_context: Any = None) -> Any:
    """Make our tools of tools of Agno.

    What one yields is said in our events, custom events are, and only the rest is its result. A
    function that `requires_confirmation` needs approval. Arguments are validated here, before it
    is called.

    Args:
        tool: A `Function`, such as what `@tool` gives, or a `Toolkit`; or a list of them.
        run_context: What tools find as their `run_context`; an empty one by default.

    Returns:
        One tool for one, a list for a toolkit or a list.

    Raises:
        UserError: It is no such tool, a person is to run it, or its schema cannot be enforced.
    """
    if isinstance(tool, Toolkit):
        tool = list(tool.get_async_functions().values())
    elif isinstance(tool, (list, tuple)):
        return [from_agno(one, run_context=run_context) for one in cast("list[Any]", tool)]
    return imported(tool, Function, lambda one: _incoming(one, run_context), "from_agno")


def as_tool(
    agent: Any,
    *,
    tool_name: str | None = None,
    tool_description: str | None = None,
    streaming: bool = False,
    enable_bracketing: bool = True,
    custom_output_extractor: Callable[[Any], Any] | None = None,
    is_enabled: Any = True,
    max_turns: int | None = None,
    parameters: Any = None,
    on_stream: Callable[[Event], Any] | None = None,
    failure_error_function: Any = DEFAULT,
    session_id: str | None = None,
) -> FunctionTool[..., Any]:
    """Make a tool of an agent of Agno, or of a team.

    Args:
        agent: The agent, or the team.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it; the agent's own description by default.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the framework's `RunOutput`; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How often its model is asked at most; without limit if not given.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.
        session_id: The session of all calls; one of its own for each call by default.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form.
    """
    name = agent.name or "agent"

    async def run(task: str, _context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        stream: Any = agent.arun(
            task,
            stream=True,
            stream_events=True,
            yield_run_output=True,
            session_id=session_id or uuid.uuid4().hex,
        )
        last: Any = None
        try:
            async for event in stream:
                kind = _kind(event)
                if kind is None:
                    last = event
                if kind == "ModelRequestStarted" and usage.requests == max_turns:
                    raise MaxTurnsExceeded(
                        f"Agent {name!r} did not finish within {max_turns} turns."
                    )
                if kind == "ModelRequestCompleted":
                    usage.add(_usage(event))
                for said in _said(kind, event, agent):
                    yield said
        finally:
            await stream.aclose()
        yield _last(last, name)

    return foreign_tool(
        name,
        run,
        tool_name=tool_name,
        tool_description=tool_description or agent.description,
        streaming=streaming,
        enable_bracketing=enable_bracketing,
        custom_output_extractor=custom_output_extractor,
        is_enabled=is_enabled,
        parameters=parameters,
        on_stream=on_stream,
        failure_error_function=failure_error_function,
    )


# --- our tools there


def _function(tool: FunctionTool[..., Any], context: Any) -> Function:
    def begin(fc: FunctionCall | None, run_context: RunContext | None, given: Any) -> _Call:
        asked = tool
        if fc is not None and fc.function.requires_confirmation:
            asked = decided(tool, True)  # Agno runs it only once somebody has agreed
        return _Call(
            asked,
            _written(fc, run_context, given),
            call_id=None if fc is None else fc.call_id,
            context=application_context(context, run_context),
            run_id=None if run_context is None else run_context.run_id,
        )

    def entrypoint(fc: Any = None, _agno_run_context: Any = None, **arguments: Any) -> _Call:
        return begin(fc, _agno_run_context, arguments)

    def entrypoint_without_call(_agno_run_context: Any = None, **arguments: Any) -> _Call:
        return begin(None, _agno_run_context, arguments)

    # Agno hands over its call by that name, which a parameter of the tool may have.
    has_fc = "fc" in tool.json_schema.get("properties", {})
    chosen: Any = entrypoint_without_call if has_fc else entrypoint
    chosen.function_tool = tool
    hints = tool.annotations
    return Function(
        name=tool.name,
        description=tool.description,
        parameters=tool.params_json_schema,
        strict=False,
        entrypoint=chosen,
        skip_entrypoint_processing=True,
        annotations=None if hints is None else _wire_hints(hints),
    )


def _wire_hints(hints: ToolAnnotations) -> dict[str, Any]:
    return {name: getattr(hints, name) for name in _HINTS}


_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def _written(fc: FunctionCall | None, run_context: RunContext | None, given: Any) -> str:
    """Give the arguments as the model wrote them, where nobody has changed them on purpose."""
    if fc is not None and fc.call_id is not None and run_context is not None:
        for message in reversed(run_context.messages or []):
            for call in message.tool_calls or ():
                if call.get("id") == fc.call_id:
                    text = call.get("function", {}).get("arguments")
                    return text if _is_rewritten(text, given) else arguments_json(given)
    return arguments_json(given)


def _is_rewritten(text: Any, given: Any) -> bool:
    """Whether arguments are just what Agno makes of a text."""
    try:
        sent = json.loads(text)
    except (TypeError, ValueError):
        return False
    words = {"none": None, "null": None, "true": True, "false": False}
    return isinstance(sent, dict) and given == {
        name: words.get(value.strip().lower(), value) if isinstance(value, str) else value
        for name, value in cast("dict[str, Any]", sent).items()
    }


class _Failed(Exception):  # noqa: N818 - the text of it is all that Agno tells the model
    pass


class _Call(Iterator[Any], AsyncIterator[Any]):
    """A call that Agno reads: `arun` one way, `run` the other. It begins when it is read."""

    def __init__(
        self,
        tool: FunctionTool[..., Any],
        args_json: str,
        *,
        call_id: str | None,
        context: Any,
        run_id: str | None,
    ) -> None:
        self._name = tool.name
        self._made = followed(tool, args_json, call_id=call_id, context=context)
        self._run_id = run_id
        self._items: AsyncGenerator[Any] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        item = await self._next()
        if item is None:
            raise StopAsyncIteration
        return item

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        item = run_sync(self._next)
        if item is None:
            raise StopIteration
        return item

    async def _next(self) -> Any:
        if self._items is None:
            self._items = self._read()
        return await anext(self._items, None)

    async def _read(self) -> AsyncGenerator[Any]:
        run = _Run(self._run_id)
        try:
            async with contextlib.aclosing(until(run.is_over, self._made, look=run.look)) as items:
                async for item in items:
                    if not isinstance(item, CallOutcome):
                        yield ToolEvent(data=item)
                    elif has_failed(item):
                        raise _Failed(text_of(item.output) or f"Tool {self._name!r} failed.")
                    else:
                        yield text_of(item.output)
        except OverError:
            raise RunCancelledException("The run is over.") from None


class _Run:
    """A run of Agno, as its cancellation manager knows it.

    Agno leaves tools behind when the task of a run is cancelled, and tells none that its run is.
    """

    def __init__(self, run_id: str | None) -> None:
        self._id = run_id
        self._manager: Any = get_cancellation_manager()
        self._is_near = isinstance(self._manager, InMemoryRunCancellationManager)
        self._known = self._is_near and run_id in self._manager.get_active_runs()

    @property
    def look(self) -> float:
        """How long to wait before the next look; there may be a server between."""
        return LOOK if self._is_near else 10 * LOOK

    async def is_over(self) -> bool:
        """Whether it was cancelled, or has ended in any other way."""
        if self._id is None:
            return False
        if not self._is_near:
            return await in_thread(self._manager.is_cancelled, self._id)
        active: dict[str, bool] = self._manager.get_active_runs()
        return active.get(self._id, self._known)


# --- their tools here


def _incoming(tool: Function, run_context: Any) -> FunctionTool[..., Any]:
    made_of: Any = getattr(tool.entrypoint, "function_tool", None)
    if isinstance(made_of, FunctionTool):
        return cast("FunctionTool[..., Any]", made_of)
    function = tool.model_copy(deep=True)
    function.process_entrypoint()
    for by_a_person in ("external_execution", "requires_user_input"):
        if getattr(function, by_a_person):
            raise UserValueError(
                f"The Agno tool {tool.name!r} has {by_a_person}=True: somebody outside runs it or "
                "fills it in, so it cannot become a tool that runs here."
            )

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        own = context.context if isinstance(context.context, RunContext) else run_context
        copy = function.model_copy()
        copy._run_context = own or RunContext(  # noqa: SLF001 - where Agno puts it itself
            run_id=context.tool_call_id, session_id=context.tool_call_id, session_state={}
        )
        asked = FunctionCall(function=copy, arguments=arguments, call_id=context.tool_call_id)
        try:
            done = await _executed(asked)
            if done.status == "failure":
                raise ToolError(done.error or asked.error or "The tool failed.")
            return await _output(context, done.result)
        except AgentRunException as error:  # tells the agent of Agno to stop or to try again
            raise ToolError(str(error)) from error

    made = incoming(
        framework="Agno",
        name=function.name,
        description=function.description,
        schema=function.parameters,
        call=call,
        annotations=_hints(getattr(function, "annotations", None)),  # earlier ones have none
    )
    return needs_approval()(made) if function.requires_confirmation else made


async def _executed(asked: FunctionCall) -> Any:
    function = asked.function
    hooks = [*(function.tool_hooks or []), function.pre_hook, function.post_hook]
    if (
        iscoroutinefunction(function.entrypoint)
        or isasyncgenfunction(function.entrypoint)
        or any(iscoroutinefunction(hook) for hook in hooks)
    ):
        return await asked.aexecute()
    return await in_thread(asked.execute)


async def _output(context: ToolContext[Any], result: Any) -> Any:
    """Say what a result has to say before it is one, and give what the model is to get."""
    if isinstance(result, ToolResult):
        return _blocks(result)
    if not isinstance(result, (AsyncIterator, Iterator)):
        return result
    text = ""
    async with contextlib.aclosing(_items(result)) as items:
        async for item in items:
            if isinstance(item, RunContentEvent):
                item = shown(item.content)  # noqa: PLW2901 - the text that Agno takes
            elif (kind := _kind(item)) is not None:
                say(context, _payload(item), kind)
                continue
            context.notify(str(item), is_delta=True)
            text += str(item)
    return text


async def _items(result: Any) -> AsyncGenerator[Any]:
    """Give what a generator gives; a sync one works in a thread."""
    try:
        if isinstance(result, AsyncIterator):
            async for item in result:
                yield item
            return
        while (item := await in_thread(next, result, _END)) is not _END:
            yield item
    finally:
        if hasattr(result, "aclose"):
            await result.aclose()
        elif hasattr(result, "close"):
            await in_thread(result.close)


_END: Any = object()


def _payload(event: Any) -> Any:
    """Give what an event of a tool's says, without where it says it."""
    if isinstance(event, ToolEvent):
        return event.data
    known = {field.name for field in fields(CustomEvent)} | {"event_index"}
    return {name: value for name, value in vars(event).items() if name not in known}


def _blocks(result: ToolResult) -> Any:
    given = {"image": result.images, "audio": result.audios, "file": result.files}
    more = [_media(kind, one) for kind, several in given.items() for one in several or ()]
    return [result.content, *more] if more else result.content


def _media(kind: str, given: Any) -> Any:
    """Give media of Agno as a block of ours."""
    if given.url is None and given.content is None:
        return f"[{kind}: {given.filepath or given.id}]"
    return media(
        kind,
        data=given.content if given.url is None else None,
        url=given.url,
        mime_type=given.mime_type,
        filename=getattr(given, "filename", None),
    )


def _hints(given: Any) -> ToolAnnotations | None:
    known = {name: value for name, value in (given or {}).items() if value is not None}
    return ToolAnnotations(**known) if known else None


# --- their agents here


def _kind(event: Any) -> str | None:
    """Give what an event is, of an agent's or a team's; `None` for what is none."""
    return str(event.event).removeprefix("Team") if isinstance(event, BaseRunOutputEvent) else None


def _said(kind: str | None, event: Any, agent: Any) -> list[Said]:
    match kind:
        case "RunContent" if isinstance(event.content, str) and event.content:
            # What a member of a team says goes to the team, which answers.
            is_members = isinstance(agent, Team) and event.event == kind
            return [] if is_members else [Told(event.content)]
        case "ToolCallStarted" if not _is_ours(agent, event.tool.tool_name):
            tool = event.tool
            began = CallBegan(str(tool.tool_call_id), tool.tool_name, arguments_of(tool.tool_args))
            return [began]
        case "ToolCallCompleted" | "ToolCallError":
            failed = kind == "ToolCallError" or bool(event.tool.tool_call_error)
            return [CallEnded(str(event.tool.tool_call_id), failed)]
        case "CustomEvent" if not isinstance(event, ToolEvent):
            return [custom(_payload(event), type(event).__name__, event.tool_call_id)]
        case _:
            return []


def _is_ours(agent: Any, name: str) -> bool:
    tools: Any = agent.tools if isinstance(agent.tools, (list, tuple)) else ()
    members: Any = getattr(agent, "members", None)
    return any(
        isinstance(tool, Function)
        and tool.name == name
        and hasattr(tool.entrypoint, "function_tool")
        for tool in tools
    ) or any(_is_ours(one, name) for one in (members if isinstance(members, list) else ()))


def _last(result: Any, name: str) -> Answer | Waits:
    if result is None:
        raise ToolError(f"Agent {name!r} ended without an answer.")
    if result.is_paused:
        names = [tool.tool_name for tool in result.tools or () if tool.is_paused]
        return Waits(f"the approval or the result of {', '.join(map(repr, names))}")
    if result.is_cancelled:
        raise ToolCancelledError(f"Agent {name!r} was cancelled.")
    if str(getattr(result.status, "value", result.status)).upper() == "ERROR":
        raise ToolError(f"Agent {name!r} failed: {result.content}")
    return Answer(result.content, result)


def _usage(event: Any) -> Usage:
    return Usage(
        requests=1,
        input_tokens=event.input_tokens or 0,
        output_tokens=event.output_tokens or 0,
        cached_input_tokens=event.cache_read_tokens or 0,
        reasoning_tokens=event.reasoning_tokens or 0,
    )
