"""Threads, futures, background event loops and processes that the other packages use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.concurrency.threads import configure_threads as configure_threads
    from agents_tools.concurrency.watchdog import (
        BlockedLoop as BlockedLoop,
        watch_loop as watch_loop,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "threads": ("configure_threads",),
        "watchdog": ("BlockedLoop", "watch_loop"),
    },
)
