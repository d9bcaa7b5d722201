"""Mechanical repairs of definitions and docstrings; each returns the whole new text of a file."""

from __future__ import annotations

import ast
import difflib
import inspect
import io
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agents_tools.toolset.lint.docstrings import unknown_in_docstring

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agents_tools.toolset.lint.finding import Tool

__all__ = ["fix_docstrings", "fix_document", "tidy_schema", "tidy_text"]

_SIMILAR = 0.6
"""The similarity from which a documented name is a misspelled parameter."""


def fix_document(text: str) -> str:
    """Return a JSON document of definitions without what costs tokens and says nothing.

    Indentation is removed from descriptions, and `$schema` and titles that repeat the name of their
    parameter from schemas. The document keeps its indentation.

    Args:
        text: The document.

    Raises:
        ValueError: The document is not JSON.
    """
    document = json.loads(text)
    tidied = _tidy_document(document)
    if tidied == document:
        return text
    indented = re.search(r"\n([ \t]+)\S", text)
    indent: str | None = indented[1] if indented else None
    separators = None if indent or ": " in text else (",", ":")
    dumped = json.dumps(tidied, ensure_ascii=text.isascii(), indent=indent, separators=separators)
    return dumped + "\n" * text.endswith("\n")


def _tidy_document(value: object) -> Any:
    if isinstance(value, list):
        return [_tidy_document(member) for member in cast("list[object]", value)]
    if not isinstance(value, Mapping):
        return value
    tidied: dict[str, Any] = {}
    for key, member in cast("Mapping[str, object]", value).items():
        if key in _SCHEMAS and isinstance(member, Mapping):
            tidied[key] = tidy_schema(cast("Mapping[str, Any]", member))
        elif key == "description" and isinstance(member, str):
            tidied[key] = tidy_text(member)
        else:
            tidied[key] = _tidy_document(member)
    return tidied


_SCHEMAS = frozenset(
    {"parameters", "parametersJsonSchema", "params_json_schema", "input_schema", "inputSchema"}
)


def tidy_text(text: str) -> str:
    """Return a description without indentation and empty lines around it.

    Args:
        text: The description.
    """
    lines = [line.rstrip() for line in inspect.cleandoc(text).splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def tidy_schema(schema: Mapping[str, Any], *, name: str | None = "") -> dict[str, Any]:
    """Return a schema without `$schema`, repeated titles and indentation in descriptions.

    Args:
        schema: The schema.
        name: The name of the property that it describes; empty for a whole schema.
    """
    tidied: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "$schema" or (key == "title" and _says_nothing(value, name)):
            continue
        if key == "description" and isinstance(value, str):
            tidied[key] = tidy_text(value)
        elif key in {"properties", "$defs", "definitions", "patternProperties"}:
            tidied[key] = _tidy_named(value, is_property=key == "properties")
        elif key in {"items", "additionalProperties", "not"} and isinstance(value, Mapping):
            tidied[key] = tidy_schema(cast("Mapping[str, Any]", value), name=None)
        elif key in {"anyOf", "oneOf", "allOf", "prefixItems"} and isinstance(value, list):
            tidied[key] = [
                tidy_schema(cast("Mapping[str, Any]", arm), name=None)
                if isinstance(arm, Mapping)
                else arm
                for arm in cast("list[object]", value)
            ]
        else:
            tidied[key] = value
    return tidied


def _tidy_named(value: object, *, is_property: bool) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {
        name: tidy_schema(cast("Mapping[str, Any]", inner), name=name if is_property else None)
        if isinstance(inner, Mapping)
        else inner
        for name, inner in cast("Mapping[str, object]", value).items()
    }


def _says_nothing(title: object, name: str | None) -> bool:
    """Return whether a title is the one that a program makes from a name."""
    if not isinstance(title, str) or name is None:
        return False
    return name == "" or _letters(title) == _letters(name)


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


# --- docstrings


def fix_docstrings(text: str, tools: Iterable[Tool]) -> str:
    """Return the source of a module in which docstrings name parameters as the function does.

    A documented name is corrected if it is not a parameter and resembles exactly one parameter that
    is not documented.

    Args:
        text: The source of the module.
        tools: The tools that are defined in it.
    """
    lines = list(io.StringIO(text, newline=""))  # the lines of Python: a form feed ends none
    bodies = {
        node.lineno: node.body[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    for tool in tools:
        unknown, undocumented = unknown_in_docstring(tool)
        first = _first_line(tool)
        docstring = bodies.get(first) if first is not None else None
        if docstring is None:
            continue
        for wrong in unknown:
            near = difflib.get_close_matches(wrong, undocumented, n=2, cutoff=_SIMILAR)
            if len(near) == 1:
                _rename(lines, docstring, wrong, near[0])
    return "".join(lines)


def _first_line(tool: Tool) -> int | None:
    """Return the line of the `def` of a tool."""
    function = inspect.unwrap(tool.__dict__["__wrapped__"])
    try:
        source, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return None
    for offset, line in enumerate(source):
        if re.match(r"\s*(?:async\s+)?def\s", line):
            return first + offset
    return None


def _rename(lines: list[str], docstring: ast.stmt, wrong: str, right: str) -> None:
    entry = re.compile(
        rf"^(\s*(?::param (?:\w+ )?|@param )?\**){re.escape(wrong)}(?=\s*[:(,]|\s*$)"
    )
    for at in range(docstring.lineno - 1, docstring.end_lineno or docstring.lineno):
        lines[at] = entry.sub(rf"\g<1>{right}", lines[at])
