"""Mends JSON that a model got slightly wrong, where it is plain what was meant."""

from __future__ import annotations

import json
import re
import typing
from typing import Any

from agents_tools._json import check_bounds
from agents_tools._records import Policy
from agents_tools.errors import UserError
from agents_tools.policies._change import Change

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agents_tools._records import Call
    from agents_tools.context import ToolContext

__all__ = ["repair_json"]


def repair_json(*, strict: bool = True) -> Change:
    """Mend arguments that are no JSON because of their punctuation, and say so.

    Takes the extra `repair`. Only text that cannot be read is touched: quotes of the wrong kind,
    names without quotes, commas too many or too few, Python's `True`, `False` and `None`,
    comments, a code fence. The values have to be those that were written, in the same order, none
    added and none lost; anything else stays an error for the model, and text that may have been
    cut off is never completed. What comes out is validated as any arguments are.

    A call whose arguments were mended says so in a `NotifyStreamEvent` (a warning, tag
    `repaired_arguments`), and its `CallOutcome.metadata["agents_tools"]["repaired_arguments"]`
    has the text as it was sent. Approvals and guardrails see the mended arguments.

    Args:
        strict: Whether values have to be those that were written. Otherwise whatever the package
            json-repair makes of a text is taken, guesses included.

    Raises:
        UserError: The package json-repair is not installed.
    """
    repair = _repairer(strict=strict)

    def mend(context: ToolContext[Any], args_json: str) -> str:
        mended = _mended(args_json, repair, strict=strict)
        if mended is None:
            return args_json
        context.note(_MARK, args_json)
        return mended

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            notes = next(context.ancestors).notes
            if notes is not None and _MARK in notes and context.attempt == 1:
                context.notify(
                    "The arguments were no JSON and were mended.", level="warning", tag=_MARK
                )
            return await inner(context, args_json)

        return call

    return Change(
        "repair_json()",
        lambda tool: tool.with_(policy=Policy(name="repair_json()", wrap=wrap, mend=mend)),
    )


_MARK = "repaired_arguments"


def _repairer(*, strict: bool) -> Callable[[str], Any]:
    try:
        from json_repair import loads
    except ImportError as error:
        raise UserError(
            "repair_json() takes the package json-repair. Install it with "
            "`pip install 'agents-tools[repair]'`."
        ) from error
    return lambda text: loads(text, skip_json_loads=True, strict=strict)


def _mended(text: Any, repair: Callable[[str], Any], *, strict: bool) -> str | None:
    """Give the JSON that was meant; `None` where the text is JSON, or it is not plain what is."""
    if not isinstance(text, str) or len(text) > _LONGEST[strict]:
        return None
    if _is_json(text):
        inner = json.loads(text) if text.lstrip().startswith('"') else None
        return _mended(inner, repair, strict=strict)  # an object in a string
    bare = _without_fence(text)
    try:
        check_bounds(bare)
        if strict and _is_json(bare):
            return bare
        written = list(_pieces(bare)) if strict else None
        if written is None and _is_cut_off(bare):
            return None
        meant = repair(bare if written is None else " ".join(_plain(*one) for one in written))
        if not isinstance(meant, dict):
            return None
        if written is not None and not _same(list(_leaves(meant)), written):
            return None
        return json.dumps(meant, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        return None  # the tool tells the model what is wrong


_LONGEST = {True: 50_000, False: 10_000}
"""Characters, if strict and if not: mending takes much longer than reading."""


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
    found = _FENCE.fullmatch(text)
    return (text if found is None else found[1]).strip("\ufeff \t\r\n")


_PIECE = re.compile(
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


def _pieces(text: str) -> Iterator[tuple[str, Any]]:
    """Yield what is written in a text: brackets, names and values, colons and commas.

    Raises:
        ValueError: It is not plain what is written, or the text may have been cut off.
    """
    place = 0
    open_brackets: list[str] = []
    seen, last = False, ""
    while place < len(text):
        found = _PIECE.match(text, place)
        if found is None:
            raise ValueError("not plain")
        kind, piece = typing.cast("str", found.lastgroup), found[0]
        if not open_brackets and kind != "space" and (piece != "{" or seen):
            raise ValueError("not one object")
        place, seen = found.end(), seen or kind == "open"
        if kind == "space":
            continue
        last, before = piece, last
        if kind == "open":
            open_brackets.append(piece)
            yield "open", piece
        elif kind == "close":
            if not open_brackets or open_brackets.pop() != _OPENS[piece]:
                raise ValueError("not plain")
            yield "close", piece
        elif kind == "string":
            yield "value", _unquoted(piece)
        elif kind == "mark":
            if piece == "," == before:
                raise ValueError("a value may be missing")
            yield "mark", piece
        elif kind == "word":
            may_be_name = open_brackets[-1:] == ["{"] and before != ":"
            is_name = may_be_name and _COLON.match(text, place) is not None
            yield "value", _word(piece, is_name=is_name)
    if open_brackets:
        raise ValueError("cut off")


def _unquoted(token: str) -> str:
    inside = token[1:-1]
    if token[0] == "'":
        inside = inside.replace("\\'", "'").replace('"', '\\"')
    return json.loads(f'"{inside}"', strict=False)


def _word(token: str, *, is_name: bool) -> Any:
    if is_name and _NAME.fullmatch(token):
        return token
    if not is_name and token in _WORDS:
        return _WORDS[token]
    if not is_name and _NUMBER.fullmatch(token):
        return json.loads(token)
    raise ValueError("not plain")


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a value would be written as, in the way of `_pieces`, without marks."""
    if isinstance(value, dict):
        yield "open", "{"
        for name, member in typing.cast("dict[str, Any]", value).items():
            yield "value", name
            yield from _leaves(member)
        yield "close", "}"
    elif isinstance(value, list):
        yield "open", "["
        for item in typing.cast("list[Any]", value):
            yield from _leaves(item)
        yield "close", "]"
    else:
        yield "value", value


def _plain(kind: str, token: Any) -> str:
    """Write one token as JSON does, so that only colons and commas are left to be mended."""
    return json.dumps(token) if kind == "value" else token


def _same(meant: list[tuple[str, Any]], written: list[tuple[str, Any]]) -> bool:
    """Whether what is meant is what is written, `True` and `1` told apart."""
    values = [one for one in written if one[0] != "mark"]
    return meant == values and all(map(_alike, meant, values))


def _alike(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    return type(one[1]) is type(other[1])


def _is_cut_off(text: str) -> bool:
    """Whether the end of a text may be missing, as far as can be told without reading it."""
    bare = _STRING.sub("", text)
    return not text.rstrip("` \t\r\n").endswith("}") or any(
        one.count(opening) > one.count(closing)
        for one in (text, bare)
        for closing, opening in _OPENS.items()
    )


_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
