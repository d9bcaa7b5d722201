"""Fuzzes schemas: each declaration works as published, for every provider, or says why not."""

from __future__ import annotations

import asyncio
import json
import time
import traceback
import warnings
from typing import TYPE_CHECKING, Any, cast

import jsonschema
import jsonschema_rs

from agents_tools import FunctionTool, ModelBehaviorError, UserError, function_tool
from agents_tools.schema import StrictFallbackWarning
from agents_tools.wire.project import PROVIDERS, Projection, project
from tests.soak import _made_shapes
from tests.soak._made_cases import Cases
from tests.soak._made_docstrings import a_docstring
from tests.soak._made_schemas import a_raw_schema, a_value_of
from tests.soak._made_texts import spoiled_value, written
from tests.soak._made_types import MadeTool, a_tool
from tests.soak.campaign import Budget, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

__all__ = ["run"]

Wrong = tuple[str, str] | None
"""The kind of what is wrong, and what it is."""

_UNSAYABLE = frozenset(
    {
        *("minLength", "maxLength", "pattern", "format", "uniqueItems", "minItems", "maxItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("propertyNames", "minProperties", "maxProperties"),
    }
)
"""Keywords that a provider may not know, and that are told in words then."""
_NOT_STRICT = frozenset(
    {
        *("oneOf", "allOf", "not", "if", "then", "else", "patternProperties", "default"),
        *("dependentRequired", "dependentSchemas", "prefixItems", "minLength", "maxLength"),
        *("uniqueItems", "propertyNames", "unevaluatedProperties", "discriminator", "contains"),
    }
)
_NOT_ANTHROPIC = frozenset({*_UNSAYABLE - {"format", "minItems"}, *_NOT_STRICT - {"default"}})
_IN_WORDS = ("with the same structure as its parent", "(enum ", "(const ", "(not ")
"""How a description says what a provider has no keyword for."""
_SLOW = 1.0
"""Seconds that no declaration of this size may take."""


def run(budget: Budget) -> Outcome:
    """Declare tools in many ways, and look at what is published of them."""
    cases = Cases("fuzz_schemas", budget)
    ways = (_check_random_tool, _docstring, _signature, _raw_schema, _raw_schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StrictFallbackWarning)
        for number, rng in cases:
            ways[number % len(ways)](cases, rng)
    return cases.outcome()


def _try(cases: Cases, way: str, program: str, check: Callable[[], Wrong]) -> None:
    """Look at one declaration; a `UserError` is an answer, if it says more than nothing."""
    cases.count += 1
    began = time.thread_time()
    try:
        wrong = check()
        cases.add(f"{way}: work")
    except UserError as error:
        cases.add(f"{way}: refused")
        wrong = _of_error(str(error))
    except Exception as error:  # noqa: BLE001 - what is looked for
        wrong = _place_of(error), f"it raised {error!r} in {_place_of(error)}"
    took = time.thread_time() - began
    if wrong is None and took > _SLOW + len(program) * 2e-5:
        wrong = "slow", f"it took {took:.2f} s for {len(program)} characters"
    if wrong is not None:
        cases.found(f"{way}: {wrong[0]}", wrong[1][:2_000], way, program[:20_000])


def _of_error(said: str) -> Wrong:
    if len(said) > 4_000:
        return "long", f"the error has {len(said)} characters"
    if len(said) < 20 or "Traceback" in said:
        return "says nothing", f"the error is {said!r}"
    return None


# --- tools from functions


def _check_random_tool(cases: Cases, rng: Random) -> None:
    try:
        made = a_tool(rng)
    except UserError:
        return
    _try(cases, "functions", made.program, lambda: _faults_of_tool(rng, made))


def _faults_of_tool(rng: Random, made: MadeTool) -> Wrong:
    tool = made.tool.build()
    own = tool.params_json_schema
    jsonschema.Draft202012Validator.check_schema(own)
    samples = [made.arguments(rng) for _ in range(4)]
    good = [value for value in samples if _status(tool, value) == "ok"]
    if not made.picky and len(good) < len(samples):
        bad = next(value for value in samples if value not in good)
        return "refuses its own", f"arguments made for it are refused: {written(bad)}"
    for name, strict, inline in _ways_out(rng):
        projection = project(tool, name, strict, inline_refs=inline)
        place = f"{name}, strict={projection.strict}, inline_refs={inline}"
        wrong = _of_projection(rng, tool, projection, name, good)
        if wrong is not None:
            return f"{wrong[0]} ({name})", f"{place}: {wrong[1]}"
    return None


def _ways_out(rng: Random) -> Iterator[tuple[str, bool | None, bool]]:
    for name in PROVIDERS:
        yield name, True, False
        yield name, rng.choice((None, False)), rng.random() < 0.5


def _status(tool: FunctionTool[..., Any], value: Any) -> str:
    text = value if isinstance(value, str) else written(value)
    return asyncio.run(tool.call(None, text)).status


def _of_projection(
    rng: Random, tool: FunctionTool[..., Any], projection: Projection, name: str, good: list[Any]
) -> Wrong:
    told = _parameters(projection.wire)
    json.dumps(projection.wire, allow_nan=False)
    jsonschema.Draft202012Validator.check_schema(told)
    if told.get("type", "object") != "object":
        return "no object", f"the root is no object: {told}"
    if projection.strict and (fault := _not_strict(told, anthropic=not name.startswith("openai"))):
        return "not strict", f"{fault} in {json.dumps(told)}"
    validator = jsonschema_rs.validator_for(told)
    own = tool.params_json_schema
    exact = jsonschema_rs.validator_for(own)
    own_names = set(told.get("properties", ())) == set(own["properties"])
    if not projection.strict and own_names:
        for value in good:
            if _without_nulls(value) and exact.is_valid(value) and not validator.is_valid(value):
                return "refuses", f"it forbids {written(value)} in {json.dumps(told)}"
    loose = jsonschema_rs.validator_for(_unconstrained(own))
    if any(word in json.dumps(told) for word in _IN_WORDS):
        return None
    for _ in range(4):
        value = a_value_of(rng, told, told)
        if not isinstance(value, dict) or not _valid(validator, value):
            continue
        back = projection.decode(written(value))
        if not loose.is_valid(json.loads(back)):
            return "allows more", f"it allows {written(value)}, which the tool forbids: {told}"
    return None


def _parameters(wire: dict[str, Any]) -> dict[str, Any]:
    """Find the schema in a definition."""
    spec = wire.get("toolSpec", wire.get("function", wire))
    for key in ("parameters", "parametersJsonSchema", "input_schema", "inputSchema"):
        if key in spec:
            return spec[key].get("json", spec[key]) if key == "inputSchema" else spec[key]
    return {"type": "object", "properties": {}}


def _valid(validator: Any, value: Any) -> bool:
    try:
        return bool(validator.is_valid(value))
    except ValueError:
        return False


def _without_nulls(value: Any) -> bool:
    return "null" not in written(value)


def _unconstrained(schema: Any, *, names: bool = False) -> Any:
    """Leave out of a schema what may only be told in words."""
    if isinstance(schema, list):
        return [_unconstrained(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    held = cast("dict[str, Any]", schema)
    if not names and held.get("const", held.get("enum")) is not None:
        return held
    if not names and "prefixItems" in held:
        return {"type": "array"}
    return {
        ("anyOf" if key == "oneOf" and not names else key): _unconstrained(
            one, names=not names and key in {"properties", "$defs"}
        )
        for key, one in held.items()
        if names or key not in _UNSAYABLE
    }


def _not_strict(schema: Any, *, anthropic: bool) -> str | None:
    """Return what a strict mode refuses, as the providers document it."""
    if not isinstance(schema, dict):
        return f"a schema that is {schema!r}"
    told = cast("dict[str, Any]", schema)
    forbidden = told.keys() & (_NOT_ANTHROPIC if anthropic else _NOT_STRICT)
    if forbidden:
        return f"the keyword {min(forbidden)}"
    if not told.keys() & {"type", "anyOf", "$ref", "enum", "const"}:
        return f"a schema without a type: {told}"
    if "$ref" in told and len(told) > 1:
        return f"a reference with company: {told}"
    if told.get("type") == "object":
        if told.get("additionalProperties") is not False:
            return f"an open object: {told}"
        if not anthropic and set(told.get("required", ())) != set(told.get("properties", ())):
            return f"an optional property: {told}"
    below = [*told.get("anyOf", ()), *told.get("properties", {}).values()]
    below += [*told.get("$defs", {}).values(), *([told["items"]] if "items" in told else [])]
    return next(filter(None, (_not_strict(one, anthropic=anthropic) for one in below)), None)


# --- docstrings and signatures


def _docstring(cases: Cases, rng: Random) -> None:
    marker = f"Find what nobody else has found in {rng.getrandbits(30):x} years."
    doc = a_docstring(rng, marker)
    _try(cases, "docstrings", repr(doc), lambda: _of_docstring(doc, marker))


def _of_docstring(doc: str, marker: str) -> Wrong:
    async def made(x: int, y: str = "", query: str | None = None) -> str:
        return f"{x}{y}{query}"

    made.__doc__ = doc
    tool = function_tool(made)
    began = time.thread_time()
    tool.build()
    took = time.thread_time() - began
    if took > 0.3 + len(doc) * 2e-5:
        return "slow", f"reading took {took:.2f} s for {len(doc)} characters"
    if marker not in tool.description:
        return "lost", f"the first sentence is not in the description {tool.description[:500]!r}"
    jsonschema.Draft202012Validator.check_schema(tool.params_json_schema)
    if set(tool.params_json_schema["properties"]) != {"x", "y", "query"}:
        return "parameters", f"there are other parameters: {tool.params_json_schema}"
    json.dumps(project(tool, "openai_chat").wire).encode()
    return None


_ODD_TYPES = (
    *(
        "int",
        "str",
        "'int'",
        "'Missing'",
        "Missing",
        "5",
        "'a b'",
        "''",
        "...",
        "()",
        "[int]",
        "{}",
    ),
    *("lambda: 0", "print", "type", "type[int]", "object()", "Literal[()]", "Literal[1.5]"),
    *("abc.Callable[[int], str]", "complex", "range", "slice", "memoryview", "Exception", "tuple"),
    *("list['Missing']", "dict[list, int]", "dict[Place, int]", "set[dict]", "Union[int]"),
    *("Annotated[int, object()]", "Annotated[int, Field(gt='a')]", "Optional['Node']", "tuple[()]"),
    *("abc.Iterator[int]", "abc.Generator", "bytearray", "NotRequired[int]", "Pet", "T", "Page"),
    *("Annotated[str, Field(pattern='[')]", "Annotated[int, Field(alias='other')]", "float | None"),
    *("Annotated[str, Field(min_length=5, max_length=1)]", "Annotated[int, Field(default=3)]"),
    *("dt.tzinfo", "abc.Hashable", "BaseModel", "RunContextWrapper", "TypedDict", "NewType", "Any"),
)
_ODD_DEFAULTS = (
    *("None", "0", "''", "...", "object()", "[1]", "{'a': object()}", "float('nan')", "print"),
    *("Field(default=1)", "Field(default_factory=list)", "b'\\xff'", "Colour.RED", "10**400"),
)
_ODD_NAMES = (
    "a",
    "b",
    "self",
    "cls",
    "ctx",
    "context",
    "_private",
    "größe",
    "__x",
    "kwargs",
    "args",
)


def _signature(cases: Cases, rng: Random) -> None:
    kinds = ("{}", "{}", "{}, /", "*, {}", "*{}", "**{}")
    written: list[str] = []
    for name in rng.sample(_ODD_NAMES, rng.randint(0, 3)):
        kind = rng.choice(kinds)
        one = f"{name}: {rng.choice(_ODD_TYPES)}" if rng.random() < 0.9 else name
        if "*{" not in kind and "**" not in kind and rng.random() < 0.4:
            one += f" = {rng.choice(_ODD_DEFAULTS)}"
        written.append(kind.format(one))
    result = rng.choice(("", f" -> {rng.choice(_ODD_TYPES)}"))
    head = rng.choice(("async def", "def"))
    program = (
        f"@function_tool\n{head} made({', '.join(written)}){result}:\n"
        '    """Do something."""\n    return None\n'
    )
    try:
        code = compile(program, "<made up>", "exec", dont_inherit=True)
    except SyntaxError:
        return
    names = {name: getattr(_made_shapes, name) for name in (*_made_shapes.__all__, "T", "NewType")}
    names["__name__"] = _made_shapes.__name__

    def check() -> Wrong:
        try:
            exec(code, names)  # noqa: S102 - it is made here
        except (NameError, TypeError, AttributeError) as error:
            if isinstance(error, UserError) or _is_of_the_library(error):
                raise
            return None  # Python itself does not take the annotation
        tool: FunctionTool[..., Any] = names["made"].build()
        jsonschema.Draft202012Validator.check_schema(tool.params_json_schema)
        json.dumps(tool.params_json_schema, allow_nan=False)
        for name in PROVIDERS:
            project(tool, name)
        return None

    _try(cases, "signatures", program, check)


def _place_of(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {last.name} of {last.filename.rpartition('/')[2]}"


def _is_of_the_library(error: BaseException) -> bool:
    return traceback.extract_tb(error.__traceback__)[-1].filename != "<made up>"


# --- tools from raw schemas


def _raw_schema(cases: Cases, rng: Random) -> None:
    schema = a_raw_schema(rng)
    _try(cases, "raw schemas", repr(schema), lambda: _of_raw_schema(rng, schema))


async def _body(_context: Any, args_json: str) -> str:
    return args_json


def _of_raw_schema(rng: Random, schema: dict[str, Any]) -> Wrong:
    tool = FunctionTool.from_schema(name="made", schema=schema, on_invoke_tool=_body).build()
    for name in PROVIDERS:
        for strict in (None, True):
            try:
                told = _parameters(project(tool, name, strict).wire)
                json.dumps(told, allow_nan=False)
            except UserError as error:
                if (wrong := _of_error(str(error))) is not None:
                    return wrong
    root = tool.params_json_schema
    for _ in range(6):
        value = a_value_of(rng, root, root)
        if rng.random() < 0.4:
            value = spoiled_value(rng, value)
        if isinstance(value, dict) and (wrong := _of_call(tool, root, value)) is not None:
            return wrong
    return None


def _of_call(tool: FunctionTool[..., Any], root: dict[str, Any], value: Any) -> Wrong:
    text = written(value)
    outcome = asyncio.run(tool.call(None, text))
    if outcome.status not in {"ok", "invalid_args"}:
        return outcome.status, f"{text} ended as {outcome.status}: {outcome.error!r}"
    if outcome.status != "ok" and len(str(outcome.output)) > 2_048:
        return "long", f"the answer has {len(str(outcome.output))} characters"
    if outcome.status == "ok":  # values can be converted, but to what the schema allows
        is_wrong = _allowed(root, json.loads(outcome.value)) is False
    else:
        problems = outcome.error.problems if isinstance(outcome.error, ModelBehaviorError) else ()
        is_closed = any(one.kind == "unknown_key" or not one.path for one in problems)
        is_wrong = not is_closed and _allowed(root, value) is True
    if is_wrong:
        return "other verdict", f"{text} ended as {outcome.status}: {outcome.output}"
    return None


def _allowed(root: dict[str, Any], value: Any) -> bool | None:
    """Ask another validator; `None` where it cannot say."""
    if any(word in json.dumps(root) for word in ("$dynamicRef", "$anchor", "$id", "$schema")):
        return None
    if any(word in json.dumps(value) for word in ("NaN", "Infinity")):  # JSON has no such numbers
        return None
    try:
        return bool(cast("Any", jsonschema.Draft202012Validator(root)).is_valid(value))
    except Exception:  # noqa: BLE001 - a pattern or a reference that it does not know
        return None
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # references in a circle, too deep for rpds
            return None
        raise
