"""Sources of tools: static lists, dynamic sources, and sources that change other sources.

Each source returns a tuple of tools. While the tools do not change, it is the same tuple, so that
other sources can compare one object instead of thousands.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast
from weakref import WeakKeyDictionary

from agents_tools.errors import AgentsToolsError, UserError, UserTypeError, UserValueError
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "DynamicSource",
    "FixedSource",
    "MappedSource",
    "MergedSource",
    "PerObjectCache",
    "PreparedSource",
    "RecentCache",
    "Tools",
    "ToolsetSource",
    "check_names",
    "is_tool",
    "parts_of",
    "place_of",
    "prefixed",
    "two_of_one_name",
]

Tools: TypeAlias = tuple[Any, ...]


class ToolsetSource(Protocol):
    """A source of function tools and hosted tools."""

    @property
    def asks(self) -> str | None:
        """The name of the dynamic source inside; `None` if all tools are static."""
        ...

    def known(self) -> Tools:
        """Return the static tools."""
        ...

    async def tools(self, context: Any) -> Tools:
        """Return the current tools."""
        ...

    def instructions(self) -> str:
        """Return a text for models about the use of the tools; empty for none."""
        ...

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Call a function whenever the source reports a change."""
        ...


class RecentCache:
    """A cache of results for the last few inputs, which are compared by identity."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: tuple[tuple[tuple[object, ...], Any], ...] = ()

    def get(self, inputs: tuple[object, ...], make: Callable[[], Any]) -> Any:
        """Return the cached result for the inputs, or create it."""
        for known, result in self._entries:
            if len(known) == len(inputs) and all(map(_is, known, inputs)):
                return result
        result = make()
        # One assignment instead of an update in place, because threads share the cache.
        self._entries = ((inputs, result), *self._entries[: _MAX_ENTRIES - 1])
        return result


_MAX_ENTRIES = 4


class PerObjectCache:
    """A function that is called once for each object; the results live as long as the objects.

    Args:
        function: The function.
    """

    __slots__ = ("_function", "_lock", "_results")

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._results: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def __call__(self, key: Any) -> Any:
        """Return the result of the function."""
        result = self._results.get(key, _UNKNOWN)
        if result is _UNKNOWN:
            result = self._function(key)
            with self._lock:
                # A strong reference to the key as the value would keep it alive forever.
                result = self._results.setdefault(key, _SAME if result is key else result)
        return key if result is _SAME else result


_UNKNOWN, _SAME = object(), object()


def _is(one: object, other: object) -> bool:
    return one is other


class FixedSource:
    """A static list of tools."""

    asks = None

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def known(self) -> Tools:
        """Return the tools."""
        return self._tools

    async def tools(self, context: Any) -> Tools:
        """Return the tools."""
        del context
        return self._tools

    def instructions(self) -> str:
        """Return no text: static tools have descriptions only."""
        return ""

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Do nothing, because static tools do not change."""


class DynamicSource:
    """An object with a method `get_tools()`, sync or async, which is called each time.

    Args:
        source: The object.
        owner: The owner of the tools, for errors.
    """

    def __init__(self, source: Any, owner: str) -> None:
        self._source = source
        self._owner = owner
        self._last: tuple[object, Tools, ToolsetSource] = (None, (), FixedSource(()))

    @property
    def asks(self) -> str | None:
        """The class of the object."""
        return type(self._source).__name__

    def known(self) -> Tools:
        """Return no tools, because earlier ones can be outdated."""
        return ()

    async def tools(self, context: Any) -> Tools:
        """Call `get_tools()`.

        Raises:
            UserError: The source failed, or returned something else than tools.
        """
        try:
            returned = self._source.get_tools()
            if hasattr(returned, "__await__"):
                returned = await returned
        except AgentsToolsError:
            raise
        except Exception as error:
            raise UserError(
                f"{self.asks}.get_tools() failed for {self._owner}: {type(error).__name__}: {error}"
            ) from error
        same, before, part = self._last
        if returned is same and isinstance(returned, tuple):
            return await part.tools(context)
        if not isinstance(returned, Iterable) or isinstance(returned, (str, bytes)):
            raise UserTypeError(
                f"{self.asks}.get_tools() returned a wrong value for {self._owner}: expected a "
                f"list of tools, got {type_with_article(cast('object', returned))}."
            )
        now = tuple(cast("Iterable[object]", returned))
        if now != before:
            part = MergedSource(parts_of(now, self._owner))
        self._last = (returned if isinstance(returned, tuple) else None, now, part)
        return await part.tools(context)  # it can contain another dynamic source

    def instructions(self) -> str:
        """Return the text of `get_instructions()`, if the source has this method.

        Raises:
            UserError: The method returned something else than text.
        """
        read = getattr(self._source, "get_instructions", None)
        text: object = read() if callable(read) else ""
        if not isinstance(text, str):
            raise UserTypeError(
                f"{self.asks}.get_instructions() returned a wrong value for {self._owner}: "
                f"expected text, got {type_with_article(text)}."
            )
        return text

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Subscribe to changes, if the source supports it."""
        subscribe = getattr(self._source, "subscribe", None)
        if callable(subscribe):

            def on_change(*_: object) -> None:  # some sources pass the changes as arguments
                callback()

            subscribe(on_change)


class MergedSource:
    """The tools of several sources, without duplicates.

    Args:
        parts: The sources.
        owner: The owner of the tools, for errors; `None` if names are checked elsewhere.
    """

    def __init__(self, parts: Sequence[ToolsetSource], owner: str | None = None) -> None:
        self._parts = tuple(parts)
        self._owner = owner
        self._recent = RecentCache()

    @property
    def asks(self) -> str | None:
        """The name of the first dynamic source."""
        return next((part.asks for part in self._parts if part.asks is not None), None)

    def known(self) -> Tools:
        """Return the static tools."""
        return self._merged(tuple(part.known() for part in self._parts))

    async def tools(self, context: Any) -> Tools:
        """Return the tools of all sources, which are called one after the other."""
        return self._merged(tuple([await part.tools(context) for part in self._parts]))

    def instructions(self) -> str:
        """Return the texts of all sources, each of them once."""
        texts = dict.fromkeys(part.instructions() for part in self._parts)
        return "\n\n".join(filter(None, texts))

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Subscribe to changes of all sources."""
        for part in self._parts:
            part.subscribe(callback)

    def _merged(self, parts: tuple[Tools, ...]) -> Tools:
        return self._recent.get(parts, lambda: self._merge(parts))

    def _merge(self, parts: tuple[Tools, ...]) -> Tools:
        tools = tuple({id(tool): tool for part in parts for tool in part}.values())
        if self._owner is not None:
            check_names(tools, self._owner)
        return tools


