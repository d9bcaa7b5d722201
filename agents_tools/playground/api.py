"""The routes of the playground, as an ASGI app."""

from __future__ import annotations

import hmac
import json
import secrets
import time
from typing import TYPE_CHECKING, Any, Literal, cast

from starlette.responses import Response

from agents_tools._package import __version__
from agents_tools.errors import EventStoreError, UserTypeError
from agents_tools.persistence import MemoryRunStore
from agents_tools.playground.attachments import MOST_BODY, MOST_BYTES, read_files
from agents_tools.playground.catalog import agent_details, asks_first, shape_of
from agents_tools.playground.codegen import ToolCallRequest, export
from agents_tools.playground.page_files import pages, secured
from agents_tools.playground.provider_views import diff_since, views_of
from agents_tools.playground.reload import ReloadingTarget
from agents_tools.playground.results import plain_blocks, result_of
from agents_tools.playground.run_manager import PlaygroundRuns
from agents_tools.playground.validation import refusal_of
from agents_tools.server.application import (
    Application,
    JsonResponse,
    empty_response,
    error_response,
)
from agents_tools.server.http_errors import HttpError
from agents_tools.server.http_security import ListenerLimits, inner_path
from agents_tools.server.response_stream import FrameResponse
from agents_tools.server.static_files import handlers_of
from agents_tools.text.escape import shorten
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from agents_tools.agents.config import RunConfig
    from agents_tools.persistence import RunStore
    from agents_tools.playground.catalog import TargetCatalog
    from agents_tools.playground.codegen import Form
    from agents_tools.playground.history import HistoryRecord
    from agents_tools.playground.target_state import AnyAgent, Load, Tool
    from agents_tools.server.application import Handler, HttpRequest
    from agents_tools.server.http_security import TokenVerifier

__all__ = ["PlaygroundApp", "app"]

_FORMS: Mapping[str, Form] = {
    "python": "python",
    "cli": "cli",
    "json": "json",
    "pytest": "pytest",
}
_LINK = "/open/"
_LINK_LASTS = 60.0
"""Seconds."""
_MOST_RUNS = 200
_KEPT_IN_MEMORY = 100


def app(
    load: Load,
    *,
    token: str | TokenVerifier,
    store: RunStore | None = None,
    target: str = "",
    **options: Any,
) -> PlaygroundApp:
    """Create the playground of a target and load the target.

    Args:
        load: Imports the target and returns its tools and agents.
        token: The bearer token that the page sends, or a token verifier.
        store: Stores the runs; in memory by default.
        target: The name of the target.
        **options: Other options of `PlaygroundApp`.
    """
    reloading = ReloadingTarget(load, target=target)
    reloading.load()
    return PlaygroundApp(reloading, token=token, store=store, **options)


