"""How another framework calls one of our tools."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from agents_tools._channel import Channel
from agents_tools._records import CallOutcome
from agents_tools._supervisor import finish
from agents_tools.context import ToolContext, current_context
from agents_tools.errors import Interruption, ToolDeniedError, UserTypeError, UserValueError
from agents_tools.export._foreign import claimed
from agents_tools.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.tool import FunctionTool, function_tools

if TYPE_CHECKING:
    from agents_tools.events import Event

__all__ = [
    "Tools",
    "application_context",
    "arguments_json",
    "blocks_of",
    "called",
    "data_of",
    "data_url",
    "described",
    "exported",
    "followed",
    "has_failed",
    "text_of",
    "wire_form",
]

T = TypeVar("T")

Tools: TypeAlias = Iterable[Any]
"""Several tools: a list, lists in it opened, a toolset, class-based tools among them."""


def exported(tools: Any, make: Callable[[FunctionTool[..., Any]], T], target: str) -> T | list[T]:
    """Make what a framework takes: one object of one tool, a list of several.

    Tools of a list that are switched off are left out of it.

    Args:
        tools: A function tool, a class-based tool, or several of them.
        make: Makes the object of a function tool.
        target: The function that the user called, for errors.

    Raises:
        UserError: It is no tool; or tools that only a run can find; or two of one name.
    """
    if isinstance(tools, FunctionTool):
        return make(cast("FunctionTool[..., Any]", tools))
    if not isinstance(tools, type) and hasattr(tools, "as_function_tool"):
        return make(tools.as_function_tool())
    if not isinstance(tools, Iterable) or isinstance(tools, (str, bytes, Mapping)):
        raise UserTypeError(
            f"{target}() takes a tool or several of them, not {_kind(tools)}. {_remedy(tools)}"
        )
    several = list(function_tools(cast("Iterable[Any]", tools)))
    seen: set[str] = set()
    for tool in several:
        if not isinstance(tool, FunctionTool):
            raise UserTypeError(
                f"{target}() takes function tools, not {_kind(tool)}. {_remedy(tool)}"
            )
        if tool.name in seen:
            raise UserValueError(
                f"{target}() got two tools named {tool.name!r}. Give one of them another name, "
                f"for example with policies.rename({tool.name + '_2'!r})."
            )
        seen.add(tool.name)
    return [make(tool) for tool in several if tool.is_enabled is not False]


def _kind(given: Any) -> str:
    return f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__


def _remedy(given: Any) -> str:
    if isinstance(given, type):
        return "Make a tool of it first, as in MyTool()."
    if hasattr(given, "get_tools"):
        awaited = "await " if iscoroutinefunction(given.get_tools) else ""
        return f"Its tools are known while it runs: give {awaited}tools.get_tools() instead."
    if hasattr(given, "as_tool"):
        return "Give agent.as_tool(...) instead."
    if callable(given):
        return "Put @function_tool on the function first."
    return "Put @function_tool on a function; a hosted tool runs only where its provider does."


# --- a call


async def called(
    tool: FunctionTool[..., Any],
    arguments: str | Mapping[str, Any],
    *,
    call_id: str | None = None,
    context: Any = None,
    emit: Callable[[dict[str, Any]], Any] | None = None,
) -> CallOutcome:
    """Call a tool the way a framework asked for it.

    Args:
        tool: The tool.
        arguments: JSON text as the model wrote it, or what the framework has read from it.
        call_id: The framework's id of the call.
        context: The application's object, for tools that ask for it.
        emit: The framework's stream: gets each event as JSON, in order, on the loop of the call
            and before the call has ended. One that fails is heard of in the log only.

    Returns:
        How the call ended.

    Raises:
        Exception: What the tool raised, where its `failure_error_function` is `None`.
    """
    tool = _announced(tool, call_id)
    text = arguments if isinstance(arguments, str) else arguments_json(arguments)
    if emit is None:
        outcome = await _settled(tool, ToolContext(context, tool_call_id=call_id), text)
    else:
        voice = _Voice(emit)
        try:
            outcome = await _settled(tool, _context(context, call_id, voice.hear), text)
        finally:
            voice.close()
    return _passed(tool, outcome)


async def followed(
    tool: FunctionTool[..., Any],
    arguments: str | Mapping[str, Any],
    *,
    call_id: str | None = None,
    context: Any = None,
) -> AsyncGenerator[dict[str, Any] | CallOutcome]:
    """Call a tool for a framework that reads a stream of it.

    Gives each event as JSON, and how the call ended last. Closing it cancels the call and waits
    for its cleanup. Takes what `called` takes.
    """
    tool = _announced(tool, call_id)
    text = arguments if isinstance(arguments, str) else arguments_json(arguments)
    channel = Channel()
    asked = _context(context, call_id, None)
    around = asked.sinks
    asked.watch(channel)
    asked.sinks += around  # whoever hears the call around this one hears it as well
    task = asyncio.create_task(_to_the_end(tool, asked, text, channel))
    try:
        async for event in channel:
            yield wire_form(event)
        outcome = await task
    finally:
        channel.close()
        if not task.done():
            task.cancel()
            await finish(task, name=tool.name)
    yield _passed(tool, outcome)


async def _to_the_end(
    tool: FunctionTool[..., Any], context: ToolContext[Any], args_json: str, channel: Channel
) -> CallOutcome:
    try:
        return await _settled(tool, context, args_json)
    finally:
        channel.close()


def _announced(tool: FunctionTool[..., Any], call_id: str | None) -> FunctionTool[..., Any]:
    """Give the tool as it is, or without start and end where the agent around has told of them."""
    return tool if claimed(call_id) else tool.with_(enable_bracketing=False)


def _context(context: Any, call_id: str | None, emit: Any) -> ToolContext[Any]:
    """Give the context of a new call, which the call around it hears as well."""
    around = current_context()
    fresh: ToolContext[Any] = ToolContext(context, tool_call_id=call_id, emit=emit)
    if around is None:
        return fresh
    own = fresh.sinks
    if around.channel is not None:
        fresh.watch(around.channel)  # a tool that yields waits for whoever reads there
    fresh.sinks = own + around.sinks
    return fresh


async def _settled(
    tool: FunctionTool[..., Any], context: ToolContext[Any], args_json: str
) -> CallOutcome:
    try:
        return await tool.call(context, args_json)
    except Interruption:  # a run of ours is around the framework, and it cannot wait for a person
        return _denied(tool)


def _denied(tool: FunctionTool[..., Any]) -> CallOutcome:
    error = ToolDeniedError(
        f"Tool {tool.name!r} needs a person's approval, and nobody can be asked where it was "
        "called. It was not run."
    )
    return CallOutcome(status="denied", value=None, output=str(error), error=error)


def _passed(tool: FunctionTool[..., Any], outcome: CallOutcome) -> CallOutcome:
    """Raise what a tool without a failure function raised."""
    if outcome.error is None or tool.failure_error_function is not None:
        return outcome
    error = outcome.error
    del outcome
    try:
        raise error
    finally:
        del error  # or the error would hold on to itself through this frame


class _Voice:
    """Hands events to a framework on the loop of the call, in the order they are said."""

    def __init__(self, emit: Callable[[dict[str, Any]], Any]) -> None:
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._waiting: deque[Event] = deque()
        self._busy = False

    def hear(self, event: Event) -> None:
        self._waiting.append(event)
        if threading.get_ident() == self._thread:
            self._flush()
        else:
            with contextlib.suppress(RuntimeError):  # the loop has closed: nobody listens
                self._loop.call_soon_threadsafe(self._flush)

    def _flush(self) -> None:
        if self._busy:
            return
        self._busy = True
        try:
            while self._waiting:
                self._tell(self._waiting.popleft())
        finally:
            self._busy = False

    def _tell(self, event: Event) -> None:
        try:
            self._emit(wire_form(event))
        except Exception:  # whoever listens never breaks a call
            import logging

            logging.getLogger("agents_tools").exception("A stream failed on %r.", event.type)

    def close(self) -> None:
        self._flush()


# --- what goes in and what comes out


def arguments_json(arguments: Mapping[str, Any]) -> str:
    """Write arguments that a framework has read as the JSON text that they were.

    Raises:
        UserError: The framework made something of them that has no JSON form.
    """
    from pydantic_core import to_json

    try:
        return to_json(arguments, inf_nan_mode="constants").decode()
    except Exception as error:
        raise UserValueError(
            f"The framework handed over arguments that have no JSON form ({error})."
        ) from error


def wire_form(event: Event) -> dict[str, Any]:
    """Give an event as JSON; of one that has no such form, what can be told."""
    try:
        return event.to_dict()
    except UserValueError as error:
        return {"type": event.type, "tool_call_id": event.tool_call_id, "error": str(error)}


def has_failed(outcome: CallOutcome) -> bool:
    """Whether a framework should be told that the call failed."""
    return outcome.status != "ok"


def blocks_of(output: ToolOutput) -> list[ContentBlock]:
    """Give an output as blocks."""
    return [ToolOutputText(output)] if isinstance(output, str) else list(output)


def text_of(output: ToolOutput) -> str:
    """Give an output as text; what is no text is described."""
    return "\n".join(
        block.text if isinstance(block, ToolOutputText) else described(block)
        for block in blocks_of(output)
    )


def described(block: ContentBlock) -> str:
    """Describe a block for a model that cannot be given it."""
    if isinstance(block, ToolOutputText):
        return block.text
    name = getattr(block, "filename", None)
    where = f"at {block.url}" if block.url is not None else f"{block.file_id}"
    if block.data is not None:
        where = f"{len(block.data):,} bytes"
    if block.url is not None and block.url.startswith("data:"):
        where = "inline"
    told = [part for part in (name, block.mime_type, where) if part]
    return f"[{block.type}: {', '.join(told)}]"


def data_of(block: ToolOutputImage | ToolOutputAudio | ToolOutputFileContent) -> str | None:
    """Give the data of a block in base64; `None` where it is somewhere else."""
    return None if block.data is None else base64.b64encode(block.data).decode()


def data_url(block: ToolOutputImage | ToolOutputAudio | ToolOutputFileContent) -> str | None:
    """Give the URL of a block, with its data inside where it has data; `None` for a file id."""
    if block.data is None:
        return block.url
    kind = block.mime_type or "application/octet-stream"
    return f"data:{kind};base64,{data_of(block)}"


def application_context(given: Any, theirs: Any) -> Any:
    """Give what tools find as `ctx.context`: what was given for it, or what a run has around.

    Args:
        given: What the application gave; `None` if nothing.
        theirs: What the framework has for it, where no run of ours is around.
    """
    around = current_context()
    if given is None and around is not None and around.context is not None:
        return around.context
    return theirs if given is None else given
