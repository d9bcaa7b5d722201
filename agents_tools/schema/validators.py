"""The two validators of arguments, with one form of faults: pydantic-core and jsonschema-rs."""

from __future__ import annotations

import math
import re
import typing
from dataclasses import dataclass, replace
from typing import Any, Protocol

from agents_tools.errors import MissingExtraError, UserError
from agents_tools.schema.closed import close_objects
from agents_tools.schema.lookup import SchemaLookup, secret_keys
from agents_tools.text.escape import shorten

if typing.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agents_tools.schema.types import TypeSchema

__all__ = ["Fault", "JsonSchemaValidator", "PydanticValidator", "Validator", "refuse_reference"]

Schema = dict[str, Any]
Path = tuple[str | int, ...]
Labels = tuple[tuple[Path, str | int], ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """One difference between arguments and a schema.

    Attributes:
        path: The location of the value.
        keyword: The JSON Schema keyword that the value violates; or `missing`, `unknown_key`, and
            `value` for what no keyword can express.
        limit: The value of the keyword. For `type`, the JSON type.
        message: What is expected, for keywords whose value does not say so.
        alternatives: The alternatives of unions that the fault belongs to, outermost first: the
            path of each union, and a label.
    """

    path: Path
    keyword: str
    limit: Any = None
    message: str = ""
    alternatives: Labels = ()


class Validator(Protocol):
    """A validator of arguments, as an `ArgumentReader` uses it."""

    Invalid: type[Exception]
    """The exception of `validate_json` for arguments that do not match."""

    def validate_json(self, text: str) -> Any:
        """Return the value for a JSON text that matches the schema exactly."""
        ...

    def faults(self, error: Any, data: Any) -> Iterator[Fault]:
        """Yield the faults behind an `Invalid`.

        Args:
            error: The exception.
            data: The parsed JSON text.
        """
        ...

    def keeps_own_rules(self, path: Path) -> bool:
        """Return whether the declaration of the value at a path forbids its conversion."""
        ...

    def with_published_keys(self, data: Any) -> Any:
        """Return accepted arguments with the published key of each argument, at any depth."""
        ...


# --- pydantic-core


class PydanticValidator:
    """Validates JSON text against a core schema.

    Args:
        schema: The core schema.
        types: The types in it, which have the definitions that it refers to.
    """

    def __init__(self, schema: Schema, types: Sequence[TypeSchema]) -> None:
        from pydantic_core import SchemaValidator, ValidationError

        self.Invalid: type[Exception] = ValidationError
        self._schema = schema
        self._definitions = {
            one["ref"]: one for type_schema in types for one in type_schema.definitions
        }
        if self._definitions:
            definitions = list(self._definitions.values())
            schema = {"type": "definitions", "schema": schema, "definitions": definitions}
        create: Any = SchemaValidator
        if any(type_schema.prebuilt for type_schema in types):
            try:
                validator = create(schema, _use_prebuilt=False)
            except TypeError:  # an earlier pydantic-core, which has no such option
                validator = create(schema)
        else:
            validator = create(schema)
        self._has_own_rules = any(type_schema.own_rules for type_schema in types)
        self.validate_json: Any = validator.validate_json

    def faults(self, error: Any, data: Any) -> Iterator[Fault]:
        """Yield the faults in a `ValidationError`."""
        for item in error.errors(include_url=False, include_input=False):
            path, labels = _path_in(item["loc"], data, is_missing=item["type"] in _MISSING)
            fault = _fault_at(path, labels, item)
            is_key = bool(labels) and any(label == _KEY for _, label in labels)
            yield _fault_of_key(fault) if is_key else fault

    def keeps_own_rules(self, path: Path) -> bool:
        """Return whether a value is in a pydantic model, or its type is explicitly strict."""
        if not self._has_own_rules:
            return False
        nodes = list(self._unwrap(self._schema, _Place()))
        for step in path:
            below = [(child, at) for node, at in nodes for child in _children(node, step)]
            nodes = [one for child, at in below for one in self._unwrap(child, at)]
        return any(at.is_in_model or _is_marked(node, "strict") for node, at in nodes)

    def with_published_keys(self, data: Any) -> Any:
        """Return accepted arguments with the published key of each field of a model."""
        if not self._has_own_rules:
            return data
        return self._with_published_keys(data, list(self._unwrap(self._schema, _Place())))

    def _with_published_keys(self, value: Any, nodes: list[tuple[Schema, _Place]]) -> Any:
        def below(item: Any, step: str | int) -> Any:
            children = [(child, at) for node, at in nodes for child in _children(node, step)]
            inner = [one for child, at in children for one in self._unwrap(child, at)]
            return self._with_published_keys(item, inner) if inner else item

        if isinstance(value, list):
            items = typing.cast("list[Any]", value)
            return [below(item, index) for index, item in enumerate(items)]
        if not isinstance(value, dict):
            return value
        members = typing.cast("Schema", value)
        models = [(node, at.is_by_name) for node, at in nodes if at.is_in_model]
        accepted = [keys for node, by_name in models for keys in _accepted_keys(node, by_name)]
        published = {first for first, *_ in accepted}
        names = {
            other: first
            for first, *others in accepted
            for other in others
            if other not in published
        }
        renamed: Schema = {}
        for key, item in members.items():
            name = names.get(key, key)
            is_taken = name in renamed or (name != key and name in members)
            renamed[key if is_taken else name] = below(item, key)
        return renamed

    def _unwrap(self, node: Schema, at: _Place) -> Iterator[tuple[Schema, _Place]]:
        """Yield the schemas inside wrappers and unions, and what contains them."""
        kind = node["type"]
        if kind in {"model", "dataclass"}:
            config: Schema = node.get("config") or {}
            at = _Place(
                is_in_model=at.is_in_model or (kind == "model" and not _is_marked(node, "open")),
                is_by_name=bool(config.get("populate_by_name") or config.get("validate_by_name")),
            )
        inner: list[Any] = []
        if kind == "definition-ref":
            inner = [self._definitions[node["schema_ref"]]]
        elif "choices" in node:
            choices: Any = node["choices"]
            if isinstance(choices, dict):
                choices = list(typing.cast("Schema", choices).values())
            inner = [one[0] if type(one) is tuple else one for one in choices]
        elif kind == "chain":
            inner = node["steps"]
        elif kind in {"lax-or-strict", "json-or-python"}:
            inner = [node["lax_schema" if kind == "lax-or-strict" else "json_schema"]]
        elif "schema" in node:
            inner = [node["schema"]]
        if not inner:
            yield node, at
        for one in typing.cast("list[Schema]", inner):
            yield from self._unwrap(one, at)


class _Place(typing.NamedTuple):
    """Where a schema is: inside a pydantic model, and in one whose fields have two names."""

    is_in_model: bool = False
    is_by_name: bool = False


def _is_marked(node: Schema, mark: str) -> bool:
    metadata: Schema = node.get("metadata") or {}
    return bool(metadata.get(f"agents_tools_{mark}"))


def _children(node: Schema, step: str | int) -> Iterable[Schema]:
    """Return the schemas of an item or of a field."""
    kind = node["type"]
    if isinstance(step, int):
        items: Any = node.get("items_schema") or []
        return typing.cast("list[Schema]", items if isinstance(items, list) else [items])
    if kind == "dict":
        return [node["values_schema"]] if "values_schema" in node else []
    return [
        field["schema"]
        for name, field in _fields(node)
        if step == name or step in _aliases(field.get("validation_alias"))
    ]


def _fields(node: Schema) -> list[tuple[str, Schema]]:
    """Return the fields of a model, a typed dictionary or a dataclass, with their names."""
    fields: Any = node.get("fields", ())
    if isinstance(fields, dict):
        return list(typing.cast("Schema", fields).items())
    return [(one["name"], one) for one in fields]  # of a dataclass


def _accepted_keys(node: Schema, by_name: bool) -> Iterator[list[str]]:
    """Yield the keys that each field accepts; the published one is the first."""
    for name, field in _fields(node):
        keys = [one for one in _aliases(field.get("validation_alias")) if isinstance(one, str)]
        yield [*keys, name] if by_name or not keys else keys


def _aliases(alias: Any) -> list[Any]:
    if isinstance(alias, str):
        return [alias]
    return [one[0] if isinstance(one, list) and len(one) == 1 else one for one in alias or ()]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _fault_at(path: Path, labels: Labels, item: Any) -> Fault:
    """Return the fault that an error of pydantic describes."""
    kind: str = item["type"]
    keyword, limit, message = "value", None, ""
    if kind in _MISSING:
        keyword = "missing"
    elif kind == RESERVED_KEY:
        keyword, message = "unknown_key", "leave it out"
    elif kind in _UNKNOWN:
        keyword = "unknown_key"
    elif kind in _TYPES:
        keyword, limit = "type", _TYPES[kind]
    elif kind in _KEYWORDS:
        keyword, name = _KEYWORDS[kind]
        limit, message = item["ctx"].get(name), _expectation(item)
    else:
        message = _expectation(item)
    return Fault(path, keyword, limit, message, labels)


_KEY = "[key]"
"""The label of pydantic for the key of a dictionary, in contrast to its value."""


def _fault_of_key(fault: Fault) -> Fault:
    """Return the fault of a value whose key does not match the schema of the keys."""
    if fault.keyword == "enum":
        return replace(fault, keyword="unknown_key", message="")
    return replace(fault, keyword="propertyNames", limit=fault)


def _path_in(location: Sequence[str | int], data: Any, *, is_missing: bool) -> tuple[Path, Labels]:
    """Return the path in the data for a location of pydantic, and the labels that it has too."""
    path: list[str | int] = []
    labels: list[tuple[Path, str | int]] = []
    value: object = data
    for index, step in enumerate(location):
        if isinstance(value, dict) and step in value:
            value = typing.cast("Schema", value)[typing.cast("str", step)]
        elif isinstance(value, list) and isinstance(step, int):
            items = typing.cast("list[Any]", value)
            value = typing.cast("object", items[step] if step < len(items) else None)
        elif not (is_missing and index == len(location) - 1):
            labels.append((tuple(path), step))
            continue
        path.append(step)
    return tuple(path), tuple(labels)


_MISSING = {
    "missing",
    "missing_argument",
    "missing_keyword_only_argument",
    "missing_positional_only_argument",
}
RESERVED_KEY = "agents_tools_reserved_key"
_UNKNOWN = {"extra_forbidden", "unexpected_keyword_argument"}
_TYPES = {
    "int_type": "integer",
    "int_parsing": "integer",
    "int_parsing_size": "integer",
    "int_from_float": "integer",
    "float_type": "number",
    "float_parsing": "number",
    "bool_type": "boolean",
    "bool_parsing": "boolean",
    "string_type": "string",
    "list_type": "array",
    "tuple_type": "array",
    "set_type": "array",
    "frozen_set_type": "array",
    "iterable_type": "array",
    "dict_type": "object",
    "model_type": "object",
    "model_attributes_type": "object",
    "dataclass_type": "object",
    "none_required": "null",
    "mapping_type": "object",
    "counter_type": "object",
    "ordered_dict_type": "object",
    "deque_type": "array",
    "named_tuple_type": "array",
}
_KEYWORDS = {
    "greater_than_equal": ("minimum", "ge"),
    "greater_than": ("exclusiveMinimum", "gt"),
    "less_than_equal": ("maximum", "le"),
    "less_than": ("exclusiveMaximum", "lt"),
    "multiple_of": ("multipleOf", "multiple_of"),
    "string_too_short": ("minLength", "min_length"),
    "string_too_long": ("maxLength", "max_length"),
    "string_pattern_mismatch": ("pattern", "pattern"),
    "too_short": ("minItems", "min_length"),
    "too_long": ("maxItems", "max_length"),
    "literal_error": ("enum", "expected"),
    "enum": ("enum", "expected"),
}
_MESSAGES = {
    "path_type": "a path",
    "bytes_type": "a string",
    "json_type": "a string that holds JSON",
    "complex_type": "a complex number written as a string",
    "complex_str_parsing": "a complex number written as a string",
    "finite_number": "a finite number",
    "decimal_type": "a number",
    "fraction_type": "a number",
    "uuid_type": "a UUID",
    "url_type": "a URL",
    "time_parsing": "a valid time, for example 14:30",
    "date_past": "a date in the past",
    "date_future": "a date in the future",
    "datetime_past": "a time in the past",
    "datetime_future": "a time in the future",
    "timezone_naive": "a time without a time zone",
    "timezone_aware": "a time with a time zone, for example 2026-01-02T03:04:05Z",
    "agents_tools_json_value": "a JSON value (NaN and Infinity are none)",
}
_SUBJECT = re.compile(
    r"(?:JSON )?[A-Z][A-Za-z]* (?:input )?(?:should (?:be |have )?|is not (?=an? ))"
)
_FOREIGN = ("pydantic", "Input", "JsonOrPython", "https://errors", "core_schema")


def _expectation(item: Any) -> str:
    kind: str = item["type"]
    if kind in {"value_error", "assertion_error"}:
        return _other_value(str(item["ctx"].get("error") or ""))
    if kind == "union_tag_invalid":
        tags = f"{item['ctx']['discriminator']} one of {item['ctx']['expected_tags']}"
        return shorten(f"an object with {tags}", 160)
    if kind == "union_tag_not_found":
        return shorten(f"an object with the key {item['ctx']['discriminator']}", 160)
    if kind in _MESSAGES:
        return _MESSAGES[kind]
    message: str = item["msg"]
    expected = _SUBJECT.sub("", message).replace(" after validation", "")
    if any(word in expected for word in _FOREIGN):
        return _other_value()
    return shorten(expected, 160) if _SUBJECT.match(message) else _other_value(expected)


def _other_value(reason: str = "") -> str:
    """Return the expectation behind a message that says why a value was refused."""
    return f"another value ({shorten(reason, 160)})" if reason else "another value"


# --- jsonschema-rs


class _Violations(Exception):  # noqa: N818 - the counterpart of pydantic's ValidationError
    """JSON values do not match a JSON Schema."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("The values do not match the schema.")
        self.faults = faults


class JsonSchemaValidator:
    """Validates JSON text against a JSON Schema, into plain JSON values.

    Keys that the schema does not name are refused, unless it allows them explicitly: with
    `additionalProperties`, `patternProperties` or a combination of schemas.

    Args:
        tool: The name of the tool, for error messages.
        json_schema: The JSON Schema.

    Raises:
        UserError: jsonschema-rs is not installed, or the schema is not valid.
    """

    Invalid: type[Exception] = _Violations

    def __init__(self, tool: str, json_schema: Schema) -> None:
        from pydantic_core import from_json

        try:
            from jsonschema_rs import ValidationError, validator_for
        except ImportError as error:
            raise MissingExtraError(
                f"Tool {tool!r} has a raw JSON Schema, whose validation needs the extra `schema`: "
                'pip install "agents-tools[schema]". Or pass a pydantic type, or '
                "validate_arguments=False and validate the arguments in the tool."
            ) from error
        try:
            self._validator = validator_for(
                close_objects(json_schema),
                retriever=refuse_reference,
                mask="the value" if secret_keys(json_schema) else None,
            )
        except (ValueError, ValidationError) as error:
            reason = shorten(str(error).strip().partition("\n")[0].removesuffix("."), 300)
            path: list[Any] = getattr(error, "instance_path", [])
            place = f" at #/{shorten('/'.join(map(str, path)), 120)}" if path else ""
            raise UserError(
                f"The JSON Schema of tool {tool!r} is not valid{place}: {reason}."
            ) from None
        self._lookup = SchemaLookup(lambda: json_schema)
        self._from_json = from_json

    def validate_json(self, text: str) -> Any:
        """Return the parsed text.

        Raises:
            ValueError: The text is not JSON.
        """
        data: Any = self._from_json(text)
        if _can_overflow(text) and (paths := list(_non_finite(data, ()))):
            raise _Violations([Fault(path, "value", message="a finite number") for path in paths])
        if not self._validator.is_valid(data):
            errors = self._validator.iter_errors(data)
            raise _Violations([fault for error in errors for fault in _faults_of(error)])
        if "." in text and (faults := list(self._fractions(data, ()))):
            raise _Violations(faults)
        return data

    def _fractions(self, value: Any, path: Path) -> Iterator[Fault]:
        """Yield the whole numbers with a fraction, such as 5.0, that have to be integers."""
        if isinstance(value, float) and value.is_integer():
            types = self._lookup.types(path, value)
            if "integer" in types and "number" not in types:
                yield Fault(path, "type", "integer")
        for key, item in _items(value):
            yield from self._fractions(item, (*path, key))

    def faults(self, error: Any, data: Any) -> Iterator[Fault]:
        """Yield the faults of a `_Violations`."""
        del data
        yield from error.faults

    def with_published_keys(self, data: Any) -> Any:
        """Return the arguments: a JSON Schema has one key for each."""
        return data

    def keeps_own_rules(self, path: Path) -> bool:
        """Return `False`: a JSON Schema has one meaning."""
        del path
        return False


_LIMITS = {
    "minimum": "limit",
    "exclusiveMinimum": "limit",
    "maximum": "limit",
    "exclusiveMaximum": "limit",
    "multipleOf": "multiple_of",
    "minLength": "limit",
    "maxLength": "limit",
    "minItems": "limit",
    "maxItems": "limit",
    "pattern": "pattern",
}


def _can_overflow(text: str) -> bool:
    """Return whether a JSON text can have a number that is not finite as a double."""
    return len(text) > _MAX_DIGITS or _NOT_FINITE.search(text) is not None


_MAX_DIGITS = 308
"""The digits of the largest double."""
_NOT_FINITE = re.compile(r"[0-9][eE]|NaN|Infinity")


def _non_finite(value: Any, path: Path) -> Iterator[Path]:
    """Yield the paths of the numbers that are not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path
    for key, item in _items(value):
        yield from _non_finite(item, (*path, key))


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return the members of an object or an array with their keys."""
    if isinstance(value, dict):
        return typing.cast("Schema", value).items()
    return enumerate(typing.cast("list[Any]", value)) if isinstance(value, list) else ()


def _faults_of(error: Any) -> Iterator[Fault]:
    """Yield the faults in an error of jsonschema-rs: those of the alternatives of a union too."""
    kind, path = error.kind, tuple(error.instance_path)
    name: str = kind.name
    if name == "required":
        yield Fault((*path, kind.property), "missing")
    elif name in {"additionalProperties", "unevaluatedProperties"}:
        for key in kind.unexpected:
            yield Fault((*path, key), "unknown_key")
    elif name == "type":
        for one in kind.types:
            yield Fault(path, "type", one)
    elif name in {"enum", "const"}:
        yield Fault(path, "enum", message=error.message)
    elif name == "falseSchema":
        yield Fault(path, "unknown_key", message="leave it out")
    elif name == "propertyNames":
        for one in _faults_of(kind.error):
            yield _fault_of_key(replace(one, path=(*path, kind.error.instance)))
    elif name in {"anyOf", "oneOf"} and any(kind.context):
        for index, alternative in enumerate(kind.context):
            for one in alternative:
                for fault in _faults_of(one):
                    inside = ((path, index), *fault.alternatives)
                    yield replace(fault, alternatives=inside)
    elif name == "pattern" and not hasattr(kind, "pattern"):  # the match needed too many steps
        yield Fault(path, "value", message="a string that its pattern can check in limited time")
    elif name in _LIMITS:
        yield Fault(path, name, getattr(kind, _LIMITS[name], None), error.message)
    else:
        yield Fault(path, "value", message=_other_value(error.message))


def refuse_reference(address: str) -> Any:
    """Refuse a `$ref` out of the schema: nothing is read from networks or files.

    Raises:
        ValueError: Always.
    """
    message = f"the $ref {address!r} points out of the schema; put its target under $defs"
    raise ValueError(message)
