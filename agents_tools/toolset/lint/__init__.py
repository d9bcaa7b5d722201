"""The linter for tools: it finds what models and providers will misunderstand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.toolset.lint.finding import (
        Finding as Finding,
        Rule as Rule,
    )
    from agents_tools.toolset.lint.linter import (
        lint_tools as lint_tools,
    )
    from agents_tools.toolset.lint.rules import (
        RULES as RULES,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "finding": ("Finding", "Rule"),
        "linter": ("lint_tools",),
        "rules": ("RULES",),
    },
)
