"""The leak campaign: it has no findings, and it finds planted leaks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools.tool import FunctionTool
from tests.soak import _leftovers, leaks
from tests.soak.campaign import Budget, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def _measured(*names: str, seconds: float) -> Outcome:
    kinds = [kind for kind in leaks.KINDS if kind.name in names]
    assert len(kinds) == len(names)
    return leaks.measure(Budget(seconds=seconds, seed=7), kinds)


def test_the_campaign_has_no_findings() -> None:
    """Calls of a few kinds release all resources."""
    outcome = _measured("async", "cancelled", "in a thread", seconds=3)

    assert outcome.findings == []
    assert outcome.cases > 600
    assert "0 objects left" in str(outcome.figures["async"])


@pytest.mark.slow
def test_skipped_cases_are_reported() -> None:
    """A short run must not pass for a complete one."""
    outcome = _measured("worker processes", seconds=0.1)

    assert outcome.cases == 0
    assert outcome.figures["skipped for lack of time"] == "worker processes"


_WARM = 410
"""After so many calls the measure has begun."""
_MOST = 3
_opened = threading.Event()


def _thread() -> threading.Thread:
    thread = threading.Thread(target=_opened.wait, name="left behind")
    thread.start()
    return thread


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _nothing(thing: object) -> None:
    """Accept a resource that ends by itself."""


_WAYS: dict[str, tuple[Callable[[], object], Callable[[Any], object]]] = {
    "memory": (lambda: bytes(200), _nothing),
    "descriptors": (lambda: os.open(os.devnull, os.O_RDONLY), os.close),
    "tasks": (lambda: asyncio.ensure_future(asyncio.Event().wait()), _nothing),
    "threads": (_thread, _nothing),
    "processes": (lambda: subprocess.Popen(["sleep", "60"]), _end),  # noqa: S607 - found on PATH
}


@pytest.fixture(params=_WAYS)
def leaked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Let calls leak a resource; yield its kind."""
    take, drop = _WAYS[request.param]
    _opened.clear()
    monkeypatch.setattr(_leftovers, "_PATIENCE", 1.0)
    call = FunctionTool.call
    things: list[Any] = []
    turn = 0

    async def keeping(self: Any, ctx: Any, args_json: str) -> Any:
        nonlocal turn
        turn += 1
        if request.param == "memory" or (turn > _WARM and len(things) < _MOST):
            things.append(take())
        return await call(self, ctx, args_json)

    monkeypatch.setattr(FunctionTool, "call", keeping)
    yield request.param
    _opened.set()
    for thing in things:
        drop(thing)


@pytest.mark.slow
def test_a_leak_is_found(leaked: str) -> None:
    """The report names the kind of the resource and where it was created."""
    [finding] = _measured("async", seconds=1).findings

    assert finding.where == "leaks: async"
    if leaked == "memory":
        assert "test_leaks.py" in finding.what
    else:
        assert f"{leaked} left" in finding.what
