"""Helpers that send requests to models and check them against the types of the provider's client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from agents_tools.agents import Model, ModelRequest, ModelResponse
from agents_tools.content import Item, MessageInputItem
from agents_tools.events import RawResponseStreamEvent

if TYPE_CHECKING:
    from agents_tools.content import ToolCallItem
    from agents_tools.events import Event


@dataclass
class RecordedAnswer:
    """The response of a model, and what the model emitted before it.

    Attributes:
        response: The response.
        emitted: The data of the raw stream events, in order.
        calls: The calls that were passed to `on_call`.
    """

    response: ModelResponse | None = None
    emitted: list[dict[str, Any]] = field(default_factory=list)
    calls: list[ToolCallItem] = field(default_factory=list)

    @property
    def items(self) -> list[Item]:
        assert self.response is not None
        return list(self.response.items)

    def emit(self, event: Event) -> None:
        assert isinstance(event, RawResponseStreamEvent)
        self.emitted.append(event.data)


async def ask(model: Model, *history: Item | str, **request: Any) -> RecordedAnswer:
    """Send a request; a string in the history is a user message."""
    recorded = RecordedAnswer()
    items = [MessageInputItem(content=one) if isinstance(one, str) else one for one in history]
    request_ = ModelRequest(input=items, on_call=recorded.calls.append, **request)
    recorded.response = await model.respond(request_, recorded.emit)
    return recorded


def check(kind: Any, value: Any) -> None:
    """Validate a value against a type of the provider's client, without extra fields.

    Iterables are validated as they are read, so each one is read.
    """
    _read(_adapter(kind).validate_python(value, extra="forbid"))


@cache  # those of whole requests take half a second
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _read(value: object) -> None:
    if isinstance(value, Mapping):
        for one in value.values():
            _read(one)
    elif isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        for one in value:
            _read(one)
