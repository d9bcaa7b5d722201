"""One remote tool as a function tool, over a connection that the program has already."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agents_tools._text import safe_text, shorten
from agents_tools.errors import (
    MCPConnectionError,
    MCPProtocolError,
    MCPTimeoutError,
    ToolLostError,
    UserTypeError,
    UserValueError,
)
from agents_tools.mcp._shapes import text_or_none
from agents_tools.mcp._untrusted import UnusableTool, clean_text, clean_tool, public_names
from agents_tools.mcp.adapter import declared_of
from agents_tools.mcp.connection import Connection, elsewhere
from agents_tools.mcp.manager import MCPToolManager
from agents_tools.mcp.rounds import perform_call, said
from agents_tools.tool import FunctionTool

if TYPE_CHECKING:
    from agents_tools.context import ToolContext

__all__ = ["MCPTool"]

logger = logging.getLogger("agents_tools.mcp")


class MCPTool(FunctionTool[..., Any]):
    """A tool of a server, made from what is known of it rather than from what the server lists.

    Arguments are checked before the server sees them; progress, results and errors are those of
    any tool of `MCPToolManager`.

    Args:
        mcp_connection: Where the server is reached: a connection of a manager
            (`MCPToolManager.get_connection`), a manager that has one server only, or an open
            session or client of the SDK: anything with an async `call_tool(name, arguments)`.
        tool_name: What models call it; made to fit every provider, as the names of other tools
            of servers are.
        tool_description: What models are told about it.
        input_schema: The JSON Schema of its arguments.
        remote_tool_name: Its name on the server; `tool_name` by default.

    Raises:
        UserError: There is no tool that could be made of this.
    """

    def __init__(
        self,
        mcp_connection: Any,
        tool_name: str,
        tool_description: str,
        input_schema: Mapping[str, Any],
        remote_tool_name: str | None = None,
    ) -> None:
        remote: _OnConnection | _OnSession = _remote_of(mcp_connection)
        wire = _wire(tool_name, tool_description, input_schema, remote_tool_name)
        wire_name: str = wire["name"]

        async def perform(context: ToolContext[Any], arguments: dict[str, Any]) -> dict[str, Any]:
            return await remote.call(context, wire_name, arguments)

        declaration, options = declared_of(
            wire,
            name=public_names(remote.server, [tool_name], prefix=None)[tool_name],
            server=remote.server,
            perform=perform,
        )
        self._start(declaration, is_enabled=True, **options)
        self._remote = remote

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that the connection belongs to; `None` as long as it has none.

        Calls from other loops, and from threads without one, are made there.
        """
        return self._remote.loop


def _wire(name: Any, description: Any, schema: Any, remote_name: Any) -> dict[str, Any]:
    """Give the tool as a server would list it, with nothing hidden in it."""
    if not isinstance(name, str) or not name.strip():
        raise UserTypeError(f"An MCPTool needs a tool_name, as text; it got {name!r:.60}.")
    if not isinstance(description, str | None):
        raise UserTypeError(f"The tool_description of MCPTool {name!r:.80} is text.")
    if not isinstance(schema, Mapping):
        raise UserTypeError(
            f"The input_schema of MCPTool {name!r:.80} is a JSON Schema, such as "
            '{"type": "object", "properties": {}}.'
        )
    listed = {
        "name": name if remote_name is None else remote_name,
        "description": description or "",
        "inputSchema": dict(cast("Mapping[str, Any]", schema)),
    }
    try:
        clean = clean_tool(listed)
    except UnusableTool as error:
        raise UserValueError(f"MCPTool {name!r:.80} cannot be made: {error}.") from None
    for finding in clean.findings:
        logger.warning("MCPTool %r: %s", name, finding)
    return clean.wire


def _remote_of(given: Any) -> _OnConnection | _OnSession:
    """Give what calls tools over what was given as a connection."""
    if isinstance(given, MCPToolManager):
        names = given.get_server_names()
        if len(names) != 1:
            known = ", ".join(map(repr, names)) or "none"
            raise UserValueError(
                f"An MCPTool is of one server, and this manager has: {known}. Give "
                "manager.get_connection(name)."
            )
        given = given.get_connection(names[0])
    if isinstance(given, Connection):
        return _OnConnection(given)
    if inspect.iscoroutinefunction(getattr(given, "call_tool", None)):
        return _OnSession(given)
    raise UserTypeError(
        "The mcp_connection of an MCPTool is manager.get_connection(name), or an open session of "
        f"the SDK with an async call_tool(name, arguments), not {type(given).__name__}."
    )


