"""Rules about the length of definitions, which a model reads in each turn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agents_tools.toolset.lint.fixes import tidy_schema, tidy_text
from agents_tools.toolset.token_usage import ToolTokens, token_report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_tools.toolset.lint.finding import Subject

__all__ = ["DEFAULT_BUDGET", "check_tokens", "largest_parts"]

DEFAULT_BUDGET = 1_000
"""The tokens of one definition above which it is reported."""
_SHOWN_PARTS = 3
_MIN_WASTED = 120
"""The characters from which indentation and titles are reported."""
_MIN_REPEATED = 2
_MIN_TEXT = 12


def check_tokens(subject: Subject, budget: int) -> Iterator[tuple[str, str]]:
    """Report definitions that are longer than a budget, or that say something twice.

    Args:
        subject: The tool.
        budget: The maximum number of tokens.
    """
    (one,) = token_report([subject.tool], "mcp").tools
    tokens = max(one.tokens.values(), default=0)
    if tokens > budget:
        message = f"needs about {tokens:,} tokens in each turn, more than {budget:,}: shorten "
        yield "many-tokens", f"{message}{largest_parts(one)}"
    yield from _wasted(subject)
    repeated = [
        name
        for name, text in subject.documented.items()
        if name in subject.parameters and _is_repeated(text, subject.text_of(name))
    ]
    if len(repeated) >= _MIN_REPEATED:
        names = ", ".join(map(repr, repeated[:5]))
        yield "repeated-text", f"describes parameters twice, in its own text and in theirs: {names}"


def _wasted(subject: Subject) -> Iterator[tuple[str, str]]:
    """Report what `--fix` removes from definitions; those of Python functions never have it."""
    if subject.tool.origin.kind != "schema":
        return
    schema, description = subject.tool.json_schema, subject.tool.description
    length = len(json.dumps(schema)) + len(description)
    wasted = length - len(json.dumps(tidy_schema(schema))) - len(tidy_text(description))
    if wasted >= _MIN_WASTED:
        message = f"has about {wasted // 4} tokens of indentation, repeated titles and `$schema`"
        yield "wasted-tokens", f"{message}: remove them with --fix"


def largest_parts(tool: ToolTokens) -> str:
    """Return the largest parts of a definition with their tokens, as text.

    Args:
        tool: The tokens of a tool.
    """
    shown = list(tool.parts.items())[:_SHOWN_PARTS]
    return ", ".join(f"{part} ({tokens:,})" for part, tokens in shown)


def _is_repeated(one: str, other: str) -> bool:
    """Return whether one text has the other."""
    first, second = " ".join(one.split()).casefold(), " ".join(other.split()).casefold()
    return min(len(first), len(second)) >= _MIN_TEXT and (first in second or second in first)
