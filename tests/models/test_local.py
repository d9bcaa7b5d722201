"""The local model: rules that choose tools from a request and never invent arguments."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import BaseModel

from agents_tools import (
    Agent,
    FunctionTool,
    ModelRequest,
    RawResponseStreamEvent,
    Runner,
    ToolCallItem,
    UserError,
    WebSearchTool,
    function_tool,
)
from agents_tools.agents import load_model
from agents_tools.content import MessageInputItem, MessageOutputItem
from agents_tools.models.local import LocalModel
from agents_tools.testing import call_tool


@function_tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


@function_tool
def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Get the weather of a city."""
    return f"18 {unit} in {city}"


@function_tool
def roman(number: int) -> str:
    """Convert a number to roman numerals."""
    return "I" * number


@function_tool
def remind(text: str, day: str, urgent: bool = False) -> str:
    """Write a reminder."""
    return f"{day}: {text}"


@function_tool
def average(values: list[float]) -> float:
    """Compute the average of some values."""
    return sum(values) / len(values)


@function_tool
def fail(input: str) -> str:
    """Break something."""
    raise RuntimeError("broken")


class Point(BaseModel):
    x: int
    y: int


@function_tool
def plot(point: Point) -> str:
    """Plot a point."""
    return str(point)


TOOLS = [add, weather, roman, remind, average, fail, plot]


def _run(request: str, tools: list[Any] | None = None) -> tuple[list[tuple[str, Any]], str]:
    agent = Agent("Helper", tools=TOOLS if tools is None else tools, model="local/rules")
    result = Runner.run_sync(agent, request)
    calls = [item for item in result.new_items if isinstance(item, ToolCallItem)]
    return [(call.name, json.loads(call.arguments)) for call in calls], result.final_output


@pytest.mark.parametrize(
    ("request_", "calls", "answer"),
    [
        ("Add 2 and 3", [("add", {"a": 2, "b": 3})], "5.0"),
        ("What is the weather in New York?", [("weather", {"city": "New York"})], None),
        (
            "weather in Rome in fahrenheit",
            [("weather", {"city": "Rome", "unit": "fahrenheit"})],
            "18 fahrenheit in Rome",
        ),
        (
            "Tell me the weather in Paris and add 1.5 and 2",
            [("weather", {"city": "Paris"}), ("add", {"a": 1.5, "b": 2})],
            "18 celsius in Paris\n3.5",
        ),
        (
            "add 2 and 1, then convert it to roman numerals",
            [("add", {"a": 2, "b": 1}), ("roman", {"number": 3})],
            "3.0\nIII",
        ),
        (
            "write a reminder day=Monday text='water the plants; then rest' urgent=yes",
            [("remind", {"text": "water the plants; then rest", "day": "Monday", "urgent": True})],
            "Monday: water the plants; then rest",
        ),
        ("Average the values 1, 2 and 6", [("average", {"values": [1, 2, 6]})], "3.0"),
    ],
)
def test_tools_and_arguments_are_chosen_from_the_request(
    request_: str, calls: list[tuple[str, Any]], answer: str | None
) -> None:
    """A demonstration is only useful if the model reads the request."""
    called, answer_text = _run(request_)
    assert called == calls
    assert answer is None or answer_text == answer


@pytest.mark.parametrize(
    ("request_", "answer_text"),
    [
        ("The weather, please", "To use weather I need city"),
        ("plot a point", "To use plot I need point"),
        ("sing a song", "I have no tool for “sing a song”.\nMy tools: add, weather"),
        ("", "My tools: add, weather"),
    ],
)
def test_missing_arguments_are_asked_for_and_never_invented(
    request_: str, answer_text: str
) -> None:
    """An invented argument would make the demonstration misleading."""
    called, answer = _run(request_)
    assert called == []
    assert answer_text in answer


def test_a_failed_step_is_reported_and_stops_dependent_steps() -> None:
    """A step that refers to a failed one has no input."""
    called, answer = _run("break something, then convert it to roman numerals")
    assert [name for name, _ in called] == ["fail"]
    assert "fail failed: Tool 'fail' failed: RuntimeError: broken" in answer
    assert "needs a result that the previous step did not return" in answer


