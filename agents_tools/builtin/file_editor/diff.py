"""A unified diff of the changed lines only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools.builtin.file_editor.undo import changed_region
from agents_tools.text.characters import escape_for_model

if TYPE_CHECKING:
    from agents_tools.builtin.file_editor.text_file import TextFormat

__all__ = ["unified_diff"]

_AROUND = 3
_LIMIT = 20_000
_LONGEST = 2_000


def unified_diff(old: bytes | None, new: bytes | None, form: TextFormat, path: str) -> str:
    """Return the difference of two texts as one hunk, truncated if it is long.

    Args:
        old: The body before; `None` where there was no file.
        new: The body after; `None` where there is no file any more.
        form: How the text is stored.
        path: The path of the file.
    """
    before, after = old or b"", new or b""
    start, old_end, new_end = changed_region(before, after)
    begin = _line_start(before, start)
    more = _to_line_ends(before, old_end, after, new_end)
    old_end, new_end = old_end + more, new_end + more
    head = _lines_before(before, begin)
    tail = _lines_after(before, old_end)
    gone = _lines(before[begin:old_end])
    made = _lines(after[begin:new_end])
    first = before.count(b"\n", 0, begin) - len(head) + 1
    same = len(head) + len(tail)
    names = "/dev/null" if old is None else path, "/dev/null" if new is None else path
    parts = [
        f"--- {names[0]}\n+++ {names[1]}\n",
        f"@@ -{_range(first, same + len(gone))} +{_range(first, same + len(made))} @@\n",
    ]
    marked = [(b" ", head), (b"-", gone), (b"+", made), (b" ", tail)]
    parts += [_shown(mark, line, form) for mark, lines in marked for line in lines[:_LIMIT]]
    return _cut("".join(parts))


def _range(first: int, count: int) -> str:
    return f"{first if count else first - 1},{count}"


def _line_start(data: bytes, at: int) -> int:
    return data.rfind(b"\n", 0, max(at, 0)) + 1


def _to_line_ends(before: bytes, old_end: int, after: bytes, new_end: int) -> int:
    """Return how many bytes after a region belong to its last line in both texts."""
    if all(
        not at or text[at - 1 : at] == b"\n" for text, at in ((before, old_end), (after, new_end))
    ):
        return 0
    end = before.find(b"\n", old_end)
    return (len(before) if end < 0 else end + 1) - old_end


def _lines(data: bytes) -> list[bytes]:
    lines = data[: _LIMIT * 4].split(b"\n")
    whole = [line + b"\n" for line in lines[:-1]]
    return whole + lines[-1:] if lines[-1] else whole


def _lines_before(data: bytes, at: int) -> list[bytes]:
    begin = at
    for _ in range(_AROUND):
        begin = _line_start(data, begin - 1) if begin else 0
    return _lines(data[begin:at])


def _lines_after(data: bytes, at: int) -> list[bytes]:
    end = at
    for _ in range(_AROUND):
        found = data.find(b"\n", end)
        end = found + 1 if found >= 0 else len(data)
    return _lines(data[at:end])


def _shown(mark: bytes, line: bytes, form: TextFormat) -> str:
    text = form.decode_start(line, _LONGEST).removesuffix("\n").removesuffix("\r")
    more = "…" if len(line) > _LONGEST else ""
    end = "\n" if line.endswith(b"\n") else "\n\\ No newline at end of file\n"
    return mark.decode() + escape_for_model(text) + more + end


def _cut(text: str) -> str:
    if len(text) <= _LIMIT:
        return text
    end = text.rfind("\n", 0, _LIMIT) + 1
    return f"{text[:end]}[the diff is cut here]\n"
