"""Turn Python functions into tools for AI agents, and stream their progress to any interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import __version__ as __version__, lazy_exports

if TYPE_CHECKING:
    from agents_tools import policies as policies
    from agents_tools.agents import compaction as compaction
    from agents_tools.agents.agent import Agent as Agent, Tool as Tool
    from agents_tools.agents.config import (
        AgentHooks as AgentHooks,
        RunConfig as RunConfig,
        RunHooks as RunHooks,
        RunResult as RunResult,
    )
    from agents_tools.agents.guardrail import (
        GuardrailFunctionOutput as GuardrailFunctionOutput,
        InputGuardrail as InputGuardrail,
        OutputGuardrail as OutputGuardrail,
        input_guardrail as input_guardrail,
        output_guardrail as output_guardrail,
    )
    from agents_tools.agents.handoff import (
        HandoffInputData as HandoffInputData,
        handoff as handoff,
    )
    from agents_tools.agents.hosted.computer import ComputerTool as ComputerTool
    from agents_tools.agents.hosted.provider_tools import (
        CodeInterpreterTool as CodeInterpreterTool,
        FileSearchTool as FileSearchTool,
        ImageGenerationTool as ImageGenerationTool,
        WebSearchTool as WebSearchTool,
    )
    from agents_tools.agents.hosted.remote_mcp import HostedMCPTool as HostedMCPTool
    from agents_tools.agents.hosted.shell import LocalShellTool as LocalShellTool
    from agents_tools.agents.model import (
        Model as Model,
        ModelProvider as ModelProvider,
        ModelRequest as ModelRequest,
        ModelResponse as ModelResponse,
        ModelSettings as ModelSettings,
    )
    from agents_tools.agents.runner import (
        Runner as Runner,
        RunResultStreaming as RunResultStreaming,
    )
    from agents_tools.builtin.presets import (
        create_default_registry as create_default_registry,
        get_default_tools as get_default_tools,
    )
    from agents_tools.classes.action import (
        Action as Action,
        ImageContent as ImageContent,
        Observation as Observation,
        TextContent as TextContent,
        ToolExecutor as ToolExecutor,
    )
    from agents_tools.classes.base_tool import (
        BaseTool as BaseTool,
        BaseToolParams as BaseToolParams,
    )
    from agents_tools.classes.definition import (
        ExecutableTool as ExecutableTool,
        ToolDefinition as ToolDefinition,
    )
    from agents_tools.classes.registry import (
        ToolRegistry as ToolRegistry,
        ToolSpec as ToolSpec,
        list_registered_tools as list_registered_tools,
        register_tool as register_tool,
        resolve_tool as resolve_tool,
    )
    from agents_tools.content.items import (
        ItemHelpers as ItemHelpers,
        MessageOutputItem as MessageOutputItem,
        ReasoningItem as ReasoningItem,
        ToolApprovalItem as ToolApprovalItem,
        ToolCallItem as ToolCallItem,
        ToolCallOutputItem as ToolCallOutputItem,
    )
    from agents_tools.content.outputs import (
        ToolOutputAudio as ToolOutputAudio,
        ToolOutputFileContent as ToolOutputFileContent,
        ToolOutputImage as ToolOutputImage,
        ToolOutputText as ToolOutputText,
        ToolResult as ToolResult,
        to_output as to_output,
    )
    from agents_tools.content.usage import Usage as Usage
    from agents_tools.errors import (
        AgentsToolsError as AgentsToolsError,
        InputGuardrailTripwireTriggered as InputGuardrailTripwireTriggered,
        MaxTurnsExceeded as MaxTurnsExceeded,
        MCPError as MCPError,
        ModelBehaviorError as ModelBehaviorError,
        OutputGuardrailTripwireTriggered as OutputGuardrailTripwireTriggered,
        ToolCancelledError as ToolCancelledError,
        ToolDeniedError as ToolDeniedError,
        ToolError as ToolError,
        ToolStreamError as ToolStreamError,
        ToolTimeoutError as ToolTimeoutError,
        UserError as UserError,
    )
    from agents_tools.events.base import Emit as Emit, Event as Event
    from agents_tools.events.envelope import EventSource as EventSource
    from agents_tools.events.kinds import (
        ActionEvent as ActionEvent,
        AgentStateChangedEvent as AgentStateChangedEvent,
        AgentUpdatedStreamEvent as AgentUpdatedStreamEvent,
        ErrorEvent as ErrorEvent,
        MessageEvent as MessageEvent,
        NotifyStreamEvent as NotifyStreamEvent,
        NullEvent as NullEvent,
        ObservationEvent as ObservationEvent,
        RawResponseStreamEvent as RawResponseStreamEvent,
        RunFinishedEvent as RunFinishedEvent,
        RunItemStreamEvent as RunItemStreamEvent,
        RunStartedEvent as RunStartedEvent,
        ToolArtifactEvent as ToolArtifactEvent,
        ToolProgressEvent as ToolProgressEvent,
        ToolStreamEndEvent as ToolStreamEndEvent,
        ToolStreamStartEvent as ToolStreamStartEvent,
    )
    from agents_tools.events.listener import listen as listen
    from agents_tools.events.registry import (
        event_from_dict as event_from_dict,
        event_to_dict as event_to_dict,
    )
    from agents_tools.persistence import (
        EventStore as EventStore,
        MemoryEventStore as MemoryEventStore,
        MemoryRunStore as MemoryRunStore,
        PostgresRunStore as PostgresRunStore,
        RedisEventStore as RedisEventStore,
        RunStore as RunStore,
        Session as Session,
        SQLiteEventStore as SQLiteEventStore,
        SQLiteRunStore as SQLiteRunStore,
        SQLiteSession as SQLiteSession,
        open_run_store as open_run_store,
    )
    from agents_tools.persistence.stream import (
        EventStream as EventStream,
        EventStreamSubscriber as EventStreamSubscriber,
    )
    from agents_tools.schema.docstring import (
        FuncDocumentation as FuncDocumentation,
        generate_func_documentation as generate_func_documentation,
    )
    from agents_tools.schema.function import (
        FuncSchema as FuncSchema,
        function_schema as function_schema,
    )
    from agents_tools.schema.strict import ensure_strict_json_schema as ensure_strict_json_schema
    from agents_tools.text.secrets import register_secret as register_secret
    from agents_tools.tool.argument_stream import ArgumentStream as ArgumentStream
    from agents_tools.tool.context import ToolContext as ToolContext
    from agents_tools.tool.decorators import (
        function_tool as function_tool,
        streaming_tool as streaming_tool,
    )
    from agents_tools.tool.failure import (
        default_tool_error_function as default_tool_error_function,
        set_default_tool_error_function as set_default_tool_error_function,
    )
    from agents_tools.tool.records import (
        CallOutcome as CallOutcome,
        Decision as Decision,
        ToolAnnotations as ToolAnnotations,
    )
    from agents_tools.tool.reporting import (
        artifact as artifact,
        notify as notify,
        progress as progress,
        track as track,
    )
    from agents_tools.tool.run_context import RunContextWrapper as RunContextWrapper
    from agents_tools.tool.state import ToolState as ToolState
    from agents_tools.tool.tool import FunctionTool as FunctionTool
    from agents_tools.toolset import (
        CodeLimits as CodeLimits,
        Toolset as Toolset,
        code_mode as code_mode,
        tool_search as tool_search,
    )
    from agents_tools.wire.anthropic import to_anthropic as to_anthropic
    from agents_tools.wire.bedrock import to_bedrock as to_bedrock
    from agents_tools.wire.gemini import to_gemini as to_gemini
    from agents_tools.wire.mcp import to_mcp as to_mcp
    from agents_tools.wire.openai_chat import to_openai_chat as to_openai_chat
    from agents_tools.wire.openai_responses import to_openai_responses as to_openai_responses

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_package": ("__version__",),
        "events.listener": ("listen",),
        "schema.docstring": ("FuncDocumentation", "generate_func_documentation"),
        "tool.records": ("CallOutcome", "Decision", "ToolAnnotations"),
        "text.secrets": ("register_secret",),
        "schema.strict": ("ensure_strict_json_schema",),
        "classes.action": ("Action", "ImageContent", "Observation", "TextContent", "ToolExecutor"),
        "agents": ("compaction",),
        "agents.agent": ("Agent", "Tool"),
        "classes.base_tool": ("BaseTool", "BaseToolParams"),
        "builtin.presets": ("create_default_registry", "get_default_tools"),
        "tool.argument_stream": ("ArgumentStream",),
        "tool.context": ("ToolContext",),
        "tool.reporting": ("artifact", "notify", "progress", "track"),
        "tool.run_context": ("RunContextWrapper",),
        "tool.state": ("ToolState",),
        "tool.decorators": ("function_tool", "streaming_tool"),
        "classes.definition": ("ExecutableTool", "ToolDefinition"),
        "errors": (
            "AgentsToolsError",
            "InputGuardrailTripwireTriggered",
            "MaxTurnsExceeded",
            "ModelBehaviorError",
            "OutputGuardrailTripwireTriggered",
            "MCPError",
            "ToolCancelledError",
            "ToolDeniedError",
            "ToolError",
            "ToolStreamError",
            "ToolTimeoutError",
            "UserError",
        ),
        "events.base": (
            "Emit",
            "Event",
        ),
        "events.envelope": ("EventSource",),
        "events.kinds": (
            "ActionEvent",
            "AgentStateChangedEvent",
            "AgentUpdatedStreamEvent",
            "ErrorEvent",
            "MessageEvent",
            "NotifyStreamEvent",
            "NullEvent",
            "ObservationEvent",
            "RawResponseStreamEvent",
            "RunFinishedEvent",
            "RunItemStreamEvent",
            "RunStartedEvent",
            "ToolArtifactEvent",
            "ToolProgressEvent",
            "ToolStreamEndEvent",
            "ToolStreamStartEvent",
        ),
        "events.registry": (
            "event_from_dict",
            "event_to_dict",
        ),
        "agents.hosted.computer": ("ComputerTool",),
        "agents.hosted.provider_tools": (
            "CodeInterpreterTool",
            "FileSearchTool",
            "ImageGenerationTool",
            "WebSearchTool",
        ),
        "agents.hosted.remote_mcp": ("HostedMCPTool",),
        "agents.hosted.shell": ("LocalShellTool",),
        "content.items": (
            "ItemHelpers",
            "MessageOutputItem",
            "ReasoningItem",
            "ToolApprovalItem",
            "ToolCallItem",
            "ToolCallOutputItem",
        ),
        "agents.model": (
            "Model",
            "ModelProvider",
            "ModelRequest",
            "ModelResponse",
            "ModelSettings",
        ),
        "content.outputs": (
            "ToolOutputAudio",
            "ToolOutputFileContent",
            "ToolOutputImage",
            "ToolOutputText",
            "ToolResult",
            "to_output",
        ),
        "classes.registry": (
            "ToolRegistry",
            "ToolSpec",
            "list_registered_tools",
            "register_tool",
            "resolve_tool",
        ),
        "agents.config": (
            "AgentHooks",
            "RunConfig",
            "RunHooks",
            "RunResult",
        ),
        "agents.guardrail": (
            "GuardrailFunctionOutput",
            "InputGuardrail",
            "OutputGuardrail",
            "input_guardrail",
            "output_guardrail",
        ),
        "agents.handoff": ("HandoffInputData", "handoff"),
        "agents.runner": ("Runner", "RunResultStreaming"),
        "schema.function": ("FuncSchema", "function_schema"),
        "persistence": (
            "EventStore",
            "MemoryEventStore",
            "MemoryRunStore",
            "PostgresRunStore",
            "RedisEventStore",
            "RunStore",
            "SQLiteEventStore",
            "SQLiteRunStore",
            "SQLiteSession",
            "Session",
            "open_run_store",
        ),
        "persistence.stream": ("EventStream", "EventStreamSubscriber"),
        "tool.failure": ("default_tool_error_function", "set_default_tool_error_function"),
        "tool.tool": ("FunctionTool",),
        "toolset": ("CodeLimits", "Toolset", "code_mode", "tool_search"),
        "content.usage": ("Usage",),
        "wire.anthropic": ("to_anthropic",),
        "wire.bedrock": ("to_bedrock",),
        "wire.gemini": ("to_gemini",),
        "wire.mcp": ("to_mcp",),
        "wire.openai_chat": ("to_openai_chat",),
        "wire.openai_responses": ("to_openai_responses",),
    },
    submodules=("policies",),
    counterparts="agents_tools.export._openai_agents_names",
)
