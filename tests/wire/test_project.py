"""Test the common parts of all projections: strict mode, names, options, decoding and caching."""

from __future__ import annotations

import gc
import json
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, Optional

import pytest
from inline_snapshot import snapshot
from pydantic import Field

from agents_tools import (
    to_anthropic,
    to_bedrock,
    to_gemini,
    to_mcp,
    to_openai_chat,
    to_openai_responses,
)
from agents_tools.errors import UserError
from agents_tools.schema import StrictFallbackWarning
from agents_tools.wire.decode import unchanged
from agents_tools.wire.hosted import raise_hosted_unsupported
from agents_tools.wire.project import PROVIDERS, project
from tests.wire.tools import five_tools, of_fields, tool

EXPORTS = {
    "openai_responses": to_openai_responses,
    "openai_chat": to_openai_chat,
    "anthropic": to_anthropic,
    "gemini": to_gemini,
    "bedrock": to_bedrock,
    "mcp": to_mcp,
}

ONE: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
OPEN: dict[str, Any] = {
    "type": "object",
    "properties": {"tags": {"type": "object", "additionalProperties": {"type": "string"}}},
    "required": ["tags"],
}


def parameters(wire: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a definition, whatever key the provider uses."""
    if "function" in wire:
        return parameters(wire["function"])
    if "toolSpec" in wire:
        return wire["toolSpec"]["inputSchema"]["json"]
    keys = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
    return next(wire[key] for key in keys if key in wire)


def test_every_provider_has_a_module_with_its_name() -> None:
    """`project` finds the module by the name of the provider."""
    made = of_fields("t", a=(str, ...))
    assert tuple(EXPORTS) == PROVIDERS
    for name, export in EXPORTS.items():
        assert project(made, name).wire == export(made)


def test_the_error_for_an_unknown_provider_lists_the_known_ones() -> None:
    """A typo must not end in an import error."""
    with pytest.raises(UserError, match=r"'openay'.*openai_responses, openai_chat"):
        project(of_fields("t"), "openay")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_caller_gets_its_own_copy_of_a_definition(provider: str) -> None:
    """Clients can modify a definition, and the next request must not be affected."""
    made = five_tools()[2]
    first = EXPORTS[provider](made)
    parameters(first)["properties"].clear()
    assert parameters(EXPORTS[provider](made))["properties"]


def test_a_projection_is_cached() -> None:
    """The runner requests it in every turn."""
    made = of_fields("t", a=(str, ...))
    assert project(made, "anthropic") is project(made, "anthropic")
    assert project(made, "anthropic") is not project(made, "anthropic", True)
    assert project(made, "mcp") is not project(made, "mcp", inline_refs=True)


def test_a_projection_is_released_with_its_tool() -> None:
    """The memory of a server whose tools change every hour must not grow."""
    made = of_fields("t", a=(str, ...))
    seen = [weakref.ref(project(made, "mcp")), weakref.ref(made)]
    del made
    gc.collect()
    assert [reference() for reference in seen] == [None, None]


def test_threads_can_project_concurrently() -> None:
    """Applications serve several requests with the same tools."""
    made = five_tools()
    with ThreadPoolExecutor(4, thread_name_prefix="agents-tools-test") as pool:
        waiting = [pool.submit(lambda: [to_openai_chat(t) for t in made]) for _ in range(8)]
        wires = [future.result() for future in waiting]
    assert all(wire == wires[0] for wire in wires)


# -- strict mode -------------------------------------------------------------------------------


def test_the_strict_setting_of_a_tool_applies_to_openai() -> None:
    """The tool knows whether its schema is strict; the caller can override it."""
    yes, no = tool("yes", ONE), tool("no", ONE, strict=False)
    assert [to_openai_responses(t)["strict"] for t in (yes, no)] == [True, False]
    assert to_openai_responses(no, strict=True)["strict"] is True
    assert to_openai_responses(yes, strict=False)["strict"] is False
    assert to_openai_chat(yes)["function"]["strict"] is True
    assert "strict" not in to_openai_chat(no)["function"]


def test_anthropic_and_bedrock_are_strict_only_on_request() -> None:
    """They refuse a request with more than a few strict tools."""
    made = tool("t", ONE)
    asked = tool("t", ONE, metadata={"anthropic": {"strict": True}, "bedrock": {"strict": True}})
    assert "strict" not in to_anthropic(made)
    assert to_anthropic(made, strict=True)["strict"] is True
    assert to_anthropic(asked)["strict"] is True
    assert "strict" not in to_anthropic(asked, strict=False)
    assert "strict" not in to_bedrock(made)["toolSpec"]
    assert to_bedrock(asked)["toolSpec"]["strict"] is True


def test_a_tool_that_cannot_be_strict_warns_once_and_is_exported() -> None:
    """It works without strict mode; the author needs one warning, not one per turn."""
    made = tool("tag", OPEN)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wires = [to_openai_responses(made), to_openai_responses(made), to_openai_chat(made)]
        to_anthropic(made, strict=True)
    assert [warning.category for warning in caught] == [StrictFallbackWarning]
    assert str(caught[0].message).startswith(
        "tool 'tag' is exported without strict mode: OpenAI's strict mode cannot express "
        "#/properties/tags, which is an open map. Declare its keys"
    )
    assert wires[0]["strict"] is False
    assert parameters(wires[0])["properties"]["tags"] == OPEN["properties"]["tags"]
    assert "strict" not in wires[2]["function"]


def test_a_warning_raised_as_an_error_leaves_the_tool_usable() -> None:
    """Programs treat warnings as errors in their tests."""
    made = tool("tag", OPEN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(StrictFallbackWarning):
            to_openai_chat(made)
        assert "strict" not in to_openai_chat(made)["function"]


def test_a_tool_exported_without_strict_mode_does_not_warn() -> None:
    """The warning matters only to users who requested strict mode."""
    made = tool("tag", OPEN)
    to_openai_chat(made, strict=False)
    for provider in ("anthropic", "gemini", "bedrock", "mcp"):
        EXPORTS[provider](made)


@pytest.mark.requirement("A73")
def test_a_recursive_tool_is_strict_only_with_references() -> None:
    """A schema cut at some depth has an open end, which strict mode refuses."""
    schema = {**ONE, "properties": {"a": {"$ref": "#/$defs/N"}}}
    node = {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}}
    made = tool("walk", {**schema, "$defs": {"N": node}})
    assert to_openai_chat(made)["function"]["strict"] is True
    with pytest.warns(StrictFallbackWarning):
        cut = to_openai_chat(made, inline_refs=True)
    assert "$ref" not in json.dumps(cut)


# -- decoding ----------------------------------------------------------------------------------


def test_decoded_arguments_match_the_schema_of_the_tool() -> None:
    """Nulls of the strict dialect are removed; nulls that the tool allows stay."""
    made = of_fields("t", path=(str, ...), limit=(int, 10), note=(Optional[str], None))
    projection = project(made, "openai_responses")
    assert projection.strict is True
    decoded = projection.decode('{"path": "a", "limit": null, "note": null}')
    assert json.loads(decoded) == {"path": "a", "note": None}


@pytest.mark.parametrize(
    ("provider", "strict"),
    [*[(provider, False) for provider in PROVIDERS], ("anthropic", True), ("bedrock", True)],
)
def test_decoding_changes_nothing_without_the_strict_openai_dialect(
    provider: str, strict: bool
) -> None:
    """Only the dialect of OpenAI expresses an omitted key as null."""
    made = of_fields("t", path=(str, ...), limit=(int, 10))
    assert project(made, provider, strict).decode is unchanged


def test_decoding_changes_nothing_if_every_parameter_is_required() -> None:
    """No parameter had to become nullable."""
    made = of_fields("t", path=(str, ...), note=(Optional[str], ...))
    assert project(made, "openai_chat").decode is unchanged


# -- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["anthropic", "bedrock"])
def test_parameters_with_unsupported_characters_are_renamed(provider: str) -> None:
    """Anthropic refuses the whole request for one such name in any tool."""
    schema = {
        "type": "object",
        "properties": {
            "größe": {"type": "string", "title": "Größe", "description": "How large."},
            "filter[id]": {"type": "string"},
            "filter_id": {"type": "string"},
            "名前": {"type": "string"},
            "1st": {"type": "string"},
            "x" * 70: {"type": "string"},
        },
        "required": ["größe", "名前"],
    }
    projection = project(tool("t", schema), provider)
    sent = parameters(projection.wire)
    assert list(sent["properties"]) == snapshot(
        [
            "groe",
            "filter_id_2",
            "filter_id",
            "parameter",
            "1st",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ]
    )
    assert sent["properties"]["groe"] == snapshot(
        {
            "type": "string",
            "description": """\
How large.
(größe)\
""",
        }
    )
    assert sent["required"] == snapshot(["groe", "parameter"])
    arguments = {name: str(number) for number, name in enumerate(sent["properties"])}
    decoded = json.loads(projection.decode(json.dumps(arguments)))
    assert list(decoded) == list(schema["properties"])
    assert list(decoded.values()) == list(arguments.values())


def test_other_providers_accept_any_parameter_name() -> None:
    """A name is changed only where necessary."""
    made = of_fields("t", größe=(str, ...))
    for provider in ("openai_chat", "gemini", "mcp"):
        assert list(parameters(EXPORTS[provider](made))["properties"]) == ["größe"]


def test_gemini_refuses_a_tool_name_that_starts_with_a_digit() -> None:
    """The request would fail for all tools; the error names the tool to rename."""
    with pytest.raises(UserError, match=r"name '3d_render' is invalid.*[Rr]ename"):
        to_gemini(tool("3d_render", ONE))


# -- options -----------------------------------------------------------------------------------


def test_options_for_a_provider_are_merged_into_its_definition() -> None:
    """Each provider has options that no other provider knows, and a tool can set them."""
    made = tool(
        "t",
        ONE,
        metadata=MappingProxyType(
            {
                "openai": {"defer_loading": True},
                "anthropic": {
                    "cache_control": {"type": "ephemeral"},
                    "input_examples": ({"a": "b"},),
                },
                "gemini": {"behavior": "NON_BLOCKING"},
                "bedrock": {"description": "Shorter."},
                "mcp": {"title": "T", "_meta": {"x": 1}},
                "mine": {"name": object()},
            }
        ),
    )
    assert to_openai_responses(made)["defer_loading"] is True
    assert "defer_loading" not in json.dumps(to_openai_chat(made))
    assert to_anthropic(made)["cache_control"] == {"type": "ephemeral"}
    assert to_anthropic(made)["input_examples"] == [{"a": "b"}]
    assert to_gemini(made)["behavior"] == "NON_BLOCKING"
    assert to_bedrock(made)["toolSpec"]["description"] == "Shorter."
    assert to_mcp(made)["_meta"] == {"x": 1}


@pytest.mark.parametrize(
    ("provider", "options"),
    [
        ("openai_responses", {"openai": {"name": "other"}}),
        ("openai_chat", {"openai": {"parameters": {}}}),
        ("anthropic", {"anthropic": {"input_schema": {}}}),
        ("gemini", {"gemini": {"parametersJsonSchema": {}}}),
        ("bedrock", {"bedrock": {"inputSchema": {}}}),
        ("mcp", {"mcp": {"inputSchema": {}}}),
    ],
)
def test_options_cannot_override_the_definition_of_the_tool(
    provider: str, options: dict[str, Any]
) -> None:
    """A call could use another name or unvalidated arguments."""
    with pytest.raises(UserError, match=r"must not set .*: the tool itself defines it"):
        EXPORTS[provider](tool("t", ONE, metadata=options))


@pytest.mark.parametrize("options", ["ephemeral", {"cache_control": object()}])
def test_options_must_be_json(options: Any) -> None:
    """They are sent unchanged."""
    with pytest.raises(UserError, match=r"metadata\['anthropic'\] of tool 't'"):
        to_anthropic(tool("t", ONE, metadata={"anthropic": options}))


# -- root schemas ------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["openai_responses", "openai_chat", "anthropic", "bedrock"])
def test_an_empty_object_schema_gets_empty_properties(provider: str) -> None:
    """OpenAI refuses an object schema without them; servers omit them."""
    sent = parameters(EXPORTS[provider](tool("t", {"type": "object"})))
    assert sent["properties"] == {}


def test_a_combination_at_the_root_is_flattened() -> None:
    """No provider accepts `anyOf` at the root, and one such tool fails the request."""
    schema = {
        "anyOf": [
            {"properties": {"id": {"type": "string"}}, "required": ["id"]},
            {
                "properties": {"name": {"type": "string"}, "id": {"type": "integer"}},
                "required": ["name", "id"],
            },
        ],
        "description": "One of two.",
    }
    made = tool("find", schema, strict=False)
    assert parameters(to_anthropic(made)) == snapshot(
        {
            "description": "One of two. (pass id or name + id)",
            "type": "object",
            "properties": {"id": {"type": ["string", "integer"]}, "name": {"type": "string"}},
            "required": ["id"],
            "additionalProperties": False,
        }
    )
    assert "anyOf" in to_mcp(made)["inputSchema"]


def test_a_root_that_is_not_an_object_is_refused_with_the_tool_name() -> None:
    """Providers accept only an object, and the error must name the tool."""
    with pytest.raises(UserError, match="tool 'hand_made' cannot be exported to openai_chat"):
        to_openai_chat(tool("hand_made", {**ONE, "$defs": {}, "allOf": [{"$ref": "#/nowhere"}]}))


def test_a_description_is_not_repeated() -> None:
    """The docstring of a model is often the description of both the tool and its schema."""
    made = tool("t", {**ONE, "description": "Does it."}, "Does it.")
    assert "description" not in to_anthropic(made)["input_schema"]


# -- hosted tools ------------------------------------------------------------------------------


class WebSearchTool:
    """A stand-in for a tool that the provider runs."""

    name = "web_search"

    def to_responses(self) -> dict[str, str]:
        return {"type": "web_search"}


@pytest.mark.requirement("A9")
def test_a_hosted_tool_cannot_be_exported_to_chat_completions() -> None:
    """The provider would report a malformed request."""
    hosted: Any = WebSearchTool()
    with pytest.raises(UserError) as caught:
        to_openai_chat(hosted, model="openai-chat/gpt-5")
    assert str(caught.value) == (
        "Tool 'web_search' (WebSearchTool) runs at its provider, and model 'openai-chat/gpt-5' does "
        "not have it. Choose a model named 'openai/…', or remove the tool."
    )
    with pytest.raises(UserError, match="this model"):
        raise_hosted_unsupported(hosted)


@pytest.mark.parametrize("provider", ["openai_responses", "anthropic", "gemini", "bedrock", "mcp"])
def test_a_tool_that_is_not_a_function_tool_is_refused_by_name(provider: str) -> None:
    """It has no schema to send."""
    hosted: Any = WebSearchTool()
    with pytest.raises(UserError, match="WebSearchTool 'web_search' cannot be exported"):
        EXPORTS[provider](hosted)


def test_descriptions_in_the_schema_reach_the_model() -> None:
    """The description of a parameter helps the model to use it correctly."""
    made = of_fields("t", a=(str, Field(description="The letter.")))
    for provider in PROVIDERS:
        assert (
            parameters(EXPORTS[provider](made))["properties"]["a"]["description"] == "The letter."
        )
