"""The actions that the tool calls of an agent become."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from agents_tools.classes.event_types import (
    AgentDelegateAction,
    AgentFinishAction,
    AgentThinkAction,
    ToolAction,
    event_of,
)
from agents_tools.text.json_limits import parse_object
from agents_tools.tool.decorators import function_tool
from agents_tools.tool.flatten import flatten_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from agents_tools.agents.agent import Agent
    from agents_tools.events.kinds import ActionEvent
    from agents_tools.tool.call import Call
    from agents_tools.tool.tool import FunctionTool

__all__ = ["ActionReader", "delegate_tool"]

_DELEGATE = "delegate"


class ActionReader:
    """Converts the calls of an agent to actions.

    Args:
        agent: The agent.
        delegates: The names of the agents to which it can delegate tasks.
    """

    def __init__(self, agent: Agent[Any, Any], delegates: Collection[str]) -> None:
        self._delegates = delegates
        self._readers: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            tool.name: tool.action_from_arguments
            for tool in flatten_tools(one for one in agent.tools if not hasattr(one, "as_part"))
            if hasattr(tool, "action_from_arguments")
        }

    def action_of(self, call: Call) -> ActionEvent[Any]:
        """Return the action of a call, with the arguments as the model or a person wrote them.

        The tool of the runtime maps and validates the arguments itself.

        Raises:
            UserError: The tool has the name of another action.
        """
        decision = call.decision
        edited = None if decision is None else decision.arguments
        fields = parse_object(edited or call.sent)
        if fields is None:
            fields = dict(call.arguments)
        name = call.tool_name
        if name == _DELEGATE and self._delegates:
            task = {"task": fields.get("task", "")}
            return event_of(AgentDelegateAction(str(fields.get("agent", "")), task))
        if name == "think":
            return event_of(AgentThinkAction(str(fields.get("thought", ""))))
        if name == "finish":
            text = str(fields.get("result", fields.get("message", "")))
            return event_of(AgentFinishAction(text, fields, fields.get("success") is not False))
        if name in self._readers:
            with suppress(Exception):  # the tool reports the fault of the arguments
                return event_of(self._readers[name](fields))
        return event_of(ToolAction(name, fields))


def delegate_tool(names: Collection[str]) -> FunctionTool[..., Any]:
    """Return the tool with which a model delegates a task; its calls become actions.

    Args:
        names: The names of the agents.
    """

    async def delegate(agent: str, task: str) -> str:
        raise NotImplementedError

    delegate.__annotations__["agent"] = Literal[tuple(names)]
    delegate.__doc__ = (
        "Delegate a task to another agent, and get its result.\n\n"
        "Args:\n    agent: The agent.\n    task: The task, with all necessary information."
    )
    return function_tool(delegate)
