"""Policies: a tool goes in, a tool comes out, with something around its body.

They stack as decorators above `@function_tool` and work the same on tools that came from
anywhere. The outer one sees what the inner one raises; failure function, result conversion and
the events of the call stand outside them all, arguments are validated inside.

```python
@retry(3)
@timeout(10)
@function_tool
async def fetch(url: str) -> str: ...
```

State (limits) lives with the policy: what one `limit(...)` is applied to shares it.
"""

from __future__ import annotations

import threading
import time
import typing
from collections import OrderedDict, deque
from contextlib import asynccontextmanager
from typing import Any, overload

from typing_extensions import TypeVar

from agents_tools._records import Policy
from agents_tools._risk import take_risk, with_risk
from agents_tools._supervisor import GRACE, finish, supervise
from agents_tools.context import RunScope, enter_scope, leave_scope
from agents_tools.errors import (
    AgentsToolsError,
    Interruption,
    ModelBehaviorError,
    ToolDeniedError,
    ToolLostError,
    ToolOverloadedError,
    ToolTimeoutError,
    UserTypeError,
    UserValueError,
)
from agents_tools.events import ToolAttemptEvent
from agents_tools.tool import FunctionTool, check_tool_name

if typing.TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from agents_tools._records import Call
    from agents_tools.context import ToolContext

__all__ = [
    "approve_destructive",
    "exclusive",
    "hide",
    "input_guardrail",
    "limit",
    "needs_approval",
    "output_guardrail",
    "rename",
    "retry",
    "security_risk",
    "timeout",
    "truncate",
    "with_metadata",
]

ToolT = TypeVar("ToolT", bound=FunctionTool[..., Any])


class _Change:
    """What a policy function gives: it turns a tool into another one."""

    def __init__(self, name: str, change: Callable[[Any], Any]) -> None:
        self._name = name
        self._change = change

    def __call__(self, tool: ToolT) -> ToolT:
        """Apply the policy to a tool."""
        become = getattr(tool, "as_function_tool", None)  # class-based tools
        if become is not None:
            tool = become()
        if not isinstance(tool, FunctionTool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"The policy {self._name} goes around a tool, not around a "
                f"{type(tool).__name__}. Put it above `@function_tool`, not below."
            )
        return self._change(tool)

    def __repr__(self) -> str:
        """Show the policy as it was written."""
        return f"<policy {self._name}>"


def _around(name: str, wrap: Callable[[Call], Call], **more: Any) -> _Change:
    policy = Policy(name=name, wrap=wrap, **more)
    return _Change(name, lambda tool: tool.with_(policy=policy))


def timeout(seconds: float, *, error: str | None = None) -> _Change:
    """Answer at a deadline, whatever the tool does.

    An async tool is cancelled and has a grace period of two seconds for its cleanup, of which
    the caller sees nothing; a sync one is abandoned in its thread, where `ctx.cancelled` and
    `ctx.check()` let it stop by itself. What outlives its grace is reported.

    Args:
        seconds: How long a call may take.
        error: What the model is told; a sentence with the tool and the time by default.

    Raises:
        UserError: `seconds` is no positive number.
    """
    if not isinstance(seconds, (int, float)) or not seconds > 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(f"timeout(...) takes a positive number of seconds, not {seconds!r}.")

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            outer = context.deadline
            try:
                return await _until(inner, context, args_json, seconds, error)
            finally:
                context.deadline = outer

        return call

    return _around(f"timeout({seconds:g})", wrap)


async def _until(
    inner: Call, context: ToolContext[Any], args_json: str, seconds: float, text: str | None
) -> Any:
    import asyncio

    until = time.monotonic() + seconds
    if context.deadline is None or until < context.deadline:
        context.deadline = until
    told = text or f"Tool {context.tool_name!r} took longer than {seconds:g} s and was stopped."
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    task = loop.create_task(_guarded(inner(context, args_json)))

    def wake(_: object = None) -> None:
        if not over.done():
            over.set_result(None)

    task.add_done_callback(wake)
    alarm = loop.call_later(seconds, wake)
    try:
        await over
    except asyncio.CancelledError:
        context.cancel()
        task.cancel()
        await finish(task, name=context.tool_name, grace=GRACE)
        raise
    finally:
        alarm.cancel()
    if not task.done():
        context.cancel()
        task.cancel()
        supervise(task, name=context.tool_name)
        raise ToolTimeoutError(told)
    value, raised = task.result()
    if isinstance(raised, ToolTimeoutError) and time.monotonic() >= until:
        raise ToolTimeoutError(told) from raised  # the tool saw the same deadline by itself
    if raised is not None:
        try:
            raise raised
        finally:
            del raised, task  # or the error would hold on to itself through this frame
    return value


