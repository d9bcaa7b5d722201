"""A tool of another framework as ours."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agents_tools._records import HandMade, ToolAnnotations, ToolOrigin
from agents_tools._text import type_name
from agents_tools._threads import ThreadRaised, run_in_thread
from agents_tools.errors import ToolError, UserTypeError, UserValueError
from agents_tools.events import Event, NotifyStreamEvent, event_from_dict
from agents_tools.export._foreign import shown
from agents_tools.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
)
from agents_tools.tool import DEFAULT, FunctionTool, check_tool_name, reader_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import TypeIs

    from agents_tools.context import ToolContext

__all__ = ["are_blocks", "fitting_name", "imported", "in_thread", "incoming", "media", "say"]

T = TypeVar("T")


def incoming(
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
    """Make our tool of one of another framework.

    Args:
        framework: What the framework is called, for places in errors.
        name: What the tool is called there. Letters that providers do not take become `_`.
        description: What models are told about it.
        schema: The JSON Schema of its arguments, or a type; `None` for a tool without any. It is
            enforced before the tool is called.
        call: Calls the tool with the context and the arguments; what it raises is answered.
        annotations: Hints about what it does.
        output_json_schema: The JSON Schema of its results.
        metadata: Anything else.
        is_enabled: Whether agents offer it.
        strict_json_schema: Whether providers with a strict mode are asked for it.
        failure_error_function: What the model is told when a call fails; `None` raises.

    Raises:
        UserError: The schema cannot be enforced.
    """
    own = fitting_name(name)
    described, settled = reader_of(
        own, {"type": "object", "properties": {}} if schema is None else schema, enforce=True
    )
    if described.get("type", "object") != "object":
        raise UserTypeError(
            f"The parameters of the {framework} tool {name!r} are no JSON Schema of an object."
        )

    async def body(context: ToolContext[Any], args_json: str) -> Any:
        if settled is not None:
            args_json = settled(args_json)
        context.validated = True
        return await call(context, json.loads(args_json))

    declaration = HandMade(
        name=own,
        description=description or "",
        json_schema={"type": "object", **described},
        output_json_schema=None if output_json_schema is None else dict(output_json_schema),
        body=body,
        origin=ToolOrigin(kind="schema", place=f"the {framework} tool {name!r}"),
        reader=settled,
    )
    return FunctionTool.declared(
        declaration,
        strict_json_schema=strict_json_schema,
        is_enabled=is_enabled,
        annotations=annotations,
        metadata=metadata,
        failure_error_function=failure_error_function,
    )


def imported(
    given: Any,
    kinds: type[Any] | tuple[type[Any], ...],
    make: Callable[[Any], FunctionTool[..., Any]],
    source: str,
) -> Any:
    """Make our tools of theirs: one of one, a list of several.

    Args:
        given: One of their tools, or several.
        kinds: What their tools are.
        make: Makes ours of one.
        source: The function that the user called, for errors.

    Raises:
        UserError: It is no such tool.
    """
    if isinstance(given, (list, tuple)):
        several = cast("list[Any]", given)
        return [imported(item, kinds, make, source) for item in several]
    if isinstance(given, kinds):
        return make(given)
    known = kinds if isinstance(kinds, tuple) else (kinds,)
    wanted = " or ".join(type_name(kind) for kind in known)
    raise UserTypeError(f"{source}() takes a {wanted}, not {type_name(cast('Any', type(given)))}.")


def fitting_name(name: str) -> str:
    """Give a name that every provider takes: the same one wherever that is possible."""
    try:
        return check_tool_name(name)
    except UserValueError:
        return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64] or "tool"


def say(context: ToolContext[Any], data: Any, tag: str | None = None) -> None:
    """Say in our events what a tool of another framework says while it works.

    Our own events, which may come as JSON, are said as they are; unless a call of ours inside this
    one has said them, for it is heard itself.

    Args:
        context: The call.
        data: What it says.
        tag: What kind of thing that is.
    """
    if not context.listening or data is None:
        return
    event, own = _event(data, tag), context.path
    inside = len(event.path) > len(own) and event.path[: len(own)] == own
    if data is event or not inside:
        context.emit(event)


def _event(data: Any, tag: str | None) -> Event:
    if isinstance(data, Event):
        return data
    if isinstance(data, Mapping) and "v" in data and "type" in data:
        try:
            return event_from_dict(cast("Mapping[str, Any]", data))
        except UserValueError:
            pass
    return NotifyStreamEvent(shown(data), tag=tag)


def media(
    kind: str,
    *,
    data: str | bytes | None = None,
    url: str | None = None,
    file_id: str | None = None,
    mime_type: str | None = None,
    filename: str | None = None,
) -> ContentBlock:
    """Make a block of what another framework has: an image, a sound or a file.

    Args:
        kind: `image`, `audio` or `file`.
        data: The data, as bytes or in base64.
        url: Where it is instead; the data of a `data:` URL is taken out of it.
        file_id: Its id at a provider.
        mime_type: Its type.
        filename: Its name, of a file.
    """
    found = _DATA_URL.fullmatch(url or "")
    if found is not None:
        mime_type, data, url = mime_type or found[1], found[2], None
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
    """Whether a result is content blocks as providers write them, not any other JSON."""
    if not isinstance(output, (list, tuple)) or not output:
        return False
    several = cast("Iterable[Any]", output)
    return all(
        isinstance(one, dict) and isinstance(cast("Any", one).get("type"), str) for one in several
    )


_DATA_URL = re.compile(r"data:([^;,]+)[^,]*;base64,(.*)", re.DOTALL)


async def in_thread(fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Run a sync function of a framework's in a thread, with the context of the call."""
    try:
        return await run_in_thread(fn, *args, **kwargs)
    except ThreadRaised as raised:
        raise ToolError(f"{type_name(type(raised.error))}: {raised.error}") from raised.error
