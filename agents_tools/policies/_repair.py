"""Repair of arguments that are almost valid JSON."""

from __future__ import annotations

import json
import re
import typing
from typing import Any

from agents_tools.errors import UserError
from agents_tools.policies._policy import with_parentheses
from agents_tools.text.json_limits import check_bounds
from agents_tools.tool.policy import Policy

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agents_tools.tool.call import Call
    from agents_tools.tool.policy import Run

__all__ = ["repair_json"]


@with_parentheses
def repair_json(*, strict: bool = True) -> Policy:
    """Repair arguments that are not valid JSON because of their punctuation.

    Needs the extra `repair`. Only text that cannot be parsed is changed: wrong quotes, names
    without quotes, too many or too few commas, Python's `True`, `False` and `None`, comments, a
    code fence. All values stay the same, in the same order, and none is added or lost. Any other
    text stays an error for the model, and text that is possibly cut off is never completed. The
    repaired arguments are validated like any others.

    A call with repaired arguments emits a `NotifyStreamEvent` (a warning with the tag
    `repaired_arguments`). Its `CallOutcome.metadata["agents_tools"]["repaired_arguments"]` contains
    the original text. Approvals and guardrails see the repaired arguments.

    Args:
        strict: Whether the values have to stay the same. If false, the result of the package
            json-repair is used, including its guesses.

    Raises:
        UserError: The package json-repair is not installed.
    """
    return _RepairJson(_load_repair(strict=strict), strict=strict)


class _RepairJson(Policy):
    name = "repair_json()"

    def __init__(self, repair: Callable[[str], Any], *, strict: bool) -> None:
        self._repair = repair
        self._strict = strict

    def repair_text(self, call: Call, text: str) -> str:
        repaired = _repair_text(text, self._repair, strict=self._strict)
        if repaired is None:
            return text
        call.note(_TAG, text)
        return repaired

    async def around(self, call: Call, call_next: Run) -> Any:
        notes = next(call.ancestors).notes
        if notes is not None and _TAG in notes and call.attempt == 1:
            call.notify(
                "The arguments were not valid JSON and were repaired.", level="warning", tag=_TAG
            )
        return await call_next(call)


_TAG = "repaired_arguments"


def _load_repair(*, strict: bool) -> Callable[[str], Any]:
    try:
        from json_repair import loads
    except ImportError as error:
        raise UserError(
            "repair_json() needs the package json-repair. Install it with "
            "`pip install 'agents-tools[repair]'`."
        ) from error
    return lambda text: loads(text, skip_json_loads=True, strict=strict)


def _repair_text(text: Any, repair: Callable[[str], Any], *, strict: bool) -> str | None:
    """Return the repaired JSON; `None` if the text is valid or its meaning is not certain."""
    if not isinstance(text, str) or len(text) > _MAX_LENGTH[strict]:
        return None
    if _is_json(text):
        inner = json.loads(text) if text.lstrip().startswith('"') else None
        return _repair_text(inner, repair, strict=strict)  # an object in a string
    bare = _without_fence(text)
    try:
        check_bounds(bare)
        if strict and _is_json(bare):
            return bare
        tokens = list(_tokenize(bare)) if strict else None
        if tokens is None and _is_cut_off(bare):
            return None
        value = repair(bare if tokens is None else " ".join(_as_json(*one) for one in tokens))
        if not isinstance(value, dict):
            return None
        if tokens is not None and not _has_tokens(list(_tokens_of(value)), tokens):
            return None
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        return None  # the tool reports the error to the model


_MAX_LENGTH = {True: 50_000, False: 10_000}
"""The maximum number of characters, by `strict`; repairing is much slower than parsing."""


def _is_json(text: str) -> bool:
    if not text.strip():
        return True  # no arguments
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


_FENCE = re.compile(r"\s*```[A-Za-z0-9]*[ \t]*\r?\n(.*)\n[ \t]*```\s*", re.DOTALL)


