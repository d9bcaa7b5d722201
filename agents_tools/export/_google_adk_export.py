"""Function tools as tools of Google's ADK."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.adk.events import Event as ForeignEvent
from google.adk.tools import BaseTool
from google.adk.workflow import BaseNode
from google.genai import types
from pydantic import PrivateAttr

from agents_tools.content.outputs import ToolOutputText
from agents_tools.errors import ToolError
from agents_tools.export._approval import needs_decision, with_decision
from agents_tools.export._export_tool import (
    application_context,
    arguments_json,
    as_blocks,
    call_tool,
    describe_block,
    has_failed,
    stream_call,
)
from agents_tools.tool.records import CallOutcome

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_tools.tool.tool import FunctionTool

__all__ = ["EVENT", "AdkFunctionTool"]

EVENT = "agents_tools_event"
"""The key of an event as JSON in the `custom_metadata` of an event of ADK."""


class AdkFunctionTool(BaseTool):
    """A tool of ADK that calls a function tool."""

    def __init__(self, tool: FunctionTool[..., Any], context: Any) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self.function_tool = tool
        self._context = context

    def _get_declaration(self) -> types.FunctionDeclaration:
        tool = self.function_tool
        return types.FunctionDeclaration(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=tool.params_json_schema,
        )

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: Any) -> bool:
        return await needs_decision(
            self.function_tool,
            arguments_json(args),
            call_id=tool_context.function_call_id,
            context=self._context_of(tool_context),
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        tool = self.function_tool
        if tool_context.tool_confirmation is not None:
            tool = with_decision(tool, tool_context.tool_confirmation.confirmed)
        options: dict[str, Any] = {
            "call_id": tool_context.function_call_id,
            "context": self._context_of(tool_context),
        }
        if not _has_stream(tool_context):
            return _to_foreign_output(await call_tool(tool, arguments_json(args), **options))
        call = _AdkCall(stream_call(tool, arguments_json(args), **options))
        try:
            if not await call.is_silent():
                await self._stream_events(call, tool_context)
        finally:
            await call.items.aclose()
        if call.error is not None:
            raise call.error
        if call.outcome is None:
            raise ToolError(f"ADK ended the call of tool {tool.name!r} before its result.")
        return _to_foreign_output(call.outcome)

    async def _stream_events(self, call: _AdkCall, tool_context: Any) -> None:
        """Send the events of a call to the runner until the call ends."""
        run_id = tool_context.function_call_id
        await tool_context.run_node(
            _CallNode(call, name=re.sub(r"\W", "_", f"call_{self.name}")),
            # ADK reserves numeric ids for the runs that it numbers itself.
            run_id=None if run_id is None or run_id.isdigit() else run_id,
        )

    def _context_of(self, tool_context: Any) -> Any:
        return application_context(self._context, tool_context)

    def _detect_error_in_response(self, response: Any) -> str | None:
        """Return an error type for ADK's telemetry if the call failed."""
        return "TOOL_ERROR" if isinstance(response, dict) and "error" in response else None


def _has_stream(tool_context: Any) -> bool:
    """Return whether the runner accepts events; not in live sessions and in tests of tools."""
    invocation = getattr(tool_context, "_invocation_context", None)
    return (
        hasattr(tool_context, "run_node")
        and hasattr(BaseNode, "_run_impl")
        and getattr(invocation, "_event_queue", None) is not None
        and getattr(invocation, "live_request_queue", None) is None
    )


@dataclass
class _AdkCall:
    """The events and the outcome of a call."""

    items: AsyncGenerator[Any]
    outcome: CallOutcome | None = None
    error: Exception | None = None
    buffered: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def is_silent(self) -> bool:
        """Read up to the first event other than start and end; return whether there is none.

        ADK reports start and end itself. Sending events to its runner is slow, so it is skipped
        for calls without other events.
        """
        async for item in self.items:
            if isinstance(item, CallOutcome):
                self.outcome = item
                break
            self.buffered.append(item)
            is_own = item["tool_call_id"] == self.buffered[0]["tool_call_id"]
            if not is_own or item["type"] not in _START_AND_END:
                return False
        return True

    async def events(self) -> AsyncGenerator[dict[str, Any]]:
        """Yield all events of the call, and store its outcome."""
        for item in self.buffered:
            yield item
        async for item in self.items:
            if isinstance(item, CallOutcome):
                self.outcome = item
            else:
                yield item


_START_AND_END = {"tool_stream_start_event", "tool_stream_end_event"}


class _CallNode(BaseNode):
    """A node that sends the events of a call to the runner; the outcome stays in the call."""

    _call: _AdkCall = PrivateAttr()

    def __init__(self, call: _AdkCall, **options: Any) -> None:
        super().__init__(**options)
        self._call = call

    async def _run_impl(self, **_options: Any) -> AsyncGenerator[Any]:
        try:
            async with contextlib.aclosing(self._call.events()) as events:
                async for event in events:
                    yield ForeignEvent(partial=True, custom_metadata={EVENT: event})
        except Exception as error:  # noqa: BLE001 - raised again by run_async
            self._call.error = error


def _to_foreign_output(outcome: CallOutcome) -> dict[str, Any]:
    parts: list[types.Part] = []
    texts: list[str] = []
    for block in as_blocks(outcome.output):
        part = None if isinstance(block, ToolOutputText) else _to_foreign_block(block)
        if part is None:
            texts.append(describe_block(block))
        else:
            parts.append(part)
    text = "\n".join(texts)
    if has_failed(outcome):
        return {"error": text}
    return {"result": text, "media": parts} if parts else {"result": text}


def _to_foreign_block(block: Any) -> types.Part | None:
    """Convert an image, audio or a file to a part; `None` if ADK does not support it."""
    if block.mime_type is None or block.file_id is not None:
        return None
    if block.data is not None:
        return types.Part.from_bytes(data=block.data, mime_type=block.mime_type)
    return types.Part.from_uri(file_uri=block.url, mime_type=block.mime_type)
