"""The payload fields of events and their types: validation, JSON Schema and wire form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import reduce
from math import isfinite
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.text.characters import replace_surrogates

__all__ = [
    "MAX_SHOWN",
    "TEXT",
    "Count",
    "FieldType",
    "PayloadField",
    "field_error",
    "field_type_of",
    "is_integer",
    "nearest_name",
    "one_of",
    "optional",
    "payload_fields",
    "shorten_value",
]


class PayloadField(NamedTuple):
    """A payload field of an event class."""

    name: str
    type: FieldType
    default: Callable[[], object] | None
    """Creates the default value; `None` if the field is required."""


_payload_fields: Final[dict[type[Any], tuple[PayloadField, ...]]] = {}


def payload_fields(cls: type[Any]) -> tuple[PayloadField, ...]:
    """Return the payload fields of an event class: the dataclass fields of its constructor.

    The annotations are read at the first use, because most programs use few kinds of events.

    Raises:
        UserValueError: A field has the name of an attribute of `Event`.
        UserTypeError: The type of a field is unknown or has no wire form.
    """
    known = _payload_fields.get(cls)
    if known is None:
        known = _payload_fields[cls] = _read_payload_fields(cls)
    return known


def _read_payload_fields(cls: type[Any]) -> tuple[PayloadField, ...]:
    payload = [one for one in fields(cls) if one.init]
    try:
        types = get_type_hints(cls, include_extras=True) if payload else {}
    except NameError as error:
        raise UserTypeError(
            f"{cls.__name__} has an unknown type in its fields: {error}. Define or import the type "
            "in the module of the class, also at run time."
        ) from error
    for one in payload:
        if _is_reserved(cls, one.name):
            raise UserValueError(
                f"Field {cls.__name__}.{one.name} is not allowed: the base class already has this "
                "name. Rename the field."
            )
    return tuple(
        PayloadField(
            one.name,
            field_type_of(types[one.name], f"{cls.__name__}.{one.name}"),
            _default_of(one),
        )
        for one in payload
    )


def _is_reserved(cls: type[Any], name: str) -> bool:
    """Return whether a base class has an attribute of this name that is not a payload field."""

    def is_payload(base: type[Any]) -> bool:
        return is_dataclass(base) and any(one.init and one.name == name for one in fields(base))

    return name == "v" or any(hasattr(base, name) and not is_payload(base) for base in cls.__mro__)


def _default_of(declared: Field[Any]) -> Callable[[], object] | None:
    if declared.default_factory is not MISSING:
        return declared.default_factory
    default = declared.default
    return None if default is MISSING else lambda: default


class FieldType:
    """The type of a payload field, in Python and on the wire.

    Args:
        expected: The rule in words, for error messages.
        accepts: Returns whether a Python value is valid.
        schema: The JSON Schema of the wire form.
        classes: Classes whose direct instances are all valid. They are accepted without a call of
            `accepts`, because every event that is created is validated.
        encode: Converts a valid value to its wire form. The second argument is the location of the
            field, for error messages.
        decode: Converts a wire form to a value, with the same second argument.
    """

    __slots__ = ("accepts", "classes", "decode", "encode", "expected", "schema")

    def __init__(
        self,
        expected: str,
        accepts: Callable[[object], bool],
        schema: Mapping[str, Any],
        *,
        classes: Iterable[type] = (),
        encode: Callable[[Any, str], object] | None = None,
        decode: Callable[[Any, str], object] | None = None,
    ) -> None:
        self.expected: Final = expected
        self.accepts: Final = accepts
        self.schema: Final = schema
        self.classes: Final = frozenset(classes)
        self.encode: Final = encode
        self.decode: Final = decode


def field_type_of(annotation: object, at: str) -> FieldType:
    """Return the field type of an annotation.

    Args:
        annotation: The annotation, not a string.
        at: The location of the field, for the error message.

    Raises:
        UserTypeError: Values of the annotation have no wire form.
    """
    origin = get_origin(annotation)
    args = get_args(annotation)
    if origin is Annotated:
        declared = (one for one in args if isinstance(one, FieldType))
        return next(declared, None) or field_type_of(args[0], at)
    if origin is Literal and all(isinstance(arg, str) for arg in args):
        return one_of(*args)
    if origin in _UNIONS and NoneType in args:
        members: list[Any] = [arg for arg in args if arg is not NoneType]
        return optional(field_type_of(reduce(lambda one, other: one | other, members), at))
    field_type = _BY_ANNOTATION.get(frozenset(args) if origin in _UNIONS else origin or annotation)
    if field_type is None:
        raise UserTypeError(
            f"{at} has an unsupported type: expected str, bool, int, float, dict, list, Any, a "
            f"Literal of strings, or one of them with None, got {annotation}. Use Any for other "
            "JSON values."
        )
    return field_type


def optional(field_type: FieldType) -> FieldType:
    """Return a field type that also accepts `None`."""
    encode, decode = field_type.encode, field_type.decode
    return FieldType(
        f"{field_type.expected} or null",
        lambda value: value is None or field_type.accepts(value),
        {"anyOf": [field_type.schema, {"type": "null"}]},
        classes={*field_type.classes, NoneType},
        encode=encode and (lambda value, at: None if value is None else encode(value, at)),
        decode=decode and (lambda value, at: None if value is None else decode(value, at)),
    )


def one_of(*choices: str) -> FieldType:
    """Return a field type that accepts exactly these strings."""
    return FieldType(
        f"one of {', '.join(choices)}",
        lambda value: isinstance(value, str) and value in choices,
        {"enum": list(choices)},
        encode=lambda value, _at: str.__str__(value),
    )


_MAX_DEPTH: Final = 100
_MAX_INT_BITS: Final = 14_000  # about 4,300 digits, the maximum of Python's json module
MAX_SHOWN: Final = 60


def is_integer(value: object) -> bool:
    """Return whether a value is an integer and not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isfinite(value) if isinstance(value, float) else is_integer(value)


