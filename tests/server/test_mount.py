"""Every endpoint, mounted in FastAPI and Starlette, with and without its lifespan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from agents_tools import Agent, ToolContext, function_tool
from agents_tools.mcp import mcp_server
from agents_tools.playground import LoadedTarget, app as playground
from agents_tools.server.application import Application
from agents_tools.testing import ScriptedModel
from agents_tools.ui import ag_ui, sse, vercel
from tests.ui.web import ask, served

PATIENCE = 45.0
TOKEN = "a" * 20
ALLOWED = {"authorization": f"Bearer {TOKEN}"}
MESSAGE = {"id": "m", "role": "user"}
AG_UI: dict[str, Any] = {
    "threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {},
    "messages": [{**MESSAGE, "content": "Hi."}],
}  # fmt: skip
VERCEL = {"id": "t", "messages": [{**MESSAGE, "parts": [{"type": "text", "text": "Hi."}]}]}
MCP = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "add", "arguments": {"a": 1, "b": 2}},
}


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def talker() -> Agent[Any, Any]:
    return Agent("talker", model=ScriptedModel(["Hello."] * 9))


def page() -> Application:
    def load() -> LoadedTarget:
        return LoadedTarget(target="here", tools=(add,))

    return playground(load, token=TOKEN, watch=False)


APPS: dict[str, tuple[Callable[[], Application], str, Any, str]] = {
    "sse": (lambda: sse.app([add]), "/runs", {"tool": "add", "arguments": {"a": 1, "b": 2}}, "ok"),
    "ag_ui": (lambda: ag_ui.app(talker()), "/", AG_UI, "RUN_FINISHED"),
    "vercel": (lambda: vercel.app(talker()), "/", VERCEL, "[DONE]"),
    "mcp": (lambda: mcp_server([add]), "/mcp", MCP, '"3"'),
    "playground": (page, "/api/tools/add/check", {"arguments": {"a": 1, "b": 2}}, "true"),
}


@pytest.mark.parametrize("name", APPS)
@pytest.mark.parametrize("outer", ["FastAPI", "Starlette"])
@pytest.mark.parametrize("with_lifespan", [True, False], ids=["lifespan", "no lifespan"])
async def test_an_endpoint_works_within_another_app(
    name: str, outer: str, with_lifespan: bool
) -> None:
    """Without the lifespan it starts with the first request, and the application closes it."""
    make, path, body, expected = APPS[name]
    app = make()
    lifespan = app.lifespan if with_lifespan else None
    site: Any
    if outer == "FastAPI":
        site = FastAPI(lifespan=lifespan)
        site.mount("/inner", app)
    else:
        site = Starlette(routes=[Mount("/inner", app)], lifespan=lifespan)
    async with (
        asyncio.timeout(PATIENCE),
        served(site) as port,
        httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as web,
    ):
        headers = {**ALLOWED, "accept": "application/json, text/event-stream"}
        url = f"http://127.0.0.1:{port}/inner"
        answer = await web.post(url + path, json=body, headers=headers)
        assert (answer.status_code, expected in answer.text) == (200, True), answer.text
        missing = await web.get(f"{url}/nothing", headers=headers)
        assert missing.status_code == 404
        assert f"Routes: {'GET /healthz' if name == 'mcp' else ''}" in missing.text
        if not with_lifespan:
            await app.aclose()


async def test_the_context_of_tools_can_use_the_request_of_the_outer_app() -> None:
    """It is a Starlette request, so that a function written for one works."""

    @function_tool
    def whose(ctx: ToolContext[Any]) -> str:
        """Return the user."""
        return f"{ctx.context}"

    def user_of(request: Request) -> str:
        return f"{request.cookies['session']} at {request.url.path} by {request.state.user}"

    app = sse.app([whose], context=user_of)

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "state": {"user": "ada"}}, receive, send)

    headers = {"cookie": "session=s1"}
    answer = await ask(outer, "POST", "/runs", {"tool": "whose"}, headers=headers)
    assert list(sse.decode(answer.text))[-1].to_dict()["output"] == "s1 at /runs by ada"
    await app.aclose()
