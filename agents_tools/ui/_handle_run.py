"""Serve the runs of an agent from a route of one's own application."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

from starlette.routing import compile_path

from agents_tools.agents.agent import Agent
from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.server.application import HttpRequest, error_response, unrouted_error
from agents_tools.server.http_errors import HttpError
from agents_tools.server.http_security import (
    PRINCIPAL_KEY,
    ListenerLimits,
    Principal,
    RequestRefused,
    acting_for,
    check_body,
    too_large,
)
from agents_tools.server.run_manager import RunManager
from agents_tools.server.static_files import handlers_of
from agents_tools.text.nouns import type_with_article
from agents_tools.ui._run_routes import RunRoutes, client_files

if TYPE_CHECKING:
    import re

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Message, Scope

    from agents_tools.server.application import Handler

__all__ = ["handle_run"]

_RUNS = "agents_tools_runs"
"""The attribute of `app.state` with the event loop and the runs of an application."""


async def handle_run(
    request: Request,
    *,
    agent: Agent[Any, Any],
    context: Any = None,
    user: str | None = None,
    runs: RunManager | None = None,
    max_turns: int | None = 10,
    max_body: int = 4 << 20,
    heartbeat: float | None = 15.0,
) -> Response:
    """Answer a request to a route of your own application with the protocol of `sse.app`.

    ::

        @api.api_route("/agent/{path:path}", methods=["GET", "POST"])
        async def agent(request: Request, account: Account = Depends(signed_in)):
            return await handle_run(request, agent=agents[account.tenant], user=account.id)

    The route authenticates the caller and selects the agent. With `{path:path}`, the route has all
    paths of `sse.app` below it. A POST route without it starts a run, and streams its events.

    Args:
        request: The request. Earlier readers of its body, such as dependencies, do not matter.
        agent: The agent that runs. It also continues runs that this process has not started, if
            it has the name of their agent.
        context: The `ctx.context` of the tools.
        user: The caller, as your application identifies it. A run belongs to the user that has
            started it: others cannot find it. Without a user, callers who know the id of a run can
            use it, and runs are not listed.
        runs: The runs, for example with a store. Pass `lifespan=runs.lifespan` to the application.
            By default, the application has runs in memory.
        max_turns: The largest number of model calls in one run.
        max_body: The largest body of a request, in bytes.
        heartbeat: The seconds without data after which a comment is sent; `None` to send none.

    Returns:
        The response, with a status other than 2xx if the request is wrong.

    Raises:
        UserError: An argument is invalid.
    """
    if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserTypeError(
            f"handle_run(agent=): expected an Agent, got {type_with_article(agent)}."
        )
    if not isinstance(user, (str, type(None))):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserTypeError(
            f"handle_run(user=): expected a text that identifies the caller, got "
            f"{type_with_article(user)}. Pass str(user_id)."
        )

    async def context_of(_: HttpRequest) -> Any:
        return context

    principal = None if user is None else Principal(client_id="route", subject=user, claims=user)
    routes = RunRoutes(
        agent,
        runs or _runs_of(request),
        heartbeat=heartbeat,
        max_turns=max_turns,
        context_of=context_of,
        knows_user=user is not None,
    )
    limits = ListenerLimits(max_body=max_body)
    with acting_for(principal):
        try:
            check_body(request.scope, limits)
            inner = _inner_request(request, await _read_body(request, limits), principal)
            return await _find_handler(inner, routes)(inner)
        except RequestRefused as refused:
            return error_response(HttpError(refused.status, str(refused), refused.headers))
        except HttpError as error:
            return error_response(error)
        except UserError as error:
            return error_response(HttpError(422, str(error)))


def _runs_of(request: Request) -> RunManager:
    """Return the runs of the application; they end with its event loop."""
    if "app" not in request.scope:
        raise UserValueError(
            "handle_run(runs=) is missing: expected a RunManager, because the request does not "
            "belong to a Starlette or FastAPI application. Pass one that all requests share."
        )
    state, loop = request.app.state, asyncio.get_running_loop()
    known: tuple[asyncio.AbstractEventLoop, RunManager] | None = getattr(state, _RUNS, None)
    if known is None or known[0] is not loop:
        known = (loop, RunManager())
        setattr(state, _RUNS, known)
    return known[1]


async def _read_body(request: Request, limits: ListenerLimits) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limits.max_body:
            raise too_large(limits)
        parts.append(part)
    return b"".join(parts)


def _inner_request(request: Request, body: bytes, principal: Principal | None) -> HttpRequest:
    """Return the request with the path below the route."""
    path = str(request.scope["path"])
    below: str | None = request.path_params.get("path")
    if below is None:  # a route for new runs alone, whose events nothing but the response has
        root, path = path, "/runs"
    else:
        root, path = path.rstrip("/").removesuffix(below.rstrip("/")), f"/{below.strip('/')}"
    scope: Scope = {**request.scope, "root_path": root.rstrip("/")}
    scope["path"] = scope["root_path"] + path
    if below is None:
        scope["headers"] = [pair for pair in scope["headers"] if pair[0].lower() != b"prefer"]
    if principal is not None:
        scope["state"] = {**(request.scope.get("state") or {}), PRINCIPAL_KEY: principal}
    whole: Message = {"type": "http.request", "body": body, "more_body": False}

    async def receive() -> Message:
        return whole

    return HttpRequest(scope, receive)


def _find_handler(request: HttpRequest, routes: RunRoutes) -> Handler:
    """Return the handler of a request, and set its path parameters.

    Raises:
        HttpError: The path does not exist or has other methods.
    """
    handlers = {**routes.handlers(), **handlers_of(client_files())}
    path = str(request.scope["path"]).removeprefix(request.scope["root_path"])
    matching = {
        method: (handler, found.groupdict())
        for (method, route), handler in handlers.items()
        if (found := _pattern(route).match(path)) is not None
    }
    if request.method not in matching:
        raise unrouted_error(request, matching, handlers)
    handler, request.scope["path_params"] = matching[request.method]
    return handler


@functools.cache
def _pattern(route: str) -> re.Pattern[str]:
    return compile_path(route)[0]
