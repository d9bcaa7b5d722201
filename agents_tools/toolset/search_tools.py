"""The search tool and the call tool, through which a model uses tools that are not offered."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, cast

from agents_tools.content.items import ToolCallItem, ToolCallOutputItem
from agents_tools.errors import Interruption, ToolDeniedError, ToolError
from agents_tools.text.json_limits import check_bounds, check_keys
from agents_tools.tool.records import ToolAnnotations
from agents_tools.tool.failure import default_tool_error_function
from agents_tools.tool.tool import FunctionTool
from agents_tools.toolset.catalog import describe_matches, is_enabled, shown_names
from agents_tools.toolset.search import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from agents_tools.content.items import Item
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.records import CallOutcome
    from agents_tools.toolset.catalog import AnyTool, ToolCatalog

__all__ = ["CallTool", "ProxyTool", "SearchTool", "revealed"]


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

        async def search(context: ToolContext[Any], args_json: str) -> str:
            query = str(json.loads(args_json)["query"])
            if not words_of(query):
                raise ToolError(
                    "The query has no words to search for. Describe the task of the tool in a few "
                    "words, such as: create an issue."
                )
            own = cast("SearchTool", context.tool)  # a copy can have another name
            before = own.found_before(context) if reveals else {}
            found = await caller.catalog.find(query, most, context)
            shown = [*{**before, **dict.fromkeys(one.name for one in found)}][:reveals]
            return describe_matches(
                found, len(caller.catalog.tools), shown=shown, caller=caller.name
            )

        more = " What is found joins them." if reveals else ""
        tool = cls.from_schema(
            name=name,
            schema=_schemas()[0],
            on_invoke_tool=search,
            description=f"Find tools for a task: there are more than you are shown.{more}",
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
        copy = self.with_(declaration=other.declaration)
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

    def found_before(self, context: ToolContext[Any]) -> dict[str, None]:
        """Return the names of the tools that the conversation has found or called.

        Args:
            context: The context of the call.

        Raises:
            ToolError: The call is not part of a run.
        """
        run: Any = None if context.scope is None else context.scope.run
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

        async def unknown(context: ToolContext[Any], args_json: str) -> str:
            wanted = str(json.loads(args_json)["name"])
            hint = ""
            for one in _similar_tools(wanted, catalog):
                if await is_enabled(one, context, context.agent):
                    hint = f" Did you mean {one.name!r}?"
                    break
            raise ToolError(f"Tool {wanted!r:.100} does not exist.{hint} Search for a tool first.")

        tool = cls.from_schema(
            name=name,
            schema=_schemas()[1],
            on_invoke_tool=unknown,
            description="Call a tool that was found, by its name.",
        )
        tool.catalog = catalog
        return tool

    def onto(self, catalog: ToolCatalog) -> Self:
        """Return a copy that calls tools of another catalog.

        Args:
            catalog: The other tools.
        """
        copy = self.with_(declaration=CallTool.over(catalog, self.name).declaration)
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
    def needs_admission(self) -> bool:
        """Always true, because the called tool can have policies that need admission."""
        return True

    async def prepare(self, context: ToolContext[Any], args_json: str) -> str:
        """Return the arguments with those of the called tool prepared by its policies."""
        route = self.routed(args_json)
        if route is None:
            wanted = _wanted(args_json)
            if wanted is not None:  # the tool does not exist, so its arguments do not matter
                args_json = json.dumps({"name": wanted[0]})
            elif (repaired := self._repair_arguments(context, args_json)) != args_json:
                return await self.prepare(context, repaired)
            repaired = await super().prepare(context, args_json)
            again = repaired != args_json and self.routed(repaired) is not None
            return await self.prepare(context, repaired) if again else repaired
        tool, arguments = route
        context.tool_name = tool.name
        prepared = await tool.prepare(context, arguments)
        if prepared == arguments:
            return args_json
        return json.dumps({"name": tool.name, "arguments": prepared})

    def _repair_arguments(self, context: ToolContext[Any], args_json: str) -> str:
        """Return arguments repaired by the policies that all tools have."""
        for policy in self.catalog.repair_policies:
            if policy.mend is not None:
                args_json = policy.mend(context, args_json)
        return args_json

    async def admit(self, context: ToolContext[Any], args_json: str) -> None:
        """Check whether the called tool admits the call.

        Raises:
            Interruption: The run must wait for a person.
        """
        route = self.routed(args_json)
        if route is None:
            await super().admit(context, args_json)
            return
        try:
            await route[0].admit(context, route[1])
        except Interruption:
            if context.scope is None or context.scope.run is None:
                raise
            # Within a run, the arguments were invalid JSON before a policy repaired them. A person
            # would decide about this tool, and the decision could apply to all tools it calls.
            context.refusal = ToolDeniedError(
                f"Tool {route[0].name!r} needs the approval of a person, which requires arguments "
                "that are valid JSON. Send the call again with valid JSON."
            )
            context.admitted = True

    def routed(self, args_json: str) -> tuple[AnyTool, str] | None:
        """Return the called tool and its arguments; `None` if there is no such tool.

        Args:
            args_json: The arguments of the call.
        """
        wanted = _wanted(args_json)
        tool = None if wanted is None else self.reached(wanted[0])
        return None if wanted is None or tool is None else (tool, wanted[1])

    async def _run_call(
        self, context: ToolContext[Any], args_json: str, *, convert: bool = True
    ) -> CallOutcome:
        """Run the called tool, after preparation and admission if the run has not done them."""
        if not context.admitted:
            args_json = await self.prepare(context, args_json)
            await self.admit(context, args_json)
        route = self.routed(args_json)
        if route is None or not await is_enabled(route[0], context, context.agent):
            return await super()._run_call(context, args_json, convert=convert)
        tool, arguments = route
        context.tool_name, context.arguments_json = tool.name, arguments
        outcome = await tool._run_call(context, arguments, convert=convert)  # noqa: SLF001 - another tool
        if outcome.error is None or tool.failure_error_function is not None:
            return outcome
        return replace(outcome, output=default_tool_error_function(context, outcome.error))


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


def _similar_tools(name: str, catalog: ToolCatalog) -> Iterator[AnyTool]:
    """Yield the tools whose names differ from an unknown one only in case and punctuation."""
    key = _PLAIN.sub("", name).casefold()
    for tool in catalog.tools:
        if _PLAIN.sub("", tool.name).casefold() == key:
            yield tool


_PLAIN = re.compile(r"[\W_]+")
