"""Call a tool on a server, and answer the requests that the server returns (`input_required`)."""

from __future__ import annotations

import asyncio
import inspect
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from agents_tools.errors import AgentsToolsError, MCPProtocolError
from agents_tools.mcp._coerce import an_object, objects, text_or_none
from agents_tools.mcp._progress_meta import EVENT_KEY, EVENTS_KEY, PROGRESS_EVENTS
from agents_tools.mcp._recorded_tasks import take_recorded_task
from agents_tools.mcp.client.callbacks import answer_request
from agents_tools.mcp.client.tasks import TaskCall, created_task
from agents_tools.mcp.config import check_meta
from agents_tools.tool.context import call_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from agents_tools.mcp.client.callbacks import Ask, Sample
    from agents_tools.mcp.client.connection import Connection
    from agents_tools.tool.context import ToolContext

__all__ = ["forward_progress", "perform_call", "request_with_answers"]

MAX_ROUNDS = 10
_FIRST_PAUSE = 0.05
"""Seconds before a request is repeated without answers; doubled each time."""
_LONGEST_PAUSE = 1.0


async def perform_call(
    connection: Connection,
    name: str,
    arguments: dict[str, Any],
    context: ToolContext[Any],
    *,
    repeatable: bool,
    as_task: bool = False,
    ask: Ask | None,
    sample: Sample | None,
    roots: Sequence[Any],
) -> dict[str, Any]:
    """Call a tool and return its result as the server sent it.

    From protocol version 2026-07-28 on, a server requests input with the result
    `input_required`. The call is then sent again, with the answers. Some servers of these versions
    only know requests during a call, and fail. The connection then changes to earlier versions,
    and the call is sent again, as after an `input_required`.

    Args:
        connection: The connection to the server.
        name: The name of the tool on the server.
        arguments: The validated arguments.
        context: The context of the call, which receives the progress of the server.
        repeatable: Whether the call can be sent again although its outcome is unknown.
        as_task: Whether the tool can be called as a task only, up to protocol version 2025-11-25.
        ask: Answers questions outside of runs with `RunConfig.ask`.
        sample: Answers sampling requests outside of runs with `RunConfig.sample`.
        roots: The folders that the server can work in.

    Raises:
        MCPProtocolError: The server requests input that is not supported, or too often.
    """
    connection.stats.calls += 1
    # From servers of this library, the events of the tool arrive whole.
    params: dict[str, Any] = {"name": name, "arguments": arguments, "_meta": {EVENTS_KEY: True}}
    if as_task:
        params["task"] = {"ttl": int(connection.config.max_time * 1_000)}
    send = partial(
        request_with_answers,
        connection,
        "tools/call",
        params,
        context=context,
        on_progress=partial(forward_progress, context),
        repeatable=repeatable,
        ask=ask,
        sample=sample,
        roots=roots,
    )
    try:
        if not _can_answer(context, ask, sample, roots):
            result = await send()
        else:
            result = await _with_earlier_protocol(connection, send)
    except BaseException:
        connection.stats.errors += 1
        raise
    connection.stats.errors += result.get("isError") is True
    return result


def _can_answer(
    context: ToolContext[Any], ask: Ask | None, sample: Sample | None, roots: Sequence[Any]
) -> bool:
    """Return whether the client has a handler for requests of servers."""
    call = call_of(context)
    in_run = call.find_asker() is not None or getattr(call.scope, "sampler", None) is not None
    return in_run or callable(ask) or callable(sample) or bool(roots)


async def _with_earlier_protocol(
    connection: Connection, send: Callable[[], Awaitable[dict[str, Any]]]
) -> dict[str, Any]:
    """Send a call; once more if the server needs an earlier protocol version for its requests."""
    try:
        result = await send()
    except MCPProtocolError as error:
        if not _NO_REQUESTS.search(str(error)) or not await connection.use_legacy():
            raise
        return await send()
    if result.get("isError") is True:
        texts = [str(one.get("text")) for one in objects(result.get("content"))]
        if _NO_REQUESTS.search("\n".join(texts)) and await connection.use_legacy():
            return await send()
    return result


_NO_REQUESTS = re.compile(r"\b(server-initiated|server-to-client) requests\b", re.IGNORECASE)
"""What the SDKs for Python and TypeScript, and FastMCP, answer if a tool sends a request to the
client in a protocol version without such requests."""


