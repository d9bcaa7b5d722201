"""Which spans are open where, while runs, models and calls begin and end in many tasks."""

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
    """A span that is open.

    Attributes:
        kind: What it is of.
        path: The calls that it is in, outermost first; its own last, if it is of a call.
        span: The span.
        token: What ends its being the current one; `None` for one that never was.
        parent: The open span around it.
        inside: The open spans in it.
        facts: What its metrics are told by.
        started: When it began, on the clock of `time.perf_counter()`.
        first: When the first piece of an answer came.
    """

    kind: Kind
    path: tuple[str, ...]
    span: Any
    token: Any
    parent: OpenSpan | None
    inside: list[OpenSpan] = field(default_factory=list["OpenSpan"])
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    started: float = field(default_factory=perf_counter)
    first: float | None = None

    def around(self) -> Iterator[OpenSpan]:
        """Yield the spans that this one is in, itself first."""
        node: OpenSpan | None = self
        while node is not None:
            yield node
            node = node.parent

    def below(self) -> Iterator[OpenSpan]:
        """Yield the spans that are open in this one, the innermost first."""
        for node in list(self.inside):
            yield from node.below()
            yield node


class SpanTree:
    """The open spans, as each task sees them.

    What begins in a task stands below what was open where the task was made, as context variables
    have it. What somebody else reports, such as the calls of a worker on another machine, is put
    below the span whose path it continues.
    """

    def __init__(self) -> None:
        self._here: ContextVar[OpenSpan | None] = ContextVar("agents_tools_span", default=None)

    @property
    def top(self) -> OpenSpan | None:
        """The innermost span that is open here."""
        return self._here.get()

    def place(self, kind: Kind, path: tuple[str, ...]) -> OpenSpan | None:
        """Return the span that a new one stands below."""
        top = self._here.get()
        if top is None:
            return None
        if kind == "call" and top.kind == "model":  # begun while the model still writes
            top = top.parent
        above = path[:-1] if kind == "call" else path
        if top is not None and len(above) > len(top.path):
            found = (node for node in top.below() if node.path == above)
            return next(found, top)
        return top

    def add(self, node: OpenSpan, *, here: bool) -> None:
        """Take a span that begins; with `here` it is the innermost one of this task."""
        if node.parent is not None:
            node.parent.inside.append(node)
        if here:
            self._here.set(node)

    def find(self, kind: Kind, path: tuple[str, ...]) -> OpenSpan | None:
        """Return the open span of something, seen from this task."""
        top = self._here.get()
        if top is None:
            return None
        for node in top.around():
            if (node.kind, node.path) == (kind, path):
                return node
        root = list(top.around())[-1]
        return next((one for one in root.below() if (one.kind, one.path) == (kind, path)), None)

    def remove(self, node: OpenSpan) -> None:
        """Forget a span that has ended."""
        if node.parent is not None and node in node.parent.inside:
            node.parent.inside.remove(node)
        if self._here.get() is node:
            self._here.set(node.parent)
