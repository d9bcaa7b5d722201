"""Models over chat completions, through the official client and a real server."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import openai
import pytest
from hypothesis import given, strategies as st
from inline_snapshot import snapshot
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

from agents_tools import function_tool
from agents_tools.agents import (
    Agent,
    ModelRequest,
    ModelSettings,
    OutputFormat,
    RunConfig,
    Runner,
    WebSearchTool,
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
    input_items,
    item_from_dict,
)
from agents_tools.errors import (
    ContextWindowExceeded,
    ModelError,
    ToolRefusedError,
    UserError,
    UserValueError,
)
from agents_tools.models import openai_chat
from agents_tools.models.openai_chat import OpenAIChatModel
from tests.models.asking import RecordedAnswer, ask, check
from tests.models.http_server import Answer, json_answer, sse_answer

if TYPE_CHECKING:
    from tests.models.http_server import Recorded, ScriptedServer

KEY = "own-key-0123456789"
PNG = b"\x89PNG\r\n\x1a\n\0"
WAV = b"RIFF\0\0\0\0WAVE"


@function_tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@function_tool
def look(place: str) -> str:
    """Look at a place."""
    return place


@pytest.fixture
def model(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> OpenAIChatModel:
    """Return a model that sends its requests to the scripted server."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return OpenAIChatModel("qwen", base_url=f"{server.url}/v1", api_key=KEY)


# --- events that a server sends


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "qwen-7b",
        "choices": [choice],
        **more,
    }


def call_delta(index: int | None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """Return a delta of a call, with `name` and `id` in the keyword arguments."""
    function = {"arguments": arguments}
    if "name" in more:
        function["name"] = more.pop("name")
    return {"index": index, "function": function, **more}


def calls(*pieces: dict[str, Any]) -> dict[str, Any]:
    return chunk({"content": None, "tool_calls": list(pieces)})


USAGE = {
    "prompt_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 6},
    "completion_tokens": 9,
    "completion_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 29,
}


def complete_answer(*events: Any, finish: str = "stop", usage: Any = USAGE) -> Answer:
    last = {**chunk(), "choices": [], "usage": usage}
    return sse_answer(*events, chunk(finish=finish), last, done=True)


def calls_of(recorded: RecordedAnswer) -> list[tuple[str, str, str]]:
    return [
        (item.call_id, item.name, item.arguments)
        for item in recorded.items
        if isinstance(item, ToolCallItem)
    ]


# --- requests


async def test_a_request_uses_the_field_names_of_the_api(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """The API rejects an unknown field, or silently ignores it."""
    server.answer(complete_answer(chunk({"content": "{}"})))
    settings = ModelSettings(
        temperature=0.5,
        top_p=0.9,
        max_tokens=100,
        tool_choice="add",
        parallel_tool_calls=False,
        reasoning_effort="low",
        stop=("END",),
        extra_headers={"x-team": "blue"},
        extra_body={"seed": 7, "stream_options": {"include_obfuscation": False}, "stream": False},
    )
    form = OutputFormat(
        name="the answer",
        schema={
            "type": "object",
            "properties": {},
            "required": [],
            "additionalProperties": False,
        },
    )
    blocks: list[ContentBlock] = [
        ToolOutputText("What is this?"),
        ToolOutputImage(data=PNG, detail="low"),
        ToolOutputImage(url="https://example.com/a.png"),
        ToolOutputAudio(data=WAV),
        ToolOutputFileContent(data=b"%PDF-1"),
        ToolOutputFileContent(data=b"plain", filename="a.txt"),
        ToolOutputFileContent(file_id="file-2"),
    ]
    await ask(
        model,
        MessageInputItem(content=blocks),
        MessageInputItem(content="Be brief.", role="developer"),
        instructions="You are kind.",
        tools=(add,),
        settings=settings,
        output=form,
    )
    check(CompletionCreateParamsStreaming, server.last.body)
    assert server.last.path == "/v1/chat/completions"
    assert server.last.headers["authorization"] == f"Bearer {KEY}"
    assert server.last.headers["x-team"] == "blue"
    assert server.last.body == snapshot(
        {
            "model": "qwen",
            "stream": True,
            "messages": [
                {"role": "system", "content": "You are kind."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What is this?"},
                        {
                            "type": "image_url",
                            "image_url": {
                                "url": "data:image/png;base64,iVBORw0KGgoA",
                                "detail": "low",
                            },
                        },
                        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                        {
                            "type": "input_audio",
                            "input_audio": {"data": "UklGRgAAAABXQVZF", "format": "wav"},
                        },
                        {
                            "type": "file",
                            "file": {
                                "filename": "file.pdf",
                                "file_data": "data:application/pdf;base64,JVBERi0x",
                            },
                        },
                        {
                            "type": "text",
                            "text": """\
[a.txt]
plain\
""",
                        },
                        {"type": "file", "file": {"file_id": "file-2"}},
                    ],
                },
                {"role": "system", "content": "Be brief."},
            ],
            "stream_options": {"include_usage": True, "include_obfuscation": False},
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "add",
                        "description": "Add two numbers.",
                        "parameters": {
                            "type": "object",
                            "properties": {
                                "a": {"type": "integer"},
                                "b": {
                                    "type": ["integer", "null"],
                                    "description": "(null: default 2)",
                                },
                            },
                            "required": ["a", "b"],
                            "additionalProperties": False,
                        },
                        "strict": True,
                    },
                }
            ],
            "parallel_tool_calls": False,
            "tool_choice": {"type": "function", "function": {"name": "add"}},
            "temperature": 0.5,
            "top_p": 0.9,
            "max_tokens": 100,
            "reasoning_effort": "low",
            "stop": ["END"],
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": "the_answer",
                    "schema": {
                        "type": "object",
                        "properties": {},
                        "required": [],
                        "additionalProperties": False,
                    },
                    "strict": True,
                },
            },
            "seed": 7,
        }
    )


