"""Tools whose parameters are a class of their own, run with a session and JSON text: `BaseTool`."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from pydantic import BaseModel, ConfigDict

from agents_tools.classes.action import close_at_exit
from agents_tools.classes.class_tool import (
    ClassDeclaration,
    ClassReader,
    in_thread,
    plain_arguments,
)
from agents_tools.content.outputs import ToolResult
from agents_tools.errors import UserTypeError
from agents_tools.text.escape import describe_value
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.declaration import ToolAnnotations

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

    _made: tuple[int, FunctionTool[..., Any], ClassReader] | None = None

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Make a tool that is closed at the exit of the program at the latest."""
        made = super().__new__(cls)
        close_at_exit(made)
        return made

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
    def execute(self, session: object, args_json: str) -> tuple[str, dict[str, Any]]:
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
        return self._parts[1].read(args_json)

    def get_tool_spec(self) -> dict[str, Any]:
        """Describe the tool for function calling, in the form of the Chat Completions API."""
        from agents_tools.wire.openai_chat import to_openai_chat

        return to_openai_chat(self.as_function_tool(), strict=False)

    def as_function_tool(self) -> FunctionTool[..., Any]:
        """Return the tool as a `FunctionTool`; the same one each time.

        A sync `execute` runs in a worker thread. The dictionary it returns is the `metadata` of
        the call's outcome.
        """
        return self._parts[0]

    @property
    def _parts(self) -> tuple[FunctionTool[..., Any], ClassReader]:
        """The tool and what reads its arguments; a copy of a tool makes its own."""
        made = self._made
        if made is None or made[0] != id(self):
            kind: Any = self.params_class
            reader = ClassReader(self.name, kind)
            reader.schema.pop("description", None)  # it is that of the tool
            declaration = ClassDeclaration(
                name=self.name,
                description=inspect.getdoc(self.params_class) or inspect.getdoc(self) or "",
                kind=type(self),
                reader=lambda: reader,
                perform=self._perform,
            )
            tool = FunctionTool[..., Any].declared(declaration, annotations=self.annotations)
            made = self._made = (id(self), tool, reader)
        return made[1:]

    async def _perform(self, _: Any, args_json: str, context: ToolContext[Any]) -> ToolResult:
        arguments = plain_arguments(args_json)
        settled = args_json if arguments is None else json.dumps(arguments, ensure_ascii=False)
        if inspect.iscoroutinefunction(self.execute):
            answer: Any = await cast("Any", self.execute(context.context, settled))
        else:
            answer = await in_thread(self.execute, context.context, settled)
        if not isinstance(answer, tuple) or len(cast("Any", answer)) != _PAIR:
            raise UserTypeError(
                f"execute() of tool {self.name!r} returns (text, info); it gave "
                f"{describe_value(cast('Any', answer))}."
            )
        text, info = cast("tuple[Any, Any]", answer)
        return ToolResult(content=text, metadata=info or None)


_PAIR = 2