async def _guarded(call: Any) -> tuple[Any, BaseException | None]:
    """Carry what a body raises out of its task: some of it would end the event loop instead."""
    import asyncio

    try:
        return await call, None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return None, asyncio.CancelledError()
    except BaseException as error:  # noqa: BLE001 - raised again where the call is awaited
        return None, error


def retry(
    attempts: int = 3,
    *,
    on: type[Exception] | tuple[type[Exception], ...] = Exception,
    backoff: float | Callable[[int], float] = 0.5,
    max_delay: float = 30.0,
    idempotent: bool = False,
) -> _Change:
    """Call again when the body raises.

    Only what the body of the tool raised is repeated: never bad arguments, a refusal or a
    cancellation. The library's own errors are repeated only where `on` names them. A call that
    timed out or was lost may have taken effect, so it is repeated only for an idempotent tool.

    Args:
        attempts: How often the tool is called at most, the first time included.
        on: Which exceptions are worth another try.
        backoff: Seconds before the second attempt, doubled for each further one and shortened
            at random by up to a half; or a function from the number of the attempt that failed
            (1, 2 …) to the seconds to wait.
        max_delay: The longest wait, in seconds.
        idempotent: Whether a second call does no harm where the first took effect.

    Raises:
        UserError: `attempts` is no positive whole number.
    """
    if not isinstance(attempts, int) or attempts < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(f"retry(...) takes a positive number of attempts, not {attempts!r}.")
    named = on if isinstance(on, tuple) else (on,)

    def worth_it(error: Exception, context: ToolContext[Any]) -> bool:
        if not context.validated or not isinstance(error, named):
            return False
        if isinstance(error, (ToolTimeoutError, ToolLostError)):
            return idempotent
        if isinstance(error, ToolOverloadedError):
            return True
        if isinstance(error, AgentsToolsError):
            return any(kind is not Exception and isinstance(error, kind) for kind in named)
        return True

    def delay_after(attempt: int) -> float:
        import random

        if callable(backoff):
            return min(max_delay, max(0.0, backoff(attempt)))
        full = min(max_delay, backoff * 2 ** (attempt - 1))
        return full * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, hides nothing

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            import asyncio

            first = context
            for attempt in range(1, attempts + 1):
                if attempt > 1:
                    context = first.again(attempt)
                scope = enter_scope(context)
                try:
                    return await inner(context, args_json)
                except Exception as error:
                    first.validated |= context.validated
                    delay = delay_after(attempt)
                    late = context.deadline is not None and (
                        time.monotonic() + delay >= context.deadline
                    )
                    if attempt == attempts or late or not worth_it(error, context):
                        raise
                    if context.listening:
                        context.emit(
                            ToolAttemptEvent(
                                attempt=attempt, error=type(error).__name__, delay=delay
                            )
                        )
                finally:
                    leave_scope(scope)
                await asyncio.sleep(delay)
            raise AssertionError

        return call

    return _around(f"retry({attempts})", wrap)


def limit(
    *,
    concurrent: int | None = None,
    per_second: float | None = None,
    calls: int | None = None,
    queue: int = 100,
) -> _Change:
    """Bound how much a tool is used.

    Args:
        concurrent: How many calls run at once; further ones wait their turn.
        per_second: How many calls start in a second, evenly spaced.
        calls: How many calls one run may make; outside a run, how many there may be in all.
            A call too many is denied.
        queue: How many calls may wait. A call that finds no place is answered at once: the
            tool is overloaded, nothing was started.

    Raises:
        UserError: Nothing is bounded, or a bound is not positive.
    """
    bounds: dict[str, float | None] = {
        "concurrent": concurrent,
        "per_second": per_second,
        "calls": calls,
    }
    if all(bound is None for bound in bounds.values()):
        raise UserValueError("limit(...) bounds nothing: give concurrent=, per_second= or calls=.")
    for name, bound in bounds.items():
        if bound is not None and not bound > 0:
            raise UserValueError(f"limit({name}=...) takes a positive number, not {bound!r}.")
    gate = _Gate(concurrent, per_second, queue)
    budget = None if calls is None else _Budget(calls)

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            if budget is not None:
                budget.spend(context)
            async with gate.held(context):
                return await inner(context, args_json)

        return call

    shown = ", ".join(f"{name}={bound:g}" for name, bound in bounds.items() if bound is not None)
    return _around(f"limit({shown})", wrap)


