"""The app behind `sse.app`: the library's own protocol over HTTP."""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote

from agents_tools.agent import Agent
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.items import MessageInputItem, input_items
from agents_tools.state import open_calls
from agents_tools.tool import FunctionTool, function_tools
from agents_tools.ui._asgi import (
    App,
    HttpError,
    Request,
    json_kind,
    respond_empty,
    respond_json,
    respond_stream,
    shown,
)
from agents_tools.ui._frames import frame_of, read_place
from agents_tools.ui._runs import LiveRun, Runs, runs_for
from agents_tools.ui.ndjson import CONTENT_TYPE as NDJSON, json_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from agents_tools.events import Event
    from agents_tools.ui._asgi import Send
    from agents_tools.ui._runs import Target

__all__ = ["NativeApp"]

AnyTool = FunctionTool[..., Any]

_FIELDS = ("input", "tool", "arguments", "run_id", "thread_id")
_LISTED = 100
_KEPT_FRAMES = 1_024
_LONGEST_KEPT = 4_096
_LISTENER = ("host", "max_body", "max_concurrency", "body_timeout", "required_scopes")
_RUNS = ("keep_runs", "keep_for", "max_running", "secrets")


class NativeApp(App):
    """An agent, or tools, over HTTP; made by `sse.app`.

    Attributes:
        runs: The runs.
    """

    def __init__(
        self,
        target: Target,
        *,
        heartbeat: float | None,
        auth: Any,
        allowed_hosts: Sequence[str],
        allowed_origins: Sequence[str],
        runs: Runs | None,
        max_turns: int | None = 10,
        **options: Any,
    ) -> None:
        listener = {name: options.pop(name) for name in _LISTENER if name in options}
        self.runs = runs_for(runs, **options)
        self._agent = target if isinstance(target, Agent) else None
        self._tools = _tools_of(target)
        self._heartbeat = heartbeat
        self._max_turns = max_turns
        self.runs.offer(target, max_turns=max_turns)
        self._frames = _Frames()
        super().__init__(
            {
                ("GET", "/"): self._info,
                ("GET", "/tools"): self._list_tools,
                ("POST", "/runs"): self._start,
                ("GET", "/runs"): self._list_runs,
                ("GET", "/runs/{id}"): self._show,
                ("GET", "/runs/{id}/events"): self._watch,
                ("POST", "/runs/{id}/cancel"): self._cancel,
                ("POST", "/runs/{id}/approvals"): self._decide,
            },
            on_start=self.runs.restore if runs is None else None,
            on_stop=self.runs.aclose if runs is None else None,
            auth=auth,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            name="sse.app",
            **listener,
        )

    # --- what there is

    async def _info(self, _: Request, send: Send) -> None:
        from agents_tools._version import __version__

        agent = self._agent
        target = {"kind": "tools"} if agent is None else {"kind": "agent", "name": agent.name}
        told = {"name": "agents-tools", "version": __version__, "target": target}
        await respond_json(send, {**told, "on_disconnect": self.runs.on_disconnect})

    async def _list_tools(self, _: Request, send: Send) -> None:
        await respond_json(send, {"tools": [_described(tool) for tool in self._tools.values()]})

    async def _list_runs(self, request: Request, send: Send) -> None:
        await self.runs.restore()
        limit = _number(request.query.get("limit"), "limit", _LISTED)
        newest = self.runs.list()[::-1]
        listed = [run.to_dict() for run in newest[:limit]]
        await respond_json(send, {"runs": listed, "more": len(newest) > limit})

    async def _show(self, request: Request, send: Send) -> None:
        await respond_json(send, (await self._run(request)).to_dict())

    # --- a run

    async def _start(self, request: Request, send: Send) -> None:
        body = await request.json_object()
        _check_fields(body, _FIELDS)
        await self.runs.restore()
        context = await self.runs.context_of(request)
        ids: dict[str, Any] = {"run_id": body.get("run_id"), "thread_id": body.get("thread_id")}
        if self._agent is not None:
            given = _checked_input(body)
            run = self.runs.start(
                self._agent,
                given,
                context=context,
                max_turns=self._max_turns,
                weight=len(await request.body()),
                **ids,
            )
        else:
            tool, arguments = self._call(body)
            run = self.runs.start_tool(tool, arguments, context=context, **ids)
        if _prefers_no_answer(request):
            run.detached = True
            where = f"{str(request.scope.get('root_path', '')).rstrip('/')}/runs/{run.id}"
            headers = {
                "location": quote(where, safe="/:@~+"),
                "preference-applied": "respond-async",
            }
            await respond_json(send, run.to_dict(), 202, headers)
        else:
            await self._stream(run, -1, request, send)

    def _call(self, body: Mapping[str, Any]) -> tuple[AnyTool, str]:
        name, arguments = body.get("tool"), body.get("arguments", {})
        if "input" in body:
            raise HttpError(422, 'input: this serves tools. Send {"tool": …, "arguments": {…}}.')
        if not isinstance(name, str):
            raise HttpError(422, f"tool: expected the name of a tool, got {json_kind(name)}.")
        if not isinstance(arguments, dict):
            raise HttpError(422, f"arguments: expected an object, got {json_kind(arguments)}.")
        tool = self._tools.get(name)
        if tool is None or tool.is_enabled is False:
            near = difflib.get_close_matches(name[:100], self._tools, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else " GET /tools lists them."
            raise HttpError(404, f"There is no tool {shown(name)}.{hint}")
        return tool, json.dumps(arguments)

    async def _watch(self, request: Request, send: Send) -> None:
        run = await self._run(request)
        after = _place(request, run)
        if run.is_over(after):
            await respond_empty(send, 204)
        else:
            await self._stream(run, after, request, send)

    async def _cancel(self, request: Request, send: Send) -> None:
        run = await self._run(request)
        body = await request.json_object()
        _check_fields(body, ("reason",))
        reason = body.get("reason") or ""
        if not isinstance(reason, str):
            raise HttpError(422, f"reason: expected a text, got {json_kind(reason)}.")
        cancelled = run.cancel(reason[:1_000])
        await respond_json(send, {"cancelled": cancelled, "status": run.status})

    async def _decide(self, request: Request, send: Send) -> None:
        run = await self._run(request)
        body = await request.json_object()
        _check_fields(body, ("decisions",))
        decisions = body.get("decisions")
        if not isinstance(decisions, list) or not decisions:
            raise HttpError(422, "decisions: expected a list of at least one decision.")
        await self.runs.lend_context(run, request)
        run.decide(cast("list[Any]", decisions))
        told = run.to_dict()
        await respond_json(send, {"ok": True, "status": run.status, "approvals": told["approvals"]})

    async def _run(self, request: Request) -> LiveRun:
        run_id = request.params["id"]
        run = await self.runs.find(run_id)
        if run is None:
            raise HttpError(404, f"There is no run {shown(run_id)}. GET /runs lists them.")
        return run

    async def _stream(self, run: LiveRun, after: int, request: Request, send: Send) -> None:
        lines = NDJSON in request.headers.get("accept", "")
        with run.watching():
            await respond_stream(
                request.receive,
                send,
                self._frames.of(run, after, "ndjson" if lines else "sse"),
                content_type=NDJSON if lines else "text/event-stream",
                heartbeat=self._heartbeat,
                heartbeat_frame=b"\n" if lines else b":\n\n",
            )


class _Frames:
    """Makes the frames of events, those that many watch only once."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, str], tuple[Event, bytes]] = OrderedDict()

    async def of(
        self, run: LiveRun, after: int, form: Literal["sse", "ndjson"]
    ) -> AsyncGenerator[bytes]:
        """Give the frames of a run, as its events come."""
        make = _line if form == "ndjson" else functools.partial(frame_of, run_id=run.id)
        events = run.events(after)
        try:
            async for event in events:
                yield self._shared(event, form, make) if run.watchers > 1 else make(event)
        finally:
            await events.aclose()

    def _shared(self, event: Event, form: str, make: Callable[[Event], bytes]) -> bytes:
        key = (id(event), form)
        kept = self._kept.get(key)
        if kept is not None and kept[0] is event:
            return kept[1]
        frame = make(event)
        if len(frame) <= _LONGEST_KEPT:
            self._kept[key] = (event, frame)
            if len(self._kept) > _KEPT_FRAMES:
                self._kept.popitem(last=False)
        return frame


def _line(event: Event) -> bytes:
    return json_of(event) + b"\n"


def _tools_of(target: Any) -> dict[str, AnyTool]:
    if isinstance(target, Agent):
        return {tool.name: tool for tool in target.known_tools if isinstance(tool, FunctionTool)}
    given: list[Any] = [*target] if isinstance(target, (list, tuple)) else [target]
    tools: dict[str, AnyTool] = {}
    for tool in function_tools(given):
        if not isinstance(tool, FunctionTool):
            raise UserTypeError(
                f"What is served is an Agent, or function tools; it got a {type(tool).__name__}."
            )
        one = cast("AnyTool", tool)
        if tools.setdefault(one.name, one) is not one:
            raise UserValueError(
                f"Two of the tools to serve are named {one.name!r}. Give one of them another "
                f"name, for example with policies.rename({one.name + '_2'!r})."
            )
    return tools


def _described(tool: AnyTool) -> dict[str, Any]:
    hints = tool.annotations
    told = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    return {
        "name": tool.name,
        "description": tool.description,
        "schema": tool.json_schema,
        "annotations": None if hints is None else {name: getattr(hints, name) for name in told},
    }


def _check_fields(body: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse what the route does not know: a slip would pass unseen."""
    for name in body:
        if name not in known:
            near = difflib.get_close_matches(name[:100], known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join(known)}."
            raise HttpError(422, f"The body has no field {shown(name)}.{hint}")


def _checked_input(body: Mapping[str, Any]) -> list[Any]:
    """Give what a client says, of which nothing may act by itself or speak for the application.

    Raises:
        HttpError: There is no input, or it is more than a conversation.
    """
    for name in ("tool", "arguments"):
        if name in body:
            raise HttpError(422, f'{name}: this serves an agent. Send {{"input": …}}.')
    given: Any = body.get("input")
    if not given or given.__class__ not in {str, list}:
        kind = "an empty one" if given in ("", []) else json_kind(given)
        raise HttpError(422, f"input: expected a text or a list of items, got {kind}.")
    items = input_items(given)
    for index, item in enumerate(items):
        if isinstance(item, MessageInputItem) and item.role != "user":
            raise HttpError(
                422, f"input[{index}].role: clients speak as 'user', not as {item.role!r}."
            )
    waiting = open_calls(items)
    if waiting:
        raise HttpError(
            422,
            f"input: the call {shown(waiting[0].call_id)} has no answer, and clients cannot have "
            "calls made.",
        )
    return items


def _prefers_no_answer(request: Request) -> bool:
    wishes = request.headers.get("prefer", "").split(",")
    return any(wish.partition(";")[0].strip().lower() == "respond-async" for wish in wishes)


def _place(request: Request, run: LiveRun) -> int:
    """Give the id of the last event that the client has."""
    header = request.headers.get("last-event-id")
    given = header or request.query.get("after") or "-1"
    name = "Last-Event-ID" if header else "after"
    after = read_place(given, run.id)
    if after is None:
        raise HttpError(
            422, f"{name}: expected the id of an event of this run, got {shown(given)}."
        )
    if after > run.stream.last_id and not run.remote:
        raise HttpError(
            422, f"{name}: the last event of the run is {run.stream.last_id}, not {after}."
        )
    return after


def _number(given: str | None, name: str, usual: int) -> int:
    if given is None:
        return usual
    if not re.fullmatch("[0-9]{1,9}", given) or not 0 < int(given) <= usual:
        raise HttpError(422, f"{name}: expected a number from 1 to {usual}, got {shown(given)}.")
    return int(given)
