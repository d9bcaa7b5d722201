"""Answer the requests of servers: elicitation, sampling and roots."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.agents.model import Model, load_model
from agents_tools.errors import ToolDeniedError, UserTypeError
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp.client.model_sampling import sample_model
from agents_tools.mcp.client.pending_requests import request_of_run
from agents_tools.schema.validators import refuse_reference
from agents_tools.text.output import release_text
from agents_tools.tool.context import call_of
from agents_tools.tool.question import Question, UnansweredError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from agents_tools.mcp.client.connection import Connection
    from agents_tools.mcp.client.pending_requests import PendingRequest
    from agents_tools.tool.context import ToolContext

    Ask = Callable[[Question], Any] | Literal[True]
    Sample = Callable[[Mapping[str, Any], ToolContext[Any] | None], Any] | Model | Literal[True]

__all__ = [
    "RequestHandlers",
    "answer_request",
    "elicit_live",
    "load_sampler",
    "roots_result",
    "sample_live",
]

logger = logging.getLogger("agents_tools.mcp")

_DECLINED: dict[str, Any] = {"action": "decline"}
_CANCELLED: dict[str, Any] = {"action": "cancel"}
_TOOL_PARAMS = frozenset({"tools", "toolChoice"})
"""The params of a sampling request that need the capability `sampling.tools`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHandlers:
    """What answers the requests of servers; a run can have handlers of its own.

    Attributes:
        ask: Answers questions outside of runs with `RunConfig.ask`.
        sample: Answers sampling requests outside of runs with `RunConfig.sample`.
        sample_tools: Whether servers can send tools with sampling requests.
        roots: The folders that servers can work in.
    """

    ask: Ask | None = None
    sample: Sample | None = None
    sample_tools: bool = False
    roots: Sequence[str | os.PathLike[str]] = ()


def load_sampler(sample: Sample | str | None) -> Sample | None:
    """Return what answers sampling requests; a name is the name of a model.

    Raises:
        UserError: The model cannot be loaded, or the value is not valid.
    """
    if isinstance(sample, str):
        return load_model(sample)
    if sample is None or sample is True or callable(sample):
        return sample
    if isinstance(sample, Model):  # pyright: ignore[reportUnnecessaryIsInstance]
        return sample
    raise UserTypeError(
        "MCPToolManager(sample=...) expects a model, its name, a function or True, got "
        f"{sample!r:.60}."
    )


async def answer_request(
    connection: Connection,
    request: Mapping[str, Any],
    context: ToolContext[Any] | None,
    handlers: RequestHandlers,
) -> dict[str, Any]:
    """Return the answer to one request of the server in a result (`input_required`)."""
    method, params = request.get("method"), an_object(request.get("params"))
    if method == "elicitation/create":
        return await _elicit(connection.name, params, context, handlers.ask)
    if method == "sampling/createMessage":
        return await _sample(params, context, handlers)
    if method == "roots/list" and handlers.roots:
        return roots_result(handlers.roots)
    return {"error": f"{method!r:.80} is not supported"}


async def elicit_live(
    connection: Connection, params: Mapping[str, Any], handlers: RequestHandlers
) -> dict[str, Any]:
    """Return the answer to a question that the server sent during a call."""
    request = request_of_run(connection.requests)
    context = None if request is None else request.context
    return await _run_for(request, lambda: _elicit(connection.name, params, context, handlers.ask))


async def sample_live(
    connection: Connection, params: Mapping[str, Any], handlers: RequestHandlers
) -> dict[str, Any]:
    """Return the answer of a model to a request that the server sent during a call."""
    request = request_of_run(connection.requests)
    context = None if request is None else request.context
    return await _run_for(request, lambda: _sample(params, context, handlers))


def roots_result(folders: Sequence[str | os.PathLike[str]]) -> dict[str, Any]:
    """Return folders as the result of `roots/list`."""
    paths = [Path(folder).resolve() for folder in folders]
    return {"roots": [{"uri": path.as_uri(), "name": path.name} for path in paths]}


async def _run_for(request: PendingRequest | None, create: Callable[[], Any]) -> dict[str, Any]:
    """Await an answer on the loop of the caller, with the idle timeout of the call suspended."""
    if request is None:
        return await create()
    request.suspend_idle_timeout()
    try:
        loop = request.caller_loop
        if loop is None or loop is asyncio.get_running_loop() or not loop.is_running():
            return await create()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(create(), loop))
    finally:
        request.record_progress({})


