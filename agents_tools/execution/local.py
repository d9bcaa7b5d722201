"""The backend that runs tools in this process, with the same rules as the other backends."""

from __future__ import annotations

from contextlib import aclosing
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final

from agents_tools.concurrency.fair_lock import FairLock, LockTicket
from agents_tools.concurrency.future import call_on_loop
from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.execution.ledger import Ledger
from agents_tools.execution.protocol import (
    BackendCapabilities,
    BackendHealth,
    CallLog,
    result_payload,
)
from agents_tools.execution.worker_call import NOT_HERE, Execution
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.flatten import function_tools
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from agents_tools.execution.protocol import CallEnvelope, CallEvent

__all__ = ["LocalBackend", "tools_by_name", "unknown_tool", "waited_too_long"]

_CAPABILITIES: Final = BackendCapabilities()


class LocalBackend:
    """Runs tools in this process; the reference for other backends, and the core of a worker.

    A tool that works here works on another machine too, because the same data is passed: the
    application's own object is left out, and values are returned as JSON.

    Args:
        tools: The tools; nested lists are flattened.
        concurrency: The maximum number of calls that run at once; others wait. By default there
            is no maximum.
        context: The worker's own object, for tools that accept a context.
        name: The name of the backend.

    Raises:
        UserError: Two tools have the same name, or an item is not a tool.
    """

    def __init__(
        self,
        tools: Iterable[Any],
        *,
        concurrency: int | None = None,
        context: object = NOT_HERE,
        name: str = "local",
    ) -> None:
        if concurrency is not None and concurrency < 1:
            raise UserValueError(
                f"concurrency= is invalid: expected a positive number, got {concurrency!r}."
            )
        self._name = name
        self._tools = tools_by_name(tools)
        self._context = context
        self._limit = concurrency
        self._slots: FairLock[int] = FairLock()
        for slot in range(concurrency or 0):
            self._slots.put(slot)
        self._ledger = Ledger()
        self._running: set[_LocalCall] = set()
        self._closed = False

    @property
    def name(self) -> str:
        """The name of the backend."""
        return self._name

    @property
    def capabilities(self) -> BackendCapabilities:
        """The features of the backend."""
        return _CAPABILITIES

    async def submit(self, envelope: CallEnvelope, /) -> AsyncGenerator[CallEvent]:
        """Run a call; closing the generator cancels it.

        Raises:
            UserError: The backend was closed.
        """
        if self._closed:
            raise UserError(f"The backend {self._name!r} was closed. Create another one.")
        async with aclosing(self._ledger.once(envelope, lambda: self._run(envelope))) as events:
            async for message in events:
                yield message

    async def has_call(self, envelope: CallEnvelope, /) -> bool:
        """Return whether a call is running here, or has ended recently."""
        return self._ledger.has_call(envelope)

    async def cancel(self, call_id: str, reason: str = "") -> bool:
        """Cancel a call; its result has the status `cancelled`."""
        calls = [call for call in list(self._running) if call.id == call_id]
        for call in calls:
            call.cancel(reason)
        return bool(calls)

    async def health(self) -> BackendHealth:
        """Return the numbers of running and waiting calls."""
        return BackendHealth(
            ok=not self._closed,
            workers=self._limit or 1,
            busy=len(self._running) - self._slots.waiting,
            waiting=self._slots.waiting,
            detail="closed" if self._closed else "",
        )

    async def aclose(self) -> None:
        """Cancel the running calls, and accept no more calls."""
        self._closed = True
        for call in list(self._running):
            call.cancel("the backend was closed")

    async def _run(self, envelope: CallEnvelope) -> AsyncGenerator[CallEvent]:
        log = CallLog(envelope.call_id, envelope.attempt)
        yield log.create("accepted")
        tool = self._tools.get(envelope.tool)
        if tool is None:
            yield log.create("result", unknown_tool(envelope.tool, self._tools))
            return
        execution = Execution(
            tool,
            envelope,
            context=self._context,
            log=log,
            variables=Context(),  # like other backends, without the caller's
        )
        call = _LocalCall(envelope.call_id, execution)
        if self._closed:
            call.cancel("the backend was closed")
        self._running.add(call)
        slot: int | None = None
        try:
            if self._limit is not None:
                slot = await self._slots.take(call.ticket, deadline=envelope.deadline)
                if slot is None and not call.ticket.left:
                    yield log.create("result", waited_too_long(envelope.tool))
                    return
            async with aclosing(call.execution.events()) as events:
                async for message in events:
                    yield message
        finally:
            self._running.discard(call)
            if slot is not None:
                self._slots.put(slot)


class _LocalCall:
    """A call that is running or waiting."""

    def __init__(self, call_id: str, execution: Execution) -> None:
        self.id = call_id
        self.execution = execution
        self.ticket: LockTicket[int] = LockTicket()

    def cancel(self, reason: str) -> None:
        """Cancel the call from any thread, whether it is running or waiting."""
        self.ticket.leave()
        call_on_loop(self.ticket.loop, self.execution.cancel, reason)


def tools_by_name(tools: Iterable[Any]) -> dict[str, FunctionTool[..., Any]]:
    """Return the tools of a list by their names.

    Raises:
        UserError: Two tools have the same name, or an item is not a tool.
    """
    by_name: dict[str, FunctionTool[..., Any]] = {}
    for tool in function_tools(tools):
        if not isinstance(tool, FunctionTool):
            raise UserTypeError(
                f"A backend expects tools, got {type_with_article(tool)}. "
                "Decorate the function with @function_tool."
            )
        if tool.name in by_name:
            raise UserValueError(
                f"Two tools of a backend have the name {tool.name!r}. Rename one of them."
            )
        by_name[tool.name] = tool
    return by_name


def waited_too_long(name: str) -> dict[str, Any]:
    """Return the payload of the `result` of a call whose deadline passed while it waited."""
    return result_payload(
        "timeout", f"The deadline of tool {name!r} passed while it waited for its turn."
    )


def unknown_tool(name: str, known: Iterable[str]) -> dict[str, Any]:
    """Return the payload of the `result` of a call of a tool that the worker does not have."""
    names = ", ".join(sorted(known)) or "none"
    return result_payload(
        "tool_error",
        f"The worker has no tool {name!r}; it has {names}. Nothing was run.",
    )
