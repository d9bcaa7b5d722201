"""The ASGI application that `useChat` talks to."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from agents_tools.agent import Agent
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.ui._asgi import App, HttpError, respond_empty, respond_json, respond_stream, shown
from agents_tools.ui._runs import LiveRun, OnDisconnect, Runs, Verdict, runs_for
from agents_tools.ui._vercel_encoder import VERSIONS, Encoder
from agents_tools.ui._vercel_messages import items_of, posted
from agents_tools.ui._vercel_text import DONE, HEADERS, frame

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from agents_tools._listener import TokenVerifier
    from agents_tools.events import Event
    from agents_tools.run import RunConfig
    from agents_tools.store import EventStore
    from agents_tools.ui._asgi import Request, Send
    from agents_tools.ui._vercel_encoder import Version
    from agents_tools.ui._vercel_messages import Posted
    from agents_tools.ui._vercel_text import Chunk

__all__ = ["app", "frames_of"]

_KEY: Final = "vercel"
_LISTENER: Final = ("max_concurrency", "body_timeout", "required_scopes")
_PAUSE: Final = 0.05
_IN_DOUBT: Final = 60.0
"""For how many seconds after its end a message can be had again that was sent to its end."""


def app(
    agent: Agent[Any],
    *,
    version: Version = 7,
    preliminary: bool = False,
    max_turns: int | None = 10,
    store: EventStore | None = None,
    on_disconnect: OnDisconnect | None = None,
    heartbeat: float | None = 15.0,
    host: str = "127.0.0.1",
    auth: str | TokenVerifier | None = None,
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
    max_body: int = 16 << 20,
    run_config: RunConfig | None = None,
    context: Callable[[Request], Any] | None = None,
    errors: Literal["hide", "show"] = "hide",
    runs: Runs | None = None,
    **limits: Any,
) -> App:
    """Make an ASGI application that `useChat` of the Vercel AI SDK talks to.

    - `POST /` takes what `useChat` sends and answers with the message as a stream
    - `GET /{chat}/stream` sends the message of a chat again from its start, and goes on with it;
      204 where there is nothing to go on with
    - `POST /{chat}/stop` cancels the run of a chat; to close the connection may not be enough

    The history of a chat comes from the page with every request. So it is worth as much as the
    page's user: what must not be forged belongs to `context`. Which calls were approved is not
    read from it: a run that waits is kept here, and an answer counts for the call that was asked
    about, with the arguments that it was asked with.

    Args:
        agent: Who answers.
        version: The major version of the npm package `ai` in the page: 5, 6 or 7.
        preliminary: Whether the text that a tool streams is shown as its output until the real
            one comes.
        max_turns: How often the model is asked at most for one answer.
        store: Keeps the events of the runs, so that they outlive a page and this process.
        on_disconnect: What happens to a run when the last page that watches it goes: `cancel`, or
            `detach` to let it go on. By default `detach` where there is a store, else `cancel`.
        heartbeat: After how many silent seconds a comment is sent; `None` for never.
        host: The address that will be listened on; other than loopback needs `auth`.
        auth: A bearer token, or what verifies tokens.
        allowed_hosts: Values of the Host header beside loopback.
        allowed_origins: Values of the Origin header of pages of other addresses.
        max_body: The most bytes of a request: a chat with its images.
        run_config: How runs are done.
        context: Gives the application's object for tools, from the request; sync or async.
        errors: What is told of exceptions that are not the library's own: `hide` or `show`.
        runs: Holds the runs, where several apps share them; whoever made it closes it.
        **limits: `max_concurrency`, `body_timeout` and `required_scopes` of the listener;
            `keep_runs`, `keep_for`, `max_running` and `secrets` of `Runs`.

    Raises:
        UserError: What is given cannot work.
    """
    if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserTypeError(f"vercel.app(agent): expected an Agent, got {type(agent).__name__}.")
    if version not in VERSIONS:
        raise UserValueError(f"vercel.app(version=): expected 5, 6 or 7, got {version!r:.60}.")
    listener = {name: limits.pop(name) for name in _LISTENER if name in limits}
    held = runs_for(
        runs,
        store=store,
        on_disconnect=on_disconnect,
        run_config=run_config,
        context=context,
        errors=errors,
        **limits,
    )
    held.offer(agent, max_turns=max_turns)
    chats = _Chats(agent, held, version, preliminary, max_turns, heartbeat)
    return App(
        {
            ("POST", "/"): chats.post,
            ("GET", "/{chat}/stream"): chats.resume,
            ("POST", "/{chat}/stop"): chats.stop,
        },
        on_start=held.restore if runs is None else None,
        on_stop=held.aclose if runs is None else None,
        host=host,
        auth=auth,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
        max_body=max_body,
        name="vercel.app",
        **listener,
    )


@dataclass(slots=True)
class _Message:
    """The message that a run fills.

    Attributes:
        id: Its id in the chat.
        sent_before: The id of the last event that earlier responses have sent.
        delivered: The id of the last event of a response that was sent to its end.
    """

    id: str
    sent_before: int = -1
    delivered: int = -1


class _Chats:
    """Answers the requests of pages."""

    def __init__(
        self,
        agent: Agent[Any],
        runs: Runs,
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

    async def post(self, request: Request, send: Send) -> None:
        """Start a run, or go on with one that waits."""
        given = posted(await request.json_object())
        if given.answers:
            live = await self._decided(given, request)
        else:
            live = await self._started(given, request)
        await self._respond(live, request, send, after=_message(live).sent_before)

    async def resume(self, request: Request, send: Send) -> None:
        """Send a message again from its start, unless the page has all of it."""
        live = await self._newest(request)
        if live is None or _was_read(live):
            await respond_empty(send)
            return
        await self._respond(live, request, send, after=-1)

    async def stop(self, request: Request, send: Send) -> None:
        """Cancel the run of a chat."""
        live = await self._newest(request)
        stopped = live is not None and live.cancel("stopped by the user")
        await respond_json(send, {"stopped": stopped})

    async def _newest(self, request: Request) -> LiveRun | None:
        live = await self._runs.find_newest(request.params["chat"])
        return live if live is not None and _KEY in live.meta else None

    async def _started(self, given: Posted, request: Request) -> LiveRun:
        items = items_of(given.messages)
        context = await self._runs.context_of(request)
        await self._runs.restore()
        return self._runs.start(
            self._agent,
            items,
            thread_id=given.chat_id,
            context=context,
            max_turns=self._max_turns,
            meta={_KEY: {"message_id": given.message_id}},
            weight=len(await request.body()),
        )

    async def _decided(self, given: Posted, request: Request) -> LiveRun:
        """Tell a run that waits what the person has decided.

        An answer to a question that has its answer already says nothing new: a page sends all
        that stand in the message.
        """
        first = given.answers[0]
        live = await self._runs.find(first.run_id)
        if live is None or live.thread_id != given.chat_id or _KEY not in live.meta:
            raise HttpError(
                409,
                f"The run that asked for approval {shown(first.approval_id)} is no longer here, "
                "so it cannot go on. Send the message again.",
            )
        await self._runs.lend_context(live, request)
        open_calls = {(*item.path, item.call_id) for item in live.interruptions}
        verdicts = [
            Verdict(
                call_id=answer.path[-1],
                approve=answer.approved,
                path=answer.path,
                message=answer.reason,
            )
            for answer in given.answers
            if answer.run_id == live.id and answer.path in open_calls
        ]
        if verdicts:
            after = live.stream.last_id
            live.decide(verdicts)
            _message(live).sent_before = after
        return live

    async def _respond(self, live: LiveRun, request: Request, send: Send, *, after: int) -> None:
        # What a run says of errors was made fit for people already.
        encoder = Encoder(
            self._version,
            message_id=_message(live).id,
            run_id=live.id,
            preliminary=self._preliminary,
            errors="show",
        )
        frames = frames_of(live, encoder, after=after)
        with live.watching():
            await respond_stream(
                request.receive, send, frames, headers=HEADERS, heartbeat=self._heartbeat
            )


async def frames_of(live: LiveRun, encoder: Encoder, *, after: int = -1) -> AsyncGenerator[bytes]:
    """Give the frames of a run's message, as its events come.

    Args:
        live: The run.
        encoder: A new encoder.
        after: The id of the last event whose frames the page has.
    """
    last, begun = -1, after < 0
    async with (
        aclosing(live.events()) as events,
        aclosing(_with_pauses(events, encoder)) as heard,
    ):
        async for event in heard:
            if event is None:
                yield _joined(encoder.flush())
                continue
            last = event.id
            chunks = encoder.encode(event)
            if event.id <= after:
                continue
            if not begun:
                chunks, begun = [*encoder.restart(), *chunks], True
            if chunks:
                yield _joined(chunks)
    end = [] if begun else encoder.restart()
    yield _joined([*end, *encoder.close()]) + DONE.encode()
    message = _message(live)
    message.delivered = max(message.delivered, last)


def _message(live: LiveRun) -> _Message:
    """Give what is known of the message that a run fills."""
    found: _Message | None = live.notes.get(_KEY)
    if found is None:
        told: Any = live.meta.get(_KEY) or {}
        found = _Message(told.get("message_id") or f"msg_{live.id.removeprefix('run_')}")
        live.notes[_KEY] = found
    return found


def _was_read(live: LiveRun) -> bool:
    """Whether the page has the whole message, as far as can be known.

    That all of it was sent does not say so: the connection may have been cut with the end still on
    its way. To send it again does no harm, for the page replaces the message by its id.
    """
    if live.running or not live.is_over(_message(live).delivered):
        return False
    return live.ended is None or time.time() - live.ended > _IN_DOUBT


def _joined(chunks: list[Chunk]) -> bytes:
    return "".join(frame(chunk) for chunk in chunks).encode()


async def _with_pauses(
    events: AsyncGenerator[Event], encoder: Encoder
) -> AsyncGenerator[Event | None]:
    """Give events, and `None` where none comes for a while although the encoder holds some back."""
    coming: asyncio.Task[Event] | None = None
    try:
        while True:
            if encoder.pending:
                coming = asyncio.ensure_future(_next(events))
                done, _ = await asyncio.wait({coming}, timeout=_PAUSE)
                if not done:
                    yield None
                event, coming = await coming, None
            else:
                event = await anext(events)
            yield event
    except StopAsyncIteration:
        return
    finally:
        if coming is not None and not coming.done():
            coming.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await coming


async def _next(events: AsyncGenerator[Event]) -> Event:
    return await anext(events)
