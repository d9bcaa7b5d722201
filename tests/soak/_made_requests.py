"""Makes up requests to the apps for user interfaces: good ones, spoiled ones and rubbish."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.soak._made_texts import a_bomb, any_text, any_value, spoiled_text, spoiled_value, written

if TYPE_CHECKING:
    from random import Random

    Json = dict[str, Any]

__all__ = ["BODIES", "PATHS", "MadeRequest", "a_request"]

_CALL: Json = {"type": "dynamic-tool", "toolName": "pay", "toolCallId": "call_1", "input": {}}
BODIES: dict[str, tuple[Json, ...]] = {
    "native": (
        {"input": "Go.", "run_id": "r1", "thread_id": "t1"},
        {"tool": "echo", "arguments": {"text": "a"}},
        {"decisions": [{"call_id": "call_1", "approve": True, "message": "ok"}]},
        {"input": [{"role": "user", "content": "Go."}], "metadata": {"a": 1}, "max_turns": 2},
    ),
    "ag_ui": (
        {
            "threadId": "t1",
            "runId": "r9",
            "messages": [{"id": "u1", "role": "user", "content": "Go."}],
            "tools": [{"name": "shown", "description": "d", "parameters": {"type": "object"}}],
            "context": [{"description": "a", "value": "b"}],
            "state": {"a": 1},
            "forwardedProps": {"resume": []},
        },
        {
            "threadId": "t1",
            "runId": "r9",
            "messages": [
                {"id": "u1", "role": "user", "content": [{"type": "text", "text": "Go."}]},
                {
                    "id": "a1",
                    "role": "assistant",
                    "content": "",
                    "toolCalls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "pay", "arguments": "{}"},
                        }
                    ],
                },
                {"id": "x1", "role": "tool", "toolCallId": "call_1", "content": "paid"},
            ],
            "resume": [
                {"interruptId": "call_1", "status": "resolved", "payload": {"approved": True}}
            ],
        },
        {"threadId": "t1", "runId": "r1"},
    ),
    "vercel": (
        {
            "id": "t1",
            "trigger": "submit-message",
            "messageId": "m1",
            "messages": [{"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Go."}]}],
        },
        {
            "id": "t1",
            "messages": [
                {
                    "id": "a1",
                    "role": "assistant",
                    "parts": [
                        {"type": "step-start"},
                        {"type": "reasoning", "text": "hm"},
                        {**_CALL, "state": "output-available", "output": 3},
                        {
                            **_CALL,
                            "state": "approval-responded",
                            "approval": {"id": "r1/call_1", "approved": True},
                        },
                        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,"},
                    ],
                }
            ],
            "approvals": [{"id": "r1/call_1", "approved": True}],
        },
    ),
    "playground": (
        {"tool": "echo", "arguments": {"text": "a"}},
        {"tool": "echo", "arguments": '{"text": "a"}'},
        {"agent": "helper", "input": "Go."},
        {"decisions": [{"call_id": "call_1", "approve": True}]},
        {"arguments": {"text": "b"}},
    ),
}
"""What good clients send, by the app that they send it to."""

PATHS: dict[str, tuple[tuple[str, str], ...]] = {
    "native": (
        *(("POST", "/runs"),) * 4,
        ("GET", "/runs"),
        ("GET", "/"),
        ("GET", "/tools"),
        ("GET", "/runs/{id}"),
        ("GET", "/runs/{id}/events"),
        ("POST", "/runs/{id}/cancel"),
        ("POST", "/runs/{id}/approvals"),
    ),
    "ag_ui": (*(("POST", "/"),) * 6, ("GET", "/"), ("POST", "/connect"), ("POST", "/cancel")),
    "vercel": (*(("POST", "/"),) * 4, ("GET", "/{id}/stream"), ("POST", "/{id}/stop")),
    "playground": (
        ("GET", "/"),
        ("GET", "/api/info"),
        ("GET", "/api/tools"),
        ("GET", "/api/tools/{id}/views"),
        ("POST", "/api/tools/{id}/check"),
        ("GET", "/api/runs"),
        *(("POST", "/api/runs"),) * 4,
        ("GET", "/api/runs/{id}"),
        ("GET", "/api/runs/{id}/events"),
        ("GET", "/api/runs/{id}/export"),
        ("POST", "/api/runs/{id}/cancel"),
        ("POST", "/api/runs/{id}/approvals"),
        ("POST", "/api/runs/{id}/rerun"),
        ("DELETE", "/api/runs/{id}"),
        ("GET", "/api/changes"),
    ),
}

_METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "get", "ODD")
_KINDS = (
    *("application/json", "application/json; charset=utf-8", "text/plain", "", "a", "a/b/c;;=,"),
    *(
        "application/json; charset=utf-16",
        "multipart/form-data",
        "application/x-www-form-urlencoded",
    ),
)
_HEADERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "last-event-id",
        ("0", "1", "-1", "99999999999999999999", "a", "r1:1", "1.5", "", "é", "\x00"),
    ),
    (
        "accept",
        ("text/event-stream", "application/x-ndjson", "application/json", "*/*;q=x", "", "é"),
    ),
    ("origin", ("http://127.0.0.1:8000", "https://evil.example", "null", "", "file://", "é")),
    ("content-length", ("0", "-1", "5", "99999999999999999999", "a", "")),
    ("prefer", ("respond-async", "odd", "")),
    ("x-forwarded-for", ("127.0.0.1",)),
    ("content-encoding", ("gzip", "odd")),
    ("cookie", ("a=b",)),
    ("transfer-encoding", ("chunked", "odd")),
    ("expect", ("100-continue",)),
    ("upgrade", ("websocket",)),
    ("user-agent", ("a" * 9_000,)),
)
_QUERIES = (
    *("", "?after=0", "?after=-1", "?after=a", "?after=99999999999999999999", "?after=", "?%zz"),
    *("?after=1&after=2", "?format=ndjson", "?format=../x", "?limit=-1", "?limit=0", "?version=5"),
    *("?version=a", "?" + "a" * 5_000, "?a[]=1", "?=", "?&&", "?after=1e3", "?cursor=a", "?stream"),
)


@dataclass(frozen=True)
class MadeRequest:
    """A request that was made up."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict[str, str])
    kind: str | None = "application/json"


