"""A server with the chat completions of OpenAI, for an agent that renders and publishes a scene."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route


def _answer(messages: list[dict[str, Any]]) -> dict[str, Any]:
    results = sum(message["role"] == "tool" for message in messages)
    calls = [("render", {"scene": "harbour"}), ("publish", {"file": "harbour.mp4"})]
    if results == len(calls):
        return {"content": messages[-1]["content"]}
    name, arguments = calls[results]
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": f"call_{name}_0123456789", "type": "function", "function": function}
    return {"tool_calls": [call]}


async def _complete(request: Request) -> StreamingResponse:
    delta = _answer((await request.json())["messages"])
    reason = "tool_calls" if "tool_calls" in delta else "stop"

    async def chunks() -> AsyncIterator[str]:
        for part, ending in (({"role": "assistant", **delta}, None), ({}, reason)):
            choice = {"index": 0, "delta": part, "finish_reason": ending}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake"}
            yield f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n"
        yield "data: [DONE]\n\n"

    return StreamingResponse(chunks(), media_type="text/event-stream")


app = Starlette(routes=[Route("/v1/chat/completions", _complete, methods=["POST"])])
