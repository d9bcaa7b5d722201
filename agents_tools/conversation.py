"""Conversations with the interface of OpenHands, implemented with `Agent` and `Runner`."""

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

from agents_tools.agents.agent import Agent as CoreAgent
from agents_tools.agents.config import RunConfig
from agents_tools.agents.model import load_model
from agents_tools.agents.runner import Runner
from agents_tools.classes.action import ImageContent, TextContent, close_executors
from agents_tools.classes.registry import ToolRegistry, ToolSpec, default_registry
from agents_tools.concurrency.bridge import run_sync
from agents_tools.content.items import (
    MessageInputItem,
    MessageOutputItem,
    ToolApprovalItem,
    ToolCallItem,
    ToolCallOutputItem,
)
from agents_tools.content.outputs import output_text
from agents_tools.errors import UserTypeError
from agents_tools.events.kinds import RunItemStreamEvent
from agents_tools.text.escape import describe_value
from agents_tools.text.secrets import register_secret
from agents_tools.tool.flatten import flatten_tools
from agents_tools.tool.records import Decision
from agents_tools.tool.state import ToolState

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from agents_tools.content.usage import Usage

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
    """The tokens that a model has used, and their cost in US dollars, as far as it is known."""

    input_tokens: int = 0
    output_tokens: int = 0
    accumulated_cost: float = 0.0


class LLM(BaseModel):
    """A language model: a name for `load_model` or a `Model`, with connection and prices.

    The prices are in US dollars per token. Without them, those of `Usage.cost` apply.
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
        """Return the model object."""
        if not isinstance(self.model, str):
            return self.model
        key = None if self.api_key is None else self.api_key.get_secret_value()
        if key:
            register_secret(key)
        return load_model(self.model, base_url=self.base_url, api_key=key)

    def charge(self, used: Usage) -> None:
        """Add the usage of a run to the metrics."""
        metrics = self.metrics
        metrics.input_tokens += used.input_tokens
        metrics.output_tokens += used.output_tokens
        if self.input_cost_per_token or self.output_cost_per_token:
            metrics.accumulated_cost += (
                used.input_tokens * self.input_cost_per_token
                + used.output_tokens * self.output_cost_per_token
            )
        else:
            metrics.accumulated_cost += used.cost or 0.0


class Agent(BaseModel):
    """A model with tools: tool specs, class-based and function tools, lists and MCP servers."""

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
        """Return the agent for one conversation, and the tools that were created for it."""
        specs = [tool for tool in self.tools if isinstance(tool, ToolSpec)]
        others = [tool for tool in self.tools if not isinstance(tool, ToolSpec)]
        created: list[Any] = []
        try:
            for spec in specs:
                created += registry.make(spec, state)
            known = CoreAgent[Any]("agent", tools=[*others, *created]).tools_map
            for name in self.include_default_tools:
                created += registry.make(name, state) if name not in known else []
            model = self.llm.resolved()
        except BaseException:
            close_executors(getattr(tool, "executor", tool) for tool in created)
            raise
        self._core = CoreAgent(
            "agent",
            instructions=self.system_prompt,
            tools=[*others, *created],
            model=model,
            mcp_config=self.mcp_config,
            tool_use_behavior={"stop_at_tool_names": ["finish"]},
        )
        return self._core, created

    @property
    def tools_map(self) -> dict[str, Any]:
        """The tools by name; empty before the agent is used in a conversation."""
        return {} if self._core is None else self._core.tools_map


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The workspace of a conversation.

    Attributes:
        working_dir: The directory.
    """

    working_dir: str


