"""What toolsets are made of: tools as they are given, sources that are asked, and changes to both.

Each part gives a tuple of tools, and the same tuple again while nothing has changed: whoever builds
on it compares one object instead of thousands.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast
from weakref import WeakKeyDictionary

from agents_tools.errors import AgentsToolsError, UserError, UserTypeError, UserValueError
from agents_tools.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "Dynamic",
    "Given",
    "Mapped",
    "Merged",
    "Part",
    "Prepared",
    "Recent",
    "Remembered",
    "Tools",
    "check_names",
    "is_tool",
    "parts_of",
    "place_of",
    "prefixed",
    "two_of_one_name",
]

Tools: TypeAlias = tuple[Any, ...]


class Part(Protocol):
    """Gives tools: function tools, and hosted tools as they are."""

    @property
    def asks(self) -> str | None:
        """Who has to be asked for tools; `None` where all of them are known."""
        ...

    def known(self) -> Tools:
        """Give the tools that are known without asking anybody."""
        ...

    async def tools(self, context: Any) -> Tools:
        """Give the tools as they are now."""
        ...

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Call a function whenever there may be other tools, as far as anybody tells."""
        ...


class Recent:
    """Remembers what was made of the last few inputs, which are told apart by identity."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: tuple[tuple[tuple[object, ...], Any], ...] = ()

    def get(self, inputs: tuple[object, ...], make: Callable[[], Any]) -> Any:
        """Give what was made of the inputs, or make it."""
        for known, made in self._kept:
            if len(known) == len(inputs) and all(map(_is, known, inputs)):
                return made
        made = make()
        self._kept = ((inputs, made), *self._kept[: _MOST_KEPT - 1])  # one step: threads share it
        return made


_MOST_KEPT = 4


class Remembered:
    """A function of one object that is called once for each; the result is kept with the object.

    Args:
        function: The function.
    """

    __slots__ = ("_function", "_lock", "_made")

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._made: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def __call__(self, given: Any) -> Any:
        """Give what the function gives."""
        made = self._made.get(given, _UNKNOWN)
        if made is _UNKNOWN:
            made = self._function(given)
            with self._lock:
                # The object itself would keep itself alive here.
                made = self._made.setdefault(given, _SAME if made is given else made)
        return given if made is _SAME else made


_UNKNOWN, _SAME = object(), object()


def _is(one: object, other: object) -> bool:
    return one is other


class Given:
    """Tools that were written down."""

    asks = None

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def known(self) -> Tools:
        """Give the tools."""
        return self._tools

    async def tools(self, context: Any) -> Tools:
        """Give the tools."""
        del context
        return self._tools

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Do nothing: these stay as they are."""


class Dynamic:
    """An object with a method `get_tools()`, sync or async, that is asked each time.

    Args:
        source: The object.
        owner: Whose tools they are, for errors.
    """

    def __init__(self, source: Any, owner: str) -> None:
        self._source = source
        self._owner = owner
        self._last: tuple[object, Tools, Part] = (None, (), Given(()))

    @property
    def asks(self) -> str | None:
        """Name the class of the object."""
        return type(self._source).__name__

    def known(self) -> Tools:
        """Give nothing: what it had before may be gone."""
        return ()

    async def tools(self, context: Any) -> Tools:
        """Ask for the tools.

        Raises:
            UserError: The source failed, or gave something else.
        """
        try:
            given = self._source.get_tools()
            if hasattr(given, "__await__"):
                given = await given
        except AgentsToolsError:
            raise
        except Exception as error:
            raise UserError(
                f"{self.asks}.get_tools() has no tools for {self._owner}: "
                f"{type(error).__name__}: {error}"
            ) from error
        same, before, part = self._last
        if given is same and isinstance(given, tuple):
            return await part.tools(context)
        if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
            raise UserTypeError(
                f"{self.asks}.get_tools() has to give a list of tools for {self._owner}; it gave "
                f"a {type(cast('object', given)).__name__}."
            )
        now = tuple(cast("Iterable[object]", given))
        if now != before:
            part = Merged(parts_of(now, self._owner))
        self._last = (given if isinstance(given, tuple) else None, now, part)
        return await part.tools(context)  # there may be a toolset in it that asks others

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Ask the source to tell, if it can."""
        subscribe = getattr(self._source, "subscribe", None)
        if callable(subscribe):

            def tell(*_: object) -> None:  # some are told what has changed, some are not
                callback()

            subscribe(tell)


class Merged:
    """The tools of several parts; one that comes twice is there once.

    Args:
        parts: The parts.
        owner: Whose tools they are, for the error that two have one name; it is left to somebody
            else to look for that where there is none.
    """

    def __init__(self, parts: Sequence[Part], owner: str | None = None) -> None:
        self._parts = tuple(parts)
        self._owner = owner
        self._recent = Recent()

    @property
    def asks(self) -> str | None:
        """Name who has to be asked."""
        return next((part.asks for part in self._parts if part.asks is not None), None)

    def known(self) -> Tools:
        """Give the tools that are known."""
        return self._merged(tuple(part.known() for part in self._parts))

    async def tools(self, context: Any) -> Tools:
        """Ask all parts, one after the other."""
        return self._merged(tuple([await part.tools(context) for part in self._parts]))

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Ask all parts to tell."""
        for part in self._parts:
            part.subscribe(callback)

    def _merged(self, given: tuple[Tools, ...]) -> Tools:
        return self._recent.get(given, lambda: self._made(given))

    def _made(self, given: tuple[Tools, ...]) -> Tools:
        tools = tuple({id(tool): tool for some in given for tool in some}.values())
        if self._owner is not None:
            check_names(tools, self._owner)
        return tools


