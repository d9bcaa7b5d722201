"""Single tool calls: return values, exceptions, and the output for the model."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import subprocess
import sys
import textwrap
import threading
from dataclasses import dataclass
from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, SecretStr
from typing_extensions import TypedDict

from agents_tools import (
    FunctionTool,
    ModelBehaviorError,
    RunContextWrapper,
    ToolCancelledError,
    ToolContext,
    ToolDeniedError,
    ToolError,
    ToolOutputFileContent,
    ToolOutputText,
    ToolResult,
    ToolTimeoutError,
    UserError,
    default_tool_error_function,
    function_tool,
    listen,
    policies,
    register_secret,
    set_default_tool_error_function,
)
from agents_tools.concurrency import watch_loop
from agents_tools.errors import ToolLostError, ToolOverloadedError
from agents_tools.text import forget_secret
from agents_tools.tool import current_context


@pytest.mark.requirement("A24")
async def test_sync_and_async_functions_are_called_the_same_way() -> None:
    @function_tool
    async def quick(a: int) -> int:
        return a + 1

    @function_tool
    def slow(a: int) -> int:
        return a + 2

    @function_tool(run_in_thread=False)
    def inline(a: int) -> int:
        return a + 3

    for tool, expected in ((quick, 2), (slow, 3), (inline, 4)):
        assert await tool.invoke(a=1) == expected
        assert await tool.on_invoke_tool(None, '{"a": 1}') == str(expected)
        assert (await tool.call(None, '{"a": 1}')).value == expected


@pytest.mark.requirement("A24")
async def test_a_sync_tool_never_blocks_the_loop() -> None:
    """It runs in a thread."""
    released = threading.Event()

    @function_tool
    def blocking() -> str:
        assert released.wait(5)
        return "done"

    task = asyncio.create_task(blocking.invoke())
    await asyncio.sleep(0)
    released.set()  # only reached because the loop was free
    assert await task == "done"


async def test_sixty_four_blocking_calls_run_at_once() -> None:
    """The barrier opens only when all of them have arrived."""
    barrier = threading.Barrier(64)

    @function_tool
    def meet() -> int:
        return barrier.wait(10)

    results = await asyncio.gather(*(meet.invoke() for _ in range(64)))
    assert sorted(results) == list(range(64))


async def test_context_variables_reach_the_tool_in_a_thread_and_on_the_loop() -> None:
    """Request ids, locales and tracing use them."""
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")

    @function_tool
    def in_thread() -> str:
        return variable.get()

    @function_tool
    async def on_loop() -> str:
        return variable.get()

    assert await in_thread.invoke() == "set"
    assert await on_loop.invoke() == "set"


@pytest.mark.requirement("A23", "A72")
async def test_the_context_carries_the_applications_object() -> None:
    """A plain wrapper becomes the context of one call, with its own id."""
    seen: list[ToolContext[Any]] = []

    @function_tool
    async def tool(ctx: RunContextWrapper[dict[str, int]], a: int = 1) -> int:
        assert isinstance(ctx, ToolContext)
        seen.append(ctx)
        assert current_context() is ctx
        return ctx.context["user"]

    assert await tool.on_invoke_tool(RunContextWrapper({"user": 7}), '{"a": 2}') == "7"
    assert await tool.invoke(context=ToolContext({"user": 8}, tool_call_id="call_x")) == 8
    first, second = seen
    assert (first.tool_name, first.arguments) == ("tool", {"a": 2})
    assert first.tool_call_id != second.tool_call_id == "call_x"
    assert second.path == ("call_x",)
    assert current_context() is None


async def test_a_nested_call_knows_its_path() -> None:
    """Nesting follows execution; contexts are not passed explicitly."""

    @function_tool
    async def inner() -> list[str]:
        context = current_context()
        assert context is not None
        return [*context.path, str(context.context)]

    @function_tool
    async def outer() -> list[str]:
        return await inner.invoke()

    path = await outer.invoke(context=ToolContext("app", tool_call_id="outer"))
    assert path[0] == "outer"
    assert len(path) == 3
    assert path[2] == "app"


@pytest.mark.requirement("A28", "A29", "A30", "A70")
async def test_a_hand_made_tool_raises_its_own_errors() -> None:
    """The documented example, and an exception that is not swallowed."""

    class FunctionArgs(BaseModel):
        username: str
        age: int

    async def run_function(ctx: RunContextWrapper[Any], args: str) -> str:
        parsed = FunctionArgs.model_validate_json(args)
        if parsed.age < 0:
            raise LookupError("unborn")
        return "done"

    tool = FunctionTool(
        name="process_user",
        description="Processes extracted user data",
        params_json_schema=FunctionArgs.model_json_schema(),
        on_invoke_tool=run_function,
    )
    assert await tool.on_invoke_tool(None, '{"username": "x", "age": 3}') == "done"
    with pytest.raises(LookupError, match="unborn"):
        await tool.on_invoke_tool(None, '{"username": "x", "age": -3}')
    assert tool.strict_json_schema is False
    with pytest.raises(UserError, match="no Python function"):
        tool("anything")


def test_a_tool_made_from_a_schema_gets_only_valid_arguments() -> None:
    """For types and for raw schemas."""

    class Person(BaseModel):
        name: str
        age: int = 1

    async def run(ctx: ToolContext[Any], args: str) -> str:
        return args

    for schema in (Person, Person.model_json_schema() | {"additionalProperties": False}):
        tool = FunctionTool.from_schema(name="tool", schema=schema, on_invoke_tool=run)
        assert tool.invoke_sync(name="x") == '{"name":"x"}'
        for bad in ('{"name": 1}', "{}", '{"name": "x", "nam": 1}', '{"name": "x", "name": "y"}'):
            with pytest.raises(ModelBehaviorError):
                tool.invoke_sync(bad)
        open_tool = FunctionTool.from_schema(
            name="tool", schema=schema, on_invoke_tool=run, validate_arguments=False
        )
        assert open_tool.invoke_sync('{"name": 1}') == '{"name": 1}'


# --- failures


@function_tool
def broken(kind: str) -> str:
    """Fail in the requested way."""
    raise {"value": ValueError("bad value"), "tool": ToolError("try another city")}[kind]


@pytest.mark.requirement("A65")
async def test_the_default_error_message_lets_the_model_correct_itself() -> None:
    """Invalid arguments in full, a `ToolError` verbatim, anything else with its type."""
    call = broken.on_invoke_tool
    assert await call(None, '{"kind": "value"}') == snapshot(
        "Tool 'broken' failed: ValueError: bad value"
    )
    assert await call(None, '{"kind": "tool"}') == snapshot("try another city")
    assert await call(None, '{"kin": "tool"}') == snapshot("""\
