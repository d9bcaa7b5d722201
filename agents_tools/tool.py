"""A tool: name, description, JSON Schema, and `on_invoke_tool(ctx, args_json)`."""

from __future__ import annotations

import re
import time
import types
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, overload

from agents_tools._secrets import guard_logs, has_secrets, mask, mask_registered
from agents_tools.context import ToolContext, enter_scope, leave_scope
from agents_tools.errors import (
    AgentsToolsError,
    Interruption,
    ModelBehaviorError,
    ToolCancelledError,
    ToolDeniedError,
    ToolError,
    ToolLostError,
    ToolOverloadedError,
    ToolTimeoutError,
    UserError,
    UserTypeError,
    UserValueError,
)

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Coroutine,
        Iterable,
        Iterator,
    )
    from typing import Self

    from typing_extensions import ParamSpec, TypeVar

    from agents_tools._records import (
        Call,
        CallOutcome,
        Declaration,
        FailureErrorFunction,
        Policy,
        ToolAnnotations,
        ToolOrigin,
    )
    from agents_tools.events import CallStatus
    from agents_tools.outputs import ToolOutput

    P = ParamSpec("P", default=...)
    R_co = TypeVar("R_co", default=Any, covariant=True)
    ValueT = TypeVar("ValueT")
else:  # defaults of type variables are for type checkers; they come with a heavier import
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R_co = TypeVar("R_co", covariant=True)
    ValueT = TypeVar("ValueT")

__all__ = [
    "FunctionTool",
    "ToolStream",
    "aliases_of",
    "check_tool_name",
    "default_tool_error_function",
    "function_tools",
    "json_schema_of",
    "opened",
    "reader_of",
    "set_default_tool_error_function",
]


class _Default:
    def __repr__(self) -> str:
        return "<default>"


DEFAULT: Any = _Default()
_KEEP: Any = object()
MAX_OUTPUT = 256 * 1024
"""Characters of one result that a model gets; the rest is kept as an artifact."""


