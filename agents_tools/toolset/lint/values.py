"""Rules about the values of parameters: units, formats, limits, defaults and allowed values."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_tools.toolset.lint.finding import Subject

__all__ = ["check_values"]

_NUMERIC = frozenset({"integer", "number"})


def check_values(subject: Subject) -> Iterator[tuple[str, str]]:
    """Report values that a model has to guess, and what only the text says about them.

    Args:
        subject: The tool.
    """
    no_unit: list[str] = []
    for name, schema in subject.parameters.items():
        text = subject.text_of(name) or subject.documented.get(name, "")
        types = subject.types_of(name)
        if types and types <= _NUMERIC:
            if _needs_unit(name, text, subject.description):
                no_unit.append(name)
            yield from _limit(name, text, schema)
        elif types == {"string"}:
            yield from _date(name, text, schema, subject.description)
            yield from _values(name, text, schema)
        if name in subject.required and "default" not in schema and _OPTIONAL.match(text):
            message = f"parameter {name!r} is described as optional, but is required"
            yield "optional-in-text", f"{message}: give it a default, or correct the description"
        yield from _default(name, text, schema)
    if no_unit:
        start = "parameter {} is a number" if len(no_unit) == 1 else "parameters {} are numbers"
        names = ", ".join(map(repr, no_unit))
        message = f"{start.format(names)} without a unit"
        yield "no-unit", f"{message}: name the unit in the description"


_OPTIONAL = re.compile(
    r"\(?optional\b(?! (?:chain|param))|.*\(optional\)|.*\bdefaults to\b",
    re.IGNORECASE,
)

# --- numbers

_QUANTITY = re.compile(
    r"(?:^|_)(?:timeout|duration|delay|interval|elapsed|ttl|lifetime|cooldown|latency|distance"
    r"|radius|height|width|file_?size|max_age|bandwidth|margin|padding|thickness|altitude"
    r"|elevation)$"
)
_UNIT = re.compile(
    r"%|°|(?<![^\W\d_])(?:"
    r"m?s|ms|secs?|seconds?|millis(?:econds?)?|milliseconds?|microseconds?|minutes?|mins?|hours?"
    r"|hrs?|days?|weeks?|months?|years?|km|cm|mm|m|kg|g|lbs?|pounds?|ounces?|oz|inch(?:es)?|in|feet"
    r"|foot|ft|yards?|miles?|mi|met(?:er|re)s?|kilomet(?:er|re)s?|centimet(?:er|re)s?"
    r"|millimet(?:er|re)s?|degrees?|celsius|fahrenheit|kelvin|radians?|bytes?|kb|mb|gb|bits?"
    r"|pixels?|px|pts?|points?|emu|em|rem|dpi|percent(?:age)?|ratio|fraction|scale|factor"
    r"|characters?|chars?|tokens?|lines?|words?|rows?|columns?|cells?|levels?|steps?|units?"
    r"|frames?|samples?|beats?|bpm|hz|khz|liters?|litres?|items?|pages?|nodes?|directories"
    r"|folders?|hops?|layers?|plies|ply|moves?|px|kbps|mbps|knots?|mph"
    r")\b|秒|分钟|小时|天|像素|米|公里|千米|厘米|毫秒|字节|厘米|层",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"\b(?:between|from) (-?\d[\d.,]*) (?:and|to) (-?\d[\d.,]*)\b"
    r"|[\[(](-?\d[\d.]*) ?(?:-|\u2013|\.\.|to) ?(-?\d[\d.]*)[\])]"
    r"|\b(?:max(?:imum)?|min(?:imum)?|at most|at least|up to)[ :=]+(?:is |of |value )?"
    r"(-?\d[\d.,]*)",
    re.IGNORECASE,
)
_LIMITS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const"})


def _needs_unit(name: str, text: str, whole: str) -> bool:
    if not _QUANTITY.search(_snake(name)) or _UNIT.search(text):
        return False
    near = (line for line in whole.splitlines() if re.search(rf"\b{re.escape(name)}\b", line))
    return not any(map(_UNIT.search, near))


def _limit(name: str, text: str, schema: dict[str, object]) -> Iterator[tuple[str, str]]:
    limit = _RANGE.search(text)
    if limit and _LIMITS.isdisjoint(schema) and not any(_limits_in(schema)):
        message = f"parameter {name!r} has a limit in its description only ({limit[0].strip()!r})"
        yield "limit-only-in-text", f"{message}: put it into the schema"


def _limits_in(schema: dict[str, object]) -> Iterator[bool]:
    for key in ("anyOf", "oneOf", "allOf"):
        arms = schema.get(key)
        for arm in cast("list[object]", arms) if isinstance(arms, list) else ():
            yield isinstance(arm, dict) and not _LIMITS.isdisjoint(cast("dict[str, object]", arm))


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()


# --- strings

_DATE = re.compile(
    r"(?:^|_)(?:date|datetime|timestamp|deadline|birthday|(?:start|end|from|to|due|after|before)_?"
    r"(?:date|time|datetime)|date_(?:from|to)|fromdate|todate|(?:created|updated|modified)_"
    r"(?:at|after|before|since))$"
)
_DATE_FORMAT = re.compile(
    r"\d{4}|[Yy]{2,4}|\biso\b|iso-?8601|rfc|\bunix\b|epoch|\bHH\b|hh:mm|\d{1,2}:\d{2}|\bformat\b|格式"
    r"|today|natural language|relative|e\.g\.|example|\d+[dwmy]\b",
    re.IGNORECASE,
)
_ANY_DATE = re.compile(r"[Yy]{4}-?[Mm]{2}|\d{4}-\d{2}|\bISO[- ]?8601", re.ASCII)
"""Formats that hold for all dates of a tool, wherever its description names them."""
_QUOTED = r"[\"'`]([\w./+-]+)[\"'`]"
_NOTE = r"(?:\s*\([^)]*\))?"
_SEPARATOR = r"\s*(?:,|/|\||\bor\b|\band\b|, or)\s*"
_VALUES: tuple[re.Pattern[str], ...] = (
    re.compile(
        rf"(?:one of|either|must be|can be|options?(?: are)?"
        rf"|(?:allowed|valid|possible|supported) values?(?: are)?)[:\s]*[\[({{]?\s*"
        rf"{_QUOTED}{_NOTE}(?:{_SEPARATOR}{_QUOTED}{_NOTE})+",
        re.IGNORECASE,
    ),
    re.compile(rf"{_QUOTED}(?:\s*,\s*{_QUOTED}){{0,20}},?\s+or\s+{_QUOTED}", re.IGNORECASE),
    re.compile(
        r"(?:one of|allowed values?|valid values?|possible values?|options)(?: are)?:?\s*[\[(]?\s*"
        r"\w[\w-]*(?:\s*[,|]\s*(?:or )?\w[\w-]*){2,}[\])]?\s*(?:\.|$)",
        re.IGNORECASE,
    ),
    re.compile(r"[\[(]\w[\w-]{0,11}(?:(?:, ?| ?\| ?|/)(?:or )?\w[\w-]{0,11}){3,}[\])]"),
    re.compile(r"\(['\"]\w+['\"]\)(?:[^()]{0,40}\(['\"]\w+['\"]\))+"),
    re.compile(r"\(\s*['\"`][\w-]+['\"`](?:\s*[,|/]\s*(?:or\s+)?['\"`][\w-]+['\"`])+\s*\)"),
)
_OPEN = re.compile(
    r"\betc\b|\.\.\.|…|\be\.g\b|\bfor example\b|\bsuch as\b|\blike\b|\bexamples?\b"
    r"|\bsimilar\b|\bany\b|\binclud",
    re.IGNORECASE,
)


def _date(name: str, text: str, schema: dict[str, object], whole: str) -> Iterator[tuple[str, str]]:
    if not _DATE.search(_snake(name)) or {"format", "pattern", "enum", "examples"} & schema.keys():
        return
    near = " ".join(line for line in whole.splitlines() if name in line)
    texts = f"{text} {near} {schema.get('default', '')}"
    if not _DATE_FORMAT.search(texts) and not _ANY_DATE.search(whole):
        message = f"parameter {name!r} is a date or time without a format"
        yield "no-date-format", f"{message}: give an example, such as 2026-01-31"


def _values(name: str, text: str, schema: dict[str, object]) -> Iterator[tuple[str, str]]:
    if "pattern" in schema or _OPEN.search(text) or _inner_choice(schema):
        return
    listed = next(filter(None, (pattern.search(text) for pattern in _VALUES)), None)
    if listed:
        words = _quoted_or_all(listed[0])
        values = ", ".join(map(repr, words[:_MAX_VALUES])) + ", …" * (len(words) > _MAX_VALUES)
        message = f"parameter {name!r} lists its values in its description only"
        yield "values-only-in-text", f"{message} ({values}): use an enum"


_MAX_VALUES = 5


def _quoted_or_all(listed: str) -> list[str]:
    """Return the quoted words of a list of values, or those between its separators."""
    quoted = re.findall(_QUOTED, listed)
    bare = re.sub(r"^.*(?:one of|values?|options)(?: are)?:?", "", listed, flags=re.IGNORECASE)
    return quoted or re.findall(r"(?!or\b)\w[\w-]*", bare)


def _inner_choice(schema: dict[str, object]) -> bool:
    return '"enum"' in json.dumps(schema, default=str) or '"const"' in json.dumps(
        schema, default=str
    )


# --- defaults

_STATED = re.compile(
    r"\bdefaults?(?: value)?(?: is| to|:|=)+\s*[\"'`]?(-?\d+(?:\.\d+)?|true|false|[\w.+/-]+)[\"'`]?"
    r"(?=[\s).,;\]]|$)",
    re.IGNORECASE,
)


def _default(name: str, text: str, schema: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Report a stated default that is not the one of the schema."""
    if "default" not in schema:
        return
    actual = schema["default"]
    stated = _STATED.search(text)
    if stated is None or isinstance(actual, (list, dict)) or actual is None or actual == "":
        return
    if _is_same(stated[1].rstrip("."), actual):
        return
    if isinstance(actual, str):
        if not {*"\"'`"} & set(stated[0]) or not re.fullmatch(r"[\w.+/-]+", actual):
            return  # prose, such as "the default is the current folder"
    elif not _LITERAL.fullmatch(stated[1]):
        return
    message = f"parameter {name!r} has the default {actual!r} in the schema, but {stated[1]!r} in "
    yield "default-mismatch", f"{message}its description: correct one of them"


_LITERAL = re.compile(r"-?\d+(?:\.\d+)?|true|false", re.IGNORECASE)


def _is_same(stated: str, actual: object) -> bool:
    if isinstance(actual, bool):
        return stated.lower() == str(actual).lower()
    if isinstance(actual, (int, float)):
        try:
            return float(stated) == actual
        except ValueError:
            return False
    return stated.lower() == str(actual).lower()
