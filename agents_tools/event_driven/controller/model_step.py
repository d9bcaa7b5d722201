"""What an agent is asked with, and what actions the calls in its answer stand for."""

from __future__ import annotations

import asyncio
import difflib
import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.agents.model import (
    DefaultModelProvider,
    ModelRequest,
    ModelSettings,
    check_model,
    overriding_model,
)
from agents_tools.agents.pair_joiner import PairJoiner
from agents_tools.classes.event_types import (
    AgentDelegateAction,
    AgentFinishAction,
    AgentThinkAction,
    ToolAction,
    event_of,
)
from agents_tools.content.items import encodable_items
from agents_tools.errors import ModelError, UserError
from agents_tools.events.kinds import ActionEvent, RawResponseStreamEvent
from agents_tools.text.characters import replace_surrogates
from agents_tools.text.json_limits import check_bounds
from agents_tools.tool.decorators import function_tool
from agents_tools.tool.flatten import flatten_tools
from agents_tools.wire.project import project

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from agents_tools.agents.agent import Agent
    from agents_tools.agents.model import Model, ModelResponse
    from agents_tools.agents.toolbox import Toolbox
    from agents_tools.content.items import Item, ToolCallItem
    from agents_tools.events.base import Emit

__all__ = ["Wishes", "ask"]

_RETRIES = 2
_DELEGATE = "delegate"


async def ask(
    agent: Agent[Any, Any],
    items: Sequence[Item],
    context: Any,
    box: Toolbox,
    delegates: Collection[str],
    emit: Emit,
) -> tuple[ModelResponse, str | None]:
    """Ask the model of an agent once, and again after what may pass.

    Args:
        agent: The agent.
        items: The conversation so far.
        context: What its instructions see.
        box: Its tools.
        delegates: The names of the agents that it may give tasks to.
        emit: Takes pieces of the answer as they come.

    Returns:
        The answer, and the provider whose words it is in, where the model has one.
    """
    model = _model_of(agent)
    offered = (*box.offered, _delegate_tool(tuple(delegates))) if delegates else box.offered
    request = ModelRequest(
        instructions=replace_surrogates(await agent.system_prompt(context)),
        input=encodable_items(items),
        tools=offered,
        settings=agent.model_settings or ModelSettings(),
        output=None if agent.output is None else agent.output.format,
        agent=agent.name,
    )
    joiner = PairJoiner(emit)
    attempt = 0
    while True:
        try:
            response = await model.respond(request, joiner)
            joiner.finish()
            response = replace(response, items=encodable_items(response.items))
            return response, getattr(model, "provider", None)
        except ModelError as error:
            attempt += 1
            if not error.retryable or attempt > _RETRIES:
                raise
            delay = error.retry_after or 0.5 * 2**attempt
            data = {"type": "agents_tools.retry", "attempt": attempt, "delay": delay}
            emit(RawResponseStreamEvent(data))
            await asyncio.sleep(delay)


def _model_of(agent: Agent[Any, Any]) -> Model:
    chosen = overriding_model() or agent.model
    if chosen is None or isinstance(chosen, str):
        return DefaultModelProvider().get_model(chosen)
    return check_model(chosen)


class Wishes:
    """Reads the calls of an agent's model as actions.

    Args:
        agent: The agent.
        delegates: The names of the agents that it may give tasks to.
    """

    def __init__(self, agent: Agent[Any, Any], delegates: Collection[str]) -> None:
        self._delegates = delegates
        self._readers: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            tool.name: tool.action_from_arguments
            for tool in flatten_tools(one for one in agent.tools if not hasattr(one, "as_part"))
            if hasattr(tool, "action_from_arguments")
        }

    def action_of(self, call: ToolCallItem, box: Toolbox, provider: str | None) -> ActionEvent[Any]:
        """Return the action that a call of the model stands for.

        Raises:
            ValueError: There is no such tool, or the arguments are no JSON object.
        """
        tool = box.by_name.get(call.name)
        arguments = call.arguments
        if tool is not None and provider is not None and call.kind == "function":
            with suppress(UserError):  # the provider was never told of it
                arguments = project(tool, provider).decode(arguments)
        try:
            check_bounds(arguments)
            given: Any = json.loads(arguments or "{}")
        except ValueError as error:
            raise ValueError(f"The arguments of {call.name!r} cannot be read: {error}.") from None
        if not isinstance(given, dict):
            raise ValueError(f"The arguments of {call.name!r} are a JSON object.")  # noqa: TRY004
        fields = cast("dict[str, Any]", given)
        if call.name == _DELEGATE and self._delegates and tool is None:
            inputs = {"task": fields.get("task", "")}
            return event_of(AgentDelegateAction(str(fields.get("agent", "")), inputs))
        if tool is None:
            raise ValueError(_unknown(call.name, list(box.by_name)))
        if call.name == "think":
            return event_of(AgentThinkAction(str(fields.get("thought", ""))))
        if call.name == "finish":
            text = str(fields.get("result", fields.get("message", "")))
            return event_of(AgentFinishAction(text, fields, fields.get("success") is not False))
        if call.name in self._readers:
            with suppress(Exception):  # whatever is wrong with them, the tool says it
                return event_of(self._readers[call.name](fields))
        return event_of(ToolAction(call.name, fields))


def _delegate_tool(names: tuple[str, ...]) -> Any:
    """Return the tool by which a model gives a task away; it is only ever described."""

    async def delegate(agent: str, task: str) -> str:
        raise NotImplementedError

    delegate.__annotations__["agent"] = Literal[names]
    delegate.__doc__ = (
        "Give a task to another agent, and get what it has made of it.\n\n"
        "Args:\n    agent: Which one.\n    task: The task, with all that it needs to know."
    )
    return function_tool(delegate)


def _unknown(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, 3, 0.5)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"There is no tool {name!r:.100}.{hint} Tools: {', '.join(names) or 'none'}."
