"""One annotation as a validator's core schema and as JSON Schema, by the acceptance rules of tools.

The rules, published in the documentation as the acceptance table: a boolean is not a number,
numbers can be numeric strings and integers whole floats, NaN and Infinity are not JSON, unknown
keys are refused, and `null` for something with a default means the default. They hold
for parameters, containers, TypedDicts and dataclasses; inside a pydantic model its own
configuration rules, and an explicit `Field(strict=...)` wins.
"""

from __future__ import annotations

import collections.abc
import re
import threading
import types
import typing
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Literal

from agents_tools.schema.callables import EMPTY
from agents_tools.schema.flags import flag_mask, listed_flags

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "NoSchemaError",
    "TypeSchema",
    "bounded_type_schema_of",
    "imports_objects",
    "joint_json_schemas",
    "object_schema_of",
    "root_type_schema_of",
    "type_schema_of",
]

Schema = dict[str, Any]
_Finishers = dict[str, "Callable[[Schema], Schema]"]


class NoSchemaError(Exception):
    """An annotation cannot be described; the message says why.

    Args:
        message: The reason.
        remedy: What to do, if that is special to the reason.
    """

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSchema:
    """The schemas of an annotation, for values that arrive as JSON.

    Attributes:
        core: The schema of the validator, with the acceptance rules applied.
        definitions: Schemas that `core` refers to.
        json: The JSON Schema; it can refer to `defs`.
        defs: The named schemas of `json`, by name.
        adapter: The pydantic adapter; `None` if the type needs none.
        own_rules: Whether the type has a pydantic model, or states that it is strict.
        prebuilt: Whether a class in the type has a validator of its own without the rules.
    """

    core: Schema
    json: Schema
    definitions: tuple[Schema, ...] = ()
    defs: Schema
    adapter: Any = None
    own_rules: bool = False
    prebuilt: bool = False


def type_schema_of(annotation: Any) -> TypeSchema:
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
    if key is not None and (known := _TYPE_SCHEMAS.get(key)) is not None:
        return known
    type_schema = _compose(annotation) or _ask_pydantic(annotation)
    if key is not None:
        if len(_TYPE_SCHEMAS) >= _CACHE_SIZE:
            _TYPE_SCHEMAS.clear()
        _TYPE_SCHEMAS[key] = type_schema
    return type_schema


def root_type_schema_of(annotation: Any) -> TypeSchema:
    """Describe a type whose fields are the arguments of a tool.

    The acceptance rules also apply to its own fields if it is a pydantic model.

    Raises:
        NoSchemaError: It has no JSON form.
    """
    return _ask_pydantic(annotation, is_root=True)


def object_schema_of(type_schema: TypeSchema) -> Schema:
    """Return the JSON Schema of a type whose fields are the arguments of a tool."""
    schema: Schema = {
        **type_schema.json,
        **({"$defs": type_schema.defs} if type_schema.defs else {}),
    }
    if list(schema) not in (["$ref", "$defs"], ["$ref"]):
        return schema
    key = schema["$ref"].removeprefix("#/$defs/")
    definitions = dict(schema["$defs"])
    root = definitions[key]
    if f"'#/$defs/{key}'" not in repr(definitions):  # else the type is recursive and needs both
        del definitions[key]
    return {**root, **({"$defs": definitions} if definitions else {})}


def bounded_type_schema_of(annotation: Any, metadata: Iterable[Any]) -> TypeSchema | None:
    """Describe a number or a string with bounds; return `None` for other types and metadata."""
    if not any(annotation is known for known in _PLAIN_CORE):
        return None
    base = type_schema_of(annotation)
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
            if isfinite(value):  # JSON has no infinity, and most infinite bounds exclude nothing
                json[_JSON_BOUNDS[name]] = value
    return replace(base, core=_apply(core), json=json)


def joint_json_schemas(type_schemas: list[TypeSchema]) -> tuple[list[Schema], Schema]:
    """Write the JSON Schemas of several type_schemas together, for when their names collide."""
    from pydantic import TypeAdapter

    from agents_tools.schema.generator import QuietGenerator

    inputs: list[Any] = [
        (index, "validation", type_schema.adapter)
        for index, type_schema in enumerate(type_schemas)
        if type_schema.adapter is not None
    ]
    found, root = TypeAdapter.json_schemas(inputs, schema_generator=QuietGenerator)
    schemas = [
        found[index, "validation"] if type_schema.adapter is not None else type_schema.json
        for index, type_schema in enumerate(type_schemas)
    ]
    return schemas, root.get("$defs", {})