class FunctionTool(Generic[P, R_co]):
    """A tool that a model may call. It never changes; `with_` gives a changed copy.

    Made by `function_tool` and `streaming_tool`; made by hand it takes the function that is
    called with the context and the arguments as JSON text:

    Args:
        name: What the model calls it: 1 to 64 letters, digits, `_` and `-`.
        description: What the model is told about it.
        params_json_schema: The JSON Schema of its arguments.
        on_invoke_tool: What runs. It reads the arguments itself, and its exceptions reach the
            caller: the tool answers for both.
        strict_json_schema: Whether providers with a strict mode are asked for it.
        is_enabled: Whether agents offer it; a boolean, or a function of (context, agent).
        annotations: Hints about what it does.
        output_json_schema: The JSON Schema of its results.
        metadata: Anything else; namespaces named after providers are merged at export.

    Raises:
        UserError: The name is not acceptable, or the schema is no object schema.
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
        is_enabled: Any = True,
        annotations: ToolAnnotations | None = None,
        output_json_schema: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        from agents_tools._records import HandMade, ToolOrigin

        self._start(
            HandMade(
                name=check_tool_name(name),
                description=description,
                json_schema=_checked_schema(name, params_json_schema),
                output_json_schema=None if output_json_schema is None else dict(output_json_schema),
                body=on_invoke_tool,
                origin=ToolOrigin(kind="manual"),
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
        is_enabled: Any = True,
        annotations: ToolAnnotations | None = None,
        output_json_schema: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        failure_error_function: Any = DEFAULT,
    ) -> Self:
        """Make a tool from a schema; its function gets only arguments that the schema allows.

        Args:
            name: What the model calls it.
            schema: A pydantic model, a dataclass or a TypedDict, enforced as in `function_tool`;
                or a raw JSON Schema, whose enforcement takes the extra `schema`.
            on_invoke_tool: What runs, with the context and the arguments as JSON text.
            description: What the model is told about it.
            validate_arguments: Whether the schema is enforced.
            strict_json_schema: Whether providers with a strict mode are asked for it.
            is_enabled: Whether agents offer it.
            annotations: Hints about what it does.
            output_json_schema: The JSON Schema of its results.
            metadata: Anything else.
            failure_error_function: What the model is told when a call fails; `None` raises.

        Raises:
            UserError: The schema cannot be described or enforced.
        """
        described, settled = reader_of(check_tool_name(name), schema, enforce=validate_arguments)

        async def body(context: ToolContext[Any], args_json: str) -> Any:
            if settled is not None:
                args_json = settled(args_json)
            context.validated = True
            return await on_invoke_tool(context, args_json)

        from agents_tools._records import HandMade, ToolOrigin

        declaration = HandMade(
            name=name,
            description=description,
            json_schema=_checked_schema(name, described),
            output_json_schema=None if output_json_schema is None else dict(output_json_schema),
            body=body,
            origin=ToolOrigin(kind="schema"),
            reader=settled,
        )
        return cls.declared(
            declaration,
            strict_json_schema=strict_json_schema,
            is_enabled=is_enabled,
            annotations=annotations,
            metadata=metadata,
            failure_error_function=failure_error_function,
        )

    @classmethod
    def declared(
        cls,
        declaration: Declaration,
        *,
        strict_json_schema: bool = True,
        is_enabled: Any = True,
        annotations: ToolAnnotations | None = None,
        metadata: Mapping[str, Any] | None = None,
        failure_error_function: Any = DEFAULT,
        enable_bracketing: bool = True,
        wrapped: Callable[..., Any] | None = None,
        binding: str = "",
    ) -> Self:
        """Make a tool from a declaration: what every source of tools calls."""
        tool = cls.__new__(cls)
        tool._start(
            declaration,
            strict_json_schema=strict_json_schema,
            is_enabled=is_enabled,
            annotations=annotations,
            metadata=metadata,
            failure_error_function=failure_error_function,
        )
        tool._bracketing = enable_bracketing
        tool._binding = binding
        if binding == "class":
            declaration.method_of()
        if wrapped is not None:
            tool.__wrapped__ = wrapped
            tool.__name__ = getattr(wrapped, "__name__", declaration.name)
            tool.__doc__ = wrapped.__doc__
        return tool

    def _start(
        self,
        declaration: Declaration,
        *,
        strict_json_schema: bool,
        is_enabled: Any,
        annotations: ToolAnnotations | None,
        metadata: Mapping[str, Any] | None,
        failure_error_function: Any,
    ) -> None:
        self._declaration = declaration
        self._name = self.__name__ = declaration.name
        self._strict = strict_json_schema
        self._enabled = is_enabled
        self._annotations = _checked_annotations(declaration.name, annotations)
        self._metadata = metadata
        self._failure = failure_error_function

    # Defaults of the class: what most tools never set.
    __wrapped__: Callable[..., Any]
    __name__: str
    _policies: tuple[Policy, ...] = ()
    _description: str | None = None
    _schema: dict[str, Any] | None = None
    _bracketing: bool = True
    _bound_to: object | None = None
    _binding: str = ""  # "self" and "class" for methods, "static" for what is never one
    _max_output: int = MAX_OUTPUT
    _shell: Any = None
    _origin: ToolOrigin | None = None

    @property
    def name(self) -> str:
        """What the model calls the tool."""
        return self._name

    @property
    def description(self) -> str:
        """What the model is told about the tool."""
        found = self._description
        return self._declaration.description if found is None else found

    @property
    def json_schema(self) -> Mapping[str, Any]:
        """The JSON Schema of the arguments itself, for readers that promise not to change it."""
        if self._schema is None:
            schema = self._declaration.json_schema
            for policy in self._policies:
                if policy.reshape is not None:
                    schema = policy.reshape(copy_json(schema))
            if self._name != self._declaration.name and schema.get("title") == (
                f"{self._declaration.name}_args"
            ):
                schema = {**schema, "title": f"{self._name}_args"}
            self._schema = schema
        return self._schema

    @property
    def params_json_schema(self) -> dict[str, Any]:
        """The JSON Schema (2020-12) of the arguments; a deep copy each time."""
        return typing.cast("dict[str, Any]", copy_json(self.json_schema))

    @property
    def strict_json_schema(self) -> bool:
        """Whether providers with a strict mode are asked for it."""
        return self._strict

    @property
    def is_enabled(self) -> Any:
        """Whether agents offer the tool: a boolean, or a function of (context, agent)."""
        return self._enabled

    @property
    def annotations(self) -> ToolAnnotations | None:
        """Hints about what the tool does."""
        return self._annotations

    @property
    def output_json_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the results; a deep copy each time; `None` if there is none."""
        return typing.cast("dict[str, Any] | None", copy_json(self._declaration.output_json_schema))

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Anything else that was said about the tool; read-only."""
        return types.MappingProxyType(dict(self._metadata or {}))

    @property
    def origin(self) -> ToolOrigin:
        """Where the tool comes from."""
        found = self._origin
        if found is None:
            found = self._origin = self._declaration.origin
        return found

    @property
    def declaration(self) -> Declaration:
        """What the tool is made from: its body, without what policies put around it."""
        return self._declaration

    @property
    def policies(self) -> tuple[Policy, ...]:
        """What is around the body, the innermost first."""
        return self._policies

    @property
    def on_invoke_tool(self) -> Callable[[Any, str], Coroutine[Any, Any, Any]]:
        """The one calling convention: awaited with a context and JSON text, it gives the output.

        `ctx` is a `ToolContext`, a plain `RunContextWrapper`, or `None`. The output is what a
        model gets: text or content blocks. A failure is answered by the failure function, or
        raised where that is `None`.
        """
        shell = self._shell
        if shell is None:
            shell = self._shell = self._build_shell()
        return shell

    @property
    def failure_error_function(self) -> Any:
        """What the model is told when a call fails; `None` if its error is raised instead."""
        return default_tool_error_function if self._failure is DEFAULT else self._failure

    @property
    def needs_admission(self) -> bool:
        """Whether policies have to be asked before each call."""
        return any(policy.prepare or policy.admit or policy.mend for policy in self._policies)

    @property
    def bound_to(self) -> object | None:
        """The object whose method the tool is; `None` for any other tool."""
        return self._bound_to

    async def prepare(self, context: ToolContext[Any], args_json: str) -> str:
        """Give the arguments that a call is to have; a refusal is told when the call is made.

        Args:
            context: The fresh context of the call.
            args_json: Its arguments.
        """
        whole = not any(policy.reshape for policy in self._policies)
        context.arguments_json = args_json
        context.tool = self
        try:
            for policy in reversed(self._policies):
                if policy.mend is not None:
                    args_json = context.arguments_json = policy.mend(context, args_json)
            if whole:
                self._declaration.check(args_json)  # nobody is asked about a call that fails
            for policy in reversed(self._policies):
                if policy.prepare is not None:
                    args_json = context.arguments_json = await policy.prepare(context, args_json)
        except Exception as error:  # noqa: BLE001 - part of the call, whose shell answers it
            context.refusal = error
        return args_json

    async def admit(self, context: ToolContext[Any], args_json: str) -> None:
        """Ask whether a call may run; a refusal is told when the call is made.

        Args:
            context: The fresh context of the call.
            args_json: Its arguments, prepared.

        Raises:
            Interruption: The run has to wait for a person.
        """
        context.admitted = True
        if context.refusal is not None:
            return
        try:
            for policy in reversed(self._policies):
                if policy.admit is not None:
                    await policy.admit(context, args_json)
        except Interruption:
            context.admitted = False
            raise
        except Exception as error:  # noqa: BLE001 - as above
            context.refusal = error

    def build(self) -> Self:
        """Build what is otherwise built at first use, so that its errors come now.

        Raises:
            UserError: The declaration cannot work.
        """
        _ = self.description, self.json_schema, self._declaration.body
        return self

    def with_(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        strict_json_schema: bool | None = None,
        is_enabled: Any = _KEEP,
        annotations: Any = _KEEP,
        metadata: Any = _KEEP,
        failure_error_function: Any = _KEEP,
        enable_bracketing: bool | None = None,
        max_output: int | None = None,
        policy: Policy | None = None,
        policies: tuple[Policy, ...] | None = None,
        declaration: Declaration | None = None,
    ) -> Self:
        """Give a copy that differs in what is named; the original stays as it is.

        Args:
            name: Another name for the model.
            description: Another description for the model.
            strict_json_schema: Whether providers with a strict mode are asked for it.
            is_enabled: Whether agents offer it.
            annotations: Other hints.
            metadata: Other metadata.
            failure_error_function: What the model is told when a call fails; `None` raises.
            enable_bracketing: Whether start and end of a call are among its events.
            max_output: How many characters of a result the model gets.
            policy: One more policy, around those the tool has.
            policies: Others in place of those the tool has, the innermost first.
            declaration: What it is made from instead.
        """
        copy = self.__class__.__new__(self.__class__)
        copy.__dict__.update(self.__dict__)
        copy._shell = copy._schema = None
        if declaration is not None:
            copy._declaration = declaration
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
        for attribute, value in (
            ("_enabled", is_enabled),
            ("_annotations", _checked_annotations(self._name, annotations)),
            ("_metadata", metadata),
            ("_failure", failure_error_function),
        ):
            if value is not _KEEP:
                setattr(copy, attribute, value)
        return copy

    def to_json(self, value: Any) -> str:
        """Write what the function returned as JSON, the way its output schema describes it.

        Args:
            value: The value.

        Raises:
            UserError: The value, or something in it, has no JSON form.
        """
        from agents_tools.outputs import to_json

        return to_json(value, self._declaration.serializer())

    async def call(self, ctx: Any, args_json: str) -> CallOutcome:
        """Call the tool and learn how it ended: what the loop, servers and policies use.

        Args:
            ctx: A `ToolContext`, a plain `RunContextWrapper`, or `None`.
            args_json: The arguments as JSON text.

        Returns:
            How the call ended. Whatever the body raises is in it; only a cancellation from
            outside and a Ctrl-C pass.
        """
        return await self._watched(ToolContext.enter(ctx, self._name, args_json), args_json)

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
            **kwargs: Arguments by name, instead of `arguments`.

        Returns:
            What the function itself returned.

        Raises:
            ModelBehaviorError: The arguments are not what the tool accepts.
            Exception: Whatever the tool raised.
        """
        text = self._text_of(arguments, kwargs)
        outcome = await self._watched(
            ToolContext.enter(context, self._name, text), text, convert=False
        )
        if outcome.error is None:
            return outcome.value
        error = outcome.error
        del outcome
        try:
            raise error
        finally:
            del error  # or the error would hold on to itself through this frame

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
        """Do what `invoke` does, from synchronous code, whether an event loop runs or not."""
        from agents_tools._bridge import run_sync

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
        """Call the tool and watch it.

        ```python
        async with tool.stream(path="data.csv") as stream:
            async for event in stream:
                print(event)
        print(stream.result)
        ```

        Leaving the block early cancels the call. Takes what `invoke` takes.
        """
        return ToolStream(self, context, self._text_of(arguments, kwargs))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the decorated function as if it were not decorated."""
        function = self.__dict__.get("__wrapped__")
        if function is None:
            raise UserTypeError(
                f"Tool {self._name!r} wraps no Python function that could be called directly. "
                "Use `await tool.invoke(...)` or `tool.invoke_sync(...)`."
            )
        return function(*args, **kwargs)

    def __set_name__(self, owner: type, name: str) -> None:
        """Learn whether the tool is a method: whether its function was written in this class."""
        function = self.__dict__.get("__wrapped__")
        written = f"{owner.__qualname__}.{getattr(function, '__name__', name)}"
        if not self._binding and getattr(function, "__qualname__", "") == written:
            self._binding = "self"
            self._declaration.method_of()

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> FunctionTool[..., R_co]: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        """Bind a tool that is a method to its instance, as Python does with functions."""
        target = owner if self._binding == "class" else instance
        if target is None or self._binding in {"", "static"}:
            return self
        bound = self.with_()
        bound._declaration = self._declaration.bind(target)
        bound._binding = "static"
        bound._bound_to = target
        bound.__wrapped__ = types.MethodType(self.__wrapped__, target)
        return bound

    def __repr__(self) -> str:
        """Show the name and the policies; builds nothing."""
        around = "".join(f" + {policy.name}" for policy in self._policies)
        return f"<{type(self).__name__} {self._name!r}{around}>"

    # --- the call

    def _text_of(self, arguments: Any, named: Mapping[str, Any]) -> str:
        if isinstance(arguments, str):
            if named:
                raise UserTypeError(
                    f"Tool {self._name!r} got JSON text and arguments by name at once. "
                    "Give one of the two."
                )
            return arguments
        if arguments is not None and not isinstance(arguments, Mapping):
            raise UserTypeError(
                f"Tool {self._name!r} takes a JSON string, a mapping, or arguments by name; "
                f"it got a {type(arguments).__name__}."
            )
        given = {**typing.cast("Mapping[str, Any]", arguments or {}), **named}
        from pydantic_core import to_json

        try:
            return to_json(given, inf_nan_mode="constants").decode()
        except Exception as error:
            raise UserValueError(
                f"Tool {self._name!r} takes arguments that have a JSON form ({error}). "
                "To pass Python objects, call the function itself: `tool(...)`."
            ) from error

    def _build_shell(self) -> Callable[[Any, str], Coroutine[Any, Any, Any]]:
        """Build `on_invoke_tool` for just this tool.

        Nobody listens to most calls, so they take a way of their own without start and end; any
        other call, and every failure, goes through `_watched` and `_failed`.
        """
        run, name, limit, enter = self._run, self._name, self._max_output, ToolContext.enter
        direct = None if self._policies else self._declaration.direct
        admission = self.needs_admission or any(policy.reply for policy in self._policies)

        async def on_invoke_tool(ctx: Any, args_json: str) -> Any:
            context = enter(ctx, name, args_json)
            if context.sinks or admission:
                return self._answer(await self._watched(context, args_json))
            context.tool = self
            token = enter_scope(context)
            try:
                value = await run(context, args_json)
                if (
                    type(value) is str
                    and len(value) <= limit
                    and _is_plain(value)
                    and not has_secrets()
                ):
                    return value
                return self._finished(context, value).output
            except BaseException as error:  # noqa: BLE001 - the firewall of a call
                return self._answer(await self._failed(context, error))
            finally:
                leave_scope(token)

        if direct is None:
            return on_invoke_tool
        read, func = direct

        async def on_invoke_plain(ctx: Any, args_json: str) -> Any:
            context = enter(ctx, name, args_json)
            if context.sinks:
                return self._answer(await self._watched(context, args_json))
            token = enter_scope(context)
            arguments = None
            try:
                arguments = read(args_json)
                value = await func(**arguments)
                if (
                    type(value) is str
                    and len(value) <= limit
                    and _is_plain(value)
                    and not has_secrets()
                ):
                    return value
                return self._finished(context, value).output
            except BaseException as error:  # noqa: BLE001 - the firewall of a call
                context.validated = arguments is not None
                return self._answer(await self._failed(context, error))
            finally:
                leave_scope(token)

        return on_invoke_plain

    @property
    def _run(self) -> Call:
        if self._binding in {"self", "class"}:
            raise UserTypeError(
                f"Tool {self._name!r} is a method and not bound to an instance. "
                "Take it from an instance: `instance.tool`, not `Class.tool`."
            )
        run = self._declaration.body
        for policy in self._policies:
            run = policy.wrap(run)
        return run

    async def _watched(
        self, context: ToolContext[Any], args_json: str, *, convert: bool = True
    ) -> CallOutcome:
        """Run the call between its start and its end event."""
        if self.needs_admission and not context.admitted:
            args_json = await self.prepare(context, args_json)
            await self.admit(context, args_json)
        context.tool = self
        for policy in reversed(self._policies):
            if policy.veil is not None:
                context.veils = (policy.veil(context), *context.veils)
        started = time.perf_counter()
        status: CallStatus = "cancelled"
        outcome: CallOutcome | None = None
        token = enter_scope(context)
        try:
            if self._bracketing and context.listening:
                from agents_tools.events import ToolStreamEndEvent, ToolStreamStartEvent

                context.begin(
                    ToolStreamStartEvent(input_args=dict(context.arguments)),
                    lambda ended: ToolStreamEndEvent(
                        status=ended, duration=time.perf_counter() - started
                    ),
                )
            try:
                if context.refusal is not None:
                    raise context.refusal  # noqa: TRY301 - answered as any failure of the call
                value = await self._run(context, args_json)
                outcome = self._finished(context, value, convert=convert)
            except BaseException as error:  # noqa: BLE001 - the firewall of a call
                outcome = await self._failed(context, error)
            if context.notes is not None:
                outcome = _noted(outcome, context.notes)
            status = outcome.status
            return outcome
        finally:
            context.outcome, outcome = outcome, None  # the frames of an error may keep this one,
            context.end(status)
            context.outcome = None  # and both of them must not keep the error
            leave_scope(token)

    def _answer(self, outcome: CallOutcome) -> Any:
        if outcome.error is None or self._failure is not None:
            return outcome.output
        error = outcome.error
        del outcome
        try:
            raise error
        finally:
            del error  # or the error would hold on to itself through this frame

    def _finished(
        self, context: ToolContext[Any], value: Any, *, convert: bool = True
    ) -> CallOutcome:
        """Convert a value to what the model gets."""
        from agents_tools._records import CallOutcome
        from agents_tools._text import escape_for_model

        if not convert:
            return CallOutcome(status="ok", value=value, output="")
        from agents_tools.outputs import result_of, to_output, truncate_output

        if isinstance(value, str):
            text = value if _is_plain(value) else escape_for_model(value)
            output: ToolOutput = self._replied(context, mask_registered(text))
            if type(value) is str and len(output) <= self._max_output and isinstance(output, str):
                return CallOutcome(status="ok", value=value, output=output)
            result = None
        else:
            result = result_of(value)
            seen = value if result is None else result
            output = to_output(seen, self._declaration.serializer())
            output = self._replied(context, _for_model(output))
        shortened, rest = truncate_output(output, self._max_output)
        if rest is not None:
            context.artifact(f"{self._name}-output", rest, mime_type="text/plain")
        if result is None:
            return CallOutcome(status="ok", value=value, output=shortened)
        status: CallStatus = "tool_error" if result.is_error else "ok"
        return CallOutcome(
            status=status,
            value=value,
            output=shortened,
            metadata=result.metadata,
        )

    async def _failed(self, context: ToolContext[Any], raised: BaseException) -> CallOutcome:
        """Turn whatever was raised into an outcome; only what is not the tool's passes."""
        from agents_tools._records import CallOutcome

        # Without this frame, which holds the outcome, an error is no knot that only the garbage
        # collector could undo, and it shows the tool's own frames first.
        traceback = raised.__traceback__
        raised.__traceback__ = traceback and traceback.tb_next
        error = _as_exception(raised, context)
        status = _status_of(error, context)
        if self._failure is None:
            return CallOutcome(status=status, value=None, output="", error=error)
        function = _default_function if self._failure is DEFAULT else self._failure
        try:
            text = function(context, error)
            if not isinstance(text, str) and isinstance(raised, GeneratorExit):
                _close_unawaited(text)  # the call may just be closed: then it cannot wait
                text = default_tool_error_function(context, error)
            elif not isinstance(text, str):
                text = await text
        except Exception:  # noqa: BLE001 - the model gets an answer whatever the function does
            _log().exception("The failure function of tool %r failed itself.", self._name)
            text = default_tool_error_function(context, error)
        if self._failure is not DEFAULT and isinstance(text, str):
            text = mask_registered(text)
        try:
            text = self._replied(context, text)
        except Exception:  # noqa: BLE001 - better untold than told to those who should not know
            _log().exception("A policy of tool %r failed on the text of an error.", self._name)
            text = f"Tool {self._name!r} failed."
        return CallOutcome(status=status, value=None, output=text, error=error)

    def _replied(self, context: ToolContext[Any], output: ToolOutput) -> ToolOutput:
        for policy in self._policies:
            if policy.reply is not None:
                output = policy.reply(context, output)
        return output


