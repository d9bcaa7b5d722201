"""The HTTP layer of the apps: routes, bodies, and streams with their cleanup."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
from starlette.responses import Response

from agents_tools.errors import UserError, UserValueError
from agents_tools.server.application import (
    Application,
    HttpRequest,
    JsonResponse,
    empty_response,
)
from agents_tools.server.http_errors import HttpError
from agents_tools.server.http_security import ListenerLimits, inner_path
from agents_tools.server.response_stream import FrameResponse
from tests.ui.web import PATIENCE, Exchange, ask, served

TOKEN = "canary-7f3a9c-canary-7f3a9c"  # noqa: S105 - opens nothing
OTHER_MACHINE = ("192.0.2.7", 1)


async def echo(request: HttpRequest) -> Response:
    return JsonResponse(
        {
            "method": request.method,
            "path": inner_path(request.scope),
            "params": request.path_params,
            "query": dict(request.query_params),
            "body": await request.json(),
            "headers": dict(request.headers),
            "cookies": request.cookies,
        }
    )


def app_of(**options: Any) -> Application:
    routes = {
        ("GET", "/"): echo,
        ("POST", "/things"): echo,
        ("GET", "/things/{id}"): echo,
        ("GET", "/things/{id}/parts"): echo,
        ("GET", "/files/{name:path}"): echo,
    }
    return Application(routes, **options)


# --- routes


async def test_a_route_is_found_by_method_and_path() -> None:
    """Route parameters match one segment; only the last one can contain slashes."""
    app = app_of()
    assert (await ask(app, "GET", "/")).json["path"] == "/"
    reply = await ask(app, "GET", "/things/a:b/parts?x=1&x=2&y=")
    assert reply.json["params"] == {"id": "a:b"}
    assert reply.json["query"] == {"x": "2", "y": ""}
    assert (await ask(app, "GET", "/files/a/b.txt")).json["params"] == {"name": "a/b.txt"}
    assert (await ask(app, "GET", "/things/1/")).json["params"] == {"id": "1"}


@pytest.mark.requirement("S2")
async def test_unknown_routes_are_reported_with_the_known_ones() -> None:
    """A 404 or a 405 is JSON that describes the valid requests."""
    app = app_of()
    reply = await ask(app, "GET", "/nothing")
    assert reply.status == 404
    assert reply.message.startswith(
        "The path '/nothing' does not exist. Routes: GET /, POST /things"
    )
    reply = await ask(app, "GET", "/things")
    assert (reply.status, reply.headers["allow"]) == (405, "POST")
    assert reply.message == "'/things' does not support 'GET': expected POST."
    reply = await ask(app, "GET", "/\x1b[31mred\u202e")
    assert "\x1b" not in reply.message
    assert "\u202e" not in reply.message


@pytest.mark.parametrize(
    ("path", "root", "inner"),
    [
        ("/ui/runs", "/ui", "/runs"),
        ("/runs", "/ui", "/runs"),
        ("/ui", "/ui", "/"),
        ("/ui/", "/ui/", "/"),
        ("/uirun", "/ui", "/uirun"),
        ("/runs", "", "/runs"),
        ("", "", "/"),
    ],
)
async def test_an_app_works_wherever_it_is_mounted(path: str, root: str, inner: str) -> None:
    """Servers pass either the whole path or the part below the mount."""
    assert inner_path({"path": path, "root_path": root}) == inner


# --- requests


@pytest.mark.requirement("S20", "S23")
async def test_credentials_are_removed_from_the_request_headers() -> None:
    """Tools must not get the credentials of the server."""
    headers = {"authorization": f"Bearer {TOKEN}", "cookie": "a=b", "x-own": "1"}
    reply = await ask(app_of(auth=TOKEN), "POST", "/things", {}, headers=headers)
    assert reply.status == 200
    assert reply.json["headers"].keys() == {"host", "content-type", "x-own"}
    assert reply.json["cookies"] == {"a": "b"}


@pytest.mark.requirement("S4")
@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "The body is not JSON: Expecting property name enclosed in double quotes (line 1"),
        (b'{"a": 1,\n"b": }', "(line 2, column 6)"),
        (b"\xff", "The body is not UTF-8: byte 0"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": 1, "a": 2}', 'the key "a" occurs twice'),
        (b"[" * 100 + b"]" * 100, "nested more than 64 levels deep"),
        (b"[" + b"1," * 100_001 + b"1]", "at most 100,000 are accepted"),
        (b"1" * 5_000, "a number has more than 4,300 digits"),
    ],
)
async def test_a_body_is_json_within_bounds(body: bytes, told: str) -> None:
    """Invalid or too large JSON is rejected with the position of the error."""
    reply = await ask(app_of(), "POST", "/things", body)
    assert reply.status == 400
    assert told in reply.message


@pytest.mark.requirement("S2")
async def test_a_large_body_is_rejected_before_it_is_read() -> None:
    """The error names the setting."""
    reply = await ask(
        app_of(limits=ListenerLimits(max_body=10)), "POST", "/things", {"a": "x" * 100}
    )
    assert reply.status == 413
    assert "max_body=" in reply.message


async def test_an_empty_body_is_none() -> None:
    """A cancellation needs no body."""
    assert (await ask(app_of(), "POST", "/things", b" \n")).json["body"] is None


@pytest.mark.requirement("S1")
async def test_other_machines_need_a_token_or_a_name() -> None:
    """An app without a token that listens on the network rejects other machines."""
    reply = await ask(app_of(), "GET", "/", client=OTHER_MACHINE)
    assert reply.status == 403
    assert "auth=" in reply.message
    assert "allowed_hosts=" in reply.message
    assert (await ask(app_of(), "GET", "/", client=("::ffff:127.0.0.1", 1))).status == 200
    assert (await ask(app_of(), "GET", "/", client=None)).status == 200
    named = app_of(allowed_hosts=["example.com"])
    assert (await ask(named, "GET", "/", client=OTHER_MACHINE)).status == 200
    headers = {"authorization": f"Bearer {TOKEN}"}
    safe = app_of(auth=TOKEN)
    assert (await ask(safe, "GET", "/", client=OTHER_MACHINE, headers=headers)).status == 200


@pytest.mark.requirement("S1")
def test_a_public_address_needs_a_token() -> None:
    """Without one the app does not start."""
    with pytest.raises(UserError, match="auth="):
        app_of(host="0.0.0.0")  # noqa: S104 - is refused


# --- responses


async def test_errors_are_json_with_their_headers_and_facts() -> None:
    """A handler raises the error to send."""

    async def full(_: HttpRequest) -> Response:
        raise HttpError(503, "No room.", {"Retry-After": "1"}, code="full")

    async def wrong(_: HttpRequest) -> Response:
        raise UserValueError("That cannot work.")

    app = Application({("GET", "/full"): full, ("GET", "/wrong"): wrong})
    reply = await ask(app, "GET", "/full")
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    assert reply.json == {"error": {"status": 503, "message": "No room.", "code": "full"}}
    reply = await ask(app, "GET", "/wrong")
    assert (reply.status, reply.message) == (422, "That cannot work.")


@pytest.mark.requirement("S20")
async def test_an_unexpected_error_is_reported_by_number(caplog: pytest.LogCaptureFixture) -> None:
    """The error itself is only logged."""

    async def fail(_: HttpRequest) -> Response:
        raise RuntimeError("the inside of the server")

    reply = await ask(Application({("GET", "/"): fail}), "GET", "/")
    assert reply.status == 500
    assert "inside" not in reply.text
    assert reply.json["error"]["id"] in caplog.text
    assert "the inside of the server" in caplog.text


async def test_empty_responses_have_no_content_length() -> None:
    """HTTP forbids it for 204; other statuses without a body need it."""

    async def empty(request: HttpRequest) -> Response:
        return empty_response(int(request.path_params["status"]))

    app = Application({("GET", "/{status}"): empty})
    reply = await ask(app, "GET", "/204")
    assert (reply.status, "content-length" in reply.headers) == (204, False)
    reply = await ask(app, "GET", "/303")
    assert (reply.status, reply.headers["content-length"]) == (303, "0")


# --- streams


class Frames:
    """A manual stream of frames that records whether it was closed."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.closed = asyncio.Event()
        self.made = 0

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._run()

    async def _run(self) -> AsyncGenerator[bytes]:
        try:
            while True:
                frame = await self.queue.get()
                if frame is None:
                    return
                if isinstance(frame, Exception):
                    raise frame
                self.made += 1
                yield frame
        finally:
            self.closed.set()


