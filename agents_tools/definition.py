"""Class-based tools: a `ToolDefinition` ties an action, an observation and an executor together."""

from __future__ import annotations

import inspect
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, cast, runtime_checkable

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    field_serializer,
    model_serializer,
    model_validator,
)
from typing_extensions import TypeVar

from agents_tools._records import ToolAnnotations, ToolOrigin
from agents_tools._risk import with_risk
from agents_tools._threads import run_in_thread
from agents_tools.action import (
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
from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.tool import FunctionTool, check_tool_name, reader_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import SerializerFunctionWrapHandler

    from agents_tools._records import Call
    from agents_tools.context import ToolContext

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
]

ActionT = TypeVar("ActionT", bound=Action, default=Any)
ObservationT = TypeVar("ObservationT", default=Any)
AnyTool = FunctionTool[..., Any]


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
    executor: Any = Field(default=None, exclude=True, repr=False)
    annotations: ToolAnnotations | None = None
    meta: dict[str, Any] | None = None
    given_title: str | None = Field(default=None, alias="title")

    _made: dict[str, Any] = PrivateAttr(default_factory=dict[str, Any])

    def __init__(self, *, name: str | None = None, **fields: Any) -> None:
        own = name or type(self).name
        if not own:
            raise UserValueError(
                "A ToolDefinition needs a name: give name=, or make a subclass of it."
            )
        check_tool_name(own)
        action = normalized(fields.get("action_type"), own, Action)
        fields["action_type"] = action
        if fields.get("observation_type") is not None:
            fields["observation_type"] = normalized(
                fields["observation_type"], f"{own}_observation", Observation
            )
        executor = fields.get("executor")
        if executor is not None and not callable(executor):
            raise UserTypeError(
                f"The executor of tool {own!r} is a ToolExecutor; it is {executor!r:.80}."
            )
        super().__init__(**fields)
        object.__setattr__(self, "name", own)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Name the tools of a class after it."""
        super().__pydantic_init_subclass__(**kwargs)
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
        """Give a copy with another executor.

        Args:
            executor: What does the work of the copy.
        """
        copy = self.model_copy(update={"executor": executor})
        object.__setattr__(copy, "name", self.name)
        object.__setattr__(copy, "_made", {})
        return copy

    def as_executable(self) -> ExecutableTool:
        """Give itself, known to have an executor.

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
        return self._reader.read(json.dumps(dict(arguments)))

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
        if wanted is None or isinstance(result, (wanted, Observation)):
            return result
        if isinstance(result, Mapping):
            return wanted.model_validate(dict(cast("Mapping[str, Any]", result)))
        raise UserTypeError(
            f"The executor of tool {self.name!r} gave a {type(result).__name__}, not a "
            f"{wanted.__name__}. Return one, or leave observation_type out."
        )

    def close(self) -> None:
        """Close the executor, once, however many tools share it."""
        close_executors([self.executor])

    # --- the one kind of tool, and what is shown of it

    @property
    def _reader(self) -> Any:
        return self._described[1]

    @property
    def _described(self) -> tuple[dict[str, Any], Any]:
        known = self._made.get("reader")
        if known is None:
            described, settled = reader_of(self.name, self.action_type, enforce=True, strict=True)
            known = self._made["reader"] = (described, cast("Any", settled).__self__)
        return known

    def as_function_tool(self) -> AnyTool:
        """Give the tool as a `FunctionTool`: what agents, exports, servers and UIs take.

        The same one each time. Arguments are read strictly, by the published schema; a sync
        executor runs in a worker thread, and is told by `interrupt()` when nobody waits any more.
        """
        tool = self._made.get("tool")
        if tool is None:
            meta = {"mcp": {"_meta": dict(self.meta)}} if self.meta else None
            tool = self._made["tool"] = FunctionTool.declared(
                _Defined(self, lambda: self._described, self._observation),
                strict_json_schema=True,
                annotations=self.annotations,
                metadata=meta,
            )
        return tool

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
            tool = self.model_copy(
                update={"action_type": action_type, "_made": {}}
            ).as_function_tool()
        wire: dict[str, Any] = to_openai_chat(tool, strict=False)["function"]["parameters"]
        read_only = self.annotations is not None and self.annotations.read_only
        return with_risk(wire, self.name) if risk and not read_only else wire

    # --- as data

    @classmethod
    def resolve_kind(cls, kind: str) -> type[ToolDefinition[Any, Any]]:
        """Give the class of tools that has a name.

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
    def _dump(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {"kind": type(self).__name__, "name": self.name, **handler(self)}

    @model_validator(mode="wrap")
    @classmethod
    def _load(cls, data: Any, handler: Callable[[Any], Any]) -> Any:
        """Make the tool that a dump tells of: an instance of the class it names."""
        if not isinstance(data, Mapping) or "kind" not in data:
            return handler(data)
        given = dict(cast("Mapping[str, Any]", data))
        kind = cls.resolve_kind(given.pop("kind"))
        for field, base in (("action_type", Action), ("observation_type", Observation)):
            if isinstance(given.get(field), str):
                given[field] = resolved_kind(base, given[field])
        if given.get("name") == kind.name:
            del given["name"]
        given["title"] = given.pop("given_title", None)
        return kind(**given)


class _Defined:
    """The declaration behind the `FunctionTool` of a definition."""

    direct: None = None

    def __init__(
        self,
        definition: ToolDefinition[Any, Any],
        describe: Callable[[], tuple[dict[str, Any], Any]],
        observe: Callable[[Any], Any],
    ) -> None:
        self._definition = definition
        self._describe = describe
        self._observe = observe
        self.name = definition.name
        self.description = definition.description
        kind = type(definition)
        self.origin = ToolOrigin(kind="class", place=f"{kind.__module__}.{kind.__qualname__}")
        self._output: dict[str, Any] | None = None
        self._reads_itself = kind.action_from_arguments is ToolDefinition.action_from_arguments

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of the action."""
        return self._describe()[0]

    @property
    def output_json_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the observation."""
        kind = self._definition.observation_type
        if kind is not None and self._output is None:
            self._output = kind.model_json_schema(mode="serialization")
        return self._output

    @property
    def body(self) -> Call:
        """Read the arguments as an action, and run the executor with it."""
        return self._run

    async def _run(self, context: ToolContext[Any], args_json: str) -> Any:
        executor = self._definition.as_executable().executor
        action = self._action(args_json)
        context.validated = True
        given = context.context
        if inspect.iscoroutinefunction(type(executor).__call__):
            return self._observe(await executor(action, given))
        try:
            result = await run_in_thread(executor, action, given)
        except BaseException as error:
            interrupt = getattr(executor, "interrupt", None)
            if not isinstance(error, Exception) and interrupt is not None:
                context.cancel()
                interrupt()  # nobody waits for the thread any more
            raise
        return self._observe(await result if inspect.isawaitable(result) else result)

    def _action(self, args_json: str) -> Any:
        action = self._describe()[1].read(args_json)
        if self._reads_itself:
            return action
        arguments = action.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return self._definition.action_from_arguments(arguments)

    def check(self, args_json: str) -> None:
        """Check arguments without running anything."""
        self._describe()[1].read(args_json)

    def serializer(self) -> Any:
        """Give none: observations say themselves what is seen of them."""
        return None

    def method_of(self) -> None:
        """Change nothing: there is no function that could be a method."""

    def bind(self, instance: object) -> _Defined:
        """Give itself: there is no function that could be a method."""
        del instance
        return self
