"""Tools that do what no tool should, and what is to become of that."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agents_tools import FunctionTool, UserError
from agents_tools.tool import ToolContext

__all__ = ["RAISED", "RETURNED", "check_raised", "check_refused", "check_returned", "outcome_of"]


class Unspeakable(Exception):  # noqa: N818 - it is about its message
    """An exception that cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def _endless() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


RAISED: dict[str, Callable[[], BaseException]] = {
    "of Python": lambda: KeyError("which"),
    "unspeakable": Unspeakable,
    "end of iteration": lambda: StopIteration(3),
    "exit": lambda: SystemExit(3),
    "group": lambda: ExceptionGroup("several", [ValueError("a"), TypeError("b")]),
}
"""What tools raise, by what it is."""

RETURNED: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing": (lambda: None, "ok"),
    "a number": (lambda: float("nan"), "ok"),
    "a set": (lambda: {1}, "ok"),
    "bytes": (lambda: b"\xff\x00", "ok"),
    "an object": (object, "tool_error"),
    "itself": (_endless, "tool_error"),
}
"""What tools return, and how the call ends at most: what can be told is told."""


async def outcome_of(tool: FunctionTool[..., Any], **arguments: Any) -> Any:
    """Call a tool as a loop does."""
    return await tool.call(ToolContext(), json.dumps(arguments))


async def check_raised(make: Callable[[Callable[[], Any]], FunctionTool[..., Any]]) -> None:
    """Whatever a foreign tool raises is a failure with a text, and nothing leaves the call.

    Args:
        make: Makes our tool of a foreign one, without arguments, that calls this function.
    """
    for what, make_error in RAISED.items():

        def body(make_error: Callable[[], BaseException] = make_error) -> Any:
            raise make_error()

        outcome = await outcome_of(make(body))
        assert outcome.status == "tool_error", what
        assert isinstance(outcome.output, str), what
        assert outcome.output, what
        assert "Traceback" not in outcome.output, what


async def check_returned(make: Callable[[Callable[[], Any]], FunctionTool[..., Any]]) -> None:
    """Whatever a foreign tool returns is a result or a failure with a text."""
    for what, (body, status) in RETURNED.items():
        outcome = await outcome_of(make(body))
        assert outcome.status in {"ok", status}, (what, outcome)
        assert isinstance(outcome.output, str | list), what


def check_refused(make: Callable[[], Any], *words: str) -> None:
    """What cannot work is refused when it is declared, in our words."""
    with pytest.raises(UserError) as caught:
        make()
    for word in words:
        assert word in str(caught.value), str(caught.value)
