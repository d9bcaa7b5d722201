"""Recording of tool calls to a file, and their replay."""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import from_json

from agents_tools.content.json_value import to_json
from agents_tools.content.outputs import ToolResult, as_tool_result, block_from_dict, to_output
from agents_tools.errors import AgentsToolsError, ToolError, UserError, UserValueError
from agents_tools.events.registry import event_from_dict
from agents_tools.testing.fakes import FakeTool, listed
from agents_tools.text.output import release_json, release_text
from agents_tools.tool.policy import Policy

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from agents_tools.events.base import Event
    from agents_tools.tool.call import Call
    from agents_tools.tool.policy import Run
    from agents_tools.tool.tool import FunctionTool

__all__ = ["RecordedCall", "ToolRecorder"]

_FORMAT = "agents_tools.tool_calls"
_VERSION = 1
_NEAR = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One recorded call.

    Attributes:
        tool: The name of the tool.
        arguments: The arguments as JSON values.
        output: The output for the model: text, or content blocks as JSON.
        is_json: Whether the output is the JSON text of the value that the function returned.
        result: The members `structured` and `is_error` of a `ToolResult` or an observation; `None`
            for other values.
        error: The type and the message of the exception; `None` if there was none.
        events: The events of the call as JSON.
    """

    tool: str
    arguments: Any
    output: Any = None
    is_json: bool = False
    result: dict[str, Any] | None = None
    error: tuple[str, str] | None = None
    events: tuple[dict[str, Any], ...] = ()


class ToolRecorder:
    """Records the calls of tools with their results, and replays them later.

    ```python
    recorder = ToolRecorder()
    agent = Agent("clerk", tools=recorder.record(tools))
    ...
    recorder.save("calls.json")

    agent = Agent("clerk", tools=ToolRecorder.load("calls.json").replay(tools))
    ```

    Attributes:
        calls: The calls, in the order in which they ended.
    """

    def __init__(self, calls: Iterable[RecordedCall] = ()) -> None:
        self.calls: list[RecordedCall] = list(calls)

    def record(self, tools: object) -> list[FunctionTool[..., Any]]:
        """Return copies of tools whose calls are recorded.

        Secrets are masked in the recording, as in the output for models.

        Args:
            tools: A tool, or several.
        """
        return [tool.with_(policy=_Recording(self, tool.name)) for tool in listed(tools)]

    def add(
        self,
        tool: str,
        args_json: str,
        output: Any,
        error: tuple[str, str] | None,
        events: Iterable[Event],
        *,
        is_json: bool = False,
        result: dict[str, Any] | None = None,
    ) -> None:
        """Add the recording of a call.

        Args:
            tool: The name of the tool.
            args_json: The arguments as JSON text.
            output: The output for the model, as JSON.
            error: The type and the message of the exception.
            events: The events of the call.
            is_json: Whether the output is the JSON text of the value.
            result: The other members of a `ToolResult`; see `RecordedCall`.
        """
        self.calls.append(
            RecordedCall(
                tool=tool,
                arguments=_json_of(_stored(args_json)),
                output=output,
                is_json=is_json,
                result=result,
                error=error,
                events=tuple(
                    event.replace(origin=None, id=-1, seq=-1, timestamp=0.0).to_dict()
                    for event in events
                ),
            )
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calls to a JSON file, replacing its content.

        Args:
            path: The path of the file.
        """
        calls = [
            {
                "tool": call.tool,
                "arguments": call.arguments,
                "output": call.output,
                "is_json": call.is_json,
                "result": call.result,
                "error": call.error,
                "events": list(call.events),
            }
            for call in self.calls
        ]
        document = {"format": _FORMAT, "version": _VERSION, "calls": calls}
        text = json.dumps(document, indent=2, ensure_ascii=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ToolRecorder:
        """Read the calls from a file.

        Args:
            path: The path of the file.

        Raises:
            UserError: The file cannot be read, or was not written by `save`.
        """
        try:
            read: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}.") from error
        except (RecursionError, ValueError) as error:
            raise UserValueError(f"{path} is not valid JSON: {error}.") from error
        document = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
        if (document.get("format"), document.get("version")) != (_FORMAT, _VERSION):
            raise UserValueError(
                f"{path} was not written by ToolRecorder.save of this version. Record the calls "
                "again."
            )
        try:
            return cls([_recorded(call) for call in document["calls"]])
        except (IndexError, KeyError, TypeError) as error:
            raise UserValueError(
                f"{path} is damaged: it contains an invalid call ({error}). Record the calls again."
            ) from None

    def replay(self, tools: object) -> list[FakeTool]:
        """Return fake tools that replay the recorded results.

        A call returns the result of the recorded call with the same arguments. Several recorded
        calls with the same arguments are replayed in order, the last one repeatedly. A call
        without a recording raises an error that lists the recorded arguments.

        Args:
            tools: A tool, or several.
        """
        return [self._fake(tool) for tool in listed(tools)]

    def _fake(self, tool: FunctionTool[..., Any]) -> FakeTool:
        known: defaultdict[str, list[RecordedCall]] = defaultdict(list)
        for call in self.calls:
            if call.tool == tool.name:
                known[_key(call.arguments)].append(call)

        async def body(record: Call, arguments: dict[str, Any]) -> Any:
            key = _key(_json_of(_stored(json.dumps(arguments))))
            calls = known.get(key)
            if not calls:
                raise UserValueError(_never_made(tool.name, key, list(known)))
            call = calls.pop(0) if len(calls) > 1 else calls[0]
            for event in call.events:
                record.emit(event_from_dict(event))
            if call.error is not None:
                kind, message = call.error
                raise _recorded_error(kind, message)
            return _value_of(call)

        return FakeTool(tool, body)