async def request_with_answers(
    connection: Connection,
    method: str,
    params: dict[str, Any],
    *,
    context: ToolContext[Any] | None = None,
    on_progress: Callable[[Mapping[str, Any]], None] | None = None,
    repeatable: bool,
    ask: Ask | None,
    sample: Sample | None,
    roots: Sequence[Any],
) -> dict[str, Any]:
    """Send a request, answer the requests of the server that its result contains, and repeat.

    Args:
        connection: The connection to the server.
        method: `tools/call`, `prompts/get` or `resources/read`.
        params: The parameters of the method.
        context: The context of the call that the request is part of.
        on_progress: Called with the params of each progress notification.
        repeatable: Whether the request can be sent again although its outcome is unknown.
        ask: As for `perform_call`.
        sample: As for `perform_call`.
        roots: As for `perform_call`.

    Raises:
        MCPProtocolError: The server requests input that is not supported, or too often.
    """

    async def answer(requests: Mapping[str, Any]) -> dict[str, Any]:
        answers = {
            key: await answer_request(connection, an_object(request), context, ask, sample, roots)
            for key, request in requests.items()
        }
        _check_supported(connection, method, params, answers)
        return answers

    known = None
    if context is not None and method == "tools/call":
        known = take_recorded_task(call_of(context), connection.name)
    if known is not None and context is not None:
        return await TaskCall(connection, known, context, answer, is_resumed=True).result()
    if connection.config.meta is not None:
        own = await _own_meta(connection, context)
        params = {**params, "_meta": {**own, **params.get("_meta", {})}}
    more: dict[str, Any] = {}
    for number in range(MAX_ROUNDS):
        if "_meta" in params:
            more["_meta"] = dict(params["_meta"])  # the SDK adds its own keys
        result = await connection.request(
            method,
            {**params, **more},
            context=context,
            on_progress=on_progress,
            repeatable=repeatable,
        )
        task = created_task(result)
        if task is not None and context is not None:
            result = await TaskCall(connection, task, context, answer).result()
        if result.get("resultType") != "input_required":
            return result
        answers = await answer(an_object(result.get("inputRequests")))
        more = {"inputResponses": answers} if answers else {}
        if result.get("requestState") is not None:
            more["requestState"] = result["requestState"]
        if not answers:  # the server is not ready
            await asyncio.sleep(min(_FIRST_PAUSE * 2**number, _LONGEST_PAUSE))
    raise MCPProtocolError(
        f"MCP server {connection.name!r} requested input {MAX_ROUNDS} times in "
        f"{_subject(method, params)} without returning a result.",
        server=connection.name,
    )


async def _own_meta(connection: Connection, context: ToolContext[Any] | None) -> dict[str, object]:
    """Return the `_meta` of the configuration for one request.

    Raises:
        UserTypeError: The function of the configuration returned an invalid one.
    """
    meta: object = connection.config.meta
    if callable(meta):
        meta = meta(context)
        if inspect.isawaitable(meta):
            meta = await meta
    return check_meta(connection.name, {} if meta is None else meta)


def _check_supported(
    connection: Connection,
    method: str,
    params: Mapping[str, Any],
    answers: Mapping[str, Mapping[str, Any]],
) -> None:
    error = next((answer["error"] for answer in answers.values() if "error" in answer), None)
    if error is not None:
        raise MCPProtocolError(
            f"MCP server {connection.name!r} requested input that is not available, in "
            f"{_subject(method, params)}: {error}.",
            server=connection.name,
        )


def _subject(method: str, params: Mapping[str, Any]) -> str:
    """Return the name of a request for errors."""
    name = f"{params.get('name') or params.get('uri')!s:.200}"
    return f"a call of {name!r}" if method == "tools/call" else f"{method} of {name!r}"


def forward_progress(context: ToolContext[Any], params: Mapping[str, Any]) -> None:
    """Emit the params of a progress notification as a progress event of the call."""
    if not call_of(context).listening:
        return
    event = an_object(an_object(params.get("_meta")).get(EVENT_KEY))
    if event.get("type") in PROGRESS_EVENTS and _emit_event(context, event):
        return
    progress, total, message = (params.get(key) for key in ("progress", "total", "message"))
    if isinstance(progress, (int, float)):
        context.progress(
            progress,
            total if isinstance(total, (int, float)) else None,
            text_or_none(message),
        )


def _emit_event(context: ToolContext[Any], data: Mapping[str, Any]) -> bool:
    """Emit an event that a server of this library sent; return whether it is a valid event."""
    from agents_tools.events.registry import event_from_dict

    try:
        event = event_from_dict(dict(data))
    except (AgentsToolsError, ValueError, TypeError):
        return False
    context.emit(event.replace(origin=None, seq=-1, timestamp=0.0, id=-1))
    return True
