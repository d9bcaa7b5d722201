"""`handle_run` in routes of FastAPI and Starlette, and several apps in one."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from agents_tools import Agent, ToolContext, UserError, function_tool
from agents_tools.persistence import SQLiteRunStore
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.ui import RunManager, ag_ui, handle_run, mount, sse, vercel
from tests.ui.web import Exchange, ask, served

TENANTS = {"ada": "north", "bob": "south", "cy": "north"}


@function_tool
def whose(ctx: ToolContext[str]) -> str:
    """Return the tenant."""
    return f"of {ctx.context}"


@needs_approval
@function_tool
def drop(ctx: ToolContext[str], table: str) -> str:
    """Drop a table."""
    return f"{ctx.context}: dropped {table}"


def helper(*script: Any) -> Agent[Any, Any]:
    return Agent("helper", tools=[whose, drop], model=ScriptedModel(list(script)))


def signed_in(request: Request) -> str:
    user = request.headers.get("x-user", "")
    if user not in TENANTS:
        raise HTTPException(401)
    return user


class Question(BaseModel):
    """The body of a request, as an application reads it."""

    input: str


User = Annotated[str, Depends(signed_in)]


def shop(*script: Any, runs: RunManager | None = None) -> FastAPI:
    """Return an application with a route whose users have tenants."""
    api = FastAPI()

    @api.api_route("/agent/{path:path}", methods=["GET", "POST", "DELETE"])
    async def agent(request: Request, user: User) -> Any:
        return await handle_run(
            request, agent=helper(*script), context=TENANTS[user], user=user, runs=runs
        )

    return api


async def of(app: Any, user: str, method: str, path: str, body: Any = None, **how: Any) -> Exchange:
    """Send a request of a user."""
    headers = {"x-user": user, **how.pop("headers", {})}
    return await ask(app, method, path, body, headers=headers, **how)


async def test_each_user_has_runs_of_their_own_with_the_context_of_the_route() -> None:
    app = shop(tool_call("whose"), "Done.")
    for user in ("ada", "bob"):
        answer = await of(app, user, "POST", "/agent/runs", {"input": "?", "run_id": "r1"})
        assert answer.status == 200
        assert f"of {TENANTS[user]}" in answer.text
    for user, seen in (("ada", 1), ("bob", 1), ("cy", 0)):
        assert len((await of(app, user, "GET", "/agent/runs")).json["runs"]) == seen
    assert (await of(app, "cy", "GET", "/agent/runs/r1")).status == 404  # of the same tenant
    assert (await of(app, "eve", "GET", "/agent/runs/r1")).status == 401
    (run,) = (await of(app, "ada", "GET", "/agent/runs")).json["runs"]
    for path in ("", "/events", "/cancel", "/approvals", "/resume", "/calls/call_1/cancel"):
        method = "GET" if path in {"", "/events"} else "POST"
        body = None if method == "GET" else {}
        answer = await of(app, "bob", method, f"/agent/runs/{run['run_id']}{path}", body)
        assert answer.status == 404, path


async def test_a_stream_is_resumed_and_a_call_is_approved() -> None:
    app = shop([tool_call("drop", table="t", call_id="c1")], "Done.")
    async with asyncio.timeout(30):
        started = await of(
            app, "ada", "POST", "/agent/runs", {"input": "?"}, headers={"prefer": "respond-async"}
        )
        assert started.status == 202
        place = started.headers["location"]
        first = await of(app, "ada", "GET", f"{place}/events")
        events = list(sse.decode(first.text))
        assert events[-1].to_dict()["status"] == "interrupted"
        decisions = {"decisions": [{"call_id": "c1", "approve": True}]}
        assert (await of(app, "ada", "POST", f"{place}/approvals", decisions)).status == 200
        last = {"last-event-id": str(events[-1].id)}
        rest = await of(app, "ada", "GET", f"{place}/events", headers=last)
    ids = [event.id for event in sse.decode(rest.text)]
    assert ids == sorted(ids)
    assert ids[0] > events[-1].id
    assert "north: dropped t" in rest.text


@pytest.mark.parametrize("prefix", ["", "/api"])
async def test_the_place_of_a_run_includes_where_the_application_is_mounted(prefix: str) -> None:
    app: Any = shop("Done.")
    outer = Starlette(routes=[Mount(prefix, app)]) if prefix else app
    headers = {"prefer": "respond-async"}
    started = await of(
        outer, "ada", "POST", f"{prefix}/agent/runs/", {"input": "?"}, headers=headers
    )
    assert started.headers["location"].startswith(f"{prefix}/agent/runs/run_")
    assert (await of(outer, "ada", "GET", started.headers["location"])).status == 200


async def test_a_run_continues_after_a_restart_with_the_agent_of_the_request(
    tmp_path: Path,
) -> None:
    script = [[tool_call("drop", table="t", call_id="c1")], "Done."]
    manager = RunManager(store=SQLiteRunStore(tmp_path / "runs.db"))
    app = shop(*script, runs=manager)
    body = {"input": "?", "run_id": "r1"}
    assert "interrupted" in (await of(app, "ada", "POST", "/agent/runs", body)).text
    await manager.aclose()

    manager = RunManager(store=SQLiteRunStore(tmp_path / "runs.db"))
    app = shop(script[1], runs=manager)
    decisions = {"decisions": [{"call_id": "c1", "approve": True}]}
    decided = await of(app, "ada", "POST", "/agent/runs/r1/approvals", decisions)
    assert decided.status == 200, decided.text
    rest = await of(app, "ada", "GET", "/agent/runs/r1/events")
    assert "north: dropped t" in rest.text
    assert list(sse.decode(rest.text))[-1].to_dict()["output"] == "Done."
    await manager.aclose()


async def test_the_runs_start_and_end_with_the_application(tmp_path: Path) -> None:
    runs = RunManager(store=SQLiteRunStore(tmp_path / "runs.db"))
    gone = asyncio.Event()

    @function_tool
    async def wait() -> str:
        """Wait."""
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return ""

    async def route(request: Request) -> Any:
        agent = Agent("helper", tools=[wait], model=ScriptedModel([tool_call("wait")]))
        return await handle_run(request, agent=agent, runs=runs)

    app = Starlette(
        routes=[Route("/agent/{path:path}", route, methods=["GET", "POST"])],
        lifespan=runs.lifespan,
    )
    async with served(app):
        headers = {"prefer": "respond-async"}
        started = await ask(app, "POST", "/agent/runs", {"input": "?"}, headers=headers)
        stream = Exchange(app, "GET", f"{started.headers['location']}/events")
        await stream.until("tool_stream_start_event")
    async with asyncio.timeout(30):
        await gone.wait()
        await stream.whole()
    assert "The server is stopping." in stream.text


async def test_without_a_user_the_id_of_a_run_is_the_key_to_it() -> None:
    api = FastAPI()

    @api.api_route("/agent/{path:path}", methods=["GET", "POST"])
    async def agent(request: Request) -> Any:
        return await handle_run(request, agent=helper("Done."))

    run = await ask(api, "POST", "/agent/runs", {"input": "?"}, headers={"prefer": "respond-async"})
    assert re.fullmatch("run_[0-9a-f]{32}", run.json["run_id"])
    assert (await ask(api, "GET", run.headers["location"])).status == 200
    listed = await ask(api, "GET", "/agent/runs")
    assert (listed.status, "user=" in listed.message) == (403, True)


async def test_a_route_without_users_does_not_show_the_runs_of_users() -> None:
    app = shop("Done.")

    @app.api_route("/public/{path:path}", methods=["GET", "POST"])
    async def public(request: Request) -> Any:
        return await handle_run(request, agent=helper("Done."))

    headers = {"prefer": "respond-async"}
    run = await of(app, "ada", "POST", "/agent/runs", {"input": "?"}, headers=headers)
    place = f"runs/{run.json['run_id']}"
    assert (await of(app, "ada", "GET", f"/agent/{place}")).status == 200
    assert (await ask(app, "GET", f"/public/{place}")).status == 404
    assert (await ask(app, "POST", f"/public/{place}/cancel", {})).status == 404


async def test_a_request_of_no_application_needs_the_runs() -> None:
    async def bare(scope: Any, receive: Any, send: Any) -> None:
        request = Request({**scope, "path_params": {"path": "runs"}}, receive)
        response = await handle_run(request, agent=helper("Done."), runs=runs)
        await response(scope, receive, send)

    runs: RunManager | None = None
    with pytest.raises(UserError, match="Pass one that all requests share"):
        await ask(bare, "POST", "/runs", {"input": "?"})
    runs = RunManager()
    assert "Done." in (await ask(bare, "POST", "/runs", {"input": "?"})).text


async def test_a_post_route_streams_the_events_of_a_new_run() -> None:
    """Dependencies that have read the body do not matter."""
    api = FastAPI()

    @api.post("/ask")
    async def answer(request: Request, question: Question) -> Any:
        return await handle_run(request, agent=helper(f"You asked: {question.input}"))

    headers = {"prefer": "respond-async"}  # has no path to follow the run at
    answered = await ask(api, "POST", "/ask", {"input": "Why?"}, headers=headers)
    assert answered.headers["content-type"] == "text/event-stream"
    assert list(sse.decode(answered.text))[-1].to_dict()["output"] == "You asked: Why?"


async def test_a_run_is_cancelled_when_its_last_client_leaves() -> None:
    gone = asyncio.Event()

    @function_tool
    async def wait() -> str:
        """Wait."""
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return ""

    api = FastAPI()

    @api.post("/ask")
    async def answer(request: Request) -> Any:
        agent = Agent("helper", tools=[wait], model=ScriptedModel([tool_call("wait")]))
        return await handle_run(request, agent=agent)

    stream = Exchange(api, "POST", "/ask", {"input": "?"})
    await stream.until("tool_stream_start_event")
    await stream.leave()
    async with asyncio.timeout(30):
        await gone.wait()


@pytest.mark.parametrize(
    ("method", "path", "body", "how", "status", "expected"),
    [
        ("POST", "/runs", {"input": "?"}, {"kind": "text/plain"}, 415, "application/json"),
        ("POST", "/runs", b"{", {}, 400, "not JSON"),
        ("POST", "/runs", {"inputs": "?"}, {}, 422, "'input'"),
        ("POST", "/runs", {"input": "x" * 5_000}, {}, 413, "at most 4,096 bytes"),
        ("POST", "/runs", {}, {"headers": {"content-length": "5000"}}, 413, "at most 4,096 bytes"),
        ("POST", "/runs", {"tool": "whose"}, {}, 422, "serves an agent"),
        ("DELETE", "/runs", None, {}, 405, "GET, POST"),
        ("GET", "/nothing", None, {}, 404, "GET /runs/{id}/events"),
        ("GET", "/runs/none", None, {}, 404, "does not exist"),
    ],
)
async def test_wrong_requests_are_answered_with_the_remedy(
    method: str, path: str, body: Any, how: dict[str, Any], status: int, expected: str
) -> None:
    api = FastAPI()

    @api.api_route("/agent/{path:path}", methods=["GET", "POST", "DELETE"])
    async def agent(request: Request) -> Any:
        return await handle_run(request, agent=helper("Done."), user="ada", max_body=4_096)

    answer = await ask(api, method, f"/agent{path}", body, **how)
    assert answer.status == status, answer.text
    assert expected in answer.message


async def test_the_modules_for_pages_are_served() -> None:
    app = shop("Done.")
    answer = await of(app, "ada", "GET", "/agent/client.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "EventTree" in answer.text
    again = await of(
        app, "ada", "GET", "/agent/client.js", headers={"if-none-match": answer.headers["etag"]}
    )
    assert (again.status, again.text) == (304, "")


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"agent": [whose]}, "expected an Agent, got a list"), ({"user": 7}, "str(user_id)")],
)
async def test_wrong_arguments_are_reported(options: dict[str, Any], expected: str) -> None:
    request: Any = Request({"type": "http", "method": "GET", "path": "/", "headers": []})
    with pytest.raises(UserError, match=re.escape(expected)):
        await handle_run(request, **{"agent": helper(), **options})  # pyright: ignore[reportArgumentType]


# --- several apps


async def test_several_apps_start_answer_and_stop_together() -> None:
    stopped: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[None]:
        stopped.append("started")
        yield
        stopped.append("stopped")

    other = Starlette(lifespan=lifespan)
    apps = mount(
        {
            "/a": sse.app([whose]),
            "/b": sse.app(helper("Done.")),
            "/chat": vercel.app(helper("Done.")),
            "/agui": ag_ui.app(helper("Done.")),
            "/": PlainTextResponse("The rest."),
            "/other": other,
        }
    )
    async with served(apps):
        for path, expected in (("/a", "tools"), ("/b", "agent")):
            assert (await ask(apps, "GET", f"{path}/")).json["target"]["kind"] == expected
        headers = {"prefer": "respond-async"}
        run = await ask(apps, "POST", "/b/runs", {"input": "?"}, headers=headers)
        assert run.headers["location"] == f"/b/runs/{run.json['run_id']}"
        assert (await ask(apps, "GET", run.headers["location"])).status == 200
        assert (await ask(apps, "GET", f"/a/runs/{run.json['run_id']}")).status == 404
        assert (await ask(apps, "GET", "/agui/")).json["identity"]["name"] == "helper"
        assert (await ask(apps, "GET", "/about")).text == "The rest."
        assert stopped == ["started"]
    assert stopped == ["started", "stopped"]


@pytest.mark.parametrize("path", ["a", "/a/", ""])
def test_a_wrong_path_is_reported(path: str) -> None:
    with pytest.raises(UserError, match="expected for example '/chat'"):
        mount({path: sse.app([whose])})
