"""Function tools as tools of the Claude Agent SDK."""

from __future__ import annotations

import base64
import contextlib
import importlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from anyio.lowlevel import checkpoint_if_cancelled
from claude_agent_sdk import SdkMcpTool, ToolAnnotations as ForeignAnnotations

from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.export._export_tool import (
    as_blocks,
    call_tool,
    describe_block,
    has_failed,
    stream_call,
)
from agents_tools.tool.records import CallOutcome

if TYPE_CHECKING:
    from agents_tools.tool.tool import FunctionTool

__all__ = ["SERVERS", "ClaudeToolCalls", "to_foreign_tool"]

_mcp: Any = importlib.import_module("mcp.types")  # major version 1 or 2: the SDK supports both
SERVERS: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()
"""The names of the function tools in servers whose calls are handled by this library."""


def to_foreign_tool(tool: FunctionTool[..., Any], context: Any) -> Any:
    """Convert a function tool to a tool of the SDK."""

    async def handler(arguments: dict[str, Any]) -> dict[str, Any]:
        outcome = await call_tool(tool, arguments, context=context)
        return {"content": _to_foreign_output(outcome), "is_error": has_failed(outcome)}

    hints = tool.annotations
    return SdkMcpTool(
        name=tool.name,
        description=tool.description,
        input_schema={"properties": {}, **tool.params_json_schema},
        handler=handler,
        annotations=None if hints is None else ForeignAnnotations(**asdict(hints)),
    )


class ClaudeToolCalls:
    """A handler for the tool calls of a server of the MCP SDK, version 1 or 2."""

    def __init__(self, tools: dict[str, FunctionTool[..., Any]], context: Any) -> None:
        self._tools = tools
        self._context = context

    def install(self, server: Any) -> None:
        """Handle the calls of a server."""
        if hasattr(server, "add_request_handler"):
            server.add_request_handler("tools/call", _mcp.CallToolRequestParams, self._handle_v2)
            return

        async def handle_v1(name: str, arguments: dict[str, Any] | None) -> Any:
            request = server.request_context
            meta: dict[str, Any] = {} if request.meta is None else request.meta.model_dump()
            token = meta.get("progressToken")

            async def report(*progress: Any) -> None:
                await request.session.send_progress_notification(token, *progress)

            result = await self._call(name, arguments, meta, None if token is None else report)
            await checkpoint_if_cancelled()  # a cancelled call has already been answered
            return result

        server.call_tool(validate_input=False)(handle_v1)

    async def _handle_v2(self, request: Any, params: Any) -> Any:
        report = request.session.report_progress
        return await self._call(params.name, params.arguments, dict(request.meta or {}), report)

    async def _call(
        self, name: str, arguments: dict[str, Any] | None, meta: dict[str, Any], report: Any
    ) -> Any:
        tool = self._tools.get(name)
        if tool is None:
            return _to_foreign_result([_text(f"There is no tool named {name!r}.")], failed=True)
        call_id = meta.get("claudecode/toolUseId")
        outcome: Any = None
        try:
            stream = stream_call(tool, arguments or {}, call_id=call_id, context=self._context)
            async with contextlib.aclosing(stream) as items:
                async for item in items:
                    if isinstance(item, CallOutcome):
                        outcome = item
                    elif report is not None and item["type"] == "tool_progress_event":
                        await report(item["current"], item["total"], item["message"])
        except Exception as error:  # noqa: BLE001 - a tool without a failure_error_function
            return _to_foreign_result([_text(str(error))], failed=True)
        return _to_foreign_result(_to_foreign_output(outcome), failed=has_failed(outcome))


def _to_foreign_result(content: list[dict[str, Any]], *, failed: bool) -> Any:
    return _mcp.CallToolResult.model_validate({"content": content, "isError": failed})


def _to_foreign_output(outcome: CallOutcome) -> list[dict[str, Any]]:
    return [_to_foreign_block(block) for block in as_blocks(outcome.output)]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _to_foreign_block(block: ContentBlock) -> dict[str, Any]:
    """Convert a block to MCP content; the SDK passes on text and images only."""
    if isinstance(block, ToolOutputImage) and block.data is not None:
        data = base64.b64encode(block.data).decode()
        return {"type": "image", "data": data, "mimeType": block.mime_type or "image/png"}
    if isinstance(block, ToolOutputText):
        return _text(block.text)
    text = _file_text(block)
    return _text(describe_block(block) + (f"\n{text}" if text else ""))


def _file_text(block: ContentBlock) -> str:
    """Return the content of a text file; an empty string for other blocks."""
    if not isinstance(block, ToolOutputFileContent) or block.data is None:
        return ""
    try:
        text = block.data.decode()
    except UnicodeDecodeError:
        return ""
    return "" if "\0" in text else text
