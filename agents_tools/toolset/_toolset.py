"""Many tools at once: put together, chosen from, renamed, and changed, without touching any."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.tool import FunctionTool, check_tool_name
from agents_tools.toolset._deferred import deferred
from agents_tools.toolset._doors import Door
from agents_tools.toolset._parts import (
    Mapped,
    Merged,
    Prepared,
    Remembered,
    is_tool,
    parts_of,
    prefixed,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from agents_tools.toolset._parts import Part

__all__ = ["Toolset"]

_OWNER = "this toolset"


class Toolset:
    """Tools from many sources as one. It never changes: each method gives a new toolset.

    ```python
    tools = Toolset(files, github_server).prefix("work_").map(timeout(10))
    agent = Agent("helper", tools=[tools])
    ```

    Whatever takes a list of tools takes a toolset. Where a source has to be asked for its tools,
    agents and MCP servers ask it; others are given `await toolset.get_tools()`. The tools that
    come out are always the same objects as long as those that go in are.

    Args:
        *sources: Tools of any kind, lists of them, toolsets, and objects with a method
            `get_tools()`, sync or async, which is asked before each turn: an `MCPToolManager`, a
            `ToolRegistry`. The same tool from two sources is there once.

    Raises:
        UserError: One of them is something else, or two tools have one name.
    """

    def __init__(self, *sources: Any) -> None:
        self._part: Part = Merged(parts_of(sources, _OWNER), _OWNER)
        self._part.known()

    @classmethod
    def of_part(cls, part: Part) -> Self:
        """Give the toolset of a part; what its methods and `tool_search` are made with."""
        made = cls.__new__(cls)
        made._part = part  # noqa: SLF001 - its own class
        part.known()  # what can be wrong is wrong now
        return made

    def as_part(self) -> Part:
        """Give what it is made of."""
        return self._part

    # --- what is in it

    @property
    def known_tools(self) -> list[Any]:
        """The tools that are known without asking any source."""
        return list(self._part.known())

    async def get_tools(self, context: Any = None) -> tuple[Any, ...]:
        """Give the tools as they are now; the same tuple again while nothing has changed.

        Args:
            context: The context of the run, for functions given to `prepare`.

        Raises:
            UserError: A source failed, or two tools have one name.
        """
        return await self._part.tools(context)

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Call a function whenever a source says that its tools have changed.

        Args:
            callback: Called without arguments, in the thread of whoever has changed them.
        """
        self._part.subscribe(callback)

    def __iter__(self) -> Iterator[Any]:
        """Give the tools.

        Raises:
            UserError: A source has to be asked for them.
        """
        return iter(self._all())

    def __len__(self) -> int:
        """Count the tools.

        Raises:
            UserError: A source has to be asked for them.
        """
        return len(self._all())

    def __bool__(self) -> bool:
        """Tell whether there may be tools in it."""
        return self._part.asks is not None or bool(self._part.known())

    def _all(self) -> tuple[Any, ...]:
        asks = self._part.asks
        if asks is not None:
            raise UserTypeError(
                f"What this toolset has is known once {asks} is asked: give it to an agent or an "
                "MCP server, or write `await toolset.get_tools()`."
            )
        return self._part.known()

    def __repr__(self) -> str:
        """Show the first names, and who else has to be asked."""
        names = [tool.name for tool in self._part.known()]
        more = ", …" if len(names) > 5 else ""  # noqa: PLR2004 - what fits in a line
        shown = f"{len(names)}: {', '.join(names[:5])}{more}" if names else "0"
        asks = self._part.asks
        return f"<Toolset of {shown}>" if asks is None else f"<Toolset of {shown}, asks {asks}>"

    # --- other toolsets of it

    def combine(self, *sources: Any) -> Toolset:
        """Add what others have.

        Args:
            *sources: As for the toolset itself.

        Raises:
            UserError: Two tools have one name.
        """
        return Toolset(self, *sources)

    def filter(self, *wanted: Any, metadata: Mapping[str, Any] | None = None) -> Toolset:
        """Keep some of the tools.

        Args:
            *wanted: Those that are kept: names, patterns of names (`read_*`), lists of both, or a
                function from a tool to whether it is wanted, asked once about each tool.
            metadata: What the metadata of a tool has to say; mappings in it are compared likewise.

        Raises:
            UserError: Nothing is said, or a name is that of no tool.
        """
        if not wanted and metadata is None:
            raise UserTypeError(
                "filter(...) takes names, patterns, a function of a tool, or metadata=."
            )
        if metadata is not None and not isinstance(metadata, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(f"filter(metadata=...) takes a mapping, not {metadata!r:.60}.")
        is_wanted = self._test(wanted, "filter")
        told = metadata

        def step(tool: Any) -> Any:
            fits = told is None or _says(getattr(tool, "metadata", {}), told)
            return tool if fits and is_wanted(tool) else None

        return Toolset.of_part(Mapped(self._part, step))

    def prefix(self, prefix: str) -> Toolset:
        """Put a prefix before each name; a name that gets longer than 64 signs is cut and marked.

        Tools that a provider runs keep their names, which are not ours to give.

        Args:
            prefix: Letters, digits, `_` and `-`: `github_`.

        Raises:
            UserError: The prefix cannot be part of a name.
        """
        if not isinstance(prefix, str) or not prefix:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(f"prefix(...) takes a text, such as 'github_', not {prefix!r:.60}.")
        check_tool_name(prefix[:64])
        return self._renamed(lambda name: prefixed(name, prefix))

    def rename(self, names: Mapping[str, str] | Callable[[str], str | None]) -> Toolset:
        """Give tools other names.

        Args:
            names: New names by old names; or a function from the old name to the new one, `None`
                for no other.

        Raises:
            UserError: A name is not acceptable or that of no tool, or two tools get one name.
        """
        if isinstance(names, Mapping):
            given = dict(cast("Mapping[str, str]", names))
            self._check_known(given, "rename")
            return self._renamed(given.get)
        if not callable(names):
            raise UserTypeError(
                f"rename(...) takes new names by old names, or a function, not {names!r:.60}."
            )
        return self._renamed(names)

    def _renamed(self, new_name: Callable[[str], str | None]) -> Toolset:
        def step(tool: Any) -> Any:
            if not isinstance(tool, FunctionTool):
                return tool
            own = cast("FunctionTool[..., Any]", tool)
            name = new_name(own.name)
            return own if name is None or name == own.name else own.with_(name=name)

        return Toolset.of_part(Mapped(self._part, step, _OWNER))

    def map(self, policy: Callable[[Any], Any]) -> Toolset:
        """Put a policy around each tool; tools that a provider runs stay as they are.

        With a `tool_search`, that is each tool that it finds; the search itself stays as it is.

        Args:
            policy: A policy, or any function from a tool to a tool. It is asked once about each
                tool; the state of a policy, such as a limit, is shared by all of them.

        Raises:
            UserError: It gave something that is no tool, or two tools get one name.
        """
        if not callable(policy):
            raise UserTypeError(
                f"map(...) takes a policy, such as timeout(10), not {policy!r:.60}."
            )

        def changed(tool: Any) -> Any:
            made = policy(tool)
            if not is_tool(made):
                raise UserTypeError(
                    f"map({policy!r:.60}) has to give a tool for {tool.name!r}; it gave a "
                    f"{type(made).__name__}."
                )
            return made

        each = Remembered(changed)
        behind = Remembered(lambda catalog: catalog.changed(each))

        def step(tool: Any) -> Any:
            if isinstance(tool, Door):
                return tool.onto(behind(tool.catalog))
            return each(tool) if isinstance(tool, FunctionTool) else tool

        return Toolset.of_part(Mapped(self._part, step, _OWNER))

    def prepare(self, function: Callable[[Any, list[Any]], Any]) -> Toolset:
        """Let a function say, before each turn, what the tools are.

        Args:
            function: From (context, list of tools) to the list of tools for the turn; sync or
                async. It may leave tools out, sort them, and give changed copies of the same name.
                Outside a run the context is `None`.

        Raises:
            UserError: It is no function.
        """
        if not callable(function):
            raise UserTypeError(
                f"prepare(...) takes a function of (context, tools), not {function!r:.60}."
            )
        return Toolset.of_part(Prepared(self._part, function))

    def defer(self, *wanted: Any) -> Toolset:
        """Let models look for tools instead of reading all of them.

        Where the model's provider searches tools itself (Anthropic's and OpenAI's own APIs), the
        tools go out with `defer_loading`, and the provider's search beside them. For other models
        an agent puts them behind a `tool_search` of ours.

        Args:
            *wanted: Which tools, as for `filter`; all of them by default.

        Raises:
            UserError: A name is that of no tool.
        """
        is_wanted = self._test(wanted, "defer")

        def step(tool: Any) -> Any:
            if isinstance(tool, FunctionTool) and not isinstance(tool, Door) and is_wanted(tool):
                return deferred(cast("FunctionTool[..., Any]", tool))
            return cast("Any", tool)

        return Toolset.of_part(Mapped(self._part, step))

    # --- which tools are meant

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
                    f"{method}(...) takes names, patterns or a function of a tool, not {one!r:.60}."
                )
        if not names and not tests:
            return _all
        self._check_known([name for name in names if not any(s in name for s in "*?[")], method)

        def is_wanted(tool: Any) -> bool:
            if any(fnmatchcase(tool.name, name) for name in names):
                return True
            return any(_answer(test(tool), method) for test in tests)

        return is_wanted

    def _check_known(self, names: Iterable[str], method: str) -> None:
        """Refuse names that are surely no tool's: all tools are known, and these are not there."""
        if self._part.asks is not None:
            return
        known = [tool.name for tool in self._part.known()]
        unknown = [name for name in names if name not in set(known)]
        if unknown:
            near = difflib.get_close_matches(str(unknown[0]), known[:1_000], 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"It has: {', '.join(known[:20])}."
            raise UserValueError(f"{method}(...): {_OWNER} has no tool {unknown[0]!r:.80}. {hint}")


def _all(tool: Any) -> bool:
    del tool
    return True


def _answer(given: Any, method: str) -> bool:
    if hasattr(given, "__await__"):  # it would be taken for a yes
        if hasattr(given, "close"):
            given.close()
        raise UserTypeError(
            f"{method}(...) takes a function that is not async; one that is, is for prepare(...)."
        )
    return bool(given)


def _opened(wanted: Iterable[Any]) -> Iterator[Any]:
    for one in wanted:
        if isinstance(one, (list, tuple, set, frozenset)):
            yield from _opened(cast("Iterable[Any]", one))
        else:
            yield one


def _says(said: Any, wanted: Mapping[str, Any]) -> bool:
    """Whether a mapping says all that another one does."""
    if not isinstance(said, Mapping):
        return False
    found = cast("Mapping[str, Any]", said)
    return all(
        name in found
        and (
            _says(found[name], cast("Mapping[str, Any]", value))
            if isinstance(value, Mapping)
            else found[name] == value
        )
        for name, value in wanted.items()
    )
