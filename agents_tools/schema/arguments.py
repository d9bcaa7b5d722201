"""Reads a model's JSON arguments into the arguments of a call, or says what is wrong with them."""

from __future__ import annotations

import functools
import re
import typing
from dataclasses import dataclass
from typing import Any

from agents_tools.errors import ArgumentProblem, ModelBehaviorError, UserError
from agents_tools.schema.callables import EMPTY
from agents_tools.schema.signature import LEFT_OUT
from agents_tools.schema.types import TypeSchema, no_keys, null_means
from agents_tools.text.escape import describe_value, shorten
from agents_tools.text.json_limits import (
    JsonFault,
    check_bounds,
    check_keys,
    harmless,
    may_hold_more_keys,
)
from agents_tools.text.secrets import MASK

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = [
    "ArgumentReader",
    "Field",
    "SchemaReader",
    "TypeReader",
    "arguments_error",
    "unknown_key",
]

Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One argument that a model may give: a parameter and what is known of its values.

    Attributes:
        name: The parameter's name.
        key: The name that the model uses; another one where the parameter has an alias.
        kind: The kind of parameter, as in `inspect.Parameter`.
        leaf: Its type.
        default: What stands in when it is not given; `EMPTY` where it must be given.
        default_factory: Makes what stands in, instead of `default`.
        fill: Whether the default is not the function's own and has to be passed.
        other_keys: Further names that the model may use, of which one may be given.
    """

    name: str
    key: str
    kind: Any
    leaf: TypeSchema
    default: Any = EMPTY
    default_factory: Callable[[], Any] | None = None
    fill: bool = False
    other_keys: tuple[str, ...] = ()

    @property
    def required(self) -> bool:
        """Return whether the model must give it."""
        return self.default is EMPTY and self.default_factory is None


class ArgumentReader:
    """Reads JSON text into the arguments of one tool, by parameter name.

    An argument that is not given is left out, so that the function's own default applies.

    Args:
        tool: The tool's name, for error messages.
        fields: The arguments it takes.
        extras: The type of further arguments, where the tool takes any.
        json_schema: Returns the tool's JSON Schema, for error messages.
        fill: Whether every argument that has a default is filled in.
        reserved: Names that further arguments cannot have: the function has them already.
    """

    def __init__(
        self,
        tool: str,
        fields: Sequence[Field],
        extras: TypeSchema | None,
        json_schema: Callable[[], dict[str, Any]],
        *,
        fill: bool = False,
        reserved: Iterable[str] = (),
    ) -> None:
        self._tool = tool
        self._reserved = tuple(reserved)
        self._fields = fields
        self._extras = extras
        self._json_schema = json_schema
        self._fills = [
            (field.name, field.default_factory or _constantly(field.default))
            for field in fields
            if not field.required and (fill or field.fill) and field.default is not LEFT_OUT
        ]
        self._exact: Any = None
        self.read = self._reader()

    _fast: Callable[[str], Arguments]
    _secret_keys: frozenset[str] | None = None

    def _reader(self) -> Callable[[str], Arguments]:
        # The fast validator reads what is written just as the schema says, and passes over
        # unknown keys. It need not see them: when there are no more colons than keys it has
        # read, no key is unknown and none repeated. Anything else gets a close look.
        validate = self._fast = self._validator(fast=True).validate_json
        count = self._counter()
        look_closely, mend, fills = self._look_closely, self._mend, self._fills
        # Types without depth refuse what nests deeply: its length says whether it is harmless.
        deep = any(leaf.deep or leaf.definitions for leaf in self._leaves())
        from pydantic_core import ValidationError

        def read(text: str) -> Arguments:
            """Read the text.

            Raises:
                ModelBehaviorError: The text is no JSON, or not what the tool accepts.
            """
            try:
                if len(text) > (harmless.nested if deep else harmless.flat):
                    check_bounds(text)
                try:
                    arguments = validate(text)
                except ValidationError:
                    arguments = look_closely(text)
                else:
                    keys = count(arguments)
                    if text.count(":") > keys and may_hold_more_keys(text, keys):
                        arguments = look_closely(text)
            except Exception as error:  # noqa: BLE001 - told apart in `_mend`
                return mend(text, error)
            return arguments

        def read_and_fill(text: str) -> Arguments:
            arguments = read(text)
            for name, make in fills:
                if name not in arguments:
                    arguments[name] = make()
            return arguments

        return read_and_fill if fills else read

    def _leaves(self) -> list[TypeSchema]:
        extras = [self._extras] if self._extras is not None else []
        return [field.leaf for field in self._fields] + extras

    def _validator(self, *, fast: bool) -> Any:
        schema: dict[str, Any] = {
            "type": "typed-dict",
            "fields": {field.name: _field_schema(field, fast=fast) for field in self._fields},
            "extra_behavior": "ignore" if fast else "forbid",
        }
        if (extras := self._extras) is not None:
            schema |= {
                "extra_behavior": "allow",
                "extras_schema": extras.fast if fast else extras.core,
            }
            keys = {key for field in self._fields for key in (field.key, *field.other_keys)}
            for name in self._reserved:
                if name not in keys:
                    schema["fields"][f"reserved {name}"] = _reserved_schema(name)
        return _validator(schema, self._leaves(), fast=fast)

    def _counter(self) -> Callable[[Any], int]:
        return _key_counter(self._fields)

    def _look_closely(self, text: str) -> Arguments:
        """Read a text by all the rules, and look for unknown and repeated keys."""
        if self._exact is None:
            self._exact = self._validator(fast=False)
        check_bounds(text)
        arguments = self._exact.validate_json(text)
        check_keys(text)
        return arguments

    def _mend(self, text: Any, error: Exception | None) -> Arguments:
        """Read what models are known to send for an object; everything else is an error."""
        from pydantic_core import ValidationError

        if not isinstance(text, str):
            return self.read(_as_text(text, self._tool))
        if isinstance(error, JsonFault):
            raise self._fault(error.kind, str(error)) from None
        if text.strip() in {"", "null"}:
            return self.read("{}")
        if error is not None and not isinstance(error, ValidationError):
            raise error  # a validator of the author's failed: the tool's error, not the model's
        if error is not None and (syntax := _syntax_error(text, error)):
            raise self._fault("json_syntax", syntax) from None
        self._check(text)
        data = _parsed(text)
        if isinstance(data, str) and data.lstrip().startswith("{"):
            return self.read(data)
        if not isinstance(data, dict):
            raise self._fault("no_object", f"expected one JSON object, got {describe_value(data)}")
        fields = typing.cast("Arguments", data)
        problems = _problems(error, fields, self)
        mended = _decoded(fields, problems)
        if mended is not None:
            return self.read(mended)
        raise self._error(problems)

    def _check(self, text: str) -> None:
        """Refuse a repeated key before anything is looked up in data that lost it."""
        try:
            check_bounds(text)
            check_keys(text)
        except JsonFault as fault:
            raise self._fault(fault.kind, str(fault)) from None

    def _fault(self, kind: str, message: str) -> ModelBehaviorError:
        problem = ArgumentProblem(path=(), expected="one JSON object", got="", kind=kind)
        return ModelBehaviorError(
            f"Invalid arguments for tool {self._tool!r}: {message}. "
            "Send one JSON object with the tool's parameters.",
            problems=[problem],
        )

    def _error(self, problems: Sequence[ArgumentProblem]) -> ModelBehaviorError:
        return arguments_error(self._tool, problems)

    def known_keys(self, path: Sequence[str | int]) -> list[str]:
        """List the keys that the schema names for the object at a path."""
        found = _schemas_at(self._json_schema(), path)
        return [name for schema in found for name in schema.get("properties", ())]

    def described(self, value: Any, path: Sequence[str | int]) -> str:
        """Describe what stands at a path, without what the schema says is not to be shown."""
        keys = self._secret_keys
        if keys is None:
            keys = self._secret_keys = _secret_keys(self._json_schema())
        root = self._json_schema()
        if not keys.isdisjoint(path) or any(map(_is_secret, _schemas_at(root, path))):
            return "another secret"
        return describe_value(_without(keys, value) if keys else value)

    def settled(self, text: str) -> str:
        """Read a text, and give it back written just as the schema says.

        Raises:
            ModelBehaviorError: The text is no JSON, or not what the tool accepts.
        """
        from pydantic_core import to_json

        value = self.read(text)
        return text if self._as_written(text) else to_json(value, by_alias=True).decode()

    def _as_written(self, text: Any) -> bool:
        from pydantic_core import ValidationError

        try:
            # Strictly, for a pydantic model converts by itself: a text into a number, say.
            typing.cast("Any", self._fast)(text, strict=True)
        except (TypeError, ValidationError):
            return False
        return isinstance(text, str)

    def wanted(self, path: Sequence[str | int]) -> str:
        """Say in words what type the schema asks for at a path."""
        root = self._json_schema()
        words = [_type_in_words(schema) for schema in _schemas_at(root, path)]
        return next(filter(None, words), "a value")


def arguments_error(tool: str, problems: Sequence[ArgumentProblem]) -> ModelBehaviorError:
    """Tell a model what is wrong with its arguments, one line a fault."""
    lines = [f"- {_line(problem)}" for problem in problems[:_MAX_PROBLEMS]]
    if len(problems) > _MAX_PROBLEMS:
        lines.append(f"and {len(problems) - _MAX_PROBLEMS:,} more")
    text = "\n".join([f"Invalid arguments for tool {tool!r}:", *lines])
    return ModelBehaviorError(shorten(text, _MAX_MESSAGE), problems=problems)


def unknown_key(key: str, known: list[str]) -> ArgumentProblem:
    """Return the fault of an argument that the tool does not have."""
    return ArgumentProblem(path=(key,), expected=_nearest(key, known), got="", kind="unknown_key")


_MAX_PROBLEMS = 10
_MAX_MESSAGE = 2_000
_SURROGATE = (
    "the text holds half of a surrogate pair (\\ud800 to \\udfff), which is no character; "
    "write characters beyond \\uffff as they are or as a whole pair"
)


class TypeReader(ArgumentReader):
    """Reads JSON text into an instance of one type that stands for all arguments of a tool.

    Args:
        tool: The tool's name, for error messages.
        leaf: The type: a pydantic model, a dataclass or a TypedDict.
        json_schema: Its JSON Schema.
        strict: Whether a value has to be of the JSON type that the schema says, also where a
            pydantic model would convert it: no text and no boolean for a number.
        other_keys: Keys that mean the same as those that the schema names.
    """

    def __init__(
        self,
        tool: str,
        leaf: TypeSchema,
        json_schema: dict[str, Any],
        *,
        strict: bool = False,
        other_keys: Iterable[str] = (),
    ) -> None:
        self._leaf = leaf
        self._strict = strict
        self._other_keys = frozenset(other_keys)
        super().__init__(tool, [], None, lambda: json_schema)

    def _leaves(self) -> list[TypeSchema]:
        return [self._leaf]

    def _validator(self, *, fast: bool) -> Any:
        made = _validator(self._leaf.fast if fast else self._leaf.core, [self._leaf], fast=fast)
        return _StrictValidation(made) if self._strict else made

    def _counter(self) -> Callable[[Any], int]:
        return self._leaf.count_keys or _nothing

    def _as_written(self, text: Any) -> bool:
        if not super()._as_written(text):
            return False
        others = self._other_keys.difference(self.known_keys(()))
        return not others or others.isdisjoint(_parsed(text))

    def _look_closely(self, text: str) -> Arguments:
        """Refuse unknown keys even where a pydantic model would pass over them."""
        arguments = super()._look_closely(text)
        arms = _schemas_at(self._json_schema(), ())
        further = [arm.get("additionalProperties", _NOT_GIVEN) for arm in arms]
        if all(allowed is _NOT_GIVEN or allowed is False for allowed in further):
            known = list(dict.fromkeys(key for arm in arms for key in arm.get("properties", ())))
            taken = self._other_keys.union(known)
            unknown = [key for key in _parsed(text) if key not in taken]
            if unknown:
                raise self._error(self._unknown(unknown, known))
        return arguments

    def _unknown(self, keys: list[str], known: list[str]) -> list[ArgumentProblem]:
        return [
            ArgumentProblem(
                path=(key,),
                expected=_nearest(key, known) if index < _MAX_PROBLEMS else _LEAVE_OUT,
                got="",
                kind="unknown_key",
            )
            for index, key in enumerate(keys)
        ]


class _StrictValidation:
    """A validator that converts nothing."""

    def __init__(self, validator: Any) -> None:
        self.validate_json: Any = functools.partial(validator.validate_json, strict=True)


class SchemaReader(ArgumentReader):
    """Reads JSON text that a JSON Schema allows into plain JSON values.

    Args:
        tool: The tool's name, for error messages.
        json_schema: The JSON Schema, enforced with jsonschema-rs (the extra `schema`).

    Raises:
        UserError: The extra is not installed, or the schema is none.
    """

    def __init__(self, tool: str, json_schema: dict[str, Any]) -> None:
        try:
            from jsonschema_rs import ValidationError, validator_for
        except ImportError as error:
            raise UserError(
                f"Tool {tool!r} has a raw JSON Schema, which takes the extra `schema` to be "
                'enforced: pip install "agents-tools[schema]". Or give a pydantic type, or '
                "validate_arguments=False and check the arguments in the tool."
            ) from error
        try:
            self._enforce = validator_for(
                json_schema,
                retriever=_fetch_nothing,
                mask="the value" if _secret_keys(json_schema) else None,
            )
        except (ValueError, ValidationError) as error:
            reason = shorten(str(error).strip().partition("\n")[0].removesuffix("."), 300)
            raise UserError(f"The JSON Schema of tool {tool!r} is not valid: {reason}.") from None
        super().__init__(tool, [], None, lambda: json_schema)

    def _as_written(self, text: Any) -> bool:
        return isinstance(text, str) and text.lstrip().startswith("{")

    def _reader(self) -> Callable[[str], Arguments]:
        def read(text: str) -> Arguments:
            """Read the text.

            Raises:
                ModelBehaviorError: The text is no JSON, or not what the schema allows.
            """
            try:
                check_bounds(text)
                value = _parsed(text if text.strip() else "null", allow_inf_nan=False)
            except (AttributeError, TypeError, ValueError) as error:
                if isinstance(error, (JsonFault, TypeError, AttributeError)):
                    return self._mend(text, error)
                raise self._fault("json_syntax", _syntax_reason(text, str(error))) from None
            self._check(text)
            if not _is_finite(text, value):
                raise self._fault("json_syntax", _NOT_FINITE)
            if value is None:
                value = {}
            if isinstance(value, str) and value.lstrip().startswith("{"):
                return read(value)
            if not isinstance(value, dict):
                got = describe_value(value)
                raise self._fault("no_object", f"expected one JSON object, got {got}")
            problems = [
                ArgumentProblem(
                    path=tuple(error.instance_path),
                    expected=shorten(error.message, 160),
                    got="",
                    kind=f"schema_{error.kind.name}",
                )
                for error in self._enforce.iter_errors(value)
            ]
            if problems:
                raise self._error(problems)
            return typing.cast("Arguments", value)

        return read


def _fetch_nothing(address: str) -> Any:
    """Refuse a `$ref` out of the schema: nothing is read from networks or files.

    Raises:
        ValueError: Always.
    """
    message = f"the $ref {address!r} points out of the schema; put what it names under $defs"
    raise ValueError(message)


_NOT_FINITE = "NaN, Infinity and numbers too large for a double are no JSON; use a finite number"
_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*+"?|(NaN|Infinity)', re.DOTALL)


def _is_finite(text: str, value: Any) -> bool:
    """Return whether no number in a text was too large for a double."""
    if "e" not in text and "E" not in text and len(text) < _LONGEST_DOUBLE:
        return True
    pending = [value]
    while pending:
        item: Any = pending.pop()
        if isinstance(item, float) and item in {_INFINITY, -_INFINITY}:
            return False
        if isinstance(item, dict):
            pending.extend(typing.cast("Arguments", item).values())
        elif isinstance(item, list):
            pending.extend(typing.cast("list[Any]", item))
    return True


_INFINITY = float("inf")
_LONGEST_DOUBLE = 309
"""Digits that a finite double written without an exponent can have."""


def _constantly(value: Any) -> Callable[[], Any]:
    return lambda: value


def _nothing(_: Any) -> int:
    return 0


def _validator(schema: dict[str, Any], leaves: Sequence[TypeSchema], *, fast: bool) -> Any:
    from pydantic_core import SchemaValidator

    definitions = {
        definition["ref"]: definition
        for leaf in leaves
        for definition in (leaf.fast_definitions if fast else leaf.definitions)
    }
    if definitions:
        schema = {
            "type": "definitions",
            "schema": schema,
            "definitions": list(definitions.values()),
        }
    described = typing.cast("Any", schema)
    if any(leaf.prebuilt for leaf in leaves):
        try:
            return typing.cast("Any", SchemaValidator)(described, _use_prebuilt=False)
        except TypeError:  # an earlier pydantic-core, which has no such thing
            pass
    return SchemaValidator(described)


def _field_schema(field: Field, *, fast: bool) -> dict[str, Any]:
    core = field.leaf.fast if fast else field.leaf.core
    if (
        not fast
        and not field.required
        and not field.leaf.admits_null
        and field.default is not LEFT_OUT
    ):
        core = null_means(core, field.default_factory or _constantly(field.default))
    schema: dict[str, Any] = {
        "type": "typed-dict-field",
        "schema": core,
        "required": field.required,
    }
    if field.other_keys:
        schema["validation_alias"] = [[key] for key in (field.key, *field.other_keys)]
    elif field.key != field.name:
        schema["validation_alias"] = field.key
    return schema


def _reserved_schema(name: str) -> dict[str, Any]:
    """Refuse a key whatever it holds."""
    return {
        "type": "typed-dict-field",
        "required": False,
        "validation_alias": name,
        "schema": {
            "type": "custom-error",
            "custom_error_type": _RESERVED,
            "custom_error_message": "Unknown key",
            "schema": {"type": "literal", "expected": [object()]},
        },
    }


def _key_counter(fields: Sequence[Field]) -> Callable[[Arguments], int]:
    """Count the keys that validated arguments were made from: as many as can be told.

    What is inside further arguments is not counted; a text with such gets a close look.
    """
    counted = [field for field in fields if field.leaf.count_keys not in {None, no_keys}]
    if not counted:
        return len
    nested = [(field.name, typing.cast("Any", field.leaf.count_keys)) for field in counted]

    def count(arguments: Arguments) -> int:
        found = len(arguments)
        for name, counter in nested:
            if name in arguments:
                found += counter(arguments[name])
        return found

    return count


def _as_text(arguments: Any, tool: str) -> str:
    if arguments is None:
        return ""
    if isinstance(arguments, (bytes, bytearray)):
        try:
            return arguments.decode()
        except UnicodeDecodeError as error:
            raise ModelBehaviorError(
                f"Invalid arguments for tool {tool!r}: the text is not UTF-8 ({error.reason} "
                f"at byte {error.start})."
            ) from None
    raise ModelBehaviorError(
        f"Invalid arguments for tool {tool!r}: expected JSON text, got a Python "
        f"{type(arguments).__name__}."
    )


def _parsed(text: str, *, allow_inf_nan: bool = True) -> Any:
    from pydantic_core import from_json

    return from_json(text, allow_inf_nan=allow_inf_nan)


def _syntax_error(text: str, error: Any) -> str | None:
    if error.error_count() > 1:
        return None
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "string_unicode" and not first["loc"]:
        return _SURROGATE
    if first["type"] != "json_invalid":
        return None
    return _syntax_reason(text, first.get("ctx", {}).get("error", ""))


def _syntax_reason(text: str, reason: str) -> str:
    """Return what is wrong with a text that is no JSON, from what the parser says."""
    if text.startswith("\ufeff"):
        return "the text begins with a byte order mark (U+FEFF), which JSON does not allow"
    if text.lstrip().startswith("```"):
        return "the JSON is wrapped in a code fence (```); send the bare object"
    if "surrogate" in reason or "hex escape" in reason:
        return f"{_SURROGATE} ({reason})"
    if "recursion limit" in reason:
        return "arrays and objects are nested too deep"
    if "EOF" in reason:
        return f"the JSON is incomplete, it ends too early ({reason})"
    if "trailing characters" in reason:
        return f"something follows after the JSON object ({reason})"
    if any(match[1] for match in _CONSTANT.finditer(text)):
        return _NOT_FINITE
    return f"not valid JSON ({reason})"


def _problems(error: Any, data: Arguments, reader: ArgumentReader) -> list[ArgumentProblem]:
    """Turn pydantic's errors into one problem for each place; the first ones are described."""
    found: dict[tuple[str | int, ...], ArgumentProblem] = {}
    for item in error.errors(include_url=False):
        path, value = _located(item["loc"], data, item["type"])
        before = found.get(path)
        if before is None and len(found) >= _MAX_PROBLEMS:
            found[path] = ArgumentProblem(path=path, expected="", got="", kind=_kind_of(item))
            continue
        if before is not None and not before.expected:
            continue
        problem = _problem(path, value, item, reader)
        if before is None or before.kind in _OF_NULL:
            found[path] = problem
        elif problem.kind not in _OF_NULL and problem.expected not in before.expected:
            expected = f"{before.expected} or {problem.expected}"
            found[path] = ArgumentProblem(
                path=path, expected=expected, got=before.got, kind=before.kind
            )
    return list(found.values())


