"""Tools in agents of Google's ADK, its tools as ours, and its agents as tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from agents_tools.export._missing import missing

try:
    from google.adk.tools import BaseTool
except ImportError as error:
    raise missing("agents_tools.export.google_adk", "google-adk", error) from error

from agents_tools.export._foreign import foreign_tool
from agents_tools.export._google_adk_agents import run_of
from agents_tools.export._google_adk_calls import EVENT, Ours
from agents_tools.export._google_adk_tools import tool_here
from agents_tools.export._incoming import imported
from agents_tools.export._outgoing import Tools, exported
from agents_tools.tool import DEFAULT, FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.adk.agents import BaseAgent

    from agents_tools.events import Event

__all__ = ["EVENT", "as_tool", "from_google_adk", "to_google_adk"]


@overload
def to_google_adk(tools: FunctionTool[..., Any], *, context: Any = None) -> BaseTool: ...
@overload
def to_google_adk(tools: Tools, *, context: Any = None) -> list[BaseTool]: ...
def to_google_adk(tools: Any, *, context: Any = None) -> BaseTool | list[BaseTool]:
    """Make tools for agents of ADK.

    What a tool says while it works appears among the events of the runner, as partial events that
    no session keeps: `event.custom_metadata["agents_tools_event"]` is the event as JSON. Of a call
    that says nothing only ADK's own events tell. The model is given `{"result": text}`, or
    `{"error": text}` for a failed call. A call that needs a person's approval asks for ADK's
    confirmation.

    Args:
        tools: One tool, or several.
        context: The application's object, for tools that ask for it; by default that of the run
            around, or else ADK's `ToolContext` of the call.

    Returns:
        One tool of ADK for one tool, a list for several.

    Raises:
        UserError: It is no tool, or two have the same name.
    """
    return exported(tools, lambda tool: Ours(tool, context), "to_google_adk")


def from_google_adk(tool: Any, *, state: Mapping[str, Any] | None = None) -> Any:
    """Make our tools of tools of ADK.

    Each call is made by an agent of ADK in a session of its own, so that the tool finds there what
    it expects. Progress of generators is said in our events. A result that is an `error` is a
    failure. A tool that requires confirmation needs approval. Arguments are validated here, before
    it is called.

    Args:
        tool: A `BaseTool`, such as `FunctionTool(function)`; or a list of them.
        state: What the session of each call starts with.

    Returns:
        One tool for one, a list for a list.

    Raises:
        UserError: It is no such tool, or its schema cannot be enforced.
    """
    begin = dict(state or {})
    return imported(tool, BaseTool, lambda one: tool_here(one, begin), "from_google_adk")


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
    """Make a tool of an agent of ADK. Each call has a session of its own.

    Args:
        agent: The agent.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it; the agent's own description by default.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the last event; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How often models are asked at most; the framework's default if not given.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.
        state: What the session of each call starts with.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form.
    """
    return foreign_tool(
        agent.name,
        run_of(agent, max_turns, state),
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
