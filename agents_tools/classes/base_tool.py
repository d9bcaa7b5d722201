"""`BaseTool`: tools with a class of parameters, which run with a session and JSON text."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from pydantic import BaseModel, ConfigDict

from agents_tools.classes.action import close_at_exit
from agents_tools.classes.class_tool import (
    ClassSource,
    in_thread,
)
from agents_tools.content.outputs import ToolResult
from agents_tools.errors import UserTypeError
from agents_tools.schema.arguments import ArgumentReader
from agents_tools.text.escape import describe_value
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from agents_tools.tool.call import Call
    from agents_tools.tool.records import ToolAnnotations

__all__ = ["BaseTool", "BaseToolParams"]


class BaseToolParams(BaseModel):
    """The parameters of a tool; the docstring is the description for models.

    Attributes:
        name: The name of the tool.
    """

    model_config = ConfigDict(extra="forbid")

    name: ClassVar[str]


class BaseTool(ABC):
    """A tool with a name and a class of parameters; a subclass implements `execute`.

    Attributes:
        name: The name of the tool; by default the `name` of `params_class`.
        params_class: The parameters: a subclass of `BaseToolParams`.
        annotations: Hints about the behavior of the tool.

    Raises:
        TypeError: A subclass has no name or no class of parameters.
    """

    name: ClassVar[str]
    params_class: ClassVar[type[BaseToolParams]]
    annotations: ClassVar[ToolAnnotations | None] = None

    _created: tuple[int, FunctionTool[..., Any], ArgumentReader] | None = None

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Create a tool, which is closed at the latest when the program exits."""
        tool = super().__new__(cls)
        close_at_exit(tool)
        return tool

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Check that a subclass has a name and parameters."""
        super().__init_subclass__(**kwargs)
        if inspect.isabstract(cls) or "execute" not in cls.__dict__:
            return
        params = getattr(cls, "params_class", None)
        if not (isinstance(params, type) and issubclass(params, BaseToolParams)):
            raise UserTypeError(
                f"{cls.__name__} has no params_class: expected a subclass of BaseToolParams."
            )
        if not getattr(cls, "name", None):
            if not getattr(params, "name", None):
                raise UserTypeError(
                    f"{cls.__name__} has no name. Set `name` in it or in {params.__name__}."
                )
            cls.name = params.name
        check_tool_name(cls.name)

    @abstractmethod
    def execute(self, session: object, args_json: str) -> tuple[str, dict[str, Any]]:
        """Run a call. Can be async.

        Args:
            session: The `context` of the run; `None` outside a run.
            args_json: The validated arguments as JSON text; see `parse_params`.

        Returns:
            The text for the model, and metadata for programs.
        """

    def close(self) -> None:  # noqa: B027 - most tools have no resources
        """Release the resources of the tool. Does nothing by default."""

    def parse_params(self, args_json: str) -> Any:
        """Return validated arguments as an instance of `params_class`.

        Args:
            args_json: The arguments as JSON text.

        Raises:
            ModelBehaviorError: An argument is invalid; the message names it.
        """
        return self._parts[1].read(args_json)

    def get_tool_spec(self) -> dict[str, Any]:
        """Return the definition of the tool in the format of the Chat Completions API."""
        from agents_tools.wire.openai_chat import to_openai_chat

        return to_openai_chat(self.as_function_tool(), strict=False)

    def as_function_tool(self) -> FunctionTool[..., Any]:
        """Return the tool as a `FunctionTool`, which is created once.

        A sync `execute` runs in a worker thread. The dictionary it returns is the `metadata` of
        the call's outcome.
        """
        return self._parts[0]

    @property
    def _parts(self) -> tuple[FunctionTool[..., Any], ArgumentReader]:
        """The function tool and its argument reader; a copy of this object creates its own."""
        parts = self._created
        if parts is None or parts[0] != id(self):
            kind: Any = self.params_class
            reader = ArgumentReader.of_type(self.name, kind)
            reader.json_schema.pop("description", None)  # the tool has its own
            source = ClassSource(
                name=self.name,
                description=inspect.getdoc(self.params_class) or inspect.getdoc(self) or "",
                kind=type(self),
                reader=lambda: reader,
                perform=self._perform,
            )
            tool = FunctionTool[..., Any].of_source(source, annotations=self.annotations)
            parts = self._created = (id(self), tool, reader)
        return parts[1:]

    async def _perform(self, call: Call) -> ToolResult:
        arguments = call.text
        if inspect.iscoroutinefunction(self.execute):
            result: Any = await cast("Any", self.execute(call.app_context, arguments))
        else:
            result = await in_thread(self.execute, call.app_context, arguments)
        if not isinstance(result, tuple) or len(cast("Any", result)) != _PAIR:
            raise UserTypeError(
                f"execute() of tool {self.name!r} returned an invalid value: expected (text, info)"
                f", got {describe_value(cast('Any', result))}."
            )
        text, info = cast("tuple[Any, Any]", result)
        return ToolResult(content=text, metadata=info or None)


_PAIR = 2
