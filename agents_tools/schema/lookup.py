"""Look up the JSON Schema of a value by its path in the arguments of a tool."""

from __future__ import annotations

import typing
from typing import Any

from agents_tools.text.escape import describe_value, shorten
from agents_tools.text.forms import MASK

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["SchemaLookup", "json_type", "named_types", "types_of"]

Schema = dict[str, Any]
Path = typing.Sequence[str | int]


class SchemaLookup:
    """Answers questions about the values of a document that a JSON Schema describes.

    Args:
        json_schema: Returns the JSON Schema; called when the first question is asked.
    """

    def __init__(self, json_schema: Callable[[], Schema]) -> None:
        self._json_schema = json_schema
        self._secret_keys: frozenset[str] | None = None
        self._below: dict[tuple[object, ...], list[Schema]] = {}
        self._top: list[Schema] | None = None

    @property
    def root(self) -> Schema:
        """The JSON Schema of the document."""
        return self._json_schema()

    def at(self, path: Path) -> list[Schema]:
        """Return the schemas of the value at a path: several if it has alternatives."""
        if self._top is None:
            self._top = self.alternatives([self.root])
        current = self._top
        for step in path:
            current = self._known_below(current, step)
        return current

    def _known_below(self, schemas: list[Schema], step: str | int) -> list[Schema]:
        """Return what `below` returns, once for all elements of an array."""
        if isinstance(step, int):
            is_named = any(step < len(schema.get("prefixItems", ())) for schema in schemas)
        else:
            is_named = any(step in schema.get("properties", ()) for schema in schemas)
        key = (tuple(map(id, schemas)), type(step), step if is_named else None)
        found = self._below.get(key)
        if found is None:
            found = self._below[key] = self.below(schemas, step)
        return found

    def alternatives(self, schemas: Iterable[Any]) -> list[Schema]:
        """Return schemas without references and unions."""
        return _alternatives(self.root, schemas)

    def below(self, schemas: Iterable[Schema], step: str | int) -> list[Schema]:
        """Return the schemas of a property or an element of a value.

        Args:
            schemas: The schemas of the value.
            step: The key of the property, or the index of the element.
        """
        found: list[Any] = []
        for schema in schemas:
            if isinstance(step, int):
                prefix = schema.get("prefixItems", ())
                found.append(prefix[step] if step < len(prefix) else schema.get("items"))
            else:
                known = schema.get("properties", {}).get(step)
                found.append(schema.get("additionalProperties") if known is None else known)
        return self.alternatives(found)

    def keys(self, path: Path) -> list[str]:
        """Return the known keys of the object at a path."""
        schemas = self.at(path)
        known = [key for one in schemas for key in one.get("properties", ())]
        names = self.alternatives(one.get("propertyNames") for one in schemas)
        known += [key for one in names for key in _values(one) or () if isinstance(key, str)]
        return list(dict.fromkeys(known))

    def is_optional(self, path: Path) -> bool:
        """Return whether the value at a path is a known property that can be left out."""
        *parents, key = path
        owners = [one for one in self.at(parents) if key in one.get("properties", ())]
        return bool(owners) and not any(key in one.get("required", ()) for one in owners)

    def types(self, path: Path, value: object) -> set[str]:
        """Return the JSON types that a value at a path can have.

        Alternatives that list their values count only if the value is one of them, or has another
        type than all of them.
        """
        return types_of(self.at(path), value)

    def lists(self, path: Path, value: object) -> bool:
        """Return whether an alternative for the value at a path lists a value."""
        return any(value in (_values(schema) or ()) for schema in self.at(path))

    def words(self, path: Path, value: object = None) -> str:
        """Return what the schema expects at a path, in words.

        Args:
            path: The path.
            value: The value there; what is similar to it comes first if the list is cut short.
        """
        found = [words for schema in self.at(path) for words in _in_words(schema, value)]
        distinct = [words for words in dict.fromkeys(found) if words != _WORDS["null"]]
        return shorten(" or ".join(distinct or found[:1]), _MAX_WORDS) or "a value"

    def describe(self, value: object, path: Path) -> str:
        """Return a value at a path for an error message, without secrets."""
        keys = self._secret_keys
        if keys is None:
            keys = self._secret_keys = secret_keys(self.root)
        if not keys.isdisjoint(path) or any(map(_is_secret, self.at(path))):
            return "another secret"
        return describe_value(_without(keys, value) if keys else value)