# --- the scalars, and what is composed of them without asking pydantic


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


def _scalar(core: Schema, json: Schema) -> TypeSchema:
    return TypeSchema(core=core, json=json, defs={})


_ANYTHING = TypeSchema(core=_JSON_REF, definitions=(_JSON_DEFINITION,), json={}, defs={})
_SCALARS: dict[Any, TypeSchema] = {
    str: _scalar({"type": "str"}, {"type": "string"}),
    int: _scalar(_STRICT_INT, {"type": "integer"}),
    float: _scalar(_STRICT_FLOAT, {"type": "number"}),
    bool: _scalar(_STRICT_BOOL, {"type": "boolean"}),
    types.NoneType: _scalar({"type": "none"}, {"type": "null"}),
    object: _ANYTHING,
    Any: _ANYTHING,
    EMPTY: _ANYTHING,
}
_TYPE_SCHEMAS: dict[Any, TypeSchema] = {}
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


def _compose(annotation: Any) -> TypeSchema | None:
    """Return the schema of a list, dict, optional or literal of scalars; `None` for other types."""
    origin = typing.get_origin(annotation)
    arguments: tuple[Any, ...] = typing.get_args(annotation)
    if annotation is list or annotation is dict:
        origin, arguments = annotation, (Any,) if annotation is list else (str, Any)
    if not arguments:
        return None
    if origin is list and (item := _plain(arguments[0])) is not None:
        return _list_schema(item, bare=annotation is list)
    if origin is dict and arguments[0] is str and (item := _plain(arguments[1])) is not None:
        return _dict_schema(item)
    if origin in {typing.Union, types.UnionType} and len(arguments) == 2:  # noqa: PLR2004
        return _optional_schema(arguments)
    if origin is Literal:
        return _literal_schema(arguments)
    return None


def _plain(annotation: Any) -> TypeSchema | None:
    """Return the schema of a scalar, or of a type composed of scalars; `None` for other types."""
    try:
        if annotation in _SCALARS:
            return _SCALARS[annotation]
    except TypeError:
        return None
    return _compose(annotation)


def _list_schema(item: TypeSchema, *, bare: bool) -> TypeSchema:
    return replace(
        item,
        core={"type": "list", "items_schema": item.core},
        json={"type": "array", "items": {} if bare else dict(item.json)},
    )


def _dict_schema(item: TypeSchema) -> TypeSchema:
    return replace(
        item,
        core={"type": "dict", "keys_schema": {"type": "str"}, "values_schema": item.core},
        json={"type": "object", "additionalProperties": dict(item.json) or True},
    )


def _optional_schema(arguments: tuple[Any, ...]) -> TypeSchema | None:
    others = [argument for argument in arguments if argument is not types.NoneType]
    item = _plain(others[0]) if len(others) == 1 else None
    if item is None:
        return None
    return replace(
        item,
        core={"type": "nullable", "schema": item.core},
        json={"anyOf": [dict(item.json), {"type": "null"}]},
    )


def _literal_schema(values: tuple[Any, ...]) -> TypeSchema | None:
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


def _ask_pydantic(annotation: Any, *, is_root: bool = False) -> TypeSchema:
    import warnings

    # The filter of warnings is one for the process; the lock keeps two builds apart.
    with _BUILDING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _type_schema_from_pydantic(annotation, is_root=is_root)
        except NoSchemaError:
            raise
        except ImportError as error:
            raise _missing_package(error) from error
        except (Exception, RecursionError) as error:
            raise NoSchemaError(_reason(error, annotation)) from error


def _missing_package(error: ImportError) -> NoSchemaError:
    """Return the error for a type whose package is not installed: `EmailStr`, or a network type."""
    reason, _, remedy = str(error).partition(", run ")
    remedy = remedy.strip("`")
    return NoSchemaError(reason, f"Install the package: {remedy}." if remedy else None)


_FOREIGN = ("pydantic", "core_schema", "core schema", "arbitrary_types_allowed", "JsonSchema")


_CULPRIT = re.compile(r"schema for (<class '(.+?)'>|.+?)\. Set `arbitrary_types")


def _reason(error: BaseException, annotation: Any) -> str:
    text = str(error).strip().splitlines()
    first = text[0].strip() if text else type(error).__name__
    culprit = _CULPRIT.search(first)
    if culprit is not None and culprit[1] != repr(annotation):
        name = culprit[2] or culprit[1]
        return f"{name!r} in it is no JSON type, model, dataclass, TypedDict or enum"
    if isinstance(error, LookupError) or any(word in first for word in _FOREIGN):
        return "it is no JSON type, model, dataclass, TypedDict or enum"
    return first.removesuffix(".") or type(error).__name__


