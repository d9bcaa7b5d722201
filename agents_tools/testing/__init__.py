"""What tests of tools, agents and user interfaces need."""

from __future__ import annotations

from agents_tools.model import override_model
from agents_tools.testing.calls import ToolCall, call_tool, call_tool_sync
from agents_tools.testing.laws import EventLawError, check_events
from agents_tools.testing.scripted import ScriptedModel, tool_call

__all__ = [
    "EventLawError",
    "ScriptedModel",
    "ToolCall",
    "call_tool",
    "call_tool_sync",
    "check_events",
    "override_model",
    "tool_call",
]
