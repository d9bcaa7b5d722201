"""What servers ask of the client: a person's answer, a model's answer, the folders to work in."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools._text import safe_text, shorten
from agents_tools.context import Question
from agents_tools.mcp._shapes import an_object

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from agents_tools.context import ToolContext
    from agents_tools.mcp._exchange import Request
    from agents_tools.mcp.connection import Connection

    Ask = Callable[[Question], Any]
    Sample = Callable[[Mapping[str, Any], ToolContext[Any] | None], Any] | Literal[True]

__all__ = ["answer_of", "elicited", "roots_of", "sampled"]

logger = logging.getLogger("agents_tools.mcp")

_DECLINED: dict[str, Any] = {"action": "decline"}


async def answer_of(
    connection: Connection,
    request: Mapping[str, Any],
    context: ToolContext[Any],
    ask: Ask | None,
    sample: Sample | None,
    roots: Sequence[Any],
) -> dict[str, Any]:
    """Answer one question that came as the result of a call."""
    method, params = request.get("method"), an_object(request.get("params"))
    if method == "elicitation/create":
        return await _elicited(connection.name, params, context, ask)
    if method == "sampling/createMessage":
        return await _sampled(params, context, sample)
    if method == "roots/list":
        return roots_of(roots)
    return {"error": f"{method!r:.80} is not offered"}


async def elicited(
    connection: Connection, params: Mapping[str, Any], ask: Ask | None
) -> dict[str, Any]:
    """Answer a question that came while calls are in flight."""
    request = _asked_by(connection)
    context = None if request is None else request.context
    return await _on(request, lambda: _elicited(connection.name, params, context, ask))


async def sampled(
    connection: Connection, params: Mapping[str, Any], sample: Sample | None
) -> dict[str, Any]:
    """Give the answer of a model to a request that came while calls are in flight."""
    request = _asked_by(connection)
    context = None if request is None else request.context
    return await _on(request, lambda: _sampled(params, context, sample))


def roots_of(folders: Sequence[str | os.PathLike[str]]) -> dict[str, Any]:
    """Give folders as the protocol lists them."""
    paths = [Path(folder).resolve() for folder in folders]
    return {"roots": [{"uri": path.as_uri(), "name": path.name} for path in paths]}


def _asked_by(connection: Connection) -> Request | None:
    """Give the call that a server asks for, where there is no doubt: the protocol does not say.

    Calls of more than one run may be in flight; then nobody in particular is asked.
    """
    calls = [one for one in connection.requests if one.context is not None]
    runs = {one.context.run_id for one in calls if one.context is not None}
    return calls[-1] if calls and len(runs) == 1 else None


async def _on(request: Request | None, make: Callable[[], Any]) -> dict[str, Any]:
    """Await an answer on the loop of the caller, whose call may be silent meanwhile."""
    if request is None:
        return await make()
    request.hold()
    try:
        loop = request.caller
        if loop is None or loop is asyncio.get_running_loop() or not loop.is_running():
            return await make()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), loop))
    finally:
        request.heard({})


async def _elicited(
    server: str, params: Mapping[str, Any], context: ToolContext[Any] | None, ask: Ask | None
) -> dict[str, Any]:
    asker = (None if context is None else context.find_asker()) or ask
    if asker is None:
        return _DECLINED
    message = shorten(safe_text(str(params.get("message") or "")), 2_000)
    schema: dict[str, Any] = an_object(params.get("requestedSchema"))
    if params.get("mode") == "url" or params.get("url") is not None:
        url = str(params.get("url") or "")
        if not _may_be_opened(url):
            logger.warning("MCP server %r wants %r to be opened; refused.", server, url[:200])
            return _DECLINED
        message = f"{message}\n{url}".strip()
        schema = {"type": "boolean"}
    elif not schema:
        schema = {"type": "object", "properties": {}}
    given = asker(
        Question(
            f"MCP server {server!r} asks: {message}",
            schema,
            "" if context is None else context.tool_name,
            "" if context is None else context.tool_call_id,
            () if context is None else context.path,
        )
    )
    if inspect.isawaitable(given):
        given = await given
    if given is None or (given is False and not _asks_yes_or_no(schema)):
        return _DECLINED
    if schema.get("type") == "boolean":
        return {"action": "accept"}
    content = _content(given, schema)
    if content is None:
        logger.warning("The answer to MCP server %r does not fit its question.", server)
        return {"action": "cancel"}
    return {"action": "accept", "content": content}


def _asks_yes_or_no(schema: Mapping[str, Any]) -> bool:
    fields = list(an_object(schema.get("properties")).values())
    return len(fields) == 1 and an_object(fields[0]).get("type") == "boolean"


def _content(given: Any, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Give an answer in the form that was asked for; `None` if it does not fit."""
    from jsonschema_rs import validator_for

    fields = {name: an_object(field) for name, field in an_object(schema.get("properties")).items()}
    if hasattr(given, "model_dump"):
        given = given.model_dump(mode="json")
    if not isinstance(given, Mapping):
        # Said instead of a form: the value of its only field, or a plain yes to all defaults.
        is_value = len(fields) == 1 and (given is not True or _asks_yes_or_no(schema))
        given = {next(iter(fields)): given} if is_value else {}
    defaults = {name: field["default"] for name, field in fields.items() if "default" in field}
    content = {**defaults, **an_object(cast("object", given))}
    try:
        fits = validator_for(dict(schema), offline=True).is_valid(content)
    except Exception:  # noqa: BLE001 - a schema that means nothing forbids nothing
        fits = True
    return content if fits else None


_URL = re.compile(
    r"(https://[^\s\x00-\x20\\@]+|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/\S*)?)"
)


def _may_be_opened(url: str) -> bool:
    """Whether an address may be shown to a person to open: https, or this machine."""
    return url.isascii() and url.isprintable() and _URL.fullmatch(url) is not None


async def _sampled(
    params: Mapping[str, Any], context: ToolContext[Any] | None, sample: Sample | None
) -> dict[str, Any]:
    scope = None if context is None else context.scope
    sampler = (None if scope is None else scope.sampler) or sample
    if sampler is None or sampler is True:
        return {"error": "there is no model for servers (RunConfig.sample, or sample=)"}
    given = sampler(params, context)
    if inspect.isawaitable(given):
        given = await given
    if given is None:
        return {"error": "the request was declined"}
    if isinstance(given, str):
        content = {"type": "text", "text": given}
        return {
            "role": "assistant",
            "content": content,
            "model": "unknown",
            "stopReason": "endTurn",
        }
    return dict(cast("Mapping[str, Any]", given))
