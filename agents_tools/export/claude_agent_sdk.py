"""Adapter for the Claude Agent SDK: function tools, the SDK's tools, and its agent as a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, overload

from agents_tools._package import missing_extra

try:
    from claude_agent_sdk import ClaudeAgentOptions, SdkMcpTool, create_sdk_mcp_server
except ImportError as error:
    raise missing_extra(
        "agents_tools.export.claude_agent_sdk", "claude-agent-sdk", error
    ) from error

from agents_tools.export._agent_adapter import AgentToolOptions, make_agent_tool
from agents_tools.export._claude_agent_sdk_agents import agent_runner
from agents_tools.export._claude_agent_sdk_export import SERVERS, ClaudeToolCalls, to_foreign_tool
from agents_tools.export._claude_agent_sdk_import import from_foreign_tool
from agents_tools.export._export_tool import Tools, export_tools
from agents_tools.export._import_tool import import_tools
from agents_tools.tool.failure import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable

    from claude_agent_sdk import McpSdkServerConfig, ResultMessage, Transport

    from agents_tools.classes.base_tool import BaseTool
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
    max_turns: int | None = None,
    transport: Callable[[], Transport] | None = None,
    **tool_options: Unpack[AgentToolOptions[ResultMessage]],
) -> FunctionTool[..., Any]:
    """Create a tool that runs the agent of the Claude Agent SDK. It forgets earlier calls.

    Args:
        options: The options of the agent: its prompt, tools and permissions.
        name: The name of the agent.
        max_turns: The maximum number of model requests; that of the options by default.
        transport: Creates the transport of a call; by default the program on this machine.
        **tool_options: See `agents_tools.export.AgentToolOptions`. A `custom_output_extractor`
            receives the `ResultMessage`.

    Raises:
        UserError: An option is unknown or invalid, or `parameters` has no JSON Schema.
    """
    return make_agent_tool(
        name,
        agent_runner(options, max_turns, name=name, transport=transport),
        as_tool,
        tool_options,
    )
