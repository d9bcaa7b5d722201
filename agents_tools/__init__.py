"""Turn Python functions into tools that any AI agent can call and anybody can watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools._version import __version__

if TYPE_CHECKING:
    from agents_tools import policies as policies
    from agents_tools._channel import bind as bind, listen as listen
    from agents_tools._docstring import (
        FuncDocumentation as FuncDocumentation,
        generate_func_documentation as generate_func_documentation,
    )
    from agents_tools._json import (
        JsonLimits as JsonLimits,
        configure_json_limits as configure_json_limits,
    )
    from agents_tools._problem import ArgumentProblem as ArgumentProblem
    from agents_tools._records import (
        CallOutcome as CallOutcome,
        Decision as Decision,
        ToolAnnotations as ToolAnnotations,
        ToolOrigin as ToolOrigin,
    )
    from agents_tools._secrets import register_secret as register_secret
    from agents_tools._strict import ensure_strict_json_schema as ensure_strict_json_schema
    from agents_tools._threads import configure_threads as configure_threads
    from agents_tools._watchdog import BlockedLoop as BlockedLoop, watch_loop as watch_loop
    from agents_tools.action import (
        Action as Action,
        ImageContent as ImageContent,
        Observation as Observation,
        TextContent as TextContent,
        ToolExecutor as ToolExecutor,
    )
    from agents_tools.agent import Agent as Agent, Tool as Tool
    from agents_tools.base_tool import BaseTool as BaseTool, BaseToolParams as BaseToolParams
    from agents_tools.builtin.presets import (
        create_default_registry as create_default_registry,
        get_default_tools as get_default_tools,
    )
    from agents_tools.context import (
        Question as Question,
        RunContextWrapper as RunContextWrapper,
        ToolContext as ToolContext,
        artifact as artifact,
        current_context as current_context,
        notify as notify,
        progress as progress,
        track as track,
    )
    from agents_tools.decorators import (
        function_tool as function_tool,
        streaming_tool as streaming_tool,
    )
    from agents_tools.definition import (
        ExecutableTool as ExecutableTool,
        ToolDefinition as ToolDefinition,
    )
    from agents_tools.errors import (
        AgentsToolsError as AgentsToolsError,
        BudgetExceeded as BudgetExceeded,
        ContextWindowExceeded as ContextWindowExceeded,
        EventConflictError as EventConflictError,
        EventStoreCorruptError as EventStoreCorruptError,
        EventStoreError as EventStoreError,
        EventStoreFullError as EventStoreFullError,
        MaxTurnsExceeded as MaxTurnsExceeded,
        MCPConnectionError as MCPConnectionError,
        MCPError as MCPError,
        MCPProtocolError as MCPProtocolError,
        MCPTimeoutError as MCPTimeoutError,
        ModelBehaviorError as ModelBehaviorError,
        ModelError as ModelError,
        RunError as RunError,
        RunTimeoutError as RunTimeoutError,
        ToolCancelledError as ToolCancelledError,
        ToolDeniedError as ToolDeniedError,
        ToolError as ToolError,
        ToolLostError as ToolLostError,
        ToolOverloadedError as ToolOverloadedError,
        ToolRefusedError as ToolRefusedError,
        ToolStreamError as ToolStreamError,
        ToolTimeoutError as ToolTimeoutError,
        UserError as UserError,
    )
    from agents_tools.events import (
        ActionEvent as ActionEvent,
        AgentStateChangedEvent as AgentStateChangedEvent,
        AgentUpdatedStreamEvent as AgentUpdatedStreamEvent,
        Emit as Emit,
        ErrorEvent as ErrorEvent,
        Event as Event,
        EventSource as EventSource,
        GapEvent as GapEvent,
        MessageEvent as MessageEvent,
        NotifyStreamEvent as NotifyStreamEvent,
        NullEvent as NullEvent,
        ObservationEvent as ObservationEvent,
        RawResponseStreamEvent as RawResponseStreamEvent,
        RunFinishedEvent as RunFinishedEvent,
        RunItemStreamEvent as RunItemStreamEvent,
        RunStartedEvent as RunStartedEvent,
        StreamingToolEndEvent as StreamingToolEndEvent,
        StreamingToolStartEvent as StreamingToolStartEvent,
        ToolArtifactEvent as ToolArtifactEvent,
        ToolAttemptEvent as ToolAttemptEvent,
        ToolProgressEvent as ToolProgressEvent,
        ToolStreamEndEvent as ToolStreamEndEvent,
        ToolStreamStartEvent as ToolStreamStartEvent,
        event_from_dict as event_from_dict,
        event_json_schema as event_json_schema,
        event_to_dict as event_to_dict,
    )
    from agents_tools.hosted import (
        CodeInterpreterTool as CodeInterpreterTool,
        ComputerTool as ComputerTool,
        FileSearchTool as FileSearchTool,
        HostedMCPTool as HostedMCPTool,
        HostedTool as HostedTool,
        ImageGenerationTool as ImageGenerationTool,
        LocalShellTool as LocalShellTool,
        WebSearchTool as WebSearchTool,
    )
    from agents_tools.items import (
        ItemHelpers as ItemHelpers,
        MessageInputItem as MessageInputItem,
        MessageOutputItem as MessageOutputItem,
        ReasoningItem as ReasoningItem,
        ToolApprovalItem as ToolApprovalItem,
        ToolCallItem as ToolCallItem,
        ToolCallOutputItem as ToolCallOutputItem,
        item_from_dict as item_from_dict,
    )
    from agents_tools.model import (
        Model as Model,
        ModelProvider as ModelProvider,
        ModelRequest as ModelRequest,
        ModelResponse as ModelResponse,
        ModelSettings as ModelSettings,
        load_model as load_model,
    )
    from agents_tools.outputs import (
        ToolOutput as ToolOutput,
        ToolOutputAudio as ToolOutputAudio,
        ToolOutputFileContent as ToolOutputFileContent,
        ToolOutputImage as ToolOutputImage,
        ToolOutputText as ToolOutputText,
        ToolResult as ToolResult,
        to_output as to_output,
    )
    from agents_tools.registry import (
        RegistryChange as RegistryChange,
        ToolRegistry as ToolRegistry,
        ToolSpec as ToolSpec,
        list_registered_tools as list_registered_tools,
        register_tool as register_tool,
        resolve_tool as resolve_tool,
    )
    from agents_tools.run import (
        AgentHooks as AgentHooks,
        FunctionToolResult as FunctionToolResult,
        RunConfig as RunConfig,
        RunHooks as RunHooks,
        RunResult as RunResult,
        Session as Session,
        StopAtTools as StopAtTools,
        ToolsToFinalOutputResult as ToolsToFinalOutputResult,
    )
    from agents_tools.runner import (
        Runner as Runner,
        RunResultStreaming as RunResultStreaming,
    )
    from agents_tools.runtime import ToolRuntime as ToolRuntime
    from agents_tools.schema import FuncSchema as FuncSchema, function_schema as function_schema
    from agents_tools.state import RunState as RunState
    from agents_tools.store import (
        EventFilter as EventFilter,
        EventStore as EventStore,
        MemoryEventStore as MemoryEventStore,
        RedisEventStore as RedisEventStore,
        SQLiteEventStore as SQLiteEventStore,
    )
    from agents_tools.stream import (
        EventStream as EventStream,
        EventStreamSubscriber as EventStreamSubscriber,
    )
    from agents_tools.tool import (
        FunctionTool as FunctionTool,
        default_tool_error_function as default_tool_error_function,
        set_default_tool_error_function as set_default_tool_error_function,
    )
    from agents_tools.toolset import (
        TokenReport as TokenReport,
        Toolset as Toolset,
        ToolTokens as ToolTokens,
        token_report as token_report,
        tool_search as tool_search,
    )
    from agents_tools.usage import Usage as Usage
    from agents_tools.wire.anthropic import to_anthropic as to_anthropic
    from agents_tools.wire.bedrock import to_bedrock as to_bedrock
    from agents_tools.wire.gemini import to_gemini as to_gemini
    from agents_tools.wire.mcp import to_mcp as to_mcp
    from agents_tools.wire.openai_chat import to_openai_chat as to_openai_chat
    from agents_tools.wire.openai_responses import to_openai_responses as to_openai_responses

_PLACES = {
    "_channel": ("bind", "listen"),
    "_docstring": ("FuncDocumentation", "generate_func_documentation"),
    "_json": ("JsonLimits", "configure_json_limits"),
    "_problem": ("ArgumentProblem",),
    "_records": ("CallOutcome", "Decision", "ToolAnnotations", "ToolOrigin"),
    "_secrets": ("register_secret",),
    "_strict": ("ensure_strict_json_schema",),
    "_threads": ("configure_threads",),
    "_watchdog": ("BlockedLoop", "watch_loop"),
    "action": ("Action", "ImageContent", "Observation", "TextContent", "ToolExecutor"),
    "agent": ("Agent", "Tool"),
    "base_tool": ("BaseTool", "BaseToolParams"),
    "builtin.presets": ("create_default_registry", "get_default_tools"),
    "context": (
        "Question",
        "RunContextWrapper",
        "ToolContext",
        "artifact",
        "current_context",
        "notify",
        "progress",
        "track",
    ),
    "decorators": ("function_tool", "streaming_tool"),
    "definition": ("ExecutableTool", "ToolDefinition"),
    "errors": (
        "AgentsToolsError",
        "BudgetExceeded",
        "ContextWindowExceeded",
        "EventConflictError",
        "EventStoreCorruptError",
        "EventStoreError",
        "EventStoreFullError",
        "MaxTurnsExceeded",
        "ModelBehaviorError",
        "MCPConnectionError",
        "MCPError",
        "MCPProtocolError",
        "MCPTimeoutError",
        "ModelError",
        "RunError",
        "RunTimeoutError",
        "ToolCancelledError",
        "ToolDeniedError",
        "ToolError",
        "ToolLostError",
        "ToolOverloadedError",
        "ToolRefusedError",
        "ToolStreamError",
        "ToolTimeoutError",
        "UserError",
    ),
    "events": (
        "ActionEvent",
        "AgentStateChangedEvent",
        "AgentUpdatedStreamEvent",
        "Emit",
        "ErrorEvent",
        "Event",
        "EventSource",
        "GapEvent",
        "MessageEvent",
        "NotifyStreamEvent",
        "NullEvent",
        "ObservationEvent",
        "RawResponseStreamEvent",
        "RunFinishedEvent",
        "RunItemStreamEvent",
        "RunStartedEvent",
        "StreamingToolEndEvent",
        "StreamingToolStartEvent",
        "ToolArtifactEvent",
        "ToolAttemptEvent",
        "ToolProgressEvent",
        "ToolStreamEndEvent",
        "ToolStreamStartEvent",
        "event_from_dict",
        "event_json_schema",
        "event_to_dict",
    ),
    "hosted": (
        "CodeInterpreterTool",
        "ComputerTool",
        "FileSearchTool",
        "HostedMCPTool",
        "HostedTool",
        "ImageGenerationTool",
        "LocalShellTool",
        "WebSearchTool",
    ),
    "items": (
        "ItemHelpers",
        "MessageInputItem",
        "MessageOutputItem",
        "ReasoningItem",
        "ToolApprovalItem",
        "ToolCallItem",
        "ToolCallOutputItem",
        "item_from_dict",
    ),
    "model": (
        "Model",
        "ModelProvider",
        "ModelRequest",
        "ModelResponse",
        "ModelSettings",
        "load_model",
    ),
    "outputs": (
        "ToolOutput",
        "ToolOutputAudio",
        "ToolOutputFileContent",
        "ToolOutputImage",
        "ToolOutputText",
        "ToolResult",
        "to_output",
    ),
    "registry": (
        "RegistryChange",
        "ToolRegistry",
        "ToolSpec",
        "list_registered_tools",
        "register_tool",
        "resolve_tool",
    ),
    "run": (
        "AgentHooks",
        "FunctionToolResult",
        "RunConfig",
        "RunHooks",
        "RunResult",
        "Session",
        "StopAtTools",
        "ToolsToFinalOutputResult",
    ),
    "runner": ("Runner", "RunResultStreaming"),
    "runtime": ("ToolRuntime",),
    "schema": ("FuncSchema", "function_schema"),
    "state": ("RunState",),
    "store": (
        "EventFilter",
        "EventStore",
        "MemoryEventStore",
        "RedisEventStore",
        "SQLiteEventStore",
    ),
    "stream": ("EventStream", "EventStreamSubscriber"),
    "tool": (
        "FunctionTool",
        "default_tool_error_function",
        "set_default_tool_error_function",
    ),
    "toolset": ("TokenReport", "ToolTokens", "Toolset", "token_report", "tool_search"),
    "usage": ("Usage",),
    "wire.anthropic": ("to_anthropic",),
    "wire.bedrock": ("to_bedrock",),
    "wire.gemini": ("to_gemini",),
    "wire.mcp": ("to_mcp",),
    "wire.openai_chat": ("to_openai_chat",),
    "wire.openai_responses": ("to_openai_responses",),
}
"""Where each public name lives; a module is loaded when a name of its is first asked for."""

_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = ["__version__", "policies", *sorted(_MODULES)]  # noqa: PLE0604 # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        value = getattr(import_module(f"agents_tools.{_MODULES[name]}"), name)
    elif name == "policies":
        value = import_module("agents_tools.policies")
    else:
        raise AttributeError(f"module 'agents_tools' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