def _noted(outcome: CallOutcome, notes: Mapping[str, Any]) -> CallOutcome:
    """Add what policies noted to the metadata of an outcome, in the namespace of the library."""
    from dataclasses import replace

    given = outcome.metadata or {}
    theirs: Any = given.get("agents_tools")
    own: dict[str, Any] = {**(theirs if isinstance(theirs, dict) else {}), **notes}
    return replace(outcome, metadata={**given, "agents_tools": own})


class ToolStream(Generic[R_co]):
    """A call that is being watched; made by `FunctionTool.stream`.

    Iterate over it inside its `async with` block; `result` has the value afterwards.
    """

    def __init__(self, tool: FunctionTool[..., Any], context: Any, args_json: str) -> None:
        self._tool = tool
        self._context: Any = context
        self._args_json = args_json
        self._task: Any = None
        self._channel: Any = None
        self._outcome: CallOutcome | None = None
        self._left = False

    async def __aenter__(self) -> Self:
        """Start the call."""
        import asyncio

        from agents_tools._channel import Channel

        if self._task is not None:
            raise UserError(f"This stream of tool {self._tool.name!r} was entered before.")
        self._channel = Channel()
        context = ToolContext.fresh_for(self._context)
        context.watch(self._channel)
        self._task = asyncio.create_task(self._call(context))
        return self

    async def _call(self, context: ToolContext[Any]) -> None:
        try:
            self._outcome = await self._tool.call(context, self._args_json)
        finally:
            self._channel.close()

    async def __aexit__(self, *exc_info: object) -> None:
        """Cancel the call if it still runs, and wait for its cleanup at most `GRACE` seconds."""
        from agents_tools._supervisor import finish

        self._left = not self._task.done()
        self._channel.close()
        if self._left:
            self._task.cancel()
        await finish(self._task, name=self._tool.name)
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            raise error

    def __aiter__(self) -> AsyncIterator[Any]:
        """Give the events as they come, until the call is over."""
        if self._channel is None:
            raise UserError(
                f"The stream of tool {self._tool.name!r} is not open. "
                "Write `async with tool.stream(...) as stream:` around the loop."
            )
        return self._channel.__aiter__()

    @property
    def outcome(self) -> CallOutcome:
        """How the call ended.

        Raises:
            UserError: It has not ended.
            ToolCancelledError: The block was left before it ended.
        """
        if self._outcome is not None:
            return self._outcome
        if self._left or (self._task is not None and self._task.done()):
            raise ToolCancelledError(
                f"The call of tool {self._tool.name!r} was cancelled: its stream was left early."
            )
        raise UserError(
            f"Tool {self._tool.name!r} is still running. Read the events to their end first."
        )

    @property
    def result(self) -> R_co:
        """What the function returned; raises what it raised, and what `outcome` raises."""
        outcome = self.outcome
        if outcome.error is None:
            return outcome.value
        error = outcome.error
        del outcome
        try:
            raise error
        finally:
            del self, error  # or the error would hold on to itself through this frame


