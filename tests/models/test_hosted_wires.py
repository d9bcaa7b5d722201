"""Hosted tools of Anthropic and Gemini: their requests, and their calls in the next request.

The tools of OpenAI are in `test_openai_responses.py`.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from inline_snapshot import snapshot

from agents_tools import Agent, Runner, ToolCallItem, function_tool
from agents_tools.agents import (
    CodeInterpreterTool,
    ModelSettings,
    WebFetchTool,
    WebSearchTool,
)
from agents_tools.content import MessageInputItem, MessageOutputItem
from agents_tools.errors import UserError
from agents_tools.events import RunItemStreamEvent
from agents_tools.models.anthropic import AnthropicModel
from agents_tools.models.pydantic_ai import PydanticAIModel
from tests.models import gemini_server as gemini
from tests.models.asking import ask, check
from tests.models.test_anthropic import complete_answer, delta, start, stop, text_block, tool_use

if TYPE_CHECKING:
    from tests.models.http_server import ScriptedServer

HOSTED = (WebSearchTool(), WebFetchTool(), CodeInterpreterTool())


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
def claude(server: ScriptedServer) -> AnthropicModel:
    """Return a model that sends its requests to the scripted server."""
    return AnthropicModel("claude", base_url=server.url, api_key="none")


@pytest.fixture
def google(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> PydanticAIModel:
    """Return a Gemini model that sends its requests to the scripted server."""
    return gemini.gemini(server, monkeypatch)


# --- Anthropic


def _server_use(index: int, call_id: str, name: str, **arguments: Any) -> list[dict[str, Any]]:
    return [
        start(index, "server_tool_use", id=call_id, name=name, input={}),
        delta(index, "input_json_delta", partial_json=json.dumps(arguments)),
        stop(index),
    ]


def _result(index: int, kind: str, call_id: str, content: Any) -> list[dict[str, Any]]:
    return [start(index, kind, tool_use_id=call_id, content=content), stop(index)]


FOUND = [
    {
        "type": "web_search_result",
        "url": "https://example.com",
        "title": "Weather",
        "encrypted_content": "ZW5j",
        "page_age": None,
    }
]
RAN = {
    "type": "bash_code_execution_result",
    "stdout": "4\n",
    "stderr": "",
    "return_code": 0,
    "content": [],
}


def _code_answer(expires_at: datetime) -> Any:
    container = {"id": "container_1", "expires_at": expires_at.isoformat()}
    return complete_answer(
        *_server_use(0, "srv_1", "bash_code_execution", command="echo 4"),
        *_result(1, "bash_code_execution_tool_result", "srv_1", RAN),
        *text_block(2, "It is 4."),
        container=container,
    )


async def test_a_run_sends_the_hosted_tools_of_anthropic_and_keeps_their_calls(
    server: ScriptedServer, claude: AnthropicModel
) -> None:
    """The API refuses a call without its result, and a result with changed content."""
    server.answer(
        complete_answer(
            *_server_use(0, "srv_1", "web_search", query="weather"),
            *_result(1, "web_search_tool_result", "srv_1", FOUND),
            *tool_use(2, "call_1", "add", '{"a": 1, "b": 2}'),
            reason="tool_use",
        ),
        complete_answer(*text_block(0, "Sunny, and 3.")),
    )
    agent = Agent("a", tools=[*HOSTED, add], model=claude)
    run = Runner.run_streamed(agent, "Weather? 1 + 2?")
    names = [
        event.name async for event in run.stream_events() if isinstance(event, RunItemStreamEvent)
    ]
    assert names == ["tool_called", "tool_called", "tool_output", "message_output_created"]
    first = run.new_items[0]
    assert isinstance(first, ToolCallItem)
    assert (first.kind, first.arguments) == ("hosted", '{"query": "weather"}')
    check(MessageCreateParamsStreaming, server.last.body)
    assert server.last.body["tools"][:3] == [
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "web_fetch_20250910", "name": "web_fetch"},
        {"type": "code_execution_20250825", "name": "code_execution"},
    ]
    assert server.last.body["messages"] == snapshot(
        [
            {"role": "user", "content": [{"type": "text", "text": "Weather? 1 + 2?"}]},
            {
                "role": "assistant",
                "content": [
                    {
                        "id": "srv_1",
                        "input": {"query": "weather"},
                        "name": "web_search",
                        "type": "server_tool_use",
                    },
                    {
                        "content": [
                            {
                                "encrypted_content": "ZW5j",
                                "page_age": None,
                                "title": "Weather",
                                "type": "web_search_result",
                                "url": "https://example.com",
                            }
                        ],
                        "tool_use_id": "srv_1",
                        "type": "web_search_tool_result",
                    },
                    {"type": "tool_use", "id": "call_1", "name": "add", "input": {"a": 1, "b": 2}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "3"}],
            },
        ]
    )


async def test_the_sandbox_of_anthropic_is_used_again_until_it_expires(
    server: ScriptedServer, claude: AnthropicModel
) -> None:
    """The next request finds the files of the last one; an expired sandbox is an error."""
    soon, past = (datetime.now(UTC) + timedelta(hours=one) for one in (1, -1))
    server.answer(_code_answer(soon), _code_answer(past), _code_answer(soon), _code_answer(soon))
    first = await ask(claude, "2 + 2?", tools=HOSTED)
    assert "container" not in server.last.body
    second = await ask(claude, "2 + 2?", *first.items, "Again.", tools=HOSTED)
    assert server.last.body["container"] == {"id": "container_1"}
    check(MessageCreateParamsStreaming, server.last.body)
    await ask(claude, "2 + 2?", *second.items, "Again.", tools=HOSTED)
    assert "container" not in server.last.body
    await ask(claude, "2 + 2?", *first.items, "Again.", tools=(add,))
    assert "container" not in server.last.body  # there is no tool that could use it


async def test_code_that_waits_for_a_function_call_continues_in_its_sandbox(
    server: ScriptedServer, claude: AnthropicModel
) -> None:
    """The result of the code arrives in the response after the output of the function."""
    caller = {"type": "code_execution_20250825", "tool_id": "srv_1"}
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    ran = {**RAN, "type": "code_execution_result"}
    call = start(1, "tool_use", id="call_1", name="add", input={"a": 1, "b": 2}, caller=caller)
    server.answer(
        complete_answer(
            *_server_use(0, "srv_1", "code_execution", code="await add(1, 2)"),
            *(call, stop(1)),
            reason="tool_use",
            container={"id": "container_1", "expires_at": soon},
        ),
        complete_answer(
            *_result(0, "code_execution_tool_result", "srv_1", ran), *text_block(1, "3.")
        ),
        complete_answer(*text_block(0, "Sure.")),
    )
    agent = Agent("a", tools=[CodeInterpreterTool(), add], model=claude)
    result = await Runner.run(agent, "1 + 2?")
    body = server.last.body
    check(MessageCreateParamsStreaming, body)
    assert body["container"] == {"id": "container_1"}
    assert [block["type"] for block in body["messages"][1]["content"]] == [
        "server_tool_use",
        "tool_use",
    ]
    await Runner.run(agent, [*result.to_input_list(), {"role": "user", "content": "Sure?"}])
    check(MessageCreateParamsStreaming, server.last.body)
    blocks = [
        block["type"]
        for message in server.last.body["messages"]
        if message["role"] == "assistant"
        for block in message["content"]
    ]
    assert blocks == ["server_tool_use", "tool_use", "code_execution_tool_result", "text"]


async def test_results_of_calls_that_run_at_once_keep_their_order(
    server: ScriptedServer, claude: AnthropicModel
) -> None:
    """Signed reasoning next to them is only valid in the same order."""
    server.answer(
        complete_answer(
            *_server_use(0, "srv_1", "web_search", query="a"),
            *_server_use(1, "srv_2", "web_search", query="b"),
            *_result(2, "web_search_tool_result", "srv_2", FOUND),
            *_result(3, "web_search_tool_result", "srv_1", FOUND),
            *text_block(4, "Found."),
        ),
        complete_answer(*text_block(0, "Sure.")),
    )
    recorded = await ask(claude, "a and b?", tools=HOSTED)
    assert [item.arguments for item in recorded.items if isinstance(item, ToolCallItem)] == [
        '{"query": "a"}',
        '{"query": "b"}',
    ]
    await ask(claude, "a and b?", *recorded.items, "Sure?", tools=HOSTED)
    blocks = server.last.body["messages"][1]["content"]
    assert [block.get("tool_use_id", block.get("id")) for block in blocks] == [
        *("srv_1", "srv_2", "srv_2", "srv_1"),
        None,
    ]


@pytest.mark.parametrize("kept", ["call", "result"])
async def test_half_of_a_hosted_call_is_not_sent_back(
    server: ScriptedServer, claude: AnthropicModel, kept: str
) -> None:
    """A response can be cut off after a call, and a history before a result."""
    use = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": FOUND}
    item = ToolCallItem(
        call_id="srv_1",
        name="web_search",
        kind="hosted",
        provider_data={"anthropic": {"blocks": [use if kept == "call" else result]}},
    )
    server.answer(complete_answer(*text_block(0, "Hi.")))
    await ask(claude, "Hi", item, MessageOutputItem(text="So"), "Go on.", tools=HOSTED)
    assert server.last.body["messages"][1]["content"] == [{"type": "text", "text": "So"}]


async def test_a_tool_choice_names_a_hosted_tool_as_the_provider_does(
    server: ScriptedServer, claude: AnthropicModel
) -> None:
    """The name of the tool here is that of the Responses API."""
    server.answer(complete_answer(*text_block(0, "Hi.")))
    settings = ModelSettings(tool_choice="code_interpreter")
    await ask(claude, "Hi", tools=HOSTED, settings=settings)
    check(MessageCreateParamsStreaming, server.last.body)
    assert server.last.body["tool_choice"] == {"type": "tool", "name": "code_execution"}


# --- Gemini


async def test_a_run_sends_the_hosted_tools_of_gemini_and_keeps_their_calls(
    server: ScriptedServer, google: PydanticAIModel
) -> None:
    """The API expects code, results and thought signatures back as they were."""
    server.answer(
        gemini.answer(
            {
                "executableCode": {"id": "e1", "language": "PYTHON", "code": "print(4)"},
                "thoughtSignature": "c2ln",
            },
            {"codeExecutionResult": {"id": "e1", "outcome": "OUTCOME_OK", "output": "4\n"}},
            {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
            {
                "toolCall": {
                    "id": "t1",
                    "toolType": "GOOGLE_SEARCH_WEB",
                    "args": {"queries": ["weather"]},
                },
                "thoughtSignature": "c2ln",
            },
            {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}},
            {
                "functionCall": {"id": "f1", "name": "add", "args": {"a": 1, "b": 2}},
                "thoughtSignature": "c2ln",
            },
        ),
        gemini.answer({"text": "Sunny."}),
    )
    agent = Agent("a", tools=[*HOSTED, add], model=google)
    result = await Runner.run(agent, "Weather? 2 + 2?")
    kinds = [(item.name, item.kind) for item in result.new_items if isinstance(item, ToolCallItem)]
    assert kinds == [
        ("code_execution", "hosted"),
        ("generated_file", "hosted"),
        ("web_search", "hosted"),
        ("add", "function"),
    ]
    sent = gemini.contents(server)
    tools = [name for tool in server.last.body["tools"] for name in tool]
    assert tools == ["googleSearch", "urlContext", "codeExecution", "functionDeclarations"]
    assert sent[1] == snapshot(
        {
            "parts": [
                {
                    "executableCode": {"code": "print(4)", "language": "PYTHON", "id": "e1"},
                    "thoughtSignature": "c2ln",
                },
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4\n", "id": "e1"}},
                {"inlineData": {"data": "iVBORw0KGgo=", "mime_type": "image/png"}},
                {
                    "thoughtSignature": "c2ln",
                    "toolCall": {
                        "id": "t1",
                        "tool_type": "GOOGLE_SEARCH_WEB",
                        "args": {"queries": ["weather"]},
                    },
                },
                {"toolResponse": {"id": "t1", "tool_type": "GOOGLE_SEARCH_WEB", "response": {}}},
                {
                    "functionCall": {"id": "f1", "args": {"a": 1, "b": 2}, "name": "add"},
                    "thoughtSignature": "c2ln",
                },
            ],
            "role": "model",
        }
    )


async def test_citations_of_gemini_are_in_the_message_and_its_signature_is_sent_back(
    server: ScriptedServer, google: PydanticAIModel
) -> None:
    """Google's terms require that its sources are shown next to the text."""
    support = {
        "segment": {"startIndex": 0, "endIndex": 12, "text": "It is sunny."},
        "groundingChunkIndices": [0],
    }
    grounding = {
        "webSearchQueries": ["weather"],
        "groundingChunks": [{"web": {"uri": "https://example.com", "title": "Weather"}}],
        "groundingSupports": [support],
    }
    server.answer(
        gemini.answer(
            {"text": "It is "},
            {"text": "sunny.", "thoughtSignature": "c2ln"},
            groundingMetadata=grounding,
        ),
        gemini.answer({"text": "Yes."}),
    )
    recorded = await ask(google, "Weather?", tools=(WebSearchTool(),))
    message, search = recorded.items
    assert isinstance(message, MessageOutputItem)
    assert isinstance(search, ToolCallItem)
    assert (search.name, search.arguments) == ("web_search", '{"queries": ["weather"]}')
    assert message.provider_data is not None
    (part,) = message.provider_data["pydantic-ai"]["parts"]
    assert part["citations"][0]["sources"][0]["url"] == "https://example.com"
    await ask(google, "Weather?", message, search, "Sure?", tools=(WebSearchTool(),))
    assert gemini.contents(server)[1]["parts"] == [
        {"text": "It is sunny.", "thoughtSignature": "c2ln"}
    ]


async def test_a_message_that_the_application_changed_is_sent_as_it_is_now(
    server: ScriptedServer, google: PydanticAIModel
) -> None:
    """Applications shorten or mask old messages; the signature is only valid for the old text."""
    stored = {
        "part_kind": "text",
        "content": "Long text.",
        "provider_name": "google",
        "provider_details": {"thought_signature": "c2ln"},
    }
    message = MessageOutputItem(text="Short.", provider_data={"pydantic-ai": {"parts": [stored]}})
    server.answer(gemini.answer({"text": "Yes."}))
    await ask(google, "Hi", message, MessageInputItem(content="Sure?"))
    assert gemini.contents(server)[1]["parts"] == [{"text": "Short."}]


async def test_damaged_data_of_a_hosted_call_is_refused_with_its_place(
    google: PydanticAIModel,
) -> None:
    """A history can come from a web page."""
    data = {"pydantic-ai": {"parts": [{"part_kind": "unknown"}]}}
    item = ToolCallItem(call_id="c", name="x", kind="hosted", provider_data=data)
    with pytest.raises(UserError, match=r"input\[1\]\.provider_data\['pydantic-ai'\]: expected"):
        await ask(google, "Hi", item, "Go on.")
