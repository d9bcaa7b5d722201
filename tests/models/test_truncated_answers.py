"""Calls of an answer that the provider cut off, through the loop and over every wire format."""

from __future__ import annotations

import gzip
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import (
    Agent,
    RunConfig,
    Runner,
    ToolAnnotations,
    ToolCallOutputItem,
    function_tool,
)
from agents_tools.errors import ModelError
from agents_tools.models.anthropic import AnthropicModel
from agents_tools.models.openai_chat import OpenAIChatModel
from agents_tools.models.openai_responses import OpenAIResponsesModel
from agents_tools.models.pydantic_ai import PydanticAIModel
from tests.models import (
    test_anthropic as claude,
    test_openai_chat as chat,
    test_openai_responses as responses,
)
from tests.models.http_server import sse_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.models.http_server import Answer, ScriptedServer

KEY = "sk-none"
VALID = '{"path": "notes"}'


def _chat_answers() -> tuple[Answer, Answer]:
    delta = chat.calls(chat.call_delta(0, VALID, id="call_1", name="read_file"))
    return (
        chat.complete_answer(delta, finish="length"),
        chat.complete_answer(chat.chunk({"content": "Done."})),
    )


def _responses_answers() -> tuple[Answer, Answer]:
    call = responses.call(1, "read_file", VALID, status="incomplete")
    details = {"reason": "max_output_tokens"}
    return (
        responses.complete_answer(call, kind="incomplete", incomplete_details=details),
        responses.complete_answer(responses.message("Done.")),
    )


def _mislabelled_answers() -> tuple[Answer, Answer]:
    """Return answers of a server whose last event has the wrong type."""
    call = responses.call(1, "read_file", VALID)
    cut: Any = responses.completed(call, incomplete_details={"reason": "max_output_tokens"})
    cut["response"]["status"] = "incomplete"
    return sse_answer(cut), responses.complete_answer(responses.message("Done."))


def _claude_answers() -> tuple[Answer, Answer]:
    call = claude.tool_use(0, "call_1", "read_file", VALID)
    return (
        claude.complete_answer(*call, reason="max_tokens"),
        claude.complete_answer(*claude.text_block(0, "Done.")),
    )


WIRES: dict[str, tuple[Callable[[str], Any], Callable[[], tuple[Answer, Answer]]]] = {
    "openai-chat": (
        lambda url: OpenAIChatModel("qwen", base_url=f"{url}/v1", api_key=KEY),
        _chat_answers,
    ),
    "openai": (
        lambda url: OpenAIResponsesModel("gpt", base_url=f"{url}/v1", api_key=KEY),
        _responses_answers,
    ),
    "openai-mislabelled": (
        lambda url: OpenAIResponsesModel("gpt", base_url=f"{url}/v1", api_key=KEY),
        _mislabelled_answers,
    ),
    "anthropic": (
        lambda url: AnthropicModel("claude", base_url=url, api_key=KEY),
        _claude_answers,
    ),
    "pydantic-ai": (lambda _: PydanticAIModel("openai-chat:qwen"), _chat_answers),
}


@pytest.mark.parametrize("early", [False, True], ids=["", "early"])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_call_of_a_truncated_answer_never_runs(
    server: ScriptedServer, wire: str, monkeypatch: pytest.MonkeyPatch, *, early: bool
) -> None:
    """Arguments that are cut off can be valid JSON and name another file."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    paths: list[str] = []

    @function_tool(annotations=ToolAnnotations(readOnlyHint=True))
    async def read_file(path: str) -> str:
        """Read a file."""
        paths.append(path)
        return "text"

    create_model, answers = WIRES[wire]
    server.answer(*answers())
    agent = Agent("a", model=create_model(server.url), tools=[read_file])
    result = await Runner.run(agent, "Read.", run_config=RunConfig(start_calls_early=early))
    assert paths == []
    (output,) = (item for item in result.new_items if isinstance(item, ToolCallOutputItem))
    assert output.status == "invalid_args"
    assert "cut off at the limit of output tokens" in str(output.output)
    assert "cut off at the limit of output tokens" in str(server.last.body)
    assert result.final_output == "Done."


async def test_a_call_of_a_filtered_answer_never_runs(server: ScriptedServer) -> None:
    """A content filter stops an answer at any place, also in the arguments of a call."""
    paths: list[str] = []

    @function_tool
    async def read_file(path: str) -> str:
        """Read a file."""
        paths.append(path)
        return "text"

    delta = chat.calls(chat.call_delta(0, VALID, id="call_1", name="read_file"))
    server.answer(chat.complete_answer(delta, finish="content_filter"), _chat_answers()[1])
    model = OpenAIChatModel("qwen", base_url=f"{server.url}/v1", api_key=KEY)
    result = await Runner.run(Agent("a", model=model, tools=[read_file]), "Read.")
    assert paths == []
    (output,) = (item for item in result.new_items if isinstance(item, ToolCallOutputItem))
    assert "cut off by the content filter" in str(output.output)


@pytest.mark.parametrize("wire", ["openai-chat", "openai", "anthropic"])
async def test_an_event_without_an_end_does_not_fill_the_memory(
    server: ScriptedServer, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client collects an event until its end, and 4 kB are decompressed to 4 MB."""
    monkeypatch.setattr("agents_tools.models._http._MAX_EVENT", 1 << 20)
    bomb = gzip.compress(b"data: " + bytes(4 << 20))
    gate = threading.Event()  # the server keeps the connection open
    headers = {"content-encoding": "gzip"}
    server.answer(sse_answer(bomb, gate, headers=headers))
    agent = Agent("a", model=WIRES[wire][0](server.url))
    with pytest.raises(ModelError, match="an event has more than 1 MiB") as caught:
        await Runner.run(agent, "Read.")
    gate.set()
    assert not caught.value.retryable
    assert len(server.requests) == 1


async def test_a_long_answer_of_small_events_is_complete(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is that of one event."""
    monkeypatch.setattr("agents_tools.models._http._MAX_EVENT", 10_000)
    deltas = [chat.chunk({"content": "a" * 5_000}) for _ in range(10)]
    server.answer(chat.complete_answer(*deltas))
    result = await Runner.run(Agent("a", model=WIRES["openai-chat"][0](server.url)), "Read.")
    assert result.final_output == "a" * 50_000
