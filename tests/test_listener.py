"""HTTP security of every listener: Host and Origin checks, tokens, limits and refusals."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from hypothesis import example, given, strategies as st

from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.server.http_security import (
    ListenerLimits,
    Principal,
    SecuredApp,
    check_binding,
    current_principal,
)
from tests.quick_server import running

TEST_TIMEOUT = 5.0
TOKEN = "canary-7f3a9c-canary-7f3a9c"  # noqa: S105 - not a real secret
OWN_HOST = "127.0.0.1:8000"
SHORT_TIMEOUT = 0.05
"""A short body timeout, in seconds."""

Message = MutableMapping[str, Any]


# --- the secured app, without a socket


@dataclass
class Reply:
    """The recorded response."""

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    body_parts: list[str] = field(default_factory=list)

    def header(self, name: str) -> str | None:
        values = [value for key, value in self.headers if key == name]
        return ", ".join(values) if values else None

    @property
    def message(self) -> str:
        return json.loads(self.body)["error"]["message"]

    async def send(self, message: Message) -> None:
        self.body_parts.append(message["type"])
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [(key.decode(), value.decode()) for key, value in message["headers"]]
        else:
            self.body += message.get("body", b"")


class RecordingApp:
    """An app that reads the whole body and records each request."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.principals: list[Principal | None] = []
        self.scopes: list[Message] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        self.bodies.append(await read(receive))
        self.principals.append(current_principal())
        await answer(send)


async def read(receive: Any) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return body


async def answer(send: Any, *headers: tuple[bytes, bytes]) -> None:
    kind = (b"content-type", b"application/json")
    await send({"type": "http.response.start", "status": 200, "headers": [kind, *headers]})
    await send({"type": "http.response.body", "body": b"{}"})


def http_scope(
    headers: Sequence[tuple[str, str]], *, method: str = "POST", path: str = "/mcp", query: str = ""
) -> dict[str, Any]:
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(key.encode(), value.encode("latin-1")) for key, value in headers],
    }


def body_parts(*bodies: bytes) -> Callable[[], Any]:
    """Send the parts of a body one by one, then disconnect."""
    messages = [
        {"type": "http.request", "body": body, "more_body": more}
        for body, more in zip(bodies, [True] * (len(bodies) - 1) + [False], strict=True)
    ]

    async def receive() -> Message:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    return receive


def stalled_body(*bodies: bytes) -> Callable[[], Any]:
    """Send parts of a body and then nothing, with more announced."""
    messages = [{"type": "http.request", "body": body, "more_body": True} for body in bodies]

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop(0)

    return receive


async def send_request(
    app: Any,
    *headers: tuple[str, str],
    host: str | None = OWN_HOST,
    kind: str | None = "application/json",
    bearer: str | None = None,
    receive: Any = None,
    **request: Any,
) -> Reply:
    """Make one request and return the response."""
    all_headers = [*headers]
    if host is not None:
        all_headers.append(("host", host))
    if kind is not None:
        all_headers.append(("content-type", kind))
    if bearer is not None:
        all_headers.append(("authorization", f"Bearer {bearer}"))
    reply = Reply()
    async with asyncio.timeout(TEST_TIMEOUT):
        await app(http_scope(all_headers, **request), receive or body_parts(b"{}"), reply.send)
    return reply


# --- S1: Host and Origin


HOSTS = {
    "loopback": ("127.0.0.1:8000", True),
    "without a port": ("127.0.0.1", True),
    "another port": ("localhost:1", True),
    "localhost": ("localhost:8000", True),
    "any case": ("LocalHost:8000", True),
    "v6": ("[::1]:8000", True),
    "evil": ("evil.example", False),
    "evil with our port": ("evil.example:8000", False),
    "suffix": ("127.0.0.1.evil.com", False),
    "localhost suffix": ("localhost.evil.com:8000", False),
    "prefix": ("evil-127.0.0.1", False),
    "user": ("127.0.0.1@evil.com", False),
    "all addresses": ("0.0.0.0:8000", False),
    "private": ("192.168.0.1", False),
    "v6 without brackets": ("::1", False),
    "empty": ("", False),
    "no such port": ("localhost:65536", False),
    "two in one": ("127.0.0.1, evil.com", False),
    "missing": (None, False),
}
ORIGINS = {
    "none": (None, True),
    "own": ("http://127.0.0.1:8000", True),
    "localhost, another port": ("http://localhost:3000", True),
    "v6": ("http://[::1]:8000", True),
    "evil": ("https://evil.example", False),
    "suffix": ("http://127.0.0.1.evil.com", False),
    "user": ("http://127.0.0.1@evil.com", False),
    "user before loopback": ("http://evil.com@127.0.0.1", False),
    "path": ("http://localhost/evil", False),
    "scheme": ("file://localhost", False),
    "no scheme": ("localhost:8000", False),
    "null": ("null", False),
    "empty": ("", False),
}


@pytest.mark.requirement("S1")
@pytest.mark.parametrize("bind", ["127.0.0.1", "::1", "0.0.0.0"])  # noqa: S104
@pytest.mark.parametrize("host", HOSTS)
async def test_only_the_servers_own_hosts_and_origins_are_accepted(bind: str, host: str) -> None:
    """A web page of another machine cannot reach the tools, whatever address is bound."""
    host_value, host_good = HOSTS[host]
    for origin, (origin_value, origin_good) in ORIGINS.items():
        inner = RecordingApp()
        app = SecuredApp(inner, host=bind)
        headers = [] if origin_value is None else [("origin", origin_value)]
        reply = await send_request(app, *headers, host=host_value)
        assert reply.status == (421 if not host_good else 200 if origin_good else 403), origin
        assert bool(inner.bodies) == (host_good and origin_good), origin
        readable_by = origin_value if host_good and origin_good else None
        assert reply.header("access-control-allow-origin") == readable_by, origin


@pytest.mark.requirement("S1")
@pytest.mark.parametrize(
    "hosts", [(OWN_HOST, OWN_HOST), (OWN_HOST, "evil.com"), ("evil.com", OWN_HOST)]
)
async def test_two_hosts_are_refused(hosts: tuple[str, str]) -> None:
    """Two programs could each trust a different one of them."""
    reply = await send_request(SecuredApp(RecordingApp()), ("host", hosts[0]), host=hosts[1])
    assert reply.status == 421
    assert repr(hosts[0]) in reply.message


