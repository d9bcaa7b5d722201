"""The configuration, the hooks and the result of a run."""

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
    TypeVar,
    Union,
    cast,
    get_origin,
)

from agents_tools._package import ForeignAttributes
from agents_tools.agents.type_variables import ContextT, OutputT
from agents_tools.content.items import Item, MessageOutputItem
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.options import ForeignOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agents_tools.agents.budgets import ModelPrice
    from agents_tools.agents.guardrail import (
        Guardrails,
        InputGuardrailResult,
        OutputGuardrailResult,
    )
    from agents_tools.agents.model import Model, ModelProvider, ModelResponse, ModelSettings
    from agents_tools.agents.model_input import PrepareInput
    from agents_tools.agents.state import RunState
    from agents_tools.content.items import RunItem, ToolApprovalItem, ToolCallOutputItem
    from agents_tools.content.usage import Usage
    from agents_tools.events.base import Event
    from agents_tools.persistence.run_store import RunStore
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.question import Question
    from agents_tools.tool.run_context import RunContextWrapper
    from agents_tools.tool.state import ToolState
    from agents_tools.tool.tool import FunctionTool

KindT = TypeVar("KindT")

__all__ = [
    "AgentHooks",
    "FunctionToolResult",
    "PublishesEvents",
    "RunConfig",
    "RunHooks",
    "RunResult",
    "StopAtTools",
    "ToolUseBehavior",
    "ToolsToFinalOutputResult",
]


