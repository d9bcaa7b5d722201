"""The worker's side of a call: it runs the tool and creates the messages about it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
import typing
import weakref
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, NoReturn

from agents_tools.concurrency.supervisor import GRACE, finish, supervise
from agents_tools.content.display import has_display
from agents_tools.content.json_value import exact_type
from agents_tools.content.outputs import as_tool_result
from agents_tools.errors import AgentsToolsError, Interruption, UserError
from agents_tools.events.channel import Channel
from agents_tools.events.kinds import NullEvent, ToolStreamEndEvent, ToolStreamStartEvent
from agents_tools.events.trace_hooks import continue_trace
from agents_tools.execution.protocol import CallLog, result_payload
from agents_tools.text.output import release_json_text, release_text
from agents_tools.text.secrets import library_logger
from agents_tools.tool.call import Call
from agents_tools.tool.failure import error_record, kind_of

if TYPE_CHECKING:
    import contextvars
    from collections.abc import AsyncGenerator, Mapping

    from agents_tools.events.base import Event
    from agents_tools.execution.protocol import CallEnvelope, CallEvent
    from agents_tools.tool.records import CallOutcome
    from agents_tools.tool.tool import FunctionTool

    AnyTool = FunctionTool[..., Any]

__all__ = ["Execution", "execute", "pin_of"]

_UNLIMITED: Final = 1 << 40
"""More characters than any result has, so that only the caller shortens the output."""
_LONGEST_MESSAGE: Final = 10_000


class _UnavailableContext:
    """Raises an error if a tool uses the application's own object, which is not sent to workers.

    Truth is an error as well: `ctx.context or default` would silently use the default.
    """

    def __repr__(self) -> str:
        return "<ctx.context is not available in a worker>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        raise _unavailable(f".{name}")

    def __setattr__(self, name: str, _: object) -> NoReturn:
        raise _unavailable(f".{name}")

    def __getitem__(self, key: object) -> NoReturn:
        raise _unavailable(f"[{key!r:.50}]")

    def __setitem__(self, key: object, _: object) -> NoReturn:
        raise _unavailable(f"[{key!r:.50}]")

    def __bool__(self) -> NoReturn:
        raise _unavailable("")

    def __len__(self) -> NoReturn:
        raise _unavailable("")

    def __iter__(self) -> NoReturn:
        raise _unavailable("")

    def __contains__(self, _: object) -> NoReturn:
        raise _unavailable("")

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise _unavailable("(...)")


def _unavailable(use: str) -> UserError:
    return UserError(
        f"ctx.context{use} is not available: the tool runs in a worker, and the application's own "
        "object is not sent there. Pass the values that the tool needs as arguments, or create "
        "them in the worker."
    )


NOT_HERE: Final = _UnavailableContext()


async def execute(
    tool: AnyTool,
    envelope: CallEnvelope,
    *,
    context: object = NOT_HERE,
    heartbeat: float | None = None,
) -> AsyncGenerator[CallEvent]:
    """Run a call in a worker and yield the messages about it. Every backend uses this function.

    The last message is always a single `result`. Closing the generator cancels the call and waits
    at most two seconds for its cleanup.

    Args:
        tool: The tool; its policies apply unless the envelope is `bare`.
        envelope: The call.
        context: The worker's own object, for tools that accept a context. By default, using it
            raises an error, because the application's object is not sent to workers.
        heartbeat: The time without events after which a heartbeat is sent, in seconds.
    """
    execution = Execution(tool, envelope, context=context, heartbeat=heartbeat)
    async with aclosing(execution.events()) as events:
        async for message in events:
            yield message


def pin_of(tool: AnyTool) -> str:
    """Return a fingerprint of a tool, which changes with its name and its schema.

    Args:
        tool: The tool.
    """
    pin = _pins.get(tool)
    if pin is None:
        text = json.dumps([tool.name, tool.json_schema], sort_keys=True, separators=(",", ":"))
        pin = _pins[tool] = hashlib.sha256(text.encode()).hexdigest()
    return pin


_pins: weakref.WeakKeyDictionary[AnyTool, str] = weakref.WeakKeyDictionary()
_without_policies: weakref.WeakKeyDictionary[AnyTool, AnyTool] = weakref.WeakKeyDictionary()
"""The results of `pin_of` and `without_policies`. Tools never change, so neither do these."""


class Execution:
    """One call in a worker; see `execute`.

    Args:
        tool: The tool; its policies apply unless the envelope is `bare`.
        envelope: The call.
        context: The worker's own object, for tools that accept a context.
        heartbeat: The time without events after which a heartbeat is sent, in seconds.
        log: Creates the messages. If it has created one, `accepted` is not sent again.
        variables: The context variables of the tool; by default those of the caller.
    """

    def __init__(
        self,
        tool: AnyTool,
        envelope: CallEnvelope,
        *,
        context: Any = NOT_HERE,
        heartbeat: float | None = None,
        log: CallLog | None = None,
        variables: contextvars.Context | None = None,
    ) -> None:
        self._variables = variables
        self._tool = without_policies(tool) if envelope.bare else tool
        self._envelope = envelope
        self._log = log or CallLog(envelope.call_id, envelope.attempt)
        self._heartbeat = heartbeat
        self._channel = Channel()
        self._last_message = 0.0
        self._deadline_timer: asyncio.TimerHandle | None = None
        self._pulse_timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[CallOutcome] | None = None
        self._final_payload: dict[str, Any] | None = None
        self._call = Call.fresh(
            context,
            tool_call_id=envelope.call_id,
            deadline=_monotonic(envelope.deadline),
            idempotency_key=envelope.idempotency_key,
        )
        self._call.attempt = envelope.attempt
        self._call.watch(self._channel)

    async def events(self) -> AsyncGenerator[CallEvent]:
        """Run the call and yield the messages about it; see `execute`."""
        message = self._log.create
        if not self._log.next:
            yield message("accepted")
        refusal = self._final_payload or self._refusal()
        if refusal is not None:
            yield message("result", refusal)
            return
        yield message("started")
        self._task = asyncio.create_task(self._run(), context=self._variables)
        self._set_timers()
        try:
            async for event in self._channel:
                if isinstance(event, NullEvent):
                    yield message("heartbeat")
                elif (payload := self._payload(event)) is not None:
                    yield message("event", payload)
            payload = await self._result()
        finally:
            for timer in (self._deadline_timer, self._pulse_timer):
                if timer is not None:
                    timer.cancel()
            await self._cancel_if_running()
        yield message("result", payload)

    def cancel(self, reason: str = "") -> None:
        """Cancel the call. Its result is sent at once, and its cleanup has `GRACE` seconds."""
        suffix = f": {reason}" if reason else "."
        text = f"The call of tool {self._tool.name!r} was cancelled{suffix}"
        self._stop(result_payload("cancelled", text))

    def _stop(self, payload: dict[str, Any]) -> None:
        if self._final_payload is None:
            self._final_payload = payload
        if self._task is None or self._task.done():
            return
        self._call.cancel()
        self._task.cancel()
        supervise(self._task, name=self._tool.name)
        self._channel.close()

    def _refusal(self) -> dict[str, Any] | None:
        envelope, tool = self._envelope, self._tool
        if envelope.definition and envelope.definition != pin_of(tool):
            return result_payload(
                "tool_error",
                f"Tool {tool.name!r} has another name or schema in the worker than in the caller. "
                "Nothing was run. Run the same release of the tool in both.",
            )
        if envelope.deadline is not None and envelope.deadline <= time.time():
            return result_payload(
                "timeout", f"The deadline of tool {tool.name!r} passed before it started."
            )
        return None

    async def _run(self) -> CallOutcome:
        try:
            with continue_trace(self._envelope.trace):
                return await self._tool.call(self._call, self._envelope.arguments)
        finally:
            self._channel.close()

    def _set_timers(self) -> None:
        loop = asyncio.get_running_loop()
        if (deadline := self._envelope.deadline) is not None:
            text = f"Tool {self._tool.name!r} took longer than its deadline and was stopped."
            seconds = max(0.0, deadline - time.time())
            self._deadline_timer = loop.call_later(
                seconds, self._stop, result_payload("timeout", text)
            )
        if self._heartbeat is not None:
            self._last_message = loop.time()
            self._pulse_timer = loop.call_later(self._heartbeat, self._pulse, self._heartbeat)

    def _pulse(self, every: float) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - self._last_message >= every:
            self._channel.push(NullEvent())
            self._last_message = loop.time()
        self._pulse_timer = loop.call_at(self._last_message + every, self._pulse, every)

    def _payload(self, event: Event) -> dict[str, Any] | None:
        """Return an event as JSON; `None` to leave it out.

        The start and end of this call are left out: `started` and `result` report them.
        """
        if self._heartbeat is not None:
            self._last_message = asyncio.get_running_loop().time()
        is_start_or_end = isinstance(event, (ToolStreamStartEvent, ToolStreamEndEvent))
        if is_start_or_end and event.path == self._call.path:
            return None
        try:
            return event.to_dict()
        except UserError as error:
            library_logger().warning(
                "An event of tool %r cannot be sent: %s", self._tool.name, error
            )
            return None

    async def _result(self) -> dict[str, Any]:
        if self._final_payload is not None or self._task is None:
            return self._final_payload or {}
        try:
            outcome = await self._task
        except Interruption:
            return result_payload(
                "denied",
                f"Tool {self._tool.name!r} needs an approval, which cannot be requested in a "
                "worker. Apply the approval policy to the tool in the caller.",
            )
        except asyncio.CancelledError:
            return self._cancelled_result()
        try:
            return payload_of(self._tool, outcome)
        except Exception as error:  # noqa: BLE001 - methods of the tool's value can fail
            kind, message = error_record(error)
            text = f"The result of tool {self._tool.name!r} cannot be sent: {message}"
            return result_payload("tool_error", text, kind=kind)

    def _cancelled_result(self) -> dict[str, Any]:
        """Return the result of a call whose task was cancelled, by `cancel` or by the tool itself.

        Raises:
            asyncio.CancelledError: The reader of the events was cancelled.
        """
        if self._final_payload is not None:
            return self._final_payload
        reader = asyncio.current_task()
        if reader is None or reader.cancelling():
            raise asyncio.CancelledError
        return result_payload(
            "tool_error", f"Tool {self._tool.name!r} failed: the tool cancelled itself."
        )

    async def _cancel_if_running(self) -> None:
        """Cancel the call if it is still running when its reader stops."""
        task = self._task
        if task is not None and not task.done() and self._final_payload is None:
            self._call.cancel()
            self._channel.close()
            task.cancel()
            await finish(task, name=self._tool.name, grace=GRACE)


def without_policies(tool: AnyTool) -> AnyTool:
    """Return a tool without its policies, for a caller that has applied them."""
    result = _without_policies.get(tool)
    if result is None:
        inner = getattr(tool.source, "inner", tool.source)  # without `run_on`
        result = tool.with_(policies=(), source=inner, max_output=_UNLIMITED)
        _without_policies[tool] = result
    return result


def payload_of(tool: AnyTool, outcome: CallOutcome) -> dict[str, Any]:
    """Return the payload of the `result` for the outcome of a call."""
    output, error = outcome.output, outcome.error
    payload: dict[str, Any] = {
        "status": outcome.status,
        "output": output if isinstance(output, str) else [block.to_dict() for block in output],
        "error": None,
        "metadata": _json_or_none(outcome.metadata),
    }
    if error is not None:
        kind, message = error_record(error)
        message = release_text(message, to="model", limit=_LONGEST_MESSAGE)
        is_hidden = isinstance(error, AgentsToolsError) and not error.is_public
        hidden = {"public": False, "cause": kind_of(error)} if is_hidden else {}
        payload["error"] = {"type": kind, "message": message, **hidden}
        return payload
    value = outcome.value
    result = as_tool_result(value)
    if result is None:
        payload.update(_structured(tool, value, output))
        return payload
    payload["metadata"] = _json_or_none(result.metadata)
    payload["failed"] = result.is_error
    if result.structured is not None:
        payload["structured"] = release_json_text(tool.to_json(result.structured))
    return payload


def _structured(tool: AnyTool, value: Any, output: Any) -> dict[str, Any]:
    if not isinstance(output, str) or value is output or has_display(exact_type(value)):
        return {}
    if value is None:
        return {"structured": None}
    if isinstance(value, str):
        return {} if value == output else {"structured": release_text(value, to="program")}
    if hasattr(value, "__next__"):  # the iterator is exhausted; its items are in the output
        return {"structured": json.loads(output)}
    return {"structured": release_json_text(tool.to_json(value))}


def _json_or_none(metadata: Mapping[str, Any] | None) -> dict[str, Any] | None:
    from agents_tools.content.json_value import to_json

    if metadata is None:
        return None
    try:
        return typing.cast("dict[str, Any]", json.loads(to_json(dict(metadata))))
    except UserError as error:
        library_logger().warning("The metadata of a result cannot be sent: %s", error)
        return None


def _monotonic(deadline: float | None) -> float | None:
    return None if deadline is None else time.monotonic() + deadline - time.time()