def _encode_text(value: str, _at: str) -> str:
    """Return a text that can be encoded as UTF-8."""
    return replace_surrogates(str.__str__(value))


def _encode_content(value: str | bytes, at: str) -> object:
    if isinstance(value, str):
        return _encode_text(value, at)
    from binascii import b2a_base64

    return {"encoding": "base64", "data": b2a_base64(value, newline=False).decode("ascii")}


def _decode_content(value: object, at: str) -> object:
    if not isinstance(value, Mapping):
        return value
    marked = cast("Mapping[str, object]", value)
    text = marked.get("data")
    if set(marked) != {"encoding", "data"} or marked["encoding"] != "base64":
        raise field_error(at, 'a string or {"encoding": "base64", "data": …}', marked)
    if not isinstance(text, str):
        raise field_error(f"{at}.data", "base64 text", text)
    from binascii import Error, a2b_base64

    try:
        return a2b_base64(text.encode("ascii"), strict_mode=True)
    except (Error, UnicodeEncodeError):
        raise field_error(f"{at}.data", "base64 text", text) from None


def _json_value(value: object, at: str, depth: int = 0) -> object:
    """Return a copy of a JSON value.

    Raises:
        UserValueError: A part of the value has no JSON form; the message names its location.
    """
    if value is None or isinstance(value, (str, int, float)):
        return _json_scalar(value, at)
    if depth == _MAX_DEPTH:
        raise field_error(at, f"at most {_MAX_DEPTH} levels of nesting", value)
    if isinstance(value, Mapping):
        return {
            _json_key(key, at): _json_value(item, f"{at}.{key}", depth + 1)
            for key, item in cast("Mapping[object, object]", value).items()
        }
    if isinstance(value, (list, tuple)):
        items = cast("list[object]", value)
        return [_json_value(item, f"{at}[{i}]", depth + 1) for i, item in enumerate(items)]
    raise field_error(at, "a JSON value", value)


