"""One call of a tool on a server: with the rounds in which the server asks before it answers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from agents_tools.errors import AgentsToolsError, MCPProtocolError
from agents_tools.mcp._questions import answer_of
from agents_tools.mcp._report import EVENT_KEY, TOLD
from agents_tools.mcp._shapes import an_object, text_or_none

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agents_tools.context import Question, ToolContext
    from agents_tools.mcp.connection import Connection

__all__ = ["perform_call", "said"]

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
    """Call a tool and give its result as the server sent it.

    From version 2026-07-28 a server asks by answering with what it needs to know; the call is then
    made again with the answers.

    Args:
        connection: The server.
        name: The name of the tool there.
        arguments: The arguments, checked.
        context: The call; the server's progress becomes its progress.
        repeatable: Whether it may be called again although its outcome is unknown.
        ask: Takes questions where the run has nobody who does.
        sample: Takes requests for the answer of a model.
        roots: The folders that the server is told of.
    """
    connection.stats.calls += 1
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    try:
        for _ in range(MAX_ROUNDS):
            result = await connection.request(
                "tools/call",
                params,
                context=context,
                on_progress=partial(said, context),
                repeatable=repeatable,
            )
            if result.get("resultType") != "input_required":
                connection.stats.errors += result.get("isError") is True
                return result
            answers = {
                key: await answer_of(connection, an_object(asked), context, ask, sample, roots)
                for key, asked in an_object(result.get("inputRequests")).items()
            }
            _check_offered(connection, name, answers)
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
        f"MCP server {connection.name!r} has asked {MAX_ROUNDS} times in a call of {name!r} and "
        "given no result.",
        server=connection.name,
    )


def _check_offered(
    connection: Connection, name: str, answers: Mapping[str, Mapping[str, Any]]
) -> None:
    refused = next((answer["error"] for answer in answers.values() if "error" in answer), None)
    if refused is not None:
        raise MCPProtocolError(
            f"MCP server {connection.name!r} asks for what is not offered in a call of {name!r}: "
            f"{refused}.",
            server=connection.name,
        )


def said(context: ToolContext[Any], report: Mapping[str, Any]) -> None:
    """Say in the call's own voice what the server reports of it."""
    if not context.listening:
        return
    event = an_object(an_object(report.get("_meta")).get(EVENT_KEY))
    if event.get("type") in TOLD and _repeated(context, event):
        return
    progress, total, message = (report.get(key) for key in ("progress", "total", "message"))
    if isinstance(progress, (int, float)):
        context.progress(
            progress,
            total if isinstance(total, (int, float)) else None,
            text_or_none(message),
        )


def _repeated(context: ToolContext[Any], told: Mapping[str, Any]) -> bool:
    """Say an event of a tool that one of our own servers runs; give whether it is one."""
    from agents_tools.events import event_from_dict

    try:
        event = event_from_dict(dict(told))
    except (AgentsToolsError, ValueError, TypeError):
        return False
    context.emit(event.replace(origin=None, seq=-1, timestamp=0.0, id=-1))
    return True
