"""Serve an endpoint on a network address."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING

from agents_tools.server.listener import HEAD_TIMEOUT, bound_socket, serve_app, url_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp

__all__ = ["serve"]


def _announce(url: str) -> None:
    """Print the URL to standard error."""
    sys.stderr.write(f"Serving on {url}. Press Ctrl-C to stop.\n")


def serve(
    app: ASGIApp,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    head_timeout: float = HEAD_TIMEOUT,
    max_connections: int | None = None,
    on_ready: Callable[[str], None] | None = _announce,
) -> None:
    """Serve an ASGI app with uvicorn until Ctrl-C or SIGTERM.

    Unlike `uvicorn.run`, it disconnects clients that send no request, limits the number of
    connections, logs repeated messages about clients only now and then, and ends open streams when
    it stops.

    Args:
        app: The app, for example of `sse.app`, or an app of your own in which it is mounted.
        host: The address.
        port: The port; 0 for a free one.
        head_timeout: The seconds in which a client must send the head of a request.
        max_connections: The largest number of connections. By default, and at most, as many as the
            process can have open files, less a reserve for tools.
        on_ready: Called with the URL when the server accepts requests. By default, the URL is
            printed to standard error; `None` prints nothing.

    Raises:
        UserError: An option is invalid, or the address cannot be used.
    """
    sock = bound_socket(host, port)
    url = url_of(host, sock)
    serving = serve_app(
        app,
        sock,
        head_timeout=head_timeout,
        max_connections=max_connections,
        handle_signals=True,
        on_ready=None if on_ready is None else lambda: on_ready(url),
    )
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serving)
