"""Names of openai-agents that `agents_tools` does not have, with their counterparts."""

from __future__ import annotations

__all__ = ["ATTRIBUTES", "COUNTERPARTS", "OPTIONS"]

_AGENTS = "Import it from agents_tools.agents."
_NO_TYPE = "Annotate with Any, or with the class of the object."
_CONTEXT_TYPE = "Annotate with agents_tools.RunContextWrapper."
_DICT_TYPE = "Annotate with dict[str, Any]: items of the input are dictionaries."
_TOOL_GUARDRAIL = (
    "Put agents_tools.policies.input_guardrail(check) or output_guardrail(check) around a tool."
)
_OWN_ERROR = "The guardrail of a tool raises an exception of its own. Catch that one."
_TRACING = "Remove it. To trace runs, call agents_tools.telemetry.instrument()."
_OPENAI = 'Name the model "openai/…" and set OPENAI_API_KEY, or configure an OpenAI model.'
_MCP = "Use agents_tools.mcp.MCPToolManager: await manager.add_server(name, command=...)."
_MCP_FILTER = "Use add_server(name, allow=[...], deny=[...]), with patterns of names."
_MCP_APPROVAL = "HostedMCPTool receives agents_tools.agents.MCPApprovalRequest."
_RETRY = "Use RunConfig(model_retries=..., retry_backoff=...)."
_HISTORY = "Change the conversation with handoff(agent, input_filter=...)."
_SESSION = "Use agents_tools.SQLiteSession, or the session of any agents_tools.RunStore."
_SERVER_STATE = "Pass session=, which keeps the conversation in your store."
_SHELL = "Use the tool `terminal` of agents_tools.get_default_tools(working_dir)."
_EDITOR = "Use the tool `file_editor` of agents_tools.get_default_tools(working_dir)."
_METADATA = "Return an agents_tools.ToolResult with metadata from the tool."
_ITEM = "A handoff is an agents_tools.ToolCallItem with its agents_tools.ToolCallOutputItem."
_HOSTED_ITEM = "Calls of hosted tools are agents_tools.ToolCallItem objects."
_SEARCH = "Use agents_tools.tool_search(tools)."
_RUN_DATA = "Exceptions of a run have the partial result as `run_result`."
_HANDLERS = "Catch the exception of the run; its `run_result` has the partial result."
_CODE = "Use agents_tools.code_mode(*tools): code of the model calls the tools."
_OUTPUT_DICT = "Return agents_tools.ToolOutputText, ToolOutputImage or ToolOutputFileContent."
_PROMPT = "Pass instructions=, text or a function of (context, agent)."
_SCHEMA = "Pass the type itself: Agent(output_type=...)."
_LIMIT = "Use RunConfig(max_parallel_tools=...)."
_UNKNOWN_TOOL = "Use RunConfig(unknown_tool=...)."
_ERROR_TEXT = "Use agents_tools.set_default_tool_error_function(function)."
_FAILURE = "Set failure_error_function=None, so that the error is raised."
_BODY = "Pass it in extra_body, with the name that the provider has for it."

