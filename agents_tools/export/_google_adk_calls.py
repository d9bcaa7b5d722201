"""Our tools as agents of Google's ADK call them."""

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

from agents_tools._records import CallOutcome
from agents_tools.errors import ToolError
from agents_tools.export._approval import decided, is_undecided
from agents_tools.export._outgoing import (
    application_context,
    arguments_json,
    blocks_of,
    called,
    described,
    followed,
    has_failed,
)
from agents_tools.outputs import ToolOutputText

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_tools.tool import FunctionTool

__all__ = ["EVENT", "Ours"]

EVENT = "agents_tools_event"
"""The key in the `custom_metadata` of an event of ADK that has one of ours, as JSON."""


class Ours(BaseTool):
    """A tool of ours as an agent of ADK calls it."""

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
        return await is_undecided(
            self.function_tool,
            arguments_json(args),
            call_id=tool_context.function_call_id,
            context=self._context_of(tool_context),
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        tool = self.function_tool
        if tool_context.tool_confirmation is not None:
            tool = decided(tool, tool_context.tool_confirmation.confirmed)
        options: dict[str, Any] = {
            "call_id": tool_context.function_call_id,
            "context": self._context_of(tool_context),
        }
        if not _has_stream(tool_context):
            return _foreign_output(await called(tool, arguments_json(args), **options))
        made = _Made(followed(tool, arguments_json(args), **options))
        try:
            if not await made.is_silent():
                await self._said(made, tool_context)
        finally:
            await made.items.aclose()
        if made.raised is not None:
            raise made.raised
        if made.outcome is None:
            raise ToolError(f"ADK did not finish the call of {tool.name!r}.")
        return _foreign_output(made.outcome)

    async def _said(self, made: _Made, tool_context: Any) -> None:
        """Say to the runner what a call says, to its end."""
        run_id = tool_context.function_call_id
        await tool_context.run_node(
            _CallNode(made, name=re.sub(r"\W", "_", f"call_{self.name}")),
            # Numbers are for runs that ADK counts itself.
            run_id=None if run_id is None or run_id.isdigit() else run_id,
        )

    def _context_of(self, tool_context: Any) -> Any:
        return application_context(self._context, tool_context)

    def _detect_error_in_response(self, response: Any) -> str | None:
        """Let ADK's telemetry see which calls failed."""
        return "TOOL_ERROR" if isinstance(response, dict) and "error" in response else None


def _has_stream(tool_context: Any) -> bool:
    """Whether a runner takes events here; it does not in live sessions and in tests of tools."""
    around = getattr(tool_context, "_invocation_context", None)
    return (
        hasattr(tool_context, "run_node")
        and hasattr(BaseNode, "_run_impl")
        and getattr(around, "_event_queue", None) is not None
        and getattr(around, "live_request_queue", None) is None
    )


@dataclass
class _Made:
    """A call: what it says, and how it ended."""

    items: AsyncGenerator[Any]
    outcome: CallOutcome | None = None
    raised: Exception | None = None
    begun: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def is_silent(self) -> bool:
        """Whether it has ended, and said nothing but that it begins and ends: ADK says so too.

        To say anything to a runner takes ADK some time, which most calls can do without.
        """
        async for item in self.items:
            if isinstance(item, CallOutcome):
                self.outcome = item
                break
            self.begun.append(item)
            own = item["tool_call_id"] == self.begun[0]["tool_call_id"]
            if not own or item["type"] not in _EDGES:
                return False
        return True

    async def said(self) -> AsyncGenerator[dict[str, Any]]:
        """Give what it says, from the beginning."""
        for item in self.begun:
            yield item
        async for item in self.items:
            if isinstance(item, CallOutcome):
                self.outcome = item
            else:
                yield item


_EDGES = {"tool_stream_start_event", "tool_stream_end_event"}


class _CallNode(BaseNode):
    """Says to the runner what a call says; how it ended is for who made the call."""

    _made: _Made = PrivateAttr()

    def __init__(self, made: _Made, **more: Any) -> None:
        super().__init__(**more)
        self._made = made

    async def _run_impl(self, **_given: Any) -> AsyncGenerator[Any]:
        try:
            async with contextlib.aclosing(self._made.said()) as said:
                async for item in said:
                    yield ForeignEvent(partial=True, custom_metadata={EVENT: item})
        except Exception as error:  # noqa: BLE001 - raised where the call was made
            self._made.raised = error


def _foreign_output(outcome: CallOutcome) -> dict[str, Any]:
    parts: list[types.Part] = []
    texts: list[str] = []
    for block in blocks_of(outcome.output):
        part = None if isinstance(block, ToolOutputText) else _foreign_block(block)
        if part is None:
            texts.append(described(block))
        else:
            parts.append(part)
    text = "\n".join(texts)
    if has_failed(outcome):
        return {"error": text}
    return {"result": text, "media": parts} if parts else {"result": text}


def _foreign_block(block: Any) -> types.Part | None:
    """Give what is no text as ADK takes it, if it does."""
    if block.mime_type is None or block.file_id is not None:
        return None
    if block.data is not None:
        return types.Part.from_bytes(data=block.data, mime_type=block.mime_type)
    if block.url.startswith("data:"):
        return None
    return types.Part.from_uri(file_uri=block.url, mime_type=block.mime_type)
