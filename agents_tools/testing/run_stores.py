"""Contract tests for run stores, which the author of any `LogStorage` can run."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
import warnings
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

from agents_tools.content.items import ToolApprovalItem
from agents_tools.errors import (
    EventConflictError,
    EventStoreError,
    LeaseLostError,
    RunInUseError,
    UserKeyError,
)
from agents_tools.events.envelope import Origin
from agents_tools.events.kinds import (
    MessageEvent,
    NotifyStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunRecordEvent,
)
from agents_tools.persistence import StoredLog
from agents_tools.persistence.lease import LeaseHolder
from agents_tools.persistence.rows import event_to_row
from agents_tools.persistence.storage import AppendRows, RenewLeases, TakeLease
from agents_tools.testing.stores import PATIENCE, EventStoreContract, StoreLawError
from agents_tools.text.secrets import forget_secret, register_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from agents_tools.concurrency.future import PendingFuture
    from agents_tools.events.base import Event
    from agents_tools.persistence import EventStore, RunStore

__all__ = ["RunStoreContract"]

T = TypeVar("T")

_TTL: Final = 0.6
"""A short time until a lease expires, in seconds."""
_SECRET: Final = "contract-secret-8f14e45fceea167a"  # noqa: S105 - of the test


class RunStoreContract(EventStoreContract):
    """Tests that every run store must pass; pytest runs those of a subclass.

    ::

        class TestMyRunStore(RunStoreContract):
            def make_run_store(self, **options):
                self.place = new_place()  # empty, and not shared
                return RunStore(MyStorage(self.place, **options))

            def open_again(self, store, **options):
                return RunStore(MyStorage(self.place, **options))

    The options are `lease_ttl` and `keep_display`.

    Attributes:
        is_shared: Whether several store objects can use one place, as in several processes.
    """

    is_shared: ClassVar[bool] = True

    def make_run_store(self, **options: Any) -> RunStore:
        """Return a new, empty store."""
        raise NotImplementedError

    def open_again(self, store: RunStore, **options: Any) -> RunStore:
        """Return another store object for the place of a store, as another process would have."""
        raise NotImplementedError

    # --- one log, as the store of an event stream -------------------------------------------------

    @property
    def lasting(self) -> bool:  # type: ignore[override] # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether events survive closing the store."""
        return self.is_shared

    def make_store(self) -> EventStore:
        """Return a handle on a log that closes its store."""
        return _LogWithStore(self.make_run_store(keep_display=True))

    def reopen(self, store: EventStore) -> EventStore:
        """Open the log again."""
        run_store = cast("_LogWithStore", store).run_store
        store.close()
        return _LogWithStore(self.open_again(run_store))

    # --- runs -------------------------------------------------------------------------------------

    def test_a_run_is_listed_with_the_facts_of_its_first_record(self) -> None:
        """Other processes find runs by session and status."""
        with self.make_run_store() as store:
            facts: dict[str, Any] = {"agent": "Clerk", "kind": "agent", "session": "chat ä"}
            facts |= {"owner": "me", "facts": {"tenant": 7}}
            _got(store.log("run 1").append([_created(**facts), _said("a")]))
            _got(store.log("run 2").append([_created()]))
            _got(store.log("no run").append([_said("b")]))
            _is("the runs", [one.run_id for one in _got(store.runs())], ["run 1", "run 2"])
            _is("the logs", {one.run_id for one in _got(store.logs())}, _LOGS)
            for found in (_got(store.run("run 1")), *_got(store.runs(session="chat ä"))):
                known = {name: getattr(found, name) for name in facts}
                _is("its facts", known, facts)
                _is("its status", (found.status, found.is_orphaned), ("running", False))
                _is("its end", (found.last_id, found.events), (1, 2))
                _is("its times", (found.started, found.updated), (_AT, _AT))
            newest = [one.run_id for one in store.storage.logs(limit=2)]
            _is("the newest logs", newest, [one.run_id for one in store.storage.logs()][1:])
            _is("an unknown run", _got(store.run("unknown")), None)
            _is("a log that is no run", _got(store.run("no run")), None)
            _is("a session without runs", _got(store.runs(session="other")), [])

    def test_a_run_has_the_status_of_its_end(self) -> None:
        """A run that waits for a person is interrupted until a process takes its lease."""
        with self.make_run_store() as store:
            for status in ("ok", "error", "cancelled", "interrupted"):
                log = store.log(status)
                _got(log.append([_created(), _finished(status)]))
                found = _got(store.run(status))
                _is("the status", (found.status, found.is_orphaned), (status, False))
                _is("the lease", log.epoch, 0)
                _is("the runs", [one.run_id for one in _got(store.runs(status=status))], [status])
            _got(store.log("interrupted").take())
            _is("the status", _got(store.run("interrupted")).status, "running")
            _is("the interrupted", _got(store.runs(status="interrupted")), [])

    def test_display_events_are_deleted_when_the_run_ends(self) -> None:
        """A late reader sees the text so far; a finished run keeps what is durable."""
        with self.make_run_store() as store:
            log = store.log("run")
            shown = _displayed("text so far")
            _got(log.append([_created(), shown, _said("a")]))
            _is("the events", len(_got(log.read())), 3)
            _got(log.append([_finished("interrupted")]))
            _is("the events", len(_got(log.read())), 4)
            _got(log.append([shown, _said("b"), _finished("ok")]))
            types = [event.type for event in _got(log.read())]
            _is("whether display events are left", shown.type in types, False)
            _is("the ids", _ids(_got(log.read())), [0, 2, 3, 5, 6])
            _is("the number of events", _got(store.run("run")).events, 5)
        with self.make_run_store(keep_display=True) as store:
            log = store.log("run")
            _got(log.append([_created(), shown, _finished("ok")]))
            _is("the ids", _ids(_got(log.read())), [0, 1, 2])

    def test_the_conversation_of_a_session_is_that_of_its_runs_in_order(self) -> None:
        """The history of a session is read from the logs of its runs."""
        with self.make_run_store() as store:
            for number in range(3):
                log = store.log(f"run {9 - number}")
                inner = _said("inside of a call").replace(origin=Origin("t", "c", ("c",)))
                created = _created(session="chat").replace(timestamp=_AT + number)
                said = _said(f"message {number}")
                _got(log.append([created, inner, said, _displayed("text"), _finished("ok")]))
            _got(store.log("other").append([_created(session="other"), _said("elsewhere")]))
            found = _texts(_got(store.conversation("chat")))
            _is("the conversation", found, [f"message {number}" for number in range(3)])
            before = _texts(_got(store.conversation("chat", before="run 7")))
            _is("the conversation before a run", before, ["message 0", "message 1"])
            _is("an unknown session", _got(store.conversation("unknown")), [])
            unknown = _got(store.conversation("chat", before="unknown"))
            _is("the conversation before an unknown run", unknown, [])

    # --- leases -----------------------------------------------------------------------------------

    def test_a_second_holder_is_refused_until_the_lease_is_released(self) -> None:
        """One process at a time drives a run; others read it."""
        with self.make_run_store() as store:
            for other in self._others(store):
                first, second = store.log("run"), other.log("run")
                _got(first.append([_created(), _said("a")]))
                for pending in (second.append([_said("b")]), second.take(), other.delete("run")):
                    _fails(pending, RunInUseError)
                _is("its texts", _texts(_got(second.read())), ["a"])
                _is("the next id", second.next_id, first.next_id)
                _got(first.release())
                _got(second.append([_said("c")]))
                _fails(first.append([_said("d")]), RunInUseError)
                _is("its texts", _texts(_got(first.read())), ["a", "c"])
                _got(second.append([_finished("ok")]))
                _got(first.take())

    def test_handles_of_one_store_share_the_lease(self) -> None:
        """It ends when the last of them is closed."""
        with self.make_run_store() as store:
            for other in self._others(store):
                first, second = store.log("run"), store.log("run")
                _got(first.append([_said("a")]))
                _got(second.append([_said("b")]))
                first.close()
                _fails(other.log("run").append([_said("c")]), RunInUseError)
                second.close()
                _got(other.log("run").append([_said("c")]))
                _is("its texts", _texts(_got(other.log("run").read())), ["a", "b", "c"])

    def test_a_lease_expires_and_its_old_epoch_cannot_append(self) -> None:
        """A process of another machine that hung and comes back must not write."""
        with self.make_run_store() as store:
            for other in self._others(store):
                take = TakeLease(name="run", holder=_stranger(), ttl=_TTL)
                old = other.storage.write([take])[0].epoch
                created = _append(old, _created(), _said("a"))
                _is("the last id", other.storage.write([created])[0], 1)
                _is("whether it is orphaned", _got(store.run("run")).is_orphaned, False)
                _fails(store.log("run").append([_said("b")]), RunInUseError)
                _until("the lease expires", lambda: _got(store.run("run")).is_orphaned)
                log = store.log("run")
                _got(log.append([_said("c")]))
                _is("whether it is orphaned", _got(store.run("run")).is_orphaned, False)
                _is_beyond_epoch(old, log.epoch)
                refused: Any = other.storage.write([_append(old, _said("d"))])[0]
                _is("whether it is refused", isinstance(refused, LeaseLostError), True)
                lost = other.storage.write([RenewLeases(leases={"run": old}, ttl=_TTL)])[0]
                _is("the lost leases", list(lost), ["run"])
                _is("its texts", _texts(_got(store.log("run").read())), ["a", "c"])

    def test_an_append_whose_confirmation_was_lost_can_be_repeated(self) -> None:
        """The rows beyond the last id that the writer knows are stored once."""
        with self.make_run_store() as store:
            storage = store.storage
            take = TakeLease(name="run", holder=_stranger(), ttl=60)
            epoch = storage.write([take])[0].epoch
            events = [_said("a").replace(id=0), _said("b").replace(id=3)]
            for _ in range(2):
                _is("the last id", storage.write([_append(epoch, *events)])[0], 3)
            later = replace(_append(epoch, _said("c").replace(id=2)), known_id=3)
            refused: Any = storage.write([later])[0]
            _is("whether it is refused", isinstance(refused, EventConflictError), True)
            more = replace(_append(epoch, *events[1:], _said("d").replace(id=4)), known_id=0)
            _is("the last id", storage.write([more])[0], 4)
            _is("its texts", _texts(_got(store.log("run").read())), ["a", "b", "d"])
            found = store.storage.logs(names=["run"])[0]
            _is("the number of events", (found.events, found.last_id), (3, 4))

    def test_of_two_appends_with_one_id_the_second_is_refused_without_waiting(self) -> None:
        """An acknowledged event is never missing, also if appends are written together."""
        with self.make_run_store() as store:
            log = store.log("run")
            pending = [
                (number, text, log.append([_said(f"{number}{text}").replace(id=number)]))
                for number in range(50)
                for text in "ab"
            ]
            for _, text, append in pending:
                if text == "a":
                    _got(append)
                else:
                    _fails(append, EventConflictError)
            expected = [f"{number}a" for number in range(50)]
            _is("its texts", _texts(_got(log.read())), expected)

    def test_a_lease_is_renewed_while_its_store_is_open(self) -> None:
        """A run can take longer than a lease."""
        with self.make_run_store(lease_ttl=_TTL) as store:
            for other in self._others(store):
                log = store.log("run")
                _got(log.append([_created()]))
                until = time.monotonic() + 2.5 * _TTL
                while time.monotonic() < until:
                    _fails(other.log("run").take(), RunInUseError)
                    time.sleep(_TTL / 10)
                _got(log.append([_said("a")]))

    def test_one_run_of_a_session_is_active_at_a_time(self) -> None:
        """Two runs of a conversation would not know each other's messages."""
        with self.make_run_store() as store:
            first, second = store.log("run 1"), store.log("run 2")
            _got(first.take(session="chat"))
            for other in chain([store], self._others(store)):
                _fails(other.log("run 2").take(session="chat"), RunInUseError)
            _got(store.log("run 3").take(session="other"))
            _got(first.append([_created(session="chat"), _finished("ok")]))
            _got(second.take(session="chat"))
            _got(second.append([_created(session="chat"), _said("a")]))
            _is("the conversation", _texts(_got(store.conversation("chat"))), ["a"])

    def test_an_append_after_a_refused_lease_takes_it_when_it_is_free(self) -> None:
        """A refused process can try again."""
        with self.make_run_store() as store:
            for other in self._others(store):
                _got(store.log("run").append([_said("a")]))
                log = other.log("run")
                _fails(log.append([_said("b")]), RunInUseError)
                _got(store.log("run").release())
                _is("the last id", _got(log.append([_said("c")])), 1)

    # --- messages ---------------------------------------------------------------------------------

    def test_messages_are_received_in_order_by_any_process(self) -> None:
        """A process without the lease never appends: it puts a message in the inbox."""
        with self.make_run_store() as store:
            for other in self._others(store) if self.is_shared else [store]:
                log = store.log("run")
                _got(log.append([_created()]))
                waiting = log.wait_message(0)
                _is("whether it waits", waiting.done(), False)
                numbers = [_got(other.post("run", {"text": text})) for text in ("a", "ä\x00b")]
                _is("the numbers", numbers, [1, 2])
                _is_at_least("the message it waited for", _got(waiting), 1)
                _is("waiting for what is there", _got(log.wait_message(1)), 2)
                bodies = [dict(one.body) for one in _got(log.messages())]
                _is("the messages", bodies, [{"text": "a"}, {"text": "ä\x00b"}])
                _is("later ones", [one.number for one in _got(other.messages("run", 1))], [2])
                _fails(other.post("unknown", {}), UserKeyError)

    def test_a_message_is_consumed_with_the_events_that_it_caused(self) -> None:
        """It is neither lost nor handled twice when the holder is killed."""
        with self.make_run_store() as store:
            log = store.log("run")
            _got(log.append([_created()]))
            for text in "abc":
                _got(store.post("run", {"text": text}))
            refused = log.append([_said("a")], consumed=[1], expect_seq=7)
            _fails(refused, EventConflictError)
            _is("the messages", len(_got(log.messages())), 3)
            _got(log.append([_said("a")], consumed=[1, 2]))
            _is("the messages", [one.number for one in _got(log.messages())], [3])
            _got(log.append([], consumed=[3]))
            _is("the messages", _got(log.messages()), [])
            _is("the next number", _got(store.post("run", {})), 4)
            _is("its texts", _texts(_got(log.read())), ["a"])

    def test_a_run_has_one_message_with_a_key(self) -> None:
        """Of two decisions about one call, the first counts."""
        with self.make_run_store() as store:
            for other in chain(self._others(store), [store]):
                run_id = f"run {id(other)}"
                _got(store.log(run_id).append([_created()]))
                _got(store.post(run_id, {"n": 1}, key="decision/ä"))
                _fails(other.post(run_id, {"n": 2}, key="decision/ä"), EventConflictError)
                _got(other.post(run_id, {"n": 3}, key="decision/b"))
                found = [one.body["n"] for one in _got(store.messages(run_id))]
                _is("the messages", found, [1, 3])

    def test_a_decision_about_a_waiting_call_is_recorded_once(self) -> None:
        """Any process shows the approvals of a run and decides, also if no process holds it."""
        with self.make_run_store() as store:
            log = store.log("run")
            _got(
                log.append([_created(), _asks("call_1"), _asks("call_2"), _finished("interrupted")])
            )
            calls = [one.call_id for one in _got(store.approvals("run"))]
            _is("the waiting calls", calls, ["call_1", "call_2"])
            for other in self._others(store) if self.is_shared else [store]:
                _got(other.decide("run", "call_1", False, message="no"))
                _fails(store.decide("run", "call_1", approved=True), EventConflictError)
                _fails(other.decide("run", "call_9", approved=True), UserKeyError)
            calls = [one.call_id for one in _got(store.approvals("run"))]
            _is("the waiting calls", calls, ["call_2"])
            [message] = _got(store.messages("run"))
            decided = {name: message.body[name] for name in ("type", "call_id", "approved")}
            expected = {"type": "decision", "call_id": "call_1", "approved": False}
            _is("the decision", decided, expected)
            decision = RunRecordEvent("approval_decided", {"call_id": "call_1"})
            _got(log.append([decision], consumed=[message.number]))
            _fails(store.decide("run", "call_1", approved=True), EventConflictError)
            _got(log.append([_finished("ok")]))
            _is("the waiting calls", _got(store.approvals("run")), [])

    # --- content ----------------------------------------------------------------------------------

    def test_registered_secrets_are_stored_as_marks(self) -> None:
        """Resuming restores them where they are registered; people see `***`."""
        with self.make_run_store() as store:
            log = store.log("run")
            text = f"the key is {_SECRET}!"
            register_secret(_SECRET)
            try:
                _got(log.append([_created(session="chat"), _said(text), _said("\ue000 is text")]))
                hidden = ["the key is ***!", "\ue000 is text"]
                _is("its texts", _texts(_got(log.read())), hidden)
                _is("the restored texts", _texts(_got(log.read_all())), [text, "\ue000 is text"])
                _is("the history", _texts(_got(store.conversation("chat"))), [text, hidden[1]])
            finally:
                forget_secret(_SECRET)
            _is("its texts elsewhere", _texts(_got(log.read_all())), hidden)

    def test_large_texts_are_restored_and_those_of_other_logs_stay(self) -> None:
        """The same large text can be in several events and logs."""
        large = "ä1\x00" * 60_000
        with self.make_run_store() as store:
            events = [_said(large), _said("small"), MessageEvent([{"a": [large, {"b": large}]}])]
            for name in ("one", "two"):
                _got(store.log(name).append([_created(), *events]))
            for name in ("one", "two"):
                stored = _got(store.log(name).read(0))
                contents = [cast("MessageEvent", event).content for event in stored]
                _is_same("the contents", contents, [large, "small", [{"a": [large, {"b": large}]}]])
                _got(store.delete(name))

    # --- deleting ---------------------------------------------------------------------------------

    def test_a_store_can_delete_its_own_run(self) -> None:
        """Its messages are deleted with it, and the id can be used again."""
        with self.make_run_store() as store:
            log = store.log("run")
            _got(log.append([_created(), _said("a")]))
            _got(store.post("run", {}))
            _got(store.delete("run"))
            _got(store.delete("unknown"))
            _is("the run", _got(store.run("run")), None)
            _is("its messages", _got(store.messages("run")), [])
            _is("the last id", _got(log.append([_said("b")])), 0)
            _is("its texts", _texts(_got(log.read())), ["b"])

    def test_retention_deletes_the_oldest_runs_that_need_nothing(self) -> None:
        """A run that a process holds, or that waits for a person, stays."""
        limits: list[tuple[dict[str, Any], list[str]]] = [
            ({}, ["held", "new", "old", "waiting"]),
            ({"max_events": 10}, ["held", "new", "waiting"]),
            ({"max_age": time.time() - _AT + 7_500}, ["held", "new", "waiting"]),
            ({"max_bytes": 1}, ["held", "waiting"]),
            ({"max_events": 0}, ["held", "waiting"]),
        ]
        for options, expected in limits:
            with self.make_run_store() as store:
                for n, name in enumerate(("waiting", "held", "old", "new")):
                    at = _AT - 10_000 + 1_000 * n
                    status = "interrupted" if name == "waiting" else "ok"
                    events = [_created(), _said("a")]
                    events += [] if name == "held" else [_finished(status)]
                    pending = store.log(name).append([one.replace(timestamp=at) for one in events])
                    _got(pending)
                deleted = _got(store.retain(**options))
                left = sorted(one.run_id for one in _got(store.runs()))
                _is(f"what retain({options}) leaves", left, expected)
                _is("the deleted events", deleted, 3 * (4 - len(left)))

    # --- processes --------------------------------------------------------------------------------

    def test_waiting_sees_the_events_of_another_process(self) -> None:
        """Without polling by the caller."""
        with self.make_run_store() as store:
            for other in self._others(store):
                log, reader = store.log("run"), other.log("run")
                for number in range(20):
                    waiting = reader.wait(number - 1)
                    _got(log.append([_said(str(number))]))
                    _is_at_least("the id it waited for", _got(waiting), number)

    def test_closing_writes_what_was_begun_and_releases_the_leases(self) -> None:
        """A program that ends loses nothing, and another one continues at once."""
        store = self.make_run_store()
        pending = [store.log("run").append([_said(str(n))]) for n in range(100)]
        left = store.log("run").wait(1_000)
        store.close()
        _is("the ids", [_got(one) for one in pending], list(range(100)))
        _fails(left, EventStoreError)
        for refused in (store.runs(), store.post("run", {}), store.messages("run")):
            _fails(refused, EventStoreError)
        for other in self._others(store):
            _is("the last id", _got(other.log("run").append([_said("next")])), 100)

    def test_a_forked_child_has_its_own_connections_and_no_lease(self) -> None:
        """The parent keeps the lease, and both can use the store."""
        if not self.is_shared or not hasattr(os, "fork"):
            return
        with self.make_run_store() as store:
            _got(store.log("run").append([_said("a")]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                code = 1
                with contextlib.suppress(BaseException):
                    _in_child(store)
                    code = 0
                os._exit(code)
            ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            _is("the exit code of the child", ended, 0)
            _is("the last id", _got(store.log("run").append([_said("c")])), 1)
            _is("its texts", _texts(_got(store.log("run").read())), ["a", "c"])
            _is("the texts of the child", _texts(_got(store.log("child").read())), ["b"])

    def _others(self, store: RunStore) -> Iterator[RunStore]:
        """Yield another store object for the same place, if there can be one."""
        if self.is_shared:
            with self.open_again(store) as other:
                yield other


class _LogWithStore(StoredLog):
    """A handle on a log that closes its store."""

    def __init__(self, run_store: RunStore) -> None:
        super().__init__(run_store.engine, "default", store=run_store)
        self.run_store = run_store

    def close(self) -> None:
        super().close()
        self.run_store.close()


def _in_child(store: RunStore) -> None:
    log = store.log("run")
    _is("its texts", _texts(_got(log.read())), ["a"])
    _fails(log.append([_said("b")]), RunInUseError)
    _got(store.log("child").append([_said("b")]))
    store.close()


# --- test data ------------------------------------------------------------------------------------

_AT: Final = 1_700_000_000.25
_LOGS: Final = {"run 1", "run 2", "no run"}


def _created(**facts: Any) -> Event:
    record = RunRecordEvent("run_created", {"agent": "Clerk", **facts})
    return record.replace(timestamp=_AT)


def _finished(status: str) -> Event:
    return RunFinishedEvent(status=cast("Any", status)).replace(timestamp=_AT)


def _said(text: str) -> Event:
    return MessageEvent(text).replace(timestamp=_AT)


def _displayed(text: str) -> Event:
    return NotifyStreamEvent(text).replace(timestamp=_AT)


def _asks(call_id: str) -> Event:
    item = ToolApprovalItem(call_id=call_id, name="pay", arguments="{}")
    event = RunItemStreamEvent("tool_approval_requested", item.to_dict())
    return event.replace(timestamp=_AT)


def _stranger() -> LeaseHolder:
    """Return a holder on another machine."""
    token = uuid.uuid4().hex
    return LeaseHolder(
        machine="another", pid=1, started=0.0, token=token, program="contract", since=0.0
    )


def _append(epoch: int, *events: Event) -> AppendRows:
    rows = [event_to_row(event) for event in events]
    created = next((row.created for row in rows if row.created), None)
    return AppendRows(name="run", epoch=epoch, rows=rows, created=created)


# --- helpers --------------------------------------------------------------------------------------


def _got(pending: PendingFuture[T]) -> Any:
    return pending.result(PATIENCE)


def _fails(pending: PendingFuture[Any], kind: type[Exception]) -> None:
    try:
        result = pending.result(PATIENCE)
    except kind:
        return
    raise StoreLawError(f"expected {kind.__name__}, got {result!r}")


def _is(name: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise StoreLawError(f"{name}: expected {expected!r}, got {actual!r}")


def _is_same(name: str, actual: object, expected: object) -> None:
    if actual != expected:  # too large to be shown
        raise StoreLawError(f"{name}: they are not as they were stored")


def _is_at_least(name: str, actual: int, least: int) -> None:
    if actual < least:
        raise StoreLawError(f"{name}: expected at least {least}, got {actual}")


def _is_beyond_epoch(old: int, new: int) -> None:
    if new <= old:
        raise StoreLawError(f"the epoch {new} of a new lease is not larger than {old}")


def _until(name: str, condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise StoreLawError(f"{name}: it did not happen within {PATIENCE:g} s")
        time.sleep(0.02)


def _ids(events: Iterable[Event]) -> list[int]:
    return [event.id for event in events]


def _texts(events: Iterable[Event]) -> list[str]:
    return [str(event.content) for event in events if isinstance(event, MessageEvent)]
