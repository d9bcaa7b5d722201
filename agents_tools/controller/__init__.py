"""An agent that is driven by the events of a stream."""

from __future__ import annotations

from agents_tools.controller._controller import AgentController
from agents_tools.controller._history import items_of
from agents_tools.controller._memory import MemorySubscriber
from agents_tools.controller._state import State, asks_for_step

__all__ = ["AgentController", "MemorySubscriber", "State", "asks_for_step", "items_of"]
