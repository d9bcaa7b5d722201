"""What a scenario plays on: the places where a fault may strike, and the books that it keeps."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents_tools import Event
from agents_tools.events.listener import add_global_listener

__all__ = ["ANYWHERE", "KINDS", "WITHIN", "Own", "Scenario", "Stage", "Trip", "together"]


class Own(BaseException):
    """An exception that does not derive from `Exception`."""


KINDS: dict[str, Callable[[], BaseException]] = {
    "runtime": lambda: RuntimeError("struck"),
    "os": lambda: OSError(5, "struck"),
    "memory": lambda: MemoryError("struck"),
    "timeout": lambda: TimeoutError("struck"),
    "stop": lambda: StopAsyncIteration("struck"),
    "exit": lambda: SystemExit(3),
    "interrupt": lambda: KeyboardInterrupt("struck"),
    "generator": lambda: GeneratorExit("struck"),
    "cancelled": lambda: asyncio.CancelledError("struck"),
    "own": lambda: Own("struck"),
}
"""What is raised."""

ANYWHERE = ("runtime", "os", "memory")
"""Those that anybody may raise; the others come only out of the body of a tool."""

WITHIN = 3


@dataclass(slots=True)
class Trip:
    """Where an exception is raised: at the so-manieth place that a scenario comes to.

    Attributes:
        at: The number of the place; 0 for none.
        kind: What is raised there.
        places: The places so far, and whether each stands in the body of a tool.
        raised: What was raised.
    """

    at: int = 0
    kind: str = "runtime"
    places: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])
    raised: BaseException | None = None

    def hit(self, where: str, *, body: bool) -> None:
        """Come to a place."""
        self.places.append((where, body))
        if self.raised is not None or not 0 < self.at <= len(self.places):
            return
        if body or self.kind in ANYWHERE:  # or at the next place of a body
            self.raised = KINDS[self.kind]()
            raise self.raised


class Stage:
    """What one scenario has, each time that it is played.

    Args:
        trip: Where an exception is raised.
        folder: A folder of its own, that is there.

    Attributes:
        events: What was heard, where the scenario listens.
        kept: What the scenario wants to have in hand when it is over.
        checks: What is looked at when all is over; each yields what is wrong.
    """

    def __init__(self, trip: Trip, folder: Path) -> None:
        self.trip = trip
        self.folder = folder
        self.events: list[Event] = []
        self.kept: dict[str, Any] = {}
        self.checks: list[Callable[[], Iterator[str]]] = []
        self.entered = Counter[str]()
        self.left = Counter[str]()
        self._deaf: Callable[[], None] | None = None

    def hit(self, where: str, *, body: bool = False) -> None:
        """Come to a place of the scenario's own code where a fault may strike."""
        self.trip.hit(where, body=body)

    async def at(self, where: str, *, body: bool = False) -> None:
        """Wait for a turn at such a place."""
        await asyncio.sleep(0)
        self.trip.hit(where, body=body)

    @contextmanager
    def inside(self, name: str) -> Generator[None]:
        """Write down that a body was begun, and that it was left."""
        self.entered[name] += 1
        try:
            yield
        finally:
            self.left[name] += 1

    def listen(self) -> None:
        """Hear all events until the scenario is over; the listener is a place for faults as well.

        It notes the event first: whoever fails afterwards has heard it.
        """

        def hear(event: Event) -> None:
            self.events.append(event)
            self.hit("listener")

        self._deaf = add_global_listener(hear)

    def over(self) -> None:
        """Hear nothing any more."""
        if self._deaf is not None:
            self._deaf()
            self._deaf = None


async def together(*works: Coroutine[Any, Any, Any]) -> None:
    """Do several things at the same time, each in a task; when one of them fails, stop the others.

    Unlike in a task group, one that somebody has cancelled stops the others as well: they wait
    for what it was to do.
    """
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        left = set(tasks)
        while left:
            done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            if any(task.cancelled() or task.exception() for task in done):
                break
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if not task.cancelled():
            task.result()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Something that is done, over real objects.

    Attributes:
        name: What it is called.
        play: Does it.
        again: Does something small with the same objects afterwards, which has to work at once.
        heard: Whether everything that is said is heard.
        joins: Whether it ends cancelled when one of its tasks is cancelled, as one does that waits
            for a task.
        grace: Whether ends may take a grace period: what is cancelled lives in another process.
        every: In which rounds it has a case: in each, or where cases are slow in every so-manieth.
    """

    name: str
    play: Callable[[Stage], Awaitable[Any]]
    again: Callable[[Stage], Awaitable[Any]] | None = None
    heard: bool = False
    joins: bool = False
    grace: bool = False
    every: int = 1
