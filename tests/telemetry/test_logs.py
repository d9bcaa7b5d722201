"""One log record for each call and run, with its facts as fields."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from agents_tools import Agent, Runner, function_tool, register_secret
from agents_tools.policies import retry
from agents_tools.telemetry import JsonFormatter, log_calls
from agents_tools.testing import ScriptedModel, tool_call

if TYPE_CHECKING:
    from collections.abc import Iterator


class Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(JsonFormatter().format(record)) for record in self.records]


@pytest.fixture
def records() -> Iterator[Records]:
    logger = logging.getLogger("tests.calls")
    handler = Records()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    yield handler
    logger.removeHandler(handler)


@function_tool
async def add(a: int, b: int) -> int:
    return a + b


@function_tool
def fail() -> str:
    raise ValueError("password=hunter2secret")


async def test_a_call_is_one_record_with_its_fields(records: Records) -> None:
    stop = log_calls("tests.calls", arguments=True)
    await add.invoke(a=1, b=2)
    stop()
    await add.invoke(a=3, b=4)
    (line,) = records.lines()
    assert line["level"] == "INFO"
    assert line["tool_name"] == "add"
    assert line["tool_status"] == "ok"
    assert line["tool_arguments"] == '{"a":1,"b":2}'
    assert isinstance(line["tool_duration"], float)
    assert str(line["message"]).startswith("Tool 'add' ok after 0.")


@pytest.mark.requirement("S20")
async def test_a_failure_is_a_warning_with_the_error_type(records: Records) -> None:
    """The message of an exception is not logged, and arguments only on request."""
    stop = log_calls("tests.calls")
    await fail.on_invoke_tool(None, "{}")
    await add.on_invoke_tool(None, '{"a": 1, "b": "secret text"}')
    stop()
    lines = records.lines()
    assert [line["level"] for line in lines] == ["WARNING", "INFO"]
    assert lines[0]["tool_error"] == "ValueError"
    assert lines[1]["tool_status"] == "invalid_args"
    assert "hunter2secret" not in repr(lines)
    assert "secret text" not in repr(lines)


async def test_runs_are_logged_with_their_id_and_agent(records: Records) -> None:
    inner = Agent("inner", model=ScriptedModel(["42"]))
    outer = Agent(
        "outer",
        tools=[inner.as_tool("ask")],
        model=ScriptedModel([tool_call("ask", input="?"), "done"]),
    )
    stop = log_calls("tests.calls")
    result = await Runner.run(outer, "go")
    stop()
    inner_line, call, outer_line = records.lines()
    assert (inner_line["run_agent"], inner_line["run_status"]) == ("inner", "ok")
    assert inner_line["tool_path"] == "call_1"
    assert (call["tool_name"], call["run_id"]) == ("ask", result.run_id)
    assert (outer_line["run_agent"], outer_line["run_id"]) == ("outer", result.run_id)


async def test_attempts_are_logged(records: Records) -> None:
    attempts = iter([ValueError("no"), None])

    @retry(2, backoff=0.0)
    @function_tool
    def flaky() -> str:
        if error := next(attempts):
            raise error
        return "ok"

    stop = log_calls("tests.calls")
    await flaky.invoke()
    stop()
    first, second = records.lines()
    assert (first["tool_attempt"], first["tool_error"], first["level"]) == (
        1,
        "ValueError",
        "WARNING",
    )
    assert second["tool_status"] == "ok"


async def test_starts_are_logged_at_debug(records: Records) -> None:
    logging.getLogger("tests.calls").setLevel(logging.DEBUG)
    stop = log_calls("tests.calls")
    await Runner.run(Agent("a", model=ScriptedModel(["hi"])), "go")
    await add.invoke(a=1, b=1)
    stop()
    assert [line["message"] for line in records.lines() if line["level"] == "DEBUG"] == [
        "Agent 'a' began",
        "Tool 'add' began",
    ]


def test_a_formatted_record_is_one_line_of_json_without_secrets() -> None:
    register_secret("canary-1234567890")
    error = RuntimeError("the key is canary-1234567890")
    exc_info = (RuntimeError, error, None)
    record = logging.LogRecord("x", 40, "p", 1, "see %s", ("canary-1234567890",), exc_info)
    record.odd = object()
    text = JsonFormatter().format(record)
    assert "\n" not in text
    assert "canary" not in text
    line = json.loads(text)
    assert line["message"] == "see ***"
    assert line["odd"].startswith("<object")
    assert line["exception"].endswith("RuntimeError: the key is ***")
