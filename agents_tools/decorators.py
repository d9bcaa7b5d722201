"""`function_tool` and `streaming_tool`: a Python function becomes a `FunctionTool`."""

from __future__ import annotations

import sys
import types
import typing
from time import perf_counter
from typing import Any, ParamSpec, TypeVar, overload

from agents_tools._callable import EMPTY, caller_names, implementation, name_of
from agents_tools._secrets import guard_logs
from agents_tools.errors import ToolStreamError, UserTypeError
from agents_tools.tool import DEFAULT, FunctionTool, check_tool_name

if typing.TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from agents_tools._docstring import DocstringStyle
    from agents_tools._records import (
        Call,
        FailureErrorFunction,
        ToolAnnotations,
        ToolOrigin,
    )
    from agents_tools.context import ToolContext
    from agents_tools.schema import FuncSchema

__all__ = ["function_tool", "streaming_tool"]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def function_tool(
    func: Callable[P, R],
    /,
    *,
    name_override: str | None = None,
    description_override: str | None = None,
    docstring_style: DocstringStyle | None = None,
    use_docstring_info: bool = True,
    failure_error_function: FailureErrorFunction | None = ...,
    strict_mode: bool = True,
    is_enabled: Any = True,
    annotations: ToolAnnotations | None = None,
    output_schema: bool = True,
    run_in_thread: bool = True,
    metadata: Mapping[str, Any] | None = None,
) -> FunctionTool[P, R]: ...
@overload
def function_tool(
    func: None = None,
    /,
    *,
    name_override: str | None = None,
    description_override: str | None = None,
    docstring_style: DocstringStyle | None = None,
    use_docstring_info: bool = True,
    failure_error_function: FailureErrorFunction | None = ...,
    strict_mode: bool = True,
    is_enabled: Any = True,
    annotations: ToolAnnotations | None = None,
    output_schema: bool = True,
    run_in_thread: bool = True,
    metadata: Mapping[str, Any] | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def function_tool(
    func: Callable[..., Any] | None = None,
    /,
    *,
    name_override: str | None = None,
    description_override: str | None = None,
    docstring_style: DocstringStyle | None = None,
    use_docstring_info: bool = True,
    failure_error_function: Any = DEFAULT,
    strict_mode: bool = True,
    is_enabled: Any = True,
    annotations: ToolAnnotations | None = None,
    output_schema: bool = True,
    run_in_thread: bool = True,
    metadata: Mapping[str, Any] | None = None,
) -> Any:
    """Make a tool from a function.

    ```python
    @function_tool
    async def fetch_weather(location: Location) -> str:
        \"\"\"Fetch the weather for a given location.

    Args:
            location: The location to fetch the weather for.
        \"\"\"
    ```

    The decorator itself looks only at what costs nothing: what kind of callable it is, and its
    name. The schema and the validator are built at first use; `tool.build()` does it at once.

    Args:
        func: Any callable with a readable signature: a sync or async function, a method, a
            `functools.partial`, a callable object. A parameter annotated `RunContextWrapper`
            or `ToolContext` receives the context and is no part of the schema.
        name_override: The tool's name; the function's by default.
        description_override: The tool's description; the docstring's by default.
        docstring_style: `google`, `numpy` or `sphinx`; detected by default.
        use_docstring_info: Whether descriptions come from the docstring.
        failure_error_function: Called with the context and the error, sync or async; gives the
            text that the model gets when a call fails. `None` raises the error to the caller.
            By default the model is told what went wrong (`default_tool_error_function`).
        strict_mode: Whether providers with a strict mode are asked for it.
        is_enabled: Whether agents offer the tool: a boolean, or a function of (context, agent).
        annotations: Hints about what the tool does.
        output_schema: Whether the return annotation is published as a schema of the results.
        run_in_thread: Whether a sync function runs in a worker thread, so that it never blocks
            the event loop. `False` runs it on the loop: for functions that take microseconds,
            and for libraries that want one thread.
        metadata: Anything else; namespaces named after providers are merged at export.

    Raises:
        UserError: The callable cannot be a tool; the message names the remedy.
    """
    frame = _caller()  # local classes in postponed annotations live there

    def decorate(func: Callable[..., Any]) -> FunctionTool[..., Any]:
        return _declare(
            func,
            stream=False,
            frame=frame,
            name_override=name_override,
            description_override=description_override,
            docstring_style=docstring_style,
            use_docstring_info=use_docstring_info,
            failure_error_function=failure_error_function,
            strict_mode=strict_mode,
            is_enabled=is_enabled,
            annotations=annotations,
            output_schema=output_schema,
            run_in_thread=run_in_thread,
            metadata=metadata,
        )

    return decorate if func is None else decorate(func)


@overload
def streaming_tool(
    func: Callable[P, AsyncIterator[Any] | Iterator[Any]],
    /,
    *,
    name_override: str | None = None,
    description_override: str | None = None,
    docstring_style: DocstringStyle | None = None,
    use_docstring_info: bool = True,
    failure_error_function: FailureErrorFunction | None = ...,
    strict_mode: bool = True,
    is_enabled: Any = True,
    enable_bracketing: bool = True,
    annotations: ToolAnnotations | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> FunctionTool[P, Any]: ...
@overload
def streaming_tool(
    func: None = None,
    /,
    *,
    name_override: str | None = None,
    description_override: str | None = None,
    docstring_style: DocstringStyle | None = None,
    use_docstring_info: bool = True,
    failure_error_function: FailureErrorFunction | None = ...,
    strict_mode: bool = True,
    is_enabled: Any = True,
    enable_bracketing: bool = True,
    annotations: ToolAnnotations | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Callable[[Callable[P, Any]], FunctionTool[P, Any]]: ...
def streaming_tool(
    func: Callable[..., Any] | None = None,
    /,
    *,
    name_override: str | None = None,
    description_override: str | None = None,
    docstring_style: DocstringStyle | None = None,
    use_docstring_info: bool = True,
    failure_error_function: Any = DEFAULT,
    strict_mode: bool = True,
    is_enabled: Any = True,
    enable_bracketing: bool = True,
    annotations: ToolAnnotations | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Any:
    """Make a tool from a generator that tells what it is doing while it works.

    ```python
    @streaming_tool
    async def data_pipeline(source_url: str):
        \"\"\"Parse a remote source.\"\"\"
        yield NotifyStreamEvent(data="[1/2] connecting")
        yield NotifyStreamEvent(data="[2/2] parsing", tag="success")
        yield "parsed 1,234 records"
    ```

    Yielded events are delivered live to whoever watches and never reach the model. The first
    value that is no event is the result and ends the tool: the generator is closed, and its
    `finally` has run before the result is delivered. A yielded `None` is a checkpoint where a
    cancelled sync generator stops.

    Args:
        func: An async generator function, or a sync one, which runs in a worker thread.
        name_override: As in `function_tool`.
        description_override: As in `function_tool`.
        docstring_style: As in `function_tool`.
        use_docstring_info: As in `function_tool`.
        failure_error_function: As in `function_tool`.
        strict_mode: As in `function_tool`.
        is_enabled: As in `function_tool`.
        enable_bracketing: Whether a start and an end event stand around those of the tool.
        annotations: As in `function_tool`.
        metadata: As in `function_tool`.

    Raises:
        UserError: The callable is no generator function, or cannot be a tool otherwise.
    """
    frame = _caller()  # local classes in postponed annotations live there

    def decorate(func: Callable[..., Any]) -> FunctionTool[..., Any]:
        return _declare(
            func,
            stream=True,
            frame=frame,
            name_override=name_override,
            description_override=description_override,
            docstring_style=docstring_style,
            use_docstring_info=use_docstring_info,
            failure_error_function=failure_error_function,
            strict_mode=strict_mode,
            is_enabled=is_enabled,
            enable_bracketing=enable_bracketing,
            annotations=annotations,
            metadata=metadata,
        )

    return decorate if func is None else decorate(func)


def _caller() -> types.FrameType:
    """Give the frame that calls the decorator."""
    return sys._getframe(2)  # pyright: ignore[reportPrivateUsage] # `inspect` would say the same


def _declare(
    func: Callable[..., Any],
    *,
    stream: bool,
    frame: types.FrameType | None,
    name_override: str | None,
    description_override: str | None,
    docstring_style: DocstringStyle | None,
    use_docstring_info: bool,
    failure_error_function: Any,
    strict_mode: bool,
    is_enabled: Any,
    annotations: ToolAnnotations | None,
    metadata: Mapping[str, Any] | None,
    output_schema: bool = False,
    run_in_thread: bool = True,
    enable_bracketing: bool = True,
) -> FunctionTool[..., Any]:
    func, binding = _unwrapped(func)
    _check_kind(func, stream=stream)
    declaration = _FunctionDeclaration(
        func,
        name=check_tool_name(name_override or name_of(func)),
        stream=stream,
        local_names=caller_names(func, frame),
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


def _unwrapped(func: Any) -> tuple[Callable[..., Any], str]:
    """Take a function out of `staticmethod` or `classmethod`, and say how it will be bound."""
    if isinstance(func, classmethod):
        return typing.cast("Any", func).__func__, "class"
    if isinstance(func, staticmethod):
        return typing.cast("Any", func).__func__, "static"
    return func, ""


_CO_GENERATOR, _CO_ASYNC_GENERATOR = 0x20, 0x200  # as in `inspect`, which costs its import


def _check_kind(func: Any, *, stream: bool) -> None:
    if isinstance(func, FunctionTool):
        raise UserTypeError(
            f"{func.name!r} is a tool already. Decorate the function once; "
            "`tool.with_(...)` gives a changed copy of a tool."
        )
    if not callable(func):
        raise UserTypeError(
            f"A tool is made from a callable, not from a {type(func).__name__}. "
            "Write `@function_tool` or `@function_tool(...)` right above the function."
        )
    target = implementation(func)
    code = getattr(target, "__code__", None)
    if code is None:
        from agents_tools._signature import place_of, read_signature

        read_signature(func, place_of(func, name_of(func)))
        flags = 0
    else:
        flags = code.co_flags
    generator = flags & (_CO_GENERATOR | _CO_ASYNC_GENERATOR)
    if generator and not stream:
        raise _refusal(func, "it is a generator function.", "Decorate it with `@streaming_tool`.")
    if stream and not generator:
        raise _refusal(
            func,
            "it is no generator function, so it has nothing to stream.",
            "Yield events and at last the result, or decorate it with `@function_tool`.",
        )


def _refusal(func: Callable[..., Any], fault: str, remedy: str) -> UserTypeError:
    from agents_tools._signature import place_of

    return place_of(func, name_of(func)).refuse(fault, remedy)


class _FunctionDeclaration:
    """The declaration of a tool that is a Python function; builds what it is asked for, once."""

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

    # Built when asked for; building twice at once gives two equal results, either of which does.
    _skip_first = False
    _schema: FuncSchema | None = None
    _body: Call | None = None
    _output: Any = EMPTY

    @property
    def origin(self) -> ToolOrigin:
        from agents_tools._records import ToolOrigin
        from agents_tools._signature import place_of

        kind = "stream" if self._stream else "function"
        return ToolOrigin(kind=kind, place=place_of(self._func, self.name).where)

    @property
    def schema(self) -> FuncSchema:
        if self._schema is None:
            from agents_tools.schema import function_schema

            self._schema = function_schema(
                self._func,
                name_override=self.name,
                description_override=self._description_override,
                docstring_style=self._docstring_style,
                use_docstring_info=self._use_docstring_info,
                strict_json_schema=self._strict_mode,
                local_names=self._local_names,
                skip_first=self._skip_first,
            )
        return self._schema

    @property
    def description(self) -> str:
        return self.schema.description or ""

    @property
    def json_schema(self) -> dict[str, Any]:
        return self.schema.json_schema

    @property
    def output_json_schema(self) -> dict[str, Any] | None:
        described = self._described_output() if self._output_schema else None
        return None if described is None else described[0]

    def check(self, args_json: str) -> None:
        self.schema.read(args_json)

    def serializer(self) -> Any:
        described = None if self._stream else self._described_output()
        return None if described is None else described[1]

    def _described_output(self) -> Any:
        if self._output is EMPTY:
            from agents_tools._signature import return_annotation
            from agents_tools.schema import schema_of_type

            annotation = (
                EMPTY
                if self._stream
                else return_annotation(self._func, local_names=self._local_names)
            )
            useful = annotation not in _NO_OUTPUT_SCHEMA and not _holds_blocks(annotation)
            self._output = schema_of_type(annotation, mode="serialization") if useful else None
        return self._output

    @property
    def body(self) -> Call:
        if self._body is None:
            self._body = self._built_body()
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
        """Leave the first parameter out: the function is a method."""
        self._skip_first = True

    def bind(self, instance: object) -> _FunctionDeclaration:
        bound = object.__new__(_FunctionDeclaration)
        bound.__dict__.update(self.__dict__)
        bound._schema = self.schema
        bound._body = None
        bound._func = types.MethodType(self._func, instance)
        return bound

    def _built_body(self) -> Call:
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


def _holds_blocks(annotation: Any) -> bool:
    """Whether a return annotation speaks of content blocks, which are no value for programs."""
    outputs: Any = sys.modules.get("agents_tools.outputs")
    if outputs is None:
        return False  # nobody can have named one
    kinds = (*typing.get_args(outputs.ContentBlock), outputs.ToolResult)
    waiting = [annotation]
    while waiting:
        one = waiting.pop()
        if one in kinds:
            return True
        waiting.extend(typing.get_args(one))
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
    from agents_tools._threads import run_in_thread

    read, to_call = schema.read, schema.to_call

    async def body(context: ToolContext[Any], args_json: str) -> Any:
        args, kwargs = to_call(read(args_json), context)
        context.validated = True
        value = await run_in_thread(func, *args, **kwargs)
        return await value if _is_awaitable(value) else value

    return body


def _is_awaitable(value: Any) -> bool:
    return type(value) is not str and hasattr(value, "__await__")


_TURN = 0.001
"""How long a streaming tool that nobody watches may hold the event loop, in seconds."""


def _async_stream_body(func: Callable[..., Any], schema: FuncSchema) -> Call:
    from asyncio import sleep

    from agents_tools.events import Event

    read, to_call, name = schema.read, schema.to_call, schema.name

    async def body(context: ToolContext[Any], args_json: str) -> Any:
        args, kwargs = to_call(read(args_json), context)
        context.validated = True
        stream = func(*args, **kwargs)
        emit, channel = context.emit, context.channel
        next_turn = 0.0
        try:
            async for item in stream:
                if isinstance(item, Event):
                    emit(item)
                elif item is not None:
                    return item
                if channel is not None:
                    if channel.due():
                        await channel.room()
                elif perf_counter() >= next_turn:
                    await sleep(0)  # a body that never waits must not stop the loop
                    next_turn = perf_counter() + _TURN
        finally:
            await _closed(stream, name)
        raise _no_result(name)

    return body


async def _closed(stream: Any, name: str) -> None:
    """Close a generator, which runs its `finally`; for `GRACE` seconds at most."""
    if stream.ag_frame is None:
        return
    import asyncio

    from agents_tools._supervisor import GRACE

    try:
        async with asyncio.timeout(GRACE):
            await stream.aclose()
    except Exception:  # noqa: BLE001 - the result is there; a fault after it is only logged
        _log().exception("Streaming tool %r failed while it was closed.", name)


def _sync_stream_body(func: Callable[..., Any], schema: FuncSchema) -> Call:
    from agents_tools._threads import run_in_thread
    from agents_tools.events import Event

    read, to_call, name = schema.read, schema.to_call, schema.name

    async def body(context: ToolContext[Any], args_json: str) -> Any:
        args, kwargs = to_call(read(args_json), context)
        context.validated = True

        def drive() -> Any:
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
            raise _no_result(name)

        drive.__qualname__ = getattr(func, "__qualname__", name)
        return await run_in_thread(drive)

    return body


def _close(stream: Any, name: str) -> None:
    try:
        stream.close()
    except Exception:  # noqa: BLE001 - the result is there; a fault after it is only logged
        _log().exception("Streaming tool %r failed while it was closed.", name)


def _no_result(name: str) -> ToolStreamError:
    return ToolStreamError(
        f"Streaming tool {name!r} ended without a result: nothing but events was yielded. "
        "Its last yield must be the result, for example a string."
    )


def _log() -> Any:
    import logging

    guard_logs()
    return logging.getLogger("agents_tools")
