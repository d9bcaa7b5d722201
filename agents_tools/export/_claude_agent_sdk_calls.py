"""Our tools as the Claude Agent SDK calls them."""

from __future__ import annotations

import base64
import contextlib
import importlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from anyio.lowlevel import checkpoint_if_cancelled
from claude_agent_sdk import SdkMcpTool, ToolAnnotations as ForeignAnnotations

from agents_tools._records import CallOutcome
from agents_tools.export._outgoing import blocks_of, called, described, followed, has_failed
from agents_tools.outputs import (
    ContentBlock,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)

if TYPE_CHECKING:
    from agents_tools.tool import FunctionTool

__all__ = ["SERVERS", "Calls", "tool_there"]

_mcp: Any = importlib.import_module("mcp.types")  # of either line, as the SDK takes both
SERVERS: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()
"""The names of the tools of ours in servers that answer their calls here."""


def tool_there(tool: FunctionTool[..., Any], context: Any) -> Any:
    """Make what the SDK takes of a tool of ours."""

    async def handler(arguments: dict[str, Any]) -> dict[str, Any]:
        outcome = await called(tool, arguments, context=context)
        return {"content": _foreign_output(outcome), "is_error": has_failed(outcome)}

    hints = tool.annotations
    return SdkMcpTool(
        name=tool.name,
        description=tool.description,
        input_schema={"properties": {}, **tool.params_json_schema},
        handler=handler,
        annotations=None if hints is None else ForeignAnnotations(**asdict(hints)),
    )


class Calls:
    """Answers the calls of a server, whichever line of MCP's SDK it is of."""

    def __init__(self, tools: dict[str, FunctionTool[..., Any]], context: Any) -> None:
        self._tools = tools
        self._context = context

    def answer_in(self, server: Any) -> None:
        """Answer the calls of this server."""
        if hasattr(server, "add_request_handler"):
            server.add_request_handler("tools/call", _mcp.CallToolRequestParams, self._second)
            return

        async def first(name: str, arguments: dict[str, Any] | None) -> Any:
            request = server.request_context
            meta: dict[str, Any] = {} if request.meta is None else request.meta.model_dump()
            token = meta.get("progressToken")

            async def report(*progress: Any) -> None:
                await request.session.send_progress_notification(token, *progress)

            result = await self._answer(name, arguments, meta, None if token is None else report)
            await checkpoint_if_cancelled()  # or it would be a second answer to a cancelled call
            return result

        server.call_tool(validate_input=False)(first)

    async def _second(self, request: Any, params: Any) -> Any:
        report = request.session.report_progress
        return await self._answer(params.name, params.arguments, dict(request.meta or {}), report)

    async def _answer(
        self, name: str, arguments: dict[str, Any] | None, meta: dict[str, Any], report: Any
    ) -> Any:
        tool = self._tools.get(name)
        if tool is None:
            return _foreign_result([_text(f"There is no tool {name!r}.")], failed=True)
        call_id = meta.get("claudecode/toolUseId")
        outcome: Any = None
        try:
            said = followed(tool, arguments or {}, call_id=call_id, context=self._context)
            async with contextlib.aclosing(said) as items:
                async for item in items:
                    if isinstance(item, CallOutcome):
                        outcome = item
                    elif report is not None and item["type"] == "tool_progress_event":
                        await report(item["current"], item["total"], item["message"])
        except Exception as error:  # noqa: BLE001 - what a tool raises that answers for nothing
            return _foreign_result([_text(str(error))], failed=True)
        return _foreign_result(_foreign_output(outcome), failed=has_failed(outcome))


def _foreign_result(content: list[dict[str, Any]], *, failed: bool) -> Any:
    return _mcp.CallToolResult.model_validate({"content": content, "isError": failed})


def _foreign_output(outcome: CallOutcome) -> list[dict[str, Any]]:
    return [_foreign_block(block) for block in blocks_of(outcome.output)]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _foreign_block(block: ContentBlock) -> dict[str, Any]:
    """Give a block as the SDK passes it on: text and images, and nothing else."""
    if isinstance(block, ToolOutputImage) and block.data is not None:
        data = base64.b64encode(block.data).decode()
        return {"type": "image", "data": data, "mimeType": block.mime_type or "image/png"}
    if isinstance(block, ToolOutputText):
        return _text(block.text)
    text = _text_in(block)
    return _text(described(block) + (f"\n{text}" if text else ""))


def _text_in(block: ContentBlock) -> str:
    """Give the text of a file that is one."""
    if not isinstance(block, ToolOutputFileContent) or block.data is None:
        return ""
    try:
        text = block.data.decode()
    except UnicodeDecodeError:
        return ""
    return "" if "\0" in text else text
