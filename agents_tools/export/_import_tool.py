"""Tools of other frameworks as function tools: the code that all adapters share."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agents_tools.concurrency.threads import ThreadException, run_in_thread
from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
)
from agents_tools.errors import ToolError, UserTypeError, UserValueError
from agents_tools.events.base import Event
from agents_tools.events.kinds import NotifyStreamEvent
from agents_tools.events.registry import event_from_dict
from agents_tools.export._agent_adapter import display_text
from agents_tools.schema.json_schema import reader_of
from agents_tools.text.escape import type_name
from agents_tools.tool.context import call_of
from agents_tools.tool.failure import DEFAULT
from agents_tools.tool.manual import SchemaSource
from agents_tools.tool.naming import valid_tool_name
from agents_tools.tool.records import ToolAnnotations, ToolOrigin
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import TypeIs

    from agents_tools.tool.call import Call
    from agents_tools.tool.context import ToolContext

__all__ = [
    "are_blocks",
    "call_in_thread",
    "forward_event",
    "import_tool",
    "import_tools",
    "media_block",
]

T = TypeVar("T")


def import_tool(
    *,
    framework: str,
    name: str,
    description: str | None,
    schema: Mapping[str, Any] | type | None,
    call: Callable[[ToolContext[Any], dict[str, Any]], Awaitable[Any]],
    annotations: ToolAnnotations | None = None,
    output_json_schema: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    is_enabled: Any = True,
    strict_json_schema: bool = False,
    failure_error_function: Any = DEFAULT,
) -> FunctionTool[..., Any]:
    """Create a function tool from a tool of another framework.

    Args:
        framework: The name of the framework, for error messages.
        name: The name of the tool in the framework. Characters that providers do not accept are
            replaced by `_`.
        description: The description for models.
        schema: The JSON Schema of its arguments, or a type; `None` for a tool without arguments.
            Arguments are validated against it before the tool is called.
        call: Calls the tool with the context and the arguments; its exceptions are the tool's
            failures.
        annotations: Hints about the behaviour of the tool.
        output_json_schema: The JSON Schema of its results.
        metadata: Additional data of the tool.
        is_enabled: Whether agents offer the tool.
        strict_json_schema: Whether to use the strict mode of providers that have one.
        failure_error_function: Creates the error message for the model; `None` raises the error.

    Raises:
        UserError: The schema cannot be enforced.
    """
    tool_name = valid_tool_name(name)
    reader = reader_of(
        tool_name, {"type": "object", "properties": {}} if schema is None else schema
    )
    json_schema = reader.json_schema
    if json_schema.get("type", "object") != "object":
        raise UserTypeError(
            f"The {framework} tool {name!r} has an unsupported schema: expected a JSON Schema of "
            f"type 'object', got type {json_schema['type']!r}. Wrap its value in an object."
        )

    async def perform(record: Call) -> Any:
        return await call(record.context, json.loads(record.text))

    source = SchemaSource(
        tool_name,
        description or "",
        reader,
        perform,
        json_schema={"type": "object", **json_schema},
        output_json_schema=output_json_schema,
        origin=ToolOrigin(kind="schema", place=f"the {framework} tool {name!r}"),
        can_be_stopped=False,  # the framework can run it in a thread
    )
    return FunctionTool.of_source(
        source,
        strict_json_schema=strict_json_schema,
        is_enabled=is_enabled,
        annotations=annotations,
        metadata=metadata,
        failure_error_function=failure_error_function,
    )


def import_tools(
    tools: Any,
    kinds: type[Any] | tuple[type[Any], ...],
    make: Callable[[Any], FunctionTool[..., Any]],
    source: str,
) -> Any:
    """Convert tools of a framework: one function tool for one tool, a list for several.

    Args:
        tools: A tool of the framework, or several.
        kinds: The types of the framework's tools.
        make: Converts one tool.
        source: The name of the public function that the user called, for error messages.

    Raises:
        UserError: A value is not a tool of the framework.
    """
    if isinstance(tools, (list, tuple)):
        items = cast("list[Any]", tools)
        return [import_tools(item, kinds, make, source) for item in items]
    if isinstance(tools, kinds):
        return make(tools)
    known = kinds if isinstance(kinds, tuple) else (kinds,)
    expected = " or ".join(type_name(kind) for kind in known)
    actual = type_name(cast("Any", type(tools)))
    raise UserTypeError(f"{source}() expects a {expected}, got {actual}.")


def forward_event(context: ToolContext[Any], data: Any, tag: str | None = None) -> None:
    """Emit data from a tool of another framework as an event of the call.

    An event of this library, which may arrive as JSON, is emitted unchanged. An event as JSON from
    a call inside this one is skipped, because that call has emitted the event itself.

    Args:
        context: The context of the call.
        data: The data.
        tag: The kind of data.
    """
    call = call_of(context)
    if not call.listening or data is None:
        return
    event, path = _to_event(data, tag), call.path
    is_from_inside = len(event.path) > len(path) and event.path[: len(path)] == path
    if data is event or not is_from_inside:
        call.emit(event)


def _to_event(data: Any, tag: str | None) -> Event:
    if isinstance(data, Event):
        return data
    if isinstance(data, Mapping) and "v" in data and "type" in data:
        try:
            return event_from_dict(cast("Mapping[str, Any]", data))
        except UserValueError:
            pass
    return NotifyStreamEvent(display_text(data), tag=tag)


def media_block(
    kind: str,
    *,
    data: str | bytes | None = None,
    url: str | None = None,
    file_id: str | None = None,
    mime_type: str | None = None,
    filename: str | None = None,
) -> ContentBlock:
    """Create a content block of an image, audio or a file of another framework.

    Args:
        kind: `image`, `audio` or `file`.
        data: The data, as bytes or in base64.
        url: The URL, if there is no data. A `data:` URL is decoded.
        file_id: The id of the file at a provider.
        mime_type: The MIME type.
        filename: The name, for a file.
    """
    if isinstance(data, str):
        data = base64.b64decode(data)
    if kind == "image":
        return ToolOutputImage(data=data, url=url, file_id=file_id, mime_type=mime_type)
    if kind == "audio":
        return ToolOutputAudio(data=data, url=url, file_id=file_id, mime_type=mime_type)
    return ToolOutputFileContent(
        data=data, url=url, file_id=file_id, mime_type=mime_type, filename=filename
    )


def are_blocks(output: Any) -> TypeIs[list[dict[str, Any]] | tuple[dict[str, Any], ...]]:
    """Return whether a result is a list of content blocks as providers write them."""
    if not isinstance(output, (list, tuple)) or not output:
        return False
    items = cast("Iterable[Any]", output)
    return all(
        isinstance(item, dict) and isinstance(cast("Any", item).get("type"), str) for item in items
    )


async def call_in_thread(fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Run a sync function of a framework in a thread, with the context of the call.

    Raises:
        ToolError: The function raised an exception.
    """
    try:
        return await run_in_thread(fn, *args, **kwargs)
    except ThreadException as raised:
        raise ToolError(f"{type_name(type(raised.error))}: {raised.error}") from raised.error
