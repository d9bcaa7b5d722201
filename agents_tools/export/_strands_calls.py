"""Our tools as agents of Strands call them."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from strands import ToolContext as ForeignContext
from strands.types.tools import AgentTool

from agents_tools._records import CallOutcome
from agents_tools._supervisor import supervise
from agents_tools.errors import ToolCancelledError
from agents_tools.export._approval import decided, is_undecided, says_yes
from agents_tools.export._outgoing import (
    application_context,
    arguments_json,
    blocks_of,
    described,
    followed,
    has_failed,
)
from agents_tools.export._until import OverError, until
from agents_tools.outputs import ContentBlock, ToolOutputFileContent, ToolOutputImage

try:
    from strands.types.events import ToolResultEvent
except ImportError:  # before Strands 1.62
    from strands.types._events import ToolResultEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from agents_tools.tool import FunctionTool

__all__ = ["DOCUMENTS", "IMAGES", "Ours", "ToolResultEvent"]


class Ours(AgentTool):
    """A tool of ours as an agent of Strands calls it."""

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
            # Their description and that of a span may not be empty.
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
        args_json = _written(tool_use["input"])
        context = application_context(self._context, invocation_state)
        theirs = kwargs.get("_tool_context")
        tool = self.function_tool
        if tool.needs_admission:
            asker = theirs or _asker(tool_use, invocation_state)
            tool = await self._admitted(args_json, call_id, context, asker)
        outcome: CallOutcome | None = None
        calls = followed(tool, args_json, call_id=call_id, context=context)
        signal = _signal(theirs or invocation_state.get("agent"))

        async def is_over() -> bool:
            return signal.is_set()

        try:
            async with contextlib.aclosing(until(is_over, calls)) as items:
                async for item in items:
                    if isinstance(item, CallOutcome):
                        outcome = item
                        continue
                    with _closed_with_its_reader(calls, self.tool_name):
                        yield item
        except OverError:
            text = f"The call of {self.tool_name!r} was cancelled."
            error = ToolCancelledError(text)
            outcome = CallOutcome(status="cancelled", value=None, output=text, error=error)
        if outcome is not None:
            yield _foreign_result(outcome, call_id)

    async def _admitted(self, args_json: str, call_id: str, context: Any, asker: Any) -> Any:
        """Give the tool with what a person has decided; the agent is interrupted until then."""
        tool = self.function_tool
        if asker is None or not await is_undecided(
            tool, args_json, call_id=call_id, context=context
        ):
            return tool
        reason = {"tool": tool.name, "arguments": args_json}
        response = asker.interrupt(f"approve {tool.name}", reason=reason)
        return decided(tool, says_yes(response))


def _asker(tool_use: Any, invocation_state: dict[str, Any]) -> Any:
    """Give what can interrupt the agent that calls; `None` where no agent does."""
    agent = invocation_state.get("agent")
    if agent is None:
        return None
    return ForeignContext(
        tool_use=tool_use,
        agent=agent,
        invocation_state=invocation_state,
        cancel_signal=_signal(agent),
    )


def _signal(holder: Any) -> threading.Event:
    """Give what says that the agent was cancelled; where nothing does, what never will."""
    return getattr(holder, "cancel_signal", None) or threading.Event()


@contextlib.contextmanager
def _closed_with_its_reader(items: AsyncGenerator[Any], name: str) -> Generator[None]:
    """End a call whose reader is cancelled while it has something to read.

    The executors of Strands then drop what they read from, and do not close it.
    """

    def left(reader: asyncio.Task[Any]) -> None:
        if reader.cancelled():
            supervise(asyncio.ensure_future(_closed(items)), name=name)

    reader = asyncio.current_task()
    if reader is not None:
        reader.add_done_callback(left)
    try:
        yield
    finally:
        if reader is not None:
            reader.remove_done_callback(left)


async def _closed(items: AsyncGenerator[Any]) -> None:
    with contextlib.suppress(RuntimeError):  # it is being closed already
        await items.aclose()


def _written(given: Any) -> str:
    """Give arguments as JSON text, whatever the agent has read from what the model wrote."""
    if isinstance(given, str):
        return given
    return arguments_json({} if given is None else given)


def _foreign_result(outcome: CallOutcome, call_id: str) -> ToolResultEvent:
    content = [_foreign_block(block) for block in blocks_of(outcome.output)]
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


def _foreign_block(block: ContentBlock) -> dict[str, Any]:
    mime_type = getattr(block, "mime_type", None) or ""
    if isinstance(block, ToolOutputImage) and block.data is not None and mime_type in IMAGES:
        return {"image": {"format": IMAGES[mime_type], "source": {"bytes": block.data}}}
    if (
        isinstance(block, ToolOutputFileContent)
        and block.data is not None
        and mime_type in DOCUMENTS
    ):
        # Names are for letters, digits, spaces, hyphens and brackets.
        name = re.sub(r"[^A-Za-z0-9 ()\[\]-]+", "-", block.filename or "document")
        source = {"bytes": block.data}
        return {"document": {"format": DOCUMENTS[mime_type], "name": name, "source": source}}
    return {"text": described(block)}
