"""The records of a run: its configuration, its hooks and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypedDict,
    Union,
    cast,
    get_origin,
)

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.items import Item, MessageOutputItem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from typing_extensions import TypeVar

    from agents_tools.context import Question, RunContextWrapper, ToolContext
    from agents_tools.durable import DurableStore
    from agents_tools.events import Event
    from agents_tools.items import RunItem, ToolApprovalItem, ToolCallOutputItem
    from agents_tools.model import Model, ModelProvider, ModelResponse, ModelSettings
    from agents_tools.state import RunState
    from agents_tools.tool import FunctionTool
    from agents_tools.usage import Usage

    ContextT = TypeVar("ContextT", default=Any)
else:
    from typing import TypeVar

    ContextT = TypeVar("ContextT")

__all__ = [
    "AgentHooks",
    "FunctionToolResult",
    "PublishesEvents",
    "RunConfig",
    "RunHooks",
    "RunResult",
    "Session",
    "StopAtTools",
    "ToolUseBehavior",
    "ToolsToFinalOutputResult",
]


class PublishesEvents(Protocol):
    """Takes the events of runs, to store or to send them on."""

    def publish(self, event: Event, /) -> Any:
        """Take an event; never waits."""
        ...


class Session(Protocol):
    """Keeps a conversation over runs, as the durable events of each; its methods may be async."""

    def read(self) -> Sequence[Event] | Awaitable[Sequence[Event]]:
        """Give all events so far, in order."""
        ...

    def append(self, events: Sequence[Event], /) -> Any:
        """Keep some more; when it is done, they are safe."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """How a run is done, whatever agent it is of. Agents that run as its tools inherit it.

    Attributes:
        model: The model of all agents, instead of their own.
        model_provider: Finds models by name; gets the name exactly as the agent has it.
        model_settings: Laid over those of the agents.
        max_parallel_tools: How many calls of a turn run at once; all by default.
        unknown_tool: What happens when the model calls a tool that there is not: `tell_model`
            answers with the nearest names, `raise` ends the run with a `ModelBehaviorError`.
        start_calls_early: Start calls of local tools that are annotated as read-only as soon as
            their arguments are complete, while the model still writes.
        timeout: Seconds that the run may take.
        max_tool_calls: How many calls the run may make.
        max_total_tokens: How many tokens the run may use, with those of the runs inside it.
        max_depth: How deep agents may run inside agents.
        model_retries: How often a request is repeated after a fault that may pass.
        retry_backoff: Seconds before the first repetition; doubled each time, up to 30, and
            shortened at random by up to a half. What the provider asks for counts as well.
        output_retries: How often the model may correct a final answer that is not of the
            `output_type`.
        approve: Decides at once about a call that needs approval, instead of ending the run: takes
            the `ToolApprovalItem` and gives a boolean or a `Decision`; sync or async. Agents that
            run as tools with a configuration of their own inherit this and `ask` all the same.
        ask: Takes the questions of tools (`ToolContext.ask`) and gives the answer, `None` for
            none; sync or async.
        sample: Takes the requests of MCP servers for the answer of a model
            (`sampling/createMessage`), from servers that were told that there is one
            (`MCPToolManager(sample=...)`): called with the params and the context of the call,
            gives text, a whole result, or `None` to decline; sync or async.
        event_stream: Gets all events of the run as well.
        durable: Keeps what the run does, step by step, so that it can go on when its process has
            ended; runs inside it are kept with it.
    """

    model: str | Model | None = None
    model_provider: ModelProvider | None = None
    model_settings: ModelSettings | None = None
    max_parallel_tools: int | None = None
    unknown_tool: Literal["tell_model", "raise"] = "tell_model"
    start_calls_early: bool = False
    timeout: float | None = None
    max_tool_calls: int | None = None
    max_total_tokens: int | None = None
    max_depth: int = 8
    model_retries: int = 2
    retry_backoff: float = 0.5
    output_retries: int = 2
    approve: Callable[[ToolApprovalItem], Any] | None = None
    ask: Callable[[Question], Any] | None = None
    sample: Callable[[Mapping[str, Any], ToolContext[Any] | None], Any] | None = None
    event_stream: PublishesEvents | None = None
    durable: DurableStore | None = None

    def __post_init__(self) -> None:
        for name, kinds, least in _NUMBERS:
            value: Any = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            fits = isinstance(value, kinds) and not isinstance(value, bool)
            number = cast("float", value) if fits else -1
            if not number >= least or (name in _OPTIONAL and not number):
                raise UserValueError(
                    f"RunConfig({name}=...) takes a {'positive ' if name in _OPTIONAL else ''}"
                    f"number, not {value!r:.60}."
                )
        if self.unknown_tool not in {"tell_model", "raise"}:
            raise UserValueError(
                "RunConfig(unknown_tool=...) takes 'tell_model' or 'raise', "
                f"not {self.unknown_tool!r:.60}."
            )
        for name in ("approve", "ask", "sample"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise UserTypeError(
                    f"RunConfig({name}=...) takes a function, not a {type(value).__name__}."
                )
        if self.durable is not None and not hasattr(self.durable, "claim"):
            raise UserTypeError(
                "RunConfig(durable=...) takes a store such as LocalDurableStore(path), "
                f"not a {type(self.durable).__name__}."
            )


_OPTIONAL = frozenset({"max_parallel_tools", "max_tool_calls", "max_total_tokens", "timeout"})
_NUMBERS: tuple[tuple[str, Any, int], ...] = (
    ("max_parallel_tools", int, 1),
    ("max_tool_calls", int, 1),
    ("max_total_tokens", int, 1),
    ("timeout", (int, float), 0),
    ("max_depth", int, 0),
    ("model_retries", int, 0),
    ("retry_backoff", (int, float), 0),
    ("output_retries", int, 0),
)
"""The numbers of a configuration, what they are and the least of each."""

DEFAULT_CONFIG = RunConfig()

KEPT: Any = object()
"""As many turns as the durable store knows of."""


class RunHooks(Generic[ContextT]):
    """Told what happens in a run; override what is of interest.

    Each method is awaited where it happens, so that it may slow a run down or end it by raising.
    Use events to watch a run without a hold on it. The context of the tool hooks is the
    `ToolContext` of the call: it has the call's id and arguments.
    """

    async def on_agent_start(self, context: RunContextWrapper[ContextT], agent: Any) -> None:
        """An agent begins."""

    async def on_agent_end(
        self, context: RunContextWrapper[ContextT], agent: Any, output: Any
    ) -> None:
        """An agent has its final output."""

    async def on_llm_start(
        self,
        context: RunContextWrapper[ContextT],
        agent: Any,
        system_prompt: str,
        input_items: Sequence[Item],
    ) -> None:
        """A model is asked."""

    async def on_llm_end(
        self, context: RunContextWrapper[ContextT], agent: Any, response: ModelResponse
    ) -> None:
        """A model has answered."""

    async def on_tool_start(
        self, context: ToolContext[ContextT], agent: Any, tool: FunctionTool[..., Any]
    ) -> None:
        """A tool is about to run."""

    async def on_tool_end(
        self,
        context: ToolContext[ContextT],
        agent: Any,
        tool: FunctionTool[..., Any],
        result: ToolCallOutputItem,
    ) -> None:
        """A tool has answered, or failed."""


class AgentHooks(RunHooks[ContextT]):
    """Told what happens in the runs of one agent: give it to `Agent(hooks=...)`."""

    async def on_start(self, context: RunContextWrapper[ContextT], agent: Any) -> None:
        """The agent begins."""

    async def on_end(self, context: RunContextWrapper[ContextT], agent: Any, output: Any) -> None:
        """The agent has its final output."""

    async def on_agent_start(self, context: RunContextWrapper[ContextT], agent: Any) -> None:
        """Call `on_start`."""
        await self.on_start(context, agent)

    async def on_agent_end(
        self, context: RunContextWrapper[ContextT], agent: Any, output: Any
    ) -> None:
        """Call `on_end`."""
        await self.on_end(context, agent, output)


_hooks: tuple[RunHooks[Any], ...] = ()


def hooks_of_all_runs() -> tuple[RunHooks[Any], ...]:
    """Give the hooks that every run of the process tells what happens in it."""
    return _hooks


def observe_runs(hooks: RunHooks[Any]) -> Callable[[], None]:
    """Have every run that starts from now on tell some hooks what happens in it.

    Args:
        hooks: Who is told.

    Returns:
        What ends it for runs that start afterwards.
    """
    global _hooks  # noqa: PLW0603 - the process has one set of observers
    _hooks = (*_hooks, hooks)

    def stop() -> None:
        global _hooks  # noqa: PLW0603 - as above
        _hooks = tuple(other for other in _hooks if other is not hooks)

    return stop


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionToolResult:
    """The result of one call, as a `tool_use_behavior` function sees it.

    Attributes:
        tool: The tool; `None` where there is none of that name.
        output: What it returned, as the Python object; the text for the model where it failed.
        run_item: The item with what the model gets.
    """

    tool: FunctionTool[..., Any] | None
    output: Any
    run_item: ToolCallOutputItem


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsToFinalOutputResult:
    """What a `tool_use_behavior` function decides.

    Attributes:
        is_final_output: Whether the run ends here.
        final_output: With what.
    """

    is_final_output: bool
    final_output: Any = None


class StopAtTools(TypedDict):
    """Ends a run when one of these tools has answered."""

    stop_at_tool_names: list[str]


ToolUseBehavior: TypeAlias = Union[
    Literal["run_llm_again", "stop_on_first_tool"],
    StopAtTools,
    "Callable[[RunContextWrapper[Any], list[FunctionToolResult]], Any]",
]
"""What follows when tools have answered."""


class RunResult:
    """What a run gave.

    Attributes:
        final_output: The answer: text, an object of the agent's `output_type`, or what a tool
            returned where that ended the run; `None` where the run waits for approvals.
        last_agent: The agent that gave it.
        new_items: What the run added to the conversation, in order.
        raw_responses: The answers of the model, one per turn.
        usage: What was used, with the runs inside this one.
        interruptions: The calls that wait for approval; see `to_state`.
        run_id: The id of the run.
        context: The application's object.
    """

    __slots__ = (
        "_history",
        "_input_count",
        "_state",
        "context",
        "final_output",
        "interruptions",
        "last_agent",
        "raw_responses",
        "run_id",
        "usage",
    )

    def __init__(
        self,
        *,
        final_output: Any,
        last_agent: Any,
        history: Sequence[Item],
        input_count: int,
        raw_responses: Sequence[ModelResponse],
        usage: Usage,
        run_id: str,
        context: Any,
        state: Callable[[], RunState],
        interruptions: Sequence[ToolApprovalItem] = (),
    ) -> None:
        self.final_output = final_output
        self.last_agent = last_agent
        self.raw_responses = raw_responses
        self.usage = usage
        self.run_id = run_id
        self.context = context
        self.interruptions = list(interruptions)
        self._history = history
        self._input_count = input_count
        self._state = state

    @property
    def new_items(self) -> list[RunItem]:
        """What the run added to the conversation, in order."""
        return [*self._history[self._input_count :], *self.interruptions]

    @property
    def input(self) -> list[Item]:
        """What the run was given."""
        return list(self._history[: self._input_count])

    def to_input_list(self) -> list[dict[str, Any]]:
        """Give the whole conversation as JSON items, to be the input of another run."""
        return [item.to_dict() for item in self._history]

    def final_output_as(self, kind: type[ContextT]) -> ContextT:
        """Give the final output, which has to be of a class.

        Raises:
            UserError: It is not.
        """
        wanted: Any = get_origin(kind) or kind  # of `list[int]`, the list is looked at
        if isinstance(wanted, type) and isinstance(self.final_output, wanted):
            return cast("ContextT", self.final_output)
        name = getattr(kind, "__name__", repr(kind))
        raise UserTypeError(
            f"The final output is of type {type(self.final_output).__name__}, not {name}. "
            "Give the agent an output_type."
        )

    def to_state(self) -> RunState:
        """Give the state from which the run goes on once the approvals are decided."""
        return self._state()

    def __repr__(self) -> str:
        """Show the output and what the run took, shortly."""
        waiting = f", waiting for {len(self.interruptions)}" if self.interruptions else ""
        return (
            f"<RunResult of {getattr(self.last_agent, 'name', '?')!r}: {self.final_output!r:.60}, "
            f"{len(self.raw_responses)} turns, {self.usage.total_tokens} tokens{waiting}>"
        )


def last_text(items: Sequence[Item]) -> str:
    """Give the text of the last message that has one."""
    for item in reversed(items):
        if isinstance(item, MessageOutputItem) and (item.text or item.refusal):
            return item.text or item.refusal or ""
    return ""
