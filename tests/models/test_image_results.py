"""Images as results of tools, through the loop and over every wire format."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import Agent, Runner, ToolOutputFileContent, ToolOutputImage, function_tool
from agents_tools.models.anthropic import AnthropicModel
from agents_tools.models.openai_chat import OpenAIChatModel
from agents_tools.models.openai_responses import OpenAIResponsesModel
from agents_tools.models.pydantic_ai import PydanticAIModel
from tests.models import (
    test_anthropic as claude,
    test_openai_chat as chat,
    test_openai_responses as responses,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.models.http_server import Answer, ScriptedServer

KEY = "sk-none"
PNG = b"\x89PNG\r\n\x1a\n"
BASE64 = base64.b64encode(PNG).decode()
DATA_URL = f"data:image/png;base64,{BASE64}"


def _chat_answers() -> tuple[Answer, Answer]:
    delta = chat.calls(chat.call_delta(0, "{}", id="call_1", name="draw"))
    return (
        chat.complete_answer(delta, finish="tool_calls"),
        chat.complete_answer(chat.chunk({"content": "A chart."})),
    )


def _responses_answers() -> tuple[Answer, Answer]:
    return (
        responses.complete_answer(responses.call(1, "draw", "{}")),
        responses.complete_answer(responses.message("A chart.")),
    )


def _claude_answers() -> tuple[Answer, Answer]:
    return (
        claude.complete_answer(*claude.tool_use(0, "call_1", "draw", "{}"), reason="tool_use"),
        claude.complete_answer(*claude.text_block(0, "A chart.")),
    )


CLAUDE_IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": BASE64},
}
WIRES: dict[str, tuple[Callable[[str], Any], Callable[[], tuple[Answer, Answer]], Any]] = {
    "openai-chat": (
        lambda url: OpenAIChatModel("gpt", base_url=f"{url}/v1", api_key=KEY),
        _chat_answers,
        {"type": "image_url", "image_url": {"url": DATA_URL}},
    ),
    "openai": (
        lambda url: OpenAIResponsesModel("gpt", base_url=f"{url}/v1", api_key=KEY),
        _responses_answers,
        {"type": "input_image", "image_url": DATA_URL},
    ),
    "anthropic": (
        lambda url: AnthropicModel("claude", base_url=url, api_key=KEY),
        _claude_answers,
        CLAUDE_IMAGE,
    ),
    "pydantic-ai": (
        lambda _: PydanticAIModel("openai-chat:gpt"),
        _chat_answers,
        {"type": "image_url", "image_url": {"url": DATA_URL}},
    ),
}


def _parts(value: Any) -> list[Any]:
    """Return all JSON objects in a request."""
    if isinstance(value, dict):
        return [value, *(part for item in value.values() for part in _parts(item))]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return [part for item in value for part in _parts(item)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return []


@pytest.mark.parametrize(
    "value",
    [PNG, ToolOutputImage(PNG), ["See:", PNG, ToolOutputImage(PNG)]],
    ids=["bytes", "image", "list"],
)
@pytest.mark.parametrize("wire", WIRES)
async def test_the_model_sees_an_image_that_a_tool_returns(
    server: ScriptedServer, wire: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with the same bytes is shown to it as a name at most."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    create_model, answers, expected = WIRES[wire]
    server.answer(*answers())
    draw = function_tool(lambda: value, name_override="draw")
    result = await Runner.run(Agent("a", model=create_model(server.url), tools=[draw]), "Draw.")
    assert result.final_output == "A chart."
    shown = [part for part in _parts(server.last.body) if expected.items() <= part.items()]
    assert shown != []


async def test_claude_sees_an_image_in_a_file_block(server: ScriptedServer) -> None:
    """Servers and tools can call any data a file."""
    server.answer(*_claude_answers())
    block = ToolOutputFileContent(PNG, filename="chart.png")
    draw = function_tool(lambda: block, name_override="draw")
    model = AnthropicModel("claude", base_url=server.url, api_key=KEY)
    await Runner.run(Agent("a", model=model, tools=[draw]), "Draw.")
    assert CLAUDE_IMAGE in _parts(server.last.body)
