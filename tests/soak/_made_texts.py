"""Makes texts for fuzzing: JSON values and documents, good ones and spoiled ones, of a seed."""

from __future__ import annotations

import json
import string
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

__all__ = ["a_bomb", "any_text", "any_value", "smaller", "spoiled_text", "spoiled_value", "written"]

ODD_TEXTS = (
    "",
    " ",
    "null",
    "true",
    "0",
    "-1",
    "1e3",
    "1.0",
    " 5 ",
    "NaN",
    "Infinity",
    "[]",
    "{}",
    "[1]",
    '{"a": 1}',
    '"x"',
    "2026-01-02",
    "2026-01-02T03:04:05Z",
    "12345678-1234-5678-1234-567812345678",
    "P1DT2H",
    "../../etc/passwd",
    "a\x00b",
    "\ud800",
    "\u202e\u200b",
    "é" * 40,
    "𝄞",
    "\r\n",
    "'; DROP TABLE runs; --",
    "<script>alert(1)</script>",
    "{{7*7}}",
    "%s%n",
    "a" * 3_000,
)
ODD_NUMBERS = (
    0,
    -0.0,
    1,
    -1,
    2,
    5.0,
    5.5,
    1e3,
    1e300,
    -1e-300,
    2**31,
    2**53 + 1,
    -(2**63),
    2**63,
    2**64,
    10**30,
    10**400,
    float("nan"),
    float("inf"),
)
ODD_KEYS = ("", "a", "x", "self", "ctx", "__class__", "$ref", "type", "a.b", "é", "0", "kind")


def any_text(rng: Random) -> str:
    """Return a text of any kind."""
    if rng.random() < 0.4:
        return rng.choice(ODD_TEXTS)
    size = rng.choice((1, 2, 5, 20))
    return "".join(rng.choice(string.printable) for _ in range(size))


def any_value(rng: Random, depth: int = 3) -> Any:
    """Return a JSON value of any kind; its leaves include `NaN` and half surrogates."""
    kind = rng.randrange(7 if depth else 5)
    if kind == 0:
        return rng.choice((None, True, False))
    if kind in {1, 2}:
        return rng.choice(ODD_NUMBERS)
    if kind in {3, 4}:
        return any_text(rng)
    size = rng.choice((0, 1, 2, 3))
    if kind == 5:
        return [any_value(rng, depth - 1) for _ in range(size)]
    return {rng.choice(ODD_KEYS): any_value(rng, depth - 1) for _ in range(size)}


def spoiled_value(rng: Random, value: Any) -> Any:
    """Change one thing in a JSON value: its type, a key, a member, a level."""
    inner = isinstance(value, (dict, list)) and value and rng.random() < 0.75
    if inner and isinstance(value, dict):
        return _spoiled_object(rng, dict(value))
    if inner:
        return _spoiled_list(rng, list(value))
    return _in_its_place(rng, value)


def _spoiled_object(rng: Random, value: dict[str, Any]) -> dict[str, Any]:
    key = rng.choice(list(value))
    match rng.randrange(8):
        case 0:
            del value[key]
        case 1:
            value[rng.choice(ODD_KEYS)] = any_value(rng, 1)
        case 2:
            value[_respelled(rng, key)] = value.pop(key)
        case 3:
            value[key + rng.choice(ODD_KEYS)] = value[key]
        case _:
            value[key] = spoiled_value(rng, value[key])
    return value


def _spoiled_list(rng: Random, value: list[Any]) -> list[Any]:
    at = rng.randrange(len(value))
    match rng.randrange(6):
        case 0:
            del value[at]
        case 1:
            value.insert(at, any_value(rng, 1))
        case 2:
            value *= 3
        case _:
            value[at] = spoiled_value(rng, value[at])
    return value


def _in_its_place(rng: Random, value: Any) -> Any:
    match rng.randrange(8):
        case 0:
            return None
        case 1:
            return [value]
        case 2:
            return {rng.choice(ODD_KEYS): value}
        case 3:
            return written(value)
        case 4 if isinstance(value, (int, float)):
            return str(value)
        case 5 if isinstance(value, int):
            return value + rng.choice((-1, 1, 10**20))
        case _:
            return any_value(rng, 2)


def _respelled(rng: Random, key: str) -> str:
    made: tuple[Callable[[str], str], ...] = (
        str.upper,
        str.title,
        lambda key: key + " ",
        lambda key: key.replace("_", "-"),
        lambda key: key[:-1],
        lambda key: key * 50,
    )
    return rng.choice(made)(key)


