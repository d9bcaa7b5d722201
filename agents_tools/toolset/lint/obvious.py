"""Parameters that need no description, because their name or their schema is enough."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from agents_tools.toolset.lint.names import name_parts
from agents_tools.toolset.words import words_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from agents_tools.toolset.lint.finding import Subject
    from agents_tools.wire.diff import Schema

__all__ = ["explains_itself"]

_CONVENTIONAL = frozenset(
    re.findall(
        r"\w+",
        "branch commit email file_path lat latitude lng lon longitude message page_number password "
        "path query repo_path repository_path revision symbol ticker ticker_symbol title url "
        "username",
    )
)
"""Names with one meaning for every model; `filename` is not one, it can be a path."""
_COUNT = re.compile(
    r"(?:.*_)?(?:limit|count|offset|skip|start|page|page_?size|per_page|top_?[kn]|days|weeks|months"
    r"|years)$"
    r"|.*[^\W_]_(?!.*(?:axis|status|radius|bonus|bytes|pixels)$)[^\W_]*[^\Ws_]s$",
)
"""Names of numbers that say what is counted: the limit of a page, or a plural."""
_MIN_WORD = 2


def explains_itself(subject: Subject, name: str, words: Collection[str]) -> bool:
    """Return whether a description would repeat the name or the schema of a parameter.

    Args:
        subject: The tool.
        name: The name of the parameter.
        words: The words of the description of the tool.
    """
    schema, parts = subject.parameters[name], name_parts(name)
    if _has_clear_choices(subject.reader.arms(schema)):
        return True
    if name not in subject.required:
        # A count is clear as soon as its default shows the order of magnitude.
        is_count = subject.types_of(name) <= {"integer", "number"} and _COUNT.match("_".join(parts))
        return type(schema.get("default")) is int and is_count is not None
    if "_".join(parts) in _CONVENTIONAL:
        return True
    # "container_name" of a tool that works on a container
    *owner, last = parts
    return (
        last in {"id", "name", "path"}
        and bool(owner)
        and set(words_of(" ".join(owner))) <= set(words)
    )


def _has_clear_choices(arms: Collection[Schema]) -> bool:
    """Return whether each value that a schema allows is a word, or has a description."""
    choices = [arm for arm in arms if arm.get("type") != "null"]
    return bool(choices) and all(map(_is_clear, choices))


def _is_clear(arm: Schema) -> bool:
    if "const" in arm:
        return bool(arm.get("description")) or _is_word(arm["const"])
    items: object = arm.get("items")
    values = (cast("Schema", items) if isinstance(items, dict) else arm).get("enum")
    return isinstance(values, list) and all(map(_is_word, cast("list[object]", values)))


def _is_word(value: object) -> bool:
    return isinstance(value, str) and len(value) >= _MIN_WORD and not value.isdigit()
