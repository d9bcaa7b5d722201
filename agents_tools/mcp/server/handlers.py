"""The request handlers of the MCP server: the tool list and tool calls, as protocol JSON."""

from __future__ import annotations

import asyncio
import base64
import binascii
import difflib
import inspect
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from agents_tools.content.json_value import to_json
from agents_tools.content.outputs import (
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    as_tool_result,
)
from agents_tools.errors import AgentsToolsError, UserError, UserTypeError, UserValueError
from agents_tools.events.channel import Channel
from agents_tools.mcp._progress_meta import PROGRESS_EVENTS
from agents_tools.mcp.server.client_states import ClientStates
from agents_tools.persistence.stream.masking import EventMasker
from agents_tools.schema.results import structured_result
from agents_tools.text.output import release_json, release_json_text, release_text
from agents_tools.tool.call import Call, enter_scope, leave_scope
from agents_tools.tool.failure import default_tool_error_function, is_public
from agents_tools.tool.flatten import function_tools
from agents_tools.tool.tool import FunctionTool
from agents_tools.wire.mcp import output_is_wrapped, to_mcp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agents_tools.content.outputs import ContentBlock
    from agents_tools.events.base import Event
    from agents_tools.tool.question import Question
    from agents_tools.tool.records import CallOutcome

    Report = Callable[[float, float | None, str | None, dict[str, Any] | None], Awaitable[None]]
    """Sends a progress notification: progress, total, message, and the event as JSON."""

__all__ = ["INVALID_PARAMS", "AnyTool", "MCPRequest", "RequestError", "ToolHandlers", "Tools"]

logger = logging.getLogger("agents_tools.mcp")

AnyTool = FunctionTool[..., Any]
Tools: TypeAlias = "AnyTool | Sequence[Any] | Any"
"""A tool, several tools, or an object whose `get_tools()` returns the current tools."""

INVALID_PARAMS = -32602
_STEP = 1e-6
"""The increase of progress when only the message is new: the protocol requires an increase."""


class RequestError(Exception):
    """An invalid request, answered with a JSON-RPC error.

    Args:
        message: The reason.
        code: The JSON-RPC code.
    """

    def __init__(self, message: str, code: int = INVALID_PARAMS) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class MCPRequest:
    """The request of a tool call: the default `ctx.context` of the tools of a server.

    Attributes:
        protocol_version: The protocol version of the client.
        headers: The headers of the HTTP request, in lower case, without credentials.
        principal: The authenticated caller, if the server requires authentication.
        meta: The metadata that the client sent with the arguments (`_meta`).
        request_id: The JSON-RPC id of the request.
    """

    protocol_version: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    principal: Any = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    request_id: int | str | None = None


