"""The subscriptions of a connection to resources of its server."""

from __future__ import annotations

import asyncio
import inspect
import logging
from contextvars import Context
from typing import TYPE_CHECKING, Any, Protocol

from agents_tools.errors import MCPError, MCPProtocolError, ToolLostError
from agents_tools.mcp._sdk import MODERN
from agents_tools.mcp.client.pending_requests import NotRunError, PendingRequest
from agents_tools.mcp.config import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.mcp.client.sdk_session import ClientSession
    from agents_tools.mcp.config import MCPServerConfig

__all__ = ["ResourceSubscriptions", "SubscribingSession", "UpdateStream"]

logger = logging.getLogger("agents_tools.mcp")


class ResourceSubscriptions:
    """The callbacks for changed resources. They survive the sessions of their connection.

    Updates are delivered one after the other. Those of one resource that arrive before the last
    one was delivered count as one, so that a server cannot fill the memory with them.
    """

    def __init__(self) -> None:
        self._callbacks: dict[str, list[Callable[[str], Any]]] = {}
        self._updated: dict[str, None] = {}
        self._wake: asyncio.Event | None = None

    @property
    def uris(self) -> list[str]:
        """The URIs of the resources."""
        return list(self._callbacks)

    def add(self, uri: str, callback: Callable[[str], Any]) -> None:
        """Add a callback for a resource."""
        self._callbacks.setdefault(uri, []).append(callback)

    def discard(self, uri: str, callback: Callable[[str], Any]) -> None:
        """Remove one callback for a resource."""
        callbacks = self._callbacks.get(uri, [])
        if callback in callbacks:
            callbacks.remove(callback)
        if not callbacks:
            self._callbacks.pop(uri, None)

    def remove(self, uri: str) -> bool:
        """Remove the callbacks for a resource; return whether there were any."""
        return self._callbacks.pop(uri, None) is not None

    def record_update(self, uri: str) -> None:
        """Record that a resource has changed; `deliver` calls its callbacks."""
        if self._callbacks_of(uri):
            self._updated[uri] = None
            if self._wake is not None:
                self._wake.set()

    async def deliver(self) -> None:
        """Call the callbacks of changed resources, until the task is cancelled."""
        self._wake = asyncio.Event()  # of this loop: a connection can move to another one
        if self._updated:
            self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._updated:
                uri = next(iter(self._updated))
                del self._updated[uri]
                for callback in self._callbacks_of(uri):
                    await _call(callback, uri)

    def _callbacks_of(self, uri: str) -> list[Callable[[str], Any]]:
        """Return the callbacks; a server can also report a part of a resource, by a longer URI."""
        exact = self._callbacks.get(uri)
        if exact is not None:
            return list(exact)
        return [
            callback
            for subscribed, callbacks in self._callbacks.items()
            if uri.startswith(subscribed)
            for callback in callbacks
        ]


async def _call(callback: Callable[[str], Any], uri: str) -> None:
    try:
        result = callback(uri)
        if inspect.isawaitable(result):
            await result
    except Exception:  # the callbacks of other resources are still called
        logger.exception("The callback for the MCP resource %.200r failed.", uri)


class SubscribingSession(Protocol):
    """The session that is subscribed."""

    config: MCPServerConfig
    client: ClientSession | None

    async def send(self, request: PendingRequest, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its result."""
        ...


class UpdateStream:
    """Subscribes one session to the resources of its connection.

    From protocol version 2026-07-28 on, one stream reports the updates of all resources. Earlier
    versions send them as notifications of the session.

    Args:
        session: The session.
        subscriptions: The resources; the stream records their updates there.
    """

    def __init__(self, session: SubscribingSession, subscriptions: ResourceSubscriptions) -> None:
        self._session = session
        self._subscriptions = subscriptions
        self._previous = subscriptions.uris
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    async def restore(self) -> None:
        """Subscribe a new session to the resources of the previous one.

        Changes between the two sessions were not reported, so each resource counts as changed.
        """
        if not self._previous:
            return
        try:
            if self._is_stream:
                await self._update()
            else:
                for uri in self._previous:
                    await self._session.send(PendingRequest("resources/subscribe"), {"uri": uri})
        except (MCPError, NotRunError, ToolLostError) as error:
            logger.warning(
                "The subscriptions to resources of MCP server %r were not restored: %s",
                self._session.config.name,
                error,
            )
        self._record_all(self._previous)

    async def subscribe(self, uri: str) -> None:
        """Subscribe to a resource that was added.

        Raises:
            MCPProtocolError: The server refuses it.
        """
        if self._is_stream:
            await self._update()
        else:
            await self._session.send(PendingRequest("resources/subscribe"), {"uri": uri})

    async def unsubscribe(self, uri: str) -> None:
        """End the subscription to a resource that was removed."""
        if self._is_stream:
            await self._update()
        else:
            await self._session.send(PendingRequest("resources/unsubscribe"), {"uri": uri})

    async def close(self) -> None:
        """Close the stream, because the session ends."""
        self._is_closed = True
        await _end(self._task)

    @property
    def _is_stream(self) -> bool:
        client = self._session.client
        return client is not None and client.version >= MODERN

    async def _update(self) -> None:
        """Open a stream for the current resources, then close the previous one.

        Raises:
            MCPProtocolError: The server refuses it. The previous stream stays open.
        """
        async with self._lock:
            uris = self._subscriptions.uris
            task = await self._open(uris) if uris else None
            if self._is_closed:  # while the stream was opened
                await _end(task)
                raise NotRunError("the connection has ended")
            previous, self._task = self._task, task
            await _end(previous)

    async def _open(self, uris: list[str]) -> asyncio.Task[None]:
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # An empty context: the stream must not inherit the variables of the caller.
        task = asyncio.create_task(self._listen(uris, opened), context=Context())
        try:
            await opened
        except BaseException:
            await _end(task)
            raise
        return task

    async def _listen(self, uris: list[str], opened: asyncio.Future[None]) -> None:
        """Read a stream of updates; open it again after errors."""

        def on_open() -> None:
            if opened.done():
                self._record_all(uris)  # updates during the pause were not reported
            else:
                opened.set_result(None)

        name, delay = self._session.config.name, 1.0
        while (client := self._session.client) is not None:
            try:
                await client.listen_to_resources(uris, on_open, self._subscriptions.record_update)
            except Exception as error:  # noqa: BLE001 - of the SDK, or of the network
                if not opened.done():
                    why = without_secrets(self._session.config, str(error) or type(error).__name__)
                    opened.set_exception(
                        MCPProtocolError(
                            f"MCP server {name!r} did not accept the subscription: {why}",
                            server=name,
                        )
                    )
                    return
                logger.debug("%s: the stream of updates has ended: %r", name, error)
            await asyncio.sleep(delay)
            delay = min(delay * 2, 60.0)

    def _record_all(self, uris: list[str]) -> None:
        for uri in uris:
            self._subscriptions.record_update(uri)


async def _end(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