class _Recording(Policy):
    name = "recorded"

    def __init__(self, recorder: ToolRecorder, tool: str) -> None:
        self._recorder = recorder
        self._tool = tool

    async def around(self, call: Call, call_next: Run) -> Any:
        events: list[Event] = []
        own = call.path

        def record_event(event: Event) -> None:
            if event.path == own:  # nested calls emit theirs again when replayed
                events.append(event)

        call.sinks = (*call.sinks, record_event)
        try:
            value = await call_next(call)
        except Exception as raised:  # a cancelled call has no result to replay
            error = (type(raised).__name__, _stored(_message_of(raised)))
            self._recorder.add(self._tool, call.text, None, error, events)
            raise
        self._recorder.add(self._tool, call.text, error=None, events=events, **_result_of(value))
        return value


def _recorded(call: dict[str, Any]) -> RecordedCall:
    error = None if call["error"] is None else (str(call["error"][0]), str(call["error"][1]))
    result: dict[str, Any] | None = call.get("result")
    return RecordedCall(
        tool=str(call["tool"]),
        arguments=call["arguments"],
        output=call["output"],
        is_json=call.get("is_json") is True and _is_value(call["output"]),
        result=result and {name: result[name] for name in ("structured", "is_error")},
        error=error,
        events=tuple(call["events"]),
    )


def _stored(text: str) -> str:
    return release_text(text, to="program", patterns=True)


def _json_of(text: str) -> Any:
    """Parse arguments; return text that is not valid JSON unchanged."""
    if not text.strip():
        return {}
    try:
        value = from_json(text)
    except ValueError:
        return text
    return {} if value is None else value


def _key(arguments: Any) -> str:
    return json.dumps(arguments, sort_keys=True)


def _message_of(error: Exception) -> str:
    """Return the message of an exception; that of a `KeyError` is its key without quotes."""
    is_key = type(error) is KeyError and len(error.args) == 1
    return str(error.args[0] if is_key else error)


def _result_of(value: Any) -> dict[str, Any]:
    """Return the fields of `RecordedCall` for a result."""
    output = to_output(value)
    if not isinstance(output, str):
        blocks = [block.to_dict() for block in output]
        stored: Any = [
            {**one, "text": _stored(one["text"])} if "text" in one else one for one in blocks
        ]
    else:
        stored = _stored(output)
    result = as_tool_result(value)
    if result is not None:
        structured = release_json(
            json.loads(to_json(result.structured)), to="program", patterns=True
        )
        return {
            "output": stored,
            "result": {"structured": structured, "is_error": result.is_error},
        }
    is_json = not isinstance(value, str) and isinstance(stored, str) and _is_value(stored)
    return {"output": stored, "is_json": is_json}


def _is_value(text: str) -> bool:
    """Return whether a value that is not a text can be read from the output of a call.

    A JSON string is not one: the output would lose its quotes.
    """
    try:
        return not text or not isinstance(json.loads(text), str)
    except ValueError:  # for example a table
        return False


def _value_of(call: RecordedCall) -> Any:
    if call.is_json:
        return json.loads(call.output or "null")
    output = call.output
    if isinstance(output, list):
        output = [block_from_dict(block) for block in cast("list[Mapping[str, Any]]", output)]
    return output if call.result is None else ToolResult(content=output, **call.result)


def _never_made(tool: str, key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=_NEAR, cutoff=0.0)
    recorded = "; ".join(f"{one:.200}" for one in near) or "none"
    return (
        f"Tool {tool!r} was never recorded with the arguments {key:.300}. "
        f"Recorded: {recorded}. Record this call, or use recorded arguments."
    )


def _recorded_error(kind: str, message: str) -> Exception:
    import builtins

    from agents_tools import errors

    for module, base in ((errors, AgentsToolsError), (builtins, Exception)):
        found = getattr(module, kind, None)
        if isinstance(found, type) and issubclass(found, base):
            with suppress(TypeError):  # of an exception that needs more than a message
                return found(message)
    return ToolError(f"{kind}: {message}")
