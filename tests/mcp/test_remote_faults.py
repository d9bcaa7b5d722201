"""Remote workers and callers that are hostile or fail: the handling in the MCP backend."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agents_tools import NotifyStreamEvent, ToolContext, function_tool, policies, streaming_tool
from agents_tools.execution import CallEnvelope, CallEvent, ToolBackend, run_on
from agents_tools.mcp import MCPBackend, mcp_server
from agents_tools.mcp.client.sdk import sdk_line
from agents_tools.mcp.remote import backend as backend_module
from agents_tools.mcp.remote.call import RemoteCall, WorkerCall
from agents_tools.mcp.remote.protocol import (
    CALL_KEY,
    EVENTS_KEY,
    OUTCOME_KEY,
    meta_of,
    order_in,
    outcome_in,
    result_in,
)
from agents_tools.mcp.remote.worker import ToolWorker
from tests.mcp.hostile_http import HostileHTTP, Request, event, silence, sse, status, typed
from tests.mcp.small import listening

NEW = sdk_line() > 1
"""Whether the line of the SDK that is installed speaks the version without sessions."""
HUGE = 10**400
"""A number that JSON has and floats have not."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def envelope(tool: str, arguments: dict[str, Any] | None = None, **more: Any) -> CallEnvelope:
    number = next(_numbers)
    made = {"call_id": f"fault-{number}", "arguments": json.dumps(arguments or {})}
    given: dict[str, Any] = {**made, **more}
    return CallEnvelope(tool=tool, **given)


_numbers = iter(range(1_000_000))


async def all_of(backend: ToolBackend, call: CallEnvelope) -> list[CallEvent]:
    async with asyncio.timeout(20):
        return [event async for event in backend.submit(call)]


async def end_of(backend: ToolBackend, call: CallEnvelope) -> tuple[str, str]:
    """Make a call, and return its status and the model's output."""
    payload = (await all_of(backend, call))[-1].payload
    return str(payload["status"]), str(payload["output"])


@contextlib.asynccontextmanager
async def hostile(**options: Any) -> AsyncGenerator[tuple[HostileHTTP, MCPBackend]]:
    """Yield a server that fails on request, and a backend that uses it as a worker."""
    async with HostileHTTP(modern=NEW) as server, MCPBackend(server.url, **options) as backend:
        yield server, backend


@contextlib.asynccontextmanager
async def worker_of(*tools: Any, **options: Any) -> AsyncGenerator[str]:
    """Serve tools over HTTP, and yield the address."""
    app = mcp_server(list(tools), **options)
    async with listening(app) as address:
        try:
            yield f"{address}/mcp"
        finally:
            await app.aclose()


def report(*records: Any, **more: Any) -> Callable[[Request], bytes]:
    """Return a fault that sends a progress report with events."""

    def make(request: Request) -> bytes:
        token = request.message["params"]["_meta"]["progressToken"]
        meta = {EVENTS_KEY: list(records)} if records else {}
        params = {"progressToken": token, "progress": 1, "_meta": meta, **more}
        return event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    return make


def answer(**result: Any) -> Callable[[Request], bytes]:
    """Return the response to a call."""
    given: dict[str, Any] = {"content": [], "resultType": "complete", **result}
    return lambda request: event({"jsonrpc": "2.0", "id": request.id, "result": given})


def outcome(seq: Any = 9, **payload: Any) -> Callable[[Request], bytes]:
    """Return the response to a call in the form of a worker of this library."""
    told = {"seq": seq, "time": 1.0, "payload": {"status": "ok", "output": "fine", **payload}}
    return answer(_meta={OUTCOME_KEY: told})


# --- a worker that sends invalid messages


@pytest.mark.requirement("S33")
@pytest.mark.parametrize(
    "told",
    [
        report([0, "accepted", HUGE]),
        report([0, "heartbeat", 1, {"a": HUGE}]),
        report([HUGE, "event", HUGE, {"type": "x"}]),
        report(progress=HUGE, total=HUGE),
        report(progress=float(1), total=-1, message="\x00"),
    ],
    ids=["time", "payload", "place", "progress", "total"],
)
async def test_numbers_beyond_a_float_do_not_break_the_connection(told: Any) -> None:
    """A concurrent call continues over the same connection."""
    async with hostile() as (server, backend):
        server.next("tools/call", silence(server), sse(told, outcome(HUGE)))
        other = asyncio.create_task(end_of(backend, envelope("echo")))
        await server.came("tools/call", 1)
        assert await end_of(backend, envelope("echo")) == ("ok", "fine")
        assert not other.done()
        other.cancel()
        await asyncio.wait({other})


