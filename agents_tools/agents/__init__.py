"""Agents, the runner and the run loop, and the interface to a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.agents import compaction as compaction
    from agents_tools.agents.agent import (
        Agent as Agent,
        ConvertibleTool as ConvertibleTool,
        Tool as Tool,
    )
    from agents_tools.agents.background import background_tools as background_tools
    from agents_tools.agents.budgets import ModelPrice as ModelPrice
    from agents_tools.agents.config import (
        AgentHooks as AgentHooks,
        FunctionToolResult as FunctionToolResult,
        PublishesEvents as PublishesEvents,
        RunConfig as RunConfig,
        RunHooks as RunHooks,
        RunResult as RunResult,
        StopAtTools as StopAtTools,
        ToolsToFinalOutputResult as ToolsToFinalOutputResult,
        ToolUseBehavior as ToolUseBehavior,
    )
    from agents_tools.agents.foreign_session import ItemSession as ItemSession
    from agents_tools.agents.guardrail import (
        GuardrailFunctionOutput as GuardrailFunctionOutput,
        InputGuardrail as InputGuardrail,
        InputGuardrailResult as InputGuardrailResult,
        OutputGuardrail as OutputGuardrail,
        OutputGuardrailResult as OutputGuardrailResult,
        input_guardrail as input_guardrail,
        output_guardrail as output_guardrail,
    )
    from agents_tools.agents.handoff import (
        Handoff as Handoff,
        HandoffInputData as HandoffInputData,
        HandoffInputFilter as HandoffInputFilter,
        handoff as handoff,
        remove_all_tools as remove_all_tools,
    )
    from agents_tools.agents.hosted.base import HostedTool as HostedTool
    from agents_tools.agents.hosted.computer import (
        Computer as Computer,
        ComputerTool as ComputerTool,
        SafetyCheck as SafetyCheck,
    )
    from agents_tools.agents.hosted.provider_tools import (
        CodeInterpreterTool as CodeInterpreterTool,
        FileSearchTool as FileSearchTool,
        ImageGenerationTool as ImageGenerationTool,
        WebFetchTool as WebFetchTool,
        WebSearchTool as WebSearchTool,
    )
    from agents_tools.agents.hosted.remote_mcp import (
        HostedMCPTool as HostedMCPTool,
        MCPApprovalRequest as MCPApprovalRequest,
    )
    from agents_tools.agents.hosted.shell import (
        LocalShellTool as LocalShellTool,
        ShellRequest as ShellRequest,
    )
    from agents_tools.agents.model import (
        DefaultModelProvider as DefaultModelProvider,
        FinishReason as FinishReason,
        Model as Model,
        ModelProvider as ModelProvider,
        ModelRequest as ModelRequest,
        ModelResponse as ModelResponse,
        ModelSettings as ModelSettings,
        OutputFormat as OutputFormat,
        call_delta as call_delta,
        call_started as call_started,
        hosted_call_started as hosted_call_started,
        load_model as load_model,
        message_started as message_started,
        override_model as override_model,
        reasoning_delta as reasoning_delta,
        refusal_delta as refusal_delta,
        text_delta as text_delta,
    )
    from agents_tools.agents.model_input import (
        InputContext as InputContext,
        PrepareInput as PrepareInput,
    )
    from agents_tools.agents.runner import (
        Runner as Runner,
        RunResultStreaming as RunResultStreaming,
    )
    from agents_tools.agents.state import (
        PendingCall as PendingCall,
        RunState as RunState,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "agent": (
            "Agent",
            "Tool",
            "ConvertibleTool",
        ),
        "background": ("background_tools",),
        "foreign_session": ("ItemSession",),
        "guardrail": (
            "GuardrailFunctionOutput",
            "InputGuardrail",
            "InputGuardrailResult",
            "OutputGuardrail",
            "OutputGuardrailResult",
            "input_guardrail",
            "output_guardrail",
        ),
        "handoff": (
            "Handoff",
            "HandoffInputData",
            "HandoffInputFilter",
            "handoff",
            "remove_all_tools",
        ),
        "runner": (
            "RunResultStreaming",
            "Runner",
        ),
        "budgets": ("ModelPrice",),
        "config": (
            "AgentHooks",
            "FunctionToolResult",
            "PublishesEvents",
            "RunConfig",
            "RunHooks",
            "RunResult",
            "StopAtTools",
            "ToolUseBehavior",
            "ToolsToFinalOutputResult",
        ),
        "state": (
            "PendingCall",
            "RunState",
        ),
        "model": (
            "DefaultModelProvider",
            "FinishReason",
            "Model",
            "ModelProvider",
            "ModelRequest",
            "ModelResponse",
            "ModelSettings",
            "OutputFormat",
            "call_delta",
            "call_started",
            "hosted_call_started",
            "load_model",
            "message_started",
            "override_model",
            "reasoning_delta",
            "refusal_delta",
            "text_delta",
        ),
        "model_input": (
            "InputContext",
            "PrepareInput",
        ),
        "hosted.base": ("HostedTool",),
        "hosted.computer": (
            "Computer",
            "ComputerTool",
            "SafetyCheck",
        ),
        "hosted.provider_tools": (
            "CodeInterpreterTool",
            "FileSearchTool",
            "ImageGenerationTool",
            "WebFetchTool",
            "WebSearchTool",
        ),
        "hosted.remote_mcp": (
            "HostedMCPTool",
            "MCPApprovalRequest",
        ),
        "hosted.shell": (
            "LocalShellTool",
            "ShellRequest",
        ),
    },
    submodules=("compaction",),
)
