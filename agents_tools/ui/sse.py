"""Serve runs over HTTP as server-sent events: start, watch, resume, approve and cancel them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, Unpack

from agents_tools.persistence.stream.masking import masked_events
from agents_tools.ui._frames import frame_of
from agents_tools.ui.ndjson import event_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agents_tools.agents.config import RunConfig
    from agents_tools.events.base import Event
    from agents_tools.persistence import RunStore
    from agents_tools.server.application import HttpRequest
    from agents_tools.server.http_security import TokenVerifier
    from agents_tools.server.run_manager import OnDisconnect, RunManager, Target
    from agents_tools.ui._app_limits import AppLimits
    from agents_tools.ui._sse_app import SseApp

__all__ = ["CONTENT_TYPE", "app", "decode", "encode"]

CONTENT_TYPE = "text/event-stream"
"""The media type of an event stream."""


def app(
    target: Target,
    *,
    store: RunStore | None = None,
    on_disconnect: OnDisconnect | None = None,
    heartbeat: float | None = 15.0,
    auth: str | TokenVerifier | None = None,
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
    run_config: RunConfig | None = None,
    context: Callable[[HttpRequest], Any] | None = None,
    errors: Literal["hide", "show"] = "hide",
    runs: RunManager | None = None,
    max_turns: int | None = 10,
    **limits: Unpack[AppLimits],
) -> SseApp:
    """Create an ASGI app that serves an agent or tools, for uvicorn, Starlette or FastAPI.

    `POST /runs` starts a run and streams its events. `GET /runs/{id}/events` streams the events of
    a run from any event on. `POST /runs/{id}/cancel` cancels a run,
    `POST /runs/{id}/calls/{call_id}/cancel` one of its calls, and `POST /runs/{id}/approvals` sends
    decisions about its calls.

    Args:
        target: An agent, or tools. With tools, each call is a run.
        store: Stores the events, so that runs of an earlier process can still be read.
        on_disconnect: What happens to a run when its last client disconnects: `cancel`, or
            `detach` to continue. The default is `detach` with a store, `cancel` otherwise.
        heartbeat: The seconds without data after which a comment is sent; `None` to send none.
        auth: A bearer token, or an object with `verify_token(token)`.
        allowed_hosts: Accepted values of the Host header, besides loopback: `example.com`,
            `*.example.com`.
        allowed_origins: Origins of other web pages that can call the app.
        run_config: The settings of the runs.
        context: Returns the `ctx.context` of tools from the request; sync or async.
        errors: How clients see exceptions other than `ToolError` and those of the library: `hide`
            sends the type and an id to search for in the log, `show` sends the message.
        runs: A shared `RunManager`. Close it yourself; by default the app has its own.
        max_turns: The largest number of model calls in one run.
        **limits: See `agents_tools.ui.AppLimits`.

    Raises:
        UserError: An argument is invalid.
    """
    from agents_tools.ui._app_limits import split_limits
    from agents_tools.ui._sse_app import SseApp

    listener, limits_of_runs = split_limits("sse.app", app, limits)
    return SseApp(
        target,
        store=store,
        on_disconnect=on_disconnect,
        heartbeat=heartbeat,
        auth=auth,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
        run_config=run_config,
        context=context,
        errors=errors,
        runs=runs,
        max_turns=max_turns,
        listener=listener,
        **limits_of_runs,
    )


def encode(events: Iterable[Event], run_id: str = "") -> Iterator[str]:
    """Yield each event as one frame.

    Args:
        events: The events.
        run_id: The id of the run. It is part of the frame ids with which a client resumes.

    Raises:
        UserError: An event has no JSON form.
    """
    for event in masked_events(events):
        yield frame_of(event, run_id).decode()


def decode(text: str | Iterable[str]) -> Iterator[Event]:
    """Yield the events of frames from `encode` or from the app. Comments are ignored.

    Args:
        text: A string, or its lines.

    Raises:
        UserError: The data of a frame is not an event. The message has the number of the frame.
    """
    lines = _LINE_END.split(text)[:-1] if isinstance(text, str) else text
    data: list[str] = []
    number = 0
    for raw in lines:
        line = raw.rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            number += 1
            yield event_of("\n".join(data), f"frame {number}")
            data.clear()


_LINE_END = re.compile(r"\r\n|\n|\r")
