"""Where a policy keeps what belongs to one run, apart from what belongs to another."""

from __future__ import annotations

import threading
import typing
import weakref
from collections import OrderedDict
from typing import Any, Generic, TypeVar

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from agents_tools.context import ToolContext

__all__ = ["Places", "hold", "run_of"]

T = TypeVar("T")


def run_of(context: ToolContext[Any]) -> str | None:
    """Give the id of the outermost run that a call belongs to; `None` outside a run."""
    found: str | None = None
    for one in context.ancestors:
        found = one.run_id or found
    return found


def hold(thing: object) -> Callable[[], object]:
    """Remember a thing without keeping it alive, where that is possible."""
    if thing is None:
        return _nothing
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing


class Places(Generic[T]):
    """Something for each run; outside a run, for each object that the application hands in.

    Calls outside a run that are given no such object are in one place. Of the places, the latest
    hundreds are kept.

    Args:
        make: Makes what is kept in a new place.
        most: How many places there are at most.
    """

    def __init__(self, make: Callable[[], T], *, most: int = 400) -> None:
        self._make = make
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[Callable[[], object], T]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, context: ToolContext[Any]) -> T:
        """Give what is kept where a call belongs."""
        name, anchor = _place_of(context)
        with self._lock:
            found = self._kept.pop(name, None)
            if found is None or found[0]() is not anchor:
                found = (hold(anchor), self._make())
            self._kept[name] = found
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found[1]

    def all(self) -> list[T]:
        """List what is kept in all places."""
        with self._lock:
            return [kept for _, kept in self._kept.values()]


def _place_of(context: ToolContext[Any]) -> tuple[Hashable, object]:
    """Name a place, and give the object that the name stands for as long as it lives."""
    run = run_of(context)
    if run is not None:
        return ("run", run), None
    given: object = context.context
    if given is None or type(given) in {str, int}:
        return ("value", given), None
    return ("object", id(given)), given


def _nothing() -> None:
    return None
