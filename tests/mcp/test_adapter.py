"""Conversion of server results, and tools that are served again unchanged."""

from __future__ import annotations

import base64
import json
import logging
from typing import Any

import pytest
from hypothesis import example, given, strategies as st
from inline_snapshot import snapshot

from agents_tools import (
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
    to_mcp,
)
from agents_tools.content.json_value import to_json
from agents_tools.mcp import MCPToolError
from agents_tools.mcp.client.adapter import function_tool_of, result_of
from agents_tools.testing import call_tool

DATA = base64.b64encode(b"\x89PNG").decode()
SUM: dict[str, Any] = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
}


def wire(**parts: Any) -> dict[str, Any]:
    return {"name": "look", "description": "Look.", "inputSchema": {"type": "object"}, **parts}


def made(raw: Any = None, **parts: Any) -> Any:
    """Create a tool whose server always returns the same result."""

    async def perform(_context: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        return (
            {"content": [{"type": "text", "text": json.dumps(arguments)}]} if raw is None else raw
        )

    return function_tool_of(wire(**parts), name="box_look", server="box", perform=perform)


def read(*content: Any, **more: Any) -> ToolResult:
    return result_of({"content": list(content), **more})


# --- blocks


BLOCKS: dict[str, dict[str, Any]] = {
    "text": {"type": "text", "text": "hello"},
    "image": {"type": "image", "data": DATA, "mimeType": "image/png"},
    "audio": {"type": "audio", "data": DATA, "mimeType": "audio/wav"},
    "link": {
        "type": "resource_link",
        "uri": "file:///a/tea.txt",
        "name": "tea",
        "title": "Tea",
        "description": "All of it.",
        "mimeType": "text/plain",
    },
    "bare link": {"type": "resource_link", "uri": "file:///a"},
    "text file": {
        "type": "resource",
        "resource": {"uri": "file:///a/b.txt", "mimeType": "text/plain", "text": "inside"},
    },
    "bytes": {
        "type": "resource",
        "resource": {"uri": "file:///a/b.pdf", "mimeType": "application/pdf", "blob": DATA},
    },
    "image file": {
        "type": "resource",
        "resource": {"uri": "file:///a/b.png", "mimeType": "image/png", "blob": DATA},
    },
    "sound file": {
        "type": "resource",
        "resource": {"uri": "file:///a/b.wav", "mimeType": "audio/wav", "blob": DATA},
    },
    "page of an app": {
        "type": "resource",
        "resource": {"uri": "ui://shop/cart", "mimeType": "text/html", "text": "<p>3 items"},
    },
    "bytes without a type": {"type": "resource", "resource": {"uri": "x:", "blob": DATA}},
    "annotated": {
        "type": "text",
        "text": "for people",
        "annotations": {"audience": ["user"], "priority": 0.1},
        "_meta": {"a": 1},
    },
    "of tomorrow": {"type": "hologram", "beam": 3},
    "without a type": {"text": "x"},
    "text that is none": {"type": "text", "text": {"a": 1}},
    "no text at all": {"type": "text"},
    "a file of nothing": {"type": "resource", "resource": {"uri": "x:"}},
    "a file that is a list": {"type": "resource", "resource": []},
    "a link to nowhere": {"type": "resource_link"},
}


@pytest.mark.requirement("B36")
def test_each_kind_of_block_is_read() -> None:
    """All of them are in one result: the model gets each one in order, people see its type."""
    result = read(*BLOCKS.values())
    assert isinstance(result.content, list)
    assert dict(zip(BLOCKS, result.content, strict=True)) == snapshot(
        {
            "text": ToolOutputText(text="hello"),
            "image": ToolOutputImage(data=b"\x89PNG", mime_type="image/png"),
            "audio": ToolOutputAudio(data=b"\x89PNG", mime_type="audio/wav"),
            "link": ToolOutputText(text="[Tea](file:///a/tea.txt) (text/plain): All of it."),
            "bare link": ToolOutputText(text="[file:///a](file:///a)"),
            "text file": ToolOutputText(text="inside"),
            "bytes": ToolOutputFileContent(
                data=b"\x89PNG", filename="b.pdf", mime_type="application/pdf"
            ),
            "image file": ToolOutputImage(data=b"\x89PNG", mime_type="image/png"),
            "sound file": ToolOutputAudio(data=b"\x89PNG", mime_type="audio/wav"),
            "page of an app": ToolOutputText(
                text="[The page ui://shop/cart is for the user interface.]"
            ),
            "bytes without a type": ToolOutputFileContent(
                data=b"\x89PNG", filename="x:", mime_type="application/octet-stream"
            ),
            "annotated": ToolOutputText(text="for people"),
            "of tomorrow": ToolOutputText(text='{"type": "hologram", "beam": 3}'),
            "without a type": ToolOutputText(text='{"text": "x"}'),
            "text that is none": ToolOutputText(text='{"a": 1}'),
            "no text at all": ToolOutputText(text="[text content that cannot be read: 'text']"),
            "a file of nothing": ToolOutputText(
                text="[resource content that cannot be read: 'blob']"
            ),
            "a file that is a list": ToolOutputText(
                text="[resource content that cannot be read: 'blob']"
            ),
            "a link to nowhere": ToolOutputText(
                text="[resource_link content that cannot be read: 'uri']"
            ),
        }
    )
    assert {
        list(BLOCKS)[n]: note for n, note in (result.metadata or {})["blocks"].items()
    } == snapshot(
        {
            "link": {
                "resource_link": {
                    "type": "resource_link",
                    "uri": "file:///a/tea.txt",
                    "name": "tea",
                    "title": "Tea",
                    "description": "All of it.",
                    "mimeType": "text/plain",
                }
            },
            "bare link": {"resource_link": {"type": "resource_link", "uri": "file:///a"}},
            "text file": {"uri": "file:///a/b.txt"},
            "bytes": {"uri": "file:///a/b.pdf"},
            "image file": {"uri": "file:///a/b.png"},
            "sound file": {"uri": "file:///a/b.wav"},
            "page of an app": {
                "uri": "ui://shop/cart",
                "app": {"uri": "ui://shop/cart", "mimeType": "text/html", "text": "<p>3 items"},
            },
            "bytes without a type": {"uri": "x:"},
            "annotated": {
                "annotations": {"audience": ["user"], "priority": 0.1},
                "_meta": {"a": 1},
            },
            "no text at all": {"unreadable": {"type": "text"}},
            "a file of nothing": {
                "uri": "x:",
                "unreadable": {"type": "resource", "resource": {"uri": "x:"}},
            },
            "a file that is a list": {
                "uri": None,
                "unreadable": {"type": "resource", "resource": []},
            },
            "a link to nowhere": {
                "resource_link": {"type": "resource_link"},
                "unreadable": {"type": "resource_link"},
            },
        }
    )


@pytest.mark.parametrize("data", [3, None, "?", "", "iVBOR w0KGgo*", "not base64 at all!"])
def test_data_that_is_not_base64_is_not_an_image(data: object) -> None:
    """A broken image that a provider rejects would fail the whole run."""
    result = read({"type": "image", "data": data, "mimeType": "image/png"})
    content = result.content
    assert isinstance(content, str) or isinstance(content[0], ToolOutputText)  # type: ignore[index]


@pytest.mark.parametrize("content", ["hello", {"type": "text", "text": "hello"}, ["hello"]])
def test_content_that_is_not_a_list_is_read_as_a_block(content: Any) -> None:
    assert result_of({"content": content}).content == "hello"


def test_text_blocks_alone_become_one_text() -> None:
    """Most results are text, and a model reads a string with fewer tokens than a list."""
    result = read({"type": "text", "text": "a"}, {"type": "text", "text": "b"})
    assert result == ToolResult(content="a\nb")
    assert result_of({"content": []}).content == ""
    assert result_of({}).content == ""


# --- structure


def test_the_model_gets_the_content_of_a_structured_result() -> None:
    """It gets the structure only if there is no content. Programs get both."""
    both = read({"type": "text", "text": "three"}, structuredContent={"sum": 3})
    assert (both.content, both.structured) == ("three", {"sum": 3})
    alone = read(structuredContent={"sum": 3})
    assert (alone.content, alone.structured) == (None, {"sum": 3})
    assert result_of({"structuredContent": [1, 2]}).structured == [1, 2]
    assert result_of({"structuredContent": 0}).structured == 0
    empty = read({"type": "text", "text": ""}, structuredContent={"sum": 3})
    assert (empty.content, empty.structured) == ("", {"sum": 3})


async def test_the_model_gets_a_structure_without_content() -> None:
    outcome = (await call_tool(made({"structuredContent": {"sum": 3}}, outputSchema=SUM))).outcome
    assert outcome.output == '{"sum": 3}' or json.loads(str(outcome.output)) == {"sum": 3}
    assert outcome.value.structured == {"sum": 3}


@pytest.mark.parametrize(
    ("structured", "schema", "faults"),
    [
        ({"sum": 3}, SUM, None),
        ({"sum": "3"}, SUM, ['[\'sum\'] "3" is not of type "integer"']),
        ({}, SUM, ['"sum" is a required property']),
        ({"sum": 3}, {"type": "nonsense"}, None),
        ({"sum": 3}, {"$ref": "http://there.example/schema"}, None),
    ],
)
async def test_an_output_schema_is_validated_without_losing_the_result(
    structured: Any, schema: dict[str, Any], faults: list[str] | None
) -> None:
    """Neither a violation nor an invalid schema loses it."""
    raw = {"content": [{"type": "text", "text": "x"}], "structuredContent": structured}
    outcome = (await call_tool(made(raw, outputSchema=schema))).outcome
    assert (outcome.status, outcome.output) == ("ok", "x")
    assert outcome.value.structured == structured
    assert (outcome.value.metadata or {}).get("output_schema_faults") == faults


async def test_a_missing_structure_does_not_lose_the_result() -> None:
    raw = {"content": [{"type": "text", "text": "x"}]}
    outcome = (await call_tool(made(raw, outputSchema=SUM))).outcome
    assert (outcome.status, outcome.output) == ("ok", "x")


async def test_the_output_schema_of_an_error_is_not_validated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    raw = {"content": [], "structuredContent": {"why": "empty"}, "isError": True}
    outcome = (await call_tool(made(raw, outputSchema=SUM))).outcome
    assert (outcome.status, outcome.output) == ("tool_error", '{"why": "empty"}')
    assert caplog.records == []


def test_metadata_for_the_application_excludes_protocol_fields() -> None:
    result = result_of({"content": [], "_meta": {"io.modelcontextprotocol/x": 1, "mine": 2}})
    assert result.metadata == {"_meta": {"mine": 2}}


def test_a_result_of_another_shape_is_shown_unchanged() -> None:
    """Some servers are older than `content`, or do not implement it."""
    assert result_of({"toolResult": {"a": 1}}) == ToolResult(structured={"toolResult": {"a": 1}})
    assert result_of({"resultType": "complete"}).content == ""


# --- failures


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"content": [{"type": "text", "text": "Full."}], "isError": True}, "Full."),
        ({"isError": True}, "The tool failed without an error message."),
        ({"structuredContent": {"a": "ü"}, "isError": True}, '{"a": "ü"}'),
        (
            {"content": [BLOCKS["text"], BLOCKS["image"]], "isError": True},
            "hello\n[image]",
        ),
    ],
)
async def test_an_error_has_the_text_of_the_server(raw: dict[str, Any], text: str) -> None:
    outcome = (await call_tool(made(raw))).outcome
    assert (outcome.status, outcome.output) == ("tool_error", text)
    assert isinstance(outcome.error, MCPToolError)
    assert outcome.error.result.is_error


