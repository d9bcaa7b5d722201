"""The native protocol for runs over HTTP, for `sse.app` and `handle_run`."""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote

from agents_tools.agents.agent import Agent
from agents_tools.content.items import MessageInputItem, input_items
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.persistence.conversation import open_calls
from agents_tools.server.application import JsonResponse, empty_response
from agents_tools.server.http_errors import HttpError, json_kind, shown
from agents_tools.server.http_security import header_values
from agents_tools.server.response_stream import FrameResponse
from agents_tools.server.static_files import read_files
from agents_tools.tool.flatten import function_tools
from agents_tools.tool.tool import FunctionTool
from agents_tools.ui._frames import frame_of, parse_event_id
from agents_tools.ui.ndjson import CONTENT_TYPE as NDJSON, json_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from starlette.responses import Response
    from starlette.types import Scope

    from agents_tools.events.base import Event
    from agents_tools.server.application import Handler, HttpRequest
    from agents_tools.server.run_manager import ActiveRun, RunManager, Target
    from agents_tools.server.static_files import StaticFile

__all__ = ["RunRoutes", "client_files", "is_stream"]

AnyTool = FunctionTool[..., Any]

_FIELDS = ("input", "tool", "arguments", "run_id", "thread_id")
_MAX_LISTED = 100
_CACHED_FRAMES = 1_024
_MAX_CACHED_FRAME = 4_096


