"""The error message for invalid arguments: one line per fault, with its place and the remedy."""

from __future__ import annotations

import math
import re
import typing
from itertools import chain
from typing import Any

from agents_tools.errors import ArgumentProblem, ModelBehaviorError
from agents_tools.schema.lookup import type_words
from agents_tools.text.escape import describe_value, shorten

if typing.TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from agents_tools.schema.lookup import SchemaLookup
    from agents_tools.schema.validators import Fault

__all__ = [
    "arguments_error",
    "describe_problem",
    "format_path",
    "malformed_error",
    "problems_of",
    "syntax_reason",
    "unknown_key",
]

Path = tuple[str | int, ...]

_MAX_PROBLEMS = 10
_MAX_MESSAGE = 2_000


def arguments_error(tool: str, problems: Sequence[ArgumentProblem]) -> ModelBehaviorError:
    """Return the error for invalid arguments."""
    lines = [f"- {_line(problem)}" for problem in problems[:_MAX_PROBLEMS]]
    if len(problems) > _MAX_PROBLEMS:
        lines.append(f"and {len(problems) - _MAX_PROBLEMS:,} more")
    text = "\n".join([f"Invalid arguments for tool {tool!r}:", *lines])
    return ModelBehaviorError(shorten(text, _MAX_MESSAGE), problems=problems)


def malformed_error(tool: str, kind: str, message: str) -> ModelBehaviorError:
    """Return the error for arguments that are not a JSON object at all."""
    problem = ArgumentProblem(path=(), expected="one JSON object", got="", kind=kind)
    return ModelBehaviorError(
        f"Invalid arguments for tool {tool!r}: {message}. "
        "Send one JSON object with the tool's parameters.",
        problems=[problem],
    )


def unknown_key(key: str, known: list[str]) -> ArgumentProblem:
    """Return the problem of an argument that the tool does not have."""
    return ArgumentProblem(path=(key,), expected=_nearest(key, known), got="", kind="unknown_key")


def problems_of(
    faults: Iterable[Fault], sent: Any, data: Any, lookup: SchemaLookup
) -> list[ArgumentProblem]:
    """Return one problem for each place; only those that fit into the message are described.

    Args:
        faults: The faults in the arguments.
        sent: The arguments as the model sent them.
        data: The arguments after conversions, to which the paths of the faults belong.
        lookup: The JSON Schema.
    """
    places: dict[Path, list[Fault]] = {}
    found = _without_other_alternatives(list(faults), data, lookup)
    around = {one.path[:length] for one in found if not _is_null(one) for length in _lengths(one)}
    for fault in found:
        if not (_is_null(fault) and fault.path in around):
            places.setdefault(fault.path, []).append(fault)
    keys = lookup.keys(())
    order: dict[object, int] = {key: index for index, key in enumerate(keys)}

    def position(place: tuple[Path, object]) -> int:
        path = place[0]
        return order.get(path[0], len(keys)) if path else -1

    ordered = sorted(places.items(), key=position)
    return [
        _problem(
            path,
            here,
            value_at(sent, path, value_at(data, path)),
            lookup,
            used=value_at(data, path[:-1]),
        )
        if index < _MAX_PROBLEMS
        else ArgumentProblem(path=path, expected="", got="", kind=here[0].keyword)
        for index, (path, here) in enumerate(ordered)
    ]


