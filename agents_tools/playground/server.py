"""Serve the playground on a socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.server.listener import serve_app

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from agents_tools.playground.api import PlaygroundApp

__all__ = ["serve"]

_CLEANUP_TIME = 1
"""The seconds that open connections have when the server stops."""


async def serve(
    app: PlaygroundApp,
    listener: socket.socket,
    *,
    on_ready: Callable[[], Any] | None = None,
) -> None:
    """Serve the playground until the task is cancelled, which also cancels all runs.

    Args:
        app: The playground.
        listener: A listening socket.
        on_ready: Called when the server accepts requests.

    Raises:
        UserError: The extra `ui` is not installed.
    """
    await app.start()
    await serve_app(
        app,
        listener,
        shutdown_timeout=_CLEANUP_TIME,
        lifespan="off",
        on_ready=on_ready,
        on_stop=app.aclose,  # first, so that its streams end and need not be waited for
    )
