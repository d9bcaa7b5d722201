"""MemoryEventStore keeps the store contract, and the futures that stores return."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import agents_tools.persistence
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.events import Event, MessageEvent
from agents_tools.events.base import event_class
from agents_tools.persistence import (
    EventFilter,
    MemoryEventStore,
    MemoryRunStore,
    PendingFuture,
    SQLiteRunStore,
)
from agents_tools.testing import EventStoreContract, StoreLawError

BOUND = 45.0


@pytest.mark.requirement("D9", "D11", "D52", "F23")
class TestMemoryEventStore(EventStoreContract):
    """The contract, in memory."""

    def make_store(self) -> MemoryEventStore:
        return MemoryEventStore()


class _LossyStore(MemoryEventStore):
    """A store that returns ids and stores nothing."""

    def read(self, *_args: Any, **_options: Any) -> PendingFuture[Any]:
        return PendingFuture.now([])


def test_the_contract_names_the_rule_that_a_store_breaks():
    """The author of a store reads the expected and the actual result."""

    class Broken(EventStoreContract):
        def make_store(self) -> MemoryEventStore:
            return _LossyStore()

    with pytest.raises(StoreLawError, match=r"the events: expected \[MessageEvent.* got \[\]"):
        Broken().test_events_come_back_equal_and_in_order()


def test_changing_a_payload_later_does_not_change_the_stored_event():
    """Callers can reuse the payload."""
    store = MemoryEventStore()
    content = ["a"]
    store.append([MessageEvent(content)]).result()
    content.append("b")
    (event,) = store.read().result()
    assert isinstance(event, MessageEvent)
    assert event.content == ["a"]


@pytest.mark.parametrize("value", ["5", 1.5, None, -2, 2**63])
def test_an_event_with_an_invalid_id_is_refused_and_the_store_continues(value: object) -> None:
    """An application can set ids from its own records, of whatever type those have."""
    store = MemoryEventStore()
    with pytest.raises(UserValueError, match=r"message_event\.id: expected a whole number from -1"):
        store.append([MessageEvent("a").replace(id=value)]).result(5)
    assert store.append([MessageEvent("b")]).result(5) == store.next_id - 1 == 0


@pytest.mark.parametrize(
    "limits", [{"max_age": "1d"}, {"max_age": -1}, {"max_events": float("nan")}, {"max_bytes": []}]
)
def test_limits_of_retention_that_are_not_numbers_are_refused(limits: Any) -> None:
    """A negative age would delete all logs."""
    with MemoryRunStore() as store:
        store.log("a").append([MessageEvent("a")]).result(5)
        with pytest.raises(UserValueError, match=r"retain\(max_\w+=\) expects a number from 0 on"):
            store.retain(**limits)
        assert len(store.logs().result(5)) == 1


@pytest.mark.parametrize("ttl", [0, -1, "15", None])
def test_a_lease_time_that_is_not_above_0_is_refused(tmp_path: Path, ttl: Any) -> None:
    """Other processes would take over every run at once."""
    with pytest.raises(UserValueError, match="lease_ttl= expects a number of seconds above 0"):
        SQLiteRunStore(tmp_path / "runs.db", lease_ttl=ttl)


def test_stores_are_imported_lazily():
    """A store that needs another package costs nothing unless it is used."""
    assert "RedisEventStore" in agents_tools.persistence.__all__
    assert issubclass(agents_tools.persistence.UnknownEvent, Event)
    with pytest.raises(AttributeError, match="has no attribute 'PaperEventStore'"):
        _ = agents_tools.persistence.PaperEventStore


def test_a_filter_refuses_a_bare_string():
    """Its characters would be taken as types."""
    with pytest.raises(UserTypeError, match=r"EventFilter.types is a string"):
        EventFilter(types="message_event")  # type: ignore[arg-type]


def test_an_event_of_an_unregistered_class_is_stored_in_memory_too():
    """As in a file, it is read back as a generic event."""

    @event_class
    class UnregisteredEvent(Event):
        type = "unregistered_for_this_test"
        text: str

    store = MemoryEventStore()
    store.append([UnregisteredEvent("hello")]).result()
    (event,) = store.read().result()
    assert isinstance(event, agents_tools.persistence.UnknownEvent)
    assert event.to_dict()["text"] == "hello"
