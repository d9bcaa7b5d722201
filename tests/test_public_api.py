"""Test the exports of the package and the cost of importing it."""

from __future__ import annotations

import ast
import inspect
import json
import pathlib
import subprocess
import sys

import pytest
from inline_snapshot import snapshot

import agents_tools

ROOT = pathlib.Path(agents_tools.__file__)


def test_every_public_name_can_be_imported_and_is_known_to_type_checkers() -> None:
    """People read one list and type checkers the other; they must be equal."""
    block = next(node for node in ast.parse(ROOT.read_text()).body if isinstance(node, ast.If))
    declared = {
        alias.asname
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert declared == set(agents_tools.__all__) - {"__version__"}
    for name in agents_tools.__all__:
        assert getattr(agents_tools, name) is not None
    assert set(agents_tools.__all__) <= set(dir(agents_tools))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = agents_tools.no_such_name  # type: ignore[attr-defined]


def test_the_public_names_match_the_stored_list() -> None:
    """Adding or removing a name must be deliberate."""
    assert sorted(agents_tools.__all__) == snapshot(
        [
            "Action",
            "ActionEvent",
            "Agent",
            "AgentHooks",
            "AgentStateChangedEvent",
            "AgentUpdatedStreamEvent",
            "AgentsToolsError",
            "ArgumentStream",
            "BaseTool",
            "BaseToolParams",
            "CallOutcome",
            "CodeInterpreterTool",
            "CodeLimits",
            "ComputerTool",
            "Decision",
            "Emit",
            "ErrorEvent",
            "Event",
            "EventSource",
            "EventStore",
            "EventStream",
            "EventStreamSubscriber",
            "ExecutableTool",
            "FileSearchTool",
            "FuncDocumentation",
            "FuncSchema",
            "FunctionTool",
            "GuardrailFunctionOutput",
            "HandoffInputData",
            "HostedMCPTool",
            "ImageContent",
            "ImageGenerationTool",
            "InputGuardrail",
            "InputGuardrailTripwireTriggered",
            "ItemHelpers",
            "LocalShellTool",
            "MCPError",
            "MaxTurnsExceeded",
            "MemoryEventStore",
            "MemoryRunStore",
            "MessageEvent",
            "MessageOutputItem",
            "Model",
            "ModelBehaviorError",
            "ModelProvider",
            "ModelRequest",
            "ModelResponse",
            "ModelSettings",
            "NotifyStreamEvent",
            "NullEvent",
            "Observation",
            "ObservationEvent",
            "OutputGuardrail",
            "OutputGuardrailTripwireTriggered",
            "PostgresRunStore",
            "RawResponseStreamEvent",
            "ReasoningItem",
            "RedisEventStore",
            "RunConfig",
            "RunContextWrapper",
            "RunFinishedEvent",
            "RunHooks",
            "RunItemStreamEvent",
            "RunResult",
            "RunResultStreaming",
            "RunStartedEvent",
            "RunStore",
            "Runner",
            "SQLiteEventStore",
            "SQLiteRunStore",
            "SQLiteSession",
            "Session",
            "TextContent",
            "Tool",
            "ToolAnnotations",
            "ToolApprovalItem",
            "ToolArtifactEvent",
            "ToolCallItem",
            "ToolCallOutputItem",
            "ToolCancelledError",
            "ToolContext",
            "ToolDefinition",
            "ToolDeniedError",
            "ToolError",
            "ToolExecutor",
            "ToolOutputAudio",
            "ToolOutputFileContent",
            "ToolOutputImage",
            "ToolOutputText",
            "ToolProgressEvent",
            "ToolRegistry",
            "ToolResult",
            "ToolSpec",
            "ToolState",
            "ToolStreamEndEvent",
            "ToolStreamError",
            "ToolStreamStartEvent",
            "ToolTimeoutError",
            "Toolset",
            "Usage",
            "UserError",
            "WebSearchTool",
            "__version__",
            "artifact",
            "code_mode",
            "compaction",
            "create_default_registry",
            "default_tool_error_function",
            "ensure_strict_json_schema",
            "event_from_dict",
            "event_to_dict",
            "function_schema",
            "function_tool",
            "generate_func_documentation",
            "get_default_tools",
            "handoff",
            "input_guardrail",
            "list_registered_tools",
            "listen",
            "notify",
            "open_run_store",
            "output_guardrail",
            "policies",
            "progress",
            "register_secret",
            "register_tool",
            "resolve_tool",
            "set_default_tool_error_function",
            "streaming_tool",
            "to_anthropic",
            "to_bedrock",
            "to_gemini",
            "to_mcp",
            "to_openai_chat",
            "to_openai_responses",
            "to_output",
            "tool_search",
            "track",
        ]
    )


def test_every_public_class_and_function_has_a_docstring() -> None:
    """The reference is generated from them."""
    missing = [
        name
        for name in agents_tools.__all__
        if inspect.isroutine(value := getattr(agents_tools, name)) or inspect.isclass(value)
        if not (value.__doc__ or "").strip()
    ]
    assert missing == []


DECORATED = """
from agents_tools import function_tool

@function_tool
def tool(a: int, b: "list[str]" = []) -> str:
    '''Do it.

    Args:
        a: a number
    '''
"""
HEAVY = ["pydantic", "pydantic_core", "griffe", "asyncio", "anyio", "json", "logging", "click"]


@pytest.mark.parametrize(
    "program",
    [
        "import agents_tools",
        "from agents_tools import function_tool, streaming_tool, ToolContext, NotifyStreamEvent",
        DECORATED,
    ],
    ids=["package", "names", "decorated"],
)
def test_importing_and_decorating_loads_no_slow_module(program: str) -> None:
    """A program with tools must start as fast as one without."""
    script = f"{program}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    result = subprocess.run(  # noqa: S603 - our own interpreter and text
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30
    )
    loaded = set(json.loads(result.stdout)) - {"json"}
    assert loaded.isdisjoint(set(HEAVY) - {"json"})


def test_importing_agents_loads_no_provider_and_no_pydantic() -> None:
    """The client of a provider is imported only when it is used."""
    script = (
        "from agents_tools import Agent, Runner, RunConfig, WebSearchTool\n"
        "Agent('Helper', tools=[WebSearchTool()])\n"
        "import sys, json\nprint(json.dumps(sorted(sys.modules)))"
    )
    result = subprocess.run(  # noqa: S603 - our own interpreter and text
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30
    )
    loaded = set(json.loads(result.stdout))
    assert loaded.isdisjoint(
        {"anthropic", "griffe", "httpx", "mcp", "openai", "pydantic", "pydantic_ai", "rich"}
    )
