"""The limit: what a workload costs when pydantic-core and asyncio are used by hand."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import queue
import threading
import types
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from time import monotonic, perf_counter
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import SchemaSerializer, SchemaValidator, ValidationError, core_schema

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
    from contextvars import Context


def definitions(functions: list[Callable[..., Any]]) -> list[dict[str, Any]]:
    """Return the definition of each function for a model, and build its validator."""
    _leaves.clear()
    return [_build(function)[0] for function in functions]


@dataclass(slots=True)
class Outcome:
    """How one call ended."""

    status: Literal["ok", "invalid_args", "tool_error"]
    value: Any
    output: str
    error: Exception | None = None


@dataclass(slots=True)
class Call:
    """What the code below a call can read about it, from the variable `current_call`."""

    name: str
    arguments: str
    is_caller_cancelled: bool = False


current_call: ContextVar[Call | None] = ContextVar("current_call", default=None)
GRACE = 2.0
"""How long a cancelled caller waits for the cleanup of a function, in seconds."""


def caller(
    function: Callable[..., Any], render: Callable[[Any], str] = str
) -> Callable[[str], Awaitable[Outcome]]:
    """Return what calls an asynchronous function with JSON arguments, and returns an outcome.

    It makes the promises that every call of the library makes, written by hand for this one case:
    the arguments are validated, the function runs in the task of the caller with context variables
    of its own, code below it can read the current call, an error becomes an outcome, and a function
    that cancels its own task does not cancel the caller. It has no events, policies or deadlines.

    Args:
        function: The function.
        render: Returns the text for the model.
    """
    validate, name = _build(function)[1].validate_json, function.__name__

    async def call(arguments: str) -> Outcome:
        record = Call(name, arguments)
        try:
            args, kwargs = validate(arguments)
        except ValidationError as error:
            return Outcome("invalid_args", None, str(error), error)
        try:
            value = await _drive(function(*args, **kwargs), record)
            return Outcome("ok", value, render(value))
        except asyncio.CancelledError:
            if record.is_caller_cancelled:
                raise
            error = RuntimeError(f"{name} was cancelled.")
            return Outcome("tool_error", None, str(error), error)
        except Exception as error:  # noqa: BLE001 - every failure becomes an outcome
            return Outcome("tool_error", None, f"{type(error).__name__}: {error}", error)

    return call


async def _drive(coroutine: Coroutine[Any, Any, Any], record: Call) -> Any:
    """Await a coroutine in this task, but with context variables of its own."""
    context = copy_context()
    context.run(current_call.set, record)
    task: Any = asyncio.current_task()
    before = task.cancelling()
    try:
        pending = context.run(coroutine.send, None)
    except StopIteration as stop:
        if task.cancelling() > before:
            await _uncancel(task, before)
        return stop.value
    except BaseException:
        if task.cancelling() > before:
            await _uncancel(task, before)
        raise
    return await _Rest(coroutine, record, context, task, before, pending)


async def _uncancel(task: Any, before: int) -> None:
    """Take back the cancellations of a task that the coroutine in it requested."""
    while task.cancelling() > before:
        task.uncancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)  # the loop throws the one that it has already scheduled


class _Rest:
    """The rest of a coroutine that waits for something."""

    def __init__(self, coroutine: Any, record: Call, context: Context, *state: Any) -> None:
        self._coroutine, self._record, self._context = coroutine, record, context
        self._task, self._before, self._pending = state

    def __await__(self) -> Generator[Any, Any, Any]:
        task, pending, run = self._task, self._pending, self._context.run
        own = task.cancelling() - self._before
        expires: float | None = None
        try:
            while True:
                advance, value, is_done = self._coroutine.send, None, True
                try:
                    if expires is None:
                        yield pending
                    else:
                        is_done = yield from _is_done(pending, expires - monotonic())
                except asyncio.CancelledError as error:
                    advance, value = self._coroutine.throw, error
                    if not own and expires is None:
                        self._record.is_caller_cancelled = True
                        expires = monotonic() + GRACE
                if not is_done:
                    self._adopt(pending)
                    raise asyncio.CancelledError  # noqa: TRY301 - as `await` would
                count = task.cancelling()
                try:
                    pending = run(advance, value)
                finally:
                    own += task.cancelling() - count
        except StopIteration as stop:
            if own:
                yield from _uncancel(task, self._before).__await__()
            return stop.value
        except BaseException:
            if own:
                yield from _uncancel(task, self._before).__await__()
            raise

    def _adopt(self, pending: Any) -> None:
        """Let a task await what the caller no longer waits for."""
        pending._asyncio_future_blocking = True
        rest = _Rest(self._coroutine, self._record, self._context, _NO_TASK, 0, pending)

        async def finish() -> None:
            await rest

        _adopted.add(task := asyncio.create_task(finish()))
        task.add_done_callback(_adopted.discard)


class _NoTask:
    def cancelling(self) -> int:
        return 0


_NO_TASK = _NoTask()
_adopted: set[asyncio.Task[None]] = set()


def _is_done(pending: Any, seconds: float) -> Generator[Any, Any, bool]:
    if pending is None:
        yield
        return True
    pending._asyncio_future_blocking = False
    done, _ = yield from asyncio.wait([pending], timeout=seconds).__await__()
    return bool(done)


async def turns(function: Callable[..., Any], arguments: str, count: int) -> list[float]:
    """Call a function turn by turn, as a loop does that keeps nothing but two records a turn."""
    call, asked, history = caller(function), list[float](), list[dict[str, Any]]()
    for number in range(count + 1):
        asked.append(perf_counter())
        if number < count:
            name, call_id = function.__name__, f"call_{number}"
            history.append({"call_id": call_id, "name": name, "arguments": arguments})
            outcome = await call(arguments)
            history.append({"call_id": call_id, "output": outcome.output})
    return asked


def inline_caller(function: Callable[..., Any]) -> Callable[[str], Awaitable[Outcome]]:
    """Return what calls a plain function on the event loop itself."""

    async def run(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return caller(functools.update_wrapper(run, function))


def threaded_caller(function: Callable[..., Any]) -> Callable[[str], Awaitable[Outcome]]:
    """Return what calls a plain function on one thread that does nothing else."""
    hop = _Hop()

    async def run(*args: Any, **kwargs: Any) -> Any:
        return await hop.run(function, args, kwargs)

    return caller(functools.update_wrapper(run, function))


def rendering_caller(function: Callable[..., Any]) -> Callable[[str], Awaitable[Outcome]]:
    """Return what calls a function and writes its result as JSON with a prebuilt serializer."""
    to_json = SchemaSerializer(TypeAdapter(get_type_hints(function)["return"]).core_schema).to_json
    return caller(function, lambda value: to_json(value).decode())


async def stream(events: int) -> AsyncIterator[str]:
    """Yield that many strings."""
    for _ in range(events):
        yield "step"


async def sleeps(count: int) -> None:
    """Sleep that many times at once."""
    # the sleep is what is timed: the least that so many calls of a tool that waits can take
    await asyncio.gather(*(asyncio.sleep(0.01) for _ in range(count)))


class _Hop:
    """One thread fed by a queue, which answers through the event loop."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    async def run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        self._jobs.put((loop, done, function, args, kwargs))
        return await done

    def _work(self) -> None:
        while True:
            loop, done, function, args, kwargs = self._jobs.get()
            loop.call_soon_threadsafe(done.set_result, function(*args, **kwargs))


