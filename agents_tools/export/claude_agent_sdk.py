"""Tools in the Claude Agent SDK, its tools as ours, and Claude with its options as a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from agents_tools.export._missing import missing

try:
    from claude_agent_sdk import ClaudeAgentOptions, SdkMcpTool, create_sdk_mcp_server
except ImportError as error:
    raise missing("agents_tools.export.claude_agent_sdk", "claude-agent-sdk", error) from error

from agents_tools.export._claude_agent_sdk_agents import run_of
from agents_tools.export._claude_agent_sdk_calls import SERVERS, Calls, tool_there
from agents_tools.export._claude_agent_sdk_tools import tool_here
from agents_tools.export._foreign import foreign_tool
from agents_tools.export._incoming import imported
from agents_tools.export._outgoing import Tools, exported
from agents_tools.tool import DEFAULT, FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from claude_agent_sdk import McpSdkServerConfig, Transport

    from agents_tools.base_tool import BaseTool
    from agents_tools.events import Event

__all__ = ["as_tool", "from_claude_agent_sdk", "sdk_mcp_server", "to_claude_agent_sdk"]


@overload
def to_claude_agent_sdk(
    tools: FunctionTool[..., Any] | BaseTool, *, context: Any = ...
) -> SdkMcpTool[Any]: ...
@overload
def to_claude_agent_sdk(tools: Tools, *, context: Any = ...) -> list[SdkMcpTool[Any]]: ...
def to_claude_agent_sdk(tools: Any, *, context: Any = None) -> Any:
    """Make tools of the Claude Agent SDK, for `create_sdk_mcp_server(name, tools=[...])`.

    The schema and the annotations are handed over as they are. Text and images reach the model as
    they are, other blocks as a description. A failure is an `is_error` result with our text. In a
    server of the SDK's making, the SDK validates arguments before the tool does, and tells neither
    where they are wrong nor which call it is: where all tools of a server are yours, take
    `sdk_mcp_server`.

    Args:
        tools: A tool, or several of them.
        context: The application's object, which tools see as `ctx.context`.

    Returns:
        One tool for one, a list for several.

    Raises:
        UserError: It is no tool, or two have one name.
    """

    def make(tool: FunctionTool[..., Any]) -> Any:
        return tool_there(tool, context)

    return exported(tools, make, "to_claude_agent_sdk")


def sdk_mcp_server(
    tools: Any, *, name: str = "tools", version: str = "1.0.0", context: Any = None
) -> McpSdkServerConfig:
    """Make an in-process server of tools, for `ClaudeAgentOptions(mcp_servers={"tools": …})`.

    It is the server that `create_sdk_mcp_server` makes, with calls answered here: arguments are
    validated by the tool, calls have the ids that the model gave them, and progress is reported to
    clients that want it (the program behind the SDK does not yet).

    Args:
        tools: A tool, or several of them.
        name: What the server is called.
        version: Its version.
        context: The application's object, which tools see as `ctx.context`.

    Raises:
        UserError: It is no tool, or two have one name.
    """
    found = exported(tools, lambda tool: tool, "sdk_mcp_server")
    given = found if isinstance(found, list) else [found]
    config = create_sdk_mcp_server(name, version, [tool_there(tool, context) for tool in given])
    server = config["instance"]
    Calls({tool.name: tool for tool in given}, context).answer_in(server)
    SERVERS[server] = frozenset(tool.name for tool in given)
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
    """Make tools of ours of what the `@tool` of the Claude Agent SDK gives.

    Args:
        tool: A `SdkMcpTool`, or a list of them.
        failure_error_function: What the model is told when a call fails; `None` raises.

    Raises:
        UserError: It is no such tool, or its schema cannot be enforced.
    """

    def make(one: Any) -> FunctionTool[..., Any]:
        return tool_here(one, failure_error_function)

    return imported(tool, SdkMcpTool, make, "from_claude_agent_sdk")


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
    """Make a tool of the agent that the Claude Agent SDK runs. It forgets earlier calls.

    Args:
        options: What it runs with: its prompt, its tools, what it may do.
        name: What the agent is called.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the `ResultMessage`; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How often its model is asked at most; that of the options if not given.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.
        transport: Makes what a call talks to instead of the program on this machine.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form.
    """
    return foreign_tool(
        name,
        run_of(options, max_turns, name=name, transport=transport),
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
