"""Python functions as sources of tools: their schemas, and how their calls run."""

from __future__ import annotations

import sys
import types
import typing
from copy import copy
from time import perf_counter
from typing import Any

from agents_tools.errors import ToolStreamError
from agents_tools.schema.callables import EMPTY, class_names, implementation
from agents_tools.text.secrets import library_logger
from agents_tools.tool.source import OutputDescription, ToolDescription, ToolSource

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from agents_tools.schema.arguments import Arguments
    from agents_tools.schema.docstring import DocstringStyle
    from agents_tools.schema.function import FuncSchema, StreamedParameters
    from agents_tools.tool.call import Call
    from agents_tools.tool.records import ToolOrigin

    Body = Callable[[Call], Coroutine[Any, Any, Any]]

__all__ = ["FunctionSource"]


class FunctionSource(ToolSource):
    """A Python function; the schema and the validator are built when they are first needed.

    Args:
        func: The function.
        name: The name of the tool.
        stream: Whether the function is a generator that yields events.
        local_names: The names of the scope where the function was defined.
        description_override: The description, instead of that of the docstring.
        docstring_style: The style of the docstring; by default it is detected.
        use_docstring_info: Whether descriptions are read from the docstring.
        strict_mode: Whether to request strict mode from providers that have one.
        output_schema: Whether the return annotation is published as the schema of the results.
        run_in_thread: Whether a sync function runs in a worker thread.
        start_early: Whether a function with an `ArgumentStream` starts before the arguments of its
            optional parameters are known.
    """

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
        start_early: bool,
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
        self._start_early = start_early

    # Built at first use. Two threads can build the same part; the results are equal.
    _skip_first = False
    _schema: FuncSchema | None = None
    _description: ToolDescription | None = None
    _body: Body | None = None
    _parse: Callable[[str], Arguments] | None = None
    _output: OutputDescription | None = None

    @property
    def origin(self) -> ToolOrigin:
        """The kind, and the file and line of the function."""
        from agents_tools.schema.signature import location_of
        from agents_tools.tool.records import ToolOrigin

        kind = "stream" if self._stream else "function"
        return ToolOrigin(kind=kind, place=location_of(self._func, self.name).where)

    @property
    def can_be_stopped(self) -> bool:
        """Whether a cancelled call stops: a function in a thread continues to its end."""
        from inspect import isasyncgenfunction

        if self._stream:
            return isasyncgenfunction(implementation(self._func))
        return self._is_async or not self._run_in_thread

    @property
    def schema(self) -> FuncSchema:
        """The schema of the function."""
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

    def describe(self) -> ToolDescription:
        """Return the description and the JSON Schema of the parameters.

        Raises:
            UserError: A parameter cannot be described.
        """
        if self._description is None:
            schema = self.schema
            self._description = ToolDescription(schema.description or "", schema.json_schema)
        return self._description

    def describe_output(self) -> OutputDescription:
        """Return the JSON Schema of the return annotation, and its serializer."""
        if self._output is None:
            self._output = self._build_output()
        return self._output

    def _build_output(self) -> OutputDescription:
        from agents_tools.schema.function import schema_of_type
        from agents_tools.schema.signature import return_annotation

        if self._stream:
            return OutputDescription()
        annotation = return_annotation(self._func, local_names=self._local_names)
        if _has_no_output_schema(annotation) or _has_content_blocks(annotation):
            return OutputDescription()
        described = schema_of_type(annotation, mode="serialization")
        if described is None:
            return OutputDescription()
        schema, serializer = described
        return OutputDescription(schema if self._output_schema else None, serializer)

    def build(self) -> None:
        """Build the schema, the validator and the body."""
        self._body = self._body or self._build_body()

    def parse(self, args_json: str) -> Arguments:
        """Validate arguments.

        Raises:
            ModelBehaviorError: The arguments are invalid.
        """
        parse = self._parse
        if parse is None:
            parse = self._parse = self.schema.reader.parse
        return parse(args_json)

    @property
    def streamed_parameters(self) -> StreamedParameters | None:
        """The parameters that the function can read while the model writes them."""
        return self.schema.streamed_parameters(start_early=self._start_early)

    def parse_known(self, args_json: str) -> Arguments:
        """Validate the arguments that are not streamed.

        Raises:
            ModelBehaviorError: The arguments are invalid.
        """
        return self.schema.known_reader.parse(args_json)

    def run(self, call: Call) -> Coroutine[Any, Any, Any]:
        """Run a call with the arguments of its parameters, and the context if it accepts one."""
        body = self._body
        if body is None:
            body = self._body = self._build_body()
        return body(call)

    @property
    def _is_async(self) -> bool:
        from inspect import iscoroutinefunction

        return iscoroutinefunction(implementation(self._func)) or iscoroutinefunction(self._func)

    def as_method(self) -> None:
        """Leave the first parameter out of the schema, because the function is a method."""
        self._skip_first = True
        self._schema = self._description = self._body = self._parse = None

    def bind(self, instance: object) -> FunctionSource:
        """Return the source for the method of an instance or class."""
        if self._schema is None:
            owner = instance if isinstance(instance, type) else type(instance)
            names = {**class_names(self._func, owner), **self._local_names}
            self._schema = self._build_schema(names)
        bound = copy(self)
        bound._schema = self.schema
        bound._body = bound._parse = None
        bound._func = types.MethodType(self._func, instance)
        return bound

    def _build_body(self) -> Body:
        from inspect import isasyncgenfunction, iscoroutinefunction

        schema, func = self.schema, self._func
        if self._stream:
            if isasyncgenfunction(implementation(func)):
                return _async_stream_body(func, schema)
            return _sync_stream_body(func, schema)
        is_plain = schema.plain and not schema.takes_context and not schema.streams
        if is_plain and iscoroutinefunction(func):
            return lambda call: func(**call.parsed.values())
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


