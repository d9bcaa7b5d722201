"""The adapter for the models of Pydantic AI, with its own test models and a real server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from anthropic import AsyncAnthropic
from pydantic_ai import messages as wire
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import (
    AgentInfo,
    DeltaThinkingPart,
    DeltaToolCall,
    FunctionModel,
)
from pydantic_ai.providers.anthropic import AnthropicProvider

from agents_tools import (
    Agent,
    ImageGenerationTool,
    MessageOutputItem,
    ReasoningItem,
    Runner,
    ToolCallItem,
    ToolCallOutputItem,
    ToolOutputImage,
    ToolOutputText,
    UserError,
    WebSearchTool,
    function_tool,
)
from agents_tools.agents import ModelSettings, load_model
from agents_tools.content import MessageInputItem
from agents_tools.errors import ContextWindowExceeded, ModelError
from agents_tools.models.pydantic_ai import PydanticAIModel
from tests.models.asking import ask
from tests.models.http_server import Answer, json_answer, sse_answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.models.http_server import ScriptedServer

PNG = b"\x89PNG\r\n\x1a\n"


@function_tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
    """
    return a + b


def _model(*pieces: Any) -> tuple[PydanticAIModel, list[Any]]:
    """Return a model that streams the parts, and the list of the requests it receives."""
    asked: list[Any] = []

    async def stream(messages: list[wire.ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        asked.append((messages, info))
        for piece in pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    return PydanticAIModel(FunctionModel(stream_function=stream)), asked


async def test_text_is_streamed_and_returned_as_a_message() -> None:
    """User interfaces read the deltas; the history has the whole message."""
    model, _ = _model("Hel", "lo")
    recorded = await ask(model, "Hi")
    assert recorded.items == [MessageOutputItem(text="Hello")]
    deltas = [event["delta"] for event in recorded.emitted if event["type"].endswith("text.delta")]
    assert "".join(deltas) == "Hello"
    assert recorded.response is not None
    assert recorded.response.usage.requests == 1
    assert recorded.response.usage.output_tokens > 0


async def test_calls_are_passed_on_as_soon_as_they_are_complete() -> None:
    """A call can start while the model writes the next one."""
    model, _ = _model(
        {0: DeltaToolCall(name="add", json_args='{"a":', tool_call_id="c1")},
        {0: DeltaToolCall(json_args="1}")},
        {1: DeltaToolCall(name="add", json_args='{"a": 2}', tool_call_id="c2")},
    )
    recorded = await ask(model, "Add", tools=(add,))
    calls = [
        ToolCallItem(call_id="c1", name="add", arguments='{"a":1}'),
        ToolCallItem(call_id="c2", name="add", arguments='{"a": 2}'),
    ]
    assert recorded.items == calls
    assert recorded.calls == calls
    assert [event["call_id"] for event in recorded.emitted if "delta" in event] == [
        "c1",
        "c1",
        "c2",
    ]


async def test_reasoning_is_sent_back_with_its_signature() -> None:
    """Providers reject a turn whose signed reasoning is missing."""
    model, asked = _model(
        {0: DeltaThinkingPart(content="Hm", signature="s1")},
        {1: DeltaToolCall(name="add", json_args='{"a":1}', tool_call_id="c1")},
    )
    recorded = await ask(model, "Add", tools=(add,))
    thought, call = recorded.items
    assert isinstance(thought, ReasoningItem)
    assert thought.text == "Hm"
    output = ToolCallOutputItem(call_id="c1", name="add", output="2")
    await ask(model, "Add", thought, call, output, tools=(add,))
    messages, _ = asked[-1]
    (thinking, _) = messages[1].parts
    assert (thinking.content, thinking.signature) == ("Hm", "s1")


async def test_a_conversation_alternates_requests_and_responses() -> None:
    """Pydantic AI requires alternation, whatever the order of our items."""
    model, asked = _model("ok")
    await ask(
        model,
        MessageInputItem(content="Be brief.", role="developer"),
        "What is on it?",
        ToolCallItem(call_id="c1", name="look", arguments="{}"),
        ToolCallItem(call_id="c2", name="add", arguments='{"a":1}'),
        ToolCallOutputItem(
            call_id="c1",
            name="look",
            output=[ToolOutputText("a picture"), ToolOutputImage(data=PNG)],
        ),
        ToolCallOutputItem(call_id="c2", name="add", output="2"),
        MessageInputItem(content=[ToolOutputText("And?"), ToolOutputImage(url="http://x/y.png")]),
        instructions="You see.",
        tools=(add,),
        settings=ModelSettings(temperature=0.5, tool_choice="add", stop=["END"]),
    )
    messages, info = asked[-1]
    assert [(type(one).__name__, [part.part_kind for part in one.parts]) for one in messages] == [
        ("ModelRequest", ["system-prompt", "user-prompt"]),
        ("ModelResponse", ["tool-call", "tool-call"]),
        ("ModelRequest", ["tool-return", "user-prompt", "tool-return", "user-prompt"]),
    ]
    assert messages[-1].instructions == "You see."
    picture = messages[-1].parts[1].content
    assert picture[0] == "The content of call c1 other than text:"
    assert (picture[1].data, picture[1].media_type) == (PNG, "image/png")
    (definition,) = info.function_tools
    assert (definition.name, definition.description) == ("add", "Add two numbers.")
    assert definition.parameters_json_schema["required"] == ["a"]
    assert info.model_settings["temperature"] == 0.5
    assert info.model_settings["tool_choice"] == ["add"]
    assert info.model_settings["stop_sequences"] == ["END"]


@pytest.mark.parametrize(
    ("raised", "kind", "retryable"),
    [
        (ModelHTTPError(429, "m", {"message": "slow down"}), ModelError, True),
        (ModelHTTPError(503, "m", None), ModelError, True),
        (ModelHTTPError(401, "m", {"message": "no"}), ModelError, False),
        (ConnectionResetError("gone"), ModelError, True),
    ],
)
async def test_errors_are_converted_to_model_errors(
    raised: Exception, kind: type[ModelError], *, retryable: bool
) -> None:
    """The run decides by our error types whether to retry."""
    model, _ = _model("half", raised)
    with pytest.raises(kind) as caught:
        await ask(model, "Hi")
    assert caught.value.retryable is retryable
    assert model.name in str(caught.value)


async def test_a_run_calls_tools_through_the_adapter() -> None:
    """Arguments are parsed with the natural schema, including defaults."""

    async def stream(messages: list[wire.ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        last = messages[-1].parts[-1]
        if isinstance(last, wire.ToolReturnPart):
            yield f"It is {last.content}."
        else:
            yield {0: DeltaToolCall(name="add", json_args='{"a": 2}', tool_call_id="c1")}

    model = PydanticAIModel(FunctionModel(stream_function=stream))
    result = await Runner.run(Agent("Adder", tools=[add], model=model), "2 + 1?")
    assert result.final_output == "It is 3."


async def test_a_hosted_tool_is_rejected_by_name() -> None:
    """A tool that only the Responses API can run must not be dropped silently."""
    model, _ = _model("ok")
    with pytest.raises(UserError, match=r"'image_generation' \(ImageGenerationTool\).*'openai/…'"):
        await ask(model, "Hi", tools=(ImageGenerationTool(),))


async def test_a_restriction_that_a_provider_cannot_apply_is_refused_before_the_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search without its domain filter could read pages that the application excludes."""
    monkeypatch.setenv("GOOGLE_API_KEY", "none")
    model = PydanticAIModel("google:gemini-3-pro-preview")
    tool = WebSearchTool(filters={"allowed_domains": ["example.org"]})
    with pytest.raises(UserError, match="allowed_domains"):
        await ask(model, "Hi", tools=(tool,))


async def test_an_unknown_model_name_is_reported_with_the_name() -> None:
    """An exception of Pydantic AI must not reach the user."""
    with pytest.raises(UserError, match="'nobody:nothing'"):
        await ask(load_model("pydantic-ai/nobody:nothing"), "Hi")


# --- over HTTP, through the client that Pydantic AI uses


@pytest.fixture
def over_http(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], PydanticAIModel]:
    """Return a model of an OpenAI-compatible provider at the scripted server."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    return lambda: PydanticAIModel("openai-chat:gpt-5")


def _chunk(**delta: Any) -> dict[str, Any]:
    finish = delta.pop("finish", None)
    return {
        "id": "r1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-5-2026",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


async def test_a_request_over_http_returns_the_answer(
    server: ScriptedServer, over_http: Callable[[], PydanticAIModel]
) -> None:
    """The adapter must work over HTTP, not only with test models."""
    server.answer(
        sse_answer(
            _chunk(role="assistant", content="Hel"),
            _chunk(content="lo"),
            _chunk(finish="stop"),
            named=False,
            done=True,
        )
    )
    recorded = await ask(over_http(), "Hi", tools=(add,))
    assert [item.text for item in recorded.items if isinstance(item, MessageOutputItem)] == [
        "Hello"
    ]
    assert recorded.response is not None
    assert (recorded.response.finish_reason, recorded.response.model) == ("stop", "gpt-5-2026")
    body = server.requests[0].body
    assert body["messages"] == [{"role": "user", "content": "Hi"}]
    assert body["tools"][0]["function"]["name"] == "add"


async def test_the_prompt_cache_is_passed_on(server: ScriptedServer) -> None:
    """Pydantic AI sets the marks of the providers that it supports."""
    server.answer(json_answer({"error": {"message": "later"}}, status=400))
    client = AsyncAnthropic(api_key="key", base_url=server.url)
    inner = AnthropicModel("claude-sonnet-5", provider=AnthropicProvider(anthropic_client=client))
    async with client:
        with pytest.raises(ModelError):
            await ask(
                PydanticAIModel(inner),
                "Hi",
                tools=(add,),
                settings=ModelSettings(prompt_cache="1h"),
            )
    mark = {"type": "ephemeral", "ttl": "1h"}
    assert server.last.body["tools"][0]["cache_control"] == mark


async def test_an_error_of_a_real_server_is_marked_retryable_or_not(
    server: ScriptedServer, over_http: Callable[[], PydanticAIModel]
) -> None:
    """A busy server must not end a run; a context overflow must not be retried."""
    full = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    server.answer(
        Answer(status=429, headers={"retry-after": "7"}, pieces=(json.dumps({}).encode(),)),
        json_answer(full, status=400),
    )
    model = over_http()
    settings = ModelSettings(extra_body={})
    with pytest.raises(ModelError) as busy:
        await ask(model, "Hi", settings=settings)
    with pytest.raises(ModelError) as refused:
        await ask(model, "Hi", settings=settings)
    assert isinstance(refused.value, ContextWindowExceeded)
    assert (busy.value.retryable, busy.value.retry_after, busy.value.status) == (True, 7.0, 429)


async def test_a_refusal_is_returned_as_a_refusal(
    server: ScriptedServer, over_http: Callable[[], PydanticAIModel]
) -> None:
    """Pydantic AI has no part for it, so the answer was empty and was asked for again."""
    refused = [_chunk(refusal="I can "), _chunk(refusal="not."), _chunk(finish="stop")]
    server.answer(sse_answer(*refused, named=False, done=True))
    recorded = await ask(over_http(), "Hi")
    assert recorded.items == [MessageOutputItem(refusal="I can not.")]
    assert recorded.response is not None
    assert recorded.response.finish_reason == "refusal"
    assert [one["delta"] for one in recorded.emitted] == ["I can not."]


async def test_an_answer_that_ends_too_early_is_interrupted(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of an answer must not pass for all of it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    item = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
    part = {"type": "output_text", "text": "Hel", "annotations": [], "logprobs": []}
    at = {"output_index": 0, "content_index": 0, "item_id": "m", "sequence_number": 1}
    response = {"id": "r", "object": "response", "created_at": 1, "model": "gpt-5", "output": []}
    created = {**response, "status": "in_progress", "tools": [], "tool_choice": "auto"}
    events = [
        {"type": "response.created", "sequence_number": 0, "response": created},
        {"type": "response.output_item.added", **at, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **at, "delta": "Hel", "logprobs": []},
    ]
    server.answer(sse_answer(*events))
    with pytest.raises(ModelError, match="was interrupted") as caught:
        await ask(load_model("pydantic-ai/openai-responses:gpt-5"), "Hi")
    assert caught.value.retryable


def _message(reason: str, *blocks: dict[str, Any]) -> Answer:
    """Return an answer of the Messages API."""
    usage = {"input_tokens": 10, "output_tokens": 1}
    fields = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": []}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**fields, "usage": usage}},
        *[
            event
            for index, block in enumerate(blocks)
            for event in (
                {"type": "content_block_start", "index": index, "content_block": block},
                {"type": "content_block_stop", "index": index},
            )
        ],
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}},
    ]
    return sse_answer(*events, {"type": "message_stop"})


async def test_a_paused_answer_is_continued(server: ScriptedServer) -> None:
    """Anthropic pauses a long search; half of the answer is not the answer."""
    query = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    server.answer(_message("pause_turn", query), _message("end_turn", found, _text("done")))
    client = AsyncAnthropic(api_key="key", base_url=server.url)
    inner = AnthropicModel("claude-sonnet-5", provider=AnthropicProvider(anthropic_client=client))
    async with client:
        recorded = await ask(PydanticAIModel(inner), "Hi", tools=(WebSearchTool(),))
    call, message = recorded.items
    assert isinstance(call, ToolCallItem)
    assert call.provider_data is not None
    assert len(call.provider_data["pydantic-ai"]["parts"]) == 2  # the call and its result
    assert message == MessageOutputItem(text="done")
    assert recorded.response is not None
    assert recorded.response.usage.requests == 2
    assert recorded.response.usage.input_tokens == 20
    partial = server.last.body["messages"][-1]
    assert (partial["role"], partial["content"][0]["id"]) == ("assistant", "s1")


def _text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


async def test_a_failed_call_is_marked_as_failed(server: ScriptedServer) -> None:
    """The models of some providers are trained to correct themselves after such a mark."""
    server.answer(_message("end_turn", _text("ok")))
    client = AsyncAnthropic(api_key="key", base_url=server.url)
    inner = AnthropicModel("claude-sonnet-5", provider=AnthropicProvider(anthropic_client=client))
    history = [
        *(ToolCallItem(call_id="c1", name="add"), ToolCallItem(call_id="c2", name="add")),
        ToolCallOutputItem(call_id="c1", name="add", output="3"),
        ToolCallOutputItem(call_id="c2", name="add", output="no", status="tool_error"),
    ]
    async with client:
        await ask(PydanticAIModel(inner), "Hi", *history)
    assert [one["is_error"] for one in server.last.body["messages"][-1]["content"]] == [False, True]
