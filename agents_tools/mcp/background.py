"""Servers on the background loop: for programs without one of their own, and for agents."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

from agents_tools._bridge import call_async_from_sync
from agents_tools.errors import MCPError, UserTypeError
from agents_tools.mcp.adapter import AnyTool
from agents_tools.mcp.manager import MCPToolManager

if TYPE_CHECKING:
    import os
    from typing import Self

    from agents_tools.mcp.connection import Connection

__all__ = ["BackgroundServers", "MCPTools", "create_mcp_tools", "servers_of"]

Config: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"


def servers_of(config: Config) -> BackgroundServers:
    """Give the servers of a configuration: the same for all agents that have the same one.

    Args:
        config: The path of the file, or what is in it.
    """
    key = id(config) if isinstance(config, Mapping) else str(config)
    found = _known.get(key)
    if found is None:
        found = _known[key] = BackgroundServers(config)
    return found


class BackgroundServers:
    """Has the tools of a configuration: what `Agent(mcp_config=...)` asks before each turn.

    The servers are connected by the first who asks, on a loop that all runs share, so that one
    agent may run on several loops and threads. They end with the agent, or with the program.

    Args:
        config: The path of the file, or what is in it.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._tools: MCPTools | None = None
        self._lock = threading.Lock()

    async def get_tools(self) -> list[AnyTool]:
        """Give the tools as they are now.

        Raises:
            MCPConnectionError: None of the servers could be connected.
            UserError: The configuration cannot work.
        """
        tools = self._tools
        if tools is None:
            tools = await asyncio.to_thread(self._connected)
        return tools.manager.get_tools()

    def _connected(self) -> MCPTools:
        with self._lock:
            if self._tools is None:
                self._tools = create_mcp_tools(self._config)
            return self._tools


_known: WeakValueDictionary[int | str, BackgroundServers] = WeakValueDictionary()


class MCPTools(list[AnyTool]):
    """The tools of servers on the background loop, for programs without a loop of their own.

    A list, and a context manager: leaving it, `close()`, or the end of the program closes the
    servers; so does nobody having any of the tools any more.

    Attributes:
        manager: Who has the servers.
    """

    def __init__(self, manager: MCPToolManager) -> None:
        super().__init__(manager.get_tools())
        self.manager = manager
        weakref.finalize(manager, _leave, manager.connections).atexit = False
        _OPEN.add(manager)

    @property
    def failures(self) -> dict[str, MCPError]:
        """Servers that could not be connected."""
        return self.manager.failures

    def close(self) -> None:
        """Close the servers; the tools can be called no more."""
        _close(self.manager)

    def __enter__(self) -> Self:
        """Give the tools."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the servers."""
        self.close()


def create_mcp_tools(
    config: str | os.PathLike[str] | Mapping[str, Any], timeout: float = 30.0, **options: Any
) -> MCPTools:
    """Connect the servers of an `mcpServers` configuration and give their tools.

    For sync programs: the servers live on a background loop, and the tools can be called from any
    thread and any loop. Servers that cannot be connected are told in `failures` and logged.

    Args:
        config: The path of the file, or what is in it; see `load_config`.
        timeout: Seconds until a server has to have answered.
        **options: What `MCPToolManager` takes.

    Raises:
        MCPConnectionError: None of the servers could be connected.
        UserError: The configuration cannot work.
    """

    async def connected() -> MCPToolManager:
        manager = MCPToolManager.from_config(config, connect_timeout=timeout, **options)
        try:
            await manager.connect()
        except BaseException:
            await manager.cleanup()
            raise
        return manager

    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool) or not timeout > 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserTypeError(f"create_mcp_tools(timeout=...) takes seconds, not {timeout!r:.60}.")
    manager = call_async_from_sync(connected)
    if manager.failures and len(manager.failures) == len(manager.get_server_names()):
        first = next(iter(manager.failures.values()))
        _close(manager)
        raise first
    return MCPTools(manager)


def _leave(connections: list[Connection]) -> None:
    for connection in connections:
        connection.close_soon()


_OPEN: weakref.WeakSet[MCPToolManager] = weakref.WeakSet()
"""The managers on the background loop that nobody has closed."""
_AT_EXIT = 5.0
"""Seconds that servers get to end when the program does."""


def _close(manager: MCPToolManager) -> None:
    _OPEN.discard(manager)
    call_async_from_sync(manager.cleanup)


@atexit.register
def _close_all() -> None:
    for manager in list(_OPEN):
        with contextlib.suppress(Exception):
            call_async_from_sync(manager.cleanup, timeout=_AT_EXIT)
