"""Adapters to other frameworks, one module for each.

`to_<framework>` converts function tools to tools of a framework, `from_<framework>` converts tools
of a framework to function tools. A framework is imported when one of its names is used. The
functions that describe tools for a model provider as plain dictionaries are here as well.
"""

# Some frameworks have environments of their own: without them, their types are unknown.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.export._agent_adapter import AgentToolOptions as AgentToolOptions
    from agents_tools.export.agent_framework import (
        from_agent_framework as from_agent_framework,
        to_agent_framework as to_agent_framework,
    )
    from agents_tools.export.agno import (
        from_agno as from_agno,
        to_agno as to_agno,
    )
    from agents_tools.export.anthropic_sdk import (
        from_anthropic_sdk as from_anthropic_sdk,
        to_anthropic_sdk as to_anthropic_sdk,
    )
    from agents_tools.export.claude_agent_sdk import (
        from_claude_agent_sdk as from_claude_agent_sdk,
        to_claude_agent_sdk as to_claude_agent_sdk,
    )
    from agents_tools.export.google_adk import (
        from_google_adk as from_google_adk,
        to_google_adk as to_google_adk,
    )
    from agents_tools.export.langchain import (
        from_langchain as from_langchain,
        to_langchain as to_langchain,
    )
    from agents_tools.export.llama_index import (
        from_llama_index as from_llama_index,
        to_llama_index as to_llama_index,
    )
    from agents_tools.export.openai_agents import (
        from_openai_agents as from_openai_agents,
        to_openai_agents as to_openai_agents,
    )
    from agents_tools.export.openai_sdk import (
        from_openai_sdk as from_openai_sdk,
        to_openai_sdk as to_openai_sdk,
    )
    from agents_tools.export.pydantic_ai import (
        from_pydantic_ai as from_pydantic_ai,
        to_pydantic_ai as to_pydantic_ai,
    )
    from agents_tools.export.smolagents import (
        from_smolagents as from_smolagents,
        to_smolagents as to_smolagents,
    )
    from agents_tools.export.strands import (
        from_strands as from_strands,
        to_strands as to_strands,
    )
    from agents_tools.wire.anthropic import (
        to_anthropic as to_anthropic,
    )
    from agents_tools.wire.bedrock import (
        to_bedrock as to_bedrock,
    )
    from agents_tools.wire.gemini import (
        to_gemini as to_gemini,
    )
    from agents_tools.wire.mcp import (
        to_mcp as to_mcp,
    )
    from agents_tools.wire.openai_chat import (
        to_openai_chat as to_openai_chat,
    )
    from agents_tools.wire.openai_responses import (
        to_openai_responses as to_openai_responses,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_agent_adapter": ("AgentToolOptions",),
        "agent_framework": (
            "from_agent_framework",
            "to_agent_framework",
        ),
        "agno": (
            "from_agno",
            "to_agno",
        ),
        "anthropic_sdk": (
            "from_anthropic_sdk",
            "to_anthropic_sdk",
        ),
        "claude_agent_sdk": (
            "from_claude_agent_sdk",
            "to_claude_agent_sdk",
        ),
        "google_adk": (
            "from_google_adk",
            "to_google_adk",
        ),
        "langchain": (
            "from_langchain",
            "to_langchain",
        ),
        "llama_index": (
            "from_llama_index",
            "to_llama_index",
        ),
        "openai_agents": (
            "from_openai_agents",
            "to_openai_agents",
        ),
        "openai_sdk": (
            "from_openai_sdk",
            "to_openai_sdk",
        ),
        "pydantic_ai": (
            "from_pydantic_ai",
            "to_pydantic_ai",
        ),
        "smolagents": (
            "from_smolagents",
            "to_smolagents",
        ),
        "strands": (
            "from_strands",
            "to_strands",
        ),
        "agents_tools.wire.anthropic": ("to_anthropic",),
        "agents_tools.wire.bedrock": ("to_bedrock",),
        "agents_tools.wire.gemini": ("to_gemini",),
        "agents_tools.wire.mcp": ("to_mcp",),
        "agents_tools.wire.openai_chat": ("to_openai_chat",),
        "agents_tools.wire.openai_responses": ("to_openai_responses",),
    },
    requires={
        "agent_framework": "pip install -U 'agents-tools[agent-framework]'",
        "agno": "pip install -U 'agents-tools[agno]'",
        "anthropic_sdk": "pip install -U 'agents-tools[anthropic]'",
        "claude_agent_sdk": "pip install -U 'agents-tools[claude-agent-sdk]'",
        "google_adk": "pip install -U 'agents-tools[google-adk]'",
        "langchain": "pip install -U 'agents-tools[langchain]'",
        "llama_index": "pip install -U 'agents-tools[llama-index]'",
        "openai_agents": "pip install -U 'agents-tools[openai-agents]'",
        "openai_sdk": "pip install -U 'agents-tools[openai]'",
        "pydantic_ai": "pip install -U 'agents-tools[pydantic-ai]'",
        "smolagents": "pip install -U 'agents-tools[smolagents]'",
        "strands": "pip install -U 'agents-tools[strands]'",
    },
)
