"""Calls of function tools that are made by another framework."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from agents_tools.concurrency.future import call_on_loop
from agents_tools.concurrency.supervisor import finish
from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.errors import Interruption, ToolDeniedError, UserTypeError, UserValueError
from agents_tools.events.channel import Channel
from agents_tools.export._agent_adapter import claim_call
from agents_tools.text.secrets import library_logger
from agents_tools.tool.arguments import encode_arguments
from agents_tools.tool.call import Call, current_call
from agents_tools.tool.flatten import function_tools
from agents_tools.tool.records import CallOutcome
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from agents_tools.events.base import Event

__all__ = [
    "Tools",
    "application_context",
    "arguments_json",
    "as_blocks",
    "as_text",
    "base64_data",
    "call_tool",
    "data_url",
    "describe_block",
    "event_as_json",
    "export_tools",
    "has_failed",
    "stream_call",
]

T = TypeVar("T")

Tools: TypeAlias = Iterable[Any]
"""Several tools: a list (which may be nested), a toolset, or class-based tools."""


def export_tools(
    tools: Any, make: Callable[[FunctionTool[..., Any]], T], target: str
) -> T | list[T]:
    """Convert tools to the objects of a framework: one object for one tool, a list for several.

    Disabled tools in a list are left out.

    Args:
        tools: A function tool, a class-based tool, or several of them.
        make: Converts one function tool.
        target: The name of the public function that the user called, for error messages.

    Raises:
        UserError: A value is not a tool, its tools are only known during a run, or two tools have
            the same name.
    """
    if isinstance(tools, FunctionTool):
        return make(cast("FunctionTool[..., Any]", tools))
    if not isinstance(tools, type) and hasattr(tools, "as_function_tool"):
        return make(tools.as_function_tool())
    if not isinstance(tools, Iterable) or isinstance(tools, (str, bytes, Mapping)):
        raise UserTypeError(
            f"{target}() expects a tool or several of them, got {_type_label(tools)}. "
            f"{_remedy(tools)}"
        )
    flattened = list(function_tools(cast("Iterable[Any]", tools)))
    seen: set[str] = set()
    for tool in flattened:
        if not isinstance(tool, FunctionTool):
            raise UserTypeError(
                f"{target}() expects function tools, got {_type_label(tool)}. {_remedy(tool)}"
            )
        if tool.name in seen:
            raise UserValueError(
                f"{target}() got two tools named {tool.name!r}: expected unique names. Rename one "
                f"of them, for example with policies.rename({tool.name + '_2'!r})."
            )
        seen.add(tool.name)
    return [make(tool) for tool in flattened if tool.is_enabled is not False]


def _type_label(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def _remedy(value: Any) -> str:
    if isinstance(value, type):
        return "Create an instance first, for example MyTool()."
    if hasattr(value, "get_tools"):
        prefix = "await " if iscoroutinefunction(value.get_tools) else ""
        return f"Its tools are only known at run time: pass {prefix}tools.get_tools() instead."
    if hasattr(value, "as_tool"):
        return "Pass agent.as_tool(...) instead."
    if callable(value):
        return "Decorate the function with @function_tool first."
    return "Decorate a function with @function_tool; a hosted tool runs only at its provider."


# --- calls


async def call_tool(
    tool: FunctionTool[..., Any],
    arguments: str | Mapping[str, Any],
    *,
    call_id: str | None = None,
    context: Any = None,
    emit: Callable[[dict[str, Any]], Any] | None = None,
) -> CallOutcome:
    """Call a tool on behalf of a framework.

    Args:
        tool: The tool.
        arguments: The JSON text that the model wrote, or the arguments that the framework parsed.
        call_id: The framework's id of the call.
        context: The application's object, for tools that ask for it.
        emit: The framework's stream. It receives each event as JSON, in order, on the event loop
            of the call and before the call has ended. If it raises, the error is only logged.

    Returns:
        The outcome of the call.

    Raises:
        Exception: The tool's own exception, if its `failure_error_function` is `None`.
    """
    tool = _without_duplicate_events(tool, call_id)
    text = arguments if isinstance(arguments, str) else arguments_json(arguments)
    if emit is None:
        outcome = await _call_or_deny(tool, Call.fresh(context, tool_call_id=call_id), text)
    else:
        forwarder = _ToolEventForwarder(emit)
        try:
            child = _new_call(context, call_id, forwarder.receive)
            outcome = await _call_or_deny(tool, child, text)
        finally:
            forwarder.close()
    return _reraise_unhandled(tool, outcome)


async def stream_call(
    tool: FunctionTool[..., Any],
    arguments: str | Mapping[str, Any],
    *,
    call_id: str | None = None,
    context: Any = None,
) -> AsyncGenerator[dict[str, Any] | CallOutcome]:
    """Call a tool for a framework that reads the call as a stream.

    Yields each event as JSON and finally the outcome of the call. Closing the generator cancels
    the call and waits for its cleanup. The parameters are those of `call_tool`.
    """
    tool = _without_duplicate_events(tool, call_id)
    text = arguments if isinstance(arguments, str) else arguments_json(arguments)
    channel = Channel()
    child = _new_call(context, call_id, None)
    inherited = child.sinks
    child.watch(channel)
    child.sinks += inherited  # subscribers of the enclosing call receive these events as well
    task = asyncio.create_task(_call_and_close(tool, child, text, channel))
    try:
        async for event in channel:
            yield event_as_json(event)
        outcome = await task
    finally:
        channel.close()
        if not task.done():
            task.cancel()
            await finish(task, name=tool.name)
    yield _reraise_unhandled(tool, outcome)


async def _call_and_close(
    tool: FunctionTool[..., Any], call: Call, args_json: str, channel: Channel
) -> CallOutcome:
    try:
        return await _call_or_deny(tool, call, args_json)
    finally:
        channel.close()


def _without_duplicate_events(
    tool: FunctionTool[..., Any], call_id: str | None
) -> FunctionTool[..., Any]:
    """Return the tool, without start and end events if the enclosing agent has emitted them."""
    return tool if claim_call(call_id) else tool.with_(enable_bracketing=False)


def _new_call(context: Any, call_id: str | None, emit: Any) -> Call:
    """Return the record of a new call; subscribers of the enclosing call get its events too."""
    parent = current_call()
    child = Call.fresh(context, tool_call_id=call_id, emit=emit)
    if parent is None:
        return child
    sinks = child.sinks
    if parent.channel is not None:
        child.watch(parent.channel)  # a streaming tool waits for the consumer of this channel
    child.sinks = sinks + parent.sinks
    return child


async def _call_or_deny(tool: FunctionTool[..., Any], call: Call, args_json: str) -> CallOutcome:
    try:
        return await tool.call(call, args_json)
    except Interruption:
        # An enclosing run can pause for a decision, but the framework in between cannot.
        return _denied_outcome(tool)


def _denied_outcome(tool: FunctionTool[..., Any]) -> CallOutcome:
    error = ToolDeniedError(
        f"Tool {tool.name!r} was not run: it needs approval, and approvals are not available "
        "where it was called."
    )
    return CallOutcome(status="denied", value=None, output=str(error), error=error)


def _reraise_unhandled(tool: FunctionTool[..., Any], outcome: CallOutcome) -> CallOutcome:
    """Return the outcome, or raise the error of a tool without a `failure_error_function`."""
    if outcome.error is None or tool.failure_error_function is not None:
        return outcome
    error = outcome.error
    del outcome
    try:
        raise error
    finally:
        del error  # breaks the reference cycle between the error and this frame


class _ToolEventForwarder:
    """Forward events to a framework in order, on the event loop of the call."""

    def __init__(self, emit: Callable[[dict[str, Any]], Any]) -> None:
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._pending: deque[Event] = deque()
        self._is_flushing = False

    def receive(self, event: Event) -> None:
        self._pending.append(event)
        if threading.get_ident() == self._thread:
            self._flush()
        else:
            call_on_loop(self._loop, self._flush)

    def _flush(self) -> None:
        # An emit function may itself emit an event: the outer flush forwards it, in order.
        if self._is_flushing:
            return
        self._is_flushing = True
        try:
            while self._pending:
                self._forward(self._pending.popleft())
        finally:
            self._is_flushing = False

    def _forward(self, event: Event) -> None:
        try:
            self._emit(event_as_json(event))
        except Exception:  # noqa: BLE001 - a failing subscriber must not fail the call
            library_logger().exception(
                "The framework's stream raised an error for the event %r.", event.type
            )

    def close(self) -> None:
        self._flush()


# --- arguments, events and results


def arguments_json(arguments: Mapping[str, Any]) -> str:
    """Return arguments that a framework has parsed as JSON text."""
    return encode_arguments(arguments, "from the framework", "Pass JSON-compatible values.")


def event_as_json(event: Event) -> dict[str, Any]:
    """Return an event as JSON; if it cannot be serialized, its type, call id and the error."""
    try:
        return event.to_dict()
    except UserValueError as error:
        return {"type": event.type, "tool_call_id": event.tool_call_id, "error": str(error)}


def has_failed(outcome: CallOutcome) -> bool:
    """Return whether the call is reported to the framework as failed."""
    return outcome.status != "ok"


def as_blocks(output: ToolOutput) -> list[ContentBlock]:
    """Return an output as a list of content blocks."""
    return [ToolOutputText(output)] if isinstance(output, str) else list(output)


def as_text(output: ToolOutput) -> str:
    """Return an output as text; images, audio and files are described."""
    return "\n".join(
        block.text if isinstance(block, ToolOutputText) else describe_block(block)
        for block in as_blocks(output)
    )


def describe_block(block: ContentBlock) -> str:
    """Describe a block for a model that cannot receive it."""
    if isinstance(block, ToolOutputText):
        return block.text
    name = getattr(block, "filename", None)
    where = f"at {block.url}" if block.url is not None else f"{block.file_id}"
    if block.data is not None:
        where = f"{len(block.data):,} bytes"
    details = [detail for detail in (name, block.mime_type, where) if detail]
    return f"[{block.type}: {', '.join(details)}]"


def base64_data(block: ToolOutputImage | ToolOutputAudio | ToolOutputFileContent) -> str | None:
    """Return the data of a block in base64; `None` if the block only refers to it."""
    return None if block.data is None else base64.b64encode(block.data).decode()


def data_url(block: ToolOutputImage | ToolOutputAudio | ToolOutputFileContent) -> str | None:
    """Return the URL of a block, a `data:` URL if it holds data; `None` for a file id."""
    if block.data is None:
        return block.url
    kind = block.mime_type or "application/octet-stream"
    return f"data:{kind};base64,{base64_data(block)}"


def application_context(context: Any, framework_context: Any) -> Any:
    """Return the object that tools get as `ctx.context`.

    Args:
        context: The application's object; `None` if it passed none. Then the object of the
            enclosing run is used.
        framework_context: The framework's object, used without the application's object and
            without an enclosing run.
    """
    if context is not None:
        return context
    parent = current_call()
    if parent is not None and parent.app_context is not None:
        return parent.app_context
    return framework_context
