"""Stream runs to the Vercel AI SDK: its UI message stream, versions 5 to 7.

`encode(events)` yields the frames of one message, and `VercelEncoder` encodes single events.
`app(agent)` is an ASGI application for `useChat`.

| event | part of the message |
|---|---|
| text or reasoning of the model | `text` and `reasoning` parts, one step for each answer |
| a tool call of the agent | a `dynamic-tool` part with input and output |
| progress, output lines, calls of sub-agents | a `data-agents-tool` part for each call |
| a call that waits for approval | its approval; in version 5 a `data-agents-tool-approval` part |
| an artifact | a `file` or `source-url` part |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agents_tools._package import lazy_exports
from agents_tools.ui.vercel.encoder import VercelEncoder, Version
from agents_tools.ui.vercel.text import DONE, HEADERS, frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agents_tools.events.base import Event
    from agents_tools.ui.vercel.asgi_app import app as app

# Encoding alone needs neither agents nor HTTP.
__getattr__, __dir__, _ = lazy_exports(
    __name__,
    {"asgi_app": ("app",)},
    requires={"asgi_app": "pip install -U 'agents-tools[ui]'"},
)

__all__ = ["DONE", "HEADERS", "VercelEncoder", "Version", "app", "encode", "frame"]


def encode(events: Iterable[Event], version: Version = 7, **options: object) -> Iterator[str]:
    """Yield the frames of one message as server-sent events.

    Args:
        events: The events of one run, in order.
        version: The major version of the npm package `ai` in the page.
        options: Other options of `VercelEncoder`.
    """
    encoder = VercelEncoder(version, **cast("dict[str, Any]", options))
    for event in events:
        for chunk in encoder.encode(event):
            yield frame(chunk)
    for chunk in encoder.close():
        yield frame(chunk)
    yield DONE
