"""The caller's side: the body of a tool moves to a backend, and its voice comes back."""

from __future__ import annotations

import asyncio
import builtins
import time
import typing
import weakref
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from typing_extensions import TypeVar

from agents_tools import errors
from agents_tools._instruments import trace_carrier
from agents_tools._records import Policy
from agents_tools._supervisor import GRACE
from agents_tools.backend._execute import bare, pin_of
from agents_tools.backend._protocol import ERRORS, CallEnvelope, ToolBackend, is_result
from agents_tools.errors import (
    ModelBehaviorError,
    ToolError,
    ToolLostError,
    ToolTimeoutError,
    UserError,
    UserTypeError,
    UserValueError,
)
from agents_tools.events import (
    Event,
    GapEvent,
    Origin,
    ToolAttemptEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    event_from_dict,
)
from agents_tools.outputs import ToolResult, block_from_dict
from agents_tools.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agents_tools._records import Call, Declaration, ToolOrigin
    from agents_tools.backend._protocol import CallEvent
    from agents_tools.context import ToolContext

__all__ = ["Moved", "is_idempotent", "remote_tools", "run_on", "value_of"]

ToolT = TypeVar("ToolT", bound=FunctionTool[..., Any])


def run_on(
    backend: ToolBackend, *, name: str | None = None, idempotent: bool | None = None
) -> Callable[[ToolT], ToolT]:
    """Run the body of a tool on a backend: a policy for any tool that the backend has as well.

    The policies around the tool, wherever they stand, stay here, as does the validation of its
    arguments. What the tool says appears here as it says it, under the ids of this call. The
    value comes back as JSON, and `ctx.context` stays here.

    Args:
        backend: Where the body runs.
        name: What the tool is called there; by default as here.
        idempotent: Whether a second run does no harm, so that the backend may run the call again
            when it loses a worker. By default what the tool's own annotations say
            (`readOnlyHint`, `idempotentHint`); those of a remote server are not believed.
    """
    return _RunOn(backend, name, idempotent)


class _RunOn:
    """The policy that `run_on` gives."""

    def __init__(self, backend: ToolBackend, name: str | None, idempotent: bool | None) -> None:
        if not isinstance(typing.cast("object", backend), ToolBackend):
            raise UserTypeError(
                f"run_on(...) takes a backend, such as LocalBackend or ProcessBackend, not a "
                f"{type(backend).__name__}."
            )
        self._backend = backend
        self._tool_name = name
        self._idempotent = idempotent

    def __call__(self, tool: ToolT) -> ToolT:
        """Apply it to a tool."""
        become = getattr(tool, "as_function_tool", None)  # class-based tools
        if become is not None:
            tool = become()
        if not isinstance(tool, FunctionTool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"The policy {self!r} goes around a tool, not around a "
                f"{type(tool).__name__}. Put it above `@function_tool`, not below."
            )
        idempotent = is_idempotent(tool) if self._idempotent is None else self._idempotent
        moved = Moved(tool, self._backend, self._tool_name or tool.name, idempotent)
        label = Policy(name=f"run_on({self._backend.name})", wrap=lambda inner: inner)
        return tool.with_(declaration=moved, policy=label)

    def __repr__(self) -> str:
        """Show the policy as it was written."""
        return f"<policy run_on({self._backend.name})>"


def remote_tools(
    backend: ToolBackend, definitions: Iterable[Mapping[str, Any] | FunctionTool[..., Any]]
) -> list[FunctionTool[..., Any]]:
    """Give tools that are known here by their definitions alone.

    The worker validates the arguments, and its policies apply.

    Args:
        backend: Where they run.
        definitions: What each is called and takes: a mapping as in MCP (`name`, `description`,
            `inputSchema`, `outputSchema`), or a tool that is defined alike.

    Raises:
        UserError: A definition is none.
    """
    return [_remote_tool(backend, given) for given in definitions]


