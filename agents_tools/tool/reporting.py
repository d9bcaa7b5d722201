"""Functions that emit events of the running tool from anywhere in its code."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, TypeVar

from agents_tools.tool.call import current_call

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agents_tools.events.kinds import Level

__all__ = ["artifact", "notify", "progress", "track"]

ItemT = TypeVar("ItemT")


def notify(
    data: str, *, is_delta: bool = False, tag: str | None = None, level: Level = "info"
) -> None:
    """Emit a line of text from the running tool; see `ToolContext.notify`.

    Outside a tool, this function and the others of this module do nothing.
    """
    if (call := current_call()) is not None:
        call.notify(data, is_delta=is_delta, tag=tag, level=level)


def progress(current: float, total: float | None = None, message: str | None = None) -> None:
    """Report the progress of the running tool; see `ToolContext.progress`."""
    if (call := current_call()) is not None:
        call.progress(current, total, message)


def artifact(
    name: str,
    data: str | bytes | None = None,
    *,
    uri: str | None = None,
    mime_type: str | None = None,
) -> None:
    """Emit an artifact of the running tool; see `ToolContext.artifact`."""
    if (call := current_call()) is not None:
        call.artifact(name, data, uri=uri, mime_type=mime_type)


def track(
    items: Iterable[ItemT], *, total: float | None = None, message: str | None = None
) -> Iterator[ItemT]:
    """Yield the items, and report the progress of the running tool after each.

    Args:
        items: The items to iterate over.
        total: The number of items; by default `len(items)` if the items have a length.
        message: A description of the work.
    """
    if total is None and hasattr(items, "__len__"):
        total = len(typing.cast("list[ItemT]", items))
    for done, item in enumerate(items, start=1):
        yield item
        progress(done, total, message)
