"""The tree of open spans, as runs, model requests and calls start and end in many tasks."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Kind", "OpenSpan", "SpanTree"]

Kind = Literal["run", "model", "call"]


@dataclass(slots=True, eq=False)
class OpenSpan:
    """An open span.

    Attributes:
        kind: The kind of operation.
        path: The ids of the enclosing calls, outermost first; for a call, its own id is last.
        span: The OpenTelemetry span.
        token: The token that detaches the span from the context; `None` if it was not attached.
        parent: The open span around it.
        children: The open spans in it.
        attributes: The attributes of its metrics.
        started: The start time, on the clock of `time.perf_counter()`.
        first: The time of the first chunk of a response.
    """

    kind: Kind
    path: tuple[str, ...]
    span: Any
    token: Any
    parent: OpenSpan | None
    children: list[OpenSpan] = field(default_factory=list["OpenSpan"])
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    started: float = field(default_factory=perf_counter)
    first: float | None = None

    def around(self) -> Iterator[OpenSpan]:
        """Yield this span and the spans around it, innermost first."""
        node: OpenSpan | None = self
        while node is not None:
            yield node
            node = node.parent

    def descendants(self) -> Iterator[OpenSpan]:
        """Yield the open spans children this one, innermost first."""
        for node in list(self.children):
            yield from node.descendants()
            yield node


class SpanTree:
    """The open spans of all tasks.

    A span that starts in a task is a child of the span that was open where the task was created,
    because context variables are inherited. A span that is reported from elsewhere, such as a call
    on a worker, is a child of the span whose path it continues.
    """

    def __init__(self) -> None:
        self._current: ContextVar[OpenSpan | None] = ContextVar("agents_tools_span", default=None)

    @property
    def top(self) -> OpenSpan | None:
        """The innermost open span of the current task."""
        return self._current.get()

    def place(self, kind: Kind, path: tuple[str, ...]) -> OpenSpan | None:
        """Return the parent of a new span."""
        top = self._current.get()
        if top is None:
            return None
        if kind == "call" and top.kind == "model":  # started while the model still streams
            top = top.parent
        above = path[:-1] if kind == "call" else path
        if top is not None and len(above) > len(top.path):
            found = (node for node in top.descendants() if node.path == above)
            return next(found, top)
        return top

    def add(self, node: OpenSpan, *, here: bool) -> None:
        """Add a new span; with `here`, it becomes the innermost one of the current task."""
        if node.parent is not None:
            node.parent.children.append(node)
        if here:
            self._current.set(node)

    def find(self, kind: Kind, path: tuple[str, ...]) -> OpenSpan | None:
        """Return the open span of an operation, as seen from the current task."""
        top = self._current.get()
        if top is None:
            return None
        for node in top.around():
            if (node.kind, node.path) == (kind, path):
                return node
        root = list(top.around())[-1]
        return next(
            (one for one in root.descendants() if (one.kind, one.path) == (kind, path)), None
        )

    def remove(self, node: OpenSpan) -> None:
        """Remove a span that has ended."""
        if node.parent is not None and node in node.parent.children:
            node.parent.children.remove(node)
        if self._current.get() is node:
            self._current.set(node.parent)
