"""The one invocation of a tool: from JSON arguments through policies and events to an outcome.

`prepare`, `check` and `execute` are the phases of a call, in this order; `invoke` is all of them.
An agent loop runs them one by one, because a person can decide between `check` and `execute`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agents_tools.concurrency.driver import drive
from agents_tools.errors import Interruption, ModelBehaviorError
from agents_tools.events.kinds import ToolStreamEndEvent, ToolStreamStartEvent
from agents_tools.schema.problems import malformed_error
from agents_tools.text.json_limits import parse_object
from agents_tools.text.secrets import library_logger
from agents_tools.tool import context as _  # noqa: F401 - it sets `Call.context_type`
from agents_tools.tool.arguments import encode_arguments
from agents_tools.tool.call import Call, enter_scope
from agents_tools.tool.enabled import is_enabled
from agents_tools.tool.failure import (
    default_tool_error_function,
    failure_text,
    hidden_message,
    is_public_text,
    status_of,
    to_exception,
)
from agents_tools.tool.records import CallOutcome
from agents_tools.tool.result import add_metadata, convert_value, filter_output

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from agents_tools.events.kinds import CallStatus
    from agents_tools.tool.policy import Policy, PolicyStack

__all__ = [
    "approve",
    "check",
    "execute",
    "guard",
    "invoke",
    "prepare",
    "replace_arguments",
    "validate",
]


async def invoke(tool: Any, context: Any, args_json: str, *, convert: bool = True) -> CallOutcome:
    """Call a tool, and return the outcome.

    Args:
        tool: The tool.
        context: A `ToolContext`, a `RunContextWrapper`, a fresh `Call`, or `None`.
        args_json: The arguments as JSON text.
        convert: Whether the outcome gets an output for the model.
    """
    call = Call.running(context, tool.name, args_json)
    if tool.source.can_route or tool.stack.prepares:
        await prepare(call, tool, args_json)
    else:
        _parse(call, tool, args_json, ())
    if call.tool.stack.has_checks and call.failure is None:
        await check(call)
    outcome = await execute(call, convert=convert)
    error = outcome.error
    try:
        if error is None or call.tool is tool or call.tool.failure_function is not None:
            return outcome
        # The called tool reports errors by raising them, but the caller did not call it itself.
        return replace(outcome, output=default_tool_error_function(call.context, error))
    finally:
        del outcome, error  # the traceback of the error keeps this frame, from Python 3.12 on


async def prepare(call: Call, tool: Any, args_json: str) -> None:
    """Find the tool that a call is for, and repair, convert and validate its arguments.

    An error becomes the failure of the call, which `execute` reports.

    Args:
        call: The call.
        tool: The tool that was called.
        args_json: The arguments as JSON text.
    """
    applied: list[Policy] = []
    call.tool = tool
    try:
        tool, args_json = await _route(call, tool, args_json)
        stack = tool.stack
        for policy in stack.repairs:
            args_json = call.sent = policy.repair_text(call, args_json)
        if stack.maps:
            args_json = await _map_arguments(call, args_json, applied)
    except Exception as error:  # noqa: BLE001 - reported as a failure of the call
        _fail(call, error, applied)
    else:
        _parse(call, tool, args_json, applied)


async def _route(call: Call, tool: Any, args_json: str) -> tuple[Any, str]:
    """Return the tool that a call is for, and its arguments."""
    target, routed = tool.source.route(tool, args_json, call)
    if target is not tool and not await is_enabled(target, call.context, call.agent):
        # A disabled tool is never called: the tool that gives access answers that it is not there.
        target, routed = tool, args_json
    call.tool, call.tool_name, call.sent = target, target.name, routed
    return target, routed


def _parse(call: Call, tool: Any, args_json: str, applied: Sequence[Policy]) -> None:
    """Validate the arguments of a call; an error becomes the failure of the call."""
    call.tool = tool
    try:
        source = tool.source
        call.parsed = (source.parse if call.incoming is None else source.parse_known)(args_json)
    except Exception as error:  # noqa: BLE001 - reported as a failure of the call
        _fail(call, error, applied)


def _fail(call: Call, error: Exception, applied: Sequence[Policy]) -> None:
    if isinstance(error, ModelBehaviorError):
        error = _map_error(call, error, applied)
        if isinstance(error, ModelBehaviorError):
            call.argument_error = error
    call.failure = error


async def _map_arguments(call: Call, args_json: str, applied: list[Policy]) -> str:
    """Return the arguments of the tool for those that the model sent.

    Args:
        call: The call.
        args_json: The arguments that the model sent.
        applied: Receives the policies that have converted the arguments.
    """
    sent = parse_object(args_json)
    if sent is None:
        call.tool.source.parse(args_json)  # raises the error of the tool
        raise malformed_error(call.tool_name, "no_object", "expected one JSON object")
    mapped = dict(sent)
    for policy in call.tool.stack.maps:
        mapped = await policy.map_arguments(call, mapped)
        applied.append(policy)
    return args_json if mapped == sent and not call.hidden else _to_json(call, mapped)


def _to_json(call: Call, arguments: Mapping[str, Any]) -> str:
    values = {**arguments, **call.hidden}
    remedy = "Return JSON values from its policies."
    return encode_arguments(values, f"of tool {call.tool_name!r}", remedy)


def _map_error(call: Call, error: ModelBehaviorError, applied: Sequence[Policy]) -> Exception:
    """Return an error about the arguments with the names that the model saw."""
    mapped: Exception = error
    for policy in reversed(applied):
        if isinstance(mapped, ModelBehaviorError):
            mapped = policy.map_error(call, mapped)
    return mapped


def validate(call: Call, arguments: Mapping[str, Any]) -> None:
    """Replace the canonical arguments of a call by others; hidden ones stay.

    Args:
        call: The call.
        arguments: The arguments as JSON values, with the names of the tool.

    Raises:
        ModelBehaviorError: They are invalid.
    """
    call.parsed = call.tool.source.parse(_to_json(call, arguments))


def replace_arguments(call: Call, args_json: str) -> None:
    """Replace the canonical arguments of a call by those that a person edited.

    Args:
        call: The call.
        args_json: The arguments as JSON text, with the names of the tool.

    Raises:
        ModelBehaviorError: They are invalid.
    """
    edited = parse_object(args_json)
    if edited is None:
        call.tool.source.parse(args_json)  # raises the error
        edited = {}
    validate(call, edited)


async def check(call: Call) -> None:
    """Ask the policies whether a call may run: first those that decide themselves.

    An error becomes the failure of the call, which `execute` reports.

    Raises:
        Interruption: A person has to decide first.
    """
    await guard(call)
    await approve(call)


async def guard(call: Call) -> None:
    """Ask the policies that decide themselves whether a call may run, such as guardrails.

    An error becomes the failure of the call, which `execute` reports.
    """
    if call.failure is None:
        await _ask(call, call.tool.stack.guards)


async def approve(call: Call) -> None:
    """Ask the policies that ask a person whether a call may run.

    An error becomes the failure of the call, which `execute` reports.

    Raises:
        Interruption: A person has to decide first.
    """
    if call.failure is None:
        await _ask(call, call.tool.stack.approvals)


async def _ask(call: Call, policies: Sequence[Policy]) -> None:
    try:
        for policy in policies:
            arguments = await policy.before(call)
            if arguments is not None:
                validate(call, arguments)
    except Interruption:
        raise
    except ModelBehaviorError as error:
        call.failure = call.argument_error = error
    except Exception as error:  # noqa: BLE001 - reported as a failure of the call
        call.failure = error


def execute(call: Call, *, convert: bool = True) -> Coroutine[Any, Any, CallOutcome]:
    """Run a call between its start and its end event, and return its outcome.

    The function of the tool runs in the task of the caller, in a copy of the context; see `drive`.

    Args:
        call: The call, after `prepare` and `check`.
        convert: Whether the outcome gets an output for the model.

    Raises:
        asyncio.CancelledError: The caller was cancelled.
        Interruption: A run inside the call waits for a person.
        KeyboardInterrupt: The user pressed Ctrl-C.
    """
    stack: PolicyStack = call.tool.stack
    for policy in stack.event_filters:
        call.filters = (partial(policy.filter_event, call), *call.filters)
    return drive(_perform(call, convert=convert), call)


async def _perform(call: Call, *, convert: bool) -> CallOutcome:
    """Run a call in the context variables of the call, in which it is the current one."""
    enter_scope(call)
    tool = call.tool
    status: CallStatus = "cancelled"
    outcome: CallOutcome | None = None
    try:
        if call.sinks and tool.has_bracketing:
            _begin(call)
        try:
            if call.failure is not None:
                raise call.failure  # noqa: TRY301 - reported like a failure of the function
            body = tool.runner(call)
            value = await (body if call.incoming is None else call.incoming.run(body))
            outcome = convert_value(call, value) if convert else CallOutcome("ok", value, "")
        except BaseException as error:  # noqa: BLE001 - every failure becomes an outcome
            outcome = await _failure(call, error)
        if call.notes is not None:
            outcome = add_metadata(outcome, call.notes)
        status = outcome.status
        return outcome
    finally:
        if call.sinks:
            call.outcome = outcome  # for subscribers of the end event
        call.end(status)
        # The traceback of an error keeps this frame, which must not keep the error.
        outcome = call.outcome = call.failure = call.argument_error = None


def _begin(call: Call) -> None:
    start = time.perf_counter()
    call.begin(
        ToolStreamStartEvent(input_args=parse_object(call.sent) or {}),
        lambda status: ToolStreamEndEvent(status=status, duration=time.perf_counter() - start),
    )


async def _failure(call: Call, raised: BaseException) -> CallOutcome:
    """Return the outcome of a call that raised an exception.

    Exceptions that do not concern the tool, such as a cancellation from outside, are raised.
    """
    # Dropping the frame of the caller, which holds the outcome, breaks a reference cycle that
    # only the garbage collector could free. The traceback then starts with the tool's frames.
    traceback = raised.__traceback__
    raised.__traceback__ = traceback and traceback.tb_next
    error = to_exception(raised, call)
    status = status_of(error, call)
    tool = call.tool
    is_raised = tool.failure_function is None
    text = await failure_text(
        default_tool_error_function if is_raised else tool.failure_function,
        call.context,
        error,
        name=tool.name,
        is_closing=isinstance(raised, GeneratorExit),
    )
    is_public = is_public_text(text, call.context, error)
    try:
        text = filter_output(call, text)
    except Exception:  # noqa: BLE001 - the policy may have had to hide parts of the text
        library_logger().exception(
            "A policy of tool %r failed to process an error message.", tool.name
        )
        text = f"Tool {tool.name!r} failed."
    return CallOutcome(
        status=status,
        value=None,
        output="" if is_raised else cast("str", text),
        error=error,
        public_message=str(text) if is_public else hidden_message(error, name=tool.name),
    )
