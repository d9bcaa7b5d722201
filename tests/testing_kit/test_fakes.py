"""Fake tools, and tools whose calls are recorded and played back."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel

from agents_tools import (
    Agent,
    NotifyStreamEvent,
    Observation,
    Runner,
    ToolDeniedError,
    ToolError,
    ToolResult,
    UserError,
    function_tool,
    notify,
    register_secret,
)
from agents_tools.content import ToolOutputImage, ToolOutputText
from agents_tools.errors import MCPTimeoutError
from agents_tools.policies import hide, limit, needs_approval
from agents_tools.testing import (
    ScriptedModel,
    ToolRecorder,
    call_tool,
    fake_tool,
    tool_call,
)
from tests.waiting import BOUND

if TYPE_CHECKING:
    from pathlib import Path

    from agents_tools import FunctionTool


class Order(BaseModel):
    item: str
    count: int = 1


really = list[str]()


@function_tool
async def order(order: Order, note: str = "") -> str:
    """Order something.

    Args:
        order: What.
        note: For whom.
    """
    really.append(order.item)
    notify(f"ordering {order.item}")
    return f"ordered {order.count} {order.item}"


@function_tool
def picture() -> list[Any]:
    """Draw."""
    return [
        ToolOutputText("a dot"),
        ToolOutputImage(data=b"\x89PNG\r\n\x1a\n", mime_type="image/png"),
    ]


@function_tool
def fail(kind: str) -> str:
    """Fail.

    Args:
        kind: How.
    """
    raise ValueError("no such thing") if kind == "value" else ToolError(f"cannot {kind}")


async def test_a_fake_has_the_definition_of_the_tool_and_never_runs_it() -> None:
    fake = fake_tool(order, "done")
    assert (fake.name, fake.description) == (order.name, order.description)
    assert fake.params_json_schema == order.params_json_schema
    agent = Agent(
        "a", tools=[fake], model=ScriptedModel([tool_call("order", order={"item": "tea"}), "ok"])
    )
    result = await Runner.run(agent, "go")
    assert result.new_items[1].to_dict()["output"] == "done"
    assert [call.arguments for call in fake.calls] == [{"order": {"item": "tea"}}]
    assert really == []


async def test_a_fake_refuses_what_the_tool_refuses() -> None:
    fake = fake_tool(order, "done")
    call = await call_tool(fake, '{"order": {"item": "tea", "count": "many"}}')
    assert call.status == "invalid_args"
    assert "order.count" in str(call.output)
    assert fake.calls == []


async def test_answers_are_returned_in_order() -> None:
    fake = fake_tool(order, answers=["one", ToolError("no"), lambda given: given["order"]["item"]])
    calls = [await call_tool(fake, order={"item": "tea"}) for _ in range(4)]
    assert [call.status for call in calls] == ["ok", "tool_error", "ok", "tool_error"]
    assert [call.output for call in calls[:3]] == ["one", "no", "tea"]
    assert "has no answer left" in str(calls[3].output)


async def test_a_fake_can_answer_asynchronously_raise_and_emit_events() -> None:
    async def answer(arguments: dict[str, Any]) -> Any:
        return KeyError("x") if arguments.get("note") else "fine"

    fake = fake_tool(order, answer, says=[NotifyStreamEvent("busy")])
    good = await call_tool(fake, order={"item": "tea"})
    bad = await call_tool(fake, order={"item": "tea"}, note="!")
    assert (good.output, good.texts) == ("fine", ["busy"])
    assert isinstance(bad.outcome.error, KeyError)


async def test_the_policies_of_a_tool_apply_to_its_fake() -> None:
    fake = fake_tool(needs_approval(hide(note="x")(limit(calls=1)(order))), "done")
    with pytest.raises(ToolDeniedError):
        await fake.invoke(order={"item": "tea"})
    open_to_all = fake_tool(hide(note="x")(order), "done")
    assert "note" not in open_to_all.params_json_schema["properties"]
    assert await open_to_all.invoke(order={"item": "tea"}) == "done"
    assert open_to_all.calls[0].arguments == {"order": {"item": "tea"}, "note": "x"}


def test_invalid_arguments_of_a_fake_are_reported() -> None:
    no_tool: Any = len
    with pytest.raises(UserError, match="expected an answer or answers"):
        fake_tool(order)
    with pytest.raises(UserError, match="expected an answer or answers"):
        fake_tool(order, "x", answers=["y"])
    with pytest.raises(UserError, match="Pass answers="):
        fake_tool(order, answers="text")
    with pytest.raises(UserError, match="is not a tool"):
        fake_tool(no_tool, "x")


@function_tool
async def count(item: str) -> dict[str, int]:
    """Count what is left."""
    return {item: 1}


@pytest.mark.parametrize(
    "script", [{"answer": {"tea": "many"}}, {"answers": [{"tea": 1}, {"tea": "many"}]}]
)
def test_an_answer_that_the_tool_cannot_return_is_refused(script: dict[str, Any]) -> None:
    """A test with such an answer shows nothing about the tool."""
    answer = (script.pop("answer"),) if "answer" in script else ()
    with pytest.raises(UserError) as caught:
        fake_tool(count, *answer, **script)
    assert str(caught.value) == snapshot(
        "The answer of the fake of tool 'count' is not valid: expected a result that matches the output schema of the tool, got {'tea': 'many'} (['tea'] \"many\" is not of type \"integer\"). Pass a value that the tool can return, or ToolResult(content=...) for another text."
    )


_WRONG_RESULT = ToolResult(content="x", structured=["tea"])


async def test_the_answers_of_functions_are_validated_in_the_call() -> None:
    """They are not known earlier."""
    values: list[Any] = [{"tea": 2}, ["tea"], ToolResult(content="x"), _WRONG_RESULT]
    fake = fake_tool(count, answers=(lambda _, value=value: value for value in values))
    calls = [await call_tool(fake, item="tea") for _ in values]
    assert [call.status for call in calls] == ["ok", "tool_error", "ok", "tool_error"]
    assert "is not of type" in str(calls[1].output)


async def test_an_answer_without_a_json_form_or_output_schema_is_not_validated() -> None:
    """Images and iterators become content, and a tool without an annotation returns anything."""

    @function_tool
    def anything():
        raise AssertionError

    @function_tool
    def numbers() -> list[int]:
        raise AssertionError

    assert (await call_tool(fake_tool(anything, 3))).output == "3"
    assert (await call_tool(fake_tool(numbers, iter([1, 2])))).output == "[1,2]"
    drawn = await call_tool(fake_tool(picture, [ToolOutputImage(data=b"\xff", mime_type="x/y")]))
    assert drawn.status == "ok"


def recorded() -> list[FunctionTool[..., Any]]:
    return [order, picture, fail]


async def test_a_recording_is_replayed_from_a_file(tmp_path: Path) -> None:
    """Values, content blocks, errors and events are replayed, and the real tool is not called."""
    recorder = ToolRecorder()
    first = recorder.record(recorded())
    script: list[tuple[int, dict[str, Any]]] = [
        (0, {"order": {"item": "tea", "count": 2}}),
        (1, {}),
        (2, {"kind": "value"}),
        (2, {"kind": "swim"}),
    ]
    before = [await call_tool(first[which], given) for which, given in script]
    file = tmp_path / "calls.json"
    recorder.save(file)
    really.clear()
    again = ToolRecorder.load(file).replay(recorded())
    after = [await call_tool(again[which], given) for which, given in script]
    assert [call.output for call in after] == [call.output for call in before]
    assert [call.status for call in after] == [call.status for call in before]
    assert [type(call.outcome.error) for call in after] == [
        type(call.outcome.error) for call in before
    ]
    assert after[0].texts == ["ordering tea"]
    assert really == []


@pytest.mark.parametrize(
    "result",
    [
        {"a": [1, None]},
        3,
        None,
        "3",
        date(2026, 1, 2),
        ToolResult(content="shown", structured={"a": 1}),
        ToolResult(content="refused", is_error=True),
        Observation.from_text("broken", is_error=True),
        KeyError("a"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    ],
    ids=repr,
)
async def test_a_replayed_result_is_the_recorded_one(tmp_path: Path, result: Any) -> None:
    """Programs, structured outputs and statuses are the same in the first run and all others."""

    @function_tool
    def answer() -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    recorder = ToolRecorder()
    before = await call_tool(recorder.record(answer)[0])
    recorder.save(tmp_path / "calls.json")
    after = await call_tool(ToolRecorder.load(tmp_path / "calls.json").replay(answer)[0])
    assert after.status == before.status
    if not isinstance(result, UnicodeDecodeError):  # not created from a message
        assert after.output == before.output
    if isinstance(result, (dict, int, str, ToolResult)):
        assert after.value == before.value
    elif result is None:
        assert after.value is None


async def test_an_error_that_needs_more_than_a_message_is_replayed_as_a_tool_error() -> None:
    """The error of an MCP server names the server, which is not recorded."""

    @function_tool
    def remote() -> str:
        """Ask a server."""
        raise MCPTimeoutError("no answer within 5 s", server="files")

    recorder = ToolRecorder()
    await call_tool(recorder.record(remote)[0])
    after = await call_tool(recorder.replay(remote)[0])
    assert (type(after.outcome.error), str(after.outcome.error)) == (
        ToolError,
        "MCPTimeoutError: no answer within 5 s",
    )


async def test_a_cancelled_call_is_not_recorded() -> None:
    """It has no result that a replay could return."""
    entered = asyncio.Event()

    @function_tool
    async def wait() -> str:
        entered.set()
        await asyncio.sleep(BOUND)
        return "done"

    recorder = ToolRecorder()
    [recorded] = recorder.record([wait])
    task = asyncio.create_task(recorded.invoke())
    await asyncio.wait_for(entered.wait(), BOUND)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert recorder.calls == []


async def test_arguments_are_compared_in_any_order_and_form() -> None:
    recorder = ToolRecorder()
    (tool,) = recorder.record(order)
    await tool.invoke('{"order": {"item": "tea", "count": 2}, "note": "x"}')
    (fake,) = recorder.replay(order)
    given = ' {"note":"x","order":{"count":2,"item":"tea"}}'
    assert await fake.invoke(given) == "ordered 2 tea"


async def test_several_answers_to_equal_calls_are_replayed_in_order() -> None:
    answers = iter("abc")

    @function_tool
    def letter() -> str:
        return next(answers)

    recorder = ToolRecorder()
    (tool,) = recorder.record([letter])
    for _ in range(2):
        await tool.invoke()
    (fake,) = recorder.replay([letter])
    assert [await fake.invoke() for _ in range(3)] == ["a", "b", "b"]


async def test_an_unknown_call_is_reported_with_the_recorded_ones() -> None:
    recorder = ToolRecorder()
    (tool,) = recorder.record(order)
    await tool.invoke(order={"item": "tea"})
    (fake,) = recorder.replay(order)
    with pytest.raises(UserError, match=r'never recorded with .*"milk".*Recorded: .*"tea"'):
        await fake.invoke(order={"item": "milk"})


@pytest.mark.requirement("S20")
async def test_secrets_are_not_recorded(tmp_path: Path) -> None:
    """A recording is a file that is committed."""
    register_secret("canary-1234567890")
    recorder = ToolRecorder()
    (tool,) = recorder.record(order)
    await tool.invoke(order={"item": "canary-1234567890"})
    recorder.save(tmp_path / "calls.json")
    assert "canary-1234567890" not in (tmp_path / "calls.json").read_text()
    (fake,) = ToolRecorder.load(tmp_path / "calls.json").replay(order)
    assert await fake.invoke(order={"item": "canary-1234567890"}) == "ordered 1 ***"


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": "x"}', '{"format": "agents_tools.tool_calls", "version": 9}']
)
def test_a_file_that_is_not_a_recording_is_reported(tmp_path: Path, text: str) -> None:
    file = tmp_path / "calls.json"
    file.write_text(text)
    with pytest.raises(UserError, match=r"calls\.json"):
        ToolRecorder.load(file)
    with pytest.raises(UserError, match="cannot be read"):
        ToolRecorder.load(tmp_path / "none.json")
