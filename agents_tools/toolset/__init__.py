"""Toolsets: many tools as one, tools that are looked for, and what tools cost a model."""

from __future__ import annotations

from agents_tools.toolset._report import TokenReport, ToolTokens, token_report
from agents_tools.toolset._tool_search import tool_search
from agents_tools.toolset._toolset import Toolset

__all__ = ["TokenReport", "ToolTokens", "Toolset", "token_report", "tool_search"]
