"""One annotation as a validator's core schema and as JSON Schema, by the acceptance rules of tools.

The rules, published in the documentation as the acceptance table: a boolean is no number,
numbers may come as numeric strings and whole floats as integers, NaN and Infinity are no JSON,
unknown keys are refused, and `null` for something with a default means the default. They hold
for parameters, containers, TypedDicts and dataclasses; inside a pydantic model its own
configuration rules, and an explicit `Field(strict=...)` wins.
"""

from __future__ import annotations

import collections.abc
import threading
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from agents_tools.schema.callables import EMPTY

__all__ = [
    "NoSchemaError",
    "TypeSchema",
    "constrained",
    "joint_json_schemas",
    "leaf_of",
    "no_keys",
    "null_means",
]

Schema = dict[str, Any]
KeyCounter = Callable[[Any], int]


class NoSchemaError(Exception):
    """An annotation cannot be described; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSchema:
    """What an annotation means for a value that arrives as JSON.

    Attributes:
        core: The validator's schema, with the acceptance rules applied.
        fast: A schema that accepts less than `core`, with the same results and sooner: what is
            written just as the JSON Schema says. It passes over unknown keys.
        definitions: Schemas that `core` refers to.
        fast_definitions: Schemas that `fast` refers to.
        json: The JSON Schema; it may point into `defs`.
        defs: The named schemas behind `json`, by name.
        admits_null: Whether the type itself accepts `null`.
        count_keys: How many object keys a validated value was made from; `None` when that
            cannot be told from the value.
        adapter: The pydantic adapter behind it; `None` for what needs none.
        deep: Whether a value may nest without the type saying how deeply.
        prebuilt: Whether a class inside has a validator of its own that knows no rules.
    """

    core: Schema
    fast: Schema
    json: Schema
    definitions: tuple[Schema, ...] = ()
    fast_definitions: tuple[Schema, ...] = ()
    defs: Schema
    admits_null: bool = False
    count_keys: KeyCounter | None
    adapter: Any = None
    deep: bool = False
    prebuilt: bool = False


def leaf_of(annotation: Any) -> TypeSchema:
    """Describe an annotation.

    Raises:
        NoSchemaError: It has no JSON form.
    """
    try:
        known = _SCALARS.get(annotation)
    except TypeError:  # an annotation without a hash
        known = None
    if known is not None:
        return known
    key = _cache_key(annotation)
    if key is not None and (known := _LEAVES.get(key)) is not None:
        return known
    leaf = _composed(annotation) or _described_by_pydantic(annotation)
    if key is not None:
        if len(_LEAVES) >= _CACHE_SIZE:
            _LEAVES.clear()
        _LEAVES[key] = leaf
    return leaf


def constrained(annotation: Any, metadata: Iterable[Any]) -> TypeSchema | None:
    """Describe a number or a string with bounds, or `None` when something else is asked for."""
    if not any(annotation is known for known in _PLAIN_CORE):
        return None
    base = leaf_of(annotation)
    core = dict(_PLAIN_CORE[annotation])
    json = dict(base.json)
    for item in metadata:
        bounds = _bounds(item)
        if bounds is None:
            return None
        for name, value in bounds.items():
            if type(value) not in {int, float}:
                return None
            core[name] = value
            json[_JSON_BOUNDS[name]] = value
    return replace(base, core=_EXACT.apply(core), fast=_FAST.apply(core), json=json)


def joint_json_schemas(leaves: list[TypeSchema]) -> tuple[list[Schema], Schema]:
    """Write the JSON Schemas of several leaves together, for when their names collide."""
    from pydantic import TypeAdapter

    inputs: list[Any] = [
        (index, "validation", leaf.adapter)
        for index, leaf in enumerate(leaves)
        if leaf.adapter is not None
    ]
    found, root = TypeAdapter.json_schemas(inputs, schema_generator=_quiet_generator())
    schemas = [
        found[index, "validation"] if leaf.adapter is not None else leaf.json
        for index, leaf in enumerate(leaves)
    ]
    return schemas, root.get("$defs", {})


# --- the scalars, and what is composed of them without asking pydantic


def no_keys(_: Any) -> int:
    """Return 0, the number of unknown keys in a value that has none."""
    return 0


JSON_VALUE = "agents-tools:json"
_JSON_REF: Schema = {"type": "definition-ref", "schema_ref": JSON_VALUE}
_STRICT_INT: Schema = {"type": "int", "strict": True}
_STRICT_BOOL: Schema = {"type": "bool", "strict": True}
_STRICT_FLOAT: Schema = {"type": "float", "strict": True, "allow_inf_nan": False}
_JSON_DEFINITION: Schema = {
    "type": "union",
    "ref": JSON_VALUE,
    "mode": "left_to_right",
    "custom_error_type": "agents_tools_json_value",
    "custom_error_message": "Input should be a JSON value; NaN and Infinity are none",
    "choices": [
        {"type": "str", "strict": True},
        {"type": "int", "strict": True},
        {"type": "bool", "strict": True},
        {"type": "none"},
        _STRICT_FLOAT,
        {"type": "list", "items_schema": _JSON_REF},
        {"type": "dict", "keys_schema": {"type": "str"}, "values_schema": _JSON_REF},
    ],
}


def _number(kind: str, first: Schema, lax: Schema, source: Schema) -> Schema:
    """Accept `first` as it is, and what `source` accepts when `lax` can read it."""
    return {
        "type": "union",
        "mode": "left_to_right",
        "custom_error_type": f"{kind}_type",
        "choices": [first, {"type": "chain", "steps": [source, lax]}],
    }


_STRING_OR_FLOAT: Schema = {
    "type": "union",
    "mode": "left_to_right",
    "choices": [{"type": "float", "strict": True}, {"type": "str", "strict": True}],
}
_INT = _number("int", _STRICT_INT, {"type": "int"}, _STRING_OR_FLOAT)
_FLOAT = _number(
    "float",
    _STRICT_FLOAT,
    {"type": "float", "allow_inf_nan": False},
    {"type": "str", "strict": True},
)
_BOOL = _number(
    "bool",
    _STRICT_BOOL,
    {"type": "bool"},
    {"type": "literal", "expected": ["true", "false", "True", "False"]},
)
_RULED: dict[str, Schema] = {"int": _INT, "float": _FLOAT, "bool": _BOOL}
_STRICT: dict[str, Schema] = {"int": _STRICT_INT, "float": _STRICT_FLOAT, "bool": _STRICT_BOOL}
_PLAIN_CORE: dict[Any, Schema] = {
    int: {"type": "int"},
    float: {"type": "float"},
    str: {"type": "str"},
}
_JSON_BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "min_length": "minLength",
    "max_length": "maxLength",
}


def _scalar(
    core: Schema, json: Schema, *, fast: Schema | None = None, admits_null: bool = False
) -> TypeSchema:
    return TypeSchema(
        core=core,
        fast=fast or core,
        json=json,
        defs={},
        admits_null=admits_null,
        count_keys=no_keys,
    )


_ANYTHING = TypeSchema(
    core=_JSON_REF,
    fast=_JSON_REF,
    definitions=(_JSON_DEFINITION,),
    fast_definitions=(_JSON_DEFINITION,),
    json={},
    defs={},
    admits_null=True,
    count_keys=None,
)
_SCALARS: dict[Any, TypeSchema] = {
    str: _scalar({"type": "str"}, {"type": "string"}),
    int: _scalar(_INT, {"type": "integer"}, fast=_STRICT_INT),
    float: _scalar(_FLOAT, {"type": "number"}, fast=_STRICT_FLOAT),
    bool: _scalar(_BOOL, {"type": "boolean"}, fast=_STRICT_BOOL),
    types.NoneType: _scalar({"type": "none"}, {"type": "null"}, admits_null=True),
    object: _ANYTHING,
    Any: _ANYTHING,
    EMPTY: _ANYTHING,
}
_LEAVES: dict[Any, TypeSchema] = {}
_CACHE_SIZE = 4_096


def _cache_key(annotation: Any) -> Any:
    """Return a key under which equal annotations meet and unequal ones never do, or `None`.

    Annotations themselves will not do: unions compare without order, and `Literal[1]` equals
    `Literal[True]`.
    """
    arguments: tuple[Any, ...] = typing.get_args(annotation)
    try:
        if not arguments:
            hash(annotation)
            return (type(annotation), annotation)
        origin = typing.get_origin(annotation)
        if origin is Literal:
            return (origin, tuple((typing.cast("Any", type(value)), value) for value in arguments))
        if hasattr(annotation, "__metadata__"):
            hash(annotation)
            return (origin, _cache_key(arguments[0]), annotation.__metadata__)
        keys = tuple(map(_cache_key, arguments))
        return None if None in keys else (origin, keys)
    except TypeError:
        return None


def _composed(annotation: Any) -> TypeSchema | None:
    """Compose the leaf of a plain list, dict, optional or literal from the leaves inside it."""
    origin = typing.get_origin(annotation)
    arguments: tuple[Any, ...] = typing.get_args(annotation)
    if annotation is list or annotation is dict:
        origin, arguments = annotation, (Any,) if annotation is list else (str, Any)
    if not arguments:
        return None
    if origin is list and (item := _plain(arguments[0])) is not None:
        return _list_leaf(item, bare=annotation is list)
    if origin is dict and arguments[0] is str and (item := _plain(arguments[1])) is not None:
        return _dict_leaf(item)
    if origin in {typing.Union, types.UnionType} and len(arguments) == 2:  # noqa: PLR2004
        return _optional_leaf(arguments)
    if origin is Literal:
        return _literal_leaf(arguments)
    return None


def _plain(annotation: Any) -> TypeSchema | None:
    """Find the leaf of something that pydantic need not be asked about."""
    try:
        if annotation in _SCALARS:
            return _SCALARS[annotation]
    except TypeError:
        return None
    return _composed(annotation)


def _list_leaf(item: TypeSchema, *, bare: bool) -> TypeSchema:
    count = item.count_keys
    return replace(
        item,
        core={"type": "list", "items_schema": item.core},
        fast={"type": "list", "items_schema": item.fast},
        json={"type": "array", "items": {} if bare else dict(item.json)},
        admits_null=False,
        count_keys=count if count is no_keys or count is None else _sum_of(count),
    )


def _dict_leaf(item: TypeSchema) -> TypeSchema:
    return replace(
        item,
        core={"type": "dict", "keys_schema": {"type": "str"}, "values_schema": item.core},
        fast={"type": "dict", "keys_schema": {"type": "str"}, "values_schema": item.fast},
        json={"type": "object", "additionalProperties": dict(item.json) or True},
        admits_null=False,
        count_keys=len if item.count_keys is no_keys else None,
    )


def _optional_leaf(arguments: tuple[Any, ...]) -> TypeSchema | None:
    others = [argument for argument in arguments if argument is not types.NoneType]
    item = _plain(others[0]) if len(others) == 1 else None
    if item is None:
        return None
    count = item.count_keys
    return replace(
        item,
        core={"type": "nullable", "schema": item.core},
        fast={"type": "nullable", "schema": item.fast},
        json={"anyOf": [dict(item.json), {"type": "null"}]},
        admits_null=True,
        count_keys=count if count is no_keys or count is None else _unless_none(count),
    )


def _literal_leaf(values: tuple[Any, ...]) -> TypeSchema | None:
    if {type(value) for value in values} != {str}:
        return None
    json: Schema = {"const": values[0]} if len(values) == 1 else {"enum": list(values)}
    return _scalar({"type": "literal", "expected": list(values)}, {**json, "type": "string"})


def _bounds(item: Any) -> dict[str, Any] | None:
    if type(item).__module__ != "annotated_types":
        return None
    name = type(item).__name__
    field = {
        "Ge": "ge",
        "Gt": "gt",
        "Le": "le",
        "Lt": "lt",
        "MultipleOf": "multiple_of",
        "MinLen": "min_length",
        "MaxLen": "max_length",
    }.get(name)
    return None if field is None else {field: getattr(item, field)}


# --- everything else: pydantic describes it, the rules are laid over its core schema

_BUILDING = threading.RLock()


def _described_by_pydantic(annotation: Any) -> TypeSchema:
    import warnings

    # The filter of warnings is one for the process; the lock keeps two builds apart.
    with _BUILDING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _leaf_from_pydantic(annotation)
        except (Exception, RecursionError) as error:
            raise NoSchemaError(_reason(error)) from error


_FOREIGN = ("pydantic", "core_schema", "core schema", "arbitrary_types_allowed", "JsonSchema")


def _reason(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    first = text[0].strip() if text else type(error).__name__
    if any(word in first for word in _FOREIGN):
        return "it is no JSON type, model, dataclass, TypedDict or enum"
    return first.removesuffix(".") or type(error).__name__


def _leaf_from_pydantic(annotation: Any) -> TypeSchema:
    from pydantic import TypeAdapter
    from pydantic_core import SchemaValidator

    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    found, root = TypeAdapter.json_schemas(
        [(0, "validation", adapter)], schema_generator=_quiet_generator()
    )
    described: Any = adapter.core_schema
    if described["type"] in _NEVER_JSON:
        raise NoSchemaError("no JSON value is one")
    core, definitions = _EXACT.whole(described, annotation)
    fast, fast_definitions = _FAST.whole(described, annotation)
    whole: Any = core
    if definitions:
        whole = {"type": "definitions", "schema": core, "definitions": definitions}
    nodes = list(_nodes(described))
    return TypeSchema(
        core=core,
        fast=fast,
        definitions=tuple(definitions),
        fast_definitions=tuple(fast_definitions),
        json=found[0, "validation"],
        defs=root.get("$defs", {}),
        admits_null=_accepts_null(SchemaValidator(whole)),
        count_keys=_key_counter(described),
        adapter=adapter,
        deep=any(map(_is_open, nodes)),
        prebuilt=any(
            node["type"] == "dataclass" and "__pydantic_validator__" in vars(node["cls"])
            for node in nodes
        ),
    )


_NEVER_JSON = {"is-subclass", "is-instance", "callable"}


def _nodes(value: Any) -> Iterator[Schema]:
    """Walk a core schema: the schema itself and everything inside it."""
    if isinstance(value, dict):
        mapping = typing.cast("Schema", value)
        if isinstance(mapping.get("type"), str):
            yield mapping
        for name, item in mapping.items():
            if name not in _NOT_SCHEMAS or name == "config":
                yield from _nodes(item)
    elif isinstance(value, (list, tuple)):
        for item in typing.cast("list[Any]", value):
            yield from _nodes(item)


def _is_open(schema: Schema) -> bool:
    """Return whether values of a schema may hold anything, nested to any depth."""
    config: Schema = schema.get("config") or {}
    if "allow" in {config.get("extra_fields_behavior"), schema.get("extra_behavior")}:
        return True
    kind = schema["type"]
    if kind == "list":
        return "items_schema" not in schema
    return kind in {"any", "definition-ref", "generator"} or (
        kind == "dict" and "values_schema" not in schema
    )


def _accepts_null(validator: Any) -> bool:
    try:
        validator.validate_json("null")
    except Exception:  # noqa: BLE001 - a validator of the user's may raise anything
        return False
    return True


def _quiet_generator() -> Any:
    global _generator  # noqa: PLW0603 - the class exists once pydantic is loaded
    if _generator is None:
        from pydantic.json_schema import GenerateJsonSchema

        class QuietGenerator(GenerateJsonSchema):
            """Leaves a default that is no JSON out of the schema without a warning."""

            ignored_warning_kinds = {  # noqa: RUF012 - the name and form are pydantic's
                "skipped-choice",
                "non-serializable-default",
                "skipped-discriminator",
            }

            def field_is_present(self, field: Any) -> bool:
                """Leave out a field of a dataclass that its constructor does not take."""
                return field.get("init") is not False and super().field_is_present(field)

        _generator = QuietGenerator
    return _generator


_generator: Any = None

_NOT_SCHEMAS = frozenset(
    {
        "cls",
        "config",
        "custom_error_context",
        "default",
        "default_factory",
        "expected",
        "function",
        "members",
        "metadata",
        "serialization",
    }
)


class _TypeRules:
    """Lays the acceptance rules over core schemas, down to everything but pydantic models.

    Args:
        fast: Whether only what is written just as the JSON Schema says is accepted, and unknown
            keys are passed over.
    """

    def __init__(self, *, fast: bool) -> None:
        self._fast = fast
        self._finishers: dict[str, Callable[[Schema], Schema]] = {
            "list": _with_items("items_schema"),
            "set": _with_items("items_schema"),
            "frozenset": _with_items("items_schema"),
            "dict": _with_items("values_schema"),
            "generator": _as_list,
        }
        if not fast:
            self._finishers |= {
                "typed-dict": _closed,
                "dataclass": _closed_dataclass,
                "default": _default_for_null,
            }

    def whole(self, schema: Schema, annotation: Any) -> tuple[Schema, list[Schema]]:
        """Apply the rules to what pydantic gave for an annotation; definitions come apart."""
        definitions: list[Schema] = []
        if schema["type"] == "definitions":
            # A union chooses among the definitions by the exact rules too.
            rules = _EXACT if any(map(_chooses, _nodes(schema))) else self
            definitions = [rules.apply(item) for item in schema["definitions"]]
            schema = schema["schema"]
        if schema["type"] == "default" and schema.get("on_error", "raise") == "raise":
            schema = schema["schema"]  # what reads the arguments knows the default
        core = _without_ref(self.apply(schema))
        if typing.get_origin(annotation) in {collections.abc.Iterator, collections.abc.Generator}:
            after = {"type": "no-info", "function": iter}
            core = {"type": "function-after", "function": after, "schema": core}
        if _mentions_json(core) or any(map(_mentions_json, definitions)):
            definitions.append(_JSON_DEFINITION)
        return core, definitions

    def apply(self, schema: Schema) -> Schema:
        """Apply the rules to one schema and what is inside it."""
        kind = schema["type"]
        if kind == "model":
            return schema
        if kind in _RULED:
            return self._number(schema)
        if kind in {"any", "object"}:
            return _JSON_REF
        if kind == "literal":
            return _literal(schema)
        # Where an arm that fails leaves the choice to another, a narrower one would change it.
        part = _EXACT.part if _chooses(schema) else self.part
        result = {
            name: value if name in _NOT_SCHEMAS else part(value) for name, value in schema.items()
        }
        if kind == "enum":
            return _enumeration(result)
        if kind == "lax-or-strict" and _is_address(schema):
            return {"type": "chain", "steps": [_STRING_OR_INT, _unnamed(result)]}
        return self._finishers.get(kind, _same)(result)

    def part(self, value: Any) -> Any:
        """Apply the rules to whatever stands inside a schema."""
        if isinstance(value, dict):
            mapping = typing.cast("Schema", value)
            if isinstance(mapping.get("type"), str):
                return self.apply(mapping)
            return {name: self.part(item) for name, item in mapping.items()}
        if isinstance(value, list):
            return [self.part(item) for item in typing.cast("list[Any]", value)]
        if isinstance(value, tuple):
            return tuple(self.part(item) for item in typing.cast("tuple[Any, ...]", value))
        return value

    def _number(self, schema: Schema) -> Schema:
        kind = schema["type"]
        if "strict" in schema:
            return schema
        bounds = {
            name: value
            for name, value in schema.items()
            if name not in {"type", "metadata", "ref", "serialization", "allow_inf_nan"}
        }
        strict = {**_STRICT[kind], **bounds}
        if self._fast:
            return strict
        return {"type": "chain", "steps": [_RULED[kind], strict]} if bounds else _RULED[kind]


def _chooses(schema: Schema) -> bool:
    """Return whether a schema continues with something else where a schema inside it fails."""
    if schema["type"] == "default":
        return schema.get("on_error", "raise") != "raise"
    return schema["type"] in {"union", "function-wrap"}


_STRING_OR_INT: Schema = {
    "type": "union",
    "mode": "left_to_right",
    "custom_error_type": "string_type",
    "choices": [{"type": "str", "strict": True}, _STRICT_INT],
}
_WHOLE: Schema = {
    "type": "union",
    "mode": "left_to_right",
    "choices": [
        _STRICT_INT,
        {"type": "chain", "steps": [{"type": "float", "strict": True}, {"type": "int"}]},
    ],
}


def _unnamed(schema: Schema) -> Schema:
    return {name: value for name, value in schema.items() if name != "ref"}


def _is_address(schema: Schema) -> bool:
    lax: Schema = schema["lax_schema"]
    if lax["type"] != "function-plain":
        return False
    return getattr(lax["function"]["function"], "__name__", "").startswith("ip_v")


def _one_of(error: str, choices: list[Schema], values: Iterable[Any]) -> Schema:
    """Accept what one of several schemas accepts; the error names the values instead."""
    never: Schema = {"type": "literal", "expected": [object()]}  # a union of one has no error
    return {
        "type": "union",
        "mode": "left_to_right",
        "custom_error_type": error,
        "custom_error_context": {"expected": _in_words(values)},
        "choices": [*choices, never],
    }


def _in_words(values: Iterable[Any]) -> str:
    *others, last = map(repr, values)
    return f"{', '.join(others)} or {last}" if others else last


def _enumeration(schema: Schema) -> Schema:
    """Keep booleans from members that are numbers, and numbers from members that are booleans."""
    if "missing" in schema:
        return schema
    values = [member.value for member in schema["members"]]
    kinds = set(map(_kind, values))
    _check_kinds(kinds)
    if not kinds & {int, float, bool} or kinds - _JSON_KINDS:
        return schema
    choices: list[Schema] = []
    if kinds & {int, float}:
        choices += [_WHOLE, {"type": "float", "strict": True}]
    if bool in kinds:
        choices.append(_STRICT_BOOL)
    if kinds & {int, float, str}:
        choices.append({"type": "str", "strict": True})
    if types.NoneType in kinds:
        choices.append({"type": "none"})
    guard = _one_of("enum", choices, values)
    chain: Schema = {"type": "chain", "steps": [guard, _unnamed(schema)]}
    return {**chain, "ref": schema["ref"]} if "ref" in schema else chain


_JSON_KINDS: set[Any] = {int, float, bool, str, types.NoneType}


def _kind(value: Any) -> Any:
    return typing.cast("Any", type(value))


def _check_kinds(kinds: set[Any]) -> None:
    """Refuse fixed values that no JSON value equals: no one could ever send them."""
    if bytes in kinds:
        raise NoSchemaError("its values are bytes, and no JSON value equals those")


def _literal(schema: Schema) -> Schema:
    """Tell numbers from booleans, and let members of enumerations go by their values."""
    import enum

    expected: list[Any] = schema["expected"]
    values = [item.value if isinstance(item, enum.Enum) else item for item in expected]
    kinds = set(map(_kind, values))
    members: dict[tuple[Any, Any], Any] = {
        (_kind(value), value): item
        for item, value in zip(expected, values, strict=True)
        if type(value) in _JSON_KINDS and isinstance(item, enum.Enum)
    }
    _check_kinds(kinds)
    if kinds - _JSON_KINDS or (kinds == {str} and not members):
        return schema
    choices: list[Schema] = []
    for kind, source in ((str, None), (int, _WHOLE), (bool, _STRICT_BOOL), (float, None)):
        own = [value for value in values if type(value) is kind]
        if own:
            literal: Schema = {"type": "literal", "expected": own}
            choices.append({"type": "chain", "steps": [source, literal]} if source else literal)
    if types.NoneType in kinds:
        choices.append({"type": "none"})
    result = _one_of("literal_error", choices, values)
    if members:

        def member(value: Any) -> Any:
            return members.get((_kind(value), value), value)

        function: Schema = {"type": "no-info", "function": member}
        result = {"type": "function-after", "function": function, "schema": result}
    return {**result, "ref": schema["ref"]} if "ref" in schema else result


def _same(schema: Schema) -> Schema:
    return schema


def _with_items(name: str) -> Callable[[Schema], Schema]:
    def finish(schema: Schema) -> Schema:
        schema.setdefault(name, _JSON_REF)
        return schema

    return finish


def _closed(schema: Schema) -> Schema:
    config: Schema = schema.get("config") or {}
    if "extra_fields_behavior" not in config and not schema.get("extras_schema"):
        schema["extra_behavior"] = "forbid"
    return schema


def _closed_dataclass(schema: Schema) -> Schema:
    config: Schema = schema.get("config") or {}
    inner = schema["schema"]
    if "extra_fields_behavior" not in config and inner["type"] == "dataclass-args":
        inner["extra_behavior"] = "forbid"
    return schema


def _as_list(schema: Schema) -> Schema:
    """Read an iterable of JSON values at once: a lazy one would fail inside the tool."""
    kept = {"items_schema", "min_length", "max_length", "ref"}
    return {
        "type": "list",
        "items_schema": _JSON_REF,
        **{name: value for name, value in schema.items() if name in kept},
    }


def _default_for_null(schema: Schema) -> Schema:
    """Let `null` mean the default of a field whose type does not accept it."""
    inner = schema["schema"]
    if inner["type"] in {"nullable", "none", "definition-ref"}:
        return schema
    make = schema.get("default_factory")
    if make is None:
        default = schema.get("default")
        return {**schema, "schema": null_means(inner, lambda: default)}
    if schema.get("default_factory_takes_data"):
        return schema
    return {**schema, "schema": null_means(inner, make)}


def null_means(schema: Schema, make: Callable[[], Any]) -> Schema:
    """Let `null` mean what `make` gives, where the schema itself does not accept it."""
    return {
        "type": "union",
        "mode": "left_to_right",
        "choices": [
            schema,
            {
                "type": "function-after",
                "function": {"type": "no-info", "function": lambda _: make()},  # pyright: ignore[reportUnknownLambdaType]
                "schema": {"type": "none"},
            },
        ],
    }


_EXACT = _TypeRules(fast=False)
_FAST = _TypeRules(fast=True)


def _without_ref(schema: Schema) -> Schema:
    """Drop the name of an inlined schema: two parameters of one type would define it twice."""
    if "ref" not in schema and not any(
        isinstance(value, (dict, list)) for value in schema.values()
    ):
        return schema
    return {
        name: value if name in _NOT_SCHEMAS else _part_without_ref(value)
        for name, value in schema.items()
        if name != "ref"
    }


def _part_without_ref(value: Any) -> Any:
    if isinstance(value, dict):
        mapping = typing.cast("Schema", value)
        if isinstance(mapping.get("type"), str):
            return _without_ref(mapping)
        return {name: _part_without_ref(item) for name, item in mapping.items()}
    if isinstance(value, list):
        return [_part_without_ref(item) for item in typing.cast("list[Any]", value)]
    return value


def _mentions_json(value: Any) -> bool:
    if isinstance(value, dict):
        mapping = typing.cast("Schema", value)
        return mapping is _JSON_REF or any(
            _mentions_json(item) for name, item in mapping.items() if name not in _NOT_SCHEMAS
        )
    return isinstance(value, (list, tuple)) and any(
        map(_mentions_json, typing.cast("list[Any]", value))
    )


# --- how many keys a value was made from


def _sum_of(count: KeyCounter) -> KeyCounter:
    return lambda values: sum(map(count, values))


def _unless_none(count: KeyCounter) -> KeyCounter:
    return lambda value: 0 if value is None else count(value)


def _key_counter(schema: Any) -> KeyCounter | None:
    """Tell from a core schema how to count the keys a validated value was made from."""
    match schema["type"]:
        case "str" | "int" | "float" | "bool" | "none" | "literal" | "enum" | "uuid" | "date":
            return no_keys
        case "datetime" | "time" | "timedelta" | "decimal" | "url" | "bytes":
            return no_keys
        case "nullable" | "default":
            inner = _key_counter(schema["schema"])
            return inner if inner is None or inner is no_keys else _unless_none(inner)
        case "list" | "set" | "frozenset":
            inner = _key_counter(schema.get("items_schema", {"type": "any"}))
            return inner if inner is None or inner is no_keys else _sum_of(inner)
        case "typed-dict":
            return None if _renames(schema) else _count_fields(schema["fields"], typed_dict=True)
        case "model":
            plain = not _renames(schema) and not any(
                schema.get(name) for name in ("custom_init", "root_model", "post_init")
            )
            inner = schema["schema"]
            if plain and inner["type"] == "model-fields" and not inner.get("extras_schema"):
                return _count_fields(inner["fields"], typed_dict=False)
            return None
        case "dataclass":
            return _count_dataclass(schema)
        case "union":
            return _count_union(schema["choices"])
        case _:
            return None


def _renames(schema: Any) -> bool:
    """Return whether fields go by several names, so that one key may be read into two fields."""
    config: Schema = schema.get("config") or {}
    return bool(config.get("validate_by_name") or config.get("populate_by_name"))


def _distinct_keys(fields: Iterable[tuple[str, Any]]) -> bool:
    """Return whether every field is read from one key of its own."""
    keys: list[Any] = [field.get("validation_alias", name) for name, field in fields]
    texts = {key for key in keys if isinstance(key, str)}
    return len(texts) == len(keys)


def _count_fields(fields: Schema, *, typed_dict: bool) -> KeyCounter | None:
    nested: list[tuple[str, KeyCounter]] = []
    if not _distinct_keys(fields.items()):
        return None
    for name, field in fields.items():
        counter = _key_counter(field["schema"])
        if counter is None or (typed_dict and field["schema"]["type"] == "default"):
            return None
        if counter is not no_keys:
            nested.append((name, counter))
    if typed_dict:
        if not nested:
            return len
        return lambda value: (
            len(value) + sum(counter(value[name]) for name, counter in nested if name in value)
        )
    if not nested:
        return lambda value: len(value.__pydantic_fields_set__)

    def count(value: Any) -> int:
        given = value.__pydantic_fields_set__
        total = len(given)
        for name, counter in nested:
            if name in given:
                total += counter(getattr(value, name))
        return total

    return count


def _count_dataclass(schema: Any) -> KeyCounter | None:
    """Count the fields of a dataclass that were given; one that has its default may not be."""
    inner = schema["schema"]
    if inner["type"] != "dataclass-args" or schema.get("post_init") or _renames(schema):
        return None
    fields = [field for field in inner["fields"] if field.get("init") is not False]
    if not _distinct_keys((field["name"], field) for field in fields):
        return None
    required = 0
    optional: list[tuple[str, Any]] = []
    nested: list[tuple[str, KeyCounter]] = []
    for field in fields:
        name, described = field["name"], field["schema"]
        if described["type"] != "default":
            required += 1
        elif "default" in described:
            optional.append((name, described["default"]))
        counter = _key_counter(described)
        if counter is None or (counter is not no_keys and described["type"] == "default"):
            return None  # what is inside a default was not given
        if counter is not no_keys:
            nested.append((name, counter))
    if not nested and not optional:
        return lambda _: required

    def count(value: Any) -> int:
        total = required
        for name, default in optional:
            total += getattr(value, name) is not default
        for name, counter in nested:
            total += counter(getattr(value, name))
        return total

    return count


def _count_union(choices: list[Any]) -> KeyCounter | None:
    counters = [_key_counter(choice) for choice in choices]
    if all(counter is no_keys for counter in counters):
        return no_keys
    if all(choice["type"] == "model" for choice in choices) and None not in counters:
        by_class = {
            choice["cls"]: counter for choice, counter in zip(choices, counters, strict=True)
        }
        return lambda value: (by_class.get(type(value)) or no_keys)(value)
    return None
