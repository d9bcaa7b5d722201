"""The arguments of a call whose body runs while the model writes them."""

from __future__ import annotations

from asyncio import Event
from typing import TYPE_CHECKING, Any

from agents_tools.errors import ModelBehaviorError
from agents_tools.tool.argument_stream import stream_of

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping

    from agents_tools.schema.arguments import Arguments
    from agents_tools.tool.argument_stream import ArgumentStream
    from agents_tools.tool.call import Call

__all__ = ["IncomingArguments"]


class IncomingArguments:
    """The texts that the model is still writing, and the end of all arguments of the call.

    These states need care:

    - **Body ends first.** The result waits for the end of the arguments, because a call with
      invalid arguments has no result. An error of the body does not wait: the call has failed.
    - **Arguments end first.** `complete` can come before the body starts, if it waits for a slot.
      `Call.incoming` is not set then, and the call is an ordinary one.
    - **Invalid.** Readers get the pieces that have arrived, and then an `ArgumentStreamError`.
      Whatever the body does then, the outcome of the call is the error of the arguments.
    - **Retried attempt.** Its streams begin at the beginning, because the texts are kept.

    Args:
        names: The parameters whose texts are streamed.

    Attributes:
        call: The record of the call; `None` before it has begun.
        error: Why the arguments are invalid; `None` while they are not.
        is_over: Whether the arguments are complete or have an error.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.call: Call | None = None
        self.error: Exception | None = None
        self.is_over = False
        self._texts = {name: _IncomingText() for name in names}
        self._end = Event()

    def join(self, call: Call) -> None:
        """Let a call that begins read the texts, unless they have ended."""
        if not self.is_over:
            self.call, call.incoming = call, self
        elif self.error is not None:
            call.failure = self.error
            call.reject_arguments(self.error)

    def stream(self, name: str) -> ArgumentStream[Any]:
        """Return a new stream of the text of a parameter."""
        return stream_of(self._texts[name])

    def push(self, name: str, piece: str) -> None:
        """Add a piece to the text of a parameter."""
        if piece and not self.is_over:
            text = self._texts[name]
            text.pieces.append(piece)
            text.wake_readers()

    def text(self, name: str) -> str:
        """Return the text of a parameter, as far as it has arrived."""
        return "".join(self._texts[name].pieces)

    def complete(self, arguments: Arguments, values: Mapping[str, Any]) -> None:
        """End the texts, because all arguments are valid.

        Args:
            arguments: All arguments.
            values: Their Python values, by parameter.
        """
        if self.is_over:
            return
        for name, text in self._texts.items():
            text.add_rest(values[name])
        if self.call is not None:
            self.call.parsed, self.call.sent = arguments, arguments.text
        self._end_texts()

    def fail(self, error: Exception) -> None:
        """End the texts with an error."""
        if self.is_over:
            return
        self.error = error
        for text in self._texts.values():
            text.error = error
        if self.call is not None and isinstance(error, ModelBehaviorError):
            self.call.reject_arguments(error)
        self._end_texts()

    def _end_texts(self) -> None:
        self.is_over = True
        self._end.set()
        for text in self._texts.values():
            text.is_complete = self.error is None
            text.wake_readers()

    async def run(self, body: Coroutine[Any, Any, Any]) -> Any:
        """Return the value of the body, when the arguments are complete.

        Raises:
            Exception: The error of the arguments, or one of the body.
        """
        value: Any = None
        try:
            value = await body
        except Exception:
            if self.error is None:
                raise
        else:
            await self._end.wait()
        error = self.error
        if error is None:
            return value
        try:
            raise error
        finally:
            del self, error  # the traceback keeps this frame, which must not keep the error


class _IncomingText:
    """The text of one parameter."""

    __slots__ = ("_change", "error", "is_complete", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.is_complete = False
        self.error: Exception | None = None
        self._change = Event()

    def add_rest(self, whole: str) -> None:
        """Add what is missing, for a model whose deltas do not contain the whole text."""
        size = sum(map(len, self.pieces))
        if len(whole) > size:
            self.pieces.append(whole[size:])

    def wake_readers(self) -> None:
        """Wake the tasks that wait for the next change."""
        change, self._change = self._change, Event()
        change.set()

    async def wait(self) -> None:
        """Wait for the next change."""
        await self._change.wait()
