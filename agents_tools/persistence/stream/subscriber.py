"""Well-known subscribers of an event stream."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["EventStreamSubscriber"]


class EventStreamSubscriber(StrEnum):
    """The ids of the usual subscribers of a session."""

    AGENT_CONTROLLER = "agent_controller"
    RESOLVER = "openhands_resolver"
    SERVER = "server"
    RUNTIME = "runtime"
    MEMORY = "memory"
    MAIN = "main"
    TEST = "test"
