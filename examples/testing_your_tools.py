"""Test a tool: its result, its events, and its errors for invalid calls.

Run it: python examples/testing_your_tools.py. It prints `4 tests passed`; `pytest
examples/testing_your_tools.py` runs the same tests.
"""
# ruff: noqa: S101 - pytest is built on assert

from __future__ import annotations

from collections.abc import AsyncIterator

from agents_tools import Event, NotifyStreamEvent, streaming_tool
from agents_tools.testing import call_tool_sync


@streaming_tool
async def divide(a: float, b: float) -> AsyncIterator[Event | str]:
    """Divide two numbers.

    Args:
        a: The dividend.
        b: The divisor.
    """
    yield NotifyStreamEvent("dividing")
    yield f"{a / b:g}"


def test_gives_the_quotient() -> None:
    """The value is what the function gave."""
    assert call_tool_sync(divide, a=6, b=3).value == "2"


def test_says_what_it_does() -> None:
    """The events are behaviour too; `call_tool` checks their order on the way."""
    assert call_tool_sync(divide, '{"a": 1, "b": 2}').texts == ["dividing"]


def test_tells_the_model_what_was_wrong() -> None:
    """The text is what the model corrects itself by."""
    call = call_tool_sync(divide, '{"a": 1, "b": "two"}')
    assert call.status == "invalid_args"
    assert '- b: expected a number, got "two"' in call.output


def test_answers_when_it_crashes() -> None:
    """A crash is the outcome of one call, and what was said before it stays said."""
    call = call_tool_sync(divide, a=1, b=0)
    assert call.status == "tool_error"
    assert isinstance(call.outcome.error, ZeroDivisionError)
    assert call.texts == ["dividing"]


if __name__ == "__main__":
    tests = [value for name, value in list(globals().items()) if name.startswith("test_")]
    for test in tests:
        test()
    print(f"{len(tests)} tests passed")
