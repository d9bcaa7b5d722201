"""The descriptions that annotations have as plain text, such as `Annotated[str, "The city."]`."""

from __future__ import annotations

import typing
from inspect import cleandoc
from typing import Any

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["field_texts", "text_of"]


def text_of(item: Any) -> str | None:
    """Return the description that an item of `Annotated[...]` is: a text, or a `Doc`."""
    if isinstance(item, str):
        return item
    text = getattr(item, "documentation", None)
    return cleandoc(text) if isinstance(text, str) and type(item).__name__ == "Doc" else None


def field_texts(cls: type) -> dict[str, str]:
    """Return the descriptions in the annotations of a dataclass or TypedDict, by field."""
    names = {**vars(cls), cls.__name__: cls}  # a class of a function can refer to itself
    try:
        hints = typing.get_type_hints(cls, localns=names, include_extras=True)
    except Exception:  # noqa: BLE001 - annotations can raise any error when they are evaluated
        return {}
    found = {name: next(_texts(hint), None) for name, hint in hints.items()}
    return {name: text for name, text in found.items() if text}


def _texts(annotation: Any) -> Iterator[str]:
    """Yield the descriptions in an annotation, also inside of `Required` and the like."""
    from typing_extensions import ReadOnly

    origin = typing.get_origin(annotation)
    if origin in {typing.Annotated, typing.Final, typing.NotRequired, typing.Required, ReadOnly}:
        yield from filter(None, map(text_of, getattr(annotation, "__metadata__", ())))
        yield from _texts(typing.get_args(annotation)[0])
