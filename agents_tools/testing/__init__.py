"""What tests of tools, agents and user interfaces need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserError
from agents_tools.model import override_model
from agents_tools.testing.ag_ui import AgUiStreamError, assert_agui, check_ag_ui
from agents_tools.testing.calls import ToolCall, call_tool, call_tool_sync
from agents_tools.testing.contract import ToolContractError, assert_tool_contract
from agents_tools.testing.fakes import FakeCall, FakeTool, fake_tool
from agents_tools.testing.laws import EventLawError, check_events
from agents_tools.testing.recording import RecordedCall, ToolRecorder
from agents_tools.testing.scripted import ScriptedModel, tool_call
from agents_tools.testing.snapshots import SchemaSnapshotError, assert_schema_snapshot
from agents_tools.testing.stores import EventStoreContract, StoreLawError
from agents_tools.testing.vercel import VercelStreamError, assert_vercel, check_vercel

if TYPE_CHECKING:
    from agents_tools.testing.backends import BACKEND_TOOLS, BackendContract
    from agents_tools.testing.strategies import bad_tool_arguments, tool_arguments

__all__ = [
    "BACKEND_TOOLS",
    "AgUiStreamError",
    "BackendContract",
    "EventLawError",
    "EventStoreContract",
    "FakeCall",
    "FakeTool",
    "RecordedCall",
    "SchemaSnapshotError",
    "ScriptedModel",
    "StoreLawError",
    "ToolCall",
    "ToolContractError",
    "ToolRecorder",
    "VercelStreamError",
    "assert_agui",
    "assert_schema_snapshot",
    "assert_tool_contract",
    "assert_vercel",
    "bad_tool_arguments",
    "call_tool",
    "call_tool_sync",
    "check_ag_ui",
    "check_events",
    "check_vercel",
    "fake_tool",
    "override_model",
    "tool_arguments",
    "tool_call",
]


def __getattr__(name: str) -> Any:
    if name in {"BACKEND_TOOLS", "BackendContract"}:
        from agents_tools.testing import backends

        return getattr(backends, name)
    if name not in {"bad_tool_arguments", "tool_arguments"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from agents_tools.testing import strategies
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        raise UserError(
            "Strategies for arguments need hypothesis, which is not installed. "
            "Install it with: pip install hypothesis"
        ) from error
    return getattr(strategies, name)