class PlaygroundApp(Application):
    """The playground as an ASGI app, for use in one event loop.

    All routes except the files of the page require the token. Requests cannot name a file, a module
    or a command; the target is set when the server starts.

    Args:
        bench: The target.
        token: The bearer token that the page sends, or a token verifier.
        store: Stores the runs; in memory by default.
        keep_runs: The number of runs to keep; `None` for the store of another program, where the
            playground deletes only the runs that the user chooses.
        keep_bytes: The largest total size of the kept runs in bytes.
        watch: Whether to watch the files of the target for changes.
        run_config: The settings of the runs.
        on_error: Called with each error of a call or a run, for the terminal.
        host: The address that the server listens on.
        allowed_hosts: Accepted values of the Host header, besides loopback.
        allowed_origins: Origins of other web pages that can call the app.
    """

    def __init__(
        self,
        bench: ReloadingTarget,
        *,
        token: str | TokenVerifier,
        store: RunStore | None = None,
        keep_runs: int | None = 500,
        keep_bytes: int = 256 << 20,
        watch: bool = True,
        run_config: RunConfig | None = None,
        on_error: Callable[[BaseException], object] | None = None,
        host: str = "127.0.0.1",
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
    ) -> None:
        self._bench = bench
        self._has_history = store is not None
        self._is_shared = store is not None and keep_runs is None
        keep = keep_runs
        if store is None:
            keep = _KEPT_IN_MEMORY if keep is None else min(keep, _KEPT_IN_MEMORY)
        self._place = "" if store is None else store.place
        self._running = PlaygroundRuns(
            store or MemoryRunStore(keep_display=True),
            bench,
            keep=keep,
            keep_bytes=keep_bytes,
            watch=watch,
            run_config=run_config,
            on_error=on_error,
            shows_all=self._is_shared and isinstance(token, str),
        )
        self._history = self._running.history
        self._token = token
        self._link = ("", 0.0)
        table = pages()
        super().__init__(
            {**self._routes(), **handlers_of(table)},
            on_start=self.start,
            host=host,
            auth=token,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            protect=lambda path: path not in table and not path.startswith(_LINK),
            is_stream=lambda scope: inner_path(scope).endswith(("/events", "/changes")),
            limits=ListenerLimits(max_body=MOST_BODY),
        )

        self._is_closing = False
        self.add_exception_handler(EventStoreError, self._answer_store_error)

    async def _answer_store_error(self, _: Request, error: Exception) -> Response:
        """Answer a request that reads the store while the server closes it."""
        if not self._is_closing:
            raise error
        return error_response(HttpError(503, "The server is stopping."))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        await super().__call__(scope, receive, secured(send))

    def link(self) -> str:
        """Return a path that opens the page with its token, once and within a minute.

        Other users of the machine can see the arguments of a browser process. The link is already
        used by then, unlike a link with the token.

        Raises:
            UserError: The app has a token verifier instead of a token.
        """
        if not isinstance(self._token, str):
            raise UserTypeError("link(): expected a token, got a token verifier.")
        word = secrets.token_urlsafe(24)
        self._link = (word, time.monotonic() + _LINK_LASTS)
        return _LINK + word

    async def start(self) -> None:
        """Read the history, and start to watch the files."""
        await self._running.start()

    async def aclose(self) -> None:
        """Cancel all runs, end all streams, and close the target and the history."""
        self._is_closing = True
        await self._running.aclose()

    def _routes(self) -> dict[tuple[str, str], Handler]:
        return {
            ("GET", _LINK + "{word}"): self._open,
            ("GET", "/api/info"): self._info,
            ("GET", "/api/tools"): self._tools,
            ("GET", "/api/tools/{name}/views"): self._views,
            ("GET", "/api/agents/{name}"): self._agent_details,
            ("POST", "/api/tools/{name}/check"): self._check,
            ("GET", "/api/runs"): self._runs,
            ("POST", "/api/runs"): self._begin,
            ("DELETE", "/api/runs"): self._forget_all,
            ("GET", "/api/runs/{id}"): self._run,
            ("DELETE", "/api/runs/{id}"): self._forget,
            ("GET", "/api/runs/{id}/events"): self._events,
            ("GET", "/api/runs/{id}/files/{number}"): self._file,
            ("POST", "/api/runs/{id}/cancel"): self._cancel,
            ("POST", "/api/runs/{id}/calls/{call}/cancel"): self._cancel_call,
            ("POST", "/api/runs/{id}/approvals"): self._decide,
            ("POST", "/api/runs/{id}/resume"): self._resume,
            ("POST", "/api/runs/{id}/rerun"): self._rerun,
            ("GET", "/api/runs/{id}/export"): self._export,
            ("GET", "/api/runs/{id}/tracebacks"): self._tracebacks,
            ("GET", "/api/runs/{id}/requests"): self._requests,
            ("GET", "/api/runs/{id}/requests/{number}"): self._prompt,
            ("GET", "/api/sessions/{id}"): self._session,
            ("GET", "/api/changes"): self._changes,
        }

    async def _open(self, request: HttpRequest) -> Response:
        word, until = self._link
        same = hmac.compare_digest(request.path_params["word"].encode(), word.encode())
        if not word or not same or time.monotonic() > until:
            raise HttpError(
                410,
                "This link works once, within a minute. Open the address that the server printed. "
                "If you have not used the link before, stop the server.",
            )
        self._link = ("", 0.0)
        headers = {"location": f"/#token={self._token}", "cache-control": "no-store"}
        return empty_response(303, headers)

    # --- the target

    async def _info(self, request: HttpRequest) -> Response:
        del request
        return JsonResponse(
            {
                "name": "agents-tools",
                "version": __version__,
                "target": release_text(self._bench.target),
                "history": self._has_history,
                "store": release_text(self._place) if self._is_shared else None,
                "read_only": False,
                "most_bytes": MOST_BYTES,
                **self._news(),
            },
        )

    async def _tools(self, request: HttpRequest) -> Response:
        del request
        told = {"generation": self._bench.generation, **self._bench.catalog.described()}
        return JsonResponse(told)

    async def _views(self, request: HttpRequest) -> Response:
        tool = self._tool(request.path_params["name"])
        baseline = self._bench.baselines.get(tool.name)
        diff = None if baseline is None else diff_since(baseline, shape_of(tool))
        return JsonResponse({"views": views_of(tool), "diff": diff})

    async def _agent_details(self, request: HttpRequest) -> Response:
        return JsonResponse(agent_details(self._agent(request.path_params["name"])))

    async def _check(self, request: HttpRequest) -> Response:
        tool = self._tool(request.path_params["name"])
        body = await request.json_object()
        refusal = await refusal_of(tool, _object(body, "arguments"))
        if refusal is None:
            return JsonResponse({"ok": True})
        told = {"ok": False, "faults": refusal.faults, "message": refusal.message}
        return JsonResponse(told)

    async def _changes(self, request: HttpRequest) -> Response:
        known = _number(
            request.query_params.get("generation"), "generation", self._bench.generation
        )
        return FrameResponse(self._change_frames(known))

    async def _change_frames(self, known: int) -> AsyncGenerator[bytes]:
        while await self._bench.changed_since(known):
            known = self._bench.generation
            data = json.dumps(self._news(), ensure_ascii=False)
            yield f"event: reload\ndata: {data}\n\n".encode(errors="replace")

    def _news(self) -> dict[str, Any]:
        return {
            "generation": self._bench.generation,
            "problems": [problem.to_dict() for problem in self._bench.problems],
        }

    # --- runs

    async def _begin(self, request: HttpRequest) -> Response:
        body = await request.json_object()
        name = _text(body, "name")
        if body.get("kind") == "agent":
            text = _text(body, "input").encode(errors="replace").decode()
            begun = await self._running.start_agent(
                self._agent(name),
                text,
                files=read_files(body),
                session=_optional_text(body, "session"),
                changes=_changes_of(body),
            )
        elif body.get("kind") == "tool":
            arguments = _object(body, "arguments")
            begun = await self._begun(name, arguments, confirmed=body.get("confirmed") is True)
        else:
            raise HttpError(422, "kind: expected 'tool' or 'agent'.")
        return JsonResponse({"run_id": begun}, 202)

    async def _begun(self, name: str, arguments: Mapping[str, Any], *, confirmed: bool) -> str:
        tool = self._tool(name)
        refusal = await refusal_of(tool, arguments)
        if refusal is not None:
            told = refusal.message
            raise HttpError(422, told, code="arguments", faults=list(refusal.faults))
        if asks_first(tool) and not confirmed:
            raise HttpError(
                409,
                f"{name!r} is marked as destructive. To run it, send the request again with "
                '"confirmed": true.',
                code="confirm",
            )
        return await self._running.start_tool(tool, arguments)

    async def _rerun(self, request: HttpRequest) -> Response:
        record = await self._record(request)
        body = await request.json_object()
        given: Any = self._running.given(record)
        if given is None and (record.kind == "agent" or "arguments" not in body):
            raise HttpError(
                422,
                "The input of this run contained a secret, which was not stored. Fill it in again.",
                code="masked",
            )
        if record.kind == "agent":
            begun = await self._running.start_agent(
                self._agent(record.name),
                str(given),
                files=await self._history.files(record.id) if record.files else (),
                session=record.session,
                changes=record.changes,
            )
        else:
            kept = cast("dict[str, Any]", given)
            arguments = _object(body, "arguments") if "arguments" in body else kept
            confirmed = body.get("confirmed") is True
            begun = await self._begun(record.name, arguments, confirmed=confirmed)
        return JsonResponse({"run_id": begun}, 202)

    async def _runs(self, request: HttpRequest) -> Response:
        limit = _number(request.query_params.get("limit"), "limit", 50)
        await self._running.settle()
        page, more = await self._history.page(
            max(1, min(limit, _MOST_RUNS)), request.query_params.get("before") or None
        )
        return JsonResponse({"runs": [record.to_dict() for record in page], "more": more})

    async def _run(self, request: HttpRequest) -> Response:
        record = await self._settled(request)
        result = result_of(record.kind, await self._running.results(record.id))
        told = {
            **record.to_dict(),
            "result": result.to_dict(),
            "approvals": await self._running.approvals(record),
        }
        return JsonResponse(told)

    async def _events(self, request: HttpRequest) -> Response:
        record = await self._record(request)
        resumed = request.headers.get("last-event-id", "").rpartition(":")[2]
        after = _number(request.query_params.get("after") or resumed or None, "after", -1)
        frames: AsyncIterator[bytes] | None = await self._running.frames(record.id, after)
        if frames is None:
            return empty_response()
        return FrameResponse(frames)

    async def _file(self, request: HttpRequest) -> Response:
        """Return the content of a file that a message contains. The page decides how to show it."""
        record = await self._record(request)
        number = _number(request.path_params["number"], "number", 0)
        files = await self._history.files(record.id)
        data = getattr(files[number], "data", None) if 0 <= number < len(files) else None
        if data is None:
            raise HttpError(404, "The file was not found.", code="unknown")
        return Response(data, media_type="application/octet-stream")

    async def _cancel(self, request: HttpRequest) -> Response:
        await request.json_object()
        return JsonResponse({"cancelled": await self._running.cancel(await self._settled(request))})

    async def _cancel_call(self, request: HttpRequest) -> Response:
        await request.json_object()
        record = await self._record(request)
        cancelled = await self._running.cancel_call(record, request.path_params["call"])
        return JsonResponse({"cancelled": cancelled})

    async def _decide(self, request: HttpRequest) -> Response:
        decisions = (await request.json_object()).get("decisions")
        if not isinstance(decisions, list) or not decisions:
            raise HttpError(422, "decisions: expected a list with one decision for each call.")
        await self._running.decide(await self._settled(request), cast("list[Any]", decisions))
        return JsonResponse({"ok": True})

    async def _resume(self, request: HttpRequest) -> Response:
        await request.json_object()
        await self._running.resume(await self._settled(request))
        return JsonResponse({"ok": True})

    async def _forget(self, request: HttpRequest) -> Response:
        record = await self._settled(request)
        if record.status == "running":
            raise HttpError(409, "This run is still running. Cancel it first.", code="running")
        await self._running.forget([record.id])
        return empty_response()

    async def _forget_all(self, request: HttpRequest) -> Response:
        del request
        if self._is_shared:
            raise HttpError(409, "The runs of a shared store can only be deleted one by one.")
        await self._running.settle()
        records, _ = await self._history.page(1 << 30, None)
        await self._running.forget([record.id for record in records if record.status != "running"])
        return empty_response()

    async def _export(self, request: HttpRequest) -> Response:
        record = await self._settled(request)
        form = _FORMS.get(request.query_params.get("as", "python"))
        if form is None:
            raise HttpError(422, f"as=: expected one of {', '.join(_FORMS)}.")
        catalog: TargetCatalog = self._bench.catalog
        if record.name not in (catalog.tools if record.kind == "tool" else catalog.agents):
            raise HttpError(404, f"The {record.kind} {record.name!r} no longer exists.")
        result = result_of(record.kind, await self._running.results(record.id))
        given: Any = record.given if result.arguments is None else result.arguments
        call = ToolCallRequest(
            kind=record.kind,
            name=record.name,
            arguments=given if record.kind == "tool" else {},
            input=str(given) if record.kind == "agent" else "",
            files=record.files,
            status=result.call_status,
            blocks=plain_blocks(result),
            texts=result.is_text,
            run_status=record.status,
        )
        name, text = export(call, form, catalog)
        text = text.encode(errors="replace").decode()  # the name of a file can be invalid Unicode
        return JsonResponse({"name": name, "text": text})

    async def _tracebacks(self, request: HttpRequest) -> Response:
        record = await self._record(request)
        return JsonResponse({"tracebacks": self._running.tracebacks.of_run(record.id)})

    async def _requests(self, request: HttpRequest) -> Response:
        record = await self._record(request)
        return JsonResponse(
            {"requests": await self._running.requests.of_run(record.id, record.kind)}
        )

    async def _prompt(self, request: HttpRequest) -> Response:
        record = await self._record(request)
        number = _number(request.path_params["number"], "number", 0)
        prompt = self._running.requests.prompt(record.id, number)
        if prompt is None:
            raise HttpError(
                404,
                "The prompt is not available: the request was sent by another server, or too long "
                "ago.",
                code="unknown",
            )
        return JsonResponse(prompt)

    async def _session(self, request: HttpRequest) -> Response:
        limit = _number(request.query_params.get("limit"), "limit", 20)
        await self._running.settle()
        records, more = await self._history.session(
            request.path_params["id"], max(1, min(limit, _MOST_RUNS))
        )
        return JsonResponse({"runs": [record.to_dict() for record in records], "more": more})

    # --- look-ups

    def _tool(self, name: str) -> Tool:
        tool = self._bench.catalog.tools.get(name)
        if tool is None:
            raise _missing("tool", name, self._bench.catalog.tools)
        return tool

    def _agent(self, name: str) -> AnyAgent:
        agent = self._bench.catalog.agents.get(name)
        if agent is None:
            raise _missing("agent", name, self._bench.catalog.agents)
        return agent

    async def _settled(self, request: HttpRequest) -> HistoryRecord:
        """Return the current state of the run in the request."""
        await self._running.settle()
        return await self._record(request)

    async def _record(self, request: HttpRequest) -> HistoryRecord:
        found = await self._history.get(request.path_params["id"])
        if found is None:
            raise HttpError(404, "The run was not found; it may have been deleted.", code="unknown")
        return found


def _missing(kind: Literal["tool", "agent"], name: str, known: Mapping[str, Any]) -> HttpError:
    has = shorten(", ".join(known), 200) or "none"
    shown = release_text(name, limit=80)
    return HttpError(404, f"The {kind} {shown!r} does not exist. Known: {has}.", code="unknown")


def _object(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = body.get(name, {})
    if not isinstance(found, dict):
        raise HttpError(422, f"{name}: expected a JSON object.")
    return cast("dict[str, Any]", found)


def _text(body: Mapping[str, Any], name: str) -> str:
    found = body.get(name)
    if not isinstance(found, str):
        raise HttpError(422, f"{name}: expected a text.")
    return found


def _optional_text(body: Mapping[str, Any], name: str) -> str | None:
    return None if body.get(name) is None else _text(body, name)


def _changes_of(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes of an agent that a request replaces for one run."""
    given = {name: _optional_text(body, name) for name in ("instructions", "model")}
    return {name: text for name, text in given.items() if text is not None}


def _number(text: str | None, name: str, default: int) -> int:
    if text is None:
        return default
    try:
        return int(text[:20])
    except ValueError:
        raise HttpError(422, f"{name}=: expected an integer.") from None