class ToolHandlers:
    """Handlers for listing and calling the tools of a server.

    Args:
        tools: The tools, or an object whose `get_tools()` returns them.
        errors: For unexpected exceptions, `hide` sends clients the type and an id that is in the
            log, `show` the message.
        page_size: The number of tools on one page of the list.
        context: Returns the `ctx.context` of the calls of a request, sync or async; by default it
            is the request.
    """

    def __init__(
        self,
        tools: Tools,
        *,
        errors: Literal["hide", "show"] = "hide",
        page_size: int = 1_000,
        context: Callable[[MCPRequest], Any] | None = None,
    ) -> None:
        if errors not in {"hide", "show"}:
            raise UserValueError(f"errors= expects 'hide' or 'show', got {errors!r:.60}.")
        if type(page_size) is not int or page_size < 1:
            raise UserValueError(f"page_size= expects a positive integer, got {page_size!r:.60}.")
        self._source = tools
        self._errors: Literal["hide", "show"] = errors
        self._page_size = page_size
        self._context = context
        self.states = ClientStates()
        self._tools: tuple[AnyTool, ...] = ()
        self._by_name: dict[str, AnyTool] = {}
        self._pages: dict[tuple[str, str | None], dict[str, Any]] = {}
        self.is_dynamic = hasattr(tools, "get_tools")
        if not self.is_dynamic:
            self._set_tools(_as_tools(tools))

    async def tools(self) -> dict[str, AnyTool]:
        """Return the current tools by name."""
        if self.is_dynamic:
            source: Any = self._source
            tools: Any = source.get_tools()
            if inspect.isawaitable(tools):
                tools = await tools
            self._set_tools(_as_tools(tools))
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
        names = list(tools)
        if cursor is not None:
            last = _read_cursor(cursor)
            names = [name for name in names if name > last]
        page, has_more = names[: self._page_size], len(names) > self._page_size
        listed: list[dict[str, Any]] = []
        for name in page:
            if tools[name].is_enabled is False:
                continue
            try:
                listed.append(to_mcp(tools[name], protocol_version=version))
            except UserError as error:  # the other tools are still listed
                logger.warning("Tool %r is left out of the list: %s", name, error)
        result: dict[str, Any] = {"tools": listed}
        if has_more:
            result["nextCursor"] = _cursor(page[-1])
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
            RequestError: There is no such tool.
        """
        tool = await self._enabled_tool(name)
        call = Call.fresh(await self._context_of(request))
        call.asker = ask
        text = json.dumps(dict(arguments or {}))
        token = enter_scope(None)  # the caller can be a client inside another call of this process
        try:
            async with self.states.of(request.principal) as call.tool_state:
                if report is None:
                    outcome = await tool.call(call, text)
                else:
                    outcome = await _call_with_progress(tool, call, text, report)
        finally:
            leave_scope(token)
        return self._result(tool, outcome, request.protocol_version)

    async def _enabled_tool(self, name: str) -> AnyTool:
        tools = await self.tools()
        tool = tools.get(name)
        if tool is None or tool.is_enabled is False:
            matches = difflib.get_close_matches(name, tools, n=1)
            hint = f" Did you mean {matches[0]!r}?" if matches else ""
            raise RequestError(f"Unknown tool: {name!r:.100}.{hint}")
        return tool

    async def _context_of(self, request: MCPRequest) -> Any:
        if self._context is None:
            return request
        context = self._context(request)
        return await context if inspect.isawaitable(context) else context

    def _result(self, tool: AnyTool, outcome: CallOutcome, version: str) -> dict[str, Any]:
        if outcome.error is not None:
            return _error_result(self._error_text(tool, outcome, outcome.error))
        content = _content(outcome.output)
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
                return _error_result(default_tool_error_function(_NamedTool(tool.name), error))
            is_wrapped = output_is_wrapped(schema, version)
            result["structuredContent"] = {"result": structured} if is_wrapped else structured
        elif tool_result is not None and isinstance(value, Mapping):
            result["structuredContent"] = release_json_text(to_json(value))
        return result

    def _error_text(self, tool: AnyTool, outcome: CallOutcome, error: Exception) -> str:
        if self._errors == "hide" and outcome.public_message is not None:
            if not is_public(error):
                logger.error("%s", outcome.public_message, exc_info=error)
            return outcome.public_message
        if isinstance(outcome.output, str) and outcome.output:
            return outcome.output
        return default_tool_error_function(_NamedTool(tool.name), error)


@dataclass(frozen=True, slots=True)
class _NamedTool:
    tool_name: str


async def _call_with_progress(tool: AnyTool, call: Call, text: str, report: Report) -> CallOutcome:
    """Call a tool, and send all its progress events before returning its result."""
    channel = Channel()
    call.watch(channel)

    async def send() -> None:
        progress, masker = _ProgressReporter(), EventMasker({})
        async for event in channel:
            for masked in masker.masked(event):
                await send_one(progress.convert(masked))
        for masked in masker.release():
            await send_one(progress.convert(masked))

    async def send_one(notification: _Notification | None) -> None:
        if notification is None:
            return
        try:
            await report(*notification)
        except Exception:
            logger.exception("Progress of tool %r could not be sent.", tool.name)

    async with asyncio.TaskGroup() as group:
        group.create_task(send())
        try:
            return await tool.call(call, text)
        finally:
            channel.close()


_Notification: TypeAlias = tuple[float, float | None, str | None, dict[str, Any] | None]
"""The progress, the total, the message and the event of a notification."""


class _ProgressReporter:
    """Converts events to progress notifications; the protocol requires increasing progress."""

    def __init__(self) -> None:
        self._progress = 0.0
        self._total: float | None = None
        self._has_count = False
        self._has_reported = False

    def convert(self, event: Event) -> _Notification | None:
        """Return the notification for an event; `None` for an event that is not sent."""
        if event.type not in PROGRESS_EVENTS:
            return None
        message: str | None
        if event.type == "tool_progress_event":
            current = float(cast("Any", event).current)
            self._total = cast("Any", event).total
            increased = max(current, self._progress + _STEP)
            self._progress = increased if self._has_reported else current
            self._has_count = True
            text = cast("Any", event).message
            message = None if text is None else release_text(text)
        else:
            self._progress += _STEP if self._has_count else 1
            message = _message_text(event)
        self._has_reported = True
        return self._progress, self._total, message, event.to_dict()


def _message_text(event: Event) -> str | None:
    """Return the text of an event for clients that show progress messages only."""
    fields: Any = event
    if event.type == "notify_stream_event":
        return release_text(str(fields.data))
    if event.type == "tool_artifact_event":
        kind = f" ({fields.mime_type})" if fields.mime_type else ""
        return release_text(f"{fields.name}{kind}")
    return None


def _error_result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _content(output: str | list[ContentBlock]) -> list[dict[str, Any]]:
    if isinstance(output, str):
        return [{"type": "text", "text": output}]
    return [_block(block, number) for number, block in enumerate(output, start=1)]


def _block(block: ContentBlock, number: int) -> dict[str, Any]:
    """Return the protocol's JSON for a block of a result."""
    if isinstance(block, ToolOutputText):
        return {"type": "text", "text": block.text}
    kind = block.mime_type
    if block.data is not None:
        data = base64.b64encode(block.data).decode()
        if isinstance(block, ToolOutputImage):
            return {"type": "image", "data": data, "mimeType": kind or "application/octet-stream"}
        if isinstance(block, ToolOutputAudio):
            return {"type": "audio", "data": data, "mimeType": kind or "application/octet-stream"}
        name = block.filename or f"file-{number}"
        resource: dict[str, Any] = {"uri": f"attachment:///{name}", "blob": data}
        if kind is not None:
            resource["mimeType"] = kind
        if kind is not None and kind.startswith("text/"):
            text = _as_text(block.data)
            if text is not None:
                del resource["blob"]
                resource["text"] = text
        return {"type": "resource", "resource": resource}
    uri = block.url or f"file-id:{block.file_id}"
    filename = block.filename if isinstance(block, ToolOutputFileContent) else None
    link = {"type": "resource_link", "uri": uri, "name": filename or uri.rpartition("/")[2] or uri}
    return {**link, "mimeType": kind} if kind is not None else link