Invalid arguments for tool 'broken':
- kind: missing, expected a string (required)
- kin: unknown, did you mean 'kind'?\
""")
    assert await call(None, "") == snapshot("""\
Invalid arguments for tool 'broken':
- kind: missing, expected a string (required)\
""")
    assert await call(None, "{") == snapshot(
        "Invalid arguments for tool 'broken': the JSON is incomplete, it ends too early (EOF while parsing an object at line 1 column 1). Send one JSON object with the tool's parameters."
    )


@pytest.mark.requirement("A66")
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_custom_failure_function_returns_the_answer(asynchronous: bool) -> None:
    """It gets the context and the error, and can be sync or async."""
    seen: list[Any] = []

    def answer(ctx: Any, error: Exception) -> str:
        seen.append((ctx.tool_name, error))
        return "custom"

    async def answer_later(ctx: Any, error: Exception) -> str:
        return answer(ctx, error)

    @function_tool(failure_error_function=answer_later if asynchronous else answer)
    def tool(a: int) -> str:
        raise KeyError(a)

    assert await tool.on_invoke_tool(None, '{"a": 1}') == "custom"
    assert await tool.on_invoke_tool(None, '{"a": "x"}') == "custom"
    assert [(name, type(error)) for name, error in seen] == [
        ("tool", KeyError),
        ("tool", ModelBehaviorError),
    ]


async def test_a_failure_function_that_fails_falls_back_to_the_default() -> None:
    """The model still gets an answer."""

    def answer(ctx: Any, error: Exception) -> str:
        raise RuntimeError("oops")

    @function_tool(failure_error_function=answer)
    def tool() -> str:
        raise ValueError("original")

    assert "original" in await tool.on_invoke_tool(None, "{}")


@pytest.mark.requirement("A67", "A68", "A69")
async def test_without_a_failure_function_the_error_is_raised() -> None:
    """`ModelBehaviorError` for bad input, the tool's own exception otherwise."""

    @function_tool(failure_error_function=None)
    def tool(a: int) -> str:
        raise ZeroDivisionError("by zero")

    with pytest.raises(ZeroDivisionError, match="by zero"):
        await tool.on_invoke_tool(None, '{"a": 1}')
    with pytest.raises(ModelBehaviorError):
        await tool.on_invoke_tool(None, "not json")