@pytest.mark.requirement("S33")
@pytest.mark.parametrize(
    "payload",
    [
        {"output": 5},
        {"output": [5]},
        {"output": None},
        {"error": "no object"},
        {"metadata": [1]},
        {"status": "splendid"},
    ],
)
async def test_an_invalid_result_raises_no_foreign_exception(payload: dict[str, Any]) -> None:
    """A result without the worker's format is read as that of any MCP server."""
    async with hostile() as (server, backend):
        server.next("tools/call", sse(outcome(**payload)))

        @function_tool
        def echo() -> str:
            """Never run here."""
            return ""

        done = await run_on(backend)(echo).call(None, "{}")
        assert done.status in {"ok", "tool_error", "lost"}
        assert isinstance(done.output, str)


@pytest.mark.requirement("S33")
@given(JSON)
def test_any_result_of_a_server_can_be_read(sent: Any) -> None:
    call = CallEnvelope(call_id="a", tool="echo")
    for raw in ({"content": sent}, {"structuredContent": sent}, {"isError": True, "content": sent}):
        assert result_in(raw).kind == "result"
    outcome_in({"_meta": {OUTCOME_KEY: {"seq": sent, "payload": {"status": "ok"}}}}, call)


async def test_an_input_request_is_not_a_result() -> None:
    """A question must not look like a successful call."""
    asked = answer(resultType="input_required", inputRequests={"q": {}}, requestState="s")
    async with hostile() as (server, backend):
        server.next("tools/call", sse(asked))
        ended, text = await end_of(backend, envelope("echo"))
    assert ended == "tool_error"
    assert "nobody can be asked" in text


@pytest.mark.parametrize("code", [500, 520, 524])
async def test_a_gateway_error_means_that_the_call_may_have_run(code: int) -> None:
    """Gateways have specific status codes for a lost worker."""
    async with hostile() as (server, backend):
        server.next("tools/call", status(code, b"<h1>oh</h1>"))
        ended, text = await end_of(backend, envelope("echo"))
        assert (ended, "not known" in text) == ("lost", True)
        server.next("tools/call", status(code), sse(outcome()))
        assert (await end_of(backend, envelope("echo", idempotent=True)))[0] == "ok"


@pytest.mark.requirement("S23", "S14")
async def test_a_redirect_does_not_forward_the_token() -> None:
    """Another host gets no token from a redirect."""
    async with (
        HostileHTTP(modern=NEW) as thief,
        hostile(token="a-token-of-the-worker") as (  # noqa: S106
            server,
            backend,
        ),
    ):
        server.next("tools/call", status(307, location=thief.url))
        ended, text = await end_of(backend, envelope("echo"))
        assert (ended, thief.requests) == ("overloaded", [])
        assert "a-token-of-the-worker" not in text


# --- large amounts of data


async def flight_of(reports: list[Any]) -> tuple[RemoteCall, WorkerCall]:
    """Return an attempt with some received reports that have not been read."""

    async def send(flight: RemoteCall) -> dict[str, Any]:
        for one in reports:
            flight.heard({"_meta": {EVENTS_KEY: one}})
        return {"content": []}

    call = WorkerCall()
    flight = RemoteCall(envelope("echo"), call, restart=0, max_time=10, send=send)
    await asyncio.wait({flight._task})
    return flight, call


@pytest.mark.requirement("S33")
@pytest.mark.parametrize("kind", ["event", "heartbeat", "accepted", "started"])
async def test_a_flood_of_any_kind_is_bounded(kind: str) -> None:
    """Keep-alive messages cannot fill the memory either."""
    flight, _ = await flight_of([[[n, kind, 1.0]] for n in range(20_000)])
    assert len(flight._told) <= 5_000
    read = [one async for one in flight]
    assert [one.seq for one in read] == sorted({one.seq for one in read})


