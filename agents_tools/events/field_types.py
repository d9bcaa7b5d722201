"""The types of payload fields of events: validation, JSON Schema and wire form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, Final, cast

from agents_tools.errors import UserValueError
from agents_tools.text.characters import replace_surrogates

__all__ = [
    "CONTENT",
    "COUNT",
    "FLAG",
    "JSON",
    "MAX_SHOWN",
    "NUMBER",
    "OBJECT",
    "TEXT",
    "FieldType",
    "field_error",
    "is_integer",
    "nearest_name",
    "one_of",
    "optional",
    "shorten_value",
]


class FieldType:
    """The type of a payload field, in Python and on the wire.

    Args:
        expected: The rule in words, for error messages.
        accepts: Returns whether a Python value is valid.
        schema: The JSON Schema of the wire form.
        encode: Converts a valid value to its wire form. The second argument is the location of the
            field, for error messages.
        decode: Converts a wire form to a value, with the same second argument.
    """

    __slots__ = ("accepts", "decode", "encode", "expected", "schema")

    def __init__(
        self,
        expected: str,
        accepts: Callable[[object], bool],
        schema: Mapping[str, Any],
        *,
        encode: Callable[[Any, str], object] | None = None,
        decode: Callable[[Any, str], object] | None = None,
    ) -> None:
        self.expected: Final = expected
        self.accepts: Final = accepts
        self.schema: Final = schema
        self.encode: Final = encode
        self.decode: Final = decode


def optional(field_type: FieldType) -> FieldType:
    """Return a field type that also accepts `None`."""
    encode, decode = field_type.encode, field_type.decode
    return FieldType(
        f"{field_type.expected} or null",
        lambda value: value is None or field_type.accepts(value),
        {"anyOf": [field_type.schema, {"type": "null"}]},
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
    encode=_encode_text,
)
"""A string."""
FLAG: Final = FieldType("true or false", lambda value: isinstance(value, bool), {"type": "boolean"})
"""A boolean."""
COUNT: Final = FieldType(
    "a whole number from 0 to 2**63 - 1",
    lambda value: is_integer(value) and 0 <= cast("int", value) < 2**63,
    {"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
)
"""A whole number from 0 to 2**63 - 1."""
NUMBER: Final = FieldType("a finite number", _is_number, {"type": "number"}, encode=_json_value)
"""A finite number."""
CONTENT: Final = FieldType(
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
    encode=_encode_content,
    decode=_decode_content,
)
"""A string, or bytes that are base64 on the wire."""
JSON: Final = FieldType("a JSON value", lambda _: True, {}, encode=_json_value, decode=_json_value)
"""Any JSON value."""
OBJECT: Final = FieldType(
    "an object",
    lambda value: isinstance(value, Mapping),
    {"type": "object"},
    encode=_json_value,
    decode=_json_value,
)
"""A JSON object."""
