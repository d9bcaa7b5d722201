"""Rules about schemas: what a provider cannot express and what a model has to guess."""

from __future__ import annotations

import inspect
import re
import warnings
from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserError
from agents_tools.schema.lookup import json_type
from agents_tools.wire.project import project

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agents_tools.toolset.lint.finding import Subject

__all__ = ["check_providers", "check_schema"]

_TYPE_KEYWORDS = frozenset(
    {"type", "enum", "const", "anyOf", "oneOf", "allOf", "properties", "items"}
)
_OBJECT_KEYWORDS = frozenset(
    {"properties", "additionalProperties", "patternProperties", "propertyNames", "enum", "const"}
)
_ARRAY_KEYWORDS = frozenset({"items", "prefixItems", "contains", "enum", "const"})
_FREE = frozenset({"headers", "cookies", "env", "environment", "labels", "metadata", "variables"})
"""Names of objects that have any keys, by their meaning."""
_DESCRIBES_KEYS = re.compile(
    r"[{}:=]|\bkeys?\b|\bfields?\b|\bmap(?:ping|s)?\b|\bdict", re.IGNORECASE
)


def check_schema(subject: Subject) -> Iterator[tuple[str, str]]:
    """Report parameters that are not defined well.

    Args:
        subject: The tool.
    """
    remedy = subject.remedy("annotate it", "define one")
    for name in sorted(subject.required - subject.parameters.keys()):
        message = f"requires the parameter {name!r}, which it does not define"
        yield "unknown-required", f"{message}: define it, or remove it from `required`"
    for name, schema in subject.parameters.items():
        if _TYPE_KEYWORDS.isdisjoint(schema):
            message = f"parameter {name!r} has no type, so models can send any value"
            yield "no-type", f"{message}: {remedy}"
        arms = subject.reader.arms(schema)
        if any(arm.get("type") == "array" and _ARRAY_KEYWORDS.isdisjoint(arm) for arm in arms):
            yield "no-item-type", f"parameter {name!r} is an array of any items: define `items`"
        is_open = any(
            arm.get("type") == "object" and not any(arm.get(key) for key in _OBJECT_KEYWORDS)
            for arm in arms
        )
        is_clear = name.lower() in _FREE or _DESCRIBES_KEYS.search(subject.text_of(name))
        if is_open and not is_clear:
            message = f"parameter {name!r} is an object without defined or described keys"
            yield "open-object", f"{message}: define them, or describe them with an example"
    yield from _refused_defaults(subject)
    yield from _defaults(subject)


def _refused_defaults(subject: Subject) -> Iterator[tuple[str, str]]:
    """Report defaults whose type the schema refuses, such as null for a string."""
    refused: dict[str, list[str]] = {}
    for name, schema in subject.parameters.items():
        types = [arm.get("type") for arm in subject.reader.arms(schema)]
        if "default" not in schema or None in types or schema.get("nullable"):
            continue
        default = schema["default"]
        kind = json_type(default)
        is_whole = kind == "integer" or (kind == "number" and default.is_integer())
        is_number = is_whole and ("integer" in types or "number" in types)
        if kind not in types and not is_number:
            refused.setdefault(kind, []).append(name)
    for kind, names in refused.items():
        verb = "parameter {} has" if len(names) == 1 else "parameters {} have"
        message = f"{verb.format(', '.join(map(repr, names)))} a default of the type {kind}"
        remedy = "allow the type, or remove the default"
        yield "default-refused", f"{message}, which the schema does not allow: {remedy}"


def _defaults(subject: Subject) -> Iterator[tuple[str, str]]:
    """Report defaults that are not JSON-serializable and therefore missing in the schema."""
    function = subject.tool.__dict__.get("__wrapped__")
    if function is None:
        return
    for name, parameter in inspect.signature(function).parameters.items():
        default: Any = parameter.default
        if default is parameter.empty or name not in subject.parameters:
            continue
        if "default" in subject.parameters[name] or type(default).__name__ == "FieldInfo":
            continue
        message = (
            f"the default of {name!r} ({type(default).__name__}) is not JSON-serializable, so it "
            "is missing in the schema: describe it, or use None and set the value in the body"
        )
        yield "default-not-json", message


def check_providers(subject: Subject, providers: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Report what providers cannot express.

    Args:
        subject: The tool.
        providers: The names of the providers that the tool is for.
    """
    copy = subject.tool.with_()  # warnings are issued only once per tool
    failures: dict[str, list[str]] = {}
    for provider in providers:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                project(copy, provider)
            except UserError as error:
                failures.setdefault(_reason(error), []).append(provider)
        for warning in caught:
            yield "not-strict", _reason(warning.message)
    for reason, names in failures.items():
        yield "not-portable", f"cannot be exported to {', '.join(names)}: {reason}"
    for name in subject.parameters:
        if not name.isascii() or not name.replace("-", "_").replace(".", "_").isidentifier():
            message = f"parameter {name!r} is renamed for some providers: use ASCII letters"
            yield "parameter-name", message


def _reason(error: object) -> str:
    """Return a message without its prefix, which repeats the name of the tool."""
    text = str(error)
    head, colon, rest = text.partition(": ")
    if not colon or not head.startswith("tool "):
        return text
    return f"strict mode is not possible: {rest}" if "without strict" in head else rest