@pytest.mark.requirement("S33")
async def test_large_unread_events_are_bounded() -> None:
    """A few large events are bounded too, however deep the text is nested."""
    opening = [[0, "accepted", 1.0], [1, "started", 1.0]]
    large = [[[n, "event", 1.0, {"a": {"b": ["x" * 1_000_000]}}]] for n in range(2, 150)]
    flight, _ = await flight_of([opening, *large])
    assert sum(len(json.dumps(dict(told.payload))) for told in flight._told) < 64 << 20
    read = [one async for one in flight]
    assert [one.kind for one in read[:2]] == ["accepted", "started"]
    assert read[2].payload["dropped"] > 0


@pytest.mark.requirement("S33")
@pytest.mark.parametrize("packed", [False, True])
async def test_an_endless_line_is_bounded(*, packed: bool) -> None:
    """Neither a long event nor a small one that decompresses to a large one is accepted."""
    line = b'data: {"a": "' + b"x" * (3 << 20) + b'"}\n\n'
    headers = {"content-encoding": "gzip"} if packed else {}
    async with hostile(max_message=1 << 20) as (server, backend):
        body = gzip.compress(line) if packed else line
        server.next("tools/call", status(200, body, content_type="text/event-stream", **headers))
        assert (await end_of(backend, envelope("echo")))[0] in {"lost", "tool_error"}
        assert (await end_of(backend, envelope("echo", {"text": "x"}))) == ("ok", "x")


@pytest.mark.requirement("S33")
async def test_an_endless_error_page_is_bounded() -> None:
    """Only the beginning of an error page is read."""

    async def endless(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 403 No\r\ncontent-type: text/plain\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"no " * 10_000)
                await writer.drain()

    async with hostile() as (server, backend):
        server.next("tools/call", endless)
        ended, text = await end_of(backend, envelope("echo"))
    assert ended == "denied"
    assert len(text) < 2_000


async def test_many_large_events_are_split_into_small_messages() -> None:
    """Batches stay small, however fast events are emitted."""

    @streaming_tool
    async def many() -> AsyncGenerator[Any]:
        for _ in range(40):
            yield NotifyStreamEvent("x" * 500_000)
        yield "done"

    async with worker_of(many) as url, MCPBackend(url, max_message=4 << 20) as backend:
        events = await all_of(backend, envelope("many"))
    assert events[-1].payload["output"] == "done"
    assert sum("data" in one.payload for one in events) == 40


@pytest.mark.requirement("S33")
async def test_events_that_wait_for_the_result_are_bounded_at_the_worker() -> None:
    """Without a stream, the latest events are sent with the result, and the rest is counted."""

    @streaming_tool
    async def many() -> AsyncGenerator[Any]:
        for number in range(20_000):
            yield NotifyStreamEvent(str(number))
        yield "done"

    heard: list[Any] = []
    async with worker_of(many, json_response=True) as url, MCPBackend(url) as backend:
        events = await all_of(backend, envelope("many"))
        again = await run_on(backend)(many).call(ToolContext(emit=heard.append), "{}")
    assert [one.kind for one in events[:2]] == ["accepted", "started"]
    assert len(events) < 5_000
    assert events[-2].payload["data"] == "19999"
    assert events[-1].payload["output"] == again.output == "done"
    gaps = sum(one.dropped for one in heard if one.type == "gap_event")
    assert gaps + sum(one.type == "notify_stream_event" for one in heard) == 20_000


# --- connections and loops