_NAMES = {
    _AGENTS: (
        "Computer FunctionToolResult Handoff HandoffInputFilter InputGuardrailResult "
        "OutputGuardrailResult RunState StopAtTools ToolsToFinalOutputResult"
    ),
    "Use agents_tools.agents.Computer; its methods are sync or async.": "AsyncComputer",
    "Import it from agents_tools.tool.": "ToolOrigin",
    "Import it from agents_tools.content.": "RunItem",
    "Import Agent; it is the only class of agents.": "AgentBase",
    "Catch agents_tools.AgentsToolsError.": "AgentsException",
    "Catch agents_tools.ModelBehaviorError.": "ModelRefusalError",
    "Catch agents_tools.errors.ModelError.": "ModelTimeoutError",
    "Catch agents_tools.ToolCancelledError.": "MCPToolCancellationError",
    "Use agents_tools.Event.": "AgentToolStreamEvent StreamEvent",
    "Use agents_tools.RawResponseStreamEvent.": "RawResponsesStreamEvent",
    "Use agents_tools.models.openai_chat.OpenAIChatModel.": "OpenAIChatCompletionsModel",
    "Use agents_tools.models.openai_responses.OpenAIResponsesModel.": (
        "OpenAIResponsesModel OpenAIResponsesWSModel"
    ),
    "Run `agents-tools chat TARGET` in a terminal.": "run_demo_loop",
    "Tracing is off until agents_tools.telemetry.instrument() is called.": "set_tracing_disabled",
    'Use logging.getLogger("agents_tools").setLevel("DEBUG").': "enable_verbose_stdout_logging",
    _CODE: "ProgrammaticToolCallingTool ToolCaller",
    _CONTEXT_TYPE: "AgentHookContext",
    _DICT_TYPE: "InputItem TResponseInputItem",
    _EDITOR: (
        "ApplyPatchEditor ApplyPatchOperation ApplyPatchResult ApplyPatchTool "
        "ApplyPatchToolCustomDataContext ApplyPatchToolCustomDataExtractor apply_diff"
    ),
    _ERROR_TEXT: "ToolErrorFormatter ToolErrorFormatterArgs",
    _HANDLERS: (
        "OutputGuardrailBlockedMessageArgs OutputGuardrailBlockedMessageFormatter RunErrorHandler "
        "RunErrorHandlerInput RunErrorHandlerResult RunErrorHandlers"
    ),
    _HISTORY: (
        "default_handoff_history_mapper get_conversation_history_wrappers nest_handoff_history "
        "reset_conversation_history_wrappers set_conversation_history_wrappers"
    ),
    _HOSTED_ITEM: (
        "MCPApprovalRequestItem MCPApprovalResponseItem MCPListToolsItem ToolSearchCallItem "
        "ToolSearchOutputItem"
    ),
    _ITEM: "HandoffCallItem HandoffOutputItem",
    _LIMIT: "ToolExecutionConfig",
    _MCP: (
        "MCPServer MCPServerManager MCPServerSse MCPServerSseParams MCPServerStdio "
        "MCPServerStdioParams MCPServerStreamableHttp MCPServerStreamableHttpParams"
    ),
    _MCP_FILTER: (
        "ToolFilter ToolFilterCallable ToolFilterContext ToolFilterStatic create_static_tool_filter"
    ),
    _MCP_APPROVAL: ("MCPToolApprovalFunction MCPToolApprovalFunctionResult MCPToolApprovalRequest"),
    _METADATA: (
        "ComputerToolCustomDataContext ComputerToolCustomDataExtractor "
        "FunctionToolCustomDataContext FunctionToolCustomDataExtractor"
    ),
    _NO_TYPE: (
        "Button ComputerProvider Environment ImageGenerationToolConfig "
        "ReasoningItemIdPolicy TContext ToolNameCollisionPolicy "
        "ToolOriginType ToolsToFinalOutputFunction WebSearchToolImageSettings"
    ),
    _OPENAI: (
        "MultiProvider OpenAIAgentRegistrationConfig OpenAIProvider "
        "OpenAIResponsesWebSocketOptions ResponsesWebSocketSession responses_websocket_session "
        "set_default_openai_agent_registration set_default_openai_api set_default_openai_client "
        "set_default_openai_harness set_default_openai_key set_default_openai_responses_transport"
    ),
    _OUTPUT_DICT: "ToolOutputFileContentDict ToolOutputImageDict ToolOutputTextDict",
    _OWN_ERROR: "ToolInputGuardrailTripwireTriggered ToolOutputGuardrailTripwireTriggered",
    _PROMPT: "DynamicPromptFunction GenerateDynamicPromptData Prompt",
    _RETRY: (
        "ModelRetryAdvice ModelRetryAdviceRequest ModelRetryBackoffSettings "
        "ModelRetryNormalizedError ModelRetrySettings RetryDecision RetryPolicy RetryPolicyContext "
        "retry_policies"
    ),
    _RUN_DATA: "RunErrorData RunErrorDetails",
    _SCHEMA: "AgentOutputSchema AgentOutputSchemaBase",
    _SEARCH: "ToolSearchTool",
    _SESSION: (
        "CompactionItem OpenAIConversationsSession OpenAIResponsesCompactionArgs "
        "OpenAIResponsesCompactionAwareSession OpenAIResponsesCompactionSession SessionABC "
        "SessionSettings is_openai_responses_compaction_aware_session"
    ),
    _SHELL: (
        "CustomTool CustomToolCustomDataContext CustomToolCustomDataExtractor "
        "LocalShellCommandRequest LocalShellExecutor ShellActionRequest ShellCallData "
        "ShellCallOutcome ShellCommandOutput ShellCommandRequest ShellExecutor ShellResult "
        "ShellTool ShellToolContainerAutoEnvironment ShellToolContainerNetworkPolicy "
        "ShellToolContainerNetworkPolicyAllowlist ShellToolContainerNetworkPolicyDisabled "
        "ShellToolContainerNetworkPolicyDomainSecret ShellToolContainerReferenceEnvironment "
        "ShellToolContainerSkill "
        "ShellToolEnvironment ShellToolHostedEnvironment ShellToolInlineSkill "
        "ShellToolInlineSkillSource ShellToolLocalEnvironment ShellToolLocalSkill "
        "ShellToolSkillReference sandbox"
    ),
    "Use agents_tools.agents.ComputerTool with the computer itself.": (
        "dispose_resolved_computers resolve_computer"
    ),
    "Use agents_tools.Toolset(*tools).prefix(name).": "tool_namespace",
    "ToolContext has the call: tool_name, tool_call_id and path.": "AgentToolInvocation",
    _TOOL_GUARDRAIL: (
        "ToolGuardrailFunctionOutput ToolInputGuardrail ToolInputGuardrailData "
        "ToolInputGuardrailResult ToolOutputGuardrail ToolOutputGuardrailData "
        "ToolOutputGuardrailResult tool_input_guardrail tool_output_guardrail"
    ),
    _TRACING: (
        "AgentSpanData CustomSpanData FunctionSpanData GenerationSpanData GuardrailSpanData "
        "HandoffSpanData MCPListToolsSpanData ModelTracing ResponseSpanData Span SpanData "
        "SpanError SpeechGroupSpanData SpeechSpanData TaskSpanData Trace TracingProcessor "
        "TranscriptionSpanData TurnSpanData add_trace_processor agent_span custom_span "
        "flush_traces function_span gen_span_id gen_trace_id generation_span get_current_span "
        "get_current_trace guardrail_span handoff_span mcp_tools_span response_span "
        "set_trace_processors set_trace_provider set_tracing_export_api_key speech_group_span "
        "speech_span task_span trace transcription_span turn_span"
    ),
    _UNKNOWN_TOOL: "ToolNotFoundBehavior",
}

