"""Run one tool call as a run: an agent whose model requests only that call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from agents_tools.agents.agent import Agent
from agents_tools.agents.model import Model, ModelResponse
from agents_tools.agents.run import Run
from agents_tools.content.items import ToolCallItem, ToolCallOutputItem
from agents_tools.errors import ToolError

if TYPE_CHECKING:
    from agents_tools.agents.model import ModelRequest
    from agents_tools.events.base import Emit
    from agents_tools.tool.tool import FunctionTool

__all__ = ["CALL_ID", "SingleCallRun", "one_call_agent"]

CALL_ID = "call_1"
"""The id of the call."""


class SingleCallAgent(Model):
    """A model that requests one call, and raises the result of a failed call.

    Args:
        name: The name of the tool.
        arguments: The arguments, as JSON text.
        errors: Whether the error of the run has the message of an internal error, or the text for
            clients.
    """

    def __init__(self, name: str, arguments: str, errors: Literal["hide", "show"]) -> None:
        self._name = name
        self._arguments = arguments
        self._errors = errors

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Return the call.

        Raises:
            ToolError: The call failed.
        """
        del emit
        for item in reversed(request.input):
            if isinstance(item, ToolCallOutputItem):
                public = item.public_message if self._errors == "hide" else None
                raise ToolError(public or _text(item.output))
        call = ToolCallItem(call_id=CALL_ID, name=self._name, arguments=self._arguments)
        return ModelResponse(items=[call], finish_reason="tool_calls")


class SingleCallRun(Run):
    """A run that keeps its model, even if the settings replace the model of nested runs."""

    def choose_model(self) -> Any:
        """Return the model of the agent."""
        return self.agent.model


def one_call_agent(
    tool: FunctionTool[..., Any], arguments: str, *, errors: Literal["hide", "show"]
) -> Agent[Any, Any]:
    """Return an agent that calls a tool once.

    Args:
        tool: The tool.
        arguments: The arguments, as JSON text.
        errors: See `RunManager`.
    """
    return Agent(
        name=tool.name,
        tools=[tool],
        model=SingleCallAgent(tool.name, arguments, errors),
        tool_use_behavior="stop_on_first_tool",
    )


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    return "\n".join(block.text for block in output if getattr(block, "type", "") == "text")
