"""The app behind `ag_ui.app`: an agent for clients of AG-UI, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agent import Agent
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.events import RunFinishedEvent
from agents_tools.policies import needs_approval
from agents_tools.tool import FunctionTool
from agents_tools.ui._ag_ui_encoder import Encoder
from agents_tools.ui._ag_ui_frames import wire_id
from agents_tools.ui._ag_ui_input import NO_RESULT, answers_of, items_of, read_input, verdicts_of
from agents_tools.ui._asgi import App, HttpError, Request, respond_json, respond_stream, shown
from agents_tools.ui._runs import LiveRun, Runs, Verdict, runs_for
from agents_tools.ui._written import written

if TYPE_CHECKING:
    from agents_tools.context import ToolContext
    from agents_tools.events import Event
    from agents_tools.outputs import ToolOutput
    from agents_tools.ui._ag_ui_frames import Version
    from agents_tools.ui._ag_ui_input import RunInput
    from agents_tools.ui._ag_ui_messages import Frame
    from agents_tools.ui._asgi import Send

__all__ = ["AgUiApp"]

_LISTENER = ("host", "max_body", "max_concurrency", "body_timeout", "required_scopes")
_KEY = "ag_ui"
_LAST = frozenset({"CUSTOM", "RUN_ERROR", "RUN_FINISHED"})
"""What the end of a run tells beside what is in the messages."""
_QUIET = 0.05
"""Seconds after which the last state of a call that has become silent is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A run as a client sees it: up to its end, or from one question to the next.

    Attributes:
        run_id: The id that the client gave it.
        after: The id of the last event before it.
        messages: What the client sent with it.
        client_tools: The names of the tools that the client runs itself.
        answers: What these have answered, by the ids of the calls.
    """

    run_id: str
    after: int
    messages: list[Mapping[str, Any]]
    client_tools: frozenset[str]
    answers: dict[str, ToolOutput]


class AgUiApp(App):
    """An agent for clients of AG-UI; made by `ag_ui.app`.

    Attributes:
        runs: The runs.
    """

    def __init__(
        self,
        agent: Agent[Any],
        *,
        version: Version | None,
        heartbeat: float | None,
        auth: Any,
        allowed_hosts: Sequence[str],
        allowed_origins: Sequence[str],
        runs: Runs | None,
        client_tools: bool,
        client_instructions: bool,
        max_turns: int | None,
        **options: Any,
    ) -> None:
        if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(f"ag_ui.app serves an Agent, not a {type(agent).__name__}.")
        if version is not None and version not in {"1.0", "0.x"}:
            raise UserValueError(f"version= is '1.0', '0.x' or None, not {version!r:.60}.")
        listener = {name: options.pop(name) for name in _LISTENER if name in options}
        self.runs = runs_for(runs, **options)
        self.runs.offer(agent, max_turns=max_turns)
        self._agent = agent
        self._version: Version | None = version
        self._heartbeat = heartbeat
        self._takes_tools = client_tools
        self._takes_instructions = client_instructions
        self._max_turns = max_turns
        super().__init__(
            {
                ("POST", "/"): self._run,
                ("GET", "/"): self._info,
                ("POST", "/connect"): self._connect,
                ("POST", "/cancel"): self._cancel,
            },
            on_start=self.runs.restore if runs is None else None,
            on_stop=self.runs.aclose if runs is None else None,
            auth=auth,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            name="ag_ui.app",
            **listener,
        )

    # --- what there is

    async def _info(self, request: Request, send: Send) -> None:
        """Tell what the agent can do, in the words of the protocol."""
        del request
        from agents_tools._version import __version__

        tools = [tool for tool in self._agent.known_tools if tool.is_enabled is not False]
        items = [
            {"name": tool.name, "description": tool.description, "parameters": tool.json_schema}
            for tool in tools
            if isinstance(tool, FunctionTool)
        ]
        told: Frame = {
            "identity": {"name": self._agent.name, "type": "agents-tools", "version": __version__},
            "transport": {"streaming": True, "resumable": False},
            "tools": {
                "supported": True,
                "items": items,
                "parallelCalls": True,
                "clientProvided": self._takes_tools,
            },
            "reasoning": {"supported": True, "streaming": True},
            "humanInTheLoop": {
                "supported": True,
                "approvals": True,
                "interrupts": True,
                "approveWithEdits": True,
            },
            "custom": {"agents_tools": {"versions": ["1.0", "0.x"], "cancel": "cancel"}},
        }
        await respond_json(send, told)

    # --- a run

    async def _run(self, request: Request, send: Send) -> None:
        given = read_input(await request.json_object())
        live = await self.runs.find(given.run_id)
        if given.resume:
            await self._stream(await self._resumed(given, request), given, request, send)
        elif live is not None and live.thread_id == given.thread_id:
            await self._stream(live, given, request, send, late=True)
        else:
            await self._stream(await self._started(given, request), given, request, send)

    async def _started(self, given: RunInput, request: Request) -> LiveRun:
        answers: dict[str, ToolOutput] = {}
        names = [str(tool.get("name")) for tool in given.tools]
        live = self.runs.start(
            self._with_client_tools(given, answers),
            items_of(given, instructions=self._takes_instructions),
            run_id=given.run_id,
            thread_id=given.thread_id,
            context=await self.runs.context_of(request),
            max_turns=self._max_turns,
            meta={_KEY: {"client_tools": names}},
            weight=len(await request.body()),
        )
        live.notes[_KEY] = [_part(given, -1, names, answers)]
        return live

    async def _resumed(self, given: RunInput, request: Request) -> LiveRun:
        """Go on with the run of the thread that waits for what the client answers."""
        live = await self.runs.find_newest(given.thread_id)
        if live is not None:
            await self.runs.lend_context(live, request)
        if live is None or live.status != "interrupted" or _KEY not in live.meta:
            raise HttpError(
                409, f"resume: thread {shown(given.thread_id)} has no run that waits for answers."
            )
        parts = _parts(live, given)
        part = parts[-1]
        if part.client_tools and live.restored:
            raise HttpError(
                409,
                f"resume: the run of thread {shown(given.thread_id)} is of an earlier process, and "
                "has tools of the client, which are not kept. Send the messages again.",
            )
        verdicts = verdicts_of(given)
        answered = {verdict.path for verdict in verdicts}
        for item in live.interruptions:
            path = (*item.path, item.call_id)
            if path in answered:
                continue
            if item.path or item.name not in part.client_tools:
                raise HttpError(
                    422,
                    f"resume: there is no answer to {shown(wire_id(path))}, which waits as well.",
                )
            verdicts.append(Verdict(call_id=item.call_id, path=path, approve=True))
        answers = answers_of(given)
        after = live.stream.last_id
        live.decide(verdicts)
        part.answers.update(answers)
        parts[-1] = replace(part, messages=[])  # the client has sent them again
        parts.append(_part(given, after, part.client_tools, part.answers))
        return live

    def _with_client_tools(self, given: RunInput, answers: Mapping[str, ToolOutput]) -> Agent[Any]:
        if not given.tools:
            return self._agent
        if not self._takes_tools:
            raise HttpError(422, "tools: this server takes no tools of clients (client_tools=).")
        own = set(self._agent.tools_map)
        brought = _client_tools(given.tools, own, answers)
        return self._agent.clone(tools=[*self._agent.tools, *brought])

    async def _connect(self, request: Request, send: Send) -> None:
        """Let somebody watch the newest run of a thread, from the beginning."""
        given = read_input(await request.json_object())
        live = await self.runs.find_newest(given.thread_id)
        if live is None:
            raise HttpError(404, f"Thread {shown(given.thread_id)} has no run.")
        await self._stream(live, given, request, send, late=True)

    async def _cancel(self, request: Request, send: Send) -> None:
        body = await request.json_object()
        run_id, thread_id = body.get("runId"), body.get("threadId")
        if isinstance(run_id, str):
            live = await self.runs.find(run_id) or self._by_part(run_id)
        elif isinstance(thread_id, str):
            live = await self.runs.find_newest(thread_id)
        else:
            raise HttpError(422, "Say what to cancel with runId or threadId.")
        if live is None:
            raise HttpError(404, f"There is no run of {shown(run_id or thread_id)}.")
        cancelled = live.cancel("cancelled by the user")
        await respond_json(send, {"cancelled": cancelled, "status": live.status})

    def _by_part(self, run_id: str) -> LiveRun | None:
        """Find a run by the id that a client gave to a later part of it."""
        for live in reversed(self.runs.list()):
            parts: list[Part] = live.notes.get(_KEY, [])
            if any(part.run_id == run_id for part in parts):
                return live
        return None

    async def _stream(
        self, live: LiveRun, given: RunInput, request: Request, send: Send, *, late: bool = False
    ) -> None:
        part = _parts(live, given)[-1]
        encoder = Encoder(
            version=self._version or given.version,
            thread_id=given.thread_id,
            run_id=part.run_id,
            messages=part.messages,
            client_tools=part.client_tools,
        )
        with live.watching():
            await respond_stream(
                request.receive,
                send,
                _bytes(live, part.after, encoder, late=late),
                heartbeat=self._heartbeat,
            )


def _part(
    given: RunInput, after: int, client_tools: Collection[str], answers: dict[str, ToolOutput]
) -> Part:
    return Part(
        run_id=given.run_id,
        after=after,
        messages=given.messages,
        client_tools=frozenset(client_tools),
        answers=answers,
    )


def _parts(live: LiveRun, given: RunInput) -> list[Part]:
    """Give the parts of a run; where it began in another process or app, one that is all of it."""
    known: list[Part] | None = live.notes.get(_KEY)
    if known is None:
        told: Any = live.meta.get(_KEY) or {}
        first = _part(given, -1, told.get("client_tools", ()), {})
        known = live.notes[_KEY] = [replace(first, run_id=live.id)]
    return known


def _called_off(live: LiveRun, event: Event) -> bool:
    """Whether a run that waits at this event was cancelled while it waited."""
    waits = isinstance(event, RunFinishedEvent) and not event.path and event.status == "interrupted"
    return waits and not live.is_over(event.id) and live.is_over(event.id + 1)


# --- frames as they come


async def _bytes(
    live: LiveRun, after: int, encoder: Encoder, *, late: bool
) -> AsyncGenerator[bytes]:
    """Give the frames of a run; to somebody late, first what was."""
    known = live.stream.last_id if late else -1
    async with (
        aclosing(live.events(after)) as events,
        aclosing(_paced(events, encoder)) as paced,
    ):
        async for event in paced:
            if event is not None and _called_off(live, event):
                continue  # its end follows
            frames = encoder.flush() if event is None else encoder.encode(event)
            if late and event is not None:
                if event.id < known and not encoder.finished:
                    continue
                late = False
                last = [one for one in frames if one["type"] in _LAST] if encoder.finished else []
                frames = encoder.prelude() + last
            if frames and not late:
                yield _bytes_of(frames)
    rest = encoder.prelude() if late else []
    rest += encoder.close()
    if rest:
        yield _bytes_of(rest)


async def _paced(events: AsyncGenerator[Event], encoder: Encoder) -> AsyncGenerator[Event | None]:
    """Give events as they come, and `None` when what is held back should wait no longer."""
    coming: asyncio.Future[Event | None] | None = None
    try:
        while True:
            if not encoder.held:
                event = await anext(events, None)
            else:
                coming = asyncio.ensure_future(_next(events))
                if not (await asyncio.wait({coming}, timeout=_QUIET))[0]:
                    yield None
                event, coming = await coming, None
            if event is None:
                return
            yield event
    finally:
        if coming is not None:
            coming.cancel()
            with suppress(asyncio.CancelledError):
                await coming


async def _next(events: AsyncGenerator[Event]) -> Event | None:
    return await anext(events, None)


def _bytes_of(frames: Sequence[Frame]) -> bytes:
    return b"".join(b"data: %s\n\n" % written(frame) for frame in frames)


# --- tools that the client runs


def _client_tools(
    given: Sequence[Mapping[str, Any]], own: Collection[str], answers: Mapping[str, ToolOutput]
) -> list[FunctionTool[..., Any]]:
    """Make tools whose calls end the run: the client runs them and sends what they give."""

    async def answer(context: ToolContext[Any], arguments: str) -> ToolOutput:
        """Give what the client has answered to the call."""
        del arguments
        return answers.get(context.tool_call_id or "", NO_RESULT)

    tools: list[FunctionTool[..., Any]] = []
    taken = set(own)
    for index, tool in enumerate(given):
        name, place = tool.get("name"), f"tools[{index}]"
        if not isinstance(name, str):
            raise HttpError(422, f"{place}.name: expected a text.")
        if name in taken:
            raise HttpError(422, f"{place}.name: there is a tool {shown(name)} already.")
        taken.add(name)
        given_schema: object = tool.get("parameters") or {"type": "object", "properties": {}}
        if not isinstance(given_schema, Mapping):
            raise HttpError(422, f"{place}.parameters: expected a JSON schema.")
        schema = cast("Mapping[str, Any]", given_schema)
        made: FunctionTool[..., Any] = FunctionTool(
            name=name,
            description=str(tool.get("description", "")),
            params_json_schema=schema,
            on_invoke_tool=answer,
        )
        tools.append(needs_approval()(made))
    return tools
