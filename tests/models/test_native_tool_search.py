"""Tool search run by the provider: the request, the answer, and the following request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from openai.types.responses.response_input_param import ResponseInputParam
from openai.types.responses.tool_param import ToolParam

from agents_tools import Agent, Runner, ToolCallItem, function_tool
from agents_tools.models.anthropic import AnthropicModel
from agents_tools.models.openai_responses import OpenAIResponsesModel
from agents_tools.toolset import Toolset, tool_search
from tests.models import test_anthropic as messages, test_openai_responses as responses
from tests.models.asking import check

if TYPE_CHECKING:
    from tests.models.http_server import ScriptedServer

KEY = "sk-secret-0123456789abcdef"


@function_tool
def weather(city: str) -> str:
    """Get the weather."""
    return f"rain in {city}"


@function_tool
def greet() -> str:
    """Greet."""
    return "hi"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


async def test_anthropic_searches_deferred_tools(server: ScriptedServer) -> None:
    """The next request contains the deferred marks, the search tool, and the tools that were found."""
    search = {"id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {}}
    result = {
        "tool_use_id": "srvtoolu_1",
        "content": {
            "type": "tool_search_tool_search_result",
            "tool_references": [{"type": "tool_reference", "tool_name": "weather"}],
        },
    }
    server.answer(
        messages.complete_answer(
            messages.start(0, "server_tool_use", **search),
            messages.delta(0, "input_json_delta", partial_json='{"query": "weather"}'),
            messages.stop(0),
            messages.start(1, "tool_search_tool_result", **result),
            messages.stop(1),
            *messages.tool_use(2, "toolu_1", "weather", '{"city": "Bonn"}'),
            reason="tool_use",
        )
    )
    server.answer(messages.complete_answer(*messages.text_block(0, "It rains.")))
    model = AnthropicModel("claude", base_url=server.url, api_key=KEY)
    agent = Agent("x", tools=[greet, Toolset(weather).defer()], model=model)
    done = await Runner.run(agent, "Weather in Bonn?")
    assert done.final_output == "It rains."
    first, second = (request.body for request in server.requests)
    check(messages.MessageCreateParamsStreaming, second)
    assert [(one["name"], one.get("defer_loading")) for one in first["tools"]] == [
        ("greet", None),
        ("weather", True),
        ("tool_search_tool_bm25", None),
    ]
    assert first["tools"][2]["type"] == "tool_search_tool_bm25_20251119"
    assert second["tools"] == first["tools"], "the cached part of the prompt has changed"
    said = second["messages"][1]["content"]
    assert [block["type"] for block in said] == [
        "server_tool_use",
        "tool_search_tool_result",
        "tool_use",
    ]
    assert said[0]["input"] == {"query": "weather"}
    assert said[1] == {"type": "tool_search_tool_result", **result}
    assert second["messages"][2]["content"][0]["content"] == "rain in Bonn"


async def test_openai_searches_deferred_tools(server: ScriptedServer) -> None:
    """As above, with the items of the Responses API."""
    found: dict[str, Any] = {
        "type": "tool_search_output",
        "id": "tso_1",
        "call_id": None,
        "execution": "server",
        "status": "completed",
        "tools": [
            {
                "type": "function",
                "name": "weather",
                "description": "Tell the weather.",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
                "defer_loading": True,
            }
        ],
    }
    asked: dict[str, Any] = {
        "type": "tool_search_call",
        "id": "tsc_1",
        "call_id": None,
        "execution": "server",
        "status": "completed",
        "arguments": {"paths": ["weather"]},
    }
    call = responses.call(1, "weather", json.dumps({"city": "Bonn"}))
    server.answer(responses.complete_answer(asked, found, call))
    server.answer(responses.complete_answer(responses.message("It rains.")))
    model = OpenAIResponsesModel("gpt", base_url=f"{server.url}/v1", api_key=KEY)
    agent = Agent("x", tools=[greet, Toolset(weather).defer()], model=model)
    done = await Runner.run(agent, "Weather in Bonn?")
    assert done.final_output == "It rains."
    first, second = (request.body for request in server.requests)
    check(list[ToolParam], first["tools"])
    check(ResponseInputParam, second["input"])
    assert [(one["type"], one.get("defer_loading")) for one in first["tools"]] == [
        ("function", None),
        ("function", True),
        ("tool_search", None),
    ]
    assert second["tools"] == first["tools"]
    kinds = [one.get("type") for one in second["input"]]
    assert kinds[1:] == [
        "tool_search_call",
        "tool_search_output",
        "function_call",
        "function_call_output",
    ]
    assert second["input"][2]["tools"][0]["name"] == "weather"
    calls = [item for item in done.to_state().history if isinstance(item, ToolCallItem)]
    assert [item.kind for item in calls] == ["hosted", "hosted", "function"]


async def test_the_local_tool_search_is_used_with_every_provider(
    server: ScriptedServer,
) -> None:
    """If you ask for `tool_search`, the provider's own search is not used."""
    server.answer(messages.complete_answer(*messages.text_block(0, "Hello.")))
    model = AnthropicModel("claude", base_url=server.url, api_key=KEY)
    agent = Agent("x", tools=[tool_search(Toolset(weather).defer())], model=model)
    await Runner.run(agent, "Hi")
    told = server.last.body["tools"]
    assert [one["name"] for one in told] == ["tool_search", "call_tool"]
    assert "defer_loading" not in json.dumps(told)
