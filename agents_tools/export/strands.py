"""Adapter for Strands: function tools in its agents, its tools, and its agents as tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, overload

from agents_tools._package import missing_extra

try:
    from strands.types.tools import AgentTool
except ImportError as error:
    raise missing_extra("agents_tools.export.strands", "strands", error) from error

from agents_tools.errors import UserValueError
from agents_tools.export._agent_adapter import AgentToolOptions, make_agent_tool
from agents_tools.export._export_tool import Tools, export_tools
from agents_tools.export._import_tool import import_tools
from agents_tools.export._strands_agents import agent_runner
from agents_tools.export._strands_export import StrandsFunctionTool
from agents_tools.export._strands_import import from_foreign_tool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strands import Agent

    from agents_tools.tool.tool import FunctionTool


__all__ = ["as_tool", "from_strands", "to_strands"]


@overload
def to_strands(tools: FunctionTool[..., Any], *, context: Any = None) -> AgentTool: ...
@overload
def to_strands(tools: Tools, *, context: Any = None) -> list[AgentTool]: ...
def to_strands(tools: Any, *, context: Any = None) -> AgentTool | list[AgentTool]:
    """Convert tools for agents of Strands.

    Events of a tool appear in the agent's stream as `tool_stream_event`, each as JSON. A failed
    call is a result with the status `error`. A call that needs approval interrupts the agent; it
    runs if the response to the interrupt is `True` or `"yes"`. `agent.cancel()` cancels the
    running calls.

    Args:
        tools: One tool, or several.
        context: The application's object, for tools that ask for it. Defaults to the object of
            the enclosing run, or else to the agent's `invocation_state`.

    Returns:
        One tool of Strands for one tool, a list for several.

    Raises:
        UserError: A value is not a tool, or two tools have the same name.
    """
    return export_tools(tools, lambda tool: StrandsFunctionTool(tool, context), "to_strands")


def from_strands(tool: object, *, invocation_state: Mapping[str, Any] | None = None) -> Any:
    """Convert tools of Strands to function tools.

    Items that a tool yields become events of the call. A result with the status `error` is a
    failure. Arguments are validated before the tool is called.

    Args:
        tool: An `AgentTool`, as created by `@tool` or by the MCP client of Strands, or a list of
            them.
        invocation_state: The state that tools get from the calling agent; for tools with
            `context=True` it needs an `agent`.

    Returns:
        One function tool for one tool, a list for a list.

    Raises:
        UserError: The value is not a tool of Strands, or its schema cannot be enforced.
    """
    state = dict(invocation_state or {})
    return import_tools(
        tool, AgentTool, lambda item: from_foreign_tool(item, state), "from_strands"
    )


def as_tool(
    agent: Agent,
    *,
    max_turns: int | None = None,
    preserve_context: bool = False,
    invocation_state: Mapping[str, Any] | None = None,
    **options: Unpack[AgentToolOptions[Any]],
) -> FunctionTool[..., Any]:
    """Create a tool that runs an agent of Strands. Its calls run one after the other.

    Args:
        agent: The agent.
        max_turns: The maximum number of model requests; unlimited by default.
        preserve_context: Whether the agent remembers earlier calls. Otherwise each call starts
            with the messages that the agent has when the tool is created.
        invocation_state: The state that the agent's own tools get.
        **options: See `agents_tools.export.AgentToolOptions`.

    Raises:
        UserError: An option is unknown or invalid, `parameters` has no JSON Schema, or the agent
            has a session manager and `preserve_context` is false.
    """
    if not preserve_context and getattr(agent, "_session_manager", None) is not None:
        raise UserValueError(
            f"Agent {agent.name!r} cannot forget earlier calls: its session manager stores the "
            "conversation. Use as_tool(agent, preserve_context=True)."
        )
    return make_agent_tool(
        agent.name,
        agent_runner(
            agent, max_turns, preserve_context=preserve_context, invocation_state=invocation_state
        ),
        as_tool,
        options,
        description=agent.description,
    )
