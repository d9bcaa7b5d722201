"""The subscriptions of a stream, by subscriber."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserValueError
from agents_tools.persistence.stream.subscription import (
    SubscriberReports,
    Subscription,
    TaskSubscription,
    ThreadSubscription,
    is_async,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.events.base import Event
    from agents_tools.persistence.stream.log import Cursor

__all__ = ["Subscriptions", "in_loop"]


class Subscriptions:
    """The subscriptions of a stream.

    Args:
        report: Called with the exception of a callback, the event and the name of the callback.
        note: Called with a message when a subscription ends by itself.
    """

    def __init__(
        self,
        report: Callable[[Exception, Event | None, str], None],
        note: Callable[[str], None],
    ) -> None:
        self._report = report
        self._note = note
        self._subscriptions: dict[tuple[str, str], Subscription] = {}
        self._count = 0

    def add(
        self,
        subscriber_id: str,
        callback_id: str | None,
        callback: Callable[[Event], Any],
        cursor: Cursor,
        max_failures: int,
    ) -> Subscription:
        """Create a subscription. The caller holds the lock of the log."""
        if callback_id is None:
            self._count += 1
            callback_id = f"callback-{self._count}"
        key = (str(subscriber_id), callback_id)
        if key in self._subscriptions:
            raise UserValueError(
                f"Subscriber {key[0]!r} already has a callback {callback_id!r}: expected a new "
                "callback_id. Unsubscribe the callback first, or pass another callback_id.",
            )
        kind = TaskSubscription if is_async(callback) and in_loop() else ThreadSubscription
        # Weak references: a waiting thread must not keep the stream alive.
        reports = SubscriberReports(
            weakref.WeakMethod(self._failed), weakref.WeakMethod(self._detached)
        )
        subscription = self._subscriptions[key] = kind(
            *key, callback, cursor, reports, max_failures
        )
        return subscription

    def remove(self, subscriber_id: str, callback_id: str) -> Subscription | None:
        """Remove and return a subscription; `None` if there is none."""
        return self._subscriptions.pop((str(subscriber_id), callback_id), None)

    def all(self) -> list[Subscription]:
        """Return all subscriptions."""
        return list(self._subscriptions.values())

    def closable(self, *, here: bool) -> list[Subscription]:
        """Return the subscriptions that `close` can wait for.

        This excludes the subscription whose callback calls `close`, and those that cannot run.

        Args:
            here: Whether `close` blocks the loop of this thread.
        """
        return [
            one
            for one in self.all()
            if not (one.is_inside() or one.is_dead())
            and not (here and isinstance(one, TaskSubscription) and one.loop_reference.is_here())
        ]

    def after_fork(self) -> list[Subscription]:
        """Reset in a forked child; return the subscriptions that wait for events there."""
        return [one for one in self.all() if one.after_fork()]

    def _failed(self, subscription: Subscription, error: Exception, event: Event | None) -> None:
        self._report(error, event, subscription.name)

    def _detached(self, subscription: Subscription, why: str) -> None:
        key = (subscription.subscriber_id, subscription.callback_id)
        if self._subscriptions.get(key) is not subscription:
            return  # it was unsubscribed meanwhile
        del self._subscriptions[key]
        self._note(f"{subscription.name} gets no more events: {why}.")


def in_loop() -> bool:
    """Return whether this thread runs an event loop."""
    from asyncio import get_running_loop

    with suppress(RuntimeError):
        get_running_loop()
        return True
    return False
