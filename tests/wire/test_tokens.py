"""What five everyday tools cost a model to read, pinned.

The figures are bytes of compact JSON, of name, description and parameters only. A tokenizer's
vocabulary is not part of this repository; bytes move with tokens closely enough to show a loss.
"""

from __future__ import annotations

import json
from typing import Any

from inline_snapshot import snapshot

from agents_tools.wire.project import PROVIDERS, project
from tests.wire.test_project import parameters
from tests.wire.test_providers import descriptions
from tests.wire.tools import five_tools


def size(name: str, description: str, schema: dict[str, Any]) -> int:
    """Weigh one definition."""
    told = {"name": name, "description": description, "parameters": schema}
    return len(json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode())


def weigh(provider: str, *, strict: bool) -> int:
    """Weigh the five tools as one provider gets them."""
    return sum(
        size(tool.name, tool.description, parameters(project(tool, provider, strict).wire))
        for tool in five_tools()
    )


def test_the_five_tools_weigh_what_they_did() -> None:
    """A change here is paid in every request; it belongs in the changelog."""
    natural = sum(size(t.name, t.description, t.params_json_schema) for t in five_tools())
    figures = {provider: weigh(provider, strict=False) for provider in PROVIDERS}
    assert natural == snapshot(5874)
    assert figures == snapshot(
        {
            "openai_responses": 4630,
            "openai_chat": 4630,
            "anthropic": 4630,
            "gemini": 4953,
            "bedrock": 4791,
            "mcp": 4694,
        }
    )
    assert weigh("openai_responses", strict=True) == snapshot(5062)
    assert weigh("anthropic", strict=True) == snapshot(4990)


def test_most_of_what_is_left_is_the_authors_own_words() -> None:
    """Short of dropping descriptions, names and types there is little left to save."""
    natural = sum(size(t.name, t.description, t.params_json_schema) for t in five_tools())
    texts = sum(_words(t.params_json_schema) + len(t.description) for t in five_tools())
    assert weigh("openai_chat", strict=False) - texts < 0.75 * (natural - texts)
    assert weigh("openai_chat", strict=True) - texts < 0.85 * (natural - texts)


def _words(schema: Any) -> int:
    return sum(map(len, descriptions(schema)))