_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_tool_name(name: str) -> str:
    """Give the name back if every model provider and MCP accept it.

    Raises:
        UserError: They do not; the message suggests a name that they do.
    """
    if isinstance(name, str) and _NAME.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]
        return name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", str(name)).strip("_")[:64] or "my_tool"
    raise UserValueError(
        f"The tool name {name!r} is not acceptable to model providers: it takes 1 to 64 "
        f"letters, digits, '_' and '-'. Give it another, for example name_override={plain!r}."
    )


def reader_of(
    name: str, schema: Any, *, enforce: bool
) -> tuple[dict[str, Any], Callable[[str], str] | None]:
    """Give the JSON Schema of a type or a raw schema, and what settles arguments by it."""
    from agents_tools._arguments import SchemaReader, TypeReader
    from agents_tools._leaf import NoSchemaError, leaf_of

    if isinstance(schema, Mapping):
        described = typing.cast("dict[str, Any]", copy_json(schema))
        return described, SchemaReader(name, described).settled if enforce else None
    try:
        leaf = leaf_of(schema)
    except NoSchemaError as error:
        raise UserTypeError(
            f"The schema of tool {name!r}, {schema!r:.80}, has no JSON form ({error}). "
            "Give a pydantic model, a dataclass, a TypedDict or a raw JSON Schema."
        ) from error
    described = json_schema_of(leaf)
    if not enforce:
        return described, None
    return described, TypeReader(name, leaf, described, other_keys=aliases_of(schema)).settled