@pytest.mark.requirement("A69")
async def test_invoke_raises_the_exception_of_the_tool() -> None:
    """An application wants the exception, not the message for the model."""
    with pytest.raises(ValueError, match="bad value"):
        await broken.invoke(kind="value")


async def test_the_default_failure_function_can_be_changed_for_all_tools() -> None:
    """One place for the wording of an application."""
    set_default_tool_error_function(lambda ctx, error: f"sorry: {error}")
    try:
        assert await broken.on_invoke_tool(None, '{"kind": "value"}') == "sorry: bad value"
    finally:
        set_default_tool_error_function(None)
    assert "ValueError" in await broken.on_invoke_tool(None, '{"kind": "value"}')


class _BrokenStr(Exception):  # noqa: N818 - what it is named after
    def __str__(self) -> str:
        raise RuntimeError("no text")


RAISES: list[BaseException] = [
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    StopIteration("x"),
    StopAsyncIteration("x"),
    asyncio.CancelledError(),
    MemoryError(),
    RecursionError("deep"),
    BaseException("base"),
    BaseExceptionGroup("group", [SystemExit(1)]),
    ExceptionGroup("group", [ValueError("inner")]),
    _BrokenStr(),
]


def _noted(error: Exception, *notes: str) -> Exception:
    for note in notes:
        error.add_note(note)
    return error


async def test_the_model_reads_the_exceptions_of_a_task_group() -> None:
    """The message of the group itself says only how many there are."""

    @function_tool
    async def download() -> str:
        async def fetch(page: int) -> None:
            raise _noted(ConnectionError(f"page {page} is gone"), f"url: /pages/{page}")

        async with asyncio.TaskGroup() as group:
            for page in range(12):
                group.create_task(fetch(page))
        return "unreachable"

    text = await download.on_invoke_tool(None, "{}")
    lines = text.splitlines()
    assert lines[:3] == [
        (
            "Tool 'download' failed: ExceptionGroup: unhandled errors in a TaskGroup "
            "(12 sub-exceptions)"
        ),
        "- ConnectionError: page 0 is gone",
        "  url: /pages/0",
    ]
    assert lines[-1] == "and 2 more"
    assert len(lines) == 22
    assert len(text) <= 2_000


