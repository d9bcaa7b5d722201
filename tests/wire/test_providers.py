"""Each provider's own types take what we write for it."""

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
    """The definitions side by side, to be compared with the providers' documentation."""
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
                        "description": "How many passages. (default 5)",
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
                        "description": "Match words instead of meaning. (default false)",
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
def test_every_schema_is_a_schema_and_takes_the_arguments(made: Tool) -> None:
    """Seen with an independent validator: no export invents or loses a parameter."""
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
def test_openai_responses_takes_it(made: Tool, strict: bool) -> None:
    """Against the types of the SDK."""
    from openai.types.responses import FunctionTool as Read, FunctionToolParam

    wire = to_openai_responses(made, strict=strict)
    TypeAdapter(FunctionToolParam).validate_python({"async": False, **wire})
    read = Read.model_validate(wire)
    assert (read.name, read.strict, read.parameters) == (made.name, strict, wire["parameters"])


@each_tool
@strictly
def test_openai_chat_takes_it(made: Tool, strict: bool) -> None:
    """Against the types of the SDK."""
    from openai.types.chat import ChatCompletionFunctionTool, ChatCompletionFunctionToolParam

    wire = to_openai_chat(made, strict=strict)
    adapter = TypeAdapter(ChatCompletionFunctionToolParam)
    assert adapter.validate_python(wire) == wire
    read = ChatCompletionFunctionTool.model_validate(wire)
    assert read.function.strict is (True if strict else None)


@each_tool
def test_openais_own_conversion_has_nothing_left_to_do(made: Tool) -> None:
    """The SDK makes schemas strict as well; ours must already be what it would make."""
    from openai.lib._pydantic import _ensure_strict_json_schema as sdk  # pyright: ignore[reportPrivateUsage]

    ours = to_openai_responses(made)["parameters"]
    theirs = json.loads(json.dumps(ours))
    assert sdk(theirs, path=(), root=theirs) == ours


@each_tool
@strictly
def test_anthropic_takes_it(made: Tool, strict: bool) -> None:
    """Against the types of the SDK."""
    from anthropic.types import ToolParam

    wire = to_anthropic(made, strict=strict)
    assert TypeAdapter(ToolParam).validate_python(wire)["name"] == made.name
    assert wire.get("strict", False) is strict


@each_tool
def test_anthropics_own_conversion_has_nothing_left_to_say(made: Tool) -> None:
    """The SDK moves what strict mode lacks into descriptions; ours must have none of it left."""
    from anthropic import transform_schema

    ours = to_anthropic(made, strict=True)["input_schema"]
    theirs = transform_schema(json.loads(json.dumps(_as_one_type(ours))))

    assert sorted(descriptions(theirs)) == sorted(descriptions(ours))


def descriptions(schema: Any) -> list[str]:
    """List all descriptions, at any depth."""
    if isinstance(schema, list):
        return [text for item in cast("list[Any]", schema) for text in descriptions(item)]
    if not isinstance(schema, dict):
        return []
    found: list[str] = []
    for key, value in cast("dict[str, Any]", schema).items():
        found.extend([value] if key == "description" else descriptions(value))
    return found


def _as_one_type(schema: Any) -> Any:
    """Write lists of types as the SDK's conversion knows them, and leave out defaults."""
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
def test_gemini_takes_it(made: Tool) -> None:
    """Against the types of the SDK, for the declaration and for its subset of JSON Schema."""
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
def test_bedrock_gets_nothing_in_the_root_that_nova_refuses(made: Tool) -> None:
    """Converse carries one definition to models of many makers."""
    spec = to_bedrock(made)["toolSpec"]
    assert set(spec["inputSchema"]["json"]) == {"type", "properties", "required"}
    assert set(spec) == {"name", "description", "inputSchema"}


def test_bedrock_gets_no_empty_description() -> None:
    """It refuses one."""
    assert "description" not in to_bedrock(tool("t", {"type": "object"}, ""))["toolSpec"]


# -- MCP ---------------------------------------------------------------------------------------


class Row(BaseModel):
    """A row of a result."""

    name: str
    parent: Optional[Row] = None


def giving(output: dict[str, Any] | None) -> Tool:
    """Make a tool with an output schema."""
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
def test_mcp_takes_it(output: dict[str, Any] | None, version: str | None) -> None:
    """Against the types of the SDK, which has a set for each generation of the protocol."""
    from mcp.types import Tool as Read
    from mcp_types._v2025_11_25 import Tool as Legacy
    from mcp_types._v2026_07_28 import Tool as Modern

    wire = to_mcp(giving(output), protocol_version=version)
    assert Read.model_validate(wire).model_dump(by_alias=True, exclude_none=True) == wire
    (Modern if version == "2026-07-28" else Legacy).model_validate(wire)


@each_output
def test_before_2026_every_output_is_an_object(output: dict[str, Any] | None) -> None:
    """A client of that time refuses the whole list of tools over a single other one."""
    wire = to_mcp(giving(output), protocol_version="2025-11-25")
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
def test_results_fit_the_output_schema_of_either_generation(name: str, value: Any) -> None:
    """References inside must still lead to their target once the schema has been wrapped."""
    output = OUTPUTS[name]
    for version in (None, "2025-11-25", "2026-07-28"):
        schema = to_mcp(giving(output), protocol_version=version)["outputSchema"]
        wrapped = output_is_wrapped(output, version)
        jsonschema_rs.validate(schema, {"result": value} if wrapped else value)
        assert not jsonschema_rs.is_valid(schema, {"result": 1.5} if wrapped else 1.5)


def test_an_output_may_gain_fields() -> None:
    """Closing it would make clients reject results that only say more."""
    assert "additionalProperties" not in json.dumps(
        to_mcp(giving(OUTPUTS["object"]))["outputSchema"]
    )


def test_hints_reach_mcp() -> None:
    """Clients decide by them what to ask the user about."""
    assert to_mcp(giving(None)) == snapshot(
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
