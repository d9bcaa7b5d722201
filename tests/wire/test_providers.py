"""Validate the exported definitions with the types of each provider's SDK."""

from __future__ import annotations

import json
from typing import Any, Optional, cast

import jsonschema_rs
import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, RootModel, TypeAdapter

from agents_tools import (
    FunctionTool,
    ToolAnnotations,
    to_anthropic,
    to_bedrock,
    to_gemini,
    to_mcp,
    to_openai_chat,
    to_openai_responses,
)
from agents_tools.wire.mcp import output_is_wrapped
from tests.wire.tools import five_tools, tool

Tool = FunctionTool[..., Any]

TOOLS = five_tools()
each_tool = pytest.mark.parametrize("made", TOOLS, ids=[t.name for t in TOOLS])
strictly = pytest.mark.parametrize("strict", [True, False])

ORDER = {
    "customer": {"name": "A", "address": {"street": "S 1", "city": "B"}},
    "lines": [{"sku": "x", "quantity": 1}],
    "payment": {"method": "invoice"},
    "reference": 7,
}


def test_the_search_tool_for_each_provider() -> None:
    """The definitions side by side, to compare with the documentation of the providers."""
    search = TOOLS[4]
    assert to_openai_responses(search) == snapshot(
        {
            "type": "function",
            "name": "search",
            "description": """\
Search the knowledge base.

Matches by meaning. Gives the best passages first.\
""",
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"description": "What to look for. (minLength 1)", "type": "string"},
                    "top_k": {
                        "description": "How many passages. (null: default 5)",
                        "type": ["integer", "null"],
                        "maximum": 50,
                        "minimum": 1,
                    },
                    "sources": {
                        "description": "Where to look; everywhere if not given.",
                        "type": ["array", "null"],
                        "items": {"type": "string", "enum": ["wiki", "tickets", "mail"]},
                    },
                    "since": {
                        "description": "Nothing older than this date.",
                        "type": ["string", "null"],
                    },
                    "exact": {
                        "description": "Match words instead of meaning. (null: default false)",
                        "type": ["boolean", "null"],
                    },
                },
                "required": ["query", "top_k", "sources", "since", "exact"],
                "additionalProperties": False,
            },
            "strict": True,
        }
    )
    assert to_openai_chat(search, strict=False) == snapshot(
        {
            "type": "function",
            "function": {
                "name": "search",
                "description": """\
Search the knowledge base.

Matches by meaning. Gives the best passages first.\
""",
                "parameters": {
                    "properties": {
                        "query": {
                            "description": "What to look for.",
                            "minLength": 1,
                            "type": "string",
                        },
                        "top_k": {
                            "default": 5,
                            "description": "How many passages.",
                            "maximum": 50,
                            "minimum": 1,
                            "type": "integer",
                        },
                        "sources": {
                            "items": {"enum": ["wiki", "tickets", "mail"]},
                            "type": "array",
                            "description": "Where to look; everywhere if not given.",
                        },
                        "since": {"description": "Nothing older than this date.", "type": "string"},
                        "exact": {
                            "default": False,
                            "description": "Match words instead of meaning.",
                            "type": "boolean",
                        },
                    },
                    "required": ["query"],
                    "type": "object",
                    "additionalProperties": False,
                },
            },
        }
    )
    assert to_anthropic(search) == snapshot(
        {
            "name": "search",
            "description": """\
Search the knowledge base.

Matches by meaning. Gives the best passages first.\
""",
            "input_schema": {
                "properties": {
                    "query": {"description": "What to look for.", "minLength": 1, "type": "string"},
                    "top_k": {
                        "default": 5,
                        "description": "How many passages.",
                        "maximum": 50,
                        "minimum": 1,
                        "type": "integer",
                    },
                    "sources": {
                        "items": {"enum": ["wiki", "tickets", "mail"]},
                        "type": "array",
                        "description": "Where to look; everywhere if not given.",
                    },
                    "since": {"description": "Nothing older than this date.", "type": "string"},
                    "exact": {
                        "default": False,
                        "description": "Match words instead of meaning.",
                        "type": "boolean",
                    },
                },
                "required": ["query"],
                "type": "object",
                "additionalProperties": False,
            },
        }
    )
    assert to_anthropic(search, strict=True)["input_schema"] == snapshot(
        {
            "type": "object",
            "properties": {
                "query": {"description": "What to look for. (minLength 1)", "type": "string"},
                "top_k": {
                    "description": "How many passages. (minimum 1, maximum 50)",
                    "type": "integer",
                    "default": 5,
                },
                "sources": {
                    "description": "Where to look; everywhere if not given.",
                    "type": "array",
                    "items": {"type": "string", "enum": ["wiki", "tickets", "mail"]},
                },
                "since": {"description": "Nothing older than this date.", "type": "string"},
                "exact": {
                    "description": "Match words instead of meaning.",
                    "type": "boolean",
                    "default": False,
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        }
    )
    assert to_gemini(search) == snapshot(
        {
            "name": "search",
            "description": """\
Search the knowledge base.

Matches by meaning. Gives the best passages first.\
""",
            "parametersJsonSchema": {
                "properties": {
                    "query": {"description": "What to look for. (minLength 1)", "type": "string"},
                    "top_k": {
                        "description": "How many passages. (default 5)",
                        "maximum": 50,
                        "minimum": 1,
                        "type": "integer",
                    },
                    "sources": {
                        "items": {"enum": ["wiki", "tickets", "mail"], "type": "string"},
                        "type": "array",
                        "description": "Where to look; everywhere if not given.",
                    },
                    "since": {"description": "Nothing older than this date.", "type": "string"},
                    "exact": {
                        "description": "Match words instead of meaning. (default false)",
                        "type": "boolean",
                    },
                },
                "required": ["query"],
                "type": "object",
                "additionalProperties": False,
            },
        }
    )
    assert to_bedrock(search) == snapshot(
        {
            "toolSpec": {
                "name": "search",
                "description": """\
Search the knowledge base.

Matches by meaning. Gives the best passages first.\
""",
                "inputSchema": {
                    "json": {
                        "type": "object",
                        "properties": {
                            "query": {
                                "description": "What to look for.",
                                "minLength": 1,
                                "type": "string",
                            },
                            "top_k": {
                                "default": 5,
                                "description": "How many passages.",
                                "maximum": 50,
                                "minimum": 1,
                                "type": "integer",
                            },
                            "sources": {
                                "items": {"enum": ["wiki", "tickets", "mail"], "type": "string"},
                                "type": "array",
                                "description": "Where to look; everywhere if not given.",
                            },
                            "since": {
                                "type": "string",
                                "description": "Nothing older than this date.",
                            },
                            "exact": {
                                "default": False,
                                "description": "Match words instead of meaning.",
                                "type": "boolean",
                            },
                        },
                        "required": ["query"],
                    }
                },
            }
        }
    )
    assert to_mcp(search) == snapshot(
        {
            "name": "search",
            "description": """\
Search the knowledge base.

Matches by meaning. Gives the best passages first.\
""",
            "inputSchema": {
                "properties": {
                    "query": {"description": "What to look for.", "minLength": 1, "type": "string"},
                    "top_k": {
                        "default": 5,
                        "description": "How many passages.",
                        "maximum": 50,
                        "minimum": 1,
                        "type": "integer",
                    },
                    "sources": {
                        "items": {"enum": ["wiki", "tickets", "mail"], "type": "string"},
                        "type": "array",
                        "description": "Where to look; everywhere if not given.",
                    },
                    "since": {"description": "Nothing older than this date.", "type": "string"},
                    "exact": {
                        "default": False,
                        "description": "Match words instead of meaning.",
                        "type": "boolean",
                    },
                },
                "required": ["query"],
                "type": "object",
                "additionalProperties": False,
            },
            "outputSchema": {
                "type": "object",
                "properties": {"result": {"type": "string"}},
                "required": ["result"],
            },
        }
    )


@each_tool
def test_every_exported_schema_is_valid_and_accepts_the_arguments(made: Tool) -> None:
    """An independent validator checks that no export adds or loses a parameter."""
    schemas = [
        to_openai_chat(made, strict=False)["function"]["parameters"],
        to_anthropic(made)["input_schema"],
        to_anthropic(made, strict=True)["input_schema"],
        to_gemini(made)["parametersJsonSchema"],
        to_bedrock(made)["toolSpec"]["inputSchema"]["json"],
        to_mcp(made)["inputSchema"],
    ]
    natural = made.params_json_schema
    for schema in schemas:
        jsonschema_rs.meta.validate(schema)
        assert list(schema["properties"]) == list(natural["properties"])
        assert schema["required"] == natural["required"]
        if made.name == "place_order":
            assert jsonschema_rs.validator_for(schema).is_valid(ORDER)


@each_tool
@strictly
def test_the_openai_responses_sdk_accepts_the_definition(made: Tool, strict: bool) -> None:
    from openai.types.responses import FunctionTool as Read, FunctionToolParam

    wire = to_openai_responses(made, strict=strict)
    TypeAdapter(FunctionToolParam).validate_python({"async": False, **wire})
    read = Read.model_validate(wire)
    assert (read.name, read.strict, read.parameters) == (made.name, strict, wire["parameters"])


@each_tool
@strictly
def test_the_openai_chat_sdk_accepts_the_definition(made: Tool, strict: bool) -> None:
    from openai.types.chat import ChatCompletionFunctionTool, ChatCompletionFunctionToolParam

    wire = to_openai_chat(made, strict=strict)
    adapter = TypeAdapter(ChatCompletionFunctionToolParam)
    assert adapter.validate_python(wire) == wire
    read = ChatCompletionFunctionTool.model_validate(wire)
    assert read.function.strict is (True if strict else None)


@each_tool
def test_openais_own_strict_conversion_changes_nothing(made: Tool) -> None:
    """The SDK also makes schemas strict; ours must already have the same form."""
    from openai.lib._pydantic import _ensure_strict_json_schema as sdk  # pyright: ignore[reportPrivateUsage]

    ours = to_openai_responses(made)["parameters"]
    theirs = json.loads(json.dumps(ours))
    assert sdk(theirs, path=(), root=theirs) == ours


@each_tool
@strictly
def test_the_anthropic_sdk_accepts_the_definition(made: Tool, strict: bool) -> None:
    from anthropic.types import ToolParam

    wire = to_anthropic(made, strict=strict)
    assert TypeAdapter(ToolParam).validate_python(wire)["name"] == made.name
    assert wire.get("strict", False) is strict


@each_tool
def test_anthropics_own_conversion_moves_nothing_into_descriptions(made: Tool) -> None:
    """The SDK moves unsupported keywords of strict mode there; our schemas must have none left."""
    from anthropic import transform_schema

    ours = to_anthropic(made, strict=True)["input_schema"]
    theirs = transform_schema(json.loads(json.dumps(_as_one_type(ours))))

    assert sorted(descriptions(theirs)) == sorted(descriptions(ours))


def descriptions(schema: Any) -> list[str]:
    """Return all descriptions at any depth."""
    if isinstance(schema, list):
        return [text for item in cast("list[Any]", schema) for text in descriptions(item)]
    if not isinstance(schema, dict):
        return []
    found: list[str] = []
    for key, value in cast("dict[str, Any]", schema).items():
        found.extend([value] if key == "description" else descriptions(value))
    return found


def _as_one_type(schema: Any) -> Any:
    """Replace lists of types by the form that the SDK's conversion knows, and remove defaults."""
    if isinstance(schema, list):
        return [_as_one_type(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    known = cast("dict[str, Any]", schema)
    out = {key: _as_one_type(value) for key, value in known.items() if key != "default"}
    kinds: Any = out.get("type")
    if not isinstance(kinds, list):
        return out
    first = {"array", "object"} & set(cast("list[str]", kinds))
    annotations = {key: out[key] for key in ("description", "title") if key in out}
    rest = {key: value for key, value in out.items() if key not in {*annotations, "type"}}
    return {
        **annotations,
        "anyOf": [
            {"type": kind, **(rest if not first or kind in first else {})}
            for kind in cast("list[str]", kinds)
        ],
    }


@each_tool
def test_the_gemini_sdk_accepts_the_definition(made: Tool) -> None:
    """Validates the declaration and its subset of JSON Schema."""
    from google.genai import types

    wire = to_gemini(made)
    declaration = types.FunctionDeclaration.model_validate(wire)
    sent = types.Tool(function_declarations=[declaration]).model_dump(
        by_alias=True, exclude_none=True, mode="json"
    )
    assert sent == {"functionDeclarations": [wire]}
    types.JSONSchema.model_validate(wire["parametersJsonSchema"])


def test_gemini_gets_no_schema_for_a_tool_without_parameters() -> None:
    """Some models refuse an object without properties."""
    assert to_gemini(tool("now", {"type": "object", "properties": {}})) == snapshot(
        {"name": "now", "description": "Does something."}
    )


@each_tool
def test_bedrock_schemas_have_no_root_keys_that_nova_refuses(made: Tool) -> None:
    """Converse sends one definition to models of different vendors."""
    spec = to_bedrock(made)["toolSpec"]
    assert set(spec["inputSchema"]["json"]) == {"type", "properties", "required"}
    assert set(spec) == {"name", "description", "inputSchema"}


def test_bedrock_gets_no_empty_description() -> None:
    """Bedrock refuses an empty description."""
    assert "description" not in to_bedrock(tool("t", {"type": "object"}, ""))["toolSpec"]


# -- MCP ---------------------------------------------------------------------------------------


class Row(BaseModel):
    """A row of a result."""

    name: str
    parent: Optional[Row] = None


def with_output_schema(output: dict[str, Any] | None) -> Tool:
    """Return a tool with an output schema."""
    hints = ToolAnnotations(title="Give it", readOnlyHint=True)
    return tool("give", {"type": "object"}, annotations=hints, output=output)


OUTPUTS = {
    "none": None,
    "object": Row.model_json_schema(),
    "list": TypeAdapter(list[Row]).json_schema(),
    "union": TypeAdapter(int | str).json_schema(),
    "nested": {"type": "array", "items": {"$ref": "#"}},
    "root model": RootModel[dict[str, int]].model_json_schema(),
}
each_output = pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)


@each_output
@pytest.mark.parametrize("version", [None, "2025-11-25", "2026-07-28"])
def test_the_mcp_sdk_accepts_the_definition(
    output: dict[str, Any] | None, version: str | None
) -> None:
    """The SDK has types for each generation of the protocol."""
    from mcp.types import Tool as Read
    from mcp_types._v2025_11_25 import Tool as Legacy
    from mcp_types._v2026_07_28 import Tool as Modern

    wire = to_mcp(with_output_schema(output), protocol_version=version)
    assert Read.model_validate(wire).model_dump(by_alias=True, exclude_none=True) == wire
    (Modern if version == "2026-07-28" else Legacy).model_validate(wire)


@each_output
def test_before_2026_every_output_schema_is_an_object(output: dict[str, Any] | None) -> None:
    """A client of that protocol refuses the whole list of tools otherwise."""
    wire = to_mcp(with_output_schema(output), protocol_version="2025-11-25")
    if output is None:
        assert "outputSchema" not in wire
        assert not output_is_wrapped(output)
        return
    assert wire["outputSchema"]["type"] == "object"
    assert ("result" in wire["outputSchema"].get("properties", {})) is output_is_wrapped(output)


RESULTS: list[tuple[str, Any]] = [
    ("object", {"name": "a", "parent": {"name": "b", "parent": None}}),
    ("list", [{"name": "a", "parent": None}]),
    ("union", "x"),
    ("nested", [[], [[]]]),
    ("root model", {"a": 1}),
]


@pytest.mark.parametrize(("name", "value"), RESULTS)
def test_results_match_the_output_schema_of_both_generations(name: str, value: Any) -> None:
    """References must still resolve after the schema has been wrapped."""
    output = OUTPUTS[name]
    for version in (None, "2025-11-25", "2026-07-28"):
        schema = to_mcp(with_output_schema(output), protocol_version=version)["outputSchema"]
        wrapped = output_is_wrapped(output, version)
        jsonschema_rs.validate(schema, {"result": value} if wrapped else value)
        assert not jsonschema_rs.is_valid(schema, {"result": 1.5} if wrapped else 1.5)


def test_an_output_schema_allows_additional_fields() -> None:
    """A closed schema would make clients reject results with additional fields."""
    assert "additionalProperties" not in json.dumps(
        to_mcp(with_output_schema(OUTPUTS["object"]))["outputSchema"]
    )


def test_annotations_reach_mcp_clients() -> None:
    """Clients use them to decide when to ask the user."""
    assert to_mcp(with_output_schema(None)) == snapshot(
        {
            "name": "give",
            "description": "Does something.",
            "inputSchema": {"type": "object"},
            "annotations": {
                "title": "Give it",
                "readOnlyHint": True,
                "destructiveHint": True,
                "idempotentHint": False,
                "openWorldHint": True,
            },
        }
    )