@dataclass(slots=True)
class _Leaf:
    """One annotation as core schema and as JSON schema, with what they refer to."""

    core: Any
    schema: dict[str, Any]
    core_definitions: dict[str, Any] = field(default_factory=dict[str, Any])
    definitions: dict[str, Any] = field(default_factory=dict[str, Any])


_SCALARS: dict[Any, _Leaf] = {
    str: _Leaf(core_schema.str_schema(), {"type": "string"}),
    int: _Leaf(core_schema.int_schema(), {"type": "integer"}),
    float: _Leaf(core_schema.float_schema(), {"type": "number"}),
    bool: _Leaf(core_schema.bool_schema(), {"type": "boolean"}),
    type(None): _Leaf(core_schema.none_schema(), {"type": "null"}),
}
_BOUNDS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
_leaves: dict[Any, _Leaf] = {}


def _build(function: Callable[..., Any]) -> tuple[dict[str, Any], SchemaValidator]:
    hints = get_type_hints(function, include_extras=True)
    description, texts = _split(inspect.getdoc(function) or "")
    arguments: list[Any] = []
    properties: dict[str, Any] = {}
    required: list[str] = []
    core_definitions: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        leaf = _leaf(hints[name])
        core_definitions |= leaf.core_definitions
        definitions |= leaf.definitions
        core = leaf.core
        properties[name] = schema = dict(leaf.schema)
        if name in texts:
            schema["description"] = texts[name]
        if parameter.default is parameter.empty:
            required.append(name)
        else:
            schema["default"] = parameter.default
            core = core_schema.with_default_schema(core, default=parameter.default)
        arguments.append(core_schema.arguments_v3_parameter(name, core))
    whole: Any = core_schema.arguments_v3_schema(arguments)
    if core_definitions:
        whole = core_schema.definitions_schema(whole, list(core_definitions.values()))
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    if definitions:
        parameters["$defs"] = definitions
    definition = {
        "type": "function",
        "name": function.__name__,
        "description": description,
        "parameters": parameters,
        "strict": False,
    }
    return definition, SchemaValidator(whole)