async def test_openai_itself_gets_its_current_field_names(server: ScriptedServer) -> None:
    """Its current models reject `max_tokens`, and distinguish developer and system messages."""
    # The server acts as OpenAI behind a proxy, so that the address is the real one.
    tunnel = openai.DefaultAsyncHttpxClient(proxy=server.url)
    async with openai.AsyncOpenAI(
        api_key=KEY, base_url="http://api.openai.com/v1", http_client=tunnel, max_retries=0
    ) as client:
        server.answer(complete_answer(chunk({"content": "Hi"})))
        model = OpenAIChatModel("gpt-5", client=client)
        developer = MessageInputItem(content="Be brief.", role="developer")
        await ask(model, developer, "hi", settings=ModelSettings(max_tokens=9))
    body = server.last.body
    assert body["max_completion_tokens"] == 9
    assert "max_tokens" not in body
    assert body["messages"][0]["role"] == "developer"
    check(CompletionCreateParamsStreaming, body)


@pytest.mark.parametrize("chosen", ["auto", "required", "none"])
async def test_tool_choice_is_only_sent_together_with_tools(
    server: ScriptedServer, model: OpenAIChatModel, chosen: str
) -> None:
    """The API rejects a tool choice without tools."""
    settings = ModelSettings(tool_choice=chosen, parallel_tool_calls=True)
    server.answer(complete_answer(), complete_answer())
    await ask(model, "hi", tools=(add,), settings=settings)
    check(CompletionCreateParamsStreaming, server.last.body)
    assert server.last.body["tool_choice"] == chosen
    assert server.last.body["parallel_tool_calls"] is True
    await ask(model, "hi", settings=settings)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & server.last.body.keys()


@pytest.mark.parametrize(
    ("history", "request_", "error_text"),
    [
        ((), {"settings": ModelSettings(tool_choice="ad"), "tools": (add,)}, r"'ad'.*: add\."),
        ((), {"tools": (WebSearchTool(),)}, r"'web_search'.*'qwen' does not have it.*'openai/…'"),
        ([ToolOutputImage(file_id="f")], {}, r"input\[0\]\.content\[0\]: .*not by file_id"),
        ([ToolOutputFileContent(url="x")], {}, r"content\[0\]: .*not by url"),
        ([ToolOutputAudio(data=b"OggS")], {}, r"content\[0\]: .*audio/wav or audio/mpeg"),
    ],
)
async def test_an_unsupported_request_is_rejected_before_it_is_sent(
    server: ScriptedServer,
    model: OpenAIChatModel,
    history: Any,
    request_: dict[str, Any],
    error_text: str,
) -> None:
    """A mistake of the caller must not look like an error of the provider."""
    items = [MessageInputItem(content=history)] if history else []
    with pytest.raises(UserError, match=error_text):
        await ask(model, *items, **request_)
    assert not server.requests


