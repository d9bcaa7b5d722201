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

__all__ = ["EVERYWHERE", "Place", "Places", "hold"]

T = TypeVar("T")


class Place(typing.NamedTuple):
    """Where a call belongs: to a run, or outside a run to an object of the application's."""

    name: Hashable
    thing: Callable[[], object]
    """Gives what the name stands for, as long as that lives: the next object may be called so."""

    @classmethod
    def of(cls, context: ToolContext[Any]) -> Place:
        """Give the place of a call, that of the outermost run."""
        run: str | None = None
        for one in context.ancestors:
            run = one.run_id or run
        if run is not None:
            return cls(("run", run), _nothing)
        given: object = context.context
        if given is None or type(given) in {str, int}:
            return cls(("value", given), _nothing)
        return cls(("object", id(given)), hold(given))

    def is_same(self, other: Place) -> bool:
        """Whether it is the same place."""
        return self.name == other.name and self.thing() is other.thing()


def hold(thing: object) -> Callable[[], object]:
    """Remember a thing without keeping it alive, where that is possible."""
    if thing is None:
        return _nothing
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing


class Places(Generic[T]):
    """Something for each place. Of them, the latest hundreds are kept.

    Args:
        make: Makes what is kept in a new place.
        most: How many places there are at most.
    """

    def __init__(self, make: Callable[[], T], *, most: int = 400) -> None:
        self._make = make
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[Place, T]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, context: ToolContext[Any]) -> T:
        """Give what is kept where a call belongs."""
        place = Place.of(context)
        with self._lock:
            found = self._kept.pop(place.name, None)
            if found is None or not found[0].is_same(place):
                found = (place, self._make())
            self._kept[place.name] = found
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found[1]


def _nothing() -> None:
    return None


EVERYWHERE = Place(None, _nothing)
"""The one place of what all calls share."""
