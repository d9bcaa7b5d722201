"""The decorators `function_tool` and `streaming_tool`, which create tools from functions."""

from __future__ import annotations

import sys
import typing
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from agents_tools.errors import UserTypeError
from agents_tools.schema.callables import enclosing_names, implementation, name_of
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.failure import DEFAULT
from agents_tools.tool.function_source import FunctionSource
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.options import (
    StreamingToolOptions,
    ToolOptions,
    check_option_names,
    check_options,
)
from agents_tools.tool.tool import FunctionTool

if typing.TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from agents_tools.schema.docstring import DocstringStyle
    from agents_tools.tool.records import FailureErrorFunction, IsEnabled, ToolAnnotations

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
    start_early: bool = False,
    metadata: Mapping[str, Any] | None = None,
    **unknown: Any,
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
        start_early: Whether a tool with an `ArgumentStream` starts when the text begins and all
            required arguments are valid, although arguments of optional parameters can follow. One
            that does ends the call with an error. By default the tool starts when all other
            arguments are valid.
        metadata: Any other data; namespaces named after providers are merged at export.
        **unknown: No other option exists. For one of openai-agents, the error names the
            counterpart.

    Raises:
        UserError: The callable cannot be a tool; the message says how to fix it.
    """  # noqa: D214 - the example has a docstring with a section of its own
    check_option_names("function_tool(...)", unknown, ToolOptions.__annotations__)
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
        "start_early": start_early,
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
    start_early: bool = False,
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
        start_early=start_early,
        enable_bracketing=enable_bracketing,
    )
    source = FunctionSource(
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
        start_early=start_early,
    )
    return FunctionTool[..., Any].of_source(
        source,
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
            f"function_tool expects a callable, got {type_with_article(func)}. "
            "Write `@function_tool` or `@function_tool(...)` directly above the function."
        )
    target = implementation(func)
    code = getattr(target, "__code__", None)
    if code is None:
        from agents_tools.schema.signature import location_of, read_signature

        read_signature(func, location_of(func, name_of(func)))
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
    from agents_tools.schema.signature import location_of

    return location_of(func, name_of(func)).refuse(problem, remedy)
