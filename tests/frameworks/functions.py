"""Plain functions with types, and nothing else: what a user has before choosing a framework."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from agents_tools import (
    NotifyStreamEvent,
    ToolContext,
    ToolOutputImage,
    ToolOutputText,
    ToolProgressEvent,
    progress,
)

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A picture of one pixel, as PNG."""


def to_url(data: bytes) -> str:
    """Return a picture as a URL."""
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


bodies: list[str] = []
"""The functions whose body has begun, in order; the checks empty it."""
finished: list[str] = []
"""The functions whose `finally` has run; the checks empty it."""


class Room(Enum):
    """A kind of room."""

    SINGLE = "single"
    DOUBLE = "double"


@dataclass
class Guest:
    """Who stays.

    Attributes:
        name: The name.
        born: The day of birth.
    """

    name: str
    born: date


class Stay(BaseModel):
    """A stay in a hotel."""

    guest: Guest
    room: Room = Room.SINGLE
    nights: Annotated[int, Field(ge=1, le=30)] = 1


def book(
    stay: Stay,
    arrival: datetime,
    board: Literal["none", "breakfast"] = "none",
    discount: Annotated[float, Field(ge=0, le=0.5)] = 0.0,
) -> str:
    """Book a stay.

    Args:
        stay: Who stays, and how long.
        arrival: When they come.
        board: Which meals.
        discount: Which part of the price is let off.
    """
    bodies.append("book")
    guest = stay.guest
    kinds = "/".join(type(value).__name__ for value in (stay, guest, guest.born, arrival))
    return (
        f"{guest.name} ({guest.born.year}) {stay.room.value} {stay.nights} "
        f"{arrival.isoformat()} {board} {discount} as {kinds}/{type(stay.room).__name__}"
    )


def totals(amounts: list[int], prices: dict[str, float]) -> dict[str, Any]:
    """Add things up.

    Args:
        amounts: How many of each.
        prices: What each costs.
    """
    bodies.append("totals")
    return {"amount": sum(amounts), "price": sum(prices.values()), "names": sorted(prices)}


def greet(name: str, title: str | None = None, times: int = 1) -> str:
    """Greet somebody.

    Args:
        name: Who.
        title: Their title.
        times: How often.
    """
    bodies.append("greet")
    return " ".join([f"Hello {title + ' ' if title else ''}{name}!"] * times)


async def crawl(pages: int) -> AsyncIterator[Any]:
    """Go through pages, and tell how far it is.

    Args:
        pages: How many.
    """
    bodies.append("crawl")
    for page in range(1, pages + 1):
        yield ToolProgressEvent(page, total=pages, message=f"page {page}")
        await asyncio.sleep(0)
    yield f"{pages} pages read"


def pack(boxes: int) -> Iterator[Any]:
    """Pack boxes, and tell of each.

    Args:
        boxes: How many.
    """
    bodies.append("pack")
    for box in range(1, boxes + 1):
        yield NotifyStreamEvent(f"box {box}")
    yield f"{boxes} boxes packed"


def fail(reason: str) -> str:
    """Fail.

    Args:
        reason: Why.
    """
    bodies.append("fail")
    raise ValueError(f"it failed because of {reason}")


async def wait(note: str) -> str:
    """Wait until nobody wants to know any more.

    Args:
        note: What for.
    """
    bodies.append("wait")
    try:
        await asyncio.Event().wait()
    finally:
        finished.append("wait")
    return note


def chart(title: str) -> list[ToolOutputText | ToolOutputImage]:
    """Draw a chart.

    Args:
        title: What it is called.
    """
    bodies.append("chart")
    return [ToolOutputText(f"chart {title}"), ToolOutputImage(data=PIXEL)]


def tally(first: int, /, *rest: int, unit: str = "pieces") -> str:
    """Count what there is.

    Args:
        first: The first count.
        rest: More counts.
        unit: What is counted.
    """
    bodies.append("tally")
    return f"{first + sum(rest)} {unit}"


async def whoami(ctx: ToolContext[Any], prefix: str) -> str:
    """Return who is called.

    Args:
        ctx: The call.
        prefix: What to say first.
    """
    bodies.append("whoami")
    return f"{prefix} {ctx.tool_name} {ctx.tool_call_id}"


def crunch(steps: int) -> str:
    """Work in a thread, and tell how far it is.

    Args:
        steps: How much.
    """
    bodies.append("crunch")
    for step in range(1, steps + 1):
        progress(step, steps)
    return f"{steps} steps done"


FUNCTIONS: dict[str, Any] = {
    function.__name__: function
    for function in (
        book,
        totals,
        greet,
        crawl,
        pack,
        fail,
        wait,
        chart,
        tally,
        whoami,
        crunch,
    )
}
"""All of them, by name."""
