"""A function tool for one tool of a server, called over an existing connection."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import (
    MCPConnectionError,
    MCPProtocolError,
    MCPTimeoutError,
    ToolLostError,
    UserTypeError,
    UserValueError,
)
from agents_tools.mcp._coerce import text_or_none
from agents_tools.mcp._sanitize import UnusableTool, clean_text, clean_tool, public_names
from agents_tools.mcp.client.adapter import create_source
from agents_tools.mcp.client.callbacks import RequestHandlers
from agents_tools.mcp.client.connection import Connection
from agents_tools.mcp.client.cross_loop import run_on_loop
from agents_tools.mcp.client.input_required import forward_progress, perform_call
from agents_tools.mcp.client.manager import MCPToolManager
from agents_tools.text.output import release_text
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from agents_tools.tool.context import ToolContext

__all__ = ["MCPTool"]

logger = logging.getLogger("agents_tools.mcp")


class MCPTool(FunctionTool[..., Any]):
    """A tool of a server that the program defines, instead of the server's tool list.

    Arguments are validated before they are sent. Progress, results and errors are the same as for
    the tools of `MCPToolManager`.

    Args:
        mcp_connection: The connection: one of a manager (`MCPToolManager.get_connection`), a
            manager with exactly one server, or an open session or client of the SDK, which is any
            object with an async `call_tool(name, arguments)`.
        tool_name: The name that models see; it is adapted to the rules of the model providers.
        tool_description: The description that models see.
        input_schema: The JSON Schema of the arguments.
        remote_tool_name: The name of the tool on the server; `tool_name` by default.

    Raises:
        UserError: The connection or the definition is invalid.
    """

    def __init__(
        self,
        mcp_connection: object,
        tool_name: str,
        tool_description: str,
        input_schema: Mapping[str, Any],
        remote_tool_name: str | None = None,
    ) -> None:
        remote: _ConnectionRemote | _SessionRemote = _create_remote(mcp_connection)
        wire = _sanitize_definition(tool_name, tool_description, input_schema, remote_tool_name)
        wire_name: str = wire["name"]

        async def perform(context: ToolContext[Any], arguments: dict[str, Any]) -> dict[str, Any]:
            return await remote.call(context, wire_name, arguments)

        source, options = create_source(
            wire,
            name=public_names(remote.server, [tool_name], prefix=None)[tool_name],
            server=remote.server,
            perform=perform,
        )
        self._init(source, is_enabled=True, **options)
        self._remote = remote

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that the connection belongs to; `None` before its first use.

        Calls from other loops and threads run on this loop.
        """
        return self._remote.loop


def _sanitize_definition(
    name: Any, description: Any, schema: Any, remote_name: Any
) -> dict[str, Any]:
    """Return the definition in the format of `tools/list`, sanitized."""
    if not isinstance(name, str) or not name.strip():
        raise UserTypeError(f"MCPTool(tool_name=...) expects a non-empty string, got {name!r:.60}.")
    if not isinstance(description, str | None):
        raise UserTypeError(
            f"MCPTool {name!r:.80}: tool_description expects a string, got "
            f"{type(description).__name__}."
        )
    if not isinstance(schema, Mapping):
        raise UserTypeError(
            f"MCPTool {name!r:.80}: input_schema expects a JSON Schema, such as "
            f'{{"type": "object", "properties": {{}}}}, got {type(schema).__name__}.'
        )
    listed = {
        "name": name if remote_name is None else remote_name,
        "description": description or "",
        "inputSchema": dict(cast("Mapping[str, Any]", schema)),
    }
    try:
        clean = clean_tool(listed)
    except UnusableTool as error:
        raise UserValueError(f"MCPTool {name!r:.80} is invalid: {error}.") from None
    for finding in clean.findings:
        logger.warning("MCPTool %r: %s", name, finding)
    return clean.wire


def _create_remote(connection: Any) -> _ConnectionRemote | _SessionRemote:
    """Return the remote that calls tools over a connection, a manager or a session."""
    if isinstance(connection, MCPToolManager):
        names = connection.get_server_names()
        if len(names) != 1:
            known = ", ".join(map(repr, names)) or "none"
            raise UserValueError(
                f"MCPTool(mcp_connection=...) expects a manager with one server, got servers: "
                f"{known}. Pass manager.get_connection(name)."
            )
        connection = connection.get_connection(names[0])
    if isinstance(connection, Connection):
        return _ConnectionRemote(connection)
    if inspect.iscoroutinefunction(getattr(connection, "call_tool", None)):
        return _SessionRemote(connection)
    raise UserTypeError(
        "MCPTool(mcp_connection=...) expects manager.get_connection(name), or an open session of "
        f"the SDK with an async call_tool(name, arguments), got {type(connection).__name__}."
    )


