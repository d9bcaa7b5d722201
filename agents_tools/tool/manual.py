"""Sources of tools that are made from a JSON Schema instead of a Python function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.errors import ModelBehaviorError
from agents_tools.schema.json_schema import check_output_schema, check_params_schema, reader_of
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.records import ToolOrigin
from agents_tools.tool.source import DescribedSource, ToolDescription

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agents_tools.schema.arguments import ArgumentReader, Arguments
    from agents_tools.tool.call import Call

__all__ = ["ManualSource", "SchemaSource", "schema_tool_source"]


class SchemaSource(DescribedSource):
    """A tool whose arguments are validated against a schema, and whose calls a function runs.

    Args:
        name: The name of the tool.
        description: The description for the model.
        reader: Validates the arguments.
        perform: Runs a call with valid arguments (`call.parsed`), and returns the value.
        json_schema: The JSON Schema of the arguments; by default that of the reader.
        output_json_schema: The JSON Schema of the results.
        origin: The origin of the tool.
        can_be_stopped: Whether a cancelled call stops.
    """

    def __init__(
        self,
        name: str,
        description: str,
        reader: ArgumentReader,
        perform: Callable[[Call], Awaitable[Any]],
        *,
        json_schema: Mapping[str, Any] | None = None,
        output_json_schema: Mapping[str, Any] | None = None,
        origin: ToolOrigin | None = None,
        can_be_stopped: bool = True,
    ) -> None:
        check_tool_name(name)
        schema = reader.json_schema if json_schema is None else json_schema
        super().__init__(
            name,
            ToolDescription(description, check_params_schema(name, schema)),
            check_output_schema(name, output_json_schema),
            origin or ToolOrigin(kind="schema"),
        )
        self._can_be_stopped = can_be_stopped
        self._reader = reader
        self._perform = perform

    @property
    def can_be_stopped(self) -> bool:
        """Whether a cancelled call stops."""
        return self._can_be_stopped

    def parse(self, args_json: str) -> Arguments:
        """Validate arguments.

        Raises:
            ModelBehaviorError: The arguments are invalid.
        """
        return self._reader.parse(args_json)

    async def run(self, call: Call) -> Any:
        """Run a call."""
        return await self._perform(call)


class ManualSource(DescribedSource):
    """A tool whose function reads its arguments itself.

    Args:
        name: The name of the tool.
        description: The description for the model.
        params_json_schema: The JSON Schema of the arguments.
        on_invoke_tool: The function, with the context and the arguments as JSON text.
        output_json_schema: The JSON Schema of the results.
        origin: The origin of the tool.
    """

    def __init__(
        self,
        name: str,
        description: str,
        params_json_schema: Mapping[str, Any],
        on_invoke_tool: Callable[[Any, str], Awaitable[Any]],
        *,
        output_json_schema: Mapping[str, Any] | None = None,
        origin: ToolOrigin | None = None,
    ) -> None:
        check_tool_name(name)
        super().__init__(
            name,
            ToolDescription(description, check_params_schema(name, params_json_schema)),
            check_output_schema(name, output_json_schema),
            origin or ToolOrigin(kind="manual"),
        )
        self._on_invoke_tool = on_invoke_tool

    def parse(self, args_json: str) -> Arguments:
        """Return the arguments as the model sent them, byte for byte."""
        from agents_tools.schema.arguments import Arguments

        return Arguments(args_json)

    async def run(self, call: Call) -> Any:
        """Run a call. A `ModelBehaviorError` of the function means that the arguments are invalid.

        Raises:
            Exception: The exception that the function raised.
        """
        try:
            return await self._on_invoke_tool(call.context, call.text)
        except ModelBehaviorError as error:
            call.reject_arguments(error)
            raise


def schema_tool_source(
    name: str,
    description: str,
    schema: type | Mapping[str, Any],
    on_invoke_tool: Callable[[Any, str], Awaitable[Any]],
    output_json_schema: Mapping[str, Any] | None,
) -> SchemaSource:
    """Return the source of a tool whose function gets valid arguments as JSON text.

    Raises:
        UserError: The schema cannot be described or enforced.
    """

    async def perform(call: Call) -> Any:
        return await on_invoke_tool(call.context, call.text)

    reader = reader_of(check_tool_name(name), schema)
    return SchemaSource(name, description, reader, perform, output_json_schema=output_json_schema)