class _OnConnection:
    """A server of a manager."""

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
            ask=None,
            sample=None,
            roots=(),
        )


class _OnSession:
    """A session that somebody else has opened, and keeps open."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._reports = _takes_progress(session)
        self.server = _server_of(session)
        self.loop: asyncio.AbstractEventLoop | None = None
        with contextlib.suppress(RuntimeError):  # made outside of any loop
            self.loop = asyncio.get_running_loop()

    async def call(
        self, context: ToolContext[Any], name: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        here = asyncio.get_running_loop()
        owner = self.loop
        if owner is None:
            owner = self.loop = here
        if owner is here:
            return await self._call(context, name, arguments)
        if not owner.is_running():
            raise MCPConnectionError(
                f"The session with MCP server {self.server!r} belongs to an event loop that does "
                "not run. Open it on a loop that runs as long as its tools are used.",
                server=self.server,
            )
        return await elsewhere(
            owner, lambda: self._call(context, name, arguments), server=self.server
        )

    async def _call(
        self, context: ToolContext[Any], name: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        async def heard(
            progress: float, total: float | None = None, message: str | None = None
        ) -> None:
            said(context, {"progress": progress, "total": total, "message": message})

        options = {"progress_callback": heard} if self._reports else {}
        try:
            async with asyncio.timeout_at(context.deadline):
                result = await self._session.call_tool(name, arguments, **options)
        except Exception as error:
            told = self._told(error)
            if told is None:
                raise
            raise told from error
        dump = getattr(result, "model_dump", None)
        if dump is not None:
            result = dump(by_alias=True, mode="json", exclude_none=True)
        if not isinstance(result, Mapping):
            raise MCPProtocolError(
                f"The session with MCP server {self.server!r} gave no result of a call, but "
                f"{type(result).__name__}.",
                server=self.server,
            )
        return dict(cast("Mapping[str, Any]", result))

    def _told(self, error: Exception) -> Exception | None:
        """Say as other tools of servers do what went wrong; `None` if it is something else."""
        name = self.server
        record: Any = getattr(error, "error", None)  # of the SDK's errors, in both of its lines
        code, message = getattr(record, "code", None), getattr(record, "message", None)
        if isinstance(error, TimeoutError) or code in _TIMED_OUT:
            why = shorten(safe_text(str(message)), 1_000) if code else "no answer in time"
            return MCPTimeoutError(f"MCP server {name!r} was too slow: {why}", server=name)
        if isinstance(error, ConnectionError) or (code == _CLOSED and message == _CLOSED_SAID):
            return ToolLostError(
                f"MCP server {name!r} was lost during the call, which may have taken effect or "
                "not; nobody knows."
            )
        if type(error).__name__ in {"BrokenResourceError", "ClosedResourceError"}:
            return MCPConnectionError(f"The session with MCP server {name!r} is over.", server=name)
        if isinstance(code, int):
            why = shorten(safe_text(str(message)), 1_000)
            return MCPProtocolError(
                f"MCP server {name!r} answers with an error: {why}", server=name, code=code
            )
        if isinstance(error, RuntimeError | ValueError):  # a result that the session refuses
            why = shorten(safe_text(str(error)), 1_000)
            return MCPProtocolError(
                f"The answer of MCP server {name!r} cannot be used: {why}", server=name
            )
        return None


_CLOSED, _CLOSED_SAID = -32000, "Connection closed"
_TIMED_OUT = (-32001, 408)
"""What the lines of the SDK say of a request that has timed out."""


def _takes_progress(session: Any) -> bool:
    try:
        return "progress_callback" in inspect.signature(session.call_tool).parameters
    except (TypeError, ValueError):
        return False


def _server_of(session: Any) -> str:
    """Give the name of the server, as far as the session knows it."""
    try:
        name = text_or_none(getattr(getattr(session, "server_info", None), "name", None))
    except RuntimeError:  # a client of the SDK that is not open
        raise UserValueError(
            f"The {type(session).__name__} for an MCPTool is not open; enter it first: "
            "`async with client:`."
        ) from None
    return clean_text(name or "", 128)[0].strip() or "session"
