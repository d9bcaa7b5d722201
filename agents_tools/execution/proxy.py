"""The caller's side of a backend: tools whose bodies run there and whose events arrive here."""

from __future__ import annotations

import asyncio
import builtins
import time
import typing
import weakref
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from agents_tools import errors
from agents_tools.concurrency.supervisor import GRACE
from agents_tools.content.json_value import UnserializableOutput
from agents_tools.content.outputs import ToolResult, block_from_dict
from agents_tools.errors import (
    ModelBehaviorError,
    ToolError,
    ToolLostError,
    ToolTimeoutError,
    UserError,
    UserTypeError,
    UserValueError,
)
from agents_tools.events.envelope import Origin
from agents_tools.events.kinds import (
    GapEvent,
    ToolAttemptEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.events.registry import event_from_dict
from agents_tools.events.trace_hooks import trace_carrier
from agents_tools.execution.protocol import ERRORS, CallEnvelope, ToolBackend, is_result
from agents_tools.execution.worker_call import pin_of, without_policies
from agents_tools.text.escape import type_name
from agents_tools.text.nouns import type_with_article
from agents_tools.text.secrets import library_logger
from agents_tools.tool.manual import ManualSource
from agents_tools.tool.policy import Policy
from agents_tools.tool.records import ToolOrigin, is_idempotent
from agents_tools.tool.source import OutputDescription, ToolDescription, ToolSource
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping

    from agents_tools.events.base import Event
    from agents_tools.execution.protocol import CallEvent, DetachableBackend
    from agents_tools.schema.arguments import Arguments
    from agents_tools.tool.call import Call

__all__ = ["RemoteSource", "remote_tools", "run_on", "value_of"]


def run_on(
    backend: ToolBackend, *, name: str | None = None, idempotent: bool | None = None
) -> Policy:
    """Return a policy that runs the body of a tool on a backend, which must have the same tool.

    Arguments are validated and policies are applied in this process. Events of the tool are
    emitted here when they arrive, with the ids of this call. The value is returned as JSON, and
    `ctx.context` is not sent to the backend.

    Args:
        backend: The backend that runs the body.
        name: The name of the tool in the backend; by default that of the tool.
        idempotent: Whether running the call twice is harmless, so that the backend can run it
            again after losing a worker. By default it depends on the annotations of the tool
            (`readOnlyHint`, `idempotentHint`); those from a remote server are not trusted.
    """
    return _RunOn(backend, name, idempotent)


class _RunOn(Policy):
    """The policy that `run_on` returns."""

    def __init__(self, backend: ToolBackend, name: str | None, idempotent: bool | None) -> None:
        if not isinstance(typing.cast("object", backend), ToolBackend):
            raise UserTypeError(
                "run_on(...) expects a backend, such as LocalBackend or ProcessBackend, got "
                f"{type_with_article(backend)}."
            )
        self.name = f"run_on({backend.name})"
        self._backend = backend
        self._tool_name = name
        self._idempotent = idempotent

    def apply(self, tool: Any) -> Any:
        """Return a copy of the tool whose body runs on the backend."""
        idempotent = is_idempotent(tool) if self._idempotent is None else self._idempotent
        source = RemoteSource(tool, self._backend, self._tool_name or tool.name, idempotent)
        return tool.with_(source=source, policy=self)


def remote_tools(
    backend: ToolBackend, definitions: Iterable[Mapping[str, Any] | FunctionTool[..., Any]]
) -> list[FunctionTool[..., Any]]:
    """Return tools that run on a backend, from their definitions alone.

    The worker validates the arguments and applies its own policies.

    Args:
        backend: The backend that runs the tools.
        definitions: The definitions: mappings as in MCP (`name`, `description`, `inputSchema`,
            `outputSchema`), or tools with the same definitions.

    Raises:
        UserError: A definition is invalid.
    """
    return [_remote_tool(backend, definition) for definition in definitions]


class RemoteSource(ToolSource):
    """A tool whose body runs on a backend.

    Args:
        tool: The tool.
        backend: The backend that runs its body.
        name: The name of the tool in the backend.
        idempotent: Whether running a call twice is harmless.
        pin: Whether the worker's tool must have the same definition.
    """

    def __init__(
        self,
        tool: FunctionTool[..., Any],
        backend: ToolBackend,
        name: str,
        idempotent: bool,
        *,
        pin: bool = True,
    ) -> None:
        self.inner: ToolSource = getattr(tool.source, "inner", tool.source)
        self.name = self.inner.name
        self._tool = tool
        self._sender = _CallSender(backend, name, idempotent=idempotent, bare=True)
        self._pinned = not pin

    @property
    def origin(self) -> ToolOrigin:
        """The origin of the tool."""
        return self.inner.origin

    def describe(self) -> ToolDescription:
        """Return the description and the JSON Schema of the arguments."""
        return self.inner.describe()

    def describe_output(self) -> OutputDescription:
        """Return the JSON Schema of the result; the value that arrives is JSON already."""
        return OutputDescription(self.inner.describe_output().json_schema)

    def parse(self, args_json: str) -> Arguments:
        """Validate arguments in this process.

        Raises:
            ModelBehaviorError: The arguments are invalid.
        """
        return self.inner.parse(args_json)

    async def run(self, call: Call) -> Any:
        """Run a call on the backend."""
        self._pin()
        return await self._sender.send(call)

    def _pin(self) -> None:
        if not self._pinned:
            self._sender.definition = pin_of(
                without_policies(self._tool).with_(name=self._sender.tool)
            )
            self._pinned = True

    async def has_call(self, call: Call) -> bool:
        """Return whether the backend has a call."""
        self._pin()
        return await self._sender.has_call(call)

    def as_method(self) -> None:
        """Leave the first parameter out of the schema, because the function is a method."""
        self.inner.as_method()

    def bind(self, instance: object) -> NoReturn:
        """Raise an error, because the instance of a method cannot be sent to a worker."""
        raise UserTypeError(
            f"Tool {self.name!r} is a method, and its instance, {type_with_article(instance)}, "
            "cannot be sent to a worker. Make it a function at the top level of a module."
        )


def _remote_tool(
    backend: ToolBackend, source: Mapping[str, Any] | FunctionTool[..., Any]
) -> FunctionTool[..., Any]:
    definition = _definition_of(source)
    name, schema = definition.get("name"), definition.get("inputSchema")
    if not isinstance(name, str) or schema is None:
        raise UserValueError(
            "A tool definition is incomplete: expected `name` and `inputSchema`, got "
            f"{sorted(definition)!r:.200}."
        )
    sender = _CallSender(backend, name, idempotent=False, bare=False)

    tool: FunctionTool[..., Any] = FunctionTool.of_source(
        _DefinitionSource(sender, definition), strict_json_schema=False
    )
    sender.definition = pin_of(tool) if isinstance(source, FunctionTool) else ""
    return tool


class _DefinitionSource(ManualSource):
    """A tool of which only the definition is known here; the worker validates the arguments."""

    def __init__(self, sender: _CallSender, definition: Mapping[str, Any]) -> None:
        super().__init__(
            definition["name"],
            definition.get("description") or "",
            definition["inputSchema"],
            _unused,
            output_json_schema=definition.get("outputSchema"),
            origin=ToolOrigin(kind="schema"),
        )
        self._sender = sender

    async def run(self, call: Call) -> Any:
        """Run a call on the backend."""
        return await self._sender.send(call)

    async def has_call(self, call: Call) -> bool:
        """Return whether the backend has a call."""
        return await self._sender.has_call(call)


async def _unused(ctx: Any, args_json: str) -> NoReturn:
    del ctx, args_json
    raise AssertionError


def _definition_of(source: Mapping[str, Any] | FunctionTool[..., Any]) -> Mapping[str, Any]:
    if not isinstance(source, FunctionTool):
        return source
    return {
        "name": source.name,
        "description": source.description,
        "inputSchema": source.params_json_schema,
        "outputSchema": source.output_json_schema,
    }


@dataclass
class _CallSender:
    """Sends the calls of one tool to a backend."""

    backend: ToolBackend
    tool: str
    idempotent: bool
    bare: bool
    definition: str = ""

    async def send(self, call: Call) -> Any:
        """Run a call on the backend and emit its events; return its value, or raise its error."""
        envelope = self._envelope(call, _next_attempt(call))
        reader = _ResultReader(call, self.tool, envelope.attempt)
        try:
            async with asyncio.timeout(_seconds(call.deadline)):
                async with aclosing(self._submit(envelope, call)) as stream:
                    async for message in stream:
                        if reader.is_new(message):
                            await reader.handle(message)
                            if reader.result is not None:
                                break
        except TimeoutError as error:
            if isinstance(error, errors.AgentsToolsError):
                raise
            raise ToolTimeoutError(
                f"The backend {self.backend.name!r} did not respond for tool {self.tool!r} before "
                "the deadline."
            ) from None
        if reader.result is None:
            raise ToolLostError(
                f"The backend {self.backend.name!r} ended the call of tool {self.tool!r} without "
                "a result; whether it took effect is not known."
            )
        return value_of(reader.result, call)

    def _submit(self, envelope: CallEnvelope, call: Call) -> AsyncGenerator[CallEvent]:
        scope = call.scope
        if scope is None or not self.backend.capabilities.detach:
            return self.backend.submit(envelope)
        backend = typing.cast("DetachableBackend", self.backend)
        return backend.submit(envelope, is_detached=scope.is_handed_over)

    async def has_call(self, call: Call) -> bool:
        """Return whether the backend has the first attempt of a call."""
        return await self.backend.has_call(self._envelope(call, call.attempt))

    def _envelope(self, call: Call, attempt: int) -> CallEnvelope:
        key = call.idempotency_key
        return CallEnvelope(
            call_id=key,
            attempt=attempt,
            tool=self.tool,
            definition=self.definition,
            arguments=call.text,
            deadline=_wall_clock(call.deadline),
            idempotency_key=key,
            idempotent=self.idempotent,
            trace=trace_carrier(),
            bare=self.bare,
        )


def _next_attempt(call: Call) -> int:
    """Return the number of an attempt that was not sent yet.

    If a policy runs the body again without setting `attempt`, that is a new attempt too.
    Otherwise the backend would return the result of the previous one.
    """
    first = next(call.ancestors)
    attempt = _attempts[first] = max(call.attempt, _attempts.get(first, 0) + 1)
    return attempt


_attempts: weakref.WeakKeyDictionary[Call, int] = weakref.WeakKeyDictionary()
"""The number of the latest attempt of each call, by the record of the first attempt."""


class _ResultReader:
    """Reads the messages about a call, and emits its events in the context of the call here."""

    def __init__(self, call: Call, tool: str, attempt: int) -> None:
        self._call = call
        self._tool = tool
        self._attempt = attempt
        self._next = 0
        self.result: Mapping[str, Any] | None = None

    def is_new(self, message: CallEvent) -> bool:
        """Return whether a message was not handled yet."""
        if message.attempt < self._attempt:
            return False
        return message.attempt > self._attempt or message.seq >= self._next

    async def handle(self, message: CallEvent) -> None:
        """Emit the event of a message, or store the result."""
        call = self._call
        if message.attempt > self._attempt:
            self._emit(ToolAttemptEvent(self._attempt, error="ToolLostError"))
            self._attempt, self._next = message.attempt, message.seq
        if message.seq > self._next:
            self._emit(GapEvent(message.seq - self._next))
        self._next = message.seq + 1
        if message.kind == "result":
            if not is_result(message.payload):
                raise ToolLostError(
                    f"The worker of tool {self._tool!r} sent an invalid result; whether the call "
                    "took effect is not known."
                )
            self.result = message.payload
        elif message.kind == "event" and call.listening:
            channel = call.channel
            if channel is not None and channel.should_wait():
                await channel.wait_for_room()  # a slow reader here pauses the worker
            self._emit(_as_local_event(message.payload, call))

    def _emit(self, event: Event | None) -> None:
        if event is not None and self._call.listening:
            self._call.emit(event)


def _as_local_event(payload: Mapping[str, Any], call: Call) -> Event | None:
    """Return an event of a worker with the path of the call here; `None` to leave it out."""
    try:
        event = event_from_dict(payload)
    except UserError as error:
        library_logger().warning(
            "A worker's event of tool %r cannot be read: %s", call.tool_name, error
        )
        return None
    path = event.path
    if len(path) > 1 and event.origin is not None:
        origin = event.origin
        below = (*call.path, *path[1:])
        return event.replace(
            origin=Origin(origin.tool_name, origin.tool_call_id, below, origin.source)
        )
    if isinstance(event, (ToolStreamStartEvent, ToolStreamEndEvent)):
        return None  # the call emits its own start and end here
    return event.replace(origin=None)


def value_of(payload: Mapping[str, Any], call: Call) -> Any:
    """Return the value in the payload of a `result`.

    Args:
        payload: The payload.
        call: The call here.

    Raises:
        Exception: The call failed; the exception is of the same type as in the worker if that
            type is known, and a `ToolError` otherwise.
    """
    error = payload.get("error")
    status = payload.get("status")
    if status != "ok" and (error is not None or "failed" not in payload):
        raise _error_of(str(status), error or {}, call)
    output = payload.get("output", "")
    content = output if isinstance(output, str) else _blocks(output, call)
    if "failed" in payload:
        return ToolResult(
            content=content,
            structured=payload.get("structured"),
            metadata=payload.get("metadata"),
            is_error=bool(payload["failed"]),
        )
    return payload.get("structured", content)


def _blocks(output: Iterable[Mapping[str, Any]], call: Call) -> list[Any]:
    try:
        return [block_from_dict(block) for block in output]
    except UserError as error:
        raise ToolLostError(
            f"The worker of tool {call.tool_name!r} sent a result that cannot be read: {error}"
        ) from None


def _error_of(status: str, error: Mapping[str, Any], call: Call) -> Exception:
    created = _exception_of(status, error, call)
    if error.get("public") is False and isinstance(created, errors.AgentsToolsError):
        _hide(created, str(error.get("cause") or ""))
    return created


def _exception_of(status: str, error: Mapping[str, Any], call: Call) -> Exception:
    message = str(error.get("message", f"The call ended as {status}."))
    kind = str(error.get("type") or "")
    error_class = ERRORS.get(status)
    if status == "invalid_args":
        rejection = ModelBehaviorError(message)
        call.reject_arguments(rejection)
        return rejection
    if error_class is not None:
        return getattr(errors, error_class)(message)
    name = kind.removeprefix("agents_tools.errors.")
    known: Any = getattr(errors, name, None) if name in errors.__all__ else None
    if known in _PLAIN_ERRORS:
        return known(message)
    if kind == type_name(UnserializableOutput):
        return UnserializableOutput(message)
    if known is not None and name != kind:
        return ToolError(message)  # an error of the library with further arguments
    if name in _BUILT_IN:
        return getattr(builtins, name)(message)
    unknown = ToolError(
        f"Tool {call.tool_name!r} failed: {kind}" + (f": {message}" if message else "")
    )
    _hide(unknown, kind)
    return unknown


def _hide(error: errors.AgentsToolsError, cause: str) -> None:
    """Mark an error as not public: it contains the message of an exception of another class.

    Texts for callers outside the application contain the name of that class, which can be unknown
    in this process.
    """
    module, _, name = cause.rpartition(".")
    error.is_public = False
    if name.isidentifier():
        error.__cause__ = type(name, (Exception,), {"__module__": module or "builtins"})()


_PLAIN_ERRORS: Final = (
    errors.ToolError,
    errors.ToolStreamError,
    errors.ModelBehaviorError,
    errors.UserError,
    errors.UserTypeError,
    errors.UserValueError,
    errors.UserKeyError,
)
_BUILT_IN: Final = frozenset({
    "ArithmeticError", "AssertionError", "AttributeError", "BlockingIOError", "BrokenPipeError",
    "BufferError", "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError",
    "ConnectionResetError", "EOFError", "Exception", "FileExistsError", "FileNotFoundError",
    "FloatingPointError", "ImportError", "IndexError", "InterruptedError", "IsADirectoryError",
    "LookupError", "MemoryError", "ModuleNotFoundError", "NameError", "NotADirectoryError",
    "NotImplementedError", "OSError", "OverflowError", "PermissionError", "ProcessLookupError",
    "RecursionError", "ReferenceError", "RuntimeError", "SyntaxError", "SystemError",
    "TimeoutError", "TypeError", "UnboundLocalError", "ValueError", "ZeroDivisionError",
})  # fmt: skip
"""Errors that are created from a message; `KeyError` would quote the message again."""


def _wall_clock(deadline: float | None) -> float | None:
    return None if deadline is None else time.time() + deadline - time.monotonic()


def _seconds(deadline: float | None) -> float | None:
    """Return the timeout in seconds; `GRACE` lets the worker report the deadline itself first."""
    return None if deadline is None else max(0.0, deadline - time.monotonic()) + GRACE
