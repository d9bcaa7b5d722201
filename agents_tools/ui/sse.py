"""Runs over HTTP as server-sent events: started, watched, resumed, decided about and cancelled."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from agents_tools.ui._frames import frame_of
from agents_tools.ui.ndjson import event_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agents_tools._listener import TokenVerifier
    from agents_tools.events import Event
    from agents_tools.run import RunConfig
    from agents_tools.store import EventStore
    from agents_tools.ui._asgi import Request
    from agents_tools.ui._native import NativeApp
    from agents_tools.ui._runs import OnDisconnect, Runs, Target

__all__ = ["CONTENT_TYPE", "app", "decode", "encode"]

CONTENT_TYPE = "text/event-stream"
"""The media type of an event stream."""


def app(
    target: Target,
    *,
    store: EventStore | None = None,
    on_disconnect: OnDisconnect | None = None,
    heartbeat: float | None = 15.0,
    auth: str | TokenVerifier | None = None,
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
    run_config: RunConfig | None = None,
    context: Callable[[Request], Any] | None = None,
    errors: Literal["hide", "show"] = "hide",
    runs: Runs | None = None,
    **limits: Any,
) -> NativeApp:
    """Serve an agent, or tools, over HTTP: an ASGI app for uvicorn, Starlette or FastAPI.

    `POST /runs` starts a run and answers with its events; `GET /runs/{id}/events` watches one,
    from any event on; `POST /runs/{id}/cancel` and `POST /runs/{id}/approvals` decide about it.

    Args:
        target: An agent, or tools: then each call is a run.
        store: Keeps the events, so that runs of an earlier process can still be read.
        on_disconnect: What happens to a run when the last one who watches it goes: `cancel`, or
            `detach` to let it go on. By default `detach` where there is a store, else `cancel`.
        heartbeat: After how many silent seconds a comment is sent; `None` for never.
        auth: A bearer token, or an object with `verify_token(token)`.
        allowed_hosts: Values of the Host header beside loopback: `example.com`, `*.example.com`.
        allowed_origins: Values of the Origin header of web pages that may call.
        run_config: How runs are done.
        context: Gives what tools see as `ctx.context`, from the request; sync or async.
        errors: What clients are told of exceptions other than the library's own and `ToolError`:
            `hide` gives the type and an id that stands in the log, `show` the message.
        runs: Holds the runs, where several apps share them; whoever made it closes it.
        **limits: `max_body`, `max_concurrency`, `body_timeout`, `required_scopes` and `host` of the
            listener; `max_turns` of each run; `keep_runs`, `keep_for`, `max_running` and `secrets`
            of `Runs`.

    Raises:
        UserError: What is given cannot work.
    """
    from agents_tools.ui._native import NativeApp

    return NativeApp(
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
        **limits,
    )


def encode(events: Iterable[Event], run_id: str = "") -> Iterator[str]:
    """Give each event as one frame.

    Args:
        events: The events.
        run_id: The run they are of; it is part of the ids by which a client resumes.

    Raises:
        UserError: An event has no JSON form.
    """
    for event in events:
        yield frame_of(event, run_id).decode()


def decode(text: str | Iterable[str]) -> Iterator[Event]:
    """Read what `encode` gave, or what the app sent; comments are passed over.

    Args:
        text: A text, or its lines one by one.

    Raises:
        UserError: The data of a frame is no event; the message gives its number.
    """
    lines = _LINE_END.split(text)[:-1] if isinstance(text, str) else text
    data: list[str] = []
    number = 0
    for given in lines:
        line = given.rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            number += 1
            yield event_of("\n".join(data), f"frame {number}")
            data.clear()


_LINE_END = re.compile(r"\r\n|\n|\r")