class _Budget:
    """Counts the calls of each run; of the runs, the latest hundreds."""

    _RUNS = 400

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self._used: OrderedDict[str | None, int] = OrderedDict()
        self._lock = threading.Lock()

    def spend(self, context: ToolContext[Any]) -> None:
        """Count one call, or deny it.

        Raises:
            ToolDeniedError: The run has made all its calls.
        """
        run = context.run_id
        with self._lock:
            used = self._used.pop(run, 0)
            self._used[run] = min(used + 1, self._calls)
            if len(self._used) > self._RUNS:
                self._used.popitem(last=False)
        if used >= self._calls:
            times = "once" if self._calls == 1 else f"{self._calls} times"
            raise ToolDeniedError(
                f"Tool {context.tool_name!r} may be called {times}; that is used up. "
                "Go on without it."
            )


class _Gate:
    """Lets calls through one by one: at most so many at once, at most so many in a second.

    Calls may come from several event loops; whoever leaves hands its place to the first in line.
    """

    def __init__(self, concurrent: int | None, per_second: float | None, queue: int) -> None:
        self._free = concurrent
        self._gap = None if per_second is None else 1.0 / per_second
        self._next_start = 0.0
        self._queue = queue
        self._waiting: deque[tuple[Any, Any]] = deque()
        self._spaced = 0
        self._lock = threading.Lock()
        self._holders: set[ToolContext[Any]] = set()

    @asynccontextmanager
    async def held(self, context: ToolContext[Any]) -> AsyncGenerator[None]:
        """Hold a place; a call that runs inside one that holds it shares that."""
        if not self._holders.isdisjoint(context.ancestors):
            yield
            return
        await self._enter(context.tool_name)
        holder = next(context.ancestors)
        self._holders.add(holder)
        try:
            yield
        finally:
            self._holders.discard(holder)
            self._leave()

    async def _enter(self, tool: str) -> None:
        """Wait for a place, and for the time to start."""
        import asyncio

        loop = asyncio.get_running_loop()
        with self._lock:
            turn = self._place_or_turn(loop, tool)
        if turn is not None:
            try:
                await turn
            except BaseException:
                with self._lock:
                    given = turn.done() and not turn.cancelled()
                    if not given and (loop, turn) in self._waiting:
                        self._waiting.remove((loop, turn))
                if given:
                    self._leave()
                raise
        if self._gap is not None:
            try:
                await self._spacing(tool)
            except BaseException:
                self._leave()
                raise

    def _place_or_turn(self, loop: Any, tool: str) -> Any:
        if self._free is None:
            return None
        if self._free > 0 and not self._waiting:
            self._free -= 1
            return None
        if len(self._waiting) >= self._queue:
            raise _overloaded(tool, len(self._waiting))
        turn = loop.create_future()
        self._waiting.append((loop, turn))
        return turn

    async def _spacing(self, tool: str) -> None:
        import asyncio

        with self._lock:
            now = time.monotonic()
            start = max(now, self._next_start)
            if start > now and self._spaced >= self._queue:
                raise _overloaded(tool, self._spaced)
            self._next_start = start + typing.cast("float", self._gap)
            self._spaced += 1
        try:
            if start > now:
                await asyncio.sleep(start - now)
        finally:
            with self._lock:
                self._spaced -= 1

    def _leave(self) -> None:
        """Give the place to the first in line."""
        if self._free is None:
            return
        with self._lock:
            while self._waiting:
                loop, turn = self._waiting.popleft()
                if turn.cancelled() or loop.is_closed():
                    continue
                loop.call_soon_threadsafe(self._hand_over, turn)
                return
            self._free += 1

    def _hand_over(self, turn: Any) -> None:
        if turn.done():
            self._leave()  # it was cancelled on the way: on to the next
        else:
            turn.set_result(None)


def _overloaded(tool: str, waiting: int) -> ToolOverloadedError:
    return ToolOverloadedError(
        f"Tool {tool!r} is overloaded: {waiting} calls are waiting already. "
        "Nothing was started; try again later."
    )


