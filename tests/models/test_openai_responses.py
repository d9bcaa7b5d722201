"""Models over the Responses API, through the official client and a real server."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
import warnings
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import openai
import pytest
from hypothesis import given, strategies as st
from inline_snapshot import snapshot
from openai.types.responses import ResponseInputItemParam
from openai.types.responses.response_create_params import (
    ResponseCreateParamsStreaming,
    ToolChoice,
)

from agents_tools import function_tool
from agents_tools.agents import (
    Agent,
    FileSearchTool,
    HostedMCPTool,
    LocalShellTool,
    ModelRequest,
    ModelSettings,
    OutputFormat,
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
    item_from_dict,
)
from agents_tools.errors import (
    ContextWindowExceeded,
    ModelError,
    ToolRefusedError,
    UserError,
    UserTypeError,
    UserValueError,
)
from agents_tools.models import _clients, openai_responses
from agents_tools.models.openai_responses import OpenAIResponsesModel
from tests.models.asking import RecordedAnswer, ask, check
from tests.models.http_server import Answer, json_answer, sse_answer

if TYPE_CHECKING:
    from tests.models.http_server import ScriptedServer

KEY = "sk-test-0123456789abcdefghij"
PNG = b"\x89PNG\r\n\x1a\n\0"


@function_tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: One.
        b: The other.
    """
    return a + b


@function_tool
def look(place: str) -> str:
    """Look at a place."""
    return place


class Hosted:
    """A tool that the provider runs, with the methods that the adapter uses."""

    def __init__(self, name: str, **definition: Any) -> None:
        self.name = name
        self.definition = {"type": name, **definition}

    def to_responses(self) -> dict[str, Any]:
        return self.definition


