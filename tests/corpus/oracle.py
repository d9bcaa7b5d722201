"""Which parameters a docstring describes, by a plain search for their names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["documented"]


def documented(doc: str | None, names: Iterable[str]) -> set[str]:
    """Return the names that stand where an entry about a parameter starts."""
    return {name for name in names if doc and _entry(name).search(doc)}


def _entry(name: str) -> re.Pattern[str]:
    """Find the name in front of a text that is on the same line, or indented below it."""
    word = rf"[*\\`'\"]*{re.escape(name)}[`'\"]*"
    return re.compile(
        rf"""
        ^(?P<indent>[ \t]*)(?:
            [:@](?:param|parameter|arg|argument|key|keyword|kwarg)\b[^:\n]*?[ \t,]{word}[ \t]*:
          | (?:[-*+][ \t]+)?{word}[ \t]*(?:\([^\n]*?\)[ \t]*|\{{[^\n]*?\}}[ \t]*)?(?::(?=\s)|--(?=\s))
          | (?:\w+,[ \t])*{word}(?:,[ \t]\w+)*[ \t]:(?=[ \t])
        )(?:[ \t]*\S|[ \t]*\n(?P=indent)[ \t]+\S)
        """,
        re.MULTILINE | re.VERBOSE,
    )
