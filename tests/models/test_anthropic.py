"""Models over the Messages API, through the official client and a real server."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from anthropic.types import Message, MessageParam
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from hypothesis import given, strategies as st
from inline_snapshot import snapshot
from pydantic import BaseModel, Field

from agents_tools import function_tool
from agents_tools.agents import (
    Agent,
    FileSearchTool,
    ModelRequest,
    ModelSettings,
    OutputFormat,
    RunConfig,
    Runner,
    load_model,
)
from agents_tools.content import (
    ContentBlock,
    Item,
    MessageInputItem,
    MessageOutputItem,
    ReasoningItem,
    ToolCallItem,
    ToolCallOutputItem,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    Usage,
    item_from_dict,
)
from agents_tools.errors import ContextWindowExceeded, ModelError, ToolRefusedError, UserError
from agents_tools.models import _anthropic_request, anthropic as adapter
from agents_tools.models._anthropic_request import DEFAULT_MAX_TOKENS
from agents_tools.models.anthropic import AnthropicModel
from agents_tools.policies import with_metadata
from tests.models.asking import ask, check
from tests.models.http_server import Answer, json_answer, sse_answer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.models.http_server import Recorded, ScriptedServer

KEY = "own-key-0123456789"
PNG = b"\x89PNG\r\n\x1a\n\0"
PNG_TEXT = "iVBORw0KGgoA"


@function_tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@function_tool
def look(place: str) -> list[ContentBlock]:
    """Look at a place."""
    return [ToolOutputText(place), ToolOutputImage(data=PNG)]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("API_KEY", "AUTH_TOKEN", "BASE_URL", "PROFILE", "IDENTITY_TOKEN"):
        monkeypatch.delenv(f"ANTHROPIC_{name}", raising=False)
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))


@pytest.fixture
def model(server: ScriptedServer) -> AnthropicModel:
    """Return a model that sends its requests to the scripted server."""
    return AnthropicModel("claude", base_url=server.url, api_key=KEY)


# --- events that a server sends

READ = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 5,
    "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 2},
    "cache_read_input_tokens": 20,
    "output_tokens": 1,
}


def start(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "content_block_start",
        "index": index,
        "content_block": {"type": kind, **more},
    }


def delta(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def text_block(index: int, *words: str) -> list[dict[str, Any]]:
    pieces = [delta(index, "text_delta", text=one) for one in words]
    return [start(index, "text", text=""), *pieces, stop(index)]


def tool_use(index: int, call_id: str, name: str, *pieces: str) -> list[dict[str, Any]]:
    return [
        start(index, "tool_use", id=call_id, name=name, input={}),
        *[delta(index, "input_json_delta", partial_json=one) for one in pieces],
        stop(index),
    ]


BEGUN: dict[str, Any] = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-4",
        "content": [],
        "stop_reason": None,
        "usage": READ,
    },
}


def message_end(reason: str = "end_turn", **more: Any) -> dict[str, Any]:
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None, **more},
        "usage": {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}},
    }


def complete_answer(*events: Any, reason: str = "end_turn", **more: Any) -> Answer:
    ping = {"type": "ping"}
    return sse_answer(BEGUN, ping, *events, message_end(reason, **more), {"type": "message_stop"})


def error_event(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


# --- requests


async def test_a_request_uses_the_field_names_of_the_api(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """The API rejects an unknown field, or silently ignores it."""
    server.answer(complete_answer(*text_block(0, "{}")))
    settings = ModelSettings(
        temperature=0.5,
        top_p=0.9,
        max_tokens=100,
        tool_choice="add",
        parallel_tool_calls=False,
        reasoning_effort="low",
        stop=("END",),
        extra_headers={"x-team": "blue"},
        extra_body={"cache_control": {"type": "ephemeral"}, "stream": False},
    )
    schema = {
        "type": "object",
        "properties": {"age": {"type": "integer", "minimum": 0}},
        "required": ["age"],
        "additionalProperties": False,
    }
    blocks: list[ContentBlock] = [
        ToolOutputText("What is this?"),
        ToolOutputText(" "),
        ToolOutputImage(data=PNG),
        ToolOutputImage(url="https://example.com/a.png"),
        ToolOutputImage(url=f"data:image/png;base64,{PNG_TEXT}"),
        ToolOutputImage(file_id="file-1"),
        ToolOutputFileContent(data=b"%PDF-1", filename="a.pdf"),
        ToolOutputFileContent(data=b"plain", mime_type="text/plain"),
        ToolOutputFileContent(url="https://example.com/a.pdf"),
    ]
    await ask(
        model,
        MessageInputItem(content=blocks),
        MessageInputItem(content="Be brief.", role="developer"),
        MessageInputItem(content=[ToolOutputText("Be exact.")], role="system"),
        "and now?",
        instructions="You are kind.",
        tools=(add,),
        settings=settings,
        output=OutputFormat(name="answer", schema=schema),
    )
    # Current models do not accept sampling parameters; older models and other servers still do.
    sampling = {"temperature", "top_p"}
    check(
        MessageCreateParamsStreaming,
        {key: one for key, one in server.last.body.items() if key not in sampling},
    )
    assert server.last.path == "/v1/messages"
    assert KEY in (server.last.headers.get("authorization") or server.last.headers["x-api-key"])
    assert server.last.headers["x-team"] == "blue"
    assert server.last.body == snapshot(
        {
            "max_tokens": 100,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What is this?"},
                        {
                            "type": "image",
                            "source": {
                                "type": "base64",
                                "media_type": "image/png",
                                "data": "iVBORw0KGgoA",
                            },
                        },
                        {
                            "type": "image",
                            "source": {"type": "url", "url": "https://example.com/a.png"},
                        },
                        {
                            "type": "image",
                            "source": {
                                "type": "base64",
                                "media_type": "image/png",
                                "data": "iVBORw0KGgoA",
                            },
                        },
                        {"type": "image", "source": {"type": "file", "file_id": "file-1"}},
                        {
                            "type": "document",
                            "source": {
                                "type": "base64",
                                "media_type": "application/pdf",
                                "data": "JVBERi0x",
                            },
                            "title": "a.pdf",
                        },
                        {
                            "type": "document",
                            "source": {
                                "type": "text",
                                "media_type": "text/plain",
                                "data": "plain",
                            },
                        },
                        {
                            "type": "document",
                            "source": {"type": "url", "url": "https://example.com/a.pdf"},
                        },
                        {"type": "text", "text": "and now?"},
                    ],
                }
            ],
            "model": "claude",
            "cache_control": {"type": "ephemeral"},
            "output_config": {
                "effort": "low",
                "format": {
                    "type": "json_schema",
                    "schema": {
                        "type": "object",
                        "properties": {"age": {"type": "integer", "description": "(minimum 0)"}},
                        "required": ["age"],
                        "additionalProperties": False,
                    },
                },
            },
            "stop_sequences": ["END"],
            "stream": True,
            "system": """\
