"""Runs in user interfaces made with the Vercel AI SDK: its UI message stream, versions 5 to 7.

`encode(events)` gives the frames of one message; `Encoder` gives them event by event; `app(agent)`
is an ASGI application that `useChat` talks to.

| what happens | in the message |
|---|---|
| the model speaks or thinks | `text` and `reasoning` parts, one step for each answer |
| the agent calls a tool | a `dynamic-tool` part with input and output |
| progress, lines, calls of sub-agents | a `data-agents-tool` part for each call |
| a call waits for approval | the approval of its part; in version 5 `data-agents-tool-approval` |
| an artifact | a `file` or `source-url` part |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.ui._vercel_encoder import Encoder, Version
from agents_tools.ui._vercel_text import DONE, HEADERS, frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agents_tools.events import Event
    from agents_tools.ui._vercel_app import app

__all__ = ["DONE", "HEADERS", "Encoder", "Version", "app", "encode", "frame"]


def encode(events: Iterable[Event], version: Version = 7, **options: Any) -> Iterator[str]:
    """Give the frames of one message, as text of an event stream.

    Args:
        events: The events of one run, in their order.
        version: The major version of the npm package `ai` that reads.
        options: More of what `Encoder` takes.
    """
    encoder = Encoder(version, **options)
    for event in events:
        for chunk in encoder.encode(event):
            yield frame(chunk)
    for chunk in encoder.close():
        yield frame(chunk)
    yield DONE


def __getattr__(name: str) -> Any:
    if name == "app":  # who only encodes needs neither agents nor HTTP
        from agents_tools.ui._vercel_app import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
