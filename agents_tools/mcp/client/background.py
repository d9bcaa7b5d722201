"""MCP servers on the background event loop, for sync programs and for agents."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

from agents_tools.concurrency.bridge import call_async_from_sync
from agents_tools.mcp.client.adapter import AnyTool
from agents_tools.mcp.client.manager import MCPToolManager
from agents_tools.mcp.config import check_seconds

if TYPE_CHECKING:
    import os
    from typing import Self

    from agents_tools.errors import MCPError
    from agents_tools.mcp.client.connection import Connection

__all__ = ["BackgroundServers", "MCPTools", "create_mcp_tools", "servers_of"]

Config: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"


def servers_of(config: Config) -> BackgroundServers:
    """Return the servers of a configuration; agents with the same configuration share them.

    Args:
        config: The path of the file, or its content.
    """
    key = id(config) if isinstance(config, Mapping) else str(config)
    servers = _shared.get(key)
    if servers is None:
        servers = _shared[key] = BackgroundServers(config)
    return servers


class BackgroundServers:
    """The servers of `Agent(mcp_config=...)`, whose tools are read before each turn.

    The first use connects the servers, on a loop that all runs share, so that one agent can run on
    several loops and threads. A server that is slower than the others does not delay the first
    turn: its tools are added when it is ready. The servers are closed with the agent, or at the end
    of the program.

    Args:
        config: The path of the file, or its content.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._tools: MCPTools | None = None
        self._lock = threading.Lock()

    async def get_tools(self) -> list[AnyTool]:
        """Return the current tools.

        Raises:
            MCPConnectionError: None of the servers could be connected.
            UserError: The configuration is invalid.
        """
        tools = self._tools
        if tools is None:
            tools = await asyncio.to_thread(self._connect)
        return tools.manager.get_tools()

    def get_instructions(self) -> str:
        """Return the instructions of the servers with the option `instructions`."""
        return "" if self._tools is None else self._tools.manager.get_instructions()

    def _connect(self) -> MCPTools:
        with self._lock:
            if self._tools is None:
                self._tools = create_mcp_tools(
                    self._config,
                    start_timeout=_START_TIMEOUT,
                    ask=True,  # later runs can have a handler, and share the connections
                )
            return self._tools


_START_TIMEOUT = 2.0
"""Seconds that the first turn of an agent waits for slow servers after the first one is ready."""

_shared: WeakValueDictionary[int | str, BackgroundServers] = WeakValueDictionary()


class MCPTools(list[AnyTool]):
    """The tools of servers on the background loop, for programs without an event loop.

    A list that is also a context manager. The servers are closed by leaving the `with` block, by
    `close()`, when all tools are garbage-collected, and at the end of the program.

    Attributes:
        manager: The manager of the servers.
    """

    def __init__(self, manager: MCPToolManager) -> None:
        super().__init__(manager.get_tools())
        self.manager = manager
        weakref.finalize(manager, _close_connections, manager.connections).atexit = False
        _open_managers.add(manager)

    @property
    def failures(self) -> dict[str, MCPError]:
        """The errors of the servers that could not be connected, by name."""
        return self.manager.failures

    def close(self) -> None:
        """Close the servers; calls of their tools fail from now on."""
        _close(self.manager)

    def __enter__(self) -> Self:
        """Return the tools."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the servers."""
        self.close()


def create_mcp_tools(
    config: str | os.PathLike[str] | Mapping[str, Any], timeout: float = 30.0, **options: object
) -> MCPTools:
    """Connect the servers of an `mcpServers` configuration and return their tools.

    For sync programs: the connections belong to a background loop, and the tools can be called
    from any thread and any loop. Servers that cannot be connected are logged and are in
    `failures`.

    Args:
        config: The path of the file, or its content; see `load_config`.
        timeout: Seconds that a server has to connect and list its tools.
        **options: The options of `MCPToolManager`.

    Raises:
        MCPConnectionError: None of the servers could be connected.
        UserError: The configuration is invalid.
    """

    async def connect() -> MCPToolManager:
        manager = MCPToolManager.from_config(config, connect_timeout=timeout, **options)
        try:
            await manager.connect()
        except BaseException:
            await manager.cleanup()
            raise
        return manager

    check_seconds("create_mcp_tools(timeout=...)", timeout)
    manager = call_async_from_sync(connect)
    if manager.failures and len(manager.failures) == len(manager.get_server_names()):
        first = next(iter(manager.failures.values()))
        _close(manager)
        raise first
    return MCPTools(manager)


def _close_connections(connections: list[Connection]) -> None:
    for connection in connections:
        connection.close_soon()


_open_managers: weakref.WeakSet[MCPToolManager] = weakref.WeakSet()
"""The open managers on the background loop."""
_EXIT_TIMEOUT = 5.0
"""Seconds that servers have to close at the end of the program."""


def _close(manager: MCPToolManager) -> None:
    _open_managers.discard(manager)
    call_async_from_sync(manager.cleanup)


@atexit.register
def _close_all() -> None:
    for manager in list(_open_managers):
        with contextlib.suppress(Exception):
            call_async_from_sync(manager.cleanup, timeout=_EXIT_TIMEOUT)
