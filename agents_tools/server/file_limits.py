"""The number of connections that the open files of the process allow."""

from __future__ import annotations

__all__ = ["accept_burst", "max_process_connections"]

_ACCEPT_BURST = 64
"""Connections that the event loop accepts at once, before the first of them is counted."""
_OTHER_FILES = 64
"""Open files for tools, stores and logs."""


def accept_burst() -> int:
    """Return how many connections an event loop accepts at once."""
    files = _max_files()
    return _ACCEPT_BURST if files is None else max(1, min(_ACCEPT_BURST, files // 16))


def max_process_connections() -> int | None:
    """Return how many connections the process can have; `None` without a limit of open files.

    Connections that were accepted at once are counted in later turns of the loop, so that up to
    three bursts can exist beyond the limit.
    """
    files = _max_files()
    return None if files is None else max(files - 3 * accept_burst() - _OTHER_FILES, files // 4, 1)


def _max_files() -> int | None:
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return None
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if files == resource.RLIM_INFINITY else files
