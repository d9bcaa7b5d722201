"""What every agent that becomes a tool has in common, whatever framework it is of."""

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
from agents_tools.tool.declaration import RawDeclaration, ToolOrigin
from agents_tools.tool.json_schema import schema_reader
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agents_tools.events.base import Emit, Event
    from agents_tools.tool.context import ToolContext

__all__ = ["EventTap", "extracted", "tool_of_agent"]


@dataclass(frozen=True)
class _TextInput:
    """What an agent is given that runs as a tool."""

    input: str


def tool_of_agent(
    agent: str,
    perform: Callable[[ToolContext[Any], str], Awaitable[Any]],
    *,
    tool_name: str | None,
    tool_description: str | None,
    parameters: Any,
    is_enabled: Any,
    enable_bracketing: bool,
    failure_error_function: Any,
    metadata: Mapping[str, Any] | None = None,
) -> FunctionTool[..., Any]:
    """Make a tool of an agent.

    Args:
        agent: The name of the agent.
        perform: Returns the agent a task, in the context of the call, and gives its answer.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it.
        parameters: The type of its input, which the agent then gets as JSON; one text `input` by
            default.
        is_enabled: Whether agents offer it.
        enable_bracketing: Whether start and end of a call appear in the stream of events.
        failure_error_function: What the model is told when the agent fails; `None` raises.
        metadata: Anything else.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form.
    """
    name = check_tool_name(tool_name or _tool_name(agent))
    schema, read = schema_reader(
        name, _TextInput if parameters is None else parameters, enforce=True
    )
    if schema.get("type", "object") != "object":
        raise UserTypeError(
            f"The parameters of the agent tool {name!r} are one object: give a pydantic model, a "
            f"dataclass or a TypedDict, not {parameters!r:.80}."
        )

    async def body(context: ToolContext[Any], args_json: str) -> Any:
        args_json = cast("Callable[[str], str]", read)(args_json)
        context.validated = True
        return await perform(
            context, json.loads(args_json)["input"] if parameters is None else args_json
        )

    declaration = RawDeclaration(
        name=name,
        description=tool_description or f"Give the agent {agent!r} a task and get its answer.",
        json_schema={**_undescribed(schema), "title": f"{name}_args"},
        output_json_schema=None,
        body=body,
        origin=ToolOrigin(kind="agent", agent=agent),
        reader=read,
    )
    return FunctionTool.declared(
        declaration,
        is_enabled=is_enabled,
        metadata=metadata,
        failure_error_function=failure_error_function,
        enable_bracketing=enable_bracketing,
    )


async def extracted(extractor: Callable[[Any], Any] | None, result: Any, default: Any) -> Any:
    """Return what a `custom_output_extractor` makes of a result; without one, the default."""
    if extractor is None:
        return default
    output = extractor(result)
    return await output if hasattr(output, "__await__") else output


_GRACE = 0.5
"""Seconds that an `on_stream` callback has for what is left when its run did not end well."""


class EventTap:
    """Hands events to an `on_stream` callback one by one, whether it is sync or async."""

    def __init__(self, callback: Callable[[Event], Any] | None, agent: str) -> None:
        self._callback = callback
        self._agent = agent
        self._channel: Channel | None = None
        self._task: asyncio.Future[None] | None = None

    async def __aenter__(self) -> tuple[Emit, ...]:
        """Return what takes the events; nothing if no one listens."""
        if self._callback is None:
            return ()
        self._channel = Channel()
        self._task = asyncio.ensure_future(self._tell(self._channel, self._callback))
        return (self._channel.push,)

    async def __aexit__(self, *exc_info: object) -> None:
        """Wait until the callback has got all events."""
        if self._task is None or self._channel is None:
            return
        self._channel.close()
        if exc_info[0] is None:
            await self._task
        elif not await finish(cast("Any", self._task), name=self._agent, grace=_GRACE):
            self._task.cancel()

    async def _tell(self, channel: Channel, callback: Callable[[Event], Any]) -> None:
        async for event in channel:
            try:
                told = callback(event)
                if hasattr(told, "__await__"):
                    await told
            except Exception:  # noqa: BLE001 - whoever listens never breaks a run
                _log.exception("on_stream of agent %r failed on %r.", self._agent, event.type)


def _undescribed(schema: dict[str, Any]) -> dict[str, Any]:
    """Leave out what the docstring of the type says: models read the description of the tool."""
    return {key: value for key, value in schema.items() if key != "description"}


def _tool_name(agent: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "_", agent).strip("_").lower()[:64] or "agent"


_log = logging.getLogger("agents_tools")
