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
from pydantic import TypeAdapter

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
from tests.models.asking import Heard, ask, check
from tests.models.http_server import Answer, json_answer, sse_answer

if TYPE_CHECKING:
    from tests.models.http_server import ScriptedServer

BODY = TypeAdapter[Any](ResponseCreateParamsStreaming)
ITEM = TypeAdapter[Any](ResponseInputItemParam)
CHOICE = TypeAdapter[Any](ToolChoice)
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
    """A tool that the provider runs, as far as the adapter looks at it."""

    def __init__(self, name: str, **told: Any) -> None:
        self.name = name
        self.told = {"type": name, **told}

    def to_responses(self) -> dict[str, Any]:
        return self.told


@pytest.fixture
def model(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> OpenAIResponsesModel:
    """Give a model that is reached at the scripted server."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return OpenAIResponsesModel("gpt-5", base_url=f"{server.url}/v1", api_key=KEY)


# --- what a server sends


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
            "input_tokens_details": {"cached_tokens": 8},
            "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 4},
            "total_tokens": 29,
        },
        **more,
    }
    return {"type": f"response.{kind}", "response": response}


def whole(*output: dict[str, Any], **more: Any) -> Answer:
    items = [done(item, place) for place, item in enumerate(output)]
    return sse_answer(*items, completed(*output, **more))


# --- requests


async def test_a_request_says_everything_in_the_words_of_the_api(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """A field under a wrong name is refused, or worse, passed over."""
    server.answer(whole(message("{}")))
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
    check(BODY, server.last.body)
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
                                "description": "The other. (default 2)",
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
async def test_a_tool_can_be_chosen_by_the_name_it_has_here(
    server: ScriptedServer, model: OpenAIResponsesModel, chosen: str, sent: Any
) -> None:
    """The caller knows tools by name; how a kind of tool is chosen is the provider's affair."""
    server.answer(whole())
    tools = (
        add,
        Hosted("image_generation"),
        Hosted("docs", type="mcp", server_label="docs", server_url="https://example.com"),
    )
    await ask(model, "hi", tools=tools, settings=ModelSettings(tool_choice=chosen))
    check(CHOICE, server.last.body["tool_choice"])
    assert server.last.body["tool_choice"] == sent


async def test_without_tools_nothing_is_said_about_tools(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """The API refuses a choice among no tools."""
    server.answer(whole())
    settings = ModelSettings(tool_choice="auto", parallel_tool_calls=True)
    await ask(model, "hi", settings=settings)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & server.last.body.keys()


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({"settings": ModelSettings(stop=["."])}, r"stop=.*openai-chat/"),
        ({"settings": ModelSettings(tool_choice="ad"), "tools": (add,)}, r"'ad'.*: add\."),
        ({"settings": ModelSettings(extra_body={"x": object()})}, r"extra_body"),
        ({"settings": ModelSettings(extra_headers={"x": "\n"})}, r"extra_headers"),
        ({"instructions": "\ud800"}, r"cannot be sent.*surrogates"),
    ],
)
async def test_what_cannot_be_asked_is_told_before_anything_is_sent(
    server: ScriptedServer, model: OpenAIResponsesModel, request_: dict[str, Any], told: str
) -> None:
    """The caller's own mistake must not look like one of the provider."""
    with pytest.raises(UserError, match=told):
        await ask(model, "hi", **request_)
    assert not server.requests