async def test_an_unreachable_worker_delays_one_call_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While one call probes that worker, the others use the available ones."""
    monkeypatch.setattr(backend_module, "_DOWN", 0.0)
    async with HostileHTTP(modern=NEW) as dead, HostileHTTP(modern=NEW) as alive:
        urls = [dead.url, alive.url]
        await dead.stop()
        async with MCPBackend(urls, connect_timeout=15) as backend:
            for _ in range(2):  # either of them can come first
                assert (await end_of(backend, envelope("echo")))[0] == "ok"
            dead.next("server/discover" if NEW else "initialize", silence(dead))
            await dead.start()
            calls = [asyncio.create_task(end_of(backend, envelope("echo"))) for _ in range(10)]
            async with asyncio.timeout(10):
                await dead.silent.wait()
                await alive.came("tools/call", 2 + 9)
            await dead.stop()
            assert {ended for ended, _ in await asyncio.gather(*calls)} == {"ok"}


async def test_a_health_check_notices_at_once_that_a_worker_is_back() -> None:
    """It does not wait for a call to probe the worker."""
    async with HostileHTTP(modern=NEW) as server, MCPBackend(server.url) as backend:
        await server.stop()
        for _ in range(7):
            assert not (await backend.health()).ok
        await server.start()
        assert (await backend.health()).ok


async def test_a_call_cancelled_before_its_retry_is_not_sent_again() -> None:
    """`cancel` reported that the call existed, so it must not run once more."""
    async with hostile() as (server, backend):
        server.next("tools/call", status(502))
        call = envelope("echo", idempotent=True)
        pausing = asyncio.Event()
        pause = backend._pause

        async def paused(envelope: CallEnvelope, number: int) -> bool:
            pausing.set()
            return await pause(envelope, number)

        backend._pause = paused  # type: ignore[method-assign]
        task = asyncio.create_task(end_of(backend, call))
        await pausing.wait()
        assert await backend.cancel(call.call_id, "enough")
        ended, text = await task
        assert (ended, "enough" in text) == ("cancelled", True)
        assert server.count("tools/call") == 1


@pytest.mark.requirement("F44")
async def test_events_for_a_closed_loop_do_not_affect_other_calls() -> None:
    """The connection belongs to another loop, whose calls continue."""

    def elsewhere() -> RemoteCall:
        async def make() -> RemoteCall:
            return (await flight_of([]))[0]

        return asyncio.run(make())

    flight = await asyncio.to_thread(elsewhere)
    flight.heard({"_meta": {EVENTS_KEY: [[0, "accepted", 1.0]]}})
    flight.cancel()


async def test_a_call_cancelled_at_any_moment_leaves_nothing_behind() -> None:
    """Wherever its caller stops waiting, the worker stops and no state remains."""
    running = 0

    @streaming_tool
    async def work() -> AsyncGenerator[Any]:
        nonlocal running
        running += 1
        try:
            for number in range(5):
                yield NotifyStreamEvent(str(number))
                await asyncio.sleep(0)
            yield "done"
        finally:
            running -= 1

    async with worker_of(work) as url, MCPBackend(url) as backend:
        for steps in range(0, 90, 3):
            task = asyncio.create_task(all_of(backend, envelope("work")))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            assert not backend._calls
            assert not backend._workers[0].calls
        assert (await end_of(backend, envelope("work"))) == ("ok", "done")
        async with asyncio.timeout(10):
            while running:  # noqa: ASYNC110 - the other end is the same process
                await asyncio.sleep(0.01)


async def test_a_backend_that_is_closed_ends_its_calls() -> None:
    """This covers running calls and calls that are about to be sent again."""
    async with hostile() as (server, backend):
        server.next("tools/call", status(502), silence(server), silence(server), silence(server))
        calls = [
            asyncio.create_task(end_of(backend, envelope("echo", idempotent=True)))
            for _ in range(3)
        ]
        await server.came("tools/call", 3)
        await backend.aclose()
        found = await asyncio.gather(*calls)
    assert {ended for ended, _ in found} <= {"cancelled"}
    assert all("closed" in text for _, text in found)


async def test_different_clocks_do_not_change_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose clock is an hour ahead gives a call its full remaining time."""
    call = envelope("echo", deadline=time.time() + 30)
    meta = json.loads(json.dumps(meta_of(call, restart=0, heartbeat=1)))
    ahead = time.time() + 3_600
    monkeypatch.setattr("agents_tools.mcp.remote.protocol.time.time", lambda: ahead)
    order = order_in(meta, "echo", {})
    assert order is not None
    assert order.envelope.deadline == pytest.approx(ahead + 30, abs=5)


async def test_a_worker_knows_when_a_call_without_a_deadline_ends() -> None:
    """A proxy in between may never report that the caller has left."""
    meta = meta_of(envelope("echo"), restart=0, heartbeat=1, most=60)
    order = order_in(meta, "echo", {})
    assert order is not None
    assert order.envelope.deadline == pytest.approx(time.time() + 60, abs=5)
    sooner = meta_of(envelope("echo", deadline=time.time() + 9), restart=0, heartbeat=1, most=60)
    assert sooner[CALL_KEY]["left"] < 10


