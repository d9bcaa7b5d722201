"""Ctrl-C and SIGTERM for all HTTP servers of this process, which begin and end in any order."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["shared_signals"]

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)
)


class _Server(Protocol):
    def handle_exit(self, sig: int, frame: Any) -> None: ...


_serving: list[_Server] = []
_before: dict[int, Any] = {}
_caught: list[int] = []


@contextlib.contextmanager
def shared_signals(server: _Server) -> Generator[None]:
    """Let a server of uvicorn's hear of signals while it serves, in place of its own way.

    That keeps the handler that it finds and puts it back at its end: of two servers that end in
    the order in which they began, the first would then have the signals for ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if not _serving:
        _before.update({number: signal.signal(number, _handle) for number in _SIGNALS})
        _forget_earlier_end()
    _serving.append(server)
    try:
        yield
    finally:
        _serving.remove(server)
        if not _serving:
            for number, handler in _before.items():
                signal.signal(number, handler)
            _before.clear()
            _forget_earlier_end()
    if not _serving:
        caught = _caught.copy()
        _caught.clear()
        for number in reversed(caught):
            signal.raise_signal(number)


def _handle(number: int, frame: Any) -> None:
    _caught.append(number)
    for server in _serving:
        server.handle_exit(number, frame)


def _forget_earlier_end() -> None:
    """Let streams be streams again: what the SDK streams with remembers a signal for ever.

    Before ours, since another server of the process may have had one; after ours, since the next
    server of the process need not be one of ours.
    """
    module: Any = sys.modules.get("sse_starlette.sse")
    status: Any = getattr(module, "AppStatus", None)
    if getattr(status, "should_exit", False):
        status.should_exit = False
