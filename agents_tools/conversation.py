"""Conversations in the manner of OpenHands, thin over `Agent` and `Runner`."""

from __future__ import annotations

import inspect
import json
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretStr

from agents_tools._bridge import run_sync
from agents_tools._secrets import register_secret
from agents_tools._text import describe_value
from agents_tools.action import ImageContent, TextContent, close_executors
from agents_tools.agent import Agent as CoreAgent
from agents_tools.errors import UserTypeError
from agents_tools.events import RunItemStreamEvent
from agents_tools.items import MessageInputItem, MessageOutputItem, ToolCallItem, ToolCallOutputItem
from agents_tools.model import load_model
from agents_tools.registry import ToolRegistry, ToolSpec, default_registry
from agents_tools.runner import Runner
from agents_tools.tool import opened

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "LLM", "ActionEvent", "Agent", "AgentErrorEvent", "Conversation", "ConversationState", "Event",
    "ImageContent", "LLMConvertibleEvent", "MessageEvent", "ObservationEvent", "TextContent",
    "Workspace", "get_logger",
]  # fmt: skip

get_logger = logging.getLogger
logger = get_logger(__name__)

DEFAULT_PROMPT = (
    "You are an agent that works in a workspace with the tools you are given. Look before you "
    "change anything, check what you have done, and call finish when the task is complete."
)


class Metrics(BaseModel):
    """What a model has been used for, and what that cost by the prices of the `LLM`."""

    input_tokens: int = 0
    output_tokens: int = 0
    accumulated_cost: float = 0.0


class LLM(BaseModel):
    """A language model: its name as `load_model` takes it, or a `Model`; and how it is reached.

    The prices are those of one token; as long as they are not given, nothing costs anything.
    """

    model_config = ConfigDict(extra="forbid")

    model: Any
    usage_id: str = "default"
    base_url: str | None = None
    api_key: SecretStr | None = None
    input_cost_per_token: float = 0.0
    output_cost_per_token: float = 0.0
    metrics: Metrics = Field(default_factory=Metrics)

    def resolved(self) -> Any:
        """Give the model itself."""
        if not isinstance(self.model, str):
            return self.model
        key = None if self.api_key is None else self.api_key.get_secret_value()
        if key:
            register_secret(key)
        return load_model(self.model, base_url=self.base_url, api_key=key)

    def charge(self, read: int, written: int) -> None:
        """Add tokens to the metrics."""
        known, prices = self.metrics, (self.input_cost_per_token, self.output_cost_per_token)
        known.input_tokens += read
        known.output_tokens += written
        known.accumulated_cost += read * prices[0] + written * prices[1]


