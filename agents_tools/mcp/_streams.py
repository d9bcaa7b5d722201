"""The two streams of messages that the SDK's sessions work with, as far as all of ours agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Sink", "Source", "Wire"]


class _Stream:
    """A stream that whoever has opened it closes, unless it says otherwise."""

    def close(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()


class Source(_Stream):
    """Messages as a session reads them."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        """Give the next message."""
        raise NotImplementedError

    async def receive(self) -> Any:
        """Give the next message.

        Raises:
            EndOfStream: There is none.
        """
        from anyio import EndOfStream

        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise EndOfStream from None


class Sink(_Stream):
    """Messages as a session writes them."""

    async def send(self, item: Any) -> None:
        """Send a message."""
        raise NotImplementedError


class Wire(Protocol):
    """Makes messages of the SDK from plain JSON."""

    def message(self, data: dict[str, Any]) -> Any:
        """Make a message that came."""
        ...

    def error(self, number: Any, text: str) -> Any:
        """Make the answer to a request whose own answer cannot be read."""
        ...
