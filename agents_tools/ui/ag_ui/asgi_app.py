"""The ASGI app of `ag_ui.app`, which serves an agent to AG-UI clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.agent import Agent
from agents_tools.errors import EventStoreCorruptError, UserTypeError, UserValueError
from agents_tools.events.kinds import (
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
    ToolArtifactEvent,
    ToolAttemptEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.persistence.filter import EventFilter
from agents_tools.policies import needs_approval
from agents_tools.server.application import Application, JsonResponse
from agents_tools.server.approvals import CallReference
from agents_tools.server.http_errors import HttpError, shown
from agents_tools.server.http_security import inner_path
from agents_tools.server.response_stream import FrameResponse
from agents_tools.server.run_manager import ActiveRun, RunManager, runs_for
from agents_tools.server.safe_json import written
from agents_tools.tool.records import Decision
from agents_tools.tool.tool import FunctionTool
from agents_tools.ui.ag_ui.encoder import AgUiEncoder
from agents_tools.ui.ag_ui.frames import wire_id
from agents_tools.ui.ag_ui.messages import MessageHistory
from agents_tools.ui.ag_ui.run_input import (
    NO_RESULT,
    answers_of,
    decisions_of,
    items_of,
    read_input,
)

if TYPE_CHECKING:
    from starlette.responses import Response

    from agents_tools.content.outputs import ToolOutput
    from agents_tools.events.base import Event
    from agents_tools.server.application import HttpRequest
    from agents_tools.tool.context import ToolContext
    from agents_tools.ui.ag_ui.frames import Version
    from agents_tools.ui.ag_ui.messages import Frame
    from agents_tools.ui.ag_ui.run_input import RunInput

__all__ = ["AgUiApp"]

_KEY = "ag_ui"
_FINAL = frozenset({"CUSTOM", "RUN_ERROR", "RUN_FINISHED"})
"""The types of frames at the end of a run that are not part of the messages."""
_ACTIVITY_EVENTS = EventFilter(
    types=(
        RunStartedEvent.type,
        RunFinishedEvent.type,
        RunItemStreamEvent.type,
        ToolStreamStartEvent.type,
        ToolStreamEndEvent.type,
        ToolProgressEvent.type,
        ToolArtifactEvent.type,
        ToolAttemptEvent.type,
    )
)
"""The events that activities are encoded from."""
_PAUSE = 0.05
"""The seconds without an event after which the encoder sends held updates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsePart:
    """A part of a run that is one run for the client: it ends at an interrupt or with the run.

    Attributes:
        run_id: The id of the part, set by the client.
        after: The id of the last event before the part.
        messages: The messages of the request.
        client_tools: The names of the tools that the client runs itself.
        answers: The results of these tools, by the ids of the calls.
    """

    run_id: str
    after: int
    messages: list[Mapping[str, Any]]
    client_tools: frozenset[str]
    answers: dict[str, ToolOutput]


