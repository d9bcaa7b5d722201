"""One tool that finds tools, in place of the definitions of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.errors import UserValueError
from agents_tools.tool import FunctionTool, check_tool_name
from agents_tools.toolset._catalog import Catalog
from agents_tools.toolset._deferred import is_deferred, loaded
from agents_tools.toolset._doors import CallTool, Door, SearchTool
from agents_tools.toolset._parts import Merged, Recent, check_names, parts_of
from agents_tools.toolset._toolset import Toolset

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.toolset._catalog import AnyTool
    from agents_tools.toolset._parts import Part, Tools

__all__ = ["behind_search", "tool_search"]

_MOST_RESULTS = 50
_OWNER = "this toolset"


def tool_search(
    *sources: Any,
    name: str = "tool_search",
    call_name: str = "call_tool",
    max_results: int = 5,
    mode: Literal["proxy", "reveal"] = "proxy",
    max_revealed: int = 30,
) -> Toolset:
    """Let a model look for tools instead of reading all of them.

    Names, descriptions and names of parameters are searched, whatever a tool comes from. Tools
    that were marked with `Toolset.defer` are put behind the search, the others stay beside it;
    where none is marked, all are. A found tool is called as any other: its arguments are
    validated, its policies, approvals, events and failures are its own.

    In mode `proxy` a second tool calls what was found: the model is always told of the same two
    tools, which keeps prompt caches, and works wherever tools do. In mode `reveal`, for agents,
    found tools are added at the end of the list from the next turn on, with their own
    definitions; what was found is read from the conversation, so it stays found in a run that
    goes on elsewhere. Each time something is found, prompt caches start anew. Once as many are
    found as may be added, the tool that calls the others is added, and the list stays as it is.

    Args:
        *sources: What is searched; as for `Toolset`. A search in it stays beside this one.
        name: The name of the tool that searches.
        call_name: The name of the tool that calls what was found.
        max_results: How many tools one search gives at most.
        mode: How found tools are called: `proxy` or `reveal`.
        max_revealed: How many found tools are added to the list at most, in mode `reveal`.

    Raises:
        UserError: Something given cannot work, or two tools have one name.
    """
    if mode not in ("proxy", "reveal"):
        raise UserValueError(f"tool_search(mode=...) is 'proxy' or 'reveal', not {mode!r:.60}.")
    if type(max_results) is not int or not 1 <= max_results <= _MOST_RESULTS:
        raise UserValueError(
            f"tool_search(max_results=...) takes a number from 1 to {_MOST_RESULTS}, not "
            f"{max_results!r:.60}."
        )
    if type(max_revealed) is not int or max_revealed < 1:
        raise UserValueError(
            f"tool_search(max_revealed=...) takes a positive number, not {max_revealed!r:.60}."
        )
    check_tool_name(name)
    check_tool_name(call_name)
    reveals = max_revealed if mode == "reveal" else 0
    inner = Merged(parts_of(sources, _OWNER), _OWNER)

    def behind(tools: Tools) -> Tools:
        marked = any(map(is_deferred, tools))
        return behind_search(
            tools, name, call_name, most=max_results, reveals=reveals, all_of_them=not marked
        )

    return Toolset.of_part(_Searched(inner, behind, reveals=bool(reveals)))


class _Searched:
    """The tools of a part, behind a search."""

    def __init__(self, inner: Part, behind: Callable[[Tools], Tools], *, reveals: bool) -> None:
        self._inner = inner
        self._behind = behind
        self._reveals = reveals
        self._recent = Recent()

    @property
    def asks(self) -> str | None:
        """Name who has to be asked."""
        if self._reveals:
            return "a run, which reveals tools as they are found,"
        return self._inner.asks

    def known(self) -> Tools:
        """Put what is known behind a search."""
        return self._searched(self._inner.known())

    async def tools(self, context: Any) -> Tools:
        """Put what there is now behind a search."""
        return self._searched(await self._inner.tools(context))

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Ask the part to tell."""
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
) -> Tools:
    """Put tools behind a search: those that are marked, or all of them.

    Args:
        tools: The tools.
        name: The name of the tool that searches.
        call_name: The name of the tool that calls what was found.
        most: How many tools one search gives at most.
        reveals: How many found tools may join the list that the model is given.
        all_of_them: Whether those without the mark are, too.

    Raises:
        UserError: A tool that stays beside the search has a name of its tools.
    """
    hidden: list[AnyTool] = []
    offered: list[Any] = []
    for tool in tools:
        may_hide = isinstance(tool, FunctionTool) and not isinstance(tool, Door)
        if may_hide and (all_of_them or is_deferred(tool)):
            hidden.append(loaded(cast("AnyTool", tool)))
        else:
            offered.append(tool)
    caller = CallTool.over(Catalog(hidden), call_name)
    offered.append(SearchTool.over(caller, name, most, reveals))
    if not reveals:
        offered.append(caller)
    check_names(offered, _OWNER)
    return tuple(offered)