@pytest.mark.requirement("S1")
async def test_two_origins_are_refused() -> None:
    """A valid origin does not excuse an invalid one."""
    good = ("origin", "https://app.example.com")
    app = SecuredApp(RecordingApp(), allowed_origins=["https://app.example.com"])
    assert (await send_request(app, good, ("origin", "https://evil.com"))).status == 403
    assert (await send_request(app, good, good)).status == 403
    assert (await send_request(app, good)).status == 200


@pytest.mark.requirement("S1")
@given(
    st.sampled_from(["127.0.0.1", "localhost", "[::1]", "127.0.0.1:80", "tools.example.com"]),
    st.sampled_from("@/\\#?%_-;, \t\x00\xe9x"),
    st.text(st.characters(max_codepoint=255), max_size=12),
)
@example("127.0.0.1", "\n", "")
def test_a_valid_name_with_any_suffix_is_refused(good: str, mark: str, tail: str) -> None:
    """A resolver or another parser could split such a name differently."""
    app = SecuredApp(RecordingApp(), allowed_hosts=["tools.example.com"])
    assert asyncio.run(send_request(app, host=good + mark + tail)).status == 421
    origin = ("origin", f"http://{good}{mark}{tail}")
    assert asyncio.run(send_request(app, origin)).status == 403


@pytest.mark.requirement("S2")
@pytest.mark.parametrize(
    ("allowed", "host", "passes"),
    [
        ("example.com", "example.com", True),
        ("example.com", "Example.COM:8000", True),
        ("example.com", "example.com.", True),
        ("example.com", "www.example.com", False),
        ("example.com", "notexample.com", False),
        ("example.com", "example.com.evil.com", False),
        ("Example.com:8000", "example.com:8000", True),
        ("example.com:8000", "example.com:80", False),
        ("example.com:8000", "example.com", False),
        ("example.com:*", "example.com", True),
        ("example.com:*", "example.com:1234", True),
        ("*.example.com", "a.example.com:8000", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "evilexample.com", False),
        ("*.example.com", "a.example.com.evil.com", False),
        ("*.example.com:443", "a.example.com:443", True),
        ("*.example.com:443", "a.example.com:444", False),
        ("[fd00::1]", "[fd00::1]:8000", True),
        ("10.0.0.5", "10.0.0.5:8000", True),
        ("tools.ns.svc.cluster.local", "tools.ns.svc.cluster.local:8000", True),
    ],
)
async def test_hosts_can_be_allowed(allowed: str, host: str, passes: bool) -> None:
    """A server behind a proxy or in a cluster is reached by another name."""
    reply = await send_request(SecuredApp(RecordingApp(), allowed_hosts=[allowed]), host=host)
    assert reply.status == (200 if passes else 421)


@pytest.mark.parametrize(
    "wrong", ["*", "", "https://example.com", "example.com/mcp", "fd00::1", "*.*.com", "a b", "*."]
)
def test_a_host_that_could_never_match_is_an_error(wrong: str) -> None:
    with pytest.raises(UserValueError, match=re.escape(repr(wrong))):
        SecuredApp(RecordingApp(), allowed_hosts=[wrong])


@pytest.mark.requirement("S1")
@pytest.mark.parametrize(
    "wrong", ["*", "null", "example.com", "https://*.example.com", "https://example.com/app", ""]
)
def test_an_origin_that_could_never_match_is_an_error(wrong: str) -> None:
    """Any sandboxed page sends `null`, hence it cannot be allowed."""
    with pytest.raises(UserValueError, match=re.escape(repr(wrong))):
        SecuredApp(RecordingApp(), allowed_origins=[wrong])


@pytest.mark.parametrize("setting", ["allowed_hosts", "allowed_origins", "required_scopes"])
def test_a_string_instead_of_a_list_of_strings_is_refused(setting: str) -> None:
    """Iterating over the string would allow its characters."""
    options: dict[str, Any] = {setting: "https://example.com"}
    with pytest.raises(UserTypeError, match=rf"{setting}= is a string: expected a list"):
        SecuredApp(RecordingApp(), **options)


@pytest.mark.requirement("S1")
async def test_localhost_pages_cannot_call_a_public_host() -> None:
    """A page on a visitor's machine does not belong to a server elsewhere."""
    app = SecuredApp(RecordingApp(), allowed_hosts=["tools.example.com"])
    page = ("origin", "http://localhost:3000")
    assert (await send_request(app, page, host="tools.example.com")).status == 403
    assert (await send_request(app, page)).status == 200


@pytest.mark.parametrize(
    ("allowed", "origin", "passes"),
    [
        ("https://app.example.com", "https://app.example.com", True),
        ("https://app.example.com/", "https://app.example.com", True),
        ("https://app.example.com:443", "https://app.example.com", True),
        ("https://App.example.com", "https://app.example.com", True),
        ("vscode-webview://abc", "vscode-webview://abc", True),
        ("https://app.example.com", "http://app.example.com", False),
        ("https://app.example.com", "https://app.example.com:8443", False),
        ("https://app.example.com", "https://app.example.com.evil.com", False),
        ("https://app.example.com", "null", False),
    ],
)
async def test_origins_can_be_allowed(allowed: str, origin: str, passes: bool) -> None:
    reply = await send_request(
        SecuredApp(RecordingApp(), allowed_origins=[allowed]), ("origin", origin)
    )
    assert reply.status == (200 if passes else 403)
    assert reply.header("access-control-allow-origin") == (origin if passes else None)


# --- S2: messages of refusals


@pytest.mark.requirement("S2")
async def test_a_refused_host_is_reported_with_a_remedy(caplog: pytest.LogCaptureFixture) -> None:
    """A bare 421 is hard to diagnose."""
    reply = await send_request(SecuredApp(RecordingApp(), host="10.0.0.5"), host="tools.svc:8000")
    assert json.loads(reply.body) == {
        "error": {
            "status": 421,
            "message": "The Host header 'tools.svc:8000' is not allowed. If it is a name of this "
            "server, add it to allowed_hosts=.",
        }
    }
    assert reply.headers == [
        ("content-type", "application/json"),
        ("content-length", str(len(reply.body))),
    ]
    assert caplog.record_tuples == [
        (
            "agents_tools",
            logging.WARNING,
            f"A request to the listener on 10.0.0.5 was refused (421): {reply.message}",
        )
    ]


