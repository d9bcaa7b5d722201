"""Handoffs: tools with which an agent passes the conversation to another agent.

A handoff is a tool call. When all calls of a turn have ended, the agent of the first successful
handoff continues the run, so resuming a run finds the agent in the recorded calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from agents_tools.agents.config import AgentHooks
from agents_tools.agents.pending_tool_call import HANDOFF
from agents_tools.agents.state import FilteredInput
from agents_tools.content.items import (
    MessageInputItem,
    ToolCallItem,
    ToolCallOutputItem,
    input_items,
)
from agents_tools.content.outputs import ToolResult
from agents_tools.errors import ToolDeniedError, UserTypeError, UserValueError
from agents_tools.events.kinds import AgentUpdatedStreamEvent
from agents_tools.persistence.conversation import open_calls
from agents_tools.schema.json_schema import reader_of
from agents_tools.schema.signature import mismatched_signature
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.manual import SchemaSource
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.options import refuse_options
from agents_tools.tool.records import ToolAnnotations, ToolOrigin
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Never, Self

    from agents_tools.agents.config import RunHooks
    from agents_tools.agents.pending_tool_call import PendingToolCall
    from agents_tools.agents.run_recorder import RunRecorder
    from agents_tools.agents.toolbox import RunnableAgent
    from agents_tools.content.items import Item
    from agents_tools.schema.arguments import ArgumentReader
    from agents_tools.tool.call import Call, RunScope
    from agents_tools.tool.records import IsEnabled
    from agents_tools.tool.run_context import RunContextWrapper

__all__ = [
    "Handoff",
    "HandoffInputData",
    "HandoffInputFilter",
    "change_agent",
    "find_agent",
    "handoff",
    "handoffs_of",
    "is_handoff",
    "remove_all_tools",
]

Handoff: TypeAlias = "FunctionTool[..., Any]"
"""The type of a handoff: it is a tool, so policies such as `needs_approval` apply to it."""


@dataclass(frozen=True, slots=True)
class HandoffInputData:
    """The conversation that the next agent receives, as an input filter sees and changes it.

    Attributes:
        input_history: The input of the run: text, or JSON items.
        pre_handoff_items: The items of the earlier turns.
        new_items: The items of the current turn, with the call of the handoff and its output.
        run_context: The context of the run.
        input_items: If it is not `None`, the next agent receives these items instead of
            `new_items`.
    """

    input_history: str | tuple[Any, ...]
    pre_handoff_items: tuple[Any, ...] = ()
    new_items: tuple[Any, ...] = ()
    run_context: RunContextWrapper[Any] | None = None
    input_items: tuple[Any, ...] | None = None

    def clone(self, **changes: Any) -> Self:
        """Return a copy with some attributes changed."""
        return replace(self, **changes)


HandoffInputFilter: TypeAlias = Callable[[HandoffInputData], Any]
"""A function that returns the `HandoffInputData` for the next agent; sync or async."""


def handoff(
    agent: RunnableAgent,
    tool_name_override: str | None = None,
    tool_description_override: str | None = None,
    on_handoff: Callable[..., Any] | None = None,
    input_type: type[Any] | None = None,
    input_filter: HandoffInputFilter | None = None,
    *,
    is_enabled: IsEnabled = True,
    **unknown: Never,
) -> Handoff:
    """Create a tool with which a model passes the conversation to another agent.

    Args:
        agent: The agent that continues the run.
        tool_name_override: The name of the tool; by default `transfer_to_` and the agent's name.
        tool_description_override: The description of the tool; by default one with the
            `handoff_description` of the agent.
        on_handoff: Called with the context, and with the input if there is an `input_type`, before
            the agent changes; sync or async. An exception refuses the handoff, and the model
            receives its text.
        input_type: The type of the arguments that the model sends, for example the reason; no
            arguments by default. They go to `on_handoff`, not to the next agent.
        input_filter: Returns the conversation that the next agent receives; sync or async. It
            receives `HandoffInputData`. The result and the log of the run keep all items. The
            filter is called again when the run is resumed from its store.
        is_enabled: Whether the tool is offered: a boolean, or a function of (context, agent).
        **unknown: No other option exists. For one of openai-agents, the error names the
            counterpart.

    Raises:
        UserError: An argument is not valid.
    """
    if unknown:
        refuse_options("handoff", handoff, unknown)
    if not hasattr(agent, "toolbox"):
        raise UserTypeError(f"handoff() expects an Agent, got {type_with_article(agent)}.")
    name = tool_name_override or f"transfer_to_{_identifier(agent.name)}"[:64]
    _check_functions(name, on_handoff, input_type, input_filter)
    description = tool_description_override or (
        f"Hand the conversation over to agent {agent.name!r}. {agent.handoff_description or ''}"
    )
    source = _HandoffSource(
        check_tool_name(name),
        description.strip(),
        reader_of(name, _NoInput if input_type is None else input_type),
        agent=agent,
        on_handoff=on_handoff,
        has_input=input_type is not None,
        input_filter=input_filter,
    )
    return FunctionTool.of_source(
        source,
        is_enabled=is_enabled,
        # A function of the application may have an effect that must not happen twice.
        annotations=ToolAnnotations(idempotentHint=on_handoff is None),
        # The calls of a turn before the handoff have ended when it begins.
        metadata={"agents_tools": {"exclusive": True}},
    )


@dataclass(frozen=True)
class _NoInput:
    """The arguments of a handoff without an input type."""


class _HandoffSource(SchemaSource):
    """A handoff as the source of a tool."""

    def __init__(
        self,
        name: str,
        description: str,
        reader: ArgumentReader,
        *,
        agent: RunnableAgent,
        on_handoff: Callable[..., Any] | None,
        has_input: bool,
        input_filter: HandoffInputFilter | None,
    ) -> None:
        schema = {key: value for key, value in reader.json_schema.items() if key != "description"}
        super().__init__(
            name,
            description,
            reader,
            self._transfer,
            json_schema={**schema, "title": f"{name}_args"},
            origin=ToolOrigin(kind=HANDOFF, agent=agent.name),
        )
        self.agent = agent
        self.input_filter = input_filter
        self._on_handoff = on_handoff
        self._has_input = has_input

    async def _transfer(self, call: Call) -> ToolResult:
        first = _handoff_of_turn(call)
        if first is not None:
            raise ToolDeniedError(
                f"Not done: the conversation already goes to agent {first!r} after this turn."
            )
        if self._on_handoff is not None:
            arguments = (call.parsed.values(),) if self._has_input else ()
            done = self._on_handoff(call.context, *arguments)
            if hasattr(done, "__await__"):
                await done
        name = self.agent.name
        return ToolResult(content=json.dumps({"assistant": name}), metadata={"handoff": name})


def _handoff_of_turn(call: Call) -> str | None:
    """Return the name of the agent of an earlier handoff in the turn of a call."""
    run: Any = getattr(call.parent, "run", None)
    if run is None:
        return None
    outputs: list[ToolCallOutputItem] = run.calls.outputs_of(open_calls(run.history))
    for item in reversed(run.history):  # from before the run waited in this turn
        if not isinstance(item, ToolCallOutputItem):
            break
        outputs.append(item)
    handoffs = {
        tool.name: cast("_HandoffSource", tool.source).agent.name
        for tool in run.agent.known_tools
        if isinstance(tool, FunctionTool) and is_handoff(cast("Handoff", tool))
    }
    names = [handoffs.get(output.name) for output in outputs if output.status == "ok"]
    return next(filter(None, names), None)


def remove_all_tools(data: HandoffInputData) -> HandoffInputData:
    """Return the conversation without tool calls, their outputs and reasoning; an input filter.

    Args:
        data: The conversation.
    """
    history = data.input_history
    if not isinstance(history, str):
        items = input_items(history, "input_history")
        history = tuple(item.to_dict() for item in _messages(items))
    return data.clone(
        input_history=history,
        pre_handoff_items=tuple(_messages(data.pre_handoff_items)),
        new_items=tuple(_messages(data.new_items)),
        input_items=None if data.input_items is None else tuple(_messages(data.input_items)),
    )


def _messages(items: Sequence[Any]) -> list[Any]:
    return [item for item in items if item.type in {"message_input_item", "message_output_item"}]


# --- the agents of a run


def is_handoff(tool: FunctionTool[..., Any]) -> bool:
    """Return whether a tool is a handoff."""
    return isinstance(tool.source, _HandoffSource)


def handoffs_of(agent: str, handoffs: object, known: dict[int, Any]) -> list[Handoff]:
    """Return the tools for the `handoffs` of an agent.

    Args:
        agent: The name of the agent.
        handoffs: Agents, and results of `handoff`.
        known: The tools that were created for agents before, by the id of the agent.

    Raises:
        UserError: An element is of another type.
    """
    tools: list[Handoff] = []
    is_list = isinstance(handoffs, (list, tuple))
    elements = cast("Sequence[Any]", handoffs if is_list else [handoffs])
    for one in elements:
        if isinstance(one, FunctionTool) and is_handoff(cast("Handoff", one)):
            tools.append(cast("Handoff", one))
            continue
        agent_of_tool = cast("Any", one)
        if not is_list or not hasattr(agent_of_tool, "toolbox"):
            raise UserTypeError(
                f"The handoffs of agent {agent!r} are not valid: expected a list of agents and "
                f"results of handoff(agent, ...), got {type_with_article(agent_of_tool)}."
            )
        key = id(agent_of_tool)  # the tool keeps the agent, so that the id stays unique
        known[key] = known.get(key) or handoff(agent_of_tool)
        tools.append(known[key])
    return tools


def find_agent(first: RunnableAgent, name: str) -> RunnableAgent:
    """Return the agent with a name among those that an agent can hand over to.

    Args:
        first: The first agent of the run.
        name: The name of the agent.

    Raises:
        UserError: There is no such agent.
    """
    agents = [first]
    for agent in agents:
        if agent.name == name:
            return agent
        for tool in agent.known_tools:
            source = getattr(tool, "source", None)  # hosted tools have none
            if not isinstance(source, _HandoffSource):
                continue
            if all(source.agent is not one for one in agents):
                agents.append(source.agent)
    raise UserValueError(
        f"The run continues with agent {name!r}, but agent {first.name!r} has no handoff to it. "
        "Start the run with the agent that it was started with."
    )


class _Run(Protocol):
    """The parts of a run that a handoff uses."""

    agent: RunnableAgent
    history: list[Item]
    input_count: int
    filtered: FilteredInput | None
    recorder: RunRecorder | None
    run_hooks: tuple[RunHooks[Any], ...]
    hooks: tuple[RunHooks[Any], ...]

    @property
    def scope(self) -> RunScope: ...
    def set_agent(self, agent: Any, filtered: FilteredInput | None = None) -> None: ...
    def load_model(self) -> None: ...


async def change_agent(run: _Run, call: PendingToolCall) -> bool:
    """Let the agent of a handoff continue the run.

    Args:
        run: The run.
        call: The call of the handoff. All calls of its turn have ended.

    Returns:
        Whether the agent has changed: a handoff that was refused or has failed does nothing.

    Raises:
        UserError: The input filter returned a wrong value.
    """
    if call.output_item is None or call.output_item.status != "ok":
        return False
    source = cast("_HandoffSource", cast("Handoff", call.tool).source)
    context, previous = run.scope.context, run.agent
    filtered = await _filtered(run, source)
    run.set_agent(source.agent, filtered)
    run.load_model()
    if run.recorder is None or run.recorder.outcome(call.item, call.tool) is None:
        run.scope.emit(AgentUpdatedStreamEvent(agent=source.agent.name).attach(source.agent))
        for hook in run.run_hooks:
            await hook.on_handoff(context, previous, source.agent)
        own = source.agent.hooks
        if isinstance(own, AgentHooks):  # its method has another order, as in openai-agents
            await own.on_handoff(context, source.agent, previous)
        elif own is not None:
            await own.on_handoff(context, previous, source.agent)
    for hook in run.hooks:
        await hook.on_agent_start(context, source.agent)
    return True


# --- input filters


async def _filtered(run: _Run, source: _HandoffSource) -> FilteredInput | None:
    """Return what the next agent receives of the conversation; `None` for all of it."""
    earlier = run.filtered
    if source.input_filter is None:
        return earlier
    items, count = run.history, run.input_count
    if earlier is not None:
        items, count = earlier.applied(items), earlier.input_count
    turn = max(count, _start_of_turn(items))
    data = HandoffInputData(
        input_history=tuple(item.to_dict() for item in items[:count]),
        pre_handoff_items=tuple(items[count:turn]),
        new_items=tuple(items[turn:]),
        run_context=run.scope.context,
    )
    only = items[0] if count == 1 else None
    if isinstance(only, MessageInputItem) and isinstance(only.content, str):
        data = data.clone(input_history=only.content)
    result: object = source.input_filter(data)
    if hasattr(result, "__await__"):
        result = await cast("Any", result)
    if not isinstance(result, HandoffInputData):
        raise UserTypeError(
            f"The input_filter of handoff {source.name!r} returned a wrong value: expected "
            f"HandoffInputData, got {type_with_article(result)}."
        )
    history = input_items(result.input_history, "input_history")
    own = result.new_items if result.input_items is None else result.input_items
    kept = [*history, *input_items([*result.pre_handoff_items, *own], "HandoffInputData")]
    _check_pairs(source.name, kept)
    return FilteredInput(items=kept, input_count=len(history), replaced=len(run.history))


def _start_of_turn(items: Sequence[Item]) -> int:
    """Return the index of the first item of the last response of a conversation."""
    index = len(items)
    while index and isinstance(items[index - 1], ToolCallOutputItem):
        index -= 1
    while index and not isinstance(items[index - 1], (ToolCallOutputItem, MessageInputItem)):
        index -= 1
    return index


def _check_pairs(name: str, items: Sequence[Item]) -> None:
    """Raise if a filter has separated a call from its output, which models refuse."""
    outputs = {item.call_id for item in items if isinstance(item, ToolCallOutputItem)}
    calls = {item.call_id for item in items if isinstance(item, ToolCallItem) and item.needs_answer}
    alone = sorted(calls ^ outputs)
    if not items:
        raise UserValueError(
            f"The input_filter of handoff {name!r} left no items: expected at least one message. "
            "Keep the input_history."
        )
    if alone:
        raise UserValueError(
            f"The input_filter of handoff {name!r} separated calls from their outputs: "
            f"{', '.join(alone)}. Keep or remove both items."
        )


# --- checks


def _identifier(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", name).lower()


def _check_functions(name: str, on_handoff: Any, input_type: Any, input_filter: Any) -> None:
    for option, function in (("on_handoff", on_handoff), ("input_filter", input_filter)):
        if function is not None and not callable(function):
            raise UserTypeError(
                f"Handoff {name!r}: {option}= expects a function, got "
                f"{type_with_article(function)}."
            )
    if input_type is not None and on_handoff is None:
        raise UserValueError(
            f"Handoff {name!r} has an input_type without a function that receives the input. Pass "
            "on_handoff=."
        )
    if on_handoff is None:
        return
    arguments = ("context",) if input_type is None else ("context", "input")
    signature = mismatched_signature(on_handoff, *arguments)
    if signature is not None:
        raise UserTypeError(
            f"Handoff {name!r}: on_handoff= expects a function of ({', '.join(arguments)}), got "
            f"one with the parameters {signature}."
        )