def _as_text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _as_tools(tools: Any) -> list[AnyTool]:
    """Return the built function tools from one tool or a collection."""
    is_single = isinstance(tools, FunctionTool) or hasattr(tools, "as_function_tool")
    items: Any = [cast("Any", tools)] if is_single else cast("Any", tools)
    if isinstance(items, Mapping):
        items = list(cast("Mapping[Any, Any]", items).values())
    if isinstance(items, (str, bytes)) or not isinstance(items, (Sequence, set, frozenset)):
        raise UserTypeError(
            f"tools= expects function tools, got a value of type {type(items).__name__}. Pass a "
            "list of tools, or an object with get_tools()."
        )
    result = list(function_tools(cast("Any", items)))
    for tool in result:
        if not isinstance(tool, FunctionTool):
            remedy = "Use agent.as_tool()." if hasattr(tool, "as_tool") else "Use @function_tool."
            raise UserTypeError(f"tools= expects function tools, got {tool!r:.80}. {remedy}")
        cast("AnyTool", tool).build()
    return result


def _cursor(name: str) -> str:
    return base64.urlsafe_b64encode(f"after:{name}".encode()).decode()


def _read_cursor(cursor: str) -> str:
    try:
        text = base64.urlsafe_b64decode(cursor.encode()).decode()
    except (binascii.Error, ValueError):
        text = ""
    if not text.startswith("after:"):
        raise RequestError(f"The cursor {cursor!r:.80} was not issued by this server.")
    return text.removeprefix("after:")
