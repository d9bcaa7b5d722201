"""`FunctionTool`: name, description, JSON Schema, and `on_invoke_tool(ctx, args_json)`."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, Generic, overload

from agents_tools.errors import UserError, UserTypeError
from agents_tools.schema.json_schema import copy_json, reader_of
from agents_tools.tool.arguments import arguments_to_json
from agents_tools.tool.failure import DEFAULT, default_tool_error_function
from agents_tools.tool.manual import ManualSource, schema_tool_source
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.options import check_options
from agents_tools.tool.policy import PolicyStack
from agents_tools.tool.records import ToolOrigin
from agents_tools.tool.stream import ToolStream

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Self

    from typing_extensions import ParamSpec, TypeVar

    from agents_tools.schema.function import StreamedParameters
    from agents_tools.tool.call import Call
    from agents_tools.tool.policy import Policy
    from agents_tools.tool.records import (
        CallOutcome,
        FailureErrorFunction,
        IsEnabled,
        ToolAnnotations,
    )
    from agents_tools.tool.source import ToolSource

    P = ParamSpec("P", default=...)
    R_co = TypeVar("R_co", default=Any, covariant=True)
    ValueT = TypeVar("ValueT")
else:  # defaults of type variables are for type checkers; they come with a heavier import
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R_co = TypeVar("R_co", covariant=True)
    ValueT = TypeVar("ValueT")

__all__ = ["FunctionTool"]

MAX_OUTPUT = 256 * 1024
"""The default maximum size of an output, in characters; omitted text becomes an artifact."""

_NAMES = ("__module__", "__name__", "__qualname__", "__doc__")
"""The attributes that a tool takes over from its function."""

_ATTRIBUTES = {
    "annotations": "_annotations",
    "failure_error_function": "_failure_function",
    "is_enabled": "_enabled",
    "metadata": "_metadata",
}
"""The attribute for each option of `with_` whose value can be `None`."""

_KEEP: Any = object()
"""The default of these options, which keeps the value."""


class FunctionTool(Generic[P, R_co]):
    """A tool that a model can call. Tools are immutable; `with_` returns a modified copy.

    `function_tool` and `streaming_tool` create a tool from a function. The constructor creates one
    from a JSON Schema and a function that is called with the context and the arguments as JSON
    text. That function validates the arguments itself, and its exceptions are raised to the
    caller. `from_schema` creates a tool that validates the arguments first.

    Args:
        name: The name for the model: 1 to 64 letters, digits, `_` and `-`.
        description: The description for the model.
        params_json_schema: The JSON Schema of the arguments.
        on_invoke_tool: The function that runs the tool.
        strict_json_schema: Whether to request strict mode from providers that have one.
        is_enabled: Whether agents offer the tool; a boolean, or a function of (context, agent).
        annotations: Hints about the behavior of the tool.
        output_json_schema: The JSON Schema of the results.
        metadata: Any other data; namespaces named after providers are merged at export.

    Raises:
        UserError: The name is not accepted by providers, or the schema is not of an object.
    """

    __test__ = False  # pytest must not collect a tool named test_…

    def __init__(
        self,
        *,
        name: str,
        description: str = "",
        params_json_schema: Mapping[str, Any],
        on_invoke_tool: Callable[[Any, str], Awaitable[Any]],
        strict_json_schema: bool = False,
        is_enabled: IsEnabled = True,
        annotations: ToolAnnotations | None = None,
        output_json_schema: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self._init(
            ManualSource(
                name,
                description,
                params_json_schema,
                on_invoke_tool,
                output_json_schema=output_json_schema,
            ),
            strict_json_schema=strict_json_schema,
            is_enabled=is_enabled,
            annotations=annotations,
            metadata=metadata,
            failure_error_function=None,
        )

    @classmethod
    def from_schema(
        cls,
        *,
        name: str,
        schema: type | Mapping[str, Any],
        on_invoke_tool: Callable[[Any, str], Awaitable[Any]],
        description: str = "",
        validate_arguments: bool = True,
        strict_json_schema: bool = False,
        is_enabled: IsEnabled = True,
        annotations: ToolAnnotations | None = None,
        output_json_schema: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        failure_error_function: FailureErrorFunction | None = DEFAULT,
    ) -> Self:
        """Create a tool from a schema; its function is called only with valid arguments.

        Args:
            name: The name for the model.
            schema: A pydantic model, a dataclass or a TypedDict, validated as in `function_tool`;
                or a raw JSON Schema, whose validation needs the extra `schema`.
            on_invoke_tool: The function that runs the tool, with the context and the arguments as
                JSON text.
            description: The description for the model.
            validate_arguments: Whether arguments are validated against the schema.
            strict_json_schema: Whether to request strict mode from providers that have one.
            is_enabled: Whether agents offer the tool.
            annotations: Hints about the behavior of the tool.
            output_json_schema: The JSON Schema of the results.
            metadata: Any other data.
            failure_error_function: Returns the text for the model when a call fails; `None`
                raises the error.

        Raises:
            UserError: The schema cannot be converted to JSON Schema, or not be validated against.
        """
        source: ToolSource
        if validate_arguments:
            source = schema_tool_source(
                name, description, schema, on_invoke_tool, output_json_schema
            )
        else:
            json_schema = (
                schema if isinstance(schema, Mapping) else reader_of(name, schema).json_schema
            )
            source = ManualSource(
                name,
                description,
                json_schema,
                on_invoke_tool,
                output_json_schema=output_json_schema,
                origin=ToolOrigin(kind="schema"),
            )
        return cls.of_source(
            source,
            strict_json_schema=strict_json_schema,
            is_enabled=is_enabled,
            annotations=annotations,
            metadata=metadata,
            failure_error_function=failure_error_function,
        )

    @classmethod
    def of_source(
        cls,
        source: ToolSource,
        *,
        strict_json_schema: bool = True,
        is_enabled: IsEnabled = True,
        annotations: ToolAnnotations | None = None,
        metadata: Mapping[str, Any] | None = None,
        failure_error_function: FailureErrorFunction | None = DEFAULT,
        enable_bracketing: bool = True,
        wrapped: Callable[..., Any] | None = None,
        binding: str = "",
    ) -> Self:
        """Create a tool from its source. All other ways of creating a tool call this one."""
        tool = cls.__new__(cls)
        tool._init(
            source,
            strict_json_schema=strict_json_schema,
            is_enabled=is_enabled,
            annotations=annotations,
            metadata=metadata,
            failure_error_function=failure_error_function,
        )
        tool._bracketing = enable_bracketing
        tool._binding = binding
        if binding == "class":
            source.as_method()
        if wrapped is not None:
            update_wrapper(tool, wrapped, _NAMES, updated=())
        return tool

    def _init(
        self,
        source: ToolSource,
        *,
        strict_json_schema: bool,
        is_enabled: IsEnabled,
        annotations: ToolAnnotations | None,
        metadata: Mapping[str, Any] | None,
        failure_error_function: FailureErrorFunction | None,
    ) -> None:
        check_options(
            source.name,
            strict_json_schema=strict_json_schema,
            is_enabled=is_enabled,
            annotations=annotations,
            metadata=metadata,
            failure_error_function=failure_error_function,
        )
        self._source = source
        self._name = self.__name__ = self.__qualname__ = source.name
        self._strict = strict_json_schema
        self._enabled = is_enabled
        self._annotations = annotations
        self._metadata = copy_json(metadata)
        self._failure_function = failure_error_function

    # Class-level defaults of attributes that most tools never set.
    __wrapped__: Callable[..., Any]
    __name__: str
    __qualname__: str
    _source: ToolSource
    _policies: tuple[Policy, ...] = ()
    _failure_function: Any = DEFAULT
    _bracketing: bool = True
    _binding: str = ""  # "self" and "class" for unbound methods, "static" for bound and static ones
    _max_output: int = MAX_OUTPUT
    _call: Any = None
    _description: str | None = None
    _schema: dict[str, Any] | None = None
    _bound_to: object | None = None
    _origin: ToolOrigin | None = None

    @property
    def name(self) -> str:
        """The name for the model."""
        return self._name

    @property
    def description(self) -> str:
        """The description for the model."""
        override = self._description
        return self._source.describe().description if override is None else override

    @property
    def json_schema(self) -> Mapping[str, Any]:
        """The JSON Schema of the arguments, not copied; do not modify it."""
        if self._schema is None:
            schema: dict[str, Any] = self._source.describe().json_schema
            if self._policies:
                schema = copy_json(schema)
                for policy in self._policies:
                    schema = policy.schema(schema)
            if self._name != self._source.name and schema.get("title") == (
                f"{self._source.name}_args"
            ):
                schema = {**schema, "title": f"{self._name}_args"}
            self._schema = schema
        return self._schema

    @property
    def params_json_schema(self) -> dict[str, Any]:
        """The JSON Schema (2020-12) of the arguments; each access returns a deep copy."""
        return typing.cast("dict[str, Any]", copy_json(self.json_schema))

    @property
    def strict_json_schema(self) -> bool:
        """Whether to request strict mode from providers that have one."""
        return self._strict

    @property
    def is_enabled(self) -> IsEnabled:
        """Return whether agents offer the tool: a boolean, or a function of (context, agent)."""
        return self._enabled

    @property
    def annotations(self) -> ToolAnnotations | None:
        """Hints about the behavior of the tool."""
        return self._annotations

    @property
    def output_json_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the results, or `None`; each access returns a deep copy."""
        schema = self._source.describe_output().json_schema
        return typing.cast("dict[str, Any] | None", copy_json(schema))

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Other data about the tool; changes to the lists and mappings in it have no effect."""
        own: Any = copy_json(self._metadata) if self._metadata else {}
        return types.MappingProxyType(own)

    @property
    def origin(self) -> ToolOrigin:
        """Where the tool comes from."""
        origin = self._origin
        if origin is None:
            origin = self._origin = self._source.origin
        return origin

    @property
    def source(self) -> ToolSource:
        """The source of the tool, which reads its arguments and runs its calls."""
        return self._source

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies of the tool, innermost first."""
        return self._policies

    @cached_property  # every call reads it several times, and a property is a call of its own
    def stack(self) -> PolicyStack:
        """The policies of the tool, sorted by the moments of a call."""
        return PolicyStack(self._policies)

    @cached_property
    def streamed_parameters(self) -> StreamedParameters | None:
        """The parameters that the tool reads while the model writes them; `None` for none."""
        return None if self.stack.needs_arguments else self._source.streamed_parameters

    @cached_property
    def runner(self) -> Callable[[Call], Coroutine[Any, Any, Any]]:
        """The function that runs a call with the policies around it, and returns the value."""
        if self._binding in {"self", "class"}:
            raise UserTypeError(
                f"Tool {self._name!r} is a method that is not bound to an instance. "
                "Use `instance.tool` instead of `Class.tool`."
            )
        return self.stack.wrap(self._source.run)

    @property
    def has_bracketing(self) -> bool:
        """Whether calls emit a start and an end event."""
        return self._bracketing

    @property
    def max_output(self) -> int:
        """The maximum size of an output for the model, in characters."""
        return self._max_output

    @property
    def failure_function(self) -> Any:
        """The failure function as it was passed: `DEFAULT` for the default one."""
        return self._failure_function

    @property
    def can_need_approval(self) -> bool:
        """Whether a person may have to approve calls."""
        return bool(self.stack.approvals)

    @property
    def on_invoke_tool(self) -> Callable[[Any, str], Coroutine[Any, Any, Any]]:
        """The async function that agents call with a context and the arguments as JSON text.

        The context is a `ToolContext`, a plain `RunContextWrapper`, or `None`. The function
        returns the output for the model: text or content blocks. If a call fails, it returns the
        text of the failure function, or raises the error if the failure function is `None`.
        """
        return self._invoke_for_model

    async def _invoke_for_model(self, ctx: Any, args_json: str) -> Any:
        outcome = await (self._call or self._load_invocation())(ctx, args_json)
        try:
            if outcome.error is None or self._failure_function is not None:
                return outcome.output
            raise outcome.error
        finally:
            del outcome  # the traceback keeps this frame, and the frame would keep the error

    @property
    def failure_error_function(self) -> Any:
        """The function that returns the text for a failed call; `None` if errors are raised."""
        return (
            default_tool_error_function
            if self._failure_function is DEFAULT
            else self._failure_function
        )

    @property
    def bound_to(self) -> object | None:
        """The instance or class that the tool is bound to; `None` if it is not a bound method."""
        return self._bound_to

    def parse(self, args_json: str) -> Mapping[str, Any]:
        """Validate arguments without calling the tool; policies are left out.

        Args:
            args_json: The arguments as JSON text, with the names of the tool itself.

        Returns:
            The canonical arguments: converted JSON values, with the defaults that have a JSON form.

        Raises:
            ModelBehaviorError: The arguments are invalid.
        """
        parsed: Any = copy_json(self._source.parse(args_json).data)
        return typing.cast("dict[str, Any]", parsed)

    def build(self) -> Self:
        """Build the schema and the validator now instead of at first use.

        Raises:
            UserError: The declaration is invalid.
        """
        self._source.build()
        _ = self.description, self.json_schema
        return self

    def with_(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        strict_json_schema: bool | None = None,
        is_enabled: IsEnabled = _KEEP,
        annotations: ToolAnnotations | None = _KEEP,
        metadata: Mapping[str, Any] | None = _KEEP,
        failure_error_function: FailureErrorFunction | None = _KEEP,
        enable_bracketing: bool | None = None,
        max_output: int | None = None,
        policy: Policy | None = None,
        policies: tuple[Policy, ...] | None = None,
        source: ToolSource | None = None,
    ) -> Self:
        """Return a copy of the tool with the passed values; the tool itself is not changed.

        Args:
            name: The name for the model.
            description: The description for the model.
            strict_json_schema: Whether to request strict mode from providers that have one.
            is_enabled: Whether agents offer the tool.
            annotations: Hints about the behavior of the tool.
            metadata: Any other data.
            failure_error_function: Returns the text for the model when a call fails; `None`
                raises the error.
            enable_bracketing: Whether calls emit a start and an end event.
            max_output: The maximum size of an output for the model, in characters.
            policy: A policy to add around the existing ones.
            policies: Policies that replace the existing ones, innermost first.
            source: A source that replaces the existing one.
        """
        copy = self.__class__.__new__(self.__class__)
        copy.__dict__.update(self.__dict__)
        copy._drop_computed()
        if source is not None:
            copy._source = source
        if policies is not None:
            copy._policies = policies
        if name is not None:
            copy._name = check_tool_name(name)
        if description is not None:
            copy._description = description
        if strict_json_schema is not None:
            copy._strict = strict_json_schema
        if enable_bracketing is not None:
            copy._bracketing = enable_bracketing
        if max_output is not None:
            copy._max_output = max_output
        if policy is not None:
            copy._policies = (*self._policies, policy)
        changed = {
            option: value
            for option, value in (
                ("is_enabled", is_enabled),
                ("annotations", annotations),
                ("metadata", copy_json(metadata)),
                ("failure_error_function", failure_error_function),
            )
            if value is not _KEEP
        }
        check_options(self._name, **changed)
        for option, value in changed.items():
            setattr(copy, _ATTRIBUTES[option], value)
        return copy

    def _drop_computed(self) -> None:
        """Drop what was computed from other attributes, which differ in a copy."""
        self._call = self._schema = None
        for name in ("stack", "streamed_parameters", "runner"):
            self.__dict__.pop(name, None)

    def to_json(self, value: object) -> str:
        """Return a value of the function as JSON text that matches the output schema.

        Args:
            value: The value that the function returned.

        Raises:
            UserError: The value, or a value in it, cannot be written as JSON.
        """
        from agents_tools.content.json_value import to_json

        return to_json(value, self._source.describe_output().serializer)

    async def call(self, ctx: object, args_json: str) -> CallOutcome:
        """Call the tool and return the outcome; for agent loops, servers and policies.

        Args:
            ctx: A `ToolContext`, a plain `RunContextWrapper`, or `None`.
            args_json: The arguments as JSON text.

        Returns:
            The outcome. It holds the exception if the tool raised one; only a cancellation from
            outside and Ctrl-C are raised.
        """
        return await (self._call or self._load_invocation())(ctx, args_json)

    def _load_invocation(self) -> Any:
        """Return the function that calls this tool; its module is loaded at the first call."""
        from functools import partial

        from agents_tools.tool.invocation import invoke

        self._call = partial(invoke, self)
        return self._call

    @overload
    async def invoke(
        self: FunctionTool[..., Coroutine[Any, Any, ValueT]],
        arguments: str | Mapping[str, Any] | None = None,
        /,
        *,
        context: Any = None,
        **kwargs: Any,
    ) -> ValueT: ...
    @overload
    async def invoke(
        self,
        arguments: str | Mapping[str, Any] | None = None,
        /,
        *,
        context: Any = None,
        **kwargs: Any,
    ) -> R_co: ...
    async def invoke(
        self,
        arguments: str | Mapping[str, Any] | None = None,
        /,
        *,
        context: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Call the tool from an application or a test.

        Args:
            arguments: A JSON string or a mapping.
            context: The application's `RunContextWrapper` or `ToolContext`.
            **kwargs: Arguments by name, instead of JSON text or in addition to a mapping.

        Returns:
            The value that the function returned.

        Raises:
            ModelBehaviorError: The arguments are invalid.
            Exception: The exception that the tool raised.
        """
        text = arguments_to_json(self._name, arguments, kwargs)
        outcome = await (self._call or self._load_invocation())(context, text, convert=False)
        try:
            if outcome.error is None:
                return outcome.value
            raise outcome.error
        finally:
            del outcome  # the traceback keeps this frame, and the frame would keep the error

    @overload
    def invoke_sync(
        self: FunctionTool[..., Coroutine[Any, Any, ValueT]],
        arguments: str | Mapping[str, Any] | None = None,
        /,
        *,
        context: Any = None,
        **kwargs: Any,
    ) -> ValueT: ...
    @overload
    def invoke_sync(
        self,
        arguments: str | Mapping[str, Any] | None = None,
        /,
        *,
        context: Any = None,
        **kwargs: Any,
    ) -> R_co: ...
    def invoke_sync(
        self,
        arguments: str | Mapping[str, Any] | None = None,
        /,
        *,
        context: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Call the tool from synchronous code, with or without a running loop; see `invoke`."""
        from agents_tools.concurrency.bridge import run_sync

        return run_sync(self.invoke, arguments, context=context, **kwargs)

    @overload
    def stream(
        self: FunctionTool[..., Coroutine[Any, Any, ValueT]],
        arguments: str | Mapping[str, Any] | None = None,
        /,
        *,
        context: Any = None,
        **kwargs: Any,
    ) -> ToolStream[ValueT]: ...
    @overload
    def stream(
        self,
        arguments: str | Mapping[str, Any] | None = None,
        /,
        *,
        context: Any = None,
        **kwargs: Any,
    ) -> ToolStream[R_co]: ...
    def stream(
        self,
        arguments: str | Mapping[str, Any] | None = None,
        /,
        *,
        context: Any = None,
        **kwargs: Any,
    ) -> ToolStream[Any]:
        """Call the tool and iterate over its events.

        ```python
        async with tool.stream(path="data.csv") as stream:
            async for event in stream:
                print(event)
        print(stream.result)
        ```

        Leaving the block early cancels the call. The parameters are those of `invoke`.
        """
        return ToolStream(self, context, arguments_to_json(self._name, arguments, kwargs))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the decorated function as if it were not decorated."""
        function = self.__dict__.get("__wrapped__")
        if function is None:
            raise UserTypeError(
                f"Tool {self._name!r} has no Python function to call directly. "
                "Use `await tool.invoke(...)` or `tool.invoke_sync(...)`."
            )
        return function(*args, **kwargs)

    def __set_name__(self, owner: type, name: str) -> None:
        """Mark the tool as a method if its function was defined in the class."""
        function = self.__dict__.get("__wrapped__")
        qualified = f"{owner.__qualname__}.{getattr(function, '__name__', name)}"
        if not self._binding and getattr(function, "__qualname__", "") == qualified:
            self._binding = "self"
            self._schema = None  # a policy can have read it
            self._source.as_method()

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> FunctionTool[..., R_co]: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        """Bind a tool that is a method to the instance, as Python does with functions."""
        if instance is not None and instance is owner and not self._binding:
            # Up to Python 3.12, `classmethod` binds what it wraps in this way.
            raise UserTypeError(
                f"Tool {self._name!r} is below @classmethod, which cannot bind it. Put the "
                "decorator of the tool above @classmethod."
            )
        target = instance
        if self._binding == "class":
            target = type(instance) if owner is None else owner
        if target is None or self._binding in {"", "static"}:
            return self
        bound = self.with_()
        bound._source = self._source.bind(target)
        bound._binding = "static"
        bound._bound_to = target
        bound.__wrapped__ = types.MethodType(self.__wrapped__, target)
        return bound

    def __copy__(self) -> Self:
        """Return the tool itself, because tools are immutable."""
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Self:
        """Return the tool itself, because tools are immutable."""
        del memo
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle the tool by the name that it has in its module or instance.

        Raises:
            UserError: The tool has no such name.
        """
        from agents_tools.tool.pickling import reference_to

        return reference_to(self)

    def __repr__(self) -> str:
        """Return the name and the policies, without building the schema."""
        policies = "".join(f" + {policy}" for policy in self._policies)
        return f"<{type(self).__name__} {self._name!r}{policies}>"

    def _repr_html_(self) -> str:
        from agents_tools.tool.notebook import tool_html

        policies = [str(policy) for policy in self._policies]
        try:
            return tool_html(self._name, policies, self.description, self.params_json_schema)
        except UserError as error:  # a notebook shows the traceback of other exceptions
            return tool_html(self._name, policies, str(error), {})