_OF_NULL = {"none_required", "agents_tools_json_value"}
_MISSING_KINDS = {
    "missing",
    "missing_argument",
    "missing_keyword_only_argument",
    "missing_positional_only_argument",
}
_UNKNOWN_KINDS = {"extra_forbidden", "unexpected_keyword_argument"}  # of TypedDicts, dataclasses
_NOT_GIVEN = object()


def _located(
    location: Sequence[str | int], data: Any, kind: str
) -> tuple[tuple[str | int, ...], object]:
    """Walk the data along pydantic's location, leaving out the labels of union arms."""
    path: list[str | int] = []
    value: object = data
    for index, step in enumerate(location):
        if isinstance(value, dict) and step in value:
            value = typing.cast("Arguments", value)[typing.cast("str", step)]
        elif isinstance(value, list) and isinstance(step, int):
            items = typing.cast("list[Any]", value)
            value = typing.cast("object", items[step] if step < len(items) else _NOT_GIVEN)
        elif kind in _MISSING_KINDS and index == len(location) - 1:
            value = _NOT_GIVEN
        else:
            continue
        path.append(step)
    return tuple(path), typing.cast("object", value)


def _problem(
    path: tuple[str | int, ...], value: Any, item: Any, reader: ArgumentReader
) -> ArgumentProblem:
    kind: str = item["type"]
    got = "nothing" if value is _NOT_GIVEN else reader.described(value, path)
    if kind in _MISSING_KINDS:
        return ArgumentProblem(
            path=path, expected=f"{reader.wanted(path)} (required)", got=got, kind="missing"
        )
    if kind in _UNKNOWN_KINDS:
        expected = _nearest(str(path[-1]), reader.known_keys(path[:-1]))
        return ArgumentProblem(path=path, expected=expected, got=got, kind="unknown_key")
    if kind == _RESERVED:
        return ArgumentProblem(path=path, expected=_LEAVE_OUT, got=got, kind="unknown_key")
    return ArgumentProblem(path=path, expected=_expectation(item), got=got, kind=kind)


