"""What a server answers: its list of tools and the results of calls, as JSON of the protocol."""

from __future__ import annotations

import asyncio
import base64
import binascii
import difflib
import inspect
import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from agents_tools._channel import Channel
from agents_tools._secrets import mask_registered_json
from agents_tools._text import type_name
from agents_tools.context import ToolContext, enter_scope, leave_scope
from agents_tools.errors import AgentsToolsError, UserError, UserTypeError, UserValueError
from agents_tools.mcp._report import TOLD
from agents_tools.outputs import (
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    result_of,
    to_json,
)
from agents_tools.tool import FunctionTool, default_tool_error_function, function_tools
from agents_tools.wire.mcp import output_is_wrapped, to_mcp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agents_tools._records import CallOutcome
    from agents_tools.context import Question
    from agents_tools.events import Event
    from agents_tools.mcp._remote import Order
    from agents_tools.mcp._worker import Send, Worker
    from agents_tools.outputs import ContentBlock

    Report = Callable[[float, float | None, str | None, dict[str, Any] | None], Awaitable[None]]
    """Sends one report of progress: how much, of how much, what, and more for those who know it."""

__all__ = ["INVALID_PARAMS", "AnyTool", "MCPRequest", "Offer", "RequestError", "Tools"]

logger = logging.getLogger("agents_tools.mcp")

AnyTool = FunctionTool[..., Any]
Tools: TypeAlias = "AnyTool | Sequence[Any] | Any"
"""A tool, tools, or an object whose `get_tools()` gives them as they are at the moment."""

INVALID_PARAMS = -32602
_STEP = 1e-6
"""How much progress moves on where only a text is new: the protocol wants it to grow."""


class RequestError(Exception):
    """A request that cannot be answered at all.

    Args:
        message: Why.
        code: The JSON-RPC code.
    """

    def __init__(self, message: str, code: int = INVALID_PARAMS) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class MCPRequest:
    """The request that a call came with: what tools of a server see as `ctx.context`.

    Attributes:
        protocol_version: The version that is spoken with the client.
        headers: The headers of the HTTP request, in lower case, without credentials.
        principal: Who calls, where the server knows it.
        meta: What the client sent beside the arguments (`_meta`).
        request_id: The id of the request.
    """

    protocol_version: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    principal: Any = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    request_id: int | str | None = None