class MappedSource:
    """The tools of a source, each changed or removed. Equal tools give the same result.

    Args:
        inner: The source.
        step: A function that returns another tool, the same one, or `None` to remove it.
        owner: The owner of the tools, if names can change.
    """

    def __init__(
        self, inner: ToolsetSource, step: Callable[[Any], Any | None], owner: str | None = None
    ) -> None:
        self._inner = inner
        self._step = PerObjectCache(step)
        self._owner = owner
        self._recent = RecentCache()

    @property
    def asks(self) -> str | None:
        """The name of the first dynamic source."""
        return self._inner.asks

    def known(self) -> Tools:
        """Return the changed static tools."""
        return self._changed(self._inner.known())

    async def tools(self, context: Any) -> Tools:
        """Return the changed current tools."""
        return self._changed(await self._inner.tools(context))

    def instructions(self) -> str:
        """Return the text of the source."""
        return self._inner.instructions()

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Subscribe to changes of the source."""
        self._inner.subscribe(callback)

    def _changed(self, tools: Tools) -> Tools:
        return self._recent.get((tools,), lambda: self._all(tools))

    def _all(self, tools: Tools) -> Tools:
        changed = [self._step(tool) for tool in tools]
        rest = tuple(tool for tool in changed if tool is not None)
        if self._owner is not None:
            check_names(rest, self._owner)
        return rest


class PreparedSource:
    """The tools of a source that a function of the application selects for one turn.

    Args:
        inner: The source.
        function: A function that takes (context, list of tools) and returns a list of tools; sync
            or async.
    """

    def __init__(self, inner: ToolsetSource, function: Callable[[Any, list[Any]], Any]) -> None:
        self._inner = inner
        self._function = function
        self._recent: tuple[Tools, ...] = ()

    @property
    def asks(self) -> str | None:
        """The name of the function."""
        return _name_of(self._function)

    def known(self) -> Tools:
        """Return no tools, because the function is not called yet."""
        return ()

    async def tools(self, context: Any) -> Tools:
        """Call the function.

        Raises:
            UserError: The function failed, or returned something else than some of the tools.
        """
        tools = await self._inner.tools(context)
        name = self.asks
        try:
            chosen = self._function(context, list(tools))
            if hasattr(chosen, "__await__"):
                chosen = await chosen
        except AgentsToolsError:
            raise
        except Exception as error:
            raise UserError(f"prepare({name}) failed: {type(error).__name__}: {error}") from error
        if not isinstance(chosen, (list, tuple)):
            raise UserTypeError(
                f"prepare({name}) returned a wrong value: expected a list of tools, got "
                f"{type_with_article(cast('object', chosen))}. For no tools, return []."
            )
        return self._checked(tools, tuple(cast("Iterable[Any]", chosen)))

    def instructions(self) -> str:
        """Return the text of the source."""
        return self._inner.instructions()

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Subscribe to changes of the source."""
        self._inner.subscribe(callback)

    def _checked(self, tools: Tools, chosen: Tools) -> Tools:
        if len(chosen) == len(tools) and all(map(_is, chosen, tools)):
            return tools
        for known in self._recent:
            if len(known) == len(chosen) and all(map(_is, known, chosen)):
                return known
        names = {tool.name for tool in tools}
        for tool in chosen:
            name = getattr(tool, "name", None)
            if name not in names or not is_tool(tool):
                raise UserValueError(
                    f"prepare({self.asks}) returned an unknown tool: expected some of the passed "
                    f"tools, got {name or tool!r:.80}. Use combine() to add tools and rename() to "
                    "change names."
                )
        result = MergedSource([FixedSource(chosen)], f"the result of prepare({self.asks})").known()
        self._recent = (result, *self._recent[: _MAX_ENTRIES - 1])
        return result


