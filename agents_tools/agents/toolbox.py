"""The interface of an agent to the run loop, and its tools by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from agents_tools.errors import UserError, UserValueError
from agents_tools.tool.context import ToolContext, call_of
from agents_tools.toolset.search_tools import CallTool, ProxyTool, SearchTool, revealed
from agents_tools.toolset.sources import place_of, two_of_one_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agents_tools.agents.config import RunHooks
    from agents_tools.agents.guardrail import InputGuardrail, OutputGuardrail
    from agents_tools.agents.hosted.base import HostedTool
    from agents_tools.agents.model import Model, ModelSettings, OutputFormat
    from agents_tools.content.items import ToolCallItem
    from agents_tools.tool.tool import FunctionTool
    from agents_tools.toolset.catalog import ToolCatalog

__all__ = ["OutputType", "RunnableAgent", "Toolbox", "run_of"]


class OutputType(Protocol):
    """The type of the final output."""

    @property
    def format(self) -> OutputFormat:
        """The schema that is sent to the model."""
        ...

    def read(self, text: str) -> Any:
        """Parse and validate the text of a final answer.

        Raises:
            ModelBehaviorError: The text does not match the type. The message explains the errors
                to the model.
        """
        ...


class RunnableAgent(Protocol):
    """The interface of an agent to the run loop."""

    @property
    def name(self) -> str:
        """The name of the agent."""
        ...

    @property
    def handoff_description(self) -> str | None:
        """What the agent is for, in the handoffs of other agents."""
        ...

    @property
    def input_guardrails(self) -> Sequence[InputGuardrail[Any]]:
        """The checks of the input of a run."""
        ...

    @property
    def output_guardrails(self) -> Sequence[OutputGuardrail[Any]]:
        """The checks of the final output of a run."""
        ...

    @property
    def known_tools(self) -> list[Any]:
        """The static tools, including handoffs."""
        ...

    @property
    def model(self) -> str | Model | None:
        """The model, or its name."""
        ...

    @property
    def model_settings(self) -> ModelSettings | None:
        """The settings of the model."""
        ...

    @property
    def hooks(self) -> RunHooks[Any] | None:
        """The hooks of the runs of this agent."""
        ...

    @property
    def tool_use_behavior(self) -> Any:
        """How a run continues after tool calls."""
        ...

    @property
    def reset_tool_choice(self) -> bool:
        """Whether `tool_choice` is reset after the first tool call."""
        ...

    @property
    def output(self) -> OutputType | None:
        """The type of the final output; `None` for text."""
        ...

    async def system_prompt(self, context: Any) -> str:
        """Return the instructions for a run."""
        ...

    async def toolbox(self, context: Any) -> Toolbox:
        """Return the tools for the next turn."""
        ...


class Toolbox:
    """The tools that an agent offers to a model, by name.

    Tools behind a tool search are not offered, but can be called as well.

    Args:
        tools: The tools.
        owner: The name of the agent, for error messages; if empty, hidden names are not checked.
        excluded: Names of hidden tools that cannot be called.

    Attributes:
        offered: The tools that the model receives.
        by_name: The offered tools that run here.
        proxies: The offered tools that search for other tools or call them.
        conditional: The tools with an `is_enabled` function, including hidden ones.

    Raises:
        UserError: Two tools have one name, and at least one of them is always enabled.
    """

    __slots__ = (
        "_alternatives",
        "_derived",
        "_excluded",
        "_has_streams",
        "by_name",
        "conditional",
        "offered",
        "proxies",
    )

    def __init__(
        self,
        tools: Sequence[FunctionTool[..., Any] | HostedTool],
        owner: str,
        excluded: frozenset[str] = frozenset(),
    ) -> None:
        known: dict[str, Any] = {}
        self.by_name: dict[str, FunctionTool[..., Any]] = {}
        self._excluded = excluded
        self._derived: dict[tuple[object, ...], Toolbox] = {}
        self._alternatives = False
        self._has_streams: bool | None = None
        for tool in tools:
            other = known.setdefault(tool.name, tool)
            if other is not tool:
                if not (_is_conditional(other) and _is_conditional(tool)):
                    raise UserValueError(two_of_one_name(f"agent {owner!r}", other, tool))
                self._alternatives = True
                continue
            local: Any = tool if hasattr(tool, "call") else cast("Any", tool).local
            if local is not None:
                self.by_name[tool.name] = local
        self.offered: tuple[FunctionTool[..., Any] | HostedTool, ...] = tuple(
            {id(tool): tool for tool in tools}.values()
        )
        self.proxies = [tool for tool in self.offered if isinstance(tool, ProxyTool)]
        self.conditional: list[Any] = [tool for tool in self.offered if _is_conditional(tool)]
        for catalog in self._catalogs():
            self.conditional += catalog.conditional
        if owner:
            _check_hidden_names(self.proxies, known, owner)

    def has_streams(self) -> bool:
        """Return whether an offered tool reads its arguments while the model writes them.

        This builds the schemas, which the model gets next.
        """
        if self._has_streams is None:
            self._has_streams = any(map(_has_streams, self.by_name.values()))
        return self._has_streams

    @property
    def hidden(self) -> Iterator[FunctionTool[..., Any]]:
        """The tools behind searches."""
        for catalog in self._catalogs():
            yield from catalog.tools

    def _catalogs(self) -> Iterable[ToolCatalog]:
        return {id(proxy.catalog): proxy.catalog for proxy in self.proxies}.values()

    def resolve(self, call: ToolCallItem) -> tuple[FunctionTool[..., Any] | None, str | None]:
        """Return the tool that a call refers to.

        Args:
            call: The call.

        Returns:
            The tool, or `None` if the name is unknown; and the arguments for the tool, or `None` if
            they are those of the call in the schema format of the provider.
        """
        tool = self.by_name.get(call.name)
        if isinstance(tool, CallTool):
            target, arguments = tool.source.route(tool, call.arguments)
            if target is not tool and target.name not in self._excluded:
                return target, arguments
        elif tool is None and call.name not in self._excluded:
            for proxy in self.proxies:
                hidden = proxy.reached(call.name)
                if hidden is not None:
                    return hidden, call.arguments if isinstance(proxy, CallTool) else None
        return tool, None

    def with_revealed(self, context: Any) -> Toolbox:
        """Return a toolbox that also offers the tools that searches of the run have found.

        They come last, so that the start of the list stays the same for prompt caches.

        Args:
            context: The context of the run.
        """
        searches = [
            proxy for proxy in self.proxies if isinstance(proxy, SearchTool) and proxy.reveals
        ]
        if not searches:
            return self
        run = run_of(context)
        tools = revealed(() if run is None else run.history, searches)
        if not tools:
            return self
        return self._cached(tools, lambda: Toolbox([*self.offered, *tools], ""))

    def enabled(self, disabled: Sequence[Any], agent: str) -> Toolbox:
        """Return the toolbox of a turn; equal arguments return the same object.

        Args:
            disabled: The tools that are disabled in the turn.
            agent: The name of the agent, for the error message.

        Raises:
            UserError: Two tools with one name are both enabled.
        """

        def create() -> Toolbox:
            gone = set(map(id, disabled))
            tools = [tool for tool in self.offered if id(tool) not in gone]
            _check_alternatives(tools, agent)
            hidden = {tool.name for tool in disabled} - {tool.name for tool in tools}
            return Toolbox(tools, "", self._excluded | hidden)

        if not disabled and not self._alternatives:
            return self
        return self._cached(tuple(map(id, disabled)), create)

    def without(self, names: set[str]) -> Toolbox:
        """Return a toolbox without some of the tools; equal names return the same object."""

        def create() -> Toolbox:
            tools = [tool for tool in self.offered if tool.name not in names]
            return Toolbox(tools, "", self._excluded | names)

        return self._cached(tuple(sorted(names)), create)

    def _cached(self, key: tuple[object, ...], create: Callable[[], Toolbox]) -> Toolbox:
        """Return a toolbox derived from this one; the most recent ones are cached."""
        toolbox = self._derived.get(key)
        if toolbox is None:
            toolbox = create()
            recent = [*self._derived.items()][-_MAX_OLDER:]
            # One assignment instead of an update in place, because threads share the cache.
            self._derived = {**dict(recent), key: toolbox}
        return toolbox


_MAX_OLDER = 63


def _has_streams(tool: FunctionTool[..., Any]) -> bool:
    try:
        return tool.streamed_parameters is not None
    except UserError:  # an invalid declaration is reported where its schema is sent
        return False


def _is_conditional(tool: Any) -> bool:
    return getattr(tool, "is_enabled", True) is not True


def _check_alternatives(tools: Sequence[Any], agent: str) -> None:
    """Raise if two tools that are enabled at once have the same name."""
    known: dict[str, Any] = {}
    for tool in tools:
        other = known.setdefault(tool.name, tool)
        if other is not tool:
            raise UserValueError(
                f"Agent {agent!r} has two tools named {tool.name!r} that are enabled at once: "
                f"{place_of(other)} and {place_of(tool)}. Change their is_enabled= so that one "
                "excludes the other, or rename one of them."
            )


def _check_hidden_names(proxies: Sequence[ProxyTool], offered: dict[str, Any], owner: str) -> None:
    """Raise if a tool behind a search has the name of another tool."""
    known = dict(offered)
    for proxy in proxies:
        callers = [proxy.caller] if isinstance(proxy, SearchTool) and proxy.reveals else []
        for tool in (*proxy.catalog.tools, *callers):
            other = known.setdefault(tool.name, tool)
            if other is not tool:
                raise UserValueError(two_of_one_name(f"agent {owner!r}", other, tool))


def run_of(context: Any) -> Any:
    """Return the run that a context belongs to; `None` for a context of another kind."""
    if not isinstance(context, ToolContext):
        return None
    return getattr(call_of(cast("ToolContext[Any]", context)), "run", None)
