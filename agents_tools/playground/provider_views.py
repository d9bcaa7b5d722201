"""The definition of a tool for each provider, with its number of tokens."""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import os
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserError
from agents_tools.wire.diff import ToolSchema, compare_tools
from agents_tools.wire.project import PROVIDERS, project

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.playground.target_state import Tool

__all__ = ["SavedDefinition", "count_tokens", "diff_since", "views_of"]

_LABELS = {
    "openai_responses": "OpenAI Responses",
    "openai_chat": "OpenAI Chat Completions",
    "anthropic": "Anthropic Messages",
    "gemini": "Gemini",
    "bedrock": "Amazon Bedrock",
    "mcp": "MCP",
}
_BYTES_A_TOKEN = 4
_ENCODING = "o200k_base"
_ENCODING_ADDRESS = f"https://openaipublic.blob.core.windows.net/encodings/{_ENCODING}.tiktoken"
"""Only its hash is used here: the name under which the tokenizer keeps the file."""
_ENCODING_HASH = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedDefinition:
    """An earlier definition of a tool.

    Attributes:
        since: The time of the definition, in seconds since 1970.
        shape: The schema that callers rely on.
    """

    since: float
    shape: ToolSchema


def views_of(tool: Tool) -> list[dict[str, Any]]:
    """Return the definition of a tool for each provider."""
    fresh = tool.with_()  # a copy, because an exported tool does not repeat its warnings
    return [_view(fresh, provider) for provider in PROVIDERS]


def diff_since(baseline: SavedDefinition, shape: ToolSchema) -> dict[str, Any] | None:
    """Return the changes of a tool; `None` if there are none."""
    changes = compare_tools([baseline.shape], [shape])
    if not changes:
        return None
    since = datetime.fromtimestamp(baseline.since, UTC).isoformat(timespec="seconds")
    told = [
        {
            "path": change.path,
            "kind": change.kind,
            "breaking": change.breaking,
            "text": change.message,
        }
        for change in sorted(changes, key=lambda change: not change.breaking)
    ]
    return {"since": since, "changes": told}


def count_tokens(wire: Any) -> tuple[int, bool]:
    """Return the number of tokens of a definition, and whether a tokenizer counted them.

    The tokenizer `tiktoken` is used if it is installed and its file is in `TIKTOKEN_CACHE_DIR`;
    nothing is downloaded. Otherwise the number is estimated: one token for four bytes of compact
    JSON. Both are approximate, because providers reformat definitions.
    """
    text = json.dumps(wire, ensure_ascii=False, separators=(",", ":"))
    tokenizer = _tokenizer()
    if tokenizer is not None:
        return tokenizer(text), True
    return -(-len(text.encode(errors="replace")) // _BYTES_A_TOKEN), False


def _view(tool: Tool, provider: str) -> dict[str, Any]:
    view: dict[str, Any] = {"id": provider, "label": _LABELS[provider]}
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            projection = project(tool, provider)
        except UserError as error:
            return {**view, "json": {}, "tokens": 0, "strict": False, "note": str(error)}
    notes.extend(str(warning.message) for warning in caught)
    wire = projection.wire
    tokens, exact = count_tokens(wire)
    if not exact:
        notes.append(f"≈ {tokens:,} tokens, estimated: {_BYTES_A_TOKEN} bytes of JSON per token.")
    return {
        **view,
        "json": wire,
        "tokens": tokens,
        "strict": projection.strict,
        "note": "\n".join(notes) or None,
    }


@functools.cache
def _tokenizer() -> Callable[[str], int] | None:
    """Return a function that counts tokens, if it needs no download."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR")
    if not folder:
        return None
    key = hashlib.sha1(_ENCODING_ADDRESS.encode(), usedforsecurity=False).hexdigest()
    try:
        content = Path(folder, key).read_bytes()
        tiktoken: Any = importlib.import_module("tiktoken")
    except (OSError, ImportError):
        return None
    if hashlib.sha256(content).hexdigest() != _ENCODING_HASH:
        return None  # the tokenizer would download another file
    encoding: Any = tiktoken.get_encoding(_ENCODING)
    return lambda text: len(encoding.encode(text, disallowed_special=()))