def _type_schema_from_pydantic(annotation: Any, *, is_root: bool) -> TypeSchema:
    from pydantic import TypeAdapter

    from agents_tools.schema.generator import QuietGenerator

    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    generator: type[QuietGenerator] = QuietGenerator
    if is_root:  # the tool reads the JSON text itself, so its bytes are those of pydantic
        generator = type("RootGenerator", (QuietGenerator,), {"models": 1})
    found, root = TypeAdapter.json_schemas([(0, "validation", adapter)], schema_generator=generator)
    described: Any = adapter.core_schema
    if described["type"] in _NEVER_JSON:
        raise NoSchemaError("no JSON value is one")
    nodes = list(_nodes(described))
    if imports_objects(described):
        raise NoSchemaError(
            "it has an `ImportString`, with which a model could import any object, such as "
            "`os.system`",
            "Use a `Literal` or an enum of the allowed names, and import the object in the tool.",
        )
    core, definitions = _with_rules(described, annotation, is_root=is_root)
    return TypeSchema(
        core=core,
        definitions=tuple(definitions),
        json=found[0, "validation"],
        defs=root.get("$defs", {}),
        adapter=adapter,
        own_rules=any(node["type"] == "model" or node.get("strict") for node in nodes),
        prebuilt=is_root
        or any(
            node["type"] == "dataclass" and "__pydantic_validator__" in vars(node["cls"])
            for node in nodes
        ),
    )


_NEVER_JSON = {"is-subclass", "is-instance", "callable"}


def _nodes(value: Any) -> Iterator[Schema]:
    """Walk a core schema: the schema itself and everything inside it."""
    if isinstance(value, dict):
        mapping = typing.cast("Schema", value)
        is_schema = isinstance(mapping.get("type"), str)  # else it has one schema for each field
        if is_schema:
            yield mapping
        for name, item in mapping.items():
            if not is_schema or name not in _NOT_SCHEMAS or name == "config":
                yield from _nodes(item)
    elif isinstance(value, (list, tuple)):
        for item in typing.cast("list[Any]", value):
            yield from _nodes(item)


def imports_objects(core_schema: Any) -> bool:
    """Return whether a type has an `ImportString`, which imports whatever its text names."""
    return any(map(_is_import, _nodes(core_schema)))


def _is_import(schema: Schema) -> bool:
    called: Any = schema.get("function")
    if not isinstance(called, dict):
        return False
    function: Any = typing.cast("Schema", called).get("function")
    module: Any = getattr(function, "__module__", "")
    return getattr(function, "__name__", "") == "import_string" and module.startswith("pydantic.")


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


def _with_rules(schema: Schema, annotation: Any, *, is_root: bool) -> tuple[Schema, list[Schema]]:
    """Return the core schema of an annotation with the acceptance rules, and its definitions.

    Args:
        schema: The core schema from pydantic.
        annotation: The annotation.
        is_root: Whether the rules also apply to the fields of the outermost pydantic model.
    """
    finishers = _ROOT_FINISHERS if is_root else _FINISHERS
    definitions: list[Schema] = []
    if schema["type"] == "definitions":
        definitions = [_apply(item, finishers) for item in schema["definitions"]]
        schema = schema["schema"]
    if schema["type"] == "default" and schema.get("on_error", "raise") == "raise":
        schema = schema["schema"]  # the reader of the arguments knows the default
    if is_root:
        schema = _open_root(schema, definitions)
    core = _without_ref(_apply(schema, finishers))
    if typing.get_origin(annotation) in {collections.abc.Iterator, collections.abc.Generator}:
        after = {"type": "no-info", "function": iter}
        core = {"type": "function-after", "function": after, "schema": core}
    if _mentions_json(core) or any(map(_mentions_json, definitions)):
        definitions.append(_JSON_DEFINITION)
    return core, definitions


