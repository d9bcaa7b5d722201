"""Fake tools: tools with their real schema and policies, and with prepared answers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from agents_tools.content.json_value import CHECKED_LEVELS, contain_iterator, exact_type
from agents_tools.content.outputs import as_tool_result
from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.schema.results import result_faults
from agents_tools.text.json_limits import parse_object
from agents_tools.tool.flatten import function_tools
from agents_tools.tool.source import OutputDescription, ToolDescription, ToolSource
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from agents_tools.events.base import Event
    from agents_tools.schema.arguments import Arguments
    from agents_tools.tool.call import Call
    from agents_tools.tool.records import CallOutcome, ToolOrigin

    Answer = Callable[[Call, dict[str, Any]], Awaitable[Any]]

__all__ = ["ArgumentsCheck", "FakeCall", "FakeTool", "fake_tool", "listed", "output_faults"]

_NOTHING: Any = object()


@dataclass(frozen=True, slots=True)
class FakeCall:
    """A call of a fake tool.

    Attributes:
        arguments: The validated arguments as JSON values.
        call_id: The id of the call.
        context: The application's object.
    """

    arguments: dict[str, Any]
    call_id: str
    context: object = field(default=None, compare=False)


class FakeTool(FunctionTool[..., Any]):
    """A tool with prepared answers; see `fake_tool`.

    Attributes:
        calls: The calls in order.
    """

    def __init__(self, tool: FunctionTool[..., Any], answer: Answer) -> None:
        self.__dict__.update(tool.build().__dict__)
        self.calls: list[FakeCall] = []
        self._drop_computed()
        self._source = _FakeSource(self._source, answer, self.calls)


class ArgumentsCheck(FakeTool):
    """A copy of a tool that only validates its arguments, including its policies.

    Args:
        tool: The tool.
    """

    def __init__(self, tool: FunctionTool[..., Any]) -> None:
        super().__init__(tool, _nothing)
        self._policies = self.stack.maps[::-1]
        self._drop_computed()

    def accepts(self, args_json: str) -> bool:
        """Return whether the tool accepts arguments."""
        return self.judged(args_json).status != "invalid_args"

    def judged(self, args_json: str) -> CallOutcome:
        """Return the outcome of validating arguments."""
        from agents_tools.concurrency.bridge import run_sync

        self.calls.clear()
        return run_sync(self.call, None, args_json)


async def _nothing(call: Call, arguments: dict[str, Any]) -> Any:
    del call, arguments


def fake_tool(
    tool: FunctionTool[..., Any],
    answer: object = _NOTHING,
    /,
    *,
    answers: Iterable[Any] = (),
    says: Sequence[Event] = (),
) -> FakeTool:
    """Create a fake of a tool, which models cannot distinguish from the tool itself.

    The fake has the schema, the validation, the policies and the lifecycle of the tool. Only its
    body is replaced.

    Values are validated against the output schema of the tool, if it has one and the extra `schema`
    is installed. The results of functions are validated in the call, which fails with the error.

    Args:
        tool: The tool.
        answer: The result of each call: a value, an exception to raise, or a sync or async
            function of the arguments (a dictionary of JSON values) that returns one of these.
            A `ToolResult` without `structured` stands for any result.
        answers: The results of the calls in order, instead of `answer`.
        says: Events that each call emits before its result.

    Raises:
        UserError: Neither or both of `answer` and `answers` are given, or a value in them does not
            match the output schema.
    """
    (tool,) = listed(tool)
    script = iter(answers) if not isinstance(answers, str) else None
    if script is None:
        raise UserTypeError("answers= expects a list, got a string. Pass answers=[text] for one.")
    first: Any = next(script, _NOTHING)
    if (answer is _NOTHING) == (first is _NOTHING):
        raise UserValueError(f"fake_tool({tool.name!r}, ...): expected an answer or answers=[...].")
    values: Iterable[Any] = [answer] if first is _NOTHING else answers
    ready = cast("Sequence[Any]", values) if isinstance(values, (list, tuple)) else ()
    for given in ready:
        if not _is_function(given) and not _is_error(given):
            _check_answer(tool, given)

    async def body(call: Call, arguments: dict[str, Any]) -> Any:
        for event in says:
            call.emit(event)
        given = answer if first is _NOTHING else _next(tool.name, queue)
        value = await _settled(given, arguments)
        _check_answer(tool, value)
        return value

    queue = _chain(first, script)
    return FakeTool(tool, body)


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _next(tool: str, queue: Iterator[Any]) -> Any:
    for given in queue:
        return given
    raise UserValueError(
        f"The fake of tool {tool!r} has no answer left. Add answers, or pass answer= for all calls."
    )


async def _settled(given: Any, arguments: dict[str, Any]) -> Any:
    while _is_function(given):
        given = given(arguments)
        if hasattr(given, "__await__"):
            given = await given
    if _is_error(given):
        raise given
    return given


def _is_function(given: object) -> bool:
    return callable(given) and not isinstance(given, type)


def _is_error(given: object) -> bool:
    return issubclass(given if isinstance(given, type) else type(given), BaseException)


def _check_answer(tool: FunctionTool[..., Any], value: object) -> None:
    if contain_iterator([exact_type(value)], [value], CHECKED_LEVELS):
        return  # the check would read it to its end
    result = as_tool_result(value)
    if result is not None and (result.is_error or result.structured is None):
        return
    try:
        faults = output_faults(tool, value)
    except UserError:
        return  # content without a JSON form, such as an image; the call reports other values
    if faults:
        raise UserTypeError(
            f"The answer of the fake of tool {tool.name!r} is not valid: expected a result that "
            f"matches the output schema of the tool, got {value!r:.80} ({'; '.join(faults)}). Pass "
            "a value that the tool can return, or ToolResult(content=...) for another text."
        )


def output_faults(tool: FunctionTool[..., Any], value: object) -> list[str]:
    """Return the differences between a value that a tool returned and its output schema.

    Args:
        tool: The tool.
        value: The value.

    Returns:
        The differences; the list is empty if there are none, or if the tool has no output schema.

    Raises:
        UserError: The value has no JSON form.
    """
    schema = tool.output_json_schema
    if schema is None:
        return []
    result = as_tool_result(value)
    text = tool.to_json(value if result is None else result.structured)
    return result_faults(tool.name, schema, json.loads(text))


def listed(tools: Any) -> list[FunctionTool[..., Any]]:
    """Return one tool or several as a list of function tools.

    Raises:
        UserError: A value is not a tool.
    """
    single = hasattr(tools, "as_function_tool") or not hasattr(tools, "__iter__")
    found: list[Any] = list(function_tools([tools] if single else tools))
    for tool in found:
        if not isinstance(tool, FunctionTool):
            raise UserTypeError(
                f"{tool!r:.80} is not a tool. Decorate functions with `@function_tool` first."
            )
    return found


class _FakeSource(ToolSource):
    """The source of a tool, with another body."""

    def __init__(self, source: ToolSource, answer: Answer, calls: list[FakeCall]) -> None:
        self.name = source.name
        self._real = source
        self._answer = answer
        self._calls = calls

    @property
    def origin(self) -> ToolOrigin:
        return self._real.origin

    def describe(self) -> ToolDescription:
        return self._real.describe()

    def describe_output(self) -> OutputDescription:
        return OutputDescription(self._real.describe_output().json_schema)

    def parse(self, args_json: str) -> Arguments:
        return self._real.parse(args_json)

    async def run(self, call: Call) -> Any:
        arguments = dict(parse_object(call.text) or {})
        self._calls.append(FakeCall(arguments, call.tool_call_id, call.app_context))
        return await self._answer(call, arguments)
