"""Agents and tools that are driven by the events of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.event_driven.controller import (
        AgentController as AgentController,
        MemorySubscriber as MemorySubscriber,
        State as State,
        asks_for_step as asks_for_step,
        items_of as items_of,
    )
    from agents_tools.event_driven.runtime import (
        ToolRuntime as ToolRuntime,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "controller": (
            "AgentController",
            "MemorySubscriber",
            "State",
            "asks_for_step",
            "items_of",
        ),
        "runtime": ("ToolRuntime",),
    },
)
