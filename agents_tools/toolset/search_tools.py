"""The search tool and the call tool, through which a model uses tools that are not offered."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, cast

from agents_tools.content.items import ToolCallItem, ToolCallOutputItem
from agents_tools.errors import ToolError
from agents_tools.schema.json_schema import reader_of
from agents_tools.text.json_limits import check_bounds, check_keys
from agents_tools.tool.manual import SchemaSource
from agents_tools.tool.records import ToolAnnotations
from agents_tools.tool.tool import FunctionTool
from agents_tools.toolset.catalog import describe_matches, shown_names
from agents_tools.toolset.words import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from agents_tools.content.items import Item
    from agents_tools.schema.arguments import Arguments
    from agents_tools.tool.call import Call
    from agents_tools.toolset.catalog import AnyTool, ToolCatalog

__all__ = ["CallTool", "ProxyTool", "SearchTool", "revealed"]

_MAX_NEAR = 3
"""The maximum number of tools that the answer to a call of an unknown tool names."""


@lru_cache(maxsize=1)
def _schemas() -> tuple[type, type]:
    """Return the argument types of both tools; this function imports pydantic when needed."""
    from pydantic import Field
    from typing_extensions import TypedDict

    query = Field(description="What the tool should do, in a few words, or its name")
    name = Field(description="The name of a tool that was found")
    arguments = Field(description="Its arguments, as its parameters say")
    wanted = {
        "name": Annotated[str, name],
        "arguments": NotRequired[Annotated[dict[str, Any], arguments]],
    }
    make: Any = TypedDict
    return make("tool_search", {"query": Annotated[str, query]}), make("call_tool", wanted)


class ProxyTool(FunctionTool[..., Any]):
    """A tool that gives access to tools that are not offered.

    Attributes:
        catalog: The other tools.
    """

    catalog: ToolCatalog

    def onto(self, catalog: ToolCatalog) -> Self:
        """Return a copy for another catalog.

        Args:
            catalog: The other tools.
        """
        raise NotImplementedError

    def reached(self, name: str) -> AnyTool | None:
        """Return the tool that a model can call by this name; `None` if there is none.

        Args:
            name: The name.
        """
        raise NotImplementedError


class SearchTool(ProxyTool):
    """Finds tools.

    Attributes:
        most: The maximum number of tools in a result.
        reveals: The maximum number of found tools that are added to the offered tools.
        caller: The `CallTool` for found tools; offered when no more tools can be added.
    """

    most: int
    reveals: int
    caller: Any

    @classmethod
    def over(cls, caller: CallTool, name: str, most: int, reveals: int) -> SearchTool:
        """Create the tool.

        Args:
            caller: The tool that calls found tools.
            name: The name of the search tool.
            most: The maximum number of tools in a result.
            reveals: The maximum number of found tools that are added to the offered tools.
        """

        async def search(call: Call) -> str:
            query = str(cast("Arguments", call.parsed).data["query"])
            if not words_of(query):
                raise ToolError(
                    "The query has no words to search for. Describe the task of the tool in a few "
                    "words, such as: create an issue."
                )
            own = cast("SearchTool", call.tool)  # a copy can have another name
            before = own.found_before(call) if reveals else {}
            found = await caller.catalog.find(query, most, call)
            shown = [*{**before, **dict.fromkeys(one.name for one in found)}][:reveals]
            return describe_matches(
                found, len(caller.catalog.tools), shown=shown, caller=caller.name
            )

        more = " What is found joins them." if reveals else ""
        source = SchemaSource(
            name,
            f"Find tools for a task: there are more than you are shown.{more}",
            reader_of(name, _schemas()[0]),
            search,
        )
        tool = cls.of_source(
            source,
            strict_json_schema=False,
            annotations=ToolAnnotations(readOnlyHint=True, idempotentHint=True),
        )
        tool.catalog, tool.caller = caller.catalog, caller
        tool.most, tool.reveals = most, reveals
        return tool

    def onto(self, catalog: ToolCatalog) -> Self:
        """Return a copy that searches another catalog.

        Args:
            catalog: The other tools.
        """
        caller = self.caller.onto(catalog)
        other = SearchTool.over(caller, self.name, self.most, self.reveals)
        copy = self.with_(source=other.source)
        copy.catalog, copy.caller = catalog, caller
        return copy

    def reached(self, name: str) -> AnyTool | None:
        """Return a tool that can be revealed, even if it was not revealed yet.

        Args:
            name: The name.
        """
        return self.catalog.by_name.get(name) if self.reveals else None

    def names_in(self, item: Item) -> list[str]:
        """Return the names of the tools that a conversation item has found or called.

        Args:
            item: The item.
        """
        if isinstance(item, ToolCallOutputItem):
            if item.name == self.name and item.status == "ok" and isinstance(item.output, str):
                return [name for name in shown_names(item.output) if name in self.catalog.by_name]
        elif isinstance(item, ToolCallItem) and item.name in self.catalog.by_name:
            return [item.name]
        return []

    def found_before(self, call: Call) -> dict[str, None]:
        """Return the names of the tools that the conversation has found or called.

        Args:
            call: The call.

        Raises:
            ToolError: The call is not part of a run.
        """
        run: Any = None if call.scope is None else call.scope.run
        if run is None:
            raise ToolError(
                f"Tool {self.name!r} reveals tools to an agent, but was called without one. Use "
                "tool_search(..., mode='proxy')."
            )
        return dict.fromkeys(name for item in run.history for name in self.names_in(item))


def revealed(history: Sequence[Item], searches: Sequence[SearchTool]) -> tuple[AnyTool, ...]:
    """Return the tools that a conversation has found or called so far.

    They are in the order in which they were first found, so that new ones are only added at the
    end. If a search has reached its limit, its call tool follows.

    Args:
        history: The conversation.
        searches: The search tools.
    """
    found: dict[str, AnyTool] = {}
    left = [search.reveals for search in searches]
    for item in history:
        for place, search in enumerate(searches):
            for name in search.names_in(item):
                if name in found:
                    continue
                if left[place]:
                    found[name] = search.catalog.by_name[name]
                    left[place] -= 1
                else:
                    found.setdefault(search.caller.name, search.caller)
    return tuple(found.values())


class CallTool(ProxyTool):
    """Calls a found tool, with the policies and the outcome of that tool."""

    _within: Any = None  # by name, the tools with the policies of this one

    @classmethod
    def over(cls, catalog: ToolCatalog, name: str) -> CallTool:
        """Create the tool.

        Args:
            catalog: The tools that it can call.
            name: The name of the call tool.
        """
        tool = cls.of_source(_CallSource(name, catalog), strict_json_schema=False)
        tool.catalog = catalog
        return tool

    def onto(self, catalog: ToolCatalog) -> Self:
        """Return a copy that calls tools of another catalog.

        Args:
            catalog: The other tools.
        """
        copy = self.with_(source=_CallSource(self.name, catalog))
        copy.catalog = catalog
        return copy

    def reached(self, name: str) -> AnyTool | None:
        """Return a tool with the policies of this one, so that its own name does not bypass them.

        Args:
            name: The name.
        """
        tool = self.catalog.by_name.get(name)
        if tool is None or tool.is_enabled is False:
            return None
        if not self._policies:
            return tool
        within = self._within
        if within is None or within[:2] != (
            self._policies,
            self.catalog,
        ):  # they belong to the original
            within = self._within = self._policies, self.catalog, {}
        found: AnyTool | None = within[2].get(name)
        if found is None:
            found = tool.with_(policies=(*tool.policies, *self._policies))
            within[2][name] = found
        return found

    @property
    def can_need_approval(self) -> bool:
        """Whether a person may have to approve calls, of this tool or of one that it calls."""
        return super().can_need_approval or any(
            tool.can_need_approval for tool in self.catalog.tools
        )


class _CallSource(SchemaSource):
    """Routes calls to the tools of a catalog, and answers the calls of unknown tools."""

    can_route = True

    def __init__(self, name: str, catalog: ToolCatalog) -> None:
        description = "Call a tool that was found, by its name."
        super().__init__(name, description, reader_of(name, _schemas()[1]), self._answer)
        self._catalog = catalog

    def route(self, tool: Any, args_json: str, call: Call | None = None) -> tuple[Any, str]:
        """Return the called tool with its arguments, or this one if there is no such tool."""
        wanted = _wanted(args_json)
        if wanted is None and call is not None:
            wanted = _wanted(self._repaired(tool, args_json, call))
        if wanted is None:
            return tool, args_json
        target = tool.reached(wanted[0])
        if target is None:  # its arguments do not matter
            return tool, json.dumps({"name": wanted[0]})
        return target, wanted[1]

    def _repaired(self, tool: Any, args_json: str, call: Call) -> str:
        """Return arguments repaired by the policies that all tools have."""
        for policy in (*tool.stack.repairs, *self._catalog.repair_policies):
            args_json = policy.repair_text(call, args_json)
        return args_json

    async def _answer(self, call: Call) -> str:
        wanted = str(cast("Arguments", call.parsed).data["name"])
        near = [repr(tool.name) for tool in await self._catalog.find(wanted, _MAX_NEAR, call)]
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ToolError(f"Tool {wanted!r:.100} does not exist.{hint} Search for a tool first.")


def _wanted(args_json: str) -> tuple[str, str] | None:
    """Return the tool name and the inner arguments of a call; `None` if they are invalid.

    Some models send the inner arguments as an object, others as JSON text.
    """
    try:
        check_bounds(args_json)
        check_keys(args_json)
        wanted: Any = json.loads(args_json)
    except (ValueError, RecursionError):
        return None
    if not isinstance(wanted, dict) or not wanted.keys() <= {"name", "arguments"}:
        return None
    values = cast("dict[str, Any]", wanted)
    name, arguments = values.get("name"), values.get("arguments", {})
    if not isinstance(name, str):
        return None
    return name, arguments if isinstance(arguments, str) else json.dumps(arguments)
