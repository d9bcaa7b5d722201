"""The scope of a call, by which policies separate the state of different runs."""

from __future__ import annotations

import threading
import typing
import weakref
from collections import OrderedDict
from typing import Generic, TypeVar

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from agents_tools.tool.call import Call

__all__ = ["EVERYWHERE", "CallScope", "CallScopes", "weak_getter"]

T = TypeVar("T")


class CallScope(typing.NamedTuple):
    """The scope of a call: its outermost run, or the application's object if there is no run."""

    name: Hashable
    get_object: Callable[[], object]
    """Returns the application's object as long as it lives.

    The name contains its `id()`, which Python can reuse for another object.
    """

    @classmethod
    def of(cls, call: Call) -> CallScope:
        """Return the scope of a call."""
        run: str | None = None
        for one in call.ancestors:
            run = one.run_id or run
        if run is not None:
            return cls(("run", run), _nothing)
        value: object = call.app_context
        if value is None or type(value) in {str, int}:
            return cls(("value", value), _nothing)
        return cls(("object", id(value)), weak_getter(value))

    def is_same(self, other: CallScope) -> bool:
        """Return whether both scopes are the same."""
        return self.name == other.name and self.get_object() is other.get_object()


def weak_getter(value: object) -> Callable[[], object]:
    """Return a function that returns an object, by weak reference where possible."""
    if value is None:
        return _nothing
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


class CallScopes(Generic[T]):
    """A value for each scope. The least recently used scopes are dropped.

    Args:
        create: Creates the value of a new scope.
        max_scopes: The maximum number of scopes.
    """

    def __init__(self, create: Callable[[], T], *, max_scopes: int = 400) -> None:
        self._create = create
        self._max_scopes = max_scopes
        self._values: OrderedDict[Hashable, tuple[CallScope, T]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, call: Call) -> T:
        """Return the value for the scope of a call."""
        scope = CallScope.of(call)
        with self._lock:
            entry = self._values.pop(scope.name, None)
            if entry is None or not entry[0].is_same(scope):
                entry = (scope, self._create())
            self._values[scope.name] = entry
            if len(self._values) > self._max_scopes:
                self._values.popitem(last=False)
        return entry[1]


def _nothing() -> None:
    return None


EVERYWHERE = CallScope(None, _nothing)
"""The scope that all calls share."""
