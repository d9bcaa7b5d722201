"""Pin the size of the definitions of five everyday tools.

The figures are bytes of compact JSON, of name, description and parameters only. The repository has
no tokenizer vocabulary; bytes are close enough to tokens to show a regression.
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
    """Return the size of one definition."""
    definition = {"name": name, "description": description, "parameters": schema}
    return len(json.dumps(definition, separators=(",", ":"), ensure_ascii=False).encode())


def total_size(provider: str, *, strict: bool) -> int:
    """Return the size of the five tools as exported for one provider."""
    return sum(
        size(tool.name, tool.description, parameters(project(tool, provider, strict).wire))
        for tool in five_tools()
    )


def test_the_size_of_the_five_tools_is_pinned() -> None:
    """Every request pays for a larger size, so mention a change in the changelog."""
    natural = sum(size(t.name, t.description, t.params_json_schema) for t in five_tools())
    figures = {provider: total_size(provider, strict=False) for provider in PROVIDERS}
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
    assert total_size("openai_responses", strict=True) == snapshot(5116)
    assert total_size("anthropic", strict=True) == snapshot(4990)


def test_most_of_the_size_is_the_authors_own_text() -> None:
    """Without dropping descriptions, names and types, little is left to save."""
    natural = sum(size(t.name, t.description, t.params_json_schema) for t in five_tools())
    texts = sum(_words(t.params_json_schema) + len(t.description) for t in five_tools())
    assert total_size("openai_chat", strict=False) - texts < 0.75 * (natural - texts)
    assert total_size("openai_chat", strict=True) - texts < 0.85 * (natural - texts)


def _words(schema: Any) -> int:
    return sum(map(len, descriptions(schema)))
