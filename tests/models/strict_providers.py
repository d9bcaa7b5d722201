"""Providers that refuse a conversation in which calls, outputs or reasoning do not match."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agents_tools.models.anthropic import AnthropicModel
from agents_tools.models.openai_chat import OpenAIChatModel
from agents_tools.models.openai_responses import OpenAIResponsesModel
from agents_tools.models.pydantic_ai import PydanticAIModel
from tests.models.http_server import Answer, Recorded, json_answer, sse_answer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from agents_tools.agents import Model

KEY = "sk-test-0123456789abcdefghij"


class StrictProvider:
    """Answers each request of an agent with calls of `search`, and at the end with text.

    A request that has no tools asks for a summary.

    Args:
        url: The URL of the server.
        turns: The number of turns with calls. Every tenth one has three parallel calls.
        limit: The largest request in bytes.

    Attributes:
        refusals: The reasons of refused requests.
        bodies: The requests of the agent.
        summaries: The requests for a summary.
    """

    def __init__(self, url: str, turns: int, limit: int) -> None:
        self.url = url
        self.refusals: list[str] = []
        self.bodies: list[Any] = []
        self.summaries: list[Any] = []
        self._turns = turns
        self._limit = limit
        self._ids = itertools.count(1)

    @asynccontextmanager
    async def model(self) -> AsyncGenerator[Model]:
        """Provide a model of this provider."""
        yield self.create_model()

    def create_model(self) -> Model:
        """Return a model of this provider."""
        raise NotImplementedError

    def fault(self, body: Any) -> str | None:
        """Return why the provider refuses a conversation; `None` if it does not."""
        raise NotImplementedError

    def text(self, text: str) -> Answer:
        """Return an answer with text."""
        raise NotImplementedError

    def calls(self, ids: Sequence[str], turn: int) -> Answer:
        """Return an answer with calls."""
        raise NotImplementedError

    def refuse(self, reason: str) -> Answer:
        """Return an error as the provider sends it."""
        error = {"message": reason, "type": "invalid_request_error"}
        return json_answer({"type": "error", "error": error}, status=400)

    def __call__(self, request: Recorded) -> Answer:
        """Answer a request."""
        body = request.body
        reason = self.fault(body)
        if reason is None and len(request.content) > self._limit:
            reason = f"the prompt is too long: {len(request.content)} bytes"
        if reason is not None:
            self.refusals.append(reason)
            return self.refuse(reason)
        if not body.get("tools"):
            self.summaries.append(body)
            return self.text(f"summary number {len(self.summaries)}")
        self.bodies.append(body)
        turn = len(self.bodies)
        if turn > self._turns:
            return self.text("done")
        count = 1 if turn % 10 else 3
        return self.calls([f"call_{next(self._ids)}" for _ in range(count)], turn)


def _unique(ids: Sequence[str], what: str) -> str | None:
    return None if len(set(ids)) == len(ids) else f"{what} ids must be unique"


class OpenAIChat(StrictProvider):
    """Chat completions."""

    def create_model(self) -> Model:
        return OpenAIChatModel("qwen", base_url=f"{self.url}/v1", api_key=KEY)

    def fault(self, body: Any) -> str | None:
        waiting: list[str] = []
        for message in body["messages"]:
            if message["role"] == "tool":
                if message["tool_call_id"] not in waiting:
                    return (
                        "messages with role 'tool' must be a response to a preceding message with "
                        "'tool_calls'"
                    )
                waiting.remove(message["tool_call_id"])
                continue
            if waiting:
                return (
                    "An assistant message with 'tool_calls' must be followed by tool messages "
                    f"responding to each 'tool_call_id': {waiting}"
                )
            waiting = [call["id"] for call in message.get("tool_calls") or []]
        return f"no tool messages for {waiting}" if waiting else None

    def text(self, text: str) -> Answer:
        return sse_answer(_chunk({"content": text}), _chunk({}, "stop"), named=False, done=True)

    def calls(self, ids: Sequence[str], turn: int) -> Answer:
        calls = [
            {"index": index, "id": one, "type": "function", "function": _function(turn)}
            for index, one in enumerate(ids)
        ]
        delta = {"role": "assistant", "content": f"step {turn}", "tool_calls": calls}
        return sse_answer(_chunk(delta), _chunk({}, "tool_calls"), named=False, done=True)


def _function(turn: int) -> dict[str, Any]:
    return {"name": "search", "arguments": json.dumps({"page": turn})}


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "qwen",
        "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish}],
    }


class OpenAIResponses(StrictProvider):
    """The Responses API, of a model with reasoning and a hosted search."""

    def create_model(self) -> Model:
        return OpenAIResponsesModel("gpt-5", base_url=f"{self.url}/v1", api_key=KEY)

    def fault(self, body: Any) -> str | None:
        items = body["input"]
        calls = [one["call_id"] for one in items if one.get("type") == "function_call"]
        outputs = [one["call_id"] for one in items if one.get("type") == "function_call_output"]
        for one in calls:
            if one not in outputs:
                return f"No tool output found for function call {one}."
        for one in outputs:
            if one not in calls:
                return f"No tool call found for function call output with call_id {one}."
        for item, following in itertools.zip_longest(items, items[1:], fillvalue={}):
            kind, next_kind = item.get("type"), following.get("type")
            if kind == "reasoning" and next_kind not in {"function_call", "web_search_call"}:
                return (
                    f"Item '{item['id']}' of type 'reasoning' was provided without its required "
                    "following item."
                )
            if next_kind == "web_search_call" and kind != "reasoning":
                return (
                    f"Item '{following['id']}' of type 'web_search_call' was provided without its "
                    "required 'reasoning' item."
                )
        return _unique(calls, "call") or _unique(outputs, "output")

    def text(self, text: str) -> Answer:
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
        return self._stream({**item, "content": [part]})

    def calls(self, ids: Sequence[str], turn: int) -> Answer:
        thought = {"type": "reasoning", "id": f"rs_{turn}", "summary": []}
        search = {"type": "web_search_call", "id": f"ws_{turn}", "status": "completed"}
        calls = [
            {"type": "function_call", "id": f"fc_{one}", "call_id": one, **_function(turn)}
            for one in ids
        ]
        return self._stream({**thought, "encrypted_content": "c2VjcmV0"}, search, *calls)

    def _stream(self, *output: dict[str, Any]) -> Answer:
        response = {"id": "resp_1", "object": "response", "model": "gpt-5", "status": "completed"}
        done = [
            {"type": "response.output_item.done", "output_index": index, "item": item}
            for index, item in enumerate(output)
        ]
        last = {"type": "response.completed", "response": {**response, "output": list(output)}}
        return sse_answer(*done, last)


class Anthropic(StrictProvider):
    """The Messages API, of a model that thinks."""

    def create_model(self) -> Model:
        return AnthropicModel("claude", base_url=self.url, api_key=KEY)

    def fault(self, body: Any) -> str | None:
        messages = body["messages"]
        if messages[0]["role"] != "user":
            return 'messages: first message must use the "user" role'
        marks = json.dumps(body).count('"cache_control"')
        if marks > 4:
            return f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
        used: list[str] = []
        for index, message in enumerate(messages):
            if index and message["role"] == messages[index - 1]["role"]:
                return "messages: roles must alternate"
            kinds = [block["type"] for block in message["content"]]
            uses = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
            following = messages[index + 1]["content"] if index + 1 < len(messages) else []
            results = [one["tool_use_id"] for one in following if one["type"] == "tool_result"]
            if message["role"] == "assistant" and uses != results:
                return (
                    f"messages.{index}: `tool_use` ids were found without `tool_result` blocks "
                    f"immediately after: {uses}, {results}"
                )
            if uses and kinds[0] != "thinking":
                return f"messages.{index}: Expected `thinking`, but found {kinds[0]!r}"
            if "tool_result" in kinds and index == 0:
                return "messages.0: unexpected `tool_use_id` found in `tool_result` blocks"
            used += uses
        return _unique(used, "tool_use")

    def text(self, text: str) -> Answer:
        block = {"type": "text", "text": text}
        return self._stream("end_turn", {"type": "text", "text": ""}, block)

    def calls(self, ids: Sequence[str], turn: int) -> Answer:
        thinking = {"type": "thinking", "thinking": f"step {turn}", "signature": f"sig{turn}"}
        uses = [
            {"type": "tool_use", "id": one, "name": "search", "input": {"page": turn}}
            for one in ids
        ]
        return self._stream("tool_use", thinking, *uses)

    def _stream(self, reason: str, *blocks: dict[str, Any]) -> Answer:
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude"}
        usage = {"input_tokens": 10, "output_tokens": 5}
        start = {**message, "content": [], "stop_reason": None, "usage": usage}
        events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
        for index, block in enumerate(blocks):
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            events.append({"type": "content_block_stop", "index": index})
        delta = {"stop_reason": reason, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}})
        return sse_answer(*events, {"type": "message_stop"})


class Gemini(StrictProvider):
    """The Gemini API, of a model that signs its calls; used through Pydantic AI."""

    @asynccontextmanager
    async def model(self) -> AsyncGenerator[Model]:
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        provider = GoogleProvider(api_key=KEY, base_url=self.url)
        async with GoogleModel("gemini-3-pro-preview", provider=provider) as model:
            yield PydanticAIModel(model)

    def fault(self, body: Any) -> str | None:
        contents = body["contents"]
        if contents[0]["role"] != "user":
            return "Please ensure that the conversation starts with a user turn"
        before: list[str] = []
        for content in contents:
            parts = content["parts"]
            uses = [part for part in parts if "functionCall" in part]
            answers = [
                part["functionResponse"]["id"] for part in parts if "functionResponse" in part
            ]
            if sorted(answers) != sorted(before):
                return (
                    "Please ensure that the number of function response parts is equal to the "
                    f"number of function call parts of the function call turn: {before}, {answers}"
                )
            if uses and not uses[0].get("thoughtSignature"):
                return "Function call is missing a thought_signature in functionCall parts"
            before = [part["functionCall"]["id"] for part in uses]
        return f"function calls without responses: {before}" if before else None

    def refuse(self, reason: str) -> Answer:
        error = {"code": 400, "message": reason, "status": "INVALID_ARGUMENT"}
        return json_answer({"error": error}, status=400)

    def text(self, text: str) -> Answer:
        return self._stream({"text": text})

    def calls(self, ids: Sequence[str], turn: int) -> Answer:
        parts: Iterator[dict[str, Any]] = (
            {"functionCall": {"id": one, "name": "search", "args": {"page": turn}}} for one in ids
        )
        first, *more = parts
        return self._stream({**first, "thoughtSignature": "c2lnbmVk"}, *more)

    def _stream(self, *parts: dict[str, Any]) -> Answer:
        content = {"role": "model", "parts": list(parts)}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        return sse_answer({"candidates": [candidate], "usageMetadata": usage}, named=False)


PROVIDERS = (OpenAIChat, OpenAIResponses, Anthropic, Gemini)
