"""Images, documents and sounds from a user, over every wire format.

The requests are validated by the types of the providers' clients. Media in the results of tools
are in `test_image_results.py`.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from inline_snapshot import snapshot
from openai.types.chat import ChatCompletionContentPartParam
from openai.types.responses import ResponseInputContentParam

from agents_tools import Agent, Runner
from agents_tools.content import (
    MessageInputItem,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    item_from_dict,
)
from agents_tools.errors import UserError
from agents_tools.models.anthropic import AnthropicModel
from agents_tools.models.openai_chat import OpenAIChatModel
from agents_tools.models.openai_responses import OpenAIResponsesModel
from agents_tools.models.pydantic_ai import PydanticAIModel
from agents_tools.persistence import SQLiteRunStore
from tests.models import gemini_server as gemini, test_openai_chat as chat, test_openai_responses
from tests.models.asking import check
from tests.models.test_anthropic import complete_answer, text_block

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agents_tools.agents import Model
    from tests.models.http_server import Answer, ScriptedServer

KEY = "sk-none"
PNG = b"\x89PNG\r\n\x1a\n"
PDF = b"%PDF-1.7"
WAV = b"RIFF\0\0\0\0WAVE"
PNG_URL = "data:image/png;base64,iVBORw0KGgo="
PDF_URL = "data:application/pdf;base64,JVBERi0xLjc="
WAV_TEXT = "UklGRgAAAABXQVZF"

IMAGE = ToolOutputImage(PNG)
DOCUMENT = ToolOutputFileContent(PDF, filename="bill.pdf")
SOUND = ToolOutputAudio(WAV)


class Wire:
    """A provider's wire format: its model, an answer, and the content of the last message."""

    def __init__(self, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        self.server = server
        self._monkeypatch = monkeypatch

    def model(self, name: str) -> Model:
        url = self.server.url
        match name:
            case "openai-chat":
                return OpenAIChatModel("gpt", base_url=f"{url}/v1", api_key=KEY)
            case "openai":
                return OpenAIResponsesModel("gpt", base_url=f"{url}/v1", api_key=KEY)
            case "anthropic":
                return AnthropicModel("claude", base_url=url, api_key=KEY)
            case _:
                return gemini.gemini(self.server, self._monkeypatch)

    async def send(self, name: str, *content: Any) -> list[dict[str, Any]]:
        """Send one message, and return its parts on the wire."""
        answers: dict[str, Callable[[], Answer]] = {
            "openai-chat": lambda: chat.complete_answer(chat.chunk({"content": "Seen."})),
            "openai": lambda: test_openai_responses.complete_answer(
                test_openai_responses.message("Seen.")
            ),
            "anthropic": lambda: complete_answer(*text_block(0, "Seen.")),
            "gemini": lambda: gemini.answer({"text": "Seen."}),
        }
        self.server.answer(answers[name]())
        message = {"role": "user", "content": list(content)}
        result = await Runner.run(Agent("a", model=self.model(name)), [message])
        assert result.final_output == "Seen."
        return self._parts(name)

    def _parts(self, name: str) -> list[dict[str, Any]]:
        body = self.server.last.body
        match name:
            case "openai-chat":
                parts = body["messages"][0]["content"]
                check(list[ChatCompletionContentPartParam], parts)
                return parts
            case "openai":
                parts = body["input"][0]["content"]
                check(list[ResponseInputContentParam], parts)
                return parts
            case "anthropic":
                check(MessageCreateParamsStreaming, body)
                return body["messages"][0]["content"]
            case _:
                return gemini.contents(self.server)[0]["parts"]


@pytest.fixture
def wire(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Wire:
    """Return the wire formats, in front of the scripted server."""
    return Wire(server, monkeypatch)


EXPECTED: dict[str, Any] = snapshot(
    {
        "openai-chat": [
            {"type": "text", "text": "What is it?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            {
                "type": "file",
                "file": {
                    "filename": "bill.pdf",
                    "file_data": "data:application/pdf;base64,JVBERi0xLjc=",
                },
            },
        ],
        "openai": [
            {"type": "input_text", "text": "What is it?"},
            {
                "type": "input_image",
                "image_url": "data:image/png;base64,iVBORw0KGgo=",
                "detail": "auto",
            },
            {
                "type": "input_file",
                "filename": "bill.pdf",
                "file_data": "data:application/pdf;base64,JVBERi0xLjc=",
            },
        ],
        "anthropic": [
            {"type": "text", "text": "What is it?"},
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
            },
            {
                "type": "document",
                "source": {
                    "type": "base64",
                    "media_type": "application/pdf",
                    "data": "JVBERi0xLjc=",
                },
                "title": "bill.pdf",
            },
        ],
        "gemini": [
            {"text": "What is it?"},
            {"inlineData": {"data": "iVBORw0KGgo=", "mime_type": "image/png"}},
            {"inlineData": {"data": "JVBERi0xLjc=", "mime_type": "application/pdf"}},
        ],
    }
)


@pytest.mark.parametrize("name", ["openai-chat", "openai", "anthropic", "gemini"])
async def test_images_and_documents_reach_each_provider_in_its_own_form(
    wire: Wire, name: str
) -> None:
    """A type that the provider's client does not know would be refused."""
    assert await wire.send(name, "What is it?", IMAGE, DOCUMENT) == EXPECTED[name]


@pytest.mark.parametrize("name", ["openai-chat", "openai", "anthropic", "gemini"])
@pytest.mark.parametrize(
    ("form", "content"),
    [
        (
            "chat completions",
            [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": PNG_URL}},
                {"type": "file", "file": {"filename": "bill.pdf", "file_data": PDF_URL}},
            ],
        ),
        (
            "responses",
            [
                {"type": "input_text", "text": "What is it?"},
                {"type": "input_image", "image_url": PNG_URL},
                {"type": "input_file", "filename": "bill.pdf", "file_data": PDF_URL},
            ],
        ),
        (
            "own",
            [
                {"type": "text", "text": "What is it?"},
                {"type": "image", "url": PNG_URL},
                {"type": "file", "filename": "bill.pdf", "data": "JVBERi0xLjc="},
            ],
        ),
    ],
)
async def test_the_parts_of_the_openai_apis_are_accepted_for_every_provider(
    wire: Wire, name: str, form: str, content: list[Any]
) -> None:
    """Applications keep their messages when they change the provider."""
    assert await wire.send(name, *content) == EXPECTED[name], form


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "openai-chat",
            {"type": "input_audio", "input_audio": {"data": WAV_TEXT, "format": "wav"}},
        ),
        ("gemini", {"inlineData": {"data": WAV_TEXT, "mime_type": "audio/wav"}}),
    ],
)
@pytest.mark.parametrize(
    "part",
    [
        SOUND,
        {"type": "input_audio", "input_audio": {"data": WAV_TEXT, "format": "wav"}},
        {"type": "audio", "url": f"data:audio/wav;base64,{WAV_TEXT}"},
    ],
    ids=["block", "chat part", "data URL"],
)
async def test_a_sound_reaches_the_providers_that_accept_sounds(
    wire: Wire, name: str, expected: Any, part: Any
) -> None:
    """Other providers refuse it, below."""
    assert (await wire.send(name, part))[0] == expected


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (
            "openai-chat",
            [{"type": "image_url", "image_url": {"url": "https://e.com/a.png", "detail": "low"}}],
        ),
        (
            "openai",
            [
                {"type": "input_image", "image_url": "https://e.com/a.png", "detail": "low"},
                {"type": "input_file", "file_url": "https://e.com/a.pdf", "detail": "high"},
                {"type": "input_file", "file_id": "file-1"},
            ],
        ),
        (
            "anthropic",
            [
                {"type": "image", "source": {"type": "url", "url": "https://e.com/a.png"}},
                {"type": "document", "source": {"type": "url", "url": "https://e.com/a.pdf"}},
            ],
        ),
    ],
)
async def test_an_address_is_sent_as_an_address(wire: Wire, name: str, parts: list[Any]) -> None:
    """The provider reads it; this machine does not, so that it cannot be sent to its network."""
    blocks = [
        ToolOutputImage(url="https://e.com/a.png", detail="low"),
        ToolOutputFileContent(url="https://e.com/a.pdf", detail="high"),
        ToolOutputFileContent(file_id="file-1"),
    ]
    assert await wire.send(name, *blocks[: len(parts)]) == parts