@pytest.mark.parametrize(
    "told",
    [{"left": HUGE}, {"heartbeat": HUGE}, {"restart": 10**4_000}, {"restart": -5}, {"left": -1e9}],
)
def test_an_envelope_with_strange_numbers_is_read(told: dict[str, Any]) -> None:
    """Numbers of a client must not break the worker."""
    order = order_in({CALL_KEY: {"v": 1, "call_id": "a", "attempt": 1, **told}}, "echo", {})
    assert order is not None
    assert order.restart == 0


# --- separation of callers


@pytest.mark.requirement("S20")
async def test_calls_of_different_principals_with_one_token_are_separate() -> None:
    """With one token, the same id for another principal is another call."""
    ran: list[str] = []

    @function_tool
    def once() -> int:
        """Count how often it runs."""
        ran.append("x")
        return len(ran)

    token = "the-token-of-the-application"  # noqa: S105
    async with worker_of(once, auth=token) as url, MCPBackend(url, token=token) as backend:
        calls = [
            CallEnvelope(call_id="run-1:once", tool="once", principal=who)
            for who in ("ada", "bob", "ada")
        ]
        answers = [(await end_of(backend, call))[1] for call in calls]
    assert answers == ["1", "2", "1"]


async def test_headers_are_created_from_the_context_of_the_call() -> None:
    """`header_provider` gets the context of each call."""
    seen: list[Any] = []

    def headers(context: ToolContext[Any] | None) -> dict[str, str]:
        who = None if context is None else context.context
        seen.append(who)
        return {"x-who": str(who)}

    @function_tool
    def echo() -> str:
        """Never run here."""
        return ""

    async with hostile(header_provider=headers) as (server, backend):
        await run_on(backend)(echo).call(ToolContext("ada"), "{}")
        (asked,) = [one for one in server.requests if one.method == "tools/call"]
    assert asked.headers["x-who"] == "ada"


async def test_errors_of_concurrent_calls_are_distinguished() -> None:
    """Each caller gets the number of its own error.

    Exceptions that a tool catches are not reported.
    """

    @function_tool
    async def fail(text: str) -> str:
        """Fail."""
        await asyncio.sleep(0)
        raise RuntimeError(text)

    @function_tool
    async def caught() -> str:
        """Fail inside, and go on."""
        with contextlib.suppress(Exception):
            await fail.invoke(text="x")
        raise ValueError("hunter2")

    guarded = policies.retry(attempts=2)(caught)
    async with worker_of(fail, guarded) as url, MCPBackend(url) as backend:
        calls = [all_of(backend, envelope("fail", {"text": f"hunter{n}"})) for n in range(20)]
        found = [one[-1].payload["error"] for one in await asyncio.gather(*calls)]
        (*_, last) = await all_of(backend, envelope("caught"))
    assert len({one["message"] for one in found}) == 20
    assert "hunter" not in json.dumps([found, last.to_dict()])
    assert {one["type"] for one in found} == {"RuntimeError"}


async def test_a_worker_prepares_each_tool_once() -> None:
    """Later calls are fast, and the cache is bounded by the number of tools."""

    @function_tool
    def echo() -> str:
        """Say so."""
        return "x"

    worker = ToolWorker(own=True, errors="hide")
    order = order_in({CALL_KEY: {"v": 1, "call_id": "a", "attempt": 1}}, "echo", {})
    assert order is not None
    for tool in (echo, echo, echo.with_(max_output=5)):
        await worker.perform(tool, order, context=None, whose=None, tell=lambda *_: None, send=None)
    assert len(worker._hidden) == 1


async def test_a_text_that_is_not_json_is_not_an_answer() -> None:
    """For a login page the call was not run, or its outcome is unknown."""
    async with hostile() as (server, backend):
        server.next("tools/call", typed("text/html", b"<html>log in</html>"))
        assert (await end_of(backend, envelope("echo")))[0] in {"tool_error", "lost"}
        assert (await end_of(backend, envelope("echo", {"text": "x"}))) == ("ok", "x")
