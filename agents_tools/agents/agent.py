"""The `Agent` class: a model with instructions and tools, which can be a tool itself."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, cast

from agents_tools.agents.as_tool import EventTap, extracted, tool_of_agent
from agents_tools.agents.guardrail import InputGuardrail, OutputGuardrail, check_guardrails
from agents_tools.agents.handoff import handoffs_of
from agents_tools.agents.hosted.base import HostedTool
from agents_tools.agents.run import Run
from agents_tools.agents.toolbox import Toolbox, run_of
from agents_tools.agents.type_variables import ContextT, OutputT
from agents_tools.content.items import input_items
from agents_tools.errors import Interruption, ToolDeniedError, UserTypeError, UserValueError
from agents_tools.schema.signature import mismatched_signature
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.call import RunScope
from agents_tools.tool.enabled import is_enabled
from agents_tools.tool.failure import DEFAULT
from agents_tools.tool.options import ForeignOptions, refuse_options
from agents_tools.tool.tool import FunctionTool
from agents_tools.toolset.deferred import PROVIDERS, is_deferred
from agents_tools.toolset.sources import DynamicSource, MergedSource, RecentCache, parts_of
from agents_tools.toolset.tool_finder import behind_search

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike
    from typing import Never, Self

    from agents_tools.agents.config import RunConfig, RunHooks, RunResult, ToolUseBehavior
    from agents_tools.agents.handoff import Handoff
    from agents_tools.agents.model import Model, ModelSettings
    from agents_tools.agents.output_type import ResultType
    from agents_tools.events.base import Event
    from agents_tools.tool.call import Call
    from agents_tools.tool.records import FailureErrorFunction, IsEnabled
    from agents_tools.tool.run_context import RunContextWrapper
    from agents_tools.toolset.sources import Tools, ToolsetSource

__all__ = ["Agent", "ConvertibleTool", "Tool", "ToolLike", "ToolProvider", "ToolSpecification"]


class ConvertibleTool(Protocol):
    """An object that can be converted to a tool: a `ToolDefinition` or a `BaseTool`."""

    def as_function_tool(self) -> FunctionTool[..., Any]:
        """Return the function tool."""
        ...


class ToolSpecification(Protocol):
    """An object that creates tools from a registry: a `ToolSpec`."""

    def as_function_tools(self) -> list[FunctionTool[..., Any]]:
        """Return the function tools."""
        ...


class ToolProvider(Protocol):
    """An object that provides tools: a `Toolset`, an `MCPToolManager`.

    It can also have a method `get_instructions()`, sync, that returns a text about the use of its
    tools, or an empty one. An agent appends the text to its instructions.
    """

    @property
    def get_tools(self) -> Callable[..., Any]:
        """The method that returns the tools, sync or async."""
        ...


Tool: TypeAlias = "FunctionTool[..., Any] | HostedTool | ConvertibleTool"
"""The types in the `tools` of an agent, which can also contain lists of them."""

ToolLike: TypeAlias = "Tool | ToolSpecification | ToolProvider | Sequence[ToolLike]"
"""An element of the `tools` of an agent: a tool, a specification, a toolset, or a list of these."""


@dataclass(frozen=True, eq=False, repr=False)
class Agent(ForeignOptions, Generic[ContextT, OutputT]):
    """A model with instructions and tools.

    Attributes:
        name: The name of the agent.
        instructions: The system prompt: text, or a function of (context, agent) that returns it;
            sync or async.
        tools: Function tools and hosted tools; class-based tools, which are converted to function
            tools; specifications of registered tools; lists of these, such as the result of
            `ToolDefinition.create`; toolsets, and other objects with a method `get_tools()`. The
            state of the built-in tools and of specifications belongs to a run.
        model: The model, or its name; by default that of the run.
        model_settings: The settings of the model.
        output_type: The type of the final output; text by default.
        mcp_servers: Other sources of tools: objects with a method `get_tools()`, sync or async,
            such as an `MCPToolManager`. They are called before each turn.
        mcp_config: MCP servers, as the path or the content of an `mcpServers` file. They are
            connected at the first run of the agent, and closed some time after the last agent with
            this configuration is gone, or at the end of the program.
        hooks: Callbacks for the runs of the agent.
        handoffs: Agents that this agent can pass the conversation to, or results of `handoff`.
        handoff_description: What the agent is for, in the handoffs of other agents.
        input_guardrails: Checks of the input of a run that starts with this agent.
        output_guardrails: Checks of the final output of this agent.
        tool_use_behavior: How a run continues after tool calls. `run_llm_again` sends the outputs
            to the model. `stop_on_first_tool` makes the return value of the first call of the turn
            the final output. `{"stop_at_tool_names": [...]}` does so for these tools only. A
            function of (context, list of `FunctionToolResult`) returns a
            `ToolsToFinalOutputResult`. With the first three, a failed call never ends a run.
        reset_tool_choice: Whether the `tool_choice` of the settings applies only until the first
            tool call. Otherwise a forced choice never ends.

    Raises:
        UserError: An argument is not valid, for example two tools with one name or an undecorated
            function.
    """

    name: str
    instructions: (
        str
        | Callable[[RunContextWrapper[ContextT], Agent[ContextT, OutputT]], str | Awaitable[str]]
    ) = ""
    tools: Sequence[ToolLike] = field(default_factory=list["ToolLike"])
    model: str | Model | None = None
    model_settings: ModelSettings | None = None
    output_type: type[OutputT] | None = None
    mcp_servers: Sequence[ToolProvider] = field(default_factory=list["ToolProvider"])
    mcp_config: str | PathLike[str] | Mapping[str, Any] | None = None
    hooks: RunHooks[ContextT] | None = None
    tool_use_behavior: ToolUseBehavior = "run_llm_again"
    reset_tool_choice: bool = True
    handoffs: list[Agent[Any, Any] | Handoff] = field(default_factory=list[Any])
    handoff_description: str | None = None
    input_guardrails: Sequence[InputGuardrail[Any]] = ()
    output_guardrails: Sequence[OutputGuardrail[Any]] = ()
    _cache: dict[str, Any] = field(default_factory=dict[str, Any], init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"Agent(name=...) is not valid: expected a non-empty string, got {self.name!r:.60}."
            )
        if not isinstance(self.instructions, str) and not callable(self.instructions):
            raise UserTypeError(
                f"The instructions of agent {self.name!r} are not valid: expected text or a "
                f"function of (context, agent), got {type_with_article(self.instructions)}."
            )
        if not isinstance(self.instructions, str):
            _check_instructions(self.name, self.instructions)
        _check_types(self)
        _check_behavior(self.name, self.tool_use_behavior)
        if self.output_type is not None and self.output_type is not str:
            from agents_tools.agents.output_type import ResultType

            self._cache["output"] = ResultType(self.output_type, self.name)
        for server in self.mcp_servers:
            if not callable(getattr(server, "get_tools", None)):
                raise UserTypeError(
                    f"The mcp_servers of agent {self.name!r} are not valid: expected objects with "
                    f"a method get_tools(), got {type_with_article(server)}."
                )
        check_guardrails(self.name, "input_guardrails", self.input_guardrails, InputGuardrail)
        check_guardrails(self.name, "output_guardrails", self.output_guardrails, OutputGuardrail)
        if self.mcp_config is not None:
            import_module("agents_tools.mcp.config").load_config(self.mcp_config)
        if hasattr(self.tools, "as_part"):  # a single toolset
            object.__setattr__(self, "tools", [self.tools])
        known = self._source()[0].known()
        for tool in [*known, *self._box(known, None).hidden]:
            if isinstance(tool, FunctionTool):
                cast("FunctionTool[..., Any]", tool).build()

    def __repr__(self) -> str:
        """Return the name, the model and the first tools."""
        names = ", ".join(str(getattr(tool, "name", tool)) for tool in self.tools[:5])
        more = ", …" if len(self.tools) > 5 else ""  # noqa: PLR2004 - what fits in a line
        return f"<Agent {self.name!r}, model {self.model!r}, tools: {names or 'none'}{more}>"

    def _repr_html_(self) -> str:
        from agents_tools.text.html import html_block, html_table, html_text

        model = self.model
        text = self.instructions or ""
        tools = ((tool.name, getattr(tool, "description", "")) for tool in self.known_tools)
        return html_block(
            self.name,
            [] if model is None else [model if isinstance(model, str) else type(model).__name__],
            html_text(text if isinstance(text, str) else "The instructions are a function."),
            html_table(("tool", "description"), tools),
        )

    def clone(self, **changes: object) -> Self:
        """Return a copy with some attributes changed."""
        return replace(self, **cast("dict[str, Any]", changes))

    @property
    def known_tools(self) -> list[Any]:
        """The static tools, including those in lists and toolsets, but not those of servers."""
        return list(self._source()[0].known())

    @property
    def tools_map(self) -> dict[str, Any]:
        """The static tools by name, without those of servers."""
        return {tool.name: tool for tool in self._source()[0].known()}

    @property
    def output(self) -> ResultType | None:
        """The parser of the final output; `None` for text."""
        return self._cache.get("output")

    async def system_prompt(self, context: RunContextWrapper[ContextT]) -> str:
        """Return the instructions for a run, followed by those of servers and toolsets.

        Args:
            context: The context of the run.
        """
        own = self.instructions
        text = own if isinstance(own, str) else await self._computed(own, context)
        source, static = self._source()
        more = source.instructions() if static is None else ""
        return "\n\n".join(filter(None, [text, more])) if more else text

    async def _computed(
        self, instructions: Callable[..., Any], context: RunContextWrapper[ContextT]
    ) -> str:
        text: object = instructions(context, self)
        if isinstance(text, Awaitable):
            text = await cast("Awaitable[object]", text)
        if not isinstance(text, str):
            raise UserTypeError(
                f"The instructions of agent {self.name!r} returned a wrong value: expected text, "
                f"got {type_with_article(text)}."
            )
        return text

    async def toolbox(self, context: RunContextWrapper[Any] | None) -> Toolbox:
        """Return the enabled tools for the next turn, including those of servers.

        Args:
            context: The context of the run.
        """
        source, static = self._source()
        tools = await source.tools(context) if static is None else static
        run = run_of(context)
        provider = None if run is None else run.provider
        box = self._box(tools, provider)
        if box.proxies:
            box = box.with_revealed(context)
        if not box.conditional:
            return box
        disabled = [tool for tool in box.conditional if not await is_enabled(tool, context, self)]
        return box.enabled(disabled, self.name)

    def _source(self) -> tuple[ToolsetSource, Tools | None]:
        """Return the source of the tools, and the tools themselves if they are all static.

        Both are cached until the list of tools changes.
        """
        tools, servers = list(self.tools), self._servers()
        if self.handoffs:
            known_handoffs = self._cache.setdefault("handoffs", {})
            tools += handoffs_of(self.name, self.handoffs, known_handoffs)
        known = self._cache.get("source")
        if known is not None and known[0] == tools and known[1] == servers:
            return known[2]
        owner = f"agent {self.name!r}"
        source = MergedSource(
            [*parts_of(tools, owner), *(DynamicSource(one, owner) for one in servers)]
        )
        result = source, source.known() if source.asks is None else None
        self._cache["source"] = tools, servers, result
        return result

    def _servers(self) -> list[Any]:
        """Return the sources of `mcp_servers` and `mcp_config`."""
        if self.mcp_config is None:
            return list(self.mcp_servers)
        known: tuple[Any, Any] | None = self._cache.get("mcp")
        if known is None or known[0] is not self.mcp_config:
            servers = import_module("agents_tools.mcp.client.background").servers_of(
                self.mcp_config
            )
            known = self._cache["mcp"] = (self.mcp_config, servers)
        return [*self.mcp_servers, known[1]]

    def _box(self, tools: Tools, provider: str | None) -> Toolbox:
        """Return the toolbox of these tools; it is cached until they change."""
        native = provider in PROVIDERS
        last: tuple[Tools, bool, Toolbox] | None = self._cache.get("box")
        if last is not None and last[0] is tools and last[1] is native:
            return last[2]
        recent: RecentCache = self._cache.setdefault("boxes", RecentCache())

        def make() -> Toolbox:
            offered = tools
            if not native and any(map(is_deferred, tools)):
                offered = behind_search(tools, *_free_names(tools))
            for tool in offered:
                if not isinstance(tool, (FunctionTool, HostedTool)):
                    raise UserTypeError(
                        f"The tools of agent {self.name!r} are not valid: expected function tools "
                        f"and hosted tools, got {tool!r:.80}."
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
        custom_output_extractor: Callable[[RunResult[OutputT]], Any] | None = None,
        is_enabled: IsEnabled = True,
        run_config: RunConfig | None = None,
        max_turns: int | None = None,
        parameters: type[Any] | Mapping[str, Any] | None = None,
        streaming: bool = False,
        enable_bracketing: bool = True,
        on_stream: Callable[[Event], Any] | None = None,
        failure_error_function: FailureErrorFunction | None = DEFAULT,
        **unknown: Never,
    ) -> FunctionTool[..., Any]:
        """Create a tool from the agent, so that other agents can delegate tasks to it.

        The agent receives only the task, not the conversation of its caller. Its usage also counts
        for the caller, and it is cancelled with the caller.

        Args:
            tool_name: The name of the tool; derived from the name of the agent by default.
            tool_description: The description of the tool.
            custom_output_extractor: A function that returns the output of the tool for the
                `RunResult`; sync or async. The final output by default.
            is_enabled: Whether the tool is offered: a boolean, or a function of (context, agent).
            run_config: The configuration of the run; that of the caller by default.
            max_turns: The maximum number of model responses; 10 by default.
            parameters: The type of the input (a pydantic model, a dataclass or a TypedDict), which
                the agent receives as JSON; by default one string `input`.
            streaming: Whether all events inside the agent appear in the event stream of the caller.
                Otherwise, only calls that wait for an approval do.
            enable_bracketing: Whether the start and the end of the call appear there.
            on_stream: Called with each event inside the agent, in order; sync or async. Exceptions
                are logged.
            failure_error_function: Returns the error message for the model if the agent fails;
                `None` raises the exception.
            **unknown: No other option exists. For one of openai-agents, the error names the
                counterpart.

        Raises:
            UserError: The name is not valid, or the parameters have no JSON schema.
        """
        if unknown:
            refuse_options("Agent.as_tool", Agent.as_tool, unknown)
        _check_tool_options(self.name, custom_output_extractor, on_stream, streaming, max_turns)

        async def perform(call: Call, task: str) -> Any:
            async with EventTap(on_stream, self.name) as sinks:
                run = Run(
                    self,
                    input_items(task),
                    config=run_config,
                    max_turns=10 if max_turns is None else max_turns,
                    sinks=sinks,
                    quiet=not streaming,
                    state=call.resumed,
                    parent=call,
                )
                result = await run.execute()
            if result.interruptions:
                if isinstance(call.parent, RunScope):
                    raise Interruption(result.to_state())
                waiting = ", ".join(repr(item.name) for item in result.interruptions)
                raise ToolDeniedError(
                    f"Agent {self.name!r} waits for the approval of {waiting}, but was called "
                    "outside a run that can request it."
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
            metadata={"agents_tools": {"resumes": True}},  # a run with a store resumes it
            delegate=(self, run_config),
        )


def _free_names(tools: Tools) -> tuple[str, str]:
    """Return unused names for a search tool and its call tool."""
    taken = {tool.name for tool in tools}
    for suffix in ("", *(f"_{number}" for number in range(2, len(taken) + 3))):
        names = f"tool_search{suffix}", f"call_tool{suffix}"
        if not taken.intersection(names):
            return names
    raise AssertionError


def _check_tool_options(
    agent: str, extractor: Any, on_stream: Any, streaming: Any, max_turns: Any
) -> None:
    """Raise an error for an option of `as_tool` that has a wrong type."""
    for option, function in (("custom_output_extractor", extractor), ("on_stream", on_stream)):
        if function is not None and not callable(function):
            raise UserTypeError(
                f"as_tool({option}=...) of agent {agent!r} expects a function, got "
                f"{function!r:.60}."
            )
    if not isinstance(streaming, bool):
        raise UserTypeError(
            f"as_tool(streaming=...) of agent {agent!r} expects True or False, got "
            f"{streaming!r:.60}."
        )
    if max_turns is not None and (type(max_turns) is not int or max_turns < 1):
        raise UserValueError(
            f"as_tool(max_turns=...) is not valid: expected a positive integer, got "
            f"{max_turns!r:.60}."
        )


def _check_types(agent: Agent[Any, Any]) -> None:
    """Raise an error for a field of an agent that has a wrong type."""
    from agents_tools.agents.config import RunHooks
    from agents_tools.agents.model import ModelSettings

    model: Any = agent.model
    settings: Any = agent.model_settings
    hooks: Any = agent.hooks
    tools: Any = agent.tools
    fits = {
        ("model", "the name of a model, or a Model"): (
            model is None or isinstance(model, str) or hasattr(model, "respond")
        ),
        ("model_settings", "ModelSettings(...)"): isinstance(settings, (ModelSettings, type(None))),
        ("hooks", "AgentHooks or RunHooks"): isinstance(hooks, (RunHooks, type(None))),
        ("tools", "a list of tools"): hasattr(tools, "__iter__") or hasattr(tools, "as_part"),
    }
    for (name, expected), is_right in fits.items():
        if not is_right:
            given = type(getattr(agent, name)).__name__
            raise UserTypeError(f"Agent {agent.name!r}: {name}= expects {expected}, got {given}.")


def _check_instructions(name: str, function: Callable[..., Any]) -> None:
    signature = mismatched_signature(function, "context", "agent")
    if signature is not None:
        raise UserTypeError(
            f"The instructions of agent {name!r} are not valid: expected a function of (context, "
            f"agent), got one with the parameters {signature}."
        )


def _check_behavior(name: str, behavior: object) -> None:
    if isinstance(behavior, Mapping):
        names = cast("Mapping[str, object]", behavior).get("stop_at_tool_names")
        fits = isinstance(names, (list, tuple, set)) and len(cast("Any", behavior)) == 1
    else:
        fits = behavior in ("run_llm_again", "stop_on_first_tool") or callable(behavior)
    if not fits:
        raise UserValueError(
            f"The tool_use_behavior of agent {name!r} is not valid: expected 'run_llm_again', "
            "'stop_on_first_tool', {'stop_at_tool_names': [...]} or a function of (context, "
            f"results), got {behavior!r:.80}."
        )
