"""Classes as sources of tools."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

from agents_tools.concurrency.threads import run_in_thread
from agents_tools.schema.security_risk import RISK, take_risk
from agents_tools.text.json_limits import parse_object
from agents_tools.tool.records import ToolOrigin
from agents_tools.tool.source import OutputDescription, ToolDescription, ToolSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agents_tools.schema.arguments import ArgumentReader, Arguments
    from agents_tools.schema.security_risk import SecurityRisk
    from agents_tools.tool.call import Call

__all__ = ["ClassSource", "in_thread"]


class ClassSource(ToolSource):
    """The source of a class-based tool.

    Args:
        name: The name of the tool.
        description: The description of the tool.
        kind: The class of the tool.
        reader: Returns the argument reader; called when it is first needed.
        perform: Runs a call with valid arguments.
        output: Returns the JSON Schema of the result.
        asks_risk: Whether the model can add an assessment of the risk to the arguments.
    """

    def __init__(
        self,
        *,
        name: str,
        description: str,
        kind: type,
        reader: Callable[[], ArgumentReader],
        perform: Callable[[Call], Awaitable[Any]],
        output: Callable[[], dict[str, Any] | None] = lambda: None,
        asks_risk: bool = False,
    ) -> None:
        self.name = name
        self._about = description
        self._origin = ToolOrigin(kind="class", place=f"{kind.__module__}.{kind.__qualname__}")
        self._reader = reader
        self._perform = perform
        self._output = output
        self._asks_risk = asks_risk
        self._description: ToolDescription | None = None

    @property
    def origin(self) -> ToolOrigin:
        """The class of the tool."""
        return self._origin

    def describe(self) -> ToolDescription:
        """Return the description and the JSON Schema of the arguments."""
        if self._description is None:
            self._description = ToolDescription(self._about, self._reader().json_schema)
        return self._description

    def describe_output(self) -> OutputDescription:
        """Return the JSON Schema of the result."""
        return OutputDescription(self._output())

    def parse(self, args_json: str) -> Arguments:
        """Validate arguments; an assessment of the risk by the model is not one of them.

        Raises:
            ModelBehaviorError: The arguments are invalid.
        """
        return self._reader().parse(self._without_risk(args_json)[0])

    async def run(self, call: Call) -> Any:
        """Run a call."""
        if self._asks_risk and RISK in call.sent:
            call.security_risk = self._without_risk(call.sent)[1]
        return await self._perform(call)

    def _without_risk(self, args_json: str) -> tuple[str, SecurityRisk]:
        """Return the arguments without the risk assessment of the model, and the risk."""
        if (
            not self._asks_risk
            or RISK not in args_json
            or RISK in self.describe().json_schema["properties"]
            or (arguments := parse_object(args_json)) is None
            or RISK not in arguments
        ):
            return args_json, "UNKNOWN"
        risk = take_risk(arguments, self.name)
        return json.dumps(arguments, ensure_ascii=False), risk


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function in a worker thread, and await its result if that is awaitable."""
    result = await run_in_thread(function, *arguments)
    return await result if inspect.isawaitable(result) else result