class AgUiApp(Application):
    """The app that `ag_ui.app` returns: an agent for AG-UI clients.

    Attributes:
        runs: The runs.
    """

    def __init__(
        self,
        agent: Agent[Any, Any],
        *,
        version: Version | None,
        heartbeat: float | None,
        auth: Any,
        allowed_hosts: Sequence[str],
        allowed_origins: Sequence[str],
        runs: RunManager | None,
        client_tools: bool,
        client_instructions: bool,
        max_turns: int | None,
        listener: Mapping[str, Any],
        **options: Any,
    ) -> None:
        if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(f"ag_ui.app(agent): expected an Agent, got {type(agent).__name__}.")
        if version is not None and version not in {"1.0", "0.x"}:
            raise UserValueError(
                f"ag_ui.app(version=): expected '1.0', '0.x' or None, got {version!r:.60}."
            )
        self.runs = runs_for(runs, **options)
        self.runs.offer(agent, max_turns=max_turns)
        self._agent = agent
        self._version: Version | None = version
        self._heartbeat = heartbeat
        self._allow_tools = client_tools
        self._allow_instructions = client_instructions
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
            is_stream=lambda scope: scope["method"] == "POST" and inner_path(scope) != "/cancel",
            **listener,
        )

    # --- information

    async def _info(self, request: HttpRequest) -> Response:
        """Send the capabilities of the agent."""
        del request
        from agents_tools._package import __version__

        tools = [tool for tool in self._agent.known_tools if tool.is_enabled is not False]
        items = [
            {"name": tool.name, "description": tool.description, "parameters": tool.json_schema}
            for tool in tools
            if isinstance(tool, FunctionTool)
        ]
        capabilities: Frame = {
            "identity": {"name": self._agent.name, "type": "agents-tools", "version": __version__},
            "transport": {"streaming": True, "resumable": False},
            "tools": {
                "supported": True,
                "items": items,
                "parallelCalls": True,
                "clientProvided": self._allow_tools,
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
        return JsonResponse(capabilities)

    # --- a run

    async def _run(self, request: HttpRequest) -> Response:
        run_input = read_input(await request.json_object())
        live = await self.runs.find(run_input.run_id)
        if run_input.resume:
            return await self._stream(await self._resume(run_input, request), run_input)
        if live is not None and live.thread_id == run_input.thread_id:
            return await self._stream(live, run_input, late=True)
        return await self._stream(await self._start(run_input, request), run_input)

    async def _start(self, run_input: RunInput, request: HttpRequest) -> ActiveRun:
        answers: dict[str, ToolOutput] = {}
        names = [str(tool.get("name")) for tool in run_input.tools]
        items = items_of(run_input, instructions=self._allow_instructions)
        live = self.runs.start(
            self._with_client_tools(run_input, answers),
            items,
            run_id=run_input.run_id,
            thread_id=run_input.thread_id,
            context=await self.runs.context_of(request),
            max_turns=self._max_turns,
            meta={_KEY: {"run_id": run_input.run_id, "client_tools": names, "items": len(items)}},
            details={"messages": run_input.messages},
        )
        live.notes[_KEY] = [_part(run_input, -1, names, answers)]
        return live

    async def _resume(self, run_input: RunInput, request: HttpRequest) -> ActiveRun:
        """Continue the waiting run of the thread with the answers of the client."""
        live = await self.runs.find_newest(run_input.thread_id)
        if live is not None:
            await self.runs.lend_context(live, request)
        if live is None or live.status != "interrupted" or _KEY not in live.meta:
            raise HttpError(
                409,
                f"resume: thread {shown(run_input.thread_id)} has no run that waits for answers.",
            )
        parts = await _parts(live, run_input)
        part = parts[-1]
        if part.client_tools and live.factory is None:
            raise HttpError(
                409,
                f"resume: the run of thread {shown(run_input.thread_id)} was started by an earlier "
                "process, and its client tools are not stored. Send the messages again.",
            )
        decisions = decisions_of(run_input)
        decided = {reference.path for reference, _ in decisions}
        for item in live.interruptions:
            path = (*item.path, item.call_id)
            if path in decided:
                continue
            if item.path or item.name not in part.client_tools:
                raise HttpError(
                    422,
                    f"resume: the answer to {shown(wire_id(path))} is missing. Answer all "
                    "interrupts.",
                )
            decisions.append((CallReference(item.call_id, path), Decision(approved=True)))
        after, earlier = live.last_id, dict(part.answers)
        part.answers.update(answers_of(run_input))  # the run continues during `decide`
        try:
            await live.decide(decisions)
        except BaseException:
            part.answers.clear()
            part.answers.update(earlier)
            raise
        parts[-1] = replace(part, messages=[])  # the client has sent them again
        parts.append(_part(run_input, after, part.client_tools, part.answers))
        return live

    def _with_client_tools(
        self, run_input: RunInput, answers: Mapping[str, ToolOutput]
    ) -> Agent[Any, Any]:
        if not run_input.tools:
            return self._agent
        if not self._allow_tools:
            raise HttpError(
                422, "tools: this server does not accept tools of clients (client_tools=)."
            )
        own = set(self._agent.tools_map)
        client_tools = _client_tools(run_input.tools, own, answers)
        return self._agent.clone(tools=[*self._agent.tools, *client_tools])

    async def _connect(self, request: HttpRequest) -> Response:
        """Stream the messages of a thread, and what follows of its newest run."""
        run_input = read_input(await request.json_object())
        live = await self.runs.find_newest(run_input.thread_id)
        if live is None:
            raise HttpError(404, f"Thread {shown(run_input.thread_id)} has no run.")
        return await self._stream(live, run_input, late=True)

    async def _cancel(self, request: HttpRequest) -> Response:
        body = await request.json_object()
        run_id, thread_id = body.get("runId"), body.get("threadId")
        if isinstance(run_id, str):
            live = await self.runs.find(run_id) or await self._by_part(run_id)
        elif isinstance(thread_id, str):
            live = await self.runs.find_newest(thread_id)
        else:
            raise HttpError(422, "The body has no run: expected a text in runId or threadId.")
        if live is None:
            raise HttpError(404, f"No run found for {shown(run_id or thread_id)}.")
        cancelled = await live.cancel("cancelled by the user")
        return JsonResponse({"cancelled": cancelled, "status": live.status})

    async def _by_part(self, run_id: str) -> ActiveRun | None:
        """Return the run with a part of this id."""
        for live in reversed(await self.runs.list()):
            parts: list[ResponsePart] = live.notes.get(_KEY, [])
            if any(part.run_id == run_id for part in parts):
                return live
        return None

    async def _stream(
        self, live: ActiveRun, run_input: RunInput, *, late: bool = False
    ) -> Response:
        part = (await _parts(live, run_input))[-1]
        version = self._version or run_input.version
        encoder = AgUiEncoder(
            version=version,
            thread_id=run_input.thread_id,
            run_id=part.run_id,
            messages=await self._with_activities(live, part, version) if late else part.messages,
            client_tools=part.client_tools,
        )
        return FrameResponse(
            _bytes(live, part.after, encoder, late=late),
            heartbeat=self._heartbeat,
            watching=live.watching(),
        )

    async def _with_activities(
        self, live: ActiveRun, part: ResponsePart, version: Version
    ) -> list[Frame]:
        """Return the messages before a part of a run with their activities.

        Clients do not send activities, so they are encoded again from the events of the runs.
        """
        history = MessageHistory(part.messages)
        for run in await self.runs.list(thread_id=live.thread_id) if history.call_ids else ():
            encoder = AgUiEncoder(version=version, run_id=run.id)
            # A run begins with an event for each item of its input: the conversation before it.
            meta: Any = run.meta.get(_KEY) or {}
            begin: int = meta.get("items", -1)
            with suppress(EventStoreCorruptError):  # the messages are still of use
                for event in await run.stored_events(begin, where=_ACTIVITY_EVENTS):
                    if run is not live or event.id <= part.after:
                        encoder.encode(event)
            encoder.flush()
            history.add_activities(encoder.messages)
        return history.list()


def _part(
    run_input: RunInput, after: int, client_tools: Collection[str], answers: dict[str, ToolOutput]
) -> ResponsePart:
    return ResponsePart(
        run_id=run_input.run_id,
        after=after,
        messages=run_input.messages,
        client_tools=frozenset(client_tools),
        answers=answers,
    )


async def _parts(live: ActiveRun, run_input: RunInput) -> list[ResponsePart]:
    """Return the parts of a run.

    A run that started in another process or app has one part.
    """
    if _KEY not in live.notes:
        meta: Any = live.meta.get(_KEY) or {}
        details: Mapping[str, Any] = await live.details() if meta else {}
        first = replace(
            _part(run_input, -1, meta.get("client_tools", ()), {}),
            run_id=meta.get("run_id", live.id),
            messages=details.get("messages", run_input.messages),
        )
        live.notes.setdefault(_KEY, [first])  # another request can have been quicker
    parts: list[ResponsePart] = live.notes[_KEY]
    return parts


def _was_cancelled(live: ActiveRun, event: Event) -> bool:
    """Return whether a run that waits at this event was cancelled while it waited."""
    waits = isinstance(event, RunFinishedEvent) and not event.path and event.status == "interrupted"
    return waits and live.status == "cancelled" and not live.is_over(event.id)


# --- frames


async def _bytes(
    live: ActiveRun, after: int, encoder: AgUiEncoder, *, late: bool
) -> AsyncGenerator[bytes]:
    """Yield the frames of a run; for a late client, begin with the conversation so far."""
    known = live.last_id if late else -1
    async with (
        aclosing(live.events(after)) as events,
        aclosing(_with_pauses(events, encoder)) as paused_events,
    ):
        async for event in paused_events:
            if event is not None and _was_cancelled(live, event):
                continue  # the end of the run follows
            frames = encoder.flush() if event is None else encoder.encode(event)
            if late and event is not None:
                if event.id < known and not live.is_over(event.id):
                    continue
                late = False
                last = [one for one in frames if one["type"] in _FINAL] if encoder.finished else []
                frames = encoder.prelude() + last
            if frames and not late:
                yield _bytes_of(frames)
    rest = encoder.prelude() if late else []
    rest += encoder.close()
    if rest:
        yield _bytes_of(rest)


async def _with_pauses(
    events: AsyncGenerator[Event], encoder: AgUiEncoder
) -> AsyncGenerator[Event | None]:
    """Yield events, and `None` after a pause while the encoder holds back updates."""
    next_event: asyncio.Future[Event | None] | None = None
    try:
        while True:
            if not encoder.held:
                event = await anext(events, None)
            else:
                next_event = asyncio.ensure_future(_next(events))
                if not (await asyncio.wait({next_event}, timeout=_PAUSE))[0]:
                    yield None
                event, next_event = await next_event, None
            if event is None:
                return
            yield event
    finally:
        if next_event is not None:
            next_event.cancel()
            with suppress(asyncio.CancelledError):
                await next_event


async def _next(events: AsyncGenerator[Event]) -> Event | None:
    return await anext(events, None)


def _bytes_of(frames: Sequence[Frame]) -> bytes:
    return b"".join(b"data: %s\n\n" % written(frame) for frame in frames)


# --- client tools


def _client_tools(
    tools: Sequence[Mapping[str, Any]], own: Collection[str], answers: Mapping[str, ToolOutput]
) -> list[FunctionTool[..., Any]]:
    """Return tools whose calls end the run. The client runs them and sends the results."""

    async def answer(context: ToolContext[Any], arguments: str) -> ToolOutput:
        """Return the result that the client sent for the call."""
        del arguments
        return answers.get(context.tool_call_id or "", NO_RESULT)

    client_tools: list[FunctionTool[..., Any]] = []
    names = set(own)
    for index, tool in enumerate(tools):
        name, place = tool.get("name"), f"tools[{index}]"
        if not isinstance(name, str):
            raise HttpError(422, f"{place}.name: expected a text.")
        if name in names:
            raise HttpError(422, f"{place}.name: the tool {shown(name)} already exists. Rename it.")
        names.add(name)
        schema: object = tool.get("parameters") or {"type": "object", "properties": {}}
        if not isinstance(schema, Mapping):
            raise HttpError(422, f"{place}.parameters: expected a JSON Schema.")
        client_tool: FunctionTool[..., Any] = FunctionTool(
            name=name,
            description=str(tool.get("description", "")),
            params_json_schema=cast("Mapping[str, Any]", schema),
            on_invoke_tool=answer,
        )
        client_tools.append(needs_approval()(client_tool))
    return client_tools
