"""Tools of a bakery, for the playground: `agents-tools dev examples/playground/bakery.py`."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator
from enum import Enum
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from agents_tools import (
    Agent,
    Event,
    NotifyStreamEvent,
    ToolAnnotations,
    ToolArtifactEvent,
    ToolError,
    ToolOutputImage,
    ToolProgressEvent,
    function_tool,
    streaming_tool,
)
from agents_tools.policies import needs_approval

PRICES = {"roll": 0.8, "loaf": 3.2, "cake": 24.0}


class Size(Enum):
    """How large a cake is."""

    SMALL = "small"
    LARGE = "large"


class Line(BaseModel):
    """One line of an order."""

    thing: Literal["roll", "loaf", "cake"]
    number: Annotated[int, Field(ge=1, le=100)] = 1


@function_tool(annotations=ToolAnnotations(title="Add up an order", readOnlyHint=True))
def add_up(
    lines: list[Line], discount: Annotated[float, Field(ge=0, lt=1)] = 0.0
) -> dict[str, float]:
    """Add up what an order costs.

    Args:
        lines: What is ordered.
        discount: The part that is taken off, such as 0.1.
    """
    total = sum(PRICES[line.thing] * line.number for line in lines)
    return {"total": round(total, 2), "to_pay": round(total * (1 - discount), 2)}


@streaming_tool(annotations=ToolAnnotations(title="Bake", destructiveHint=False))
async def bake(
    thing: Literal["roll", "loaf", "cake"], number: int = 5, pause: float = 0.2
) -> AsyncIterator[Event | str]:
    """Bake something, and report its progress.

    Args:
        thing: What to bake.
        number: How many.
        pause: Seconds that each one takes.
    """
    yield NotifyStreamEvent("heating the oven", tag="oven")
    for done in range(1, number + 1):
        await asyncio.sleep(pause)
        yield ToolProgressEvent(done, total=number, message=thing)
        if done == number // 2:
            yield NotifyStreamEvent("the oven is too hot", level="warning", tag="oven")
    yield ToolArtifactEvent("slip.txt", f"{number} x {thing}\n", mime_type="text/plain")
    yield f"{number} x {thing}, still warm"


@function_tool
def draw_cake(
    colour: Annotated[str, Field(pattern="^#[0-9a-f]{6}$")] = "#d08040", size: Size = Size.SMALL
) -> ToolOutputImage:
    """Draw a cake, seen from above.

    Args:
        colour: Its colour, such as #d08040.
        size: How large it is.
    """
    edge = 64 if size is Size.SMALL else 192
    pixel = bytes.fromhex(colour[1:])
    rows = (b"\0" + pixel * edge) * edge
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", edge, edge, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )
    return ToolOutputImage(data=data, mime_type="image/png")


@function_tool(annotations=ToolAnnotations(title="Throw away", destructiveHint=True))
def throw_away(thing: str) -> str:
    """Throw something away for good.

    Args:
        thing: What.
    """
    if thing not in PRICES:
        raise ToolError(f"There is no {thing}; there are: {', '.join(PRICES)}.")
    return f"The {thing} is gone."


@needs_approval
@function_tool
def order_flour(sacks: int) -> str:
    """Order flour, which costs money.

    Args:
        sacks: How many sacks.
    """
    return f"{sacks} sacks are on their way."


baker = Agent(
    name="Baker",
    instructions="You run a bakery. Bake and add up what people ask for.",
    tools=[add_up, bake, order_flour],
    model="local/rules",
)
