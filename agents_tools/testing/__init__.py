"""What tests of tools, agents and user interfaces need."""

from __future__ import annotations

from agents_tools.model import override_model
from agents_tools.testing.ag_ui import AgUiStreamError, assert_agui, check_ag_ui
from agents_tools.testing.calls import ToolCall, call_tool, call_tool_sync
from agents_tools.testing.laws import EventLawError, check_events
from agents_tools.testing.scripted import ScriptedModel, tool_call
from agents_tools.testing.stores import EventStoreContract, StoreLawError
from agents_tools.testing.vercel import VercelStreamError, assert_vercel, check_vercel

__all__ = [
    "AgUiStreamError",
    "EventLawError",
    "EventStoreContract",
    "ScriptedModel",
    "StoreLawError",
    "ToolCall",
    "VercelStreamError",
    "assert_agui",
    "assert_vercel",
    "call_tool",
    "call_tool_sync",
    "check_ag_ui",
    "check_events",
    "check_vercel",
    "override_model",
    "tool_call",
]
