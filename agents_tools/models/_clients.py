"""HTTP clients per event loop, closed when the loop ends.

The connections of an async client belong to the event loop that opened them. They fail on
another loop, and Python reports them as leaks if they are still open when their loop closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Hashable

__all__ = ["loop_client"]


class _ClosableClient(Protocol):
    async def close(self) -> None:
        """Close every connection."""
        ...


_Client = TypeVar("_Client", bound=_ClosableClient)


class _LoopClients:
    """The clients of one loop, and the generator that closes them."""

    __slots__ = ("clients", "guard")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.clients: dict[Hashable, Any] = {}
        self.guard = _close_at_end(loop, self.clients)


_loop_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopClients] = WeakKeyDictionary()
_lock = threading.Lock()


async def loop_client(key: Hashable, create: Callable[[], _Client]) -> _Client:
    """Return the client of the running loop for a key, created on first use.

    Args:
        key: Identifies the client, for example by URL and API key.
        create: Creates the client.
    """
    loop = asyncio.get_running_loop()
    entry = _loop_clients.get(loop)
    if entry is None:
        entry = _LoopClients(loop)
        with _lock:
            for other in [one for one in _loop_clients if one.is_closed()]:
                del _loop_clients[other]
            _loop_clients[loop] = entry
        # `asyncio.run` closes all async generators that its loop has started. This is the last
        # moment at which the clients of a loop can be closed.
        await anext(entry.guard)
    client: _Client | None = entry.clients.get(key)
    if client is None:
        client = entry.clients[key] = create()
    return client


async def _close_at_end(
    loop: asyncio.AbstractEventLoop, clients: dict[Hashable, Any]
) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        with _lock:
            _loop_clients.pop(loop, None)
        for client in clients.values():
            with contextlib.suppress(Exception):
                await client.close()
