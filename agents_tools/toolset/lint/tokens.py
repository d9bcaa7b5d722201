"""Rules about the length of definitions, which a model reads in each turn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agents_tools.toolset.lint.fixes import tidy_schema, tidy_text
from agents_tools.toolset.token_usage import ToolTokens, estimated_tokens, token_report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_tools.toolset.lint.finding import Subject

__all__ = ["DEFAULT_BUDGET", "check_tokens", "largest_parts"]

DEFAULT_BUDGET = 1_000
"""The tokens of one definition above which it is reported."""
_SHOWN_PARTS = 3
_MIN_WASTED = 25
"""The tokens from which indentation and titles are reported."""
_MIN_SHARE = 0.05
"""The share of the definition from which they are reported."""
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
        yield "many-tokens", f"{message}{largest_parts(one, least=tokens // 10)}"
    yield from _wasted(subject)
    repeated = [
        name
        for name, text in subject.documented.items()
        if name in subject.parameters and _is_repeated(text, subject.text_of(name))
    ]
    if len(repeated) >= _MIN_REPEATED:
        names = ", ".join(map(repr, repeated[:5]))
        message = f"describes parameters in its own description and in the schema ({names})"
        yield "repeated-text", f"{message}: remove them from its description"


def _wasted(subject: Subject) -> Iterator[tuple[str, str]]:
    """Report what `--fix` removes from definitions; those of Python functions never have it."""
    if subject.tool.origin.kind != "schema":
        return
    schema, description = subject.tool.json_schema, subject.tool.description
    before, after = json.dumps(schema), json.dumps(tidy_schema(schema))
    causes = {
        "indentation": estimated_tokens(description) - estimated_tokens(tidy_text(description)),
        "repeated titles": before.count('"title": ') - after.count('"title": '),
        "`$schema`": before.count('"$schema": ') - after.count('"$schema": '),
    }
    schema_tokens = estimated_tokens(before)
    wasted = causes["indentation"] + schema_tokens - estimated_tokens(after)
    whole = schema_tokens + estimated_tokens(description)
    if wasted >= max(_MIN_WASTED, _MIN_SHARE * whole):
        named = " and ".join(cause for cause, found in causes.items() if found > 0)
        message = f"has about {wasted} tokens of {named}, which tell a model nothing"
        yield "wasted-tokens", f"{message}: remove them with --fix"


def largest_parts(tool: ToolTokens, *, least: int = 0) -> str:
    """Return the largest parts of a definition with their tokens, as text.

    Args:
        tool: The tokens of a tool.
        least: The tokens of the smallest part that is worth a mention.
    """
    parts = list(tool.parts.items())
    shown = parts[:1] + [part for part in parts[1:_SHOWN_PARTS] if part[1] >= least]
    return ", ".join(f"{part} ({tokens:,})" for part, tokens in shown)


def _is_repeated(one: str, other: str) -> bool:
    """Return whether one text has the other."""
    first, second = " ".join(one.split()).casefold(), " ".join(other.split()).casefold()
    return min(len(first), len(second)) >= _MIN_TEXT and (first in second or second in first)