@overload
def needs_approval(predicate: ToolT, /) -> ToolT: ...
@overload
def needs_approval(
    predicate: bool | Callable[[ToolContext[Any], dict[str, Any]], Any] = True,
) -> _Change: ...
def needs_approval(
    predicate: bool | Callable[[ToolContext[Any], dict[str, Any]], Any] | ToolT = True,
) -> _Change | ToolT:
    """Let a person decide before a call runs.

    Asked before everything else around the tool, wherever in the stack it stands, with arguments
    that the tool accepts. A run then ends with `interruptions` and goes on once its state has the
    decisions, or asks `RunConfig.approve` at once. Where nobody can be asked, in `tool.invoke` for
    example, the call is denied.

    Args:
        predicate: Which calls: all, or those for which a function of the context and the
            arguments says so; sync or async. One that fails means that a person decides.
    """
    if isinstance(predicate, FunctionTool):  # written without parentheses
        return needs_approval()(typing.cast("ToolT", predicate))

    async def admit(context: ToolContext[Any], args_json: str) -> None:
        if not await _is_needed(predicate, context, args_json):
            return
        decision = context.decision
        if decision is None:
            if isinstance(context.parent, RunScope):
                raise Interruption
            raise ToolDeniedError(
                f"Tool {context.tool_name!r} needs a person's approval, and nobody can be asked "
                "where it was called. It was not run."
            )
        if not decision.approved:
            raise ToolDeniedError(
                decision.message or f"A person refused this call of {context.tool_name!r}."
            )

    return _around("needs_approval()", lambda inner: inner, admit=admit)


def approve_destructive() -> _Change:
    """Let a person decide before each call of a tool that may destroy something.

    Tools whose annotations say that they are read-only, or not destructive, are left as they are;
    a tool without annotations may be destructive. As with `needs_approval`, a call where nobody
    can be asked is denied. For a whole list: `[approve_destructive()(tool) for tool in tools]`.
    """

    def change(tool: Any) -> Any:
        hints = tool.annotations
        harmless = hints is not None and (hints.read_only or not hints.destructive)
        return tool if harmless else needs_approval()(tool)

    return _Change("approve_destructive()", change)


def security_risk() -> _Change:
    """Let the model say how risky each call is, for others to decide by.

    Tools that are not read-only get an argument `security_risk` (LOW, MEDIUM, HIGH or UNKNOWN),
    which stands first. It is taken off before the arguments are validated, and is
    `ctx.security_risk` for policies, hooks and the tool: put the ones that read it below.

    Raises:
        UserError: The tool has a parameter of that name.
    """

    def change(tool: Any) -> Any:
        if tool.annotations is not None and tool.annotations.read_only:
            return tool
        name = tool.name

        async def prepare(context: ToolContext[Any], args_json: str) -> str:
            args_json, context.security_risk = take_risk(args_json, name)
            return args_json

        policy = Policy(
            name="security_risk()",
            wrap=lambda inner: inner,
            reshape=lambda schema: with_risk(schema, name),
            prepare=prepare,
        )
        changed = tool.with_(policy=policy)
        _ = changed.json_schema  # a clash of names is told now
        return changed

    return _Change("security_risk()", change)


async def _is_needed(predicate: Any, context: ToolContext[Any], args_json: str) -> bool:
    if not callable(predicate):
        return bool(predicate)
    context.arguments_json = args_json
    try:
        needed: Any = predicate(context, dict(context.arguments))
        return bool(await needed if hasattr(needed, "__await__") else needed)
    except Exception:  # noqa: BLE001 - whatever is wrong with the rule, the call is not let through
        _log().exception(
            "The approval rule of tool %r failed; a person decides.", context.tool_name
        )
        return True


def input_guardrail(
    function: Callable[[ToolContext[Any], dict[str, Any]], Any],
) -> _Change:
    """Look at the arguments of each call before it runs, and before anybody approves it.

    Args:
        function: Called with the context and the arguments; sync or async. It gives `None` to let
            the call pass, other arguments as a dictionary to let it run with those, or raises
            `ToolDeniedError` or `ToolError` with what the model is told.
    """

    async def prepare(context: ToolContext[Any], args_json: str) -> str:
        given = function(context, dict(context.arguments))
        if hasattr(given, "__await__"):
            given = await given
        if given is None:
            return args_json
        if not isinstance(given, dict):
            raise UserTypeError(
                f"The input guardrail of tool {context.tool_name!r} gives None or a dictionary of "
                f"arguments, not a {type(given).__name__}."
            )
        from pydantic_core import to_json

        return to_json(given).decode()

    return _around("input_guardrail(...)", lambda inner: inner, prepare=prepare)


def output_guardrail(function: Callable[[ToolContext[Any], Any], Any]) -> _Change:
    """Look at what each call returns before anybody else does.

    Args:
        function: Called with the context and the value; sync or async. It gives `None` to let the
            value pass, another one to put in its place, or raises `ToolError` to hold it back and
            tell the model why.
    """

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            value = await inner(context, args_json)
            given = function(context, value)
            if hasattr(given, "__await__"):
                given = await given
            return value if given is None else given

        return call

    return _around("output_guardrail(...)", wrap)