COUNTERPARTS = {name: remedy for remedy, names in _NAMES.items() for name in names.split()}
"""A remedy in one sentence for each name that programs for openai-agents import."""

_AGENT_TOOL = "An agent that runs as a tool sees only its own input."
_RUN_OPTIONS = {
    "auto_previous_response_id": _SERVER_STATE,
    "conversation_id": _SERVER_STATE,
    "error_handlers": _HANDLERS,
    "previous_response_id": _SERVER_STATE,
    "starting_agent": "Pass the agent as the first argument.",
}

OPTIONS: dict[str, dict[str, str]] = {
    "Agent": {"prompt": _PROMPT},
    "Agent.as_tool": {
        "conversation_id": _AGENT_TOOL,
        "hooks": "Use Agent(hooks=...), or hooks= of the outer run.",
        "include_input_schema": "The agent receives its `parameters` as JSON.",
        "input_builder": "The agent receives its `parameters` as JSON.",
        "needs_approval": "Write policies.needs_approval(agent.as_tool(...)).",
        "on_stream_max_pending_events": "The events wait without a limit.",
        "previous_response_id": _AGENT_TOOL,
        "session": _AGENT_TOOL,
    },
    "ModelSettings": {
        "context_management": _BODY,
        "extra_args": _BODY,
        "extra_query": _BODY,
        "frequency_penalty": _BODY,
        "include_usage": "The usage is always requested.",
        "metadata": _BODY,
        "presence_penalty": _BODY,
        "preserve_raw_usage": "ModelResponse.usage has the tokens.",
        "prompt_cache_options": _BODY,
        "prompt_cache_retention": _BODY,
        "reasoning": 'Use ModelSettings(reasoning_effort="low").',
        "response_include": _BODY,
        "retry": _RETRY,
        "store": "Responses are requested with store=False; pass it in extra_body to change that.",
        "top_logprobs": _BODY,
        "truncation": _BODY,
        "verbosity": _BODY,
    },
    "RunConfig": {
        "call_model_input_filter": "Use RunConfig(prepare_input=...).",
        "group_id": "Pass session=, whose id groups runs.",
        "handoff_history_mapper": _HISTORY,
        "handoff_input_filter": "Pass input_filter= to each handoff(agent, ...).",
        "input_guardrails": "Use Agent(input_guardrails=...).",
        "nest_handoff_history": _HISTORY,
        "output_guardrail_blocked_message": _HANDLERS,
        "output_guardrails": "Use Agent(output_guardrails=...).",
        "reasoning_item_id_policy": "Reasoning is sent back as the provider requires it.",
        "sandbox": _SHELL,
        "session_input_callback": "Use RunConfig(prepare_input=...).",
        "session_settings": "Use session.get_items(limit=...) as the input of a run.",
        "tool_error_formatter": _ERROR_TEXT,
        "tool_execution": _LIMIT,
        "tool_name_collision_policy": "Two tools with one name are always an error.",
        "tool_not_found_behavior": _UNKNOWN_TOOL,
        "trace_id": _TRACING,
        "trace_include_sensitive_data": _TRACING,
        "trace_metadata": _TRACING,
        "tracing": _TRACING,
        "tracing_disabled": "Tracing is off until agents_tools.telemetry.instrument() is called.",
        "workflow_name": _TRACING,
    },
    "RunState.approve": {"always_approve": "Use always=True."},
    "RunState.reject": {
        "always_reject": "A rejection applies to one call.",
        "rejection_message": "Use message=.",
    },
    "Runner.run": _RUN_OPTIONS,
    "Runner.run_streamed": _RUN_OPTIONS,
    "Runner.run_sync": _RUN_OPTIONS,
    "function_tool": {
        "allowed_callers": _CODE,
        "custom_data_extractor": _METADATA,
        "defer_loading": "Use agents_tools.Toolset(tool).defer().",
        "needs_approval": "Write @policies.needs_approval above @function_tool.",
        "output_json_schema": "The return annotation of the function is the schema.",
        "output_type": "The return annotation of the function is the type.",
        "timeout": "Write @policies.timeout(seconds) above @function_tool.",
        "timeout_behavior": _FAILURE,
        "timeout_error_function": (
            "Write @policies.timeout(seconds, error=text) above @function_tool."
        ),
        "tool_input_guardrails": "Write @policies.input_guardrail(check) above @function_tool.",
        "tool_output_guardrails": "Write @policies.output_guardrail(check) above @function_tool.",
    },
    "handoff": {"nest_handoff_history": _HISTORY},
}
"""A remedy in one sentence for each option of openai-agents, by the function or class."""