@pytest.fixture
def model(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> OpenAIResponsesModel:
    """Return a model that sends its requests to the scripted server."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return OpenAIResponsesModel("gpt-5", base_url=f"{server.url}/v1", api_key=KEY)


# --- events that a server sends


def message(words: str, **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": words, "annotations": []}
    said = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    return {**said, "content": [part], **more}


def call(number: int, name: str, arguments: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"fc_{number}",
        "type": "function_call",
        "status": "completed",
        "call_id": f"call_{number}",
        "name": name,
        "arguments": arguments,
        **more,
    }


def done(item: dict[str, Any], place: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": place, "item": item}


def added(item: dict[str, Any], place: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": place, "item": item}


def delta(words: str, place: int, kind: str = "function_call_arguments") -> dict[str, Any]:
    return {
        "type": f"response.{kind}.delta",
        "delta": words,
        "output_index": place,
        "item_id": f"item_{place}",
    }


def completed(*output: dict[str, Any], kind: str = "completed", **more: Any) -> dict[str, Any]:
    response = {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-5-2025",
        "status": kind,
        "output": list(output),
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 6},
            "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 4},
            "total_tokens": 29,
        },
        **more,
    }
    return {"type": f"response.{kind}", "response": response}


def complete_answer(*output: dict[str, Any], **more: Any) -> Answer:
    items = [done(item, place) for place, item in enumerate(output)]
    return sse_answer(*items, completed(*output, **more))


# --- requests


async def test_a_request_uses_the_field_names_of_the_api(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """The API rejects an unknown field, or silently ignores it."""
    server.answer(complete_answer(message("{}")))
    settings = ModelSettings(
        temperature=0.5,
        top_p=0.9,
        max_tokens=100,
        tool_choice="required",
        parallel_tool_calls=False,
        reasoning_effort="low",
        extra_headers={"x-team": "blue"},
        extra_body={"metadata": {"a": "b"}, "reasoning": {"summary": "auto"}},
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
        ToolOutputImage(file_id="file-1"),
        ToolOutputFileContent(data=b"%PDF-1", filename="a.pdf"),
        ToolOutputFileContent(data=b"plain", filename="a.txt"),
        ToolOutputFileContent(url="https://example.com/a.pdf"),
        ToolOutputFileContent(file_id="file-2"),
        ToolOutputFileContent(data=b"\0\1"),
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
    check(ResponseCreateParamsStreaming, server.last.body)
    assert server.last.path == "/v1/responses"
    assert server.last.headers["authorization"] == f"Bearer {KEY}"
    assert server.last.headers["x-team"] == "blue"
    assert server.last.body == snapshot(
        {
            "model": "gpt-5",
            "stream": True,
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "What is this?"},
                        {
                            "type": "input_image",
                            "image_url": "data:image/png;base64,iVBORw0KGgoA",
                            "detail": "low",
                        },
                        {
                            "type": "input_image",
                            "image_url": "https://example.com/a.png",
                            "detail": "auto",
                        },
                        {"type": "input_image", "file_id": "file-1", "detail": "auto"},
                        {
                            "type": "input_file",
                            "filename": "a.pdf",
                            "file_data": "data:application/pdf;base64,JVBERi0x",
                        },
                        {
                            "type": "input_text",
                            "text": """\
[a.txt]
plain\
""",
                        },
                        {"type": "input_file", "file_url": "https://example.com/a.pdf"},
                        {"type": "input_file", "file_id": "file-2"},
                        {
                            "type": "input_text",
                            "text": "[file: 2 bytes of application/octet-stream, not shown]",
                        },
                    ],
                },
                {"role": "developer", "content": "Be brief."},
            ],
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "instructions": "You are kind.",
            "tools": [
                {
                    "type": "function",
                    "name": "add",
                    "description": "Add two numbers.",
                    "parameters": {
                        "type": "object",
                        "properties": {
                            "a": {"description": "One.", "type": "integer"},
                            "b": {
                                "description": "The other. (null: default 2)",
                                "type": ["integer", "null"],
                            },
                        },
                        "required": ["a", "b"],
                        "additionalProperties": False,
                    },
                    "strict": True,
                }
            ],
            "parallel_tool_calls": False,
            "tool_choice": "required",
            "temperature": 0.5,
            "top_p": 0.9,
            "max_output_tokens": 100,
            "reasoning": {"effort": "low", "summary": "auto"},
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": "the_answer",
                    "schema": {
                        "type": "object",
                        "properties": {},
                        "required": [],
                        "additionalProperties": False,
                    },
                    "strict": True,
                }
            },
            "metadata": {"a": "b"},
        }
    )


@pytest.mark.parametrize(
    ("chosen", "sent"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ("none", "none"),
        ("add", {"type": "function", "name": "add"}),
        ("image_generation", {"type": "image_generation"}),
        ("docs", {"type": "mcp", "server_label": "docs"}),
    ],
)
async def test_a_tool_can_be_chosen_by_its_local_name(
    server: ScriptedServer, model: OpenAIResponsesModel, chosen: str, sent: Any
) -> None:
    """The caller knows tools by name; the adapter knows how each kind of tool is chosen."""
    server.answer(complete_answer())
    tools = (
        add,
        Hosted("image_generation"),
        Hosted("docs", type="mcp", server_label="docs", server_url="https://example.com"),
    )
    await ask(model, "hi", tools=tools, settings=ModelSettings(tool_choice=chosen))
    check(ToolChoice, server.last.body["tool_choice"])
    assert server.last.body["tool_choice"] == sent


async def test_tool_options_are_only_sent_together_with_tools(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """The API rejects a tool choice without tools."""
    server.answer(complete_answer())
    settings = ModelSettings(tool_choice="auto", parallel_tool_calls=True)
    await ask(model, "hi", settings=settings)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & server.last.body.keys()


@pytest.mark.parametrize(
    ("request_", "expected_text"),
    [
        ({"settings": ModelSettings(stop=["."])}, r"stop=.*openai-chat/"),
        ({"settings": ModelSettings(tool_choice="ad"), "tools": (add,)}, r"'ad'.*: add\."),
        ({"settings": ModelSettings(extra_body={"x": object()})}, r"extra_body"),
        ({"settings": ModelSettings(extra_headers={"x": "\n"})}, r"extra_headers"),
        ({"instructions": "\ud800"}, r"cannot be sent.*surrogates"),
    ],
)
async def test_an_unsupported_request_is_rejected_before_it_is_sent(
    server: ScriptedServer,
    model: OpenAIResponsesModel,
    request_: dict[str, Any],
    expected_text: str,
) -> None:
    """A mistake of the caller must not look like an error of the provider."""
    with pytest.raises(UserError, match=expected_text):
        await ask(model, "hi", **request_)
    assert not server.requests


async def test_audio_from_a_user_is_rejected_and_from_a_tool_described(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """A user can choose another model; the result of a tool must not end the session."""
    sound = ToolOutputAudio(data=b"ID3", mime_type="audio/mpeg")
    with pytest.raises(UserValueError, match=r"input\[0\]\.content\[0\].*openai-chat/"):
        await ask(model, MessageInputItem(content=[sound]))
    server.answer(complete_answer())
    await ask(
        model,
        ToolCallItem(call_id="call_1", name="look"),
        ToolCallOutputItem(call_id="call_1", output=[sound, ToolOutputImage(data=PNG)]),
    )
    check(ResponseCreateParamsStreaming, server.last.body)
    assert server.last.body["input"][1]["output"] == snapshot(
        [
            {"type": "input_text", "text": "[audio: 3 bytes of audio/mpeg, not shown]"},
            {
                "type": "input_image",
                "image_url": "data:image/png;base64,iVBORw0KGgoA",
                "detail": "auto",
            },
        ]
    )


async def test_tool_definitions_are_converted_once(
    server: ScriptedServer, model: OpenAIResponsesModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand tools must not be converted in every turn, even if requests alternate."""
    described: list[str] = []
    project = openai_responses.ToolDefinitionCache._definition

    def counted(self: Any, tool: Any) -> Any:
        described.append(tool.name)
        return project(self, tool)

    monkeypatch.setattr(openai_responses.ToolDefinitionCache, "_definition", counted)
    one, other = (add, look), (look,)
    for tools in (one, other, one, other, one):
        server.answer(complete_answer())
        await ask(model, "hi", tools=tools)
        assert [sent["name"] for sent in server.last.body["tools"]] == [x.name for x in tools]
    assert described == ["add", "look", "look"]


async def test_a_tool_without_a_valid_schema_is_left_out_with_one_warning(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """One broken tool must not end the session."""

    @function_tool(metadata={"openai": {"name": "other"}})
    def bad() -> None:
        """Contradicts itself."""

    server.answer(complete_answer(), complete_answer())
    with pytest.warns(UserWarning, match=r"Tool 'bad' is left out.*'name'"):
        await ask(model, "hi", tools=(bad, add))
    await ask(model, "hi", tools=(add, bad))
    assert [sent["name"] for sent in server.last.body["tools"]] == ["add"]


# --- answers


async def test_an_answer_is_streamed_and_returned_as_a_whole(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """Streamed and recorded content must be the same."""
    thought = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [
            {"type": "summary_text", "text": "Hm."},
            {"type": "summary_text", "text": "Ah."},
        ],
        "encrypted_content": "gAAA",
        "status": None,
    }
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": None}
    server.answer(
        sse_answer(
            {"type": "response.created", "response": {"id": "resp_1"}},
            added({"id": "rs_1", "type": "reasoning", "summary": []}),
            delta("Hm.", 0, "reasoning_summary_text"),
            done(thought),
            added(search, 1),
            {
                "type": "response.web_search_call.searching",
                "item_id": "ws_1",
                "output_index": 1,
            },
            done(search, 1),
            added(message(""), 2),
            delta("Hel", 2, "output_text"),
            delta("lo", 2, "output_text"),
            done(message("Hello", phase="final_answer"), 2),
            {"type": "response.brand_new.event", "x": 1},
            completed(thought, search, message("Hello", phase="final_answer")),
        )
    )
    recorded = await ask(model, "hi")
    assert recorded.response is not None
    assert recorded.items == snapshot(
        [
            ReasoningItem(
                text="""\
Hm.

Ah.\
""",
                id="rs_1",
                provider_data={
                    "openai": {
                        "id": "rs_1",
                        "summary": [
                            {"text": "Hm.", "type": "summary_text"},
                            {"text": "Ah.", "type": "summary_text"},
                        ],
                        "type": "reasoning",
                        "encrypted_content": "gAAA",
                    }
                },
            ),
            ToolCallItem(
                call_id="ws_1",
                name="web_search_call",
                kind="hosted",
                id="ws_1",
                provider_data={
                    "openai": {
                        "id": "ws_1",
                        "action": None,
                        "status": "completed",
                        "type": "web_search_call",
                    }
                },
            ),
            MessageOutputItem(
                text="Hello",
                id="msg_1",
                provider_data={"openai": {"id": "msg_1", "phase": "final_answer"}},
            ),
        ]
    )
    assert recorded.emitted == snapshot(
        [
            {"type": "response.reasoning_summary_text.delta", "delta": "Hm.", "item_id": "item_0"},
            {
                "item": {
                    "id": "ws_1",
                    "action": None,
                    "status": "completed",
                    "type": "web_search_call",
                },
                "output_index": 1,
                "type": "response.output_item.added",
            },
            {"item_id": "ws_1", "output_index": 1, "type": "response.web_search_call.searching"},
            {"type": "response.output_item.added", "item": {"type": "message", "id": "msg_1"}},
            {"type": "response.output_text.delta", "delta": "Hel", "item_id": "item_2"},
            {"type": "response.output_text.delta", "delta": "lo", "item_id": "item_2"},
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
    assert recorded.response.response_id == "resp_1"
    assert recorded.response.model == "gpt-5-2025"
    assert recorded.response.raw.output_text == "Hello"


async def test_parallel_calls_are_passed_on_while_the_answer_is_still_streaming(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """A call can run while the model writes the next one, even if their deltas are mixed."""
    gate = threading.Event()
    first, second = call(1, "add", '{"a":1, "b":2}'), call(2, "look", '{"place": "hér"}')
    server.answer(
        sse_answer(
            added({**first, "arguments": ""}, 0),
            added({**second, "arguments": ""}, 1),
            delta('{"a":1,', 0),
            delta('{"place":', 1),
            delta(' "b":2}', 0),
            done(first, 0),
            gate,
            delta(' "hér"}', 1),
            done(second, 1),
            completed(first, second),
        )
    )
    calls: list[ToolCallItem] = []

    def on_call(item: ToolCallItem) -> None:
        calls.append(item)
        if len(calls) == 1:
            gate.set()

    recorded = RecordedAnswer()
    request = ModelRequest(input=[], tools=(add, look), on_call=on_call)
    response = await model.respond(request, recorded.emit)
    assert [one.arguments for one in calls] == ['{"a":1, "b":2}', '{"place": "hér"}']
    assert calls == list(response.items)
    assert response.finish_reason == "tool_calls"
    pieces = [one for one in recorded.emitted if "arguments" in one["type"]]
    assert [(one["call_id"], one["delta"]) for one in pieces] == [
        ("call_1", '{"a":1,'),
        ("call_2", '{"place":'),
        ("call_1", ' "b":2}'),
        ("call_2", ' "hér"}'),
    ]


@pytest.mark.parametrize("variant", ["done only", "completed only", "no index"])
async def test_output_items_are_found_in_any_event(
    server: ScriptedServer, model: OpenAIResponsesModel, variant: str
) -> None:
    """Servers that imitate the API leave out events that they consider redundant."""
    items = [call(1, "add", "", call_id=None), call(2, "add", '{"a": 3}')]
    events = [added(items[0]), *(done(item, place) for place, item in enumerate(items))]
    if variant == "no index":
        for event in events:
            del event["output_index"]
    final = completed(*([] if variant == "done only" else items), usage=None, model=None)
    server.answer(sse_answer(*([] if variant == "completed only" else events), final))
    recorded = await ask(model, "hi", tools=(add,))
    assert recorded.calls == recorded.items
    made_up, received = recorded.calls
    assert made_up.call_id.startswith("call_")
    assert len(made_up.call_id) > 20
    assert (made_up.arguments, received.call_id) == ("{}", "call_2")
    if variant != "completed only":
        assert recorded.emitted[0]["item"]["call_id"] == made_up.call_id
    assert recorded.response is not None
    assert recorded.response.usage == Usage(requests=1)
    assert recorded.response.model is None


REFUSED = message("")
REFUSED["content"] = [{"type": "refusal", "refusal": "No."}]


@pytest.mark.parametrize(
    ("answer", "reason", "items"),
    [
        (complete_answer(), "stop", []),
        (complete_answer(message("")), "stop", [""]),
        (complete_answer(REFUSED), "refusal", ["No."]),
        (
            complete_answer(
                message("Hal"),
                kind="incomplete",
                incomplete_details={"reason": "max_output_tokens"},
            ),
            "length",
            ["Hal"],
        ),
        (
            complete_answer(kind="incomplete", incomplete_details={"reason": "content_filter"}),
            "content_filter",
            [],
        ),
    ],
)
async def test_an_answer_has_a_finish_reason(
    server: ScriptedServer, model: OpenAIResponsesModel, answer: Answer, reason: str, items: Any
) -> None:
    """The loop decides by it whether to continue."""
    server.answer(answer)
    recorded = await ask(model, "hi")
    assert recorded.response is not None
    assert recorded.response.finish_reason == reason
    messages = [item for item in recorded.items if isinstance(item, MessageOutputItem)]
    assert [item.refusal or item.text for item in messages] == items


async def test_a_truncated_call_is_recorded_but_not_passed_on(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """A call with partial arguments would do something else."""
    half = call(1, "add", '{"a": 1', status="incomplete")
    details = {"reason": "max_output_tokens"}
    final = completed(half, kind="incomplete", incomplete_details=details)
    for events in ([added(half), done(half), final], [final]):
        server.answer(sse_answer(*events))
        recorded = await ask(model, "hi", tools=(add,))
        assert [item.arguments for item in recorded.items if isinstance(item, ToolCallItem)] == [
            '{"a": 1'
        ]
        assert recorded.calls == []


# --- history


async def test_a_conversation_is_sent_back_unchanged(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """The provider stores nothing, so reasoning must be sent back in its encrypted form."""
    thought = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [],
        "encrypted_content": "gAAAA",
        "status": None,
    }
    wanted = call(1, "add", '{"a" : 1}', namespace="math")
    output = ToolCallOutputItem(call_id="call_1", name="add", output="3")
    server.answer(
        complete_answer(thought, message("Wait.", phase="commentary"), wanted), complete_answer()
    )
    first = await ask(model, "hi", tools=(add,))
    kept = [item_from_dict(json.loads(json.dumps(item.to_dict()))) for item in first.items]
    assert kept == first.items
    foreign = ReasoningItem(text="x", id="x", provider_data={"anthropic": {"signature": "s"}})
    await ask(model, "hi", *first.items, output, foreign, "and now?", tools=(add,))
    check(ResponseCreateParamsStreaming, server.last.body)
    assert server.last.body["input"] == snapshot(
        [
            {"role": "user", "content": "hi"},
            {"id": "rs_1", "summary": [], "type": "reasoning", "encrypted_content": "gAAAA"},
            {
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Wait.", "annotations": []}],
                "id": "msg_1",
                "phase": "commentary",
            },
            {
                "id": "fc_1",
                "namespace": "math",
                "type": "function_call",
                "call_id": "call_1",
                "name": "add",
                "arguments": '{"a" : 1}',
            },
            {"type": "function_call_output", "call_id": "call_1", "output": "3"},
            {"role": "user", "content": "and now?"},
        ]
    )


async def test_items_of_other_models_are_converted(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """A conversation can switch to another model."""
    server.answer(complete_answer())
    long_id = "toolu_" + "x" * 80
    theirs = {"anthropic": {"type": "server_tool_use"}}
    await ask(
        model,
        MessageOutputItem(text="Bonjour", id="msg_01ANTHROPIC"),
        MessageOutputItem(refusal="Non."),
        ReasoningItem(text="summary only", provider_data={"openai": {"id": "rs_9"}}),
        ToolCallItem(call_id=long_id, name="no such.tool", arguments='{"a": '),
        ToolCallOutputItem(call_id=long_id, output="unknown tool", status="tool_error"),
        ToolCallItem(call_id="srv_1", name="search", kind="hosted", provider_data=theirs),
        ToolCallItem(call_id="sh_1", name="bash", kind="local_shell"),
        ToolCallOutputItem(call_id="sh_1", kind="local_shell", output=[ToolOutputText("a")]),
    )
    check(ResponseCreateParamsStreaming, server.last.body)
    assert server.last.body["input"] == snapshot(
        [
            {"role": "assistant", "content": "Bonjour"},
            {"role": "assistant", "content": "Non."},
            {
                "type": "function_call",
                "call_id": "call_63d747f0e2c4cf3c19ac1b3fa835892b",
                "name": "no_such_tool",
                "arguments": '{"a": ',
            },
            {
                "type": "function_call_output",
                "call_id": "call_63d747f0e2c4cf3c19ac1b3fa835892b",
                "output": "unknown tool",
            },
            {"type": "function_call", "call_id": "sh_1", "name": "bash", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "sh_1",
                "output": [{"type": "input_text", "text": "a"}],
            },
        ]
    )


async def test_hosted_tools_are_sent_and_their_calls_become_items(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """The provider's own calls need no output; calls for local tools are run locally."""
    search = {
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    }
    shell = {
        "id": "lsh_1",
        "type": "local_shell_call",
        "call_id": "call_sh",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    }
    computer = {
        "id": "cu_1",
        "type": "computer_call",
        "call_id": "call_cu",
        "status": "completed",
        "action": {"type": "click", "button": "left", "x": 1, "y": 2},
        "pending_safety_checks": [{"id": "sc_1", "code": "malicious", "message": "Sure?"}],
    }
    approval = {
        "id": "mcpr_1",
        "type": "mcp_approval_request",
        "server_label": "docs",
        "name": "search",
        "arguments": '{"q": 1}',
    }
    display = {"display_width": 1, "display_height": 1, "environment": "linux"}
    tools = (
        WebSearchTool(),
        LocalShellTool(executor=lambda request: "ok"),
        Hosted("computer_use_preview", **display),
        HostedMCPTool({"server_label": "docs", "server_url": "https://example.com"}),
    )
    server.answer(
        complete_answer(search, shell, computer, computer | {"id": "cu_2"}, approval),
        complete_answer(),
    )
    first = await ask(model, "hi", tools=tools)
    assert first.calls == []
    assert [
        (item.kind, item.name, item.call_id, item.arguments)
        for item in first.items
        if isinstance(item, ToolCallItem)
    ] == snapshot(
        [
            ("hosted", "web_search_call", "ws_1", '{"type": "search", "query": "x"}'),
            (
                "local_shell",
                "local_shell",
                "call_sh",
                '{"command": ["ls"], "env": {}, "type": "exec"}',
            ),
            (
                "computer",
                "computer_use_preview",
                "call_cu",
                '{"button": "left", "type": "click", "x": 1, "y": 2, "pending_safety_checks": [{"id": "sc_1", "code": "malicious", "message": "Sure?"}]}',
            ),
            (
                "computer",
                "computer_use_preview",
                "call_cu",
                '{"button": "left", "type": "click", "x": 1, "y": 2, "pending_safety_checks": [{"id": "sc_1", "code": "malicious", "message": "Sure?"}]}',
            ),
            (
                "mcp_approval",
                "docs",
                "mcpr_1",
                '{"name": "search", "arguments": "{\\"q\\": 1}", "server_label": "docs"}',
            ),
        ]
    )

    def output(call_id: str, kind: Any, answer: Any, status: Any = "ok") -> ToolCallOutputItem:
        return ToolCallOutputItem(call_id=call_id, kind=kind, output=answer, status=status)

    picture = [ToolOutputText("clicked"), ToolOutputImage(data=PNG)]
    await ask(
        model,
        "hi",
        *first.items,
        output("call_sh", "local_shell", "a.txt"),
        output("call_cu", "computer", picture),
        output("call_cu", "computer", "the screen is gone", "tool_error"),
        output("mcpr_1", "mcp_approval", "approve"),
        output("mcpr_1", "mcp_approval", "not today"),
        output("mcpr_1", "mcp_approval", "approve", "denied"),
        tools=tools,
    )
    body = server.last.body
    sent = body["input"]
    assert sent[1:6] == [search, shell, computer, computer | {"id": "cu_2"}, approval]
    assert sent[6:] == snapshot(
        [
            {
                "type": "local_shell_call_output",
                "id": "call_sh",
                "call_id": "call_sh",
                "output": "a.txt",
            },
            {
                "type": "computer_call_output",
                "call_id": "call_cu",
                "output": {
                    "type": "computer_screenshot",
                    "image_url": "data:image/png;base64,iVBORw0KGgoA",
                },
                "acknowledged_safety_checks": [
                    {"id": "sc_1", "code": "malicious", "message": "Sure?"}
                ],
            },
            {
                "type": "computer_call_output",
                "call_id": "call_cu",
                "output": {
                    "type": "computer_screenshot",
                    "image_url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
                },
            },
            {"role": "user", "content": "There is no screenshot for call_cu. the screen is gone"},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
            {
                "type": "mcp_approval_response",
                "approval_request_id": "mcpr_1",
                "approve": False,
                "reason": "not today",
            },
            {
                "type": "mcp_approval_response",
                "approval_request_id": "mcpr_1",
                "approve": False,
            },
        ]
    )
    del sent[6]["call_id"]  # the API requires it, although the client's types do not have it
    check(ResponseCreateParamsStreaming, body)


blocks = st.lists(
    st.one_of(
        st.builds(ToolOutputText, st.text()),
        st.builds(ToolOutputImage, data=st.binary()),
        st.builds(ToolOutputImage, url=st.text(), detail=st.sampled_from(["low", None])),
        st.builds(ToolOutputFileContent, data=st.binary(), filename=st.none() | st.text()),
    ),
    max_size=3,
)
contents = st.text() | blocks
own = st.none() | st.just({"openai": {"id": "msg_1"}}) | st.just({"openai": "odd"})
histories = st.lists(
    st.one_of(
        st.builds(MessageInputItem, content=contents, role=st.sampled_from(["user", "developer"])),
        st.builds(MessageOutputItem, text=st.text(), provider_data=own),
        st.builds(MessageOutputItem, refusal=st.text(min_size=1), provider_data=own),
        st.builds(ReasoningItem, text=st.text(), provider_data=own),
        st.builds(
            ToolCallItem,
            call_id=st.text(),
            name=st.text(),
            arguments=st.text(),
            kind=st.sampled_from(["function", "local_shell", "computer", "hosted"]),
        ),
        st.builds(
            ToolCallOutputItem,
            call_id=st.text(),
            output=contents,
            kind=st.sampled_from(["function", "local_shell", "computer", "hosted"]),
        ),
    ),
    max_size=6,
)


@given(histories)
def test_any_history_is_converted_to_a_valid_request(history: list[Item]) -> None:
    """Histories can come from anywhere; what is sent must match the client's types."""
    for one in openai_responses._input(history, stored=False):
        check(ResponseInputItemParam, one)
        assert len(one.get("call_id", "")) <= 64


async def test_a_run_with_tools_works_end_to_end(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """The adapter and the loop must agree on the nulls of the strict dialect, ids and reasoning."""
    thought = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    wanted = [call(1, "add", '{"a": 1, "b": null}'), call(2, "look", '{"place": "here"}')]
    server.answer(complete_answer(thought, *wanted), complete_answer(message("3, here")))
    agent = Agent(name="adder", instructions="Add.", tools=[add, look], model=model)
    result = await Runner.run(agent, "1 and 2?")
    assert result.final_output == "3, here"
    assert [one.get("encrypted_content") for one in server.last.body["input"][:2]] == [None, "gAAA"]
    assert server.last.body["input"][4:] == [
        {"type": "function_call_output", "call_id": "call_1", "output": "3"},
        {"type": "function_call_output", "call_id": "call_2", "output": "here"},
    ]
    assert result.usage.total_tokens == 58


# --- faults


@pytest.mark.parametrize(
    ("status", "error", "headers", "expected"),
    [
        (429, {"message": "slow down"}, {"retry-after": "7"}, (ModelError, True, 7.0, "slow down")),
        (429, {}, {"retry-after-ms": "250"}, (ModelError, True, 0.25, "429")),
        (429, {"code": "insufficient_quota"}, {}, (ModelError, False, None, "429")),
        (500, {"message": "oops"}, {"retry-after": "soon"}, (ModelError, True, None, "oops")),
        (503, {"message": "full"}, {"retry-after": "nan"}, (ModelError, True, None, "full")),
        (408, {"message": "late"}, {}, (ModelError, True, None, "late")),
        (409, {"message": "busy"}, {}, (ModelError, True, None, "busy")),
        (401, {"message": f"bad key {KEY}"}, {}, (ModelError, False, None, "OPENAI_API_KEY")),
        (403, {"message": "no"}, {}, (ModelError, False, None, "access to this model")),
        (404, {"message": "none"}, {}, (ModelError, False, None, r"'gpt-5'.*openai-chat/")),
        (400, {"message": "bad " * 500}, {}, (ModelError, False, None, "bad bad")),
        (
            400,
            {"message": "too much", "code": "context_length_exceeded"},
            {},
            (ContextWindowExceeded, False, None, "too long for gpt-5"),
        ),
        (
            400,
            {"message": "This model's maximum context length is 8192 tokens."},
            {},
            (ContextWindowExceeded, False, None, "8192"),
        ),
    ],
)
async def test_an_api_error_is_mapped_to_a_model_error(
    server: ScriptedServer,
    model: OpenAIResponsesModel,
    status: int,
    error: dict[str, Any],
    headers: dict[str, str],
    expected: tuple[type[ModelError], bool, float | None, str],
) -> None:
    """The loop decides by these fields whether to retry."""
    kind, retryable, after, expected_text = expected
    server.answer(json_answer({"error": error}, status=status, headers=headers))
    with pytest.raises(ModelError, match=expected_text) as caught:
        await ask(model, "hi")
    found = caught.value
    assert type(found) is kind
    assert (found.status, found.model) == (status, "gpt-5")
    assert (found.retryable, found.retry_after) == (retryable, after)
    assert KEY not in str(found)
    assert len(str(found)) < 800
    assert len(server.requests) == 1


async def test_a_retry_after_date_is_converted_to_seconds(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """HTTP allows dates, and a proxy can send one."""
    date = formatdate(time.time() + 30, usegmt=True)
    server.answer(json_answer({}, status=503, headers={"retry-after": date}))
    with pytest.raises(ModelError) as caught:
        await ask(model, "hi")
    assert caught.value.retry_after == pytest.approx(30, abs=3)


@pytest.mark.parametrize(
    "error",
    [
        {"message": "Invalid schema for function 'look': no", "param": "tools[1].parameters"},
        {"message": "Invalid schema for function 'look': no", "param": None},
        {"message": "Tool 'web_search' is not supported with gpt-5.", "param": "tools"},
    ],
)
async def test_an_error_about_a_tool_names_the_tool(
    server: ScriptedServer, model: OpenAIResponsesModel, error: dict[str, Any]
) -> None:
    """The loop continues without the rejected tool."""
    server.answer(json_answer({"error": error}, status=400))
    hosted = Hosted("searching", type="web_search")
    with pytest.raises(ToolRefusedError) as caught:
        await ask(model, "hi", tools=(add, look, hosted))
    wanted = "searching" if "web_search" in error["message"] else "look"
    assert caught.value.tool_name == wanted
    assert caught.value.reason == error["message"]
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "error",
    [
        {"message": "Unknown tool 'add'", "param": "tool_choice"},
        {"message": "No tool output found for function call 'add'.", "param": "input"},
        {"message": "Unsupported parameter: 'tools'", "param": None},
    ],
)
async def test_an_error_about_another_field_names_no_tool(
    server: ScriptedServer, model: OpenAIResponsesModel, error: dict[str, Any]
) -> None:
    """Leaving out a valid tool changes the agent and does not fix the request."""
    server.answer(json_answer({"error": error}, status=400))
    with pytest.raises(ModelError) as caught:
        await ask(model, "hi", tools=(add,))
    assert type(caught.value) is ModelError


async def test_a_model_without_encrypted_reasoning_is_retried_without_it(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """Models without reasoning reject the field; the failed request is made only once."""
    refused = {"message": "Encrypted content is not supported with this model.", "param": "include"}
    server.answer(json_answer({"error": refused}, status=400), complete_answer(), complete_answer())
    await ask(model, "hi")
    await ask(model, "hi")
    assert ["include" in request.body for request in server.requests] == [True, False, False]
    check(ResponseCreateParamsStreaming, server.last.body)


async def test_reasoning_of_another_account_is_left_out_if_it_is_refused(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """With a fallback, one conversation has responses of several accounts or clouds."""
    refused = {
        "message": "The encrypted content gAAA... could not be verified. Reason: Encrypted content "
        "organization_id did not match the target organization.",
        "type": "invalid_request_error",
        "code": "invalid_encrypted_content",
    }
    stored = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    history = ["hi", ReasoningItem(provider_data={"openai": stored}), MessageOutputItem(text="yes")]
    server.answer(json_answer({"error": refused}, status=400), complete_answer(message("ok")))
    recorded = await ask(model, *history, "go on")
    assert recorded.items
    kinds = [[one.get("type") for one in sent.body["input"]] for sent in server.requests]
    assert kinds == [[None, "reasoning", None, None], [None, None, None]]
    assert "include" in server.last.body  # new reasoning is still asked for
    own = {**stored, "id": "rs_2", "encrypted_content": "gBBB"}
    server.answer(complete_answer(message("ok")))
    await ask(model, *history, ReasoningItem(provider_data={"openai": own}), "go on")
    assert len(server.requests) == 3  # later requests are not refused first
    reasoning = [one["id"] for one in server.last.body["input"] if one.get("type") == "reasoning"]
    assert reasoning == ["rs_2"]
    server.answer(json_answer({"error": refused}, status=400))
    with pytest.raises(ModelError, match="could not be verified"):
        await ask(model, *history, "go on")


@pytest.mark.parametrize(
    ("status", "reason"), [("completed", "tool_calls"), ("incomplete", "length")]
)
async def test_an_answer_that_is_not_streamed_is_read(
    server: ScriptedServer, model: OpenAIResponsesModel, status: str, reason: str
) -> None:
    """Some servers and proxies ignore that a stream is requested."""
    output = [message("Hello"), call(1, "add", '{"a": 1}')]
    server.answer(json_answer(completed(*output, kind=status)["response"]))
    recorded = await ask(model, "hi", tools=(add,))
    assert recorded.response is not None
    assert [getattr(item, "text", None) for item in recorded.items] == ["Hello", None]
    assert recorded.calls == (recorded.items[1:] if status == "completed" else [])
    assert recorded.response.finish_reason == reason
    assert recorded.response.usage.output_tokens == 9


async def test_the_parts_of_a_summary_are_apart_in_the_stream(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """A user reads the same reasoning in the stream as in the item."""
    texts = ["First, the sum.", "Then, the answer."]
    raw = {"type": "reasoning", "id": "rs_1", "summary": [{"text": one} for one in texts]}
    events = [
        {
            "type": f"response.reasoning_summary_{kind}",
            "item_id": "rs_1",
            "summary_index": at,
            **data,
        }
        for at, one in enumerate(texts)
        for kind, data in (("part.added", {"part": {"text": ""}}), ("text.delta", {"delta": one}))
    ]
    server.answer(
        sse_answer(*events, {"type": "response.completed", "response": {"output": [raw]}})
    )
    recorded = await ask(model, "hi")
    item = recorded.items[0]
    assert isinstance(item, ReasoningItem)
    assert item.text == "".join(one["delta"] for one in recorded.emitted) == "\n\n".join(texts)


START = added(message(""))
BEGUN = [START, delta("Hel", 0, "output_text")]
FAILED = {"id": "resp_1", "error": {"code": "server_error", "message": "it broke"}}


@pytest.mark.parametrize(
    ("answer", "retryable", "expected_text"),
    [
        (sse_answer(*BEGUN), True, "ended before"),
        (sse_answer(*BEGUN, cut=True), True, "was interrupted"),
        (sse_answer(*BEGUN, "{garbage"), True, "JSON"),
        (sse_answer(*BEGUN, b"data: \xff\xfe\n\n"), True, "UnicodeDecodeError"),
        (sse_answer("null", "7", '"x"', "[]"), True, "ended before"),
        (Answer(silent=True), True, "could not be reached"),
        (json_answer({"id": "resp_1"}), True, r'expected a stream of events, got {"id": "resp_1"}'),
        (json_answer({"status": "failed", **FAILED}), True, "it broke"),
        (Answer(pieces=[b"<p>Log in</p>"]), True, "got <p>Log in</p>"),
        (
            sse_answer(*BEGUN, {"type": "error", "code": "server_error", "message": "it broke"}),
            True,
            "it broke",
        ),
        (sse_answer(*BEGUN, {"type": "error", "error": {"message": "it broke"}}), True, "it broke"),
        (sse_answer(*BEGUN, {"type": "response.failed", "response": FAILED}), True, "it broke"),
        (sse_answer({"type": "response.failed", "response": None}), True, "unknown error"),
        (
            sse_answer({"type": "error", "code": "invalid_prompt", "message": "not this"}),
            False,
            "not this",
        ),
    ],
)
async def test_a_broken_stream_raises_an_error(
    server: ScriptedServer,
    model: OpenAIResponsesModel,
    answer: Answer,
    retryable: bool,
    expected_text: str,
) -> None:
    """A partial answer must not pass for a complete one."""
    server.answer(answer)
    with pytest.raises(ModelError, match=expected_text) as caught:
        await ask(model, "hi")
    assert type(caught.value) is ModelError
    assert caught.value.retryable is retryable


async def test_a_context_overflow_in_the_stream_is_not_retryable(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """A retry would not make the conversation shorter."""
    error = {"code": "context_length_exceeded", "message": "Your input is too big."}
    server.answer(sse_answer({"type": "error", **error}), sse_answer({"error": error}))
    for _ in range(2):
        with pytest.raises(ContextWindowExceeded) as caught:
            await ask(model, "hi")
        assert not caught.value.retryable


async def test_a_connection_error_after_the_answer_is_ignored(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """The answer is complete; a second request would cost the same again."""
    server.answer(sse_answer(completed(message("Hi")), cut=True))
    recorded = await ask(model, "hi")
    assert recorded.items == [
        MessageOutputItem(text="Hi", id="msg_1", provider_data={"openai": {"id": "msg_1"}})
    ]


async def test_a_silent_server_times_out(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """The timeout applies to the whole request, however slowly data arrives."""
    server.answer(sse_answer(*BEGUN, threading.Event()))
    with pytest.raises(ModelError, match=r"within 0\.2 s") as caught:
        await ask(model, "hi", settings=ModelSettings(timeout=0.2))
    assert caught.value.retryable
    assert server.hung_up.wait(5)


async def test_cancelling_closes_the_connection(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """A request that was cancelled must not keep using tokens."""
    begun = asyncio.Event()
    server.answer(sse_answer(*BEGUN, threading.Event()))
    request = ModelRequest(input=[])
    task = asyncio.create_task(model.respond(request, lambda event: begun.set()))
    await asyncio.wait_for(begun.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.hung_up.wait, 5)


# --- clients


async def test_a_missing_key_is_reported_at_the_first_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Creating a model must work without a key, for tests and late configuration."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    model = load_model("openai/gpt-no-key")
    assert isinstance(model, OpenAIResponsesModel)
    assert repr(model) == "OpenAIResponsesModel('gpt-no-key')"
    with pytest.raises(UserError, match=r"'gpt-no-key' has no API key\. Set OPENAI_API_KEY"):
        await ask(model, "hi")


async def test_key_and_address_come_from_the_environment(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is read at each request, as it can change while a program runs."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/env")
    model = OpenAIResponsesModel("m")
    for key in ("key-number-one", "key-number-two"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        server.answer(complete_answer())
        await ask(model, "hi")
        assert server.last.path == "/env/responses"
        assert server.last.headers["authorization"] == f"Bearer {key}"
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:1")
    with pytest.raises(UserError, match=r"OPENAI_BASE_URL.*http://"):
        await ask(model, "hi")


async def test_a_users_client_is_used_unchanged(server: ScriptedServer) -> None:
    """It can have proxies and certificates, and only its owner closes it."""
    async with openai.AsyncOpenAI(
        api_key="own-key", base_url=server.url, default_headers={"x-own": "1"}
    ) as client:
        server.answer(complete_answer(), complete_answer())
        model = OpenAIResponsesModel("m", client=client)
        await ask(model, "hi")
        await ask(model, "hi")
        assert server.last.headers["x-own"] == "1"
        assert not client.is_closed()


def test_invalid_clients_are_rejected_by_the_constructor() -> None:
    """The error belongs to the wrong line, not to the first request."""
    with openai.OpenAI(api_key="x") as sync:
        with pytest.raises(UserTypeError, match="synchronous"):
            OpenAIResponsesModel("m", client=sync)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        with pytest.raises(UserValueError, match="cannot be combined"):
            OpenAIResponsesModel("m", client=openai.AsyncOpenAI(api_key="x"), api_key="x")
    with pytest.raises(UserTypeError, match="got str"):
        OpenAIResponsesModel("m", client="x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserValueError, match=r"base_url=: .*'localhost'"):
        OpenAIResponsesModel("m", base_url="localhost")


def test_a_model_works_in_several_event_loops_in_turn(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """Calling `asyncio.run` twice is common; connections of a closed loop are dead and leak."""

    async def twice() -> None:
        server.answer(complete_answer(message("a")), complete_answer(message("b")))
        await ask(model, "hi")
        await ask(model, "hi")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for opened in (1, 2):
            asyncio.run(twice())
            assert (
                server.connections == opened
            )  # the second request closed the connection of the first
            assert not _clients._loop_clients
        gc.collect()
    assert [one for one in caught if issubclass(one.category, ResourceWarning)] == []


def test_a_loop_that_was_closed_manually_is_released(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """Its clients refer to the loop; without this, each such loop would leak."""
    loop = asyncio.new_event_loop()
    server.answer(sse_answer(completed(), cut=True), sse_answer(completed(), cut=True))
    loop.run_until_complete(ask(model, "hi"))
    loop.close()
    assert loop in _clients._loop_clients
    asyncio.run(_asked(model))
    assert loop not in _clients._loop_clients


async def _asked(model: OpenAIResponsesModel) -> None:
    await ask(model, "hi")


async def test_hosted_tools_request_their_results(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """Results of a search are only sent if the request includes them, each once."""
    tools = tuple(FileSearchTool(["vs_1"], include_search_results=True) for _ in range(2))
    server.answer(complete_answer())
    await ask(model, "hi", tools=tools)
    assert server.last.body["include"] == [
        "reasoning.encrypted_content",
        "file_search_call.results",
    ]