@dataclass(slots=True, kw_only=True)
class ConversationState:
    """The state of a conversation, which is passed to its tools.

    Attributes:
        workspace: The workspace.
        events: The events so far, in order.
    """

    workspace: Workspace
    events: list[Event] = field(default_factory=list["Event"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event in a conversation.

    Attributes:
        source: The source of the event: `user`, `agent` or `environment`.
        timestamp: The time of the event, in UTC.
    """

    source: str
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMConvertibleEvent(Event):
    """An event that is sent to the model.

    Attributes:
        message: The message in the format of the Chat Completions API.
    """

    message: Mapping[str, Any]

    def to_llm_message(self) -> dict[str, Any]:
        """Return a copy of the message."""
        return dict(self.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEvent(LLMConvertibleEvent):
    """A message of the user or the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEvent(LLMConvertibleEvent):
    """A tool call of the model.

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
    """The result of a tool call.

    Attributes:
        tool_name: The tool.
        tool_call_id: The id of the call.
        observation: The result.
    """

    tool_name: str
    tool_call_id: str
    observation: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentErrorEvent(ObservationEvent):
    """A tool call with invalid arguments.

    Attributes:
        error: The error message for the model.
    """

    error: str = ""


def _deny(item: ToolApprovalItem) -> Decision:
    return Decision(
        approved=False,
        message=f"The call of {item.name!r} needs an approval, and this conversation has no person "
        "who could give it.",
    )


class Conversation:
    """A conversation of a user with an agent that works in a workspace.

    It cannot ask a person, so a call that needs an approval is denied. Use `Runner` for such tools.

    Args:
        agent: The agent.
        workspace: The directory of the workspace; the current directory by default.
        callbacks: Functions that are called with each event. Exceptions are logged.
        max_iterations: The maximum number of turns of one `run`.
        registry: The registry for tool specs; the shared one by default.
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
        if async_callback := next(filter(inspect.iscoroutinefunction, self._callbacks), None):
            raise UserTypeError(
                f"A callback is async: expected sync functions, got {async_callback!r:.80}."
            )
        self._max_iterations = max_iterations
        self._core, self._created = agent.initialize(self.state, registry)
        self._config = RunConfig(tool_state=ToolState(), approve=_deny)  # of all runs
        self._items: list[Any] = []
        self._readers: dict[str, Any] = {
            tool.name: tool.action_from_arguments
            for tool in flatten_tools(
                one for one in [*self._created, *agent.tools] if not hasattr(one, "as_part")
            )
            if hasattr(tool, "action_from_arguments")
        }

    def __enter__(self) -> Self:
        """Return the conversation."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the tools."""
        self.close()

    def close(self) -> None:
        """Close the tools that were created for the conversation, and the state of all tools."""
        if self._config.tool_state is not None:
            self._config.tool_state.close()
        close_executors(getattr(tool, "executor", tool) for tool in self._created)

    def send_message(self, message: str) -> None:
        """Add a message of the user; call `run` to let the agent respond."""
        if not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"The message is not valid: expected a string, got {describe_value(message)}."
            )
        self._items.append(MessageInputItem(content=message))
        self._emit(MessageEvent(source="user", message={"role": "user", "content": message}))

    def run(self) -> None:
        """Run the agent until it has responded or called `finish`.

        Raises:
            AgentsToolsError: The run failed. Earlier steps stay in the conversation.
        """
        run_sync(self.arun)

    async def arun(self) -> None:
        """Run the agent like `run`, from async code."""
        async with Runner.run_streamed(
            self._core,
            list(self._items),
            context=self,
            max_turns=self._max_iterations,
            run_config=self._config,
        ) as result:
            try:
                async for event in result.stream_events():
                    if (
                        isinstance(event, RunItemStreamEvent)
                        and not event.path
                        and event.name != "input"  # the input is in the conversation already
                    ):
                        self._add(cast("RunItemStreamEvent[Any]", event).value)
            finally:
                self.agent.llm.charge(result.usage)

    def _add(self, item: Any) -> None:
        self._items.append(item)
        match item:
            case MessageOutputItem(text=text):
                message = {"role": "assistant", "content": text}
                self._emit(MessageEvent(source="agent", message=message))
            case ToolCallItem():
                self._emit(self._action_event(item))
            case ToolCallOutputItem():
                self._emit(self._observation_event(item))
            case _:  # reasoning and other items for the provider only
                pass

    def _action_event(self, item: ToolCallItem) -> ActionEvent:
        function = {"name": item.name, "arguments": item.arguments}
        call = {"id": item.call_id, "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        try:
            action = json.loads(item.arguments)
            if item.name in self._readers:
                action = self._readers[item.name](action)
        except Exception:  # noqa: BLE001 - the call itself reports invalid arguments
            action = item.arguments  # the original text
        return ActionEvent(
            source="agent",
            message=message,
            tool_name=item.name,
            tool_call_id=item.call_id,
            action=action,
        )

    def _observation_event(self, item: ToolCallOutputItem) -> ObservationEvent:
        text = output_text(item.output)  # a tool message of that API contains only text
        message = {"role": "tool", "tool_call_id": item.call_id, "content": text}
        is_invalid = item.status == "invalid_args"
        event = partial(AgentErrorEvent, error=text) if is_invalid else ObservationEvent
        return event(
            source="agent" if is_invalid else "environment",
            message=message,
            tool_name=item.name,
            tool_call_id=item.call_id,
            observation=item.output if item.value is None else item.value,
        )

    def _emit(self, event: Event) -> None:
        self.state.events.append(event)
        for callback in self._callbacks:
            try:
                callback(event)
            except Exception:  # a callback must never stop a conversation
                logger.exception("A callback failed on %s.", type(event).__name__)
