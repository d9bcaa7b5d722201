"""The `Toolset` class: combine, filter, rename and change many tools at once."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.tool import FunctionTool
from agents_tools.toolset.deferred import deferred
from agents_tools.toolset.search_tools import ProxyTool
from agents_tools.toolset.sources import (
    MappedSource,
    MergedSource,
    PerObjectCache,
    PreparedSource,
    is_tool,
    parts_of,
    prefixed,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from agents_tools.toolset.sources import ToolsetSource

__all__ = ["Toolset"]

_OWNER = "this toolset"


class Toolset:
    """An immutable collection of tools from many sources. Each method returns a new toolset.

    ```python
    tools = Toolset(files, github_server).prefix("work_").map(timeout(10))
    agent = Agent("helper", tools=[tools])
    ```

    A toolset can be used wherever a list of tools can. If a source is dynamic, agents and MCP
    servers request its tools; for other uses, pass `await toolset.get_tools()`. While the sources
    return the same tool objects, so does the toolset.

    Args:
        *sources: Tools of any kind, lists of them, toolsets, and dynamic sources: objects with a
            method `get_tools()`, sync or async, such as an `MCPToolManager` or a `ToolRegistry`.
            They are called before each turn. A tool that two sources contain is included once.

    Raises:
        UserError: A source has a wrong type, or two tools have the same name.
    """

    def __init__(self, *sources: object) -> None:
        self._source: ToolsetSource = MergedSource(parts_of(sources, _OWNER), _OWNER)
        self._source.known()

    @classmethod
    def of_part(cls, part: ToolsetSource) -> Self:
        """Return a toolset with one source; used by the methods and by `tool_search`."""
        toolset = cls.__new__(cls)
        toolset._source = part  # noqa: SLF001 - its own class
        part.known()  # raises now if a static tool is not valid
        return toolset

    def as_part(self) -> ToolsetSource:
        """Return the source of the tools."""
        return self._source

    # --- tools

    @property
    def known_tools(self) -> list[Any]:
        """The static tools, without those of dynamic sources."""
        return list(self._source.known())

    async def get_tools(self, context: object = None) -> tuple[Any, ...]:
        """Return the current tools. While they do not change, it is the same tuple.

        Args:
            context: The context of the run, for functions that were passed to `prepare`.

        Raises:
            UserError: A source failed, or two tools have the same name.
        """
        return await self._source.tools(context)

    def get_instructions(self) -> str:
        """Return what the sources tell models about the use of their tools; empty for nothing.

        A source has such a text if it has a method `get_instructions()`, such as an
        `MCPToolManager`. An agent appends it to its own instructions.
        """
        return self._source.instructions()

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Call a function whenever a source reports that its tools have changed.

        Args:
            callback: A function without parameters. It runs in the thread of the change.
        """
        self._source.subscribe(callback)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the tools.

        Raises:
            UserError: A source is dynamic.
        """
        return iter(self._static_tools())

    def __len__(self) -> int:
        """Return the number of tools.

        Raises:
            UserError: A source is dynamic.
        """
        return len(self._static_tools())

    def __bool__(self) -> bool:
        """Return whether the toolset can contain tools."""
        return self._source.asks is not None or bool(self._source.known())

    def _static_tools(self) -> tuple[Any, ...]:
        asks = self._source.asks
        if asks is not None:
            raise UserTypeError(
                f"The tools of this toolset are not known before {asks} returns them. Pass the "
                "toolset to an agent or an MCP server, or use `await toolset.get_tools()`."
            )
        return self._source.known()

    def __repr__(self) -> str:
        """Return the first names and the dynamic source."""
        names = [tool.name for tool in self._source.known()]
        more = ", …" if len(names) > 5 else ""  # noqa: PLR2004 - what fits in a line
        shown = f"{len(names)}: {', '.join(names[:5])}{more}" if names else "0"
        asks = self._source.asks
        return f"<Toolset of {shown}>" if asks is None else f"<Toolset of {shown}, asks {asks}>"

    # --- derived toolsets

    def combine(self, *sources: object) -> Toolset:
        """Return a toolset with more sources.

        Args:
            *sources: The sources; the types are those of the constructor.

        Raises:
            UserError: Two tools have the same name.
        """
        return Toolset(self, *sources)

    def filter(self, *wanted: object, metadata: Mapping[str, Any] | None = None) -> Toolset:
        """Return a toolset with some of the tools.

        Args:
            *wanted: The tools to include: names, patterns of names (`read_*`), lists of both, or a
                function that accepts a tool and returns whether to include it. The function is
                called once for each tool.
            metadata: Entries that the metadata of a tool has to contain, also in nested mappings.

        Raises:
            UserError: There is no argument, or a name is unknown.
        """
        if not wanted and metadata is None:
            raise UserTypeError(
                "filter(...) has no arguments. Pass names, patterns, a function of a tool, or "
                "metadata=."
            )
        if metadata is not None and not isinstance(metadata, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"filter(metadata=...) is not valid: expected a mapping, got {metadata!r:.60}."
            )
        is_wanted = self._test(wanted, "filter")
        entries = metadata

        def step(tool: Any) -> Any:
            matches = entries is None or _contains(getattr(tool, "metadata", {}), entries)
            return tool if matches and is_wanted(tool) else None

        return Toolset.of_part(MappedSource(self._source, step))

    def prefix(self, prefix: str) -> Toolset:
        """Return a toolset with a prefix before each name.

        A name of more than 64 characters is shortened and gets a hash as its suffix. Hosted tools
        keep their names, because the provider defines them.

        Args:
            prefix: Letters, digits, `_` and `-`, for example `github_`.

        Raises:
            UserError: The prefix is not valid.
        """
        if not isinstance(prefix, str) or not prefix:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                "prefix(...) is not valid: expected a string such as 'github_', got "
                f"{prefix!r:.60}."
            )
        check_tool_name(prefix[:64])
        return self._renamed(lambda name: prefixed(name, prefix))

    def rename(self, names: Mapping[str, str] | Callable[[str], str | None]) -> Toolset:
        """Return a toolset with other names.

        Args:
            names: New names by old names; or a function from the old name to the new name, or
                `None` to keep the name.

        Raises:
            UserError: A name is not valid or unknown, or two tools get the same name.
        """
        if isinstance(names, Mapping):
            new_names = dict(cast("Mapping[str, str]", names))
            self._check_known(new_names, "rename")
            return self._renamed(new_names.get)
        if not callable(names):
            raise UserTypeError(
                "rename(...) is not valid: expected new names by old names, or a function, got "
                f"{names!r:.60}."
            )
        return self._renamed(names)

    def _renamed(self, new_name: Callable[[str], str | None]) -> Toolset:
        def step(tool: Any) -> Any:
            if not isinstance(tool, FunctionTool):
                return tool
            typed = cast("FunctionTool[..., Any]", tool)
            name = new_name(typed.name)
            return typed if name is None or name == typed.name else typed.with_(name=name)

        return Toolset.of_part(MappedSource(self._source, step, _OWNER))

    def map(self, policy: Callable[[Any], Any]) -> Toolset:
        """Return a toolset with a policy applied to each tool; hosted tools stay unchanged.

        With `tool_search`, the policy applies to each tool behind the search, but not to the search
        itself.

        Args:
            policy: A policy, or any function that takes a tool and returns a tool. It is called
                once for each tool. All tools share the state of a policy, such as a limit.

        Raises:
            UserError: The function returned something else, or two tools get the same name.
        """
        if not callable(policy):
            raise UserTypeError(
                f"map(...) is not valid: expected a policy such as timeout(10), got {policy!r:.60}."
            )

        def changed(tool: Any) -> Any:
            result = policy(tool)
            if not is_tool(result):
                raise UserTypeError(
                    f"map({policy!r:.60}) returned a wrong value for {tool.name!r}: expected a "
                    f"tool, got {type_with_article(result)}."
                )
            return result

        apply = PerObjectCache(changed)
        apply_to_catalog = PerObjectCache(lambda catalog: catalog.changed(apply))

        def step(tool: Any) -> Any:
            if isinstance(tool, ProxyTool):
                return tool.onto(apply_to_catalog(tool.catalog))
            return apply(tool) if isinstance(tool, FunctionTool) else tool

        return Toolset.of_part(MappedSource(self._source, step, _OWNER))

    def prepare(self, function: Callable[[Any, list[Any]], Any]) -> Toolset:
        """Return a toolset in which a function selects the tools before each turn.

        Args:
            function: A function that takes (context, list of tools) and returns the list of tools
                for the turn; sync or async. It can remove tools, sort them, and replace them with
                changed copies of the same name. Without a run, the context is `None`.

        Raises:
            UserError: The argument is not callable.
        """
        if not callable(function):
            raise UserTypeError(
                "prepare(...) is not valid: expected a function of (context, tools), got "
                f"{function!r:.60}."
            )
        return Toolset.of_part(PreparedSource(self._source, function))

    def defer(self, *wanted: object) -> Toolset:
        """Return a toolset whose tools are loaded only when the model searches for them.

        Providers with a tool search of their own (the APIs of Anthropic and OpenAI) receive the
        tools with `defer_loading`, together with their search tool. For other models, an agent
        puts the tools behind `tool_search`.

        Args:
            *wanted: The tools to defer, as for `filter`; all of them by default.

        Raises:
            UserError: A name is unknown.
        """
        is_wanted = self._test(wanted, "defer")

        def step(tool: Any) -> Any:
            if (
                isinstance(tool, FunctionTool)
                and not isinstance(tool, ProxyTool)
                and is_wanted(tool)
            ):
                return deferred(cast("FunctionTool[..., Any]", tool))
            return cast("Any", tool)

        return Toolset.of_part(MappedSource(self._source, step))

    # --- selection of tools

    def _test(self, wanted: Iterable[Any], method: str) -> Callable[[Any], bool]:
        names: list[str] = []
        tests: list[Callable[[Any], Any]] = []
        for one in _opened(wanted):
            if isinstance(one, str):
                names.append(one)
            elif callable(one) and not isinstance(one, FunctionTool):
                tests.append(one)
            else:
                raise UserTypeError(
                    f"{method}(...) is not valid: expected names, patterns or a function of a "
                    f"tool, got {one!r:.60}."
                )
        if not names and not tests:
            return _all
        self._check_known([name for name in names if not any(s in name for s in "*?[")], method)

        def is_wanted(tool: Any) -> bool:
            if any(fnmatchcase(tool.name, name) for name in names):
                return True
            return any(_as_bool(test(tool), method) for test in tests)

        return is_wanted

    def _check_known(self, names: Iterable[str], method: str) -> None:
        """Raise for unknown names, unless a dynamic source can still return such tools."""
        if self._source.asks is not None:
            return
        known = [tool.name for tool in self._source.known()]
        unknown = [name for name in names if name not in set(known)]
        if unknown:
            near = difflib.get_close_matches(str(unknown[0]), known[:1_000], 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"It has: {', '.join(known[:20])}."
            raise UserValueError(f"{method}(...): {_OWNER} has no tool {unknown[0]!r:.80}. {hint}")


def _all(tool: Any) -> bool:
    del tool
    return True


def _as_bool(value: Any, method: str) -> bool:
    if hasattr(value, "__await__"):  # a coroutine object is always true
        if hasattr(value, "close"):
            value.close()
        raise UserTypeError(
            f"{method}(...) is not valid: expected a sync function, got an async one. Use "
            "prepare(...) for async functions."
        )
    return bool(value)


def _opened(wanted: Iterable[Any]) -> Iterator[Any]:
    for one in wanted:
        if isinstance(one, (list, tuple, set, frozenset)):
            yield from _opened(cast("Iterable[Any]", one))
        else:
            yield one


def _contains(value: Any, wanted: Mapping[str, Any]) -> bool:
    """Return whether a mapping contains all entries of another one, also nested ones."""
    if not isinstance(value, Mapping):
        return False
    mapping = cast("Mapping[str, Any]", value)
    return all(
        name in mapping
        and (
            _contains(mapping[name], cast("Mapping[str, Any]", entry))
            if isinstance(entry, Mapping)
            else mapping[name] == entry
        )
        for name, entry in wanted.items()
    )
