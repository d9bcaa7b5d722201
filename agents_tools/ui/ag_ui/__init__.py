"""Stream runs to AG-UI clients such as CopilotKit, and serve an agent to them.

`app(agent)` is an ASGI app for AG-UI clients. `encode(events)` yields the same frames for any
events, and `AgUiEncoder` encodes single events. Protocol versions 1.0 and 0.x are supported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack

from agents_tools.server.safe_json import written
from agents_tools.ui.ag_ui.encoder import PROTOCOL_VERSION, AgUiEncoder
from agents_tools.ui.ag_ui.interrupts import RESPONSE_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from agents_tools.agents.agent import Agent
    from agents_tools.agents.config import RunConfig
    from agents_tools.events.base import Event
    from agents_tools.persistence import RunStore
    from agents_tools.server.application import HttpRequest
    from agents_tools.server.http_security import TokenVerifier
    from agents_tools.server.run_manager import OnDisconnect, RunManager
    from agents_tools.ui._app_limits import AppLimits
    from agents_tools.ui.ag_ui.asgi_app import AgUiApp
    from agents_tools.ui.ag_ui.frames import Version
    from agents_tools.ui.ag_ui.messages import Frame

__all__ = ["PROTOCOL_VERSION", "RESPONSE_SCHEMA", "AgUiEncoder", "app", "encode", "frame_text"]


def app(
    agent: Agent[Any, Any],
    *,
    version: Version | None = None,
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
    client_tools: bool = True,
    client_instructions: bool = False,
    max_turns: int | None = 10,
    **limits: Unpack[AppLimits],
) -> AgUiApp:
    """Create an ASGI app that serves an agent to AG-UI clients.

    `POST /` runs the agent and streams the events of the run. A call that needs approval ends the
    run with an interrupt; the next request continues it with `resume`. `POST /connect` streams the
    newest run of a thread, `POST /cancel` cancels it, and `GET /` describes the agent.

    Args:
        agent: The agent.
        version: The protocol version of the clients: `1.0`, or `0.x` for earlier versions. By
            default, it is read from each request; a request without a version is `0.x`.
        store: Stores the events of the runs.
        on_disconnect: What happens to a run when its last client disconnects: `cancel`, or
            `detach` to continue. The default is `detach` with a store, `cancel` otherwise.
        heartbeat: The seconds without data after which a comment is sent; `None` to send none.
        auth: A bearer token, or an object with `verify_token(token)`.
        allowed_hosts: Accepted values of the Host header, besides loopback: `example.com`,
            `*.example.com`.
        allowed_origins: Origins of other web pages that can call the app.
        run_config: The settings of the runs.
        context: Returns the `ctx.context` of tools from the request; sync or async. The body of the
            request, with `state` and `forwardedProps`, is `await request.json()`.
        errors: How clients see exceptions other than `ToolError` and those of the library: `hide`
            sends the type and an id to search for in the log, `show` sends the message.
        runs: A shared `RunManager`. Close it yourself; by default the app has its own.
        client_tools: Whether clients can provide tools that they run themselves.
        client_instructions: Whether messages with the role system or developer are accepted from
            clients. Otherwise they are ignored.
        max_turns: The largest number of model calls in one run.
        **limits: See `agents_tools.ui.AppLimits`.

    Raises:
        UserError: An argument is invalid.
    """
    from agents_tools.ui._app_limits import split_limits
    from agents_tools.ui.ag_ui.asgi_app import AgUiApp

    listener, limits_of_runs = split_limits("ag_ui.app", app, limits)
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
        listener=listener,
        **limits_of_runs,
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
    """Yield the events of one run as the frames of an AG-UI stream.

    Messages and calls that are still open when the events end are closed as cancelled.

    Args:
        events: The events, in order.
        version: The protocol version of the client: `1.0`, or `0.x` for earlier versions.
        thread_id: The id of the conversation; by default the id of the run.
        run_id: The id of the run; by default the id in the events.
        messages: The messages of the request of the client.
        errors: Whether the client gets the message of an error that ends the run.
    """
    encoder = AgUiEncoder(
        version=version, thread_id=thread_id, run_id=run_id, messages=messages, errors=errors
    )
    for event in events:
        for frame in encoder.encode(event):
            yield frame_text(frame)
    for frame in encoder.close():
        yield frame_text(frame)


def frame_text(frame: Frame) -> str:
    """Return a frame as a server-sent event with one line of JSON."""
    return f"data: {written(frame).decode()}\n\n"