@pytest.mark.parametrize(
    ("name", "block", "message"),
    [
        ("openai", SOUND, r"content\[1\]: the Responses API does not accept audio\. Use a model"),
        ("anthropic", SOUND, r"content\[1\]: Anthropic's models do not accept audio\. Send a tra"),
        (
            "openai-chat",
            ToolOutputAudio(b"OggS"),
            r"content\[1\]: .* of type audio/wav or audio/mp",
        ),
        ("openai-chat", ToolOutputImage(file_id="f"), r"content\[1\]: .*not by file_id"),
        ("openai-chat", ToolOutputFileContent(url="https://e.com"), r"content\[1\]: .*not by url"),
        ("anthropic", ToolOutputImage(b"BM"), r"content\[1\]: .*image/webp\. Convert the image"),
        (
            "anthropic",
            ToolOutputFileContent(b"PK\x03\x04\xff"),
            r"content\[1\]: .*Convert the file",
        ),
        ("gemini", ToolOutputImage(file_id="f"), r"content\[1\]: the image with the id 'f'"),
        (
            "gemini",
            ToolOutputImage(url="http://127.0.0.1/a.png"),
            r"content\[1\] \(image\): the model .*private/internal IP address",
        ),
    ],
)
async def test_a_part_that_a_provider_cannot_accept_is_refused_before_the_request(
    wire: Wire, name: str, block: Any, message: str
) -> None:
    """The error names the part, its place and what to do."""
    with pytest.raises(UserError, match=r"input\[0\]\." + message):
        await wire.send(name, "Look.", block)
    assert wire.server.requests == []


