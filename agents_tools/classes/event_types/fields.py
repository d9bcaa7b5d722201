"""Fields of a record, given in their order or by name."""

from __future__ import annotations

from typing import Any

from agents_tools.errors import UserTypeError

__all__ = ["by_name"]


def by_name(
    kind: type, order: list[str], given: tuple[Any, ...], fields: dict[str, Any]
) -> dict[str, Any]:
    """Return fields by name, of which some were given by their order."""
    if len(given) > len(order):
        raise UserTypeError(
            f"{kind.__name__} has {len(order)} fields ({', '.join(order) or 'none'}); it got "
            f"{len(given)} values."
        )
    for name, value in zip(order, given, strict=False):
        if name in fields:
            raise UserTypeError(f"{kind.__name__} got {name!r} twice.")
        fields[name] = value
    return fields