def json_schema_of(leaf: Any) -> dict[str, Any]:
    """Give the JSON Schema of a type that stands for all arguments of a tool."""
    described = {**leaf.json, **({"$defs": leaf.defs} if leaf.defs else {})}
    if list(described) in (["$ref", "$defs"], ["$ref"]):
        return _inlined_root(described)
    return described


def aliases_of(schema: Any) -> Iterator[str]:
    """Yield the names by which the fields of a pydantic model can be given."""
    fields: Mapping[str, Any] = getattr(schema, "__pydantic_fields__", {})
    for name, field in fields.items():
        yield name
        choices = getattr(field.validation_alias, "choices", [field.validation_alias])
        yield from (choice for choice in choices if isinstance(choice, str))


def opened(given: Iterable[Any]) -> Iterator[Any]:
    """Yield what a list has, lists and toolsets in it opened."""
    for tool in given:
        kind = typing.cast("type[Any]", type(tool))
        if issubclass(kind, (list, tuple)) or hasattr(kind, "as_part"):
            yield from opened(typing.cast("list[Any]", tool))
        else:
            yield tool


def function_tools(given: Iterable[Any]) -> Iterator[Any]:
    """Yield what a list has, lists in it opened, and class-based tools as function tools."""
    for tool in opened(given):
        become = None if isinstance(tool, type) else getattr(tool, "as_function_tool", None)
        yield tool if become is None else become()