class RunRoutes:
    """The handlers of the native protocol for one agent or for tools.

    Args:
        target: The agent or the tools.
        runs: The runs.
        heartbeat: The seconds without data after which a comment is sent; `None` to send none.
        max_turns: The largest number of model calls in one run.
        context_of: Returns the application's object for a request; by default that of `runs`.
        has_auth: Whether requests need a bearer token.
        knows_user: Whether callers see all runs that the manager shows them; otherwise, they see
            those without an owner, by their ids.
    """

    def __init__(
        self,
        target: Target,
        runs: RunManager,
        *,
        heartbeat: float | None,
        max_turns: int | None,
        context_of: Callable[[HttpRequest], Awaitable[Any]] | None = None,
        has_auth: bool = False,
        knows_user: bool = True,
    ) -> None:
        self.runs = runs
        self._agent = target if isinstance(target, Agent) else None
        self._tools = _tools_of(target)
        self._heartbeat = heartbeat
        self._max_turns = max_turns
        self._frames = _SseFrames()
        self._context_of = context_of or runs.context_of
        self._has_auth = has_auth
        self._knows_user = knows_user

    def handlers(self) -> dict[tuple[str, str], Handler]:
        """Return the handlers by method and path, without those of the files."""
        return {
            ("GET", "/"): self._info,
            ("GET", "/openapi.json"): self._openapi,
            ("GET", "/tools"): self._list_tools,
            ("POST", "/runs"): self._start,
            ("GET", "/runs"): self._list_runs,
            ("GET", "/runs/{id}"): self._show,
            ("GET", "/runs/{id}/events"): self._watch,
            ("POST", "/runs/{id}/cancel"): self._cancel,
            ("POST", "/runs/{id}/calls/{call_id}/cancel"): self._cancel_call,
            ("POST", "/runs/{id}/approvals"): self._decide,
            ("POST", "/runs/{id}/resume"): self._resume,
        }

    # --- information

    async def _info(self, _: HttpRequest) -> Response:
        from agents_tools._package import __version__

        agent = self._agent
        target = {"kind": "tools"} if agent is None else {"kind": "agent", "name": agent.name}
        info = {"name": "agents-tools", "version": __version__, "target": target}
        return JsonResponse({**info, "on_disconnect": self.runs.on_disconnect})

    async def _openapi(self, _: HttpRequest) -> Response:
        from agents_tools.ui._openapi import openapi_document

        serves_agent = self._agent is not None
        tools = self._tools.values()
        document = openapi_document(tools, serves_agent=serves_agent, has_auth=self._has_auth)
        return JsonResponse(document)

    async def _list_tools(self, _: HttpRequest) -> Response:
        return JsonResponse({"tools": [_describe(tool) for tool in self._tools.values()]})

    async def _list_runs(self, request: HttpRequest) -> Response:
        if not self._knows_user:
            raise HttpError(
                403,
                "Runs are listed only for known users. In the route, pass the user of the request "
                "as user= to handle_run.",
            )
        limit = _number(request.query_params.get("limit"), "limit", _MAX_LISTED)
        newest = (await self.runs.list(limit + 1))[::-1]
        listed = [run.to_dict() for run in newest[:limit]]
        return JsonResponse({"runs": listed, "more": len(newest) > limit})

    async def _show(self, request: HttpRequest) -> Response:
        return JsonResponse((await self._run(request)).to_dict())

    # --- a run

    async def _start(self, request: HttpRequest) -> Response:
        body = await request.json_object()
        _check_fields(body, _FIELDS)
        await self.runs.check_new(body.get("run_id"))
        context = await self._context_of(request)
        ids: dict[str, Any] = {"run_id": body.get("run_id"), "thread_id": body.get("thread_id")}
        if self._agent is not None:
            items = _checked_input(body)
            run = self.runs.start(
                self._agent,
                items,
                context=context,
                max_turns=self._max_turns,
                **ids,
            )
        else:
            tool, arguments = self._call(body)
            run = self.runs.start_tool(tool, arguments, context=context, **ids)
        if _prefers_async(request.scope):
            run.is_detached = True
            await run.wait_until_stored()
            where = f"{str(request.scope.get('root_path', '')).rstrip('/')}/runs/{run.id}"
            headers = {
                "location": quote(where, safe="/:@~+"),
                "preference-applied": "respond-async",
            }
            return JsonResponse(run.to_dict(), 202, headers)
        return self._stream(run, -1, request)

    def _call(self, body: Mapping[str, Any]) -> tuple[AnyTool, str]:
        name, arguments = body.get("tool"), body.get("arguments", {})
        if "input" in body:
            raise HttpError(
                422,
                'input: this app serves tools, not an agent. Send {"tool": …, "arguments": {…}}.',
            )
        if not isinstance(name, str):
            raise HttpError(422, f"tool: expected the name of a tool, got {json_kind(name)}.")
        if not isinstance(arguments, dict):
            raise HttpError(422, f"arguments: expected an object, got {json_kind(arguments)}.")
        tool = self._tools.get(name)
        if tool is None or tool.is_enabled is False:
            near = difflib.get_close_matches(name[:100], self._tools, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else " GET /tools lists them."
            raise HttpError(404, f"The tool {shown(name)} does not exist.{hint}")
        return tool, json.dumps(arguments)

    async def _watch(self, request: HttpRequest) -> Response:
        run = await self._run(request)
        after = _last_event_id(request, run)
        if run.is_over(after):
            return empty_response()
        return self._stream(run, after, request)

    async def _cancel(self, request: HttpRequest) -> Response:
        run = await self._run(request)
        body = await request.json_object()
        _check_fields(body, ("reason",))
        reason = body.get("reason") or ""
        if not isinstance(reason, str):
            raise HttpError(422, f"reason: expected a text, got {json_kind(reason)}.")
        cancelled = await run.cancel(reason[:1_000])
        return JsonResponse({"cancelled": cancelled, "status": run.status})

    async def _cancel_call(self, request: HttpRequest) -> Response:
        run = await self._run(request)
        _check_fields(await request.json_object(), ())
        cancelled = await run.cancel_call(request.path_params["call_id"])
        return JsonResponse({"cancelled": cancelled, "status": run.status})

    async def _decide(self, request: HttpRequest) -> Response:
        run = await self._run(request)
        body = await request.json_object()
        _check_fields(body, ("decisions",))
        decisions = body.get("decisions")
        if not isinstance(decisions, list) or not decisions:
            raise HttpError(422, "decisions: expected a list of at least one decision.")
        await self._lend(run, request)
        await run.decide(cast("list[Any]", decisions))
        state = run.to_dict()
        return JsonResponse({"ok": True, "status": run.status, "approvals": state["approvals"]})

    async def _resume(self, request: HttpRequest) -> Response:
        run = await self._run(request)
        _check_fields(await request.json_object(), ())
        await self._lend(run, request)
        await self.runs.resume_by_request(run)
        return JsonResponse({"ok": True, "status": run.status})

    async def _run(self, request: HttpRequest) -> ActiveRun:
        run_id = request.path_params["id"]
        run = await self.runs.find(run_id)
        # A route that does not know its callers must not show the runs of known users.
        if run is None or (run.owner is not None and not self._knows_user):
            raise HttpError(
                404,
                f"The run {shown(run_id)} does not exist, or was lost when its server stopped. "
                "GET /runs lists the runs. To keep runs, pass a 'store' to the server.",
            )
        return run

    async def _lend(self, run: ActiveRun, request: HttpRequest) -> None:
        """Set what a waiting run that this process has not started needs to continue."""
        if run.lacks_context:
            run.context = await self._context_of(request)
        if self._agent is not None:
            self.runs.lend_agent(run, self._agent, max_turns=self._max_turns)

    def _stream(self, run: ActiveRun, after: int, request: HttpRequest) -> Response:
        lines = NDJSON in request.headers.get("accept", "")
        return FrameResponse(
            self._frames.of(run, after, "ndjson" if lines else "sse"),
            content_type=NDJSON if lines else "text/event-stream",
            heartbeat=self._heartbeat,
            heartbeat_frame=b"\n" if lines else b":\n\n",
            watching=run.watching(),
        )


class _SseFrames:
    """Encodes events as frames, and caches the frames of runs with several clients."""

    def __init__(self) -> None:
        self._cache: OrderedDict[tuple[int, str], tuple[Event, bytes]] = OrderedDict()

    async def of(
        self, run: ActiveRun, after: int, form: Literal["sse", "ndjson"]
    ) -> AsyncGenerator[bytes]:
        """Yield the frames of a run while it emits events."""
        make = _line if form == "ndjson" else functools.partial(frame_of, run_id=run.id)
        events = run.events(after)
        try:
            async for event in events:
                yield self._encode_cached(event, form, make) if run.watchers > 1 else make(event)
        finally:
            await events.aclose()

    def _encode_cached(self, event: Event, form: str, make: Callable[[Event], bytes]) -> bytes:
        key = (id(event), form)
        cached = self._cache.get(key)
        if cached is not None and cached[0] is event:
            return cached[1]
        frame = make(event)
        if len(frame) <= _MAX_CACHED_FRAME:
            self._cache[key] = (event, frame)
            if len(self._cache) > _CACHED_FRAMES:
                self._cache.popitem(last=False)
        return frame


def _line(event: Event) -> bytes:
    return json_of(event) + b"\n"


def _tools_of(target: Any) -> dict[str, AnyTool]:
    if isinstance(target, Agent):
        return {tool.name: tool for tool in target.known_tools if isinstance(tool, FunctionTool)}
    values: list[Any] = [*target] if isinstance(target, (list, tuple)) else [target]
    tools: dict[str, AnyTool] = {}
    for tool in function_tools(values):
        if not isinstance(tool, FunctionTool):
            raise UserTypeError(
                f"sse.app(target): expected an Agent or function tools, got {type(tool).__name__}."
            )
        one = cast("AnyTool", tool)
        if tools.setdefault(one.name, one) is not one:
            raise UserValueError(
                f"Two of the tools have the name {one.name!r}: expected unique names. Rename one, "
                f"for example with policies.rename({one.name + '_2'!r})."
            )
    return tools


def _describe(tool: AnyTool) -> dict[str, Any]:
    hints = tool.annotations
    names = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    return {
        "name": tool.name,
        "description": tool.description,
        "schema": tool.json_schema,
        "annotations": None if hints is None else {name: getattr(hints, name) for name in names},
    }


def _check_fields(body: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse unknown fields, so that a misspelled name is not ignored."""
    for name in body:
        if name not in known:
            near = difflib.get_close_matches(name[:100], known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            if known and not near:
                hint = f" Known fields: {', '.join(known)}."
            raise HttpError(422, f"The body has no field {shown(name)}.{hint}")


def _checked_input(body: Mapping[str, Any]) -> list[Any]:
    """Return the input items of a client: messages of the user and answered calls only.

    Raises:
        HttpError: The input is missing or has other items.
    """
    for name in ("tool", "arguments"):
        if name in body:
            raise HttpError(
                422, f'{name}: this app serves an agent, not tools. Send {{"input": …}}.'
            )
    value: Any = body.get("input")
    if not value or value.__class__ not in {str, list}:
        kind = "an empty one" if value in ("", []) else json_kind(value)
        raise HttpError(422, f"input: expected a text or a list of items, got {kind}.")
    items = input_items(value)
    for index, item in enumerate(items):
        if isinstance(item, MessageInputItem) and item.role != "user":
            raise HttpError(422, f"input[{index}].role: expected 'user', got {item.role!r}.")
    waiting = open_calls(items)
    if waiting:
        raise HttpError(
            422,
            f"input: the call {shown(waiting[0].call_id)} has no output, and clients cannot start "
            "calls. Add the output of the call.",
        )
    return items


def is_stream(scope: Scope, path: str) -> bool:
    """Return whether a request is answered with the events of a run.

    Args:
        scope: The ASGI scope of the request.
        path: The path below the mount point.
    """
    if scope["method"] == "GET":
        return path.endswith("/events")
    return path == "/runs" and not _prefers_async(scope)


@functools.cache
def client_files() -> dict[str, StaticFile]:
    """Return the modules for web pages by path. They contain nothing that needs protection."""
    found = read_files("agents_tools.ui", "client")
    return {f"/{name}": file for name, file in found.items() if name.endswith((".js", ".css"))}


def _prefers_async(scope: Scope) -> bool:
    preferences = ",".join(header_values(scope, b"prefer")).split(",")
    return any(item.partition(";")[0].strip().lower() == "respond-async" for item in preferences)


def _last_event_id(request: HttpRequest, run: ActiveRun) -> int:
    """Return the id of the last event that the client has."""
    header = request.headers.get("last-event-id")
    value = header or request.query_params.get("after") or "-1"
    name = "Last-Event-ID" if header else "after"
    after = parse_event_id(value, run.id)
    if after is None:  # the client can use the id of the run that it has chosen
        after = parse_event_id(value, request.path_params["id"])
    if after is None:
        raise HttpError(
            422, f"{name}: expected the id of an event of this run, got {shown(value)}."
        )
    if after > run.last_id:
        raise HttpError(422, f"{name}: expected an id up to {run.last_id}, got {after}.")
    return after


def _number(text: str | None, name: str, default: int) -> int:
    if text is None:
        return default
    if not re.fullmatch("[0-9]{1,9}", text) or not 0 < int(text) <= default:
        raise HttpError(422, f"{name}: expected a number from 1 to {default}, got {shown(text)}.")
    return int(text)
