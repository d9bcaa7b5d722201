"""A campaign that does what its seed says, to see what the frame makes of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from tests.soak.campaign import Budget, Campaign, Finding, Outcome

_kept: list[object] = []


def _fine() -> None:
    """Nothing is wrong."""


def _hang() -> None:
    async def waits_for_nobody() -> None:
        await asyncio.Event().wait()

    asyncio.run(waits_for_nobody())


def _fail() -> None:
    raise LookupError("the campaign itself is broken")


def _lose_an_exception() -> None:
    async def fail() -> None:
        raise LookupError("lost")

    async def start() -> None:
        task = asyncio.ensure_future(fail())
        await asyncio.wait([task])

    asyncio.run(start())


def _forget_to_await() -> None:
    async def forgotten() -> None:
        """Never run."""

    forgotten()  # pyright: ignore[reportUnusedCoroutine]


def _forget_a_file() -> None:
    Path(__file__).open("rb")  # noqa: SIM115 - the point of it


def _fail_in_a_thread() -> None:
    thread = threading.Thread(target=_fail)
    thread.start()
    thread.join()


def _fail_in_a_finalizer() -> None:
    class Failing:
        def __del__(self) -> None:
            raise LookupError("in a finalizer")

    Failing()


def _leave_a_process() -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    process = subprocess.Popen(command, start_new_session=True)  # noqa: S603 - this Python
    _kept.append(process)


WAYS: tuple[Callable[[], None], ...] = (
    _fine,
    _hang,
    _fail,
    _lose_an_exception,
    _forget_to_await,
    _forget_a_file,
    _fail_in_a_thread,
    _fail_in_a_finalizer,
    _leave_a_process,
)


def _run(budget: Budget) -> Outcome:
    WAYS[budget.seed % len(WAYS)]()
    found = (
        [Finding(what="odd", where="here", reproduce="again")] if budget.seed >= len(WAYS) else []
    )
    return Outcome(cases=1, findings=found, figures={"ways": len(WAYS)})


CAMPAIGN = Campaign(name="_planted", about="Fails as it is told.", weight=0, run=_run)
