"""Fuzzes arguments: whatever a model writes, a call ends as `ok` or `invalid_args`."""

from __future__ import annotations

import asyncio
import copy
import json
import re
import time
from typing import TYPE_CHECKING, Any, cast

import jsonschema
import jsonschema_rs
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from agents_tools import ModelBehaviorError, UserError
from tests.soak import _made_shapes
from tests.soak._made_cases import Cases
from tests.soak._made_texts import a_bomb, smaller, spoiled_text, spoiled_value, written
from tests.soak._made_types import MadeTool, a_tool
from tests.soak.campaign import Budget, Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from random import Random

    from agents_tools.tool import CallOutcome

__all__ = ["run"]

ModelType = type(BaseModel)

MOST_OF_A_MESSAGE = 2_048
TEXTS = 60
"""Texts for each tool."""
SECRET = "hunter2-is-what-nobody-may-read"  # noqa: S105 - nobody's
_FAR = re.compile(r"[eE]\+?[0-9]{2}|[0-9]{19}\.|[0-9]{309}")
_BOUNDS = {
    "too_large",
    "too_deep",
    "too_many_values",
    "number_too_long",
    "duplicate_key",
    "json_syntax",
}
"""Kinds of problems that a JSON Schema knows nothing of."""


def run(budget: Budget) -> Outcome:
    """Send made-up texts to made-up tools."""
    cases = Cases("fuzz_arguments", budget)
    asyncio.run(_run(cases))
    return cases.outcome()


async def _run(cases: Cases) -> None:
    for _number, rng in cases:
        try:
            made = a_tool(rng)
            checker = _Checker(made, cases)
        except UserError as error:
            cases.add("tools that cannot be declared")
            cases.counted["the last of them"] = str(error)[:300]
            continue
        cases.add("tools")
        for text in _texts(rng, made):
            cases.count += 1
            await checker.check(text)
            if cases.left < 0:
                return


def _texts(rng: Random, made: MadeTool) -> Iterator[str]:
    names = tuple(name for name, _, _ in made.parameters)
    for number in range(TEXTS):
        value: Any = made.arguments(rng)
        for _ in range(rng.choice((0, 1, 1, 2, 4))):
            value = spoiled_value(rng, value)
        text = written(value)
        for _ in range(rng.choice((0, 0, 1, 3))):
            text = spoiled_text(rng, text)
        yield text
        if number % 20 == 0:
            yield a_bomb(rng, names)
    if "Login" in made.program:
        yield from _secret_texts(rng, made)


def _secret_texts(rng: Random, made: MadeTool) -> Iterator[str]:
    """Yield arguments whose passwords, of any type, contain one secret text."""
    for _ in range(TEXTS):
        hidden = rng.choice((SECRET, [SECRET], {"a": SECRET}, [[SECRET]], {SECRET: 1}))
        value = _with_secret(made.arguments(rng), hidden)
        if rng.random() < 0.5:
            value["surely unknown"] = 1
        yield written(value)


def _with_secret(value: Any, hidden: Any) -> Any:
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return {
            key: hidden if key == "password" else _with_secret(one, hidden)
            for key, one in held.items()
        }
    if isinstance(value, list):
        return [_with_secret(one, hidden) for one in cast("list[Any]", value)]
    return value