class Mapped:
    """The tools of a part, each changed or left out; the same tool always becomes the same one.

    Args:
        inner: The part.
        step: Gives another tool, the same one, or `None` for none.
        owner: Whose tools they are, where names may change.
    """

    def __init__(
        self, inner: Part, step: Callable[[Any], Any | None], owner: str | None = None
    ) -> None:
        self._inner = inner
        self._step = Remembered(step)
        self._owner = owner
        self._recent = Recent()

    @property
    def asks(self) -> str | None:
        """Name who has to be asked."""
        return self._inner.asks

    def known(self) -> Tools:
        """Change what is known."""
        return self._changed(self._inner.known())

    async def tools(self, context: Any) -> Tools:
        """Change what there is now."""
        return self._changed(await self._inner.tools(context))

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Ask the part to tell."""
        self._inner.subscribe(callback)

    def _changed(self, tools: Tools) -> Tools:
        return self._recent.get((tools,), lambda: self._all(tools))

    def _all(self, tools: Tools) -> Tools:
        changed = [self._step(tool) for tool in tools]
        kept = tuple(tool for tool in changed if tool is not None)
        if self._owner is not None:
            check_names(kept, self._owner)
        return kept


class Prepared:
    """The tools of a part as a function of the application wants them for one turn.

    Args:
        inner: The part.
        function: From (context, list of tools) to a list of tools; sync or async.
    """

    def __init__(self, inner: Part, function: Callable[[Any, list[Any]], Any]) -> None:
        self._inner = inner
        self._function = function
        self._kept: tuple[Tools, ...] = ()

    @property
    def asks(self) -> str | None:
        """Name the function."""
        return _name_of(self._function)

    def known(self) -> Tools:
        """Give nothing: what the function would leave is not known before it is called."""
        return ()

    async def tools(self, context: Any) -> Tools:
        """Ask the function.

        Raises:
            UserError: It failed, or gave something else than a list of tools that it was given.
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
                f"prepare({name}) has to give a list of tools; it gave a "
                f"{type(cast('object', chosen)).__name__}. For none: []."
            )
        return self._checked(tools, tuple(cast("Iterable[Any]", chosen)))

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Ask the part to tell."""
        self._inner.subscribe(callback)

    def _checked(self, tools: Tools, chosen: Tools) -> Tools:
        if len(chosen) == len(tools) and all(map(_is, chosen, tools)):
            return tools
        for known in self._kept:
            if len(known) == len(chosen) and all(map(_is, known, chosen)):
                return known
        names = {tool.name for tool in tools}
        for tool in chosen:
            name = getattr(tool, "name", None)
            if name not in names or not is_tool(tool):
                raise UserValueError(
                    f"prepare({self.asks}) gave {name or tool!r:.80}, which is none of the tools "
                    "that it was given. It may leave tools out, sort them and describe them "
                    "otherwise; new ones and new names are for combine() and rename()."
                )
        made = Merged([Given(chosen)], f"what prepare({self.asks}) gave").known()
        self._kept = (made, *self._kept[: _MOST_KEPT - 1])
        return made


def _name_of(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


# --- what is given


def parts_of(sources: Iterable[Any], owner: str) -> list[Part]:
    """Give the parts that sources stand for.

    Args:
        sources: Tools, lists of sources, toolsets, and objects with a method `get_tools()`.
        owner: Whose tools they are, for errors.

    Raises:
        UserError: One of them is something else.
    """
    parts: list[Part] = []
    tools: list[Any] = []
    for source in _opened(sources):
        part = _part_of(source, owner)
        if part is None:
            tools.append(_tool_of(source, owner))
            continue
        if tools:
            parts.append(Given(tuple(tools)))
            tools = []
        parts.append(part)
    if tools or not parts:
        parts.append(Given(tuple(tools)))
    return parts


def _opened(sources: Iterable[Any]) -> Iterable[Any]:
    for source in sources:
        if isinstance(source, (list, tuple)):
            yield from _opened(cast("Iterable[Any]", source))
        else:
            yield source


def _part_of(source: Any, owner: str) -> Part | None:
    if isinstance(source, type) or is_tool(source):
        return None
    as_part = getattr(source, "as_part", None)
    if as_part is not None:
        return as_part()
    return Dynamic(source, owner) if callable(getattr(source, "get_tools", None)) else None


def is_tool(value: Any) -> bool:
    """Whether a value is a function tool, or one that a provider runs."""
    return isinstance(value, FunctionTool) or (
        hasattr(value, "to_responses") and not isinstance(value, type)
    )


def _tool_of(source: Any, owner: str) -> Any:
    if is_tool(source):
        return source
    become = None if isinstance(source, type) else getattr(source, "as_function_tool", None)
    if become is None:
        raise UserTypeError(
            f"The tools of {owner} are function tools and hosted tools; {source!r:.80} is neither. "
            f"{_remedy(source)}"
        )
    return become()


def _remedy(source: object) -> str:
    if isinstance(source, type):
        if hasattr(source, "create"):
            return f"Write {source.__name__}.create() to make it."
        return f"Write {source.__name__}(...) to make it."
    if hasattr(source, "as_tool"):
        return "Write agent.as_tool() to let it be called."
    if type(source).__name__ == "ToolSpec":
        return "Write resolve_tool(spec) to make it."
    if callable(source):
        return "Put @function_tool above the function."
    if isinstance(source, Iterable) and not isinstance(source, str):
        return "Give what is in it as a list."
    return "Make it one with @function_tool, Agent.as_tool() or FunctionTool(...)."


# --- names


def check_names(tools: Iterable[Any], owner: str) -> None:
    """Refuse two tools of one name.

    Args:
        tools: The tools.
        owner: Whose they are.

    Raises:
        UserError: There are two.
    """
    known: dict[str, Any] = {}
    for tool in tools:
        other = known.setdefault(tool.name, tool)
        if other is not tool:
            raise UserValueError(two_of_one_name(owner, other, tool))


def two_of_one_name(owner: str, one: Any, other: Any) -> str:
    """Say that two tools have one name."""
    return (
        f"{owner[0].upper()}{owner[1:]} has two tools named {one.name!r}: {place_of(one)} and "
        f"{place_of(other)}. Give one of them another name, for example with "
        f"policies.rename({one.name + '_2'!r})."
    )


def place_of(tool: Any) -> str:
    """Say where a tool comes from."""
    origin = getattr(tool, "origin", None)
    if origin is None:
        return f"{type(tool).__name__}()"
    if origin.agent is not None:
        return f"agent {origin.agent!r} as a tool"
    if origin.server is not None:
        return f"{origin.wire_name!r} of server {origin.server!r}"
    return origin.place or repr(tool)


def prefixed(name: str, prefix: str) -> str:
    """Put a prefix before a name; what gets too long is cut and marked, always in the same way."""
    whole = prefix + name
    if len(whole) <= _LONGEST_NAME:
        return whole
    mark = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{whole[: _LONGEST_NAME - 9]}_{mark}"


_LONGEST_NAME = 64
