"""Function tools as tools of Strands."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from strands import ToolContext as ForeignContext
from strands.types.tools import AgentTool

from agents_tools.concurrency.supervisor import supervise
from agents_tools.content.outputs import ContentBlock, ToolOutputFileContent, ToolOutputImage
from agents_tools.errors import ToolCancelledError
from agents_tools.export._approval import is_approval, needs_decision, with_decision
from agents_tools.export._export_tool import (
    application_context,
    arguments_json,
    as_blocks,
    describe_block,
    has_failed,
    stream_call,
)
from agents_tools.export._poll_cancellation import CallCancelledError, poll_until_cancelled
from agents_tools.tool.records import CallOutcome

try:
    from strands.types.events import ToolResultEvent
except ImportError:  # before Strands 1.62
    from strands.types._events import ToolResultEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from agents_tools.tool.tool import FunctionTool

__all__ = ["DOCUMENTS", "IMAGES", "StrandsFunctionTool", "ToolResultEvent"]


class StrandsFunctionTool(AgentTool):
    """A tool of Strands that calls a function tool."""

    def __init__(self, tool: FunctionTool[..., Any], context: Any) -> None:
        super().__init__()
        self.function_tool = tool
        self._context = context

    @property
    def tool_name(self) -> str:
        return self.function_tool.name

    @property
    def tool_spec(self) -> Any:
        tool = self.function_tool
        spec: dict[str, Any] = {
            "name": tool.name,
            # Strands and its tracing spans require a description.
            "description": tool.description or tool.name,
            "inputSchema": {"json": tool.params_json_schema},
        }
        if tool.annotations is not None:
            hints = asdict(tool.annotations)
            spec["annotations"] = {name: hint for name, hint in hints.items() if hint is not None}
        return spec

    @property
    def tool_type(self) -> str:
        return "function"

    async def stream(
        self, tool_use: Any, invocation_state: dict[str, Any], **kwargs: Any
    ) -> AsyncGenerator[Any]:
        call_id = str(tool_use["toolUseId"])
        args_json = _arguments_as_written(tool_use["input"])
        context = application_context(self._context, invocation_state)
        tool_context = kwargs.get("_tool_context")
        tool = self.function_tool
        if tool.can_need_approval:
            interrupter = tool_context or _interrupter(tool_use, invocation_state)
            tool = await self._apply_decision(args_json, call_id, context, interrupter)
        outcome: CallOutcome | None = None
        calls = stream_call(tool, args_json, call_id=call_id, context=context)
        signal = _cancel_signal(tool_context or invocation_state.get("agent"))

        async def is_cancelled() -> bool:
            return signal.is_set()

        try:
            async with contextlib.aclosing(poll_until_cancelled(is_cancelled, calls)) as items:
                async for item in items:
                    if isinstance(item, CallOutcome):
                        outcome = item
                        continue
                    with _close_with_reader(calls, self.tool_name):
                        yield item
        except CallCancelledError:
            text = f"The call of tool {self.tool_name!r} was cancelled."
            error = ToolCancelledError(text)
            outcome = CallOutcome(status="cancelled", value=None, output=text, error=error)
        if outcome is not None:
            yield _to_foreign_result(outcome, call_id)

    async def _apply_decision(
        self, args_json: str, call_id: str, context: Any, interrupter: Any
    ) -> Any:
        """Return the tool with the approval decision; interrupt the agent until it is made."""
        tool = self.function_tool
        if interrupter is None or not await needs_decision(
            tool, args_json, call_id=call_id, context=context
        ):
            return tool
        reason = {"tool": tool.name, "arguments": args_json}
        response = interrupter.interrupt(f"approve {tool.name}", reason=reason)
        return with_decision(tool, is_approval(response))


def _interrupter(tool_use: Any, invocation_state: dict[str, Any]) -> Any:
    """Return a context that can interrupt the calling agent; `None` without an agent."""
    agent = invocation_state.get("agent")
    if agent is None:
        return None
    return ForeignContext(
        tool_use=tool_use,
        agent=agent,
        invocation_state=invocation_state,
        cancel_signal=_cancel_signal(agent),
    )


def _cancel_signal(holder: Any) -> threading.Event:
    """Return the cancel signal of an agent or a context; one that is never set if it has none."""
    return getattr(holder, "cancel_signal", None) or threading.Event()


@contextlib.contextmanager
def _close_with_reader(items: AsyncGenerator[Any], name: str) -> Generator[None]:
    """Close a call if the task that reads it is cancelled while it handles an item.

    The executors of Strands do not close the generator in that case.
    """

    def on_reader_done(reader: asyncio.Task[Any]) -> None:
        if reader.cancelled():
            supervise(asyncio.ensure_future(_close(items)), name=name)

    reader = asyncio.current_task()
    if reader is not None:
        reader.add_done_callback(on_reader_done)
    try:
        yield
    finally:
        if reader is not None:
            reader.remove_done_callback(on_reader_done)


async def _close(items: AsyncGenerator[Any]) -> None:
    with contextlib.suppress(RuntimeError):  # the generator is being closed already
        await items.aclose()


def _arguments_as_written(arguments: Any) -> str:
    """Return arguments as JSON text; the agent may have parsed them."""
    if isinstance(arguments, str):
        return arguments
    return arguments_json({} if arguments is None else arguments)


def _to_foreign_result(outcome: CallOutcome, call_id: str) -> ToolResultEvent:
    content = [_to_foreign_block(block) for block in as_blocks(outcome.output)]
    result: Any = {
        "toolUseId": call_id,
        "status": "error" if has_failed(outcome) else "success",
        "content": content or [{"text": ""}],
    }
    return ToolResultEvent(result, exception=outcome.error)


IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
DOCUMENTS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}


def _to_foreign_block(block: ContentBlock) -> dict[str, Any]:
    mime_type = getattr(block, "mime_type", None) or ""
    if isinstance(block, ToolOutputImage) and block.data is not None and mime_type in IMAGES:
        return {"image": {"format": IMAGES[mime_type], "source": {"bytes": block.data}}}
    if (
        isinstance(block, ToolOutputFileContent)
        and block.data is not None
        and mime_type in DOCUMENTS
    ):
        # Names of documents may only have letters, digits, spaces, hyphens and brackets.
        name = re.sub(r"[^A-Za-z0-9 ()\[\]-]+", "-", block.filename or "document")
        source = {"bytes": block.data}
        return {"document": {"format": DOCUMENTS[mime_type], "name": name, "source": source}}
    return {"text": describe_block(block)}
