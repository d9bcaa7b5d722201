"""`ToolDefinition`, which combines an action, an observation and an executor into a tool."""

from __future__ import annotations

import inspect
import json
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
    ClassSource,
    in_thread,
)
from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.schema.arguments import ArgumentReader
from agents_tools.schema.security_risk import with_risk
from agents_tools.schema.signature import mismatched_signature
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.records import ToolAnnotations  # noqa: TC001 - the type of a field
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import SerializationInfo, SerializerFunctionWrapHandler

    from agents_tools.schema.arguments import Arguments
    from agents_tools.tool.call import Call

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
"""The tool that is being dumped with the fields of its subclass."""


class NotExecutableError(UserError, NotImplementedError):
    """A tool without an executor was called, or its class has no `create`."""


@runtime_checkable
class ExecutableTool(Protocol):
    """A tool that has an executor."""

    @property
    def name(self) -> str:
        """The name of the tool."""
        ...

    @property
    def executor(self) -> ToolExecutor[Any, Any]:
        """The executor of the tool."""
        ...


class ToolBase(BaseModel, ABC, Generic[ActionT, ObservationT]):
    """The base class of class-based tools, which are records created from a specification."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")

    @classmethod
    @abstractmethod
    def create(cls, *args: Any, **kwargs: Any) -> Sequence[ToolBase[Any, Any]]:
        """Create the tools of this class, with their executors.

        Args:
            *args: First `conv_state`, the state of the conversation, whose `workspace.working_dir`
                the tools work in; `None` outside a conversation.
            **kwargs: The settings of the tools.

        Returns:
            A list of tools, even for a single tool.
        """


class ToolDefinition(ToolBase[ActionT, ObservationT], Generic[ActionT, ObservationT]):
    """A tool with a class for its arguments, one for its result, and an executor.

    Create an instance with `name=` if the tool has no settings. Otherwise write a subclass with a
    `create` that creates the executor. The name of a subclass is its `name`, or the name of the
    class in snake case without `_tool`.

    Attributes:
        description: The description for models.
        action_type: The arguments: a subclass of `Action`, or a JSON Schema.
        observation_type: The result: a subclass of `Observation`, a JSON Schema, or `None` for any
            JSON value.
        executor: Runs the calls; not part of dumps and schemas.
        annotations: Hints about the behavior of the tool.
        meta: The `_meta` of the tool for MCP clients.

    Raises:
        UserError: The name, a type or the executor is invalid.
    """

    name: ClassVar[str] = ""

    description: str
    action_type: Any
    observation_type: Any = None
    executor: SkipJsonSchema[Any] = Field(default=None, exclude=True, repr=False)
    annotations: ToolAnnotations | None = None
    meta: dict[str, Any] | None = None
    given_title: str | None = Field(default=None, alias="title")

    _created: _CreatedTools = PrivateAttr(default_factory=lambda: _CreatedTools())  # noqa: PLW0108 - defined below

    def __init__(self, *, name: str | None = None, **fields: object) -> None:
        known = {"title", *(field for field in type(self).model_fields if field != "given_title")}
        if unknown := [field for field in fields if field not in known]:
            raise UserTypeError(
                f"{type(self).__name__} has unknown parameters: expected name, "
                f"{', '.join(sorted(known))}, got {', '.join(unknown)}."
            )
        own = name or type(self).name
        if not own:
            raise UserValueError(
                "The ToolDefinition has no name. Pass name=, or write a subclass of ToolDefinition."
            )
        check_tool_name(own)
        fields["action_type"] = normalized(fields.get("action_type"), "action_type", own, Action)
        if (observation := fields.get("observation_type")) is not None:
            fields["observation_type"] = normalized(
                observation, "observation_type", own, Observation
            )
        _check_executor(own, fields.get("executor"))
        super().__init__(**fields)
        object.__setattr__(self, "name", own)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Set the name of a subclass, unless it has one."""
        super().__pydantic_init_subclass__(**kwargs)
        if "name" in cls.model_fields:
            raise UserTypeError(
                f"The name of {cls.__name__} is a field. Write `name: ClassVar[str] = ...` instead."
            )
        if "name" not in cls.__dict__ and "[" not in cls.__name__:
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__)
            cls.name = snake.lower().removesuffix("_tool")

    @classmethod
    def create(cls, *args: Any, **kwargs: Any) -> Sequence[ToolDefinition[Any, Any]]:
        """Create the tools of this class; subclasses override it, with `conv_state` first.

        Raises:
            UserError: The subclass does not override it.
        """
        del args, kwargs
        raise NotExecutableError(
            f"{cls.__name__} has no create(). Write one that returns a list of tools."
        )

    @property
    def title(self) -> str:
        """A name for people; the tool's name by default."""
        annotated = self.annotations.title if self.annotations is not None else None
        return self.given_title or annotated or self.name

    def set_executor(self, executor: ToolExecutor[Any, Any]) -> Self:
        """Return a copy with another executor.

        Args:
            executor: The executor of the copy.

        Raises:
            UserError: The executor is invalid.
        """
        _check_executor(self.name, executor)
        return self.model_copy(update={"executor": executor})

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with its own function tool and argument reader."""
        copy = super().model_copy(update=update, deep=deep)
        object.__setattr__(copy, "name", self.name)
        copy._created = _CreatedTools()  # noqa: SLF001 - its own class
        return copy

    def __copy__(self) -> Self:
        """Return a copy with its own function tool and argument reader."""
        copy = super().__copy__()
        copy._created = _CreatedTools()  # noqa: SLF001 - its own class
        return copy

    def as_executable(self) -> ExecutableTool:
        """Return this tool, typed as one with an executor.

        Raises:
            NotImplementedError: The tool has no executor.
        """
        if self.executor is None:
            raise NotExecutableError(
                f"Tool {self.name!r} has no executor. Set one with set_executor(), or create the "
                f"tool with {type(self).__name__}.create()."
            )
        return cast("ExecutableTool", self)

    def action_from_arguments(self, arguments: Mapping[str, Any]) -> ActionT:
        """Return the action for the arguments of a call. Can be overridden.

        Args:
            arguments: The arguments, as JSON values.

        Raises:
            ModelBehaviorError: An argument is invalid.
        """
        text = to_json(dict(arguments)).decode()
        return self._source.parse(text).values()

    def __call__(self, action: ActionT, conversation: Any = None) -> Any:
        """Run the executor and return its observation, or an awaitable of it if it is async.

        Args:
            action: The action.
            conversation: The second argument of the executor.

        Raises:
            NotImplementedError: The tool has no executor.
        """
        executor = cast("Any", self.as_executable().executor)
        result = executor(action, conversation)
        return self._awaited(result) if inspect.isawaitable(result) else self._observation(result)

    async def _awaited(self, result: Any) -> Any:
        return self._observation(await result)

    def _observation(self, result: Any) -> Any:
        """Return the result of the executor as an instance of `observation_type`."""
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
            f"The executor of tool {self.name!r} returned an invalid value: expected a "
            f"{wanted.__name__}, got a value of type {type(result).__name__}. Return a "
            f"{wanted.__name__}, or leave observation_type out."
        )

    def close(self) -> None:
        """Close the executor, once even if several tools share it."""
        close_executors([self.executor])

    # --- conversion to a function tool and to wire formats

    @property
    def _reader(self) -> Any:
        created = self._created
        if created.reader is None:
            kind: Any = self.action_type
            created.reader = ArgumentReader.of_type(self.name, kind)
        return created.reader

    @property
    def _source(self) -> ClassSource:
        created = self._created
        if created.source is None:
            read_only = self.annotations is not None and self.annotations.read_only
            created.source = ClassSource(
                name=self.name,
                description=self.description,
                kind=type(self),
                reader=lambda: self._reader,
                perform=self._perform,
                output=self._output_schema,
                asks_risk=not read_only,
                is_async=lambda: _is_async(self.executor),
            )
        return created.source

    async def _perform(self, call: Call) -> Any:
        executor: Any = self.as_executable().executor
        parsed = cast("Arguments", call.parsed)
        if type(self).action_from_arguments is ToolDefinition.action_from_arguments:
            action = parsed.values()
        else:
            action = self.action_from_arguments(json.loads(parsed.text))
        if _is_async(executor):
            return self._observation(await executor(action, call.app_context))
        try:
            result = await in_thread(executor, action, call.app_context)
        except BaseException as error:
            if not isinstance(error, Exception):  # the call was cancelled while the thread runs
                call.cancel()
                interrupt(executor)
            raise
        return self._observation(result)

    def _output_schema(self) -> dict[str, Any] | None:
        kind = self.observation_type
        if kind is not None and self._created.output is None:
            self._created.output = kind.model_json_schema(mode="serialization")
        return self._created.output

    def as_function_tool(self) -> AnyTool:
        """Return the tool as a `FunctionTool` for agents, exports, servers and UIs.

        The function tool is created once. Arguments are validated like the parameters of functions.
        A sync executor runs in a worker thread; if the call is cancelled, its `interrupt()` is
        called.
        """
        created = self._created
        if created.tool is None:
            created.tool = FunctionTool.of_source(
                self._source,
                strict_json_schema=True,
                annotations=self.annotations,
                metadata={"mcp": {"_meta": dict(self.meta)}} if self.meta else None,
            )
        return created.tool

    def to_openai_tool(
        self,
        add_security_risk_prediction: bool = False,
        action_type: type[Schema] | None = None,
    ) -> dict[str, Any]:
        """Return the definition of the tool in the format of the Chat Completions API.

        Args:
            add_security_risk_prediction: Whether to add an argument `security_risk`, with which
                the model assesses its call; read-only tools never have it.
            action_type: The class of the arguments, instead of the tool's own.
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
        """Return the definition in the format of the Responses API; see `to_openai_tool`."""
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
        """Return the definition of the tool as an entry of an MCP `tools/list` result.

        Args:
            input_schema: The JSON Schema of the arguments, instead of the tool's own.
            output_schema: The JSON Schema of the result, instead of the tool's own.
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

    # --- serialization

    @classmethod
    def resolve_kind(cls, kind: str) -> type[ToolDefinition[Any, Any]]:
        """Return the class of tools with a name.

        Args:
            kind: The name of the class.

        Raises:
            ValueError: There is no such class; the message lists the existing ones.
        """
        return resolved_kind(ToolDefinition, kind)

    @field_serializer("action_type", "observation_type")
    def _dump_type(self, value: Any) -> Any:
        return None if value is None else value.__name__

    @model_serializer(mode="wrap")
    def _dump(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> Any:
        data = handler(self)
        own = set(type(self).model_fields) - set(ToolDefinition.model_fields)
        if not own <= data.keys() and _dumped.get() is not self:  # dumped as a ToolDefinition
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
        """Create a tool from a dump, as an instance of the class that the dump names."""
        wanted = cls.__pydantic_generic_metadata__["origin"] or cls  # without type parameters
        if isinstance(data, wanted):
            return data
        if not isinstance(data, Mapping) or "kind" not in data:
            return handler(data)
        fields = dict(cast("Mapping[str, Any]", data))
        kind = cls.resolve_kind(fields.pop("kind"))
        if not issubclass(kind, wanted):
            raise UserValueError(
                f"The dump has the wrong kind: expected a {cls.__name__}, got a {kind.__name__}."
            )
        for field, base in (("action_type", Action), ("observation_type", Observation)):
            if isinstance(fields.get(field), str):
                fields[field] = resolved_kind(base, fields[field])
        if fields.get("name") == kind.name:
            del fields["name"]
        return kind(**fields)


def working_dir_of(conv_state: Any, given: Any = None) -> Any:
    """Return the working directory of a tool.

    Args:
        conv_state: The state of a conversation, as in `create`; `None` outside a conversation.
        given: A directory that overrides the `workspace.working_dir` of the state.

    Returns:
        The directory; `None` if there is neither.
    """
    workspace = getattr(conv_state, "workspace", None)
    return getattr(workspace, "working_dir", None) if given is None else given


class _CreatedTools:
    """The objects that are created from a definition when needed; not part of its value."""

    def __init__(self) -> None:
        self.reader: Any = None
        self.source: ClassSource | None = None
        self.tool: AnyTool | None = None
        self.output: dict[str, Any] | None = None

    def __eq__(self, other: object) -> bool:
        """Return true, so that these objects do not affect the equality of definitions."""
        return isinstance(other, _CreatedTools)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        """Pickle without the objects, which are created again when needed."""
        return _CreatedTools, ()


def _check_executor(tool: str, executor: object) -> None:
    """Raise a `UserError` if an executor cannot be called with an action and a conversation."""
    if executor is None:
        return
    if not callable(executor) or isinstance(executor, type):
        raise UserTypeError(
            f"The executor of tool {tool!r} is invalid: expected a ToolExecutor instance, got "
            f"{executor!r:.80}."
        )
    signature = mismatched_signature(executor, "action", "conversation")
    if signature is not None:
        raise UserTypeError(
            f"The executor of tool {tool!r} is invalid: expected the parameters (action, "
            f"conversation), got {signature}. Write "
            "`def __call__(self, action, conversation=None)`."
        )


def interrupt(executor: Any) -> None:
    """Call `interrupt()` of an executor in a separate thread, without waiting for it."""
    end = getattr(executor, "interrupt", None)
    if end is None:
        return

    def run() -> None:
        try:
            end()
        except BaseException:
            logger.exception("%s could not be interrupted.", type(executor).__name__)

    context = copy_context()  # so that current_context() returns the cancelled call
    threading.Thread(
        target=context.run, args=(run,), name="agents-tools-interrupt", daemon=True
    ).start()


def _is_async(executor: Any) -> bool:
    return inspect.iscoroutinefunction(type(executor).__call__)