@pytest.mark.parametrize("flag", ["true", 1, None, [True]])
def test_only_true_is_an_error(flag: Any) -> None:
    assert result_of({"content": [], "isError": flag}).is_error is False


# --- arbitrary results


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)
BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "audio", "resource", "resource_link", "x"]) | JSON},
    optional={
        "text": JSON,
        "data": st.just(DATA) | JSON,
        "mimeType": st.just("image/png") | JSON,
        "uri": JSON,
        "name": JSON,
        "title": JSON,
        "description": JSON,
        "resource": st.fixed_dictionaries(
            {}, optional={"uri": JSON, "text": JSON, "blob": st.just(DATA) | JSON, "mimeType": JSON}
        )
        | JSON,
        "annotations": JSON,
        "_meta": JSON,
    },
)
RESULT = st.fixed_dictionaries(
    {},
    optional={
        "content": st.lists(BLOCK | JSON, max_size=4) | JSON,
        "structuredContent": JSON,
        "isError": JSON,
        "_meta": JSON,
    },
)


@given(RESULT | st.dictionaries(st.text(max_size=8), JSON, max_size=4))
@example({"content": [{"type": []}]})
@example({"content": [{"type": "image", "data": DATA, "mimeType": 3}]})
@example({"content": [{"type": "image", "data": "", "mimeType": "image/png"}]})
@example({"content": [{"type": "text", "text": "\ud800"}]})
@example({"content": [{"type": "image", "data": "ä"}]})
@example({"content": [{"type": "resource", "resource": {"blob": DATA, "mimeType": 3, "uri": 4}}]})
async def test_any_result_is_read(raw: dict[str, Any]) -> None:
    """No answer of a server can break a call, and its outcome can be stored."""
    result = result_of(raw)
    json.loads(to_json(result.structured))
    json.loads(to_json(result.metadata))
    for block in result.content if isinstance(result.content, list) else []:
        assert isinstance(
            block,
            (ToolOutputText, ToolOutputImage, ToolOutputAudio, ToolOutputFileContent),
        )
    outcome = (await call_tool(made(raw))).outcome
    assert outcome.status in {"ok", "tool_error"}
    if isinstance(outcome.output, str):
        json.loads(json.dumps(outcome.output))


