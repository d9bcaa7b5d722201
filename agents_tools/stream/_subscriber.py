"""Who reads the stream of a session, by name."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["EventStreamSubscriber"]


class EventStreamSubscriber(StrEnum):
    """Who reads the stream of a session."""

    AGENT_CONTROLLER = "agent_controller"
    RESOLVER = "openhands_resolver"
    SERVER = "server"
    RUNTIME = "runtime"
    MEMORY = "memory"
    MAIN = "main"
    TEST = "test"
