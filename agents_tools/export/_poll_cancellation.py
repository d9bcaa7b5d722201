"""Cancellation of calls by frameworks that set a flag without notifying the call."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

__all__ = ["POLL_INTERVAL", "CallCancelledError", "poll_until_cancelled"]

POLL_INTERVAL = 0.05
"""Seconds between two checks for cancellation."""


class CallCancelledError(Exception):
    """The framework cancelled the call, and the call has ended."""


async def poll_until_cancelled(
    is_cancelled: Callable[[], Awaitable[bool]],
    items: AsyncGenerator[Any],
    *,
    interval: float = POLL_INTERVAL,
) -> AsyncGenerator[Any]:
    """Yield the items of a call until it ends or the framework cancels it.

    Args:
        is_cancelled: Returns whether the framework has cancelled the call.
        items: The call; closing it cancels it.
        interval: Seconds between two checks while no item arrives.

    Raises:
        CallCancelledError: The framework cancelled the call.
    """
    step: asyncio.Future[Any] | None = None
    try:
        while True:
            step = asyncio.ensure_future(anext(items, None))
            while not step.done():
                await asyncio.wait({step}, timeout=interval)
                if not step.done() and await is_cancelled():
                    raise CallCancelledError
            item = step.result()
            if item is None:
                return
            yield item
    finally:
        if step is not None and not step.done():
            step.cancel()
            await asyncio.wait({step})
        await items.aclose()
