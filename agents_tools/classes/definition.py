"""Class-based tools: a `ToolDefinition` ties an action, an observation and an executor together."""

from __future__ import annotations

import inspect
import logging
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, cast, runtime_checkable

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_serializer,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema  # noqa: TC002 - read at run time
from pydantic_core import to_json
from typing_extensions import TypeVar

from agents_tools.classes.action import (
    Action,
    ImageContent,
    Observation,
    Schema,
    TextContent,
    ToolExecutor,
    close_executors,
    normalized,
    resolved_kind,
)
from agents_tools.classes.class_tool import (
    ClassDeclaration,
    ClassReader,
    in_thread,
    plain_arguments,
)
from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.schema.security_risk import with_risk
from agents_tools.tool.declaration import ToolAnnotations  # noqa: TC001 - the type of a field
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import SerializationInfo, SerializerFunctionWrapHandler

    from agents_tools.tool.context import ToolContext

__all__ = [
    "Action",
    "ExecutableTool",
    "ImageContent",
    "Observation",
    "Schema",
    "TextContent",
    "ToolBase",
    "ToolDefinition",
    "ToolExecutor",
    "close_executors",
    "working_dir_of",
]

logger = logging.getLogger("agents_tools")

ActionT = TypeVar("ActionT", bound=Action, default=Any)
ObservationT = TypeVar("ObservationT", default=Any)
AnyTool = FunctionTool[..., Any]

_dumped: ContextVar[object] = ContextVar("_dumped", default=None)
"""The tool that is just dumped with the fields of its own class."""


class NotExecutableError(UserError, NotImplementedError):
    """A tool was called that has no executor."""


@runtime_checkable
class ExecutableTool(Protocol):
    """A tool that certainly has an executor."""

    @property
    def name(self) -> str:
        """What models call it."""
        ...

    @property
    def executor(self) -> ToolExecutor[Any, Any]:
        """What does its work."""
        ...


