"""One tool that finds tools, in place of the definitions of all of them."""

from __future__ import annotations

import json
import re
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, cast

from agents_tools._json import check_bounds
from agents_tools._search import SearchIndex, words_of
from agents_tools.errors import ToolError, UserError, UserValueError
from agents_tools.items import ToolCallItem, ToolCallOutputItem
from agents_tools.tool import FunctionTool, check_tool_name, default_tool_error_function
from agents_tools.toolset._deferred import is_deferred, loaded
from agents_tools.toolset._parts import Merged, Recent, parts_of
from agents_tools.toolset._toolset import Toolset
from agents_tools.wire._project import project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from agents_tools._records import CallOutcome
    from agents_tools.context import ToolContext
    from agents_tools.items import Item
    from agents_tools.toolset._parts import Part, Tools

__all__ = [
    "CallTool",
    "Catalog",
    "SearchTool",
    "behind_search",
    "found_in",
    "is_enabled",
    "tool_search",
]

AnyTool = FunctionTool[..., Any]
Mode = Literal["proxy", "reveal"]

_MOST_RESULTS = 50
_LONGEST_DESCRIPTION = 1_000
_BUILT_AT_ONCE = 500
"""With so many tools, the index is built in a thread: the event loop has other things to do."""


def tool_search(
    *sources: Any,
    name: str = "tool_search",
    call_name: str = "call_tool",
    max_results: int = 5,
    mode: Mode = "proxy",
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
    goes on elsewhere. Each time something is found, prompt caches start anew.

    Args:
        *sources: What is searched; as for `Toolset`.
        name: The name of the tool that searches.
        call_name: The name of the tool that calls what was found.
        max_results: How many tools one search gives at most.
        mode: How found tools are called: `proxy` or `reveal`.

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
    check_tool_name(name)
    check_tool_name(call_name)
    inner = Merged(parts_of(sources, "this toolset"), "this toolset")
    return Toolset.of_part(_Searched(inner, name, call_name, max_results, mode))


class _Searched:
    """The tools of a part, behind a search."""

    def __init__(self, inner: Part, name: str, call_name: str, most: int, mode: Mode) -> None:
        self._inner = inner
        self._names = name, call_name
        self._most = most
        self._mode: Mode = mode
        self._recent = Recent()

    @property
    def asks(self) -> str | None:
        """Name who has to be asked."""
        if self._mode == "reveal":
            return "a run, which reveals tools as they are found,"
        return self._inner.asks

    def known(self) -> Tools:
        """Put what is known behind a search."""
        return self._behind(self._inner.known())

    async def tools(self, context: Any) -> Tools:
        """Put what there is now behind a search."""
        return self._behind(await self._inner.tools(context))

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Ask the part to tell."""
        self._inner.subscribe(callback)

    def _behind(self, tools: Tools) -> Tools:
        return self._recent.get((tools,), lambda: self._made(tools))

    def _made(self, tools: Tools) -> Tools:
        marked = any(map(is_deferred, tools))
        return behind_search(
            tools, *self._names, most=self._most, mode=self._mode, all_of_them=not marked
        )


def behind_search(
    tools: Tools,
    name: str = "tool_search",
    call_name: str = "call_tool",
    *,
    most: int = 5,
    mode: Mode = "proxy",
    all_of_them: bool = False,
) -> Tools:
    """Put tools behind a search: those that are marked, or all of them.

    Args:
        tools: The tools.
        name: The name of the tool that searches.
        call_name: The name of the tool that calls what was found.
        most: How many tools one search gives at most.
        mode: How found tools are called.
        all_of_them: Whether those without the mark are, too.

    Raises:
        UserError: A tool that stays beside the search has a name of its tools.
    """
    hidden: list[AnyTool] = []
    beside: list[Any] = []
    for tool in tools:
        if isinstance(tool, FunctionTool) and (all_of_them or is_deferred(tool)):
            hidden.append(loaded(cast("AnyTool", tool)))
        else:
            beside.append(tool)
    catalog = Catalog(hidden)
    found: list[AnyTool] = [SearchTool.over(catalog, name, most, mode)]
    if mode == "proxy":
        found.append(CallTool.over(catalog, call_name))
    return (*beside, *found)


class Catalog:
    """The tools behind a search.

    Attributes:
        by_name: The tools.
        conditional: Those whose `is_enabled` is not simply true.
    """

    def __init__(self, tools: Sequence[AnyTool]) -> None:
        self.by_name: dict[str, AnyTool] = {tool.name: tool for tool in tools}
        self.conditional = [tool for tool in tools if tool.is_enabled is not True]
        self._tools = tools
        self._index: SearchIndex | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Count the tools."""
        return len(self._tools)

    async def find(self, query: str, limit: int, context: ToolContext[Any]) -> list[AnyTool]:
        """Give the tools that fit best and may be used, the best one first.

        Args:
            query: What is looked for, in words.
            limit: How many at most.
            context: The context of the search.
        """
        index = self._index
        if index is None:
            if len(self._tools) > _BUILT_AT_ONCE:
                from agents_tools._threads import run_in_thread

                index = await run_in_thread(self._built)
            else:
                index = self._built()
        wanted = limit + len(self.conditional)
        found: list[AnyTool] = []
        for place in index.find(query, wanted):
            tool = self._tools[place]
            if await is_enabled(tool, context, context.agent):
                found.append(tool)
                if len(found) == limit:
                    break
        return found

    def _built(self) -> SearchIndex:
        with self._lock:
            if self._index is None:
                self._index = SearchIndex([_document(tool) for tool in self._tools])
            return self._index


def _document(tool: AnyTool) -> tuple[str, str, Iterable[str]]:
    try:
        properties = tool.json_schema.get("properties")
    except UserError:  # whoever calls it is told; the others are found all the same
        return tool.name, "", ()
    names = list(cast("dict[str, Any]", properties)) if isinstance(properties, dict) else []
    return tool.name, tool.description[:_LONGEST_DESCRIPTION], names


async def is_enabled(tool: Any, context: Any, agent: Any) -> bool:
    """Tell whether a tool is offered.

    Args:
        tool: The tool.
        context: The context of the run.
        agent: The agent that would offer it; without one, a condition is taken as met.
    """
    enabled: Any = getattr(tool, "is_enabled", True)
    if callable(enabled):
        if agent is None:
            return True
        enabled = cast("Any", enabled)(context, agent)
        if hasattr(enabled, "__await__"):
            enabled = await enabled
    return bool(enabled)


# --- the tool that finds


@lru_cache(maxsize=1)
def _schemas() -> tuple[type, type]:
    """Give the types of the arguments of both tools; pydantic is loaded where they are made."""
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


class SearchTool(FunctionTool[..., Any]):
    """Finds tools.

    Attributes:
        catalog: What is searched.
        reveals: Whether found tools join the list that the model is given.
    """

    catalog: Catalog
    reveals: bool

    @classmethod
    def over(cls, catalog: Catalog, name: str, most: int, mode: Mode) -> SearchTool:
        """Make the tool.

        Args:
            catalog: What is searched.
            name: Its name.
            most: How many tools one search gives at most.
            mode: How found tools are called.
        """

        async def search(context: ToolContext[Any], args_json: str) -> str:
            query = str(json.loads(args_json)["query"])
            if not words_of(query):
                raise ToolError(
                    "The query has no words to look for. Say in a few words what the tool should "
                    "do, such as: create an issue."
                )
            found = await catalog.find(query, most, context)
            return _told(found, len(catalog), in_full=mode == "proxy")

        more = " What is found joins them." if mode == "reveal" else ""
        tool = cls.from_schema(
            name=name,
            schema=_schemas()[0],
            on_invoke_tool=search,
            description=f"Find tools for a task: there are more than you are shown.{more}",
        )
        tool.catalog = catalog
        tool.reveals = mode == "reveal"
        return tool


def _told(found: Sequence[AnyTool], number: int, *, in_full: bool) -> str:
    told: dict[str, Any] = {"tools": [_described(tool, in_full=in_full) for tool in found]}
    if not found:
        told["note"] = f"None of the {number} tools fits. Try other words."
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _described(tool: AnyTool, *, in_full: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if not in_full:
        told["description"] = tool.description[:_LONGEST_DESCRIPTION]
        return told
    try:
        told["parameters"] = project(tool, "mcp").wire["inputSchema"]
    except UserError:
        told["parameters"] = tool.params_json_schema
    return told


# --- the tool that calls


class CallTool(FunctionTool[..., Any]):
    """Calls a tool that was found: its call is that of the tool itself.

    Attributes:
        catalog: The tools.
    """

    catalog: Catalog

    @classmethod
    def over(cls, catalog: Catalog, name: str) -> CallTool:
        """Make the tool.

        Args:
            catalog: The tools.
            name: Its name.
        """

        async def unknown(context: ToolContext[Any], args_json: str) -> str:
            del context
            wanted = str(json.loads(args_json)["name"])
            near = _near(wanted, catalog)
            hint = f" Did you mean {near!r}?" if near else ""
            raise ToolError(f"There is no tool {wanted!r:.100} to call.{hint} Look for one first.")

        tool = cls.from_schema(
            name=name,
            schema=_schemas()[1],
            on_invoke_tool=unknown,
            description="Call a tool that was found, by its name.",
        )
        tool.catalog = catalog
        return tool

    @property
    def needs_admission(self) -> bool:
        """Whether policies have to be asked: those of the tool that is called may have to."""
        return True

    async def prepare(self, context: ToolContext[Any], args_json: str) -> str:
        """Give the arguments that a call is to have: those of the tool that is called."""
        route = self.routed(args_json)
        if route is None:
            return await super().prepare(context, args_json)
        tool, arguments = route
        context.tool_name = tool.name
        prepared = await tool.prepare(context, arguments)
        if prepared == arguments:
            return args_json
        return json.dumps({"name": tool.name, "arguments": prepared})

    async def admit(self, context: ToolContext[Any], args_json: str) -> None:
        """Ask whether a call may run: the tool that is called.

        Raises:
            Interruption: The run has to wait for a person.
        """
        route = self.routed(args_json)
        if route is None:
            await super().admit(context, args_json)
        else:
            await route[0].admit(context, route[1])

    def routed(self, args_json: str) -> tuple[AnyTool, str] | None:
        """Give the tool that a call means and its arguments; `None` where there is none.

        Args:
            args_json: The arguments of the call.
        """
        try:
            check_bounds(args_json)
            wanted: Any = json.loads(args_json)
            tool = self.catalog.by_name.get(wanted["name"])
            arguments: Any = wanted.get("arguments", {})
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError, UserError):
            return None
        if tool is None:
            return None
        for policy in self._policies:
            tool = tool.with_(policy=policy)
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return tool, text  # models sometimes write the arguments as text

    async def _watched(
        self, context: ToolContext[Any], args_json: str, *, convert: bool = True
    ) -> CallOutcome:
        """Call the tool that is meant, where no run has done so."""
        route = self.routed(args_json)
        if route is None or not await is_enabled(route[0], context, context.agent):
            return await super()._watched(context, args_json, convert=convert)
        tool, arguments = route
        context.tool_name, context.arguments_json = tool.name, arguments
        outcome = await tool._watched(context, arguments, convert=convert)  # noqa: SLF001 - a tool, too
        if outcome.error is None or tool.failure_error_function is not None:
            return outcome
        from dataclasses import replace

        return replace(outcome, output=default_tool_error_function(context, outcome.error))


def _near(name: object, catalog: Catalog) -> str | None:
    """Give the name of a tool that is written almost like one that is not there."""
    if not isinstance(name, str):
        return None
    key = _PLAIN.sub("", name).casefold()
    return next((one for one in catalog.by_name if _PLAIN.sub("", one).casefold() == key), None)


_PLAIN = re.compile(r"[\W_]+")


# --- what a conversation has found


def found_in(history: Sequence[Item], search: SearchTool) -> list[AnyTool]:
    """Give the tools that a conversation has found so far, in order: and those that it has called.

    Args:
        history: The conversation.
        search: The tool that finds.
    """
    known = search.catalog.by_name
    found: dict[str, AnyTool] = {}
    for item in history:
        if isinstance(item, ToolCallOutputItem):
            if item.name == search.name and item.status == "ok" and isinstance(item.output, str):
                names = cast("list[str]", _FOUND.findall(item.output))
                found |= {name: known[name] for name in names if name in known}
        elif isinstance(item, ToolCallItem) and item.name in known:
            found[item.name] = known[item.name]
    return list(found.values())


_FOUND = re.compile(r'"name":"([A-Za-z0-9_-]{1,64})"')
"""A name as a search writes it; within a text, the quotes would be escaped."""
