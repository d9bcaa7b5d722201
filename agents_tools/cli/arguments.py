"""Parsing of command-line words as the arguments of a tool, using its schema."""

from __future__ import annotations

import difflib
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agents_tools.cli.errors import CommandError
from agents_tools.cli.schema_text import DefinitionReader, Schema, json_type, parameters_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["arguments_json", "parse_arguments", "read_input"]


def arguments_json(schema: Mapping[str, Any], words: Sequence[str], text: str | None) -> str:
    """Return the arguments of a call as JSON text.

    Args:
        schema: The JSON Schema of the tool's parameters.
        words: `key=value`, `key:=json`, `--key value` and `--key=value`.
        text: The value of `--input-json`: JSON text, `@file`, or `-` for standard input.

    Raises:
        CommandError: The words cannot be parsed as arguments. The tool itself validates them
            later.
    """
    if text is None:
        return json.dumps(parse_arguments(schema, words))
    text = read_input(text)
    if not words:
        return text  # unchanged, so that the tool reports errors as it would to a model
    try:
        start = json.loads(text or "{}")
    except ValueError as error:
        raise CommandError(f"--input-json is not valid JSON: {error}.") from error
    if not isinstance(start, dict):
        raise CommandError("--input-json must be a JSON object if there are other arguments.")
    return json.dumps(parse_arguments(schema, words, cast("Schema", start)))


def read_input(text: str, what: str = "--input-json") -> str:
    """Return the text of an argument: itself, the content of `@file`, or standard input for `-`.

    Args:
        text: The value on the command line.
        what: The name of the argument, for messages.

    Raises:
        CommandError: The file cannot be read, or is not UTF-8.
    """
    try:
        if text == "-":
            return sys.stdin.read()
        if text.startswith("@"):
            return Path(text[1:]).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CommandError(f"{what} {text} cannot be read: {why}.") from error
    return text


