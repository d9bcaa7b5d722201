"""`ArgumentStream`: a text argument that a tool reads while the model writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from agents_tools.errors import ArgumentStreamError, UserTypeError
from agents_tools.text.nouns import type_with_article

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Sequence

    from typing_extensions import TypeVar as TypeVarWithDefault

    TextT = TypeVarWithDefault("TextT", bound=str, default=str)
else:
    TextT = TypeVar("TextT")

__all__ = ["ArgumentStream", "TextSource", "stream_of"]


class TextSource(Protocol):
    """The text of an argument, as far as it has arrived."""

    @property
    def pieces(self) -> Sequence[str]:
        """The pieces so far; a list that only grows."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether no more pieces follow, because all arguments are valid."""
        ...

    @property
    def error(self) -> Exception | None:
        """Why no more pieces follow; `None` while they can."""
        ...

    async def wait(self) -> None:
        """Wait for the next change."""
        ...


class ArgumentStream(Generic[TextT]):
    """A text argument that a tool reads while the model writes it.

    Annotate a parameter of an async tool with it. In the schema it is a string.

    ```python
    @function_tool
    async def save_page(path: str, text: ArgumentStream[str]) -> str:
        async for piece in text:
            ...
    ```

    `async for` returns the pieces from the beginning, each time. `await stream` or `read()` waits
    for the end, and returns the whole text. The stream ends when all arguments of the call are
    complete and valid. Where nothing streams, such as in `tool.invoke`, over MCP or on the command
    line, the text is one piece.

    Args:
        text: The whole text, to call the function of a tool in a test.

    Raises:
        UserError: The text is not a string.
    """

    is_argument_stream: ClassVar = True
    """By which the schema recognizes annotations without an import of this module."""

    __slots__ = ("_source",)

    def __init__(self, text: TextT) -> None:
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"ArgumentStream(text) is not valid: expected a string, got "
                f"{type_with_article(text)}. Pass the whole text."
            )
        self._source: TextSource = _WholeText(text)

    def __aiter__(self) -> AsyncIterator[str]:
        """Return an iterator over the pieces, from the beginning.

        Raises:
            ArgumentStreamError: The arguments turned out invalid, or the response of the model
                ended early.
        """
        return _Pieces(self._source)

    def __await__(self) -> Generator[Any, None, str]:
        """Return the whole text; see `read`."""
        return self.read().__await__()

    async def read(self) -> str:
        """Return the whole text, when it is complete and all arguments are valid.

        Raises:
            ArgumentStreamError: The arguments turned out invalid, or the response of the model
                ended early.
        """
        return "".join([piece async for piece in self])

    def __repr__(self) -> str:
        """Return how much of the text has arrived, without the text."""
        size = sum(map(len, self._source.pieces))
        return (
            f"<ArgumentStream: {size:,} characters{'' if self._source.is_complete else ' so far'}>"
        )


def stream_of(source: TextSource) -> ArgumentStream[Any]:
    """Return a stream of a text that is still being written."""
    stream: ArgumentStream[Any] = ArgumentStream("")
    stream._source = source  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - its own module
    return stream


class _WholeText:
    """A text that is complete from the beginning."""

    __slots__ = ("pieces",)

    is_complete = True
    error = None

    def __init__(self, text: str) -> None:
        self.pieces = [text] if text else []

    async def wait(self) -> None:
        """Return, because nothing changes."""


class _Pieces:
    """Iterates over the pieces of a text; those that have arrived together are one."""

    __slots__ = ("_next", "_source")

    def __init__(self, source: TextSource) -> None:
        self._source = source
        self._next = 0

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> str:
        source = self._source
        while self._next == len(source.pieces):
            if source.error is not None:
                raise ArgumentStreamError(
                    f"The rest of the text will not come: {source.error}"
                ) from source.error
            if source.is_complete:
                raise StopAsyncIteration
            await source.wait()
        new = source.pieces[self._next :]
        self._next += len(new)
        return new[0] if len(new) == 1 else "".join(new)