def streaming(frames: Any, **options: Any) -> Application:
    async def handler(_: HttpRequest) -> Response:
        return FrameResponse(aiter(frames), **options)

    return Application({("GET", "/"): handler})


async def test_frames_are_sent_at_once_and_the_end_completes_the_response() -> None:
    """A stream that ends while the client is connected is a complete response."""
    frames = Frames()
    exchange = Exchange(streaming(frames), "GET", "/")
    frames.queue.put_nowait(b"data: 1\n\n")
    await exchange.until("data: 1")
    frames.queue.put_nowait(b"data: 2\n\n")
    await exchange.until("data: 2")
    frames.queue.put_nowait(None)
    await exchange.whole()
    assert exchange.text == "data: 1\n\ndata: 2\n\n"
    assert exchange.headers["content-type"] == "text/event-stream"
    assert exchange.headers["cache-control"] == "no-cache, no-transform"
    assert exchange.headers["x-accel-buffering"] == "no"
    assert frames.closed.is_set()


async def test_available_frames_are_sent_as_one_chunk() -> None:
    """Each chunk is expensive, not each frame."""

    async def many() -> AsyncGenerator[bytes]:
        for _ in range(1_000):
            yield b"x"

    exchange = await Exchange(streaming(many()), "GET", "/").whole()
    assert exchange.text == "x" * 1_000
    assert exchange.sends < 10


