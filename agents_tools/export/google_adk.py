"""Adapter for Google's ADK: function tools in its agents, its tools, and its agents as tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, overload

from agents_tools._package import missing_extra

try:
    from google.adk.tools import BaseTool
except ImportError as error:
    raise missing_extra("agents_tools.export.google_adk", "google-adk", error) from error

from agents_tools.export._agent_adapter import AgentToolOptions, make_agent_tool
from agents_tools.export._export_tool import Tools, export_tools
from agents_tools.export._google_adk_agents import agent_runner
from agents_tools.export._google_adk_export import EVENT, AdkFunctionTool
from agents_tools.export._google_adk_import import from_foreign_tool
from agents_tools.export._import_tool import import_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.adk.agents import BaseAgent

    from agents_tools.tool.tool import FunctionTool


__all__ = ["EVENT", "as_tool", "from_google_adk", "to_google_adk"]


@overload
def to_google_adk(tools: FunctionTool[..., Any], *, context: Any = None) -> BaseTool: ...
@overload
def to_google_adk(tools: Tools, *, context: Any = None) -> list[BaseTool]: ...
def to_google_adk(tools: Any, *, context: Any = None) -> BaseTool | list[BaseTool]:
    """Convert tools for agents of ADK.

    Events of a tool appear among the events of the runner, as partial events that are not stored
    in the session: `event.custom_metadata["agents_tools_event"]` is the event as JSON. For a call
    without events of its own, only ADK's events are emitted. The model gets `{"result": text}`, or
    `{"error": text}` for a failed call. A call that needs approval requests ADK's confirmation.

    Args:
        tools: One tool, or several.
        context: The application's object, for tools that ask for it. Defaults to the object of
            the enclosing run, or else to ADK's `ToolContext` of the call.

    Returns:
        One tool of ADK for one tool, a list for several.

    Raises:
        UserError: A value is not a tool, or two tools have the same name.
    """
    return export_tools(tools, lambda tool: AdkFunctionTool(tool, context), "to_google_adk")


def from_google_adk(tool: object, *, state: Mapping[str, Any] | None = None) -> Any:
    """Convert tools of ADK to function tools.

    Each call is made by an agent of ADK in a separate session, so that the tool gets the context
    that it expects. Progress of generators becomes events of the call. A result with only the key
    `error` is a failure. A tool that requires confirmation needs approval. Arguments are validated
    before the tool is called.

    Args:
        tool: A `BaseTool`, such as `FunctionTool(function)`, or a list of them.
        state: The initial state of the session of each call.

    Returns:
        One function tool for one tool, a list for a list.

    Raises:
        UserError: The value is not a tool of ADK, or its schema cannot be enforced.
    """
    initial_state = dict(state or {})
    return import_tools(
        tool, BaseTool, lambda item: from_foreign_tool(item, initial_state), "from_google_adk"
    )


def as_tool(
    agent: BaseAgent,
    *,
    max_turns: int | None = None,
    state: Mapping[str, Any] | None = None,
    **options: Unpack[AgentToolOptions[Any]],
) -> FunctionTool[..., Any]:
    """Create a tool that runs an agent of ADK. Each call has a separate session.

    Args:
        agent: The agent.
        max_turns: The maximum number of model requests; the framework's default if not given.
        state: The initial state of the session of each call.
        **options: See `agents_tools.export.AgentToolOptions`. A `custom_output_extractor` receives
            the last event.

    Raises:
        UserError: An option is unknown or invalid, or `parameters` has no JSON Schema.
    """
    return make_agent_tool(
        agent.name,
        agent_runner(agent, max_turns, state),
        as_tool,
        options,
        description=agent.description,
    )