# --- round trip


WIRES: dict[str, dict[str, Any]] = {
    "bare": wire(),
    "title": wire(title="Have a look"),
    "all hints": wire(
        annotations={
            "title": "Look",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }
    ),
    "one hint": wire(annotations={"destructiveHint": True}),
    "no hint": wire(annotations={}),
    "both titles": wire(title="A", annotations={"title": "B"}),
    "schemas": wire(
        inputSchema={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "q": {"type": "string", "minLength": 1, "x-order": 3},
                "n": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                "of": {"$ref": "#/$defs/Kind"},
            },
            "required": ["q"],
            "additionalProperties": False,
            "$defs": {"Kind": {"enum": ["a", "b"]}},
        },
        outputSchema=SUM,
    ),
    "metadata": wire(
        _meta={"mine": {"a": [1]}}, icons=[{"src": "https://there.example/i.png"}], title="T"
    ),
    "tasks": wire(execution={"taskSupport": "optional"}),
    "no description": {"name": "look", "inputSchema": {"type": "object"}},
}


async def never(_context: Any, _arguments: dict[str, Any]) -> dict[str, Any]:
    raise AssertionError


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("kind", WIRES)
def test_a_tool_that_is_served_again_is_the_same(kind: str, version: str) -> None:
    """A proxy changes nothing but the name."""
    given = WIRES[kind]
    tool = function_tool_of(given, name="box_look", server="box", perform=never)
    again = to_mcp(tool, protocol_version=version)
    assert again.pop("name") == "box_look"
    expected = {key: value for key, value in given.items() if key != "name"}
    assert _plain(again) == _plain(expected)


def _plain(tool: dict[str, Any]) -> dict[str, Any]:
    """Remove empty fields and fill in the defaults."""
    plain = {key: value for key, value in tool.items() if value not in ("", {}, None)}
    hints = dict(plain.pop("annotations", {}))
    title = plain.pop("title", None) or hints.pop("title", None)
    hints.pop("title", None)
    return {**plain, "hints": {**DEFAULT_HINTS, **hints}, "title": title}


DEFAULT_HINTS = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}
"""What the protocol says that hints are where they are not given."""


def test_the_page_of_an_app_is_known_by_its_type() -> None:
    """The model reads no HTML that is for the user interface, whatever its address is."""
    page = {"uri": "shop://cart", "mimeType": "text/html;profile=mcp-app", "text": "<p>3"}
    result = read({"type": "resource", "resource": page})
    assert result.content == "[The page shop://cart is for the user interface.]"
    assert result.metadata is not None
    assert result.metadata["blocks"][0]["app"] == page
