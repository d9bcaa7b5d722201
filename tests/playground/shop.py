"""A target of the playground: a shop whose agent has a scripted model."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

from agents_tools import Agent, ToolProgressEvent, function_tool, streaming_tool
from agents_tools.agents.model import (
    ModelRequest,
    ModelResponse,
    message_started,
    text_delta,
)
from agents_tools.content.items import MessageInputItem, MessageOutputItem, ToolCallItem
from agents_tools.content.usage import Usage
from agents_tools.errors import ModelError
from agents_tools.playground.attachments import text_of
from agents_tools.policies import needs_approval

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

ANSWER = """## Prices

Here is what I **found** in the *list*:

| thing | price |
|-------|------:|
| roll  | 0.80  |
| cake  | 24.00 |

1. First, compare.
2. Then order with `order(sacks=3)`.
   - mind the [terms](https://example.com/terms)

```python
print("hello")
```

> Prices are without taxes. <b>Not bold.</b> [No link](javascript:alert(1))
"""
CALLS = {"price": '{"thing": "roll"}', "bake": '{"number": 4}', "order": '{"sacks": 3}'}


@function_tool
def price(thing: str) -> list[dict[str, Any]]:
    """Return the prices.

    Args:
        thing: The thing.
    """
    return [{"thing": thing, "price": 0.8}, {"thing": "cake", "price": 24.0, "sizes": [1, 2]}]


@streaming_tool
async def bake(number: int) -> AsyncGenerator[Any]:
    """Bake rolls.

    Args:
        number: How many.
    """
    for done in range(1, number + 1):
        await asyncio.sleep(0.1)
        yield ToolProgressEvent(done, total=number, message="rolls")
    yield f"{number} rolls"


@needs_approval
@function_tool
def order(sacks: int) -> str:
    """Order flour.

    Args:
        sacks: How many sacks.
    """
    return f"{sacks} sacks are on their way."


class Scripted:
    """Calls the tools whose names are in the last message, then answers in Markdown.

    The word `retry` lets the first request of the process fail.
    """

    name = "test/scripted"
    provider = None

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._has_failed = False

    async def respond(self, request: ModelRequest, emit: Any) -> ModelResponse:
        """Return the response of the script."""
        await asyncio.sleep(0.1)
        items = list(request.input)
        sent = [at for at, item in enumerate(items) if isinstance(item, MessageInputItem)]
        words = text_of(items[sent[-1]].to_dict()["content"]).split()
        usage = Usage(requests=1, input_tokens=100 + len(items), output_tokens=42, cost=0.0012)
        if "retry" in words and not self._has_failed:
            self._has_failed = True
            raise ModelError("The model is overloaded.", retryable=True)
        calls = [
            ToolCallItem(call_id=f"c{next(self._numbers)}", name=name, arguments=arguments)
            for name, arguments in CALLS.items()
            if name in words
        ]
        if calls and sent[-1] == len(items) - 1:
            return ModelResponse(items=calls, usage=usage, model=self.name)
        last = " ".join(words)
        answer = ANSWER if "price" in words else f"Message {len(sent)} was **{last}**."
        emit(message_started())
        for start in range(0, len(answer), 12):
            emit(text_delta(answer[start : start + 12]))
            await asyncio.sleep(0.005)
        items = [MessageOutputItem(text=answer)]
        return ModelResponse(items=items, usage=usage, model=self.name)


clerk = Agent(
    name="Clerk",
    instructions="You run a shop. Answer in Markdown.",
    tools=[price, bake, order],
    model=Scripted(),
)
