"""Failures of calls: which exceptions are failures, their status, and the text for the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import (
    AgentsToolsError,
    Interruption,
    ToolCancelledError,
    ToolDeniedError,
    ToolError,
    ToolLostError,
    ToolOverloadedError,
    ToolTimeoutError,
)
from agents_tools.text.output import release_text
from agents_tools.text.secrets import library_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agents_tools.events.kinds import CallStatus
    from agents_tools.tool.call import Call
    from agents_tools.tool.records import FailureErrorFunction

__all__ = [
    "DEFAULT",
    "default_tool_error_function",
    "describe_error",
    "error_record",
    "failure_text",
    "hidden_message",
    "is_public",
    "is_public_text",
    "kind_of",
    "set_default_tool_error_function",
    "status_of",
    "to_exception",
]


class _DefaultValue:
    def __repr__(self) -> str:
        return "<default>"


DEFAULT: Any = _DefaultValue()
"""Stands for the default failure function, because `None` means that errors are raised."""


def default_tool_error_function(ctx: object, error: Exception) -> str:
    """Return a text that explains a failed call to the model.

    For invalid arguments the text lists every problem with its location. For a `ToolError` and
    the library's other errors it is their message. For any other exception it is the type and
    the message, at most 500 characters. Notes of the exception (`add_note`) follow its message.
    For an exception group the text lists up to ten of its exceptions; for one that contains only
    errors of this library it is their messages. Known secrets are masked, and tracebacks are never
    included. The text has at most 2,000 characters.

    Args:
        ctx: The context of the call.
        error: The exception.
    """
    from agents_tools.content.json_value import UnserializableOutput
    from agents_tools.text.escape import type_name

    name = getattr(ctx, "tool_name", "") or "?"
    if isinstance(error, UnserializableOutput):
        text = _NOT_CONVERTED.format(name, error.problem)
    elif _is_of_library(error):
        text = _public_message(error)
    else:
        details = release_text(_details(error), to="model", patterns=True)
        text = f"Tool {name!r} failed: {type_name(type(error))}" + (details and f": {details}")
    return release_text(text, to="model", limit=_MAX_TEXT, patterns=True)


_NOT_CONVERTED = (
    "Tool {!r} ran, but its result cannot be shown. {} This is a fault of the tool and not of the "
    "call: do not repeat it with other arguments."
)
_MAX_TEXT = 2_000
_MAX_MESSAGE = 500
_MAX_NESTED = 10
"""The number of exceptions of a group that a text lists."""


def _is_of_library(error: BaseException) -> bool:
    """Return whether an error is one of this library, or a group that contains nothing else.

    Such a group is that of a `TaskGroup` in which a `ToolError` was raised.
    """
    return all(isinstance(one, AgentsToolsError) for one in _leaves(error))


def error_record(error: BaseException) -> tuple[str, str]:
    """Return the type and the message of an error for another process, without masking.

    The type of an error of this library is the class of `agents_tools.errors`, not a subclass that
    only the tool knows. An exception group cannot be rebuilt there, so its message lists its
    exceptions.
    """
    from agents_tools.content.json_value import UnserializableOutput
    from agents_tools.text.escape import type_name

    if isinstance(error, UnserializableOutput):
        return type_name(UnserializableOutput), error.problem
    is_group = issubclass(type(error), BaseExceptionGroup)
    if is_group and _is_of_library(error):
        return type_name(ToolError), _public_message(error)
    message = _details(error) if is_group else _message_of(error)
    bases = type(error).__mro__
    known = (base for base in bases if base.__module__ == AgentsToolsError.__module__)
    return type_name(next(known, type(error))), message


def _public_message(error: BaseException) -> str:
    leaves = list(_leaves(error))
    lines = [_message_of(one) for one in leaves[:_MAX_NESTED]]
    return "\n".join([*lines, *_rest_line(len(leaves))])


def _details(error: BaseException) -> str:
    """Return the message and the notes of an error, and the exceptions of a group."""
    from agents_tools.text.escape import shorten

    text = shorten(_message_of(error), _MAX_MESSAGE)
    if not isinstance(error, BaseExceptionGroup):
        return text
    nested = list(_nested(cast("BaseExceptionGroup[BaseException]", error)))
    shown = nested[:_MAX_NESTED]
    limit = min(_MAX_MESSAGE, (_MAX_TEXT - _MAX_MESSAGE) // len(shown))
    lines = [_nested_line(depth, one, limit) for depth, one in shown]
    return "\n".join([text, *lines, *_rest_line(len(nested))])


def _nested_line(depth: int, error: BaseException, limit: int) -> str:
    from agents_tools.text.escape import shorten, type_name

    text = _message_of(error)
    if not isinstance(error, AgentsToolsError):
        text = type_name(type(error)) + (text and f": {text}")
    indent = "  " * depth
    return f"{indent}- " + shorten(text, limit).replace("\n", f"\n{indent}  ")


def _rest_line(count: int) -> list[str]:
    return [f"and {count - _MAX_NESTED:,} more"] if count > _MAX_NESTED else []


def _nested(group: BaseExceptionGroup[BaseException]) -> Iterator[tuple[int, BaseException]]:
    """Yield the exceptions of a group with their depth, each group before its members."""
    waiting = [(0, one) for one in reversed(group.exceptions)]
    while waiting:
        depth, error = waiting.pop()
        yield depth, error
        if isinstance(error, BaseExceptionGroup):
            inner = cast("BaseExceptionGroup[BaseException]", error)
            waiting += [(depth + 1, one) for one in reversed(inner.exceptions)]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield an error itself, or the exceptions of a group that are not groups."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for _, one in _nested(cast("BaseExceptionGroup[BaseException]", error)):
        if not isinstance(one, BaseExceptionGroup):
            yield one


_default_function: Callable[[Any, Exception], Any] = default_tool_error_function


def set_default_tool_error_function(function: FailureErrorFunction | None) -> None:
    """Set the failure function of every tool that has none of its own.

    Args:
        function: Called with the context and the error; sync or async. `None` restores
            `default_tool_error_function`.
    """
    global _default_function  # noqa: PLW0603 - the one process-wide setting of this module
    _default_function = default_tool_error_function if function is None else function


async def failure_text(
    function: Any, context: Any, error: Exception, *, name: str, is_closing: bool
) -> Any:
    """Return the text for the model that a failure function returns.

    If the failure function itself fails, the failure is logged and the text is that of
    `default_tool_error_function`.

    Args:
        function: The failure function of the tool, or `DEFAULT`.
        context: The context of the call.
        error: The exception.
        name: The name of the tool, for the log.
        is_closing: Whether the coroutine of the call is being closed. It must not await then, so
            an async failure function is not run.
    """
    try:
        text = (_default_function if function is DEFAULT else function)(context, error)
        if not isinstance(text, str) and is_closing:
            _close_unawaited(text)
            text = default_tool_error_function(context, error)
        elif not isinstance(text, str):
            text = await text
    except Exception:  # noqa: BLE001 - the model gets a text whatever the function does
        library_logger().exception("The failure function of tool %r raised an exception.", name)
        text = default_tool_error_function(context, error)
    return release_text(text, to="model") if isinstance(text, str) else text


def is_public(error: BaseException) -> bool:
    """Return whether callers outside the application can read the message of an exception."""
    return all(isinstance(one, AgentsToolsError) and one.is_public for one in _leaves(error))


def is_public_text(text: object, context: object, error: Exception) -> bool:
    """Return whether callers outside the application can read a text from `failure_text`.

    They can if the message of the exception is public, or if the author of the tool has written
    the text: then it is not the default one.
    """
    return is_public(error) or text != default_tool_error_function(context, error)


def hidden_message(error: BaseException, *, name: str) -> str:
    """Return a text about an exception without its message, with an id to search for in the log.

    Args:
        error: The exception.
        name: The name of the tool.
    """
    import os

    return f"Tool {name!r} failed: {kind_of(error)} (error {os.urandom(4).hex()})."


def describe_error(error: BaseException) -> str:
    """Return the type and the message of an exception, as in `RunFinishedEvent.error`."""
    return f"{kind_of(error).rpartition('.')[2]}: {_message_of(error)}"


def kind_of(error: BaseException) -> str:
    """Return the name of the type of an exception, or of the exception that it wraps."""
    from agents_tools.text.escape import type_name

    is_wrapper = isinstance(error, AgentsToolsError) and not error.is_public
    return type_name(type(error.__cause__ if is_wrapper and error.__cause__ else error))


def _close_unawaited(awaitable: Any) -> None:
    """Close a coroutine or cancel a future that is never awaited."""
    close = getattr(awaitable, "close", None) or getattr(awaitable, "cancel", None)
    if close is not None:
        close()


def to_exception(raised: BaseException, call: Call) -> Exception:
    """Return the exception that a failed call reports, for whatever the tool raised.

    Three kinds are raised on, because they concern the caller and not the tool: an
    `Interruption`, a cancellation from outside, and a `KeyboardInterrupt` from Ctrl-C. Other
    exceptions that are no `Exception`, such as `SystemExit`, and exceptions that would end an
    iteration of the caller, are wrapped in a `ToolError`.

    Args:
        raised: The exception as it was caught.
        call: The call; a cancellation marks it as cancelled.
    """
    import asyncio

    from agents_tools.text.escape import type_name

    error = raised
    if isinstance(raised, Interruption):
        raise raised
    if type_name(type(raised)) == "agents_tools.concurrency.threads.ThreadException":
        error = cast("Any", raised).error
    if isinstance(error, asyncio.CancelledError):
        call.cancel()
        if error is raised and call.is_caller_cancelled:
            raise raised
        return _wrap(error, "the tool cancelled itself")
    if isinstance(error, KeyboardInterrupt) and error is raised and _is_from_signal(error):
        raise raised
    if isinstance(error, Exception) and not isinstance(error, (StopIteration, StopAsyncIteration)):
        if isinstance(error, RuntimeError) and isinstance(
            error.__cause__, (StopIteration, StopAsyncIteration)
        ):
            return _wrap(error.__cause__, "raised inside the tool")
        return error
    return _wrap(error, _details(error) or "raised inside the tool")


def _wrap(error: BaseException, reason: str) -> ToolError:
    from agents_tools.text.escape import type_name

    wrapped = ToolError(f"The tool failed with {type_name(type(error))}: {reason}")
    wrapped.__cause__ = error
    wrapped.is_public = False
    return wrapped


def _is_from_signal(error: KeyboardInterrupt) -> bool:
    """Return whether Ctrl-C raised the exception, rather than a `raise` statement of the tool.

    A signal can arrive at any instruction, so the last frame is then not at a `raise`.
    """
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


def _message_of(error: BaseException) -> str:
    """Return the message of an exception, followed by its notes."""
    try:
        notes: object = getattr(error, "__notes__", None)
        parts = [str(error), *(cast("list[object]", notes) if isinstance(notes, list) else ())]
        return "\n".join(part for part in parts if isinstance(part, str) and part)
    except BaseException:  # noqa: BLE001 - a broken __str__ of the tool's own exception
        return "(its message cannot be shown)"


_STATUS: list[tuple[type[Exception], CallStatus]] = [
    (ToolTimeoutError, "timeout"),
    (ToolCancelledError, "cancelled"),
    (ToolDeniedError, "denied"),
    (ToolOverloadedError, "overloaded"),
    (ToolLostError, "lost"),
]


def status_of(error: Exception, call: Call) -> CallStatus:
    """Return the status of a call that failed with an exception."""
    if not call.comes_from_function(error):
        return "invalid_args"
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    return "tool_error"
