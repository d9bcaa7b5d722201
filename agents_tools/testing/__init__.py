"""Test tools, agents and user interfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.agents.model import (
        override_model as override_model,
    )
    from agents_tools.testing.ag_ui import (
        AgUiStreamError as AgUiStreamError,
        assert_agui as assert_agui,
        check_ag_ui as check_ag_ui,
    )
    from agents_tools.testing.backends import (
        BACKEND_TOOLS as BACKEND_TOOLS,
        BackendContract as BackendContract,
    )
    from agents_tools.testing.calls import (
        ToolCall as ToolCall,
        call_tool as call_tool,
        call_tool_sync as call_tool_sync,
    )
    from agents_tools.testing.contract import (
        ToolContractError as ToolContractError,
        assert_tool_contract as assert_tool_contract,
    )
    from agents_tools.testing.fakes import (
        FakeCall as FakeCall,
        FakeTool as FakeTool,
        fake_tool as fake_tool,
    )
    from agents_tools.testing.invariants import (
        EventLawError as EventLawError,
        check_events as check_events,
    )
    from agents_tools.testing.linting import (
        LintError as LintError,
        assert_no_findings as assert_no_findings,
    )
    from agents_tools.testing.recording import (
        RecordedCall as RecordedCall,
        ToolRecorder as ToolRecorder,
    )
    from agents_tools.testing.run_stores import (
        RunStoreContract as RunStoreContract,
    )
    from agents_tools.testing.scripted import (
        ScriptedModel as ScriptedModel,
        assistant_message as assistant_message,
        function_call as function_call,
        tool_call as tool_call,
    )
    from agents_tools.testing.snapshots import (
        SchemaSnapshotError as SchemaSnapshotError,
        assert_schema_snapshot as assert_schema_snapshot,
    )
    from agents_tools.testing.stores import (
        EventStoreContract as EventStoreContract,
        StoreLawError as StoreLawError,
    )
    from agents_tools.testing.strategies import (
        bad_tool_arguments as bad_tool_arguments,
        tool_arguments as tool_arguments,
    )
    from agents_tools.testing.vercel import (
        VercelStreamError as VercelStreamError,
        assert_vercel as assert_vercel,
        check_vercel as check_vercel,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "agents_tools.agents.model": ("override_model",),
        "ag_ui": (
            "AgUiStreamError",
            "assert_agui",
            "check_ag_ui",
        ),
        "backends": (
            "BACKEND_TOOLS",
            "BackendContract",
        ),
        "calls": (
            "ToolCall",
            "call_tool",
            "call_tool_sync",
        ),
        "contract": (
            "ToolContractError",
            "assert_tool_contract",
        ),
        "fakes": (
            "FakeCall",
            "FakeTool",
            "fake_tool",
        ),
        "invariants": (
            "EventLawError",
            "check_events",
        ),
        "linting": (
            "LintError",
            "assert_no_findings",
        ),
        "recording": (
            "RecordedCall",
            "ToolRecorder",
        ),
        "run_stores": ("RunStoreContract",),
        "scripted": (
            "ScriptedModel",
            "assistant_message",
            "function_call",
            "tool_call",
        ),
        "snapshots": (
            "SchemaSnapshotError",
            "assert_schema_snapshot",
        ),
        "stores": (
            "EventStoreContract",
            "StoreLawError",
        ),
        "strategies": (
            "bad_tool_arguments",
            "tool_arguments",
        ),
        "vercel": (
            "VercelStreamError",
            "assert_vercel",
            "check_vercel",
        ),
    },
    requires={
        "ag_ui": "pip install -U 'agents-tools[ui]'",
        "strategies": "pip install hypothesis",
    },
)
