"""AG-UI: what runs say in the protocol of CopilotKit and others, and an app that serves an agent.

`app(agent)` answers the requests of AG-UI clients. `encode(events)` gives the same frames of
events from anywhere, and an `Encoder` gives them one by one. Versions 1.0 and 0.x are spoken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from agents_tools.ui._ag_ui_encoder import PROTOCOL_VERSION, Encoder
from agents_tools.ui._ag_ui_questions import RESPONSE_SCHEMA
from agents_tools.ui._written import written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from agents_tools._listener import TokenVerifier
    from agents_tools.agent import Agent
    from agents_tools.events import Event
    from agents_tools.run import RunConfig
    from agents_tools.store import EventStore
    from agents_tools.ui._ag_ui_app import AgUiApp
    from agents_tools.ui._ag_ui_frames import Version
    from agents_tools.ui._ag_ui_messages import Frame
    from agents_tools.ui._asgi import Request
    from agents_tools.ui._runs import OnDisconnect, Runs

__all__ = ["PROTOCOL_VERSION", "RESPONSE_SCHEMA", "Encoder", "app", "encode", "frame_text"]


def app(
    agent: Agent[Any],
    *,
    version: Version | None = None,
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
    client_tools: bool = True,
    client_instructions: bool = False,
    max_turns: int | None = 10,
    **limits: Any,
) -> AgUiApp:
    """Serve an agent to clients of AG-UI: an ASGI app for uvicorn, Starlette or FastAPI.

    `POST /` runs the agent and answers with the events of the run. A call that needs approval ends
    the run with an interrupt, and `resume` of the next request goes on with it. `POST /connect`
    watches the newest run of a thread, `POST /cancel` stops one, `GET /` tells what there is.

    Args:
        agent: The agent.
        version: What clients understand: `1.0`, or `0.x` for those before it. By default what
            their requests say; those before 1.0 say nothing.
        store: Keeps the events of runs.
        on_disconnect: What happens to a run when the last one who watches it goes: `cancel`, or
            `detach` to let it go on. By default `detach` where there is a store, else `cancel`.
        heartbeat: After how many silent seconds a comment is sent; `None` for never.
        auth: A bearer token, or an object with `verify_token(token)`.
        allowed_hosts: Values of the Host header beside loopback: `example.com`, `*.example.com`.
        allowed_origins: Values of the Origin header of web pages that may call.
        run_config: How runs are done.
        context: Gives what tools see as `ctx.context`, from the request; sync or async. The body
            of the request, with `state` and `forwardedProps`, is `await request.json()`.
        errors: What clients are told of exceptions other than the library's own and `ToolError`:
            `hide` gives the type and an id that stands in the log, `show` the message.
        runs: Holds the runs, where several apps share them; whoever made it closes it.
        client_tools: Whether clients may bring tools that they run themselves.
        client_instructions: Whether messages of the roles system and developer are taken from
            clients; they are left out otherwise.
        max_turns: How often the model is asked at most in one run.
        **limits: `max_body`, `max_concurrency`, `body_timeout`, `required_scopes` and `host` of the
            listener; `keep_runs`, `keep_for`, `max_running` and `secrets` of `Runs`.

    Raises:
        UserError: What is given cannot work.
    """
    from agents_tools.ui._ag_ui_app import AgUiApp

    return AgUiApp(
        agent,
        version=version,
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
        client_tools=client_tools,
        client_instructions=client_instructions,
        max_turns=max_turns,
        **limits,
    )


def encode(
    events: Iterable[Event],
    *,
    version: Version = "1.0",
    thread_id: str = "",
    run_id: str = "",
    messages: Iterable[Mapping[str, Any]] | None = None,
    errors: Literal["hide", "show"] = "show",
) -> Iterator[str]:
    """Give the events of one run as the text of an AG-UI stream, frame by frame.

    What is still open when the events end is ended as cancelled.

    Args:
        events: The events, in their order.
        version: What the client understands: `1.0`, or `0.x` for the versions before it.
        thread_id: The conversation; the id of the run by default.
        run_id: The id of the run; by default the one that the events give.
        messages: What the client sent along.
        errors: Whether the client gets the words of an error that ends the run.
    """
    encoder = Encoder(
        version=version, thread_id=thread_id, run_id=run_id, messages=messages, errors=errors
    )
    for event in events:
        for frame in encoder.encode(event):
            yield frame_text(frame)
    for frame in encoder.close():
        yield frame_text(frame)


def frame_text(frame: Frame) -> str:
    """Give a frame as the text that is sent: one line of JSON, and an empty one."""
    return f"data: {written(frame).decode()}\n\n"
