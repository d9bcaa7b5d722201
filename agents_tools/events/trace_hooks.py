"""Where what carries traces is let in; empty, and free, until something is."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TraceHooks", "set_tracing", "trace_carrier", "traced"]


class TraceHooks:
    """Carries what is traced here to where a call continues, in another process or machine."""

    def carrier(self) -> dict[str, str]:
        """Return the headers that say where this is in a trace, as in W3C Trace Context."""
        raise NotImplementedError

    def entered(self, carrier: Mapping[str, str]) -> AbstractContextManager[Any]:
        """Go on in the trace that a carrier tells of, for as long as a block lasts."""
        raise NotImplementedError


_tracing: TraceHooks | None = None


def set_tracing(tracing: TraceHooks | None) -> None:
    """Say who carries traces; no one for `None`."""
    global _tracing  # noqa: PLW0603 - the process has one
    _tracing = tracing


def trace_carrier() -> dict[str, str]:
    """Return the headers that go with a call to where it runs; none where nothing is traced."""
    return {} if _tracing is None else _tracing.carrier()


def traced(carrier: Mapping[str, str]) -> AbstractContextManager[Any]:
    """Go on in the trace that came with a call."""
    if _tracing is None or not carrier:
        return nullcontext()
    return _tracing.entered(carrier)
