"""The one reader of arguments: JSON text to Python values, or an error that a model can act on."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Any

from agents_tools.errors import ModelBehaviorError
from agents_tools.schema.callables import EMPTY
from agents_tools.schema.canonical import canonical_value
from agents_tools.schema.coercion import coerce
from agents_tools.schema.dialect import upgrade_dialect
from agents_tools.schema.lookup import SchemaLookup
from agents_tools.schema.problems import (
    arguments_error,
    malformed_error,
    problems_of,
    syntax_reason,
)
from agents_tools.schema.signature import LEFT_OUT
from agents_tools.schema.types import object_schema_of, root_type_schema_of
from agents_tools.schema.validators import RESERVED_KEY, JsonSchemaValidator, PydanticValidator
from agents_tools.text.escape import describe_value
from agents_tools.text.json_limits import (
    JsonFault,
    check_bounds,
    check_keys,
    json_functions,
    parse_object,
    safe_length,
)

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from agents_tools.schema.types import TypeSchema
    from agents_tools.schema.validators import Fault, Validator

__all__ = ["ArgumentReader", "Arguments", "Field"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One argument: a parameter, and what is known of its values.

    Attributes:
        name: The name of the parameter.
        key: The name that the model uses; differs if the parameter has an alias.
        type_schema: The type.
        default: The default; `EMPTY` if the argument is required.
        default_factory: Creates the default, instead of `default`.
        fill: Whether the default is not the function's own and has to be passed.
        other_keys: Further names that the model can use.
    """

    name: str
    key: str
    type_schema: TypeSchema
    default: Any = EMPTY
    default_factory: Callable[[], Any] | None = None
    fill: bool = False
    other_keys: tuple[str, ...] = ()

    @property
    def required(self) -> bool:
        """Whether the model must pass the argument."""
        return self.default is EMPTY and self.default_factory is None


_UNREAD: Any = object()


class Arguments:
    """The arguments of one call: as the JSON text that was accepted, and as Python values.

    Args:
        text: The accepted text: values that had to be converted are converted in it.
        reader: The reader that accepted the text; `None` if the tool reads its arguments itself.
        values: The Python values that the reader made of it.
        created: The keys of the arguments whose defaults a function created for this call.

    Attributes:
        text: The accepted text.
        created: The keys of the arguments whose defaults a function created for this call.
    """

    __slots__ = ("_data", "_reader", "_values", "created", "text")

    def __init__(
        self,
        text: str,
        reader: ArgumentReader | None = None,
        values: Any = None,
        created: tuple[str, ...] = (),
    ) -> None:
        self.text = text
        self.created = created
        self._reader = reader
        self._values = values
        self._data: dict[str, Any] | None = None

    def values(self) -> Any:
        """Return Python values that no other attempt of the call has."""
        values, self._values = self._values, _UNREAD
        if values is _UNREAD and self._reader is not None:
            return self._reader.read(self.text)
        return values

    @property
    def data(self) -> dict[str, Any]:
        """The canonical arguments: JSON values, with the defaults that the schema publishes.

        Empty if the tool reads its arguments itself and the text is not a JSON object. Do not
        modify them.
        """
        data = self._data
        if data is None:
            data = self._data = self._read_data()
        return data

    def _read_data(self) -> dict[str, Any]:
        if self._reader is not None:
            return self._reader.canonical_data(self.text)
        return dict(parse_object(self.text) or {})


