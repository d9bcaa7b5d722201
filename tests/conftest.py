"""The settings of every test: the number of examples, external programs, skips and leaks."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from agents_tools.text import secrets as _secrets
from tests import programs
from tests.scale import IS_FULL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

# A machine can be slow and shared: no deadlines, and the same examples each time when reduced.
_PATIENT = [HealthCheck.too_slow]
settings.register_profile(
    "reduced", max_examples=25, deadline=None, derandomize=True, suppress_health_check=_PATIENT
)
settings.register_profile("full", max_examples=300, deadline=None, suppress_health_check=_PATIENT)
settings.load_profile("full" if IS_FULL else "reduced")

# Under `nohup` and in background jobs SIGINT is ignored, and children inherit that. Tests interrupt
# programs that they start, so this process, whose handlers no child inherits, handles it again.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)

_GRACE = 2.0
_POOLS = ("agents-tools", "asyncio_", "AnyIO worker", "pytest_timeout")
"""Threads so named belong to a pool and outlive the test that started them."""


@pytest.fixture(scope="session")
def corpus_size() -> int:
    """Return how many rows of a generated corpus to read."""
    return 50_000 if IS_FULL else 2_000


_SKIPS = Path(__file__).with_name("expected_skips.txt")
_MISSING = os.environ.get("AGENTS_TOOLS_MISSING", "").split()
"""Programs that cannot be installed on this machine: their tests can be skipped."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make test-all`."""
    parser.addoption(
        "--fail-on-unexpected-skip",
        action="store_true",
        help=f"fail if a test is skipped for a reason that is not in {_SKIPS.name}",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let HTTP clients trust no authority where none is met: reading the list takes each 30 ms."""
    if "not external" in config.option.markexpr:
        os.environ.pop("SSL_CERT_FILE", None)
        os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose programs are not installed."""
    for mark in item.iter_markers("external"):
        for program in mark.args:
            if reason := programs.missing(program):
                pytest.skip(reason)


def _unexpected_skips(config: pytest.Config) -> list[str]:
    """Return the reasons of skips that the stored list does not have."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not config.getoption("--fail-on-unexpected-skip"):
        return []
    lines = _SKIPS.read_text(encoding="utf-8").splitlines()
    expected = tuple(line for line in lines if line and not line.startswith("#"))
    reasons = {report.longrepr[2] for report in reporter.stats.get("skipped", [])}
    reasons = {reason.removeprefix("Skipped: ") for reason in reasons}
    absent = {f"{program} is not installed" for program in _MISSING}
    return sorted(one for one in reasons - absent if not one.startswith(expected))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the whole run for an unexpected skip."""
    if _unexpected_skips(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name the unexpected skips."""
    for reason in _unexpected_skips(config):
        terminalreporter.write_line(f"UNEXPECTED SKIP {reason}", red=True)


def pytest_collection() -> None:
    """Collect no garbage while tests are collected: they stay, and this saves a third of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage again."""
    _exempt_from_collection()
    gc.set_threshold(20_000)
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _exempt_modules() -> Iterator[None]:
    """Exempt what a module of tests has loaded and left from later collections."""
    yield
    _exempt_from_collection()


def _exempt_from_collection() -> None:
    """Collect the garbage, and exempt the rest: many tests collect, half a second each."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of corpora, and make async tests fail that leave a task behind."""
    for item in items:
        if "corpus_size" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.scaled)
        if not isinstance(item, pytest.Function) or item.get_closest_marker("leaves_behind"):
            continue
        if inspect.iscoroutinefunction(item.obj) and not hasattr(item.obj, "hypothesis"):
            item.obj = _leaving_no_task(item.obj)


def _leaving_no_task(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def watched(*args: Any, **kwargs: Any) -> None:
        before = asyncio.all_tasks()
        await test(*args, **kwargs)
        left = {task for task in asyncio.all_tasks() - before if not _is_foreign(task)}
        if left:
            _, left = await asyncio.wait(left, timeout=_GRACE)
        if left:
            names = ", ".join(repr(task.get_coro()) for task in left)
            pytest.fail(f"The test left tasks running: {names}", pytrace=False)

    return watched


def _is_foreign(task: asyncio.Task[Any]) -> bool:
    """Return whether a task is one that sse-starlette, below mcp 1.x, runs until the loop ends."""
    return getattr(task.get_coro(), "__name__", "") == "_shutdown_watcher"


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