async def test_the_model_reads_nested_groups_and_notes() -> None:
    register_secret("s3cr3t-of-the-note")
    inner = ExceptionGroup("inner", [KeyError("x"), ToolError("Use another key.")])
    errors: list[BaseException] = [
        ExceptionGroup("outer", [inner, _noted(ValueError(), "s3cr3t-of-the-note", "two")]),
        BaseExceptionGroup("outer", [SystemExit(2)]),
        _noted(ValueError(), "while reading a.txt"),
        _noted(ToolError("No such file."), "Look in the folder b."),
    ]

    @function_tool(name_override="read")
    async def read(number: int) -> str:
        raise errors[number]

    texts = [await read.on_invoke_tool(None, f'{{"number": {n}}}') for n in range(len(errors))]
    forget_secret("s3cr3t-of-the-note")
    assert texts == snapshot(
        [
            """\
Tool 'read' failed: ExceptionGroup: outer (2 sub-exceptions)
- ExceptionGroup: inner (2 sub-exceptions)
  - KeyError: 'x'
  - Use another key.
- ValueError: ***
  two\
""",
            """\
The tool failed with BaseExceptionGroup: outer (1 sub-exception)
- SystemExit: 2\
""",
            "Tool 'read' failed: ValueError: while reading a.txt",
            """\
No such file.
Look in the folder b.\
""",
        ]
    )


@pytest.mark.parametrize("count", [1, 12])
async def test_a_group_of_tool_errors_keeps_their_messages(count: int) -> None:
    """`ToolError` in a task of a `TaskGroup` is still a text for the model."""

    @function_tool
    async def book() -> str:
        async def fail(number: int) -> None:
            raise ToolError(f"Seat {number} is taken.")

        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(fail(number))
        return "unreachable"

    outcome = await book.call(None, "{}")
    expected = [f"Seat {number} is taken." for number in range(min(count, 10))]
    assert outcome.output == "\n".join(expected + ["and 2 more"] * (count > 10))
    assert isinstance(outcome.error, ExceptionGroup)


