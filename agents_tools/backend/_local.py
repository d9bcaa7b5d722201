"""The backend that is none: tools run in this process, by the rules of all the others."""

from __future__ import annotations

import contextlib
from contextlib import aclosing
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final

from agents_tools.backend._execute import NOT_HERE, Execution
from agents_tools.backend._ledger import Ledger
from agents_tools.backend._line import Line, Ticket
from agents_tools.backend._protocol import BackendCapabilities, BackendHealth, CallLog, ended
from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.tool import FunctionTool, function_tools

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from agents_tools.backend._protocol import CallEnvelope, CallEvent

__all__ = ["LocalBackend", "tools_by_name", "unknown_tool", "waited_too_long"]

_CAPABILITIES: Final = BackendCapabilities()


class LocalBackend:
    """Runs tools in this process: the reference for other backends, and a worker's inside.

    What travels is what would travel to another machine, so a tool that works here works there:
    the application's own object stays with the caller, and values come back as JSON.

    Args:
        tools: The tools, lists in it opened.
        concurrency: How many calls run at once; the others wait in line. All by default.
        context: The worker's own object, for tools that take a context.
        name: What the backend is called.

    Raises:
        UserError: Two tools have the same name, or one of them is no tool.
    """

    def __init__(
        self,
        tools: Iterable[Any],
        *,
        concurrency: int | None = None,
        context: Any = NOT_HERE,
        name: str = "local",
    ) -> None:
        if concurrency is not None and concurrency < 1:
            raise UserValueError(f"concurrency= takes a positive number, not {concurrency!r}.")
        self._name = name
        self._tools = tools_by_name(tools)
        self._context = context
        self._limit = concurrency
        self._places: Line[int] = Line()
        for place in range(concurrency or 0):
            self._places.put(place)
        self._ledger = Ledger()
        self._running: set[_Call] = set()
        self._closed = False

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name

    @property
    def capabilities(self) -> BackendCapabilities:
        """What it can do."""
        return _CAPABILITIES

    async def submit(self, envelope: CallEnvelope, /) -> AsyncGenerator[CallEvent]:
        """Run a call; closing the generator cancels it.

        Raises:
            UserError: The backend was closed.
        """
        if self._closed:
            raise UserError(f"The backend {self._name!r} was closed and takes no more calls.")
        async with aclosing(self._ledger.once(envelope, lambda: self._run(envelope))) as events:
            async for said in events:
                yield said

    async def cancel(self, call_id: str, reason: str = "") -> bool:
        """Cancel a call; its result says so."""
        found = [call for call in list(self._running) if call.id == call_id]
        for call in found:
            call.cancel(reason)
        return bool(found)

    async def health(self) -> BackendHealth:
        """Say how many calls run and wait."""
        return BackendHealth(
            ok=not self._closed,
            workers=self._limit or 1,
            busy=len(self._running) - self._places.waiting,
            waiting=self._places.waiting,
            detail="closed" if self._closed else "",
        )

    async def aclose(self) -> None:
        """Cancel what runs, and take no more calls."""
        self._closed = True
        for call in list(self._running):
            call.cancel("the backend was closed")

    async def _run(self, envelope: CallEnvelope) -> AsyncGenerator[CallEvent]:
        log = CallLog(envelope.call_id, envelope.attempt)
        yield log.say("accepted")
        tool = self._tools.get(envelope.tool)
        if tool is None:
            yield log.say("result", unknown_tool(envelope.tool, self._tools))
            return
        execution = Execution(
            tool,
            envelope,
            context=self._context,
            log=log,
            variables=Context(),  # those of the caller would not travel either
        )
        call = _Call(envelope.call_id, execution)
        if self._closed:
            call.cancel("the backend was closed")
        self._running.add(call)
        place: int | None = None
        try:
            if self._limit is not None:
                place = await self._places.take(call.ticket, deadline=envelope.deadline)
                if place is None and not call.ticket.left:
                    yield log.say("result", waited_too_long(envelope.tool))
                    return
            async with aclosing(call.execution.events()) as events:
                async for said in events:
                    yield said
        finally:
            self._running.discard(call)
            if place is not None:
                self._places.put(place)


class _Call:
    """A call that runs or waits."""

    def __init__(self, call_id: str, execution: Execution) -> None:
        self.id = call_id
        self.execution = execution
        self.ticket: Ticket[int] = Ticket()

    def cancel(self, reason: str) -> None:
        """Cancel it wherever it is, from any thread."""
        self.ticket.leave()
        with contextlib.suppress(RuntimeError):  # its event loop is closed
            self.ticket.loop.call_soon_threadsafe(self.execution.cancel, reason)


def tools_by_name(tools: Iterable[Any]) -> dict[str, FunctionTool[..., Any]]:
    """Give the tools of a list by their names.

    Raises:
        UserError: Two have the same name, or one is no tool.
    """
    found: dict[str, FunctionTool[..., Any]] = {}
    for tool in function_tools(tools):
        if not isinstance(tool, FunctionTool):
            raise UserTypeError(
                f"A backend takes tools, not a {type(tool).__name__}. "
                "Decorate the function with @function_tool."
            )
        if tool.name in found:
            raise UserValueError(f"Two tools of a backend are called {tool.name!r}; rename one.")
        found[tool.name] = tool
    return found


def waited_too_long(name: str) -> dict[str, Any]:
    """Give the payload of the `result` of a call whose time was over before its turn."""
    return ended("timeout", f"The deadline of tool {name!r} passed while it waited for its turn.")


def unknown_tool(name: str, known: Iterable[str]) -> dict[str, Any]:
    """Give the payload of the `result` of a call of a tool that a worker has not got."""
    names = ", ".join(sorted(known)) or "none at all"
    return ended(
        "tool_error",
        f"The worker has no tool {name!r}; it has {names}. Nothing was run.",
    )
