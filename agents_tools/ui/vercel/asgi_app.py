"""The ASGI application for `useChat` of the Vercel AI SDK."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from agents_tools.agents.agent import Agent
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.server.application import Application, JsonResponse, empty_response
from agents_tools.server.http_errors import HttpError, shown
from agents_tools.server.http_security import inner_path
from agents_tools.server.response_stream import FrameResponse
from agents_tools.server.run_manager import ActiveRun, OnDisconnect, RunManager, runs_for
from agents_tools.text.output import release_json
from agents_tools.ui._app_limits import AppLimits, split_limits
from agents_tools.ui.vercel.encoder import VERSIONS, VercelEncoder
from agents_tools.ui.vercel.messages import items_of, parse_request
from agents_tools.ui.vercel.text import DONE, HEADERS, LATEST, WITH_APPROVALS, frame
from agents_tools.ui.vercel.tool_parts import approval_id
from agents_tools.ui.vercel.ui_message import UIMessageBuilder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from starlette.responses import Response

    from agents_tools.agents.config import RunConfig
    from agents_tools.events.base import Event
    from agents_tools.persistence import RunStore
    from agents_tools.server.application import Handler, HttpRequest
    from agents_tools.server.http_security import TokenVerifier
    from agents_tools.ui.vercel.encoder import Version
    from agents_tools.ui.vercel.messages import ChatRequest
    from agents_tools.ui.vercel.text import Chunk

__all__ = ["app", "frames_of"]

_KEY: Final = "vercel"
_QUESTION: Final = "agents-tools-question"
"""The header with the id of the approval that a page shows, if only what follows it is of use."""

_MAX_BODY: Final = 16 << 20
"""The largest body of a request in bytes: a chat with its images."""

_PAUSE: Final = 0.05
"""The seconds without an event after which the encoder sends what it holds back."""

_RESEND_PERIOD: Final = 60.0
"""How long a message that was sent completely can be fetched again, in seconds."""


def app(
    agent: Agent[Any, Any],
    *,
    version: Version = 7,
    preliminary: bool = False,
    max_turns: int | None = 10,
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
    **limits: Unpack[AppLimits],
) -> Application:
    """Create an ASGI application for `useChat` of the Vercel AI SDK.

    - `POST /` accepts the request of `useChat` and streams the answer.
    - `GET /{chat}/stream` streams the current message again from its start; 204 if there is none.
    - `GET /{chat}/messages` returns the messages of the chat, for a page that was loaded again.
    - `POST /{chat}/stop` cancels the run, also where a closed connection does not.

    The page sends the history of the chat with every request, so trust it no more than the user of
    the page; pass values that must not be forged with `context`. Approvals are not read from the
    history: a waiting run is kept on the server, and a decision applies to the call and the
    arguments that were shown.

    Args:
        agent: The agent that answers.
        version: The major version of the npm package `ai` in the page: 5, 6 or 7.
        preliminary: Whether streamed text of a tool is shown as its output until the result comes.
        max_turns: The largest number of model calls for one answer.
        store: Stores the events of the runs, so that they survive a restart of the process.
        on_disconnect: What happens to a run when its last page disconnects: `cancel`, or `detach`
            to continue. The default is `detach` with a store, `cancel` otherwise.
        heartbeat: The seconds without data after which a comment is sent; `None` to send none.
        auth: A bearer token or a token verifier.
        allowed_hosts: Accepted values of the Host header, besides loopback.
        allowed_origins: Origins of other web pages that can call the app.
        run_config: The settings of the runs.
        context: Returns the application's object for tools from the request; sync or async.
        errors: Whether the page gets all messages of errors (`show`) or the library's only.
        runs: A shared `RunManager`. Close it yourself; by default the app has its own.
        **limits: See `agents_tools.ui.AppLimits`.

    Raises:
        UserError: An argument is invalid.
    """
    _check_arguments(agent, version)
    listener, limits_of_runs = split_limits("vercel.app", app, limits, max_body=_MAX_BODY)
    manager = runs_for(
        runs,
        store=store,
        on_disconnect=on_disconnect,
        run_config=run_config,
        context=context,
        errors=errors,
        **limits_of_runs,
    )
    manager.offer(agent, max_turns=max_turns)
    chats = _Chats(agent, manager, version, preliminary, max_turns, heartbeat)
    return Application(
        chats.routes(),
        on_start=manager.restore if runs is None else None,
        on_stop=manager.aclose if runs is None else None,
        auth=auth,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
        is_stream=lambda scope: not inner_path(scope).endswith(("/stop", "/messages")),
        **listener,
    )


def _check_arguments(agent: object, version: int) -> None:
    if not isinstance(agent, Agent):
        raise UserTypeError(f"vercel.app(agent): expected an Agent, got {type(agent).__name__}.")
    if version not in VERSIONS:
        raise UserValueError(f"vercel.app(version=): expected 5, 6 or 7, got {version!r:.60}.")


@dataclass(slots=True)
class _IncomingMessage:
    """The message of the chat that a run writes.

    Attributes:
        id: The id of the message in the chat.
        sent_before: The id of the last event that earlier responses have sent.
        delivered: The id of the last event of a response that was sent completely.
    """

    id: str
    sent_before: int = -1
    delivered: int = -1


class _Chats:
    """The request handlers of the app."""

    def __init__(
        self,
        agent: Agent[Any, Any],
        runs: RunManager,
        version: Version,
        preliminary: bool,
        max_turns: int | None,
        heartbeat: float | None,
    ) -> None:
        self._agent = agent
        self._runs = runs
        self._version: Version = version
        self._preliminary = preliminary
        self._max_turns = max_turns
        self._heartbeat = heartbeat

    def routes(self) -> dict[tuple[str, str], Handler]:
        """Return the handlers by method and path."""
        return {
            ("POST", "/"): self.post,
            ("GET", "/{chat}/stream"): self.resume,
            ("GET", "/{chat}/messages"): self.messages,
            ("POST", "/{chat}/stop"): self.stop,
        }

    async def post(self, request: HttpRequest) -> Response:
        """Start a run, or continue a run that waits for approval."""
        message = parse_request(await request.json_object())
        if message.decisions:
            live = await self._decide(message, request)
        elif (known := await self._known(message)) is not None:
            return self._respond(known, after=-1)
        else:
            live = await self._start(message, request)
        return self._respond(live, after=_message(live).sent_before)

    async def resume(self, request: HttpRequest) -> Response:
        """Stream a message again from its start, unless the page has all of it."""
        live = await self._newest(request)
        question = request.headers.get(_QUESTION)
        if live is None or _is_delivered(live) or (question and _waits_for(live, question)):
            return empty_response()
        return self._respond(live, after=-1)

    async def messages(self, request: HttpRequest) -> Response:
        """Return the messages of a chat as `UIMessage` objects.

        The message of a running run is missing: `GET /{chat}/stream` sends it from its start.
        """
        live = await self._newest(request)
        if live is None:
            return JsonResponse([])
        messages: list[Any] = [*(await live.details()).get("messages", ())]
        if not live.is_running:
            known = [message.get("id") for message in messages]
            at = known.index(_message(live).id) if _message(live).id in known else len(messages)
            messages[at : at + 1] = await self._built(live, messages[at : at + 1])
        return JsonResponse(release_json(messages))

    async def _built(self, live: ActiveRun, continued: list[Any]) -> list[Chunk]:
        """Return the message of a run that has ended or waits, if it has any part."""
        has_decisions = self._version >= WITH_APPROVALS  # in the message, but in chunks since 7
        encoder = self._encoder(live, LATEST if has_decisions else self._version)
        builder = UIMessageBuilder(*continued)
        async with aclosing(live.events()) as events:
            async for event in events:
                builder.add(encoder.encode(event))
        builder.add(encoder.close())
        message = builder.message()
        return [] if message is None else [message]

    async def stop(self, request: HttpRequest) -> Response:
        """Cancel the run of a chat."""
        live = await self._newest(request)
        is_stopped = live is not None and await live.cancel("stopped by the user")
        return JsonResponse({"stopped": is_stopped})

    async def _newest(self, request: HttpRequest) -> ActiveRun | None:
        live = await self._runs.find_newest(request.path_params["chat"])
        return live if live is not None and _KEY in live.meta else None

    async def _known(self, chat_request: ChatRequest) -> ActiveRun | None:
        """Return the run of a request that a page repeats because it got no answer."""
        live = None if chat_request.is_new else await self._runs.find_newest(chat_request.chat_id)
        if live is None or _KEY not in live.meta:
            return None
        details = await live.details()
        return live if details.get("messages") == chat_request.messages else None

    async def _start(self, chat_request: ChatRequest, request: HttpRequest) -> ActiveRun:
        items = items_of(chat_request.messages)
        context = await self._runs.context_of(request)
        return self._runs.start(
            self._agent,
            items,
            thread_id=chat_request.chat_id,
            context=context,
            max_turns=self._max_turns,
            meta={_KEY: {"message_id": chat_request.message_id}},
            details={"messages": chat_request.messages},
        )

    async def _decide(self, chat_request: ChatRequest, request: HttpRequest) -> ActiveRun:
        """Pass the decisions of the user to a waiting run.

        The page sends all decisions of the message, also earlier ones. Those are ignored.
        """
        first = chat_request.decisions[0]
        live = await self._runs.find(first.run_id)
        if live is None or live.thread_id != chat_request.chat_id or _KEY not in live.meta:
            raise HttpError(
                409,
                f"The run that requested approval {shown(first.approval_id)} does not exist any "
                "more, so it cannot continue. Send the message again.",
            )
        await self._runs.lend_context(live, request)
        open_calls = {(*item.path, item.call_id) for item in live.interruptions}
        decisions = [
            (one.call, one.decision)
            for one in chat_request.decisions
            if one.run_id == live.id and one.call.path in open_calls
        ]
        if decisions:
            after = live.last_id
            try:
                await live.decide(decisions)
            except HttpError as error:
                if error.facts.get("code") != "decided":
                    raise
            _message(live).sent_before = after
        return live

    def _respond(self, live: ActiveRun, *, after: int) -> Response:
        return FrameResponse(
            frames_of(live, self._encoder(live, self._version), after=after),
            headers=HEADERS,
            heartbeat=self._heartbeat,
            watching=live.watching(),
        )

    def _encoder(self, live: ActiveRun, version: Version) -> VercelEncoder:
        # `errors="show"` is safe: the run has already hidden the messages that must be hidden.
        return VercelEncoder(
            version,
            message_id=_message(live).id,
            run_id=live.id,
            preliminary=self._preliminary,
            errors="show",
        )


async def frames_of(
    live: ActiveRun, encoder: VercelEncoder, *, after: int = -1
) -> AsyncGenerator[bytes]:
    """Yield the frames of a run's message as the run emits events.

    Args:
        live: The run.
        encoder: A new encoder.
        after: The id of the last event that the page has; its frames are not sent again.
    """
    last, is_started = -1, after < 0
    async with (
        aclosing(live.events()) as events,
        aclosing(_with_pauses(events, encoder)) as paused_events,
    ):
        async for event in paused_events:
            if event is None:
                yield _encode(encoder.flush())
                continue
            last = event.id
            chunks = encoder.encode(event)
            if event.id <= after:
                continue
            if not is_started:
                chunks, is_started = [*encoder.restart(), *chunks], True
            if chunks:
                yield _encode(chunks)
    end = [] if is_started else encoder.restart()
    yield _encode([*end, *encoder.close()]) + DONE.encode()
    message = _message(live)
    message.delivered = max(message.delivered, last)


def _message(live: ActiveRun) -> _IncomingMessage:
    """Return the state of the message that a run writes."""
    message: _IncomingMessage | None = live.notes.get(_KEY)
    if message is None:
        meta: Any = live.meta.get(_KEY) or {}
        message = _IncomingMessage(meta.get("message_id") or f"msg_{live.id.removeprefix('run_')}")
        live.notes[_KEY] = message
    return message


def _is_delivered(live: ActiveRun) -> bool:
    """Return whether the page probably has the whole message.

    A message that was sent completely may not have arrived: the connection can break before the
    end. So it counts as read only after a minute. Sending it again does no harm, because the page
    replaces the message with the same id.
    """
    if live.is_running or not live.is_over(_message(live).delivered):
        return False
    return live.ended is None or time.time() - live.ended > _RESEND_PERIOD


def _waits_for(live: ActiveRun, question: str) -> bool:
    """Return whether a run still waits for the answer to an approval."""
    paths = [(*item.path, item.call_id) for item in live.interruptions]
    return live.status == "interrupted" and question in [approval_id(live.id, one) for one in paths]


def _encode(chunks: list[Chunk]) -> bytes:
    return "".join(frame(chunk) for chunk in chunks).encode()


async def _with_pauses(
    events: AsyncGenerator[Event], encoder: VercelEncoder
) -> AsyncGenerator[Event | None]:
    """Yield events, and `None` after a pause while the encoder holds back chunks."""
    next_event: asyncio.Task[Event] | None = None
    try:
        while True:
            if encoder.pending:
                next_event = asyncio.ensure_future(_next(events))
                done, _ = await asyncio.wait({next_event}, timeout=_PAUSE)
                if not done:
                    yield None
                event, next_event = await next_event, None
            else:
                event = await anext(events)
            yield event
    except StopAsyncIteration:
        return
    finally:
        if next_event is not None and not next_event.done():
            next_event.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await next_event


async def _next(events: AsyncGenerator[Event]) -> Event:
    return await anext(events)