def _kind_of(item: Any) -> str:
    kind: str = item["type"]
    if kind in _MISSING_KINDS:
        return "missing"
    return "unknown_key" if kind in _UNKNOWN_KINDS or kind == _RESERVED else kind


_LEAVE_OUT = "leave it out"
_RESERVED = "agents_tools_reserved_key"


def _nearest(key: str, known: list[str]) -> str:
    if not known:
        return _LEAVE_OUT
    from difflib import get_close_matches

    close = get_close_matches(key[:64], known, n=1)
    lowered = {name.lower().replace("_", ""): name for name in known}
    match = close[0] if close else lowered.get(key.lower().replace("_", "").replace("-", ""))
    if match:
        return f"did you mean {match!r}?"
    return "the known keys are " + shorten(", ".join(known), 120)


def _expectation(item: Any) -> str:
    kind: str = item["type"]
    if kind == "finite_number":
        return "a finite number"
    if kind in {"value_error", "assertion_error"}:
        return shorten(str(item["ctx"].get("error") or "another value"), 160)
    message = _SUBJECT.sub("", item["msg"]).replace(" after validation", "")
    if any(word in message for word in _FOREIGN):
        message = "another value"
    return shorten(_EXPECTED.get(kind, message), 160)


_SUBJECT = re.compile(
    r"(?:JSON )?[A-Z][A-Za-z]* (?:input )?(?:should (?:be |have )?|is not (?=an? ))"
)
_FOREIGN = ("pydantic", "Input", "JsonOrPython", "https://errors", "core_schema")


