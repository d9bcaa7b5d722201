"""Export one tool to each model provider as plain dictionaries, without their packages.

Run it: python examples/provider_exports.py. It prints six definitions of one tool, and the reason
why another tool cannot be strict.
"""

from __future__ import annotations

import json
import warnings

from agents_tools import function_tool
from agents_tools.wire.anthropic import to_anthropic
from agents_tools.wire.bedrock import to_bedrock
from agents_tools.wire.gemini import to_gemini
from agents_tools.wire.mcp import to_mcp
from agents_tools.wire.openai_chat import to_openai_chat
from agents_tools.wire.openai_responses import to_openai_responses


@function_tool
def search(query: str, limit: int = 10) -> str:
    """Search the catalogue.

    Args:
        query: What to look for.
        limit: How many results to give.
    """
    return f"{limit} results for {query}"


for export in (
    to_openai_responses,
    to_openai_chat,
    to_anthropic,
    to_gemini,
    to_bedrock,
    to_mcp,
):
    print(export.__name__, json.dumps(export(search)))

# OpenAI's strict mode asks for every key, and null for what is left open: null means the default.
print(search.invoke_sync('{"query": "owls", "limit": null}'))


# A schema that strict mode cannot express goes out without it, with a warning that says why.
@function_tool
def tag(labels: dict[str, str]) -> str:
    """Attach labels.

    Args:
        labels: Any names and values.
    """
    return f"{len(labels)} labels"


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print("strict:", to_openai_responses(tag).get("strict", False))
print(caught[0].message)
