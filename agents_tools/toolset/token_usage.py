"""Estimates of the tokens of tool definitions, by provider."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.tool.flatten import function_tools
from agents_tools.tool.tool import FunctionTool
from agents_tools.toolset.deferred import is_deferred
from agents_tools.wire.compact import FULL_JSON_SCHEMA, compact
from agents_tools.wire.diff import parameters_of
from agents_tools.wire.project import PROVIDERS, project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["TokenReport", "ToolTokens", "estimated_tokens", "token_report"]

_BYTES_PER_TOKEN = 4.3
"""The average for definitions as compact JSON with o200k, from `tests/benchmarks/toolsets`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTokens:
    """The tokens of one tool.

    Attributes:
        name: The name of the tool.
        deferred: Whether providers with their own tool search load it only when it is found.
        tokens: The tokens of the definition, by provider; providers that do not support the tool
            are missing.
        parts: The tokens of the description and of each parameter, the largest first; what remains
            is the envelope of the provider.
    """

    name: str
    deferred: bool
    tokens: Mapping[str, int]
    parts: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenReport:
    """The tokens of the definitions of tools.

    Attributes:
        tools: The tools, in the order of the arguments.
        providers: The providers, in the order of the arguments.
    """

    tools: tuple[ToolTokens, ...]
    providers: tuple[str, ...]

    @property
    def totals(self) -> dict[str, int]:
        """The tokens of all definitions, by provider."""
        return {
            provider: sum(tool.tokens.get(provider, 0) for tool in self.tools)
            for provider in self.providers
        }

    @property
    def loaded(self) -> dict[str, int]:
        """The tokens of the definitions that are not deferred, by provider."""
        return {
            provider: sum(one.tokens.get(provider, 0) for one in self.tools if not one.deferred)
            for provider in self.providers
        }

    def largest(self, number: int = 10) -> list[ToolTokens]:
        """Return the tools with the most tokens, the largest first.

        Args:
            number: The maximum number of tools.
        """
        return sorted(self.tools, key=lambda one: -max(one.tokens.values(), default=0))[:number]

    def __str__(self) -> str:
        """Return a table of the largest tools and the totals."""
        shown = self.largest(20)
        left = len(self.tools) - len(shown)
        rows = [["", *self.providers]]
        for one in shown:
            costs = [str(one.tokens.get(name, "-")) for name in self.providers]
            rows.append([one.name + (" (deferred)" if one.deferred else ""), *costs])
        if left:
            rows.append([f"{left} more", *("" for _ in self.providers)])
        rows.append([f"all {len(self.tools)}", *(str(self.totals[one]) for one in self.providers)])
        if any(one.deferred for one in self.tools):
            rows.append(["without deferred", *(str(self.loaded[one]) for one in self.providers)])
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0])]
                + [cell.rjust(wide) for cell, wide in zip(row[1:], widths[1:], strict=True)]
            ).rstrip()
            for row in rows
        ]
        return "\n".join(lines)


def token_report(
    tools: Iterable[Any],
    *providers: str,
    count: Callable[[str], int] | None = None,
) -> TokenReport:
    """Return an estimate of the tokens of tool definitions, for each provider.

    Args:
        tools: Function tools, class-based tools, lists of them, or a toolset.
        *providers: `openai_responses`, `openai_chat`, `anthropic`, `gemini`, `bedrock` or `mcp`;
            all of them by default.
        count: A function that counts the tokens of compact JSON, such as the tokenizer of the
            model. By default the tokens are estimated from the length.

    Raises:
        UserError: A provider is unknown, an item is not a function tool, or the toolset has a
            dynamic source. In that case, use `token_report(await toolset.get_tools())`.
    """
    asked = providers or PROVIDERS
    for provider in asked:
        if provider not in PROVIDERS:
            raise UserValueError(
                f"token_report(...) has an unknown provider: expected one of "
                f"{', '.join(PROVIDERS)}, got {provider!r:.60}."
            )
    counted = count or estimated_tokens
    rows: list[ToolTokens] = []
    for tool in function_tools(tools):
        if not isinstance(tool, FunctionTool):
            raise UserTypeError(
                f"token_report(...) expects function tools, got {tool!r:.80}. Leave out hosted "
                "tools, whose definitions only their provider knows."
            )
        tokens: dict[str, int] = {}
        for provider in asked:
            try:
                wire = project(cast("FunctionTool[..., Any]", tool), provider).wire
            except UserError:
                continue
            tokens[provider] = counted(_compact(wire))
        rows.append(
            ToolTokens(
                name=tool.name,
                deferred=is_deferred(tool),
                tokens=tokens,
                parts=_parts(cast("FunctionTool[..., Any]", tool), counted) if tokens else {},
            )
        )
    return TokenReport(tools=tuple(rows), providers=tuple(asked))


def _parts(tool: FunctionTool[..., Any], count: Callable[[str], int]) -> dict[str, int]:
    parts = {"description": count(tool.description)} if tool.description else {}
    whole = compact(tool.json_schema, FULL_JSON_SCHEMA)
    for name, schema in parameters_of(whole).items():
        parts[f"parameter {name!r}"] = count(_compact({name: schema}))
    definitions = whole.get("$defs")
    if isinstance(definitions, dict):
        for name, schema in cast("dict[str, Any]", definitions).items():
            parts[f"definition {name!r}"] = count(_compact({name: schema}))
    return dict(sorted(parts.items(), key=lambda part: -part[1]))


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def estimated_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text, in which an indentation is one token."""
    rest, indentations = _INDENTATION.subn("", text)
    size = len(rest.encode(errors="surrogatepass"))
    return max(1, round(size / _BYTES_PER_TOKEN) + indentations)


_INDENTATION = re.compile(r"[ \t]{2,}")
