"""Serialized calls for agents that can only run one call at a time."""

from __future__ import annotations

import contextlib
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agents_tools.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["CallSerializer", "serializer_for"]


class CallSerializer:
    """A lock of an agent for calls from several tools, threads and event loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def acquire(self, agent: str, *, timeout: float = 0.0) -> bool:
        """Acquire the agent and return whether that succeeded.

        Args:
            agent: The name of the agent.
            timeout: Seconds to wait, blocking the thread.

        Raises:
            ToolError: The agent calls itself, which would be a deadlock.
        """
        if self in _held.get():
            raise ToolError(
                f"Agent {agent!r} cannot be called by itself: its calls run one after the other."
            )
        return self._lock.acquire(timeout=timeout)

    @contextlib.contextmanager
    def held(self) -> Generator[None]:
        """Mark the code inside as holding the acquired agent, and release it afterwards."""
        token = _held.set(_held.get() | {self})
        try:
            yield
        finally:
            with contextlib.suppress(ValueError):  # the generator is closed in another context
                _held.reset(token)
            self._lock.release()


_held: ContextVar[frozenset[CallSerializer]] = ContextVar("agents_tools_turns", default=frozenset())
"""The serializers that the running code holds, to detect an agent that calls itself."""

_serializers: WeakKeyDictionary[Any, CallSerializer] = WeakKeyDictionary()
_serializers_lock = threading.Lock()


def serializer_for(agent: Any) -> CallSerializer:
    """Return the serializer of an agent, which all its tools share."""
    with _serializers_lock:
        return _serializers.setdefault(agent, CallSerializer())