You are kind.

Be brief.

Be exact.\
""",
            "tool_choice": {"type": "tool", "name": "add", "disable_parallel_tool_use": True},
            "tools": [
                {
                    "name": "add",
                    "description": "Add two numbers.",
                    "input_schema": {
                        "properties": {
                            "a": {"type": "integer"},
                            "b": {"type": "integer", "default": 2},
                        },
                        "required": ["a"],
                        "type": "object",
                        "additionalProperties": False,
                    },
                }
            ],
            "temperature": 0.5,
            "top_p": 0.9,
        }
    )


async def test_a_minimal_request_contains_only_required_fields(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """Optional fields can be rejected by a model; only the token limit is required."""
    server.answer(complete_answer(*text_block(0, "Hi")))
    await ask(model, "hi")
    assert server.last.body == {
        "model": "claude",
        "stream": True,
        "max_tokens": DEFAULT_MAX_TOKENS,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }


# --- the prompt cache


async def _cached_body(
    server: ScriptedServer, model: AnthropicModel, *history: Item | str, **more: Any
) -> Any:
    """Return the body of a request with a prompt cache."""
    server.answer(complete_answer(*text_block(0, "ok")))
    request_settings = ModelSettings(prompt_cache="5m", **more)
    await ask(
        model, *history, instructions="Be kind.", tools=(look, add), settings=request_settings
    )
    body = server.last.body
    check(MessageCreateParamsStreaming, body)
    return body


async def test_the_tools_the_system_prompt_and_the_last_messages_are_cached(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """The next request reads them from the cache, as far as it begins with the same blocks."""
    body = await _cached_body(
        server,
        model,
        "one",
        MessageOutputItem(text="two"),
        "three",
        ToolCallItem(call_id="c1", name="add", arguments='{"a": 1}'),
        ToolCallItem(call_id="c2", name="add", arguments='{"a": 2}'),
        ToolCallOutputItem(call_id="c1", output="3"),
        ToolCallOutputItem(call_id="c2", output="4"),
    )
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, {"type": "ephemeral"}]
    assert body["system"] == snapshot(
        [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
    )
    assert [one["content"] for one in body["messages"] if one["role"] == "user"] == snapshot(
        [
            [{"type": "text", "text": "one"}],
            [{"type": "text", "text": "three", "cache_control": {"type": "ephemeral"}}],
            [
                {"type": "tool_result", "tool_use_id": "c1", "content": "3"},
                {
                    "type": "tool_result",
                    "tool_use_id": "c2",
                    "content": "4",
                    "cache_control": {"type": "ephemeral"},
                },
            ],
        ]
    )


async def test_the_marks_of_the_cache_do_not_stay_in_the_definitions_of_tools(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """The definitions are kept for the next request, which can have no cache."""
    await _cached_body(server, model, "one")
    server.answer(complete_answer(*text_block(0, "ok")))
    await ask(model, "one", instructions="Be kind.", tools=(look, add))
    assert "cache_control" not in server.last.content.decode()


async def test_a_longer_lifetime_is_sent_with_each_mark(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    server.answer(complete_answer(*text_block(0, "ok")))
    await ask(model, "one", settings=ModelSettings(prompt_cache="1h"))
    body = server.last.body
    assert "system" not in body
    assert "tools" not in body
    mark = {"type": "ephemeral", "ttl": "1h"}
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "one", "cache_control": mark}
    ]


async def test_the_mark_of_the_application_takes_the_place_of_those_in_messages(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """The API allows four, and uses one of them for this field."""
    extra = {"cache_control": {"type": "ephemeral"}}
    body = await _cached_body(server, model, "one", extra_body=extra)
    assert body["cache_control"] == {"type": "ephemeral"}
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "one"}]}]


async def test_tools_that_the_application_marked_leave_less_marks_for_messages(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """The API rejects a request with more than four."""
    mark = with_metadata(anthropic={"cache_control": {"type": "ephemeral"}})
    tools = tuple(mark(add.with_(name=name)) for name in ("one", "two", "three"))
    server.answer(complete_answer(*text_block(0, "ok")))
    settings = ModelSettings(prompt_cache="5m")
    history = ("one", MessageOutputItem(text="two"), "three")
    await ask(model, *history, instructions="Be kind.", tools=tools, settings=settings)
    assert server.last.content.count(b'"cache_control"') == 4
    assert [list(one["content"][0]) for one in server.last.body["messages"]] == [
        ["type", "text"]
    ] * 3


async def test_a_wrong_lifetime_of_the_cache_is_rejected(model: AnthropicModel) -> None:
    settings = ModelSettings(prompt_cache="2d")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match=r"prompt_cache='2d'\) is not valid: expected '5m' or '1h'"):
        await ask(model, "Hi", settings=settings)


@pytest.mark.parametrize(
    ("chosen", "parallel", "expected"),
    [
        ("auto", None, {"type": "auto"}),
        ("required", True, {"type": "any"}),
        ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
        ("none", False, {"type": "none"}),
        ("add", None, {"type": "tool", "name": "add"}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        (None, True, None),
    ],
)
async def test_tool_choice_is_only_sent_together_with_tools(
    server: ScriptedServer,
    model: AnthropicModel,
    chosen: str | None,
    parallel: bool | None,
    expected: Any,
) -> None:
    """The API rejects a tool choice without tools; the parallel flag is part of the choice."""
    settings = ModelSettings(tool_choice=chosen, parallel_tool_calls=parallel)
    server.answer(complete_answer(), complete_answer())
    await ask(model, "hi", tools=(add,), settings=settings)
    check(MessageCreateParamsStreaming, server.last.body)
    assert server.last.body.get("tool_choice") == expected
    if chosen != "add":
        await ask(model, "hi", settings=settings)
        assert not {"tools", "tool_choice"} & server.last.body.keys()


@pytest.mark.parametrize(
    ("content", "request_", "expected"),
    [
        ("hi", {"settings": ModelSettings(tool_choice="ad"), "tools": (add,)}, r"'ad'.*: add\."),
        (
            "hi",
            {"tools": (FileSearchTool(["vs"]),)},
            r"'file_search'.*'claude' does not have it.*'openai/…'",
        ),
        (" ", {"instructions": "Be kind."}, "has no messages"),
        ([ToolOutputImage(data=b"BM")], {}, r"input\[0\]\.content\[0\]: .*image/webp"),
        ([ToolOutputAudio(data=b"OggS")], {}, r"content\[0\]: .*not accept audio"),
        ([ToolOutputFileContent(data=b"PK\3\4\0")], {}, r"content\[0\]: .*PDF"),
    ],
)
async def test_an_unsupported_request_is_rejected_before_it_is_sent(
    server: ScriptedServer,
    model: AnthropicModel,
    content: Any,
    request_: dict[str, Any],
    expected: str,
) -> None:
    """A mistake of the caller must not look like an error of the provider."""
    with pytest.raises(UserError, match=expected):
        await ask(model, MessageInputItem(content=content), **request_)
    assert not server.requests


async def test_system_and_developer_messages_must_be_text(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """The system prompt cannot contain images."""
    item = MessageInputItem(content=[ToolOutputImage(data=PNG)], role="developer")
    with pytest.raises(
        UserError, match=r"input\[1\]\.content\[0\].*'developer' can only contain text"
    ):
        await ask(model, "hi", item)
    assert not server.requests


async def test_a_tool_without_a_valid_schema_is_left_out_with_a_warning(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """One broken tool must not make all others unusable."""

    @function_tool(metadata={"anthropic": {"name": "other"}})
    def bad(a: int) -> int:
        """Do something."""
        return a

    server.answer(complete_answer(), complete_answer())
    tools = (bad, add)
    with pytest.warns(UserWarning, match="'bad' is left out"):
        await ask(model, "hi", tools=tools)
    await ask(model, "hi", tools=tools)
    assert [tool["name"] for tool in server.last.body["tools"]] == ["add"]


OPEN_FORM = OutputFormat(name="open", schema={"type": "object"}, strict=False)
RECURSIVE = {
    "type": "object",
    "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    "required": ["next"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("form", [OPEN_FORM, OutputFormat(name="chain", schema=RECURSIVE)])
async def test_an_output_schema_that_the_api_does_not_support_is_put_into_the_prompt(
    server: ScriptedServer, model: AnthropicModel, form: OutputFormat
) -> None:
    """A model can still follow a schema that the API rejects."""
    server.answer(complete_answer(*text_block(0, "{}")))
    await ask(model, "hi", instructions="Be kind.", output=form)
    assert "output_config" not in server.last.body
    assert server.last.body["system"].startswith("Be kind.\n\nAnswer only with JSON")
    assert server.last.body["system"].endswith(json.dumps(dict(form.schema)))


async def test_a_model_without_structured_output_gets_the_schema_in_the_prompt(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """Older models do not support structured output; the failed request is made only once."""
    form = OutputFormat(name="form", schema={**RECURSIVE, "properties": {}, "required": []})
    refused = error_event(
        "invalid_request_error", "output_config.format: not supported by this model"
    )
    server.answer(
        json_answer(refused, status=400),
        complete_answer(*text_block(0, "{}")),
        complete_answer(*text_block(0, "{}")),
    )
    await ask(model, "hi", output=form)
    await ask(model, "hi", output=form)
    assert ["output_config" in one.body for one in server.requests] == [True, False, False]
    assert "Answer only with JSON" in server.last.body["system"]
    server.answer(json_answer(refused, status=400))
    own = ModelSettings(extra_body={"output_config": {"format": {"type": "json_schema"}}})
    with pytest.raises(ModelError, match="not supported by this model"):
        await ask(model, "hi", settings=own)


async def test_thinking_of_another_provider_is_left_out_if_it_is_refused(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """Other servers offer this API too, and a conversation can move from one to the other."""

    def thought(signature: str) -> ReasoningItem:
        return ReasoningItem(text="hm", provider_data={"anthropic": {"signature": signature}})

    refused = error_event(
        "invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block"
    )
    history = [
        *("hi", thought("of another"), MessageOutputItem(text="yes")),
        *("why", thought("own"), MessageOutputItem(text="so")),
        "go on",
    ]
    server.answer(json_answer(refused, status=400), complete_answer(*text_block(0, "ok")))
    recorded = await ask(model, *history)
    assert recorded.items == [MessageOutputItem(text="ok")]
    kinds = [[part["type"] for part in one["content"]] for one in server.last.body["messages"]]
    assert kinds == [["text"], ["text"], ["text"], ["thinking", "text"], ["text"]]
    server.answer(complete_answer(*text_block(0, "ok")))
    await ask(model, *history)
    assert server.last.body["messages"] == server.requests[-2].body["messages"]
    assert len(server.requests) == 3  # later requests are not refused first
    server.answer(json_answer(refused, status=400))
    with pytest.raises(ModelError, match="Invalid `signature`"):
        await ask(model, "hi")


async def test_an_answer_that_is_not_streamed_is_read(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """Some servers and proxies ignore that a stream is requested."""
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "text", "text": "Hello", "citations": None},
        {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
    ]
    server.answer(json_answer({**BEGUN["message"], "content": content, "stop_reason": "tool_use"}))
    recorded = await ask(model, "hi", tools=(add,))
    assert recorded.response is not None
    assert recorded.items == [
        ReasoningItem(text="Hm.", provider_data={"anthropic": {"signature": "s"}}),
        MessageOutputItem(text="Hello"),
        ToolCallItem(call_id="t1", name="add", arguments='{"a": 1}'),
    ]
    assert recorded.calls == recorded.items[2:]
    assert recorded.response.finish_reason == "tool_calls"
    assert recorded.response.usage.output_tokens == 1
    assert "Hello" in [event.get("delta") for event in recorded.emitted]


async def test_thinking_at_the_end_of_an_answer_that_was_cut_off_is_not_sent_back(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """The API rejects a message that ends with thinking, so no later request would succeed."""
    thinking = ReasoningItem(text="hm", provider_data={"anthropic": {"signature": "s"}})
    server.answer(complete_answer(*text_block(0, "ok")))
    await ask(model, "hi", MessageOutputItem(text="Well,"), thinking, "go on")
    assert server.last.body["messages"][1]["content"] == [{"type": "text", "text": "Well,"}]


async def test_the_summary_of_the_provider_is_sent_back(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """The provider reads its summary in place of the conversation before it."""
    summary = {"content": "They said hi.", "encrypted_content": "e"}
    events = [
        start(0, "compaction", content=None),
        delta(0, "compaction_delta", **summary),
        stop(0),
    ]
    server.answer(complete_answer(*events, *text_block(1, "ok")), complete_answer())
    recorded = await ask(model, "hi")
    await ask(model, "hi", *recorded.items, "go on")
    assert server.last.body["messages"][1]["content"][0] == {"type": "compaction", **summary}


# --- answers


async def test_an_answer_is_streamed_and_returned_as_a_whole(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """Streamed and recorded content must be the same."""
    server.answer(
        complete_answer(
            start(0, "thinking", thinking="", signature=""),
            delta(0, "thinking_delta", thinking="Hm, "),
            delta(0, "thinking_delta", thinking="ah."),
            delta(0, "signature_delta", signature="c2ln"),
            stop(0),
            start(1, "redacted_thinking", data="eHh4"),
            stop(1),
            *text_block(2, "Hel", "lo"),
        )
    )
    recorded = await ask(model, "hi")
    assert recorded.items == [
        ReasoningItem(text="Hm, ah.", provider_data={"anthropic": {"signature": "c2ln"}}),
        ReasoningItem(provider_data={"anthropic": {"redacted": "eHh4"}}),
        MessageOutputItem(text="Hello"),
    ]
    assert recorded.emitted == snapshot(
        [
            {"type": "response.reasoning_summary_text.delta", "delta": "Hm, "},
            {"type": "response.reasoning_summary_text.delta", "delta": "ah."},
            {"type": "response.output_item.added", "item": {"type": "message", "id": None}},
            {"type": "response.output_text.delta", "delta": "Hel"},
            {"type": "response.output_text.delta", "delta": "lo"},
        ]
    )
    assert recorded.response is not None
    assert recorded.response.usage == Usage(
        requests=1,
        input_tokens=35,
        output_tokens=9,
        cached_input_tokens=20,
        cache_write_tokens=5,
        cache_write_1h_tokens=2,
        reasoning_tokens=4,
    )
    assert recorded.response.finish_reason == "stop"
    assert recorded.response.response_id == "msg_1"
    assert recorded.response.model == "claude-4"
    assert isinstance(recorded.response.raw, Message)
    assert recorded.response.raw.content[0].type == "thinking"
    assert recorded.response.raw.usage.output_tokens == 9


async def test_parallel_calls_are_passed_on_while_the_answer_is_still_streaming(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """A slow second call must not delay the first."""
    gate, handed = threading.Event(), asyncio.Event()
    second = tool_use(2, "t2", "look", '{"place": "x"}')
    server.answer(
        complete_answer(
            *text_block(0, "Let me see."),
            *tool_use(1, "t1", "add", '{"a": ', "1}"),
            second[0],
            gate,
            *second[1:],
            *tool_use(3, "t1", "add"),
            reason="tool_use",
        )
    )
    calls: list[ToolCallItem] = []

    def take(call: ToolCallItem) -> None:
        calls.append(call)
        handed.set()

    request = ModelRequest(input=[MessageInputItem(content="hi")], tools=(add, look), on_call=take)
    task = asyncio.create_task(model.respond(request, lambda _: None))
    await asyncio.wait_for(handed.wait(), 5)
    assert calls == [ToolCallItem(call_id="t1", name="add", arguments='{"a": 1}')]
    gate.set()
    response = await task
    assert response.finish_reason == "tool_calls"
    assert list(response.items[1:]) == calls
    assert [call.arguments for call in calls] == ['{"a": 1}', '{"place": "x"}', "{}"]
    assert len({call.call_id for call in calls}) == 3, "ids that a server repeats are made up"


@pytest.mark.parametrize(
    ("reason", "more", "finish", "items"),
    [
        ("end_turn", {}, "stop", [MessageOutputItem(text="Hi")]),
        ("stop_sequence", {"stop_sequence": "x"}, "stop", [MessageOutputItem(text="Hi")]),
        ("something_new", {}, "stop", [MessageOutputItem(text="Hi")]),
        ("max_tokens", {}, "length", [MessageOutputItem(text="Hi")]),
        ("model_context_window_exceeded", {}, "length", [MessageOutputItem(text="Hi")]),
        ("refusal", {}, "refusal", [MessageOutputItem(refusal="Hi")]),
        (
            "refusal",
            {"stop_details": {"type": "refusal", "category": "bio", "explanation": "Not that."}},
            "refusal",
            [MessageOutputItem(refusal="Not that.")],
        ),
    ],
)
async def test_an_answer_has_a_finish_reason(
    server: ScriptedServer,
    model: AnthropicModel,
    reason: str,
    more: dict[str, Any],
    finish: str,
    items: list[Item],
) -> None:
    """The loop handles truncated answers and refusals differently."""
    server.answer(complete_answer(*text_block(0, "Hi"), reason=reason, **more))
    recorded = await ask(model, "hi")
    assert recorded.response is not None
    assert (recorded.response.finish_reason, recorded.items) == (finish, items)


@pytest.mark.parametrize("pieces", [(), ('{"place": "Ro',)])
async def test_a_truncated_call_is_never_passed_on(
    server: ScriptedServer, model: AnthropicModel, pieces: tuple[str, ...]
) -> None:
    """A tool must not run with half of its arguments, nor with none instead of some."""
    server.answer(complete_answer(*tool_use(0, "t1", "look", *pieces), reason="max_tokens"))
    recorded = await ask(model, "hi", tools=(look,))
    assert recorded.calls == []
    assert recorded.items == [
        ToolCallItem(call_id="t1", name="look", arguments="".join(pieces) or "{}")
    ]


async def test_a_refusal_discards_the_rest_of_the_answer(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """Text and calls from before the refusal must not be used."""
    server.answer(
        complete_answer(*tool_use(0, "t1", "add", '{"a": 1}'), reason="refusal"), complete_answer()
    )
    recorded = await ask(model, "hi", tools=(add,))
    assert recorded.items == [MessageOutputItem(refusal="The model refused to answer.")]
    assert recorded.emitted[-1]["type"] == "response.refusal.delta"
    empty = await ask(model, "hi")
    assert empty.items == []


async def test_a_call_can_arrive_in_one_piece(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """Servers that imitate the API do not always stream arguments or send ids."""
    block = start(0, "tool_use", id="", name="add", input={"a": 1})
    server.answer(complete_answer(block, stop(0), reason="tool_use"))
    recorded = await ask(model, "hi", tools=(add,))
    (call,) = recorded.calls
    assert recorded.items == [call]
    assert (call.arguments, call.call_id[:5]) == ('{"a": 1}', "call_")
    assert recorded.emitted[-1] == {
        "type": "response.function_call_arguments.delta",
        "delta": '{"a": 1}',
        "call_id": call.call_id,
    }


# --- tools that the provider runs

CITATION = {
    "type": "web_search_result_location",
    "cited_text": "sunny",
    "encrypted_index": "ZW5j",
    "title": None,
    "url": "https://example.com",
}
FOUND = {
    "type": "web_search_result",
    "url": "https://example.com",
    "title": "W",
    "encrypted_content": "ZW5j",
    "page_age": None,
}


async def test_a_paused_turn_is_continued_and_its_server_tool_results_are_sent_back(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """The API expects the results of server tools unchanged in the next turn."""
    searching = [
        start(0, "server_tool_use", id="srv_1", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json='{"query": "weather"}'),
        stop(0),
    ]
    found = [
        start(0, "web_search_tool_result", tool_use_id="srv_1", content=[FOUND]),
        stop(0),
        *text_block(1, "It is "),
        start(2, "text", text="", citations=[]),
        delta(2, "citations_delta", citation=CITATION),
        delta(2, "text_delta", text="sunny"),
        stop(2),
        *text_block(3, "."),
    ]
    server.answer(
        complete_answer(*searching, reason="pause_turn"),
        complete_answer(*found),
        complete_answer(*text_block(0, "Yes.")),
    )
    extra = {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}
    settings = ModelSettings(extra_body=extra)
    recorded = await ask(model, "weather?", settings=settings)
    use = {
        "type": "server_tool_use",
        "id": "srv_1",
        "name": "web_search",
        "input": {"query": "weather"},
    }
    assert server.last.body["messages"][1:] == [{"role": "assistant", "content": [use]}]
    assert recorded.response is not None
    assert recorded.response.finish_reason == "stop"
    assert recorded.response.usage.requests == 2
    assert recorded.response.usage.output_tokens == 18
    assert [(type(item), getattr(item, "kind", None)) for item in recorded.items] == [
        (ToolCallItem, "hosted"),
        (MessageOutputItem, None),
    ]
    assert isinstance(recorded.items[-1], MessageOutputItem)
    assert recorded.items[-1].text == "It is sunny."
    begun = [one["item"] for one in recorded.emitted if one["type"] == "response.output_item.added"]
    assert begun == [
        {"type": "tool_call", "kind": "hosted", "call_id": "srv_1", "name": "web_search"},
        {"type": "message", "id": None},
    ]
    kept: list[Any] = [
        item_from_dict(json.loads(json.dumps(item.to_dict()))) for item in recorded.items
    ]
    assert kept == recorded.items
    await ask(model, "weather?", *kept, "sure?", settings=settings)
    check(MessageCreateParamsStreaming, server.last.body)
    assert server.last.body["messages"][1]["content"] == [
        use,
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [FOUND]},
        {"type": "text", "text": "It is "},
        {"type": "text", "text": "sunny", "citations": [CITATION]},
        {"type": "text", "text": "."},
    ]


# --- histories


async def test_a_conversation_is_sent_in_the_order_of_the_api(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """The API rejects tool results that do not directly follow their calls."""
    server.answer(complete_answer(*text_block(0, "Bye")))
    signed = {"anthropic": {"signature": "c2ln"}}
    history: list[Item] = [
        MessageInputItem(content="hi"),
        ReasoningItem(text="Hm.", provider_data=signed),
        ReasoningItem(provider_data={"anthropic": {"redacted": "eHh4"}}),
        ReasoningItem(text="Foreign.", provider_data={"openai": {"encrypted_content": "x"}}),
        MessageOutputItem(text="Let me see."),
        ToolCallItem(call_id="t1", name="look", arguments='{"place": "x"}'),
        ToolCallItem(call_id="t 2", name="my.tool", arguments="{broken"),
        ToolCallItem(call_id="h1", name="web_search_call", kind="hosted"),
        ToolCallItem(call_id="t3", name="add", arguments=""),
        ToolCallOutputItem(
            call_id="t1",
            name="look",
            output=[
                ToolOutputText("x"),
                ToolOutputText(""),
                ToolOutputImage(data=PNG),
                ToolOutputAudio(data=b"OggS"),
            ],
        ),
        ToolCallOutputItem(
            call_id="t 2",
            output=[ToolOutputText("no"), ToolOutputImage(data=PNG)],
            status="invalid_args",
        ),
        MessageInputItem(content="go on"),
        MessageInputItem(content="please"),
        ToolCallItem(call_id="t1", name="add", arguments='{"a": 1}'),
        ToolCallOutputItem(call_id="t1", output="3"),
        ToolCallOutputItem(call_id="nobody's", output="4"),
        MessageOutputItem(refusal="No."),
        MessageInputItem(content="bye"),
        ReasoningItem(text="Alone.", provider_data=signed),
    ]
    await ask(model, *history)
    check(MessageCreateParamsStreaming, server.last.body)
    assert server.last.body["messages"] == snapshot(
        [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                    {"type": "redacted_thinking", "data": "eHh4"},
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": "t1", "name": "look", "input": {"place": "x"}},
                    {
                        "type": "tool_use",
                        "id": "call_b670b20a5d550a21dc204da91bd1e568",
                        "name": "my_tool",
                        "input": {"invalid_json": "{broken"},
                    },
                    {"type": "tool_use", "id": "t3", "name": "add", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "content": [
                            {"type": "text", "text": "x"},
                            {
                                "type": "image",
                                "source": {
                                    "type": "base64",
                                    "media_type": "image/png",
                                    "data": "iVBORw0KGgoA",
                                },
                            },
                            {
                                "type": "text",
                                "text": "[audio: 4 bytes of audio/ogg, not shown]",
                            },
                        ],
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_b670b20a5d550a21dc204da91bd1e568",
                        "is_error": True,
                        "content": [
                            {"type": "text", "text": "no"},
                            {
                                "type": "text",
                                "text": "[image: 9 bytes of image/png, not shown]",
                            },
                        ],
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": "t3",
                        "content": "No output was recorded.",
                        "is_error": True,
                    },
                    {"type": "text", "text": "go on"},
                    {"type": "text", "text": "please"},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "tool_use",
                        "id": "call_8c6bf1de2f4c4b9174960b69bf0073c9",
                        "name": "add",
                        "input": {"a": 1},
                    }
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_8c6bf1de2f4c4b9174960b69bf0073c9",
                        "content": "3",
                    }
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "No."}]},
            {"role": "user", "content": [{"type": "text", "text": "bye"}]},
        ]
    )


async def test_thinking_and_calls_survive_serialization(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """The API checks the signature of each thinking block against its text."""
    server.answer(
        complete_answer(
            start(0, "thinking", thinking="", signature=""),
            delta(0, "thinking_delta", thinking="Hm."),
            delta(0, "signature_delta", signature="c2ln"),
            stop(0),
            start(
                1,
                "tool_use",
                id="t1",
                name="add",
                input={},
                caller={"type": "code_execution_20250825", "tool_id": "srv_1"},
            ),
            delta(1, "input_json_delta", partial_json='{"a": 1}'),
            stop(1),
            reason="tool_use",
        ),
        complete_answer(*text_block(0, "3")),
    )
    recorded = await ask(model, "1 and 2?", tools=(add,))
    items = [item_from_dict(json.loads(json.dumps(item.to_dict()))) for item in recorded.items]
    assert items == recorded.items
    history: list[Any] = [*items, ToolCallOutputItem(call_id="t1", output="3")]
    await ask(model, "1 and 2?", *history, tools=(add,))
    check(MessageCreateParamsStreaming, server.last.body)
    assert server.last.body["messages"][1:] == snapshot(
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                    {
                        "type": "tool_use",
                        "id": "t1",
                        "name": "add",
                        "input": {"a": 1},
                        "caller": {"tool_id": "srv_1", "type": "code_execution_20250825"},
                    },
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "3"}],
            },
        ]
    )


blocks_ = st.lists(
    st.one_of(
        st.builds(ToolOutputText, st.text()),
        st.builds(ToolOutputImage, data=st.just(PNG)),
        st.builds(ToolOutputImage, url=st.text()),
        st.builds(ToolOutputFileContent, url=st.text(), filename=st.none() | st.text()),
        st.builds(ToolOutputFileContent, file_id=st.text()),
    ),
    max_size=3,
)
outputs_ = blocks_ | st.lists(
    st.builds(ToolOutputFileContent, data=st.binary(), filename=st.none() | st.text())
    | st.builds(ToolOutputImage, data=st.binary()),
    max_size=2,
)
own_: st.SearchStrategy[Any] = st.sampled_from(
    [None, {"anthropic": {"signature": "c2ln"}}, {"anthropic": {}}]
)
histories = st.lists(
    st.one_of(
        st.builds(MessageInputItem, content=st.text() | blocks_),
        st.builds(MessageOutputItem, text=st.text(), provider_data=own_),
        st.builds(MessageOutputItem, refusal=st.text(min_size=1)),
        st.builds(ReasoningItem, text=st.text(), provider_data=own_),
        st.builds(
            ToolCallItem,
            call_id=st.sampled_from(["a", "b", ""]),
            name=st.text(),
            arguments=st.text() | st.just('{"a": 1}'),
            kind=st.sampled_from(["function", "local_shell", "hosted"]),
            provider_data=own_,
        ),
        st.builds(
            ToolCallOutputItem,
            call_id=st.sampled_from(["a", "b", ""]),
            output=st.text() | outputs_,
            status=st.sampled_from(["ok", "tool_error"]),
        ),
    ),
    max_size=8,
)


@given(histories)
def test_any_history_is_converted_to_a_valid_request(history: list[Item]) -> None:
    """Histories can come from anywhere; the API must accept what is sent."""
    before, seen = None, set[str]()
    called_: list[str] = []
    for message in _anthropic_request._messages(history):
        check(MessageParam, message)
        assert message["content"]
        assert message["role"] != before, "user and assistant take turns"
        before = message["role"]
        content = message["content"]
        assert all(one["text"].strip() for one in content if one["type"] == "text")
        answered = [one["tool_use_id"] for one in content if one["type"] == "tool_result"]
        assert answered == called_, "each call has its result in the next message"
        assert all(one["type"] == "tool_result" for one in content[: len(answered)])
        called_ = [one["id"] for one in content if one["type"] == "tool_use"]
        assert not seen & set(called_), "no two calls share an id"
        seen |= set(called_)
    assert called_ == []


# --- faults


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable", "expected"),
    [
        (429, error_event("rate_limit_error", "slow down"), ModelError, True, "slow down"),
        (429, error_event("rate_limit_error", "Too many tokens, wait"), ModelError, True, "wait"),
        (529, error_event("overloaded_error", "Overloaded"), ModelError, True, "529: Overloaded"),
        (500, error_event("api_error", "oops"), ModelError, True, "oops"),
        (502, "<html>bad gateway</html>", ModelError, True, "bad gateway"),
        (
            401,
            error_event("authentication_error", f"bad {KEY}"),
            ModelError,
            False,
            "bad .*_API_KEY",
        ),
        (403, error_event("permission_error", "no"), ModelError, False, "access to this model"),
        (402, error_event("billing_error", "pay"), ModelError, False, "402: pay"),
        (404, error_event("not_found_error", "model: x"), ModelError, False, "a model 'claude'"),
        (400, error_event("invalid_request_error", "odd"), ModelError, False, "400: odd"),
        (400, {"detail": "odd one"}, ModelError, False, "odd one"),
        (
            400,
            error_event("invalid_request_error", "temperature: Extra inputs are not permitted"),
            ModelError,
            False,
            "Remove it from ModelSettings",
        ),
        (
            413,
            error_event("request_too_large", "Request exceeds the maximum size"),
            ContextWindowExceeded,
            False,
            "maximum size",
        ),
        (
            400,
            error_event(
                "invalid_request_error", "prompt is too long: 205000 tokens > 200000 maximum"
            ),
            ContextWindowExceeded,
            False,
            "205000",
        ),
        (
            400,
            error_event(
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 199 + 21 > 204",
            ),
            ContextWindowExceeded,
            False,
            "context limit",
        ),
        (
            400,
            error_event(
                "invalid_request_error", "tools.1.custom.input_schema: JSON schema is invalid"
            ),
            ToolRefusedError,
            False,
            "'look'",
        ),
        (
            400,
            error_event("invalid_request_error", "Schema of tool 'add' is too complex"),
            ToolRefusedError,
            False,
            "'add'",
        ),
    ],
)
async def test_an_api_error_is_mapped_to_a_model_error(
    server: ScriptedServer,
    model: AnthropicModel,
    status: int,
    body: Any,
    kind: type[ModelError],
    retryable: bool,
    expected: str,
) -> None:
    """The loop decides by these fields whether to retry, to compact, or to leave out a tool."""
    server.answer(json_answer(body, status=status))
    with pytest.raises(ModelError, match=expected) as caught:
        await ask(model, "hi", tools=(add, look))
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.retryable) == (status, retryable)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "retryable", "after"),
    [
        ({"retry-after": "7"}, True, 7),
        ({"retry-after": "7", "retry-after-ms": "1500"}, True, 1.5),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, True, 0),
        ({"retry-after": "soon"}, True, None),
        ({"x-should-retry": "false"}, False, None),
    ],
)
async def test_the_retry_after_header_is_reported(
    server: ScriptedServer,
    model: AnthropicModel,
    headers: dict[str, str],
    retryable: bool,
    after: float | None,
) -> None:
    """Retrying earlier only prolongs the wait."""
    server.answer(json_answer(error_event("rate_limit_error", "no"), status=429, headers=headers))
    with pytest.raises(ModelError) as caught:
        await ask(model, "hi")
    assert (caught.value.retryable, caught.value.retry_after) == (retryable, after)


HALF = [BEGUN, start(0, "text", text=""), delta(0, "text_delta", text="Hel")]


@pytest.mark.parametrize(
    ("answer", "status", "retryable", "expected"),
    [
        (sse_answer(*HALF), None, True, "ended before"),
        (sse_answer(*HALF, stop(0), {"type": "message_stop"}), None, True, "ended before"),
        (sse_answer(*HALF, cut=True), None, True, "was interrupted"),
        (sse_answer(*HALF, b"event: message_delta\ndata: {garbage\n\n"), None, True, "JSON"),
        (sse_answer(*HALF, b"event: x\ndata: \xff\xfe\n\n"), None, True, "UnicodeDecodeError"),
        (sse_answer(*HALF, delta(4, "text_delta", text="x")), None, True, "block 4"),
        (
            sse_answer(*HALF, error_event("overloaded_error", "Overloaded")),
            529,
            True,
            "ended its response with an error: Overloaded",
        ),
        (
            sse_answer(*HALF, error_event("something_new", "Oh")),
            500,
            True,
            "ended its response with an error: Oh",
        ),
        (
            sse_answer(*HALF, error_event("invalid_request_error", "odd")),
            400,
            False,
            r"odd \(invalid_request_error\)",
        ),
        (sse_answer(*HALF, b"event: error\ndata: oh no\n\n"), 500, True, "oh no"),
        (
            sse_answer(
                BEGUN,
                *tool_use(0, "t1", "add", "{}"),
                *text_block(1, "and"),
                delta(0, "input_json_delta", partial_json="x"),
            ),
            None,
            True,
            "continued after its end",
        ),
        (Answer(silent=True), None, True, "Check that the server runs"),
        (json_answer({"id": "x", "content": 7}), None, True, r'a stream of events, got {"id": "x"'),
        (json_answer(error_event("overloaded_error", "Busy")), None, True, "got .*Busy"),
        (Answer(pieces=[b"<p>Log in</p>"]), None, True, "got <p>Log in</p>"),
    ],
)
async def test_a_broken_stream_raises_an_error(
    server: ScriptedServer,
    model: AnthropicModel,
    answer: Answer,
    status: int | None,
    retryable: bool,
    expected: str,
) -> None:
    """A partial answer must not pass for a complete one."""
    server.answer(answer)
    with pytest.raises(ModelError, match=expected) as caught:
        await ask(model, "hi")
    assert type(caught.value) is ModelError
    assert (caught.value.status, caught.value.retryable) == (status, retryable)


async def test_a_connection_error_after_the_answer_is_ignored(
    server: ScriptedServer, model: AnthropicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is complete; a second request would cost the same again."""
    monkeypatch.setattr("agents_tools.models._http._TRAILING_TIMEOUT", 0.1)
    events = [BEGUN, *text_block(0, "Hi"), message_end()]
    server.answer(sse_answer(*events, cut=True), sse_answer(*events, threading.Event()))
    for _ in range(2):
        recorded = await ask(model, "hi")
        assert recorded.items == [MessageOutputItem(text="Hi")]
        assert recorded.response is not None
        assert recorded.response.usage.output_tokens == 9


