"""Values that enter and leave a program: arguments, results of calls, the result of the program."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence, Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.content.json_value import BYTES, exact_type, is_iterator, to_json
from agents_tools.content.outputs import as_tool_result, output_text
from agents_tools.errors import ToolError
from agents_tools.text.output import release_json_text, release_text

if TYPE_CHECKING:
    from agents_tools.tool.call import Call
    from agents_tools.tool.records import CallOutcome

__all__ = ["ProgramError", "TooLargeError", "json_value", "result_text", "result_value"]

_MAX_NODES: Final = 200_000
_MAX_CHARS: Final = 8_000_000
_MAX_DEPTH: Final = 60


class ProgramError(ToolError):
    """A program ended with an error; the message has what it printed and its traceback."""


class TooLargeError(ValueError):
    """A value of a program is too large, or is nested too deeply, to leave the sandbox."""


def json_value(value: Any) -> Any:
    """Return a value of the sandbox as a JSON value.

    The sandbox keeps one list that is used several times as one object, so that a small program can
    describe a value with billions of members. All members are counted before the value is written.

    A number that JSON does not have is `None`, or its name if it is the whole value.

    Args:
        value: The value, as the sandbox returns it: without Python objects of this process.

    Raises:
        TooLargeError: It has too many members or characters, or is nested too deeply.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return _SandboxValue().convert(value, _MAX_DEPTH)


class _SandboxValue:
    def __init__(self) -> None:
        self._nodes = _MAX_NODES
        self._chars = _MAX_CHARS

    def convert(self, value: Any, depth: int) -> Any:
        """Return a JSON value."""
        self._nodes -= 1
        if self._nodes < 0:
            raise TooLargeError(f"it has more than {_MAX_NODES:,} values")
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, str):
            return self._text(value)
        if not isinstance(value, (Mapping, Sequence, AbstractSet)):
            return self._other(value, depth)
        if isinstance(value, (bytes, bytearray)):
            return self._text(base64.b64encode(value).decode())
        if depth <= 0:
            raise TooLargeError(f"it is nested more than {_MAX_DEPTH} levels deep")
        if isinstance(value, Mapping):
            members = cast("Mapping[Any, Any]", value).items()
            return {self._key(key): self.convert(one, depth - 1) for key, one in members}
        return [self.convert(one, depth - 1) for one in cast("Sequence[Any]", value)]

    def _key(self, key: Any) -> str:
        if isinstance(key, str):
            return self._text(key)
        if key is None or isinstance(key, bool):
            return json.dumps(key)
        return self._text(str(key))

    def _other(self, value: Any, depth: int) -> Any:
        attributes = getattr(value, "attributes", None)  # an instance of a class of the program
        if isinstance(attributes, dict) and depth > 0:
            return self.convert(attributes, depth)
        iso = getattr(value, "isoformat", None)  # dates and times
        return self._text(str(iso() if callable(iso) else value))

    def _text(self, text: str) -> str:
        self._chars -= len(text)
        if self._chars < 0:
            raise TooLargeError(f"it has more than {_MAX_CHARS:,} characters")
        return text


def result_text(call: Call, outcome: CallOutcome) -> str:
    """Return the result of a call as text that `result_value` converts to the value again.

    A text that is not JSON represents itself; any other value is JSON. Registered secrets are
    masked here, because a program could disguise them before it returns them to the model. The
    policies that change the output for the model also apply to programs.

    Args:
        call: The call.
        outcome: Its outcome.
    """
    if outcome.status != "ok":
        return output_text(outcome.output)
    value: Any = outcome.value
    result = as_tool_result(value)
    if result is not None:
        value = result.content if result.structured is None else result.structured
    if isinstance(value, BYTES) and not call.tool.stack.outputs:
        value = base64.b64encode(value).decode()  # as in the arguments of calls
    if isinstance(value, str) and not call.tool.stack.outputs:
        return _quoted(release_text(value, to="program"))
    if isinstance(value, str) or not isinstance(outcome.output, str):
        return _quoted(output_text(outcome.output))
    if call.tool.stack.outputs or is_iterator(exact_type(value)):
        return outcome.output
    serializer = None if result is not None else call.tool.source.describe_output().serializer
    released = release_json_text(to_json(value, serializer))
    return json.dumps(released, ensure_ascii=False, separators=(",", ":"))


def result_value(text: str) -> Any:
    """Return the value for a text of `result_text`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _quoted(text: str) -> str:
    """Return a text, as JSON if it would otherwise be read as another value."""
    return text if result_value(text) is text else json.dumps(text, ensure_ascii=False)
