"""The argument reader and the declaration of class-based tools."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import ValidationError

from agents_tools.concurrency.threads import run_in_thread
from agents_tools.errors import UserError
from agents_tools.schema.arguments import TypeReader
from agents_tools.schema.function import function_schema
from agents_tools.schema.security_risk import RISK, take_risk
from agents_tools.schema.types import leaf_of
from agents_tools.tool.declaration import ToolOrigin
from agents_tools.tool.json_schema import aliases_of, json_schema_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

    from agents_tools.schema.arguments import ArgumentReader
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.declaration import Call

__all__ = ["ClassDeclaration", "ClassReader", "in_thread", "plain_arguments"]


class ClassReader(TypeReader):
    """Reads arguments into a Pydantic model, by the rules for the parameters of functions.

    Arguments that match the schema exactly are passed to the model at once. Others are first read
    field by field, like the parameters of a function (text for a number is accepted, a boolean is
    not), and then passed to the model and its validators.

    Args:
        tool: The tool's name, for error messages.
        kind: The model.
    """

    def __init__(self, tool: str, kind: type[BaseModel]) -> None:
        leaf = leaf_of(kind)
        self._kind = kind
        self._by_field: Callable[[str], dict[str, Any]] | None = None
        self.schema = json_schema_of(leaf)
        super().__init__(tool, leaf, self.schema, strict=True, other_keys=aliases_of(kind))

    def _look_closely(self, text: str) -> Any:
        try:
            return super()._look_closely(text)
        except ValidationError:
            values = self._fields_of(text)
            if values is None:
                raise
        return self._kind.__pydantic_validator__.validate_python(
            values, by_alias=True, by_name=True
        )

    def _fields_of(self, text: str) -> dict[str, Any] | None:
        """Read the fields as parameters; `None` if the model cannot be split into fields."""
        if self._by_field is None:
            self._by_field = _as_parameters(self._tool, self._kind)
        return self._by_field(text) if self._by_field is not None else None


def _as_parameters(tool: str, kind: type[BaseModel]) -> Callable[[str], dict[str, Any]] | None:
    """Return a function that reads the fields of a model like parameters; `None` if impossible."""
    fields = kind.__pydantic_fields__
    if not fields or kind.model_config.get("extra") == "allow":
        return None

    def function(**_: Any) -> None: ...

    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=field, annotation=field.annotation
            )
            for name, field in fields.items()
        ]
    )
    function.__annotations__ = {name: field.annotation for name, field in fields.items()}
    try:
        return function_schema(function, name_override=tool, use_docstring_info=False).read
    except UserError:
        return None


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
            reader: Any = self._reader()
            self._schema = cast("dict[str, Any]", reader.schema)
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
