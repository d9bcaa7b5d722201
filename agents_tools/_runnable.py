"""What the loop has to know of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from agents_tools.errors import UserValueError
from agents_tools.toolset._doors import CallTool, Door, SearchTool, revealed
from agents_tools.toolset._parts import two_of_one_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agents_tools.hosted import HostedTool
    from agents_tools.items import ToolCallItem
    from agents_tools.model import Model, ModelSettings, OutputFormat
    from agents_tools.run import RunHooks
    from agents_tools.tool import FunctionTool

__all__ = ["OutputType", "RunnableAgent", "Toolbox"]


class OutputType(Protocol):
    """The type of a final answer."""

    @property
    def format(self) -> OutputFormat:
        """How a model is told of it."""
        ...

    def read(self, text: str) -> Any:
        """Make an object of the text of an answer.

        Raises:
            ModelBehaviorError: It is not of the type; the message lets the model correct it.
        """
        ...


class RunnableAgent(Protocol):
    """What the loop has to know of an agent."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def model(self) -> str | Model | None:
        """Its model, or the name of it."""
        ...

    @property
    def model_settings(self) -> ModelSettings | None:
        """How its model is asked to answer."""
        ...

    @property
    def hooks(self) -> RunHooks[Any] | None:
        """Who is told of its runs."""
        ...

    @property
    def tool_use_behavior(self) -> Any:
        """What follows when tools have answered."""
        ...

    @property
    def reset_tool_choice(self) -> bool:
        """Whether a choice of tools holds only until a tool was used."""
        ...

    @property
    def output(self) -> OutputType | None:
        """The type of its final answer; `None` for text."""
        ...

    async def system_prompt(self, context: Any) -> str:
        """Give its instructions."""
        ...

    async def toolbox(self, context: Any) -> Toolbox:
        """Give its tools, as they are now."""
        ...


class Toolbox:
    """The tools of an agent as they are offered to a model, by name.

    Behind tools that search there are more, which are not offered and can be called all the same.

    Args:
        tools: The tools.
        owner: Whose they are, for error messages.
        barred: Names behind searches that cannot be called.

    Attributes:
        offered: The tools, as a model is told of them.
        by_name: Those of them that run here.
        doors: Those of them through which others are reached.
        conditional: The tools whose `is_enabled` has to be asked, those behind searches included.
    """

    __slots__ = (
        "_barred",
        "_smaller",
        "by_name",
        "conditional",
        "doors",
        "offered",
    )

    def __init__(
        self,
        tools: Sequence[FunctionTool[..., Any] | HostedTool],
        owner: str,
        barred: frozenset[str] = frozenset(),
    ) -> None:
        known: dict[str, Any] = {}
        self.by_name: dict[str, FunctionTool[..., Any]] = {}
        self._barred = barred
        self._smaller: dict[tuple[object, ...], Toolbox] = {}
        for tool in tools:
            other = known.setdefault(tool.name, tool)
            if other is not tool:
                raise UserValueError(two_of_one_name(f"agent {owner!r}", other, tool))
            local: Any = tool if hasattr(tool, "call") else cast("Any", tool).local
            if local is not None:
                self.by_name[tool.name] = local
        self.offered: tuple[FunctionTool[..., Any] | HostedTool, ...] = tuple(known.values())
        self.doors = [tool for tool in self.offered if isinstance(tool, Door)]
        self.conditional: list[Any] = [
            tool for tool in self.offered if getattr(tool, "is_enabled", True) is not True
        ]
        for catalog in {id(door.catalog): door.catalog for door in self.doors}.values():
            self.conditional += catalog.conditional
        if owner:
            _check_hidden(self.doors, known, owner)

    @property
    def hidden(self) -> Iterator[FunctionTool[..., Any]]:
        """The tools behind searches."""
        for catalog in {id(door.catalog): door.catalog for door in self.doors}.values():
            yield from catalog.tools

    def called(self, call: ToolCallItem) -> tuple[FunctionTool[..., Any] | None, str | None]:
        """Give the tool that a call means; `None` where there is none.

        Args:
            call: The call.

        Returns:
            The tool, and its arguments where they are not in the words that the provider was told.
        """
        tool = self.by_name.get(call.name)
        if isinstance(tool, CallTool):
            routed = tool.routed(call.arguments)
            if routed is not None and routed[0].name not in self._barred:
                return routed
        elif tool is None and call.name not in self._barred:
            for door in self.doors:
                found = door.reached(call.name)
                if found is not None:
                    return found, call.arguments if isinstance(door, CallTool) else None
        return tool, None

    def revealing(self, context: Any) -> Toolbox:
        """Give the toolbox with the tools that the run has found at its end.

        Args:
            context: The context of the run.
        """
        searches = [door for door in self.doors if isinstance(door, SearchTool) and door.reveals]
        if not searches:
            return self
        found = revealed(getattr(getattr(context, "run", None), "history", ()), searches)
        return self._kept(found, lambda: Toolbox([*self.offered, *found], "")) if found else self

    def without(self, names: set[str]) -> Toolbox:
        """Give the toolbox without some of the tools; the same one again for the same names."""

        def make() -> Toolbox:
            left = [tool for tool in self.offered if tool.name not in names]
            return Toolbox(left, "", self._barred | names)

        return self._kept(tuple(sorted(names)), make)

    def _kept(self, key: tuple[object, ...], make: Callable[[], Toolbox]) -> Toolbox:
        """Give one of the toolboxes that were made of this one, of which a few are kept."""
        box = self._smaller.get(key)
        if box is None:
            box = make()
            kept = [*self._smaller.items()][-_MOST_KEPT:]
            self._smaller = {**dict(kept), key: box}  # in one step: threads share it
        return box


_MOST_KEPT = 63


def _check_hidden(doors: Sequence[Door], offered: dict[str, Any], owner: str) -> None:
    """Refuse a tool behind a search that has the name of another one."""
    known = dict(offered)
    for door in doors:
        callers = [door.caller] if isinstance(door, SearchTool) and door.reveals else []
        for tool in (*door.catalog.tools, *callers):
            other = known.setdefault(tool.name, tool)
            if other is not tool:
                raise UserValueError(two_of_one_name(f"agent {owner!r}", other, tool))
