"""Test the benchmark of raw JSON Schemas with a few functions, described as the data set does."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import FunctionTool
from tests.benchmarks import library
from tests.benchmarks.bfcl.__main__ import summary
from tests.benchmarks.bfcl.cases import CATEGORIES, Case, cases
from tests.benchmarks.bfcl.faults import KINDS, faults
from tests.benchmarks.bfcl.fixer import fixed
from tests.benchmarks.bfcl.judge import REPAIRABLE, Report, calls_of, judged
from tests.benchmarks.bfcl.worker import answers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

FORECAST = {
    "name": "weather.forecast",
    "parameters": {
        "type": "dict",
        "required": ["city", "place"],
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 3},
            "radius": {"type": "float"},
            "alerts": {"type": "boolean"},
            "units": {"type": "string", "enum": ["celsius", "fahrenheit", "kelvin"]},
            "place": {
                "type": "dict",
                "required": ["latitude"],
                "properties": {"latitude": {"type": "float"}, "longitude": {"type": "float"}},
            },
            "tags": {"type": "tuple", "items": {"type": "string"}},
            "note": {"type": "any"},
        },
    },
}
GOLD = {
    "city": ["Oslo", "Oslo, Norway"],
    "days": ["", 5],
    "radius": [2.5],
    "alerts": [True],
    "units": ["kelvin", ""],
    "place": [{"latitude": [59.9], "longitude": ["", 10.7]}],
    "tags": [["snow", "wind"]],
    "note": ["x"],
}
ARGUMENTS = {
    "city": "Oslo",
    "days": 5,
    "radius": 2.5,
    "alerts": True,
    "units": "kelvin",
    "place": {"latitude": 59.9, "longitude": 10.7},
    "tags": ["snow", "wind"],
    "note": "x",
}


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """Return the gold call of a data set with one function."""
    (tmp_path / "possible_answer").mkdir()
    for category in CATEGORIES:
        name = f"BFCL_v4_{category}.json"
        entries, answered = tmp_path / name, tmp_path / "possible_answer" / name
        entries.touch()
        answered.touch()
        if category == "simple_python":
            calls = [{"weather.forecast": GOLD}]
            entries.write_text(json.dumps({"id": "a", "function": [FORECAST]}) + "\n")
            answered.write_text(json.dumps({"id": "a", "ground_truth": calls}) + "\n")
    (one,) = cases(tmp_path)
    return one


async def report_of(adapter: Any, case: Case) -> Report:
    found, calls = calls_of(case, breakable=True)
    return judged([(case, found, await answers(adapter, case.tool, case.schema, calls))])


def test_the_data_set_is_converted_to_json_schema(case: Case) -> None:
    assert (case.id, case.tool) == ("a[0]", "weather_forecast")
    assert case.arguments == ARGUMENTS
    assert case.least == {key: ARGUMENTS[key] for key in ARGUMENTS if key not in {"days", "units"}}
    assert case.schema == {
        "type": "object",
        "required": ["city", "place"],
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 3},
            "radius": {"type": "number"},
            "alerts": {"type": "boolean"},
            "units": {"type": "string", "enum": ["celsius", "fahrenheit", "kelvin"]},
            "place": {
                "type": "object",
                "required": ["latitude"],
                "properties": {"latitude": {"type": "number"}, "longitude": {"type": "number"}},
                "additionalProperties": False,
            },
            "tags": {"type": "array", "items": {"type": "string"}},
            "note": {},
        },
        "additionalProperties": False,
    }


def test_faults_are_at_every_depth_and_repeat(case: Case) -> None:
    """Two runs on one machine, or on two, must measure the same calls."""
    found = list(faults(case))
    assert found == list(faults(case))
    paths = {kind: {fault.path for fault in found if fault.kind == kind} for kind in KINDS}
    assert paths["missing"] == {("city",), ("place",), ("place", "latitude")}
    assert ("tags", 1) in paths["type"]
    assert ("place", "longitude") in paths["type"]
    assert paths["enum"] == {("units",)}
    assert len(paths["extra"]) == 2
    assert {fault.right for fault in found if fault.kind == "misspelled"} == {
        *case.arguments,
        "latitude",
        "longitude",
    }
    assert all(fault.arguments != case.arguments for fault in found)


async def test_the_library_meets_the_goals_of_the_benchmark(case: Case) -> None:
    report = await report_of(library, case)
    assert (report.gold, report.refused, report.least_refused) == (1, {}, {})
    assert report.ran.total() == 0
    assert report.placed == report.broken
    assert set(report.broken) == set(KINDS)
    assert report.named["misspelled"] == report.broken["misspelled"] == len(ARGUMENTS) + 2
    assert all(report.repaired[kind] == report.broken[kind] for kind in REPAIRABLE)
    assert report.missed == {}


async def test_the_benchmark_notices_a_library_that_validates_nothing(case: Case) -> None:
    """A benchmark in which every library is perfect measures nothing."""

    def from_schema(
        name: str, schema: dict[str, Any], body: Callable[[dict[str, Any]], Awaitable[str]]
    ) -> FunctionTool[..., Any]:
        async def run(_context: Any, text: str) -> str:
            return await body(json.loads(text))

        return FunctionTool.from_schema(
            name=name, schema=schema, on_invoke_tool=run, validate_arguments=False
        )

    adapter = SimpleNamespace(from_schema=from_schema, caller=library.caller)
    report = await report_of(adapter, case)
    assert report.ran == report.broken
    assert not report.named.total()
    assert not report.repaired.total()


async def test_the_benchmark_notices_errors_that_say_nothing(case: Case) -> None:
    def caller(_tool: Any) -> Callable[[str], Awaitable[Any]]:
        async def call(_text: str) -> str:
            raise ValueError("The arguments are wrong: did you mean others?")

        return call

    adapter = SimpleNamespace(from_schema=library.from_schema, caller=caller)
    report = await report_of(adapter, case)
    assert report.refused.keys() == report.least_refused.keys() == {"a[0]"}
    assert not any(counts.total() for counts in (report.ran, report.placed, report.named))
    assert not report.repaired.total()


@pytest.mark.parametrize(
    ("error", "right"),
    [
        ("- ab: unknown, did you mean 'a'?", {"a": 1, "b": [{"c": "yx"}]}),
        ("- ab: unknown, the known keys are a, b", {"b": [{"c": "yx"}]}),
        ('- b[0].c: expected one of "y", "extra z", got "yx"', {"ab": 1, "b": [{"c": "y"}]}),
        ("b.0.c\n  Input should be 'y' or 'z' [type=literal]", {"ab": 1, "b": [{"c": "y"}]}),
        ("ab\n  Unexpected keyword argument [type=x]", {"b": [{"c": "yx"}]}),
        ("- other: unknown, did you mean 'b'?", {"ab": 1, "b": [{"c": "yx"}]}),
        ("No.", {"ab": 1, "b": [{"c": "yx"}]}),
    ],
)
def test_the_fixer_does_what_the_error_says(error: str, right: dict[str, Any]) -> None:
    assert fixed({"ab": 1, "b": [{"c": "yx"}]}, error) == right


def test_the_table_names_the_release_of_the_data_set() -> None:
    """Figures of another release cannot be compared with these."""
    head, *_ = summary({"agents-tools": Report()}).splitlines()
    assert head == "| bfcl-eval==2026.3.23 | agents-tools |"