@pytest.mark.requirement("F9", "F10")
@pytest.mark.parametrize("error", RAISES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("kind", ["thread", "inline", "async", "policy"])
async def test_any_exception_of_a_tool_is_a_tool_error(error: BaseException, kind: str) -> None:
    """A tool must not end its host program."""
    from agents_tools.policies import timeout

    def sync() -> str:
        raise error

    async def asynchronous() -> str:
        raise error

    tool: FunctionTool[..., Any] = {
        "thread": lambda: function_tool(sync),
        "inline": lambda: function_tool(run_in_thread=False)(sync),
        "async": lambda: function_tool(asynchronous),
        "policy": lambda: timeout(5)(function_tool(asynchronous)),
    }[kind]()
    outcome = await tool.call(None, "{}")
    assert outcome.status == "tool_error"
    assert isinstance(outcome.output, str)
    assert type(error).__name__ in outcome.output
    assert await tool.on_invoke_tool(None, "{}") == outcome.output
    assert (
        await function_tool(lambda: "next", name_override="next").on_invoke_tool(None, "{}")
        == "next"
    )


class _OwnBaseError(BaseException):
    pass


CANARY = "patient Jane Doe"
UNEXPECTED: list[BaseException] = [
    ValueError(CANARY),
    SystemExit(CANARY),
    KeyboardInterrupt(CANARY),
    GeneratorExit(CANARY),
    StopIteration(CANARY),
    _OwnBaseError(CANARY),
]


@pytest.mark.parametrize("error", UNEXPECTED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("in_thread", [True, False])
async def test_the_public_message_hides_an_unexpected_exception(
    error: BaseException, *, in_thread: bool
) -> None:
    """It is for callers outside the application; the model and the log get the message."""

    @function_tool(run_in_thread=in_thread)
    def tool() -> str:
        raise error

    for one in (tool, tool.with_(failure_error_function=None)):
        outcome = await one.call(None, "{}")
        public = outcome.public_message
        assert public is not None
        assert CANARY not in public
        assert type(error).__name__ in public
        assert "(error " in public
        assert str(outcome.output) == "" or CANARY in str(outcome.output) or "Stop" in public


async def test_the_public_message_is_the_text_that_an_author_wrote() -> None:
    """A `ToolError`, an error of the library and a failure function are meant to be read."""

    @function_tool
    async def refuse() -> str:
        raise ToolError("The kettle is empty.")

    @function_tool(failure_error_function=lambda _ctx, _error: "Try tomorrow.")
    async def later() -> str:
        raise ValueError(CANARY)

    refused = await refuse.call(None, "{}")
    assert refused.public_message == refused.output == "The kettle is empty."
    assert (await later.call(None, "{}")).public_message == "Try tomorrow."
    invalid = await refuse.call(None, "[]")
    assert invalid.public_message == invalid.output
    assert (
        await function_tool(lambda: "ok", name_override="ok").call(None, "{}")
    ).public_message is None


async def test_the_public_message_has_the_parts_removed_that_a_policy_removes() -> None:
    """A policy that changes the output for the model protects other readers as well."""

    @policies.redact(r"\d+")
    @function_tool
    async def refuse() -> str:
        raise ToolError("Account 123 is locked.")

    outcome = await refuse.call(None, "{}")
    assert outcome.public_message == outcome.output
    assert "123" not in str(outcome.public_message)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ToolTimeoutError("x"), "timeout"),
        (ToolCancelledError("x"), "cancelled"),
        (ToolDeniedError("x"), "denied"),
        (ToolOverloadedError("x"), "overloaded"),
        (ToolLostError("x"), "lost"),
        (ToolError("x"), "tool_error"),
        (ModelBehaviorError("of a call inside"), "tool_error"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
async def test_every_outcome_has_a_status(error: Exception, status: str) -> None:
    """The caller decides by the status, not by the text."""

    @function_tool
    async def tool() -> str:
        raise error

    outcome = await tool.call(None, "{}")
    assert (outcome.status, outcome.error) == (status, error)
    assert (await tool.call(None, "[]")).status == "invalid_args"


async def test_cancelling_a_call_reaches_the_tool_and_the_caller() -> None:
    """Only the cancelling task sees a cancellation."""
    started, cleaned = asyncio.Event(), asyncio.Event()

    @function_tool
    async def tool() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()
        return "never"

    task = asyncio.create_task(tool.on_invoke_tool(None, "{}"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned.is_set()


async def test_a_cancelled_sync_tool_can_check_for_cancellation() -> None:
    """It cannot be stopped from outside."""
    started, seen = threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    running = asyncio.Event()

    @function_tool
    def tool(ctx: ToolContext[Any]) -> str:
        loop.call_soon_threadsafe(running.set)
        started.wait(5)
        try:
            ctx.check()
        except ToolCancelledError:
            seen.set()
        return "late"

    task = asyncio.create_task(tool.on_invoke_tool(None, "{}"))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    started.set()
    assert await asyncio.to_thread(seen.wait, 5)


@pytest.mark.requirement("S20", "S27")
async def test_secrets_and_long_messages_do_not_reach_the_model() -> None:
    """An exception can contain anything."""
    register_secret("hunter2-very-secret")
    try:

        @function_tool
        def tool(kind: int) -> str:
            if kind == 1:
                raise ValueError("password is hunter2-very-secret")
            if kind == 2:
                raise ValueError(SecretStr("abcdefgh-12345"), "sk-" + "a1B2" * 12)
            raise ValueError("x" * 10_000)

        first = await tool.on_invoke_tool(None, '{"kind": 1}')
        second = await tool.on_invoke_tool(None, '{"kind": 2}')
        third = await tool.on_invoke_tool(None, '{"kind": 3}')
    finally:
        forget_secret("hunter2-very-secret")
    assert "hunter2" not in first
    assert "a1B2" not in second
    assert "abcdefgh" not in second
    assert len(third) < 600


def test_a_custom_failure_function_can_call_the_default_one() -> None:
    """For example to add a sentence."""
    context = ToolContext[Any](tool_name="tool")
    assert default_tool_error_function(context, OSError("no disk")) == snapshot(
        "Tool 'tool' failed: OSError: no disk"
    )


# --- results


class Point(BaseModel):
    x: int


@dataclass
class Size:
    width: int


async def test_results_reach_the_model_as_text_or_json() -> None:
    """Never as a Python repr."""

    def giving(value: Any) -> FunctionTool[..., Any]:
        return function_tool(lambda: value, name_override="tool")

    cases: list[tuple[Any, Any]] = [
        ("text", "text"),
        (None, "(no output)"),
        ("", "(no output)"),
        ([ToolOutputText("")], "(no output)"),
        (ToolResult(content=""), "(no output)"),
        (3, "3"),
        (True, "true"),
        ([Point(x=1)], '[{"x":1}]'),
        (Size(2), '{"width":2}'),
        ({"a": float("nan")}, '{"a":null}'),
    ]
    for value, expected in cases:
        assert await giving(value).on_invoke_tool(None, "{}") == expected
    for value in (None, ""):
        assert await giving(value).invoke() == value
    (block,) = await giving(b"\x00\x01").on_invoke_tool(None, "{}")
    assert isinstance(block, ToolOutputFileContent)


async def test_a_tool_result_separates_the_output_from_the_metadata() -> None:
    """Only the application sees metadata; an error result is an error."""

    @function_tool
    def tool(bad: bool = False) -> Any:
        return ToolResult(content="for the model", metadata={"rows": 3}, is_error=bad)

    good, bad = await tool.call(None, "{}"), await tool.call(None, '{"bad": true}')
    assert (good.status, good.output, good.metadata) == ("ok", "for the model", {"rows": 3})
    assert (bad.status, bad.output) == ("tool_error", "for the model")


@pytest.mark.requirement("F20")
async def test_a_result_without_a_json_form_is_an_error_that_names_the_type(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The model did nothing wrong, and the remedy is for the author of the tool."""

    @function_tool
    def tool() -> Any:
        return threading.Lock()

    with caplog.at_level(logging.ERROR, "agents_tools"):
        outcome = await tool.call(None, "{}")
    assert outcome.output == snapshot(
        "Tool 'tool' ran, but its result cannot be shown. The result is a _thread.lock, which has no JSON form. This is a fault of the tool and not of the call: do not repeat it with other arguments."
    )
    assert str(outcome.error).endswith(
        "Return text, a number, a list, a dict, a dataclass or a pydantic model."
    )
    assert str(outcome.error) in caplog.text


@pytest.mark.requirement("S29")
async def test_a_huge_result_is_truncated_and_the_full_text_emitted() -> None:
    """The model gets 256 Ki characters, subscribers get the rest as an artifact."""

    @function_tool
    def tool() -> str:
        return "x" * 1_000_000

    async with listen() as events:
        text = await tool.on_invoke_tool(None, "{}")
    assert len(text) <= 256 * 1024
    artifacts = [event for event in events if event.type == "tool_artifact_event"]
    assert len(artifacts) == 1


# --- sync callers, and the object itself


def test_invoke_sync_works_without_a_loop() -> None:
    """Scripts have none."""

    @function_tool
    async def tool(a: int) -> int:
        await asyncio.sleep(0)
        return a

    assert tool.invoke_sync(a=4) == 4
    assert tool.invoke_sync('{"a": 5}') == 5
    assert tool.invoke_sync({"a": 6}) == 6


async def test_invoke_sync_works_inside_a_running_loop_and_inside_tools() -> None:
    """Notebooks have a loop, and a tool may call another."""

    @function_tool
    async def inner(a: int) -> int:
        return a + 1

    @function_tool
    def outer(a: int) -> int:
        return inner.invoke_sync(a=a)

    assert outer.invoke_sync(a=1) == 2
    assert await outer.invoke(a=2) == 3


def test_arguments_cannot_be_passed_both_as_text_and_by_name() -> None:
    """They could contradict each other."""

    @function_tool
    def tool(arguments: int = 0, context: int = 0) -> list[int]:
        return [arguments, context]

    with pytest.raises(UserError, match="both JSON text and keyword"):
        tool.invoke_sync("{}", arguments=1)
    with pytest.raises(UserError, match="mapping"):
        tool.invoke_sync(["a"])  # type: ignore[call-overload] # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(UserError, match="cannot be converted to JSON"):
        tool.invoke_sync(arguments=threading.Lock())
    assert tool.invoke_sync({"arguments": 1, "context": 2}) == [1, 2]


def test_calling_a_tool_calls_the_wrapped_function() -> None:
    """Unit tests of a tool need nothing of this library."""

    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    tool = function_tool(add)
    assert tool(1) == 3
    assert (tool.__name__, tool.__doc__, tool.__wrapped__) == ("add", "Add.", add)
    import inspect

    assert inspect.signature(tool) == inspect.signature(add)


def test_a_tool_is_immutable() -> None:
    """`with_` returns a changed copy."""

    @function_tool(metadata={"a": 1})
    def tool(x: int) -> int:
        return x

    other = tool.with_(name="other", description="Another.")
    assert (tool.name, other.name, other.description) == ("tool", "other", "Another.")
    assert other.params_json_schema["title"] == "other_args"
    assert tool.params_json_schema["title"] == "tool_args"
    with pytest.raises(AttributeError):
        tool.name = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        tool.metadata["b"] = 2  # type: ignore[index]
    assert repr(tool) == "<FunctionTool 'tool'>"
    assert tool != tool.with_()
    assert len({tool, tool, other}) == 2


async def test_a_copy_can_leave_start_and_end_events_to_its_caller() -> None:
    """The copy emits only the events of the body; the original tool is unchanged."""

    @function_tool
    def tool(ctx: ToolContext[Any]) -> str:
        ctx.progress(1)
        return "ok"

    for bracketing, expected in ((False, 1), (True, 3), (None, 3)):
        emitted: list[Any] = []
        copy = tool.with_(enable_bracketing=bracketing)
        assert (await copy.call(ToolContext(emit=emitted.append), "{}")).output == "ok"
        assert len(emitted) == expected


def test_an_object_that_cannot_be_decorated_is_refused() -> None:
    """At the declaration, with the remedy."""

    @function_tool
    def tool() -> None: ...

    with pytest.raises(UserError, match="already a tool"):
        function_tool(tool)
    with pytest.raises(UserError, match="callable"):
        function_tool("name")  # type: ignore[call-overload]


async def test_a_tool_that_is_not_built_yet_can_be_called_from_many_threads() -> None:
    """Building it twice at once is harmless."""

    class Row(TypedDict):
        a: int

    @function_tool
    def tool(rows: list[Row], point: Point | None = None) -> int:
        """Count.

        Args:
            rows: Some rows.
        """
        return len(rows)

    results = await asyncio.gather(
        *(asyncio.to_thread(tool.invoke_sync, rows=[{"a": 1}]) for _ in range(16))
    )
    assert results == [1] * 16


async def test_a_thousand_concurrent_calls_do_not_mix() -> None:
    """Arguments and contexts stay with their call."""

    @function_tool
    async def tool(ctx: ToolContext[int], a: int) -> bool:
        await asyncio.sleep(0)
        context = current_context()
        return context is ctx and ctx.context == a and ctx.arguments == {"a": a}

    results = await asyncio.gather(
        *(tool.invoke(context=RunContextWrapper(i), a=i) for i in range(1_000))
    )
    assert all(results)


@pytest.mark.requirement("F6")
async def test_a_blocked_loop_is_reported_with_its_stack() -> None:
    """The tool cannot be interrupted, but the report locates it."""
    reports: list[Any] = []
    reported = threading.Event()

    def report(blocked: Any) -> None:
        reports.append(blocked)
        reported.set()

    @function_tool
    async def blocks() -> str:
        assert reported.wait(5)
        return "done"

    async with watch_loop(0.05, report=report):
        await blocks.invoke()
    assert len(reports) == 1
    assert "reported.wait(5)" in reports[0].stack


async def test_a_report_that_fails_does_not_end_the_watch(caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise later blocks are never reported."""
    reported = threading.Semaphore(0)

    def report(blocked: Any) -> None:
        del blocked
        reported.release()
        raise OSError("the disk is full")

    async with watch_loop(0.05, report=report):
        assert reported.acquire(timeout=5)  # blocks the loop
        await asyncio.sleep(0)
        assert reported.acquire(timeout=5)
    assert "The report= function of watch_loop(...) failed." in caplog.text


def test_an_async_report_is_refused() -> None:
    """The thread that watches has no loop for it."""

    async def report(blocked: Any) -> None:
        del blocked

    with pytest.raises(UserError, match="expects a sync function"):
        watch_loop(report=report)


def run_script(text: str, *, timeout: float = 15) -> subprocess.CompletedProcess[str]:
    """Run a program in its own process."""
    return subprocess.run(  # noqa: S603 - our own interpreter and text
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.requirement("F11")
def test_ctrl_c_during_a_tool_ends_the_program_as_usual() -> None:
    """A real Ctrl-C is not a tool error."""
    result = run_script(
        """
        import asyncio, os, signal
        from agents_tools import function_tool

        @function_tool
        async def tool() -> str:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(30)
            return "survived"

        try:
            print(asyncio.run(tool.on_invoke_tool(None, "{}")))
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    assert (result.stdout, result.stderr) == ("interrupted\n", "")


@pytest.mark.requirement("F8")
def test_the_program_ends_although_a_sync_tool_hangs() -> None:
    """An abandoned thread must not keep the interpreter alive."""
    result = run_script(
        """
        import asyncio, threading
        from agents_tools import function_tool
        from agents_tools.policies import timeout

        @timeout(0.1)
        @function_tool
        def hangs() -> str:
            threading.Event().wait(60)
            return "never"

        print(asyncio.run(hangs.on_invoke_tool(None, "{}")))
        """,
        timeout=10,
    )
    assert "took longer than 0.1 s" in result.stdout
    assert result.stderr == ""


async def test_many_calls_leave_no_tasks_threads_or_garbage() -> None:
    """No task, no thread beyond the pool, and no object that needs the garbage collector."""

    @function_tool
    async def tool(a: int) -> int:
        return a

    await tool.invoke(a=1)
    gc.collect()
    before = len(gc.get_objects()), len(asyncio.all_tasks())
    for i in range(500):
        await tool.on_invoke_tool(None, f'{{"a": {i}}}')
        await tool.on_invoke_tool(None, "bad")
    gc.collect()
    after = len(gc.get_objects()), len(asyncio.all_tasks())
    assert after[1] == before[1]
    assert after[0] - before[0] < 100


def test_annotations_of_a_wrong_type_are_refused_at_the_declaration() -> None:
    """A dictionary would otherwise only fail at the export."""
    wrong: Any = {"readOnlyHint": True}
    with pytest.raises(
        UserError, match=r"Tool 'look': option annotations= expects ToolAnnotations.*got {"
    ):

        @function_tool(annotations=wrong)
        def look() -> str:
            return ""

    @function_tool
    def see() -> str:
        return ""

    with pytest.raises(UserError, match="Tool 'see': option annotations= expects ToolAnnotations"):
        see.with_(annotations=wrong)


def test_a_context_has_only_the_documented_names() -> None:
    """The parts of a call that policies and sources use are not for functions of tools."""
    assert {name for name in dir(ToolContext()) if not name.startswith("_")} == {
        "agent",
        "arguments",
        "artifact",
        "ask",
        "attempt",
        "cancelled",
        "check",
        "context",
        "deadline",
        "emit",
        "idempotency_key",
        "is_run_context",
        "notify",
        "path",
        "progress",
        "run_id",
        "security_risk",
        "tool_call_id",
        "tool_name",
        "usage",
    }
