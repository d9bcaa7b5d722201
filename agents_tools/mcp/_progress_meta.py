"""The extension of progress notifications that clients and servers of this library share."""

from __future__ import annotations

__all__ = ["EVENTS_KEY", "EVENT_KEY", "PROGRESS_EVENTS"]

EVENT_KEY = "agents_tools/event"
"""The key in the `_meta` of a progress notification whose value is the event as JSON."""

EVENTS_KEY = "agents_tools/events"
"""The key in the `_meta` of a call whose value `true` declares that the client reads event data."""

PROGRESS_EVENTS = frozenset({"tool_progress_event", "notify_stream_event", "tool_artifact_event"})
"""The types of the events of a call and its subcalls that are sent as progress."""