class PublishesEvents(Protocol):
    """An object that receives the events of runs, to store or forward them."""

    def publish(self, event: Event, /) -> Any:
        """Receive an event without blocking."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig(ForeignOptions):
    """Settings for a run, independent of the agent. Agents that run as tools inherit them.

    Attributes:
        model: The model of all agents, instead of their own models.
        model_provider: Loads models by name; receives the name exactly as the agent has it.
        model_settings: Settings that override those of the agents.
        max_parallel_tools: The maximum number of parallel calls of a turn; unlimited by default.
        unknown_tool: The reaction to a call of an unknown tool: `tell_model` returns an error with
            similar names to the model, `raise` ends the run with a `ModelBehaviorError`.
        start_calls_early: Whether calls of local tools with a read-only annotation start as soon as
            their arguments are complete, while the model still streams.
        timeout: The time limit of the run, in seconds.
        tool_timeout: The time limit of each call, in seconds, for tools without a
            `policies.timeout` of their own. Agents and programs that run as tools have none; it
            applies to the tools that they call.
        max_tool_calls: The maximum number of calls, including those of the runs inside this one.
        max_total_tokens: The maximum number of tokens, including the runs inside this one.
        max_cost: The maximum cost in US dollars, including the runs inside this one. The price of
            each model has to be known.
        prices: The prices of models by their names, as in `Agent(model=...)` or as the provider
            reports them. Other prices are those of the library genai-prices, if it is installed.
        max_depth: The maximum nesting depth of agents that run as tools.
        model_retries: The maximum number of retries of a request after a temporary error.
        retry_backoff: Seconds before the first retry; doubled each time up to 30 and shortened at
            random by up to a half. A longer delay that the provider requests is respected.
        output_retries: How often the model can correct a final answer that does not match the
            `output_type`.
        approve: A function that decides about calls that need approval, so that the run does not
            end: it takes the `ToolApprovalItem` and returns a boolean or a `Decision`; sync or
            async. Agents that run as tools inherit this and `ask` even if they have a configuration
            of their own.
        ask: A function that takes the questions of tools (`ToolContext.ask`) and returns the
            answer, or `None` for no answer; sync or async.
        prepare_input: A function that decides what a model reads of the conversation. It takes a
            list of items and an `InputContext`, and returns items; sync or async. It changes only
            the requests to the model: the log, the session and the result keep every item.
            `agents_tools.agents.compaction` has ready-made ones.
        sample: Answers requests of MCP servers for a model (`sampling/createMessage`): a model or
            its name, or a function. The function takes the params and the context of the call and
            returns text, a complete result, or `None` to decline; sync or async. Servers send such
            requests only if `MCPToolManager(sample=...)` offers the capability.
        event_stream: An object that also receives all events of the run.
        tool_state: The state that tools hold between calls, such as the shell of the terminal, if
            several runs share it. By default each run has its own. Agents that run as tools do not
            inherit it.
        store: The store that records the run, so that it can be continued after its process has
            ended, and read and decided about by other processes. Runs inside this one are recorded
            with it.
        resume_orphans: Whether a server with these settings resumes runs of its agents whose
            process has ended.
    """

    model: str | Model | None = None
    model_provider: ModelProvider | None = None
    model_settings: ModelSettings | None = None
    max_parallel_tools: int | None = None
    unknown_tool: Literal["tell_model", "raise"] = "tell_model"
    start_calls_early: bool = False
    timeout: float | None = None
    tool_timeout: float | None = None
    max_tool_calls: int | None = None
    max_total_tokens: int | None = None
    max_cost: float | None = None
    prices: Mapping[str, ModelPrice] | None = None
    max_depth: int = 8
    model_retries: int = 2
    retry_backoff: float = 0.5
    output_retries: int = 2
    approve: Callable[[ToolApprovalItem], Any] | None = None
    ask: Callable[[Question], Any] | None = None
    prepare_input: PrepareInput | None = None
    sample: Callable[[Mapping[str, Any], ToolContext[Any] | None], Any] | Model | str | None = None
    event_stream: PublishesEvents | None = None
    tool_state: ToolState | None = None
    store: RunStore | None = None
    resume_orphans: bool = False

    def __post_init__(self) -> None:
        for name, kinds, least in _NUMBERS:
            value: Any = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            fits = isinstance(value, kinds) and not isinstance(value, bool)
            number = cast("float", value) if fits else -1
            if not number >= least or (name in _OPTIONAL and not number):
                raise UserValueError(
                    f"RunConfig({name}=...) is not valid: expected a "
                    f"{'positive' if name in _OPTIONAL else 'non-negative'} number, "
                    f"got {value!r:.60}."
                )
        if self.unknown_tool not in {"tell_model", "raise"}:
            raise UserValueError(
                "RunConfig(unknown_tool=...) is not valid: expected 'tell_model' or 'raise', "
                f"got {self.unknown_tool!r:.60}."
            )
        from agents_tools.agents.budgets import check_prices
        from agents_tools.agents.model import Model, ModelSettings

        for name in ("approve", "ask", "prepare_input", "sample"):
            value = getattr(self, name)
            if name == "sample" and isinstance(value, (str, Model)):
                continue
            if value is not None and not callable(value):
                raise UserTypeError(
                    f"RunConfig({name}=...) is not callable: expected a function, got "
                    f"{type_with_article(value)}."
                )
        check_prices(self.prices)
        if not isinstance(self.model_settings, (ModelSettings, type(None))):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"RunConfig(model_settings=...) expects ModelSettings(...), got "
                f"{self.model_settings!r:.60}."
            )
        if self.tool_state is not None and not hasattr(self.tool_state, "aclose"):
            raise UserTypeError(
                "RunConfig(tool_state=...) is not valid: expected a ToolState, got "
                f"{type_with_article(self.tool_state)}."
            )
        if self.store is not None and not hasattr(self.store, "approvals"):
            raise UserTypeError(
                "RunConfig(store=...) is not a run store: expected for example "
                f"SQLiteRunStore(path), got {type_with_article(self.store)}."
            )


_OPTIONAL = frozenset(
    {
        "max_parallel_tools",
        "max_tool_calls",
        "max_total_tokens",
        "max_cost",
        "timeout",
        "tool_timeout",
    }
)
_NUMBERS: tuple[tuple[str, Any, int], ...] = (
    ("max_parallel_tools", int, 1),
    ("max_tool_calls", int, 1),
    ("max_total_tokens", int, 1),
    ("max_cost", (int, float), 0),
    ("timeout", (int, float), 0),
    ("tool_timeout", (int, float), 0),
    ("max_depth", int, 0),
    ("model_retries", int, 0),
    ("retry_backoff", (int, float), 0),
    ("output_retries", int, 0),
)
"""The numeric settings with their types and minimum values."""

DEFAULT_CONFIG = RunConfig()

UNCHANGED: Any = object()
"""The `max_turns` of a resumed run that keeps the value in its log."""


AnyAgent: TypeAlias = Any
"""An agent. A hook can declare the class that it expects."""


class RunHooks(Generic[ContextT]):
    """Callbacks for the steps of a run. Override the methods that you need.

    Each method is awaited during the run, so it can delay the run, or end it by raising. To observe
    a run without influence on it, use events. The context of the tool hooks is the `ToolContext` of
    the call, with its id and arguments.
    """

    async def on_agent_start(self, context: RunContextWrapper[ContextT], agent: AnyAgent) -> None:
        """Run when an agent starts."""

    async def on_agent_end(
        self, context: RunContextWrapper[ContextT], agent: AnyAgent, output: object
    ) -> None:
        """Run when an agent has its final output."""

    async def on_handoff(
        self, context: RunContextWrapper[ContextT], from_agent: AnyAgent, to_agent: AnyAgent
    ) -> None:
        """Run when another agent continues the run."""

    async def on_llm_start(
        self,
        context: RunContextWrapper[ContextT],
        agent: AnyAgent,
        system_prompt: str,
        input_items: Sequence[Item],
    ) -> None:
        """Run before a request to the model."""

    async def on_llm_end(
        self,
        context: RunContextWrapper[ContextT],
        agent: AnyAgent,
        response: ModelResponse,
    ) -> None:
        """Run after a response of the model."""

    async def on_tool_start(
        self,
        context: ToolContext[ContextT],
        agent: AnyAgent,
        tool: FunctionTool[..., Any],
    ) -> None:
        """Run before a tool is called."""

    async def on_tool_end(
        self,
        context: ToolContext[ContextT],
        agent: AnyAgent,
        tool: FunctionTool[..., Any],
        result: ToolCallOutputItem,
    ) -> None:
        """Run after a tool has returned or failed."""


class AgentHooks(RunHooks[ContextT]):
    """Callbacks for the runs of one agent, passed as `Agent(hooks=...)`."""

    async def on_start(self, context: RunContextWrapper[ContextT], agent: AnyAgent) -> None:
        """Run when the agent starts."""

    async def on_end(
        self, context: RunContextWrapper[ContextT], agent: AnyAgent, output: object
    ) -> None:
        """Run when the agent has its final output."""

    async def on_handoff(  # pyright: ignore[reportIncompatibleMethodOverride] - as below
        self, context: RunContextWrapper[ContextT], agent: AnyAgent, source: AnyAgent
    ) -> None:
        """Run when another agent has handed the conversation over to this one.

        The order of the agents is that of openai-agents: it differs from that of `RunHooks`.
        """

    async def on_agent_start(self, context: RunContextWrapper[ContextT], agent: AnyAgent) -> None:
        """Call `on_start`."""
        await self.on_start(context, agent)

    async def on_agent_end(
        self, context: RunContextWrapper[ContextT], agent: AnyAgent, output: object
    ) -> None:
        """Call `on_end`."""
        await self.on_end(context, agent, output)


_hooks: tuple[RunHooks[Any], ...] = ()


def hooks_of_all_runs() -> tuple[RunHooks[Any], ...]:
    """Return the hooks that apply to every run of the process."""
    return _hooks


def observe_runs(hooks: RunHooks[Any]) -> Callable[[], None]:
    """Add hooks to every run that starts from now on.

    Args:
        hooks: The hooks.

    Returns:
        A function that removes the hooks for runs that start later.
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
        tool: The tool; `None` if the name is unknown.
        output: The return value as a Python object, or the text for the model if the call failed.
        run_item: The item with the output for the model.
    """

    tool: FunctionTool[..., Any] | None
    output: object
    run_item: ToolCallOutputItem


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsToFinalOutputResult:
    """The decision of a `tool_use_behavior` function.

    Attributes:
        is_final_output: Whether the run ends here.
        final_output: The final output of the run, if it ends.
    """

    is_final_output: bool
    final_output: object = None


class StopAtTools(TypedDict):
    """The `tool_use_behavior` that ends a run after a successful call of one of these tools."""

    stop_at_tool_names: list[str]


ToolUseBehavior: TypeAlias = Union[
    Literal["run_llm_again", "stop_on_first_tool"],
    StopAtTools,
    "Callable[[RunContextWrapper[Any], list[FunctionToolResult]], Any]",
]
"""How a run continues after tool calls."""


class RunResult(ForeignAttributes, Generic[OutputT]):
    """The result of a run.

    Attributes:
        final_output: The answer: text, an object of the agent's `output_type`, or the return value
            of a tool that ended the run; `None` if the run waits for approvals.
        last_agent: The agent of the run; that of the last handoff.
        new_items: The items that the run added to the conversation, in order.
        raw_responses: The responses of the model, one for each turn.
        usage: The tokens that were used, including the runs inside this one.
        interruptions: The calls that wait for approval; see `to_state`.
        run_id: The id of the run.
        context: The application's object.
    """

    __slots__ = (
        "_guardrails",
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
        final_output: OutputT,
        last_agent: object,
        history: Sequence[Item],
        input_count: int,
        raw_responses: Sequence[ModelResponse],
        usage: Usage,
        run_id: str,
        context: object,
        state: Callable[[], RunState],
        guardrails: Guardrails,
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
        self._guardrails = guardrails

    @property
    def new_items(self) -> list[RunItem]:
        """The items that the run added to the conversation, in order."""
        return [*self._history[self._input_count :], *self.interruptions]

    @property
    def input(self) -> list[Item]:
        """The input of the run."""
        return list(self._history[: self._input_count])

    @property
    def input_guardrail_results(self) -> list[InputGuardrailResult]:
        """The results of the checks of the input, in the order in which they ended."""
        return list(self._guardrails.input_results)

    @property
    def output_guardrail_results(self) -> list[OutputGuardrailResult]:
        """The results of the checks of the final output."""
        return list(self._guardrails.output_results)

    @property
    def context_wrapper(self) -> RunContextWrapper[Any]:
        """The application's object and the usage, as hooks receive them."""
        from agents_tools.tool.run_context import RunContextWrapper

        return RunContextWrapper(self.context, self.usage)

    def to_input_list(self) -> list[dict[str, Any]]:
        """Return the whole conversation as JSON items, for the input of another run."""
        return [item.to_dict() for item in self._history]

    def final_output_as(self, kind: type[KindT]) -> KindT:
        """Return the final output if it is an instance of a class.

        Raises:
            UserError: It is not an instance of the class.
        """
        wanted: Any = get_origin(kind) or kind  # `list[int]` is checked as `list`
        if isinstance(wanted, type) and isinstance(self.final_output, wanted):
            return cast("KindT", self.final_output)
        name = getattr(kind, "__name__", repr(kind))
        raise UserTypeError(
            f"The final output has the wrong type: expected {name}, got "
            f"{type(self.final_output).__name__}. Set the output_type of the agent."
        )

    def to_state(self) -> RunState:
        """Return the state from which the run continues once the approvals are decided."""
        return self._state()

    def __repr__(self) -> str:
        """Return a short description of the output and the cost."""
        waiting = f", waiting for {len(self.interruptions)}" if self.interruptions else ""
        return (
            f"<RunResult of {getattr(self.last_agent, 'name', '?')!r}: {self.final_output!r:.60}, "
            f"{len(self.raw_responses)} turns, {self.usage.total_tokens} tokens{waiting}>"
        )

    def _repr_html_(self) -> str:
        from agents_tools.agents.notebook import run_html

        return run_html(
            self.last_agent, items=self.new_items, turns=len(self.raw_responses),
            usage=self.usage, output=self.final_output,
        )  # fmt: skip


def last_text(items: Sequence[Item]) -> str:
    """Return the text of the last message with text."""
    for item in reversed(items):
        if isinstance(item, MessageOutputItem) and (item.text or item.refusal):
            return item.text or item.refusal or ""
    return ""