def _json_scalar(value: str | float | None, at: str) -> str | float | bool | None:
    if isinstance(value, str):
        return _encode_text(value, at)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value.bit_length() > _MAX_INT_BITS:
            raise field_error(at, "a whole number of at most 4,300 digits", value)
        return int(value)
    if not isfinite(value):
        raise field_error(at, "a finite number", value)
    return float(value)


def _json_key(key: object, at: str) -> str:
    if not isinstance(key, str):
        raise field_error(at, "an object whose keys are strings", key)
    return _encode_text(key, at)


def field_error(at: str, expected: str, value: object) -> UserValueError:
    """Return the error for an invalid value of a field."""
    return UserValueError(f"{at}: expected {expected}, got {shorten_value(value)}.")


def shorten_value(value: object) -> str:
    """Return a short description of an invalid value, without the content of containers."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, int) and value.bit_length() > _MAX_INT_BITS:
        return "a longer number"
    if value is None or isinstance(value, (str, bytes, int, float)):
        text = repr(value[:MAX_SHOWN] if isinstance(value, (str, bytes)) else value)
        return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
    return f"a Python object of type {type(value).__name__}"


def nearest_name(name: object, known: Iterable[str]) -> str:
    """Return a sentence that suggests the most similar known name, or an empty string."""
    from difflib import get_close_matches

    near = get_close_matches(name[:MAX_SHOWN], known, n=1) if isinstance(name, str) else ()
    return f" Did you mean {near[0]!r}?" if near else ""


TEXT: Final = FieldType(
    "a string",
    lambda value: isinstance(value, str),
    {"type": "string"},
    classes={str},
    encode=_encode_text,
)
_FLAG: Final = FieldType(
    "true or false",
    lambda value: isinstance(value, bool),
    {"type": "boolean"},
    classes={bool},
)
_INTEGER: Final = FieldType("a whole number", is_integer, {"type": "integer"}, encode=_json_value)
_COUNT: Final = FieldType(
    "a whole number from 0 to 2**63 - 1",
    lambda value: is_integer(value) and 0 <= cast("int", value) < 2**63,
    {"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
)
_NUMBER: Final = FieldType(
    "a finite number", _is_number, {"type": "number"}, classes={int}, encode=_json_value
)
_CONTENT: Final = FieldType(
    "a string or bytes",
    lambda value: isinstance(value, (str, bytes)),
    {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {
                    "encoding": {"const": "base64"},
                    "data": {"type": "string", "contentEncoding": "base64"},
                },
                "required": ["encoding", "data"],
                "additionalProperties": False,
            },
        ],
    },
    classes={str, bytes},
    encode=_encode_content,
    decode=_decode_content,
)
_JSON: Final = FieldType(
    "a JSON value",
    lambda _: True,
    {},
    classes={str, int, float, bool, dict, list, NoneType},
    encode=_json_value,
    decode=_json_value,
)
_OBJECT: Final = FieldType(
    "an object",
    lambda value: isinstance(value, Mapping),
    {"type": "object"},
    classes={dict},
    encode=_json_value,
    decode=_json_value,
)
_LIST: Final = FieldType(
    "a list",
    lambda value: isinstance(value, list),
    {"type": "array"},
    classes={list},
    encode=_json_value,
    decode=_json_value,
)

Count: TypeAlias = Annotated[int, _COUNT]
"""A whole number from 0 to 2**63 - 1."""

_UNIONS: Final = frozenset({Union, UnionType})
_BY_ANNOTATION: Final[dict[object, FieldType]] = {
    str: TEXT,
    bool: _FLAG,
    int: _INTEGER,
    float: _NUMBER,
    frozenset({str, bytes}): _CONTENT,
    dict: _OBJECT,
    Mapping: _OBJECT,
    list: _LIST,
    object: _JSON,
    Any: _JSON,
}
