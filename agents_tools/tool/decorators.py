"""The decorators `function_tool` and `streaming_tool`, which create tools from functions."""

from __future__ import annotations

import sys
import types
import typing
from time import perf_counter
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from agents_tools.errors import ToolStreamError, UserTypeError
from agents_tools.schema.callables import (
    EMPTY,
    class_names,
    enclosing_names,
    implementation,
    name_of,
)
from agents_tools.text.secrets import guard_logs
from agents_tools.tool.failure import DEFAULT
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.options import (
    StreamingToolOptions,
    ToolOptions,
    check_option_names,
    check_options,
)
from agents_tools.tool.tool import FunctionTool

if typing.TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from agents_tools.schema.docstring import DocstringStyle
    from agents_tools.schema.function import FuncSchema
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.declaration import (
        Call,
        FailureErrorFunction,
        IsEnabled,
        ToolAnnotations,
        ToolOrigin,
    )

__all__ = ["function_tool", "streaming_tool"]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def function_tool(
    func: Callable[P, R],
    /,
    **options: Unpack[ToolOptions],
) -> FunctionTool[P, R]: ...
@overload
def function_tool(
    func: None = None,
    /,
    **options: Unpack[ToolOptions],
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def function_tool(
    func: Callable[..., Any] | None = None,
    /,
    *,
    name_override: str | None = None,
    description_override: str | None = None,
    docstring_style: DocstringStyle | None = None,
    use_docstring_info: bool = True,
    failure_error_function: FailureErrorFunction | None = DEFAULT,
    strict_mode: bool = True,
    is_enabled: IsEnabled = True,
    annotations: ToolAnnotations | None = None,
    output_schema: bool = True,
    run_in_thread: bool = True,
    metadata: Mapping[str, Any] | None = None,
) -> Any:
    """Create a tool from a function.

    ```python
    @function_tool
    async def fetch_weather(location: Location) -> str:
        \"\"\"Fetch the weather for a given location.

        Args:
            location: The location to fetch the weather for.
        \"\"\"
    ```

    The decorator checks only the kind of the callable and its name, which is fast. The schema and
    the validator are built at first use, or by `tool.build()`.

    Args:
        func: Any callable with a readable signature: a sync or async function, a method, a
            `functools.partial`, a callable object. A parameter annotated `RunContextWrapper`
            or `ToolContext` receives the context and is not part of the schema.
        name_override: The name of the tool; by default that of the function.
        description_override: The description of the tool; by default that of the docstring.
        docstring_style: `google`, `numpy` or `sphinx`; by default it is detected.
        use_docstring_info: Whether descriptions are read from the docstring.
        failure_error_function: Called with the context and the error when a call fails, sync or
            async; returns the text for the model. `None` raises the error to the caller. The
            default is `default_tool_error_function`, which explains the error to the model.
        strict_mode: Whether to request strict mode from providers that have one.
        is_enabled: Whether agents offer the tool: a boolean, or a function of (context, agent).
        annotations: Hints about the behavior of the tool.
        output_schema: Whether the return annotation is published as the schema of the results.
        run_in_thread: Whether a sync function runs in a worker thread, so that it does not block
            the event loop. Set `False` for functions that take microseconds, and for libraries
            that must be used from a single thread.
        metadata: Any other data; namespaces named after providers are merged at export.

    Raises:
        UserError: The callable cannot be a tool; the message says how to fix it.
    """  # noqa: D214 - the example has a docstring with a section of its own
    options: ToolOptions = {
        "name_override": name_override,
        "description_override": description_override,
        "docstring_style": docstring_style,
        "use_docstring_info": use_docstring_info,
        "failure_error_function": failure_error_function,
        "strict_mode": strict_mode,
        "is_enabled": is_enabled,
        "annotations": annotations,
        "output_schema": output_schema,
        "run_in_thread": run_in_thread,
        "metadata": metadata,
    }
    return _decorate(func, options, stream=False)


@overload
def streaming_tool(
    func: Callable[P, AsyncIterator[Any] | Iterator[Any]],
    /,
    **options: Unpack[StreamingToolOptions],
) -> FunctionTool[P, Any]: ...
@overload
def streaming_tool(
    func: None = None,
    /,
    **options: Unpack[StreamingToolOptions],
) -> Callable[[Callable[P, Any]], FunctionTool[P, Any]]: ...
def streaming_tool(
    func: Callable[..., Any] | None = None,
    /,
    **options: Unpack[StreamingToolOptions],
) -> Any:
    """Create a tool from a generator that yields events while it works.

    ```python
    @streaming_tool
    async def data_pipeline(source_url: str):
        \"\"\"Parse a remote source.\"\"\"
        yield NotifyStreamEvent(data="[1/2] connecting")
        yield NotifyStreamEvent(data="[2/2] parsing", tag="success")
        yield "parsed 1,234 records"
    ```

    Yielded events are delivered to subscribers immediately and never reach the model. The first
    yielded value that is not an event is the result and ends the tool: the generator is closed,
    and its `finally` blocks run before the result is delivered. A yielded `None` is a checkpoint
    at which a cancelled sync generator stops.

    Args:
        func: An async generator function, or a sync one, which runs in a worker thread.
        **options: The options of `function_tool`, except `output_schema` and `run_in_thread`. In
            addition, `enable_bracketing`: whether the call emits a start and an end event around
            those of the tool, as it does by default.

    Raises:
        UserError: The callable is not a generator function, or an option is unknown or invalid.
    """
    check_option_names("streaming_tool(...)", options, StreamingToolOptions.__annotations__)
    return _decorate(func, options, stream=True)


def _decorate(func: Callable[..., Any] | None, options: Mapping[str, Any], *, stream: bool) -> Any:
    """Return the tool, or the decorator that creates it."""

    def decorate(func: Callable[..., Any]) -> FunctionTool[..., Any]:
        # Read the frame here, where the decorator is applied, and keep no reference to it.
        names = enclosing_names(func, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
        return _declare(func, stream=stream, local_names=names, **options)

    return decorate if func is None else decorate(func)


def _declare(
    func: Callable[..., Any],
    *,
    stream: bool,
    local_names: Mapping[str, Any],
    name_override: str | None = None,
    description_override: str | None = None,
    docstring_style: DocstringStyle | None = None,
    use_docstring_info: bool = True,
    failure_error_function: Any = DEFAULT,
    strict_mode: bool = True,
    is_enabled: IsEnabled = True,
    annotations: ToolAnnotations | None = None,
    metadata: Mapping[str, Any] | None = None,
    output_schema: bool = False,
    run_in_thread: bool = True,
    enable_bracketing: bool = True,
) -> FunctionTool[..., Any]:
    func, binding = _unwrap(func)
    _check_kind(func, stream=stream)
    name = check_tool_name(name_override or name_of(func))
    check_options(
        name,
        description_override=description_override,
        docstring_style=docstring_style,
        use_docstring_info=use_docstring_info,
        strict_mode=strict_mode,
        output_schema=output_schema,
        run_in_thread=run_in_thread,
        enable_bracketing=enable_bracketing,
    )
    declaration = _FunctionDeclaration(
        func,
        name=name,
        stream=stream,
        local_names=local_names,
        description_override=description_override,
        docstring_style=docstring_style,
        use_docstring_info=use_docstring_info,
        strict_mode=strict_mode,
        output_schema=output_schema,
        run_in_thread=run_in_thread,
    )
    return FunctionTool[..., Any].declared(
        declaration,
        strict_json_schema=strict_mode,
        is_enabled=is_enabled,
        annotations=annotations,
        metadata=metadata,
        failure_error_function=failure_error_function,
        enable_bracketing=enable_bracketing,
        wrapped=func,
        binding=binding,
    )


def _unwrap(func: Any) -> tuple[Callable[..., Any], str]:
    """Return the function inside a `staticmethod` or `classmethod`, and the kind of its binding."""
    if isinstance(func, classmethod):
        return typing.cast("Any", func).__func__, "class"
    if isinstance(func, staticmethod):
        return typing.cast("Any", func).__func__, "static"
    return func, ""


_CO_GENERATOR, _CO_ASYNC_GENERATOR = 0x20, 0x200  # as in `inspect`, which costs its import


def _check_kind(func: Any, *, stream: bool) -> None:
    if isinstance(func, FunctionTool):
        raise UserTypeError(
            f"{func.name!r} is already a tool. Decorate the function once, or use "
            "`tool.with_(...)` for a modified copy."
        )
    if getattr(func, "is_policy", False):
        raise UserTypeError(
            f"{func!r} is below @function_tool: expected a function there. Put the policy above "
            "@function_tool."
        )
    if not callable(func):
        raise UserTypeError(
            f"function_tool expects a callable, got a {type(func).__name__}. "
            "Write `@function_tool` or `@function_tool(...)` directly above the function."
        )
    target = implementation(func)
    code = getattr(target, "__code__", None)
    if code is None:
        from agents_tools.schema.signature import place_of, read_signature

        read_signature(func, place_of(func, name_of(func)))
        flags = 0
    else:
        flags = code.co_flags
    generator = flags & (_CO_GENERATOR | _CO_ASYNC_GENERATOR)
    if generator and not stream:
        raise _rejection(func, "it is a generator function.", "Decorate it with `@streaming_tool`.")
    if stream and not generator:
        raise _rejection(
            func,
            "it is not a generator function.",
            "Yield events and then the result, or decorate it with `@function_tool`.",
        )


def _rejection(func: Callable[..., Any], problem: str, remedy: str) -> UserTypeError:
    from agents_tools.schema.signature import place_of

    return place_of(func, name_of(func)).refuse(problem, remedy)


class _FunctionDeclaration:
    """The declaration of a tool from a Python function; its parts are built at first use."""

    def __init__(
        self,
        func: Callable[..., Any],
        *,
        name: str,
        stream: bool,
        local_names: Mapping[str, Any],
        description_override: str | None,
        docstring_style: DocstringStyle | None,
        use_docstring_info: bool,
        strict_mode: bool,
        output_schema: bool,
        run_in_thread: bool,
    ) -> None:
        self.name = name
        self._func = func
        self._stream = stream
        self._local_names = local_names
        self._description_override = description_override
        self._docstring_style: DocstringStyle | None = docstring_style
        self._use_docstring_info = use_docstring_info
        self._strict_mode = strict_mode
        self._output_schema = output_schema
        self._run_in_thread = run_in_thread

    # Built at first use. Two threads can build the same part; the results are equal.
    _skip_first = False
    _schema: FuncSchema | None = None
    _body: Call | None = None
    _output: Any = EMPTY

    @property
    def origin(self) -> ToolOrigin:
        from agents_tools.schema.signature import place_of
        from agents_tools.tool.declaration import ToolOrigin

        kind = "stream" if self._stream else "function"
        return ToolOrigin(kind=kind, place=place_of(self._func, self.name).where)

    @property
    def schema(self) -> FuncSchema:
        if self._schema is None:
            self._schema = self._build_schema(self._local_names)
        return self._schema

    def _build_schema(self, local_names: Mapping[str, Any]) -> FuncSchema:
        from agents_tools.schema.function import function_schema

        return function_schema(
            self._func,
            name_override=self.name,
            description_override=self._description_override,
            docstring_style=self._docstring_style,
            use_docstring_info=self._use_docstring_info,
            strict_json_schema=self._strict_mode,
            local_names=local_names,
            skip_first=self._skip_first,
        )

    @property
    def description(self) -> str:
        return self.schema.description or ""

    @property
    def json_schema(self) -> dict[str, Any]:
        return self.schema.json_schema

    @property
    def output_json_schema(self) -> dict[str, Any] | None:
        described = self._describe_output() if self._output_schema else None
        return None if described is None else described[0]

    def check(self, args_json: str) -> None:
        self.schema.read(args_json)

    def serializer(self) -> Any:
        described = None if self._stream else self._describe_output()
        return None if described is None else described[1]

    def _describe_output(self) -> Any:
        if self._output is EMPTY:
            from agents_tools.schema.function import schema_of_type
            from agents_tools.schema.signature import return_annotation

            annotation = (
                EMPTY
                if self._stream
                else return_annotation(self._func, local_names=self._local_names)
            )
            useful = not (_has_no_output_schema(annotation) or _has_content_blocks(annotation))
            self._output = schema_of_type(annotation, mode="serialization") if useful else None
        return self._output

    @property
    def body(self) -> Call:
        if self._body is None:
            self._body = self._build_body()
        return self._body

    @property
    def direct(self) -> tuple[Callable[[str], dict[str, Any]], Callable[..., Any]] | None:
        schema = self.schema
        if self._stream or not schema.plain or schema.takes_context or not self._is_async:
            return None
        return schema.read, self._func

    @property
    def _is_async(self) -> bool:
        from inspect import iscoroutinefunction

        return iscoroutinefunction(implementation(self._func)) or iscoroutinefunction(self._func)

    def method_of(self) -> None:
        """Leave the first parameter out of the schema, because the function is a method."""
        self._skip_first = True
        self._schema = self._body = None

    def bind(self, instance: object) -> _FunctionDeclaration:
        if self._schema is None:
            owner = instance if isinstance(instance, type) else type(instance)
            names = {**class_names(self._func, owner), **self._local_names}
            self._schema = self._build_schema(names)
        bound = object.__new__(_FunctionDeclaration)
        bound.__dict__.update(self.__dict__)
        bound._schema = self.schema
        bound._body = None
        bound._func = types.MethodType(self._func, instance)
        return bound

    def _build_body(self) -> Call:
        schema, func = self.schema, self._func
        from inspect import isasyncgenfunction

        if self._stream:
            if isasyncgenfunction(implementation(func)):
                return _async_stream_body(func, schema)
            return _sync_stream_body(func, schema)
        if self._is_async:
            return _async_body(func, schema)
        return _thread_body(func, schema) if self._run_in_thread else _inline_body(func, schema)


_NO_OUTPUT_SCHEMA: tuple[Any, ...] = (EMPTY, Any, object, None, type(None))
_FILES: tuple[Any, ...] = (bytes, bytearray, memoryview)


def _has_no_output_schema(annotation: Any) -> bool:
    """Return whether a return annotation says nothing, or allows bytes, which become a file."""
    origin, arms = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _has_no_output_schema(arms[0])
    if origin in {typing.Union, types.UnionType}:
        return any(arm in _FILES for arm in arms)
    return annotation in _NO_OUTPUT_SCHEMA or annotation in _FILES


def _has_content_blocks(annotation: Any) -> bool:
    """Return whether a return annotation declares content blocks, which have no output schema."""
    outputs: Any = sys.modules.get("agents_tools.content.outputs")
    if outputs is None:
        return False  # without the module, no annotation can name one of its types
    kinds = (*typing.get_args(outputs.ContentBlock), outputs.ToolResult)
    pending = [annotation]
    while pending:
        part = pending.pop()
        if part in kinds:
            return True
        pending.extend(typing.get_args(part))
    return False


def _async_body(func: Callable[..., Awaitable[Any]], schema: FuncSchema) -> Call:
    read, to_call = schema.read, schema.to_call

    async def body(context: ToolContext[Any], args_json: str) -> Any:
        args, kwargs = to_call(read(args_json), context)
        context.validated = True
        return await func(*args, **kwargs)

    return body


def _inline_body(func: Callable[..., Any], schema: FuncSchema) -> Call:
    read, to_call = schema.read, schema.to_call

    async def body(context: ToolContext[Any], args_json: str) -> Any:
        args, kwargs = to_call(read(args_json), context)
        context.validated = True
        value = func(*args, **kwargs)
        return await value if _is_awaitable(value) else value

    return body


def _thread_body(func: Callable[..., Any], schema: FuncSchema) -> Call:
    from agents_tools.concurrency.threads import run_in_thread

    read, to_call = schema.read, schema.to_call

    async def body(context: ToolContext[Any], args_json: str) -> Any:
        args, kwargs = to_call(read(args_json), context)
        context.validated = True
        value = await run_in_thread(func, *args, **kwargs)
        return await value if _is_awaitable(value) else value

    return body


def _is_awaitable(value: Any) -> bool:
    return type(value) is not str and hasattr(value, "__await__")


_MAX_BLOCKING = 0.001
"""How long a streaming tool without a subscriber can block the event loop, in seconds."""


def _async_stream_body(func: Callable[..., Any], schema: FuncSchema) -> Call:
    from asyncio import sleep

    from agents_tools.events.base import Event

    read, to_call, name = schema.read, schema.to_call, schema.name

    async def body(context: ToolContext[Any], args_json: str) -> Any:
        args, kwargs = to_call(read(args_json), context)
        context.validated = True
        stream = func(*args, **kwargs)
        emit, channel = context.emit, context.channel
        next_pause = 0.0
        try:
            async for item in stream:
                if isinstance(item, Event):
                    emit(item)
                elif item is not None:
                    return item
                if channel is not None:
                    if channel.should_wait():
                        await channel.wait_for_room()
                elif perf_counter() >= next_pause:
                    await sleep(0)  # lets other tasks run, even if the body never awaits
                    next_pause = perf_counter() + _MAX_BLOCKING
        finally:
            await _close_async(stream, name)
        raise _missing_result(name)

    return body


async def _close_async(stream: Any, name: str) -> None:
    """Close a generator, which runs its `finally` blocks; wait at most `GRACE` seconds."""
    if stream.ag_frame is None:
        return
    import asyncio

    from agents_tools.concurrency.supervisor import GRACE

    try:
        async with asyncio.timeout(GRACE):
            await stream.aclose()
    except Exception:  # noqa: BLE001 - an error after the result is only logged
        _log().exception("Streaming tool %r failed while it was closed.", name)


def _sync_stream_body(func: Callable[..., Any], schema: FuncSchema) -> Call:
    from agents_tools.concurrency.threads import run_in_thread
    from agents_tools.events.base import Event

    read, to_call, name = schema.read, schema.to_call, schema.name

    async def body(context: ToolContext[Any], args_json: str) -> Any:
        args, kwargs = to_call(read(args_json), context)
        context.validated = True

        def iterate() -> Any:
            stream = func(*args, **kwargs)
            try:
                for item in stream:
                    if isinstance(item, Event):
                        context.say_blocking(item)
                    elif item is not None:
                        return item
                    context.check()
            finally:
                _close(stream, name)
            raise _missing_result(name)

        iterate.__qualname__ = getattr(func, "__qualname__", name)
        return await run_in_thread(iterate)

    return body


def _close(stream: Any, name: str) -> None:
    try:
        stream.close()
    except Exception:  # noqa: BLE001 - an error after the result is only logged
        _log().exception("Streaming tool %r failed while it was closed.", name)


def _missing_result(name: str) -> ToolStreamError:
    return ToolStreamError(
        f"Streaming tool {name!r} ended without a result: it yielded only events. "
        "Yield the result last, for example a string."
    )


def _log() -> Any:
    import logging

    guard_logs()
    return logging.getLogger("agents_tools")
