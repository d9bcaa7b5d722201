"""Plays a scenario with a fault at one of its awaits: the k-th suspension of one of its tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["BOUND", "MODES", "Case", "Conductor", "Traced", "run_until_over"]

_ASYNCIO = str(Path(asyncio.__file__).parent)
"""The modules of asyncio's own tasks, which have no owner."""

BOUND = 8.0
"""Seconds that a scenario may take; it takes thousandths of one."""

MODES: dict[str, str] = {
    "rest": "cancelled while it waits",
    "wake": "cancelled when what it waits for is there, before it goes on",
    "twice": "cancelled, and once more during its cleanup",
    "deadline": "overtaken by a deadline",
    "both": "overtaken by a deadline and cancelled in the same step",
    "all": "cancelled together with all tasks of the loop",
    "error": "struck by an exception",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One fault at one place of a scenario; written as `name/mode/task/at/more`.

    Attributes:
        scenario: The name of the scenario.
        mode: What happens; see `MODES`.
        task: Which task of the scenario, in the order in which they are made; 0 is the main one.
        at: At which of its suspensions; for an exception, at which place of the stage.
        more: After how many further suspensions it is cancelled again; or which exception.
    """

    scenario: str
    mode: str
    task: int
    at: int
    more: str = ""

    def __str__(self) -> str:
        """Write it as it can be read back."""
        return f"{self.scenario}/{self.mode}/{self.task}/{self.at}/{self.more}"

    @classmethod
    def read(cls, text: str) -> Case:
        """Read a case as it is written."""
        scenario, mode, task, at, more = text.split("/")
        return cls(scenario, mode, int(task), int(at), more)


class Traced(Coroutine[Any, Any, Any]):
    """A coroutine that tells whenever it waits."""

    def __init__(self, inner: Any, told: Callable[[Any], None]) -> None:
        self._inner = inner
        self._told = told

    def send(self, value: Any) -> Any:
        """Go on, up to the next wait."""
        waits_for = self._inner.send(value)
        self._told(waits_for)
        return waits_for

    def throw(self, *error: Any) -> Any:
        """Go on with an exception, up to the next wait."""
        waits_for = self._inner.throw(*error)
        self._told(waits_for)
        return waits_for

    def close(self) -> None:
        """End."""
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        """Be awaited."""
        return self._inner.__await__()

    def __getattr__(self, name: str) -> Any:
        """Be taken for the coroutine itself."""
        return getattr(self._inner, name)


class Conductor:
    """Makes the tasks of a loop, counts how often each waits, and lets the fault of a case happen.

    Args:
        loop: The loop.
        case: The case; `None` to count only.

    Attributes:
        counts: How often each task has waited, in the order in which they were made.
        struck: Whether the fault has happened.
        clock: The deadline around the scenario, for the modes that have one.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, case: Case | None) -> None:
        self.counts: list[int] = []
        self.struck = False
        self.clock: asyncio.Timeout | None = None
        self.active = True
        self._loop = loop
        self._case = case
        self._again = 0
        loop.set_task_factory(self._make)

    def _make(self, loop: asyncio.AbstractEventLoop, coro: Any, **more: Any) -> Any:
        code = getattr(coro, "cr_code", None)
        if not self.active or (code is not None and code.co_filename.startswith(_ASYNCIO)):
            return asyncio.Task(coro, loop=loop, **more)
        number = len(self.counts)
        self.counts.append(0)
        return asyncio.Task(
            Traced(coro, lambda waits_for: self._waits(number, waits_for)), loop=loop, **more
        )

    def _waits(self, number: int, waits_for: Any) -> None:
        if not self.active:
            return
        self.counts[number] += 1
        case = self._case
        if case is None or case.mode == "error" or number != case.task:
            return
        task = asyncio.current_task()
        assert task is not None
        if self.counts[number] == case.at:
            self.struck = True
            self._strike(case, task, waits_for)
        elif self.counts[number] == self._again:
            self._loop.call_soon(task.cancel)

    def _strike(self, case: Case, task: asyncio.Task[Any], waits_for: Any) -> None:
        match case.mode:
            case "rest":
                self._loop.call_soon(task.cancel)
            case "wake" if waits_for is None:
                task.cancel()
            case "wake":
                # Before the task's own: it is woken, and then finds that it is cancelled.
                waits_for.add_done_callback(lambda _: task.cancel())
            case "twice":
                self._again = case.at + int(case.more)
                self._loop.call_soon(task.cancel)
            case "all":
                self._loop.call_soon(self._cancel_all)
            case _:
                assert self.clock is not None
                self.clock.reschedule(self._loop.time())
                if case.mode == "both":
                    self._loop.call_soon(task.cancel)

    def _cancel_all(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()


def run_until_over(
    loop: asyncio.AbstractEventLoop, tasks: set[asyncio.Task[Any]], within: float
) -> set[asyncio.Task[Any]]:
    """Run a loop until tasks are over, without a task of its own; give those that are not."""
    left = {task for task in tasks if not task.done()}

    def ended(task: asyncio.Task[Any]) -> None:
        left.discard(task)
        if not left:
            loop.stop()

    if not left:
        return left
    for task in list(left):
        task.add_done_callback(ended)
    alarm = loop.call_later(within, loop.stop)
    loop.run_forever()
    alarm.cancel()
    for task in left:
        task.remove_done_callback(ended)
    return {task for task in left if not task.done()}
