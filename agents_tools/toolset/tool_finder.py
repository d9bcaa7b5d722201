"""Tool search: one tool that finds others, instead of the definitions of all tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.tool import FunctionTool
from agents_tools.toolset.catalog import ToolCatalog
from agents_tools.toolset.deferred import is_deferred, loaded
from agents_tools.toolset.search_tools import CallTool, ProxyTool, SearchTool
from agents_tools.toolset.sources import MergedSource, RecentCache, check_names, parts_of
from agents_tools.toolset.toolset import Toolset

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.toolset.catalog import AnyTool
    from agents_tools.toolset.sources import Tools, ToolsetSource
    from agents_tools.toolset.strategies import SearchStrategy

__all__ = ["behind_search", "tool_search"]

_MAX_RESULTS = 50
_OWNER = "this toolset"


def tool_search(
    *sources: object,
    name: str = "tool_search",
    call_name: str = "call_tool",
    max_results: int = 5,
    mode: Literal["proxy", "reveal"] = "proxy",
    max_revealed: int = 30,
    strategy: SearchStrategy | None = None,
) -> Toolset:
    """Create a toolset in which the model searches for tools instead of reading all definitions.

    The search covers the names and descriptions of all tools, the names, descriptions and allowed
    values of their parameters, and the names of their servers. If tools are marked with
    `Toolset.defer`, only these are behind the search and the others stay visible. A tool that was
    found is called like any other, with validated arguments and its own policies, approvals, events
    and errors.

    In mode `proxy`, a second tool calls the tools that were found. The model always receives the
    same two tools, so prompt caches stay valid. The mode works everywhere, also without an agent.
    In mode `reveal`, for agents only, tools that were found are added to the end of the tool list
    from the next turn on. They are read from the conversation, so they stay available in a resumed
    run. Each addition invalidates prompt caches. After `max_revealed` additions, the second tool is
    added for all others, and the list no longer changes.

    Args:
        *sources: The sources to search, as for `Toolset`. Another search in them stays visible.
        name: The name of the tool that searches.
        call_name: The name of the tool that calls other tools.
        max_results: The maximum number of tools of one search, from 1 to 50.
        mode: How the model calls tools that were found: `proxy` or `reveal`.
        max_revealed: The maximum number of tools that are added to the list in mode `reveal`.
        strategy: How tools are ranked, such as `embedding_search(...)`; by words if `None`.

    Raises:
        UserError: An argument is not valid, or two tools have the same name.
    """
    if mode not in ("proxy", "reveal"):
        raise UserValueError(
            f"tool_search(mode=...) is not valid: expected 'proxy' or 'reveal', got {mode!r:.60}."
        )
    if type(max_results) is not int or not 1 <= max_results <= _MAX_RESULTS:
        raise UserValueError(
            f"tool_search(max_results=...) is not valid: expected a number from 1 to "
            f"{_MAX_RESULTS}, got {max_results!r:.60}."
        )
    if type(max_revealed) is not int or max_revealed < 1:
        raise UserValueError(
            "tool_search(max_revealed=...) is not valid: expected a positive integer, got "
            f"{max_revealed!r:.60}."
        )
    if strategy is not None and not callable(strategy):
        raise UserTypeError(
            "tool_search(strategy=...) is not valid: expected a function from tools to an index, "
            f"such as embedding_search(...), got {strategy!r:.60}."
        )
    check_tool_name(name)
    check_tool_name(call_name)
    reveals = max_revealed if mode == "reveal" else 0
    inner = MergedSource(parts_of(sources, _OWNER), _OWNER)

    def behind(tools: Tools) -> Tools:
        marked = any(map(is_deferred, tools))
        return behind_search(
            tools,
            name,
            call_name,
            most=max_results,
            reveals=reveals,
            all_of_them=not marked,
            strategy=strategy,
        )

    return Toolset.of_part(_SearchedTools(inner, behind, reveals=bool(reveals)))


class _SearchedTools:
    """The tools of a source, behind a search."""

    def __init__(
        self, inner: ToolsetSource, behind: Callable[[Tools], Tools], *, reveals: bool
    ) -> None:
        self._inner = inner
        self._behind = behind
        self._reveals = reveals
        self._recent = RecentCache()

    @property
    def asks(self) -> str | None:
        """The name of the dynamic source, for errors."""
        if self._reveals:
            return "a run with a tool search"
        return self._inner.asks

    def known(self) -> Tools:
        """Return the search for the static tools."""
        return self._searched(self._inner.known())

    async def tools(self, context: Any) -> Tools:
        """Return the search for the current tools."""
        return self._searched(await self._inner.tools(context))

    def instructions(self) -> str:
        """Return the text of the source."""
        return self._inner.instructions()

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Subscribe to changes of the source."""
        self._inner.subscribe(callback)

    def _searched(self, tools: Tools) -> Tools:
        return self._recent.get((tools,), lambda: self._behind(tools))


def behind_search(
    tools: Tools,
    name: str,
    call_name: str,
    *,
    most: int = 5,
    reveals: int = 0,
    all_of_them: bool = False,
    strategy: SearchStrategy | None = None,
) -> Tools:
    """Return tools in which the deferred ones, or all of them, are behind a search.

    Args:
        tools: The tools.
        name: The name of the tool that searches.
        call_name: The name of the tool that calls other tools.
        most: The maximum number of tools of one search.
        reveals: The maximum number of tools that are added to the list; 0 for mode `proxy`.
        all_of_them: Whether tools that are not deferred are behind the search as well.
        strategy: How tools are ranked; by words if `None`.

    Raises:
        UserError: A visible tool has the name of one of the search tools.
    """
    hidden: list[AnyTool] = []
    offered: list[Any] = []
    for tool in tools:
        can_hide = isinstance(tool, FunctionTool) and not isinstance(tool, ProxyTool)
        if can_hide and (all_of_them or is_deferred(tool)):
            hidden.append(loaded(cast("AnyTool", tool)))
        else:
            offered.append(tool)
    caller = CallTool.over(ToolCatalog(hidden, strategy), call_name)
    offered.append(SearchTool.over(caller, name, most, reveals))
    if not reveals:
        offered.append(caller)
    check_names(offered, _OWNER)
    return tuple(offered)
