"""The events of one call as an async iterator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol

from agents_tools.errors import ToolCancelledError, UserError
from agents_tools.tool.call import Call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Self

    from typing_extensions import TypeVar

    from agents_tools.tool.records import CallOutcome

    R_co = TypeVar("R_co", default=Any, covariant=True)
else:  # defaults of type variables are for type checkers; they come with a heavier import
    from typing import TypeVar

    R_co = TypeVar("R_co", covariant=True)

__all__ = ["ToolStream"]


class _CallableTool(Protocol):
    @property
    def name(self) -> str: ...

    async def call(self, ctx: Any, args_json: str) -> CallOutcome: ...


class ToolStream(Generic[R_co]):
    """The events and the result of one call; created by `FunctionTool.stream`.

    Iterate over the stream inside its `async with` block. `result` is available when the
    iteration has ended, also after the block.
    """

    def __init__(self, tool: _CallableTool, context: object, args_json: str) -> None:
        self._tool = tool
        self._context: Any = context
        self._args_json = args_json
        self._task: Any = None
        self._channel: Any = None
        self._outcome: CallOutcome | None = None
        self._was_left = False

    async def __aenter__(self) -> Self:
        """Start the call."""
        import asyncio

        from agents_tools.events.channel import Channel

        if self._task is not None:
            raise UserError(
                f"This stream of tool {self._tool.name!r} was already used. Create another one."
            )
        self._channel = Channel()
        call = Call.fresh_for(self._context)
        call.watch(self._channel)
        self._task = asyncio.create_task(self._run(call))
        return self

    async def _run(self, call: Call) -> None:
        try:
            self._outcome = await self._tool.call(call, self._args_json)
        finally:
            self._channel.close()

    async def __aexit__(self, *exc_info: object) -> None:
        """Cancel the call if it still runs, and wait for its cleanup at most `GRACE` seconds."""
        from agents_tools.concurrency.supervisor import finish

        self._was_left = not self._task.done()
        self._channel.close()
        if self._was_left:
            self._task.cancel()
        has_ended = await finish(self._task, name=self._tool.name)
        if has_ended and not self._task.cancelled() and (error := self._task.exception()):
            raise error

    def __aiter__(self) -> AsyncIterator[Any]:
        """Return an iterator over the events; it ends with the call."""
        if self._channel is None:
            raise UserError(
                f"The stream of tool {self._tool.name!r} is not open. "
                "Write `async with tool.stream(...) as stream:` around the loop."
            )
        return self._channel.__aiter__()

    @property
    def outcome(self) -> CallOutcome:
        """The outcome of the call.

        Raises:
            UserError: The call has not ended.
            ToolCancelledError: The block was left before the call ended.
        """
        if self._outcome is not None:
            return self._outcome
        if self._was_left or (self._task is not None and self._task.done()):
            raise ToolCancelledError(
                f"The call of tool {self._tool.name!r} was cancelled, because its stream was left "
                "early."
            )
        raise UserError(f"Tool {self._tool.name!r} is still running. Read all events first.")

    @property
    def result(self) -> R_co:
        """The value that the function returned.

        Raises:
            UserError: The call has not ended.
            ToolCancelledError: The block was left before the call ended.
            Exception: The exception that the function raised.
        """
        outcome = self.outcome
        if outcome.error is None:
            return outcome.value
        error = outcome.error
        del outcome
        try:
            raise error
        finally:
            del self, error  # a traceback with these variables would keep the error alive
