"""Functions with JSON Schemas and correct calls of them, read from BFCL."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.benchmarks.subjects import BENCH, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["DATA_SET", "RELEASE", "Case", "cases", "json_schema"]

RELEASE = "bfcl-eval==2026.3.23"
DATA_SET = Subject(
    distribution="bfcl-eval",
    python=BENCH / "bfcl-eval" / "bin" / "python",
    needs=("--no-deps", RELEASE, "mpmath"),
)
CATEGORIES = (
    *("simple_python", "multiple", "parallel", "parallel_multiple"),
    *("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"),
)
TYPES = {"dict": "object", "float": "number", "tuple": "array"}


@dataclass(frozen=True, slots=True)
class Case:
    """A correct call of a tool.

    Attributes:
        id: The id of the call.
        tool: The name of the tool.
        schema: Its JSON Schema.
        arguments: The arguments, with a value for each parameter that the data set has one for.
        least: The arguments without those that the data set allows to leave out.
    """

    id: str
    tool: str
    schema: dict[str, Any]
    arguments: dict[str, Any]
    least: dict[str, Any]


def cases(data: Path) -> Iterator[Case]:
    """Yield the gold calls in a folder of data files."""
    for category in CATEGORIES:
        name = f"BFCL_v4_{category}.json"
        answers = {
            one["id"]: one["ground_truth"] for one in _lines(data / "possible_answer" / name)
        }
        for entry in _lines(data / name):
            schemas = {one["name"]: one["parameters"] for one in entry["function"]}
            for number, call in enumerate(answers[entry["id"]]):
                for tool, choices in call.items():
                    schema = json_schema(schemas[tool])
                    arguments = _arguments(choices, schema)
                    least = _arguments(choices, schema, least=True)
                    id_ = f"{entry['id']}[{number}]"
                    yield Case(id_, _tool_name(tool), schema, arguments, least)


def json_schema(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as BFCL describes them as a JSON Schema."""
    schema = dict(parameters)
    kind = schema.pop("type", "any")
    if kind != "any":
        schema["type"] = TYPES.get(kind, kind)
    if "items" in schema:
        schema["items"] = json_schema(schema["items"])
    if "properties" in schema:
        named = schema["properties"].items()
        schema["properties"] = {name: json_schema(one) for name, one in named}
        schema.setdefault("additionalProperties", False)
    return schema


def _lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def _tool_name(name: str) -> str:
    """Return a name that providers accept: letters, digits, `_` and `-`."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64]


def _arguments(
    choices: dict[str, Any], schema: dict[str, Any], *, least: bool = False
) -> dict[str, Any]:
    """Return the first choice for each parameter; an empty string says that it can be left out."""
    required = schema.get("required", ())
    arguments: dict[str, Any] = {}
    for key, given in choices.items():
        options = [one for one in given if one != ""] or (given if key in required else [])
        if options and not (least and "" in given and key not in required):
            arguments[key] = _value(options[0])
    return arguments


def _value(choice: Any) -> Any:
    """Return a value; in an object, a list holds the choices for a key."""
    if isinstance(choice, list):
        return [_value(one) for one in choice]
    if not isinstance(choice, dict):
        return choice
    first = {
        key: next((one for one in given if one != ""), None) if isinstance(given, list) else given
        for key, given in choice.items()
    }
    return {key: _value(one) for key, one in first.items() if one is not None}
