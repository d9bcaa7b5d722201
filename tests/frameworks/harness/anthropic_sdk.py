"""Anthropic's SDK and its tool runner, with a transport that answers for the server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
from anthropic import AsyncAnthropic, beta_async_tool
from anthropic.lib.tools import ToolError as ForeignToolError

from agents_tools.export import from_anthropic_sdk, to_anthropic_sdk
from tests.frameworks.suite import Answer, Call, Incoming, Report, attempted, awaitable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools import FunctionTool

__all__ = ["HARNESS"]


class _Harness:
    name = "anthropic_sdk"
    extra = "anthropic"
    stream = None
    agent = False
    raw = False
    tells_ids = False

    def ours(self, tools: Sequence[FunctionTool[..., Any]]) -> list[Any]:
        return to_anthropic_sdk(tools)

    def own(self, functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
        return {name: attempted(_own, given) for name, given in functions.items()}

    async def run(self, tools: Sequence[Any], calls: Sequence[Call]) -> Report:
        report = Report()

        def answer(request: httpx2.Request) -> httpx2.Response:
            last = json.loads(request.content)["messages"][-1]["content"]
            if isinstance(last, str):
                content: list[Any] = [
                    {
                        "type": "tool_use",
                        "id": call.id,
                        "name": call.name,
                        "input": json.loads(call.arguments),
                    }
                    for call in calls
                ]
                return httpx2.Response(200, json=_message(content, "tool_use"))
            if not all(isinstance(block["content"], (str, list)) for block in last):
                return httpx2.Response(400, json=_REFUSED)
            for block in last:
                report.answers[block["tool_use_id"]] = _answer(block)
            return httpx2.Response(
                200, json=_message([{"type": "text", "text": "done"}], "end_turn")
            )

        transport = httpx2.MockTransport(answer)
        async with AsyncAnthropic(
            api_key="none", http_client=httpx2.AsyncClient(transport=transport), max_retries=0
        ) as client:
            try:
                runner: Any = client.beta.messages.tool_runner(
                    model="claude-test",
                    max_tokens=100,
                    tools=list(tools),
                    messages=[{"role": "user", "content": "go"}],
                )
                message: Any = await runner.until_done()
                report.final = "".join(block.text for block in message.content)
            except Exception as error:  # noqa: BLE001 - what it raises is the finding
                report.error = error
        return report

    def incoming(self) -> list[Incoming]:
        return [Incoming(from_anthropic_sdk(beta_async_tool(look_up)))]


def _own(function: Callable[..., Any]) -> Any:
    return beta_async_tool(awaitable(function))


def _message(content: list[Any], reason: str) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


_REFUSED = {
    "type": "error",
    "error": {"type": "invalid_request_error", "message": "content: text or a list of blocks"},
}


def _answer(block: dict[str, Any]) -> Answer:
    content = block["content"]
    failed = bool(block.get("is_error"))
    if isinstance(content, str):
        return Answer(content, failed)
    kinds = tuple(part["type"] for part in content)
    return Answer("\n".join(part.get("text", "") for part in content).strip(), failed, kinds)


async def look_up(topic: str, limit: int = 3) -> str:
    """Look up a topic.

    Args:
        topic: The topic.
        limit: How many answers, at least 1.
    """
    if topic == "nothing":
        raise ForeignToolError("no such topic")
    return f"{topic}: {limit}"


HARNESS = _Harness()
