"""The two tools through which a model reaches others: one that finds them, one that calls them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, cast

from agents_tools.content.items import ToolCallItem, ToolCallOutputItem
from agents_tools.errors import Interruption, ToolDeniedError, ToolError
from agents_tools.text.json_limits import check_bounds, check_keys
from agents_tools.tool.declaration import ToolAnnotations
from agents_tools.tool.failure import default_tool_error_function
from agents_tools.tool.tool import FunctionTool
from agents_tools.toolset.catalog import describe_matches, is_enabled, shown_names
from agents_tools.toolset.search import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from agents_tools.content.items import Item
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.declaration import CallOutcome
    from agents_tools.toolset.catalog import AnyTool, ToolCatalog

__all__ = ["CallTool", "ProxyTool", "SearchTool", "revealed"]


@lru_cache(maxsize=1)
def _schemas() -> tuple[type, type]:
    """Return the types of the arguments of both tools; pydantic is loaded where they are made."""
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
    """A tool through which others are reached that are not offered themselves.

    Attributes:
        catalog: The others.
    """

    catalog: ToolCatalog

    def onto(self, catalog: ToolCatalog) -> Self:
        """Return a copy that leads to other tools.

        Args:
            catalog: The other tools.
        """
        raise NotImplementedError

    def reached(self, name: str) -> AnyTool | None:
        """Return a tool that a model may call by its own name; `None` where there is none.

        Args:
            name: The name.
        """
        raise NotImplementedError


class SearchTool(ProxyTool):
    """Finds tools.

    Attributes:
        most: How many tools one search gives at most.
        reveals: How many found tools may join the list that the model is given.
        caller: The `CallTool` for what is found; offered once nothing more may join the list.
    """

    most: int
    reveals: int
    caller: Any

    @classmethod
    def over(cls, caller: CallTool, name: str, most: int, reveals: int) -> SearchTool:
        """Make the tool.

        Args:
            caller: The tool that calls what is found.
            name: Its name.
            most: How many tools one search gives at most.
            reveals: How many found tools may join the list that the model is given.
        """

        async def search(context: ToolContext[Any], args_json: str) -> str:
            query = str(json.loads(args_json)["query"])
            if not words_of(query):
                raise ToolError(
                    "The query has no words to search for. Describe the task of the tool in a few "
                    "words, such as: create an issue."
                )
            own = cast("SearchTool", context.tool)  # it may have another name by now
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
        """Return a copy that finds other tools.

        Args:
            catalog: The other tools.
        """
        caller = self.caller.onto(catalog)
        other = SearchTool.over(caller, self.name, self.most, self.reveals)
        copy = self.with_(declaration=other.declaration)
        copy.catalog, copy.caller = catalog, caller
        return copy

    def reached(self, name: str) -> AnyTool | None:
        """Return a tool that may be revealed, whether it was or not.

        Args:
            name: The name.
        """
        return self.catalog.by_name.get(name) if self.reveals else None

    def names_in(self, item: Item) -> list[str]:
        """Return the names of the tools that an item of a conversation has found, or called.

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
        """Return the names of the tools that the conversation has found, or called.

        Args:
            context: The context of the call.

        Raises:
            ToolError: There is no conversation.
        """
        run: Any = None if context.scope is None else context.scope.run
        if run is None:
            raise ToolError(
                f"Tool {self.name!r} reveals tools to an agent, and no agent runs here. "
                "Give tool_search(...) without an agent mode='proxy'."
            )
        return dict.fromkeys(name for item in run.history for name in self.names_in(item))