def _problem(
    path: Path, faults: list[Fault], value: Any, lookup: SchemaLookup, *, used: Any
) -> ArgumentProblem:
    """Return the problem for the faults at one place: one for each alternative of a union.

    Args:
        path: The place.
        faults: The faults there.
        value: The value there, as the model sent it.
        lookup: The JSON Schema.
        used: The object or array with the value.
    """
    keywords = [fault.keyword for fault in faults]
    if "missing" in keywords:
        expected = f"{lookup.words(path)} (required)"
        return ArgumentProblem(path=path, expected=expected, got="nothing", kind="missing")
    if "propertyNames" in keywords:
        keys = [fault.limit for fault in faults if fault.keyword == "propertyNames"]
        phrases = dict.fromkeys(_phrase(fault, path[-1], lookup) for fault in keys)
        expected = f"{' or '.join(phrases)} as the key"
        got = describe_value(path[-1])
        return ArgumentProblem(path=path, expected=expected, got=got, kind="propertyNames")
    got = lookup.describe(value, path)
    if isinstance(value, float) and not math.isfinite(value):
        return ArgumentProblem(path=path, expected="a finite number", got=got, kind="value")
    known = lookup.keys(path[:-1]) if "unknown_key" in keywords else []
    others = [fault for fault in faults if fault.keyword != "unknown_key"]
    if len(others) < len(faults) and not (others and path[-1] in known):
        message = next(fault.message for fault in faults if fault.keyword == "unknown_key")
        expected = message or _nearest(str(path[-1]), known, used)
        return ArgumentProblem(path=path, expected=expected, got=got, kind="unknown_key")
    # The phrase for listed values has those of all alternatives, which can be many.
    listed = [fault for fault in others if fault.keyword == "enum"][:1]
    phrases = dict.fromkeys(_phrase(fault, value, lookup) for fault in listed or others)
    expected = shorten(" or ".join(phrases), 300)
    return ArgumentProblem(path=path, expected=expected, got=got, kind=others[0].keyword)


def value_at(data: Any, path: Sequence[str | int], default: Any = None) -> Any:
    """Return the value at a path of a JSON document, or the default if there is none."""
    value = data
    for step in path:
        try:
            value = value[step]
        except (IndexError, KeyError, TypeError):
            return default
    return value


def _without_other_alternatives(
    faults: list[Fault], data: Any, lookup: SchemaLookup
) -> list[Fault]:
    """Return the faults without those of the alternatives of unions that values are not meant for.

    Args:
        faults: The faults.
        data: The arguments.
        lookup: The JSON Schema.
    """
    fixed = {fault.path for fault in faults if fault.keyword == "enum" and fault.alternatives}
    tags = {path for path in fixed if lookup.lists(path, value_at(data, path))}
    return _intended(faults, tags, 0)


def _intended(faults: list[Fault], tags: Container[Path], depth: int) -> list[Fault]:
    """Return the faults of the most likely alternatives.

    Args:
        faults: The faults in one alternative of the outer unions.
        tags: The places of values that select another alternative, such as `{"kind": "dog"}`.
        depth: The number of outer unions.
    """
    unions: dict[Path, dict[str | int, list[Fault]]] = {}
    for fault in faults:
        if len(fault.alternatives) > depth:
            union, label = fault.alternatives[depth]
            unions.setdefault(union, {}).setdefault(label, []).append(fault)
    found = {id(fault) for fault in faults if len(fault.alternatives) <= depth}
    for union, alternatives in unions.items():
        each = list(alternatives.values())
        if any(len(fault.path) > len(union) for one in each for fault in one):
            each = [_intended(one, tags, depth + 1) for one in each]
            found.update(map(id, _of_nearest(union, each, tags)))
        else:
            found.update(map(id, chain.from_iterable(each)))
    return [fault for fault in faults if id(fault) in found]


def _of_nearest(
    union: Path, alternatives: list[list[Fault]], tags: Container[Path]
) -> Iterable[Fault]:
    """Return the faults of the alternatives of a union to which a value is nearest.

    These accept its type and its tag, and have the fewest faults. If several remain, which differ
    in the places of their faults, it is the missing or wrong tag; without one, it is the first.
    """
    inside = [each for each in alternatives if all(len(one.path) > len(union) for one in each)]
    if not inside:
        return chain.from_iterable(alternatives)
    tagged = [
        each
        for each in inside
        if not any(one.keyword == "enum" and one.path in tags for one in each)
    ]
    fewest = min(map(len, tagged or inside))
    nearest = [each for each in tagged or inside if len(each) == fewest]
    places = [frozenset(one.path for one in each) for each in nearest]
    if len(set(places)) == 1:
        return chain.from_iterable(nearest)
    shared = frozenset[Path].intersection(*places)
    choices = [
        one
        for one in chain.from_iterable(nearest)
        if one.path in shared and one.keyword in {"enum", "missing"}
    ]
    return choices or nearest[0]


