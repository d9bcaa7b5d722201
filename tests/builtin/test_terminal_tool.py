"""The terminal as a tool: cancellation, live output, and concurrent calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_tools import ToolError
from agents_tools.builtin.terminal import TerminalAction, TerminalExecutor, TerminalTool
from agents_tools.events import NotifyStreamEvent
from tests.waiting import until


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[TerminalExecutor]:
    executor = TerminalExecutor(tmp_path, soft_timeout=15)
    yield executor
    executor.close()


@pytest.fixture
def tool(executor: TerminalExecutor) -> Any:
    return TerminalTool.create(executor=executor)[0].as_function_tool()


@pytest.mark.requirement("B17", "C19")
async def test_a_call_by_a_model(tool: Any) -> None:
    """Arguments are JSON; the value is the observation, and the output its text."""
    outcome = await tool.call(None, '{"command": "echo hi; false"}')
    assert outcome.status == "ok"
    assert outcome.value.exit_code == 1
    assert outcome.output == "hi\n[exit code 1]"


@pytest.mark.parametrize(
    "arguments", ['{"command": "true", "timeout": 0}', '{"command": 3}', '{"cmd": "ls"}']
)
async def test_invalid_arguments_run_nothing(
    tool: Any, executor: TerminalExecutor, arguments: str
) -> None:
    """They are reported before anything starts."""
    outcome = await tool.call(None, arguments)
    assert outcome.status == "invalid_args"
    assert executor._session is None


async def test_cancelling_ends_the_command_and_keeps_the_session(
    tool: Any, executor: TerminalExecutor, tmp_path: Path
) -> None:
    """The caller continues at once; the command is ended, and the session is usable."""
    await tool.call(None, '{"command": "kept=1"}')
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await tool.call(None, '{"command": "touch begun; sleep 600; touch never"}')
    outcome = await tool.call(None, '{"command": "echo $kept; ls"}')
    assert outcome.value.text == "1\nbegun\n"


async def test_cancelling_a_queued_call_does_not_affect_the_running_one(
    tool: Any, tmp_path: Path
) -> None:
    command = "touch begun; until [ -e go ]; do sleep 0.01; done; rm begun go; echo first"
    first = asyncio.create_task(tool.call(None, json.dumps({"command": command})))
    await asyncio.to_thread(until, (tmp_path / "begun").exists)
    second = asyncio.create_task(tool.call(None, '{"command": "echo second; touch second"}'))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await second
    (tmp_path / "go").touch()
    assert (await first).value.text == "first\n"
    outcome = await tool.call(None, '{"command": "ls"}')
    assert outcome.value.text == ""


async def test_concurrent_calls_are_queued(tool: Any) -> None:
    """There is one session."""
    outcomes = await asyncio.gather(
        *(tool.call(None, f'{{"command": "echo {number}"}}') for number in range(20))
    )
    assert [outcome.value.text for outcome in outcomes] == [f"{number}\n" for number in range(20)]


async def test_output_is_streamed_while_the_command_runs(tool: Any, tmp_path: Path) -> None:
    """Each line arrives before the command ends; together they are the output."""
    heard: list[str] = []
    command = "echo one; until [ -e go ]; do sleep 0.01; done; printf 'two\\nthree'"
    async with tool.stream(command=command) as stream:
        async for event in stream:
            if isinstance(event, NotifyStreamEvent):
                assert event.is_delta
                assert event.tag == "stdout"
                heard.append(event.data)
                (tmp_path / "go").touch()
    assert heard[0] == "one\n"
    assert "".join(heard) == stream.result.text == "one\ntwo\nthree"


async def test_a_prompt_is_streamed_while_the_command_runs(tool: Any, executor: Any) -> None:
    """An incomplete line is sent if nothing follows."""
    async with tool.stream(command="printf 'working...'; sleep 1; echo ' done'") as stream:
        heard = [event.data async for event in stream if isinstance(event, NotifyStreamEvent)]
    assert heard == ["working...", " done\n"]


@pytest.mark.requirement("S29")
async def test_a_flood_is_sent_in_few_events(tool: Any) -> None:
    """Live text is bounded as well."""
    async with tool.stream(command="seq 1 1000000") as stream:
        heard = [event.data async for event in stream if isinstance(event, NotifyStreamEvent)]
    text = "".join(heard)
    assert text.startswith("1\n2\n3\n")
    assert len(text) < 1_300_000
    assert len(heard) <= 400
    assert text.endswith("shown live]\n")


async def test_without_a_turn_a_closed_terminal_reports_it(tool: Any, executor: Any) -> None:
    """The model gets the error, and nothing is started."""
    executor.close()
    outcome = await tool.call(None, '{"command": "true"}')
    assert outcome.status == "tool_error"
    with pytest.raises(ToolError):
        executor(TerminalAction(command="true"))


@pytest.mark.requirement("B58")
def test_an_executor_in_another_executor(tmp_path: Path) -> None:
    """It can be called directly, thousands of times."""
    executor = TerminalExecutor(tmp_path)
    for number in range(500):
        assert executor(TerminalAction(command=f"echo {number}")).text == f"{number}\n"
    executor.close()
