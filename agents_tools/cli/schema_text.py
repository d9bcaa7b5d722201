"""Describe the bounds of a JSON Schema in help texts."""

from __future__ import annotations

from agents_tools.wire.diff import (
    DefinitionReader,
    Schema,
    describe_type,
    json_type,
    parameters_of,
)

__all__ = [
    "DefinitionReader",
    "Schema",
    "describe_type",
    "json_type",
    "notes_on",
    "parameters_of",
]


def notes_on(reader: DefinitionReader, schema: object) -> list[str]:
    """Return the bounds of a value as short notes."""
    notes: list[str] = []
    for arm in reader.arms(schema):
        low, high = arm.get("minimum"), arm.get("maximum")
        if low is not None and high is not None:
            notes.append(f"{low:g} to {high:g}")
        elif low is not None:
            notes.append(f"{low:g} or more")
        elif high is not None:
            notes.append(f"{high:g} or less")
        for key, text in _BOUNDS.items():
            if key in arm:
                notes.append(text.format(arm[key]))
    return list(dict.fromkeys(notes))


_BOUNDS = {
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "like {}",
    "format": "{}",
}
