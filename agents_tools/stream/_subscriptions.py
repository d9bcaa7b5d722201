"""The callbacks of a stream, by subscriber."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserValueError
from agents_tools.stream._subscription import (
    Reports,
    Subscription,
    TaskSubscription,
    ThreadSubscription,
    is_async,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.events import Event
    from agents_tools.stream._log import Cursor

__all__ = ["Subscriptions", "in_loop"]


class Subscriptions:
    """The callbacks of a stream.

    Args:
        report: Gets what a callback raised, the event, and who it was.
        note: Gets, in words, which callback is called no more, and why.
    """

    def __init__(
        self,
        report: Callable[[Exception, Event | None, str], None],
        note: Callable[[str], None],
    ) -> None:
        self._report = report
        self._note = note
        self._known: dict[tuple[str, str], Subscription] = {}
        self._numbered = 0

    def add(
        self,
        subscriber_id: str,
        callback_id: str | None,
        callback: Callable[[Event], Any],
        cursor: Cursor,
        max_failures: int,
    ) -> Subscription:
        """Make a subscription; under the lock of the log."""
        if callback_id is None:
            self._numbered += 1
            callback_id = f"callback-{self._numbered}"
        key = (str(subscriber_id), callback_id)
        if key in self._known:
            raise UserValueError(
                f"Subscriber {key[0]!r} has a callback {callback_id!r} already. Unsubscribe it "
                "first, or give another callback_id.",
            )
        kind = TaskSubscription if is_async(callback) and in_loop() else ThreadSubscription
        # Weakly: a thread that waits does not keep the stream alive.
        reports = Reports(weakref.WeakMethod(self._failed), weakref.WeakMethod(self._detached))
        made = self._known[key] = kind(*key, callback, cursor, reports, max_failures)
        return made

    def take(self, subscriber_id: str, callback_id: str) -> Subscription | None:
        """Take a subscription out; `None` if there is no such one."""
        return self._known.pop((str(subscriber_id), callback_id), None)

    def all(self) -> list[Subscription]:
        """Give those that there are."""
        return list(self._known.values())

    def ending(self, *, here: bool) -> list[Subscription]:
        """Give those that can be waited for; none waits for itself.

        Args:
            here: Whether the loop of this thread stands still meanwhile.
        """
        return [
            one
            for one in self.all()
            if not (one.is_inside() or one.is_dead())
            and not (here and isinstance(one, TaskSubscription) and one.home.is_here())
        ]

    def after_fork(self) -> list[Subscription]:
        """Start anew in a child; gives those that wait for the next event there."""
        return [one for one in self.all() if one.after_fork()]

    def _failed(self, subscription: Subscription, error: Exception, event: Event | None) -> None:
        self._report(error, event, subscription.name)

    def _detached(self, subscription: Subscription, why: str) -> None:
        key = (subscription.subscriber_id, subscription.callback_id)
        if self._known.get(key) is subscription:
            del self._known[key]
        self._note(f"{subscription.name} gets no more events: {why}.")


def in_loop() -> bool:
    """Whether this thread runs an event loop."""
    from asyncio import get_running_loop

    with suppress(RuntimeError):
        get_running_loop()
        return True
    return False
