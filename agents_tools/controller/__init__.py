"""An agent that is driven by the events of a stream."""

from __future__ import annotations

from agents_tools.controller._controller import AgentController, State, asks_for_step
from agents_tools.controller._history import items_of
from agents_tools.controller._memory import MemorySubscriber

__all__ = ["AgentController", "MemorySubscriber", "State", "asks_for_step", "items_of"]
