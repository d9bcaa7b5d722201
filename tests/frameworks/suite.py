"""What every framework has to do with our tools, checked inside the framework's own agent."""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import json
import logging
import sys
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools import FunctionTool

__all__ = [
    "Answer",
    "Call",
    "Harness",
    "Incoming",
    "Report",
    "attempted",
    "awaitable",
    "examine",
    "harness_of",
]


@dataclass(frozen=True, slots=True)
class Call:
    """One call that the scripted model asks for.

    Attributes:
        id: Its id.
        name: The tool.
        arguments: The arguments, as JSON text.
    """

    id: str
    name: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model was given for one call.

    Attributes:
        text: The text of it.
        failed: Whether it was told that the call failed; `None` where the framework has no way
            to tell.
        blocks: The kinds of its content blocks, as far as the model was given blocks: `text`,
            `image`, `audio`, `file`.
    """

    text: str
    failed: bool | None = None
    blocks: tuple[str, ...] = ()


@dataclass(slots=True)
class Report:
    """What came of one run.

    Attributes:
        answers: What the model was given, by the id of the call.
        streamed: Our events that appeared in the framework's own stream, as JSON.
        final: The agent's last words.
        error: What the run raised; `None` if nothing.
    """

    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    streamed: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    final: str = ""
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Incoming:
    """A tool of the framework's as ours.

    The tool is called `look_up`, takes `topic` (text) and `limit` (integer, at least 1, 3 by
    default), answers `<topic>: <limit>`, and raises the framework's or Python's error, with the
    words `no such topic` in it, for the topic `nothing`.

    Attributes:
        tool: Ours, made with `from_<framework>`.
        streams: Whether it says something while it works, which we hear as events.
        label: What kind of tool it is, where the framework has several.
    """

    tool: FunctionTool[..., Any]
    streams: bool = False
    label: str = ""


class Harness(Protocol):
    """One framework, as the suite drives it.

    What else it may say, where it is not as usual:

    - `incoming()`: its tools as ours, a list of `Incoming`.
    - `tells_ids = False`: it does not tell a tool the id of its call.
    - `validates = True`: it refuses some arguments in its own words.
    - `hides_errors = True`: nobody learns what a tool raised.
    - `asks_people = True`: a call that needs approval makes its run wait for a person.
    """

    name: str
    """The name of the framework: the adapter's, with underscores."""
    extra: str
    """The extra of ours that brings it."""
    stream: str | None
    """What stream of its own it has that our events appear in; `None` for none."""
    agent: bool
    """Whether an agent of it becomes a tool with `as_tool`."""
    raw: bool
    """Whether it hands over the JSON text of the arguments as the model wrote it."""

    def ours(self, tools: Sequence[FunctionTool[..., Any]]) -> list[Any]:
        """Return our tools in its form: `to_<framework>(tools)`."""
        ...

    def own(self, functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
        """Return its own tool for each plain function; the exception if it refuses one.

        None at all where it makes no tools of functions.
        """
        ...

    async def run(self, tools: Sequence[Any], calls: Sequence[Call]) -> Report:
        """Run an agent of it whose model asks for these calls in one turn, then says `done`.

        What the run raises is in the report; only a cancellation from outside passes.
        """
        ...


def harness_of(name: str) -> Harness:
    """Return the harness of a framework.

    Args:
        name: Its name, such as `pydantic_ai` or `pydantic-ai`.
    """
    module = importlib.import_module(f"tests.frameworks.harness.{name.replace('-', '_')}")
    return cast("Harness", module.HARNESS)


def attempted(make: Callable[[Any], Any], function: Callable[..., Any]) -> Any:
    """Return the tool that a framework creates from a plain function, or its error."""
    try:
        return make(function)
    except Exception as error:  # noqa: BLE001 - that it refuses is the finding
        return error


def awaitable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an async function, as users write it for a framework that requires one."""
    if inspect.iscoroutinefunction(function):
        return function

    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


# --- as a program


async def examine(name: str) -> dict[str, Any]:
    """Run all checks in a framework.

    Returns:
        `ours` and `own`: by the name of the check, its cases as `[name, passed, detail]`. There is
        no `own` for a framework that makes no tools of functions.
    """
    from tests.frameworks.checks import CHECKS, COMPARED, Kit

    harness = harness_of(name)
    found: dict[str, Any] = {"framework": harness.name}
    for whose, checks in (("ours", CHECKS), ("own", COMPARED)):
        kit = Kit(harness, ours=whose == "ours")
        if kit.empty:
            continue
        found[whose] = {check.__name__: await _cases(check, kit) for check in checks}
    return found


async def _cases(check: Any, kit: Any) -> list[list[Any]]:
    try:
        return [[case.name, case.passed, case.detail] for case in await check(kit)]
    except Exception as error:  # noqa: BLE001 - that a check breaks is the finding
        return [["broke", False, f"{type(error).__name__}: {error}"[:400]]]


def main(name: str, **more: str) -> None:
    """Examine a framework; the last line printed is the finding, as JSON.

    Args:
        name: The framework.
        more: What else to say in the finding.
    """
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    sys.stdout.write(json.dumps({**more, **asyncio.run(examine(name))}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
