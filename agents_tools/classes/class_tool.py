"""The declaration of class-based tools."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agents_tools.concurrency.threads import run_in_thread
from agents_tools.schema.security_risk import RISK, take_risk
from agents_tools.tool.records import ToolOrigin

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.schema.arguments import ArgumentReader
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.records import Call

__all__ = ["ClassDeclaration", "in_thread", "plain_arguments"]


class ClassDeclaration:
    """The declaration of a class-based tool.

    Args:
        name: The name of the tool.
        description: The description of the tool.
        kind: The class of the tool.
        reader: Returns the argument reader; called when it is first needed.
        perform: Runs the call, with the validated arguments, their JSON text and the context.
        output: Returns the JSON Schema of the result.
        asks_risk: Whether the model can add an assessment of the risk to the arguments.
    """

    direct: None = None

    def __init__(
        self,
        *,
        name: str,
        description: str,
        kind: type,
        reader: Callable[[], ArgumentReader],
        perform: Callable[[Any, str, ToolContext[Any]], Any],
        output: Callable[[], dict[str, Any] | None] = lambda: None,
        asks_risk: bool = False,
    ) -> None:
        self.name = name
        self.description = description
        self.origin = ToolOrigin(kind="class", place=f"{kind.__module__}.{kind.__qualname__}")
        self._reader = reader
        self._perform = perform
        self._output = output
        self._asks_risk = asks_risk
        self._schema: dict[str, Any] | None = None

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        if self._schema is None:
            self._schema = self._reader().json_schema
        return self._schema

    @property
    def output_json_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the result."""
        return self._output()

    @property
    def body(self) -> Call:
        """The function that validates the arguments and runs the call."""
        return self._run

    async def _run(self, context: ToolContext[Any], args_json: str) -> Any:
        args_json = self.without_risk(args_json, context)
        arguments = self._reader().read(args_json)
        context.validated = True
        return await self._perform(arguments, args_json, context)

    def without_risk(self, args_json: str, context: ToolContext[Any] | None = None) -> str:
        """Remove the risk assessment of the model from arguments, and store it in the context."""
        if not self._asks_risk or RISK not in args_json or RISK in self.json_schema["properties"]:
            return args_json
        args_json, risk = take_risk(args_json, self.name)
        if context is not None:
            context.security_risk = risk
        return args_json

    def check(self, args_json: str) -> None:
        """Validate arguments without running anything."""
        self._reader().read(self.without_risk(args_json))

    def serializer(self) -> Any:
        """Return `None`, because the results convert themselves."""
        return None

    def method_of(self) -> None:
        """Do nothing, because the tool has no function that could be a method."""

    def bind(self, instance: object) -> ClassDeclaration:
        """Return this declaration, because the tool has no function that could be a method."""
        del instance
        return self


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function in a worker thread, and await its result if that is awaitable."""
    result = await run_in_thread(function, *arguments)
    return await result if inspect.isawaitable(result) else result


def plain_arguments(args_json: str) -> dict[str, Any] | None:
    """Return validated arguments as JSON values; `None` if they are not an object."""
    data: Any = json.loads(args_json or "{}")
    while isinstance(data, str):
        data = json.loads(data)
    return dict(cast("Mapping[str, Any]", data)) if isinstance(data, Mapping) else None
