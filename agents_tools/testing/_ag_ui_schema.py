"""The fields of each type of AG-UI event, from the schema of the protocol."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, cast

__all__ = ["SHAPES"]

_Shape = Callable[[object], str | None]
"""Returns a description of the expected value, or `None` if the value is valid."""


def _is(kind: type | tuple[type, ...], name: str) -> _Shape:
    return lambda value: None if isinstance(value, kind) else name


def _integer(value: object) -> str | None:
    good = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53
    return None if good else "a whole number"


def _one_of(*choices: str) -> _Shape:
    return lambda value: None if value in choices else f"one of {', '.join(choices)}"


def _not_null(value: object) -> str | None:
    return "a value other than null" if value is None else None


def _anything(_: object) -> str | None:
    return None


def _list_of(shape: _Shape, *, at_least: int = 0) -> _Shape:
    def check(value: object) -> str | None:
        if not isinstance(value, list) or len(cast("list[object]", value)) < at_least:
            return "a list" if at_least == 0 else f"a list of at least {at_least}"
        for at, item in enumerate(cast("list[object]", value)):
            wrong = shape(item)
            if wrong is not None:
                return f"{wrong} at [{at}]"
        return None

    return check


def _record(**fields: _Shape) -> _Shape:
    """Return the shape of an object; a name that ends with `_` marks an optional field."""
    shapes = {name.rstrip("_"): shape for name, shape in fields.items()}
    required = [name for name in fields if not name.endswith("_")]

    def check(value: object) -> str | None:
        if not isinstance(value, Mapping):
            return "an object"
        given = cast("Mapping[str, object]", value)
        missing = [name for name in required if name not in given]
        if missing:
            return f"an object with {missing[0]}"
        for name, item in given.items():
            shape = shapes.get(name)
            wrong = f"no field {name!r}" if shape is None else shape(item)
            if wrong is not None:
                return wrong if shape is None else f"{wrong} in {name}"
        return None

    return check


def _by(key: str, shapes: Mapping[str, _Shape]) -> _Shape:
    def check(value: object) -> str | None:
        given = cast("Mapping[str, object]", value if isinstance(value, Mapping) else {})
        shape = shapes.get(str(given.get(key)))
        return shape(given) if shape else f"an object whose {key} is one of {', '.join(shapes)}"

    return check


def _either(first: _Shape, second: _Shape) -> _Shape:
    return lambda value: first(value) and second(value)


_TEXT = _is(str, "a string")
_FLAG = _is(bool, "true or false")
_OBJECT = _is(Mapping, "an object")
_POINTER = re.compile(r"(/([^/~]|~[01])*)*")


def _pointer(value: object) -> str | None:
    good = isinstance(value, str) and _POINTER.fullmatch(value)
    return None if good else "a JSON pointer"


_PATCH = _list_of(
    _by(
        "op",
        {
            **dict.fromkeys(
                ("add", "replace", "test"),
                _record(op=_TEXT, path=_pointer, value=_anything, from_=_anything),
            ),
            "remove": _record(op=_TEXT, path=_pointer, value_=_anything, from_=_anything),
            **dict.fromkeys(
                ("move", "copy"),
                _record(**{"op": _TEXT, "path": _pointer, "from": _pointer, "value_": _anything}),
            ),
        },
    )
)
_SOURCE = _by(
    "type",
    {
        "data": _record(type=_TEXT, value=_TEXT, mimeType=_TEXT),
        "url": _record(type=_TEXT, value=_TEXT, mimeType_=_TEXT),
        "file": _record(type=_TEXT, value=_TEXT, provider_=_TEXT, mimeType_=_TEXT),
    },
)
_MEDIA = _record(type=_TEXT, id_=_TEXT, source=_SOURCE, metadata_=_not_null)
_PARTS = _list_of(
    _by(
        "type",
        {
            "text": _record(type=_TEXT, id_=_TEXT, text=_TEXT, metadata_=_not_null),
            **dict.fromkeys(("image", "audio", "video", "document"), _MEDIA),
        },
    )
)
_CONTENT = _either(_TEXT, _PARTS)
_CALL = _record(
    id=_TEXT,
    type=_one_of("function"),
    function=_record(name=_TEXT, arguments=_TEXT),
    encryptedValue_=_TEXT,
    metadata_=_OBJECT,
)
_SAID: dict[str, _Shape] = {
    "subagentRunId_": _TEXT,
    "id": _TEXT,
    "role": _TEXT,
    "encryptedValue_": _TEXT,
    "metadata_": _OBJECT,
}
_INSTRUCTION = _record(**_SAID, name_=_TEXT, content=_TEXT)
_MESSAGE = _by(
    "role",
    {
        "developer": _INSTRUCTION,
        "system": _INSTRUCTION,
        "assistant": _record(**_SAID, name_=_TEXT, content_=_TEXT, toolCalls_=_list_of(_CALL)),
        "user": _record(**_SAID, name_=_TEXT, content=_CONTENT),
        "tool": _record(**_SAID, content=_CONTENT, toolCallId=_TEXT, error_=_TEXT),
        "activity": _record(**_SAID, activityType=_TEXT, content=_OBJECT),
        "reasoning": _record(**_SAID, content=_TEXT),
    },
)
_INTERRUPT = _record(
    subagentRunId_=_TEXT,
    id=_TEXT,
    reason=_TEXT,
    message_=_TEXT,
    toolCallId_=_TEXT,
    responseSchema_=_OBJECT,
    expiresAt_=_TEXT,
    metadata_=_OBJECT,
)
_OUTCOME = _by(
    "type",
    {
        "success": _record(type=_TEXT, pendingToolCallIds_=_list_of(_TEXT)),
        "interrupt": _record(type=_TEXT, interrupts=_list_of(_INTERRUPT, at_least=1)),
        "cancelled": _record(type=_TEXT),
    },
)
_SUB_OUTCOME = _by(
    "type",
    {
        "success": _record(type=_TEXT),
        "suspended": _record(type=_TEXT, interruptIds_=_list_of(_TEXT)),
    },
)
_USAGE = _list_of(
    _record(
        provider_=_TEXT,
        model_=_TEXT,
        inputTokens_=_integer,
        outputTokens_=_integer,
        totalTokens_=_integer,
        reasoningTokens_=_integer,
        cachedInputTokens_=_integer,
        cacheWriteInputTokens_=_integer,
    )
)
_BASE: dict[str, _Shape] = {
    "type": _TEXT,
    "timestamp_": _integer,
    "rawEvent_": _not_null,
    "metadata_": _OBJECT,
}
_ROLE = _one_of("developer", "system", "assistant", "user")


def _owned(**fields: _Shape) -> _Shape:
    return _record(**_BASE, subagentRunId_=_TEXT, **fields)


SHAPES: Final[Mapping[str, _Shape]] = {
    "RUN_STARTED": _record(
        **_BASE,
        threadId=_TEXT,
        runId=_TEXT,
        protocolVersion_=_TEXT,
        parentRunId_=_TEXT,
        input_=_OBJECT,
    ),
    "RUN_FINISHED": _record(
        **_BASE, threadId=_TEXT, runId=_TEXT, result_=_not_null, outcome_=_OUTCOME, usage_=_USAGE
    ),
    "RUN_ERROR": _record(**_BASE, message=_TEXT, code_=_TEXT, usage_=_USAGE),
    "STEP_STARTED": _owned(stepName=_TEXT),
    "STEP_FINISHED": _owned(stepName=_TEXT),
    "TEXT_MESSAGE_START": _owned(messageId=_TEXT, role_=_ROLE, name_=_TEXT),
    "TEXT_MESSAGE_CONTENT": _owned(messageId=_TEXT, delta=_TEXT),
    "TEXT_MESSAGE_END": _owned(messageId=_TEXT),
    "TEXT_MESSAGE_CHUNK": _owned(messageId_=_TEXT, role_=_ROLE, delta_=_TEXT, name_=_TEXT),
    "TOOL_CALL_START": _owned(toolCallId=_TEXT, toolCallName=_TEXT, parentMessageId_=_TEXT),
    "TOOL_CALL_ARGS": _owned(toolCallId=_TEXT, delta=_TEXT),
    "TOOL_CALL_END": _owned(toolCallId=_TEXT),
    "TOOL_CALL_CHUNK": _owned(
        toolCallId_=_TEXT, toolCallName_=_TEXT, parentMessageId_=_TEXT, delta_=_TEXT
    ),
    "TOOL_CALL_RESULT": _owned(
        messageId=_TEXT, toolCallId=_TEXT, content=_CONTENT, role_=_one_of("tool")
    ),
    "STATE_SNAPSHOT": _owned(snapshot=_anything),
    "STATE_DELTA": _owned(delta=_PATCH),
    "MESSAGES_SNAPSHOT": _record(**_BASE, messages=_list_of(_MESSAGE)),
    "ACTIVITY_SNAPSHOT": _owned(
        messageId=_TEXT, activityType=_TEXT, content=_OBJECT, replace_=_FLAG
    ),
    "ACTIVITY_DELTA": _owned(messageId=_TEXT, activityType=_TEXT, patch=_PATCH),
    "RAW": _owned(event=_anything, source_=_TEXT),
    "CUSTOM": _owned(name=_TEXT, value=_anything),
    "REASONING_START": _owned(messageId=_TEXT),
    "REASONING_END": _owned(messageId=_TEXT),
    "REASONING_MESSAGE_START": _owned(messageId=_TEXT, role=_one_of("reasoning")),
    "REASONING_MESSAGE_CONTENT": _owned(messageId=_TEXT, delta=_TEXT),
    "REASONING_MESSAGE_END": _owned(messageId=_TEXT),
    "REASONING_MESSAGE_CHUNK": _owned(messageId_=_TEXT, delta_=_TEXT),
    "REASONING_ENCRYPTED_VALUE": _owned(
        subtype=_one_of("tool-call", "message"), entityId=_TEXT, encryptedValue=_TEXT
    ),
    "SUBAGENT_STARTED": _record(
        **_BASE,
        subagentRunId=_TEXT,
        name=_TEXT,
        description_=_TEXT,
        parentSubagentRunId_=_TEXT,
        parentToolCallId_=_TEXT,
        parentMessageId_=_TEXT,
    ),
    "SUBAGENT_FINISHED": _record(
        **_BASE, subagentRunId=_TEXT, result_=_not_null, outcome_=_SUB_OUTCOME
    ),
    "SUBAGENT_ERROR": _record(**_BASE, subagentRunId=_TEXT, message=_TEXT, code_=_TEXT),
}
"""The shape of an event by its type."""
