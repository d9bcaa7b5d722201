"""What a tool asks while it is served: the person behind the client answers.

Up to 2025-11-25 the server sends the client a question. From 2026-07-28 on it cannot: the call is
answered with the question, goes on waiting here, and takes the answer from the request that the
client makes next.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any, TypeAlias

from agents_tools._listener import current_principal
from agents_tools._supervisor import finish
from agents_tools.mcp._offer import RequestError
from agents_tools.mcp._shapes import an_object

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agents_tools.context import Question
    from agents_tools.mcp._offer import Report

    Perform: TypeAlias = Callable[["Ask", Report | None], Awaitable[dict[str, Any]]]

__all__ = ["Ask", "Interviews", "form_of", "read_form"]

Ask: TypeAlias = "Callable[[Question], Awaitable[Any]]"
"""Takes a question of a tool, gives the answer or `None`."""

_KEY = "answer"
_PATIENCE = 600.0
"""Seconds that a call waits for the client to come back with an answer."""
_INTERNAL = -32603
_MOST = 1_000
"""Calls that may wait for an answer at once."""
_PLAIN = frozenset({"string", "number", "integer", "boolean"})


def form_of(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Give the form that asks for a value of a schema; `None` if no form can.

    A form of the protocol is an object of plain fields; a plain value becomes its only field.

    Args:
        schema: The JSON Schema of the answer.
    """
    fields = an_object(schema.get("properties"))
    if schema.get("type") == "object" and fields:
        return schema if all(map(_is_plain, fields.values())) else None
    if _is_plain(schema):
        return {"type": "object", "properties": {_KEY: schema}, "required": [_KEY]}
    return None


def _is_plain(field: Any) -> bool:
    """Whether a form may have such a field: a plain value, or some of several choices."""
    given = an_object(field)
    if given.get("type") != "array":
        return given.get("type") in _PLAIN
    items = an_object(given.get("items"))
    return "enum" in items or "anyOf" in items or "oneOf" in items


def read_form(schema: dict[str, Any], answer: Any) -> Any:
    """Give the value in a form that came back; `None` if the person declined.

    Args:
        schema: The JSON Schema of the answer.
        answer: The result of `elicitation/create`.
    """
    given = an_object(answer)
    if given.get("action") != "accept":
        return None
    content = an_object(given.get("content"))
    return content if schema.get("type") == "object" else content.get(_KEY)


class _Interview:
    """One call that may ask, in a task of its own, through all requests that it is answered in."""

    def __init__(self) -> None:
        self.report: Report | None = None
        self.principal = _caller()
        self.task: asyncio.Task[dict[str, Any]]
        self.expiry: asyncio.TimerHandle | None = None
        self._question: asyncio.Future[dict[str, Any]] | None = None
        self._answer: asyncio.Future[Any] | None = None
        self._turn = asyncio.Lock()

    async def ask(self, question: Question) -> Any:
        """Ask the client: one question at a time."""
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
        """Report progress on the request that is being answered now."""
        if self.report is not None:
            await self.report(progress, total, message, event)

    def answer(self, responses: Any) -> None:
        """Take what the client has come back with."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(an_object(responses).get(_KEY))

    async def until_asked(self) -> dict[str, Any] | None:
        """Wait for a question, and give it; `None` if the call has ended."""
        self._question = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait({self.task, self._question}, return_when="FIRST_COMPLETED")
        except asyncio.CancelledError:
            await self.end()
            raise
        return self._question.result() if self._question.done() else None

    async def end(self) -> None:
        """Cancel the call, and wait for its cleanup."""
        if self.expiry is not None:
            self.expiry.cancel()
        self.task.cancel()
        await finish(self.task, name="a server, while it waits for an answer")


class Interviews:
    """The calls of a server that wait for the answer to a question."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Interview] = {}

    async def run(
        self, perform: Perform, report: Report | None, state: str | None, responses: Any
    ) -> dict[str, Any]:
        """Begin a call, or go on with one, and give its result or its question.

        Args:
            perform: Runs the call.
            report: Sends progress on the request that is being answered.
            state: What the client was given with the question before.
            responses: What the client answers.

        Raises:
            RequestError: No call waits for this answer.
        """
        interview = self._begun(perform, report) if state is None else self._taken(state)
        interview.report = report
        if state is not None:
            interview.answer(responses)
        question = await interview.until_asked()
        if question is None:
            return interview.task.result()
        return {
            "resultType": "input_required",
            "inputRequests": {_KEY: {"method": "elicitation/create", "params": question}},
            "requestState": self._kept(interview),
        }

    async def close(self) -> None:
        """Cancel the calls that wait."""
        waiting, self._waiting = list(self._waiting.values()), {}
        for interview in waiting:
            await interview.end()

    def _begun(self, perform: Perform, report: Report | None) -> _Interview:
        interview = _Interview()
        heard = None if report is None else interview.forward
        interview.task = asyncio.ensure_future(_performed(perform, interview.ask, heard))
        interview.task.add_done_callback(_seen)
        return interview

    def _taken(self, state: str) -> _Interview:
        interview = self._waiting.get(state)
        if interview is None or interview.principal != _caller():
            raise RequestError(
                "No call waits for this answer: its time is over, or another server has it."
            )
        del self._waiting[state]
        if interview.expiry is not None:
            interview.expiry.cancel()
        return interview

    def _kept(self, interview: _Interview) -> str:
        if len(self._waiting) >= _MOST:
            interview.task.cancel()
            raise RequestError("Too many calls wait for an answer; try again later.", _INTERNAL)
        state = secrets.token_urlsafe(32)
        self._waiting[state] = interview
        loop = asyncio.get_running_loop()
        interview.expiry = loop.call_later(_PATIENCE, self._expire, state)
        return state

    def _expire(self, state: str) -> None:
        interview = self._waiting.pop(state, None)
        if interview is not None:
            interview.task.cancel()


def _caller() -> tuple[str, str | None] | None:
    """Give who makes the request, in a form that two requests of the same caller share."""
    principal = current_principal()
    return None if principal is None else (principal.client_id, principal.subject)


async def _performed(perform: Perform, ask: Ask, report: Report | None) -> dict[str, Any]:
    return await perform(ask, report)


def _seen(task: asyncio.Task[Any]) -> None:
    """Look at how a call has failed that nobody waits for any more, or asyncio complains."""
    if not task.cancelled():
        task.exception()
