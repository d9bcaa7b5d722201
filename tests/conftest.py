"""What every test runs under: hypothesis profiles, the size of corpora and the watch for leaks."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from agents_tools import _secrets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

# The machine may be slow and shared: no deadlines, and the same examples each time in `ci`.
_PATIENT = [HealthCheck.too_slow]
settings.register_profile(
    "ci", max_examples=50, deadline=None, derandomize=True, suppress_health_check=_PATIENT
)
settings.register_profile("long", max_examples=2_000, deadline=None, suppress_health_check=_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

_GRACE = 2.0
_POOLS = ("agents-tools", "asyncio_", "AnyIO worker", "pytest_timeout")
"""Threads so named belong to a pool and outlive the test that started them."""


@pytest.fixture(scope="session")
def corpus_size() -> int:
    """Give how many rows of a made-up corpus to read: a sample, or all with `make test-long`."""
    return 100_000 if os.environ.get("AGENTS_TOOLS_CORPUS") == "full" else 5_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Make each asynchronous test fail when it leaves a task of its own behind."""
    for item in items:
        if not isinstance(item, pytest.Function) or item.get_closest_marker("leaves_behind"):
            continue
        if inspect.iscoroutinefunction(item.obj) and not hasattr(item.obj, "hypothesis"):
            item.obj = _leaving_no_task(item.obj)


def _leaving_no_task(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def watched(*args: Any, **kwargs: Any) -> None:
        before = asyncio.all_tasks()
        await test(*args, **kwargs)
        left = asyncio.all_tasks() - before
        if left:
            _, left = await asyncio.wait(left, timeout=_GRACE)
        if left:
            names = ", ".join(repr(task.get_coro()) for task in left)
            pytest.fail(f"The test left tasks running: {names}", pytrace=False)

    return watched


@pytest.fixture(autouse=True)
def _forget_secrets() -> Iterator[None]:
    """Forget the secrets that a test registers: they would be masked in the next one as well."""
    before = set(_secrets._registered)
    yield
    for secret in set(_secrets._registered) - before:
        _secrets.forget_secret(secret)


@pytest.fixture(autouse=True)
def _leave_no_thread(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test that leaves a thread running which belongs to no pool."""
    before = set(threading.enumerate())
    yield
    if request.node.get_closest_marker("leaves_behind"):
        return
    left = [thread for thread in set(threading.enumerate()) - before if not _is_pooled(thread)]
    until = time.monotonic() + _GRACE
    for thread in left:
        thread.join(max(0.0, until - time.monotonic()))
    names = [thread.name for thread in left if thread.is_alive()]
    if names:
        pytest.fail(f"The test left threads running: {', '.join(names)}", pytrace=False)


def _is_pooled(thread: threading.Thread) -> bool:
    return thread.name.startswith(_POOLS)