def exclusive() -> _Change:
    """Let a tool run alone: no other call of the same turn runs beside it, nor one of its own."""
    gate = _Gate(1, None, 1_000_000)

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            async with gate.held(context):
                return await inner(context, args_json)

        return call

    policy = Policy(name="exclusive()", wrap=wrap)

    def change(tool: FunctionTool[..., Any]) -> FunctionTool[..., Any]:
        return _marked(tool, exclusive=True).with_(policy=policy)

    return _Change("exclusive()", change)


def _marked(tool: FunctionTool[..., Any], **facts: Any) -> FunctionTool[..., Any]:
    """Put facts into the metadata namespace that is the library's own."""
    own = {**tool.metadata.get("agents_tools", {}), **facts}
    return tool.with_(metadata={**tool.metadata, "agents_tools": own})


def rename(name: str) -> _Change:
    """Give a tool another name.

    Args:
        name: 1 to 64 letters, digits, `_` and `-`.

    Raises:
        UserError: The name is not acceptable.
    """
    check_tool_name(name)
    return _Change(f"rename({name!r})", lambda tool: tool.with_(name=name))


def hide(**values: Any) -> _Change:
    """Set arguments once and for all and hide them from the model.

    Args:
        **values: The arguments and their values, which must have a JSON form.

    Raises:
        UserError: The tool has no such parameter, or a value has no JSON form.
    """
    from pydantic_core import to_json

    if not values:
        raise UserValueError("hide(...) hides nothing: give it arguments by name.")
    try:
        fixed = to_json(values).decode()
    except Exception as error:
        raise UserValueError(
            f"hide(...) takes values that have a JSON form ({error}). Give other objects to the "
            "function with `functools.partial` before it becomes a tool."
        ) from error

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            return await inner(context, _joined(args_json, fixed, values))

        return call

    def reshape(schema: dict[str, Any]) -> dict[str, Any]:
        properties = typing.cast("dict[str, Any]", schema.get("properties", {}))
        for name in values:
            if name not in properties:
                known = ", ".join(properties) or "none"
                raise UserValueError(
                    f"hide({name}=...) names no parameter of the tool; it has: {known}."
                )
            del properties[name]
        required = [name for name in schema.get("required", ()) if name not in values]
        schema.pop("required", None)
        if required:
            schema["required"] = required
        return _without_unused_definitions(schema)

    return _around(f"hide({', '.join(values)})", wrap, reshape=reshape)


def _joined(args_json: Any, fixed: str, names: Mapping[str, Any]) -> Any:
    """Add the fixed arguments to what the model sent, which may not contain them."""
    from pydantic_core import from_json

    if isinstance(args_json, (bytes, bytearray)):
        args_json = bytes(args_json).decode(errors="surrogateescape")
    text: str = (args_json or "").strip(" \t\r\n")
    if text in {"", "null"}:
        return fixed
    try:
        given: Any = from_json(text)
        if isinstance(given, str):  # an object in a string, which the tool's reader unwraps
            text = given.strip(" \t\r\n")
            given = from_json(text)
    except (TypeError, ValueError):
        given = None
    if not isinstance(given, dict):
        raise ModelBehaviorError(_NO_OBJECT)
    for name in names:
        if name in given:
            raise ModelBehaviorError(f"Invalid arguments:\n- {name}: unknown, leave it out")
    return fixed if not given else f"{text[:-1]},{fixed[1:]}"


_NO_OBJECT = "Invalid arguments: expected one JSON object with the tool's parameters."


def _without_unused_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    definitions = typing.cast("dict[str, Any]", schema.pop("$defs", {}))
    used: set[str] = set()
    waiting = [schema]
    while waiting:
        text = repr(waiting.pop())
        for name, definition in definitions.items():
            if name not in used and f"'#/$defs/{name}'" in text:
                used.add(name)
                waiting.append(definition)
    kept = {name: definition for name, definition in definitions.items() if name in used}
    return {**schema, "$defs": kept} if kept else schema


def with_metadata(**metadata: Any) -> _Change:
    """Add metadata to a tool; what it has under the same names is replaced."""
    return _Change(
        "with_metadata(...)", lambda tool: tool.with_(metadata={**tool.metadata, **metadata})
    )


def truncate(max_chars: int) -> _Change:
    """Bound how much of a result the model gets; the rest is kept as an artifact event.

    Args:
        max_chars: Characters; 256 Ki by default for every tool.

    Raises:
        UserError: `max_chars` is no positive whole number.
    """
    if not isinstance(max_chars, int) or max_chars < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(
            f"truncate(...) takes a positive number of characters, not {max_chars!r}."
        )
    return _Change(f"truncate({max_chars})", lambda tool: tool.with_(max_output=max_chars))


def _log() -> Any:
    import logging

    return logging.getLogger("agents_tools")
