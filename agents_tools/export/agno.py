"""Adapter for Agno: function tools in its agents, its tools as function tools, agents as tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from agents_tools._package import missing_extra

try:
    from agno.tools import Function, Toolkit
except ImportError as error:
    raise missing_extra("agents_tools.export.agno", "agno", error) from error

from agents_tools.export._agent_adapter import AgentToolOptions, make_agent_tool
from agents_tools.export._agno_agents import agent_runner
from agents_tools.export._agno_export import AgnoToolEvent, to_foreign_tool
from agents_tools.export._agno_import import from_foreign_tool
from agents_tools.export._export_tool import Tools, export_tools
from agents_tools.export._import_tool import import_tools

if TYPE_CHECKING:
    from agents_tools.tool.tool import FunctionTool

__all__ = ["AgnoToolEvent", "as_tool", "from_agno", "to_agno"]


@overload
def to_agno(tools: FunctionTool[..., Any], *, context: Any = None) -> Function: ...
@overload
def to_agno(tools: Tools, *, context: Any = None) -> list[Function]: ...
def to_agno(tools: Any, *, context: Any = None) -> Function | list[Function]:
    """Convert tools for agents of Agno, for `agent.run` as well as for `agent.arun`.

    Events of a tool appear among the events of the agent as `AgnoToolEvent`, and never in the
    result. The result is text; images, audio and files are described. A failed call is a failure
    for Agno, too. Cancelling the run cancels its running calls. A tool gets the arguments as the
    model wrote them (Agno itself converts the text `"none"` to `None`). Hooks get a call as they
    get any generator: they read its events and its result from it.

    A call that needs approval is denied unless Agno has asked for a confirmation: set
    `requires_confirmation` of the function.

    Args:
        tools: One tool, or several.
        context: The application's object, for tools that ask for it. Defaults to the object of
            the enclosing run, or else to Agno's `RunContext`.

    Returns:
        One function of Agno for one tool, a list for several.

    Raises:
        UserError: A value is not a tool, or two tools have the same name.
    """
    return export_tools(tools, lambda tool: to_foreign_tool(tool, context), "to_agno")


def from_agno(tool: object, *, run_context: object = None) -> Any:
    """Convert tools of Agno to function tools.

    Items and custom events that a tool yields become events of the call; the text of the items is
    its result. A function with `requires_confirmation` needs approval. Arguments are validated
    before the tool is called.

    Args:
        tool: A `Function` as created by `@tool`, a `Toolkit`, or a list of them.
        run_context: The `run_context` of the tools; an empty one by default.

    Returns:
        One function tool for one tool, a list for a toolkit or a list.

    Raises:
        UserError: The value is not a tool of Agno, the tool needs a person during the call, or its
            schema cannot be enforced.
    """
    if isinstance(tool, Toolkit):
        tool = list(tool.get_async_functions().values())
    elif isinstance(tool, (list, tuple)):
        return [from_agno(item, run_context=run_context) for item in cast("list[Any]", tool)]
    return import_tools(
        tool, Function, lambda item: from_foreign_tool(item, run_context), "from_agno"
    )


def as_tool(
    agent: Any,
    *,
    max_turns: int | None = None,
    session_id: str | None = None,
    **options: Unpack[AgentToolOptions[Any]],
) -> FunctionTool[..., Any]:
    """Create a tool that runs an agent or a team of Agno.

    Args:
        agent: The agent, or the team.
        max_turns: The maximum number of model requests; unlimited by default.
        session_id: The session of all calls; by default each call has a new session.
        **options: See `agents_tools.export.AgentToolOptions`. A `custom_output_extractor` receives
            the framework's `RunOutput`.

    Raises:
        UserError: An option is unknown or invalid, or `parameters` has no JSON Schema.
    """
    return make_agent_tool(
        agent.name or "agent",
        agent_runner(agent, max_turns, session_id),
        as_tool,
        options,
        description=agent.description,
    )