_FIELDS = "Read the fields of the item itself, such as `name`; item.to_dict() is its JSON."
_ITEM_ATTRIBUTES = {"raw_item": _FIELDS, "to_input_item": "Use item.to_dict()."}
_TOOL_RESULTS = "The guardrails of a tool are policies. Read the output of the call."
_RESULT_ATTRIBUTES = {
    "current_turn": "Use len(result.raw_responses).",
    "last_response_id": "Use result.raw_responses[-1].response_id.",
    "tool_input_guardrail_results": _TOOL_RESULTS,
    "tool_output_guardrail_results": _TOOL_RESULTS,
    "trace": _TRACING,
}

ATTRIBUTES: dict[str, dict[str, str]] = {
    "MCPToolManager": {
        "call_tool": "Call a tool of get_tools(): await tool.invoke(...).",
        "invalidate_tools_cache": "The list of tools is read again when it changes.",
        "list_tools": "Use get_tools().",
    },
    "MessageOutputItem": _ITEM_ATTRIBUTES,
    "ModelResponse": {
        "output": "Use response.items.",
        "raw_usage": "Use response.usage.",
        "to_input_items": "Use [item.to_dict() for item in response.items].",
    },
    "ReasoningItem": _ITEM_ATTRIBUTES,
    "RunResult": _RESULT_ATTRIBUTES,
    "RunResultStreaming": _RESULT_ATTRIBUTES,
    "RunState": {
        "get_interruptions": "Use state.interruptions.",
        "to_string": "Use state.to_json(), which returns text.",
    },
    "ToolApprovalItem": {**_ITEM_ATTRIBUTES, "tool_name": "Use item.name."},
    "ToolCallItem": {**_ITEM_ATTRIBUTES, "tool_name": "Use item.name."},
    "ToolCallOutputItem": {
        **_ITEM_ATTRIBUTES,
        "custom_data": _METADATA,
        "source_agent": "Use item.agent, the name of the agent that made the call.",
        "target_agent": "Use result.last_agent, or the event `agent_updated_stream_event`.",
    },
}
"""A remedy in one sentence for each attribute of openai-agents, by the class of the object."""
