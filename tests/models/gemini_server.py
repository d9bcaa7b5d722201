"""Answers of the Gemini API, and a model that sends its requests to a scripted server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from google.genai import types
from pydantic import TypeAdapter

from agents_tools.models.pydantic_ai import PydanticAIModel
from tests.models.http_server import sse_answer

if TYPE_CHECKING:
    import pytest

    from tests.models.http_server import Answer, ScriptedServer

_CONTENTS = TypeAdapter[Any](list[types.Content])
_TOOLS = TypeAdapter[Any](list[types.Tool])


def gemini(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> PydanticAIModel:
    """Return a Gemini model of the server."""
    monkeypatch.setenv("GOOGLE_API_KEY", "none")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
    # The connections of a model with this name are closed with the event loop.
    return PydanticAIModel("google:gemini-3-pro-preview")


def answer(*parts: dict[str, Any], **candidate: Any) -> Answer:
    """Stream the parts one by one; the fields of the candidate arrive with the last one."""
    chunks: list[dict[str, Any]] = []
    for number, part in enumerate(parts, 1):
        more = {"finishReason": "STOP", **candidate} if number == len(parts) else {}
        content = {"role": "model", "parts": [part]}
        chunks.append(
            {
                "candidates": [{"index": 0, "content": content, **more}],
                "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 3},
                "modelVersion": "gemini-3-pro-preview",
                "responseId": "r1",
            }
        )
    return sse_answer(*chunks, named=False)


def contents(server: ScriptedServer) -> list[dict[str, Any]]:
    """Return the messages of the last request, validated by the types of Google's client."""
    body = server.last.body
    _CONTENTS.validate_json(json.dumps(body["contents"]), extra="forbid")
    _TOOLS.validate_json(json.dumps(body.get("tools", [])), extra="forbid")
    return body["contents"]