def _lengths(fault: Fault) -> range:
    return range(len(fault.path) + 1)


def _is_null(fault: Fault) -> bool:
    """Return whether a fault only says that a value is not `null`: the value of an optional."""
    return fault.keyword == "type" and fault.limit == "null"


_PHRASES = {
    "minimum": "a number greater than or equal to {}",
    "exclusiveMinimum": "a number greater than {}",
    "maximum": "a number less than or equal to {}",
    "exclusiveMaximum": "a number less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "a string that matches {!r}",
}


def _phrase(fault: Fault, value: Any, lookup: SchemaLookup) -> str:
    if fault.keyword == "type":
        return type_words([fault.limit])
    if fault.keyword == "enum":
        words = lookup.words(fault.path, value)
        return words if words != "a value" else fault.message or words
    phrase = _PHRASES.get(fault.keyword)
    if phrase is None or fault.limit is None:
        return fault.message or "another value"
    if fault.limit == 1:
        phrase = phrase.removesuffix("s")
    if not hasattr(fault.limit, "__float__"):  # a date or a duration
        phrase = phrase.replace("a number", "a value")
    return shorten(phrase.format(fault.limit), 160)


_LEAVE_OUT = "leave it out"


def _nearest(key: str, known: list[str], used: Container[str] = ()) -> str:
    """Return which key is meant; among equally near ones, prefer one without a value."""
    known = [name for name in known if name != key]  # another alternative of a union has it
    if not known:
        return _LEAVE_OUT
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(b=key[:64])

    def similarity(name: str) -> tuple[float, bool]:
        matcher.set_seq1(name)
        return matcher.ratio(), name not in used

    nearest = max(known, key=similarity)
    lowered = {name.lower().replace("_", ""): name for name in known}
    alike = lowered.get(key.lower().replace("_", "").replace("-", ""))
    match = nearest if similarity(nearest)[0] >= _SIMILAR else alike
    if match:
        return f"did you mean {match!r}?"
    return "the known keys are " + shorten(", ".join(known), 120)


_SIMILAR = 0.6
"""The similarity, of 1, from which on a key is likely to be a misspelling of another."""


def _line(problem: ArgumentProblem) -> str:
    text = describe_problem(problem)
    return text if problem.path else f"{format_path(())}: {text}"


def describe_problem(problem: ArgumentProblem) -> str:
    """Return a problem as text, with its place if it is inside of the value."""
    where = f"{format_path(problem.path)}: " if problem.path else ""
    if problem.kind == "unknown_key":
        return f"{where}unknown, {problem.expected}"
    if problem.kind == "missing":
        return f"{where}missing, expected {problem.expected}"
    return f"{where}expected {problem.expected}, got {problem.got}"


_WORD = re.compile(r"\w{1,64}")


def format_path(path: Sequence[str | int]) -> str:
    """Return a path as code: `location.points[3].lat`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _WORD.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{describe_value(step)}]"
    return shorten(text, 120) or "arguments"


_SURROGATE = (
    "the text has half of a surrogate pair (\\ud800 to \\udfff), which is not a character; "
    "write characters beyond \\uffff as they are or as a whole pair"
)


def syntax_reason(text: str, reason: str) -> str:
    """Return why a text is not JSON.

    Args:
        text: The text.
        reason: The message of the parser.
    """
    if text.startswith("\ufeff"):
        return "the text begins with a byte order mark (U+FEFF), which JSON does not allow"
    if text.lstrip().startswith("```"):
        return "the JSON is wrapped in a code fence (```); send the bare object"
    if "surrogate" in reason or "hex escape" in reason or "Expected bytes" in reason:
        return f"{_SURROGATE} ({reason})"
    if "recursion limit" in reason:
        return "arrays and objects are nested too deep"
    if "EOF" in reason:
        return f"the JSON is incomplete, it ends too early ({reason})"
    if "trailing characters" in reason:
        return f"something follows after the JSON object ({reason})"
    return f"not valid JSON ({reason})"