class ArgumentReader:
    """Reads the arguments of one tool.

    Text that matches the schema exactly is validated once. Otherwise the values of wrong JSON types
    are converted as `coerce` describes, and the result is validated again.

    Args:
        tool: The name of the tool, for error messages.
        validator: Validates JSON text and creates the Python values.
        json_schema: Returns the JSON Schema of the arguments.
        defaults: Functions that create the defaults of missing arguments, by parameter name.
        other_keys: The published key for each other key that is accepted.
        factories: The published keys of the parameters whose default a function creates, by name.
    """

    def __init__(
        self,
        tool: str,
        validator: Validator,
        json_schema: Callable[[], dict[str, Any]],
        *,
        defaults: Mapping[str, Callable[[], Any]] | None = None,
        other_keys: Mapping[str, str] | None = None,
        factories: Mapping[str, str] | None = None,
    ) -> None:
        self.tool = tool
        self._validator = validator
        self._lookup = SchemaLookup(json_schema)
        self._other_keys = other_keys or {}
        self._factories = factories or {}
        self.parse = self._build_parse(dict(defaults or {}))

    @classmethod
    def of_fields(
        cls,
        tool: str,
        fields: Sequence[Field],
        extras: TypeSchema | None,
        json_schema: Callable[[], dict[str, Any]],
        *,
        fill: bool = False,
        reserved: Iterable[str] = (),
    ) -> ArgumentReader:
        """Return a reader for the parameters of a function; it returns a dict by parameter name.

        A missing argument is left out, so that the default of the function applies.

        Args:
            tool: The name of the tool, for error messages.
            fields: The arguments.
            extras: The type of further arguments, if the function accepts any.
            json_schema: Returns the JSON Schema of the arguments.
            fill: Whether every missing argument with a default is filled in.
            reserved: Names that further arguments cannot have, because parameters have them.
        """
        schema: dict[str, Any] = {
            "type": "typed-dict",
            "fields": {field.name: _field_schema(field) for field in fields},
            "extra_behavior": "forbid",
        }
        types = [field.type_schema for field in fields]
        if extras is not None:
            types.append(extras)
            schema |= {"extra_behavior": "allow", "extras_schema": extras.core}
            keys = {key for field in fields for key in (field.key, *field.other_keys)}
            for name in reserved:
                if name not in keys:
                    schema["fields"][f"reserved {name}"] = _reserved_schema(name)
        defaults = {
            field.name: field.default_factory or _copies(field.default)
            for field in fields
            if not field.required
            and field.default is not LEFT_OUT
            and (fill or field.fill or _is_mutable(field.default))
        }
        return cls(
            tool,
            PydanticValidator(schema, types),
            json_schema,
            defaults=defaults,
            other_keys={other: field.key for field in fields for other in field.other_keys},
            factories={field.name: field.key for field in fields if field.default_factory},
        )

    @classmethod
    def of_type(cls, tool: str, annotation: Any) -> ArgumentReader:
        """Return a reader for one type whose fields are the arguments; it returns an instance.

        Args:
            tool: The name of the tool, for error messages.
            annotation: The type: a pydantic model, a dataclass or a TypedDict.

        Raises:
            NoSchemaError: The type has no JSON form.
        """
        type_schema = root_type_schema_of(annotation)
        json_schema = object_schema_of(type_schema)
        return cls(
            tool,
            PydanticValidator(type_schema.core, [type_schema]),
            lambda: json_schema,
            other_keys=_other_keys(annotation, json_schema),
        )

    @classmethod
    def of_schema(cls, tool: str, json_schema: dict[str, Any]) -> ArgumentReader:
        """Return a reader for a raw JSON Schema; it returns a dict of JSON values.

        Args:
            tool: The name of the tool, for error messages.
            json_schema: The JSON Schema; validating needs the extra `schema`. One of draft 4 is
                rewritten in the current dialect.

        Raises:
            UserError: The extra is not installed, or the schema is not valid.
        """
        schema = upgrade_dialect(json_schema)
        return cls(tool, JsonSchemaValidator(tool, schema), lambda: schema)

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, not copied; do not modify it."""
        return self._lookup.root

    def read(self, text: str) -> Any:
        """Return arguments as Python values.

        Raises:
            ModelBehaviorError: The text is not JSON, or does not match the schema.
        """
        return self.parse(text).values()

    def _build_parse(self, defaults: dict[str, Callable[[], Any]]) -> Callable[[str], Arguments]:
        validate, accept = self._validator.validate_json, self._accept
        fills, complete = list(defaults.items()), self._complete
        self._fills = fills
        is_incomplete = bool(fills or self._other_keys)

        def parse(text: str) -> Arguments:
            """Validate arguments.

            Raises:
                ModelBehaviorError: The text is not JSON, or does not match the schema.
            """
            try:
                if len(text) > safe_length.value:
                    check_bounds(text)
                value = validate(text)
                keys = len(value) if value.__class__ is dict else 0
                if text.count(":") > keys:
                    check_keys(text, keys)
            except Exception as error:  # noqa: BLE001 - distinguished in `_accept`
                value, text = accept(text, error)
            if is_incomplete:
                return complete(text, value)
            return Arguments(text, self, value)

        return parse

    def _complete(self, text: str, value: dict[str, Any]) -> Arguments:
        """Return arguments with the defaults that they lack, and with the published keys."""
        text = self._with_published_keys(text)
        missing = [(name, create) for name, create in self._fills if name not in value]
        for name, create in missing:
            value[name] = create()
        if missing and self._factories:
            return self._store_created(text, value, [name for name, _ in missing])
        return Arguments(text, self, value)

    def _with_published_keys(self, text: str) -> str:
        if not self._other_keys:
            return text
        data: Any = json_functions()[0](text)
        if self._other_keys.keys().isdisjoint(data):
            return text
        return _to_json(self._rename_keys(data))

    def _store_created(self, text: str, value: dict[str, Any], names: list[str]) -> Arguments:
        """Return arguments with the defaults that were created for this call and have a JSON form.

        Every attempt of the call then gets equal values, and approvals see them.
        """
        from pydantic_core import PydanticSerializationError, from_json, to_json

        created: list[str] = []
        for name in names:
            key = self._factories.get(name)
            if key is None:
                continue
            try:
                data = {**from_json(text), key: value[name]}
                text = to_json(data, bytes_mode="base64").decode()
                created.append(key)
            except (PydanticSerializationError, TypeError, ValueError):
                pass  # every attempt creates one of its own
        return Arguments(text, self, value, tuple(created))

    def canonical_data(self, text: str) -> dict[str, Any]:
        """Return accepted arguments as JSON values, with the defaults that the schema publishes.

        Args:
            text: The text of accepted arguments.
        """
        data = self._validator.with_published_keys(json_functions()[0](text))
        return canonical_value(data, self._lookup.alternatives([self._lookup.root]), self._lookup)

    def _accept(self, text: Any, error: Exception | None) -> tuple[Any, str]:
        """Return the Python values and the JSON text of arguments, converted where needed.

        Args:
            text: The arguments.
            error: The error of a first attempt to validate the text.
        """
        if not isinstance(text, str):
            return self._accept(self._as_text(text), None)
        invalid = self._validator.Invalid
        if isinstance(error, JsonFault):
            raise malformed_error(self.tool, error.kind, str(error)) from None
        if error is not None and not isinstance(error, (invalid, ValueError)):
            raise error  # a validator of the author failed: an error of the tool
        sent, data = text, self._parse(text)
        if not text.lstrip().startswith("{") or not self._other_keys.keys().isdisjoint(data):
            data = self._rename_keys(data)
            text = _to_json(data)
        failure = error if text is sent and isinstance(error, invalid) else None
        faults: list[Fault] = []
        for _ in range(_MAX_ROUNDS):
            try:
                if failure is None:
                    return self._validator.validate_json(text), text
            except invalid as another:
                failure = another
            faults = list(self._validator.faults(failure, data))
            failure = None
            if not coerce(data, [one.path for one in faults], self._lookup, self._validator):
                break
            text = _to_json(data)
        raise arguments_error(self.tool, problems_of(faults, self._parse(sent), data, self._lookup))

    def _parse(self, text: str) -> dict[str, Any]:
        """Return the JSON object in a text; an empty text and `null` stand for an empty object."""
        try:
            check_bounds(text)
            data: Any = json_functions()[0](text) if text.strip() else None
            check_keys(text, len(typing.cast("Any", data)) if isinstance(data, dict) else 0)
            if isinstance(data, str) and data.lstrip().startswith("{"):
                return self._parse(data)
        except JsonFault as fault:
            raise malformed_error(self.tool, fault.kind, str(fault)) from None
        except (TypeError, ValueError) as error:  # half of a surrogate pair is a TypeError
            reason = syntax_reason(text, str(error))
            raise malformed_error(self.tool, "json_syntax", reason) from None
        if data is None:
            return {}
        if not isinstance(data, dict):
            message = f"expected one JSON object, got {describe_value(data)}"
            raise malformed_error(self.tool, "no_object", message)
        return typing.cast("dict[str, Any]", data)

    def _as_text(self, arguments: Any) -> str:
        if arguments is None:
            return ""
        if isinstance(arguments, (bytes, bytearray)):
            try:
                return arguments.decode()
            except UnicodeDecodeError as error:
                raise ModelBehaviorError(
                    f"Invalid arguments for tool {self.tool!r}: the text is not UTF-8 "
                    f"({error.reason} at byte {error.start})."
                ) from None
        raise ModelBehaviorError(
            f"Invalid arguments for tool {self.tool!r}: expected JSON text, got a Python "
            f"{type(arguments).__name__}."
        )

    def _rename_keys(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return arguments with the published keys; a key for an argument that has one stays."""
        renamed: dict[str, Any] = {}
        for key, value in data.items():
            known = self._other_keys.get(key, key)
            renamed[key if known in data or known in renamed else known] = value
        return renamed


