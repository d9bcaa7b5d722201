"""What the loop has to know of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from agents_tools.errors import UserValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.hosted import HostedTool
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

    Args:
        tools: The tools.
        owner: Whose they are, for error messages.
    """

    __slots__ = ("_smaller", "by_name", "offered")

    def __init__(self, tools: Sequence[FunctionTool[..., Any] | HostedTool], owner: str) -> None:
        self.offered: tuple[FunctionTool[..., Any] | HostedTool, ...] = tuple(tools)
        self.by_name: dict[str, FunctionTool[..., Any]] = {}
        self._smaller: dict[frozenset[str], Toolbox] = {}
        known: dict[str, Any] = {}
        for tool in self.offered:
            other = known.setdefault(tool.name, tool)
            if other is not tool:
                raise UserValueError(
                    f"Agent {owner!r} has two tools named {tool.name!r}: {_place(other)} and "
                    f"{_place(tool)}. Give one of them another name, for example with "
                    f"policies.rename({tool.name + '_2'!r})."
                )
            local: Any = tool if hasattr(tool, "call") else cast("Any", tool).local
            if local is not None:
                self.by_name[tool.name] = local

    def without(self, names: set[str]) -> Toolbox:
        """Give the toolbox without some of the tools; the same one again for the same names."""
        key = frozenset(names)
        smaller = self._smaller.get(key)
        if smaller is None:
            smaller = Toolbox([tool for tool in self.offered if tool.name not in names], "")
            self._smaller[key] = smaller
        return smaller


def _place(tool: Any) -> str:
    origin = getattr(tool, "origin", None)
    if origin is None:
        return f"{type(tool).__name__}()"
    if origin.agent is not None:
        return f"agent {origin.agent!r} as a tool"
    if origin.server is not None:
        return f"{origin.wire_name!r} of server {origin.server!r}"
    return origin.place or repr(tool)
