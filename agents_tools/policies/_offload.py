"""Keeps long results aside and lets the model read in them."""

from __future__ import annotations

import secrets
import threading
import time
import typing
from collections import OrderedDict
from typing import Any

from agents_tools.errors import ToolError, UserValueError
from agents_tools.outputs import ToolOutputText
from agents_tools.policies._change import Change, change_around
from agents_tools.policies._places import Place
from agents_tools.tool import check_tool_name

if typing.TYPE_CHECKING:
    from agents_tools.context import ToolContext
    from agents_tools.outputs import ToolOutput
    from agents_tools.tool import FunctionTool

__all__ = ["Offload", "offload"]


def offload(
    max_chars: int = 20_000,
    *,
    preview: int | None = None,
    reader_name: str = "read_result",
    max_kept: int = 8_000_000,
    expires: float = 3_600.0,
) -> Offload:
    """Keep long results aside: the model gets their beginning, and a tool to read on.

    ```python
    aside = offload(20_000)
    agent = Agent(tools=[aside(search), aside(fetch), aside.reader])
    ```

    What is kept can be read in the same run only, with the runs inside it; outside a run, by calls
    with the same object as application context. It is kept in memory, as the model would have got
    it; images, sounds and files are never kept aside. The value that the application gets is whole.

    Args:
        max_chars: How many characters of text a result may have before it is kept aside; also
            how much the reader gives at a time.
        preview: How many of its characters the model gets at once; a tenth of `max_chars` by
            default.
        reader_name: What the reader is called.
        max_kept: How many characters are kept for one run, and ten times as many for all of them
            together; the oldest results give way.
        expires: After how many seconds a result is forgotten.

    Raises:
        UserError: A bound is not positive, or the name is not acceptable.
    """
    for name, bound in {"max_chars": max_chars, "max_kept": max_kept}.items():
        if not isinstance(bound, int) or bound < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserValueError(
                f"offload({name}=...) takes a positive number of characters, not {bound!r}."
            )
    if not expires > 0:
        raise UserValueError(
            f"offload(expires=...) takes a positive number of seconds, not {expires!r}."
        )
    shown = max(1, max_chars // 10) if preview is None else preview
    if not 0 <= shown <= max_chars:
        raise UserValueError(
            f"offload(preview=...) is at most max_chars={max_chars:,}, and not negative; got "
            f"{preview!r}."
        )
    return Offload(check_tool_name(reader_name), max_chars, shown, max_kept, expires)


class Offload(Change):
    """A policy that keeps long results aside; made by `offload`."""

    def __init__(
        self, reader_name: str, max_chars: int, preview: int, max_kept: int, expires: float
    ) -> None:
        around = change_around(f"offload({max_chars})", lambda inner: inner, reply=self._reply)
        super().__init__(f"offload({max_chars})", around)
        self._reader_name = reader_name
        self._max_chars = max_chars
        self._preview = preview
        self._shelf = _Shelf(max_kept, expires)
        self._reader: FunctionTool[..., Any] | None = None

    @property
    def reader(self) -> FunctionTool[..., Any]:
        """The tool with which models read what was kept; give it to the agent as well."""
        if self._reader is None:
            self._reader = _make_reader(self._reader_name, self._max_chars, self._shelf)
        return self._reader

    def _reply(self, context: ToolContext[Any], output: ToolOutput) -> ToolOutput:
        if isinstance(output, str):
            return output if len(output) <= self._max_chars else self._aside(context, output)
        texts = [block.text for block in output if isinstance(block, ToolOutputText)]
        if sum(map(len, texts)) <= self._max_chars:
            return output
        others = [block for block in output if not isinstance(block, ToolOutputText)]
        return [ToolOutputText(self._aside(context, "\n\n".join(texts))), *others]

    def _aside(self, context: ToolContext[Any], text: str) -> str:
        handle, kept = self._shelf.put(context, text)
        context.note("offloaded", handle)
        rest = "" if kept == len(text) else f", of which the first {kept:,} are kept"
        return (
            f"{text[: self._preview]}\n"
            f"[The result has {len(text):,} characters{rest}; these are the first "
            f"{self._preview:,}. Read on with {self._reader_name}(handle={handle!r}, "
            f"offset={self._preview}), or find a word in it with "
            f"{self._reader_name}(handle={handle!r}, search=...).]"
        )


class _Kept(typing.NamedTuple):
    text: str
    until: float
    place: Place


class _Shelf:
    """The results of all runs, each of which finds only its own. Threads may share it."""

    _MOST = 10_000
    _RUNS = 10  # that may keep as much as they can

    def __init__(self, room: int, expires: float) -> None:
        self._room = room
        self._expires = expires
        self._kept: OrderedDict[str, _Kept] = OrderedDict()  # the oldest first
        self._lock = threading.Lock()

    def put(self, context: ToolContext[Any], text: str) -> tuple[str, int]:
        """Keep a text; give the handle that it is read by, and how much of it is kept."""
        handle = f"r_{secrets.token_hex(6)}"
        text = text[: self._room]
        place = Place.of(context)
        with self._lock:
            self._forget_expired()
            self._kept[handle] = _Kept(text, time.monotonic() + self._expires, place)
            same = [name for name, one in self._kept.items() if one.place.is_same(place)]
            self._make_room(same, self._room)
            self._make_room(list(self._kept), self._room * self._RUNS)
        return handle, len(text)

    def get(self, context: ToolContext[Any], handle: str) -> str:
        """Give a text.

        Raises:
            ToolError: It is not there, or not any more, or it is another run's.
        """
        with self._lock:
            self._forget_expired()
            found = self._kept.get(handle)
        if found is not None and found.place.is_same(Place.of(context)):
            return found.text
        raise ToolError(
            f"No result with the handle {handle[:40]!r} is kept here, or not any more. "
            "Call the tool that gave it once more."
        )

    def _forget_expired(self) -> None:
        now = time.monotonic()
        while self._kept and next(iter(self._kept.values())).until <= now:
            self._kept.popitem(last=False)

    def _make_room(self, handles: list[str], room: int) -> None:
        """Forget the oldest of these results until they have no more characters than that."""
        size = sum(len(self._kept[handle].text) for handle in handles)
        for count, handle in enumerate(handles):
            if size <= room and len(handles) - count <= self._MOST:
                return
            size -= len(self._kept.pop(handle).text)


_MATCHES = 20
_AROUND = 80
_WORDS = 200
"""Characters that the reader has for what it says about the rest."""


def _make_reader(name: str, most: int, shelf: _Shelf) -> FunctionTool[..., Any]:
    from agents_tools._records import ToolAnnotations
    from agents_tools.context import current_context
    from agents_tools.decorators import function_tool

    def read_result(
        handle: str, offset: int = 0, limit: int | None = None, search: str | None = None
    ) -> str:
        """Read in a long result that was kept aside.

        Args:
            handle: The handle of the result.
            offset: From which character on.
            limit: How many characters at most.
            search: A text to find, in any case: gives the places where it stands instead.
        """
        context = typing.cast("ToolContext[Any]", current_context())
        text = shelf.get(context, handle)
        if offset < 0 or (limit is not None and limit < 1):
            raise ToolError("offset= is 0 or more, and limit= is 1 or more.")
        if search:
            return _found(text, search, offset)
        return _part(text, offset, min(limit or most, most))

    reader = function_tool(
        read_result,
        name_override=name,
        annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False),
    )
    return reader.with_(max_output=most + _WORDS)


def _part(text: str, offset: int, limit: int) -> str:
    if offset >= len(text):
        return f"[The result has {len(text):,} characters; there is nothing from {offset:,} on.]"
    part = text[offset : offset + limit]
    end = offset + len(part)
    if end == len(text):
        return f"{part}\n[This is the end of the result.]"
    return f"{part}\n[{len(text) - end:,} more characters; read on with offset={end}.]"


def _found(text: str, search: str, offset: int) -> str:
    """Give the places where a text stands, with what is around each."""
    plain, sought = _lower(text), _lower(search)
    lines: list[str] = []
    start = plain.find(sought, offset)
    while start >= 0 and len(lines) < _MATCHES:
        end = start + len(sought)
        around = text[max(0, start - _AROUND) : min(end, start + 2 * _AROUND) + _AROUND]
        lines.append(f"offset {start}: …{' '.join(around.split())}…")
        start = plain.find(sought, end)
    if start >= 0:
        lines.append(f"[More from offset={start} on.]")
    return "\n".join(lines) or f"[{search[:80]!r} does not stand in the result from {offset:,} on.]"


def _lower(text: str) -> str:
    """Write in small letters, each character in its place. No expression: those may take ages."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(one if len(one.lower()) > 1 else one.lower() for one in text)