def _checked_annotations(name: str, given: Any) -> Any:
    if given is None or given is _KEEP:
        return given
    from agents_tools._records import ToolAnnotations

    if isinstance(given, ToolAnnotations):
        return given
    raise UserTypeError(
        f"annotations= of tool {name!r} takes ToolAnnotations, such as "
        f"ToolAnnotations(readOnlyHint=True), not a {type(given).__name__}."
    )


def _inlined_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Put the definition that the root points at in its place; recursive types keep theirs."""
    key = schema["$ref"].removeprefix("#/$defs/")
    definitions = dict(schema["$defs"])
    root = definitions[key]
    if f"'#/$defs/{key}'" not in repr(definitions):
        del definitions[key]
    return {**root, **({"$defs": definitions} if definitions else {})}


def _checked_schema(name: str, schema: Any) -> dict[str, Any]:
    described = typing.cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else None
    if described is None or described.get("type", "object") != "object":
        raise UserTypeError(
            f"The params_json_schema of tool {name!r} must be the JSON Schema of an object, as "
            f'a mapping with "type": "object"; it is {schema!r:.80}.'
        )
    import json

    try:
        copied = typing.cast("dict[str, Any]", copy_json(dict(described)))
        json.dumps(copied, allow_nan=False)
    except (RecursionError, TypeError, ValueError) as error:
        raise UserValueError(
            f"The params_json_schema of tool {name!r} holds what JSON cannot ({error}). Give it "
            "only text, finite numbers, booleans, None, lists, and mappings from text to these."
        ) from None
    return copied


def copy_json(value: Any) -> Any:
    """Copy a JSON value deeply."""
    if isinstance(value, Mapping):
        mapping = typing.cast("Mapping[str, Any]", value)
        return {key: copy_json(item) for key, item in mapping.items()}
    if isinstance(value, list):
        return [copy_json(item) for item in typing.cast("list[Any]", value)]
    return value


# --- what a failure is, and what the model is told of it


def default_tool_error_function(ctx: Any, error: Exception) -> str:
    """Tell the model what went wrong, so that it can correct itself.

    Bad arguments: every fault with its place. A `ToolError` and the library's own errors: their
    message. Anything else: its type and message, at most 500 characters. Known secrets are
    masked, and there is never a traceback. At most 2,000 characters in all.

    Args:
        ctx: The context of the call.
        error: What went wrong.
    """
    from agents_tools._text import shorten, type_name

    name = getattr(ctx, "tool_name", "") or "?"
    if isinstance(error, AgentsToolsError):
        text = mask(_message_of(error))
    else:
        message = mask(shorten(_message_of(error), 500))
        text = f"Tool {name!r} failed: {type_name(type(error))}" + (message and f": {message}")
    return shorten(text, 2_000)


_default_function: Callable[[Any, Exception], Any] = default_tool_error_function


def set_default_tool_error_function(function: FailureErrorFunction | None) -> None:
    """Change what models are told by every tool that has no failure function of its own.

    Args:
        function: Called with the context and the error; sync or async. `None` goes back to
            `default_tool_error_function`.
    """
    global _default_function  # noqa: PLW0603 - the one process-wide setting of this module
    _default_function = default_tool_error_function if function is None else function


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - a broken __str__ of the tool's own exception
        return "(its message cannot be shown)"


def _for_model(output: ToolOutput) -> ToolOutput:
    """Escape what no text should hold, and mask secrets, in texts and in blocks of text."""
    from agents_tools._text import escape_for_model
    from agents_tools.outputs import ToolOutputText

    if isinstance(output, str):
        return mask_registered(output if _is_plain(output) else escape_for_model(output))
    return [
        ToolOutputText(mask_registered(escape_for_model(block.text)))
        if isinstance(block, ToolOutputText)
        else block
        for block in output
    ]


def _is_plain(text: str) -> bool:
    """Whether a text needs no escaping; a moment's look that may err to `False`."""
    return text.isascii() and "\x1b" not in text and "\0" not in text


