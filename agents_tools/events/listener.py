"""Collect the events of tools inside a `listen` block, or all events of the process."""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from agents_tools.errors import UserError, UserTypeError
from agents_tools.events.single_reader import SingleReader, yield_to_event_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from agents_tools.events.base import Emit, Event

__all__ = ["Listener", "add_global_listener", "bind", "current_listeners", "listen"]

P = ParamSpec("P")
T = TypeVar("T")

_MAX_READ: Final = 1024
"""The number of events that a reader gets before other tasks of the loop run."""


def listen(*, all: bool = False, maxsize: int = 100_000) -> Listener:
    """Collect the events of all tools that run inside a block, in any framework.

    ::

        async with listen() as events:
            await some_agent.run("…")
        for event in events:
            ...

    Use it with `with` or `async with`. Inside the block, `async for` yields events as they are
    emitted. After the block, `async for` ends after the last event.

    Args:
        all: Collect the events of every call of the process. By default, only calls that begin
            inside the block are included, also those in tasks, and in threads that run with a copy
            of its context (see `bind`).
        maxsize: The number of events that are kept. When there are more, a `GapEvent` replaces the
            oldest droppable events.
    """
    return Listener(is_global=all, maxsize=maxsize)


class Listener(SingleReader):
    """The events that a `listen` block has collected."""

    def __init__(self, *, is_global: bool, maxsize: int) -> None:
        super().__init__()
        if maxsize < 1:
            raise UserError(
                f"listen(maxsize=) is too small: expected at least 1, got maxsize={maxsize}."
            )
        self._is_global = is_global
        self._maxsize = maxsize
        self._limit = maxsize
        self._events: list[Event] = []
        self._read = 0
        self._read_in_turn = 0
        self._is_entered = False
        self._is_closed = False

    @property
    def events(self) -> list[Event]:
        """All events so far, in a new list."""
        return self._events.copy()

    def __iter__(self) -> Iterator[Event]:
        """Iterate over all events so far."""
        return iter(self.events)

    def __enter__(self) -> Self:
        """Start collecting events."""
        if self._is_entered:
            raise UserError(
                "The listener cannot be used twice: expected a new one. Call `listen()` again."
            )
        self._is_entered = True
        _add_listener(self.receive, is_global=self._is_global)
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Stop collecting events, including those of calls that still run."""
        _remove_listener(self.receive, is_global=self._is_global)
        self._is_closed = True
        self._wake_reader()

    async def __aenter__(self) -> Self:
        """Start collecting events."""
        return self.__enter__()

    async def __aexit__(self, *exc_info: object) -> None:
        """Stop collecting events, including those of calls that still run."""
        self.__exit__()

    def __aiter__(self) -> Self:
        """Continue after the event that was read last."""
        return self

    async def __anext__(self) -> Event:
        """Return the next event.

        Raises:
            StopAsyncIteration: The block has ended and all events were read.
            UserError: Another task is reading.
        """
        if self._read_in_turn >= _MAX_READ:
            self._read_in_turn = 0
            await yield_to_event_loop()
        while True:
            with self._lock:
                if self._read < len(self._events):
                    self._read += 1
                    self._read_in_turn += 1
                    return self._events[self._read - 1]
                if self._is_closed:
                    raise StopAsyncIteration
            self._read_in_turn = 0
            await self._wait_until_ready()

    def receive(self, event: Event) -> None:
        """Store an event. This is the `Emit` function of the block."""
        if self._is_closed:
            return
        self._events.append(event)
        if len(self._events) > self._limit:
            self._shorten()
        if self._reader is not None:
            self._wake_reader()

    def _is_ready(self) -> bool:
        return self._read < len(self._events) or self._is_closed

    def _shorten(self) -> None:
        """Drop old events, beginning with those that were read already."""
        # Decorating a function imports this module, but hardly any listener becomes full.
        from agents_tools.events.coalesce import coalesce, count_events, drop_display_events

        with self._lock:
            count = len(self._events)
            size = self._maxsize - max(self._maxsize // 8, 1)
            unread = self._events[self._read : count]
            read = coalesce(self._events[: self._read])
            read, _ = drop_display_events(read, max(size - count_events(unread), 0))
            unread, _ = drop_display_events(coalesce(unread), max(size - count_events(read), 0))
            self._events[:count] = read + unread  # events appended meanwhile stay behind them
            self._read = len(read)
            self._limit = max(self._maxsize, len(self._events) + self._maxsize // 8)


_context_listeners: ContextVar[tuple[Emit, ...]] = ContextVar("agents_tools_listeners", default=())
_global_listeners: tuple[Emit, ...] = ()
_listener_count = 0
_registry_lock = RLock()


def current_listeners() -> tuple[Emit, ...]:
    """Return the listeners of this context and of the process.

    The common case of no listener costs one comparison.
    """
    return _context_listeners.get() + _global_listeners if _listener_count else ()


def add_global_listener(emit: Emit) -> Callable[[], None]:
    """Call a function with every event of the process, as soon as it is emitted.

    Args:
        emit: Receives an event and never waits. It runs in the context that emits the event.

    Returns:
        A function that removes the listener. Calling it again does nothing.
    """
    _add_listener(emit, is_global=True)

    def stop() -> None:
        if emit in _global_listeners:
            _remove_listener(emit, is_global=True)

    return stop


def _add_listener(emit: Emit, *, is_global: bool) -> None:
    global _global_listeners, _listener_count  # noqa: PLW0603 - one per process
    with _registry_lock:
        _listener_count += 1
        if is_global:
            _global_listeners = (*_global_listeners, emit)
        else:
            _context_listeners.set((*_context_listeners.get(), emit))


def _remove_listener(emit: Emit, *, is_global: bool) -> None:
    global _global_listeners, _listener_count  # noqa: PLW0603 - as above
    with _registry_lock:
        _listener_count -= 1
        if is_global:
            _global_listeners = tuple(other for other in _global_listeners if other != emit)
        else:  # not reset with a token, because the block can be left in another context
            _context_listeners.set(
                tuple(other for other in _context_listeners.get() if other != emit)
            )


def bind(fn: Callable[P, T]) -> Callable[P, T]:
    """Return a function that runs `fn` in a copy of the current context, in any thread.

    Each call gets its own copy. This makes `listen` and the running call known in threads that
    start without a context::

        executor.submit(bind(work), …)

    Raises:
        UserTypeError: `fn` is an async function. A task copies the context by itself.
    """
    from inspect import iscoroutinefunction

    if iscoroutinefunction(fn):
        raise UserTypeError(
            f"bind({getattr(fn, '__name__', fn)}): expected a sync function, got an async one. "
            "Start a task with asyncio.create_task, which copies the context."
        )
    context = copy_context()

    @wraps(fn)
    def bound(*args: P.args, **kwargs: P.kwargs) -> T:
        return context.copy().run(fn, *args, **kwargs)

    return bound
