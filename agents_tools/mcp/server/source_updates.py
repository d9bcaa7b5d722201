"""Follow the resources of a source for the clients that subscribe to them, as in a gateway."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final

from agents_tools.errors import MCPError
from agents_tools.mcp.server.requests import INVALID_PARAMS, RequestError
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["SourceUpdates"]

logger = logging.getLogger("agents_tools.mcp")

_MAX_URIS: Final = 1_000
"""The number of resources that are followed at the same time."""


class SourceUpdates:
    """The resources of a source that clients follow.

    A resource that no client follows any more is released at its next update, or when its place is
    needed for another one.

    Args:
        source: An object with the methods `subscribe_resource(uri, callback)` and
            `unsubscribe_resource(uri)`.
        is_followed: Returns whether a client follows a resource.
        notify: Notifies the clients of an update.
    """

    def __init__(
        self,
        source: Any,
        is_followed: Callable[[str], bool],
        notify: Callable[[str], Awaitable[None]],
    ) -> None:
        self._source = source
        self._is_followed = is_followed
        self._notify = notify
        self._uris: set[str] = set()
        self._lock = asyncio.Lock()

    async def follow(self, uri: str) -> None:
        """Follow a resource, unless it is followed already.

        Raises:
            RequestError: The source does not report its updates, or too many are followed.
        """
        async with self._lock:
            if uri in self._uris:
                return
            if len(self._uris) >= _MAX_URIS:
                unused = (one for one in self._uris if not self._is_followed(one))
                await self._release(next(unused, uri))
            if len(self._uris) >= _MAX_URIS:
                raise RequestError(
                    f"Too many subscriptions: at most {_MAX_URIS:,} are possible.", INVALID_PARAMS
                )
            try:
                await self._source.subscribe_resource(uri, self._on_update)
            except MCPError as error:
                logger.info("Updates of %.200r are not available: %s", uri, error)
                raise RequestError(
                    f"Updates of {release_text(uri, limit=200)} are not available.", INVALID_PARAMS
                ) from error
            self._uris.add(uri)

    async def _on_update(self, uri: str) -> None:
        if self._is_followed(uri):
            await self._notify(uri)
            return
        async with self._lock:
            if not self._is_followed(uri):
                await self._release(uri)

    async def _release(self, uri: str) -> None:
        if uri in self._uris:
            self._uris.discard(uri)
            with contextlib.suppress(MCPError):  # its later updates are ignored
                await self._source.unsubscribe_resource(uri)