_EXPECTED = {
    "int_type": "an integer",
    "float_type": "a finite number",
    "bool_type": "true or false",
    "string_type": "a string",
    "list_type": "an array",
    "tuple_type": "an array",
    "set_type": "an array",
    "frozen_set_type": "an array",
    "iterable_type": "an array",
    "path_type": "a path",
    "bytes_type": "a string",
    "json_type": "a string that holds JSON",
    "complex_type": "a complex number written as a string",
    "complex_str_parsing": "a complex number written as a string",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
    "union_tag_not_found": "an object that says which kind it is",
    "union_tag_invalid": "an object of one of the kinds there are",
    "agents_tools_json_value": "a JSON value (NaN and Infinity are none)",
}


def _line(problem: ArgumentProblem) -> str:
    where = format_path(problem.path)
    if problem.kind == "unknown_key":
        return f"{where}: unknown, {problem.expected}"
    if problem.kind.startswith("schema_"):
        return f"{where}: {problem.expected}"
    if problem.kind == "missing":
        return f"{where}: missing, expected {problem.expected}"
    return f"{where}: expected {problem.expected}, got {problem.got}"


_WORD = re.compile(r"\w{1,64}")


def format_path(path: Sequence[str | int]) -> str:
    """Write a path the way code would: `location.points[3].lat`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _WORD.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{describe_value(step)}]"
    return shorten(text, 120) or "arguments"


_WANTS_JSON = {
    "list_type",
    "dict_type",
    "model_type",
    "model_attributes_type",
    "dataclass_type",
    "tuple_type",
    "set_type",
    "frozen_set_type",
}


def _decoded(data: Arguments, problems: Sequence[ArgumentProblem]) -> str | None:
    """Decode the JSON texts that stand where lists or objects belong; `None` if there is none."""
    from pydantic_core import from_json, to_json

    decoded = False
    for problem in problems:
        if problem.kind not in _WANTS_JSON or not problem.path:
            continue
        holder: Any = data
        for step in problem.path[:-1]:
            holder = holder[step]
        text = holder[problem.path[-1]]
        if not isinstance(text, str) or not text.lstrip().startswith(("[", "{")):
            continue
        try:
            check_bounds(text)
            check_keys(text)
            holder[problem.path[-1]] = from_json(text)
        except ValueError:
            continue
        decoded = True
    return to_json(data, inf_nan_mode="constants").decode() if decoded else None


# --- looking things up in the tool's JSON Schema


def _schemas_at(root: dict[str, Any], path: Sequence[str | int]) -> list[dict[str, Any]]:
    """Find the schemas of what stands at a path: several where a union leaves it open."""
    current = _arms(root, [root])
    for step in path:
        below: list[Any] = []
        for schema in current:
            if isinstance(step, int):
                found = schema.get("items")
            else:
                found = schema.get("properties", {}).get(step)
                if found is None:
                    found = schema.get("additionalProperties")
            below.append(found)
        current = _arms(root, below)
    return current


def _arms(root: dict[str, Any], given: Iterable[Any]) -> list[dict[str, Any]]:
    """Return what some schemas come down to, each once: a reference may point back at itself."""
    found: list[dict[str, Any]] = []
    seen: set[int] = set()
    pending = list(given)[::-1]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict) or id(typing.cast("Any", node)) in seen:
            continue
        schema = typing.cast("dict[str, Any]", node)
        seen.add(id(schema))
        arms = schema.get("anyOf") or schema.get("oneOf")
        target = _target(root, schema)
        if target is not None:
            pending.append(target)
        elif isinstance(arms, list):
            pending.extend(reversed(typing.cast("list[Any]", arms)))
        else:
            found.append(schema)
    return found


def _target(root: dict[str, Any], schema: dict[str, Any]) -> Any:
    """Return what a schema refers to in its document; `None` if it refers to nothing there."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: Any = root
    for step in reference[2:].split("/"):
        if not isinstance(found, dict):
            return None
        key = step.replace("~1", "/").replace("~0", "~")
        found = typing.cast("Arguments", found).get(key)
    return found


