"""One tool call as a run of its own: an agent whose model asks for that call and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.agent import Agent
from agents_tools.errors import ToolError
from agents_tools.items import ToolCallItem, ToolCallOutputItem
from agents_tools.loop import Run
from agents_tools.model import Model, ModelResponse

if TYPE_CHECKING:
    from agents_tools.events import Emit
    from agents_tools.model import ModelRequest
    from agents_tools.tool import FunctionTool

__all__ = ["CALL_ID", "OneCallRun", "one_call_agent"]

CALL_ID = "call_1"
"""The id of the call."""


class OneCall(Model):
    """Asks for one call; asked again, it gives up with what the call has answered.

    Args:
        name: The tool.
        arguments: The arguments, as JSON text.
    """

    def __init__(self, name: str, arguments: str) -> None:
        self._name = name
        self._arguments = arguments

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Give the call.

        Raises:
            ToolError: The call has failed.
        """
        del emit
        for item in reversed(request.input):
            if isinstance(item, ToolCallOutputItem):
                raise ToolError(_text(item.output))
        call = ToolCallItem(call_id=CALL_ID, name=self._name, arguments=self._arguments)
        return ModelResponse(items=[call], finish_reason="tool_calls")


class OneCallRun(Run):
    """A run whose own model stays, whatever model those inside it are given."""

    def _chosen_model(self) -> Any:
        return self.agent.model


def one_call_agent(tool: FunctionTool[..., Any], arguments: str) -> Agent[Any]:
    """Make the agent that calls a tool once.

    Args:
        tool: The tool.
        arguments: The arguments, as JSON text.
    """
    return Agent(
        name=tool.name,
        tools=[tool],
        model=OneCall(tool.name, arguments),
        tool_use_behavior="stop_on_first_tool",
    )


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    return "\n".join(block.text for block in output if getattr(block, "type", "") == "text")
