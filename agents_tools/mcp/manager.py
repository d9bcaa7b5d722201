"""Many servers at once: their tools by name, what changes, and one place to close them."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import threading
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.errors import (
    MCPError,
    MCPProtocolError,
    UserError,
    UserKeyError,
    UserValueError,
)
from agents_tools.mcp._listing import Listing, sifted
from agents_tools.mcp._news import News, ToolListChange
from agents_tools.mcp._programs import check_program
from agents_tools.mcp._questions import elicited, roots_of, sampled
from agents_tools.mcp._sdk import Hooks
from agents_tools.mcp._shapes import an_object
from agents_tools.mcp.adapter import AnyTool, function_tool_of
from agents_tools.mcp.config import MCPServerConfig, load_config, server_config
from agents_tools.mcp.connection import Connection
from agents_tools.mcp.pins import PinChange, ToolPins
from agents_tools.mcp.rounds import perform_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Self

    from agents_tools.context import Question, ToolContext
    from agents_tools.mcp._questions import Sample

__all__ = ["MCPToolManager", "ToolListChange"]

logger = logging.getLogger("agents_tools.mcp")


class MCPToolManager:
    """Connects MCP servers and gives their tools as function tools.

    ```python
    async with MCPToolManager() as manager:
        await manager.add_server("files", command="npx", args=["-y", "..."])
        agent = Agent("helper", tools=manager.get_tools())
    ```

    Each server has a task of its own; one that is slow, lost or hostile leaves the others alone.
    An agent that is given the manager itself (`mcp_servers=[manager]`) follows its changes.

    Args:
        connect_timeout: Seconds until a server has to have answered and listed its tools.
        timeout: Seconds that a call may be silent; its progress starts them again.
        max_time: Seconds that a call may take in all.
        pins: What is known of the tools (`ToolPins`, or the path of its file), so that a tool
            that changes is noticed, and left out if the pins say so. By default changes are
            noticed against what was seen first, and told.
        on_change: Called with a `ToolListChange` when the tools of a server change; sync or async.
        ask: Takes the questions of servers (`Question`) where no run is there to take them
            (`RunConfig.ask`), and the question whether a changed tool may be used; gives the
            answer, `None` for none; sync or async.
        sample: Takes a server's request for the answer of a model where no run does
            (`RunConfig.sample`): called with its params and the context of the call (`None` where
            it is not known), gives text or a whole result of `sampling/createMessage`; sync or
            async. `True` leaves it to the runs. Without it servers are told that there is no
            model for them.
        roots: Folders that servers are told to work in.
        allow_commands: The programs that stdio servers may be started with; any by default.
        max_connecting: How many servers are connected at once.
    """

    def __init__(
        self,
        *,
        connect_timeout: float = 10.0,
        timeout: float = 60.0,
        max_time: float = 600.0,
        pins: ToolPins | str | os.PathLike[str] | None = None,
        on_change: Callable[[ToolListChange], Any] | None = None,
        ask: Callable[[Question], Any] | None = None,
        sample: Callable[[Mapping[str, Any], ToolContext[Any] | None], Any]
        | Literal[True]
        | None = None,
        roots: Sequence[str | os.PathLike[str]] = (),
        allow_commands: Iterable[str] | None = None,
        max_connecting: int = 8,
    ) -> None:
        self._defaults = {
            "connect_timeout": connect_timeout,
            "timeout": timeout,
            "max_time": max_time,
        }
        self._pins = ToolPins(pins) if isinstance(pins, (str, os.PathLike)) else pins
        self._first: dict[str, list[dict[str, Any]]] = {}
        self._news = News(on_change)
        self._ask = ask
        self._sample: Sample | None = sample
        self._roots = tuple(roots)
        self._allowed = None if allow_commands is None else tuple(allow_commands)
        self._max_connecting = max_connecting
        self._servers: dict[str, Listing] = {}
        self._tools: list[AnyTool] = []
        self.connections: list[Connection] = []
        self._lock = threading.RLock()
        self.failures: dict[str, MCPError] = {}

    @classmethod
    def from_config(
        cls, source: str | os.PathLike[str] | Mapping[str, Any], **options: Any
    ) -> Self:
        """Make a manager for the servers of an `mcpServers` file, or of its content.

        Nothing is started before `async with` or `connect`.

        Args:
            source: The path of the file, or what is in it; see `load_config`.
            **options: What the manager takes.

        Raises:
            UserError: The configuration cannot work.
        """
        manager = cls(**options)
        for config in load_config(source, **manager._defaults):
            manager._add(config)
        return manager

    async def __aenter__(self) -> Self:
        """Connect the servers that are known."""
        await self.connect()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close all servers."""
        await self.cleanup()

    # --- servers

    async def connect(self) -> None:
        """Connect all servers at once. Those that fail are told in `failures`; the rest works."""
        room = asyncio.Semaphore(self._max_connecting)

        async def one(server: Listing) -> None:
            server.connection.reopen()
            async with room:
                try:
                    await server.connection.connect()
                except MCPError as error:
                    self.failures[server.config.name] = error
                    logger.warning("%s", error)
                else:
                    self.failures.pop(server.config.name, None)

        async with asyncio.TaskGroup() as group:
            for server in list(self._servers.values()):
                group.create_task(one(server))

    async def add_server(
        self, name: str, transport: str | None = None, **connection: Any
    ) -> list[AnyTool]:
        """Connect one more server.

        Args:
            name: Its name; its tools are called `{name}_{tool}`.
            transport: `stdio`, `http`, `sse` or `memory`; seen from the rest by default.
            **connection: How it is reached, for stdio `command`, `args`, `env`; for http and sse
                `url`, `headers`; see `MCPServerConfig` for all.

        Returns:
            Its tools.

        Raises:
            MCPConnectionError: It cannot be connected; it is not added.
            UserError: What is given cannot work, or there is a server of that name.
        """
        config = server_config(name, transport, **{**self._defaults, **connection})
        server = self._add(config)
        try:
            await server.connection.connect()
        except BaseException:
            if self._servers.get(name) is server:
                del self._servers[name]
                self._drop(server)
            with contextlib.suppress(MCPError):
                await server.connection.close()
            raise
        return list(server.tools.values())

    def _add(self, config: MCPServerConfig) -> Listing:
        if config.name in self._servers:
            raise UserValueError(
                f"There is an MCP server {config.name!r} already. Remove it first, or give this "
                "one another name."
            )
        if config.transport == "stdio" and self._allowed is not None:
            check_program(config, self._allowed)
        server = Listing(Connection(config, self))
        self._servers[config.name] = server
        self.connections.append(server.connection)
        return server

    async def remove_server(self, name: str) -> None:
        """Close a server and take its tools away.

        Raises:
            UserError: There is no such server.
        """
        server = self._server(name)
        del self._servers[name]
        self.failures.pop(name, None)
        self._drop(server)
        await server.connection.close()
        self.connections.remove(server.connection)

    async def reload_server(self, name: str) -> list[AnyTool]:
        """Start a server anew and read its tools again.

        Raises:
            UserError: There is no such server.
            MCPConnectionError: It cannot be connected, or was removed or closed meanwhile. As long
                as it is known it can be reloaded.
        """
        server = self._server(name)
        try:
            await server.connection.restart()
        except MCPError as error:
            self.failures[name] = error
            raise
        self.failures.pop(name, None)
        return list(server.tools.values())

    async def cleanup(self) -> None:
        """Close all servers. Their tools stay known; `connect` makes them work again."""
        async with asyncio.TaskGroup() as group:
            for server in list(self._servers.values()):
                group.create_task(server.connection.close())

    def close_soon(self) -> None:
        """Close all servers without waiting for it, from any thread."""
        for server in list(self._servers.values()):
            server.connection.close_soon()

    def get_connection(self, name: str) -> Connection:
        """Give the connection to a server, which `MCPTool` takes.

        Raises:
            UserError: There is no such server.
        """
        return self._server(name).connection

    async def call_on(
        self,
        connection: Connection,
        tool: str,
        arguments: dict[str, Any],
        context: ToolContext[Any],
        *,
        repeatable: bool = False,
    ) -> dict[str, Any]:
        """Call a tool on a connection of this manager: what its tools and `MCPTool` do.

        Args:
            connection: The server.
            tool: The name of the tool there.
            arguments: The arguments, checked.
            context: The call; the server's progress becomes its progress.
            repeatable: Whether it may be called again although its outcome is unknown.
        """
        return await perform_call(
            connection,
            tool,
            arguments,
            context,
            repeatable=repeatable,
            ask=self._ask,
            sample=self._sample,
            roots=self._roots,
        )

    def _server(self, name: str) -> Listing:
        server = self._servers.get(name)
        if server is None:
            known = ", ".join(map(repr, self._servers)) or "none"
            raise UserKeyError(f"There is no MCP server {name!r}; there are: {known}.")
        return server

    # --- tools

    def get_tools(self) -> list[AnyTool]:
        """Give the tools of all servers, as they are now."""
        return list(self._tools)

    def get_tool_names(self) -> list[str]:
        """Give the names of all tools, as they are now."""
        return [tool.name for tool in self._tools]

    def get_server_names(self) -> list[str]:
        """Give the names of all servers, sorted."""
        return sorted(self._servers)

    def get_tools_by_server(self, name: str) -> list[AnyTool]:
        """Give the tools of one server.

        Raises:
            UserError: There is no such server.
        """
        return list(self._server(name).tools.values())

    @property
    def skipped(self) -> dict[str, dict[str, str]]:
        """Tools that cannot be used, and why: by server and by name."""
        return {name: dict(one.skipped) for name, one in self._servers.items() if one.skipped}

    @property
    def findings(self) -> dict[str, dict[str, list[str]]]:
        """What was taken out of descriptions, such as invisible text: by server and by tool."""
        return {name: dict(one.findings) for name, one in self._servers.items() if one.findings}

    def register_tools(self, registry: Any) -> None:
        """Put all tools into a registry, and keep it up to date from now on.

        Args:
            registry: A `ToolRegistry`, or anything with `register(tool)` and `unregister(name)`.
        """
        self._news.register(registry, self._tools)

    def get_stats(self) -> dict[str, Any]:
        """Give numbers: servers, tools, calls and errors, in all and by server."""
        servers: dict[str, dict[str, Any]] = {
            name: {
                "connected": server.connection.connected,
                "version": getattr(server.connection.session, "version", None),
                "tools": len(server.tools),
                "skipped": len(server.skipped),
                "calls": server.connection.stats.calls,
                "errors": server.connection.stats.errors,
                "connects": server.connection.stats.connects,
                "dropped_messages": server.connection.stats.dropped,
            }
            for name, server in self._servers.items()
        }
        return {
            "servers": len(servers),
            "connected": sum(one["connected"] for one in servers.values()),
            "tools": len(self._tools),
            "calls": sum(one["calls"] for one in servers.values()),
            "errors": sum(one["errors"] for one in servers.values()),
            "by_server": servers,
        }

    def get_server_info(self, name: str) -> dict[str, Any]:
        """Give what a server says of itself: its name, version, capabilities and instructions.

        Raises:
            UserError: There is no such server.
        """
        server = self._server(name)
        session = server.connection.session
        if session is None:
            return {"connected": False, "place": server.config.place}
        return {
            "connected": True,
            "place": server.config.place,
            "pid": server.connection.pid,
            "protocol_version": session.version,
            "server_info": session.server_info,
            "capabilities": session.capabilities,
            "instructions": session.instructions,
        }

    # --- what else servers have

    async def ping(self, name: str) -> float:
        """Ask a server for a sign of life; give the seconds that it took.

        Raises:
            MCPError: It gives none.
        """
        connection = self._server(name).connection
        await connection.connect()
        session = connection.session
        modern = session is not None and session.version >= "2026-07-28"
        loop = asyncio.get_running_loop()
        started = loop.time()
        await connection.request("server/discover" if modern else "ping", {}, repeatable=True)
        return loop.time() - started

    async def list_resources(self, name: str) -> list[dict[str, Any]]:
        """Give the resources of a server, as it lists them.

        Raises:
            MCPError: It cannot be asked.
        """
        return await self._pages(name, "resources/list", "resources")

    async def list_resource_templates(self, name: str) -> list[dict[str, Any]]:
        """Give the templates of resources of a server, as it lists them.

        Raises:
            MCPError: It cannot be asked.
        """
        return await self._pages(name, "resources/templates/list", "resourceTemplates")

    async def read_resource(self, name: str, uri: str) -> list[dict[str, Any]]:
        """Read a resource of a server: its contents, with `text`, or `blob` in base64.

        Raises:
            MCPError: It cannot be read.
        """
        found = await self._ask_server(name, "resources/read", {"uri": uri})
        return cast("list[dict[str, Any]]", found.get("contents") or [])

    async def list_prompts(self, name: str) -> list[dict[str, Any]]:
        """Give the prompts of a server, as it lists them.

        Raises:
            MCPError: It cannot be asked.
        """
        return await self._pages(name, "prompts/list", "prompts")

    async def get_prompt(
        self, name: str, prompt: str, arguments: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Give a prompt of a server: its `description` and its `messages`.

        Raises:
            MCPError: It cannot be got.
        """
        params = {"name": prompt, "arguments": dict(arguments or {})}
        return await self._ask_server(name, "prompts/get", params)

    async def _ask_server(self, name: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        found = await self._server(name).connection.request(method, params, repeatable=True)
        if found.get("resultType") == "input_required":
            raise MCPProtocolError(
                f"MCP server {name!r} asks something before it answers {method}, which only calls "
                "of tools can answer.",
                server=name,
            )
        return found

    async def _pages(self, name: str, method: str, key: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        seen: set[str] = set()
        while True:
            page = await self._ask_server(name, method, params)
            found += page.get(key) or []
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or cursor in seen or len(seen) == _MOST_PAGES:
                return found
            seen.add(cursor)
            params = {"cursor": cursor}

    # --- what connections tell

    def hooks(self, connection: Connection) -> Hooks:
        """Give what a server may ask for."""
        ask, sampler, folders = self._ask, self._sample, self._roots  # not self: see Connection

        async def elicit(params: Mapping[str, Any]) -> dict[str, Any]:
            return await elicited(connection, params, ask)

        async def sample(params: Mapping[str, Any]) -> dict[str, Any]:
            return await sampled(connection, params, sampler)

        async def roots() -> dict[str, Any]:
            return roots_of(folders)

        return Hooks(
            elicit=elicit,
            sample=None if sampler is None else sample,
            roots=roots if folders else None,
        )

    def listed(
        self, connection: Connection, tools: list[dict[str, Any]], refused: dict[str, str]
    ) -> None:
        """Take the tools that a server lists, and why some of them cannot be called."""
        with self._lock:
            server = self._servers.get(connection.name)
            if server is None or server.connection is not connection:
                return
            found, skipped, findings = sifted(tools)
            for name in refused.keys() & found.keys():
                del found[name]
                skipped[name] = refused[name]
            changes = self._differences(server.config.name, list(found.values()))
            for change in changes:
                if change.kind != "removed" and not self._is_usable(server, change):
                    found.pop(change.tool, None)
                    skipped[change.tool] = f"it is not as it was pinned: {_told(change)}"
            server.raw = tools, refused
            server.keep(found)
            server.skipped, server.findings = skipped, findings
            news = () if changes == server.changes else tuple(changes)
            server.changes = changes
            for change in news:
                logger.warning(
                    "Tool %r of MCP server %r is not as it was pinned: %s",
                    change.tool,
                    change.server,
                    _told(change),
                )
            for name, reason in skipped.items():
                logger.info(
                    "Tool %r of MCP server %r is left out: %s", name, server.config.name, reason
                )
            told = self._rebuild(server, news)
        self._news.tell(told)

    def _drop(self, server: Listing) -> None:
        """Take the tools of a server away that is known no more."""
        with self._lock:
            server.listed = {}
            told = self._rebuild(server, ())
        self._news.tell(told)

    def _differences(self, server: str, tools: list[dict[str, Any]]) -> list[PinChange]:
        try:
            if self._pins is None:
                return self._remembered(server, tools)
            return self._pins.check(server, tools)
        except UserError as error:
            raise MCPProtocolError(str(error), server=server) from error

    def _remembered(self, server: str, tools: list[dict[str, Any]]) -> list[PinChange]:
        """Compare each tool with what was seen of it first; nothing is worked out before."""
        first = self._first.setdefault(server, tools)
        if first == tools:
            return []
        pins = ToolPins()
        pins.check(server, first)
        changes = [change for change in pins.check(server, tools) if change.kind == "changed"]
        known = {tool["name"] for tool in first}
        self._first[server] = [*first, *(tool for tool in tools if tool["name"] not in known)]
        return changes

    def _is_usable(self, server: Listing, change: PinChange) -> bool:
        """Whether a changed tool may be used; while a person is asked about it, it may not."""
        if self._pins is None or self._pins.on_change == "warn":
            return True
        if self._pins.on_change == "ask" and self._ask is not None and change not in server.asked:
            server.asked.add(change)
            self._news.later(self._ask_about(server, change, self._ask))
        return False

    async def _ask_about(
        self, server: Listing, change: PinChange, ask: Callable[[Question], Any]
    ) -> None:
        from agents_tools.context import Question

        question = Question(
            f"Tool {change.tool!r} of MCP server {change.server!r} has changed "
            f"({_told(change)}). May it be used?",
            {"type": "boolean"},
            change.tool,
            "",
            (),
        )
        answer = ask(question)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is True and self._pins is not None:
            self._pins.approve(change.server, change.tool)
            self.listed(server.connection, *server.raw)

    def _rebuild(self, changed: Listing, pins: tuple[PinChange, ...]) -> ToolListChange:
        """Name all tools anew, and say what is different."""
        old = {tool.name: tool for tool in changed.tools.values()}
        taken = {
            tool.name: (server, wire_name)
            for server in self._servers.values()
            for wire_name, tool in server.tools.items()
            if wire_name in server.listed
        }  # a tool keeps its name, whatever others are called later
        changed.name_tools(taken, self._made)
        self._tools = [tool for server in self._servers.values() for tool in server.tools.values()]
        self._news.tell_registries(self._tools)
        new = {tool.name: tool for tool in changed.tools.values()}
        return ToolListChange(
            server=changed.config.name,
            added=tuple(sorted(new.keys() - old.keys())),
            removed=tuple(sorted(old.keys() - new.keys())),
            changed=tuple(sorted(n for n in new.keys() & old.keys() if new[n] is not old[n])),
            pins=pins,
        )

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call a function whenever the tools of any server have changed.

        Args:
            callback: Called without arguments, in the thread of the server's connection.
        """
        self._news.subscribe(callback)

    def _made(self, server: Listing, name: str, wire: dict[str, Any]) -> AnyTool:
        connection, config = server.connection, server.config
        hints = an_object(wire.get("annotations"))
        repeatable = config.trusted and (
            hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True
        )

        async def perform(context: ToolContext[Any], arguments: dict[str, Any]) -> dict[str, Any]:
            return await self.call_on(
                connection, wire["name"], arguments, context, repeatable=repeatable
            )

        return function_tool_of(
            wire,
            name=name,
            server=config.name,
            perform=perform,
            validate_arguments=config.validate_arguments,
        )


_MOST_PAGES = 100


def _told(change: PinChange) -> str:
    """Say what differs, and how it is accepted."""
    what = ", ".join(change.fields) or change.kind
    return f"{what}; ToolPins.approve({change.server!r}, {change.tool!r}) accepts it"
