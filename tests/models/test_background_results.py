"""Results of calls in the background, through the loop and over every wire format."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import Agent, Runner, ToolOutputImage, function_tool
from agents_tools.models.anthropic import AnthropicModel
from agents_tools.models.openai_chat import OpenAIChatModel
from agents_tools.models.openai_responses import OpenAIResponsesModel
from agents_tools.policies import background
from tests.models import (
    test_anthropic as claude,
    test_openai_chat as chat,
    test_openai_responses as responses,
)
from tests.models.asking import check

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.models.http_server import Answer, ScriptedServer

KEY = "sk-none"
URL = "https://example.org/chart.png"
ACKNOWLEDGED = (
    "Call 'call_1' of tool 'draw' runs in the background. Its result follows in a later message. "
    "Continue with other work, and do not repeat the call."
)
HEAD = '<background_result call_id="call_1" tool="draw" status="ok">'
END = "</background_result>"


def _chat_answers() -> list[Answer]:
    delta = chat.calls(chat.call_delta(0, "{}", id="call_1", name="draw"))
    texts = [chat.complete_answer(chat.chunk({"content": text})) for text in ("Wait.", "Drawn.")]
    return [chat.complete_answer(delta, finish="tool_calls"), *texts]


def _responses_answers() -> list[Answer]:
    texts = [responses.complete_answer(responses.message(text)) for text in ("Wait.", "Drawn.")]
    return [responses.complete_answer(responses.call(1, "draw", "{}")), *texts]


def _claude_answers() -> list[Answer]:
    call = claude.complete_answer(*claude.tool_use(0, "call_1", "draw", "{}"), reason="tool_use")
    return [
        call,
        *(claude.complete_answer(*claude.text_block(0, text)) for text in ("Wait.", "Drawn.")),
    ]


WIRES: dict[str, tuple[Callable[[str], Any], Callable[[], list[Answer]], Any, Any]] = {
    "openai-chat": (
        lambda url: OpenAIChatModel("gpt", base_url=f"{url}/v1", api_key=KEY),
        _chat_answers,
        chat.CompletionCreateParamsStreaming,
        [
            {"role": "tool", "tool_call_id": "call_1", "content": ACKNOWLEDGED},
            {"role": "assistant", "content": "Wait."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": HEAD},
                    {"type": "image_url", "image_url": {"url": URL}},
                    {"type": "text", "text": END},
                ],
            },
        ],
    ),
    "openai": (
        lambda url: OpenAIResponsesModel("gpt", base_url=f"{url}/v1", api_key=KEY),
        _responses_answers,
        responses.ResponseCreateParamsStreaming,
        [
            {"type": "function_call_output", "call_id": "call_1", "output": ACKNOWLEDGED},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": HEAD},
                    {"type": "input_image", "image_url": URL, "detail": "auto"},
                    {"type": "input_text", "text": END},
                ],
            },
        ],
    ),
    "anthropic": (
        lambda url: AnthropicModel("claude", base_url=url, api_key=KEY),
        _claude_answers,
        claude.MessageCreateParamsStreaming,
        [
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": ACKNOWLEDGED}
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "Wait."}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": HEAD},
                    {"type": "image", "source": {"type": "url", "url": URL}},
                    {"type": "text", "text": END},
                ],
            },
        ],
    ),
}


@pytest.mark.parametrize("wire", WIRES)
async def test_the_result_of_a_call_in_the_background_is_a_valid_message(
    server: ScriptedServer, wire: str
) -> None:
    """The protocols allow one output for each call, which was the acknowledgement."""
    create_model, answers, body, expected = WIRES[wire]
    server.answer(*answers())
    is_waiting = asyncio.Event()

    @background()
    @function_tool
    async def draw() -> list[Any]:
        """Draw a chart."""
        await is_waiting.wait()
        return [ToolOutputImage(url=URL)]

    run = Runner.run_streamed(Agent("a", model=create_model(server.url), tools=[draw]), "Draw.")
    async for event in run.stream_events():
        if getattr(event, "name", "") == "message_output_created":
            is_waiting.set()
    assert run.final_output == "Drawn."
    sent = server.last.body
    check(body, sent)
    messages = sent["input"] if wire == "openai" else sent["messages"]
    if wire == "openai":  # the answer of the model has more fields
        messages = [one for one in messages if one.get("role") != "assistant"]
    assert messages[-len(expected) :] == expected
