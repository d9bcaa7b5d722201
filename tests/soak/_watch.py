"""What a campaign's process hears of on the side: warnings, lost exceptions, tasks that hang."""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import sys
import threading
import traceback
import warnings
from typing import TYPE_CHECKING, Any, TextIO

from tests.soak.campaign import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = 20
_ROUNDS = 3
_HEARD = (ResourceWarning, RuntimeWarning)


class Watch:
    """Hears what Python says on the side in this process, and makes findings of it."""

    def __init__(self, where: str, reproduce: str) -> None:
        """Start to listen; `where` and `reproduce` are those of the findings."""
        self._where, self._reproduce = where, reproduce
        self._heard: dict[str, int] = {}
        sys.unraisablehook = self._unraisable
        threading.excepthook = self._of_a_thread
        warnings.showwarning = self._warning
        for kind in _HEARD:
            warnings.simplefilter("always", kind)
        logging.getLogger("asyncio").addHandler(_Logged(self._hear))

    def findings(self) -> list[Finding]:
        """Give what was heard until now, after the garbage had its say; the same thing once."""
        for _ in range(_ROUNDS):
            gc.collect()
        return [
            Finding(what=f"{what} ({times} times)", where=self._where, reproduce=self._reproduce)
            for what, times in sorted(self._heard.items(), key=lambda pair: -pair[1])[:_MOST]
        ]

    def _hear(self, what: str) -> None:
        self._heard[what] = self._heard.get(what, 0) + 1

    def _unraisable(self, it: sys.UnraisableHookArgs) -> None:
        shown = "".join(traceback.format_exception(it.exc_type, it.exc_value, it.exc_traceback))
        self._hear(f"unraisable exception: {it.err_msg or 'in'} {_named(it.object)}\n{shown}")

    def _of_a_thread(self, it: threading.ExceptHookArgs) -> None:
        shown = "".join(traceback.format_exception(it.exc_type, it.exc_value, it.exc_traceback))
        self._hear(f"a thread ended with an exception\n{shown}")

    def _warning(  # the signature is that of warnings.showwarning
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        del file, line
        if issubclass(category, _HEARD):
            self._hear(f"{category.__name__}: {message}, at {filename}:{lineno}")


class _Logged(logging.Handler):
    """Hands on what a loop logs: an exception that nobody retrieved, a callback that failed."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._hear = hear
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self._hear(f"asyncio says: {self.format(record)}")


def tasks_shown() -> str:
    """Show the tasks that have not ended in this process, each with where it waits."""
    shown = io.StringIO()
    found: list[Any] = gc.get_objects()
    for task in found:
        if isinstance(task, asyncio.Task) and not task.done():  # pyright: ignore[reportUnknownMemberType]
            task.print_stack(file=shown)
    return shown.getvalue()


def _named(value: Any) -> str:
    return getattr(value, "__qualname__", None) or f"{type(value).__name__} object"
