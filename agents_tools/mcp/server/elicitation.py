"""Ask questions of a served tool to the person who uses the client (elicitation).

Up to protocol version 2025-11-25, the server sends the question to the client as a request. From
2026-07-28 on, the server returns the question as the result of the call. The tool waits on the
server, and the client sends the answer with its next request.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any, TypeAlias

from agents_tools.concurrency.supervisor import finish
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp.server.handlers import RequestError
from agents_tools.server.http_security import current_principal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agents_tools.mcp.server.handlers import Report
    from agents_tools.tool.question import Question

    Perform: TypeAlias = Callable[["Ask", Report | None], Awaitable[dict[str, Any]]]

__all__ = ["Ask", "Elicitations", "form_of", "read_form"]

Ask: TypeAlias = "Callable[[Question], Awaitable[Any]]"
"""Sends a question of a tool to the client; returns the answer, or `None` if there is none."""

_KEY = "answer"
_ANSWER_TIMEOUT = 600.0
"""Seconds that a call waits for the client to send an answer."""
_INTERNAL = -32603
_MAX_WAITING = 1_000
"""The maximum number of calls that wait for an answer."""
_SCALARS = frozenset({"string", "number", "integer", "boolean"})


def form_of(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return the form that requests a value of a schema; `None` if a form cannot express it.

    A form of the protocol is an object with scalar fields. A scalar value becomes its only field.

    Args:
        schema: The JSON Schema of the answer.
    """
    fields = an_object(schema.get("properties"))
    if schema.get("type") == "object" and fields:
        return schema if all(map(_is_form_field, fields.values())) else None
    if _is_form_field(schema):
        return {"type": "object", "properties": {_KEY: schema}, "required": [_KEY]}
    return None


def _is_form_field(field: Any) -> bool:
    """Return whether a form supports a field: a scalar, or a selection from a list of choices."""
    schema = an_object(field)
    if schema.get("type") != "array":
        return schema.get("type") in _SCALARS
    items = an_object(schema.get("items"))
    return "enum" in items or "anyOf" in items or "oneOf" in items


def read_form(schema: dict[str, Any], answer: Any) -> Any:
    """Return the value of an answered form; `None` if the person declined.

    Args:
        schema: The JSON Schema of the answer.
        answer: The result of `elicitation/create`.
    """
    result = an_object(answer)
    if result.get("action") != "accept":
        return None
    content = an_object(result.get("content"))
    return content if schema.get("type") == "object" else content.get(_KEY)


class _Elicitation:
    """One call that can ask questions. Its task can outlive the request that started it."""

    def __init__(self) -> None:
        self.report: Report | None = None
        self.principal = _caller()
        self.task: asyncio.Task[dict[str, Any]]
        self.expiry: asyncio.TimerHandle | None = None
        self._question: asyncio.Future[dict[str, Any]] | None = None
        self._answer: asyncio.Future[Any] | None = None
        self._turn = asyncio.Lock()

    async def ask(self, question: Question) -> Any:
        """Ask the client a question; concurrent questions are asked one after another."""
        form = form_of(question.schema)
        if form is None:
            return None
        async with self._turn:
            self._answer = asyncio.get_running_loop().create_future()
            params = {"mode": "form", "message": question.message, "requestedSchema": form}
            if self._question is not None and not self._question.done():
                self._question.set_result(params)
            return read_form(question.schema, await self._answer)

    async def forward(
        self, progress: float, total: float | None, message: str | None, event: Any
    ) -> None:
        """Send progress to the client on the current request."""
        if self.report is not None:
            await self.report(progress, total, message, event)

    def answer(self, responses: Any) -> None:
        """Resume the open question with the client's responses."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(an_object(responses).get(_KEY))

    async def next_question(self) -> dict[str, Any] | None:
        """Wait for a question and return it; `None` if the call has ended."""
        self._question = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait({self.task, self._question}, return_when="FIRST_COMPLETED")
        except asyncio.CancelledError:
            await self.cancel()
            raise
        return self._question.result() if self._question.done() else None

    async def cancel(self) -> None:
        """Cancel the call, and wait for its cleanup."""
        if self.expiry is not None:
            self.expiry.cancel()
        self.task.cancel()
        await finish(self.task, name="a server, while it waits for an answer")


class Elicitations:
    """The calls of a server that wait for an answer."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Elicitation] = {}

    async def run(
        self, perform: Perform, report: Report | None, state: str | None, responses: Any
    ) -> dict[str, Any]:
        """Start or continue a call; return its result, or the question that it asks.

        Args:
            perform: Runs the call.
            report: Sends progress on the current request.
            state: The `requestState` that was sent with the previous question; `None` starts a
                call.
            responses: The responses of the client to the question.

        Raises:
            RequestError: No call waits for this answer.
        """
        elicitation = self._start(perform, report) if state is None else self._resume(state)
        elicitation.report = report
        if state is not None:
            elicitation.answer(responses)
        question = await elicitation.next_question()
        if question is None:
            return elicitation.task.result()
        return {
            "resultType": "input_required",
            "inputRequests": {_KEY: {"method": "elicitation/create", "params": question}},
            "requestState": self._store(elicitation),
        }

    async def close(self) -> None:
        """Cancel all waiting calls."""
        waiting, self._waiting = list(self._waiting.values()), {}
        for elicitation in waiting:
            await elicitation.cancel()

    def _start(self, perform: Perform, report: Report | None) -> _Elicitation:
        elicitation = _Elicitation()
        forward = None if report is None else elicitation.forward
        elicitation.task = asyncio.ensure_future(_run(perform, elicitation.ask, forward))
        elicitation.task.add_done_callback(_consume_exception)
        return elicitation

    def _resume(self, state: str) -> _Elicitation:
        elicitation = self._waiting.get(state)
        if elicitation is None or elicitation.principal != _caller():
            raise RequestError(
                "No call waits for this answer: the call has expired, or another server started it."
            )
        del self._waiting[state]
        if elicitation.expiry is not None:
            elicitation.expiry.cancel()
        return elicitation

    def _store(self, elicitation: _Elicitation) -> str:
        if len(self._waiting) >= _MAX_WAITING:
            elicitation.task.cancel()
            raise RequestError("Too many calls wait for an answer. Try again later.", _INTERNAL)
        state = secrets.token_urlsafe(32)
        self._waiting[state] = elicitation
        loop = asyncio.get_running_loop()
        elicitation.expiry = loop.call_later(_ANSWER_TIMEOUT, self._expire, state)
        return state

    def _expire(self, state: str) -> None:
        elicitation = self._waiting.pop(state, None)
        if elicitation is not None:
            elicitation.task.cancel()


def _caller() -> tuple[str, str | None] | None:
    """Return the identity of the caller, equal for all requests of the same caller."""
    principal = current_principal()
    return None if principal is None else (principal.client_id, principal.subject)


async def _run(perform: Perform, ask: Ask, report: Report | None) -> dict[str, Any]:
    return await perform(ask, report)


def _consume_exception(task: asyncio.Task[Any]) -> None:
    """Read the exception of a call, so that asyncio does not log it as never retrieved."""
    if not task.cancelled():
        task.exception()
