"""Our own server, for clients that others have written: `served.py stdio|http|sessions`.

Over HTTP, without sessions or with them, it takes a free port and writes its address. Tools and
clients meet in folders: the one leaves a file there for which the other waits.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from agents_tools import (
    NotifyStreamEvent,
    ToolArtifactEvent,
    ToolContext,
    ToolError,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolProgressEvent,
    ToolResult,
    function_tool,
    streaming_tool,
)
from agents_tools.mcp import prompt, resource, sample, serve_async

PNG = b"\x89PNG\r\n\x1a\n"
PATIENCE = 3_000
"""Hundredths of a second that a tool waits for its client."""


class Shelf(BaseModel):
    """A shelf.

    Attributes:
        name: What it is called.
        boxes: How many boxes stand on it.
    """

    name: str
    boxes: int


@dataclass
class Order:
    tea: str
    grams: int
    shelf: Shelf | None = None


@function_tool
def add(a: int, b: Annotated[int, Field(ge=0)] = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


@function_tool
async def shelf(name: Literal["tea", "cake"]) -> Shelf:
    """Look at a shelf."""
    return Shelf(name=name, boxes=len(name))


@function_tool
def order(orders: list[Order], note: str | None = None) -> str:
    """Order tea."""
    print("a print of a tool corrupts nothing")  # noqa: T201 - that is the point
    grams = sum(one.grams for one in orders)
    shelves = ", ".join(one.shelf.name for one in orders if one.shelf is not None)
    return f"{grams} g for {shelves or 'nobody'} ({note})"


@streaming_tool
async def recite(lines: int, folder: str) -> AsyncGenerator[Any]:
    """Say a line, and the next one only when the client has heard it."""
    yield NotifyStreamEvent("a poem")
    for number in range(1, lines + 1):
        yield ToolProgressEvent(number, total=lines, message=f"line-{number}")
        for _ in range(PATIENCE):
            if (Path(folder) / f"line-{number}").exists():
                break
            await asyncio.sleep(0.01)
        else:
            raise ToolError(f"Nobody has heard line {number}.")
    yield f"{lines} lines"


@streaming_tool
async def burst(lines: int) -> AsyncGenerator[Any]:
    """Report lines without a pause, and return at once."""
    for number in range(1, lines + 1):
        yield ToolProgressEvent(number, total=lines, message=f"line-{number}")
    yield f"{lines} lines"


@function_tool
def fail(how: Literal["told", "crash"]) -> str:
    """Fail."""
    if how == "told":
        raise ToolError("The kettle is empty.")
    raise RuntimeError("the password is hunter2")


@function_tool
def picture() -> ToolOutputImage:
    """Give a picture."""
    return ToolOutputImage(data=PNG, mime_type="image/png")


@function_tool
def mixed() -> ToolResult:
    """Give some of each."""
    return ToolResult(
        content=[
            ToolOutputText("a file:"),
            ToolOutputFileContent(data=b"leaves", mime_type="application/x-tea", filename="tea"),
        ]
    )


@streaming_tool
async def publish() -> AsyncGenerator[Any]:
    """Publish a file while running, and return it."""
    yield ToolArtifactEvent("poem.txt", data=b"roses", mime_type="text/plain")
    yield ToolResult(
        content=[ToolOutputFileContent(data=b"roses", mime_type="text/plain", filename="poem.txt")]
    )


@function_tool
async def measure(ctx: ToolContext[Any]) -> str:
    """Ask for a size."""
    return f"{await ctx.ask('How big?', answer=int)} cm"


@function_tool
async def consult() -> str:
    """Ask the model of the client, which can add."""
    return (await sample("What is 2 + 3?", tools=[add], tool_choice="auto")).text


@function_tool(metadata={"mcp": {"execution": {"taskSupport": "required"}}})
async def grow(ctx: ToolContext[Any], leaves: int) -> str:
    """Grow leaves, only as a task."""
    ctx.progress(1, total=leaves, message="sprouting")
    return f"{leaves} leaves"


@resource("guide://{topic}", mime_type="text/markdown")
def guide(topic: str) -> str:
    """A guide."""
    return f"# {topic}"


@resource("picture://logo")
def logo() -> ToolOutputImage:
    """The logo."""
    return ToolOutputImage(data=PNG, mime_type="image/png")


@prompt
def review(code: str, language: Literal["python", "rust"] = "python") -> str:
    """Review code."""
    return f"Review this {language} code: {code}"


@function_tool
async def wait(folder: str) -> str:
    """Wait without an end."""
    (Path(folder) / "pid").write_text(str(os.getpid()))
    (Path(folder) / "began").touch()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        (Path(folder) / "cancelled").touch()
        raise
    return "never"


TOOLS = [
    add, burst, consult, shelf, order, recite, fail, picture, mixed, publish, measure, grow, wait,
]  # fmt: skip


def ready(url: str) -> None:
    print(url, flush=True)  # noqa: T201 - tells the test where it is


async def main(transport: str) -> None:
    """Serve until the client or a signal ends it."""
    options: dict[str, Any] = {
        "name": "tea",
        "instructions": "Ask for tea.",
        "resources": [guide, logo],
        "prompts": [review],
    }
    if not metadata.version("mcp").startswith("1."):  # which has no tasks
        options["tasks"] = ["grow"]
    if transport == "stdio":
        await serve_async(TOOLS, "stdio", **options)
    else:
        stateless = transport == "http"
        await serve_async(
            TOOLS, "http", port=0, on_ready=ready, stateless=stateless, auth=False, **options
        )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
