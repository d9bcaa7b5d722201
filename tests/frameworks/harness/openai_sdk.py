"""OpenAI's SDK and its tool runner, with a transport that answers for the server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
from openai import AsyncOpenAI
from openai.lib.responses_tool_runner import AsyncRegisteredFunction, AsyncResponsesToolRunner

from agents_tools.export import from_openai_sdk, to_openai_sdk
from tests.frameworks.suite import Answer, Call, Incoming, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools import FunctionTool

__all__ = ["HARNESS"]


class _Harness:
    name = "openai_sdk"
    extra = "openai"
    stream = None
    agent = False
    raw = False
    tells_ids = False

    def ours(self, tools: Sequence[FunctionTool[..., Any]]) -> list[Any]:
        return to_openai_sdk(tools)

    def own(self, functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
        return {}  # there is no decorator: a function takes a model of its arguments

    async def run(self, tools: Sequence[Any], calls: Sequence[Call]) -> Report:
        report = Report()

        def answer(request: httpx2.Request) -> httpx2.Response:
            given = json.loads(request.content)["input"]
            outputs = [
                item
                for item in given
                if isinstance(item, dict) and item.get("type") == "function_call_output"
            ]
            if not outputs:
                asked = [
                    {
                        "type": "function_call",
                        "id": f"fc_{call.id}",
                        "call_id": call.id,
                        "name": call.name,
                        "arguments": call.arguments,
                        "status": "completed",
                    }
                    for call in calls
                ]
                return httpx2.Response(200, json=_response(asked))
            for item in outputs:
                report.answers[item["call_id"]] = _answer(item["output"])
            return httpx2.Response(200, json=_response([_SAID]))

        runner = AsyncResponsesToolRunner(functions=list(tools))
        transport = httpx2.MockTransport(answer)
        async with AsyncOpenAI(
            api_key="none", http_client=httpx2.AsyncClient(transport=transport), max_retries=0
        ) as client:
            try:
                response = await runner.run(
                    client, {"model": "gpt-test", "input": [{"role": "user", "content": "go"}]}
                )
                report.final = response.output_text
            except Exception as error:  # noqa: BLE001 - what it raises is the finding
                report.error = error
        return report

    def incoming(self) -> list[Incoming]:
        return [Incoming(from_openai_sdk(AsyncRegisteredFunction(_LOOK_UP, look_up)))]


def _response(output: list[Any]) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-test",
        "status": "completed",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
    }


_SAID: dict[str, Any] = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "done", "annotations": []}],
}


def _answer(output: Any) -> Answer:
    if isinstance(output, str):
        return Answer(output)
    kinds = tuple(part["type"].removeprefix("input_") for part in output)
    return Answer("\n".join(part.get("text", "") for part in output).strip(), None, kinds)


_LOOK_UP: Any = {
    "type": "function",
    "name": "look_up",
    "description": "Look up a topic.",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {
            "topic": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "default": 3},
        },
        "required": ["topic"],
    },
}


async def look_up(arguments: Any) -> str:
    if arguments["topic"] == "nothing":
        raise LookupError("no such topic")
    return f"{arguments['topic']}: {arguments.get('limit', 3)}"


HARNESS = _Harness()
