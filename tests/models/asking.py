"""Puts requests to models, and checks what they send against the types of the provider's client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from agents_tools.agents import Model, ModelRequest, ModelResponse
from agents_tools.content import Item, MessageInputItem
from agents_tools.events import RawResponseStreamEvent

if TYPE_CHECKING:
    from agents_tools.content import ToolCallItem
    from agents_tools.events import Event


@dataclass
class Heard:
    """What a model said while it answered, and its answer.

    Attributes:
        response: The answer.
        said: Its pieces, as they were emitted.
        calls: The calls that were handed over.
    """

    response: ModelResponse | None = None
    said: list[dict[str, Any]] = field(default_factory=list)
    calls: list[ToolCallItem] = field(default_factory=list)

    @property
    def items(self) -> list[Item]:
        assert self.response is not None
        return list(self.response.items)

    def emit(self, event: Event) -> None:
        assert isinstance(event, RawResponseStreamEvent)
        self.said.append(event.data)


async def ask(model: Model, *history: Item | str, **request: Any) -> Heard:
    """Put a request; text among the history is what the user says."""
    heard = Heard()
    items = [MessageInputItem(content=one) if isinstance(one, str) else one for one in history]
    asked = ModelRequest(input=items, on_call=heard.calls.append, **request)
    heard.response = await model.respond(asked, heard.emit)
    return heard


def check(adapter: TypeAdapter[Any], value: Any) -> None:
    """Check a value against a type of the provider's client, to its last field.

    Iterables are validated as they are read, so each one is read.
    """
    _read(adapter.validate_python(value, extra="forbid"))


def _read(value: object) -> None:
    if isinstance(value, Mapping):
        for one in value.values():
            _read(one)
    elif isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        for one in value:
            _read(one)
