"""Names of openai-agents that `agents_tools` does not have, each with its counterpart."""

from __future__ import annotations

__all__ = ["COUNTERPARTS"]

_HANDOFF = "Give the other agent as a tool: tools=[agent.as_tool()]."
_GUARDRAIL = (
    "Put agents_tools.policies.input_guardrail(check) or output_guardrail(check) around a tool."
)
_TRACING = "Runs are traced with OpenTelemetry: agents_tools.telemetry.instrument()."
_SESSION = (
    'Use agents_tools.SQLiteEventStore: session=store.session("chat-1") in Runner.run keeps the '
    "conversation."
)
_OPENAI = 'Name the model "openai/…" and set OPENAI_API_KEY, or configure an OpenAI model.'
_MCP = "Use agents_tools.mcp.MCPToolManager: await manager.add_server(name, command=...)."

COUNTERPARTS = {
    "AgentHooks": "Import it from agents_tools.agents.",
    "AgentOutputSchema": "Pass the type itself: Agent(output_type=...).",
    "AgentsException": "Catch agents_tools.AgentsToolsError.",
    "FunctionToolResult": "Import it from agents_tools.agents.",
    "GuardrailFunctionOutput": _GUARDRAIL,
    "Handoff": _HANDOFF,
    "HandoffInputData": _HANDOFF,
    "InputGuardrail": _GUARDRAIL,
    "MCPServerSse": _MCP,
    "MCPServerStdio": _MCP,
    "MCPServerStreamableHttp": _MCP,
    "ModelSettings": "Import it from agents_tools.agents.",
    "OpenAIChatCompletionsModel": "Use agents_tools.models.openai_chat.OpenAIChatModel.",
    "OpenAIProvider": _OPENAI,
    "OpenAIResponsesModel": "Use agents_tools.models.openai_responses.OpenAIResponsesModel.",
    "OutputGuardrail": _GUARDRAIL,
    "RawResponsesStreamEvent": "Use agents_tools.RawResponseStreamEvent.",
    "RunHooks": "Import it from agents_tools.agents.",
    "RunState": "Import it from agents_tools.agents.",
    "SQLiteSession": _SESSION,
    "StopAtTools": "Import it from agents_tools.agents.",
    "StreamEvent": "Use agents_tools.Event.",
    "ToolGuardrailFunctionOutput": _GUARDRAIL,
    "ToolInputGuardrail": _GUARDRAIL,
    "ToolOrigin": "Import it from agents_tools.tool.",
    "ToolOutputGuardrail": _GUARDRAIL,
    "ToolSearchTool": "Use agents_tools.tool_search(tools).",
    "ToolsToFinalOutputResult": "Import it from agents_tools.agents.",
    "add_trace_processor": _TRACING,
    "custom_span": _TRACING,
    "function_span": _TRACING,
    "handoff": _HANDOFF,
    "input_guardrail": _GUARDRAIL,
    "output_guardrail": _GUARDRAIL,
    "run_demo_loop": "Run `agents-tools run TARGET` in a terminal.",
    "set_default_openai_client": _OPENAI,
    "set_default_openai_key": _OPENAI,
    "set_tracing_disabled": "Tracing is off until agents_tools.telemetry.instrument() is called.",
    "tool_input_guardrail": _GUARDRAIL,
    "tool_output_guardrail": _GUARDRAIL,
    "trace": _TRACING,
}
"""A remedy in one sentence for each name that programs for openai-agents import."""
