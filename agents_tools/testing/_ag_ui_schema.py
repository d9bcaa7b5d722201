"""Check the shape of AG-UI events with the models of the package `ag-ui-protocol`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from ag_ui.core import Event, EventType
from pydantic import BaseModel, TypeAdapter, ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["TYPES", "wrong_shape"]

_EVENT: Final[TypeAdapter[Any]] = TypeAdapter(Event)

TYPES: Final = frozenset(EventType)
"""The types of events of the protocol."""


def wrong_shape(event: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the fields of an event; `None` if nothing is.

    The models also accept unknown fields, and null for a field that is left out. Clients do not.
    """
    try:
        model = _EVENT.validate_json(json.dumps(event), strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        return f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
    return next(_unknown_and_null(model, event), None)


def _unknown_and_null(model: object, given: object) -> Iterator[str]:
    """Yield the fields of models that the specification does not have, and those that are null."""
    if isinstance(model, BaseModel):
        fields = cast("Mapping[str, Any]", given)
        names = {
            one.alias or name: (name, one.is_required())
            for name, one in type(model).model_fields.items()
        }
        for key, value in fields.items():
            name, is_required = names.get(key, ("", False))
            if not name:
                yield f"no field {key!r}"
            elif value is None and not is_required:
                yield f"{key}: Expected no null. Leave the field out"
            else:
                yield from _unknown_and_null(getattr(model, name), value)
    elif isinstance(model, list):
        for item, value in zip(
            cast("list[object]", model), cast("Sequence[object]", given), strict=True
        ):
            yield from _unknown_and_null(item, value)