def parse_arguments(
    schema: Mapping[str, Any], words: Sequence[str], start: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Parse words as arguments, each value according to the schema of its parameter.

    Strings stay strings. Numbers, booleans, arrays and objects are parsed if the schema expects
    them; in a union, the first matching type is used. A value that matches no type is passed as a
    string, and the tool reports the error. `key.part=value` sets a member of an object. A repeated
    key creates an array.

    Args:
        schema: The JSON Schema of the tool's parameters.
        words: The words on the command line.
        start: Arguments to add to.

    Raises:
        CommandError: A word is not an argument, or contradicts another one.
    """
    reader = DefinitionReader(schema)
    values: dict[str, Any] = dict(start or {})
    typed: dict[tuple[str, ...], list[_ArgumentWord]] = {}
    for word in _words(reader, words):
        typed.setdefault(_path(reader, word.key), []).append(word)
    for path, group in typed.items():
        at = _schema_at(reader, path)
        value = _value(reader, at, group[0]) if len(group) == 1 else _array(reader, at, group)
        _put(values, path, value, group[0])
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class _ArgumentWord:
    """One argument on the command line."""

    key: str
    text: str
    raw: bool = False


# --- words


_KEY = re.compile(r"(?P<key>[^=]+?)(?P<op>:?=)(?P<text>.*)", re.DOTALL)


def _words(reader: DefinitionReader, words: Sequence[str]) -> list[_ArgumentWord]:
    found: list[_ArgumentWord] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word.startswith("--") and len(word) > 2:  # noqa: PLR2004 - longer than the dashes
            found.append(_option(reader, word, waiting))
        elif (match := _KEY.fullmatch(word)) is not None:
            found.append(
                _ArgumentWord(key=match["key"], text=match["text"], raw=match["op"] == ":=")
            )
        else:
            form = "--input-json before the JSON" if word.startswith("{") else "name=value"
            raise CommandError(
                f"{word!r} is not an argument.", hint=f"Write {form}.{_takes(reader)}"
            )
    return found


def _option(reader: DefinitionReader, word: str, waiting: list[str]) -> _ArgumentWord:
    """Read `--key=value`, `--key value`, `--flag` and `--no-flag`."""
    name, equals, text = word[2:].partition("=")
    raw = bool(equals) and name.endswith(":")
    name = name.removesuffix(":") if raw else name
    key = _declared_key(reader, name)
    if key is None and not equals and name.startswith("no-"):
        negated = _declared_key(reader, name[3:])
        if negated is not None and _is_flag(reader, negated):
            return _ArgumentWord(key=negated, text="false")
    if key is None and _accepts_others(reader):
        key = name
    if key is None:
        raise CommandError(
            f"unknown parameter --{name}.",
            hint=_nearest(reader, name) or _takes(reader).strip() or None,
        )
    if equals:
        return _ArgumentWord(key=key, text=text, raw=raw)
    if _is_flag(reader, key):
        has_value = waiting and waiting[0].lower() in {"true", "false"}
        return _ArgumentWord(key=key, text=waiting.pop(0) if has_value else "true")
    if not waiting:
        raise CommandError(f"--{name} needs a value.")
    return _ArgumentWord(key=key, text=waiting.pop(0))


def _declared_key(reader: DefinitionReader, name: str) -> str | None:
    """Return the parameter that an option sets; dashes in its first part match underscores."""
    head, dot, rest = name.partition(".")
    parameters = parameters_of(reader.root)
    if name in parameters:
        return name
    for known in parameters:
        if head == known or head.replace("-", "_") == known.replace("-", "_"):
            return known + dot + rest
    return None


def _accepts_others(reader: DefinitionReader) -> bool:
    others = reader.read(reader.root).get("additionalProperties")
    return others is not None and others is not False


def _is_flag(reader: DefinitionReader, key: str) -> bool:
    arms = reader.arms(_schema_at(reader, _path(reader, key)))
    kinds = {arm.get("type") for arm in arms} - {"null"}
    return kinds == {"boolean"}


def _nearest(reader: DefinitionReader, name: str) -> str | None:
    names = {known.replace("_", "-"): known for known in parameters_of(reader.root)}
    near = difflib.get_close_matches(name.replace("_", "-"), names, n=1)
    return f"Did you mean --{near[0]}?" if near else None


def _takes(reader: DefinitionReader) -> str:
    names = list(parameters_of(reader.root))
    return f" Parameters: {', '.join(names)}." if names else " The tool has no parameters."


# --- places


def _path(reader: DefinitionReader, key: str) -> tuple[str, ...]:
    """Return the steps of a key; the name of a parameter can itself contain a dot."""
    return (key,) if key in parameters_of(reader.root) else tuple(key.split("."))


def _schema_at(reader: DefinitionReader, path: Sequence[str]) -> object:
    at: object = reader.root
    for step in path:
        at = reader.property(at, step)
    return at


def _put(values: dict[str, Any], path: Sequence[str], value: Any, word: _ArgumentWord) -> None:
    inside = values
    for step in path[:-1]:
        member = inside.setdefault(step, {})
        if not isinstance(member, dict):
            raise CommandError(f"{word.key!r} contradicts the earlier argument {step!r}.")
        inside = cast("dict[str, Any]", member)
    last = path[-1]
    if isinstance(inside.get(last), dict) and isinstance(value, dict):
        inside[last].update(value)
        return
    inside[last] = value


# --- values


_NONE: Any = object()
"""The marker of a value that does not match a type."""

_INTEGER = re.compile(r"[+-]?\d+")
_TRUE = frozenset({"true", "yes", "on"})
_FALSE = frozenset({"false", "no", "off"})


def _value(reader: DefinitionReader, schema: object, word: _ArgumentWord) -> Any:
    if word.raw:
        return _raw(word)
    arms = reader.arms(schema)
    for arm in arms:
        value = _fitting(arm, word.text)
        if value is not _NONE:
            return value
    for arm in arms:
        if arm.get("type") == "array":  # the only item of one
            return [_item(reader, arm, word)]
    return word.text


def _array(reader: DefinitionReader, schema: object, group: list[_ArgumentWord]) -> Any:
    """Combine the values of a repeated key."""
    arrays = [arm for arm in reader.arms(schema) if arm.get("type", "array") == "array"]
    if not arrays:
        raise CommandError(f"{group[0].key!r} appears {len(group)} times: expected one value.")
    nested = any(arm.get("type") == "array" for arm in reader.arms(arrays[0].get("items")))
    values: list[Any] = []
    for word in group:
        value = _item(reader, arrays[0], word)
        if isinstance(value, list) and not nested:
            values.extend(cast("list[Any]", value))
        elif not nested and (several := _json_of(word.text, list)) is not _NONE:
            values.extend(several)
        else:
            values.append(value)
    return values


def _item(reader: DefinitionReader, array: Schema, word: _ArgumentWord) -> Any:
    return _value(reader, array.get("items"), word)


def _raw(word: _ArgumentWord) -> Any:
    try:
        return json.loads(word.text)
    except ValueError as error:
        raise CommandError(
            f"{word.key}:={word.text} is not valid JSON: {error}.",
            hint=f"For a string, write {word.key}=…",
        ) from error


def _fitting(arm: Schema, text: str) -> Any:
    """Parse a text as the type of one alternative; return `_NONE` if it does not match."""
    if (choices := _choices_of(arm)) is not None:
        return next((choice for choice in choices if _spelled(choice) == text), _NONE)
    match arm.get("type"):
        case "string":
            return text
        case "integer" if _INTEGER.fullmatch(text):
            return _number(text)
        case "number" if text.strip() == text:
            return _number(text)
        case "boolean" if text.lower() in _TRUE | _FALSE:
            return text.lower() in _TRUE
        case "null" if text == "null":
            return None
        case "array":
            return _json_of(text, list)
        case "object":
            return _json_of(text, dict)
        case None:
            return _anything(text)
        case _:
            return _NONE


def _choices_of(arm: Schema) -> list[Any] | None:
    if "const" in arm:
        return [arm["const"]]
    values = arm.get("enum")
    return cast("list[Any]", values) if isinstance(values, list) else None


def _spelled(choice: Any) -> str:
    return choice if isinstance(choice, str) else json.dumps(choice)


def _number(text: str) -> Any:
    if _INTEGER.fullmatch(text):
        try:
            return int(text)
        except ValueError:  # more digits than Python parses
            return _NONE
    try:
        value = float(text)
    except ValueError:
        return _NONE
    # JSON has neither infinity nor NaN. They reach the tool as text, and it refuses them.
    return value if value - value == 0 and "_" not in text else _NONE


def _json_of(text: str, kind: type) -> Any:
    if not text.lstrip().startswith(("[", "{")):
        return _NONE
    try:
        value = json.loads(text)
    except ValueError:
        return _NONE
    return value if isinstance(value, kind) else _NONE


def _anything(text: str) -> Any:
    """Parse a value of any type: as JSON if it is valid JSON, otherwise as text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if json_type(value) == "number" and _number(text) is _NONE else value