def a_request(rng: Random, place: str, ids: tuple[str, ...]) -> MadeRequest:
    """Make up a request to an app.

    Args:
        rng: The source of choices.
        place: Which app, as in `BODIES`.
        ids: What runs, threads, chats and tools are called there.
    """
    method, path = rng.choice(PATHS[place])
    known = rng.choice(ids)
    if rng.random() < 0.2:
        known = _an_id(rng)
    path = path.replace("{id}", known)
    if rng.random() < 0.1:
        method = rng.choice(_METHODS)
    if rng.random() < 0.1:
        path = rng.choice((path + "/", "/" + path, path + "/x", path[:-1] or "/", path + "/../x"))
    if rng.random() < 0.4:
        path += rng.choice(_QUERIES)
    headers = {name: rng.choice(values) for name, values in _HEADERS if rng.random() < 0.03}
    kind = rng.choice(_KINDS) if rng.random() < 0.1 else "application/json"
    return MadeRequest(method, path, _a_body(rng, place, ids), headers, kind)


def _an_id(rng: Random) -> str:
    return rng.choice(
        (
            *("none", "..", "../r1", "%2e%2e", "r1%2f", "a" * 500, "é", "\x00", "r1/", "*", "{id}"),
            any_text(rng).replace("?", ""),
        )
    )


def _a_body(rng: Random, place: str, ids: tuple[str, ...]) -> bytes:
    value: Any = copy.deepcopy(rng.choice(BODIES[place]))
    for key in ("run_id", "runId", "id", "threadId", "thread_id", "tool"):
        if key in value and rng.random() < 0.3:
            value[key] = rng.choice(ids)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        value = spoiled_value(rng, value)
    if rng.random() < 0.03:
        value = any_value(rng)
    text = written(value)
    if rng.random() < 0.3:
        text = spoiled_text(rng, text)
    if rng.random() < 0.02:
        text = a_bomb(rng, ("messages", "input", "arguments"))
    data = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.03:
        data = rng.randbytes(30) + data
    return b"" if rng.random() < 0.03 else data
