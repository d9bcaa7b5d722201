"""A pytest plugin: fixtures for tools and agents, and `--update-tool-schemas`.

A `conftest.py` turns it on with `pytest_plugins = ["agents_tools.pytest_plugin"]`. It is no entry
point of the package, for pytest compiles all modules of such a package again, for its assertions.
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
    """Add the option that writes snapshots of schemas again."""
    parser.getgroup("agents_tools").addoption(
        "--update-tool-schemas",
        action="store_true",
        help="Write the snapshots that tool_schema_snapshot compares with anew.",
    )


@pytest.fixture
def tool_events() -> Iterator[Listener]:
    """Hear what any tool says in this test: `tool_events.events` is the list so far."""
    from agents_tools import listen

    with listen(all=True) as events:
        yield events


@pytest.fixture
def scripted_model() -> Iterator[Callable[..., Any]]:
    """Yield what makes a `ScriptedModel` and puts it in place of every model of the test."""
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
    """Return what compares tools with their snapshot beside the test, in `__tool_schemas__`.

    Call it with a tool or tools; with `exact=True` what harms no caller counts as well; with
    `name=` a test may have several snapshots.
    """
    from agents_tools.testing.snapshots import assert_schema_snapshot

    update = bool(request.config.getoption("--update-tool-schemas"))

    def compare(tools: Any, *, name: str = "", exact: bool = False) -> None:
        file = _beside(request, "__tool_schemas__", name)
        assert_schema_snapshot(tools, file, exact=exact, update=update)

    return compare


@pytest.fixture
def tool_lint() -> Callable[..., None]:
    """Return `assert_no_findings`, which fails if the linter finds something in tools.

    Call it with a tool or tools; `disable=["no-unit"]` leaves rules out.
    """
    from agents_tools.testing.linting import assert_no_findings

    return assert_no_findings


@pytest.fixture
def recorded_tools(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], list[Any]]]:
    """Yield what makes tools answer as they did when the test first passed.

    Call it with a tool or tools. Where there is no record yet, they do what they do, and what came
    of it is kept beside the test, in `__tool_calls__`; delete the file to record again.
    """
    from agents_tools.testing.recording import ToolRecorder

    file = _beside(request, "__tool_calls__")
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
    """Note whether a test passed, for what is done after it."""
    report = yield
    if call.when == "call":
        item.stash[_PASSED] = report.passed
    return report


def _beside(request: pytest.FixtureRequest, folder: str, name: str = "") -> Path:
    """Return the file of a test's own in a folder beside it."""
    parts = [request.path.stem, request.node.name, name]
    stem = re.sub(r"[^\w.-]+", "_", "-".join(part for part in parts if part))
    return request.path.parent / folder / f"{stem}.json"
