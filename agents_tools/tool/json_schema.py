"""The JSON Schema of a tool's arguments, read from a type or from a raw schema."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserTypeError, UserValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "aliases_of",
    "check_params_schema",
    "copy_json",
    "json_schema_of",
    "schema_reader",
]


def schema_reader(
    name: str, schema: Any, *, enforce: bool
) -> tuple[dict[str, Any], Callable[[str], str] | None]:
    """Return the JSON Schema of a tool, and the function that normalizes arguments by it.

    Args:
        name: The name of the tool, for error messages.
        schema: A pydantic model, a dataclass, a TypedDict, or a raw JSON Schema.
        enforce: Whether arguments are validated.

    Returns:
        The schema, and a function from the JSON text of arguments to their normalized JSON text;
        `None` in place of the function if `enforce` is false.

    Raises:
        UserError: The type has no JSON Schema.
    """
    from agents_tools.schema.arguments import SchemaReader, TypeReader
    from agents_tools.schema.types import NoSchemaError, leaf_of

    if isinstance(schema, Mapping):
        json_schema = typing.cast("dict[str, Any]", copy_json(schema))
        return json_schema, SchemaReader(name, json_schema).settled if enforce else None
    try:
        leaf = leaf_of(schema)
    except NoSchemaError as error:
        raise UserTypeError(
            f"The schema of tool {name!r} cannot be converted to JSON Schema ({error}): got "
            f"{schema!r:.80}. Pass a pydantic model, a dataclass, a TypedDict or a JSON Schema."
        ) from error
    json_schema = json_schema_of(leaf)
    if not enforce:
        return json_schema, None
    return json_schema, TypeReader(name, leaf, json_schema, other_keys=aliases_of(schema)).settled


def json_schema_of(leaf: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type whose fields are the arguments of a tool."""
    json_schema = {**leaf.json, **({"$defs": leaf.defs} if leaf.defs else {})}
    if list(json_schema) in (["$ref", "$defs"], ["$ref"]):
        return _inline_root(json_schema)
    return json_schema


def _inline_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace the reference at the root by its definition; a recursive type keeps both."""
    key = schema["$ref"].removeprefix("#/$defs/")
    definitions = dict(schema["$defs"])
    root = definitions[key]
    if f"'#/$defs/{key}'" not in repr(definitions):
        del definitions[key]
    return {**root, **({"$defs": definitions} if definitions else {})}


def aliases_of(schema: Any) -> Iterator[str]:
    """Yield every name and alias under which the fields of a pydantic model are accepted."""
    fields: Mapping[str, Any] = getattr(schema, "__pydantic_fields__", {})
    for name, field in fields.items():
        yield name
        choices = getattr(field.validation_alias, "choices", [field.validation_alias])
        yield from (choice for choice in choices if isinstance(choice, str))


def check_params_schema(name: str, schema: Any) -> dict[str, Any]:
    """Return a deep copy of a raw JSON Schema.

    Raises:
        UserError: It is not the schema of an object, or not JSON.
    """
    mapping = typing.cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else None
    if mapping is None or mapping.get("type", "object") != "object":
        raise UserTypeError(
            f"The params_json_schema of tool {name!r} must be the JSON Schema of an object: "
            f'expected a mapping with "type": "object", got {schema!r:.80}.'
        )
    import json

    try:
        copied = typing.cast("dict[str, Any]", copy_json(dict(mapping)))
        json.dumps(copied, allow_nan=False)
    except (RecursionError, TypeError, ValueError) as error:
        raise UserValueError(
            f"The params_json_schema of tool {name!r} has a value that JSON cannot represent "
            f"({error}). Use only strings, finite numbers, booleans, None, lists, and mappings "
            "with string keys."
        ) from None
    return copied


def copy_json(value: Any) -> Any:
    """Return a deep copy of a JSON value."""
    if isinstance(value, Mapping):
        mapping = typing.cast("Mapping[str, Any]", value)
        return {key: copy_json(item) for key, item in mapping.items()}
    if isinstance(value, list):
        return [copy_json(item) for item in typing.cast("list[Any]", value)]
    return value
