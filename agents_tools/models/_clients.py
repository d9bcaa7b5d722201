"""One client for each event loop, closed as its loop ends.

The connections of an asynchronous client belong to the event loop that opened them: used from
another loop they break, and left open they are reported as leaked when their loop closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Hashable

__all__ = ["client_here"]


class _Closable(Protocol):
    async def close(self) -> None:
        """Close every connection."""
        ...


_Client = TypeVar("_Client", bound=_Closable)


class _Home:
    """The clients of one loop, and the generator that closes them."""

    __slots__ = ("clients", "guard")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.clients: dict[Hashable, Any] = {}
        self.guard = _closing(loop, self.clients)


_homes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Home] = WeakKeyDictionary()
_lock = threading.Lock()


async def client_here(key: Hashable, make: Callable[[], _Client]) -> _Client:
    """Give the client of the running loop for a key, made at the first time.

    Args:
        key: Tells apart what needs clients of its own, such as addresses and keys.
        make: Makes one.
    """
    loop = asyncio.get_running_loop()
    home = _homes.get(loop)
    if home is None:
        home = _Home(loop)
        with _lock:
            for other in [one for one in _homes if one.is_closed()]:
                del _homes[other]
            _homes[loop] = home
        # `asyncio.run` ends every asynchronous generator that its loop has begun: the only moment
        # at which a loop that is about to close can still be used to say goodbye.
        await anext(home.guard)
    client: _Client | None = home.clients.get(key)
    if client is None:
        client = home.clients[key] = make()
    return client


async def _closing(
    loop: asyncio.AbstractEventLoop, clients: dict[Hashable, Any]
) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        with _lock:
            _homes.pop(loop, None)
        for client in clients.values():
            with contextlib.suppress(Exception):
                await client.close()