class Moved:
    """The declaration of a tool whose body runs on a backend.

    Args:
        tool: The tool as it was.
        backend: Where its body runs.
        name: Its name there.
        idempotent: Whether a second run does no harm.
        pin: Whether the worker's tool must have this one's definition.
    """

    direct: None = None

    def __init__(
        self,
        tool: FunctionTool[..., Any],
        backend: ToolBackend,
        name: str,
        idempotent: bool,
        *,
        pin: bool = True,
    ) -> None:
        self.inner: Declaration = getattr(tool.declaration, "inner", tool.declaration)
        self._tool = tool
        self._sender = _Sender(backend, name, idempotent=idempotent, bare=True)
        self._pinned = not pin

    @property
    def name(self) -> str:
        """The name it was declared with."""
        return self.inner.name

    @property
    def origin(self) -> ToolOrigin:
        """Where it comes from."""
        return self.inner.origin

    @property
    def description(self) -> str:
        """What the tool does."""
        return self.inner.description

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments; not to be changed."""
        return self.inner.json_schema

    @property
    def output_json_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the result; not to be changed."""
        return self.inner.output_json_schema

    @property
    def body(self) -> Call:
        """Validates the arguments here, and runs the function there."""
        return self._call

    def check(self, args_json: str) -> None:
        """Validate arguments without running anything."""
        self.inner.check(args_json)

    def serializer(self) -> Any:
        """Give none: what comes back is JSON already."""
        return None

    def method_of(self) -> None:
        """Leave the first parameter out: the function is a method."""
        self.inner.method_of()

    def bind(self, instance: object) -> NoReturn:
        """Refuse: the instance of a method stays here."""
        raise UserTypeError(
            f"Tool {self.name!r} is a method, and its instance, a {type(instance).__name__}, "
            "cannot travel to a worker. Make it a function at the top level of a module."
        )

    async def _call(self, context: ToolContext[Any], args_json: str) -> Any:
        self.inner.check(args_json)
        context.validated = True
        if not self._pinned:
            self._sender.definition = pin_of(bare(self._tool).with_(name=self._sender.tool))
            self._pinned = True
        return await self._sender.send(context, args_json)


def _remote_tool(
    backend: ToolBackend, given: Mapping[str, Any] | FunctionTool[..., Any]
) -> FunctionTool[..., Any]:
    definition = _definition_of(given)
    name, schema = definition.get("name"), definition.get("inputSchema")
    if not isinstance(name, str) or schema is None:
        raise UserValueError(
            f"A definition has `name` and `inputSchema`; this one has {sorted(definition)!r:.200}."
        )
    sender = _Sender(backend, name, idempotent=False, bare=False)

    async def body(context: ToolContext[Any], args_json: str) -> Any:
        return await sender.send(context, args_json)

    tool = FunctionTool.from_schema(
        name=name,
        schema=schema,
        on_invoke_tool=body,
        description=definition.get("description") or "",
        validate_arguments=False,  # the worker does, by the types that the schema comes from
        output_json_schema=definition.get("outputSchema"),
    )
    sender.definition = pin_of(tool) if isinstance(given, FunctionTool) else ""
    return tool


def _definition_of(given: Mapping[str, Any] | FunctionTool[..., Any]) -> Mapping[str, Any]:
    if not isinstance(given, FunctionTool):
        return given
    return {
        "name": given.name,
        "description": given.description,
        "inputSchema": given.params_json_schema,
        "outputSchema": given.output_json_schema,
    }


def is_idempotent(tool: FunctionTool[..., Any]) -> bool:
    """Whether a tool of this program says that a second run does no harm."""
    hints = tool.annotations
    if hints is None or tool.origin.server is not None:
        return False
    return hints.readOnlyHint or hints.idempotentHint


@dataclass
class _Sender:
    """Sends the calls of one tool to a backend."""

    backend: ToolBackend
    tool: str
    idempotent: bool
    bare: bool
    definition: str = ""

    async def send(self, context: ToolContext[Any], args_json: str) -> Any:
        """Make a call there, say here what it says, and give its value or raise its error."""
        envelope = self._envelope(context, args_json)
        reader = _Reader(context, self.tool, envelope.attempt)
        try:
            async with asyncio.timeout(_seconds(context.deadline)):
                async with aclosing(self.backend.submit(envelope)) as stream:
                    async for said in stream:
                        if reader.takes(said):
                            await reader.hear(said)
                            if reader.result is not None:
                                break
        except TimeoutError as error:
            if isinstance(error, errors.AgentsToolsError):
                raise
            raise ToolTimeoutError(
                f"The backend {self.backend.name!r} gave no answer for tool {self.tool!r} by its "
                "deadline."
            ) from None
        if reader.result is None:
            raise ToolLostError(
                f"The backend {self.backend.name!r} ended the call of tool {self.tool!r} without "
                "a result; whether it took effect is not known."
            )
        return value_of(reader.result, context)

    def _envelope(self, context: ToolContext[Any], args_json: str) -> CallEnvelope:
        key = context.idempotency_key
        return CallEnvelope(
            call_id=key,
            attempt=_next_attempt(context),
            tool=self.tool,
            definition=self.definition,
            arguments=args_json,
            deadline=_wall_clock(context.deadline),
            idempotency_key=key,
            idempotent=self.idempotent,
            trace=trace_carrier(),
            bare=self.bare,
        )


def _next_attempt(context: ToolContext[Any]) -> int:
    """Give the number of an attempt that was not sent yet.

    A policy that runs the body again without saying so means a new attempt too: a backend would
    give it the answer of the one before.
    """
    first = getattr(context, "_first", None) or context
    attempt = _sent[first] = max(context.attempt, _sent.get(first, 0) + 1)
    return attempt


