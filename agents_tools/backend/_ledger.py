"""Remembers calls, so that one that is sent twice runs once and has one answer."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import OrderedDict, deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.backend._protocol import CallLog, ended

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.backend._protocol import CallEnvelope, CallEvent

__all__ = ["Ledger"]

_KEPT_WHILE_RUNNING: Final = 1_000
_KEPT_AFTERWARDS: Final = 20
"""How many events of a call a late reader still gets; its result it always gets."""

_LARGE: Final = frozenset({"tool_artifact_event"})
"""The events that are not kept for late readers."""
_MOST: Final = 1 << 20
"""How many characters of events are kept of one call, more or less."""


class Ledger:
    """The calls of one worker that run, and the latest of those that have ended.

    A call is known by its id, attempt, tool, arguments and principal: strangers cannot ask for
    each other's answers, and who makes many calls pushes out their own before those of others. It
    can be used from several event loops.

    Args:
        max_calls: How many ended calls are remembered.
        max_chars: How many characters of their results.
    """

    def __init__(self, *, max_calls: int = 1_000, max_chars: int = 64 << 20) -> None:
        self._max_calls = max_calls
        self._max_chars = max_chars
        self._chars = 0
        self._lock = threading.Lock()
        self._running: dict[str, _Record] = {}
        self._ended: OrderedDict[str, _Record] = OrderedDict()
        self._of: dict[str | None, OrderedDict[str, None]] = {}

    async def once(
        self, envelope: CallEnvelope, run: Callable[[], AsyncGenerator[CallEvent]]
    ) -> AsyncGenerator[CallEvent]:
        """Run a call, or give what is known of it where it was run, or is running, before.

        Whoever came first drives the call, and cancels it by closing the generator.

        Args:
            envelope: The call.
            run: Runs it.
        """
        key = _key(envelope)
        with self._lock:
            record = self._running.get(key) or self._ended.get(key)
            first = record is None
            if record is None:
                record = self._running[key] = _Record(envelope)
        sequel = self._drive(key, envelope, record, run) if first else record.follow()
        async with aclosing(sequel) as events:
            async for said in events:
                yield said

    async def _drive(
        self,
        key: str,
        envelope: CallEnvelope,
        record: _Record,
        run: Callable[[], AsyncGenerator[CallEvent]],
    ) -> AsyncGenerator[CallEvent]:
        try:
            async with aclosing(run()) as events:
                async for said in events:
                    record.add(said)
                    yield said
        except Exception as error:
            told = (
                f"The backend of tool {envelope.tool!r} failed ({type(error).__name__}); whether "
            )
            record.add_result(ended("lost", f"{told}the call took effect is not known."))
            raise
        finally:
            told = f"The call of tool {envelope.tool!r} was cancelled by its caller."
            record.add_result(ended("cancelled", told))
            record.close()
            self._settle(key, record)

    def _settle(self, key: str, record: _Record) -> None:
        with self._lock:
            del self._running[key]
            if record.untouched:
                return
            self._ended[key] = record
            self._of.setdefault(record.principal, OrderedDict())[key] = None
            self._chars += record.chars
            while len(self._ended) > self._max_calls or (
                self._chars > self._max_chars and len(self._ended) > 1
            ):
                self._forget(record.principal)

    def _forget(self, principal: str | None) -> None:
        """Forget the oldest call: of a principal that has more than a fair share, or of all."""
        own = self._of[principal]
        greedy = len(own) > max(1, self._max_calls // len(self._of))
        key = next(iter(own if greedy else self._ended))
        record = self._ended.pop(key)
        self._chars -= record.chars
        theirs = self._of[record.principal]
        del theirs[key]
        if not theirs:
            del self._of[record.principal]


class _Record:
    """What was said about one call; whoever follows it waits here."""

    def __init__(self, envelope: CallEnvelope) -> None:
        self._lock = threading.Lock()
        self._log = CallLog(envelope.call_id, envelope.attempt)
        self._kept: deque[tuple[int, CallEvent]] = deque(maxlen=_KEPT_WHILE_RUNNING)
        self._heavy = 0
        self._count = 0
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self.principal = envelope.principal
        self.result: CallEvent | None = None
        self.chars = 0

    @property
    def untouched(self) -> bool:
        """Whether nothing was run, so that the same call may be sent again."""
        result = self.result
        return result is not None and result.payload.get("status") == "overloaded"

    def add(self, said: CallEvent) -> None:
        """Take what was said."""
        with self._lock:
            if said.kind == "result":
                self.result = said
                self.chars += _weight(said)
            else:
                self._heavy += _weight(said)
                if self._heavy > _MOST:  # who follows is given what comes from now on
                    self._kept.clear()
                    self._heavy = _weight(said)
            self._kept.append((self._count, said))
            self._count += 1
        if self._waiting:
            self._wake()

    def add_result(self, payload: dict[str, Any]) -> None:
        """Take a result for a call that has none."""
        if self.result is None:
            log = self._log
            if self._kept:
                last = self._kept[-1][1]
                log = CallLog(last.call_id, last.attempt, first=last.seq + 1)
            self.add(log.say("result", payload))

    def close(self) -> None:
        """Keep less from now on."""
        with self._lock:
            small = [one for one in self._kept if one[1].payload.get("type") not in _LARGE]
            self._kept = deque(small[-_KEPT_AFTERWARDS:])
            self.chars += sum(_weight(said) for _, said in self._kept if said is not self.result)

    async def follow(self) -> AsyncGenerator[CallEvent]:
        """Give what was said so far, as far as it is kept, and what is said from now on."""
        import asyncio

        seen = 0
        while True:
            signal = asyncio.Event()
            waiting = (asyncio.get_running_loop(), signal)
            with self._lock:
                new = [said for number, said in self._kept if number >= seen]
                seen, over = self._count, self.result is not None
                if not new and not over:
                    self._waiting.append(waiting)
            for said in new:
                yield said
            if over:
                return
            if not new:
                try:
                    await signal.wait()
                finally:
                    with self._lock:
                        if waiting in self._waiting:
                            self._waiting.remove(waiting)

    def _wake(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for loop, signal in waiting:
            with contextlib.suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(signal.set)


def _weight(said: CallEvent) -> int:
    """Give about how many characters something that was said has."""
    total = 0
    for value in said.payload.values():
        if isinstance(value, str):
            total += len(value)
        elif isinstance(value, (list, dict)):
            total += len(str(cast("Any", value)))
    return total


def _key(envelope: CallEnvelope) -> str:
    parts: list[Any] = [
        envelope.principal,
        envelope.call_id,
        envelope.attempt,
        envelope.tool,
        envelope.definition,
        envelope.arguments,
    ]
    return hashlib.sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()
