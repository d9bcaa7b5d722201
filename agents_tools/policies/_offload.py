"""Storing long results outside the conversation, with a tool to read them."""

from __future__ import annotations

import re
import secrets
import threading
import time
import typing
from collections import OrderedDict
from typing import Any

from agents_tools.content.json_cut import shorten_json
from agents_tools.content.json_structure import json_part, json_structure
from agents_tools.content.outputs import ToolOutputText
from agents_tools.errors import ToolError, UserValueError
from agents_tools.policies._policy import with_parentheses
from agents_tools.policies._scope import CallScope
from agents_tools.text.json_limits import json_functions
from agents_tools.tool.call import current_call
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.policy import Policy

if typing.TYPE_CHECKING:
    from agents_tools.content.outputs import ToolOutput
    from agents_tools.tool.call import Call
    from agents_tools.tool.tool import FunctionTool

__all__ = ["Offload", "offload"]


@with_parentheses
def offload(
    max_chars: int = 20_000,
    *,
    preview: int | None = None,
    reader_name: str = "read_result",
    max_kept: int = 8_000_000,
    expires: float = 3_600.0,
) -> Offload:
    """Store long results: the model gets an extract, and a tool to read the rest.

    ```python
    offloaded = offload(20_000)
    agent = Agent(tools=[offloaded(search), offloaded(fetch), offloaded.reader])
    ```

    Of a list or an object in JSON, the model gets its structure, and the start and the end of its
    items; it can read parts by path, such as `orders[10:20]`. Of another text, it gets the
    beginning, and can read on from an offset. It can search both.

    A stored result can be read only in the same run and the runs inside it. Without a run, it can
    be read by calls with the same application context object. Results are stored in memory, as text
    for the model; images, audio and files are never stored. The application still gets the whole
    value.

    Args:
        max_chars: The maximum number of characters of a result in the conversation, and of one
            output of the reader.
        preview: The number of characters that the model gets at once; a tenth of `max_chars` by
            default.
        reader_name: The name of the reader.
        max_kept: The maximum number of stored characters of one run; ten times as many for all runs
            together. The oldest results are dropped first.
        expires: The seconds after which a result is dropped.

    Raises:
        UserError: A number is not positive, or the name is not valid.
    """
    for name, bound in {"max_chars": max_chars, "max_kept": max_kept}.items():
        if not isinstance(bound, int) or bound < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserValueError(
                f"offload({name}=...) is not valid: expected a positive integer, got {bound!r}."
            )
    if not expires > 0:
        raise UserValueError(
            "offload(expires=...) is not valid: expected a positive number of seconds, got "
            f"{expires!r}."
        )
    size = max(1, max_chars // 10) if preview is None else preview
    if type(size) is not int or not 0 <= size <= max_chars:
        raise UserValueError(
            f"offload(preview=...) is not valid: expected an integer from 0 to max_chars="
            f"{max_chars:,}, got {preview!r}."
        )
    return Offload(check_tool_name(reader_name), max_chars, size, max_kept, expires)


class Offload(Policy):
    """The policy that `offload` returns."""

    def __init__(
        self, reader_name: str, max_chars: int, preview: int, max_kept: int, expires: float
    ) -> None:
        self.name = f"offload({max_chars})"
        self._reader_name = reader_name
        self._max_chars = max_chars
        self._preview = preview
        self._store = _ResultStore(max_kept, expires)
        self._reader: FunctionTool[..., Any] | None = None

    @property
    def reader(self) -> FunctionTool[..., Any]:
        """The tool with which the model reads stored results; add it to the tools of the agent."""
        if self._reader is None:
            self._reader = _create_reader(self._reader_name, self._max_chars, self._store)
        return self._reader

    def filter_output(self, call: Call, output: ToolOutput) -> ToolOutput:
        """Store a long output, and return an extract."""
        if isinstance(output, str):
            return output if len(output) <= self._max_chars else self._offload(call, output)
        texts = [block.text for block in output if isinstance(block, ToolOutputText)]
        if sum(map(len, texts)) <= self._max_chars:
            return output
        others = [block for block in output if not isinstance(block, ToolOutputText)]
        return [ToolOutputText(self._offload(call, "\n\n".join(texts))), *others]

    def _offload(self, call: Call, text: str) -> str:
        handle, stored = self._store.put(call, text)
        call.note("offloaded", handle)
        reader = f"{self._reader_name}(handle={handle!r}"
        if stored == len(text) and (value := _as_json(text)) is not None:
            structure = json_structure(value)
            limit = min(_STRUCTURE_LENGTH, self._max_chars)
            if len(structure) > limit:
                structure = f"{structure[:limit]}…"
            example = _example_of(value)
            shown = f", for example path={example!r}" if example else ""
            return (
                f"{shorten_json(text, self._preview) or ''}\n"
                f"[The result has {len(text):,} characters of JSON, of which the above is an "
                f"extract: {structure}. Read a part with {reader}, path=...){shown}, or search it "
                f"with {reader}, search=...).]"
            ).lstrip()
        note = "" if stored == len(text) else f", of which the first {stored:,} are stored"
        return (
            f"{text[: self._preview]}\n"
            f"[The result has {len(text):,} characters{note}; these are the first "
            f"{self._preview:,}. Read more with {reader}, offset={self._preview}), or search it "
            f"with {reader}, search=...).]"
        )


_STRUCTURE_LENGTH = 1_000
"""The maximum number of characters on the structure of a result."""


def _as_json(text: str) -> Any:
    """Return the list or object of a JSON text; `None` for another text."""
    if text[:1] not in {"[", "{"}:
        return None
    try:
        return json_functions()[0](text)
    except ValueError:
        return None


def _example_of(value: Any) -> str:
    """Return a path to the longest list of a value, or to a part of it."""
    path = ""
    while isinstance(value, dict) and value:
        members = typing.cast("dict[str, Any]", value)
        key = max(members, key=lambda name: _length(members[name]))
        if not re.fullmatch(r"[\w-]+", key):
            break
        path += f".{key}"
        value = members[key]
    return path.removeprefix(".") + ("[0:10]" if isinstance(value, list) else "")


def _length(value: Any) -> int:
    return len(typing.cast("Any", value)) if isinstance(value, (list, dict, str)) else 0


class _StoredResult(typing.NamedTuple):
    text: str
    expires: float
    scope: CallScope


class _ResultStore:
    """The stored results of all runs; a run can read only its own. It is thread-safe."""

    _MAX_RESULTS = 10_000
    _FULL_RUNS = 10  # the total limit, in runs that use their whole limit

    def __init__(self, max_chars: int, expires: float) -> None:
        self._max_chars = max_chars
        self._expires = expires
        self._results: OrderedDict[str, _StoredResult] = OrderedDict()  # the oldest first
        self._lock = threading.Lock()

    def put(self, call: Call, text: str) -> tuple[str, int]:
        """Store a text, and return its handle and the number of stored characters."""
        handle = f"r_{secrets.token_hex(6)}"
        text = text[: self._max_chars]
        scope = CallScope.of(call)
        with self._lock:
            self._drop_expired()
            self._results[handle] = _StoredResult(text, time.monotonic() + self._expires, scope)
            same = [name for name, one in self._results.items() if one.scope.is_same(scope)]
            self._drop_oldest(same, self._max_chars)
            self._drop_oldest(list(self._results), self._max_chars * self._FULL_RUNS)
        return handle, len(text)

    def get(self, call: Call, handle: str) -> str:
        """Return a text.

        Raises:
            ToolError: There is no such result in this run, or it was dropped.
        """
        with self._lock:
            self._drop_expired()
            result = self._results.get(handle)
        if result is not None and result.scope.is_same(CallScope.of(call)):
            return result.text
        raise ToolError(
            f"No result has the handle {handle[:40]!r}; it may have expired. "
            "Call the tool that returned it again."
        )

    def _drop_expired(self) -> None:
        now = time.monotonic()
        while self._results and next(iter(self._results.values())).expires <= now:
            self._results.popitem(last=False)

    def _drop_oldest(self, handles: list[str], max_chars: int) -> None:
        """Drop the oldest of these results until the rest has at most `max_chars` characters."""
        size = sum(len(self._results[handle].text) for handle in handles)
        for count, handle in enumerate(handles):
            if size <= max_chars and len(handles) - count <= self._MAX_RESULTS:
                return
            size -= len(self._results.pop(handle).text)


_MAX_MATCHES = 20
_SURROUNDINGS = 80
_NOTE_LENGTH = 200
"""Characters that the reader can add for its note about the rest."""


def _create_reader(name: str, max_chars: int, store: _ResultStore) -> FunctionTool[..., Any]:
    from agents_tools.tool.decorators import function_tool
    from agents_tools.tool.records import ToolAnnotations

    def read_result(
        handle: str,
        offset: int = 0,
        limit: int | None = None,
        search: str | None = None,
        path: str | None = None,
    ) -> str:
        """Read part of a long result that was stored.

        Args:
            handle: The handle of the result.
            offset: The first character to read.
            limit: The maximum number of characters.
            search: A text to find, ignoring case: returns its occurrences instead.
            path: The part of a JSON result to read, such as `orders[10:20]`, or `orders[:].id` for
                one field of each item.
        """
        text = store.get(typing.cast("Call", current_call()), handle)
        if path:
            text = _part_of(text, path)
        if offset < 0 or (limit is not None and limit < 1):
            raise ToolError("Wrong range: expected offset= of 0 or more and limit= of 1 or more.")
        if search:
            return _occurrences(text, search, offset)
        return _section(text, offset, min(limit or max_chars, max_chars))

    reader = function_tool(
        read_result,
        name_override=name,
        annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False),
    )
    return reader.with_(max_output=max_chars + _NOTE_LENGTH)


