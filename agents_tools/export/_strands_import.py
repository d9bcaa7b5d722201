"""Tools of Strands as function tools."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

from strands.interrupt import InterruptException
from strands.tools.decorator import DecoratedFunctionTool

from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.errors import ToolDeniedError, ToolError
from agents_tools.export._agent_adapter import display_text
from agents_tools.export._import_tool import forward_event, import_tool
from agents_tools.export._strands_export import (
    DOCUMENTS,
    IMAGES,
    StrandsFunctionTool,
    ToolResultEvent,
)
from agents_tools.text.escape import shorten
from agents_tools.tool.records import ToolAnnotations

if TYPE_CHECKING:
    from strands.types.tools import AgentTool

    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.tool import FunctionTool

__all__ = ["describe_interrupts", "from_foreign_tool"]


def from_foreign_tool(tool: AgentTool, state: dict[str, Any]) -> FunctionTool[..., Any]:
    """Convert a tool of Strands to a function tool."""
    if isinstance(tool, StrandsFunctionTool):
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
            return await _read_result(tool, events, context)
        except InterruptException as error:
            raise _interrupted(tool.tool_name, [error.interrupt]) from None
        finally:
            await events.aclose()

    return import_tool(
        framework="Strands",
        name=tool.tool_name,
        description=spec.get("description"),
        schema=schema.get("json", schema),
        call=call,
        annotations=_hints(spec.get("annotations")),
    )


async def _read_result(tool: AgentTool, events: Any, context: ToolContext[Any]) -> Any:
    """Emit the events of a tool and return its result: a result event, or else the last item."""
    last: Any = None
    async for event in events:
        if isinstance(event, dict) and "tool_interrupt_event" in event:
            interrupt = cast("Any", event)["tool_interrupt_event"]
            raise _interrupted(tool.tool_name, interrupt["interrupts"])
        if isinstance(event, ToolResultEvent):
            # The last item of a decorated generator is its result, repeated in this event.
            failed = cast("Any", event.tool_result)["status"] == "error"
            if failed or not isinstance(tool, DecoratedFunctionTool):
                forward_event(context, _payload(last))
            return _from_foreign_output(event)
        forward_event(context, _payload(last))
        last = event
    return _payload(last)


def _payload(event: Any) -> Any:
    data: Any = event
    if isinstance(event, dict) and "tool_stream_event" in event:
        return data["tool_stream_event"]["data"]
    return data


def _from_foreign_output(event: ToolResultEvent) -> Any:
    result: Any = event.tool_result
    blocks = [_from_foreign_block(item) for item in result["content"]]
    texts = [block.text for block in blocks if isinstance(block, ToolOutputText)]
    if result["status"] == "error":
        raise ToolError("\n".join(texts) or "The tool failed.") from event.exception
    return "\n".join(texts) if len(texts) == len(blocks) else blocks


def _from_foreign_block(item: dict[str, Any]) -> ContentBlock:
    """Convert an item of a result to a content block."""
    for kind, types in (("image", IMAGES), ("document", DOCUMENTS)):
        data = item.get(kind, {}).get("source", {}).get("bytes")
        if data is not None:
            form = item[kind]["format"]
            mime_type = next((mime for mime, known in types.items() if known == form), None)
            if kind == "image":
                return ToolOutputImage(data=data, mime_type=mime_type)
            name = item[kind].get("name")
            return ToolOutputFileContent(data=data, filename=name, mime_type=mime_type)
    return ToolOutputText(item["text"] if "text" in item else display_text(item.get("json", item)))


def _hints(annotations: Any) -> ToolAnnotations | None:
    names = {field.name for field in fields(ToolAnnotations)}
    hints = {name: value for name, value in (annotations or {}).items() if name in names}
    return ToolAnnotations(**hints) if hints else None


def _interrupted(name: str, interrupts: Any) -> ToolDeniedError:
    return ToolDeniedError(
        f"Tool {name!r} waits for {describe_interrupts(interrupts)}, which is not available where "
        "it was called."
    )


def describe_interrupts(interrupts: Any) -> str:
    """Describe the questions of interrupts."""
    questions = "; ".join(
        item.name if item.reason is None else f"{item.name}: {display_text(item.reason)}"
        for item in interrupts
    )
    return f"an answer to {shorten(questions, _MAX_QUESTIONS)}"


_MAX_QUESTIONS = 300
"""The maximum number of characters of the questions in an error message."""
