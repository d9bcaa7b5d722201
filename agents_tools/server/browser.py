"""Open a page of the library in the user's browser."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["can_open_browser", "open_browser"]


def can_open_browser() -> bool:
    """Return whether a page opens in a window and not in this terminal."""
    if sys.platform in {"win32", "darwin"}:
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


@contextlib.asynccontextmanager
async def open_browser(url: str) -> AsyncGenerator[None]:
    """Open a URL in the browser while the block runs; a failure to open it is ignored.

    `webbrowser` runs in a process of its own: some browsers block it until they are closed, and
    what a browser writes must not reach standard output, which can be a protocol stream. The
    process is ended with the block; the browser itself stays open.

    Args:
        url: The URL.
    """
    # -I: a module `webbrowser` in the working directory must not be run.
    command = [sys.executable, "-I", "-m", "webbrowser", url]
    try:
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - it starts at once; our own words
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        yield
        return
    try:
        yield
    finally:
        process.kill()
        process.wait()