def _without_fence(text: str) -> str:
    match = _FENCE.fullmatch(text)
    return (text if match is None else match[1]).strip("\ufeff \t\r\n")


_TOKEN = re.compile(
    r"""
      (?P<mark>[,:]) | (?P<space>\s+ | //[^\n]*(?:\n|$) | /\*.*?\*/)
    | (?P<open>[{\[]) | (?P<close>[}\]])
    | (?P<string>"(?:[^"\\]|\\.)*+" | '(?:[^'\\]|\\.)*+')
    | (?P<word>[^\s,:{}\[\]"']+)
    """,
    re.VERBOSE | re.DOTALL,
)
_COLON = re.compile(r"\s*:")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS: dict[str, Any] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
}
_OPENS = {"}": "{", "]": "["}


def _tokenize(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the tokens of a text: brackets, names and values, colons and commas.

    Raises:
        ValueError: The text is ambiguous, or possibly cut off.
    """
    position = 0
    open_brackets: list[str] = []
    has_object, last = False, ""
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError("ambiguous")
        kind, symbol = typing.cast("str", match.lastgroup), match[0]
        if not open_brackets and kind != "space" and (symbol != "{" or has_object):
            raise ValueError("not one object")
        position, has_object = match.end(), has_object or kind == "open"
        if kind == "space":
            continue
        last, before = symbol, last
        if kind == "open":
            open_brackets.append(symbol)
            yield "open", symbol
        elif kind == "close":
            if not open_brackets or open_brackets.pop() != _OPENS[symbol]:
                raise ValueError("ambiguous")
            yield "close", symbol
        elif kind == "string":
            yield "value", _unquote(symbol)
        elif kind == "mark":
            if symbol == "," == before:
                raise ValueError("a value is possibly missing")
            yield "mark", symbol
        elif kind == "word":
            can_be_name = open_brackets[-1:] == ["{"] and before != ":"
            is_name = can_be_name and _COLON.match(text, position) is not None
            yield "value", _read_word(symbol, is_name=is_name)
    if open_brackets:
        raise ValueError("cut off")


def _unquote(token: str) -> str:
    inside = token[1:-1]
    if token[0] == "'":
        inside = inside.replace("\\'", "'").replace('"', '\\"')
    return json.loads(f'"{inside}"', strict=False)


def _read_word(token: str, *, is_name: bool) -> Any:
    if is_name and _NAME.fullmatch(token):
        return token
    if not is_name and token in _WORDS:
        return _WORDS[token]
    if not is_name and _NUMBER.fullmatch(token):
        return json.loads(token)
    raise ValueError("ambiguous")


def _tokens_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tokens of a value as `_tokenize` does, without colons and commas."""
    if isinstance(value, dict):
        yield "open", "{"
        for name, member in typing.cast("dict[str, Any]", value).items():
            yield "value", name
            yield from _tokens_of(member)
        yield "close", "}"
    elif isinstance(value, list):
        yield "open", "["
        for item in typing.cast("list[Any]", value):
            yield from _tokens_of(item)
        yield "close", "]"
    else:
        yield "value", value


def _as_json(kind: str, token: Any) -> str:
    """Return one token as JSON, so that only colons and commas are left to repair."""
    return json.dumps(token) if kind == "value" else token


def _has_tokens(repaired: list[tuple[str, Any]], original: list[tuple[str, Any]]) -> bool:
    """Return whether the tokens are equal; `True` and `1` are different."""
    values = [one for one in original if one[0] != "mark"]
    return repaired == values and all(map(_has_same_type, repaired, values))


def _has_same_type(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    return type(one[1]) is type(other[1])


def _is_cut_off(text: str) -> bool:
    """Return whether the end of a text is possibly missing, without parsing it."""
    bare = _STRING.sub("", text)
    return not text.rstrip("` \t\r\n").endswith("}") or any(
        one.count(opening) > one.count(closing)
        for one in (text, bare)
        for closing, opening in _OPENS.items()
    )


_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