async def test_sound_from_a_user_is_refused_and_from_a_tool_described(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """A user can choose another model; a result of a tool must not end the session."""
    sound = ToolOutputAudio(data=b"ID3", mime_type="audio/mpeg")
    with pytest.raises(UserValueError, match=r"input\[0\]\.content\[0\].*openai-chat/"):
        await ask(model, MessageInputItem(content=[sound]))
    server.answer(whole())
    await ask(
        model,
        ToolCallItem(call_id="call_1", name="look"),
        ToolCallOutputItem(call_id="call_1", output=[sound, ToolOutputImage(data=PNG)]),
    )
    check(BODY, server.last.body)
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


async def test_the_same_tools_are_told_once(
    server: ScriptedServer, model: OpenAIResponsesModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand tools must not be described anew in every turn, whoever else asks in between."""
    described: list[str] = []
    project = openai_responses.ToolDefinitionCache._definition

    def counted(self: Any, tool: Any) -> Any:
        described.append(tool.name)
        return project(self, tool)

    monkeypatch.setattr(openai_responses.ToolDefinitionCache, "_definition", counted)
    one, other = (add, look), (look,)
    for tools in (one, other, one, other, one):
        server.answer(whole())
        await ask(model, "hi", tools=tools)
        assert [told["name"] for told in server.last.body["tools"]] == [x.name for x in tools]
    assert described == ["add", "look", "look"]


async def test_a_tool_that_cannot_be_told_is_left_out_with_one_warning(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """One bad tool never breaks the session."""

    @function_tool(metadata={"openai": {"name": "other"}})
    def bad() -> None:
        """Contradicts itself."""

    server.answer(whole(), whole())
    with pytest.warns(UserWarning, match=r"Tool 'bad' is left out.*'name'"):
        await ask(model, "hi", tools=(bad, add))
    await ask(model, "hi", tools=(add, bad))
    assert [told["name"] for told in server.last.body["tools"]] == ["add"]


# --- answers


async def test_an_answer_comes_in_pieces_and_as_a_whole(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """What is shown live and what is recorded must be the same."""
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
    heard = await ask(model, "hi")
    assert heard.response is not None
    assert heard.items == snapshot(
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
    assert heard.said == snapshot(
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
    assert heard.response.usage == Usage(
        requests=1,
        input_tokens=20,
        output_tokens=9,
        cached_input_tokens=8,
        reasoning_tokens=4,
    )
    assert heard.response.finish_reason == "stop"
    assert heard.response.response_id == "resp_1"
    assert heard.response.model == "gpt-5-2025"
    assert heard.response.raw.output_text == "Hello"


async def test_parallel_calls_are_handed_over_one_by_one_while_the_answer_still_comes(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """A call can run while the model still writes the next one, however their pieces mix."""
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

    heard = Heard()
    request = ModelRequest(input=[], tools=(add, look), on_call=on_call)
    response = await model.respond(request, heard.emit)
    assert [one.arguments for one in calls] == ['{"a":1, "b":2}', '{"place": "hér"}']
    assert calls == list(response.items)
    assert response.finish_reason == "tool_calls"
    pieces = [one for one in heard.said if "arguments" in one["type"]]
    assert [(one["call_id"], one["delta"]) for one in pieces] == [
        ("call_1", '{"a":1,'),
        ("call_2", '{"place":'),
        ("call_1", ' "b":2}'),
        ("call_2", ' "hér"}'),
    ]


@pytest.mark.parametrize("told", ["done only", "completed only", "no index"])
async def test_items_are_found_wherever_a_server_tells_them(
    server: ScriptedServer, model: OpenAIResponsesModel, told: str
) -> None:
    """Servers that imitate the API leave out what they hold for redundant."""
    items = [call(1, "add", "", call_id=None), call(2, "add", '{"a": 3}')]
    events = [added(items[0]), *(done(item, place) for place, item in enumerate(items))]
    if told == "no index":
        for event in events:
            del event["output_index"]
    final = completed(*([] if told == "done only" else items), usage=None, model=None)
    server.answer(sse_answer(*([] if told == "completed only" else events), final))
    heard = await ask(model, "hi", tools=(add,))
    assert heard.calls == heard.items
    made_up, given_ = heard.calls
    assert made_up.call_id.startswith("call_")
    assert len(made_up.call_id) > 20
    assert (made_up.arguments, given_.call_id) == ("{}", "call_2")
    if told != "completed only":
        assert heard.said[0]["item"]["call_id"] == made_up.call_id
    assert heard.response is not None
    assert heard.response.usage == Usage(requests=1)
    assert heard.response.model is None


REFUSED = message("")
REFUSED["content"] = [{"type": "refusal", "refusal": "No."}]


@pytest.mark.parametrize(
    ("answer", "reason", "items"),
    [
        (whole(), "stop", []),
        (whole(message("")), "stop", [""]),
        (whole(REFUSED), "refusal", ["No."]),
        (
            whole(
                message("Hal"),
                kind="incomplete",
                incomplete_details={"reason": "max_output_tokens"},
            ),
            "length",
            ["Hal"],
        ),
        (
            whole(kind="incomplete", incomplete_details={"reason": "content_filter"}),
            "content_filter",
            [],
        ),
    ],
)
async def test_an_answer_tells_why_it_ends(
    server: ScriptedServer, model: OpenAIResponsesModel, answer: Answer, reason: str, items: Any
) -> None:
    """The loop decides by it whether there is more to do."""
    server.answer(answer)
    heard = await ask(model, "hi")
    assert heard.response is not None
    assert heard.response.finish_reason == reason
    messages = [item for item in heard.items if isinstance(item, MessageOutputItem)]
    assert [item.refusal or item.text for item in messages] == items


async def test_a_call_that_was_cut_off_is_recorded_and_not_handed_over(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """Half a call would do something else than the whole one."""
    half = call(1, "add", '{"a": 1', status="incomplete")
    details = {"reason": "max_output_tokens"}
    final = completed(half, kind="incomplete", incomplete_details=details)
    for events in ([added(half), done(half), final], [final]):
        server.answer(sse_answer(*events))
        heard = await ask(model, "hi", tools=(add,))
        assert [item.arguments for item in heard.items if isinstance(item, ToolCallItem)] == [
            '{"a": 1'
        ]
        assert heard.calls == []


# --- history


async def test_a_conversation_goes_back_as_it_came(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """Nothing is stored at the provider, so thoughts must return in their encrypted form."""
    thought = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [],
        "encrypted_content": "gAAAA",
        "status": None,
    }
    wanted = call(1, "add", '{"a" : 1}', namespace="math")
    output = ToolCallOutputItem(call_id="call_1", name="add", output="3")
    server.answer(whole(thought, message("Wait.", phase="commentary"), wanted), whole())
    first = await ask(model, "hi", tools=(add,))
    kept = [item_from_dict(json.loads(json.dumps(item.to_dict()))) for item in first.items]
    assert kept == first.items
    foreign = ReasoningItem(text="x", id="x", provider_data={"anthropic": {"signature": "s"}})
    await ask(model, "hi", *first.items, output, foreign, "and now?", tools=(add,))
    check(BODY, server.last.body)
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


async def test_what_other_models_said_is_told_in_a_form_that_is_taken(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """A conversation can change its model half-way."""
    server.answer(whole())
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
    check(BODY, server.last.body)
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


async def test_hosted_tools_are_told_and_their_calls_come_as_items(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """What the provider has run needs no answer; what it only asks for runs on this machine."""
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
    server.answer(whole(search, shell, computer, computer | {"id": "cu_2"}, approval), whole())
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
    del sent[6]["call_id"]  # the server asks for it, though the client's types do not have it
    check(BODY, body)


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
def test_any_history_is_written_in_the_types_of_the_client(history: list[Item]) -> None:
    """A history may come from anywhere; what is sent of it must be within the API."""
    for one in openai_responses._input(history, stored=False):
        check(ITEM, one)
        assert len(one.get("call_id", "")) <= 64


async def test_a_run_asks_calls_and_asks_again(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """The adapter and the loop must mean the same: nulls of the strict dialect, ids, thoughts."""
    thought = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    wanted = [call(1, "add", '{"a": 1, "b": null}'), call(2, "look", '{"place": "here"}')]
    server.answer(whole(thought, *wanted), whole(message("3, here")))
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
async def test_a_refused_request_tells_what_helps(
    server: ScriptedServer,
    model: OpenAIResponsesModel,
    status: int,
    error: dict[str, Any],
    headers: dict[str, str],
    expected: tuple[type[ModelError], bool, float | None, str],
) -> None:
    """The loop retries what may pass and shows the rest: both need the same few facts."""
    kind, retryable, after, told = expected
    server.answer(json_answer({"error": error}, status=status, headers=headers))
    with pytest.raises(ModelError, match=told) as caught:
        await ask(model, "hi")
    found = caught.value
    assert type(found) is kind
    assert (found.status, found.model) == (status, "gpt-5")
    assert (found.retryable, found.retry_after) == (retryable, after)
    assert KEY not in str(found)
    assert len(str(found)) < 800
    assert len(server.requests) == 1


async def test_a_date_to_retry_after_counts_from_now(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """HTTP allows dates, and a proxy may well send one."""
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
async def test_a_refused_tool_is_named(
    server: ScriptedServer, model: OpenAIResponsesModel, error: dict[str, Any]
) -> None:
    """The loop goes on without the tool that the provider does not take."""
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
async def test_a_refusal_of_something_else_blames_no_tool(
    server: ScriptedServer, model: OpenAIResponsesModel, error: dict[str, Any]
) -> None:
    """Leaving out an innocent tool changes what the agent can do and mends nothing."""
    server.answer(json_answer({"error": error}, status=400))
    with pytest.raises(ModelError) as caught:
        await ask(model, "hi", tools=(add,))
    assert type(caught.value) is ModelError


async def test_a_model_without_encrypted_reasoning_is_asked_again_without_it(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """Models that do not reason refuse the field; the one refusal is paid once."""
    refused = {"message": "Encrypted content is not supported with this model.", "param": "include"}
    server.answer(json_answer({"error": refused}, status=400), whole(), whole())
    await ask(model, "hi")
    await ask(model, "hi")
    assert ["include" in request.body for request in server.requests] == [True, False, False]
    check(BODY, server.last.body)


START = added(message(""))
BEGUN = [START, delta("Hel", 0, "output_text")]
FAILED = {"id": "resp_1", "error": {"code": "server_error", "message": "it broke"}}


@pytest.mark.parametrize(
    ("answer", "retryable", "told"),
    [
        (sse_answer(*BEGUN), True, "ended before"),
        (sse_answer(*BEGUN, cut=True), True, "was interrupted"),
        (sse_answer(*BEGUN, "{garbage"), True, "JSON"),
        (sse_answer(*BEGUN, b"data: \xff\xfe\n\n"), True, "UnicodeDecodeError"),
        (sse_answer("null", "7", '"x"', "[]"), True, "ended before"),
        (Answer(silent=True), True, "could not be reached"),
        (json_answer({"id": "resp_1"}), True, "ended before"),
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
async def test_a_broken_stream_is_no_half_answer(
    server: ScriptedServer,
    model: OpenAIResponsesModel,
    answer: Answer,
    retryable: bool,
    told: str,
) -> None:
    """Half an answer that passes for a whole one is worse than none."""
    server.answer(answer)
    with pytest.raises(ModelError, match=told) as caught:
        await ask(model, "hi")
    assert type(caught.value) is ModelError
    assert caught.value.retryable is retryable


async def test_a_conversation_found_too_long_in_the_stream_is_told_as_such(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """Asking again would not make it shorter."""
    error = {"code": "context_length_exceeded", "message": "Your input is too big."}
    server.answer(sse_answer({"type": "error", **error}), sse_answer({"error": error}))
    for _ in range(2):
        with pytest.raises(ContextWindowExceeded) as caught:
            await ask(model, "hi")
        assert not caught.value.retryable


async def test_a_connection_that_breaks_behind_the_answer_breaks_nothing(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """Everything had come; asking again would cost the same once more."""
    server.answer(sse_answer(completed(message("Hi")), cut=True))
    heard = await ask(model, "hi")
    assert heard.items == [
        MessageOutputItem(text="Hi", id="msg_1", provider_data={"openai": {"id": "msg_1"}})
    ]


async def test_a_server_that_is_silent_is_not_waited_upon_for_ever(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """The time of a request counts for all of it, however it trickles."""
    server.answer(sse_answer(*BEGUN, threading.Event()))
    with pytest.raises(ModelError, match=r"within 0\.2 s") as caught:
        await ask(model, "hi", settings=ModelSettings(timeout=0.2))
    assert caught.value.retryable
    assert server.hung_up.wait(5)


async def test_cancelling_hangs_up(server: ScriptedServer, model: OpenAIResponsesModel) -> None:
    """A request nobody waits for must not go on costing tokens."""
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


async def test_without_a_key_the_remedy_is_told_at_the_first_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Making a model must work anywhere, for tests and for programs that choose later."""
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
    """That is where programs are configured, and it may change while one runs."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/env")
    model = OpenAIResponsesModel("m")
    for key in ("key-number-one", "key-number-two"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        server.answer(whole())
        await ask(model, "hi")
        assert server.last.path == "/env/responses"
        assert server.last.headers["authorization"] == f"Bearer {key}"
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:1")
    with pytest.raises(UserError, match=r"OPENAI_BASE_URL.*http://"):
        await ask(model, "hi")


async def test_a_client_of_ones_own_is_used_as_it_is(server: ScriptedServer) -> None:
    """It may carry proxies and certificates, and closing it is its owner's affair."""
    async with openai.AsyncOpenAI(
        api_key="own-key", base_url=server.url, default_headers={"x-own": "1"}
    ) as client:
        server.answer(whole(), whole())
        model = OpenAIResponsesModel("m", client=client)
        await ask(model, "hi")
        await ask(model, "hi")
        assert server.last.headers["x-own"] == "1"
        assert not client.is_closed()


def test_wrong_clients_are_refused_where_they_are_given() -> None:
    """The error belongs to the line that is wrong, not to the first request."""
    with openai.OpenAI(api_key="x") as sync:
        with pytest.raises(UserTypeError, match="synchronous"):
            OpenAIResponsesModel("m", client=sync)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        with pytest.raises(UserValueError, match="cannot be combined"):
            OpenAIResponsesModel("m", client=openai.AsyncOpenAI(api_key="x"), api_key="x")
    with pytest.raises(UserTypeError, match="got str"):
        OpenAIResponsesModel("m", client="x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserValueError, match=r"base_url=: .*'localhost'"):
        OpenAIResponsesModel("m", base_url="localhost")


def test_one_model_serves_one_event_loop_after_the_other(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """`asyncio.run` twice is ordinary; a connection of a closed loop is dead and would leak."""

    async def twice() -> None:
        server.answer(whole(message("a")), whole(message("b")))
        await ask(model, "hi")
        await ask(model, "hi")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for opened in (1, 2):
            asyncio.run(twice())
            assert server.connections == opened  # the second request found the first one's open
            assert not _clients._loop_clients
        gc.collect()
    assert [one for one in caught if issubclass(one.category, ResourceWarning)] == []


def test_a_loop_that_was_closed_by_hand_is_forgotten(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """Its clients hold the loop itself: without this, each such loop would stay for ever."""
    loop = asyncio.new_event_loop()
    server.answer(sse_answer(completed(), cut=True), sse_answer(completed(), cut=True))
    loop.run_until_complete(ask(model, "hi"))
    loop.close()
    assert loop in _clients._loop_clients
    asyncio.run(_asked(model))
    assert loop not in _clients._loop_clients


async def _asked(model: OpenAIResponsesModel) -> None:
    await ask(model, "hi")


async def test_hosted_tools_ask_for_what_they_want_in_the_answer(
    server: ScriptedServer, model: OpenAIResponsesModel
) -> None:
    """Results of a search that are wanted have to be asked for, each once."""
    tools = tuple(FileSearchTool(["vs_1"], include_search_results=True) for _ in range(2))
    server.answer(whole())
    await ask(model, "hi", tools=tools)
    assert server.last.body["include"] == [
        "reasoning.encrypted_content",
        "file_search_call.results",
    ]