def revealed(history: Sequence[Item], searches: Sequence[SearchTool]) -> tuple[AnyTool, ...]:
    """Return the tools that a conversation has found so far, and those that it has called.

    They are in the order in which they were found first, so that more are only ever added at the
    end; where a search has revealed all that it may, the tool that calls the rest follows.

    Args:
        history: The conversation.
        searches: The tools that find.
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
    """Calls a tool that was found: its call is that of the tool itself."""

    _within: Any = None  # by name, the tools within the policies that are around this one

    @classmethod
    def over(cls, catalog: ToolCatalog, name: str) -> CallTool:
        """Make the tool.

        Args:
            catalog: The tools that are called.
            name: Its name.
        """

        async def unknown(context: ToolContext[Any], args_json: str) -> str:
            wanted = str(json.loads(args_json)["name"])
            hint = ""
            for one in _alike(wanted, catalog):
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
        """Return a copy that calls other tools.

        Args:
            catalog: The other tools.
        """
        copy = self.with_(declaration=CallTool.over(catalog, self.name).declaration)
        copy.catalog = catalog
        return copy

    def reached(self, name: str) -> AnyTool | None:
        """Return a tool, with the policies around this one: or its name would be a way past them.

        Args:
            name: The name.
        """
        tool = self.catalog.by_name.get(name)
        if tool is None or tool.is_enabled is False:
            return None
        if not self._policies:
            return tool
        within = self._within
        if within is None or within[:2] != (self._policies, self.catalog):  # those of the original
            within = self._within = self._policies, self.catalog, {}
        found: AnyTool | None = within[2].get(name)
        if found is None:
            found = tool.with_(policies=(*tool.policies, *self._policies))
            within[2][name] = found
        return found

    @property
    def needs_admission(self) -> bool:
        """Return whether policies have to be asked.

        Those of the tool that is called may have to.
        """
        return True

    async def prepare(self, context: ToolContext[Any], args_json: str) -> str:
        """Return the arguments that a call is to have: those of the tool that is called."""
        route = self.routed(args_json)
        if route is None:
            wanted = _wanted(args_json)
            if wanted is not None:  # of a tool that is not there, the arguments do not matter
                args_json = json.dumps({"name": wanted[0]})
            elif (mended := self._repair_arguments(context, args_json)) != args_json:
                return await self.prepare(context, mended)
            mended = await super().prepare(context, args_json)
            again = mended != args_json and self.routed(mended) is not None
            return await self.prepare(context, mended) if again else mended
        tool, arguments = route
        context.tool_name = tool.name
        prepared = await tool.prepare(context, arguments)
        if prepared == arguments:
            return args_json
        return json.dumps({"name": tool.name, "arguments": prepared})

    def _repair_arguments(self, context: ToolContext[Any], args_json: str) -> str:
        """Return the arguments as the tools would mend theirs: no one knows yet which is meant."""
        for policy in self.catalog.repair_policies:
            if policy.mend is not None:
                args_json = policy.mend(context, args_json)
        return args_json

    async def admit(self, context: ToolContext[Any], args_json: str) -> None:
        """Return whether a call may run: the tool that is called.

        Raises:
            Interruption: The run has to wait for a person.
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
            # A run comes here with what was no JSON before a policy mended it: a person would be
            # asked about this tool, and what they say might hold for all that it calls.
            context.refusal = ToolDeniedError(
                f"A person has to be asked before {route[0].name!r} is called, and is asked only "
                "about arguments that are JSON as they are. Send the call again."
            )
            context.admitted = True

    def routed(self, args_json: str) -> tuple[AnyTool, str] | None:
        """Return the tool that a call means and its arguments; `None` where it means none.

        Args:
            args_json: The arguments of the call.
        """
        wanted = _wanted(args_json)
        tool = None if wanted is None else self.reached(wanted[0])
        return None if wanted is None or tool is None else (tool, wanted[1])

    async def _run_call(
        self, context: ToolContext[Any], args_json: str, *, convert: bool = True
    ) -> CallOutcome:
        """Call the tool that is meant, where no run has done so."""
        if not context.admitted:
            args_json = await self.prepare(context, args_json)
            await self.admit(context, args_json)
        route = self.routed(args_json)
        if route is None or not await is_enabled(route[0], context, context.agent):
            return await super()._run_call(context, args_json, convert=convert)
        tool, arguments = route
        context.tool_name, context.arguments_json = tool.name, arguments
        outcome = await tool._run_call(context, arguments, convert=convert)  # noqa: SLF001 - a tool, too
        if outcome.error is None or tool.failure_error_function is not None:
            return outcome
        return replace(outcome, output=default_tool_error_function(context, outcome.error))


def _wanted(args_json: str) -> tuple[str, str] | None:
    """Return the name and the arguments in the arguments of a call; `None` if they are not such.

    Some models write the inner arguments as an object, some as a text with one in it.
    """
    try:
        check_bounds(args_json)
        check_keys(args_json)
        wanted: Any = json.loads(args_json)
    except (ValueError, RecursionError):
        return None
    if not isinstance(wanted, dict) or not wanted.keys() <= {"name", "arguments"}:
        return None
    given = cast("dict[str, Any]", wanted)
    name, arguments = given.get("name"), given.get("arguments", {})
    if not isinstance(name, str):
        return None
    return name, arguments if isinstance(arguments, str) else json.dumps(arguments)


def _alike(name: str, catalog: ToolCatalog) -> Iterator[AnyTool]:
    """Yield the tools whose names are written almost like one that is not there."""
    key = _PLAIN.sub("", name).casefold()
    for tool in catalog.tools:
        if _PLAIN.sub("", tool.name).casefold() == key:
            yield tool


_PLAIN = re.compile(r"[\W_]+")
