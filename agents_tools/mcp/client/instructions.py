"""The instructions of servers, as text for a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools.mcp._sanitize import clean_text

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["labelled_instructions"]

_MAX_INSTRUCTIONS = 2_000
"""The maximum number of characters of the instructions of one server."""


def labelled_instructions(texts: Iterable[tuple[str, object]]) -> str:
    """Return the instructions of servers as one text; empty if there are none.

    The texts are untrusted. Each one is without hidden characters, shortened, and quoted below the
    name of its server, so that it cannot pass for the text of another server or of the agent.

    Args:
        texts: The name and the instructions of each server.
    """
    parts: list[str] = []
    for name, text in texts:
        cleaned = clean_text(text, _MAX_INSTRUCTIONS)[0].strip() if isinstance(text, str) else ""
        if cleaned:
            quoted = "\n".join(f"> {line}".rstrip() for line in cleaned.splitlines())
            parts.append(f"The MCP server {name!r} describes how to use its tools:\n{quoted}")
    return "\n\n".join(parts)
