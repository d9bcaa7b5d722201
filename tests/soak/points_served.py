"""Runs that are served over HTTP, in this process, for faults at each await of a request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from agents_tools.testing import check_ag_ui
from agents_tools.ui import ag_ui, sse, vercel
from tests.soak.points_runs import flat_agent, nested_agent
from tests.soak.points_stage import Scenario, Stage

__all__ = ["SERVED"]

_MESSAGE = {"id": "u1", "role": "user"}
_AG_UI = {
    "threadId": "t",
    "runId": "r",
    "protocolVersion": "1.0",
    "messages": [{**_MESSAGE, "content": "Go."}],
    "tools": [],
    "context": [],
    "state": {},
    "forwardedProps": {},
}
_VERCEL = {"id": "c", "messages": [{**_MESSAGE, "parts": [{"type": "text", "text": "Go."}]}]}


async def _requested(
    stage: Stage, app: Any, path: str, body: Any, *, leave_after: int | None = None
) -> bytes:
    """Post something, and read the answer; the client may leave after so many parts of it."""
    came = list[bytes]()
    gone = asyncio.Event()
    coming = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

    async def receive() -> dict[str, Any]:
        if coming:
            await stage.at("client that sends")
            return coming.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        await stage.at("client that reads")
        came.append(message.get("body", b""))
        if len(came) == leave_after:
            gone.set()

    headers = {"host": "127.0.0.1:8000", "content-type": "application/json"}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 50_000),
    }
    await app(scope, receive, send)
    return b"".join(came)


def _served(
    make: Callable[[Stage], Any], path: str, body: Any, *, leave_after: int | None = None
) -> Callable[[Stage], Awaitable[Any]]:
    async def play(stage: Stage) -> None:
        app = make(stage)
        try:
            text = await _requested(stage, app, path, body, leave_after=leave_after)
            if leave_after is None and make is _as_ag_ui and stage.trip.raised is None:
                check_ag_ui([text.decode()])
        finally:
            await app.aclose()

    return play


def _as_sse(stage: Stage) -> Any:
    return sse.app(nested_agent(stage), heartbeat=None, errors="show")


def _as_ag_ui(stage: Stage) -> Any:
    return ag_ui.app(nested_agent(stage), heartbeat=None, errors="show")


def _as_vercel(stage: Stage) -> Any:
    return vercel.app(flat_agent(stage), heartbeat=None, errors="show")


SERVED: list[Scenario] = [
    Scenario(name="run over sse", play=_served(_as_sse, "/runs", {"input": "Go."}), joins=True),
    Scenario(name="run over ag-ui", play=_served(_as_ag_ui, "/", _AG_UI), heard=True, joins=True),
    Scenario(name="run over vercel", play=_served(_as_vercel, "/", _VERCEL), joins=True),
    Scenario(
        name="sse that is left early",
        play=_served(_as_sse, "/runs", {"input": "Go."}, leave_after=5),
        joins=True,
    ),
    Scenario(
        name="ag-ui that is left early",
        play=_served(_as_ag_ui, "/", _AG_UI, leave_after=5),
        joins=True,
    ),
    Scenario(
        name="vercel that is left early",
        play=_served(_as_vercel, "/", _VERCEL, leave_after=5),
        joins=True,
    ),
]
