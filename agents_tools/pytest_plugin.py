"""A pytest plugin: fixtures for tools and agents, and `--update-tool-schemas`.

Enable it in a `conftest.py` with `pytest_plugins = ["agents_tools.pytest_plugin"]`. It is not an
entry point of the package, because pytest rewrites the assertions in all modules of such a package.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from agents_tools.events.listener import Listener

__all__ = ["recorded_tools", "scripted_model", "tool_events", "tool_lint", "tool_schema_snapshot"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that updates the snapshots of schemas."""
    parser.getgroup("agents_tools").addoption(
        "--update-tool-schemas",
        action="store_true",
        help="Update the snapshots of tool_schema_snapshot instead of comparing with them.",
    )


@pytest.fixture
def tool_events() -> Iterator[Listener]:
    """Record the events of all tools in the test; `tool_events.events` is the list so far."""
    from agents_tools import listen

    with listen(all=True) as events:
        yield events


@pytest.fixture
def scripted_model() -> Iterator[Callable[..., Any]]:
    """Return a function that creates a `ScriptedModel`, which replaces every model of the test."""
    from contextlib import ExitStack

    from agents_tools.agents.model import override_model
    from agents_tools.testing.scripted import ScriptedModel

    with ExitStack() as stack:

        def make(*steps: Any, **options: Any) -> ScriptedModel:
            model = ScriptedModel(list(steps), **options)
            stack.enter_context(override_model(model))
            return model

        yield make


@pytest.fixture
def tool_schema_snapshot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Return a function that compares tools with a snapshot next to the test.

    The snapshot is in the folder `__tool_schemas__`. Pass a tool or several, `exact=True` to report
    compatible changes as well, and `name=` if a test has several snapshots.
    """
    from agents_tools.testing.snapshots import assert_schema_snapshot

    update = bool(request.config.getoption("--update-tool-schemas"))

    def compare(tools: Any, *, name: str = "", exact: bool = False) -> None:
        file = _file_of(request, "__tool_schemas__", name)
        assert_schema_snapshot(tools, file, exact=exact, update=update)

    return compare


@pytest.fixture
def tool_lint() -> Callable[..., None]:
    """Return `assert_no_findings`, which fails if the linter has findings about tools.

    Pass a tool or several, and `disable=["no-unit"]` to leave rules out.
    """
    from agents_tools.testing.linting import assert_no_findings

    return assert_no_findings


@pytest.fixture
def recorded_tools(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], list[Any]]]:
    """Return a function whose tools replay the results with which the test first passed.

    Pass a tool or several. Without a recording, the tools run, and their results are stored next to
    the test, in the folder `__tool_calls__`. Delete the file to record them again.
    """
    from agents_tools.testing.recording import ToolRecorder

    file = _file_of(request, "__tool_calls__")
    if file.exists():
        yield ToolRecorder.load(file).replay
        return
    recorder = ToolRecorder()
    yield recorder.record
    if recorder.calls and request.node.stash.get(_PASSED, False):
        file.parent.mkdir(parents=True, exist_ok=True)
        recorder.save(file)


_PASSED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Store whether a test passed, for the fixtures that end after it."""
    report = yield
    if call.when == "call":
        item.stash[_PASSED] = report.passed
    return report


def _file_of(request: pytest.FixtureRequest, folder: str, name: str = "") -> Path:
    """Return the file of one test in a folder next to it."""
    group: Any = getattr(request.node.cls, "__qualname__", "")  # of methods
    parts = [request.path.stem, group, request.node.name, name]
    stem = re.sub(r"[^\w.-]+", "_", "-".join(part for part in parts if part))
    return request.path.parent / folder / f"{stem}.json"
