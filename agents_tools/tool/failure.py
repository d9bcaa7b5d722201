"""Failures of calls: which exceptions are failures, their status, and the text for the model."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any

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
)
from agents_tools.text.output import release_text
from agents_tools.text.secrets import guard_logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.events.kinds import CallStatus
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.declaration import FailureErrorFunction

__all__ = [
    "DEFAULT",
    "default_tool_error_function",
    "describe_error",
    "failure_text",
    "hidden_message",
    "is_public",
    "is_public_text",
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
    the message, at most 500 characters. Known secrets are masked, and tracebacks are never
    included. The text has at most 2,000 characters.

    Args:
        ctx: The context of the call.
        error: The exception.
    """
    from agents_tools.text.escape import type_name

    name = getattr(ctx, "tool_name", "") or "?"
    if isinstance(error, AgentsToolsError):
        text = _message_of(error)
    else:
        message = release_text(_message_of(error), to="model", limit=500, patterns=True)
        text = f"Tool {name!r} failed: {type_name(type(error))}" + (message and f": {message}")
    return release_text(text, to="model", limit=2_000, patterns=True)


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
    function: Any, context: ToolContext[Any], error: Exception, *, name: str, is_closing: bool
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
        _log().exception("The failure function of tool %r raised an exception.", name)
        text = default_tool_error_function(context, error)
    return release_text(text, to="model") if isinstance(text, str) else text


def is_public(error: BaseException) -> bool:
    """Return whether callers outside the application can read the message of an exception."""
    return isinstance(error, AgentsToolsError) and error.is_public


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

    return f"Tool {name!r} failed: {_kind_of(error)} (error {os.urandom(4).hex()})."


def describe_error(error: BaseException) -> str:
    """Return the type and the message of an exception, as in `RunFinishedEvent.error`."""
    return f"{_kind_of(error).rpartition('.')[2]}: {_message_of(error)}"


def _kind_of(error: BaseException) -> str:
    """Return the name of the type of an exception, or of the exception that it wraps."""
    from agents_tools.text.escape import type_name

    is_wrapper = isinstance(error, AgentsToolsError) and not error.is_public
    return type_name(type(error.__cause__ if is_wrapper and error.__cause__ else error))


def _close_unawaited(awaitable: Any) -> None:
    """Close a coroutine or cancel a future that is never awaited."""
    close = getattr(awaitable, "close", None) or getattr(awaitable, "cancel", None)
    if close is not None:
        close()


def to_exception(raised: BaseException, context: ToolContext[Any]) -> Exception:
    """Return the exception that a failed call reports, for whatever the tool raised.

    Three kinds are raised on, because they concern the caller and not the tool: an
    `Interruption`, a cancellation from outside, and a `KeyboardInterrupt` from Ctrl-C. Other
    exceptions that are no `Exception`, such as `SystemExit`, and exceptions that would end an
    iteration of the caller, are wrapped in a `ToolError`.

    Args:
        raised: The exception as it was caught.
        context: The context of the call; it is marked as cancelled by a cancellation.
    """
    import asyncio

    from agents_tools.text.escape import type_name

    error = raised
    if isinstance(raised, Interruption):
        raise raised
    if type_name(type(raised)) == "agents_tools.concurrency.threads.ThreadException":
        error = typing.cast("Any", raised).error
    if isinstance(error, asyncio.CancelledError):
        context.cancel()
        task = asyncio.current_task()
        if error is raised and (task is None or task.cancelling()):
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
    return _wrap(error, _message_of(error) or "raised inside the tool")


def _wrap(error: BaseException, reason: str) -> ToolError:
    from agents_tools.text.escape import shorten, type_name

    wrapped = ToolError(f"The tool failed with {type_name(type(error))}: {shorten(reason, 500)}")
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
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - a broken __str__ of the tool's own exception
        return "(its message cannot be shown)"


_STATUS: list[tuple[type[Exception], CallStatus]] = [
    (ToolTimeoutError, "timeout"),
    (ToolCancelledError, "cancelled"),
    (ToolDeniedError, "denied"),
    (ToolOverloadedError, "overloaded"),
    (ToolLostError, "lost"),
]


def status_of(error: Exception, context: ToolContext[Any]) -> CallStatus:
    """Return the status of a call that failed with an exception."""
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