class _Checker:
    """Holds what comes of a text against what an independent validator says of it.

    Args:
        made: The tool.
        cases: Where findings go.
    """

    def __init__(self, made: MadeTool, cases: Cases) -> None:
        self._made = made
        self._cases = cases
        made.tool.build()
        self._schema = made.tool.params_json_schema
        jsonschema.Draft202012Validator.check_schema(self._schema)
        self._closed = _closed(self._schema)
        self._exact = jsonschema_rs.validator_for(self._closed, validate_formats=True)
        self._published = jsonschema_rs.validator_for(self._schema)
        lenient = _Lenient("(BaseModel" in made.program or _has_models(self._schema))
        self._lenient = jsonschema_rs.validator_for(lenient.root(self._schema))

    async def check(self, text: str) -> None:
        """Call the tool with a text."""
        found = await self._seen(text)
        if found is None or self._cases.known(found[0]):
            return
        kind, what = found

        def still(other: str) -> bool:
            again = asyncio.run(self._seen(other))
            return again is not None and again[0] == kind

        if len(text) < 20_000 and kind != "secret":
            text = await asyncio.to_thread(smaller, text, still)
            kind, what = await self._seen(text) or found
        shown = text if len(text) < 2_000 else f"{text[:200]}… ({len(text)} characters)"
        program = f"{self._made.program}\n\n# called with\n{shown!r}"
        self._cases.found(kind, what, "arguments", program)

    async def _seen(self, text: str, *, again: bool = False) -> tuple[str, str] | None:
        """Return the fault and its kind; a slow call must be slow `again`."""
        self._made.ran.clear()
        began = time.thread_time()
        try:
            outcome = await self._made.tool.call(None, text)
        except Exception as error:  # noqa: BLE001 - what is looked for
            return f"raised {type(error).__name__}", f"calling raised {error!r}"
        took = time.thread_time() - began
        if took > 0.2 + len(text) * 5e-6:
            if not again:  # the first call of a process imports modules
                return await self._seen(text, again=True)
            return "slow", f"the call took {took:.2f} s for {len(text)} characters"
        if outcome.status == "ok":
            return self._of_accepted(text)
        if outcome.status == "invalid_args":
            return self._of_refused(text, outcome)
        return f"status {outcome.status}", f"the call ended as {outcome.status}: {outcome.error!r}"

    def _of_accepted(self, text: str) -> tuple[str, str] | None:
        self._cases.add("accepted")
        if len(self._made.ran) != 1:
            return "runs", f"the body ran {len(self._made.ran)} times for one accepted call"
        given = _as_json(self._made.ran[0], self._schema.get("required", ()))
        if given is not None and not self._published.is_valid(given):
            return "broke the schema", f"the function got {given}, which the schema forbids"
        sent = _sent(text, strict=False)
        if sent is _BROKEN:
            return "read what is no JSON", "the call was accepted, and its text is no JSON"
        if not self._lenient.is_valid(sent):
            return "too lenient", "the call was accepted, and no documented leniency says why"
        return None

    def _of_refused(self, text: str, outcome: CallOutcome) -> tuple[str, str] | None:
        self._cases.add("refused")
        said = str(outcome.output)
        error = outcome.error
        if self._made.ran:
            return "ran", "the body ran in a call that was refused"
        if len(said) > MOST_OF_A_MESSAGE:
            return "long", f"the answer has {len(said)} characters"
        if SECRET in said:
            return "secret", f"the answer shows a secret: {said}"
        if "Traceback" in said or "pydantic" in said or 'File "' in said:
            return "foreign", f"the answer speaks of the inside: {said}"
        if not isinstance(error, ModelBehaviorError) or not error.problems:
            return "no problems", f"the error is {error!r}, with no problem that has a path"
        if any(problem.kind in _BOUNDS for problem in error.problems) or self._made.picky:
            return None
        if "ctx" in text and "**more" in self._made.program:
            return None  # a further argument cannot be called as what the function has already
        sent = _sent(text)
        if _FAR.search(text):  # beyond 64 bits with an exponent, or beyond what is finite
            return None
        if sent is not _BROKEN and isinstance(sent, dict) and self._holds(sent):
            return "too strict", f"the schema allows what was refused: {said}"
        return None

    def _holds(self, value: Any) -> bool:
        """Whether two independent validators agree that a value keeps the schema."""
        try:
            if not self._exact.is_valid(value):
                return False
        except ValueError:  # a number that it cannot hold
            return False
        checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
        validator = jsonschema.Draft202012Validator(self._closed, format_checker=checker)
        return bool(cast("Any", validator).is_valid(value))


def _as_json(values: dict[str, Any], needed: Collection[str]) -> Any:
    """Write what a function got as JSON; `None` where there is no way back from it."""
    more = values.get("more", {})
    given = {
        name: one
        for name, one in values.items()
        if name != "more" and (one is not None or name in needed)
    }
    try:
        plain = to_jsonable_python(given | more, by_alias=True)
    except ValueError:
        return None
    text = json.dumps(plain)
    hidden = "**********" in text or "NaN" in text or "Infinity" in text
    return None if hidden else plain


class _Broken:
    """A text that is no JSON, repeats a key, or holds what JSON does not have."""


_BROKEN = _Broken()


