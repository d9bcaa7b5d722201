"""Manage the connections to several MCP servers, and their tools."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import threading
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from agents_tools._package import ForeignAttributes
from agents_tools.agents.model import Model
from agents_tools.errors import (
    MCPError,
    MCPProtocolError,
    UserError,
    UserKeyError,
    UserTypeError,
    UserValueError,
)
from agents_tools.mcp._coerce import an_object, objects
from agents_tools.mcp._executables import check_program
from agents_tools.mcp._task_names import requires_task
from agents_tools.mcp.client.adapter import AnyTool, function_tool_of
from agents_tools.mcp.client.callbacks import (
    RequestHandlers,
    elicit_live,
    load_sampler,
    roots_result,
    sample_live,
)
from agents_tools.mcp.client.change_notifier import ChangeNotifier, ToolListChange
from agents_tools.mcp.client.connection import Connection
from agents_tools.mcp.client.features import ServerFeatures
from agents_tools.mcp.client.input_required import perform_call, request_with_answers
from agents_tools.mcp.client.instructions import labelled_instructions
from agents_tools.mcp.client.resource_tool import resource_list
from agents_tools.mcp.client.sdk_session import ClientHooks
from agents_tools.mcp.client.server_tools import ServerTools, clean_tools
from agents_tools.mcp.config import (
    MCPServerConfig,
    check_seconds,
    load_config,
    server_config,
)
from agents_tools.mcp.pins import PinChange, ToolPins
from agents_tools.policies import needs_approval

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from typing import Self

    from agents_tools.mcp._sdk import ListKind
    from agents_tools.mcp.config import LogLevel
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.question import Question

__all__ = ["MCPToolManager", "ToolListChange"]

logger = logging.getLogger("agents_tools.mcp")


class MCPToolManager(ForeignAttributes, ServerFeatures):
    """Connects MCP servers and provides their tools as function tools.

    ```python
    async with MCPToolManager() as manager:
        await manager.add_server("files", command="npx", args=["-y", "..."])
        agent = Agent("helper", tools=manager.get_tools())
    ```

    Each server runs in a task of its own: a slow, lost or malicious server does not affect the
    others. Pass the manager itself to an agent (`mcp_servers=[manager]`) to use its current tools
    in each turn.

    Args:
        connect_timeout: Seconds that a server has to connect and list its tools.
        timeout: Seconds that a call can take without progress.
        max_time: Seconds that a call can take in total.
        instructions: Whether the models of agents receive the instructions of servers; see
            `get_instructions`.
        resources: Whether each server with resources gets a tool with which models read them.
        log_level: The lowest level of log messages to request from servers; see `MCPServerConfig`.
        pins: The pinned tools (`ToolPins`, or the path of its file), to detect changed tools and
            exclude them. By default, changes since the first listing are logged and reported.
        on_change: Called with a `ToolListChange` when the tools of a server change, sync or async.
        ask: Answers questions of servers (`Question`) outside of runs with `RunConfig.ask`, and
            the question whether a changed tool can be used. It returns the answer, or `None` to
            decline; sync or async. `True` leaves the questions to the runs. By default, servers up
            to protocol version 2025-11-25 cannot ask; later ones can in runs with `RunConfig.ask`.
        sample: Answers `sampling/createMessage` requests of servers outside of runs with
            `RunConfig.sample`: a model or its name, or a function. The function is called with the
            params and the context of the call (`None` if unknown), and returns text or a complete
            result; sync or async. `True` leaves the requests to the runs. By default, servers
            cannot use a model.
        sample_tools: Whether servers can send tools with these requests (`sampling.tools`), so that
            the model returns calls that the server runs; by default only if `sample` is a model.
        roots: The folders that servers can work in.
        allow_commands: The programs that can be started as stdio servers; any by default.
        max_connecting: The maximum number of servers that connect at the same time.
        start_timeout: Seconds that `connect` waits for slow servers after the first one is ready.
            Slower servers continue to connect in the background, and their tools are added when
            they are ready. By default, `connect` waits for all servers.
        client_name: The name of the program, which servers receive.
        client_version: The version of the program; that of this library by default.
    """

    def __init__(
        self,
        *,
        connect_timeout: float = 10.0,
        timeout: float = 60.0,
        max_time: float = 600.0,
        instructions: bool = False,
        resources: bool = False,
        log_level: LogLevel | None = None,
        pins: ToolPins | str | os.PathLike[str] | None = None,
        on_change: Callable[[ToolListChange], Any] | None = None,
        ask: Callable[[Question], Any] | Literal[True] | None = None,
        sample: Callable[[Mapping[str, Any], ToolContext[Any] | None], Any]
        | Model
        | str
        | Literal[True]
        | None = None,
        sample_tools: bool | None = None,
        roots: Sequence[str | os.PathLike[str]] = (),
        allow_commands: Iterable[str] | None = None,
        max_connecting: int = 8,
        start_timeout: float | None = None,
        client_name: str = "agents-tools",
        client_version: str | None = None,
    ) -> None:
        self._defaults = {
            "connect_timeout": connect_timeout,
            "timeout": timeout,
            "max_time": max_time,
            "instructions": instructions,
            "resources": resources,
            "log_level": log_level,
        }
        self._pins = ToolPins(pins) if isinstance(pins, (str, os.PathLike)) else pins
        self._first_lists: dict[str, list[dict[str, Any]]] = {}
        self._notifier = ChangeNotifier(on_change)
        sampler = load_sampler(sample)
        self._handlers = RequestHandlers(
            ask=ask,
            sample=sampler,
            sample_tools=isinstance(sampler, Model) if sample_tools is None else sample_tools,
            roots=tuple(roots),
        )
        self._allowed_commands = None if allow_commands is None else tuple(allow_commands)
        if type(max_connecting) is not int or max_connecting < 1:
            raise UserValueError(
                "MCPToolManager(max_connecting=...) expects a positive integer, got "
                f"{max_connecting!r:.60}."
            )
        self._max_connecting = max_connecting
        if start_timeout is not None:
            check_seconds("MCPToolManager(start_timeout=...)", start_timeout)
        self._start_timeout = start_timeout
        for option, value in (("name", client_name), ("version", client_version or "0")):
            if not isinstance(value, str) or not value:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UserTypeError(
                    f"MCPToolManager(client_{option}=...) expects a non-empty string, got "
                    f"{value!r:.60}."
                )
        self._client = client_name, client_version
        self._late: set[asyncio.Task[None]] = set()
        self._servers: dict[str, ServerTools] = {}
        self._tools: list[AnyTool] = []
        self.connections: list[Connection] = []
        self._lock = threading.RLock()
        self.failures: dict[str, MCPError] = {}

    @classmethod
    def from_config(
        cls, source: str | os.PathLike[str] | Mapping[str, Any], **options: Any
    ) -> Self:
        """Create a manager for the servers of an `mcpServers` file, or of its content.

        The servers are started by `async with` or `connect`.

        Args:
            source: The path of the file, or its content; see `load_config`.
            **options: The options of the manager.

        Raises:
            UserError: The configuration is invalid.
        """
        manager = cls(**options)
        for config in load_config(source, **manager._defaults):
            manager._add(config)
        return manager

    @classmethod
    def from_servers(cls, servers: Iterable[MCPServerConfig], **options: Any) -> Self:
        """Create a manager for servers whose configurations exist, such as those of `load_config`.

        The servers are started by `async with` or `connect`.

        Args:
            servers: The configurations.
            **options: The options of the manager.

        Raises:
            UserError: An option is invalid, or two servers have the same name.
        """
        manager = cls(**options)
        for config in servers:
            manager._add(config)
        return manager

    async def __aenter__(self) -> Self:
        """Connect all servers."""
        await self.connect()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close all servers."""
        await self.cleanup()

    # --- servers

    async def connect(self) -> None:
        """Connect all servers concurrently; the errors of those that fail are in `failures`."""
        semaphore = asyncio.Semaphore(self._max_connecting)
        connecting = {
            asyncio.ensure_future(self._connect(server, semaphore)): server
            for server in list(self._servers.values())
        }
        try:
            late = await self._wait_for_servers(set(connecting))
        except BaseException:
            for task in connecting:
                task.cancel()
            await asyncio.gather(*connecting, return_exceptions=True)
            raise
        for task in late:
            name = connecting[task].config.name
            logger.warning("MCP server %r is not ready yet; its tools are added later.", name)
            self._late.add(task)
            task.add_done_callback(self._late.discard)

    async def _connect(self, server: ServerTools, semaphore: asyncio.Semaphore) -> None:
        server.connection.reopen()
        async with semaphore:
            try:
                await server.connection.connect()
            except MCPError as error:
                if self._servers.get(server.config.name) is server:  # it was not removed meanwhile
                    self.failures[server.config.name] = error
                    logger.warning("%s", error)
            else:
                self.failures.pop(server.config.name, None)

    async def _wait_for_servers(
        self, connecting: set[asyncio.Task[None]]
    ) -> set[asyncio.Task[None]]:
        """Wait until the servers are ready, or slow; return the tasks of the slow ones."""
        loop = asyncio.get_running_loop()
        pending = connecting
        deadline: float | None = None
        while pending and (deadline is None or loop.time() < deadline):
            timeout = None if deadline is None else deadline - loop.time()
            done, pending = await asyncio.wait(
                pending, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                task.result()
            one_is_ready = any(one.connection.connected for one in self._servers.values())
            if deadline is None and self._start_timeout is not None and one_is_ready:
                deadline = loop.time() + self._start_timeout
        return pending

    async def add_server(
        self, name: str, transport: str | None = None, **connection: Any
    ) -> list[AnyTool]:
        """Add a server and connect it.

        Args:
            name: The name of the server; its tools are named `{name}_{tool}`.
            transport: `stdio`, `http`, `sse` or `memory`; derived from the other arguments by
                default.
            **connection: The fields of `MCPServerConfig`, for example `command`, `args` and `env`
                for stdio, or `url` and `headers` for http and sse.

        Returns:
            The tools of the server.

        Raises:
            MCPConnectionError: The server cannot be connected; it is not added.
            UserError: The configuration is invalid, or the name is in use.
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
                await self._close(server)
            raise
        return list(server.tools.values())

    def _add(self, config: MCPServerConfig) -> ServerTools:
        if config.name in self._servers:
            raise UserValueError(
                f"MCP server {config.name!r} exists already. Remove it first, or use another name."
            )
        if config.transport == "stdio" and self._allowed_commands is not None:
            check_program(config, self._allowed_commands)
        server = ServerTools(Connection(config, self))
        self._servers[config.name] = server
        self.connections.append(server.connection)
        return server

    async def remove_server(self, name: str) -> None:
        """Close a server and remove its tools.

        Raises:
            UserError: There is no server with this name.
        """
        server = self._server(name)
        del self._servers[name]
        self.failures.pop(name, None)
        self._drop(server)
        await self._close(server)

    async def _close(self, server: ServerTools) -> None:
        """Close a server that was removed, and forget its connection."""
        await server.connection.close()
        with contextlib.suppress(ValueError):  # another call has forgotten it
            self.connections.remove(server.connection)

    async def reload_server(self, name: str) -> list[AnyTool]:
        """Reconnect a server and list its tools again.

        Raises:
            UserError: There is no server with this name.
            MCPConnectionError: The server cannot be connected, or was removed or closed meanwhile.
                A server that was not removed can be reloaded again.
        """
        server = self._server(name)
        try:
            await server.connection.restart()
        except MCPError as error:
            if self._servers.get(name) is server:  # it was not removed meanwhile
                self.failures[name] = error
            raise
        self.failures.pop(name, None)
        return list(server.tools.values())

    async def cleanup(self) -> None:
        """Close all servers. Their tools stay listed; `connect` makes them usable again."""
        self._cancel_late()
        async with asyncio.TaskGroup() as group:
            for server in list(self._servers.values()):
                group.create_task(server.connection.close())

    def close_soon(self) -> None:
        """Close all servers in the background; can be called from any thread."""
        self._cancel_late()
        for server in list(self._servers.values()):
            server.connection.close_soon()

    def _cancel_late(self) -> None:
        """Stop waiting for slow servers, also from another loop."""
        for task in set(self._late):
            with contextlib.suppress(RuntimeError):  # its loop is closed
                task.get_loop().call_soon_threadsafe(task.cancel)

    def get_connection(self, name: str) -> Connection:
        """Return the connection to a server, for use with `MCPTool`.

        Raises:
            UserError: There is no server with this name.
        """
        return self._server(name).connection

    def call_on(
        self,
        connection: Connection,
        tool: str,
        arguments: dict[str, Any],
        context: ToolContext[Any],
        *,
        repeatable: bool = False,
        as_task: bool = False,
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """Call a tool on a connection of this manager and return the raw result.

        Args:
            connection: The connection to the server.
            tool: The name of the tool on the server.
            arguments: The validated arguments.
            context: The context of the call, which receives the progress of the server.
            repeatable: Whether the call can be sent again although its outcome is unknown.
            as_task: Whether the tool can be called as a task only, up to protocol version
                2025-11-25.
        """
        return perform_call(
            connection,
            tool,
            arguments,
            context,
            repeatable=repeatable,
            as_task=as_task,
            handlers=self._handlers,
        )

    def _server(self, name: str) -> ServerTools:
        server = self._servers.get(name)
        if server is None:
            known = ", ".join(map(repr, self._servers)) or "none"
            raise UserKeyError(f"MCP server {name!r} is not known: expected one of {known}.")
        return server

    # --- tools

    def get_tools(self) -> list[AnyTool]:
        """Return the current tools of all servers."""
        return list(self._tools)

    def get_instructions(self, names: Iterable[str] | None = None) -> str:
        """Return the instructions of connected servers for a model; empty if there are none.

        They are untrusted text: each one is without hidden characters, shortened to 2,000
        characters, and quoted below the name of its server. An agent appends them to its own
        instructions.

        Args:
            names: The names of the servers; by default those with the option `instructions`.

        Raises:
            UserError: There is no server with one of the names.
        """
        if names is None:
            names = [name for name, one in self._servers.items() if one.config.instructions]
        sessions = [(name, self._server(name).connection.session) for name in names]
        return labelled_instructions(
            (name, session.instructions) for name, session in sessions if session is not None
        )

    def get_tool_names(self) -> list[str]:
        """Return the current names of all tools."""
        return [tool.name for tool in self._tools]

    def get_server_names(self) -> list[str]:
        """Return the names of all servers, sorted."""
        return sorted(self._servers)

    def get_tools_by_server(self, name: str) -> list[AnyTool]:
        """Return the tools of one server.

        Raises:
            UserError: There is no server with this name.
        """
        return list(self._server(name).tools.values())

    @property
    def skipped(self) -> dict[str, dict[str, str]]:
        """The reasons why tools, or only their validation, are left out, by server and tool name.

        A tool whose input schema is not valid is offered without validation.
        """
        skipped = {name: {**s.unvalidated, **s.skipped} for name, s in self._servers.items()}
        return {name: reasons for name, reasons in skipped.items() if reasons}

    @property
    def findings(self) -> dict[str, dict[str, list[str]]]:
        """The changes of sanitized definitions, such as removed text, by server and tool name."""
        return {name: dict(one.findings) for name, one in self._servers.items() if one.findings}

    def register_tools(self, registry: Any) -> None:
        """Register all tools in a registry, and update it when tools change.

        Args:
            registry: A `ToolRegistry`, or an object with `register(tool)` and `unregister(name)`.
        """
        self._notifier.register(registry, self._tools)

    def get_stats(self) -> dict[str, Any]:
        """Return the numbers of servers, tools, calls and errors, in total and by server."""
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
        """Return the name, version, capabilities and instructions that a server reports.

        Raises:
            UserError: There is no server with this name.
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

    async def ping(self, name: str) -> float:
        """Ping a server; return the seconds until its response.

        Raises:
            MCPError: The server does not respond.
        """
        connection = self._server(name).connection
        await connection.connect()
        session = connection.session
        is_modern = session is not None and session.version >= "2026-07-28"
        loop = asyncio.get_running_loop()
        started = loop.time()
        await connection.request("server/discover" if is_modern else "ping", {}, repeatable=True)
        return loop.time() - started

    # --- called by connections

    def hooks(self, connection: Connection) -> ClientHooks:
        """Return the callbacks for requests of a server."""
        # The callbacks must not refer to `self`: a connection must not keep its manager alive.
        handlers = self._handlers

        async def elicit(params: Mapping[str, Any]) -> dict[str, Any]:
            return await elicit_live(connection, params, handlers)

        async def sample(params: Mapping[str, Any]) -> dict[str, Any]:
            return await sample_live(connection, params, handlers)

        async def roots() -> dict[str, Any]:
            return roots_result(handlers.roots)

        # A server that was changed to these versions asks: a run can have a handler.
        asks = connection.protocol == "legacy" != connection.config.protocol
        return ClientHooks(
            elicit=None if handlers.ask is None and not asks else elicit,
            sample=None if handlers.sample is None and not asks else sample,
            sample_tools=handlers.sample_tools,
            roots=roots if handlers.roots else None,
            client_name=self._client[0],
            client_version=self._client[1],
        )

    def listed(
        self, connection: Connection, tools: list[dict[str, Any]], refused: dict[str, str]
    ) -> None:
        """Update the tools of a server, after connecting and after each change.

        Args:
            connection: The connection that listed them.
            tools: The tools as the server lists them.
            refused: The reasons why tools cannot be called, by their names.
        """
        with self._lock:
            server = self._servers.get(connection.name)
            if server is None or server.connection is not connection:
                return
            usable, skipped, findings = clean_tools(tools)
            for name in refused.keys() & usable.keys():
                del usable[name]
                skipped[name] = refused[name]
            changes = self._compare_with_pins(server.config.name, list(usable.values()))
            for change in changes:
                if change.kind != "removed" and not self._is_usable(server, change):
                    usable.pop(change.tool, None)
                    skipped[change.tool] = f"it differs from its pin: {_describe(change)}"
            server.last_list = tools, refused
            server.set_definitions(usable)
            known = {**server.unvalidated, **server.skipped}
            server.skipped, server.findings = skipped, findings
            new_changes = () if changes == server.changes else tuple(changes)
            server.changes = changes
            for change in new_changes:
                logger.warning(
                    "Tool %r of MCP server %r differs from its pin: %s",
                    change.tool,
                    change.server,
                    _describe(change),
                )
            change_list = self._rebuild(server, new_changes)
            for name, reason in {**server.unvalidated, **server.skipped}.items():
                if known.get(name) != reason:
                    logger.warning("Tool %r of MCP server %r: %s", name, server.config.name, reason)
        self._notifier.notify(change_list)

    def resources_listed(
        self,
        connection: Connection,
        resources: list[dict[str, Any]],
        templates: list[dict[str, Any]],
    ) -> None:
        """Update the tool that reads the resources of a server.

        Args:
            connection: The connection that listed them.
            resources: The resources as the server lists them.
            templates: The resource templates as the server lists them.
        """
        with self._lock:
            server = self._servers.get(connection.name)
            if server is None or server.connection is not connection:
                return
            server.resources = resources, templates
            server.add_reader()
            change_list = self._rebuild(server, ())
        self._notifier.notify(change_list)

    def list_changed(self, connection: Connection, kind: ListKind) -> None:
        """Notify the subscribers of a list of a server that it has changed."""
        server = self._servers.get(connection.name)
        if server is not None and server.connection is connection:
            self._notifier.notify_list(connection.name, kind)

    def _drop(self, server: ServerTools) -> None:
        """Remove the tools of a server that was removed."""
        with self._lock:
            server.definitions = {}
            change_list = self._rebuild(server, ())
        self._notifier.notify(change_list)

    def _compare_with_pins(self, server: str, tools: list[dict[str, Any]]) -> list[PinChange]:
        try:
            if self._pins is None:
                return self._compare_with_first(server, tools)
            return self._pins.check(server, tools)
        except UserError as error:
            raise MCPProtocolError(str(error), server=server) from error

    def _compare_with_first(self, server: str, tools: list[dict[str, Any]]) -> list[PinChange]:
        """Compare the tools with their first listing; hash them only if the list has changed."""
        first = self._first_lists.setdefault(server, tools)
        if first == tools:
            return []
        pins = ToolPins()
        pins.check(server, first)
        changes = [change for change in pins.check(server, tools) if change.kind == "changed"]
        known = {tool["name"] for tool in first}
        self._first_lists[server] = [
            *first,
            *(tool for tool in tools if tool["name"] not in known),
        ]
        return changes

    def _is_usable(self, server: ServerTools, change: PinChange) -> bool:
        """Return whether a changed tool can be used; ask a person the first time if configured."""
        if self._pins is None or self._pins.on_change == "warn":
            return True
        if (
            self._pins.on_change == "ask"
            and callable(self._handlers.ask)
            and change not in server.asked_changes
        ):
            server.asked_changes.add(change)
            self._notifier.run_in_background(self._ask_about(server, change, self._handlers.ask))
        return False

    async def _ask_about(
        self, server: ServerTools, change: PinChange, ask: Callable[[Question], Any]
    ) -> None:
        from agents_tools.tool.question import Question

        question = Question(
            f"Tool {change.tool!r} of MCP server {change.server!r} has changed "
            f"({_describe(change)}). Allow its use?",
            {"type": "boolean"},
            change.tool,
            "",
            (),
        )
        answer = ask(question)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is not True or self._pins is None:
            return
        with self._lock:
            if change not in server.changes:  # the tool has changed again; that is a new question
                return
            self._pins.approve(change.server, change.tool)
        self.listed(server.connection, *server.last_list)

    def _rebuild(self, changed: ServerTools, pins: tuple[PinChange, ...]) -> ToolListChange:
        """Create and name the tools of a server again; return the change."""
        old = {tool.name: tool for tool in changed.tools.values()}
        used_names = {
            tool.name: (server, wire_name)
            for server in self._servers.values()
            for wire_name, tool in server.tools.items()
            if wire_name in server.definitions
        }  # existing tools keep their names, so new tools need other names
        changed.name_tools(used_names, self._create_tool)
        self._tools = [tool for server in self._servers.values() for tool in server.tools.values()]
        self._notifier.update_registries(self._tools)
        new = {tool.name: tool for tool in changed.tools.values()}
        return ToolListChange(
            server=changed.config.name,
            added=tuple(sorted(new.keys() - old.keys())),
            removed=tuple(sorted(old.keys() - new.keys())),
            changed=tuple(sorted(n for n in new.keys() & old.keys() if new[n] is not old[n])),
            pins=pins,
        )

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call a function after each change of the tools of a server.

        Args:
            callback: Called without arguments, in the thread that owns the connection.
        """
        self._notifier.subscribe(callback)

    def subscribe_list(
        self, kind: Literal["resources", "prompts"], callback: Callable[[], object]
    ) -> None:
        """Call a function whenever a server reports that the list of its features has changed.

        Several changes in a row are one call. With each new connection, the lists count as changed.

        Args:
            kind: The list: `resources` (with the resource templates) or `prompts`.
            callback: Called without arguments, in the thread that owns the connection.
        """
        self._notifier.subscribe_list(kind, callback)

    def _create_tool(self, server: ServerTools, name: str, wire: dict[str, Any]) -> AnyTool:
        connection, config = server.connection, server.config
        repeatable = False
        if config.trusted:
            hints = an_object(wire.get("annotations"))
            repeatable = hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True

        async def read(context: ToolContext[Any], arguments: dict[str, Any]) -> dict[str, Any]:
            return await self._read_for_model(server, arguments.get("uri"), context)

        as_task = requires_task(wire)

        # It returns the coroutine of the call, so that one coroutine less is awaited.
        def call(
            context: ToolContext[Any], arguments: dict[str, Any]
        ) -> Coroutine[Any, Any, dict[str, Any]]:
            return self.call_on(
                connection,
                wire["name"],
                arguments,
                context,
                repeatable=repeatable,
                as_task=as_task,
            )

        tool = function_tool_of(
            wire,
            name=name,
            server=config.name,
            perform=read if wire["name"] == server.reader else call,
            trusted=config.trusted,
            validate_arguments=config.validate_arguments and wire["name"] not in server.unvalidated,
            reader_name=lambda: server.reader_name,
        )
        approval = config.require_approval
        if not isinstance(approval, bool) and not callable(approval):
            approval = any(fnmatchcase(wire["name"], pattern) for pattern in approval)
        return tool if approval is False else needs_approval(approval)(tool)

    async def _read_for_model(
        self, server: ServerTools, uri: str | None, context: ToolContext[Any]
    ) -> dict[str, Any]:
        """Return a resource as the result of a tool; without a URI the list of resources."""
        if not uri:
            text = resource_list(*(server.resources or ((), ())))
            return {"content": [{"type": "text", "text": text}]}
        result = await request_with_answers(
            server.connection,
            "resources/read",
            {"uri": uri},
            context=context,
            repeatable=True,
            handlers=self._handlers,
        )
        contents = objects(result.get("contents"))
        return {"content": [{"type": "resource", "resource": one} for one in contents]}


def _describe(change: PinChange) -> str:
    """Return the differences, and how to accept them."""
    difference = ", ".join(change.fields) or change.kind
    return f"{difference}; ToolPins.approve({change.server!r}, {change.tool!r}) accepts it"