def _part_of(text: str, path: str) -> str:
    value = _as_json(text)
    if value is None:
        raise ToolError(
            "This result is not JSON: path= needs JSON. Use offset= and limit=, or search=."
        )
    try:
        part = json_part(value, path)
    except UserValueError as error:
        raise ToolError(str(error)) from None
    return part if isinstance(part, str) else json_functions()[1](part).decode()


def _section(text: str, offset: int, limit: int) -> str:
    if offset >= len(text):
        return (
            f"[The result has {len(text):,} characters; there is nothing from offset {offset:,}.]"
        )
    section = text[offset : offset + limit]
    end = offset + len(section)
    if end == len(text):
        return f"{section}\n[This is the end of the result.]"
    return f"{section}\n[{len(text) - end:,} more characters; continue with offset={end}.]"


def _occurrences(text: str, search: str, offset: int) -> str:
    """Return the occurrences of a text with their surroundings."""
    lower, needle = _lower(text), _lower(search)
    lines: list[str] = []
    start = lower.find(needle, offset)
    while start >= 0 and len(lines) < _MAX_MATCHES:
        end = start + len(needle)
        around = text[
            max(0, start - _SURROUNDINGS) : min(end, start + 2 * _SURROUNDINGS) + _SURROUNDINGS
        ]
        lines.append(f"offset {start}: …{' '.join(around.split())}…")
        start = lower.find(needle, end)
    if start >= 0:
        lines.append(f"[More occurrences from offset={start}.]")
    return (
        "\n".join(lines)
        or f"[{search[:80]!r} does not occur in the result from offset {offset:,}.]"
    )


def _lower(text: str) -> str:
    """Return text in lower case with the same length, so that offsets stay valid.

    A regular expression from the model could take very long, so the search is a plain one.
    """
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(one if len(one.lower()) > 1 else one.lower() for one in text)
