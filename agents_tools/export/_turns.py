"""One call after the other for agents that can do one thing at a time."""

from __future__ import annotations

import contextlib
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agents_tools.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["Turns", "turns_of"]


class Turns:
    """Who may use an agent: calls may come from several tools, threads and event loops."""

    def __init__(self) -> None:
        self._taken = threading.Lock()

    def take(self, agent: str, *, wait: float = 0.0) -> bool:
        """Take a turn, if there is one.

        Args:
            agent: The name of the agent.
            wait: Seconds to wait for one; the thread stands still.

        Raises:
            ToolError: The agent calls itself, and would wait for ever.
        """
        if self in _inside.get():
            raise ToolError(f"Agent {agent!r} cannot be called by itself.")
        return self._taken.acquire(timeout=wait)

    @contextlib.contextmanager
    def used(self) -> Generator[None]:
        """Know what runs in here as part of the turn that was taken, and give it up afterwards."""
        token = _inside.set(_inside.get() | {self})
        try:
            yield
        finally:
            with contextlib.suppress(ValueError):  # closed from elsewhere
                _inside.reset(token)
            self._taken.release()


_inside: ContextVar[frozenset[Turns]] = ContextVar("agents_tools_turns", default=frozenset())
"""Those that the code here runs in."""

_known: WeakKeyDictionary[Any, Turns] = WeakKeyDictionary()
_lock = threading.Lock()


def turns_of(agent: Any) -> Turns:
    """Give the turns of an agent: the same for all tools that are made of it."""
    with _lock:
        return _known.setdefault(agent, Turns())