def written(value: Any) -> str:
    """Write a value as JSON, also one that has no JSON form: `NaN`, half of a surrogate pair."""
    return json.dumps(value)


def spoiled_text(rng: Random, text: str) -> str:
    """Change a JSON text: a few characters of it, its end, or what is around it."""
    at = rng.randrange(len(text) + 1)
    match rng.randrange(16):
        case 0:
            return text[:at]
        case 1:
            return text[:at] + text[at + 1 :]
        case 2:
            return (
                text[:at] + rng.choice('{}[]",:\\ \n\t0eE+-.ntfNI\x00\x1f\x7fé\ud800') + text[at:]
            )
        case 3:
            other = rng.randrange(len(text) + 1)
            return text[:at] + text[min(at, other) : max(at, other)] + text[at:]
        case 4:
            return f"```json\n{text}\n```"
        case 5:
            return rng.choice(("\ufeff", " ", "\n\n", "Sure! ", "\x00")) + text
        case 6:
            return text + rng.choice((" ", "\n", "}", ",", " done", text, "\x00", "//x", "</tool>"))
        case 7:
            return text.replace('"', "'")
        case 8:
            return _with_a_repeated_key(rng, text)
        case 9:
            return text.replace(
                ":", rng.choice((" :", ": ", "::", "=", ":\n")), rng.choice((-1, 1))
            )
        case 10:
            return text.replace(
                "1", rng.choice(("01", "1.", "+1", "1e400", "1_0", "0x1", "1" * 5_000))
            )
        case 11:
            return text.replace("}", ",}").replace("]", ",]")
        case 12:
            return text.replace("true", "True").replace("null", rng.choice(("None", "undefined")))
        case 13:
            return json.dumps(text)
        case 14:
            return _escaped(rng, text)
        case _:
            kept = [one for one in text if rng.random() > 0.05]
            return "".join(kept)


def _with_a_repeated_key(rng: Random, text: str) -> str:
    """Repeat the first member of every object."""
    places = [at for at, one in enumerate(text) if one == "{"]
    if not places:
        return text * 2
    at = rng.choice(places) + 1
    end = text.find(",", at)
    first = text[at:end] if end > 0 else text[at:].rstrip("}")
    return text[:at] + first + rng.choice((",", " , ")) + text[at:]


def _escaped(rng: Random, text: str) -> str:
    """Write characters of the texts inside as escapes: the same to a reader, or half of a pair."""
    odd = rng.choice(("\\u0061", "\\ud800", "\\udc00\\ud800", "\\u0000", "\\x41", "\\u12"))
    return text.replace("a", odd, 2) if "a" in text else text.replace('"', f'"{odd}', 1)


def a_bomb(rng: Random, keys: tuple[str, ...]) -> str:
    """Return a text that is expensive to parse: deep, wide, long, full of keys or of digits."""
    key = json.dumps(rng.choice(keys or ("a",)))
    many = rng.choice((60, 70, 1_000, 20_000, 200_000))
    match rng.randrange(9):
        case 0:
            inner = "[" * many + "]" * many
        case 1:
            inner = '{"a":' * many + "1" + "}" * many
        case 2:
            inner = "[" * many
        case 3:
            inner = "[" + ",".join(["0"] * many) + "]"
        case 4:
            inner = "{" + ",".join(f'"k{number}":0' for number in range(many)) + "}"
        case 5:
            inner = rng.choice(("", "-", "0.", "1e")) + "9" * many
        case 6:
            inner = json.dumps("\\" * many)
        case 7:
            inner = '"' + rng.choice(("a", "\\u0061", "[", "{", '\\"', " :")) * many + '"'
        case _:
            return "{" + ",".join(f"{key}: {number}" for number in range(min(many, 20_000))) + "}"
    return f"{{{key}: {inner}}}"


def smaller(text: str, still: Callable[[str], bool], tries: int = 300) -> str:
    """Leave out of a text what does not matter for what is seen in it.

    Args:
        text: The text.
        still: Whether the same is seen in another text.
        tries: How often to look.
    """
    piece = max(1, len(text) // 2)
    while piece and tries > 0:
        at = 0
        while at < len(text) and tries > 0:
            tries -= 1
            less = text[:at] + text[at + piece :]
            if still(less):
                text = less
            else:
                at += piece
        piece //= 2
    return text