class Offer:
    """The tools that a server offers.

    Args:
        tools: The tools, or what gives them.
        errors: What clients are told of exceptions that are not meant for them: `hide` gives the
            type and an id that stands in the log, `show` the message.
        worker: Whether the backends that call are the application's own; see `Worker`.
        page_size: How many tools stand on one page of the list.
        context: Gives the application's object for the calls of a request; sync or async. The
            request itself by default.
    """

    def __init__(
        self,
        tools: Tools,
        *,
        errors: Literal["hide", "show"] = "hide",
        worker: bool = False,
        page_size: int = 1_000,
        context: Callable[[MCPRequest], Any] | None = None,
    ) -> None:
        if errors not in {"hide", "show"}:
            raise UserValueError(f"errors= is 'hide' or 'show', not {errors!r:.60}.")
        if type(page_size) is not int or page_size < 1:
            raise UserValueError(f"page_size= is a positive whole number, not {page_size!r:.60}.")
        self._source = tools
        self._errors: Literal["hide", "show"] = errors
        self._own = worker
        self._worker: Worker | None = None
        self._page_size = page_size
        self._context = context
        self._known: tuple[AnyTool, ...] = ()
        self._by_name: dict[str, AnyTool] = {}
        self._pages: dict[tuple[str, str | None], dict[str, Any]] = {}
        if not hasattr(tools, "get_tools"):
            self._take(_listed(tools))

    async def tools(self) -> dict[str, AnyTool]:
        """Give the tools by name, as they are now."""
        source: Any = self._source
        if hasattr(source, "get_tools"):
            given: Any = source.get_tools()
            if inspect.isawaitable(given):
                given = await given
            self._take(_listed(given))
        return self._by_name

    def known(self, name: str) -> AnyTool | None:
        """Give a tool as it was when tools were last asked for."""
        return self._by_name.get(name)

    def _take(self, tools: Sequence[AnyTool]) -> None:
        if tuple(tools) == self._known:
            return
        by_name: dict[str, AnyTool] = {}
        for tool in tools:
            other = by_name.setdefault(tool.name, tool)
            if other is not tool:
                raise UserValueError(
                    f"Two of the tools to serve are named {tool.name!r}. Give one of them another "
                    f"name, for example with policies.rename({tool.name + '_2'!r})."
                )
        self._known = tuple(tools)
        self._by_name = dict(sorted(by_name.items()))
        self._pages.clear()

    # --- the list

    async def list_tools(self, version: str, cursor: str | None) -> dict[str, Any]:
        """Give one page of the list, in the order of names.

        Args:
            version: The version that is spoken with the client.
            cursor: Where the page before ended.

        Raises:
            RequestError: The cursor is none of ours.
        """
        tools = await self.tools()
        known = self._pages.get((version, cursor))
        if known is not None:
            return known
        names = list(tools)
        if cursor is not None:
            last = _read_cursor(cursor)
            names = [name for name in names if name > last]
        page, more = names[: self._page_size], len(names) > self._page_size
        listed: list[dict[str, Any]] = []
        for name in page:
            if tools[name].is_enabled is False:
                continue
            try:
                listed.append(to_mcp(tools[name], protocol_version=version))
            except UserError as error:  # one bad tool never costs the others
                logger.warning("Tool %r is left out of the list: %s", name, error)
        result: dict[str, Any] = {"tools": listed}
        if more:
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
        """Call a tool and give the result.

        Args:
            name: Its name.
            arguments: The arguments.
            request: The request.
            report: Sends progress, where the client wants any.
            ask: Takes the questions of the tool, where the client can answer any.

        Raises:
            RequestError: There is no such tool.
        """
        tool = await self._named(name)
        context: ToolContext[Any] = ToolContext(await self._own_context(request))
        context.asker = ask
        text = json.dumps(dict(arguments or {}))
        token = enter_scope(None)  # a client in this process may call from within a call
        try:
            if report is None:
                outcome = await tool.call(context, text)
            else:
                outcome = await _reported(tool, context, text, report)
        finally:
            leave_scope(token)
        return self._result(tool, outcome, request.protocol_version)

    async def perform(self, order: Order, request: MCPRequest, send: Send | None) -> dict[str, Any]:
        """Make a call of a backend and give the result.

        Args:
            order: The call.
            request: The request.
            send: Sends events, where there is a way for them.

        Raises:
            RequestError: There is no such tool, or the call cannot be made.
        """
        from agents_tools.mcp._worker import Worker

        tool = await self._named(order.envelope.tool)
        if self._worker is None:
            self._worker = Worker(own=self._own, errors=self._errors)
        who = request.principal
        context = await self._own_context(request)
        token = enter_scope(None)
        try:
            return await self._worker.perform(
                tool,
                order,
                context=context,
                whose=None if who is None else f"{who.client_id}\0{who.subject}",
                tell=self._hidden_text,
                send=send,
            )
        except AgentsToolsError as error:
            raise RequestError(str(error)) from None
        finally:
            leave_scope(token)

    async def _named(self, name: str) -> AnyTool:
        tools = await self.tools()
        tool = tools.get(name)
        if tool is None or tool.is_enabled is False:
            near = difflib.get_close_matches(name, tools, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise RequestError(f"Unknown tool: {name!r:.100}.{hint}")
        return tool

    async def _own_context(self, request: MCPRequest) -> Any:
        if self._context is None:
            return request
        given = self._context(request)
        return await given if inspect.isawaitable(given) else given

    def _result(self, tool: AnyTool, outcome: CallOutcome, version: str) -> dict[str, Any]:
        if outcome.error is not None:
            text = self._error_text(tool, outcome, outcome.error)
            return {"content": [{"type": "text", "text": text}], "isError": True}
        content = _content(outcome.output)
        value = outcome.value
        result: dict[str, Any] = {"content": content}
        given = result_of(value)
        if given is not None:
            if given.is_error:
                return {"content": content, "isError": True}
            meta = (given.metadata or {}).get("_meta")
            if isinstance(meta, Mapping):
                result["_meta"] = mask_registered_json(dict(cast("Mapping[str, Any]", meta)))
            value = given.structured
        schema = tool.output_json_schema
        if schema is not None:
            structured = mask_registered_json(json.loads(tool.to_json(value)))
            wrapped = output_is_wrapped(schema, version)
            result["structuredContent"] = {"result": structured} if wrapped else structured
        elif given is not None and isinstance(value, Mapping):
            result["structuredContent"] = mask_registered_json(json.loads(to_json(value)))
        return result

    def _error_text(self, tool: AnyTool, outcome: CallOutcome, error: Exception) -> str:
        own = tool.failure_error_function
        if own not in {None, default_tool_error_function} and isinstance(outcome.output, str):
            return outcome.output
        hidden = self._hidden_text(tool, error)
        return default_tool_error_function(_Named(tool.name), error) if hidden is None else hidden

    def _hidden_text(self, tool: AnyTool, error: Exception) -> str | None:
        """Give what stands for the text of an error; `None` for one that may be told."""
        if isinstance(error, AgentsToolsError) or self._errors == "show":
            return None
        number = secrets.token_hex(4)
        logger.error("Tool %r failed (error %s)", tool.name, number, exc_info=error)
        return f"Tool {tool.name!r} failed: {type_name(type(error))} (error {number})."


@dataclass(frozen=True, slots=True)
class _Named:
    tool_name: str


async def _reported(
    tool: AnyTool, context: ToolContext[Any], text: str, report: Report
) -> CallOutcome:
    """Call a tool; everything that it says is sent before its result is."""
    channel = Channel()
    context.watch(channel)

    async def send() -> None:
        progress = _Progress()
        async for event in channel:
            told = progress.of(event)
            if told is not None:
                await report(*told)

    async with asyncio.TaskGroup() as group:
        group.create_task(send())
        try:
            return await tool.call(context, text)
        finally:
            channel.close()


class _Progress:
    """Turns events into reports of progress, whose numbers have to grow."""

    def __init__(self) -> None:
        self._at = 0.0
        self._total: float | None = None
        self._counted = False
        self._said = False

    def of(
        self, event: Event
    ) -> tuple[float, float | None, str | None, dict[str, Any] | None] | None:
        """Give the report of an event; `None` for what says nothing."""
        kind = event.type
        if kind not in TOLD:
            return None
        message: str | None
        if kind == "tool_progress_event":
            current: float = cast("Any", event).current
            self._total = cast("Any", event).total
            self._at = max(float(current), self._at + _STEP) if self._said else float(current)
            self._counted = self._said = True
            message = cast("Any", event).message
        else:
            self._at += _STEP if self._counted else 1
            self._said = True
            message = _words(event)
        return self._at, self._total, message, event.to_dict()


def _words(event: Event) -> str | None:
    """Give what an event says to a person who only sees lines of text."""
    told: Any = event
    if event.type == "notify_stream_event":
        return str(told.data)
    if event.type == "tool_artifact_event":
        return f"{told.name}" + (f" ({told.mime_type})" if told.mime_type else "")
    return None


def _content(output: str | list[ContentBlock]) -> list[dict[str, Any]]:
    if isinstance(output, str):
        return [{"type": "text", "text": output}] if output else []
    return [_block(block, number) for number, block in enumerate(output, start=1)]


def _block(block: ContentBlock, number: int) -> dict[str, Any]:
    """Give a block of a result as the protocol writes it."""
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
            with_text = _as_text(block.data)
            if with_text is not None:
                del resource["blob"]
                resource["text"] = with_text
        return {"type": "resource", "resource": resource}
    uri = block.url or f"file-id:{block.file_id}"
    if uri.startswith("data:") and isinstance(block, (ToolOutputImage, ToolOutputAudio)):
        head, _, data = uri.partition(",")
        if head.endswith(";base64"):
            return {"type": block.type, "data": data, "mimeType": head[5:-7] or "image/png"}
    filename = block.filename if isinstance(block, ToolOutputFileContent) else None
    link = {"type": "resource_link", "uri": uri, "name": filename or uri.rpartition("/")[2] or uri}
    return {**link, "mimeType": kind} if kind is not None else link


def _as_text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _listed(tools: Any) -> list[AnyTool]:
    single = isinstance(tools, FunctionTool) or hasattr(tools, "as_function_tool")
    given: Any = [cast("Any", tools)] if single else cast("Any", tools)
    if isinstance(given, Mapping):
        given = list(cast("Mapping[Any, Any]", given).values())
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, set, frozenset)):
        raise UserTypeError(
            f"What is served are function tools; it got a {type(given).__name__}. Give a list of "
            "tools, or an object with get_tools()."
        )
    listed = list(function_tools(cast("Any", given)))
    for tool in listed:
        if not isinstance(tool, FunctionTool):
            remedy = "Write agent.as_tool()." if hasattr(tool, "as_tool") else "Use @function_tool."
            raise UserTypeError(
                f"What is served are function tools; {tool!r:.80} is none. {remedy}"
            )
        cast("AnyTool", tool).build()
    return listed


def _cursor(name: str) -> str:
    return base64.urlsafe_b64encode(f"after:{name}".encode()).decode()


def _read_cursor(cursor: str) -> str:
    try:
        text = base64.urlsafe_b64decode(cursor.encode()).decode()
    except (binascii.Error, ValueError):
        text = ""
    if not text.startswith("after:"):
        raise RequestError(f"The cursor {cursor!r:.80} is not one that this server gave.")
    return text.removeprefix("after:")
