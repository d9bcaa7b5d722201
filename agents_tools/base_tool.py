"""Tools whose parameters are a class of their own, run with a session and JSON text: `BaseTool`."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import BaseModel, ConfigDict

from agents_tools._records import ToolAnnotations, ToolOrigin
from agents_tools._text import describe_value
from agents_tools._threads import run_in_thread
from agents_tools.errors import UserTypeError
from agents_tools.outputs import ToolResult
from agents_tools.tool import FunctionTool, check_tool_name, reader_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools._records import Call
    from agents_tools.context import ToolContext

__all__ = ["BaseTool", "BaseToolParams"]


class BaseToolParams(BaseModel):
    """The parameters of a tool; the docstring is what models are told about the tool.

    Attributes:
        name: What models call the tool.
    """

    model_config = ConfigDict(extra="forbid")

    name: ClassVar[str]


class BaseTool(ABC):
    """A tool with its name and its class of parameters; a subclass writes `execute`.

    Attributes:
        name: What models call it; the name of its parameters by default.
        params_class: What it takes: a subclass of `BaseToolParams`.
        annotations: Hints about what it does.

    Raises:
        TypeError: A subclass has no name or no class of parameters.
    """

    name: ClassVar[str]
    params_class: ClassVar[type[BaseToolParams]]
    annotations: ClassVar[ToolAnnotations | None] = None

    _tool: FunctionTool[..., Any] | None = None
    _read: tuple[dict[str, Any], Any] | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Check that the class says what it is."""
        super().__init_subclass__(**kwargs)
        if inspect.isabstract(cls) or "execute" not in cls.__dict__:
            return
        params = getattr(cls, "params_class", None)
        if not (isinstance(params, type) and issubclass(params, BaseToolParams)):
            raise UserTypeError(
                f"{cls.__name__} has no params_class: give it a subclass of BaseToolParams."
            )
        if not getattr(cls, "name", None):
            if not getattr(params, "name", None):
                raise UserTypeError(
                    f"{cls.__name__} has no name: give one to it or to {params.__name__}."
                )
            cls.name = params.name
        check_tool_name(cls.name)

    @abstractmethod
    def execute(self, session: Any, args_json: str) -> tuple[str, dict[str, Any]]:
        """Do the work; may be async.

        Args:
            session: What the run was given as context; `None` outside of one.
            args_json: The arguments as JSON text, checked already when a model calls; see
                `parse_params`.

        Returns:
            What the model reads, and facts for programs.
        """

    def close(self) -> None:  # noqa: B027 - most tools hold nothing
        """Let go of what the tool holds. Nothing by default."""

    def parse_params(self, args_json: str) -> Any:
        """Read arguments as an instance of `params_class`.

        Args:
            args_json: The arguments as JSON text.

        Raises:
            ModelBehaviorError: They are not what the tool accepts; the message says where.
        """
        return self._reading[1].read(args_json)

    def get_tool_spec(self) -> dict[str, Any]:
        """Describe the tool for function calling, in the form of the Chat Completions API."""
        from agents_tools.wire.openai_chat import to_openai_chat

        return to_openai_chat(self.as_function_tool(), strict=False)

    def as_function_tool(self) -> FunctionTool[..., Any]:
        """Give the tool as a `FunctionTool`; the same one each time.

        A sync `execute` runs in a worker thread. The dictionary it returns is the `metadata` of
        the call's outcome.
        """
        if self._tool is None:
            self._tool = FunctionTool.declared(
                _Declared(self, lambda: self._reading),
                strict_json_schema=True,
                annotations=self.annotations,
            )
        return self._tool

    @property
    def _reading(self) -> tuple[dict[str, Any], Any]:
        if self._read is None:
            described, settled = reader_of(self.name, self.params_class, enforce=True, strict=True)
            self._read = (described, cast("Any", settled).__self__)
        return self._read


_PAIR = 2


class _Declared:
    """The declaration behind the `FunctionTool` of such a tool."""

    direct: None = None
    output_json_schema: dict[str, Any] | None = None

    def __init__(self, tool: BaseTool, reading: Callable[[], tuple[dict[str, Any], Any]]) -> None:
        self._tool = tool
        self._reading = reading
        self.name = tool.name
        self.description = inspect.getdoc(tool.params_class) or inspect.getdoc(tool) or ""
        kind = type(tool)
        self.origin = ToolOrigin(kind="class", place=f"{kind.__module__}.{kind.__qualname__}")

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of the parameters."""
        schema = self._reading()[0]
        return {key: value for key, value in schema.items() if key != "description"}

    @property
    def body(self) -> Call:
        """Check the arguments, and execute."""
        return self._run

    async def _run(self, context: ToolContext[Any], args_json: str) -> Any:
        settled = self._reading()[1].settled(args_json)
        context.validated = True
        execute = self._tool.execute
        if inspect.iscoroutinefunction(execute):
            answer: Any = await cast("Any", execute(context.context, settled))
        else:
            answer = await run_in_thread(execute, context.context, settled)
        if not isinstance(answer, tuple) or len(cast("Any", answer)) != _PAIR:
            raise UserTypeError(
                f"execute() of tool {self.name!r} returns (text, info); it gave "
                f"{describe_value(cast('Any', answer))}."
            )
        text, info = cast("tuple[Any, Any]", answer)
        return ToolResult(content=text, metadata=info or None)

    def check(self, args_json: str) -> None:
        """Check arguments without running anything."""
        self._reading()[1].read(args_json)

    def serializer(self) -> Any:
        """Give none: the tool answers in text."""
        return None

    def method_of(self) -> None:
        """Change nothing: there is no function that could be a method."""

    def bind(self, instance: object) -> _Declared:
        """Give itself: there is no function that could be a method."""
        del instance
        return self
