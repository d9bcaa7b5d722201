"""Positional and named fields of a record."""

from __future__ import annotations

from typing import Any

from agents_tools.errors import UserTypeError

__all__ = ["by_name"]


def by_name(
    kind: type, order: list[str], values: tuple[Any, ...], fields: dict[str, Any]
) -> dict[str, Any]:
    """Return fields by name, from positional values and named fields."""
    if len(values) > len(order):
        raise UserTypeError(
            f"{kind.__name__} has too many values: expected at most {len(order)} "
            f"({', '.join(order) or 'none'}), got {len(values)}."
        )
    for name, value in zip(order, values, strict=False):
        if name in fields:
            raise UserTypeError(f"{kind.__name__} got {name!r} twice.")
        fields[name] = value
    return fields
