"""Small parts of HTML for the output of notebook cells."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["html_block", "html_table", "html_text"]

_MAX_TEXT: Final = 2_000
"""The largest number of characters of a text or a cell."""
_PRE: Final = "white-space:pre-wrap;margin:.3em 0"
_CELL: Final = "text-align:left;vertical-align:top;white-space:pre-wrap"


def html_text(text: str, tag: str = "p") -> str:
    """Return a text as an element, cleaned, masked, bounded and escaped; empty for no text."""
    style = f' style="{_PRE}"' if tag in {"p", "pre"} else ""
    shown = html.escape(release_text(text, limit=_MAX_TEXT))
    return f"<{tag}{style}>{shown}</{tag}>" if shown else ""


def html_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are texts; empty without rows."""
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{_cells('th', headers)}</tr></thead>"
    return f"<table>{head}<tbody>{body}</tbody></table>" if body else ""


def html_block(title: str, facts: Sequence[str], *parts: str) -> str:
    """Return elements below a title.

    Args:
        title: The title as text.
        facts: Short texts that follow the title.
        *parts: HTML of this module.
    """
    after = html_text(" · ".join(facts), "small")
    heading = f"<div>{html_text(title, 'strong')} {after}</div>"
    return f"<div>{heading}{''.join(parts)}</div>"


def _cells(tag: str, texts: Sequence[str]) -> str:
    style = f' style="{_CELL}"'
    return "".join(
        f"<{tag}{style}>{html.escape(release_text(text, limit=_MAX_TEXT))}</{tag}>"
        for text in texts
    )
