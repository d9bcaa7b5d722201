"""Adapter for Google's ADK: function tools in its agents, its tools, and its agents as tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from agents_tools.export._optional_import import missing_extra

try:
    from google.adk.tools import BaseTool
except ImportError as error:
    raise missing_extra("agents_tools.export.google_adk", "google-adk", error) from error

from agents_tools.export._agent_adapter import make_agent_tool
from agents_tools.export._export_tool import Tools, export_tools
from agents_tools.export._google_adk_agents import agent_runner
from agents_tools.export._google_adk_export import EVENT, AdkFunctionTool
from agents_tools.export._google_adk_import import from_foreign_tool
from agents_tools.export._import_tool import import_tools
from agents_tools.tool.failure import DEFAULT
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.adk.agents import BaseAgent

    from agents_tools.events.base import Event
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
    state: Mapping[str, Any] | None = None,
) -> FunctionTool[..., Any]:
    """Create a tool that runs an agent of ADK. Each call has a separate session.

    Args:
        agent: The agent.
        tool_name: The name of the tool; derived from the agent's name by default.
        tool_description: The description for models; the agent's description by default.
        streaming: Whether the events of the agent appear in the caller's stream.
        enable_bracketing: Whether the start and end events of a call appear there.
        custom_output_extractor: Creates the output from the last event; sync or async.
        is_enabled: Whether agents offer the tool.
        max_turns: The maximum number of model requests; the framework's default if not given.
        parameters: The type of its input; a single string `input` by default.
        on_stream: Called with each event of the agent; sync or async.
        failure_error_function: Creates the error message for the model; `None` raises the error.
        state: The initial state of the session of each call.

    Raises:
        UserError: The name is invalid, or `parameters` has no JSON Schema.
    """
    return make_agent_tool(
        agent.name,
        agent_runner(agent, max_turns, state),
        tool_name=tool_name,
        tool_description=tool_description or agent.description or None,
        streaming=streaming,
        enable_bracketing=enable_bracketing,
        custom_output_extractor=custom_output_extractor,
        is_enabled=is_enabled,
        parameters=parameters,
        on_stream=on_stream,
        failure_error_function=failure_error_function,
    )
