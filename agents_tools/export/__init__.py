"""Our tools for other frameworks, and their tools as ours: one module for each framework.

`to_<framework>` makes what a framework takes of one tool or of several, `from_<framework>` makes
ours of theirs. A module is loaded, and its framework with it, when its name is first asked for.
The `to_*` that only describe a tool, as plain dictionaries for a provider, are here as well.
"""

# Some frameworks have environments of their own: where they are absent, so are their types.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.export._missing import MissingExtraError, missing

if TYPE_CHECKING:
    from agents_tools.export.agent_framework import from_agent_framework, to_agent_framework
    from agents_tools.export.agno import from_agno, to_agno
    from agents_tools.export.anthropic_sdk import from_anthropic_sdk, to_anthropic_sdk
    from agents_tools.export.claude_agent_sdk import from_claude_agent_sdk, to_claude_agent_sdk
    from agents_tools.export.google_adk import from_google_adk, to_google_adk
    from agents_tools.export.langchain import from_langchain, to_langchain
    from agents_tools.export.llama_index import from_llama_index, to_llama_index
    from agents_tools.export.openai_agents import from_openai_agents, to_openai_agents
    from agents_tools.export.openai_sdk import from_openai_sdk, to_openai_sdk
    from agents_tools.export.pydantic_ai import from_pydantic_ai, to_pydantic_ai
    from agents_tools.export.smolagents import from_smolagents, to_smolagents
    from agents_tools.export.strands import from_strands, to_strands
    from agents_tools.wire.anthropic import to_anthropic
    from agents_tools.wire.bedrock import to_bedrock
    from agents_tools.wire.gemini import to_gemini
    from agents_tools.wire.mcp import to_mcp
    from agents_tools.wire.openai_chat import to_openai_chat
    from agents_tools.wire.openai_responses import to_openai_responses

__all__ = [
    "from_agent_framework",
    "from_agno",
    "from_anthropic_sdk",
    "from_claude_agent_sdk",
    "from_google_adk",
    "from_langchain",
    "from_llama_index",
    "from_openai_agents",
    "from_openai_sdk",
    "from_pydantic_ai",
    "from_smolagents",
    "from_strands",
    "to_agent_framework",
    "to_agno",
    "to_anthropic",
    "to_anthropic_sdk",
    "to_bedrock",
    "to_claude_agent_sdk",
    "to_gemini",
    "to_google_adk",
    "to_langchain",
    "to_llama_index",
    "to_mcp",
    "to_openai_agents",
    "to_openai_chat",
    "to_openai_responses",
    "to_openai_sdk",
    "to_pydantic_ai",
    "to_smolagents",
    "to_strands",
]

_FRAMEWORKS = {
    "agent_framework": ("agent-framework", "agent_framework"),
    "agno": ("agno", "agno"),
    "anthropic_sdk": ("anthropic", "anthropic"),
    "claude_agent_sdk": ("claude-agent-sdk", "claude_agent_sdk"),
    "google_adk": ("google-adk", "google.adk"),
    "langchain": ("langchain", "langchain_core"),
    "llama_index": ("llama-index", "llama_index.core"),
    "openai_agents": ("openai-agents", "agents"),
    "openai_sdk": ("openai", "openai"),
    "pydantic_ai": ("pydantic-ai", "pydantic_ai"),
    "smolagents": ("smolagents", "smolagents"),
    "strands": ("strands", "strands"),
}
"""The extra that brings what each module needs, and what that is imported as."""


def __getattr__(name: str) -> Any:
    direction, _, target = name.partition("_")
    if name not in __all__:
        raise AttributeError(f"module 'agents_tools.export' has no attribute {name!r}")
    module = _framework(direction, target) if target in _FRAMEWORKS else _wire(target)
    value = getattr(module, name)
    globals()[name] = value
    return value


def _framework(direction: str, target: str) -> Any:
    from importlib import import_module

    try:
        return import_module(f"agents_tools.export.{target}")
    except ImportError as error:
        if isinstance(error, MissingExtraError) or (error.name or "").startswith("agents_tools"):
            raise
        raise missing(f"{direction}_{target}", _FRAMEWORKS[target][0], error) from error


def _wire(target: str) -> Any:
    from importlib import import_module

    return import_module(f"agents_tools.wire.{target}")


def __dir__() -> list[str]:
    return sorted({*globals(), *filter(_is_there, __all__)})  # `help` looks at all that it names


def _is_there(name: str) -> bool:
    from importlib.util import find_spec

    target = name.partition("_")[2]
    try:
        return target not in _FRAMEWORKS or find_spec(_FRAMEWORKS[target][1]) is not None
    except ModuleNotFoundError:
        return False