def _open_root(schema: Schema, definitions: list[Schema]) -> Schema:
    """Return the schema of a root type whose outermost model is subject to the rules."""
    if schema["type"] == "definition-ref":
        target = next(one for one in definitions if one["ref"] == schema["schema_ref"])
        return _open_root(target, definitions)
    if schema["type"] == "model":
        fields: Schema = schema["schema"]
        if fields["type"] == "model-fields" and "extras_schema" not in fields:
            config: Schema = schema.get("config") or {}
            is_open = "allow" in {config.get("extra_fields_behavior"), fields.get("extra_behavior")}
            fields = fields if is_open else {**fields, "extra_behavior": "forbid"}
        metadata: Schema = {**(schema.get("metadata") or {}), _OPEN: True}
        return {**schema, "schema": fields, "metadata": metadata}
    if schema["type"] in {"default", "function-after", "function-before", "function-wrap"}:
        return {**schema, "schema": _open_root(schema["schema"], definitions)}
    return schema


_OPEN = "agents_tools_open"
_MARKED_STRICT = "agents_tools_strict"


def _apply(schema: Schema, finishers: _Finishers | None = None) -> Schema:
    """Return a core schema with the rules, down to pydantic models."""
    finishers = _FINISHERS if finishers is None else finishers
    kind = schema["type"]
    metadata: Schema = schema.get("metadata") or {}
    if kind == "model" and _OPEN not in metadata:
        return schema
    if kind in _STRICT:
        return _number(schema)
    if kind == "function-after" and _decodes_bytes(schema):
        return schema
    if kind in {"any", "object"}:
        return _JSON_REF
    if kind == "literal":
        return _literal(schema)
    result = {
        name: value if name in _NOT_SCHEMAS else _apply_inside(value, finishers)
        for name, value in schema.items()
    }
    if kind == "enum":
        return _enumeration(result)
    if kind == "lax-or-strict" and _is_address(schema):
        return {"type": "chain", "steps": [_STRING_OR_INT, _drop_ref(result)]}
    return finishers.get(kind, _same)(result)


def _decodes_bytes(schema: Schema) -> bool:
    """Return whether a type decodes the text of its bytes itself, as `Base64Bytes` does."""
    encoder: object = getattr(schema["function"]["function"], "__self__", None)
    kind = encoder.__class__
    return kind.__name__ == "EncodedBytes" and kind.__module__.startswith("pydantic.")


def _apply_inside(value: Any, finishers: _Finishers) -> Any:
    """Apply the rules to a part of a core schema."""
    if isinstance(value, dict):
        mapping = typing.cast("Schema", value)
        if isinstance(mapping.get("type"), str):
            return _apply(mapping, finishers)
        return {name: _apply_inside(item, finishers) for name, item in mapping.items()}
    if isinstance(value, list):
        return [_apply_inside(item, finishers) for item in typing.cast("list[Any]", value)]
    if isinstance(value, tuple):
        return tuple(
            _apply_inside(item, finishers) for item in typing.cast("tuple[Any, ...]", value)
        )
    return value


def _number(schema: Schema) -> Schema:
    """Return a number or a boolean without conversions; an explicit `strict` is marked as such."""
    if "strict" in schema:
        metadata: Schema = {**(schema.get("metadata") or {}), _MARKED_STRICT: schema["strict"]}
        return {**schema, "metadata": metadata}
    bounds = {
        name: value
        for name, value in schema.items()
        if name not in {"type", "metadata", "ref", "serialization", "allow_inf_nan"}
    }
    return {**_STRICT[schema["type"]], **bounds}


_STRING_OR_INT: Schema = {
    "type": "union",
    "mode": "left_to_right",
    "custom_error_type": "string_type",
    "choices": [{"type": "str", "strict": True}, _STRICT_INT],
}


def _drop_ref(schema: Schema) -> Schema:
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
    if mask := flag_mask(schema):
        guard: Schema = {**_STRICT_INT, "ge": 0, "le": mask}
        if flags := listed_flags(mask):
            literal: Schema = {"type": "literal", "expected": flags}
            guard = _one_of("enum", [{"type": "chain", "steps": [_STRICT_INT, literal]}], flags)
        return _guard(guard, schema)
    values = [member.value for member in schema["members"]]
    kinds = set(map(_kind, values))
    _check_kinds(kinds)
    if tuple in kinds:
        read: Schema = {"type": "no-info", "function": _as_tuple}
        before: Schema = {"type": "function-before", "function": read, "schema": _drop_ref(schema)}
        return {**before, "ref": schema["ref"]} if "ref" in schema else before
    if not kinds & {int, float, bool} or kinds - _JSON_KINDS:
        return schema
    choices: list[Schema] = []
    if kinds & {int, float}:
        choices += [_STRICT_INT, {"type": "float", "strict": True}]
    if bool in kinds:
        choices.append(_STRICT_BOOL)
    bases: tuple[type, ...] = schema["cls"].__mro__
    if str in kinds or any("_missing_" in vars(one) and one.__module__ != "enum" for one in bases):
        choices.append({"type": "str", "strict": True})  # `_missing_` can accept other values
    if types.NoneType in kinds:
        choices.append({"type": "none"})
    return _guard(_one_of("enum", choices, values), schema)


