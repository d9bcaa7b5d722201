"""Agents of every kind that `run` has to cope with, with scripted models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents_tools import (
    Agent,
    Event,
    NotifyStreamEvent,
    RunConfig,
    ToolContext,
    ToolDeniedError,
    ToolProgressEvent,
    Usage,
    function_tool,
    streaming_tool,
)
from agents_tools.errors import ModelError
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call

USAGE = Usage(requests=1, input_tokens=1000, output_tokens=50)


def scripted(*steps: Any) -> ScriptedModel:
    return ScriptedModel(steps, usage=USAGE)


@streaming_tool
async def dig(pages: int = 40) -> AsyncIterator[Event | str]:
    """Dig through the archive.

    Args:
        pages: How many pages.
    """
    yield NotifyStreamEvent("opening the archive")
    for page in range(1, pages + 1):
        yield ToolProgressEvent(page, total=pages, message="pages")
        await asyncio.sleep(0)
    yield NotifyStreamEvent("two pages are torn", level="warning")
    yield "found \x1b[31mit\x1b[0m"


@needs_approval
@function_tool
def burn(book: str) -> str:
    """Burn a book.

    Args:
        book: Which.
    """
    return f"{book} is gone"


@function_tool
async def burn_inside(book: str) -> str:
    """Burn a book by another call.

    Args:
        book: Which.
    """
    return await burn.invoke(book=book)


@function_tool
async def ask_name(context: ToolContext[Any]) -> str:
    """Ask for the name."""
    return f"the name is {await context.ask('Who are you?')}"


@function_tool
async def hang(marker: str, *, stubborn: bool = False) -> str:
    """Wait for a long time.

    Args:
        marker: A file that says how it goes.
        stubborn: Whether it does not listen.
    """
    file = Path(marker)
    file.write_text("started")  # noqa: ASYNC240
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if not stubborn:
                file.write_text("cleaned up")  # noqa: ASYNC240
                raise


@function_tool(failure_error_function=None)
def explode(kind: str) -> str:
    """Raise.

    Args:
        kind: What.
    """
    raise {"denied": ToolDeniedError("not today"), "value": ValueError("a bad value")}[kind]


class Answer(BaseModel):
    """An answer."""

    text: str
    pages: list[int]


plain = Agent("Plain", model=scripted("# Hello\n\nI am **plain**.\x1b]0;title\x07"))
silent = Agent("Silent", model=scripted("", ""))
typed = Agent("Typed", output_type=Answer, model=scripted('{"text": "é", "pages": [1, 2]}'))
digger = Agent(
    "Digger", tools=[dig], model=scripted(["I dig.", tool_call("dig", {})], "It is on page 7.")
)
boss = Agent(
    "Boss",
    tools=[digger.as_tool("ask_digger", "Ask the digger.", streaming=True)],
    model=scripted(["A colleague knows.", tool_call("ask_digger", input="dig!")], "Page 7."),
)
burner = Agent(
    "Burner",
    tools=[burn, dig],
    model=scripted(
        [tool_call("burn", book="A\u202eB", call_id="c1"), tool_call("dig", {}, call_id="c2")],
        "Done as told.",
    ),
)
librarian = Agent(
    "Librarian",
    tools=[burn],
    model=scripted(
        [tool_call("burn", book=book) for book in ("A", "B")], tool_call("burn", book="C"), "Warm."
    ),
)
finisher = Agent("Burner", tools=[burn, dig], model=scripted("Done, later."))
deep = Agent(
    "Deep",
    tools=[
        Agent(
            "Inner", tools=[burn], model=scripted(tool_call("burn", book="B"), "Inner is done.")
        ).as_tool("ask_inner", run_config=RunConfig(max_tool_calls=5))
    ],
    model=scripted(tool_call("ask_inner", input="go"), "Deep is done."),
)
asker = Agent("Asker", tools=[ask_name], model=scripted(tool_call("ask_name"), "Nice to meet you."))
hanger = Agent("Hanger", tools=[hang], model="local/rules")
endless = Agent("Endless", tools=[dig], model=scripted(*[tool_call("dig", pages=1)] * 9))
denied = Agent("Denied", tools=[explode], model=scripted(tool_call("explode", kind="denied")))
broken = Agent("Broken", tools=[explode], model=scripted(tool_call("explode", kind="value")))
offline = Agent("Offline", model=scripted(ModelError("no \x1b[31mconnection", status=401)))
modelless = Agent("Modelless", tools=[dig])
