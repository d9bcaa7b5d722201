"""Base classes of the message streams that the SDK's sessions use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from typing import Self

__all__ = ["MessageSink", "MessageSource", "MessageTransport"]


class _MessageStream:
    """A stream whose methods for closing do nothing by default."""

    def close(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()


class MessageSource(_MessageStream):
    """A stream that a session reads messages from."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        """Return the next message."""
        raise NotImplementedError

    async def receive(self) -> Any:
        """Return the next message.

        Raises:
            EndOfStream: There are no more messages.
        """
        from anyio import EndOfStream

        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise EndOfStream from None


class MessageSink(_MessageStream):
    """A stream that a session writes messages to."""

    async def send(self, item: Any) -> None:
        """Send a message."""
        raise NotImplementedError


class MessageTransport(Protocol):
    """Creates messages of the SDK from plain JSON."""

    def message(self, data: dict[str, Any]) -> Any:
        """Create a message from the JSON that was received."""
        ...

    def error(self, number: Any, text: str) -> Any:
        """Create an error response, for a request whose response cannot be read."""
        ...
