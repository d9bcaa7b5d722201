"""Programs written for other libraries with the same names run with only their imports changed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from agents_tools import (
    Agent,
    FunctionTool,
    NotifyStreamEvent,
    RunContextWrapper,
    function_tool,
    streaming_tool,
)
from agents_tools.testing import call_tool


class Location(TypedDict):
    lat: float
    long: float


@function_tool
async def fetch_weather(location: Location) -> str:
    """Fetch the weather for a given location.

    Args:
        location: The location to fetch the weather for.
    """
    return "sunny"


@function_tool(name_override="fetch_data")
def read_file(ctx: RunContextWrapper[Any], path: str, directory: str | None = None) -> str:
    """Read the contents of a file.

    Args:
        path: The path to the file to read.
        directory: The directory to read the file from.
    """
    return "<file contents>"


@pytest.mark.requirement("A19", "A20", "A21", "A22")
def test_the_schemas_of_the_documented_tools_are_identical() -> None:
    """Users who migrate and compare the printed schemas find no difference."""
    assert (fetch_weather.name, fetch_weather.description) == (
        "fetch_weather",
        "Fetch the weather for a given location.",
    )
    assert fetch_weather.params_json_schema == {
        "$defs": {
            "Location": {
                "properties": {
                    "lat": {"title": "Lat", "type": "number"},
                    "long": {"title": "Long", "type": "number"},
                },
                "required": ["lat", "long"],
                "title": "Location",
                "type": "object",
            }
        },
        "properties": {
            "location": {
                "$ref": "#/$defs/Location",
                "description": "The location to fetch the weather for.",
            }
        },
        "required": ["location"],
        "title": "fetch_weather_args",
        "type": "object",
    }
    assert (read_file.name, read_file.description) == (
        "fetch_data",
        "Read the contents of a file.",
    )
    assert read_file.params_json_schema == {
        "properties": {
            "path": {
                "description": "The path to the file to read.",
                "title": "Path",
                "type": "string",
            },
            "directory": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "default": None,
                "description": "The directory to read the file from.",
                "title": "Directory",
            },
        },
        "required": ["path"],
        "title": "fetch_data_args",
        "type": "object",
    }


@pytest.mark.requirement("A11", "A12", "A23", "A24")
async def test_the_documented_tools_run() -> None:
    """A schema that looks right is worth nothing if the call does not work."""
    assert (
        await fetch_weather.on_invoke_tool(None, '{"location": {"lat": 1, "long": 2}}') == "sunny"
    )
    wrapper = RunContextWrapper("anything")
    assert await read_file.on_invoke_tool(wrapper, '{"path": "a"}') == "<file contents>"
    assert all(isinstance(tool, FunctionTool) for tool in (fetch_weather, read_file))
    assert json.loads(json.dumps(read_file.params_json_schema)) == read_file.params_json_schema


@pytest.mark.requirement("A26", "A27")
def test_the_tools_of_an_agent_can_be_listed() -> None:
    """Programs print them to check the configuration."""
    agent = Agent(name="Assistant", tools=[fetch_weather, read_file])
    printed: list[str] = []
    for tool in agent.tools:
        if isinstance(tool, FunctionTool):
            printed += [tool.name, tool.description]
            printed.append(json.dumps(tool.params_json_schema, indent=2))
    assert [printed[0], printed[3]] == ["fetch_weather", "fetch_data"]
    assert printed[4] == "Read the contents of a file."
    assert '"title": "fetch_data_args"' in printed[5]


class FunctionArgs(BaseModel):
    username: str
    age: int


@pytest.mark.requirement("A28", "A29", "A30")
async def test_a_tool_made_by_hand_reads_its_arguments_itself() -> None:
    """Four names are all that a hand-made tool needs."""

    async def run_function(ctx: RunContextWrapper[Any], args: str) -> str:
        parsed = FunctionArgs.model_validate_json(args)
        return f"{parsed.username} is {parsed.age} years old"

    tool = FunctionTool(
        name="process_user",
        description="Processes extracted user data",
        params_json_schema=FunctionArgs.model_json_schema(),
        on_invoke_tool=run_function,
    )
    assert tool.params_json_schema == FunctionArgs.model_json_schema()
    output = await tool.on_invoke_tool(RunContextWrapper(None), '{"username": "Ada", "age": 36}')
    assert output == "Ada is 36 years old"


@pytest.mark.requirement("A50")
async def test_the_documented_pipeline_shows_its_stages_and_returns_its_result() -> None:
    """Notifications are shown; only the last value is the result."""

    @streaming_tool
    async def data_pipeline(source_url: str):
        yield NotifyStreamEvent(data="[1/3] Establishing connection...")
        await asyncio.sleep(0)
        yield NotifyStreamEvent(data="[2/3] Connection successful", tag="success")
        await asyncio.sleep(0)
        yield "Data pipeline processing successful, parsed 1,234 records."

    call = await call_tool(data_pipeline, source_url="https://example.com")
    assert call.texts == ["[1/3] Establishing connection...", "[2/3] Connection successful"]
    assert call.output == "Data pipeline processing successful, parsed 1,234 records."


@pytest.mark.requirement("A51")
async def test_the_documented_typewriter_sends_deltas_that_form_the_result() -> None:
    """The joined deltas in a UI equal the text for the model."""

    async def summary_of(topic: str):
        for word in ("what ", "is ", "known of ", topic):
            yield word

    @streaming_tool
    async def research_and_summarize(topic: str):
        yield NotifyStreamEvent(data=f"Searching for '{topic}'...")
        full_summary = ""
        async for text_delta in summary_of(topic):
            full_summary += text_delta
            yield NotifyStreamEvent(data=text_delta, is_delta=True)
            await asyncio.sleep(0)
        yield full_summary

    call = await call_tool(research_and_summarize, topic="owls")
    deltas = [
        event.data
        for event in call.events
        if isinstance(event, NotifyStreamEvent) and event.is_delta
    ]
    assert "".join(deltas) == call.output == "what is known of owls"


@pytest.mark.requirement("A65", "A66", "A67")
async def test_errors_are_reported_replaced_or_raised_as_documented() -> None:
    """A failure function that is omitted, set, or None means three different things."""

    def fails() -> str:
        raise ValueError("no such thing")

    def own(ctx: RunContextWrapper[Any], error: Exception) -> str:
        return f"my own words: {error}"

    reported = function_tool(fails)
    assert "no such thing" in await reported.on_invoke_tool(None, "{}")
    replaced = function_tool(failure_error_function=own)(fails)
    assert await replaced.on_invoke_tool(None, "{}") == "my own words: no such thing"
    raising = function_tool(failure_error_function=None)(fails)
    with pytest.raises(ValueError, match="no such thing"):
        await raising.on_invoke_tool(None, "{}")