def _sent(text: str, *, strict: bool = True) -> Any:
    """Read a text with the standard library, as a model may have meant it.

    Args:
        text: The text.
        strict: Whether `NaN` and the like are no JSON, also where nobody reads the value.
    """
    constant = _refuse if strict else str
    if text.strip() in {"", "null"}:
        return {}
    try:
        value = json.loads(text, object_pairs_hook=_pairs, parse_constant=constant)
    except (ValueError, RecursionError):
        return _BROKEN
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return _sent(value, strict=strict)
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        message = "a repeated key"
        raise ValueError(message)
    return dict(pairs)


def _refuse(constant: str) -> float:
    raise ValueError(constant)


def _closed(schema: Any) -> Any:
    """Let no object have keys that its schema does not name: what of these is taken is not told."""
    if isinstance(schema, list):
        return [_closed(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    told = {key: _closed(one) for key, one in cast("dict[str, Any]", schema).items()}
    if schema.get("type") == "object" and "properties" in schema:
        told.setdefault("additionalProperties", False)
    return told


# --- what docs/explanation/schema-and-validation.md says is accepted besides

_AS_TEXT: dict[str, dict[str, Any]] = {
    "integer": {"type": "string", "pattern": r"^\s*[-+]?[0-9_]+(\.0*)?\s*$"},
    "number": {
        "type": "string",
        "pattern": r"^\s*[-+]?([0-9_]+\.?[0-9_]*|\.[0-9_]+)([eE][-+]?[0-9_]+)?\s*$",
    },
    "boolean": {"type": "string", "pattern": "^([tT][rR][uU][eE]|[fF][aA][lL][sS][eE])$"},
    "array": {"type": "string", "pattern": r"^\s*\["},
    "object": {"type": "string", "pattern": r"^\s*\{"},
}
_ALSO_NUMBERS = {"date-time", "time", "duration", "date"}


_OF_MODELS = {
    "integer": {"type": "boolean"},
    "number": {"type": ["boolean", "string"]},
    "boolean": {"type": ["string", "number"]},
}
"""What a pydantic model takes besides: it keeps its own configuration."""


def _has_models(schema: dict[str, Any]) -> bool:
    """Whether there is a pydantic model among the types that every tool may take."""
    named: set[str] = {name.partition("_")[0] for name in schema.get("$defs", {})}
    kinds = {name for name in named if isinstance(getattr(_made_shapes, name, None), ModelType)}
    return bool(kinds)


class _Lenient:
    """Lets a schema take what is taken for what it says.

    Args:
        models: Whether there are pydantic models in it.
    """

    def __init__(self, models: bool) -> None:
        self._models = models

    def root(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the part of a schema that describes the arguments of a tool."""
        return self._inside(schema)

    def _value(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        told = self._inside(cast("dict[str, Any]", schema))
        kind = told.get("type")
        arms: list[Any] = [told]
        if kind in _AS_TEXT:
            arms.append(_AS_TEXT[kind])
        choices = told["enum"] if "enum" in told else [told["const"]] if "const" in told else []
        if kind != "boolean" and any(isinstance(one, bool) for one in choices):
            arms.append(_AS_TEXT["boolean"])
        if self._models and kind in _OF_MODELS:
            arms.append(_OF_MODELS[kind])
        if "prefixItems" in told:  # a named tuple may be an object as well
            nullable = [{"anyOf": [one, {"type": "null"}]} for one in told["prefixItems"]]
            told["prefixItems"] = nullable
            arms.append({"type": "object"})
        if schema.get("format") in _ALSO_NUMBERS:
            arms.extend(({"type": "number"}, _AS_TEXT["number"]))
        return told if len(arms) == 1 else {"anyOf": arms}

    def _inside(self, schema: dict[str, Any]) -> dict[str, Any]:
        told = copy.copy(schema)
        for key in ("format", "uniqueItems", "discriminator", "writeOnly"):
            told.pop(key, None)
        for key in ("properties", "$defs", "patternProperties"):
            if key in told:
                told[key] = {name: self._value(one) for name, one in told[key].items()}
        for key in ("items", "additionalProperties", "propertyNames"):
            if key in told:
                told[key] = self._value(told[key])
        for key in ("anyOf", "oneOf", "prefixItems"):
            if key in told:
                arms = [self._value(one) for one in told.pop(key)]
                told["anyOf" if key == "oneOf" else key] = arms
        needed = told.get("required", ())
        for name, one in told.get("properties", {}).items():
            if name not in needed:  # null means the default
                told["properties"][name] = {"anyOf": [one, {"type": "null"}]}
        return told
