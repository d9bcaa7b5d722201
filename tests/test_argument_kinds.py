"""Every kind of tool reads the same arguments and answers with the same text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

import pytest
from pydantic import Field
from typing_extensions import TypedDict

from agents_tools import (
    Action,
    FunctionTool,
    Observation,
    ToolAnnotations,
    ToolDefinition,
    ToolExecutor,
    function_tool,
)
from agents_tools.mcp.client.adapter import function_tool_of

DEFAULTS: dict[str, Any] = {"days": 3, "units": "celsius", "alerts": False, "radius": 1.5}


class Place(TypedDict):
    lat: float
    long: float


def answer(arguments: Mapping[str, Any]) -> str:
    """Return the arguments with the defaults, in a fixed order."""
    given = DEFAULTS | dict(arguments)
    places = [{key: float(one[key]) for key in one} for one in given.get("places", ())]
    return json.dumps({**given, "radius": float(given["radius"]), "places": places}, sort_keys=True)


@function_tool
async def forecast(
    city: str,
    days: int = 3,
    units: Literal["celsius", "fahrenheit"] = "celsius",
    alerts: bool = False,
    radius: float = 1.5,
    places: list[Place] | None = None,
) -> str:
    """Return the weather forecast."""
    given = locals()
    return answer({key: value for key, value in given.items() if value is not None})


class ForecastAction(Action):
    city: str
    days: int = 3
    units: Literal["celsius", "fahrenheit"] = "celsius"
    alerts: bool = False
    radius: float = 1.5
    places: list[Place] | None = Field(default=None)


class ForecastExecutor(ToolExecutor[ForecastAction, Observation]):
    def __call__(self, action: ForecastAction, conversation: Any = None) -> Observation:
        del conversation
        return Observation.from_text(answer(action.model_dump(exclude_none=True, exclude={"kind"})))


class ForecastTool(ToolDefinition[ForecastAction, Observation]):
    name = "forecast"


def class_tool() -> FunctionTool:
    return ForecastTool(
        description="Return the weather forecast.",
        action_type=ForecastAction,
        observation_type=Observation,
        annotations=ToolAnnotations(readOnlyHint=True),
        executor=ForecastExecutor(),
    ).as_function_tool()


def raw_tool() -> FunctionTool:
    async def run(_context: Any, args_json: str) -> str:
        return answer({key: one for key, one in json.loads(args_json).items() if one is not None})

    schema = forecast.params_json_schema
    return FunctionTool.from_schema(name="forecast", schema=schema, on_invoke_tool=run)


def mcp_tool() -> FunctionTool:
    async def perform(_context: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        text = answer({key: one for key, one in arguments.items() if one is not None})
        return {"content": [{"type": "text", "text": text}]}

    wire = {"name": "forecast", "inputSchema": forecast.params_json_schema}
    return function_tool_of(wire, name="forecast", server="weather", perform=perform)


KINDS = {
    "function": lambda: forecast,
    "raw schema": raw_tool,
    "class": class_tool,
    "mcp": mcp_tool,
}
INPUTS = [
    '{"city": "Oslo"}',
    '{"city": "Oslo", "days": 5}',
    '{"city": "Oslo", "days": "5"}',
    '{"city": "Oslo", "days": "5.0"}',
    '{"city": "Oslo", "days": 5.0}',
    '{"city": "Oslo", "days": 5.5}',
    '{"city": "Oslo", "days": "five"}',
    '{"city": "Oslo", "days": true}',
    '{"city": "Oslo", "days": null}',
    '{"city": "Oslo", "days": [5]}',
    '{"city": "Oslo", "days": {}}',
    '{"city": "Oslo", "days": ""}',
    '{"city": "Oslo", "radius": 2}',
    '{"city": "Oslo", "radius": "2.5"}',
    '{"city": "Oslo", "radius": "1e3"}',
    '{"city": "Oslo", "radius": "far"}',
    '{"city": "Oslo", "radius": false}',
    '{"city": "Oslo", "alerts": "true"}',
    '{"city": "Oslo", "alerts": "False"}',
    '{"city": "Oslo", "alerts": 1}',
    '{"city": "Oslo", "alerts": "yes"}',
    '{"city": "Oslo", "units": "fahrenheit"}',
    '{"city": "Oslo", "units": "kelvin"}',
    '{"city": "Oslo", "units": 1}',
    '{"city": "Oslo", "units": null}',
    '{"city": "Oslo", "places": [{"lat": 1, "long": 2}]}',
    '{"city": "Oslo", "places": "[{\\"lat\\": 1, \\"long\\": \\"2\\"}]"}',
    '{"city": "Oslo", "places": [{"lat": 1}]}',
    '{"city": "Oslo", "places": [{"lat": 1, "lng": 2}]}',
    '{"city": "Oslo", "places": [{"lat": "north", "long": 2}]}',
    '{"city": "Oslo", "places": ["here"]}',
    '{"city": "Oslo", "places": "here"}',
    '{"city": "Oslo", "places": null}',
    '{"city": 7}',
    '{"city": null}',
    "{}",
    "",
    '{"citty": "Oslo"}',
    '{"city": "Oslo", "dais": 5, "unit": "celsius"}',
    '{"city": "Oslo", "city": "Bergen"}',
    '{"city": "Oslo", "radius": 1e999}',
    '{"city": "Oslo"',
    '["Oslo"]',
    '"{\\"city\\": \\"Oslo\\"}"',
]


@pytest.mark.parametrize("text", INPUTS)
async def test_all_kinds_of_tools_give_the_same_answer(text: str) -> None:
    """A model must not need to know where a tool comes from."""
    answers: dict[str, tuple[str, str]] = {}
    for kind, create in KINDS.items():
        outcome = await create().call(None, text)
        output = outcome.output
        said = output if isinstance(output, str) else "".join(part.text for part in output)  # type: ignore[union-attr]
        answers[kind] = outcome.status, said
    assert len(set(answers.values())) == 1, answers


def test_all_kinds_of_tools_publish_the_same_parameters() -> None:
    """The inputs of the test above are read with one schema."""
    published = [create().params_json_schema for create in KINDS.values()]
    for schema in published:
        assert schema["properties"].keys() == forecast.params_json_schema["properties"].keys()
        assert schema["required"] == ["city"]
