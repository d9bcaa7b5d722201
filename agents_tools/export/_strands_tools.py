"""Tools of Strands as ours."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

from strands.interrupt import InterruptException
from strands.tools.decorator import DecoratedFunctionTool

from agents_tools._records import ToolAnnotations
from agents_tools._text import shorten
from agents_tools.errors import ToolDeniedError, ToolError
from agents_tools.export._foreign import shown
from agents_tools.export._incoming import incoming, say
from agents_tools.export._strands_calls import DOCUMENTS, IMAGES, Ours, ToolResultEvent
from agents_tools.outputs import (
    ContentBlock,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)

if TYPE_CHECKING:
    from strands.types.tools import AgentTool

    from agents_tools.context import ToolContext
    from agents_tools.tool import FunctionTool

__all__ = ["asked", "tool_here"]


def tool_here(tool: AgentTool, state: dict[str, Any]) -> FunctionTool[..., Any]:
    """Make ours of a tool of Strands."""
    if isinstance(tool, Ours):
        return tool.function_tool
    spec: Any = tool.tool_spec
    schema: Any = spec["inputSchema"]

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        tool_use: Any = {
            "toolUseId": context.tool_call_id,
            "name": tool.tool_name,
            "input": arguments,
        }
        events: Any = tool.stream(tool_use, {"context": context.context, **state})
        try:
            return await _answer(tool, events, context)
        except InterruptException as waiting:
            raise _waiting(tool.tool_name, [waiting.interrupt]) from None
        finally:
            await events.aclose()

    return incoming(
        framework="Strands",
        name=tool.tool_name,
        description=spec.get("description"),
        schema=schema.get("json", schema),
        call=call,
        annotations=_hints(spec.get("annotations")),
    )


async def _answer(tool: AgentTool, events: Any, context: ToolContext[Any]) -> Any:
    """Say what a tool yields, and give its result: a result event, or else the last of it."""
    last: Any = None
    async for event in events:
        if isinstance(event, dict) and "tool_interrupt_event" in event:
            told = cast("Any", event)["tool_interrupt_event"]
            raise _waiting(tool.tool_name, told["interrupts"])
        if isinstance(event, ToolResultEvent):
            # The last that a decorated generator yields is its result, which comes once more.
            failed = cast("Any", event.tool_result)["status"] == "error"
            if failed or not isinstance(tool, DecoratedFunctionTool):
                say(context, _payload(last))
            return _own_output(event)
        say(context, _payload(last))
        last = event
    return _payload(last)


def _payload(event: Any) -> Any:
    known: Any = event
    if isinstance(event, dict) and "tool_stream_event" in event:
        return known["tool_stream_event"]["data"]
    return known


def _own_output(event: ToolResultEvent) -> Any:
    result: Any = event.tool_result
    blocks = [_own_block(item) for item in result["content"]]
    texts = [block.text for block in blocks if isinstance(block, ToolOutputText)]
    if result["status"] == "error":
        raise ToolError("\n".join(texts) or "The tool failed.") from event.exception
    return "\n".join(texts) if len(texts) == len(blocks) else blocks


def _own_block(item: dict[str, Any]) -> ContentBlock:
    """Give a piece of a result as one of ours."""
    for kind, types in (("image", IMAGES), ("document", DOCUMENTS)):
        data = item.get(kind, {}).get("source", {}).get("bytes")
        if data is not None:
            form = item[kind]["format"]
            mime_type = next((mime for mime, known in types.items() if known == form), None)
            if kind == "image":
                return ToolOutputImage(data=data, mime_type=mime_type)
            name = item[kind].get("name")
            return ToolOutputFileContent(data=data, filename=name, mime_type=mime_type)
    return ToolOutputText(item["text"] if "text" in item else shown(item.get("json", item)))


def _hints(given: Any) -> ToolAnnotations | None:
    names = {field.name for field in fields(ToolAnnotations)}
    known = {name: value for name, value in (given or {}).items() if name in names}
    return ToolAnnotations(**known) if known else None


def _waiting(name: str, interrupts: Any) -> ToolDeniedError:
    return ToolDeniedError(
        f"Tool {name!r} waits for {asked(interrupts)}, and nobody can be asked where it was called."
    )


def asked(interrupts: Any) -> str:
    """Say what people are asked for."""
    told = "; ".join(
        one.name if one.reason is None else f"{one.name}: {shown(one.reason)}" for one in interrupts
    )
    return f"an answer to {shorten(told, _MAX_ASKED)}"


_MAX_ASKED = 300
"""Characters that are told of what an agent was interrupted for."""