def _is_secret(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("writeOnly")) or schema.get("format") == "password"


_HOLDING = ("items", "prefixItems", "additionalProperties", "allOf", "anyOf", "oneOf")


def _secret_keys(root: dict[str, Any]) -> frozenset[str]:
    """Find the keys under which secrets stand, alone or as lists and maps of them.

    Each part of the schema is looked at once, for a server may have made it to take long.
    """
    keys: list[tuple[str, int]] = []
    holders: dict[int, list[int]] = {}
    secret: list[int] = []
    pending: list[Any] = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending.extend(typing.cast("list[Any]", node))
        if not isinstance(node, dict):
            continue
        schema = typing.cast("dict[str, Any]", node)
        pending.extend(schema.values())
        for part in (_target(root, schema), *map(schema.get, _HOLDING)):
            for one in typing.cast("list[Any]", part) if isinstance(part, list) else (part,):
                holders.setdefault(id(one), []).append(id(schema))
        if isinstance(named := schema.get("properties"), dict):
            properties = typing.cast("dict[str, Any]", named)
            keys += [(key, id(one)) for key, one in properties.items()]
        if _is_secret(schema):
            secret.append(id(schema))
    marked: set[int] = set()
    while secret:
        one = secret.pop()
        if one not in marked:
            marked.add(one)
            secret += holders.get(one, ())
    return frozenset(key for key, one in keys if one in marked)


def _without(keys: frozenset[str], value: Any) -> Any:
    """Return a JSON value without what stands under some keys."""
    if isinstance(value, dict):
        held = typing.cast("Arguments", value)
        return {key: MASK if key in keys else _without(keys, one) for key, one in held.items()}
    if isinstance(value, list):
        return [_without(keys, one) for one in typing.cast("list[Any]", value)]
    return value


_WORDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
}


def _type_in_words(schema: Mapping[str, Any]) -> str | None:
    if "enum" in schema:
        return shorten("one of " + ", ".join(map(describe_value, schema["enum"])), 120)
    if "const" in schema:
        return describe_value(schema["const"])
    return _WORDS.get(schema.get("type", ""))
