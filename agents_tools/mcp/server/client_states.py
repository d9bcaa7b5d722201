"""The state of tools for each client of a server."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agents_tools.tool.state import ToolState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["ClientStates"]

_MOST = 100


class ClientStates:
    """One `ToolState` for each principal, so that clients do not see the shells of other clients.

    Calls without a principal share the state of the list of tools. The state of the principal that
    has been idle for longest is closed when there are more than 100.
    """

    def __init__(self) -> None:
        self._states: OrderedDict[tuple[str, str], ToolState] = OrderedDict()
        self._calls: dict[ToolState, int] = {}

    @asynccontextmanager
    async def of(self, principal: Any) -> AsyncGenerator[ToolState | None]:
        """Provide the state of a principal during a call.

        Args:
            principal: The caller; `None` if it is not known.
        """
        if principal is None:
            yield None
            return
        key = str(principal.client_id), str(principal.subject)
        state = self._states.setdefault(key, ToolState())
        self._states.move_to_end(key)
        self._calls[state] = self._calls.get(state, 0) + 1
        try:
            await self._close_idle()
            yield state
        finally:
            if state in self._calls:  # otherwise the server was closed meanwhile
                self._calls[state] -= 1

    async def _close_idle(self) -> None:
        idle = [key for key, state in self._states.items() if not self._calls.get(state)]
        closing = [self._states.pop(key) for key in idle[: max(0, len(self._states) - _MOST)]]
        for state in closing:
            self._calls.pop(state, None)
            await state.aclose()

    async def aclose(self) -> None:
        """Close the states of all principals."""
        states = list(self._states.values())
        self._states.clear()
        self._calls.clear()
        for state in states:
            await state.aclose()
