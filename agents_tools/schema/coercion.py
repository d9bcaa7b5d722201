"""The one rule by which arguments of the wrong JSON type are converted.

Models send numbers and booleans as strings, arrays and objects as JSON text, whole numbers with a
fraction of zero, and `null` for parameters that they leave out. Where the JSON Schema does not
admit such a value, it is converted to the one that it stands for.
"""

from __future__ import annotations

import math
import re
import typing
from typing import Any

from agents_tools.schema.lookup import json_type
from agents_tools.text.json_limits import check_bounds, check_keys

if typing.TYPE_CHECKING:
    from collections.abc import Iterable

    from agents_tools.schema.lookup import SchemaLookup
    from agents_tools.schema.validators import Validator

__all__ = ["coerce"]

Path = tuple[str | int, ...]

_UNCHANGED: Any = object()
_INTEGER = re.compile(r"\s*[+-]?[0-9]+(?:\.0*)?\s*")
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_BOOLEANS = {"true": True, "True": True, "false": False, "False": False}


def coerce(data: Any, paths: Iterable[Path], lookup: SchemaLookup, validator: Validator) -> bool:
    """Convert the values at some paths of a JSON document, in place.

    Args:
        data: The document: an object.
        paths: The places where the document does not match the schema.
        lookup: The JSON Schema of the document.
        validator: Knows the values that have conversion rules of their own.

    Returns:
        Whether a value was changed.
    """
    changed = False
    for path in dict.fromkeys(paths):
        if not path:
            continue
        holder: Any = data
        try:
            for step in path[:-1]:
                holder = holder[step]
            value = holder[path[-1]]
        except (IndexError, KeyError, TypeError):  # missing, or a change around it removed it
            continue
        if value is None:
            if lookup.is_optional(path) and not validator.keeps_own_rules(path):
                del holder[path[-1]]
                changed = True
            continue
        if not isinstance(value, (str, float)):
            continue  # it stands for nothing else
        types = lookup.types(path, value)
        if json_type(value) in types:
            continue
        converted = _decode_text(value, types)
        if converted is _UNCHANGED:
            converted = _convert_scalar(value, types)
            if converted is _UNCHANGED or validator.keeps_own_rules(path):
                continue
        holder[path[-1]] = converted
        changed = True
    return changed


def _decode_text(value: object, types: set[str]) -> Any:
    """Return the array or object that a string has as JSON text."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return _UNCHANGED
    from pydantic_core import from_json

    try:
        check_bounds(value)
        decoded: Any = from_json(value, allow_inf_nan=False)
        check_keys(value)
    except ValueError:
        return _UNCHANGED
    return decoded if json_type(decoded) in types else _UNCHANGED


def _convert_scalar(value: object, types: set[str]) -> Any:
    """Return the number or boolean that a string or a whole float stands for."""
    if isinstance(value, float) and "integer" in types and _is_exact(value):
        return int(value)
    if not isinstance(value, str):
        return _UNCHANGED
    if "boolean" in types and value in _BOOLEANS:
        return _BOOLEANS[value]
    if "integer" in types and _INTEGER.fullmatch(value):
        try:
            return int(value.partition(".")[0])
        except ValueError:  # more digits than Python converts
            return _UNCHANGED
    if "number" in types and _NUMBER.fullmatch(value):
        number = float(value)
        return number if math.isfinite(number) else _UNCHANGED
    return _UNCHANGED


def _is_exact(value: float) -> bool:
    """Return whether a float stands for one integer: beyond 2**53 it can stand for several."""
    return value.is_integer() and abs(value) <= 2**53
