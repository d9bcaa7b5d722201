"""Toolsets: groups of tools, tool search, code mode and the token count of tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.toolset.code.limits import (
        CodeLimits as CodeLimits,
    )
    from agents_tools.toolset.code.tool import (
        code_mode as code_mode,
    )
    from agents_tools.toolset.search import (
        SearchIndex as SearchIndex,
        ToolText as ToolText,
    )
    from agents_tools.toolset.strategies import (
        SearchStrategy as SearchStrategy,
        ToolIndex as ToolIndex,
        embedding_search as embedding_search,
    )
    from agents_tools.toolset.token_usage import (
        TokenReport as TokenReport,
        ToolTokens as ToolTokens,
        token_report as token_report,
    )
    from agents_tools.toolset.tool_finder import (
        tool_search as tool_search,
    )
    from agents_tools.toolset.toolset import (
        Toolset as Toolset,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "code.limits": ("CodeLimits",),
        "code.tool": ("code_mode",),
        "search": ("SearchIndex", "ToolText"),
        "strategies": ("SearchStrategy", "ToolIndex", "embedding_search"),
        "token_usage": (
            "TokenReport",
            "ToolTokens",
            "token_report",
        ),
        "tool_finder": ("tool_search",),
        "toolset": ("Toolset",),
    },
)
