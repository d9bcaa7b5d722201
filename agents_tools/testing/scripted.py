"""A model with prepared answers, for tests and examples."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from agents_tools.agents.model import (
    ModelRequest,
    ModelResponse,
    call_delta,
    call_started,
    message_started,
    reasoning_delta,
    refusal_delta,
    text_delta,
)
from agents_tools.content.items import MessageOutputItem, ReasoningItem, ToolCallItem
from agents_tools.content.usage import Usage
from agents_tools.errors import UserError, UserTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.content.items import Item
    from agents_tools.events.base import Emit

__all__ = ["ScriptedModel", "Step", "assistant_message", "function_call", "tool_call"]

Step: TypeAlias = Any
"""One answer: text, a `tool_call`, an item, a list of these, a `ModelResponse`, an exception to
raise, or a sync or async function of the `ModelRequest` that returns one of these."""


def tool_call(
    name: str,
    arguments: Mapping[str, Any] | str | None = None,
    /,
    *,
    call_id: str = "",
    **named: object,
) -> ToolCallItem:
    """Return a tool call as a step of a scripted model.

    Args:
        name: The name of the tool.
        arguments: The arguments as a mapping, or as the exact text that a model would write.
        call_id: The id of the call; a new one by default.
        **named: Arguments by name, instead of `arguments`.
    """
    if not isinstance(arguments, str):
        arguments = json.dumps({**(arguments or {}), **named})
    return ToolCallItem(call_id=call_id, name=name, arguments=arguments)


function_call = tool_call
"""`tool_call` by its name in openai-agents."""


def assistant_message(text: str) -> MessageOutputItem:
    """Return a final answer as a step of a scripted model; the text alone means the same.

    Args:
        text: The text.
    """
    return MessageOutputItem(text=text)


class ScriptedModel:
    """A model that streams prepared answers one after the other, without a network.

    ```python
    model = ScriptedModel([tool_call("add", a=1, b=2), "The sum is 3."])
    ```

    Args:
        steps: The answers in order, or a mapping from agent names to answers.
        usage: The usage that each answer reports.
        piece: The number of characters in each text delta.
        name: The name of the model, which its answers report.

    Attributes:
        name: The name of the model.
        requests: The requests in order, each with a copy of its input.
    """

    def __init__(
        self,
        steps: Sequence[Step] | Mapping[str, Sequence[Step]] = (),
        *,
        usage: Usage | None = None,
        piece: int = 12,
        name: str = "scripted",
    ) -> None:
        if isinstance(steps, str):
            raise UserTypeError(
                "ScriptedModel expects a list of answers, got a string. Pass [text] for one answer."
            )
        self._shared = [] if isinstance(steps, Mapping) else list(steps)
        self._own = (
            {name: list(script) for name, script in steps.items()}
            if isinstance(steps, Mapping)
            else {}
        )
        self._usage = usage or Usage(requests=1)
        self._piece = piece
        self.name = name
        self._ids = itertools.count(1)
        self.requests: list[ModelRequest] = []

    def add(self, *steps: Step) -> None:
        """Append answers to the shared script."""
        self._shared.extend(steps)

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Return the next answer.

        Raises:
            UserError: The script has no answer left.
        """
        self.requests.append(replace(request, input=list(request.input)))
        script = self._own.get(request.agent, self._shared)
        if not script:
            last: Any = request.input[-1].to_dict() if request.input else None
            raise UserError(
                f"The script of the model has no answer left for agent {request.agent!r}; "
                f"request {len(self.requests)} ends with {last!r:.300}."
            )
        step = script.pop(0)
        while callable(step) and not isinstance(step, type):
            step = cast("Callable[[ModelRequest], Any]", step)(request)
            if hasattr(step, "__await__"):
                step = await step
        if isinstance(step, BaseException) or (
            isinstance(step, type) and issubclass(step, BaseException)
        ):
            raise step
        response = self._response(step)
        for item in response.items:
            await self._say(item, request, emit)
        return response

    def _response(self, step: Any) -> ModelResponse:
        if isinstance(step, ModelResponse):
            return step
        parts = cast("Sequence[Any]", step) if isinstance(step, (list, tuple)) else [step]
        items = [self._item(part) for part in parts]
        calls = any(isinstance(item, ToolCallItem) for item in items)
        return ModelResponse(
            items=items,
            usage=replace(self._usage),
            finish_reason="tool_calls" if calls else "stop",
            model=self.name,
        )

    def _item(self, part: Any) -> Item:
        if isinstance(part, str):
            return MessageOutputItem(text=part)
        if isinstance(part, ToolCallItem) and not part.call_id:
            return replace(part, call_id=f"call_{next(self._ids)}")
        if isinstance(part, (MessageOutputItem, ReasoningItem, ToolCallItem)):
            return part
        raise UserTypeError(
            "ScriptedModel: expected text, tool_call(...), an item, a list of these, a "
            f"ModelResponse, an exception or a function, got {type(part).__name__}."
        )

    async def _say(self, item: Item, request: ModelRequest, emit: Emit) -> None:
        """Stream an item as a model does."""
        if isinstance(item, MessageOutputItem):
            emit(message_started(item.id))
            for piece in self._pieces(item.text):
                emit(text_delta(piece, item.id))
            if item.refusal:
                emit(refusal_delta(item.refusal, item.id))
        elif isinstance(item, ReasoningItem):
            for piece in self._pieces(item.text):
                emit(reasoning_delta(piece, item.id))
        elif isinstance(item, ToolCallItem):
            emit(call_started(item.call_id, item.name))
            tools: Any = request.tools
            is_read = any(getattr(tool, "streamed_parameters", None) for tool in tools)
            for piece in self._pieces(item.arguments):
                emit(call_delta(item.call_id, piece))
                if is_read:
                    await asyncio.sleep(0)  # a tool with an `ArgumentStream` reads the piece
            if request.on_call is not None and item.kind == "function":
                request.on_call(item)

    def _pieces(self, text: str) -> list[str]:
        return [text[at : at + self._piece] for at in range(0, len(text), self._piece)]