async def test_system_and_developer_messages_must_be_text(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """The API does not accept images there."""
    item = MessageInputItem(content=[ToolOutputImage(data=PNG)], role="developer")
    with pytest.raises(UserValueError, match=r"input\[0\].*'developer' can only contain text"):
        await ask(model, item)


# --- answers


async def test_an_answer_is_streamed_and_returned_as_a_whole(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """Streamed and recorded content must be the same."""
    server.answer(
        complete_answer(
            chunk({"role": "assistant", "content": ""}),
            chunk({"reasoning_content": "Hm, "}),
            chunk({"reasoning_content": "ah.", "content": None}),
            chunk({"content": "Hel"}),
            chunk({"content": "lo"}, usage=None),
        )
    )
    recorded = await ask(model, "hi")
    assert recorded.response is not None
    assert recorded.items == [
        ReasoningItem(
            text="Hm, ah.",
            provider_data={"openai_chat": {"field": "reasoning_content", "server": server.url[7:]}},
        ),
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
    assert recorded.response.usage == Usage(
        requests=1,
        input_tokens=20,
        output_tokens=9,
        cached_input_tokens=8,
        cache_write_tokens=6,
        reasoning_tokens=4,
    )
    assert recorded.response.finish_reason == "stop"
    assert recorded.response.response_id == "chatcmpl-1"
    assert recorded.response.model == "qwen-7b"
    assert isinstance(recorded.response.raw, ChatCompletion)
    assert recorded.response.raw.choices[0].message.content == "Hello"


async def test_an_answer_that_is_not_streamed_is_read(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """Some servers and proxies ignore that a stream is requested."""
    function = {"name": "add", "arguments": '{"a": 1}'}
    said = {
        "role": "assistant",
        "reasoning_content": "Hm.",
        "content": "Hello",
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls"}
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": USAGE}
    server.answer(json_answer(whole))
    recorded = await ask(model, "hi", tools=(add,))
    assert recorded.response is not None
    assert [getattr(item, "text", None) for item in recorded.items] == ["Hm.", "Hello", None]
    assert calls_of(recorded) == [("c1", "add", '{"a": 1}')]
    assert recorded.calls == recorded.items[2:]
    assert recorded.response.finish_reason == "tool_calls"
    assert recorded.response.usage.output_tokens == 9
    assert "Hello" in [event.get("delta") for event in recorded.emitted]


async def test_parallel_calls_are_passed_on_while_the_answer_is_still_streaming(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """A call can run while the model writes the next one."""
    gate = threading.Event()
    server.answer(
        complete_answer(
            calls(call_delta(0, "", id="call_1", name="add", type="function")),
            calls(call_delta(0, '{"a":')),
            calls(call_delta(0, " 1 }")),
            calls(call_delta(1, "", id="call_2", name="look", type="function")),
            gate,
            calls(call_delta(1, '{"place": "hér"}')),
            finish="tool_calls",
        )
    )
    handed: list[ToolCallItem] = []

    def on_call(item: ToolCallItem) -> None:
        handed.append(item)
        gate.set()

    recorded = RecordedAnswer()
    request = ModelRequest(input=[], tools=(add, look), on_call=on_call)
    response = await model.respond(request, recorded.emit)
    assert handed == list(response.items)
    assert [one.arguments for one in handed] == ['{"a": 1 }', '{"place": "hér"}']
    assert response.finish_reason == "tool_calls"
    assert recorded.emitted == snapshot(
        [
            {
                "type": "response.output_item.added",
                "item": {"type": "function_call", "call_id": "call_1", "name": "add"},
            },
            {
                "type": "response.function_call_arguments.delta",
                "delta": '{"a":',
                "call_id": "call_1",
            },
            {
                "type": "response.function_call_arguments.delta",
                "delta": " 1 }",
                "call_id": "call_1",
            },
            {
                "type": "response.output_item.added",
                "item": {"type": "function_call", "call_id": "call_2", "name": "look"},
            },
            {
                "type": "response.function_call_arguments.delta",
                "delta": '{"place": "hér"}',
                "call_id": "call_2",
            },
        ]
    )
    message = response.raw.choices[0].message
    assert [one.function.name for one in message.tool_calls] == ["add", "look"]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (  # deltas of two calls mixed, both started before either has arguments
            [
                calls(call_delta(0, id="c1", name="add"), call_delta(1, id="c2", name="look")),
                calls(call_delta(0, '{"a"'), call_delta(1, '{"place"')),
                calls(call_delta(1, ': "x"}'), call_delta(0, ": 1}")),
            ],
            [("c1", "add", '{"a": 1}'), ("c2", "look", '{"place": "x"}')],
        ),
        (  # name and id in every delta
            [
                calls(call_delta(0, '{"a"', id="c1", name="add")),
                calls(call_delta(0, ": 1}", id="c1", name="add")),
            ],
            [("c1", "add", '{"a": 1}')],
        ),
        (  # every call has index 0 and arrives complete
            [
                calls(call_delta(0, '{"a": 1}', id="c1", name="add")),
                calls(call_delta(0, '{"a": 2}', id="c2", name="add")),
            ],
            [("c1", "add", '{"a": 1}'), ("c2", "add", '{"a": 2}')],
        ),
        (  # no index
            [
                calls(call_delta(None, '{"a"', id="c1", name="add")),
                calls(call_delta(None, ": 1}")),
                calls(call_delta(None, '{"a": 2}', id="c2", name="add")),
            ],
            [("c1", "add", '{"a": 1}'), ("c2", "add", '{"a": 2}')],
        ),
        (  # no ids, or the same id twice
            [
                calls(
                    call_delta(0, '{"a": 1}', name="add"),
                    call_delta(1, '{"a": 2}', id="", name="add"),
                ),
                calls(call_delta(2, '{"a": 3}', id="c3", name="add")),
                calls(call_delta(3, '{"a": 4}', id="c3", name="add")),
            ],
            [
                ("call_…", "add", '{"a": 1}'),
                ("call_…", "add", '{"a": 2}'),
                ("c3", "add", '{"a": 3}'),
                ("call_…", "add", '{"a": 4}'),
            ],
        ),
        (  # no arguments; arguments as an object
            [
                calls(
                    call_delta(0, id="c1", name="add"), call_delta(1, {"a": 1}, id="c2", name="add")
                )
            ],
            [("c1", "add", "{}"), ("c2", "add", '{"a": 1}')],
        ),
        (  # every call has index 0, and the first one no arguments
            [
                calls(call_delta(0, "", id="c1", name="add")),
                calls(call_delta(0, '{"place": "x"}', id="c2", name="look")),
            ],
            [("c1", "add", "{}"), ("c2", "look", '{"place": "x"}')],
        ),
    ],
)
async def test_calls_are_assembled_from_nonconforming_streams(
    server: ScriptedServer, model: OpenAIChatModel, events: Any, expected: Any
) -> None:
    """Local servers deviate from the API, but their models still call tools."""
    server.answer(complete_answer(*events, finish="stop", usage=None))
    recorded = await ask(model, "hi", tools=(add, look))
    found = calls_of(recorded)
    assert [
        ("call_…" if call_id.startswith("call_") else call_id, name, arguments)
        for call_id, name, arguments in found
    ] == expected
    assert len({call_id for call_id, _, _ in found}) == len(found)
    assert sorted(call.call_id for call in recorded.calls) == sorted(one[0] for one in found)
    assert recorded.response is not None
    assert recorded.response.finish_reason == "tool_calls"
    assert recorded.response.usage == Usage(requests=1)


async def test_a_delta_for_a_call_that_was_already_passed_on_raises_an_error(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """The call may already be running with incomplete arguments."""
    server.answer(
        complete_answer(
            calls(call_delta(0, "{}", id="c1", name="add")),
            calls(call_delta(1, "{}", id="c2", name="add")),
            calls(call_delta(0, '{"a": 1}')),
        )
    )
    with pytest.raises(ModelError, match="c1 continued") as caught:
        await ask(model, "hi", tools=(add,))
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("events", "finish", "reason", "items"),
    [
        ((), "stop", "stop", []),
        ([chunk({"content": ""})], "eos_token", "stop", []),
        (["null", {"choices": None}, chunk("odd")], "stop", "stop", []),
        (
            [chunk({"refusal": "I "}), chunk({"refusal": "won't."})],
            "stop",
            "refusal",
            [MessageOutputItem(refusal="I won't.")],
        ),
        ([chunk({"content": "Hal"})], "length", "length", [MessageOutputItem(text="Hal")]),
        (
            [chunk({"content": "B"})],
            "content_filter",
            "content_filter",
            [MessageOutputItem(text="B")],
        ),
        (
            [calls(call_delta(0, '{"a": ', id="c1", name="add"))],
            "length",
            "length",
            [ToolCallItem(call_id="c1", name="add", arguments='{"a": ')],
        ),
        (
            [chunk({"content": [{"type": "text", "text": "Hi"}, {"type": "thinking"}, None]})],
            "stop",
            "stop",
            [MessageOutputItem(text="Hi")],
        ),
    ],
)
async def test_an_answer_has_a_finish_reason(
    server: ScriptedServer,
    model: OpenAIChatModel,
    events: Any,
    finish: str,
    reason: str,
    items: list[Item],
) -> None:
    """The loop decides by it whether to continue; truncated calls are never started."""
    server.answer(complete_answer(*events, finish=finish))
    recorded = await ask(model, "hi")
    assert recorded.response is not None
    assert recorded.response.finish_reason == reason
    assert recorded.items == items
    assert recorded.calls == []


async def test_reasoning_is_read_from_every_known_field(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """Servers use different field names."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "c"}]}
    server.answer(
        complete_answer(chunk({"reasoning": "b"})),
        complete_answer(chunk({"content": [thinking]})),
    )
    for expected in ("b", "c"):
        recorded = await ask(model, "hi")
        assert [item.text for item in recorded.items if isinstance(item, ReasoningItem)] == [
            expected
        ]
        assert recorded.emitted[0]["delta"] == expected


# --- history


async def test_a_conversation_is_sent_in_the_order_of_the_api(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """Outputs directly follow their calls, one message each, in whatever order they arrived."""
    first = [
        ReasoningItem(text="foreign", provider_data={"anthropic": {"signature": "x"}}),
        MessageOutputItem(text="Let me see."),
        ToolCallItem(call_id="c1", name="add", arguments='{"a" : 1}'),
        ToolCallItem(call_id="c2", name="look", arguments='{"place": '),
        ToolCallItem(call_id="ws", name="web_search_call", kind="hosted"),
        ToolCallItem(call_id="x" * 50, name="no such.tool"),
    ]
    picture: list[ContentBlock] = [
        ToolOutputText("two pictures"),
        ToolOutputImage(data=PNG),
        ToolOutputImage(file_id="file-1"),
        ToolOutputFileContent(data=b"a,b", mime_type="text/csv"),
    ]
    server.answer(complete_answer())
    await ask(
        model,
        "hi",
        *first,
        ToolCallOutputItem(call_id="x" * 50, output="unknown tool", status="tool_error"),
        ToolCallOutputItem(call_id="c2", name="look", output=picture),
        ToolCallOutputItem(call_id="c1", name="add", output="3"),
        ToolCallItem(call_id="c3", name="add", arguments="{}"),
        ToolCallOutputItem(call_id="c3", name="add", output=""),
        MessageOutputItem(refusal="No more."),
        ReasoningItem(text="only a thought"),
        "and now?",
        tools=(add, look),
    )
    check(CompletionCreateParamsStreaming, server.last.body)
    assert server.last.body["messages"] == snapshot(
        [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": "Let me see.",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "add", "arguments": '{"a" : 1}'},
                    },
                    {
                        "id": "c2",
                        "type": "function",
                        "function": {
                            "name": "look",
                            "arguments": '{"invalid_json": "{\\"place\\": "}',
                        },
                    },
                    {
                        "id": "call_77cf12060d47183ea8c40345e7389e7e",
                        "type": "function",
                        "function": {"name": "no_such_tool", "arguments": "{}"},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "3"},
            {
                "role": "tool",
                "tool_call_id": "c2",
                "content": """\
two pictures
[image: in the message below]
[image: file-1]
a,b\
""",
            },
            {
                "role": "tool",
                "tool_call_id": "call_77cf12060d47183ea8c40345e7389e7e",
                "content": "unknown tool",
            },
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "The image from look for call c2:"},
                    {
                        "type": "image_url",
                        "image_url": {"url": "data:image/png;base64,iVBORw0KGgoA"},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c3", "type": "function", "function": {"name": "add", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "c3", "content": ""},
            {"role": "assistant", "content": "No more."},
            {"role": "user", "content": "and now?"},
        ]
    )


async def test_each_call_has_its_own_output_if_an_id_repeats(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """Some servers number the calls of each response, so a stored conversation repeats ids."""
    history: list[Item | str] = ["hi"]
    for number in ("1", "2"):
        arguments = f'{{"a": {number}}}'
        history += [
            ToolCallItem(call_id="call_0", name="add", arguments=arguments),
            ToolCallOutputItem(call_id="call_0", name="add", output=number),
        ]
    server.answer(complete_answer(chunk({"content": "ok"})))
    await ask(model, *history)
    outputs = [one["content"] for one in server.last.body["messages"] if one["role"] == "tool"]
    assert outputs == ["1", "2"]


async def test_blocks_of_reasoning_are_sent_back_to_their_server_as_a_whole(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """OpenRouter sends signed reasoning in pieces, and Claude and Gemini need all of it back."""
    thought = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    pieces = [
        {**thought, "text": "Let me "},
        {**thought, "text": "add."},
        {**thought, "text": "", "signature": "c2ln"},
        {"type": "reasoning.encrypted", "index": 1, "data": "ZGF0YQ=="},
    ]
    deltas = [{"reasoning": one.get("text"), "reasoning_details": [one]} for one in pieces]
    server.answer(
        complete_answer(*map(chunk, deltas), chunk({"content": "3"})),
        *[complete_answer(chunk({"content": "ok"}))] * 2,
    )
    recorded = await ask(model, "1 + 2?")
    assert isinstance(recorded.items[0], ReasoningItem)
    assert recorded.items[0].text == "Let me add."
    await ask(model, "1 + 2?", *recorded.items, "sure?")
    message = server.last.body["messages"][1]
    whole = {**thought, "text": "Let me add.", "signature": "c2ln"}
    assert message == {"role": "assistant", "content": "3", "reasoning_details": [whole, pieces[3]]}
    url = f"{server.url}/v1".replace("127.0.0.1", "localhost")
    other = OpenAIChatModel("qwen", base_url=url, api_key=KEY)
    await ask(other, "1 + 2?", *recorded.items, "sure?")
    assert server.last.body["messages"][1] == {"role": "assistant", "content": "3"}


async def test_the_signature_of_a_call_is_sent_back_to_its_server(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """Gemini refuses a call of its own without its signature; other servers refuse the field."""
    extra = {"google": {"thought_signature": "c2lnbmF0dXJl"}}
    server.answer(
        complete_answer(calls(call_delta(0, '{"a": 1}', id="c1", name="add", extra_content=extra)))
    )
    recorded = await ask(model, "hi", tools=(add,))
    assert list(recorded.calls) == recorded.items
    history = input_items(json.loads(json.dumps([one.to_dict() for one in recorded.items])))
    output = ToolCallOutputItem(call_id="c1", name="add", output="3")
    sent: list[Any] = []
    for url in (f"{server.url}/v1", f"{server.url}/v1".replace("127.0.0.1", "localhost")):
        server.answer(complete_answer(chunk({"content": "3"})))
        await ask(OpenAIChatModel("gemini", base_url=url, api_key=KEY), "hi", *history, output)
        sent.append(server.last.body["messages"][1]["tool_calls"][0].get("extra_content"))
    assert sent == [extra, None]


async def test_reasoning_is_sent_back_only_to_servers_that_require_it(
    server: ScriptedServer, model: OpenAIChatModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some servers reject a conversation without it, others one with it."""
    thought = chunk({"reasoning_content": "Hm."})
    server.answer(
        complete_answer(thought, calls(call_delta(0, "{}", id="c1", name="add"))),
        complete_answer(),
        complete_answer(),
    )
    recorded = await ask(model, "hi", tools=(add,))
    items = [item_from_dict(json.loads(json.dumps(item.to_dict()))) for item in recorded.items]
    assert items == recorded.items
    history: list[Item] = [*recorded.items, ToolCallOutputItem(call_id="c1", output="3")]
    await ask(model, *history, "and now?")
    assert server.last.body["messages"][0]["reasoning_content"] == "Hm."
    port = server.url.rpartition(":")[2]
    await ask(OpenAIChatModel("qwen", base_url=f"http://localhost:{port}"), *history, "and now?")
    assert "reasoning_content" not in server.last.body["messages"][0]


blocks_ = st.lists(
    st.one_of(
        st.builds(ToolOutputText, st.text()),
        st.builds(ToolOutputImage, data=st.binary()),
        st.builds(ToolOutputImage, url=st.text(), detail=st.sampled_from(["low", None])),
        st.builds(ToolOutputFileContent, data=st.binary(), filename=st.none() | st.text()),
    ),
    max_size=3,
)
histories = st.lists(
    st.one_of(
        st.builds(MessageInputItem, content=st.text() | blocks_),
        st.builds(MessageOutputItem, text=st.text()),
        st.builds(MessageOutputItem, refusal=st.text(min_size=1)),
        st.builds(ReasoningItem, text=st.text()),
        st.builds(
            ToolCallItem,
            call_id=st.sampled_from(["a", "b", ""]),
            name=st.text(),
            arguments=st.text(),
            kind=st.sampled_from(["function", "local_shell", "hosted"]),
        ),
        st.builds(
            ToolCallOutputItem,
            call_id=st.sampled_from(["a", "b", ""]),
            output=st.text() | blocks_,
        ),
    ),
    max_size=8,
)


@given(histories)
def test_any_history_is_converted_to_a_valid_request(history: list[Item]) -> None:
    """Histories can come from anywhere; what is sent must match the client's types."""
    request = ModelRequest(input=history, instructions="Be kind.")
    open_calls: list[str] = []
    for message in openai_chat._messages(request, "http://localhost"):
        check(ChatCompletionMessageParam, message)
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_calls
            continue
        open_calls = [call["id"] for call in message.get("tool_calls", ())]
        for call in message.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)


# --- faults


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable", "error_text"),
    [
        (429, {"error": {"message": "slow down"}}, ModelError, True, "slow down"),
        (429, {"error": {"message": "Too many tokens a minute"}}, ModelError, True, "a minute"),
        (502, "<html>bad gateway</html>", ModelError, True, "bad gateway"),
        (401, {"detail": "who?"}, ModelError, False, "who.*OPENAI_API_KEY"),
        (
            404,
            {"message": "none"},
            ModelError,
            False,
            r"none\. Check that .* has a model 'qwen'\.$",
        ),
        (
            400,
            {"object": "error", "message": "This model's maximum context length is 4096 tokens"},
            ContextWindowExceeded,
            False,
            "4096",
        ),
        (
            400,
            {
                "error": {
                    "code": 400,
                    "type": "exceed_context_size_error",
                    "message": "the request exceeds the available size",
                }
            },
            ContextWindowExceeded,
            False,
            "available size",
        ),
        (
            400,
            {
                "error": {
                    "message": "Invalid schema for function 'look'",
                    "param": "tools[1].function.parameters",
                    "code": "invalid_function_parameters",
                }
            },
            ToolRefusedError,
            False,
            "'look'",
        ),
        (
            422,
            {"detail": [{"loc": ["body", "tools", 0, "function"], "msg": "extra"}]},
            ToolRefusedError,
            False,
            "'add'",
        ),
    ],
)
async def test_an_api_error_is_mapped_to_a_model_error(
    server: ScriptedServer,
    model: OpenAIChatModel,
    status: int,
    body: Any,
    kind: type[ModelError],
    retryable: bool,
    error_text: str,
) -> None:
    """Every server words its errors differently; the loop needs the same few fields."""
    server.answer(json_answer(body, status=status))
    with pytest.raises(ModelError, match=error_text) as caught:
        await ask(model, "hi", tools=(add, look))
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.retryable) == (status, retryable)


BEGUN = [chunk({"content": "Hel"})]


@pytest.mark.parametrize(
    ("answer", "error_text"),
    [
        (sse_answer(*BEGUN), "ended before"),
        (sse_answer(*BEGUN, done=True), "ended before"),
        (sse_answer(*BEGUN, cut=True), "was interrupted"),
        (sse_answer(*BEGUN, "{garbage"), "JSON"),
        (sse_answer(*BEGUN, b"data: \xff\xfe\n\n"), "UnicodeDecodeError"),
        (sse_answer(*BEGUN, {"error": {"message": "it broke", "code": 502}}), "it broke"),
        (sse_answer(*BEGUN, chunk(finish="error")), "reported an error"),
        (Answer(silent=True), "Check that the server runs"),
        (json_answer({"id": "x", "choices": []}), r'expected a stream of events, got {"id": "x"'),
        (json_answer({"choices": [{"message": {"content": "Hel"}}]}), "got .*Hel"),
        (json_answer({"choices": 7, "error": {"message": "busy"}}), "got .*busy"),
        (json_answer([7]), r"got \[7\]"),
        (Answer(pieces=[b"<p>Log in</p>"]), "got <p>Log in</p>"),
    ],
)
async def test_a_broken_stream_raises_an_error(
    server: ScriptedServer, model: OpenAIChatModel, answer: Answer, error_text: str
) -> None:
    """A partial answer must not pass for a complete one."""
    server.answer(answer)
    with pytest.raises(ModelError, match=error_text) as caught:
        await ask(model, "hi")
    assert type(caught.value) is ModelError
    assert caught.value.retryable


async def test_a_connection_error_after_the_answer_loses_only_the_usage(
    server: ScriptedServer, model: OpenAIChatModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is complete; a second request would cost the same again."""
    monkeypatch.setattr("agents_tools.models._http._TRAILING_TIMEOUT", 0.1)
    said = [chunk({"content": "Hi"}), chunk(finish="stop")]
    server.answer(sse_answer(*said, cut=True), sse_answer(*said, threading.Event()))
    for _ in range(2):
        recorded = await ask(model, "hi")
        assert recorded.items == [MessageOutputItem(text="Hi")]
        assert recorded.response is not None
        assert recorded.response.usage == Usage(requests=1)


async def test_a_server_that_rejects_stream_options_is_retried_without_them(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """Older servers do not support `stream_options`; the failed request is made only once."""
    refused = {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs"}]}
    server.answer(
        json_answer(refused, status=422), complete_answer(usage=None), complete_answer(usage=None)
    )
    await ask(model, "hi")
    await ask(model, "hi")
    assert ["stream_options" in one.body for one in server.requests] == [True, False, False]


async def test_a_repeated_rejection_is_reported(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """The fallback is tried only once."""
    refused = {"error": {"message": "bad stream_options"}}
    server.answer(*[json_answer(refused, status=400)] * 2)
    with pytest.raises(ModelError, match="bad stream_options"):
        await ask(model, "hi")
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("error", "status", "retryable", "error_text"),
    [
        ({"code": 502, "message": "Provider returned error"}, 502, True, "Provider returned error"),
        ({"code": 429, "message": "too many input tokens per minute"}, 429, True, "per minute"),
        ({"code": 402, "message": "Insufficient credits"}, 402, False, "Insufficient credits"),
        ("the worker is gone", None, True, "the worker is gone"),
    ],
)
async def test_an_error_in_a_stream_has_the_status_and_the_text_of_the_server(
    server: ScriptedServer,
    model: OpenAIChatModel,
    error: Any,
    status: int | None,
    retryable: bool,
    error_text: str,
) -> None:
    """A retry of a request without credit fails too, but another model can answer."""
    server.answer(sse_answer(*BEGUN, {"error": error}))
    with pytest.raises(ModelError, match=error_text) as caught:
        await ask(model, "hi")
    assert type(caught.value) is ModelError
    assert (caught.value.status, caught.value.retryable) == (status, retryable)


async def test_an_unreachable_server_is_reported(model: OpenAIChatModel) -> None:
    """Forgetting to start a local server is a common mistake."""
    nowhere = OpenAIChatModel("qwen", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelError, match=r"qwen could not be reached.*Check that the server runs"):
        await ask(nowhere, "hi")


async def test_a_timeout_of_the_users_client_is_retryable(server: ScriptedServer) -> None:
    """A server that loads its model first answers the second request."""
    gate = threading.Event()

    def slow(request: Recorded) -> Answer:
        gate.wait(5)
        return complete_answer()

    server.answer(slow)
    async with openai.AsyncOpenAI(
        api_key=KEY, base_url=server.url, timeout=0.1, max_retries=0
    ) as client:
        with pytest.raises(ModelError, match="the request timed out") as caught:
            await ask(OpenAIChatModel("qwen", client=client), "hi")
    gate.set()
    assert caught.value.retryable


async def test_a_run_with_tools_works_end_to_end(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """The adapter and the loop must agree on the nulls of the strict dialect, ids and retries."""
    server.answer(
        json_answer({"error": {"message": "slow down"}}, status=429),
        complete_answer(
            calls(call_delta(0, '{"a": 1, "b": null}', id="c1", name="add")),
            calls(call_delta(1, '{"place": "here"}', name="look")),
            finish="tool_calls",
        ),
        complete_answer(chunk({"content": "3, here"})),
    )
    agent = Agent(name="adder", instructions="Add.", tools=[add, look], model=model)
    result = await Runner.run(agent, "1 and 2?", run_config=RunConfig(retry_backoff=0.01))
    assert result.final_output == "3, here"
    messages = server.last.body["messages"]
    made_up = messages[2]["tool_calls"][1]["id"]
    assert [(one["role"], one.get("tool_call_id"), one["content"]) for one in messages] == [
        ("system", None, "Add."),
        ("user", None, "1 and 2?"),
        ("assistant", None, None),
        ("tool", "c1", "3"),
        ("tool", made_up, "here"),
    ]
    assert result.usage.requests == 2


async def test_cancelling_closes_the_connection(
    server: ScriptedServer, model: OpenAIChatModel
) -> None:
    """A request that was cancelled must not keep using tokens."""
    begun = asyncio.Event()
    server.answer(sse_answer(*BEGUN, threading.Event()))
    task = asyncio.create_task(model.respond(ModelRequest(input=[]), lambda event: begun.set()))
    await asyncio.wait_for(begun.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.hung_up.wait, 5)


async def test_only_openai_itself_requires_a_key(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Local servers need none; OpenAI's own error would come late and be less clear."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    model = load_model("openai-chat/qwen3:8b")
    assert repr(model) == "OpenAIChatModel('qwen3:8b')"
    with pytest.raises(UserError, match="OPENAI_API_KEY"):
        await ask(model, "hi")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.answer(complete_answer(chunk({"content": "Hi"})))
    recorded = await ask(model, "hi")
    assert recorded.items == [MessageOutputItem(text="Hi")]
    assert server.last.body["model"] == "qwen3:8b"
