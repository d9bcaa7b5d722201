"""What tests of tools, agents and user interfaces need."""

from __future__ import annotations

from agents_tools.testing.calls import ToolCall, call_tool, call_tool_sync
from agents_tools.testing.laws import EventLawError, check_events

__all__ = ["EventLawError", "ToolCall", "call_tool", "call_tool_sync", "check_events"]
