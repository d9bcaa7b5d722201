"""Function tools that run agents, of this package or of other frameworks."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agents_tools.concurrency.supervisor import finish
from agents_tools.errors import UserTypeError
from agents_tools.events.channel import Channel
from agents_tools.schema.json_schema import reader_of
from agents_tools.tool.manual import SchemaSource
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.records import ToolOrigin
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from agents_tools.agents.config import RunConfig
    from agents_tools.events.base import Emit, Event
    from agents_tools.tool.call import Call

__all__ = ["EventTap", "agents_below", "extracted", "tool_of_agent"]


@dataclass(frozen=True)
class _TextInput:
    """The default input of an agent that runs as a tool."""

    input: str


def tool_of_agent(
    agent: str,
    perform: Callable[[Call, str], Awaitable[Any]],
    *,
    tool_name: str | None,
    tool_description: str | None,
    parameters: Any,
    is_enabled: Any,
    enable_bracketing: bool,
    failure_error_function: Any,
    metadata: Mapping[str, Any] | None = None,
    delegate: tuple[Any, RunConfig | None] | None = None,
) -> FunctionTool[..., Any]:
    """Return a tool that runs an agent.

    Args:
        agent: The name of the agent.
        perform: Runs the agent with the call and the input, and returns its answer.
        tool_name: The name of the tool; by default derived from the name of the agent.
        tool_description: The description for models.
        parameters: The type of the input, which the agent receives as JSON; by default a single
            text `input`.
        is_enabled: Whether the tool is offered to models.
        enable_bracketing: Whether the start and end of a call are emitted as events.
        failure_error_function: Returns the message for the model when the agent fails; with
            `None`, the error is raised.
        metadata: The metadata of the tool.
        delegate: The agent, with the configuration of its runs, for an agent of this package.

    Raises:
        UserError: The name is invalid, or the parameters have no JSON Schema.
    """
    name = check_tool_name(tool_name or _tool_name(agent))
    reader = reader_of(name, _TextInput if parameters is None else parameters)
    schema = reader.json_schema
    if schema.get("type", "object") != "object":
        raise UserTypeError(
            f"The parameters of the agent tool {name!r} are invalid: expected a Pydantic model, a "
            f"dataclass or a TypedDict, got {parameters!r:.80}."
        )

    async def run(call: Call) -> Any:
        text = call.text
        return await perform(call, json.loads(text)["input"] if parameters is None else text)

    source = _AgentSource(
        name,
        tool_description or f"Delegate a task to agent {agent!r} and return its answer.",
        reader,
        run,
        json_schema={**_without_description(schema), "title": f"{name}_args"},
        origin=ToolOrigin(kind="agent", agent=agent),
    )
    source.delegate = delegate
    return FunctionTool.of_source(
        source,
        is_enabled=is_enabled,
        metadata=metadata,
        failure_error_function=failure_error_function,
        enable_bracketing=enable_bracketing,
    )


class _AgentSource(SchemaSource):
    """A tool that runs an agent.

    Attributes:
        delegate: The agent, with the configuration of its runs; `None` for a foreign agent.
    """

    delegate: tuple[Any, RunConfig | None] | None = None


def agents_below(tools: Iterable[Any], config: RunConfig) -> Iterator[tuple[Any, RunConfig]]:
    """Yield the agents that tools and the static tools of these agents run, each once.

    Args:
        tools: The tools.
        config: The configuration that agents without one of their own inherit.
    """
    seen = set[int]()
    open_tools = [(tool, config) for tool in tools]
    while open_tools:
        tool, inherited = open_tools.pop()
        source = getattr(tool, "source", None)
        if not isinstance(source, _AgentSource) or source.delegate is None:
            continue
        agent, own = source.delegate
        if id(agent) not in seen:
            seen.add(id(agent))
            yield agent, own or inherited
            open_tools += [(one, own or inherited) for one in agent.known_tools]


async def extracted(extractor: Callable[[Any], Any] | None, result: Any, default: Any) -> Any:
    """Return the output of a `custom_output_extractor`; without one, the default."""
    if extractor is None:
        return default
    output = extractor(result)
    return await output if hasattr(output, "__await__") else output


_GRACE = 0.5
"""The time for an `on_stream` callback to handle the last events of a failed run, in seconds."""


class EventTap:
    """Passes events one by one to an `on_stream` callback, sync or async."""

    def __init__(self, callback: Callable[[Event], Any] | None, agent: str) -> None:
        self._callback = callback
        self._agent = agent
        self._channel: Channel | None = None
        self._task: asyncio.Future[None] | None = None

    async def __aenter__(self) -> tuple[Emit, ...]:
        """Return the function that receives the events; nothing without a callback."""
        if self._callback is None:
            return ()
        self._channel = Channel()
        self._task = asyncio.ensure_future(self._deliver(self._channel, self._callback))
        return (self._channel.push,)

    async def __aexit__(self, *exc_info: object) -> None:
        """Wait until the callback has handled all events."""
        if self._task is None or self._channel is None:
            return
        self._channel.close()
        if exc_info[0] is None:
            await self._task
        elif not await finish(cast("Any", self._task), name=self._agent, grace=_GRACE):
            self._task.cancel()

    async def _deliver(self, channel: Channel, callback: Callable[[Event], Any]) -> None:
        async for event in channel:
            try:
                result = callback(event)
                if hasattr(result, "__await__"):
                    await result
            except Exception:  # noqa: BLE001 - a callback must never break a run
                _log.exception("on_stream of agent %r failed on %r.", self._agent, event.type)


def _without_description(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without the description of the type; the tool has its own."""
    return {key: value for key, value in schema.items() if key != "description"}


def _tool_name(agent: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "_", agent).strip("_").lower()[:64] or "agent"


_log = logging.getLogger("agents_tools")
