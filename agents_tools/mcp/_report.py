"""What both sides of our own make know of a report of progress."""

from __future__ import annotations

__all__ = ["EVENT_KEY", "TOLD"]

EVENT_KEY = "agents_tools/event"
"""Where in the `_meta` of a report of progress the whole event stands, for clients that know it."""

TOLD = frozenset({"tool_progress_event", "notify_stream_event", "tool_artifact_event"})
"""The events that are about the work itself, whoever inside the call says them."""