def _name_of(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


# --- conversion of arguments to sources


def parts_of(sources: Iterable[Any], owner: str) -> list[ToolsetSource]:
    """Return the source objects for the arguments of a toolset or an agent.

    Args:
        sources: Tools, lists of sources, toolsets, and objects with a method `get_tools()`.
        owner: The owner of the tools, for errors.

    Raises:
        UserError: An argument has another type.
    """
    parts: list[ToolsetSource] = []
    tools: list[Any] = []
    for source in _opened(sources):
        part = _part_of(source, owner)
        if part is None:
            tools.append(_tool_of(source, owner))
            continue
        if tools:
            parts.append(FixedSource(tuple(tools)))
            tools = []
        parts.append(part)
    if tools or not parts:
        parts.append(FixedSource(tuple(tools)))
    return parts


def _opened(sources: Iterable[Any]) -> Iterable[Any]:
    for source in sources:
        if isinstance(source, (list, tuple)):
            yield from _opened(cast("Iterable[Any]", source))
        elif not isinstance(source, type) and hasattr(source, "as_function_tools"):
            yield from source.as_function_tools()  # a specification
        else:
            yield source


def _part_of(source: Any, owner: str) -> ToolsetSource | None:
    if isinstance(source, type) or is_tool(source):
        return None
    as_part = getattr(source, "as_part", None)
    if as_part is not None:
        return as_part()
    return DynamicSource(source, owner) if callable(getattr(source, "get_tools", None)) else None


def is_tool(value: Any) -> bool:
    """Return whether a value is a function tool or a hosted tool."""
    return isinstance(value, FunctionTool) or (
        hasattr(value, "to_responses") and not isinstance(value, type)
    )


def _tool_of(source: Any, owner: str) -> Any:
    if is_tool(source):
        return source
    convert = None if isinstance(source, type) else getattr(source, "as_function_tool", None)
    if convert is None:
        raise UserTypeError(
            f"The tools of {owner} are not valid: expected function tools and hosted tools, got "
            f"{source!r:.80}. {_remedy(source)}"
        )
    return convert()


def _remedy(source: object) -> str:
    if isinstance(source, type):
        if hasattr(source, "create"):
            return f"Use {source.__name__}.create()."
        return f"Create an instance: {source.__name__}(...)."
    if hasattr(source, "as_tool"):
        return "Use agent.as_tool()."
    if callable(source):
        return "Put @function_tool above the function."
    if isinstance(source, Iterable) and not isinstance(source, str):
        return "Pass its items as a list."
    return "Create a tool with @function_tool, Agent.as_tool() or FunctionTool(...)."


# --- names


def check_names(tools: Iterable[Any], owner: str) -> None:
    """Check that no two tools have the same name.

    Args:
        tools: The tools.
        owner: The owner of the tools, for errors.

    Raises:
        UserError: Two tools have the same name.
    """
    known: dict[str, Any] = {}
    for tool in tools:
        other = known.setdefault(tool.name, tool)
        if other is not tool:
            raise UserValueError(two_of_one_name(owner, other, tool))


def two_of_one_name(owner: str, one: Any, other: Any) -> str:
    """Return the error message for two tools with the same name."""
    return (
        f"{owner[0].upper()}{owner[1:]} has two tools named {one.name!r}: {place_of(one)} and "
        f"{place_of(other)}. Rename one of them, for example with "
        f"policies.rename({one.name + '_2'!r})."
    )


def place_of(tool: Any) -> str:
    """Return the origin of a tool, for errors."""
    origin = getattr(tool, "origin", None)
    if origin is None:
        return f"{type(tool).__name__}()"
    if origin.agent is not None:
        return f"agent {origin.agent!r} as a tool"
    if origin.server is not None:
        return f"{origin.wire_name!r} of server {origin.server!r}"
    return origin.place or repr(tool)


def prefixed(name: str, prefix: str) -> str:
    """Return a name with a prefix; a name that is too long is shortened and gets a hash."""
    full_name = prefix + name
    if len(full_name) <= _MAX_NAME_LENGTH:
        return full_name
    digest = hashlib.sha256(full_name.encode()).hexdigest()[:8]
    return f"{full_name[: _MAX_NAME_LENGTH - 9]}_{digest}"


_MAX_NAME_LENGTH = 64
