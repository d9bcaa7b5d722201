"""Tools in agents of Agno, its tools as ours, and its agents as tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, overload

from agents_tools.export._missing import missing

try:
    from agno.tools import Function, Toolkit
except ImportError as error:
    raise missing("agents_tools.export.agno", "agno", error) from error

from agents_tools.export._agno_agents import run_of
from agents_tools.export._agno_calls import ToolEvent, function_of
from agents_tools.export._agno_tools import tool_here
from agents_tools.export._foreign import foreign_tool
from agents_tools.export._incoming import imported
from agents_tools.export._outgoing import Tools, exported
from agents_tools.tool import DEFAULT, FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.events import Event

__all__ = ["ToolEvent", "as_tool", "from_agno", "to_agno"]


@overload
def to_agno(tools: FunctionTool[..., Any], *, context: Any = None) -> Function: ...
@overload
def to_agno(tools: Tools, *, context: Any = None) -> list[Function]: ...
def to_agno(tools: Any, *, context: Any = None) -> Function | list[Function]:
    """Make tools for agents of Agno, for `agent.run` as well as for `agent.arun`.

    What a tool says while it works appears among the events of the agent as a `ToolEvent`, and
    never in the result. The result is text: what is no text is described. A failed call is one for
    Agno too. Cancelling the run cancels the calls that are going on. A tool is given the arguments
    as the model wrote them: Agno on its own makes `None` of the text `"none"`. Hooks around a call
    get what they get of any generator: its events and its result, once they read it.

    A call that needs a person's approval is denied, unless Agno has asked somebody: set
    `requires_confirmation` of the function.

    Args:
        tools: One tool, or several.
        context: The application's object, for tools that ask for it; by default that of the run
            around, or else Agno's `RunContext`.

    Returns:
        One function of Agno for one tool, a list for several.

    Raises:
        UserError: It is no tool, or two have the same name.
    """
    return exported(tools, lambda tool: function_of(tool, context), "to_agno")


def from_agno(tool: Any, *, run_context: Any = None) -> Any:
    """Make our tools of tools of Agno.

    What one yields is said in our events, custom events are, and only the rest is its result. A
    function that `requires_confirmation` needs approval. Arguments are validated here, before it
    is called.

    Args:
        tool: A `Function`, such as what `@tool` gives, or a `Toolkit`; or a list of them.
        run_context: What tools find as their `run_context`; an empty one by default.

    Returns:
        One tool for one, a list for a toolkit or a list.

    Raises:
        UserError: It is no such tool, a person is to run it, or its schema cannot be enforced.
    """
    if isinstance(tool, Toolkit):
        tool = list(tool.get_async_functions().values())
    elif isinstance(tool, (list, tuple)):
        return [from_agno(one, run_context=run_context) for one in cast("list[Any]", tool)]
    return imported(tool, Function, lambda one: tool_here(one, run_context), "from_agno")


def as_tool(
    agent: Any,
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
    session_id: str | None = None,
) -> FunctionTool[..., Any]:
    """Make a tool of an agent of Agno, or of a team.

    Args:
        agent: The agent, or the team.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it; the agent's own description by default.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the framework's `RunOutput`; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How often its model is asked at most; without limit if not given.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.
        session_id: The session of all calls; one of its own for each call by default.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form.
    """
    return foreign_tool(
        agent.name or "agent",
        run_of(agent, max_turns, session_id),
        tool_name=tool_name,
        tool_description=tool_description or agent.description,
        streaming=streaming,
        enable_bracketing=enable_bracketing,
        custom_output_extractor=custom_output_extractor,
        is_enabled=is_enabled,
        parameters=parameters,
        on_stream=on_stream,
        failure_error_function=failure_error_function,
    )
