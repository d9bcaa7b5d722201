"""The servers of an `mcpServers` configuration on the background loop, connected when needed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

from agents_tools.mcp.manager import MCPTools, create_mcp_tools

if TYPE_CHECKING:
    import os

    from agents_tools.mcp.adapter import AnyTool

__all__ = ["BackgroundServers", "servers_of"]

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
