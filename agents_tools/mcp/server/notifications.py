"""Notify the clients of a server that its lists or resources have changed."""

from __future__ import annotations

import contextlib
import importlib
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agents_tools.mcp._sdk import MODERN, RawJson
from agents_tools.mcp.server.requests import INVALID_PARAMS, RequestError
from agents_tools.mcp.server.source_updates import SourceUpdates

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.mcp._sdk import ListKind

__all__ = ["ServerNotifier", "session_name"]

_MAX_SESSIONS: Final = 10_000
_MAX_URIS: Final = 1_000
"""The number of resources that one session can subscribe to."""


def session_name(ctx: Any) -> str | None:
    """Return the name of the session of a request up to 2025-11-25; empty on stdio.

    Args:
        ctx: The context of the request in the SDK.

    Returns:
        The name; `None` for later protocol versions, and over HTTP without sessions.
    """
    if (getattr(ctx, "protocol_version", None) or "") >= MODERN:
        return None
    request = getattr(ctx, "request", None)
    return "" if request is None else request.headers.get("mcp-session-id")


class ServerNotifier:
    """The sessions of clients up to 2025-11-25, and the streams of later clients.

    Args:
        major: The major version of the SDK.
        source: The source of the resources. If it has the methods `subscribe_resource` and
            `unsubscribe_resource`, its resources are followed for the clients.
    """

    def __init__(self, major: int, source: object = None) -> None:
        self._sessions: dict[str, Any] = {}
        self._uris: dict[str, set[str]] = {}
        self._followed: Counter[str] = Counter()  # by streams
        self._updates: SourceUpdates | None = None
        if hasattr(source, "subscribe_resource"):
            self._updates = SourceUpdates(source, self._is_followed, self.resource_updated)
        self._bus: Any = None
        self.listen: Callable[..., Any] | None = None
        if major > 1:
            module: Any = importlib.import_module("mcp.server.subscriptions")
            self._bus = module.InMemorySubscriptionBus()
            listen: Callable[..., Any] = module.ListenHandler(self._bus)
            self.listen = listen if self._updates is None else partial(self._listen, listen)

    def store_session(self, ctx: Any) -> str | None:
        """Store the session of a request up to 2025-11-25, and return its name.

        Args:
            ctx: The context of the request in the SDK.

        Returns:
            The name; `None` if the client cannot be notified: it uses a later protocol version, or
            HTTP without sessions.
        """
        name = session_name(ctx)
        if name is None:
            return None
        if name not in self._sessions and len(self._sessions) >= _MAX_SESSIONS:
            self._forget(next(iter(self._sessions)))
        self._sessions[name] = ctx.session
        return name

    async def subscribe(self, ctx: Any, uri: str) -> None:
        """Notify the session of a request when a resource changes.

        Raises:
            RequestError: The session has too many subscriptions, or the source of the resource does
                not report its updates.
        """
        name = self.store_session(ctx)
        if name is None:
            return
        uris = self._uris.setdefault(name, set())
        if len(uris) >= _MAX_URIS:
            raise RequestError(
                f"Too many subscriptions: at most {_MAX_URIS:,} are possible.", INVALID_PARAMS
            )
        uris.add(uri)
        if self._updates is not None:
            try:
                await self._updates.follow(uri)
            except RequestError:
                uris.discard(uri)
                raise

    async def unsubscribe(self, ctx: Any, uri: str) -> None:
        """Stop to notify the session of a request of a resource."""
        name = self.store_session(ctx)
        if name is not None:
            self._uris.get(name, set()).discard(uri)

    async def _listen(self, listen: Callable[..., Any], ctx: Any, params: Any) -> Any:
        """Handle a stream of notifications, and follow its resources."""
        uris = [str(uri) for uri in params.notifications.resource_subscriptions or ()]
        self._followed.update(uris)
        try:
            for uri in uris:
                if self._updates is not None:
                    # The stream also has other topics, so it opens without these updates.
                    with contextlib.suppress(RequestError):
                        await self._updates.follow(uri)
            return await listen(ctx, params)
        finally:
            self._followed -= Counter(uris)  # this removes those that no stream has any more

    def _is_followed(self, uri: str) -> bool:
        return self._followed[uri] > 0 or any(uri in uris for uris in self._uris.values())

    async def list_changed(self, kind: ListKind) -> None:
        """Notify all clients that a list has changed."""
        await self._publish(f"{kind.capitalize()}ListChanged")
        await self._send(f"notifications/{kind}/list_changed", {}, list(self._sessions))

    async def resource_updated(self, uri: str) -> None:
        """Notify the clients that subscribe to a resource that it has changed."""
        await self._publish("ResourceUpdated", uri=uri)
        names = [name for name, uris in self._uris.items() if uri in uris]
        await self._send("notifications/resources/updated", {"uri": uri}, names)

    async def _publish(self, event: str, **fields: str) -> None:
        if self._bus is not None:
            events: Any = importlib.import_module("mcp.shared.subscriptions")
            await self._bus.publish(getattr(events, event)(**fields))

    async def _send(self, method: str, params: dict[str, Any], names: list[str]) -> None:
        for name in names:
            session = self._sessions.get(name)
            if session is None:
                continue
            try:
                await session.send_notification(RawJson(method, params))
            except Exception:  # noqa: BLE001 - the client has disconnected
                self._forget(name)

    def _forget(self, name: str) -> None:
        self._sessions.pop(name, None)
        self._uris.pop(name, None)