_MAX_ROUNDS = 8
"""How often arguments are validated: converting one value can show that others need it too."""


def _to_json(data: Any) -> str:
    return json_functions()[1](data, inf_nan_mode="constants").decode()


def _copies(default: Any) -> Callable[[], Any]:
    """Return a function that returns the default, or a new copy of it if it can be changed."""
    if not _is_mutable(default):
        return lambda: default

    def copy() -> Any:
        from copy import deepcopy

        try:
            return deepcopy(default)
        except Exception:  # noqa: BLE001 - an object of any class can fail to be copied
            return default

    return copy


def _is_mutable(default: Any) -> bool:
    return isinstance(default, (list, dict, set, bytearray))


def _other_keys(annotation: Any, json_schema: dict[str, Any]) -> dict[str, str]:
    """Return the published key of each name and alias that a pydantic model accepts besides it."""
    fields: Mapping[str, Any] = getattr(annotation, "__pydantic_fields__", {})
    published = json_schema.get("properties", {})
    others: dict[str, str] = {}
    for name, field in fields.items():
        choices = getattr(field.validation_alias, "choices", [field.validation_alias])
        keys = [name, *(choice for choice in choices if isinstance(choice, str))]
        known = next((key for key in keys if key in published), None)
        if known is not None:
            others.update({key: known for key in keys if key != known and key not in published})
    return others


def _field_schema(field: Field) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "typed-dict-field",
        "schema": field.type_schema.core,
        "required": field.required,
    }
    if field.other_keys:
        schema["validation_alias"] = [[key] for key in (field.key, *field.other_keys)]
    elif field.key != field.name:
        schema["validation_alias"] = field.key
    return schema


def _reserved_schema(name: str) -> dict[str, Any]:
    """Refuse a key whatever its value is."""
    return {
        "type": "typed-dict-field",
        "required": False,
        "validation_alias": name,
        "schema": {
            "type": "custom-error",
            "custom_error_type": RESERVED_KEY,
            "custom_error_message": "Unknown key",
            "schema": {"type": "literal", "expected": [object()]},
        },
    }