async def test_a_model_that_pauses_too_often_raises_an_error(
    server: ScriptedServer, model: AnthropicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each continuation sends the whole conversation again."""
    monkeypatch.setattr(adapter, "_MAX_PAUSES", 3)
    server.answer(*[complete_answer(*text_block(0, "Hm"), reason="pause_turn")] * 3)
    with pytest.raises(ModelError, match="paused its response 3 times"):
        await ask(model, "hi")


async def test_an_unreachable_server_is_reported() -> None:
    """A wrong address is a common mistake of new users."""
    nowhere = AnthropicModel("claude", base_url="http://127.0.0.1:9")
    with pytest.raises(
        ModelError, match=r"claude could not be reached.*Check that the server runs"
    ):
        await ask(nowhere, "hi")


async def test_a_timeout_is_retryable(server: ScriptedServer, model: AnthropicModel) -> None:
    """The limit applies to the whole answer, as a slow stream never idles."""
    server.answer(sse_answer(*HALF, threading.Event()))
    with pytest.raises(ModelError, match=r"did not finish.*within 0\.3 s") as caught:
        await ask(model, "hi", settings=ModelSettings(timeout=0.3))
    assert caught.value.retryable
    assert await asyncio.to_thread(server.hung_up.wait, 5)


async def test_a_timeout_of_the_users_client_is_retryable(server: ScriptedServer) -> None:
    """The user's client has its own limits, and stays open because the user owns it."""
    gate = threading.Event()

    def slow(request: Recorded) -> Answer:
        gate.wait(5)
        return complete_answer()

    server.answer(slow)
    async with anthropic.AsyncAnthropic(
        api_key=KEY, base_url=server.url, timeout=0.1, max_retries=0
    ) as client:
        model = AnthropicModel("claude", client=client)
        with pytest.raises(ModelError, match="the request timed out") as caught:
            await ask(model, "hi")
        gate.set()
        assert caught.value.retryable
        assert not client.is_closed()


async def test_invalid_headers_are_a_user_error(model: AnthropicModel) -> None:
    """The same request would fail each time, so it must not be retried."""
    with pytest.raises(UserError, match=r"cannot be sent.*extra_headers"):
        await ask(model, "hi", settings=ModelSettings(extra_headers={"x": "a\nb"}))


async def test_a_run_with_tools_works_end_to_end(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """The adapter and the loop must agree on the dialect, ids, retries and images."""

    class Sum(BaseModel):
        total: int = Field(ge=0)

    server.answer(
        sse_answer(BEGUN, error_event("overloaded_error", "Overloaded")),
        complete_answer(
            *tool_use(0, "t1", "add", '{"a": 1}'),
            *tool_use(1, "t2", "look", '{"place": "here"}'),
            *tool_use(2, "t3", "look", "{}"),
            reason="tool_use",
        ),
        complete_answer(*text_block(0, '{"total": 3}')),
    )
    agent = Agent(
        name="adder", instructions="Add.", tools=[add, look], model=model, output_type=Sum
    )
    result = await Runner.run(agent, "1 and 2?", run_config=RunConfig(retry_backoff=0.01))
    assert result.final_output == Sum(total=3)
    assert result.usage.requests == 2
    check(MessageCreateParamsStreaming, server.last.body)
    first, second, third = server.last.body["messages"][2]["content"]
    assert first == {"type": "tool_result", "tool_use_id": "t1", "content": "3"}
    assert second["content"][1]["source"]["data"] == PNG_TEXT
    assert third["is_error"] is True
    assert "place" in third["content"]


async def test_cancelling_closes_the_connection(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """A request that was cancelled must not keep using tokens."""
    begun = asyncio.Event()
    server.answer(sse_answer(*HALF, threading.Event()))
    request = ModelRequest(input=[MessageInputItem(content="hi")])
    task = asyncio.create_task(model.respond(request, lambda _: begun.set()))
    await asyncio.wait_for(begun.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.hung_up.wait, 5)


# --- address and key


async def test_a_missing_key_is_reported_at_the_first_request(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Creating a model must work without a key; the message must contain the remedy."""
    model = load_model("claude-nonesuch")
    assert repr(model) == "AnthropicModel('claude-nonesuch')"
    with pytest.raises(UserError, match="ANTHROPIC_API_KEY"):
        await ask(model, "hi")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    server.answer(*[complete_answer(*text_block(0, "Hi"))] * 2)
    await ask(model, "hi")  # a self-hosted server may not need a key
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-0123456789")
    await ask(model, "hi")
    assert server.last.headers["authorization"] == "Bearer token-0123456789"
    assert server.last.body["model"] == "claude-nonesuch"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "localhost")
    with pytest.raises(UserError, match="ANTHROPIC_BASE_URL: expected a URL"):
        await ask(model, "hi")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"client": object()}, "expects an anthropic.AsyncAnthropic, got object"),
        ({"client": anthropic.Anthropic(api_key=KEY)}, "got Anthropic"),
        (
            {"client": anthropic.AsyncAnthropic(api_key=KEY), "api_key": KEY},
            "cannot be combined with base_url= or api_key=",
        ),
        ({"base_url": "localhost"}, "base_url=: expected a URL"),
    ],
)
def test_invalid_model_options_are_rejected(options: dict[str, Any], expected: str) -> None:
    """The error is raised where the model is created."""
    with pytest.raises(UserError, match=expected):
        AnthropicModel("claude", **options)


def test_each_event_loop_has_its_own_connections(
    server: ScriptedServer, model: AnthropicModel
) -> None:
    """Connections of a closed loop break, and count as leaked."""
    server.answer(*[complete_answer(*text_block(0, "Hi"))] * 3)

    async def twice() -> None:
        await ask(model, "hi")
        await ask(model, "hi")

    asyncio.run(twice())
    asyncio.run(_once(model))
    assert server.connections == 2


async def _once(model: AnthropicModel) -> None:
    await ask(model, "hi")
