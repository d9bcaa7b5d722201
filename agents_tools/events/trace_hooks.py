"""The hook for carrying trace context to other processes. Without a tracer it does nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TraceHooks", "continue_trace", "set_tracing", "trace_carrier"]


class TraceHooks:
    """Carries the trace context of a call to the process that runs the call."""

    def carrier(self) -> dict[str, str]:
        """Return the current trace context as headers of W3C Trace Context."""
        raise NotImplementedError

    def entered(self, carrier: Mapping[str, str]) -> AbstractContextManager[Any]:
        """Return a context manager that continues the trace of a carrier."""
        raise NotImplementedError


_tracing: TraceHooks | None = None


def set_tracing(tracing: TraceHooks | None) -> None:
    """Set the hooks of this process, or remove them with `None`."""
    global _tracing  # noqa: PLW0603 - one per process
    _tracing = tracing


def trace_carrier() -> dict[str, str]:
    """Return the trace headers to send with a call; empty if nothing is traced."""
    return {} if _tracing is None else _tracing.carrier()


def continue_trace(carrier: Mapping[str, str]) -> AbstractContextManager[Any]:
    """Return a context manager that continues the trace of the headers of a call."""
    if _tracing is None or not carrier:
        return nullcontext()
    return _tracing.entered(carrier)