async def test_pydantic_ai_refuses_a_sound_with_its_place(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own error names neither the message nor the part."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    agent = Agent("a", model=PydanticAIModel("anthropic:claude-sonnet-4-5"))
    message = MessageInputItem(content=[ToolOutputText("Listen."), ToolOutputAudio(b"OggS")])
    with pytest.raises(UserError, match=r"input\[0\]\.content\[1\] \(audio/ogg\): the model"):
        await Runner.run(agent, [message])
    assert server.requests == []


async def test_a_conversation_in_a_run_store_keeps_a_large_image(
    wire: Wire, tmp_path: Path
) -> None:
    """The log stores large values apart from the event; the next request needs the whole image."""
    data = PNG + bytes(range(256)) * 400
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    wire.server.answer(*(complete_answer(*text_block(0, "Seen.")) for _ in range(2)))
    agent = Agent("a", model=wire.model("anthropic"))
    async with SQLiteRunStore(tmp_path / "runs.db") as store:
        await Runner.run(agent, [message], session=store.session("chat"))
    async with SQLiteRunStore(tmp_path / "runs.db") as store:
        await Runner.run(agent, "And now?", session=store.session("chat"))
    source = wire.server.last.body["messages"][0]["content"][0]["source"]
    assert base64.b64decode(source["data"]) == data


@pytest.mark.parametrize("block", [IMAGE, DOCUMENT, SOUND, ToolOutputImage(url="https://e.com/a")])
def test_a_media_block_survives_the_json_of_a_history(block: Any) -> None:
    """Web pages and stores pass histories on as JSON."""
    message = MessageInputItem(content=[ToolOutputText("Look."), block])
    assert item_from_dict(json.loads(json.dumps(message.to_dict()))) == message