def test_sub_agents_get_the_whole_task() -> None:
    """An orchestrator passes its task on unchanged."""
    inner = Agent("Forecaster", tools=[weather], model="local/rules")
    tool = inner.as_tool(tool_description="Tells the weather of places.")
    called, answer = _run("Tell the weather in Rome", [tool])
    assert called == [("forecaster", {"input": "Tell the weather in Rome"})]
    assert answer == "18 celsius in Rome"


async def test_the_answer_is_streamed_word_by_word() -> None:
    """User interfaces need deltas to stream."""
    said: list[str] = []

    def emit(event: Any) -> None:
        assert isinstance(event, RawResponseStreamEvent)
        if event.data["type"] == "response.output_text.delta":
            said.append(event.data["delta"])

    request = ModelRequest(input=[MessageInputItem(content="sing a song")])
    response = await LocalModel().respond(request, emit)
    (message,) = response.items
    assert isinstance(message, MessageOutputItem)
    assert "".join(said) == message.text
    assert len(said) > 5
    assert response.usage.total_tokens == 0


async def test_a_hosted_tool_is_rejected_by_name() -> None:
    """Tools of a provider cannot run locally, and the message must state the reason."""
    request = ModelRequest(input=[], tools=(WebSearchTool(),))
    with pytest.raises(UserError, match=r"'web_search'.*'local/rules'"):
        await LocalModel().respond(request, lambda _: None)


def test_an_unknown_rule_set_is_rejected() -> None:
    """A mistyped name must not pass for a model."""
    with pytest.raises(UserError, match="'local/rules'"):
        load_model("local/other")


def test_a_typed_answer_comes_from_a_tool_or_raises_an_error() -> None:
    """Rules cannot write objects, and the message must state that."""

    @function_tool
    def locate(city: str) -> Point:
        """Locate a city."""
        return Point(x=1, y=2)

    agent = Agent("Locator", tools=[locate], model="local/rules", output_type=Point)
    assert Runner.run_sync(agent, "locate the city of Rome").final_output == Point(x=1, y=2)
    with pytest.raises(UserError, match="output_type"):
        Runner.run_sync(agent, "sing a song")


WORDS = st.sampled_from(
    [
        "add",
        "weather",
        "of",
        "in",
        "Rome",
        "2",
        "3.5",
        "-1",
        "1,000",
        "and",
        "then",
        "convert",
        "it",
        "to",
        "roman",
        "number",
        "reminder",
        "'a",
        "b'",
        "average",
        "values:",
        "plot",
        "point",
        "celsius",
        "fahrenheit",
        "day=Monday",
        "urgent=maybe",
        "unit=kelvin",
        "2024-02-30",
        "break",
        "the",
        "result",
        ";",
        ",",
        "“quoted”",
        "city=",
        "number=x",
    ]
)


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        ({"type": ["null", "integer"]}, 7),
        ({"type": "array", "items": {"type": ["null", "integer"]}}, [7]),
        (True, None),
        ({"anyOf": [{"type": "null"}, True]}, None),
        ({"type": "array", "items": True}, None),
    ],
)
async def test_schemas_of_other_programs_are_read(shape: Any, value: Any) -> None:
    """A tool of an MCP server can have `true` as a schema, and `null` as its first type."""
    schema = {"type": "object", "properties": {"x": shape}, "required": ["x"]}

    async def invoke(_: Any, arguments: str) -> str:
        return arguments

    tool = FunctionTool(
        name="look_up", description="", params_json_schema=schema, on_invoke_tool=invoke
    )
    request = ModelRequest(input=[MessageInputItem(content="look up 7")], tools=(tool,))
    response = await LocalModel().respond(request, lambda _: None)
    calls = [one for one in response.items if isinstance(one, ToolCallItem)]
    assert [json.loads(call.arguments) for call in calls] == (
        [] if value is None else [{"x": value}]
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS, max_size=14).map(" ".join))
async def test_every_call_matches_the_schema_of_its_tool(text: str) -> None:
    """Arguments must match the schema for any request."""
    tools: tuple[FunctionTool[..., Any], ...] = tuple(TOOLS)
    request = ModelRequest(input=[MessageInputItem(content=text)], tools=tools)
    response = await LocalModel().respond(request, lambda _: None)
    for item in response.items:
        if isinstance(item, ToolCallItem):
            tool = next(one for one in TOOLS if one.name == item.name)
            assert (await call_tool(tool, item.arguments)).status in {"ok", "tool_error"}
