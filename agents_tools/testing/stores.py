"""Contract tests for event stores, which the author of any store can run."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar, Final

from agents_tools.errors import (
    EventConflictError,
    EventStoreError,
    UserValueError,
)
from agents_tools.events.envelope import EventSource, Origin
from agents_tools.events.kinds import (
    ActionEvent,
    ErrorEvent,
    GapEvent,
    MessageEvent,
    NotifyStreamEvent,
    ObservationEvent,
    RunItemStreamEvent,
    RunStartedEvent,
    ToolArtifactEvent,
)
from agents_tools.persistence import EventFilter, EventStore, PendingFuture

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agents_tools.events.base import Event

__all__ = ["EventStoreContract", "StoreLawError"]

PATIENCE: Final = 10.0
"""The longest wait for an expected event, in seconds."""


class StoreLawError(AssertionError):
    """A store violates the contract; the message names the rule and the actual result."""


class EventStoreContract:
    """Tests that every event store must pass; pytest runs those of a subclass.

    ::

        class TestMyStore(EventStoreContract):
            def make_store(self):
                return MyStore(...)  # empty, and not shared

    Attributes:
        lasting: Whether events survive closing the store, which is tested with `reopen`.
    """

    lasting: ClassVar[bool] = False

    def make_store(self) -> EventStore:
        """Return a new, empty store."""
        raise NotImplementedError

    def reopen(self, store: EventStore) -> EventStore:
        """Close a store as the end of its process would, and open it again."""
        raise NotImplementedError

    def another(self, store: EventStore) -> EventStore:
        """Return a second store object for the same log, as another process would have."""
        return store.session(store.sid)

    # --- writing and reading ----------------------------------------------------------------------

    def test_an_empty_log_says_that_it_is_empty(self) -> None:
        """Ids begin at 0, so that the first event of every log has the same."""
        with closing(self.make_store()) as store:
            _is("the last id", store.last_id, -1)
            _is("the next id", store.next_id, 0)
            _is("its events", _got(store.read()), [])

    def test_events_come_back_equal_and_in_order(self) -> None:
        """Events of every kind are read as they were written."""
        with closing(self.make_store()) as store:
            _is("the last id", _got(store.append(_samples())), len(_samples()) - 1)
            expected = [event.replace(id=n) for n, event in enumerate(_samples())]
            _is("the events", _got(store.read()), expected)
            _is("the last id", store.last_id, len(expected) - 1)
            _is("the next id", store.next_id, len(expected))

    def test_what_was_given_keeps_its_own_id(self) -> None:
        """An event can be in several logs, so a store numbers copies."""
        with closing(self.make_store()) as store:
            event = _said("mine")
            _got(store.append([event]))
            _is("the id of what was given", event.id, -1)

    def test_given_ids_are_kept_and_may_leave_some_out(self) -> None:
        """A stream also assigns ids to events that are not stored."""
        with closing(self.make_store()) as store:
            _got(store.append([_said("a", 3), _said("b", 7)]))
            _got(store.append([_said("c"), _said("d", 20)]))
            _is("the ids", _ids(_got(store.read())), [3, 7, 8, 20])

    def test_an_id_that_is_taken_is_a_conflict_and_nothing_of_it_is_stored(self) -> None:
        """Two writers with the same ids must not overwrite each other."""
        with closing(self.make_store()) as store:
            _got(store.append([_said("a", 5)]))
            for events in ([_said("b", 5)], [_said("b", 4)], [_said("b", 6), _said("c", 6)]):
                _fails(store.append(events), EventConflictError)
            _is("the ids", _ids(_got(store.read())), [5])
            _is("the next id", store.next_id, 6)

    def test_what_is_appended_is_stored_in_full_or_not_at_all(self) -> None:
        """A reader never sees half of a batch; later appends work."""
        with closing(self.make_store()) as store:
            bad = MessageEvent([float("nan")])
            _fails(store.append([_said("a"), bad, _said("b")]), UserValueError)
            _is("its events", _got(store.read()), [])
            _got(store.append([_said("c")]))
            _is("its texts", _texts(_got(store.read())), ["c"])

    def test_nothing_to_append_changes_nothing(self) -> None:
        """A caller can append an empty batch."""
        with closing(self.make_store()) as store:
            _is("the last id", _got(store.append([])), -1)
            _got(store.append([_said("a")]))
            _is("the last id", _got(store.append([], expect_seq=1)), 0)

    def test_a_writer_may_say_how_many_events_there_have_to_be(self) -> None:
        """Of two writers that read the same state, one gets a conflict."""
        with closing(self.make_store()) as store:
            _got(store.append([_said("a", 4), _said("b", 9)], expect_seq=0))
            _fails(store.append([_said("c")], expect_seq=0), EventConflictError)
            _fails(store.append([_said("c")], expect_seq=10), EventConflictError)
            _got(store.append([_said("d")], expect_seq=2))
            _is("its texts", _texts(_got(store.read())), ["a", "b", "d"])

    def test_both_durabilities_are_taken(self) -> None:
        """The tests of each store check what acknowledged events survive."""
        with closing(self.make_store()) as store:
            _got(store.append([_said("a")], durability="normal"))
            _got(store.append([_said("b")], durability="sync"))
            _is("its texts", _texts(_got(store.read())), ["a", "b"])

    def test_appends_of_one_thread_are_stored_in_their_order_without_waiting(self) -> None:
        """A stream appends without waiting, and the log has the order of the appends."""
        with closing(self.make_store()) as store:
            pending = [store.append([_said(str(n))]) for n in range(200)]
            _is("the ids", [_got(one) for one in pending], list(range(200)))
            _is("its texts", _texts(_got(store.read())), [str(n) for n in range(200)])

    def test_events_of_several_threads_get_ids_without_a_gap(self) -> None:
        """4 threads with 300 events each get the ids 0 to 1199, each thread in order."""
        with closing(self.make_store()) as store:

            def write(name: int) -> None:
                for n in range(300):
                    _got(store.append([_said(f"{name} {n}")]))

            _in_threads(write, 4)
            events = _got(store.read())
            _is("the ids", _ids(events), list(range(1200)))
            for name in range(4):
                own = [text for text in _texts(events) if text.startswith(f"{name} ")]
                _is("a thread's texts", own, [f"{name} {n}" for n in range(300)])

    def test_reserved_ids_are_not_given_again(self) -> None:
        """The ids of events that are displayed but not stored are never reused."""
        with closing(self.make_store()) as store:
            _got(store.append([_said("a")]))
            store.reserve(taken := 6)
            _is_beyond(taken, store.next_id)
            _got(store.append([_said("b", 4)]))  # the owner of the reservation can use them
            _is_beyond(taken, _got(store.append([_said("c")])))

    # --- reading in part --------------------------------------------------------------------------

    def test_a_part_is_read_between_two_ids(self) -> None:
        """Both ends are excluded; `limit` counts from the side that comes first."""
        with closing(self.make_store()) as store:
            _got(store.append([_said(str(n), n) for n in range(0, 40, 2)]))
            parts: list[tuple[dict[str, Any], list[int]]] = [
                ({"after": 10}, [*range(12, 40, 2)]),
                ({"after": 11, "before": 20}, [12, 14, 16, 18]),
                ({"before": 3}, [0, 2]),
                ({"after": 38}, []),
                ({"after": 100}, []),
                ({"limit": 3}, [0, 2, 4]),
                ({"limit": 0}, []),
                ({"reverse": True, "limit": 3}, [38, 36, 34]),
                ({"after": 4, "before": 12, "reverse": True}, [10, 8, 6]),
                ({"after": 4, "limit": 2}, [6, 8]),
            ]
            for options, expected in parts:
                _is(f"read({options})", _ids(_got(store.read(**options))), expected)

    def test_events_are_found_by_each_criterion(self) -> None:
        """By type, source, cause, call, tool, time, text and whether they are hidden."""
        with closing(self.make_store()) as store:
            _got(store.append(_samples()))
            events = _got(store.read())
            for where in _FILTERS:
                expected = [event for event in events if where.accepts(event)]
                _is(f"read(where={where})", _got(store.read(where=where)), expected)
                limited = _got(store.read(where=where, limit=1, reverse=True))
                _is(f"the newest of {where}", limited, expected[::-1][:1])

    def test_a_text_is_found_in_any_case_and_as_it_was_written(self) -> None:
        """Quotes, line ends, percent signs and letters of other scripts are plain text."""
        with closing(self.make_store()) as store:
            texts = ['say "No"\n\\ 100%', "ÄRGER and straße", "under_score", "underXscore", "шум"]
            _got(store.append([_said(text) for text in texts]))
            for text, found in (
                ('"no"\n\\', texts[:1]),
                ("100%", texts[:1]),
                ("ärger", texts[1:2]),
                ("r_s", texts[2:3]),
                ("ШУМ", texts[4:]),
                ("%", texts[:1]),
                ("nothing of it", []),
            ):
                where = EventFilter(text=text)
                _is(f"what has {text!r}", _texts(_got(store.read(where=where))), found)

    # --- waiting ----------------------------------------------------------------------------------

    def test_waiting_ends_with_the_next_event(self) -> None:
        """A reader follows a log without polling."""
        with closing(self.make_store()) as store:
            waiting = store.wait(-1)
            if waiting.done():
                raise StoreLawError("waiting on an empty log was over at once")
            _got(store.append([_said("a")]))
            _is("what it waited for", _got(waiting), 0)
            _is("waiting for what is there", _got(store.wait(-1)), 0)
            _got(store.append([_said("b", 9)]))
            _is("waiting for what is there", _got(store.wait(3)), 9)

    def test_waiting_sees_what_another_writes(self) -> None:
        """A reader follows a log that another object or process writes."""
        with closing(self.make_store()) as store, closing(self.another(store)) as other:
            waiting = store.wait(-1)
            _got(other.append([_said("a")]))
            _is("what it waited for", _got(waiting), 0)
            _is("its texts", _texts(_got(store.read())), ["a"])

    def test_a_waiting_reader_can_be_cancelled(self) -> None:
        """A cancelled reader leaves nothing behind."""
        with closing(self.make_store()) as store:
            waiting = store.wait(-1)
            if not waiting.cancel() or not waiting.done():
                raise StoreLawError("waiting could not be cancelled")
            _got(store.append([_said("a")]))

    def test_a_notified_reader_can_use_the_store_at_once(self) -> None:
        """A stream appends the next events when the previous append is complete."""
        with closing(self.make_store()) as store:
            second: PendingFuture[int] = PendingFuture()

            def append_next(done: PendingFuture[int]) -> None:
                store.append([_said(str(done.result()))]).add_done_callback(
                    lambda done: second.resolve(done.result())
                )

            store.append([_said("a")]).add_done_callback(append_next)
            _is("the last id", _got(second), 1)
            _is("its texts", _texts(_got(store.read())), ["a", "0"])

    async def test_everything_can_be_awaited(self) -> None:
        """Waiting does not block the event loop, and a cancelled task stops waiting."""
        store = self.make_store()
        try:
            waiter = asyncio.ensure_future(_awaited(store.wait(-1)))
            left = asyncio.ensure_future(_awaited(store.wait(-1)))
            await asyncio.sleep(0)
            left.cancel()
            await store.append([_said("a")])
            _is("what it waited for", await asyncio.wait_for(waiter, PATIENCE), 0)
            _is("its texts", _texts(await store.read()), ["a"])
            await asyncio.gather(left, return_exceptions=True)
        finally:
            await asyncio.to_thread(store.close)

    # --- several logs -----------------------------------------------------------------------------

    def test_logs_of_one_place_do_not_mix(self) -> None:
        """Each session has its own ids; all sessions are listed with their facts."""
        with closing(self.make_store()) as store:
            other = store.session("other/log ä")
            _got(store.append([_said("a"), _said("b", 5)]))
            _got(other.append([_said("c")]))
            _is("the last ids", (store.last_id, other.last_id), (5, 0))
            _is("the other's texts", _texts(_got(other.read())), ["c"])
            _got(store.session("empty").read())
            listed = {one.sid: one for one in _got(store.sessions())}
            _is("the names", sorted(listed), sorted([store.sid, "other/log ä"]))
            known = listed[store.sid]
            _is("what is known", (known.events, known.last_id), (2, 5))
            _is("its times", (known.first, known.last), (_AT, _AT))

    def test_a_deleted_log_starts_again(self) -> None:
        """Deleting an unknown log is not an error; other logs stay."""
        with closing(self.make_store()) as store:
            other = store.session("other")
            _got(store.append([_said("a")]))
            _got(other.append([_said("b")]))
            _got(store.delete("other"))
            _got(store.delete("never there"))
            _is("what is left", [one.sid for one in _got(store.sessions())], [store.sid])
            again = store.session("other")
            _is("its events", _got(again.read()), [])
            _got(again.append([_said("c")]))
            _is("its texts", _texts(_got(again.read())), ["c"])

    def test_two_ways_to_one_log_see_the_same(self) -> None:
        """A reopened log continues its ids."""
        with closing(self.make_store()) as store:
            _got(store.append([_said("a")]))
            other = self.another(store)
            try:
                _is("the next id", other.next_id, 1)
                _is("its texts", _texts(_got(other.read())), ["a"])
            finally:
                other.close()
            _got(store.append([_said("b")]))
            _is("the ids", _ids(_got(store.read())), [0, 1])

    # --- closing ----------------------------------------------------------------------------------

    def test_a_closed_store_refuses_calls_and_releases_readers(self) -> None:
        """No reader waits forever, and no write is lost silently."""
        store = self.make_store()
        pending = store.append([_said("a")])
        waiting = store.wait(10)
        store.close()
        store.close()
        _is("what was begun before", _got(pending), 0)
        _fails(waiting, EventStoreError)
        for refused in (store.append([_said("b")]), store.read(), store.wait(-1)):
            _fails(refused, EventStoreError)

    def test_closing_one_log_leaves_the_others_open(self) -> None:
        """Closing the store that created the logs closes all of them."""
        store = self.make_store()
        one, two = store.session("one"), store.session("two")
        one.close()
        _fails(one.append([_said("a")]), EventStoreError)
        _got(two.append([_said("b")]))
        _got(store.append([_said("c")]))
        _is("the texts", _texts(_got(store.session("one").read())), [])
        store.close()
        _fails(two.append([_said("d")]), EventStoreError)

    def test_what_was_acknowledged_is_there_when_the_log_is_opened_again(self) -> None:
        """Ids continue beyond those of events that were never stored."""
        if not self.lasting:
            return
        store = self.make_store()
        _got(store.append([_said("a"), _said("b")]))
        store.reserve(taken := 7)
        again = self.reopen(store)
        with closing(again):
            _is("its texts", _texts(_got(again.read())), ["a", "b"])
            _is_beyond(taken, again.next_id)


# --- test data ------------------------------------------------------------------------------------

_AT: Final = 1_700_000_000.25
_HERE: Final = Origin(source=EventSource.USER)
_CALL: Final = Origin("search", "call_1", ("call_1",), EventSource.ENVIRONMENT)


def _said(text: str, id: int = -1) -> Event:
    return MessageEvent(text).replace(id=id, timestamp=_AT, origin=_HERE)


def _samples() -> list[Event]:
    events: list[Event] = [
        MessageEvent("Hello, \x00 \u2028 wörld 🙂", role="user"),
        MessageEvent([{"type": "text", "text": "x", "n": [1, 2.5, None, True, {"ü": 2**70}]}]),
        ActionEvent("CmdRunAction", {"command": "ls"}),
        ObservationEvent("CmdOutputObservation", {"content": "a\nb"}, hidden=True),
        RunStartedEvent("run_1", "helper"),
        RunItemStreamEvent("tool_called", {"type": "function_call", "call_id": "call_1"}),
        ToolArtifactEvent("blob", data=bytes(range(256)), mime_type="application/x-thing"),
        NotifyStreamEvent("working", tag="t"),
        GapEvent(3),
        ErrorEvent("no", kind="ValueError"),
    ]
    return [
        event.replace(
            seq=n,
            timestamp=_AT + n,
            cause=2 if isinstance(event, ObservationEvent) else None,
            origin=_CALL if event.droppable else _HERE if n % 2 else Origin(),
        )
        for n, event in enumerate(events)
    ]


_FILTERS: Final = (
    EventFilter(),
    EventFilter(types=("message_event",)),
    EventFilter(types=("message_event", "error_event")),
    EventFilter(types=()),
    EventFilter(sources=(EventSource.ENVIRONMENT,)),
    EventFilter(sources=(EventSource.USER, EventSource.AGENT)),
    EventFilter(cause=2),
    EventFilter(cause=0),
    EventFilter(tool_call_id="call_1"),
    EventFilter(tool_name="search"),
    EventFilter(tool_name="other"),
    EventFilter(since=_AT + 3),
    EventFilter(until=_AT + 3),
    EventFilter(since=_AT + 1.5, until=_AT + 2.5),
    EventFilter(text="HELLO"),
    EventFilter(text="call_1"),
    EventFilter(text="wÖrld 🙂"),
    EventFilter(hidden=True),
    EventFilter(hidden=False),
    EventFilter(run_id="run_1"),
    EventFilter(run_id="run_2"),
    EventFilter(types=("message_event",), text="x", sources=(EventSource.USER,)),
)


# --- helpers --------------------------------------------------------------------------------------


def _got(pending: PendingFuture[Any]) -> Any:
    return pending.result(PATIENCE)


async def _awaited(pending: PendingFuture[Any]) -> Any:
    return await pending


def _fails(pending: PendingFuture[Any], kind: type[Exception]) -> None:
    try:
        got = _got(pending)
    except kind:
        return
    raise StoreLawError(f"expected {kind.__name__}, got {got!r}")


def _is(what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise StoreLawError(f"{what}: expected {expected!r}, got {actual!r}")


def _is_beyond(taken: int, given: int) -> None:
    if given <= taken:
        raise StoreLawError(f"the id {given} was assigned, but ids up to {taken} are in use")


def _ids(events: Iterable[Event]) -> list[int]:
    return [event.id for event in events]


def _texts(events: Iterable[Event]) -> list[str]:
    return [event.content for event in events if isinstance(event, MessageEvent)]


def _in_threads(work: Any, count: int) -> None:
    failed: list[BaseException] = []

    def guarded(name: int) -> None:
        try:
            work(name)
        except BaseException as error:  # noqa: BLE001 - raised again in the thread of the test
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(name,)) for name in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