_sent: weakref.WeakKeyDictionary[ToolContext[Any], int] = weakref.WeakKeyDictionary()
"""The latest attempts, by the contexts of their first ones."""


class _Reader:
    """Reads what is said about one call and says it in the voice of the call here."""

    def __init__(self, context: ToolContext[Any], tool: str, attempt: int) -> None:
        self._context = context
        self._tool = tool
        self._attempt = attempt
        self._next = 0
        self.result: Mapping[str, Any] | None = None

    def takes(self, said: CallEvent) -> bool:
        """Whether it is new: each event of a call and attempt counts once."""
        if said.attempt < self._attempt:
            return False
        return said.attempt > self._attempt or said.seq >= self._next

    async def hear(self, said: CallEvent) -> None:
        """Take one thing that was said."""
        context = self._context
        if said.attempt > self._attempt:
            self._say(ToolAttemptEvent(self._attempt, error="ToolLostError"))
            self._attempt, self._next = said.attempt, said.seq
        if said.seq > self._next:
            self._say(GapEvent(said.seq - self._next))
        self._next = said.seq + 1
        if said.kind == "result":
            if not is_result(said.payload):
                raise ToolLostError(
                    f"What the worker of tool {self._tool!r} gave as its result is none; whether "
                    "the call took effect is not known."
                )
            self.result = said.payload
        elif said.kind == "event" and context.listening:
            channel = context.channel
            if channel is not None and channel.due():
                await channel.room()  # a slow reader here slows the worker down
            self._say(_own(said.payload, context))

    def _say(self, event: Event | None) -> None:
        if event is not None and self._context.listening:
            self._context.emit(event)


def _own(payload: Mapping[str, Any], context: ToolContext[Any]) -> Event | None:
    """Read an event and put it below the call here."""
    try:
        event = event_from_dict(payload)
    except UserError as error:
        _log().warning("A worker's event of tool %r cannot be read: %s", context.tool_name, error)
        return None
    path = event.path
    if len(path) > 1 and event.origin is not None:
        origin = event.origin
        below = (*context.path, *path[1:])
        return event.replace(
            origin=Origin(origin.tool_name, origin.tool_call_id, below, origin.source)
        )
    if isinstance(event, (ToolStreamStartEvent, ToolStreamEndEvent)):
        return None  # the call has a start and an end of its own here
    return event.replace(origin=None)


def value_of(payload: Mapping[str, Any], context: ToolContext[Any]) -> Any:
    """Give the value that a `result` carries.

    Args:
        payload: Its payload.
        context: The call here.

    Raises:
        Exception: The call failed; what stands in for what was raised there.
    """
    error = payload.get("error")
    status = payload.get("status")
    if status != "ok" and (error is not None or "failed" not in payload):
        raise _error_of(str(status), error or {}, context)
    output = payload.get("output", "")
    content = output if isinstance(output, str) else _blocks(output, context)
    if "failed" in payload:
        return ToolResult(
            content=content,
            structured=payload.get("structured"),
            metadata=payload.get("metadata"),
            is_error=bool(payload["failed"]),
        )
    return payload.get("structured", content) if "structured" in payload else content


def _blocks(output: Iterable[Mapping[str, Any]], context: ToolContext[Any]) -> list[Any]:
    try:
        return [block_from_dict(one) for one in output]
    except UserError as error:
        raise ToolLostError(
            f"What the worker of tool {context.tool_name!r} gave as its result cannot be read: "
            f"{error}"
        ) from None


def _error_of(status: str, error: Mapping[str, Any], context: ToolContext[Any]) -> Exception:
    message = str(error.get("message") or f"The call ended as {status}.")
    kind = str(error.get("type") or "")
    own = ERRORS.get(status)
    if status == "invalid_args":
        context.validated = False
        return ModelBehaviorError(message)
    context.validated = True
    if own is not None:
        found: Any = getattr(errors, own)
        return found(message)
    name = kind.removeprefix("agents_tools.errors.")
    known: Any = getattr(errors, name, None) if name in errors.__all__ else None
    if known in _PLAIN_ERRORS:
        return known(message)
    if name in _BUILT_IN:
        return getattr(builtins, name)(message)
    return ToolError(
        f"Tool {context.tool_name!r} failed: {kind}" + (f": {message}" if message else "")
    )


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
"""Errors that can be made from a message alone; `KeyError` would show it quoted twice."""


def _wall_clock(deadline: float | None) -> float | None:
    return None if deadline is None else time.time() + deadline - time.monotonic()


def _seconds(deadline: float | None) -> float | None:
    """Give how long to wait: the worker's own answer at the deadline comes first."""
    return None if deadline is None else max(0.0, deadline - time.monotonic()) + GRACE


def _log() -> Any:
    import logging

    return logging.getLogger("agents_tools")
