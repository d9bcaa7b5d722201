"""The controller of an event-driven agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.event_driven.controller.controller import (
        AgentController as AgentController,
    )
    from agents_tools.event_driven.controller.history import (
        items_of as items_of,
    )
    from agents_tools.event_driven.controller.memory import (
        MemorySubscriber as MemorySubscriber,
    )
    from agents_tools.event_driven.controller.state import (
        State as State,
        asks_for_step as asks_for_step,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "controller": ("AgentController",),
        "history": ("items_of",),
        "memory": ("MemorySubscriber",),
        "state": (
            "State",
            "asks_for_step",
        ),
    },
)
