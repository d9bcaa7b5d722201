"""Makes up messages of the Model Context Protocol: good ones, spoiled ones and rubbish."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tests.soak._made_texts import a_bomb, any_value, spoiled_text, spoiled_value, written

if TYPE_CHECKING:
    from random import Random

    Json = dict[str, Any]

__all__ = ["HELLO", "SAID", "a_frame", "a_line"]

HELLO: Json = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "made up", "version": "1"},
    },
}
_META: Json = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "progressToken": 1,
}


def _asks(method: str, number: Any = 7, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _tells(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


_ASKED: tuple[Json, ...] = (
    HELLO,
    _asks("ping"),
    _asks("tools/list"),
    _asks("tools/list", cursor="1"),
    *(_asks("tools/call", name="echo", arguments={"text": "a"}),) * 4,
    _asks("tools/call", name="add", arguments={"a": 1, "b": 2}, _meta={"progressToken": "t"}),
    _asks("tools/call", name="add", arguments={"a": 1}, _meta=_META),
    _asks("server/discover", _meta=_META),
    _asks("resources/list"),
    _asks("prompts/get", name="a", arguments={}),
    _asks("logging/setLevel", level="debug"),
    _asks("completion/complete", ref={"type": "ref/prompt", "name": "a"}, argument={"name": "b"}),
    _asks("tasks/get", taskId="a"),
    _tells("notifications/initialized"),
    _tells("notifications/cancelled", requestId=7, reason="late"),
    _tells("notifications/progress", progressToken=1, progress=0.5),
    _tells("notifications/roots/list_changed"),
    {"jsonrpc": "2.0", "id": 3, "result": {}},
    {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}},
)
SAID: tuple[Json, ...] = (
    _asks("ping"),
    _asks("sampling/createMessage", messages=[], maxTokens=9),
    _asks("elicitation/create", message="How big?", requestedSchema={"type": "object"}),
    _asks("roots/list"),
    _tells("notifications/tools/list_changed"),
    _tells("notifications/message", level="info", data="working"),
    _tells("notifications/progress", progressToken=1, progress=1, total=2, message="half"),
    _tells("notifications/cancelled", requestId=1),
    _tells("notifications/resources/updated", uri="a:b"),
    {"jsonrpc": "2.0", "id": 99, "result": {"content": []}},
    {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "late"}},
)
"""What a server may say by itself."""


def a_frame(rng: Random, among: tuple[Json, ...] = _ASKED) -> bytes:
    """Make up a message to a server, or another one; it may well be several lines."""
    value: Any = copy.deepcopy(rng.choice(among))
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        value = spoiled_value(rng, value)
    if rng.random() < 0.05:
        value = any_value(rng)
    if rng.random() < 0.03:
        value = [value] * rng.choice((1, 2, 50))
    return a_line(rng, written(value))


def a_line(rng: Random, text: str) -> bytes:
    """Spoil the text of a message every so often."""
    if rng.random() < 0.3:
        text = spoiled_text(rng, text)
    if rng.random() < 0.01:
        text = a_bomb(rng, ("id", "params", "method"))
    data = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.03:
        at = rng.randrange(len(data) + 1)
        data = data[:at] + rng.randbytes(3) + data[at:]
    return data