@pytest.mark.requirement("F23")
async def test_a_disconnect_is_noticed_without_frames() -> None:
    """The disconnect is watched independently of writing."""
    frames, watching = Frames(), Watching()
    exchange = Exchange(streaming(frames, watching=watching), "GET", "/")
    frames.queue.put_nowait(b"1")
    await exchange.until("1")
    assert watching.entered
    assert not watching.left
    await exchange.leave()
    assert watching.left
    assert frames.closed.is_set()


class Watching:
    """A context that records whether it was entered and left."""

    entered = left = False

    def __enter__(self) -> None:
        self.entered = True

    def __exit__(self, *_: object) -> None:
        self.left = True


async def test_a_heartbeat_detects_a_disconnect_on_asgi_2_4() -> None:
    """With ASGI 2.4, only a failed send reports it."""
    frames = Frames()
    exchange = Exchange(streaming(frames, heartbeat=0.01), "GET", "/", spec="2.4")
    await exchange.until(":\n\n", times=3)
    await exchange.leave()
    assert frames.closed.is_set()


async def test_a_failed_stream_leaves_the_response_incomplete() -> None:
    """The client must notice that something is missing."""
    frames = Frames()
    async with served(streaming(frames)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        frames.queue.put_nowait(b"one")
        frames.queue.put_nowait(RuntimeError("broken"))
        data = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
    assert b"one" in data
    assert not data.endswith(b"0\r\n\r\n")
    assert b"broken" not in data
    assert frames.closed.is_set()


async def test_a_handler_that_is_cancelled_closes_its_frames() -> None:
    """A server that shuts down closes its streams."""
    frames = Frames()
    exchange = Exchange(streaming(frames), "GET", "/")
    frames.queue.put_nowait(b"1")
    await exchange.until("1")
    exchange.task.cancel()
    await asyncio.wait({exchange.task})
    assert exchange.task.cancelled()
    assert frames.closed.is_set()


async def test_a_client_that_does_not_read_blocks_only_its_own_frames() -> None:
    """A bounded number of frames is created; when it reads again, all arrive in order."""
    frames = Frames()
    exchange = Exchange(streaming(frames, heartbeat=None), "GET", "/")
    frames.queue.put_nowait(b"begin\n")
    await exchange.until("begin")
    exchange.stall()
    pieces = [b"%05d" % number + b"x" * 1_018 + b"\n" for number in range(1_000)]
    for piece in pieces:
        frames.queue.put_nowait(piece)
    for _ in range(2_000):
        await asyncio.sleep(0)
    assert 0 < frames.made < 200
    exchange.resume()
    frames.queue.put_nowait(None)
    await exchange.whole()
    assert exchange.text == "begin\n" + b"".join(pieces).decode()


async def test_an_app_starts_and_stops_with_the_server_and_within_another_app() -> None:
    """A mounted app gets no shutdown event, so the outer app can use its lifespan."""
    said: list[str] = []

    async def stop() -> None:
        said.append("stop")

    app = Application({}, on_start=lambda: said.append("start"), on_stop=stop)
    async with served(app):
        assert said == ["start"]
    assert said == ["start", "stop"]
    async with app.lifespan():
        assert said[2:] == ["start"]
    assert said[2:] == ["start", "stop"]


async def test_an_app_that_cannot_start_reports_the_reason() -> None:
    """The server logs it."""

    def start() -> None:
        raise UserValueError("no store")

    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        sent.append(message)

    with pytest.raises(UserValueError, match="no store"):
        await Application({}, on_start=start)({"type": "lifespan"}, receive, send)
    assert sent[0]["type"] == "lifespan.startup.failed"
    assert "no store" in sent[0]["message"]


async def test_an_incomplete_body_is_not_a_failure_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The client has disconnected before the end; its log entry would help no one."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/things",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }
    await app_of()(scope, _gone, send)
    assert sent[0]["status"] == 400
    assert b"closed before the body was complete" in sent[1]["body"]
    assert not caplog.records


async def test_a_body_that_is_not_an_object_is_rejected() -> None:
    """A list is JSON, but not an object."""

    async def handler(request: HttpRequest) -> Response:
        return JsonResponse(await request.json_object())

    app = Application({("POST", "/"): handler})
    assert (await ask(app, "POST", "/", b"")).json == {}
    reply = await ask(app, "POST", "/", json.dumps([1]).encode())
    assert (reply.status, reply.message) == (
        422,
        "The body is wrong: expected a JSON object, got a list.",
    )


async def test_an_invalid_option_is_an_error_when_the_app_is_created() -> None:
    """Not at the first request."""
    with pytest.raises(UserValueError, match="allowed_hosts="):
        app_of(allowed_hosts=["exa mple.com"])


async def test_middleware_can_be_added() -> None:
    """It is a Starlette application."""

    class Stamp:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            async def stamped(message: Any) -> None:
                if message["type"] == "http.response.start":
                    message = {**message, "headers": [*message["headers"], (b"x-stamp", b"1")]}
                await send(message)

            await self.app(scope, receive, stamped)

    app = app_of()
    app.add_middleware(Stamp)
    assert (await ask(app, "GET", "/")).headers["x-stamp"] == "1"


async def _gone() -> dict[str, Any]:
    return {"type": "http.disconnect"}
