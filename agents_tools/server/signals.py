"""Handle Ctrl-C and SIGTERM for several HTTP servers that run at the same time in one process."""

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


class _SignalServer(Protocol):
    def handle_exit(self, sig: int, frame: Any) -> None: ...


_serving: list[_SignalServer] = []
_previous_handlers: dict[int, Any] = {}
_caught: list[int] = []


@contextlib.contextmanager
def shared_signals(server: _SignalServer) -> Generator[None]:
    """Forward signals to a uvicorn server while it runs, instead of its own signal handlers.

    Uvicorn stores the previous handler and restores it at its end. If the server that started first
    also ends first, the second server would later restore the handler of the first.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if not _serving:
        _previous_handlers.update({number: signal.signal(number, _handle) for number in _SIGNALS})
        _reset_sse_shutdown()
    _serving.append(server)
    try:
        yield
    finally:
        _serving.remove(server)
        if not _serving:
            for number, handler in _previous_handlers.items():
                signal.signal(number, handler)
            _previous_handlers.clear()
            _reset_sse_shutdown()
    if not _serving:
        caught = _caught.copy()
        _caught.clear()
        for number in reversed(caught):
            signal.raise_signal(number)


def _handle(number: int, frame: Any) -> None:
    _caught.append(number)
    for server in _serving:
        server.handle_exit(number, frame)


def _reset_sse_shutdown() -> None:
    """Reset the shutdown flag of `sse_starlette`, which otherwise ends all later streams at once.

    It is reset before the first server, because another server of the process can have received a
    signal, and after the last one, because the next server possibly does not use this module.
    """
    module: Any = sys.modules.get("sse_starlette.sse")
    status: Any = getattr(module, "AppStatus", None)
    if getattr(status, "should_exit", False):
        status.should_exit = False
