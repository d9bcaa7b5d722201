"""Convert figures, images, tables and objects with a display form to text or PNG data."""

from __future__ import annotations

import binascii
import io
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from agents_tools.content.tables import describe_table, is_table, read_table

if TYPE_CHECKING:
    from agents_tools.content.tables import KeepTable

__all__ = ["display", "has_display"]

_METHODS = ("_repr_png_", "_repr_markdown_", "savefig", "get_figure")
"""The methods of objects for notebooks, and those of figures."""


@lru_cache(maxsize=256)  # searching the attributes of a pydantic model takes microseconds
def has_display(kind: Any) -> bool:
    """Return whether values of a type can have a display form."""
    return is_table(kind) or any(hasattr(kind, name) for name in _METHODS)


def display(value: Any, keep: KeepTable | None = None) -> str | bytes | None:
    """Return the display form of a value for a model.

    Args:
        value: The value.
        keep: Stores a whole table if its description does not show it.

    Returns:
        Text, or an image as PNG; `None` if the value has neither.
    """
    kind: Any = type(cast("object", value))
    if is_table(kind):
        table = read_table(value)
        if table is not None:
            return describe_table(table, keep)
    if hasattr(kind, "savefig"):
        return _draw(value)
    if hasattr(kind, "get_figure"):  # the axes of a plot
        return _draw(value.get_figure())
    png = _call(value, kind, "_repr_png_")
    if png is None:
        return _call(value, kind, "_repr_markdown_")
    return binascii.a2b_base64(png) if isinstance(png, str) else png


def _draw(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _call(value: Any, kind: Any, method: str) -> Any:
    """Return the data of a display method, which can return metadata too; `None` without it."""
    data: Any = getattr(value, method)() if hasattr(kind, method) else None
    return cast("tuple[Any, ...]", data)[0] if isinstance(data, tuple) else data
