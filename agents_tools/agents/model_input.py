"""What a model reads of a conversation: the hook `prepare_input` and its context.

The hook changes requests only. The history of a run, its log and its result keep every item.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, cast

from agents_tools.agents.type_variables import ContextT
from agents_tools.content.items import (
    Item,
    ToolCallItem,
    ToolCallOutputItem,
    encodable_items,
    input_items,
)
from agents_tools.content.usage import Usage
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.events.kinds import SummaryEvent
from agents_tools.text.nouns import type_with_article

if TYPE_CHECKING:
    from agents_tools.agents.hosted.base import HostedTool
    from agents_tools.agents.model import Model, ModelResponse
    from agents_tools.tool.call import RunScope
    from agents_tools.tool.run_context import RunContextWrapper
    from agents_tools.tool.tool import FunctionTool

__all__ = ["InputContext", "PrepareInput", "Summaries", "prepared_input"]


class _Requests(Protocol):
    """The parts of a `ModelCaller` that the context uses."""

    async def ask(
        self, input: Sequence[Item], instructions: str, model: str | Model | None
    ) -> ModelResponse: ...
    async def add_summary(self, event: SummaryEvent) -> None: ...


class InputContext(Generic[ContextT]):
    """What a `prepare_input` hook knows about the request that it prepares.

    Attributes:
        agent: The agent.
        model: The model that receives the request.
        run_context: The context of the run, with the application's own object in `context`.
        instructions: The system prompt of the request.
        tools: The tools that the request offers.
        turn: The number of the request in the run, starting at 1.
        usage: The usage of the run so far, including the requests of `ask`.
    """

    __slots__ = (
        "_asked",
        "_requests",
        "_summaries",
        "agent",
        "instructions",
        "model",
        "run_context",
        "tools",
        "turn",
        "usage",
    )

    def __init__(
        self,
        scope: RunScope,
        model: Model,
        instructions: str,
        tools: tuple[FunctionTool[..., Any] | HostedTool, ...],
        *,
        requests: _Requests,
        summaries: Summaries,
    ) -> None:
        self.agent: Any = scope.agent
        self.model = model
        self.run_context: RunContextWrapper[ContextT] = scope.context
        self.instructions = instructions
        self.tools = tools
        self.turn: int = scope.run.turns
        self.usage: Usage = scope.run.usage
        self._asked = Usage()
        self._requests = requests
        self._summaries = summaries

    async def ask(
        self,
        input: str | Sequence[Item],
        *,
        instructions: str = "",
        model: str | Model | None = None,
    ) -> ModelResponse:
        """Return the response of a model to a request of the hook, for example for a summary.

        Its tokens count in the usage of the run. It is repeated after a temporary error, like the
        requests of the run. Its text is not streamed.

        Args:
            input: Text, or items.
            instructions: The system prompt.
            model: The model, or its name; that of the run by default.

        Raises:
            ModelError: The request failed, and no retry is left or useful.
            UserError: The model cannot be loaded, or the input is not valid.
        """
        response = await self._requests.ask(input_items(input), instructions, model)
        self._asked.add(response.usage)
        return response

    def latest_summary(self, items: Sequence[Item]) -> SummaryEvent | None:
        """Return the last summary of the first items of a conversation; `None` if there is none.

        Summaries of earlier turns, of a run that is resumed, and of the earlier runs of the session
        are found.

        Args:
            items: The conversation. It is compared with the one that was summarized.
        """
        return self._summaries.latest(items)

    async def add_summary(self, items: Sequence[Item], text: str) -> SummaryEvent:
        """Record a summary in the log of the run, as a `SummaryEvent`.

        The event has the usage of the requests of `ask` since the last one.

        Args:
            items: The first items of the conversation, which the summary stands for.
            text: The summary.
        """
        usage, self._asked = self._asked, Usage()
        event = SummaryEvent(
            text,
            len(items),
            self._summaries.digest(items, len(items)),
            usage.to_dict() if usage.requests else None,
        )
        self._summaries.add(event)
        await self._requests.add_summary(event)
        return event


PrepareInput: TypeAlias = Callable[
    [list[Item], InputContext[Any]], "Sequence[Item] | Awaitable[Sequence[Item]]"
]
"""A hook that returns the items that a model reads of a conversation; sync or async."""


async def prepared_input(
    hook: PrepareInput, history: Sequence[Item], context: InputContext[Any]
) -> Sequence[Item]:
    """Return the items that the model reads.

    Args:
        hook: The hook.
        history: The conversation; the hook gets a copy.
        context: The context of the request.

    Raises:
        Exception: The hook raised it. A note names the hook.
        UserError: The hook returned something else than items, or separated a call from its output.
    """
    agent: str = context.agent.name
    try:
        result: Any = hook(list(history), context)
        if hasattr(result, "__await__"):
            result = await result
    except Exception as error:
        error.add_note(
            f"Raised by RunConfig(prepare_input=...) of agent {agent!r}, before request "
            f"{context.turn}."
        )
        raise
    if isinstance(result, (str, Mapping)) or not hasattr(result, "__iter__"):
        raise UserTypeError(
            f"The prepare_input hook of agent {agent!r} returned a wrong value: expected a list of "
            f"items, got {type_with_article(cast('object', result))}."
        )
    items = input_items(result, f"prepare_input of agent {agent!r}")
    _check_calls(history, items, agent)
    return encodable_items(items)


def _check_calls(history: Sequence[Item], items: Sequence[Item], agent: str) -> None:
    """Raise an error for a call that lost its output, or the other way round.

    Providers reject such a request with an error that names neither the hook nor the remedy.
    """
    before, after = _open_ends(history), _open_ends(items)
    for call_id, count in after.items():
        if count and not before[call_id]:
            lost, kept = ("output", "call") if count > 0 else ("call", "output")
            raise UserValueError(
                f"The prepare_input hook of agent {agent!r} separated a call from its output: the "
                f"{kept} {call_id!r} has no {lost} in the returned items. Return both, or leave "
                "both out."
            )


def _open_ends(items: Sequence[Item]) -> Counter[str]:
    """Return the number of calls minus that of the outputs, by call id."""
    counts: Counter[str] = Counter()
    for item in items:
        if isinstance(item, ToolCallItem):
            counts[item.call_id] += item.needs_answer
        elif isinstance(item, ToolCallOutputItem):
            counts[item.call_id] -= 1
    return counts


class Summaries:
    """The summaries of the conversation of one run.

    A summary is used only for the items that it was made of. They are compared by a digest,
    because a session can be edited between its runs.

    Args:
        events: The recorded summaries, oldest first.
    """

    __slots__ = ("_digests", "_events")

    def __init__(self, events: Iterable[SummaryEvent]) -> None:
        self._events = list(events)
        self._digests: list[tuple[int, Item, Any]] = []  # the length, the last item and the hash

    def add(self, event: SummaryEvent) -> None:
        """Add a summary."""
        self._events.append(event)

    def latest(self, items: Sequence[Item]) -> SummaryEvent | None:
        """Return the last summary of the first items; `None` if there is none."""
        matching = [
            event
            for event in self._events
            if 0 < event.items <= len(items) and self.digest(items, event.items) == event.digest
        ]
        self._events = matching[-1:]  # the others are never needed again
        return matching[-1] if matching else None

    def digest(self, items: Sequence[Item], count: int) -> str:
        """Return the digest of the first items.

        The hash of a known part is continued, so that each item is hashed once in a run.
        """
        known = self._digests
        while known and not (known[-1][0] <= count and items[known[-1][0] - 1] is known[-1][1]):
            known.pop()
        start, digest = (known[-1][0], known[-1][2].copy()) if known else (0, hashlib.sha256())
        for item in items[start:count]:
            data = json.dumps(item.to_dict(), sort_keys=True, default=str)
            digest.update(data.encode())
        if start < count:
            known.append((count, items[count - 1], digest))
        return cast("str", digest.hexdigest()[:32])
