"""Plays one case of a scenario in a loop of its own, and says which promises it has broken."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents_tools import AgentsToolsError
from tests.soak.points_checks import Belongings, Complaints, complaints, faults_of_events
from tests.soak.points_drive import BOUND, Case, Conductor, run_until_over
from tests.soak.points_stage import WITHIN, Scenario, Stage, Trip

__all__ = ["Played", "play"]

_SETTLE = 3.0
"""Seconds after the end of a scenario in which what it has cancelled has to end."""

_MAIN = ("rest", "wake", "twice", "both", "all")


@dataclass(slots=True)
class Played:
    """What was seen when a case was played.

    Attributes:
        counts: How often each task has waited.
        places: The places of the stage, and whether each stands in the body of a tool.
        struck: Whether the fault has happened.
        faults: The broken promises.
        seconds: How long it took.
    """

    counts: list[int] = field(default_factory=list[int])
    places: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])
    struck: bool = False
    faults: list[str] = field(default_factory=list[str])
    seconds: float = 0.0


def play(scenario: Scenario, case: Case | None = None) -> Played:
    """Play a scenario once; with a case, its fault happens."""
    played = Played()
    began = time.perf_counter()
    gc.disable()
    try:
        _play(scenario, case, played)
    finally:
        gc.enable()
    played.seconds = time.perf_counter() - began
    return played


def _play(scenario: Scenario, case: Case | None, played: Played) -> None:
    before = Belongings()
    with tempfile.TemporaryDirectory(prefix="points-", ignore_cleanup_errors=True) as folder:
        trip = Trip()
        if case is not None and case.mode == "error":
            trip = Trip(at=case.at, kind=case.more)
        stage = Stage(trip, Path(folder))
        with complaints() as heard:
            _with_loop(scenario, case, stage, played, heard)
            del stage
        played.faults += _complained(heard, case)
    played.faults += before.new()


def _with_loop(
    scenario: Scenario, case: Case | None, stage: Stage, played: Played, heard: Complaints
) -> None:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(heard.of_loop)
    try:
        _in_loop(loop, scenario, case, stage, played)
    finally:
        _close(loop)


def _in_loop(
    loop: asyncio.AbstractEventLoop,
    scenario: Scenario,
    case: Case | None,
    stage: Stage,
    played: Played,
) -> None:
    conductor = Conductor(loop, case)
    main = loop.create_task(_main(scenario, stage, conductor))
    hangs = run_until_over(loop, {main}, BOUND)
    ended = time.perf_counter()
    left = run_until_over(loop, asyncio.all_tasks(loop), _SETTLE)
    took = time.perf_counter() - ended
    conductor.active = False
    played.counts, played.places = list(conductor.counts), list(stage.trip.places)
    played.struck = conductor.struck or stage.trip.raised is not None
    stage.over()
    if hangs:
        played.faults.append(f"the scenario does not end: {_shown(main)}")
    else:
        played.faults += _ended(main, case, stage, scenario, struck=played.struck)
    played.faults += [f"a task is left: {_shown(task)}" for task in left if task is not main]
    if took > 1 and not scenario.grace and not left:
        played.faults.append(f"what was left took {took:.1f} s to end")
    del main, left
    if hangs:
        return
    gc.collect(0)  # all that the scenario has made is young: nothing was collected until now
    for _ in range(3):  # what has ended just now is told to those who wait for it
        loop.call_soon(loop.stop)
        loop.run_forever()
    played.faults += _timers(loop)
    played.faults += _books(stage)
    stage.trip.at = 0
    if scenario.again is not None:
        played.faults += _again(loop, scenario, stage)


async def _main(scenario: Scenario, stage: Stage, conductor: Conductor) -> Any:
    if scenario.heard:
        stage.listen()
    async with asyncio.timeout(None) as conductor.clock:
        return await scenario.play(stage)


def _ended(
    main: asyncio.Task[Any], case: Case | None, stage: Stage, scenario: Scenario, *, struck: bool
) -> Iterator[str]:
    """Yield what is wrong with the end of the main task."""
    error = None if main.cancelled() else main.exception()
    how = "cancelled" if main.cancelled() else "normally" if error is None else f"with {error!r}"
    if case is None or not struck:
        if main.cancelled() or error is not None:
            yield f"it ended {how}, though nothing was done to it"
    elif case.mode in _MAIN and case.task == 0:
        if not main.cancelled():
            yield f"its cancellation was swallowed: it ended {how}"
    elif case.mode == "deadline":
        if not isinstance(error, TimeoutError):
            yield f"its deadline was swallowed: it ended {how}"
    elif main.cancelled() and not main.cancelling():
        if case.task and scenario.joins:
            return
        yield "a cancellation was made up: nobody has cancelled it"
    elif error is not None and not _is_due(error, stage.trip.raised):
        yield f"another error than is due: it ended {how}"


def _is_due(error: BaseException, raised: BaseException | None) -> bool:
    """Return whether a scenario ended with the raised exception, or an error that names it."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_due(one, raised) for one in error.exceptions)
    if error is raised:
        return isinstance(error, Exception)
    return isinstance(error, AgentsToolsError) or error.__cause__ is raised


def _books(stage: Stage) -> Iterator[str]:
    """Yield what the books of a scenario say that is wrong."""
    until = time.monotonic() + WITHIN
    while stage.entered != stage.left and time.monotonic() < until:
        time.sleep(0.001)  # a body in a thread ends when it has seen that nobody waits
    if stage.entered != stage.left:
        open_ones = stage.entered - stage.left
        yield f"bodies were begun and never left: {dict(open_ones)}"
    yield from faults_of_events(stage.events)
    for check in stage.checks:
        yield from check()


def _again(loop: asyncio.AbstractEventLoop, scenario: Scenario, stage: Stage) -> Iterator[str]:
    """Yield what is wrong with one more call of the same things."""
    assert scenario.again is not None
    task = asyncio.ensure_future(scenario.again(stage), loop=loop)  # type: ignore[arg-type]
    if run_until_over(loop, {task}, WITHIN):
        yield f"afterwards, the same things do not work: {_shown(task)}"
        task.cancel()
        run_until_over(loop, {task}, _SETTLE)
    elif task.cancelled() or task.exception() is not None:
        error = None if task.cancelled() else task.exception()
        yield f"afterwards, the same things fail: {error!r}"
    run_until_over(loop, asyncio.all_tasks(loop), _SETTLE)


def _timers(loop: Any) -> Iterator[str]:
    for handle in getattr(loop, "_scheduled", ()):
        if not handle.cancelled():
            yield f"a timer is left: {handle!r:.200}"


def _complained(heard: Complaints, case: Case | None) -> Iterator[str]:
    yield from (f"a complaint: {said}" for said in heard.said)
    if case is None or (case.mode not in {"error", "all", "twice"} and not case.task):
        yield from (f"logged: {said}" for said in heard.logged)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    run_until_over(loop, left, _SETTLE)
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def _shown(task: asyncio.Task[Any]) -> str:
    stack: list[str] = []
    inner: Any = task.get_coro()
    while inner is not None:
        frame = getattr(inner, "cr_frame", None) or getattr(inner, "ag_frame", None)
        if frame is None:
            stack.append(repr(inner)[:80])
            break
        stack.append(f"{frame.f_code.co_name}:{frame.f_lineno}")
        inner = getattr(inner, "cr_await", None) or getattr(inner, "ag_await", None)
    return " > ".join(stack) or repr(task)[:200]