def _as_tuple(value: Any) -> Any:
    """Return a JSON value with tuples as arrays, as the members of an enumeration have them."""
    if not isinstance(value, list):
        return value
    return tuple(map(_as_tuple, typing.cast("list[Any]", value)))


def _guard(guard: Schema, schema: Schema) -> Schema:
    """Return the schema of an enumeration that is used only for what another schema accepts."""
    chain: Schema = {"type": "chain", "steps": [guard, _drop_ref(schema)]}
    return {**chain, "ref": schema["ref"]} if "ref" in schema else chain


_JSON_KINDS: set[Any] = {int, float, bool, str, types.NoneType}


def _kind(value: Any) -> Any:
    return typing.cast("Any", type(value))


def _check_kinds(kinds: set[Any]) -> None:
    """Refuse fixed values that no JSON value equals: no model could send them."""
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
    for kind, source in ((str, None), (int, _STRICT_INT), (bool, _STRICT_BOOL), (float, None)):
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


def _close_typed_dict(schema: Schema) -> Schema:
    config: Schema = schema.get("config") or {}
    if "extra_fields_behavior" not in config and not schema.get("extras_schema"):
        schema["extra_behavior"] = "forbid"
    return schema


def _close_dataclass(schema: Schema) -> Schema:
    config: Schema = schema.get("config") or {}
    inner = schema["schema"]
    if "extra_fields_behavior" not in config and inner["type"] == "dataclass-args":
        inner["extra_behavior"] = "forbid"
    return schema


def _as_list(schema: Schema) -> Schema:
    """Read an iterable of JSON values at once: a lazy one would fail inside the tool."""
    names = {"items_schema", "min_length", "max_length", "ref"}
    return {
        "type": "list",
        "items_schema": _JSON_REF,
        **{name: value for name, value in schema.items() if name in names},
    }


def _name_tags(schema: Schema) -> Schema:
    """Name the tags of a discriminated union in the error, also if the tag is missing."""
    name = schema["discriminator"]
    if isinstance(name, str) and "custom_error_type" not in schema:
        schema["custom_error_type"] = "agents_tools_tag"
        schema["custom_error_message"] = "Input should be an object with {name} one of {tags}"
        values = dict.fromkeys(getattr(tag, "value", tag) for tag in schema["choices"])
        tags = ", ".join(map(repr, values))
        schema["custom_error_context"] = {"name": repr(name), "tags": tags}
    return schema


def _base64(schema: Schema) -> Schema:
    """Return the schema of bytes that arrive as base64: JSON has no other form of any bytes."""
    from pydantic_core import PydanticCustomError

    def decode(text: str) -> bytes:
        import binascii

        try:
            digits = text.rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
            return binascii.a2b_base64(digits + "=" * (-len(digits) % 4), strict_mode=True)
        except ValueError:
            message = "Input should be bytes in base64"
            raise PydanticCustomError("agents_tools_base64", message) from None

    decoded: Schema = {
        "type": "function-after",
        "function": {"type": "no-info", "function": decode},
        "schema": {"type": "str"},
    }
    chain: Schema = {"type": "chain", "steps": [decoded, _drop_ref(schema)]}
    return {**chain, "ref": schema["ref"]} if "ref" in schema else chain


_ROOT_FINISHERS: _Finishers = {
    "list": _with_items("items_schema"),
    "set": _with_items("items_schema"),
    "frozenset": _with_items("items_schema"),
    "dict": _with_items("values_schema"),
    "generator": _as_list,
    "tagged-union": _name_tags,
    "typed-dict": _close_typed_dict,
    "dataclass": _close_dataclass,
}
_FINISHERS: _Finishers = {**_ROOT_FINISHERS, "bytes": _base64}


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
        is_schema = isinstance(mapping.get("type"), str)  # else it has one schema for each field
        return mapping is _JSON_REF or any(
            _mentions_json(item)
            for name, item in mapping.items()
            if not is_schema or name not in _NOT_SCHEMAS
        )
    return isinstance(value, (list, tuple)) and any(
        map(_mentions_json, typing.cast("list[Any]", value))
    )