def _binder(schema: FuncSchema) -> Callable[[Call], tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return the function that returns the arguments of a call, by position and by name."""
    values_of = _values_with_streams(schema.streams) if schema.streams else _values
    if schema.takes_context:
        return lambda call: schema.to_call(values_of(call), call.context)
    return lambda call: schema.to_call(values_of(call))


def _values(call: Call) -> dict[str, Any]:
    return call.parsed.values()


def _values_with_streams(names: tuple[str, ...]) -> Callable[[Call], dict[str, Any]]:
    """Return the function that returns the values of a call, with an `ArgumentStream` for texts."""
    from agents_tools.tool.argument_stream import ArgumentStream

    def values_of(call: Call) -> dict[str, Any]:
        values = _values(call)
        for name in names:
            if call.incoming is not None:
                values[name] = call.incoming.stream(name)
            elif isinstance(text := values.get(name), str):
                values[name] = ArgumentStream(text)
        return values

    return values_of


def _async_body(func: Callable[..., Awaitable[Any]], schema: FuncSchema) -> Body:
    arguments_of = _binder(schema)

    async def body(call: Call) -> Any:
        args, kwargs = arguments_of(call)
        return await func(*args, **kwargs)

    return body


def _inline_body(func: Callable[..., Any], schema: FuncSchema) -> Body:
    arguments_of = _binder(schema)

    async def body(call: Call) -> Any:
        args, kwargs = arguments_of(call)
        value = func(*args, **kwargs)
        return await value if _is_awaitable(value) else value

    return body


def _thread_body(func: Callable[..., Any], schema: FuncSchema) -> Body:
    from agents_tools.concurrency.threads import run_in_thread

    arguments_of = _binder(schema)

    async def body(call: Call) -> Any:
        args, kwargs = arguments_of(call)
        value = await run_in_thread(func, *args, **kwargs)
        return await value if _is_awaitable(value) else value

    return body


def _is_awaitable(value: Any) -> bool:
    return type(value) is not str and hasattr(value, "__await__")


_MAX_BLOCKING = 0.001
"""How long a streaming tool without a subscriber can block the event loop, in seconds."""


def _async_stream_body(func: Callable[..., Any], schema: FuncSchema) -> Body:
    from asyncio import sleep

    from agents_tools.events.base import Event

    arguments_of, name = _binder(schema), schema.name

    async def body(call: Call) -> Any:
        args, kwargs = arguments_of(call)
        stream = func(*args, **kwargs)
        emit, channel = call.emit, call.channel
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
    except asyncio.CancelledError:
        raise
    except BaseException:  # noqa: BLE001 - the outcome stands, so a later error is only logged
        library_logger().exception("Streaming tool %r failed while it was closed.", name)


def _sync_stream_body(func: Callable[..., Any], schema: FuncSchema) -> Body:
    from agents_tools.concurrency.threads import run_in_thread
    from agents_tools.events.base import Event

    arguments_of, name = _binder(schema), schema.name

    async def body(call: Call) -> Any:
        args, kwargs = arguments_of(call)

        def iterate() -> Any:
            stream = func(*args, **kwargs)
            try:
                for item in stream:
                    if isinstance(item, Event):
                        call.emit_blocking(item)
                    elif item is not None:
                        return item
                    call.check()
            finally:
                _close(stream, name)
            raise _missing_result(name)

        iterate.__qualname__ = getattr(func, "__qualname__", name)
        return await run_in_thread(iterate)

    return body


def _close(stream: Any, name: str) -> None:
    try:
        stream.close()
    except BaseException:  # noqa: BLE001 - the outcome stands, so a later error is only logged
        library_logger().exception("Streaming tool %r failed while it was closed.", name)


def _missing_result(name: str) -> ToolStreamError:
    return ToolStreamError(
        f"Streaming tool {name!r} ended without a result: it yielded only events. "
        "Yield the result last, for example a string."
    )
