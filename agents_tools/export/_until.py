"""A call that ends when its framework says so in a place where nobody is woken."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

__all__ = ["LOOK", "OverError", "until"]

LOOK = 0.05
"""Seconds after which somebody looks again."""


class OverError(Exception):
    """Nobody waits for the call any more; it was cancelled, and has ended."""


async def until(
    is_over: Callable[[], Awaitable[bool]], items: AsyncGenerator[Any], *, look: float = LOOK
) -> AsyncGenerator[Any]:
    """Give what a call gives, until it is over.

    Args:
        is_over: Whether nobody waits for the call any more.
        items: The call; closing it cancels it.
        look: Seconds after which to look again while nothing comes.

    Raises:
        OverError: It was.
    """
    step: asyncio.Future[Any] | None = None
    try:
        while True:
            step = asyncio.ensure_future(anext(items, None))
            while not step.done():
                await asyncio.wait({step}, timeout=look)
                if not step.done() and await is_over():
                    raise OverError
            item = step.result()
            if item is None:
                return
            yield item
    finally:
        if step is not None and not step.done():
            step.cancel()
            await asyncio.wait({step})
        await items.aclose()