class _ConnectionRemote:
    """A server that is called over a connection of a manager."""

    def __init__(self, connection: Connection) -> None:
        owner = connection.owner
        self._connection = connection
        self._manager = owner if isinstance(owner, MCPToolManager) else None
        self.server = connection.name

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        return self._connection.loop

    async def call(
        self, context: ToolContext[Any], name: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        if self._manager is not None:
            return await self._manager.call_on(self._connection, name, arguments, context)
        return await perform_call(
            self._connection,
            name,
            arguments,
            context,
            repeatable=False,
            handlers=RequestHandlers(),
        )


class _SessionRemote:
    """A server that is called over a session of the SDK, which the program opens and closes."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._has_progress = _accepts_progress(session)
        self.server = _server_name(session)
        self.loop: asyncio.AbstractEventLoop | None = None
        with contextlib.suppress(RuntimeError):  # created outside of an event loop
            self.loop = asyncio.get_running_loop()

    async def call(
        self, context: ToolContext[Any], name: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        owner = self.loop
        if owner is None:
            owner = self.loop = loop
        if owner is loop:
            return await self._call(context, name, arguments)
        if not owner.is_running():
            raise MCPConnectionError(
                f"The session with MCP server {self.server!r} belongs to an event loop that is "
                "not running. Open it on a loop that runs as long as its tools are used.",
                server=self.server,
            )
        return await run_on_loop(
            owner, lambda: self._call(context, name, arguments), server=self.server
        )

    async def _call(
        self, context: ToolContext[Any], name: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        async def on_progress(
            progress: float, total: float | None = None, message: str | None = None
        ) -> None:
            forward_progress(context, {"progress": progress, "total": total, "message": message})

        options = {"progress_callback": on_progress} if self._has_progress else {}
        try:
            async with asyncio.timeout_at(context.deadline):
                result = await self._session.call_tool(name, arguments, **options)
        except Exception as error:
            translated = self._translate(error)
            if translated is None:
                raise
            raise translated from error
        dump = getattr(result, "model_dump", None)
        if dump is not None:
            result = dump(by_alias=True, mode="json", exclude_none=True)
        if not isinstance(result, Mapping):
            raise MCPProtocolError(
                f"The session with MCP server {self.server!r} returned an invalid result: expected "
                f"an object, got {type(result).__name__}.",
                server=self.server,
            )
        return dict(cast("Mapping[str, Any]", result))

    def _translate(self, error: Exception) -> Exception | None:
        """Return an error of the SDK as an error of this library; `None` for any other error."""
        name = self.server
        record: Any = getattr(error, "error", None)  # in both major versions of the SDK
        code, message = getattr(record, "code", None), getattr(record, "message", None)
        if isinstance(error, TimeoutError) or code in _TIMED_OUT:
            why = release_text(str(message), limit=1_000) if code else "no answer in time"
            return MCPTimeoutError(f"MCP server {name!r} timed out: {why}", server=name)
        if isinstance(error, ConnectionError) or (code == _CLOSED and message == _CLOSED_TEXT):
            return ToolLostError(
                f"MCP server {name!r} was lost during the call; it is unknown whether the call "
                "took effect."
            )
        if type(error).__name__ in {"BrokenResourceError", "ClosedResourceError"}:
            return MCPConnectionError(
                f"The session with MCP server {name!r} is closed.", server=name
            )
        if isinstance(code, int):
            why = release_text(str(message), limit=1_000)
            return MCPProtocolError(
                f"MCP server {name!r} answered with an error: {why}", server=name, code=code
            )
        if isinstance(error, RuntimeError | ValueError):  # the session rejects the result
            why = release_text(str(error), limit=1_000)
            return MCPProtocolError(
                f"The answer of MCP server {name!r} is invalid: {why}", server=name
            )
        return None


_CLOSED, _CLOSED_TEXT = -32000, "Connection closed"
_TIMED_OUT = (-32001, 408)
"""The codes of a timeout in the major versions of the SDK."""


def _accepts_progress(session: Any) -> bool:
    try:
        return "progress_callback" in inspect.signature(session.call_tool).parameters
    except (TypeError, ValueError):
        return False


def _server_name(session: Any) -> str:
    """Return the name of the server; `session` if the session does not know it."""
    try:
        name = text_or_none(getattr(getattr(session, "server_info", None), "name", None))
    except RuntimeError:  # a client of the SDK that is not open
        raise UserValueError(
            f"The {type(session).__name__} for an MCPTool is not open. Enter it first: "
            "`async with client:`."
        ) from None
    return clean_text(name or "", 128)[0].strip() or "session"
