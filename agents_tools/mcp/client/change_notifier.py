"""Notify callbacks and registries of changed tools, without blocking the connection."""

from __future__ import annotations

import asyncio
import inspect
import logging
import weakref
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence

    from agents_tools.mcp._sdk import ListKind
    from agents_tools.mcp.client.adapter import AnyTool
    from agents_tools.mcp.pins import PinChange

__all__ = ["ChangeNotifier", "ToolListChange"]

logger = logging.getLogger("agents_tools.mcp")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListChange:
    """A change of the tools of one server.

    Attributes:
        server: The name of the server.
        added: The names of new tools.
        removed: The names of removed tools.
        changed: The names of tools whose definition has changed.
        pins: The differences from the pinned tools.
    """

    server: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    pins: tuple[PinChange, ...] = ()


class ChangeNotifier:
    """Notifies subscribers of changes; their exceptions never affect a connection.

    Args:
        on_change: Called with each change, sync or async.
    """

    def __init__(self, on_change: Callable[[ToolListChange], Any] | None) -> None:
        self._on_change = on_change
        self._subscribers: list[Callable[[], None]] = []
        self._list_subscribers: dict[str, list[Callable[[], object]]] = {}
        self._registries: weakref.WeakSet[Any] = weakref.WeakSet()
        self._registered: dict[str, AnyTool] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call a function without arguments after each change."""
        self._subscribers.append(callback)

    def subscribe_list(self, kind: ListKind, callback: Callable[[], object]) -> None:
        """Call a function without arguments after each change of a list."""
        self._list_subscribers.setdefault(kind, []).append(callback)

    def register(self, registry: Any, tools: Sequence[AnyTool]) -> None:
        """Register tools in a registry, and update it after each change."""
        self._registries.add(registry)
        for tool in tools:
            registry.register(tool)

    def notify(self, change: ToolListChange) -> None:
        """Call the subscribers, unless the change is empty."""
        if not (change.added or change.removed or change.changed or change.pins):
            return
        calls: list[Callable[[], object]] = [*self._subscribers]
        if self._on_change is not None:
            calls.append(partial(self._on_change, change))
        self._call(calls, change.server)

    def notify_list(self, server: str, kind: ListKind) -> None:
        """Call the subscribers of a list."""
        self._call(self._list_subscribers.get(kind, ()), server)

    def _call(self, callbacks: Iterable[Callable[[], object]], server: str) -> None:
        results: list[object] = []
        for callback in callbacks:
            try:
                results.append(callback())
            except Exception:  # an exception of a subscriber must not end the connection
                logger.exception("A subscriber to changes of MCP server %r failed.", server)
        for result in results:
            if inspect.isawaitable(result):
                self.run_in_background(_wait_for(result))

    def update_registries(self, tools: Sequence[AnyTool]) -> None:
        """Unregister the tools that are gone or replaced, and register the new ones."""
        current = {tool.name: tool for tool in tools}
        old = [name for name, tool in self._registered.items() if current.get(name) is not tool]
        new = [tool for name, tool in current.items() if self._registered.get(name) is not tool]
        for registry in list(self._registries):
            changes = [partial(registry.unregister, name) for name in old]
            changes += [partial(registry.register, tool) for tool in new]
            for change in changes:
                try:
                    change()
                except Exception as error:  # noqa: BLE001 - the other tools are still registered
                    logger.warning("A registry rejected a tool of an MCP server: %s", error)
        self._registered = current

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in a task; the connection does not wait for it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("A callback for changes of MCP servers failed.", exc_info=error)


async def _wait_for(work: Awaitable[Any]) -> None:
    await work
