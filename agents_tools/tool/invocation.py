"""Calls of a tool: from JSON arguments through policies and events to an outcome."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from agents_tools.errors import Interruption, UserTypeError
from agents_tools.text.characters import is_plain
from agents_tools.text.secrets import guard_logs, has_secrets
from agents_tools.tool.context import ToolContext, enter_scope, leave_scope
from agents_tools.tool.failure import (
    DEFAULT,
    default_tool_error_function,
    failure_text,
    hidden_message,
    is_public_text,
    status_of,
    to_exception,
)
from agents_tools.tool.result import add_metadata, apply_reply_policies, convert_value

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from agents_tools.events.kinds import CallStatus
    from agents_tools.tool.declaration import Call, CallOutcome, Declaration, Policy

__all__ = ["InvocableTool", "authorize", "prepare_arguments"]

MAX_OUTPUT = 256 * 1024
"""The default maximum size of an output, in characters; omitted text becomes an artifact."""


class InvocableTool:
    """The part of `FunctionTool` that runs calls.

    A subclass sets the attributes below, from a declaration.
    """

    _name: str
    _declaration: Declaration
    _policies: tuple[Policy, ...] = ()
    _failure_function: Any = DEFAULT
    _bracketing: bool = True
    _binding: str = ""  # "self" and "class" for unbound methods, "static" for bound and static ones
    _max_output: int = MAX_OUTPUT
    _invoker: Any = None

    @property
    def needs_admission(self) -> bool:
        """Whether policies act on a call before it runs."""
        raise NotImplementedError

    async def prepare(self, context: ToolContext[Any], args_json: str) -> str:
        """Return the arguments that the policies make of those of a call."""
        raise NotImplementedError

    async def admit(self, context: ToolContext[Any], args_json: str) -> None:
        """Ask the policies whether a call may run."""
        raise NotImplementedError

    def _build_invoker(self) -> Callable[[Any, str], Coroutine[Any, Any, Any]]:
        """Build the `on_invoke_tool` of this tool.

        Most calls have no subscriber and no policy that acts before or after them. They take a
        fast path without start and end events, which is why the checks are decided here and
        written out twice. All other calls go through `_run_call`, and all failures through
        `_failure`.
        """
        run, name, limit, enter = self._run, self._name, self._max_output, ToolContext.enter
        direct = None if self._policies else self._declaration.direct
        needs_run_call = self.needs_admission or any(policy.reply for policy in self._policies)

        async def on_invoke_tool(ctx: Any, args_json: str) -> Any:
            context = enter(ctx, name, args_json)
            if context.sinks or needs_run_call:
                return self._result_or_raise(await self._run_call(context, args_json))
            context.tool = self
            token = enter_scope(context)
            try:
                value = await run(context, args_json)
                if (
                    type(value) is str
                    and len(value) <= limit
                    and is_plain(value)
                    and not has_secrets()
                ):
                    return value
                return self._success(context, value).output
            except BaseException as error:  # noqa: BLE001 - every failure becomes an outcome
                return self._result_or_raise(await self._failure(context, error))
            finally:
                leave_scope(token)

        if direct is None:
            return on_invoke_tool
        read, func = direct

        async def on_invoke_plain(ctx: Any, args_json: str) -> Any:
            context = enter(ctx, name, args_json)
            if context.sinks:
                return self._result_or_raise(await self._run_call(context, args_json))
            token = enter_scope(context)
            arguments = None
            try:
                arguments = read(args_json)
                value = await func(**arguments)
                if (
                    type(value) is str
                    and len(value) <= limit
                    and is_plain(value)
                    and not has_secrets()
                ):
                    return value
                return self._success(context, value).output
            except BaseException as error:  # noqa: BLE001 - every failure becomes an outcome
                context.validated = arguments is not None
                return self._result_or_raise(await self._failure(context, error))
            finally:
                leave_scope(token)

        return on_invoke_plain

    @property
    def _run(self) -> Call:
        if self._binding in {"self", "class"}:
            raise UserTypeError(
                f"Tool {self._name!r} is a method that is not bound to an instance. "
                "Use `instance.tool` instead of `Class.tool`."
            )
        run = self._declaration.body
        for policy in self._policies:
            run = policy.wrap(run)
        return run

    async def _run_call(
        self, context: ToolContext[Any], args_json: str, *, convert: bool = True
    ) -> CallOutcome:
        """Run a call between its start and its end event, and return its outcome.

        The policies are asked first, unless the loop that makes the call has done so already.

        Args:
            context: The context of the call.
            args_json: The arguments as JSON text.
            convert: Whether the outcome gets an output for the model.
        """
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
                from agents_tools.events.kinds import ToolStreamEndEvent, ToolStreamStartEvent

                context.begin(
                    ToolStreamStartEvent(input_args=dict(context.arguments)),
                    lambda ended: ToolStreamEndEvent(
                        status=ended, duration=time.perf_counter() - started
                    ),
                )
            try:
                if context.refusal is not None:
                    raise context.refusal  # noqa: TRY301 - reported as a failure of the call
                value = await self._run(context, args_json)
                outcome = self._success(context, value, convert=convert)
            except BaseException as error:  # noqa: BLE001 - every failure becomes an outcome
                outcome = await self._failure(context, error)
            if context.notes is not None:
                outcome = add_metadata(outcome, context.notes)
            status = outcome.status
            return outcome
        finally:
            # Subscribers of the end event read `context.outcome`. It and the variable are cleared,
            # because the traceback of an error keeps this frame, which must not keep the error.
            context.outcome, outcome = outcome, None
            context.end(status)
            context.outcome = None
            leave_scope(token)

    def _result_or_raise(self, outcome: CallOutcome) -> Any:
        if outcome.error is None or self._failure_function is not None:
            return outcome.output
        error = outcome.error
        del outcome
        try:
            raise error
        finally:
            del error  # the traceback keeps this frame, and the frame would keep the error

    def _success(
        self, context: ToolContext[Any], value: Any, *, convert: bool = True
    ) -> CallOutcome:
        """Return the outcome of a call that returned a value.

        Args:
            context: The context of the call.
            value: The value.
            convert: Whether the outcome gets an output for the model.
        """
        if convert:
            return convert_value(
                context,
                value,
                self._declaration,
                self._policies,
                name=self._name,
                max_output=self._max_output,
            )
        from agents_tools.tool.declaration import CallOutcome

        return CallOutcome(status="ok", value=value, output="")

    async def _failure(self, context: ToolContext[Any], raised: BaseException) -> CallOutcome:
        """Return the outcome of a call that raised an exception.

        Exceptions that do not concern the tool, such as a cancellation from outside, are raised.
        """
        from agents_tools.tool.declaration import CallOutcome

        # Dropping the frame of the caller, which holds the outcome, breaks a reference cycle that
        # only the garbage collector could free. The traceback then starts with the tool's frames.
        traceback = raised.__traceback__
        raised.__traceback__ = traceback and traceback.tb_next
        error = to_exception(raised, context)
        status = status_of(error, context)
        is_raised = self._failure_function is None
        text = await failure_text(
            default_tool_error_function if is_raised else self._failure_function,
            context,
            error,
            name=self._name,
            is_closing=isinstance(raised, GeneratorExit),
        )
        public = is_public_text(text, context, error)
        try:
            text = apply_reply_policies(self._policies, context, text)
        except Exception:  # noqa: BLE001 - the policy may have had to hide parts of the text
            _log().exception("A policy of tool %r failed to process an error message.", self._name)
            text = f"Tool {self._name!r} failed."
        return CallOutcome(
            status=status,
            value=None,
            output="" if is_raised else text,
            error=error,
            public_message=str(text) if public else hidden_message(error, name=self._name),
        )


async def prepare_arguments(
    policies: tuple[Policy, ...],
    declaration: Declaration,
    context: ToolContext[Any],
    args_json: str,
) -> str:
    """Return the arguments of a call after every policy that changes them.

    An error is stored as the refusal of the context, and raised when the call is run.
    """
    reshaped = any(policy.reshape for policy in policies)
    context.arguments_json = args_json
    try:
        for policy in reversed(policies):
            if policy.mend is not None:
                args_json = context.arguments_json = policy.mend(context, args_json)
        if not reshaped:
            declaration.check(args_json)  # a person is not asked about a call that would fail
        for policy in reversed(policies):
            if policy.prepare is not None:
                args_json = context.arguments_json = await policy.prepare(context, args_json)
    except Exception as error:  # noqa: BLE001 - reported as a failure of the call
        context.refusal = error
    return args_json


async def authorize(
    policies: tuple[Policy, ...], context: ToolContext[Any], args_json: str
) -> None:
    """Ask every policy whether a call may run.

    An error is stored as the refusal of the context, and raised when the call is run.

    Raises:
        Interruption: A person has to decide first.
    """
    context.admitted = True
    if context.refusal is not None:
        return
    try:
        for policy in reversed(policies):
            if policy.admit is not None:
                await policy.admit(context, args_json)
    except Interruption:
        context.admitted = False
        raise
    except Exception as error:  # noqa: BLE001 - reported as a failure of the call
        context.refusal = error


def _log() -> Any:
    import logging

    guard_logs()
    return logging.getLogger("agents_tools")