class ToolBase(BaseModel, ABC, Generic[ActionT, ObservationT]):
    """What every class-based tool is: a record that can be made from a specification."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")

    @classmethod
    @abstractmethod
    def create(cls, *args: Any, **kwargs: Any) -> Sequence[ToolBase[Any, Any]]:
        """Make the tools of this class, with their executors.

        Args:
            *args: First `conv_state`, the state of the conversation, whose `workspace.working_dir`
                tools work in; `None` outside of one.
            **kwargs: What the tool can be configured with.

        Returns:
            The tools, also where it is a single one.
        """


class ToolDefinition(ToolBase[ActionT, ObservationT], Generic[ActionT, ObservationT]):
    """A tool made of three classes: what it takes, what it gives, and what does its work.

    Make one directly where nothing has to be configured, with `name=`; otherwise subclass it with
    a `create` that makes the executor. The name of a subclass is the one it gives in `name`, or
    that of the class in snake case without `_tool`.

    Attributes:
        description: What models are told about it.
        action_type: What it takes: a subclass of `Action`, or the JSON Schema of one.
        observation_type: What it gives: a subclass of `Observation`, a JSON Schema, or `None` for
            any JSON value.
        executor: What does its work; not part of dumps and schemas.
        annotations: Hints about what it does.
        meta: What is sent along to MCP clients as `_meta`.

    Raises:
        UserError: The name is not acceptable, or a type is none.
    """

    name: ClassVar[str] = ""

    description: str
    action_type: Any
    observation_type: Any = None
    executor: SkipJsonSchema[Any] = Field(default=None, exclude=True, repr=False)
    annotations: ToolAnnotations | None = None
    meta: dict[str, Any] | None = None
    given_title: str | None = Field(default=None, alias="title")

    _made: _CreatedTools = PrivateAttr(default_factory=lambda: _CreatedTools())  # noqa: PLW0108 - defined below

    def __init__(self, *, name: str | None = None, **fields: object) -> None:
        known = {"title", *(one for one in type(self).model_fields if one != "given_title")}
        if unknown := [one for one in fields if one not in known]:
            raise UserTypeError(
                f"{type(self).__name__} takes no {', '.join(unknown)}; it takes name, "
                f"{', '.join(sorted(known))}."
            )
        own = name or type(self).name
        if not own:
            raise UserValueError(
                "A ToolDefinition needs a name: give name=, or make a subclass of it."
            )
        check_tool_name(own)
        fields["action_type"] = normalized(fields.get("action_type"), "action_type", own, Action)
        if (observation := fields.get("observation_type")) is not None:
            fields["observation_type"] = normalized(
                observation, "observation_type", own, Observation
            )
        executor = fields.get("executor")
        if executor is not None and (not callable(executor) or isinstance(executor, type)):
            raise UserTypeError(
                f"The executor of tool {own!r} is an instance of a ToolExecutor; it is "
                f"{executor!r:.80}."
            )
        super().__init__(**fields)
        object.__setattr__(self, "name", own)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Name the tools of a class after it."""
        super().__pydantic_init_subclass__(**kwargs)
        if "name" in cls.model_fields:
            raise UserTypeError(f"Write `name: ClassVar[str] = ...` in {cls.__name__}.")
        if "name" not in cls.__dict__ and "[" not in cls.__name__:
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__)
            cls.name = snake.lower().removesuffix("_tool")

    @classmethod
    def create(cls, *args: Any, **kwargs: Any) -> Sequence[ToolDefinition[Any, Any]]:
        """Make the tools of this class: what a subclass writes, first with `conv_state`.

        Raises:
            UserError: The subclass has not done so.
        """
        del args, kwargs
        raise NotExecutableError(
            f"{cls.__name__} has no create(); write one that returns a list with its tools."
        )

    @property
    def title(self) -> str:
        """A name for people; the tool's name by default."""
        annotated = self.annotations.title if self.annotations is not None else None
        return self.given_title or annotated or self.name

    def set_executor(self, executor: ToolExecutor[Any, Any]) -> Self:
        """Return a copy with another executor.

        Args:
            executor: What does the work of the copy.
        """
        return self.model_copy(update={"executor": executor})

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy; what was made of the original is made again."""
        copy = super().model_copy(update=update, deep=deep)
        object.__setattr__(copy, "name", self.name)
        copy._made = _CreatedTools()  # noqa: SLF001 - its own class
        return copy

    def __copy__(self) -> Self:
        """Return a copy; what was made of the original is made again."""
        copy = super().__copy__()
        copy._made = _CreatedTools()  # noqa: SLF001 - its own class
        return copy

    def as_executable(self) -> ExecutableTool:
        """Return itself, known to have an executor.

        Raises:
            NotImplementedError: It has none.
        """
        if self.executor is None:
            raise NotExecutableError(
                f"Tool {self.name!r} has no executor. Give it one with set_executor(), or make it "
                f"with {type(self).__name__}.create()."
            )
        return cast("ExecutableTool", self)

    def action_from_arguments(self, arguments: Mapping[str, Any]) -> ActionT:
        """Make an action of the arguments of a call; to be overridden.

        Args:
            arguments: The arguments, as JSON values.

        Raises:
            ModelBehaviorError: They are not what the tool accepts.
        """
        text = to_json(dict(arguments)).decode()
        return self._reader.read(self._declaration.without_risk(text))

    def __call__(self, action: ActionT, conversation: Any = None) -> Any:
        """Run the executor and give what it observes; of an async one, an awaitable.

        Args:
            action: What to do.
            conversation: What the executor gets beside it.

        Raises:
            NotImplementedError: The tool has no executor.
        """
        executor = cast("Any", self.as_executable().executor)
        result = executor(action, conversation)
        return self._awaited(result) if inspect.isawaitable(result) else self._observation(result)

    async def _awaited(self, result: Any) -> Any:
        return self._observation(await result)

    def _observation(self, result: Any) -> Any:
        """Make what was declared of what the executor gave."""
        wanted = self.observation_type
        if (
            wanted is None
            or isinstance(result, wanted)
            or (isinstance(result, Observation) and result.is_error)
        ):
            return result
        if isinstance(result, Mapping):
            try:
                return wanted.model_validate(dict(cast("Mapping[str, Any]", result)))
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                raise UserTypeError(
                    f"The executor of tool {self.name!r} returned an invalid {wanted.__name__}: "
                    f"{'.'.join(map(str, first['loc']))}: {first['msg']}."
                ) from None
        raise UserTypeError(
            f"The executor of tool {self.name!r} returned a value of type {type(result).__name__}, "
            f"not of type {wanted.__name__}. Return one, or leave observation_type out."
        )

    def close(self) -> None:
        """Close the executor, once, however many tools share it."""
        close_executors([self.executor])

    # --- the one kind of tool, and what is shown of it

    @property
    def _reader(self) -> Any:
        made = self._made
        if made.reader is None:
            kind: Any = self.action_type
            made.reader = ClassReader(self.name, kind)
        return made.reader

    @property
    def _declaration(self) -> ClassDeclaration:
        made = self._made
        if made.declaration is None:
            read_only = self.annotations is not None and self.annotations.read_only
            made.declaration = ClassDeclaration(
                name=self.name,
                description=self.description,
                kind=type(self),
                reader=lambda: self._reader,
                perform=self._perform,
                output=self._output_schema,
                asks_risk=not read_only,
            )
        return made.declaration

    async def _perform(self, action: Any, args_json: str, context: ToolContext[Any]) -> Any:
        executor: Any = self.as_executable().executor
        if type(self).action_from_arguments is not ToolDefinition.action_from_arguments:
            arguments = plain_arguments(args_json)
            action = self.action_from_arguments(arguments if arguments is not None else {})
        if inspect.iscoroutinefunction(type(executor).__call__):
            return self._observation(await executor(action, context.context))
        try:
            result = await in_thread(executor, action, context.context)
        except BaseException as error:
            if not isinstance(error, Exception):  # nobody waits for the thread any more
                context.cancel()
                interrupt(executor)
            raise
        return self._observation(result)

    def _output_schema(self) -> dict[str, Any] | None:
        kind = self.observation_type
        if kind is not None and self._made.output is None:
            self._made.output = kind.model_json_schema(mode="serialization")
        return self._made.output

    def as_function_tool(self) -> AnyTool:
        """Return the tool as a `FunctionTool`: what agents, exports, servers and UIs take.

        The same one each time. Arguments are read by the rules for the parameters of functions; a
        sync executor runs in a worker thread, and is told by `interrupt()` when no one waits any
        more.
        """
        made = self._made
        if made.tool is None:
            made.tool = FunctionTool.declared(
                self._declaration,
                strict_json_schema=True,
                annotations=self.annotations,
                metadata={"mcp": {"_meta": dict(self.meta)}} if self.meta else None,
            )
        return made.tool

    def to_openai_tool(
        self,
        add_security_risk_prediction: bool = False,
        action_type: type[Schema] | None = None,
    ) -> dict[str, Any]:
        """Describe the tool for the Chat Completions API.

        Args:
            add_security_risk_prediction: Let the model also say how risky its call is, in an
                argument `security_risk`; tools that are read-only have none.
            action_type: Describe these arguments instead of the tool's own.
        """
        parameters = self._parameters(add_security_risk_prediction, action_type)
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": parameters,
        }
        return {"type": "function", "function": function}

    def to_responses_tool(
        self,
        add_security_risk_prediction: bool = False,
        action_type: type[Schema] | None = None,
    ) -> dict[str, Any]:
        """Describe the tool for the Responses API; the arguments are as in `to_openai_tool`."""
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": self._parameters(add_security_risk_prediction, action_type),
            "strict": False,
        }

    def to_mcp_tool(
        self,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Describe the tool for MCP, as one entry of a `tools/list` result.

        Args:
            input_schema: Describe these arguments instead of the tool's own.
            output_schema: Describe this result instead of the tool's own.
        """
        from agents_tools.wire.mcp import to_mcp

        wire = to_mcp(self.as_function_tool())
        wire["title"] = self.title
        if input_schema is not None:
            wire["inputSchema"] = dict(input_schema)
        if output_schema is not None:
            wire["outputSchema"] = dict(output_schema)
        return wire

    def _parameters(self, risk: bool, action_type: type[Schema] | None) -> dict[str, Any]:
        from agents_tools.wire.openai_chat import to_openai_chat

        tool = self.as_function_tool()
        if action_type is not None:
            tool = self.model_copy(update={"action_type": action_type}).as_function_tool()
        wire: dict[str, Any] = to_openai_chat(tool, strict=False)["function"]["parameters"]
        read_only = self.annotations is not None and self.annotations.read_only
        return with_risk(wire, self.name) if risk and not read_only else wire

    # --- as data

    @classmethod
    def resolve_kind(cls, kind: str) -> type[ToolDefinition[Any, Any]]:
        """Return the class of tools that has a name.

        Args:
            kind: The name of the class.

        Raises:
            ValueError: There is none; those that are known are listed.
        """
        return resolved_kind(ToolDefinition, kind)

    @field_serializer("action_type", "observation_type")
    def _dump_type(self, value: Any) -> Any:
        return None if value is None else value.__name__

    @model_serializer(mode="wrap")
    def _dump(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> Any:
        data = handler(self)
        own = set(type(self).model_fields) - set(ToolDefinition.model_fields)
        if not own <= data.keys() and _dumped.get() is not self:  # in a list of tools of all kinds
            token = _dumped.set(self)
            try:
                return self.model_dump(
                    mode=info.mode,
                    include=cast("Any", info.include),
                    exclude=cast("Any", info.exclude),
                    context=info.context,
                    by_alias=info.by_alias,
                    exclude_unset=info.exclude_unset,
                    exclude_defaults=info.exclude_defaults,
                    exclude_none=info.exclude_none,
                )
            finally:
                _dumped.reset(token)
        title = data.pop("given_title", None) or data.pop("title", None)
        return {"kind": type(self).__name__, "name": self.name, **data, "title": title}

    @model_validator(mode="wrap")
    @classmethod
    def _load(cls, data: Any, handler: Callable[[Any], Any]) -> Any:
        """Make the tool that a dump tells of: an instance of the class it names."""
        wanted = cls.__pydantic_generic_metadata__["origin"] or cls  # whatever its parameters are
        if isinstance(data, wanted):
            return data
        if not isinstance(data, Mapping) or "kind" not in data:
            return handler(data)
        given = dict(cast("Mapping[str, Any]", data))
        kind = cls.resolve_kind(given.pop("kind"))
        if not issubclass(kind, wanted):
            raise UserValueError(f"The dump is one of a {kind.__name__}, not of a {cls.__name__}.")
        for field, base in (("action_type", Action), ("observation_type", Observation)):
            if isinstance(given.get(field), str):
                given[field] = resolved_kind(base, given[field])
        if given.get("name") == kind.name:
            del given["name"]
        return kind(**given)


def working_dir_of(conv_state: Any, given: Any = None) -> Any:
    """Return the directory that a tool is to work in.

    Args:
        conv_state: The state of a conversation, as `create` gets it; `None` outside of one.
        given: What takes the place of its `workspace.working_dir`.

    Returns:
        The directory; `None` where neither says.
    """
    workspace = getattr(conv_state, "workspace", None)
    return getattr(workspace, "working_dir", None) if given is None else given


class _CreatedTools:
    """What is made of a definition when it is first needed; no part of what it is."""

    def __init__(self) -> None:
        self.reader: Any = None
        self.declaration: ClassDeclaration | None = None
        self.tool: AnyTool | None = None
        self.output: dict[str, Any] | None = None

    def __eq__(self, other: object) -> bool:
        """Say that definitions do not differ by what was made of them."""
        return isinstance(other, _CreatedTools)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        """Leave behind what was made: it is made again where the definition arrives."""
        return _CreatedTools, ()


def interrupt(executor: Any) -> None:
    """Let an executor end what no one waits for, in a thread that no one waits for either."""
    end = getattr(executor, "interrupt", None)
    if end is None:
        return

    def run() -> None:
        try:
            end()
        except BaseException:
            logger.exception("%s could not be interrupted.", type(executor).__name__)

    own = copy_context()  # in which current_context() is the call that was left
    threading.Thread(
        target=own.run, args=(run,), name="agents-tools-interrupt", daemon=True
    ).start()