def _split(text: str) -> tuple[str, dict[str, str]]:
    """Take a Google docstring apart, as far as the workloads go."""
    description, _, section = text.partition("\nArgs:\n")
    texts: dict[str, str] = {}
    for line in section.splitlines():
        if not line.startswith("    "):
            break
        name, _, words = line.strip().partition(": ")
        texts[name] = words
    return description.strip(), texts


def _leaf(annotation: Any) -> _Leaf:
    leaf = _SCALARS.get(annotation) or _leaves.get(annotation)
    if leaf is None:
        leaf = _leaves[annotation] = _by_hand(annotation) or _by_pydantic(annotation)
    return leaf


def _by_hand(annotation: Any) -> _Leaf | None:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _bounded(_leaf(arguments[0]), arguments[1:])
    if origin is Literal:
        return _Leaf(core_schema.literal_schema([*arguments]), {"enum": [*arguments]})
    if origin is list:
        item = _leaf(arguments[0])
        return _Leaf(
            core_schema.list_schema(item.core),
            {"type": "array", "items": item.schema},
            item.core_definitions,
            item.definitions,
        )
    if origin in (Union, types.UnionType) and type(None) in arguments:
        arms = [arm for arm in arguments if arm is not type(None)]
        if len(arms) == 1 and (arm := _leaf(arms[0])):
            return _Leaf(
                core_schema.nullable_schema(arm.core),
                {"anyOf": [arm.schema, {"type": "null"}]},
                arm.core_definitions,
                arm.definitions,
            )
    return None


def _bounded(base: _Leaf, metadata: tuple[Any, ...]) -> _Leaf | None:
    """Lay the bounds of a field over the schemas of its type."""
    core, schema = dict(base.core), dict(base.schema)
    for info in metadata:
        if not isinstance(info, FieldInfo):
            return None
        for bound in info.metadata:
            (name,) = bound.__slots__
            core[name] = schema[_BOUNDS[name]] = getattr(bound, name)
    return _Leaf(core, schema, base.core_definitions, base.definitions)


def _by_pydantic(annotation: Any) -> _Leaf:
    adapter = TypeAdapter[Any](annotation)
    core: Any = adapter.core_schema
    schema = adapter.json_schema()
    shared = {}
    if core["type"] == "definitions":
        shared = {definition["ref"]: definition for definition in core["definitions"]}
        core = core["schema"]
    return _Leaf(core, schema, shared, schema.pop("$defs", {}))