async def _elicit(
    server: str, params: Mapping[str, Any], context: ToolContext[Any] | None, ask: Ask | None
) -> dict[str, Any]:
    asker = (None if context is None else call_of(context).find_asker()) or ask
    if asker is None or asker is True:
        why = "no handler answers questions (set RunConfig.ask, or ask= of the manager)"
        if context is None and asker is True:
            why = "the question belongs to no single run (set ask= of the manager to a function)"
        return {"error": why}
    message = release_text(str(params.get("message") or ""), limit=2_000)
    schema: dict[str, Any] = an_object(params.get("requestedSchema"))
    url: str | None = None
    if params.get("mode") == "url" or params.get("url") is not None:
        url = str(params.get("url") or "")
        if not _is_safe_url(url):
            logger.warning("MCP server %r asked to open %r; refused.", server, url[:200])
            return _DECLINED
        message = f"{message}\n{url}".strip()
        schema = {"type": "boolean"}
    elif not schema:
        schema = {"type": "object", "properties": {}}
    question = Question(
        f"MCP server {server!r} asks: {message}",
        schema,
        "" if context is None else context.tool_name,
        "" if context is None else context.tool_call_id,
        () if context is None else context.path,
        url,
    )
    try:
        answer = asker(question)
        if inspect.isawaitable(answer):
            answer = await answer
    except ToolDeniedError as error:
        return _refusal(error)
    if answer is None or (answer is False and not _is_yes_or_no(schema)):
        return _DECLINED
    if schema.get("type") == "boolean":
        return {"action": "accept"}
    content = _content(answer, schema)
    if content is None:
        logger.warning(
            "The answer to the question of MCP server %r does not match its schema.", server
        )
        return _CANCELLED
    return {"action": "accept", "content": content}


def _refusal(error: ToolDeniedError) -> dict[str, Any]:
    """Return the result for a question that a handler did not answer, by the reason."""
    reason = error.reason if isinstance(error, UnansweredError) else "declined"
    if reason == "unavailable":
        return {"error": str(error)}
    return _CANCELLED if reason == "cancelled" else _DECLINED


def _is_yes_or_no(schema: Mapping[str, Any]) -> bool:
    fields = list(an_object(schema.get("properties")).values())
    return len(fields) == 1 and an_object(fields[0]).get("type") == "boolean"


def _content(answer: Any, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an answer as an object of the schema; `None` if it does not match."""
    from jsonschema_rs import validator_for

    fields = {name: an_object(field) for name, field in an_object(schema.get("properties")).items()}
    if hasattr(answer, "model_dump"):
        answer = answer.model_dump(mode="json")
    if not isinstance(answer, Mapping):
        # A scalar answer is the value of the only field. `True` accepts all defaults.
        is_value = len(fields) == 1 and (answer is not True or _is_yes_or_no(schema))
        answer = {next(iter(fields)): answer} if is_value else {}
    defaults = {name: field["default"] for name, field in fields.items() if "default" in field}
    content = {**defaults, **an_object(cast("object", answer))}
    try:
        is_valid = validator_for(dict(schema), retriever=refuse_reference).is_valid(content)
    except Exception:  # noqa: BLE001 - an invalid schema is not enforced
        is_valid = True
    return content if is_valid else None


_URL = re.compile(
    r"(https://[^\s\x00-\x20\\@]+|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/\S*)?)"
)


def _is_safe_url(url: str) -> bool:
    """Return whether a URL can be shown to a person: https, or http on this machine."""
    return url.isascii() and url.isprintable() and _URL.fullmatch(url) is not None


async def _sample(
    params: Mapping[str, Any], context: ToolContext[Any] | None, handlers: RequestHandlers
) -> dict[str, Any]:
    scope = None if context is None else call_of(context).scope
    sampler = (None if scope is None else scope.sampler) or handlers.sample
    if sampler is None or sampler is True:
        return {"error": "servers have no access to a model (set RunConfig.sample, or sample=)"}
    if not (handlers.sample_tools or _TOOL_PARAMS.isdisjoint(params)):
        return {"error": "the client has not declared sampling.tools (set sample_tools=True)"}
    if isinstance(sampler, Model):
        return await sample_model(sampler, params, context)
    answer = sampler(params, context)
    if inspect.isawaitable(answer):
        answer = await answer
    if answer is None:
        return {"error": "the request was declined"}
    if isinstance(answer, str):
        content = {"type": "text", "text": answer}
        return {
            "role": "assistant",
            "content": content,
            "model": "unknown",
            "stopReason": "endTurn",
        }
    return dict(cast("Mapping[str, Any]", answer))
