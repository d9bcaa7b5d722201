"""Call a tool on a server, and answer the requests for input that the server returns."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from agents_tools.errors import AgentsToolsError, MCPProtocolError
from agents_tools.mcp._coerce import an_object, text_or_none
from agents_tools.mcp._progress_meta import EVENT_KEY, PROGRESS_EVENTS
from agents_tools.mcp.client.callbacks import answer_request
from agents_tools.tool.context import call_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agents_tools.mcp.client.connection import Connection
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.question import Question

__all__ = ["forward_progress", "perform_call"]

MAX_ROUNDS = 10


async def perform_call(
    connection: Connection,
    name: str,
    arguments: dict[str, Any],
    context: ToolContext[Any],
    *,
    repeatable: bool,
    ask: Callable[[Question], Any] | None,
    sample: Callable[[Mapping[str, Any], ToolContext[Any] | None], Any] | Literal[True] | None,
    roots: Sequence[Any],
) -> dict[str, Any]:
    """Call a tool and return its result as the server sent it.

    From protocol version 2026-07-28 on, a server requests input with the result
    `input_required`. The call is then sent again, with the answers.

    Args:
        connection: The connection to the server.
        name: The name of the tool on the server.
        arguments: The validated arguments.
        context: The context of the call, which receives the progress of the server.
        repeatable: Whether the call can be sent again although its outcome is unknown.
        ask: Answers questions outside of runs with `RunConfig.ask`.
        sample: Answers sampling requests outside of runs with `RunConfig.sample`.
        roots: The folders that the server can work in.

    Raises:
        MCPProtocolError: The server requests input that is not supported, or too often.
    """
    connection.stats.calls += 1
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    try:
        for _ in range(MAX_ROUNDS):
            result = await connection.request(
                "tools/call",
                params,
                context=context,
                on_progress=partial(forward_progress, context),
                repeatable=repeatable,
            )
            if result.get("resultType") != "input_required":
                connection.stats.errors += result.get("isError") is True
                return result
            answers = {
                key: await answer_request(
                    connection, an_object(request), context, ask, sample, roots
                )
                for key, request in an_object(result.get("inputRequests")).items()
            }
            _check_supported(connection, name, answers)
            params = {"name": name, "arguments": arguments}
            if answers:
                params["inputResponses"] = answers
            if result.get("requestState") is not None:
                params["requestState"] = result["requestState"]
    except BaseException:
        connection.stats.errors += 1
        raise
    connection.stats.errors += 1
    raise MCPProtocolError(
        f"MCP server {connection.name!r} requested input {MAX_ROUNDS} times in a call of {name!r} "
        "without returning a result.",
        server=connection.name,
    )


def _check_supported(
    connection: Connection, name: str, answers: Mapping[str, Mapping[str, Any]]
) -> None:
    error = next((answer["error"] for answer in answers.values() if "error" in answer), None)
    if error is not None:
        raise MCPProtocolError(
            f"MCP server {connection.name!r} requested input that is not available, in a call of "
            f"{name!r}: {error}.",
            server=connection.name,
        )


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
