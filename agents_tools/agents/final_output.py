"""The final output of a run: from the last response of the model, or from tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.config import FunctionToolResult, ToolsToFinalOutputResult, last_text
from agents_tools.content.json_value import to_json
from agents_tools.errors import ModelBehaviorError, UserError, UserTypeError
from agents_tools.text.nouns import type_with_article

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.agents.model import ModelResponse
    from agents_tools.agents.pending_tool_call import PendingToolCall
    from agents_tools.agents.toolbox import RunnableAgent
    from agents_tools.content.items import ToolCallOutputItem
    from agents_tools.tool.call import RunScope

__all__ = ["final_output_as_json", "final_output_of_tools", "final_text"]


def final_text(agent: RunnableAgent, response: ModelResponse) -> str:
    """Return the text of the last message of a response.

    Raises:
        ModelBehaviorError: The model refused to answer, and the agent has an output type.
    """
    text = last_text(response.items)
    if agent.output is None:
        return text
    has_refusal = any(getattr(item, "refusal", None) for item in response.items)
    if has_refusal or response.finish_reason in {"refusal", "content_filter"}:
        raise ModelBehaviorError(
            f"The model of agent {agent.name!r} refused to answer: {text or 'no reason'}"
        )
    return text


async def final_output_of_tools(
    agent: RunnableAgent, scope: RunScope, calls: list[PendingToolCall]
) -> tuple[Any] | None:
    """Return the final output, if the `tool_use_behavior` of the agent ends the run here.

    Args:
        agent: The agent.
        scope: The scope of the run.
        calls: The finished calls of the turn.

    Returns:
        A tuple with the output, because `None` can be one; or `None` if the run continues.
    """
    behavior = agent.tool_use_behavior
    if behavior == "run_llm_again":
        return None
    if behavior == "stop_on_first_tool":
        return _first_success(calls[:1])
    if isinstance(behavior, Mapping):
        names = cast("Mapping[str, Any]", behavior)["stop_at_tool_names"]
        return _first_success([call for call in calls if call.target.name in names])
    results = [
        FunctionToolResult(
            tool=call.tool,
            output=call.value,
            run_item=cast("ToolCallOutputItem", call.output_item),
        )
        for call in calls
    ]
    decision: Any = behavior(scope.context, results)
    if hasattr(decision, "__await__"):
        decision = await decision
    if not isinstance(decision, ToolsToFinalOutputResult):
        raise UserTypeError(
            f"The tool_use_behavior of agent {agent.name!r} returned a wrong value: expected a "
            f"ToolsToFinalOutputResult, got {type_with_article(decision)}."
        )
    return (decision.final_output,) if decision.is_final_output else None


def _first_success(calls: Sequence[PendingToolCall]) -> tuple[Any] | None:
    """Return the value of the first successful call.

    After a failed call the run continues, so that the model can correct itself.
    """
    for call in calls:
        if call.output_item is not None and call.output_item.status == "ok":
            return (call.value,)
    return None


def final_output_as_json(value: Any) -> Any:
    """Return a final output as JSON, for the last event of a run."""
    if value is None or isinstance(value, str):
        return value
    from pydantic_core import from_json

    try:
        return from_json(to_json(value))
    except UserError:
        return f"({type(value).__name__}, without a JSON form)"
