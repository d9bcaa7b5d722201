"""Tools in agents of Strands, its tools as ours, and its agents as tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from agents_tools.export._missing import missing

try:
    from strands.types.tools import AgentTool
except ImportError as error:
    raise missing("agents_tools.export.strands", "strands", error) from error

from agents_tools.errors import UserValueError
from agents_tools.export._foreign import foreign_tool
from agents_tools.export._incoming import imported
from agents_tools.export._outgoing import Tools, exported
from agents_tools.export._strands_agents import run_of
from agents_tools.export._strands_calls import Ours
from agents_tools.export._strands_tools import tool_here
from agents_tools.tool import DEFAULT, FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from strands import Agent

    from agents_tools.events import Event

__all__ = ["as_tool", "from_strands", "to_strands"]


@overload
def to_strands(tools: FunctionTool[..., Any], *, context: Any = None) -> AgentTool: ...
@overload
def to_strands(tools: Tools, *, context: Any = None) -> list[AgentTool]: ...
def to_strands(tools: Any, *, context: Any = None) -> AgentTool | list[AgentTool]:
    """Make tools for agents of Strands.

    What a tool says while it works appears in the agent's stream as `tool_stream_event`, each
    event as JSON. A failed call is a result with the status `error`. A call that needs a person's
    approval interrupts the agent; it runs if the response to the interrupt is `True` or `"yes"`.
    `agent.cancel()` cancels the calls that are going on.

    Args:
        tools: One tool, or several.
        context: The application's object, for tools that ask for it; by default that of the run
            around, or else the agent's `invocation_state`.

    Returns:
        One tool of Strands for one tool, a list for several.

    Raises:
        UserError: It is no tool, or two have the same name.
    """
    return exported(tools, lambda tool: Ours(tool, context), "to_strands")


def from_strands(tool: Any, *, invocation_state: Mapping[str, Any] | None = None) -> Any:
    """Make our tools of tools of Strands.

    What one yields while it works is said in our events, and a result with the status `error` is
    a failure. Arguments are validated here, before it is called.

    Args:
        tool: An `AgentTool`, such as what `@tool` and its MCP client give; or a list of them.
        invocation_state: What tools find in the state of the agent that calls them; an `agent`
            is part of it for tools with `context=True`.

    Returns:
        One tool for one, a list for a list.

    Raises:
        UserError: It is no such tool, or its schema cannot be enforced.
    """
    state = dict(invocation_state or {})
    return imported(tool, AgentTool, lambda one: tool_here(one, state), "from_strands")


def as_tool(
    agent: Agent,
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
    preserve_context: bool = False,
    invocation_state: Mapping[str, Any] | None = None,
) -> FunctionTool[..., Any]:
    """Make a tool of an agent of Strands. Its calls run one after the other.

    Args:
        agent: The agent.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it; the agent's own description by default.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the framework's result; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How often its model is asked at most; without limit if not given.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.
        preserve_context: Whether it remembers earlier calls. Otherwise each call starts from what
            the agent has seen by now.
        invocation_state: What its own tools find in their state.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form; or an agent
            with a session manager is to forget.
    """
    if not preserve_context and getattr(agent, "_session_manager", None) is not None:
        raise UserValueError(
            f"Agent {agent.name!r} keeps its conversation with a session manager, so each call "
            "finds the earlier ones. Say so: as_tool(agent, preserve_context=True)."
        )
    return foreign_tool(
        agent.name,
        run_of(
            agent, max_turns, preserve_context=preserve_context, invocation_state=invocation_state
        ),
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
