"""A check of the rules that the events of a run follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agents_tools.events.base import Event
from agents_tools.events.envelope import INVALID_ID
from agents_tools.events.kinds import (
    GapEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    ToolAttemptEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["EventLawError", "check_events"]

_BRACKETS: Final = (ToolStreamStartEvent, ToolStreamEndEvent, ToolAttemptEvent, GapEvent)


class EventLawError(AssertionError):
    """A list of events violates a rule.

    Attributes:
        law: The description of the rule.
        index: The index of the event that violates it; `None` if an event is missing.
        event: The event.
    """

    def __init__(
        self,
        law: str,
        why: str,
        index: int | None = None,
        event: Event | None = None,
    ) -> None:
        where = "at the end" if index is None else f"at event {index}, {event!r}"
        super().__init__(f"Broken law: {law}. {where[0].upper()}{where[1:]}: {why}.")
        self.law: Final = law
        self.index: Final = index
        self.event: Final = event


def check_events(events: Iterable[Event], *, brackets: bool = True) -> None:
    """Check that the events of one run, in the order of delivery, follow the rules.

    - Every event has its envelope; `seq` strictly increases, and so does `id` if it is set.
    - Every call has one start and one end, and emits no event before or after them.
    - A call ends before its parent call, and every call on a path was started. Events about an
      approval need only the start of the outermost call: hidden agents show no other events.
    - The path of an event ends with the id of its call; a call belongs to one tool.
    - Events for display are not durable, and durable events cannot be dropped.

    Args:
        events: All events of one run. A `GapEvent` may replace dropped events.
        brackets: Whether every call must have a start and an end event. With `False`, calls
            without a start event (made with `enable_bracketing=False`) may emit events; calls with
            a start event still need an end event.

    Raises:
        EventLawError: A rule is violated; the message names the rule, the event and the reason.
    """
    book = _EventChecker(brackets=brackets)
    for index, event in enumerate(events):
        book.enter(index, event)
    book.close()


class _EventChecker:
    """The state of the calls of a run up to an event."""

    def __init__(self, *, brackets: bool) -> None:
        self._brackets = brackets
        self._last: dict[str, int] = {}
        self._running: dict[tuple[str, ...], int] = {}  # path -> the index of the start
        self._ended: dict[tuple[str, ...], int] = {}
        self._tools: dict[tuple[str, ...], str | None] = {}
        self._index = 0
        self._event = Event()

    def enter(self, index: int, event: Event) -> None:
        self._index, self._event = index, event
        self._check_kind()
        self._check_numbers()
        if event.origin is None:
            return  # a gap that belongs to no call
        self._check_place()
        if isinstance(event, ToolStreamStartEvent):
            self._start()
        elif isinstance(event, ToolStreamEndEvent):
            self._end()

    def close(self) -> None:
        """Check that every call that started has ended."""
        for path, start in self._running.items():
            raise EventLawError(
                "every call that starts also ends",
                f"call {_shown(path)}, started at event {start}, has no end",
            )

    def _check_kind(self) -> None:
        event = self._event
        if event.durable and (event.droppable or isinstance(event, _BRACKETS)):
            self._fail("events for display are not durable", f"{event.type!r} is both")

    def _check_numbers(self) -> None:
        event = self._event
        if event.origin is None and not isinstance(event, GapEvent):
            self._fail("every event was stamped", "it has no origin")
        if event.seq < 0 and not isinstance(event, GapEvent):
            self._fail("every event was stamped", "it has no seq")
        self._check_increase("seq", event.seq)
        if event.id != INVALID_ID:
            self._check_increase("id", event.id)

    def _check_increase(self, name: str, number: int) -> None:
        last = self._last.get(name)
        if number < 0:
            return
        if last is not None and number <= last:
            self._fail(f"{name} strictly increases", f"{name} {number} comes after {last}")
        self._last[name] = number

    def _check_place(self) -> None:
        """Check that the calls around the event have started and not ended."""
        event = self._event
        path = event.path
        if event.tool_call_id is not None and not event.durable:
            self._check_emitter(path, event.tool_call_id, event.tool_name)
        can_be_hidden = _is_shown_alone(event)
        for length in range(1, len(path) + 1):
            call = path[:length]
            if call in self._ended:
                self._fail(
                    "no event of a call comes after its end",
                    f"call {_shown(call)} ended at event {self._ended[call]}",
                )
            starting = length == len(path) and isinstance(event, ToolStreamStartEvent)
            must_run = self._brackets and not (starting or (can_be_hidden and length > 1))
            if must_run and call not in self._running:
                self._fail(
                    "every call on a path was started before",
                    f"there is no start of call {_shown(call)}",
                )

    def _check_emitter(self, path: tuple[str, ...], call_id: str, tool: str | None) -> None:
        if path[-1:] != (call_id,):
            self._fail(
                "the path of an event ends with the id of its call",
                f"the path is {_shown(path)} and the call {call_id!r}",
            )
        before = self._tools.setdefault(path, tool)
        if before != tool:
            self._fail("a call has one tool", f"call {_shown(path)} had the tool {before!r} before")

    def _start(self) -> None:
        path = self._event.path
        if not path:
            self._fail("every call has an id on its path", "the path is empty")
        if path in self._running:
            self._fail(
                "a call starts once",
                f"call {_shown(path)} started at event {self._running[path]}",
            )
        self._running[path] = self._index

    def _end(self) -> None:
        path = self._event.path
        if path not in self._running:
            self._fail("every call that ends was started", f"call {_shown(path)} was not")
        for call, start in self._running.items():
            if len(call) > len(path) and call[: len(path)] == path:
                self._fail(
                    "a call ends before its parent call",
                    f"call {_shown(call)}, started at event {start}, has not ended",
                )
        del self._running[path]
        self._ended[path] = self._index

    def _fail(self, law: str, why: str) -> None:
        raise EventLawError(law, why, self._index, self._event)


def _is_shown_alone(event: Event) -> bool:
    """Return whether a hidden agent shows an event: about an approval, or that it waits."""
    if isinstance(event, RunItemStreamEvent):
        return event.name in {
            "tool_approval_requested",
            "tool_approval_granted",
            "tool_output",
        }
    return isinstance(event, RunFinishedEvent) and event.status == "interrupted"


def _shown(path: tuple[str, ...]) -> str:
    return repr("/".join(path))
