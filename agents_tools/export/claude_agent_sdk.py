"""Adapter for the Claude Agent SDK: function tools, the SDK's tools, and its agent as a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from agents_tools.export._optional_import import missing_extra

try:
    from claude_agent_sdk import ClaudeAgentOptions, SdkMcpTool, create_sdk_mcp_server
except ImportError as error:
    raise missing_extra(
        "agents_tools.export.claude_agent_sdk", "claude-agent-sdk", error
    ) from error

from agents_tools.export._agent_adapter import make_agent_tool
from agents_tools.export._claude_agent_sdk_agents import agent_runner
from agents_tools.export._claude_agent_sdk_export import SERVERS, ClaudeToolCalls, to_foreign_tool
from agents_tools.export._claude_agent_sdk_import import from_foreign_tool
from agents_tools.export._export_tool import Tools, export_tools
from agents_tools.export._import_tool import import_tools
from agents_tools.tool.failure import DEFAULT
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from claude_agent_sdk import McpSdkServerConfig, Transport

    from agents_tools.classes.base_tool import BaseTool
    from agents_tools.events.base import Event
    from agents_tools.tool.tool import FunctionTool

__all__ = ["as_tool", "from_claude_agent_sdk", "sdk_mcp_server", "to_claude_agent_sdk"]


@overload
def to_claude_agent_sdk(
    tools: FunctionTool[..., Any] | BaseTool, *, context: Any = ...
) -> SdkMcpTool[Any]: ...
@overload
def to_claude_agent_sdk(tools: Tools, *, context: Any = ...) -> list[SdkMcpTool[Any]]: ...
def to_claude_agent_sdk(tools: Any, *, context: Any = None) -> Any:
    """Convert tools for the Claude Agent SDK, for `create_sdk_mcp_server(name, tools=[...])`.

    The schema and the annotations are passed unchanged. Text and images are sent to the model
    unchanged, other blocks as a description. A failure is an `is_error` result with the tool's
    error message. In a server created by the SDK, the SDK validates arguments before the tool
    does, without reporting the position of an error, and does not pass the id of the call. If all
    tools of a server are function tools, use `sdk_mcp_server` instead.

    Args:
        tools: One tool, or several.
        context: The application's object, which tools get as `ctx.context`.

    Returns:
        One tool for one tool, a list for several.

    Raises:
        UserError: A value is not a tool, or two tools have the same name.
    """

    def make(tool: FunctionTool[..., Any]) -> Any:
        return to_foreign_tool(tool, context)

    return export_tools(tools, make, "to_claude_agent_sdk")


def sdk_mcp_server(
    tools: Any, *, name: str = "tools", version: str = "1.0.0", context: Any = None
) -> McpSdkServerConfig:
    """Create an in-process server of tools, for `ClaudeAgentOptions(mcp_servers={"tools": …})`.

    The server comes from `create_sdk_mcp_server`, but calls are handled by this library: arguments
    are validated by the tool, calls have the ids that the model gave them, and progress is sent to
    clients that request it (the program behind the SDK does not request it yet).

    Args:
        tools: One tool, or several.
        name: The name of the server.
        version: The version of the server.
        context: The application's object, which tools get as `ctx.context`.

    Raises:
        UserError: A value is not a tool, or two tools have the same name.
    """
    exported = export_tools(tools, lambda tool: tool, "sdk_mcp_server")
    function_tools = exported if isinstance(exported, list) else [exported]
    sdk_tools = [to_foreign_tool(tool, context) for tool in function_tools]
    config = create_sdk_mcp_server(name, version, sdk_tools)
    server = config["instance"]
    ClaudeToolCalls({tool.name: tool for tool in function_tools}, context).install(server)
    SERVERS[server] = frozenset(tool.name for tool in function_tools)
    return config


@overload
def from_claude_agent_sdk(
    tool: list[SdkMcpTool[Any]], *, failure_error_function: Any = ...
) -> list[FunctionTool[..., Any]]: ...
@overload
def from_claude_agent_sdk(
    tool: SdkMcpTool[Any], *, failure_error_function: Any = ...
) -> FunctionTool[..., Any]: ...
def from_claude_agent_sdk(tool: Any, *, failure_error_function: Any = DEFAULT) -> Any:
    """Convert tools of the Claude Agent SDK to function tools.

    Args:
        tool: A `SdkMcpTool` as created by the SDK's `@tool`, or a list of them.
        failure_error_function: Creates the error message for the model; `None` raises the error.

    Raises:
        UserError: The value is not a tool of the SDK, or its schema cannot be enforced.
    """

    def make(item: Any) -> FunctionTool[..., Any]:
        return from_foreign_tool(item, failure_error_function)

    return import_tools(tool, SdkMcpTool, make, "from_claude_agent_sdk")


def as_tool(
    options: ClaudeAgentOptions,
    *,
    name: str = "Claude",
    tool_name: str | None = None,
    tool_description: str | None = None,
    streaming: bool = False,
    enable_bracketing: bool = True,
    custom_output_extractor: Callable[[Any], Any] | None = None,
    is_enabled: Any = True,
    max_turns: int | None = None,
    parameters: Any = None,
    on_stream: Callable[[Event], Any] | None = None,
    failure_error_function: Any = DEFAULT,
    transport: Callable[[], Transport] | None = None,
) -> FunctionTool[..., Any]:
    """Create a tool that runs the agent of the Claude Agent SDK. It forgets earlier calls.

    Args:
        options: The options of the agent: its prompt, tools and permissions.
        name: The name of the agent.
        tool_name: The name of the tool; derived from the agent's name by default.
        tool_description: The description for models.
        streaming: Whether the events of the agent appear in the caller's stream.
        enable_bracketing: Whether the start and end events of a call appear there.
        custom_output_extractor: Creates the output from the `ResultMessage`; sync or async.
        is_enabled: Whether agents offer the tool.
        max_turns: The maximum number of model requests; that of the options by default.
        parameters: The type of its input; a single string `input` by default.
        on_stream: Called with each event of the agent; sync or async.
        failure_error_function: Creates the error message for the model; `None` raises the error.
        transport: Creates the transport of a call; by default the program on this machine.

    Raises:
        UserError: The name is invalid, or `parameters` has no JSON Schema.
    """
    return make_agent_tool(
        name,
        agent_runner(options, max_turns, name=name, transport=transport),
        tool_name=tool_name,
        tool_description=tool_description,
        streaming=streaming,
        enable_bracketing=enable_bracketing,
        custom_output_extractor=custom_output_extractor,
        is_enabled=is_enabled,
        parameters=parameters,
        on_stream=on_stream,
        failure_error_function=failure_error_function,
    )
