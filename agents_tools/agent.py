"""An agent: a model with instructions and tools, and the way to make a tool of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, cast

from agents_tools._agent_tool import Hearing, extracted, tool_of_agent
from agents_tools._runnable import Toolbox
from agents_tools.context import RunScope
from agents_tools.errors import Interruption, ToolDeniedError, UserTypeError, UserValueError
from agents_tools.hosted import HostedTool
from agents_tools.items import input_items
from agents_tools.loop import Run
from agents_tools.tool import DEFAULT, FunctionTool
from agents_tools.toolset._catalog import is_enabled
from agents_tools.toolset._deferred import PROVIDERS, is_deferred
from agents_tools.toolset._parts import Dynamic, Merged, Recent, parts_of
from agents_tools.toolset._tool_search import behind_search

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from typing_extensions import TypeVar

    from agents_tools._output_type import AnswerType
    from agents_tools.context import RunContextWrapper, ToolContext
    from agents_tools.events import Event
    from agents_tools.model import Model, ModelSettings
    from agents_tools.run import RunConfig, RunHooks, RunResult, ToolUseBehavior
    from agents_tools.toolset._parts import Part, Tools

    ContextT = TypeVar("ContextT", default=Any)
else:
    from typing import TypeVar

    ContextT = TypeVar("ContextT")

__all__ = ["Agent", "Tool", "ToolSource"]


class ToolSource(Protocol):
    """What stands for a tool: a `ToolDefinition`, a `BaseTool`."""

    @property
    def name(self) -> str:
        """What models call it."""
        ...

    def as_function_tool(self) -> FunctionTool[..., Any]:
        """Give the tool."""
        ...


Tool: TypeAlias = "FunctionTool[..., Any] | HostedTool | ToolSource"
"""What the `tools` of an agent may be, beside lists of it."""


@dataclass(frozen=True, eq=False, repr=False)
class Agent(Generic[ContextT]):
    """A model with instructions and tools.

    Attributes:
        name: What it is called.
        instructions: Its system prompt: text, or a function of (context, agent) that gives it;
            sync or async.
        tools: Function tools and hosted tools; class-based tools, which become function tools;
            lists of these, as `ToolDefinition.create` gives them; toolsets, and other objects with
            a method `get_tools()`.
        model: Its model, or the name of it; the one of the run by default.
        model_settings: How the model is asked to answer.
        output_type: The type of its final answer; text by default.
        mcp_servers: What else has tools: objects with a method `get_tools()`, sync or async,
            asked before each turn; an `MCPToolManager` is one.
        mcp_config: MCP servers, as an `mcpServers` file or its content. They are connected when
            the agent first runs, and end some time after the last such agent, or with the program.
        hooks: Who is told of its runs.
        tool_use_behavior: What follows when tools have answered: `run_llm_again`;
            `stop_on_first_tool`: what the first call of the turn returned is the final output;
            `{"stop_at_tool_names": [...]}`: likewise for these; or a function of (context, list of
            `FunctionToolResult`) that gives a `ToolsToFinalOutputResult`. A call that failed never
            ends a run.
        reset_tool_choice: Whether a `tool_choice` of the settings holds only until tools were
            used, so that it cannot go on for ever.

    Raises:
        UserError: Something given cannot work: two tools of one name, an undecorated function.
    """

    name: str
    instructions: str | Callable[[RunContextWrapper[ContextT], Agent[ContextT]], Any] = ""
    tools: list[Any] = field(default_factory=list[Any])
    model: str | Model | None = None
    model_settings: ModelSettings | None = None
    output_type: Any = None
    mcp_servers: list[Any] = field(default_factory=list[Any])
    mcp_config: Any = None
    hooks: RunHooks[ContextT] | None = None
    tool_use_behavior: ToolUseBehavior = "run_llm_again"
    reset_tool_choice: bool = True
    _cache: dict[str, Any] = field(default_factory=dict[str, Any], init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(f"An agent needs a name, as text; it got {self.name!r:.60}.")
        if not isinstance(self.instructions, str) and not callable(self.instructions):
            raise UserTypeError(
                f"The instructions of agent {self.name!r} are text or a function of (context, "
                f"agent), not a {type(self.instructions).__name__}."
            )
        _check_behavior(self.name, self.tool_use_behavior)
        if self.output_type is not None and self.output_type is not str:
            from agents_tools._output_type import AnswerType

            self._cache["output"] = AnswerType(self.output_type, self.name)
        for server in self.mcp_servers:
            if not callable(getattr(server, "get_tools", None)):
                raise UserTypeError(
                    f"The mcp_servers of agent {self.name!r} have a method get_tools(); this "
                    f"{type(server).__name__} has none."
                )
        if self.mcp_config is not None:
            import_module("agents_tools.mcp.config").load_config(self.mcp_config)
        if hasattr(self.tools, "as_part"):  # a toolset by itself
            object.__setattr__(self, "tools", [self.tools])
        known = self._source()[0].known()
        for tool in [*known, *self._box(known, None).hidden]:
            if isinstance(tool, FunctionTool):
                cast("FunctionTool[..., Any]", tool).build()

    def __repr__(self) -> str:
        """Show the name, the model and the tools, shortly."""
        names = ", ".join(str(getattr(tool, "name", tool)) for tool in self.tools[:5])
        more = ", …" if len(self.tools) > 5 else ""  # noqa: PLR2004 - what fits in a line
        return f"<Agent {self.name!r}, model {self.model!r}, tools: {names or 'none'}{more}>"

    def clone(self, **changes: Any) -> Self:
        """Give a copy that differs in what is named."""
        return replace(self, **changes)

    @property
    def known_tools(self) -> list[Any]:
        """Its tools, lists and toolsets opened; without those that have to be asked for."""
        return list(self._source()[0].known())

    @property
    def tools_map(self) -> dict[str, Any]:
        """Its tools by name, without those that have to be asked for, such as those of servers."""
        return {tool.name: tool for tool in self._source()[0].known()}

    @property
    def output(self) -> AnswerType | None:
        """What reads its final answer; `None` for text."""
        return self._cache.get("output")

    async def system_prompt(self, context: Any) -> str:
        """Give its instructions for a run.

        Args:
            context: The context of the run.
        """
        if isinstance(self.instructions, str):
            return self.instructions
        text = self.instructions(context, self)
        if hasattr(text, "__await__"):
            text = await text
        if not isinstance(text, str):
            raise UserTypeError(
                f"The instructions of agent {self.name!r} gave a {type(text).__name__}, not text."
            )
        return text

    async def toolbox(self, context: Any) -> Toolbox:
        """Give its tools as they are now: those that are enabled, and those of its servers.

        Args:
            context: The context of the run.
        """
        source, static = self._source()
        tools = await source.tools(context) if static is None else static
        provider = getattr(getattr(context, "run", None), "provider", None)
        box = self._box(tools, provider)
        if box.doors:
            box = box.revealing(context)
        if not box.conditional:
            return box
        disabled = {
            tool.name for tool in box.conditional if not await is_enabled(tool, context, self)
        }
        return box.without(disabled) if disabled else box

    def _source(self) -> tuple[Part, Tools | None]:
        """Give what has its tools, and the tools themselves where nobody has to be asked.

        Both are the same again while its lists of tools are the same.
        """
        tools, servers = list(self.tools), self._servers()
        known = self._cache.get("source")
        if known is not None and known[0] == tools and known[1] == servers:
            return known[2]
        owner = f"agent {self.name!r}"
        source = Merged([*parts_of(tools, owner), *(Dynamic(one, owner) for one in servers)])
        made = source, source.known() if source.asks is None else None
        self._cache["source"] = tools, servers, made
        return made

    def _servers(self) -> list[Any]:
        """Give who has tools: those that were given, and those of the configuration."""
        if self.mcp_config is None:
            return list(self.mcp_servers)
        known: tuple[Any, Any] | None = self._cache.get("mcp")
        if known is None or known[0] is not self.mcp_config:
            made = import_module("agents_tools.mcp.background").servers_of(self.mcp_config)
            known = self._cache["mcp"] = (self.mcp_config, made)
        return [*self.mcp_servers, known[1]]

    def _box(self, tools: Tools, provider: str | None) -> Toolbox:
        """Give the toolbox of these tools; the same again while they are the same."""
        native = provider in PROVIDERS
        last: tuple[Tools, bool, Toolbox] | None = self._cache.get("box")
        if last is not None and last[0] is tools and last[1] is native:
            return last[2]
        recent: Recent = self._cache.setdefault("boxes", Recent())

        def make() -> Toolbox:
            offered = tools
            if not native and any(map(is_deferred, tools)):
                offered = behind_search(tools, *_free_names(tools))
            for tool in offered:
                if not isinstance(tool, (FunctionTool, HostedTool)):
                    raise UserTypeError(
                        f"The tools of agent {self.name!r} are function tools and hosted tools; "
                        f"{tool!r:.80} is neither."
                    )
            return Toolbox(offered, self.name)

        box = recent.get((tools, native), make)
        self._cache["box"] = tools, native, box
        return box

    def as_tool(
        self,
        tool_name: str | None = None,
        tool_description: str | None = None,
        *,
        custom_output_extractor: Callable[[RunResult], Any] | None = None,
        is_enabled: Any = True,
        run_config: RunConfig | None = None,
        max_turns: int | None = None,
        parameters: Any = None,
        streaming: bool = False,
        enable_bracketing: bool = True,
        on_stream: Callable[[Event], Any] | None = None,
        failure_error_function: Any = DEFAULT,
    ) -> FunctionTool[..., Any]:
        """Make a tool of the agent: other agents give it a task and get its answer.

        The agent sees nothing but the task: the conversation of its caller stays where it is. Its
        usage counts for the caller too, and it stops when its caller is cancelled.

        Args:
            tool_name: What models call it; made from the agent's name by default.
            tool_description: What models are told about it.
            custom_output_extractor: Makes the output of the tool from the `RunResult`; sync or
                async. The final output by default.
            is_enabled: Whether agents offer it; a boolean, or a function of (context, agent).
            run_config: How it runs; as its caller by default.
            max_turns: How often its model is asked at most; 10 by default.
            parameters: The type of its input (a pydantic model, a dataclass or a TypedDict), which
                the agent then gets as JSON; one text `input` by default.
            streaming: Whether everything that happens inside, at any depth, appears in the
                caller's stream of events.
            enable_bracketing: Whether start and end of the call appear there.
            on_stream: Called with each event from inside, in order; sync or async. What it raises
                is logged.
            failure_error_function: What the model is told when the agent fails; `None` raises.

        Raises:
            UserError: The name is not acceptable, or the parameters have no JSON form.
        """
        if max_turns is not None and (type(max_turns) is not int or max_turns < 1):
            raise UserValueError(
                f"as_tool(max_turns=...) takes a positive whole number, not {max_turns!r:.60}."
            )

        async def perform(context: ToolContext[Any], task: str) -> Any:
            async with Hearing(on_stream, self.name) as sinks:
                run = Run(
                    self,
                    input_items(task),
                    config=run_config,
                    max_turns=10 if max_turns is None else max_turns,
                    sinks=sinks,
                    quiet=not streaming,
                    state=context.resumed,
                    parent=context,
                )
                result = await run.go()
            if result.interruptions:
                if isinstance(context.parent, RunScope):
                    raise Interruption(result.to_state())
                waiting = ", ".join(repr(item.name) for item in result.interruptions)
                raise ToolDeniedError(
                    f"Agent {self.name!r} waits for the approval of {waiting}, and nobody can be "
                    "asked where it was called."
                )
            return await extracted(custom_output_extractor, result, result.final_output)

        return tool_of_agent(
            self.name,
            perform,
            tool_name=tool_name,
            tool_description=tool_description,
            parameters=parameters,
            is_enabled=is_enabled,
            enable_bracketing=enable_bracketing,
            failure_error_function=failure_error_function,
            metadata={"agents_tools": {"resumes": True}},  # where it was left, in a durable run
        )


def _free_names(tools: Tools) -> tuple[str, str]:
    """Give names for a search and what calls its tools that no tool has."""
    taken = {tool.name for tool in tools}
    for mark in ("", *(f"_{number}" for number in range(2, len(taken) + 3))):
        names = f"tool_search{mark}", f"call_tool{mark}"
        if not taken.intersection(names):
            return names
    raise AssertionError


def _check_behavior(name: str, behavior: object) -> None:
    if isinstance(behavior, Mapping):
        names = cast("Mapping[str, object]", behavior).get("stop_at_tool_names")
        fits = isinstance(names, (list, tuple, set)) and len(cast("Any", behavior)) == 1
    else:
        fits = behavior in ("run_llm_again", "stop_on_first_tool") or callable(behavior)
    if not fits:
        raise UserValueError(
            f"The tool_use_behavior of agent {name!r} is 'run_llm_again', 'stop_on_first_tool', "
            "{'stop_at_tool_names': [...]} or a function of (context, results), "
            f"not {behavior!r:.80}."
        )
