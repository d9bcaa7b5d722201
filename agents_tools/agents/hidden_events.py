"""The events of a run that is hidden from the readers of the run around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agents_tools.events.kinds import RunFinishedEvent, RunItemStreamEvent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from agents_tools.events.base import Emit, Event

__all__ = ["HiddenEvents"]


class HiddenEvents:
    """Receives the events of a hidden run, and shows only those about approvals.

    A person can decide only about a call that is shown. So the readers of the run around it get
    the request for the approval, the grant and the output that follow it, and the event that the
    hidden run waits. The other events are only stored.

    Args:
        readers: The functions that receive the events of the run around it.
        store: Stores an event that is not shown, so that the run can be resumed; `None` without a
            store.
    """

    __slots__ = ("_readers", "_requested", "_store")

    def __init__(self, readers: Iterable[Emit], store: Emit | None) -> None:
        self._readers = tuple(readers)
        self._requested = set[tuple[str, ...]]()
        self._store = store

    def __call__(self, event: Event) -> None:
        """Receive an event."""
        if self._is_shown(event):
            for read in self._readers:
                read(event)
        elif self._store is not None:
            self._store(event)

    def restore(self, paths: Collection[tuple[str, ...]]) -> None:
        """Continue to show calls whose requests were shown before the run was resumed.

        Args:
            paths: Their paths, with the id of the call itself.
        """
        self._requested.update(paths)
        for read in self._readers:
            if isinstance(read, HiddenEvents):  # of a hidden run around this one
                read.restore(paths)

    def _is_shown(self, event: Event) -> bool:
        if isinstance(event, RunFinishedEvent):
            return event.status == "interrupted"
        if not isinstance(event, RunItemStreamEvent):
            return False
        item = cast("RunItemStreamEvent[Any]", event).item
        path = (*event.path, str(item.get("call_id")))
        if event.name == "tool_approval_requested":
            self._requested.add(path)
        return path in self._requested and event.name != "tool_called"