class Agent(BaseModel):
    """A model with tools: specifications, class-based and function tools, lists, MCP servers."""

    model_config = ConfigDict(extra="forbid")

    llm: LLM = Field(default_factory=lambda: LLM(model=None))
    tools: list[Any] = Field(default_factory=list[Any])
    mcp_config: Any = None
    system_prompt: str = DEFAULT_PROMPT
    include_default_tools: list[str] = ["finish", "think"]

    _core: CoreAgent[Any] | None = PrivateAttr(default=None)

    def initialize(
        self, state: ConversationState, registry: ToolRegistry
    ) -> tuple[CoreAgent[Any], list[Any]]:
        """Make the agent that runs in one conversation, and the tools that are made for it."""
        specs = [tool for tool in self.tools if isinstance(tool, ToolSpec)]
        given = [tool for tool in self.tools if not isinstance(tool, ToolSpec)]
        made: list[Any] = []
        try:
            for spec in specs:
                made += registry.make(spec, state)
            known = CoreAgent[Any]("agent", tools=[*given, *made]).tools_map
            for name in self.include_default_tools:
                made += registry.make(name, state) if name not in known else []
            model = self.llm.resolved()
        except BaseException:
            close_executors(getattr(tool, "executor", tool) for tool in made)
            raise
        self._core = CoreAgent(
            "agent",
            instructions=self.system_prompt,
            tools=[*given, *made],
            model=model,
            mcp_config=self.mcp_config,
            tool_use_behavior={"stop_at_tool_names": ["finish"]},
        )
        return self._core, made

    @property
    def tools_map(self) -> dict[str, Any]:
        """The tools by name, once a conversation was made."""
        return {} if self._core is None else self._core.tools_map


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Where the tools of a conversation work.

    Attributes:
        working_dir: The directory.
    """

    working_dir: str


@dataclass(slots=True, kw_only=True)
class ConversationState:
    """What the tools of a conversation may know of it.

    Attributes:
        workspace: Where they work.
        events: What has happened so far, in order.
    """

    workspace: Workspace
    events: list[Event] = field(default_factory=list["Event"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in a conversation.

    Attributes:
        source: Who said it: `user`, `agent` or `environment`.
        timestamp: When, in UTC.
    """

    source: str
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMConvertibleEvent(Event):
    """An event that the model is told of.

    Attributes:
        message: The message of the Chat Completions API that tells of it.
    """

    message: Mapping[str, Any]

    def to_llm_message(self) -> dict[str, Any]:
        """Give the message that stands for it."""
        return dict(self.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEvent(LLMConvertibleEvent):
    """Somebody says something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEvent(LLMConvertibleEvent):
    """The model calls a tool.

    Attributes:
        tool_name: The tool.
        tool_call_id: The id of the call.
        action: The arguments, as the action of the tool if it has one.
    """

    tool_name: str
    tool_call_id: str
    action: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationEvent(LLMConvertibleEvent):
    """A tool has answered a call.

    Attributes:
        tool_name: The tool.
        tool_call_id: The id of the call.
        observation: What it answered.
    """

    tool_name: str
    tool_call_id: str
    observation: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentErrorEvent(ObservationEvent):
    """A call could not be made.

    Attributes:
        error: What the model is told.
    """

    error: str = ""


class Conversation:
    """Messages of a user, and what an agent does about them in a workspace.

    Args:
        agent: The agent.
        workspace: The directory it works in; the current one by default.
        callbacks: Called with each event. What one raises is logged.
        max_iterations: How many turns a `run` may take.
        registry: Where specifications are looked up; the shared one by default.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        workspace: str | os.PathLike[str] | Workspace | None = None,
        callbacks: Sequence[Callable[[Any], object]] = (),
        max_iterations: int = 100,
        registry: ToolRegistry = default_registry,
    ) -> None:
        if not isinstance(workspace, Workspace):
            workspace = Workspace(working_dir=str(Path(workspace or ".").resolve()))
        self.agent = agent
        self.state = ConversationState(workspace=workspace)
        self._callbacks = list(callbacks)
        if late := next(filter(inspect.iscoroutinefunction, self._callbacks), None):
            raise UserTypeError(f"Callbacks are sync functions; {late!r:.80} is async.")
        self._max_iterations = max_iterations
        self._core, self._made = agent.initialize(self.state, registry)
        self._items: list[Any] = []
        self._readers: dict[str, Any] = {
            tool.name: tool.action_from_arguments
            for tool in opened(
                one for one in [*self._made, *agent.tools] if not hasattr(one, "as_part")
            )
            if hasattr(tool, "action_from_arguments")
        }

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the tools."""
        self.close()

    def close(self) -> None:
        """Close what the tools that were made for it hold."""
        close_executors(getattr(tool, "executor", tool) for tool in self._made)

    def send_message(self, message: str) -> None:
        """Add what the user says; `run` lets the agent do something about it."""
        if not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(f"A message is text, not {describe_value(message)}.")
        self._items.append(MessageInputItem(content=message))
        self._tell(MessageEvent(source="user", message={"role": "user", "content": message}))

    def run(self) -> None:
        """Let the agent work until it has answered or finished.

        Raises:
            AgentsToolsError: The run failed; what it did before stays in the conversation.
        """
        run_sync(self.arun)

    async def arun(self) -> None:
        """As `run`, in a program that has an event loop."""
        async with Runner.run_streamed(
            self._core, list(self._items), context=self, max_turns=self._max_iterations
        ) as result:
            try:
                async for event in result.stream_events():
                    if (
                        isinstance(event, RunItemStreamEvent)
                        and not event.path
                        and event.name != "input"  # what it was given
                    ):
                        self._take(cast("RunItemStreamEvent[Any]", event).value)
            finally:
                self.agent.llm.charge(result.usage.input_tokens, result.usage.output_tokens)

    def _take(self, item: Any) -> None:
        self._items.append(item)
        match item:
            case MessageOutputItem(text=text):
                told = {"role": "assistant", "content": text}
                self._tell(MessageEvent(source="agent", message=told))
            case ToolCallItem():
                self._tell(self._called(item))
            case ToolCallOutputItem():
                self._tell(self._answered(item))
            case _:  # reasoning, and what else only the model's provider reads
                pass

    def _called(self, item: ToolCallItem) -> ActionEvent:
        function = {"name": item.name, "arguments": item.arguments}
        call = {"id": item.call_id, "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        try:
            action = json.loads(item.arguments)
            if item.name in self._readers:
                action = self._readers[item.name](action)
        except Exception:  # noqa: BLE001 - whatever is wrong with them, the call tells the model
            action = item.arguments  # as the model wrote them
        return ActionEvent(
            source="agent",
            message=message,
            tool_name=item.name,
            tool_call_id=item.call_id,
            action=action,
        )

    def _answered(self, item: ToolCallOutputItem) -> ObservationEvent:
        message = {"role": "tool", "tool_call_id": item.call_id, "content": item.output}
        refused = item.status == "invalid_args"
        event = partial(AgentErrorEvent, error=str(item.output)) if refused else ObservationEvent
        return event(
            source="agent" if refused else "environment",
            message=message,
            tool_name=item.name,
            tool_call_id=item.call_id,
            observation=item.output if item.value is None else item.value,
        )

    def _tell(self, event: Event) -> None:
        self.state.events.append(event)
        for callback in self._callbacks:
            try:
                callback(event)
            except Exception:  # whoever listens never breaks a conversation
                logger.exception("A callback failed on %s.", type(event).__name__)