def _close_unawaited(given: Any) -> None:
    close = getattr(given, "close", None) or getattr(given, "cancel", None)
    if close is not None:
        close()


def _as_exception(raised: BaseException, context: ToolContext[Any]) -> Exception:
    """Give an `Exception` for what a tool raised; raise on what is not the tool's."""
    import asyncio

    from agents_tools._text import type_name

    error = raised
    if isinstance(raised, Interruption):
        raise raised
    if type_name(type(raised)) == "agents_tools._threads.ThreadRaised":
        error = typing.cast("Any", raised).error
    if isinstance(error, asyncio.CancelledError):
        context.cancel()
        task = asyncio.current_task()
        if error is raised and (task is None or task.cancelling()):
            raise raised
        return _crash(error, "the tool cancelled itself")
    if isinstance(error, KeyboardInterrupt) and error is raised and _by_signal(error):
        raise raised
    if isinstance(error, Exception) and not isinstance(error, (StopIteration, StopAsyncIteration)):
        if isinstance(error, RuntimeError) and isinstance(
            error.__cause__, (StopIteration, StopAsyncIteration)
        ):
            return _crash(error.__cause__, "raised inside the tool")
        return error
    return _crash(error, _message_of(error) or "raised inside the tool")


def _crash(error: BaseException, why: str) -> ToolError:
    from agents_tools._text import shorten, type_name

    wrapped = ToolError(f"The tool failed with {type_name(type(error))}: {shorten(why, 500)}")
    wrapped.__cause__ = error
    return wrapped


def _by_signal(error: KeyboardInterrupt) -> bool:
    """Whether a Ctrl-C raised it, not a statement: the last frame then stands at no `raise`."""
    import dis

    traceback = error.__traceback__
    if traceback is None:
        return True
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    frame = traceback.tb_frame
    if frame.f_globals.get("__name__") in {"asyncio.runners", "signal"}:
        return True
    opcode = frame.f_code.co_code[traceback.tb_lasti]
    return dis.opname[opcode] != "RAISE_VARARGS"


_STATUS: list[tuple[type[Exception], CallStatus]] = [
    (ToolTimeoutError, "timeout"),
    (ToolCancelledError, "cancelled"),
    (ToolDeniedError, "denied"),
    (ToolOverloadedError, "overloaded"),
    (ToolLostError, "lost"),
]


def _status_of(error: Exception, context: ToolContext[Any]) -> CallStatus:
    if isinstance(error, ModelBehaviorError) and not context.validated:
        return "invalid_args"
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    return "tool_error"


def _log() -> Any:
    import logging

    guard_logs()
    return logging.getLogger("agents_tools")
