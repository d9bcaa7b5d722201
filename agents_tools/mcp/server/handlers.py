"""The request handlers of the MCP server: the tool list and tool calls, as protocol JSON."""

from __future__ import annotations

import difflib
import inspect
import json
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from agents_tools.content.json_value import to_json
from agents_tools.content.outputs import as_tool_result
from agents_tools.errors import AgentsToolsError, UserError, UserTypeError, UserValueError
from agents_tools.mcp.server.content import content_blocks
from agents_tools.mcp.server.paging import page_of
from agents_tools.mcp.server.requests import MCPRequest, RequestError
from agents_tools.mcp.server.served_calls import ServedCalls, failure_text
from agents_tools.schema.results import structured_result
from agents_tools.text.output import release_json, release_json_text
from agents_tools.tool.flatten import function_tools
from agents_tools.tool.tool import FunctionTool
from agents_tools.wire.mcp import output_is_wrapped, to_mcp

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.mcp.server.progress import Report
    from agents_tools.tool.question import Question
    from agents_tools.tool.records import CallOutcome

__all__ = ["AnyTool", "ToolHandlers", "Tools", "as_tools"]

logger = logging.getLogger("agents_tools.mcp")

AnyTool = FunctionTool[..., Any]
Tools: TypeAlias = "AnyTool | Sequence[Any] | Any"
"""A tool, several tools, or an object whose `get_tools()` returns the current tools."""


class ToolHandlers:
    """Handlers for listing and calling the tools of a server.

    Args:
        tools: The tools, or an object whose `get_tools()` returns them.
        calls: Performs the calls.
        page_size: The number of tools on one page of the list.
    """

    def __init__(self, tools: Tools, calls: ServedCalls, *, page_size: int = 1_000) -> None:
        self._source = tools
        self._page_size = page_size
        self.calls = calls
        self._tools: tuple[AnyTool, ...] = ()
        self._by_name: dict[str, AnyTool] = {}
        self._pages: dict[tuple[str, str | None], dict[str, Any]] = {}
        self.is_dynamic = hasattr(tools, "get_tools")
        if not self.is_dynamic:
            self._set_tools(as_tools(tools))

    async def tools(self) -> dict[str, AnyTool]:
        """Return the current tools by name."""
        if self.is_dynamic:
            source: Any = self._source
            tools: Any = source.get_tools()
            if inspect.isawaitable(tools):
                tools = await tools
            self._set_tools(as_tools(tools))
        return self._by_name

    def find(self, name: str) -> AnyTool | None:
        """Return a tool by name, among the tools of the last `tools()`."""
        return self._by_name.get(name)

    def _set_tools(self, tools: Sequence[AnyTool]) -> None:
        if tuple(tools) == self._tools:
            return
        by_name: dict[str, AnyTool] = {}
        for tool in tools:
            other = by_name.setdefault(tool.name, tool)
            if other is not tool:
                raise UserValueError(
                    f"Two of the tools to serve are named {tool.name!r}. Give one of them another "
                    f"name, for example with policies.rename({tool.name + '_2'!r})."
                )
        self._tools = tuple(tools)
        self._by_name = dict(sorted(by_name.items()))
        self._pages.clear()

    # --- the list

    async def list_tools(self, version: str, cursor: str | None) -> dict[str, Any]:
        """Return one page of the tool list, ordered by name.

        Args:
            version: The protocol version of the client.
            cursor: The `nextCursor` of the previous page.

        Raises:
            RequestError: This server did not issue the cursor.
        """
        tools = await self.tools()
        cached = self._pages.get((version, cursor))
        if cached is not None:
            return cached
        page, next_cursor = page_of(tools, cursor, self._page_size)
        listed: list[dict[str, Any]] = []
        for name in page:
            if tools[name].is_enabled is False:
                continue
            try:
                listed.append(to_mcp(tools[name], protocol_version=version))
            except UserError as error:  # the other tools are still listed
                logger.warning("Tool %r is left out of the list: %s", name, error)
        result: dict[str, Any] = {"tools": listed}
        if next_cursor is not None:
            result["nextCursor"] = next_cursor
        self._pages[version, cursor] = result
        return result

    # --- a call

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        request: MCPRequest,
        report: Report | None,
        ask: Callable[[Question], Any] | None = None,
    ) -> dict[str, Any]:
        """Call a tool and return its result.

        Args:
            name: The name of the tool.
            arguments: The arguments.
            request: The request.
            report: Sends progress; `None` if the client has not requested any.
            ask: Sends questions of the tool; `None` if the client cannot answer any.

        Raises:
            RequestError: There is no such tool, or the client lacks a capability that it needs.
        """
        tool = await self.enabled_tool(name)
        text = json.dumps(dict(arguments or {}))
        outcome = await self.calls.perform(tool, text, request, report, ask)
        return self._result(tool, outcome, request.protocol_version)

    async def enabled_tool(self, name: str) -> AnyTool:
        """Return a tool by name.

        Raises:
            RequestError: There is no such tool.
        """
        tools = await self.tools()
        tool = tools.get(name)
        if tool is None or tool.is_enabled is False:
            matches = difflib.get_close_matches(name, tools, n=1)
            hint = f" Did you mean {matches[0]!r}?" if matches else ""
            raise RequestError(f"Unknown tool: {name!r:.100}.{hint}")
        return tool

    def _result(self, tool: AnyTool, outcome: CallOutcome, version: str) -> dict[str, Any]:
        if outcome.error is not None:
            return _error_result(self.calls.error_text(tool, outcome, outcome.error))
        content = content_blocks(outcome.output)
        value = outcome.value
        result: dict[str, Any] = {"content": content}
        tool_result = as_tool_result(value)
        if tool_result is not None:
            if tool_result.is_error:
                return {"content": content, "isError": True}
            meta = (tool_result.metadata or {}).get("_meta")
            if isinstance(meta, Mapping):
                result["_meta"] = release_json(meta, to="program")
            value = tool_result.structured
        schema = tool.output_json_schema
        if schema is not None:
            try:
                structured = structured_result(tool.name, schema, tool.to_json(value))
            except AgentsToolsError as error:
                return _error_result(failure_text(tool.name, error))
            is_wrapped = output_is_wrapped(schema, version)
            result["structuredContent"] = {"result": structured} if is_wrapped else structured
        elif tool_result is not None and isinstance(value, Mapping):
            result["structuredContent"] = release_json_text(to_json(value))
        return result


def _error_result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def as_tools(tools: Any) -> list[AnyTool]:
    """Return the built function tools from one tool or a collection."""
    is_single = isinstance(tools, FunctionTool) or any(
        hasattr(cast("object", tools), name) for name in ("as_function_tool", "as_tool")
    )
    items: Any = [cast("Any", tools)] if is_single else cast("Any", tools)
    if isinstance(items, Mapping):
        items = list(cast("Mapping[Any, Any]", items).values())
    if isinstance(items, (str, bytes)) or not isinstance(items, (Sequence, set, frozenset)):
        raise UserTypeError(
            f"tools= expects function tools, got a value of type {type(items).__name__}. Pass a "
            "list of tools, or an object with get_tools()."
        )
    result = [
        one.as_tool() if hasattr(one, "as_tool") else one  # an agent
        for one in function_tools(cast("Any", items))
    ]
    for tool in result:
        if not isinstance(tool, FunctionTool):
            raise UserTypeError(
                f"tools= expects function tools or agents, got {tool!r:.80}. Use @function_tool."
            )
        cast("AnyTool", tool).build()
    return result
