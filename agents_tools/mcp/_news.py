"""Telling programs and registries that tools have changed, beside the connection that noticed."""

from __future__ import annotations

import asyncio
import inspect
import logging
import weakref
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from agents_tools.mcp.adapter import AnyTool
    from agents_tools.mcp.pins import PinChange

__all__ = ["News", "ToolListChange"]

logger = logging.getLogger("agents_tools.mcp")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListChange:
    """How the tools of one server have changed.

    Attributes:
        server: The name of the server.
        added: Names of tools that are new.
        removed: Names of tools that are gone.
        changed: Names of tools that are described in another way.
        pins: What differs from what was pinned.
    """

    server: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    pins: tuple[PinChange, ...] = ()


class News:
    """Knows who wants to hear of changes; nobody who listens can break a connection.

    Args:
        on_change: Called with each change; sync or async.
    """

    def __init__(self, on_change: Callable[[ToolListChange], Any] | None) -> None:
        self._on_change = on_change
        self._subscribers: list[Callable[[], None]] = []
        self._registries: weakref.WeakSet[Any] = weakref.WeakSet()
        self._registered: dict[str, AnyTool] = {}
        self._beside: set[asyncio.Task[None]] = set()

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call a function at each change from now on."""
        self._subscribers.append(callback)

    def register(self, registry: Any, tools: Sequence[AnyTool]) -> None:
        """Put tools into a registry, which is kept up to date from now on."""
        self._registries.add(registry)
        for tool in tools:
            registry.register(tool)

    def tell(self, change: ToolListChange) -> None:
        """Tell programs, if there is anything to tell."""
        if not (change.added or change.removed or change.changed or change.pins):
            return
        told: list[Any] = []
        calls = [partial(one) for one in self._subscribers]
        if self._on_change is not None:
            calls.append(partial(self._on_change, change))
        for call in calls:
            try:
                told.append(call())
            except Exception:  # whoever listens never breaks a connection
                logger.exception("A listener failed on changes of MCP server %r.", change.server)
        for result in told:
            if inspect.isawaitable(result):
                self.later(_awaited(result))

    def tell_registries(self, tools: Sequence[AnyTool]) -> None:
        """Bring the registries up to date with what tools there are."""
        now = {tool.name: tool for tool in tools}
        gone = [name for name, tool in self._registered.items() if now.get(name) is not tool]
        fresh = [tool for name, tool in now.items() if self._registered.get(name) is not tool]
        for registry in list(self._registries):
            changes = [partial(registry.unregister, name) for name in gone]
            changes += [partial(registry.register, tool) for tool in fresh]
            for change in changes:
                try:
                    change()
                except Exception as error:  # noqa: BLE001 - one refusal never costs the others
                    logger.warning("A registry has refused a tool of an MCP server: %s", error)
        self._registered = now

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside the connection, which does not wait for it."""
        task = asyncio.ensure_future(work)
        self._beside.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._beside.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("What was to be told of MCP servers has failed.", exc_info=error)


async def _awaited(work: Awaitable[Any]) -> None:
    await work
