"""Makes up docstrings: of all styles, of several at once, broken, odd and huge ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.soak._made_texts import any_text

if TYPE_CHECKING:
    from random import Random

__all__ = ["a_docstring"]

_SENTENCES = (
    "Find owls.",
    "Suche: Eulen, größer als 3 — überall.",
    "Note: it bites.",
    "Use `x` for y, e.g. http://example.com/a:b.",
    "* a point",
    "1. first",
    ">>> made(1)\n2",
    "```\nArgs:\n    x: in code\n```",
    "x: looks like an entry",
    ":param in prose",
    "See Also",
    "🦉 \u202e owls",
    "a::b",
    "\ttabbed",
)
_NAMES = ("x", "y", "query", "missing", "*args", "**kwargs", "x, y", "`x`", "x (int)", "größe", "")
_TYPES = ("int", "str, optional", "list[int]", "{'a', 'b'}", "int, default=3", "~a.B", "[", "")
_HEADINGS = (
    *("Args:", "Arguments:", "Parameters", "Params:", "Keyword Args:", "Other Parameters"),
    *("Returns:", "Returns", "Raises:", "Raises", "Yields:", "Example:", "Examples", "Notes"),
    *("Attributes:", "Note:", "Warning:", "See Also:", "References", "args:", "ARGS", "Args"),
)


def a_docstring(rng: Random, marker: str) -> str:
    """Make up a docstring whose first sentence is given."""
    parts = [marker]
    count = rng.choice((0, 1, 2, 3, 8))
    parts += [rng.choice(("", "\n", "\n\n")) + _a_part(rng) for _ in range(count)]
    text = "\n".join(parts)
    if rng.random() < 0.1:
        text = "\n".join("    " * rng.randint(0, 3) + line for line in text.split("\n"))
    if rng.random() < 0.1:
        text = text.replace("\n", rng.choice(("\r\n", "\r", "\n\n", "\x0b", "\u2028")))
    if rng.random() < 0.05:
        text += _a_huge_part(rng)
    return text


def _a_part(rng: Random) -> str:
    match rng.randrange(6):
        case 0:
            return "\n".join(rng.choices(_SENTENCES, k=rng.randint(1, 3)))
        case 1:
            return any_text(rng)
        case 2:
            return f"{rng.choice(_HEADINGS)}\n" + "\n".join(_google(rng) for _ in range(3))
        case 3:
            heading = rng.choice(_HEADINGS)
            under = rng.choice("-=~") * rng.choice((1, 3, len(heading)))
            return f"{heading}\n{under}\n" + "\n".join(_numpy(rng) for _ in range(3))
        case 4:
            return "\n".join(_sphinx(rng) for _ in range(3))
        case _:
            return rng.choice(_HEADINGS)


def _google(rng: Random) -> str:
    name, kind = rng.choice(_NAMES), rng.choice(_TYPES)
    indent = " " * rng.choice((0, 1, 2, 4, 4, 4, 8))
    typed = f" ({kind})" if rng.random() < 0.5 else ""
    return f"{indent}{name}{typed}{rng.choice((': ', ':', ' -- ', ' - ', ''))}{_prose(rng)}"


def _numpy(rng: Random) -> str:
    name, kind = rng.choice(_NAMES), rng.choice(_TYPES)
    return f"{name}{rng.choice((' : ', ': ', ':', ''))}{kind}\n    {_prose(rng)}"


def _sphinx(rng: Random) -> str:
    field = rng.choice(("param", "type", "keyword", "returns", "raises X", "rtype", "odd", "arg"))
    return f"{rng.choice(':@')}{field} {rng.choice(_NAMES)}:{rng.choice((' ', ''))}{_prose(rng)}"


def _prose(rng: Random) -> str:
    if rng.random() < 0.2:
        return any_text(rng)
    return rng.choice(_SENTENCES) + rng.choice(("", "\n        and more of it", "\n\nand more"))


def _a_huge_part(rng: Random) -> str:
    """Repeat parts that could be expensive to parse."""
    one = rng.choice(
        (
            "\nArgs:\n    x: a",
            "\n    x: a",
            "\nx : int\n    a",
            "\nParameters\n----------\n",
            "\n:param x: a",
            "\n:param x",
            "\n\n",
            " " * 50,
            "\n" + " " * 7,
            "`",
            "``",
            "(",
            "[x](",
            ":x",
            ": ",
            "a",
            "\n---",
            "\n>>> x",
            "\n```",
            "*",
            "x, ",
            "\n    x (",
            "\n- x",
            "{",
            "\\",
            ":class:`",
            "\n    x:",
            "\n@param x",
            "\nNote:",
            "\n    a\n  b",
        )
    )
    return one * rng.choice((300, 2_000))
