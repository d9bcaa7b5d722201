"""Deduplication of calls: a call that is sent twice runs once and has one result."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict, deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.concurrency.future import PendingFuture
from agents_tools.execution.protocol import CallLog, result_payload

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.execution.protocol import CallEnvelope, CallEvent

__all__ = ["Ledger"]

_EVENTS_WHILE_RUNNING: Final = 1_000
_EVENTS_AFTERWARDS: Final = 20
"""The numbers of events that are stored for a late reader, in addition to the result."""

_LARGE: Final = frozenset({"tool_artifact_event"})
"""The types of events that are not stored for late readers."""
_MAX_CHARS: Final = 1 << 20
"""The approximate number of characters of events that are stored for one call."""


class Ledger:
    """The running calls of a worker, and its latest calls that have ended.

    A call is identified by its id, attempt, tool, definition and arguments. The oldest calls that
    have ended are removed first. The ledger can be used from several event loops.

    Args:
        max_calls: The number of ended calls that are stored.
        max_chars: The number of characters of results and events that are stored.
    """

    def __init__(self, *, max_calls: int = 1_000, max_chars: int = 64 << 20) -> None:
        self._max_calls = max_calls
        self._max_chars = max_chars
        self._chars = 0
        self._lock = threading.Lock()
        self._running: dict[str, _CallRecord] = {}
        self._ended: OrderedDict[str, _CallRecord] = OrderedDict()

    async def once(
        self, envelope: CallEnvelope, run: Callable[[], AsyncGenerator[CallEvent]]
    ) -> AsyncGenerator[CallEvent]:
        """Run a call, or yield the stored messages if it is running or has been run.

        The first caller runs the call, and cancels it by closing the generator.

        Args:
            envelope: The call.
            run: The function that runs the call.
        """
        key = _key(envelope)
        with self._lock:
            record = self._running.get(key) or self._ended.get(key)
            is_first = record is None
            if record is None:
                record = self._running[key] = _CallRecord(envelope)
        messages = self._run(key, envelope, record, run) if is_first else record.follow()
        async with aclosing(messages) as events:
            async for message in events:
                yield message

    def has_call(self, envelope: CallEnvelope) -> bool:
        """Return whether a call is running, or has ended and is still stored."""
        key = _key(envelope)
        with self._lock:
            return key in self._running or key in self._ended

    async def _run(
        self,
        key: str,
        envelope: CallEnvelope,
        record: _CallRecord,
        run: Callable[[], AsyncGenerator[CallEvent]],
    ) -> AsyncGenerator[CallEvent]:
        try:
            async with aclosing(run()) as events:
                async for message in events:
                    record.add(message)
                    yield message
        except Exception as error:
            text = (
                f"The backend of tool {envelope.tool!r} failed ({type(error).__name__}); whether "
                "the call took effect is not known."
            )
            record.add_result(result_payload("lost", text))
            raise
        finally:
            text = f"The call of tool {envelope.tool!r} was cancelled by its caller."
            record.add_result(result_payload("cancelled", text))
            record.close()
            self._store_ended(key, record)

    def _store_ended(self, key: str, record: _CallRecord) -> None:
        with self._lock:
            del self._running[key]
            if record.is_rejected:
                return
            self._ended[key] = record
            self._chars += record.chars
            while len(self._ended) > self._max_calls or (
                self._chars > self._max_chars and len(self._ended) > 1
            ):
                _, oldest = self._ended.popitem(last=False)
                self._chars -= oldest.chars


class _CallRecord:
    """The messages about one call, for the caller that runs it and for those that follow it."""

    def __init__(self, envelope: CallEnvelope) -> None:
        self._lock = threading.Lock()
        self._log = CallLog(envelope.call_id, envelope.attempt)
        self._messages: deque[tuple[int, CallEvent]] = deque(maxlen=_EVENTS_WHILE_RUNNING)
        self._size = 0
        self._count = 0
        self._waiting: list[PendingFuture[None]] = []
        self.result: CallEvent | None = None
        self.chars = 0

    @property
    def is_rejected(self) -> bool:
        """Whether the call was not run, so the same call can be sent again."""
        result = self.result
        return result is not None and result.payload.get("status") == "overloaded"

    def add(self, message: CallEvent) -> None:
        """Store a message, and wake the followers."""
        with self._lock:
            if message.kind == "result":
                self.result = message
                self.chars += _weight(message)
            else:
                self._size += _weight(message)
                if self._size > _MAX_CHARS:  # slow followers lose the older messages
                    self._messages.clear()
                    self._size = _weight(message)
            self._messages.append((self._count, message))
            self._count += 1
        if self._waiting:
            self._wake()

    def add_result(self, payload: dict[str, Any]) -> None:
        """Store a result if the call has none."""
        if self.result is None:
            log = self._log
            if self._messages:
                last = self._messages[-1][1]
                log = CallLog(last.call_id, last.attempt, first=last.seq + 1)
            self.add(log.create("result", payload))

    def close(self) -> None:
        """Remove most events of a call that has ended."""
        with self._lock:
            small = [item for item in self._messages if item[1].payload.get("type") not in _LARGE]
            self._messages = deque(small[-_EVENTS_AFTERWARDS:])
            self.chars += sum(
                _weight(message) for _, message in self._messages if message is not self.result
            )

    async def follow(self) -> AsyncGenerator[CallEvent]:
        """Yield the stored messages and then the new ones, up to the result."""
        seen = 0
        while True:
            waiting: PendingFuture[None] = PendingFuture()
            with self._lock:
                new = [message for number, message in self._messages if number >= seen]
                seen, is_over = self._count, self.result is not None
                if not new and not is_over:
                    self._waiting.append(waiting)
            for message in new:
                yield message
            if is_over:
                return
            if not new:
                try:
                    await waiting
                finally:
                    with self._lock:
                        if waiting in self._waiting:
                            self._waiting.remove(waiting)

    def _wake(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for follower in waiting:
            follower.resolve(None)


def _weight(message: CallEvent) -> int:
    """Return the approximate number of characters of a message."""
    total = 0
    for value in message.payload.values():
        if isinstance(value, str):
            total += len(value)
        elif isinstance(value, (list, dict)):
            total += len(str(cast("Any", value)))
    return total


def _key(envelope: CallEnvelope) -> str:
    parts: list[Any] = [
        envelope.call_id,
        envelope.attempt,
        envelope.tool,
        envelope.definition,
        envelope.arguments,
    ]
    return hashlib.sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()
