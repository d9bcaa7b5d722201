"""Tools of every kind that the command line has to cope with."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from agents_tools import (
    Event,
    NotifyStreamEvent,
    ToolArtifactEvent,
    ToolContext,
    ToolDeniedError,
    ToolError,
    ToolOutputImage,
    ToolOutputText,
    ToolProgressEvent,
    ToolResult,
    function_tool,
    streaming_tool,
)


class Point(TypedDict, total=False):
    """A place."""

    x: float
    y: float


class Filter(BaseModel):
    """What to keep."""

    field: str
    values: list[int] = []
    child: Filter | None = None


@function_tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


@function_tool
def echo(
    text: str = "",
    count: int = 1,
    ratio: float = 0.5,
    loud: bool = False,
    color: Literal["red", "blue", 3] = "red",
    tags: list[str] = [],  # noqa: B006 - a default of the schema
    sizes: list[int] | None = None,
    point: Point | None = None,
    filter: Filter | None = None,
    either: int | str = 0,
    level: Annotated[int, Field(ge=0, le=9, description="How much.")] = 4,
    timeout: float = 1.0,
) -> dict[str, Any]:
    """Give back what was sent.

    Args:
        text: Any text.
        loud: Whether to shout.
        color: Which colour.
    """
    given = locals()
    filter_given = given.pop("filter")
    return {**given, "filter": filter_given and filter_given.model_dump()}


@function_tool
def explode(kind: str = "value") -> str:
    """Fail in one of several ways.

    Args:
        kind: Which.
    """
    if kind == "tool":
        raise ToolError("The index is being rebuilt. Try again in a minute.")
    if kind == "denied":
        raise ToolDeniedError("Not on a Sunday.")
    raise ValueError("a bad \x1b[31mvalue\x1b[0m")


@streaming_tool
async def pipeline(source: str, steps: int = 3) -> AsyncIterator[Event | str]:
    """Parse a source, step by step.

    Args:
        source: Where the data is.
        steps: How many.
    """
    print("a print of the tool")  # noqa: T201 - as tools do
    yield NotifyStreamEvent(f"connecting to {source}\x1b[2J")
    for step in range(steps):
        yield ToolProgressEvent(step + 1, total=steps, message="parsing")
    yield NotifyStreamEvent("one ", is_delta=True)
    yield NotifyStreamEvent("line\nand ", is_delta=True)
    yield NotifyStreamEvent("a rest", is_delta=True)
    yield NotifyStreamEvent("careful", level="warning")
    await inner.invoke(word="hi")
    yield ToolArtifactEvent("../report.txt", data="a report", mime_type="text/plain")
    yield f"parsed {source}"


@function_tool
async def inner(ctx: ToolContext, word: str) -> str:
    """Say a word.

    Args:
        word: The word.
    """
    ctx.notify(f"inside: {word}")
    return word


@function_tool
async def sleep_long(marker: str = "", stubborn: bool = False) -> str:
    """Wait for ever, and clean up when stopped.

    Args:
        marker: A file to write when started and when cleaned up.
        stubborn: Whether to go on when cancelled.
    """
    path = Path(marker) if marker else None
    if path:
        await asyncio.to_thread(path.write_text, "started")
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        while stubborn:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue
        raise
    finally:
        if path:
            path.write_text("cleaned up")
    return "never"


@function_tool
def picture() -> list[ToolOutputText | ToolOutputImage]:
    """Paint."""
    png = b"\x89PNG\r\n\x1a\n" + b"0" * 20
    return [ToolOutputText("A picture:"), ToolOutputImage(data=png)]


@function_tool
def soft_failure() -> ToolResult:
    """Answer that it did not work."""
    return ToolResult(content="no luck", structured={"luck": 0}, is_error=True)


@function_tool
def big(lines: int = 10_000) -> str:
    """Give much text.

    Args:
        lines: How many lines.
    """
    return "\n".join(f"line {n}" for n in range(lines))


@function_tool
def environment() -> str:
    """Give the process id."""
    return str(os.getpid())


def plain(name: str, times: int = 1) -> str:
    """Greet.

    Args:
        name: Whom.
        times: How often.
    """
    return f"hello {name} " * times


class Shelf:
    """Holds tools that are methods."""

    def __init__(self) -> None:
        self.items = ["a", "b"]

    @function_tool
    def items_of(self, prefix: str = "") -> list[str]:
        """List the items.

        Args:
            prefix: How they begin.
        """
        return [prefix + item for item in self.items]


shelf = Shelf()
named = {"sum": add, "echo": echo}