@pytest.mark.requirement("S2")
@pytest.mark.parametrize(
    ("origins", "expected_message"),
    [
        (
            ["https://app.example.com"],
            (
                "Web pages with the Origin header 'https://app.example.com' are not allowed to call "
                "this server. To allow them, add the origin to allowed_origins=."
            ),
        ),
        (
            ["null"],
            (
                "Web pages with the Origin header 'null' cannot call this server, because it does "
                "not name a host. Serve the page over HTTP and add its origin to allowed_origins=."
            ),
        ),
        (
            ["null", "http://localhost"],
            (
                "The request has several Origin headers: expected at most one, got 'null' and "
                "'http://localhost'."
            ),
        ),
    ],
)
async def test_a_refused_origin_is_reported_with_a_remedy(
    origins: list[str], expected_message: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The body and the log explain it, also for `null`, which cannot be allowed."""
    reply = await send_request(
        SecuredApp(RecordingApp()), *[("origin", origin) for origin in origins]
    )
    assert reply.message == expected_message
    assert caplog.messages == [
        f"A request to the listener on 127.0.0.1 was refused (403): {expected_message}"
    ]


@pytest.mark.requirement("S2")
async def test_many_refusals_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A client without a token can send thousands of requests a second."""
    app = SecuredApp(RecordingApp(), auth=TOKEN)
    for _ in range(1_000):
        assert (await send_request(app)).status == 401
    assert 0 < len(caplog.records) <= 20


async def test_a_missing_host_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """No setting allows a missing header."""
    reply = await send_request(SecuredApp(RecordingApp()), host=None)
    assert reply.message == "The Host header is wrong: expected one, got none."
    assert reply.message in caplog.text


@pytest.mark.requirement("S2")
@pytest.mark.parametrize("name", ["host", "origin", "content-type", "content-length"])
async def test_a_header_cannot_forge_log_lines(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Quoted values are short, on one line, and printable."""
    value = "evil\x1b[31m\r\nWARNING all is well\x00\x9b" + "x" * 5_000
    options: dict[str, Any] = {"host": value} if name == "host" else {}
    options |= {"kind": value} if name == "content-type" else {}
    headers = [(name, value)] if name in {"origin", "content-length"} else []
    reply = await send_request(SecuredApp(RecordingApp()), *headers, **options)
    assert reply.status in {400, 403, 415, 421}
    (record,) = caplog.messages
    assert record.isprintable()
    assert r"'evil\x1b[31m\r\nWARNING all is well\x00\x9bxxx" in record
    assert len(record) < 500
    assert record.endswith(reply.message)


# --- S4: content types


@pytest.mark.requirement("S4", "S3")
@pytest.mark.parametrize(
    ("kind", "passes"),
    [
        ("application/json", True),
        ("application/json; charset=utf-8", True),
        ("Application/JSON ;charset=UTF-8", True),
        ("text/plain", False),
        ("text/plain; application/json", False),
        ("text/plain;charset=application/json", False),
        ("application/x-www-form-urlencoded", False),
        ("multipart/form-data; boundary=application/json", False),
        ("application/json, text/plain", False),
        ("application/jsonx", False),
        ("application/json5", False),
        ("application", False),
        ("", False),
        (None, False),
    ],
)
@pytest.mark.parametrize("method", ["POST", "post"])
async def test_only_json_can_be_posted(kind: str | None, passes: bool, method: str) -> None:
    """Browsers send forms across origins without a preflight, but not JSON."""
    inner = RecordingApp()
    reply = await send_request(SecuredApp(inner), kind=kind, method=method)
    assert reply.status == (200 if passes else 415)
    assert bool(inner.bodies) is passes
    if not passes:
        assert reply.message.startswith("The Content-Type is wrong: expected application/json")


@pytest.mark.requirement("S4")
@given(st.text(st.characters(max_codepoint=255), max_size=40))
def test_only_the_json_content_type_passes(kind: str) -> None:
    status = asyncio.run(send_request(SecuredApp(RecordingApp()), kind=kind)).status
    named = kind.partition(";")[0].strip().lower()
    assert status == (200 if named == "application/json" else 415)


@pytest.mark.requirement("S4")
async def test_two_content_types_are_refused() -> None:
    """The app could read the other one."""
    reply = await send_request(SecuredApp(RecordingApp()), ("content-type", "text/plain"))
    assert reply.status == 415
    assert "'text/plain, application/json'" in reply.message


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_request_without_a_body_needs_no_content_type(method: str) -> None:
    reply = await send_request(
        SecuredApp(RecordingApp()), kind=None, method=method, receive=body_parts(b"")
    )
    assert reply.status == 200


# --- sizes, times and numbers


SMALL = ListenerLimits(max_body=10)


@pytest.mark.parametrize(
    ("length", "status"),
    [
        ("10", 200),
        ("0010", 200),
        ("11", 413),
        ("9" * 5_000, 413),
        ("-1", 400),
        ("+5", 400),
        ("1e1", 400),
        ("0x1", 400),
        ("5, 5", 400),
        ("", 400),
        ("\xb2", 400),
    ],
)
async def test_the_content_length_is_checked_before_the_body_is_read(
    length: str, status: int
) -> None:
    inner = RecordingApp()
    reply = await send_request(SecuredApp(inner, limits=SMALL), ("content-length", length))
    assert reply.status == status
    assert len(inner.scopes) == (status == 200)


async def test_two_lengths_are_refused() -> None:
    """A proxy could have used the other one (request smuggling)."""
    lengths = [("content-length", "2"), ("content-length", "2")]
    reply = await send_request(SecuredApp(RecordingApp()), *lengths)
    assert (reply.status, reply.message) == (
        400,
        "The Content-Length is invalid: expected one number, got '2, 2'.",
    )


@pytest.mark.parametrize("body", [(b"x" * 11,), (b"x" * 5, b"x" * 5, b"x"), (b"x" * 6, b"x" * 6)])
async def test_a_body_is_counted_while_it_arrives(body: tuple[bytes, ...]) -> None:
    """The Content-Length can be missing or wrong."""
    inner = RecordingApp()
    reply = await send_request(SecuredApp(inner, limits=SMALL), receive=body_parts(*body))
    assert reply.status == 413
    assert reply.message == "The body is too large: expected at most 10 bytes (max_body=)."
    assert inner.bodies == []
    reply = await send_request(
        SecuredApp(inner, limits=SMALL), receive=body_parts(b"x" * 5, b"x" * 5)
    )
    assert (reply.status, inner.bodies) == (200, [b"x" * 10])


async def test_a_stalled_body_times_out(caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise a few silent clients would occupy all request slots."""
    app = SecuredApp(RecordingApp(), limits=ListenerLimits(body_timeout=SHORT_TIMEOUT))
    reply = await send_request(app, receive=stalled_body(b"{"))
    assert (reply.status, reply.header("connection")) == (408, "close")
    assert reply.message == "The body did not arrive within 0.05 s (body_timeout=)."
    assert reply.message in caplog.text
    assert (await send_request(app)).status == 200


async def test_a_dripping_body_times_out() -> None:
    """The timeout covers the whole body, not each part."""

    async def drip() -> Message:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"", "more_body": True}

    app = SecuredApp(RecordingApp(), limits=ListenerLimits(body_timeout=SHORT_TIMEOUT))
    assert (await send_request(app, receive=drip)).status == 408


async def test_waiting_for_a_disconnect_has_no_timeout() -> None:
    """An event stream waits for a disconnect while it runs, long after the body has arrived."""
    waited = asyncio.Event()
    gone = asyncio.Event()
    messages = [{"type": "http.request", "body": b"{}"}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        waited.set()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await read(receive)
        assert (await receive())["type"] == "http.disconnect"
        await answer(send)

    # The limit has run out before the wait begins: it would end at the first turn of the loop.
    app = SecuredApp(stream, limits=ListenerLimits(body_timeout=1e-9))
    task = asyncio.create_task(send_request(app, receive=receive))
    async with asyncio.timeout(TEST_TIMEOUT):
        await waited.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        gone.set()
        assert (await task).status == 200


async def test_a_timeout_error_of_the_server_is_not_reported_as_a_late_body() -> None:
    async def receive() -> Message:
        raise TimeoutError

    assert (await send_request(SecuredApp(RecordingApp()), receive=receive)).status == 500


async def _swallowing(scope: Any, receive: Any, send: Any) -> None:
    try:
        await read(receive)
    except Exception:  # noqa: BLE001 - the app under test
        await send({"type": "http.response.start", "status": 500, "headers": []})
        await send({"type": "http.response.body", "body": b"mine"})


async def _grouping(scope: Any, receive: Any, send: Any) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(read(receive))


async def _translating(scope: Any, receive: Any, send: Any) -> None:
    try:
        await read(receive)
    except Exception as error:
        raise RuntimeError("mine") from error


async def _insisting(scope: Any, receive: Any, send: Any) -> None:
    with contextlib.suppress(Exception):
        await read(receive)
    await read(receive)


@pytest.mark.parametrize("app", [_swallowing, _grouping, _translating, _insisting])
@pytest.mark.parametrize("status", [413, 408])
async def test_a_refused_body_is_reported_however_the_app_handles_the_error(
    app: Any, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The app of the MCP SDK answers 500 to any exception while it reads."""
    bodies = {413: body_parts(b"x" * 5, b"x" * 6), 408: stalled_body(b"x")}
    limits = ListenerLimits(max_body=10, body_timeout=SHORT_TIMEOUT)
    reply = await send_request(SecuredApp(app, limits=limits), receive=bodies[status])
    assert reply.status == status
    assert reply.body_parts == ["http.response.start", "http.response.body"]
    assert json.loads(reply.body)["error"]["status"] == status
    assert len(caplog.messages) == 1


async def test_a_refused_body_cannot_be_read_further() -> None:
    """An app that keeps reading would take the rest for the whole body."""
    read_after_refusal: list[bytes] = []

    async def insisting(scope: Any, receive: Any, send: Any) -> None:
        with contextlib.suppress(Exception):
            await read(receive)
        read_after_refusal.append(await read(receive))

    late = [stalled_body(), body_parts(b"{}")]

    async def receive() -> Message:
        return await late.pop(0)()

    app = SecuredApp(insisting, limits=ListenerLimits(body_timeout=SHORT_TIMEOUT))
    assert (await send_request(app, receive=receive)).status == 408
    assert read_after_refusal == []


async def test_a_refusal_after_the_response_start_leaves_the_response_unfinished() -> None:
    """The server then closes the connection, so the client notices the missing end."""

    async def early(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        with contextlib.suppress(Exception):
            await read(receive)
        await send({"type": "http.response.body", "body": b"all is well"})

    reply = await send_request(SecuredApp(early, limits=SMALL), receive=body_parts(b"x" * 11))
    assert reply.body_parts == ["http.response.start"]


class Gate:
    """An app that signals each request and blocks until it is opened."""

    def __init__(self) -> None:
        self.entered = asyncio.Semaphore(0)
        self.opened = asyncio.Event()
        self.fault: Exception | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.entered.release()
        await self.opened.wait()
        if self.fault is not None:
            raise self.fault
        await answer(send)


@pytest.mark.parametrize("way", ["end", "fault", "cancel"])
async def test_requests_beyond_the_concurrency_limit_get_503_until_one_ends(way: str) -> None:
    """A slot is released on success, error and cancellation."""
    gate = Gate()
    app = SecuredApp(gate, limits=ListenerLimits(max_concurrency=2))
    async with asyncio.timeout(TEST_TIMEOUT):
        for _ in range(3):  # a leaked slot would show in the next round
            gate.opened.clear()
            tasks = [asyncio.create_task(send_request(app)) for _ in range(2)]
            for _ in tasks:
                await gate.entered.acquire()
            reply = await send_request(app)
            assert (reply.status, reply.header("retry-after")) == (503, "1")
            assert reply.message.startswith("The server is busy: 2 requests are being handled")
            gate.fault = ValueError("no") if way == "fault" else None
            if way == "cancel":
                for task in tasks:
                    task.cancel()
            gate.opened.set()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert len(ended) == 2
            assert (await send_request(app)).status == (500 if way == "fault" else 200)
            await gate.entered.acquire()


async def test_refused_requests_do_not_occupy_a_slot() -> None:
    """Clients without a token or with an invalid body cannot block others."""
    app = SecuredApp(
        RecordingApp(), auth=TOKEN, limits=ListenerLimits(max_concurrency=1, max_body=10)
    )
    for _ in range(3):
        assert (await send_request(app)).status == 401
        assert (await send_request(app, kind="text/plain", bearer=TOKEN)).status == 415
        assert (await send_request(app, receive=body_parts(b"x" * 11), bearer=TOKEN)).status == 413
        assert (await send_request(app, host="evil.com", bearer=TOKEN)).status == 421
    assert (await send_request(app, bearer=TOKEN)).status == 200


@pytest.mark.parametrize("name", ["max_body", "max_concurrency", "body_timeout"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), True, "5", None])
def test_a_limit_must_be_a_number_above_zero(name: str, value: Any) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(UserValueError, match=rf"{name}= is invalid: expected a number above 0"):
        ListenerLimits(**options)


# --- S3 and S23: tokens


@dataclass
class TokenInfo:
    """What a verifier returns for a token, like the `AccessToken` of the MCP SDK."""

    client_id: str = "tester"
    scopes: Any = ("read",)
    expires_at: Any = None
    resource: str | None = None
    subject: str | None = "ada"


class Verifier:
    """An asynchronous token verifier with fixed tokens."""

    def __init__(self, **known: Any) -> None:
        self.known = {name.replace("_", "-"): value for name, value in known.items()}
        self.asked: list[str] = []

    async def verify_token(self, token: str) -> Any:
        self.asked.append(token)
        found = self.known.get(token)
        if isinstance(found, Exception):
            raise found
        return found


class SyncVerifier(Verifier):
    """The same verifier with a synchronous method."""

    def verify_token(self, token: str) -> Any:  # type: ignore[override]
        self.asked.append(token)
        return self.known.get(token)


@pytest.mark.requirement("S1")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.0.5", "example.com", "127.0.0.1.x"])  # noqa: S104
def test_listening_beyond_loopback_needs_auth(host: str) -> None:
    """The error names the setting and the alternative."""
    with pytest.raises(UserError) as caught:
        check_binding(host, auth=None, setting="ui_token")
    assert str(caught.value) == (
        f"Listening on {host!r} lets every machine that reaches it call the tools. Give ui_token= "
        "a token of at least 16 characters or a verifier, or listen on 127.0.0.1."
    )
    check_binding(host, auth=TOKEN, setting="ui_token")
    check_binding(host, auth=Verifier(), setting="ui_token")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost", "LOCALHOST"])
def test_listening_on_loopback_needs_no_auth(host: str) -> None:
    check_binding(host, auth=None, setting="auth")


@pytest.mark.requirement("S3")
@pytest.mark.parametrize(
    "authorization",
    [
        [],
        [""],
        ["Bearer"],
        ["Bearer "],
        [f"Basic {TOKEN}"],
        [f"Bearer{TOKEN}"],
        [TOKEN],
        [f"Bearer {TOKEN} {TOKEN}"],
        [f"Bearer {TOKEN}\xe9"],
        [f"Bearer {TOKEN}\x00"],
        [f"Bearer {TOKEN}", f"Bearer {TOKEN}"],
        [f"Bearer {TOKEN}", "Basic x"],
    ],
)
async def test_a_request_without_a_valid_token_header_gets_401(authorization: list[str]) -> None:
    """A missing, malformed or repeated header."""
    inner = RecordingApp()
    headers = [("authorization", value) for value in authorization]
    reply = await send_request(SecuredApp(inner, auth=TOKEN), *headers)
    assert (reply.status, reply.header("www-authenticate")) == (401, "Bearer")
    assert reply.message == (
        "A bearer token is missing. Send the header 'Authorization: Bearer ...' once."
    )
    assert inner.scopes == []


@pytest.mark.requirement("S3")
@pytest.mark.parametrize("name", ["token", "access_token", "authorization", "key"])
async def test_a_token_in_the_url_is_not_accepted(name: str) -> None:
    """URLs end up in logs and browser histories."""
    app = SecuredApp(RecordingApp(), auth=TOKEN)
    assert (await send_request(app, query=f"{name}={TOKEN}")).status == 401
    assert (await send_request(app, path=f"/mcp/{TOKEN}")).status == 401
    assert (await send_request(app, ("cookie", f"{name}={TOKEN}"))).status == 401


@pytest.mark.requirement("S3")
@pytest.mark.parametrize(
    "token", [TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "x" * len(TOKEN), "x", "undefined"]
)
async def test_a_wrong_token_is_reported_as_invalid(token: str) -> None:
    reply = await send_request(SecuredApp(RecordingApp(), auth=TOKEN), bearer=token)
    assert (reply.status, reply.message) == (
        401,
        "The bearer token is invalid or has expired.",
    )
    assert reply.header("www-authenticate") == 'Bearer error="invalid_token"'


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
async def test_the_right_token_is_accepted(scheme: str) -> None:
    inner = RecordingApp()
    app = SecuredApp(inner, auth=TOKEN)
    assert (await send_request(app, ("authorization", f"{scheme} {TOKEN}"))).status == 200
    assert inner.principals == [Principal(client_id="token", token=TOKEN)]


@pytest.mark.parametrize(
    ("auth", "expected_message"),
    [
        ("", "at least 16 characters, got 0"),
        ("fifteen-letters", "at least 16 characters, got 15"),
        (TOKEN + "\n", "visible ASCII characters, got a blank, a line end"),
        ("two words, sixteen", "visible ASCII characters"),
        ("sechzehn-Zeichen-ü", "visible ASCII characters"),
        (TOKEN.encode(), r"an object with verify_token\(token\), got bytes"),
        (object(), "got object"),
    ],
)
def test_an_unusable_auth_setting_is_an_error(auth: Any, expected_message: str) -> None:
    """A short token can be guessed, and one with a line end can never be sent."""
    with pytest.raises(UserError, match=expected_message) as caught:
        SecuredApp(RecordingApp(), auth=auth)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("auth", [None, TOKEN])
def test_scopes_need_a_verifier(auth: str | None) -> None:
    """Without one, the required scopes would never be checked."""
    with pytest.raises(UserError, match="required_scopes= needs a verifier as auth="):
        SecuredApp(RecordingApp(), auth=auth, required_scopes=["read"])


@pytest.mark.requirement("S23")
@pytest.mark.parametrize("kind", [Verifier, SyncVerifier])
async def test_a_verifier_identifies_the_caller(kind: type[Verifier]) -> None:
    """The app finds the principal in the scope and, during the request, in the context."""
    known = TokenInfo(scopes=["read", "write"])
    good = "good"
    inner = RecordingApp()
    reply = await send_request(SecuredApp(inner, auth=kind(good=known)), bearer=good)
    expected = Principal(
        client_id="tester", scopes=("read", "write"), subject="ada", token=good, claims=known
    )
    assert (reply.status, inner.principals) == (200, [expected])
    assert inner.scopes[0]["state"]["agents_tools.principal"] is inner.principals[0]
    assert current_principal() is None


async def test_a_token_verifier_of_the_mcp_sdk_is_accepted() -> None:
    provider = pytest.importorskip("mcp.server.auth.provider")
    token = provider.AccessToken(
        token=TOKEN, client_id="c1", scopes=["a"], expires_at=int(time.time()) + 60
    )
    inner = RecordingApp()
    app = SecuredApp(inner, auth=Verifier(**{TOKEN: token}), required_scopes=["a"])
    assert (await send_request(app, bearer=TOKEN)).status == 200
    (principal,) = inner.principals
    assert principal is not None
    assert (principal.client_id, principal.scopes) == ("c1", ("a",))


async def test_the_state_of_the_server_is_passed_on_unchanged() -> None:
    inner = RecordingApp()
    scope = http_scope(
        [
            ("host", OWN_HOST),
            ("content-type", "application/json"),
            ("authorization", f"Bearer {TOKEN}"),
        ]
    )
    scope["state"] = {"db": 1}
    await SecuredApp(inner, auth=TOKEN)(scope, body_parts(b""), Reply().send)
    assert inner.scopes[0]["state"]["db"] == 1
    assert scope["state"] == {"db": 1}


@pytest.mark.requirement("S23")
async def test_each_request_has_its_own_principal() -> None:
    """Concurrent requests do not share it."""
    seen: dict[str, Principal | None] = {}
    both = asyncio.Barrier(2)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await both.wait()
        seen[scope["path"]] = current_principal()
        await answer(send)

    guarded = SecuredApp(app, auth=Verifier(a=TokenInfo("one"), b=TokenInfo("two")))
    await asyncio.gather(
        send_request(guarded, bearer="a", path="/a"), send_request(guarded, bearer="b", path="/b")
    )
    assert {path: who and who.client_id for path, who in seen.items()} == {
        "/a": "one",
        "/b": "two",
    }


@pytest.mark.requirement("S23")
def test_the_repr_of_a_principal_does_not_show_its_token() -> None:
    """Tools get the principal in their context, which is often printed."""
    who = Principal(client_id="c", subject="s", token=TOKEN, claims={"token": TOKEN})
    assert repr(who) == "Principal(client_id='c', scopes=(), subject='s')"
    assert str(who) == repr(who)


NOW = time.time()


@pytest.mark.requirement("S3")
@pytest.mark.parametrize(
    ("expires", "status"),
    [
        (None, 200),
        (NOW + 3_600, 200),
        (int(NOW) + 3_600, 200),
        (datetime.fromtimestamp(NOW + 3_600, UTC), 200),
        (NOW - 1, 401),
        (0, 401),
        (float("nan"), 401),
        (datetime.fromtimestamp(NOW - 1, UTC), 401),
        ("soon", 500),
    ],
    ids=["none", "later", "whole", "date", "past", "zero", "nan", "past-date", "text"],
)
async def test_an_expired_token_is_not_accepted(expires: Any, status: int) -> None:
    """An unreadable expiry time is an error of the verifier."""
    reply = await send_request(
        SecuredApp(RecordingApp(), auth=Verifier(t=TokenInfo(expires_at=expires))), bearer="t"
    )
    assert reply.status == status
    if status == 401:
        assert reply.header("www-authenticate") == 'Bearer error="invalid_token"'


@pytest.mark.requirement("S23")
@pytest.mark.parametrize(
    ("resource", "status"),
    [
        ("https://tools.example.com/mcp", 200),
        ("https://tools.example.com/mcp/", 200),
        (None, 200),
        ("https://other.example.com/mcp", 401),
        ("https://tools.example.com", 401),
        ("", 401),
    ],
)
async def test_a_token_for_another_server_is_not_accepted(
    resource: str | None, status: int
) -> None:
    auth = Verifier(t=TokenInfo(resource=resource))
    app = SecuredApp(RecordingApp(), auth=auth, resource="https://tools.example.com/mcp")
    assert (await send_request(app, bearer="t")).status == status


@pytest.mark.parametrize("scopes", [("read",), "read", [], None, "", "tools:admin-not"])
async def test_missing_scopes_are_listed_in_the_refusal(scopes: Any) -> None:
    auth = Verifier(t=TokenInfo(scopes=scopes))
    app = SecuredApp(
        RecordingApp(),
        auth=auth,
        required_scopes=["tools:read", "tools:admin"],
        metadata_url="https://m",
    )
    reply = await send_request(app, bearer="t")
    assert reply.status == 403
    assert reply.message == "The token lacks required scopes: tools:read, tools:admin."
    assert reply.header("www-authenticate") == (
        'Bearer error="insufficient_scope", scope="tools:read tools:admin", '
        'resource_metadata="https://m"'
    )


@pytest.mark.parametrize("scopes", [["write", "read", "all"], "read write", {"read", "write"}])
async def test_a_token_with_the_required_scopes_is_accepted(scopes: Any) -> None:
    """Some verifiers return the scopes as one string, as they stand in a token."""
    app = SecuredApp(
        RecordingApp(), auth=Verifier(t=TokenInfo(scopes=scopes)), required_scopes=["read", "write"]
    )
    assert (await send_request(app, bearer="t")).status == 200


async def test_a_401_points_to_the_resource_metadata() -> None:
    """RFC 9728, both without a token and with a wrong one."""
    app = SecuredApp(RecordingApp(), auth=Verifier(), metadata_url="https://x/.well-known/o")
    metadata = 'resource_metadata="https://x/.well-known/o"'
    assert (await send_request(app)).header("www-authenticate") == f"Bearer {metadata}"
    reply = await send_request(app, bearer="wrong")
    assert reply.header("www-authenticate") == f'Bearer error="invalid_token", {metadata}'


@pytest.mark.parametrize("found", [None, False])
async def test_a_verifier_can_refuse_a_token(found: Any) -> None:
    assert (
        await send_request(SecuredApp(RecordingApp(), auth=Verifier(t=found)), bearer="t")
    ).status == 401


@pytest.mark.requirement("S25")
async def test_a_verifier_that_raises_admits_no_request(caplog: pytest.LogCaptureFixture) -> None:
    """The response hides the error, the log has it."""
    inner = RecordingApp()
    app = SecuredApp(inner, auth=Verifier(t=ConnectionError("db-7 is down")))
    reply = await send_request(app, bearer="t")
    assert reply.status == 500
    assert b"db-7" not in reply.body
    assert "db-7 is down" in caplog.text
    assert inner.scopes == []


async def test_paths_can_be_exempt_from_auth() -> None:
    """Host and Origin are checked there as well."""
    verifier = Verifier()
    app = SecuredApp(RecordingApp(), auth=verifier, protect=lambda path: path != "/healthz")
    get: dict[str, Any] = {"method": "GET", "kind": None}
    assert (await send_request(app, path="/healthz", **get)).status == 200
    assert (await send_request(app, path="/healthz/", **get)).status == 401
    assert (await send_request(app, path="/mcp", **get)).status == 401
    assert (await send_request(app, path="/healthz", host="evil.com", **get)).status == 421
    assert verifier.asked == []


async def test_exempt_paths_are_relative_to_the_mount() -> None:
    """A mounting application sets `root_path`; no other path becomes open."""
    inner = RecordingApp()
    guarded = SecuredApp(inner, auth=TOKEN, protect=lambda path: path != "/healthz")

    async def mounted(scope: Any, receive: Any, send: Any) -> None:
        await guarded({**scope, "root_path": "/tools"}, receive, send)

    get: dict[str, Any] = {"method": "GET", "kind": None}
    assert (await send_request(mounted, path="/tools/healthz", **get)).status == 200
    assert (await send_request(mounted, path="/tools/mcp", **get)).status == 401
    assert (await send_request(mounted, path="/tools", **get)).status == 401
    assert (await send_request(guarded, path="/tools/healthz", **get)).status == 401


@pytest.mark.requirement("S23")
async def test_a_token_never_appears_in_logs_or_responses(caplog: pytest.LogCaptureFixture) -> None:
    """Valid or not, whatever fails, and whichever code quotes it."""
    caplog.set_level(logging.DEBUG)

    async def quoting(scope: Any, receive: Any, send: Any) -> None:
        raise ValueError(f"cannot handle {scope['headers']} of {current_principal()}")

    class Quoting(Verifier):
        async def verify_token(self, token: str) -> Any:
            raise ValueError(f"cannot read {token}\x1b[2J")

    short = TokenInfo(scopes=[])
    old = TokenInfo(expires_at=1)
    apps: list[Any] = [
        SecuredApp(RecordingApp(), auth=TOKEN),
        SecuredApp(RecordingApp(), auth="another-" + "x" * 20),
        SecuredApp(quoting, auth=TOKEN),
        SecuredApp(RecordingApp(), auth=Quoting()),
        SecuredApp(RecordingApp(), auth=Verifier()),
        SecuredApp(RecordingApp(), auth=Verifier(**{TOKEN: short}), required_scopes=["a"]),
        SecuredApp(RecordingApp(), auth=Verifier(**{TOKEN: old})),
    ]
    ways: list[dict[str, Any]] = [
        {"bearer": TOKEN},
        {"bearer": TOKEN, "host": "evil.com"},
        {"bearer": TOKEN, "kind": "text/plain"},
        {"bearer": f"{TOKEN} {TOKEN}"},
        {"query": f"token={TOKEN}"},
    ]
    replies = [await send_request(app, **way) for app, way in itertools.product(apps, ways)]
    assert {reply.status for reply in replies} == {200, 401, 403, 415, 421, 500}
    for reply in replies:
        assert TOKEN not in reply.body.decode()
        assert TOKEN not in str(reply.headers)
    assert TOKEN not in caplog.text
    assert "cannot handle" in caplog.text
    assert r"cannot read ***\x1b[2J" in caplog.text
    assert all(record.exc_info is None for record in caplog.records)


# --- allowed web pages


PAGE = "https://app.example.com"


async def test_a_preflight_of_an_allowed_origin_is_answered() -> None:
    """Browsers send the preflight without a token."""
    inner = RecordingApp()
    app = SecuredApp(inner, auth=TOKEN, allowed_origins=[PAGE])
    asking = ("access-control-request-method", "POST")
    reply = await send_request(app, ("origin", PAGE), asking, method="OPTIONS", kind=None)
    assert (reply.status, reply.body, inner.scopes) == (204, b"", [])
    assert reply.headers == [
        ("access-control-allow-methods", "GET, POST, DELETE"),
        (
            "access-control-allow-headers",
            (
                "authorization, content-type, last-event-id, mcp-method, mcp-name, "
                "mcp-protocol-version, mcp-session-id, prefer"
            ),
        ),
        ("access-control-max-age", "600"),
        ("access-control-allow-origin", PAGE),
        (
            "access-control-expose-headers",
            "location, mcp-session-id, retry-after, www-authenticate",
        ),
        ("vary", "Origin"),
    ]


async def test_a_page_of_an_allowed_origin_can_send_headers_of_the_application() -> None:
    """Such as one that selects the tenant."""
    app = SecuredApp(RecordingApp(), allowed_origins=[PAGE])
    asking = ("access-control-request-headers", "Content-Type, X-Tenant, b\u00e4d, a b")
    reply = await send_request(app, ("origin", PAGE), asking, method="OPTIONS", kind=None)
    allowed = str(reply.header("access-control-allow-headers"))
    assert allowed.split("prefer, ")[1] == "content-type, x-tenant"


async def test_a_page_of_a_development_server_can_call_and_read() -> None:
    """Vite and Next serve pages on a port of their own, and send a preflight before JSON."""
    inner = RecordingApp()
    app, page = SecuredApp(inner), "http://localhost:5173"
    asking = ("access-control-request-method", "POST")
    preflight = await send_request(app, ("origin", page), asking, method="OPTIONS", kind=None)
    assert (preflight.status, inner.scopes) == (204, [])
    reply = await send_request(app, ("origin", page))
    name = "access-control-allow-origin"
    assert (preflight.header(name), reply.header(name)) == (page, page)
    elsewhere = await send_request(app, ("origin", page), host="evil.com")
    assert (elsewhere.status, elsewhere.header(name)) == (421, None)


@pytest.mark.parametrize(
    ("origin", "status"),
    [("https://evil.com", 403), ("null", 403), ("http://localhost.evil.com", 403), (None, 401)],
)
async def test_a_preflight_of_another_origin_is_not_answered(
    origin: str | None, status: int
) -> None:
    headers = [] if origin is None else [("origin", origin)]
    app = SecuredApp(RecordingApp(), auth=TOKEN, allowed_origins=[PAGE])
    reply = await send_request(app, *headers, method="OPTIONS", kind=None)
    assert reply.status == status
    assert not [name for name, _ in reply.headers if name.startswith("access-control")]


async def test_allowed_origins_can_read_responses_and_refusals() -> None:
    """The exact origin, never `*`, also where the app sets another value."""

    async def open_to_all(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/broken":
            raise ValueError
        await answer(send, (b"access-control-allow-origin", b"*"), (b"mcp-session-id", b"s"))

    app = SecuredApp(open_to_all, auth=TOKEN, allowed_origins=[PAGE])
    page = ("origin", PAGE)
    replies = [
        await send_request(app, page, bearer=TOKEN),
        await send_request(app, page),
        await send_request(app, page, bearer=TOKEN, kind="text/plain"),
        await send_request(app, page, bearer=TOKEN, path="/broken"),
    ]
    assert [reply.status for reply in replies] == [200, 401, 415, 500]
    for reply in replies:
        assert reply.header("access-control-allow-origin") == PAGE
        assert "mcp-session-id" in (reply.header("access-control-expose-headers") or "")
        assert reply.header("vary") == "Origin"
    assert replies[0].header("mcp-session-id") == "s"


# --- errors and other kinds of connection


@pytest.mark.requirement("S25")
async def test_an_app_error_is_reported_by_its_id(caplog: pytest.LogCaptureFixture) -> None:
    """The client gets no traceback; the log has it under the same id."""

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise KeyError("secret-place")

    app = SecuredApp(broken)
    reply = await send_request(app)
    error = json.loads(reply.body)["error"]
    assert reply.status == 500
    assert error == {
        "status": 500,
        "message": f"The request failed with an internal error. See {error['id']} in the server log.",
        "id": error["id"],
    }
    (record,) = caplog.messages
    assert record.startswith(f"A request failed (error {error['id']}).\nTraceback (most recent")
    assert record.rstrip().endswith("KeyError: 'secret-place'")
    assert (await send_request(app)).status == 500


@pytest.mark.requirement("S25")
async def test_an_app_error_after_the_response_start_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The response cannot be withdrawn, and nothing is added to it."""

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"[1,", "more_body": True})
        raise KeyError("secret-place")

    reply = await send_request(SecuredApp(broken))
    assert (reply.status, reply.body) == (200, b"[1,")
    assert "secret-place" in caplog.text


async def test_websockets_are_closed() -> None:
    """No endpoint uses them, and browsers open them across origins."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    inner = RecordingApp()
    await SecuredApp(inner)({"type": "websocket", "headers": []}, body_parts(b""), send)
    assert (sent, inner.scopes) == ([{"type": "websocket.close", "code": 1008}], [])


async def test_the_lifespan_reaches_the_app() -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    await SecuredApp(app, auth=TOKEN)({"type": "lifespan"}, body_parts(b""), Reply().send)
    assert seen == ["lifespan"]


def test_importing_the_module_loads_no_web_framework() -> None:
    """The module is imported before anything is served."""
    heavy = {"asyncio", "starlette", "httpx", "pydantic", "mcp", "uvicorn", "anyio"}
    program = "import sys, agents_tools.server.http_security; print(*sys.modules)"
    run = subprocess.run(  # noqa: S603 - its own interpreter
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not heavy & set(run.stdout.split())


# --- through a real socket


@contextlib.asynccontextmanager
async def served(app: Any, host: str = "127.0.0.1") -> AsyncGenerator[int]:
    """Serve an app on a free port while the block runs."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        sock = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    async with running(app, sock, ws="none"), asyncio.timeout(2 * TEST_TIMEOUT):
        yield sock.getsockname()[1]  # the socket accepts connections from the start


async def _sized_reply(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = await read(receive)
    await answer(send, (b"x-size", str(len(body)).encode()))


@pytest.mark.requirement("S1", "S2", "S3")
@pytest.mark.parametrize(
    ("bind", "reached"),
    [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("0.0.0.0", "localhost")],  # noqa: S104
)
async def test_the_rules_apply_over_a_real_connection(bind: str, reached: str) -> None:
    """On every kind of address."""
    app = SecuredApp(_sized_reply, host=bind, auth=TOKEN, allowed_origins=[PAGE])
    bearer = {"authorization": f"Bearer {TOKEN}"}
    async with served(app, bind) as port, httpx.AsyncClient(trust_env=False) as client:
        url = f"http://{reached}:{port}/mcp"
        reply = await client.post(url, json={"a": 1}, headers=bearer)
        assert (reply.status_code, reply.headers["x-size"]) == (200, "7")
        assert (await client.post(url, json={})).status_code == 401
        reply = await client.post(url, json={}, headers=bearer | {"host": "evil.example"})
        assert reply.status_code == 421
        assert "'evil.example'" in reply.json()["error"]["message"]
        reply = await client.post(url, json={}, headers=bearer | {"origin": "https://evil.com"})
        assert reply.status_code == 403
        assert "allowed_origins=" in reply.json()["error"]["message"]
        reply = await client.post(url, data={"a": "1"}, headers=bearer)
        assert reply.status_code == 415
        reply = await client.options(url, headers={"origin": PAGE})
        assert reply.status_code == 204
        assert reply.headers["access-control-allow-origin"] == PAGE


async def test_a_real_client_that_sends_too_much_gets_413() -> None:
    """With a Content-Length and with chunks."""

    async def chunks() -> AsyncGenerator[bytes]:
        for _ in range(64):
            yield b"x" * 4_096

    app = SecuredApp(_sized_reply, limits=ListenerLimits(max_body=10_000))
    json_type = {"content-type": "application/json"}
    async with served(app) as port, httpx.AsyncClient(trust_env=False) as client:
        url = f"http://127.0.0.1:{port}/"
        reply = await client.post(url, content=b"x" * 10_001, headers=json_type)
        assert reply.status_code == 413
        reply = await client.post(url, content=chunks(), headers=json_type)
        assert reply.status_code == 413
        reply = await client.post(url, content=b"x" * 10_000, headers=json_type)
        assert (reply.status_code, reply.headers["x-size"]) == (200, "10000")


async def test_a_real_client_that_stops_sending_gets_408_and_is_disconnected() -> None:
    app = SecuredApp(_sized_reply, limits=ListenerLimits(body_timeout=SHORT_TIMEOUT))
    async with served(app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: 100\r\n\r\n{"
        )
        response = await reader.read()  # to the end: the connection is closed as well
        writer.close()
        await writer.wait_closed()
    assert response.startswith(b"HTTP/1.1 408 ")
    assert b"body_timeout=" in response


async def test_real_clients_beyond_the_concurrency_limit_get_503() -> None:
    gate = Gate()
    app = SecuredApp(gate, limits=ListenerLimits(max_concurrency=1))

    async def with_lifespan(scope: Any, receive: Any, send: Any) -> None:
        await (_sized_reply if scope["type"] == "lifespan" else app)(scope, receive, send)

    async with served(with_lifespan) as port, httpx.AsyncClient(trust_env=False) as client:
        url = f"http://127.0.0.1:{port}/"
        first = asyncio.create_task(client.post(url, json={}))
        await gate.entered.acquire()
        reply = await client.post(url, json={})
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
        gate.opened.set()
        assert (await first).status_code == 200
        assert (await client.post(url, json={})).status_code == 200