def types_of(schemas: Iterable[Schema], value: object) -> set[str]:
    """Return the JSON types that a value with some alternative schemas can have.

    Alternatives that list their values count only if the value is one of them, or has another
    type than all of them.
    """
    found: set[str] = set()
    for schema in schemas:
        values = _values(schema)
        if values is None:
            found.update(named_types(schema))
        elif value in values or json_type(value) not in map(json_type, values):
            found.update(map(json_type, values))
    return found


def named_types(schema: Mapping[str, Any]) -> list[str]:
    """Return the JSON types that a schema names."""
    named: Any = schema.get("type", ())
    return [named] if isinstance(named, str) else list(named)


_MAX_WORDS = 160
_WORDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def _values(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return the values that a schema lists, or `None` if it lists none."""
    return schema.get("enum", [schema["const"]] if "const" in schema else None)


def _in_words(schema: Mapping[str, Any], value: object) -> Iterable[str]:
    values = _values(schema)
    if values is not None:
        listed = ", ".join(map(describe_value, values))
        if len(listed) > _MAX_WORDS and isinstance(value, str):
            listed = ", ".join(map(describe_value, _similar_first(values, value)))
        return [f"one of {listed}" if len(values) > 1 else listed]
    return [_WORDS[name] for name in named_types(schema) if name in _WORDS]


def _similar_first(values: list[Any], value: str) -> list[Any]:
    from difflib import get_close_matches

    near = get_close_matches(value[:64], [one for one in values if isinstance(one, str)])
    return [*near, *(one for one in values if one not in near)]


def type_words(types: Iterable[str]) -> str:
    """Return JSON types in words, without `null` unless it is the only one."""
    words = [_WORDS[one] for one in types if one in _WORDS]
    return " or ".join([one for one in words if one != "null"] or words)


def json_type(value: object) -> str:
    """Return the JSON type of a value: the names are those of JSON Schema."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _alternatives(root: Schema, schemas: Iterable[Any]) -> list[Schema]:
    """Return schemas without references and unions, each once; a reference can be recursive."""
    found: list[Schema] = []
    seen: set[int] = set()
    pending = list(schemas)[::-1]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict) or id(typing.cast("Any", node)) in seen:
            continue
        schema = typing.cast("Schema", node)
        seen.add(id(schema))
        target = _target(root, schema)
        if target is not None:
            pending.append(target)
        parts = [one for key in ("allOf", "anyOf", "oneOf") for one in _list(schema.get(key))]
        pending.extend(reversed(parts))
        if not (target or schema.get("anyOf") or schema.get("oneOf")) or "properties" in schema:
            found.append(schema)
    return found


def _list(value: object) -> list[Any]:
    return typing.cast("list[Any]", value) if isinstance(value, list) else []


def _target(root: Schema, schema: Schema) -> Any:
    """Return the schema that a reference inside the document points to, or `None`."""
    reference = schema.get("$ref")
    if reference == "#":
        return root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    if "%" in reference:
        from urllib.parse import unquote  # rarely needed

        reference = unquote(reference)
    found: Any = root
    for step in reference[2:].split("/"):
        if not isinstance(found, dict):
            return None
        key = step.replace("~1", "/").replace("~0", "~")
        found = typing.cast("Schema", found).get(key)
    return found


def _is_secret(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("writeOnly")) or schema.get("format") == "password"


_HOLDING = ("items", "prefixItems", "additionalProperties", "allOf", "anyOf", "oneOf")


def secret_keys(root: Schema) -> frozenset[str]:
    """Return the keys of secrets, alone or in lists and maps.

    Each part of the schema is visited once, because the schema of a server can be adversarial.
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
        schema = typing.cast("Schema", node)
        pending.extend(schema.values())
        for part in (_target(root, schema), *map(schema.get, _HOLDING)):
            for one in typing.cast("list[Any]", part) if isinstance(part, list) else (part,):
                holders.setdefault(id(one), []).append(id(schema))
        if isinstance(named := schema.get("properties"), dict):
            properties = typing.cast("Schema", named)
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
    """Return a JSON value with the values of some keys masked."""
    if isinstance(value, dict):
        members = typing.cast("Schema", value).items()
        return {key: MASK if key in keys else _without(keys, one) for key, one in members}
    if isinstance(value, list):
        return [_without(keys, one) for one in typing.cast("list[Any]", value)]
    return value
