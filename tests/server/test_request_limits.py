"""Limits of requests, streams and runs, of each caller, over real connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack, closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import Response

from agents_tools import Agent, SQLiteRunStore, ToolContext, function_tool
from agents_tools.mcp import MCPToolManager, mcp_server
from agents_tools.policies import needs_approval
from agents_tools.server.application import Application
from agents_tools.server.http_security import ListenerLimits
from agents_tools.server.request_slots import ALL_CALLERS, RequestSlots, SlotsFullError
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.ui import ag_ui, sse
from tests.ui.web import Exchange, ask, served

PATIENCE = 45.0
ANNA = {"authorization": f"Bearer {'a' * 20}"}
BERT = {"authorization": f"Bearer {'b' * 20}"}
ERA_2025 = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
}


class People:
    """A verifier that knows two users."""

    def verify_token(self, token: str) -> Any:
        name = {"a" * 20: "anna", "b" * 20: "bert"}.get(token)
        return None if name is None else type("Known", (), {"client_id": "web", "subject": name})


class Blocking:
    """A tool that waits until it is opened or cancelled, and reports what it does."""

    def __init__(self) -> None:
        self.started = asyncio.Semaphore(0)
        self.opened = asyncio.Event()
        self.cancelled = asyncio.Event()

        @function_tool
        async def wait() -> str:
            """Wait."""
            self.started.release()
            try:
                await self.opened.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return "done"

        self.tool = wait


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@needs_approval
@function_tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def client(port: int, headers: Mapping[str, str] | None = None) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=200)
    url = f"http://127.0.0.1:{port}"
    return httpx.AsyncClient(
        base_url=url, headers=headers, timeout=PATIENCE, limits=limits, trust_env=False
    )


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return rpc("tools/call", name=name, arguments=arguments)


async def initialized(web: httpx.AsyncClient) -> dict[str, str]:
    """Begin a session; return the headers of its requests."""
    info = {"name": "c", "version": "1"}
    body = rpc("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
    answer = await web.post("/mcp", json=body, headers=ERA_2025)
    assert answer.status_code == 200
    return {**ERA_2025, "mcp-session-id": answer.headers["mcp-session-id"]}


# --- MCP


@pytest.mark.requirement("S33")
async def test_idle_clients_with_open_streams_leave_a_server_free_for_calls() -> None:
    """Each client of the era up to 2025 keeps a stream open for as long as it is connected."""
    app = mcp_server([add], stateless=False, max_concurrency=1, max_streams=3)
    async with asyncio.timeout(PATIENCE), served(app) as port, AsyncExitStack() as open_streams:
        web = await open_streams.enter_async_context(client(port))
        sessions = [await initialized(web) for _ in range(4)]
        for headers in sessions[:3]:
            opened = await open_streams.enter_async_context(
                web.stream("GET", "/mcp", headers=headers)
            )
            assert opened.status_code == 200
        beyond = await web.get("/mcp", headers=sessions[3])
        assert (beyond.status_code, beyond.headers["retry-after"]) == (503, "1")
        assert "3 streams are open, which is the limit (max_streams=)" in beyond.text
        answer = await web.post("/mcp", json=call("add", a=1, b=2), headers=sessions[3])
        assert answer.status_code == 200
        assert (await web.get("/healthz")).json() == {"status": "ok"}


async def test_subscriptions_of_many_clients_leave_a_server_free_for_calls() -> None:
    """From protocol 2026-07-28 on, the stream of a client is the response to a POST."""

    class Changing:
        """Tools that announce their changes, so that clients subscribe."""

        def get_tools(self) -> list[Any]:
            return [add]

    app = mcp_server(Changing(), max_concurrency=2)
    async with asyncio.timeout(PATIENCE), served(app) as port, MCPToolManager() as manager:
        for number in range(5):
            await manager.add_server(f"s{number}", url=f"http://127.0.0.1:{port}/mcp")
        for tool in manager.get_tools():
            assert (await tool.call(None, '{"a": 1, "b": 2}')).status == "ok"


async def test_a_busy_server_answers_health_checks() -> None:
    """Otherwise the platform would restart it under load."""
    blocking = Blocking()
    app = mcp_server([blocking.tool], max_concurrency=1)
    async with asyncio.timeout(PATIENCE), served(app) as port, client(port, ERA_2025) as web:
        first = asyncio.create_task(web.post("/mcp", json=call("wait")))
        await blocking.started.acquire()
        assert (await web.get("/healthz")).status_code == 200
        pretending = await web.post(
            "/mcp", json=call("wait"), headers={"mcp-method": "subscriptions/listen"}
        )
        assert pretending.status_code == 503
        assert "max_concurrency=" in pretending.text
        blocking.opened.set()
        assert (await first).status_code == 200


# --- callers


def test_a_caller_has_its_own_slots_and_all_callers_have_ten_times_as_many() -> None:
    """One caller cannot take all slots, and many callers cannot exceed the capacity."""
    slots = RequestSlots(1, ALL_CALLERS, "requests are being handled", "max_concurrency")
    with ExitStack() as stack:
        for number in range(ALL_CALLERS):
            stack.enter_context(slots.taken(str(number)))
            with pytest.raises(SlotsFullError, match="1 of your requests"), slots.taken("0"):
                pass
        with pytest.raises(SlotsFullError, match=f"busy: {ALL_CALLERS} requests"):
            stack.enter_context(slots.taken("late"))
    with slots.taken("late"):
        pass


@pytest.mark.requirement("S24")
async def test_requests_of_one_caller_do_not_block_another() -> None:
    """The limit is for each principal of the verifier."""
    entered, opened = asyncio.Semaphore(0), asyncio.Event()

    async def block(scope: Any, receive: Any, send: Any) -> None:
        entered.release()
        await opened.wait()
        await Response()(scope, receive, send)

    limits = ListenerLimits(max_concurrency=1)
    app = Application({}, endpoints={"/": block}, auth=People(), limits=limits)
    async with asyncio.timeout(PATIENCE), served(app) as port, client(port) as web:
        first = asyncio.create_task(web.get("/", headers=ANNA))
        await entered.acquire()
        refused = await web.get("/", headers=ANNA)
        assert refused.status_code == 503
        assert "1 of your requests are being handled" in refused.text
        other = asyncio.create_task(web.get("/", headers=BERT))
        await entered.acquire()
        opened.set()
        assert [(await one).status_code for one in (first, other)] == [200, 200]


async def test_open_streams_do_not_block_the_cancellation_of_a_run() -> None:
    """A page can watch, and still send its other requests."""
    blocking = Blocking()
    app = sse.app([blocking.tool], max_concurrency=1, max_streams=1)
    async with asyncio.timeout(PATIENCE), served(app) as port, client(port) as web:
        body = {"tool": "wait", "run_id": "r1"}
        watching = asyncio.create_task(web.post("/runs", json=body))
        await blocking.started.acquire()
        refused = await web.get("/runs/r1/events")
        assert refused.status_code == 503
        assert "max_streams=" in refused.text
        detached = {"prefer": "respond-async"}
        assert (await web.post("/runs", json={"tool": "wait"}, headers=detached)).status_code == 202
        cancelled = await web.post("/runs/r1/cancel", json={})
        assert cancelled.json()["cancelled"] is True
        assert '"status":"cancelled"' in (await watching).text


@pytest.mark.requirement("S24")
async def test_the_runs_of_one_caller_do_not_block_another() -> None:
    """`max_running` is for each principal."""
    blocking = Blocking()
    app = sse.app([blocking.tool], auth=People(), max_running=1)
    detached = {"prefer": "respond-async"}
    async with asyncio.timeout(PATIENCE), served(app) as port, client(port, detached) as web:
        body = {"tool": "wait"}
        assert (await web.post("/runs", json=body, headers=ANNA)).status_code == 202
        refused = await web.post("/runs", json=body, headers=ANNA)
        assert refused.status_code == 503
        assert "max_running=" in refused.text
        assert (await web.post("/runs", json=body, headers=BERT)).status_code == 202


# --- the runs of others


REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "/runs/{}", None),
    ("DELETE", "/runs/{}", None),
    ("GET", "/runs/{}/events", None),
    ("GET", "/runs/{}/events?after=0", None),
    ("POST", "/runs/{}/cancel", {}),
    ("POST", "/runs/{}/cancel", {"reason": 5}),
    ("POST", "/runs/{}/calls/call_1/cancel", {}),
    ("POST", "/runs/{}/approvals", {"decisions": [{"call_id": "call_1", "approve": True}]}),
    ("POST", "/runs/{}/approvals", {}),
]


@pytest.mark.requirement("S24")
@pytest.mark.parametrize("stored", [False, True], ids=["memory", "store"])
async def test_the_id_of_a_run_of_another_caller_cannot_be_told_from_a_free_one(
    stored: bool, tmp_path: Path
) -> None:
    """Whatever the method: also a run can be started with it."""
    options: dict[str, Any] = {"store": SQLiteRunStore(tmp_path / "e.db")} if stored else {}
    app = sse.app([pay], auth=People(), **options)
    async with asyncio.timeout(PATIENCE), served(app) as port, client(port) as web:

        async def seen(method: str, path: str, body: Any, run_id: str) -> tuple[int, str]:
            """Return what Bert sees of a request, without the id."""
            sent = {} if body is None else {"json": body}
            answer = await web.request(method, path.format(run_id), headers=BERT, **sent)
            return answer.status_code, answer.text.replace(run_id, "…")

        async def started(run_id: str, caller: Mapping[str, str]) -> dict[str, Any]:
            body = {"tool": "pay", "arguments": {"amount": 1}, "run_id": run_id}
            answer = await web.post("/runs", json=body, headers=caller)
            assert answer.status_code == 200
            return (await web.get(f"/runs/{run_id}", headers=caller)).json()

        run = await started("r1", ANNA)
        assert run["status"] == "interrupted"
        for method, path, body in REQUESTS:
            for run_id in ("r1", run["run_id"]):
                told = await seen(method, path, body, run_id)
                assert told == await seen(method, path, body, "x" * len(run_id)), (method, path)
                assert told[0] in {404, 405}
        rest = await web.get("/runs/r1/events", headers={**ANNA, "last-event-id": "r1:0"})
        assert rest.text.startswith(f"id: {run['run_id']}:")
        assert f"id: {run['run_id']}:0\n" not in rest.text
        own = await started("r1", BERT)
        assert own["run_id"] != run["run_id"]
        assert (await web.post("/runs/r1/cancel", json={}, headers=BERT)).json()["cancelled"]
        again = (await web.get("/runs/r1", headers=ANNA)).json()
        assert (again["run_id"], again["status"]) == (run["run_id"], "interrupted")
        body = {"tool": "pay", "arguments": {"amount": 1}, "run_id": run["run_id"]}
        assert (await web.post("/runs", json=body, headers=ANNA)).status_code == 409


@pytest.mark.requirement("S24")
async def test_the_runs_of_a_caller_stay_hidden_on_the_next_server(tmp_path: Path) -> None:
    """The owner is stored with the run, also if sub-agents run in it."""
    body = {"input": "Hi", "run_id": "r1"}
    with closing(SQLiteRunStore(tmp_path / "e.db")) as store:
        inner = Agent("inner", model=ScriptedModel(["Inner."])).as_tool("inner", "A sub-agent.")
        model = ScriptedModel([tool_call("inner", input="?"), "Done."])
        app = sse.app(Agent("outer", tools=[inner], model=model), auth=People(), store=store)
        assert (await ask(app, "POST", "/runs", body, headers=ANNA)).status == 200
        await app.aclose()
        app = sse.app([add], auth=People(), store=store)
        assert (await ask(app, "GET", "/runs/r1", headers=ANNA)).json["output"] == "Done."
        assert len((await ask(app, "GET", "/runs", headers=ANNA)).json["runs"]) == 1
        assert (await ask(app, "GET", "/runs/r1", headers=BERT)).status == 404
        assert (await ask(app, "GET", "/runs", headers=BERT)).json["runs"] == []
        await app.aclose()


async def test_one_token_for_all_callers_leaves_the_ids_as_they_are() -> None:
    """Nothing of another caller is to be hidden."""
    app = sse.app([add], auth="a" * 20)
    body = {"tool": "add", "arguments": {"a": 1, "b": 2}, "run_id": "r1"}
    answer = await ask(app, "POST", "/runs", body, headers=ANNA)
    assert "id: r1:0\n" in answer.text
    assert (await ask(app, "GET", "/runs/r1", headers=ANNA)).json["run_id"] == "r1"
    await app.aclose()


async def test_an_ag_ui_client_sees_the_id_that_it_has_chosen(tmp_path: Path) -> None:
    """Also after a restart of the server, whose runs come from the store."""
    body: dict[str, Any] = {
        "threadId": "t", "runId": "mine", "state": {}, "tools": [], "context": [],
        "forwardedProps": {}, "messages": [{"id": "m", "role": "user", "content": "Pay."}],
    }  # fmt: skip
    for path in ("/", "/connect"):
        model = ScriptedModel([tool_call("pay", amount=1)])
        agent = Agent("payer", tools=[pay], model=model)
        store = SQLiteRunStore(tmp_path / "e.db")
        app = ag_ui.app(agent, auth=People(), store=store)
        text = (await ask(app, "POST", path, body, headers=ANNA)).text
        frames = [json.loads(line[6:]) for line in text.split("\n\n") if line]
        assert {frame["runId"] for frame in frames if "runId" in frame} == {"mine"}
        await app.aclose()
        store.close()


# --- one call of a run


async def test_one_call_of_a_run_is_cancelled_by_a_request() -> None:
    """The run continues, and the model reads that the call was cancelled."""
    blocking = Blocking()
    model = ScriptedModel(
        [[tool_call("wait", call_id="slow"), tool_call("add", a=1, b=2, call_id="sum")], "Done."]
    )
    app = sse.app(Agent("a", tools=[blocking.tool, add], model=model))
    async with asyncio.timeout(PATIENCE), served(app) as port, client(port) as web:
        body = {"input": "Go.", "run_id": "r1"}
        watching = asyncio.create_task(web.post("/runs", json=body))
        await blocking.started.acquire()
        unknown = await web.post("/runs/r1/calls/other/cancel", json={})
        assert unknown.json() == {"cancelled": False, "status": "running"}
        answer = await web.post("/runs/r1/calls/slow/cancel", json={})
        assert answer.json() == {"cancelled": True, "status": "running"}
        events = [event.to_dict() for event in sse.decode((await watching).text)]
        ended = {
            event["tool_call_id"]: event["status"]
            for event in events
            if event["type"] == "tool_stream_end_event"
        }
        assert ended == {"slow": "cancelled", "sum": "ok"}
        assert (events[-1]["status"], events[-1]["output"]) == ("ok", "Done.")
        late = await web.post("/runs/r1/calls/slow/cancel", json={})
        assert late.json() == {"cancelled": False, "status": "ok"}
        wrong = await web.post("/runs/r1/calls/slow/cancel", json={"reason": "no"})
        assert wrong.status_code == 422
    assert blocking.cancelled.is_set()


async def test_a_call_inside_a_sub_agent_is_cancelled_by_a_request() -> None:
    """Its id is enough; the sub-agent answers with the cancelled call."""
    blocking = Blocking()
    inner_model = ScriptedModel([tool_call("wait", call_id="deep"), "Inner done."])
    inner = Agent("inner", tools=[blocking.tool], model=inner_model)
    outer_model = ScriptedModel([tool_call("inner", input="Go.", call_id="sub"), "Outer done."])
    helper = inner.as_tool(tool_name="inner", tool_description="Ask.")
    app = sse.app(Agent("outer", tools=[helper], model=outer_model))
    async with asyncio.timeout(PATIENCE), served(app) as port, client(port) as web:
        watching = asyncio.create_task(web.post("/runs", json={"input": "Go.", "run_id": "r1"}))
        await blocking.started.acquire()
        answer = await web.post("/runs/r1/calls/deep/cancel", json={})
        assert answer.json()["cancelled"] is True
        last = list(sse.decode((await watching).text))[-1].to_dict()
        assert (last["status"], last["output"]) == ("ok", "Outer done.")
    assert blocking.cancelled.is_set()
    assert "cancelled" in str(inner_model.requests[-1].input)


async def test_a_call_of_a_single_tool_run_is_cancelled() -> None:
    """The call that is the run has an id as well."""
    blocking = Blocking()
    seen: list[str | None] = []

    @function_tool
    async def wait_noted(ctx: ToolContext[Any]) -> str:
        """Wait."""
        seen.append(ctx.tool_call_id)
        return str(await blocking.tool())

    app = sse.app([wait_noted])
    exchange = Exchange(app, "POST", "/runs", {"tool": "wait_noted", "run_id": "r1"})
    async with asyncio.timeout(PATIENCE):
        await blocking.started.acquire()
        answer = await ask(app, "POST", f"/runs/r1/calls/{seen[0]}/cancel", {})
        assert answer.json["cancelled"] is True
        await exchange.whole()
    await app.aclose()
