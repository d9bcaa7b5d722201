"""One fault at a time in a correct call."""

from __future__ import annotations

import random
import string
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.benchmarks.bfcl.cases import Case

__all__ = ["KINDS", "Fault", "faults"]

KINDS = ("missing", "type", "enum", "extra", "misspelled")
WRONG = {
    "string": (17, 2.5, True, ["x"], {"x": 1}),
    "integer": ("seven", 2.5, True, ["x"], {"x": 1}),
    "number": ("seven", True, ["x"], {"x": 1}),
    "boolean": ("perhaps", 2, ["x"], {"x": 1}),
    "array": ("a;b", 5, True, {"x": 1}),
    "object": ("x", 5, True, ["x"]),
}
"""Values for each type that cannot be converted to it."""
UNRELATED = "no such choice"
EXTRA = ("surprise", "reasoning", "verbose_output", "x_request_id")

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken call.

    Attributes:
        kind: One of `KINDS`.
        path: The location of the fault.
        arguments: The arguments with the fault.
        right: The right key or value, if the fault is an edit of it.
    """

    kind: str
    path: Path
    arguments: dict[str, Any]
    right: str = ""

    @property
    def key(self) -> str:
        """The key at the location, or that of the array which has it."""
        return next(step for step in reversed(self.path) if isinstance(step, str))


def faults(case: Case) -> Iterator[Fault]:
    """Yield a correct call with each fault that it can have."""
    chance = random.Random(f"{case.id} {case.tool}")  # noqa: S311 - repeatable, no secret
    for path, value, schema in _places((), case.arguments, case.schema):
        if path:
            yield from _wrong_values(case, path, value, schema, chance)
        if isinstance(value, dict) and schema.get("additionalProperties") is False:
            yield from _wrong_keys(case, path, value, schema, chance)


def _places(
    path: Path, value: Any, schema: dict[str, Any]
) -> Iterator[tuple[Path, Any, dict[str, Any]]]:
    """Yield each value that the schema describes, of an array only the last item."""
    yield path, value, schema
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for key in value:
            if key in known:
                yield from _places((*path, key), value[key], known[key])
    if isinstance(value, list) and value and "items" in schema:
        yield from _places((*path, len(value) - 1), value[-1], schema["items"])


def _wrong_values(
    case: Case, path: Path, value: Any, schema: dict[str, Any], chance: random.Random
) -> Iterator[Fault]:
    choices: list[Any] = schema.get("enum", [])
    wrong = [one for one in WRONG.get(schema.get("type", ""), ()) if one not in choices]
    if wrong:
        yield _set("type", case, path, chance.choice(wrong))
    if not choices:
        return
    yield _set("enum", case, path, UNRELATED if isinstance(value, str) else _beyond(choices))
    if isinstance(value, str) and (edited := _misspelled(value, choices, chance)):
        yield _set("enum", case, path, edited, right=value)


def _beyond(choices: list[Any]) -> int:
    return 1 + max(int(one) for one in choices if isinstance(one, int | float))


def _wrong_keys(
    case: Case, path: Path, value: dict[str, Any], schema: dict[str, Any], chance: random.Random
) -> Iterator[Fault]:
    known = schema["properties"]
    for key in schema.get("required", ()):
        if key in value:
            yield Fault("missing", (*path, key), _changed(case, path, _without(key)))
    extra = chance.choice([key for key in EXTRA if key not in known])
    yield _set("extra", case, (*path, extra), 1)
    for key in value:
        if key in known and (edited := _misspelled(key, known, chance)):
            arguments = _changed(case, path, _renamed(key, edited))
            yield Fault("misspelled", (*path, edited), arguments, key)


def _misspelled(word: str, known: Any, chance: random.Random) -> str:
    """Return a word with one edit, chosen among those that are not known words."""
    at, letter = chance.randrange(len(word)), chance.choice(string.ascii_lowercase)
    edits = [
        word[:at] + word[at + 1 :],
        word[:at] + word[at] + word[at:],
        word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :],
        word[:at] + letter + word[at + 1 :],
    ]
    chance.shuffle(edits)
    return next((one for one in edits if one and one != word and one not in known), "")


def _set(kind: str, case: Case, path: Path, value: Any, right: str = "") -> Fault:
    def change(holder: Any) -> None:
        holder[path[-1]] = value

    return Fault(kind, path, _changed(case, path[:-1], change), right)


def _without(key: str) -> Callable[[Any], None]:
    def change(holder: Any) -> None:
        del holder[key]

    return change


def _renamed(key: str, other: str) -> Callable[[Any], None]:
    def change(holder: Any) -> None:
        items = [(other if one == key else one, value) for one, value in holder.items()]
        holder.clear()
        holder.update(items)

    return change


def _changed(case: Case, path: Path, change: Callable[[Any], None]) -> dict[str, Any]:
    """Return a copy of the arguments with a change in the object or array at a path."""
    arguments = deepcopy(case.arguments)
    holder: Any = arguments
    for step in path:
        holder = holder[step]
    change(holder)
    return arguments
