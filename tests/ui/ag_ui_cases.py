"""Streams that AG-UI clients reject or silently lose a part of, and valid ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["BROKEN", "GOOD", "Case"]

Frame = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A stream that breaks a rule.

    Attributes:
        name: What is wrong.
        frames: The stream: objects, or text as it is sent.
        at: The place at which it is found; `None` for the end.
        rule: A word of the rule.
        says: What the message says.
        quiet: Whether the newest client takes it without a word.
    """

    name: str
    frames: tuple[Frame | str, ...]
    at: int | None
    rule: str
    says: str
    quiet: bool = False


def _of(kind: str, **fields: Any) -> Frame:
    return {"type": kind, **fields}


BEGIN = _of("RUN_STARTED", threadId="t", runId="r")
END = _of("RUN_FINISHED", threadId="t", runId="r")


def _text(wire: str = "m", **fields: Any) -> Frame:
    return _of("TEXT_MESSAGE_START", messageId=wire, role="assistant", **fields)


def _text_end(wire: str = "m", **fields: Any) -> Frame:
    return _of("TEXT_MESSAGE_END", messageId=wire, **fields)


def _said(wire: str = "m", delta: Any = "a", **fields: Any) -> Frame:
    return _of("TEXT_MESSAGE_CONTENT", messageId=wire, delta=delta, **fields)


def _call(wire: str = "c", **fields: Any) -> Frame:
    return _of("TOOL_CALL_START", toolCallId=wire, toolCallName="add", **fields)


def _call_end(wire: str = "c", **fields: Any) -> Frame:
    return _of("TOOL_CALL_END", toolCallId=wire, **fields)


def _args(wire: str = "c", **fields: Any) -> Frame:
    return _of("TOOL_CALL_ARGS", toolCallId=wire, delta="{}", **fields)


def _result(wire: str = "c", content: Any = "3", message: str = "res", **fields: Any) -> Frame:
    return _of("TOOL_CALL_RESULT", messageId=message, toolCallId=wire, content=content, **fields)


def _sub(wire: str = "s", **fields: Any) -> Frame:
    return _of("SUBAGENT_STARTED", subagentRunId=wire, name="inner", **fields)


def _sub_end(wire: str = "s", **fields: Any) -> Frame:
    return _of("SUBAGENT_FINISHED", subagentRunId=wire, **fields)


def _activity(wire: str = "a", **fields: Any) -> Frame:
    return _of("ACTIVITY_SNAPSHOT", messageId=wire, activityType="X", content={"n": 1}, **fields)


def _delta(wire: str = "a", **fields: Any) -> Frame:
    patch = [{"op": "replace", "path": "/n", "value": 2}]
    return _of("ACTIVITY_DELTA", messageId=wire, activityType="X", patch=patch, **fields)


def _step(kind: str, **fields: Any) -> Frame:
    return _of(f"STEP_{kind}", stepName="think", **fields)


def _in_run(*frames: Frame) -> tuple[Frame, ...]:
    return (BEGIN, *frames, END)


def _sse(*frames: Frame, end: str = "\n\n") -> tuple[str, ...]:
    return tuple(f"data: {json.dumps(frame)}{end}" for frame in frames)


SHAPE = "fields of its type"
CONTINUE = "only what is open"
OPEN = "closed before the run ends"
REUSE = "used once"
OWNER = "no other one"
PLACE = "nothing after it"
FRAMES = "between line feeds"

GOOD: dict[str, tuple[Frame | str, ...]] = {
    "nothing between": (BEGIN, END),
    "an error alone": (_of("RUN_ERROR", message="no", code="e"),),
    "two runs": (BEGIN, END, BEGIN, END),
    "a run after an error": (BEGIN, _of("RUN_ERROR", message="no"), BEGIN, END),
    "a call": _in_run(_call(), _args(), _call_end(), _result()),
    "a call without arguments": _in_run(_call(), _call_end(), _result()),
    "a call without a result": _in_run(_call(), _call_end()),
    "interleaved calls": _in_run(
        _call("c1"), _call("c2"), _args("c1"), _args("c2"), _call_end("c2"), _call_end("c1")
    ),
    "a call in a message": _in_run(
        _text(), _said(), _text_end(), _call(parentMessageId="m"), _call_end()
    ),
    "an activity": _in_run(_activity(), _activity(), _delta()),
    "activity after its call": _in_run(_call(), _call_end(), _activity()),
    "state": _in_run(
        _of("STATE_SNAPSHOT", snapshot={"a": 1}),
        _of(
            "STATE_DELTA",
            delta=[{"op": "move", "from": "/a", "path": "/b"}, {"op": "remove", "path": "/b"}],
        ),
    ),
    "custom and raw": _in_run(
        _of("CUSTOM", name="x", value=None), _of("RAW", event={"a": 1}, source="s")
    ),
    "chunks": _in_run(
        _of("TEXT_MESSAGE_CHUNK", messageId="m", delta="a"),
        _of("TEXT_MESSAGE_CHUNK", delta="b"),
        _of("TOOL_CALL_CHUNK", toolCallId="c", toolCallName="add", delta="{}"),
    ),
    "steps of two owners": _in_run(
        _step("STARTED"),
        _sub(),
        _step("STARTED", subagentRunId="s"),
        _step("FINISHED", subagentRunId="s"),
        _sub_end(outcome={"type": "success"}),
        _step("FINISHED"),
    ),
    "agents inside of agents": _in_run(
        _call(),
        _call_end(),
        _sub(parentToolCallId="c"),
        _sub("s2", parentSubagentRunId="s"),
        _text(subagentRunId="s2"),
        _said(),
        _text_end(subagentRunId="s2"),
        _sub_end("s2"),
        _of("SUBAGENT_ERROR", subagentRunId="s", message="no"),
    ),
    "tags alone": _in_run(_text(subagentRunId="s"), _text_end(subagentRunId="s")),
    "reasoning": _in_run(
        _of("REASONING_START", messageId="m"),
        _of("REASONING_MESSAGE_START", messageId="m", role="reasoning"),
        _of("REASONING_MESSAGE_CONTENT", messageId="m", delta="hm"),
        _of("REASONING_MESSAGE_END", messageId="m"),
        _of("REASONING_ENCRYPTED_VALUE", subtype="message", entityId="m", encryptedValue="x"),
        _of("REASONING_END", messageId="m"),
    ),
    "a result of parts": _in_run(
        _call(),
        _call_end(),
        _result(
            content=[
                {"type": "text", "text": "a"},
                {"type": "image", "source": {"type": "url", "value": "http://x/y.png"}},
            ]
        ),
    ),
    "ends": (
        BEGIN,
        {
            **END,
            "result": {"a": 1},
            "usage": [{"inputTokens": 1}],
            "outcome": {
                "type": "interrupt",
                "interrupts": [{"id": "c", "reason": "tool_call", "responseSchema": {}}],
            },
        },
    ),
    "cancelled": (BEGIN, {**END, "outcome": {"type": "cancelled"}}),
    "messages": _in_run(
        _of(
            "MESSAGES_SNAPSHOT",
            messages=[
                {"id": "u", "role": "user", "content": "hi"},
                {
                    "id": "m",
                    "role": "assistant",
                    "toolCalls": [
                        {
                            "id": "c",
                            "type": "function",
                            "function": {"name": "f", "arguments": "{}"},
                        }
                    ],
                },
            ],
        ),
        _result(),
    ),
    "times and metadata": _in_run(
        _of("CUSTOM", name="x", value=1, timestamp=1_700_000_000_000, metadata={"a": None})
    ),
    "as it is sent": (": a comment\n\n", *_sse(BEGIN), "id: 1\nevent: x\n" + _sse(END)[0]),
    "as JSON": (json.dumps(BEGIN), json.dumps(END)),
}
"""Streams that a client of version 1.0 takes as a whole."""

BROKEN: tuple[Case, ...] = (
    # --- the client of version 1.0 rejects these
    Case("no start", (_text(), END), 0, "begins with RUN_STARTED", "has not begun"),
    Case("open call", _in_run(_call()), 2, OPEN, "tool call 'c'"),
    Case("open step", _in_run(_step("STARTED")), 2, OPEN, "step 'think'"),
    Case("open message", _in_run(_text()), 2, OPEN, "message 'm'"),
    Case("open sub-agent", _in_run(_sub()), 2, OPEN, "sub-agent 's'"),
    Case("open reasoning", _in_run(_of("REASONING_START", messageId="m")), 2, OPEN, "reasoning 'm'"),
    Case("arguments without a start", _in_run(_args()), 1, CONTINUE, "no tool call 'c' is open"),
    Case("end without a start", _in_run(_call_end()), 1, CONTINUE, "no tool call 'c' is open"),
    Case("text without a start", _in_run(_said()), 1, CONTINUE, "no message 'm' is open"),
    Case("started twice", _in_run(_call(), _call()), 2, CONTINUE, "open already"),
    Case("step twice", _in_run(_step("STARTED"), _step("STARTED")), 2, CONTINUE, "open already"),
    Case("step of another", _in_run(_sub(), _step("STARTED"), _step("FINISHED", subagentRunId="s")), 3, CONTINUE, "no step 'think' of this owner"),
    Case("sub-agent again", _in_run(_sub(), _sub_end(), _sub()), 3, REUSE, "started before"),
    Case("sub-agent that is not there", _in_run(_sub_end()), 1, CONTINUE, "no sub-agent 's' is running"),
    Case("parent that is not there", _in_run(_sub(parentSubagentRunId="x"), _sub_end()), 1, OWNER, "no sub-agent 'x'"),
    Case("tag of another", _in_run(_sub(), _text(), _said(subagentRunId="s")), 3, OWNER, "opened by the run itself"),
    Case("call in a message of another", _in_run(_sub(), _text(), _call(parentMessageId="m", subagentRunId="s")), 3, OWNER, "the message 'm'"),
    Case("after the end", (BEGIN, END, _text()), 2, PLACE, "the run is over"),
    Case("after an error", (BEGIN, _of("RUN_ERROR", message="no"), END), 2, PLACE, "the run is over"),
    Case("a second start", (BEGIN, BEGIN, END), 1, PLACE, "has not ended"),
    Case("result as an object", _in_run(_call(), _call_end(), _result(content={"a": 1})), 3, SHAPE, "content"),
    Case("custom without a value", _in_run(_of("CUSTOM", name="x")), 1, SHAPE, "CUSTOM.value: Field required"),
    Case("snake case", _in_run(_of("TEXT_MESSAGE_START", message_id="m", role="assistant")), 1, SHAPE, "messageId: Field required"),
    Case("null time", _in_run(_of("CUSTOM", name="x", value=1, timestamp=None)), 1, SHAPE, "timestamp: "),
    Case("null owner", _in_run(_of("CUSTOM", name="x", value=1, subagentRunId=None)), 1, SHAPE, "subagentRunId: Expected no null"),
    Case("time with a point", _in_run(_of("CUSTOM", name="x", value=1, timestamp=1.5)), 1, SHAPE, "timestamp: "),
    Case("broken JSON", (*_sse(BEGIN), 'data: {"type"\n\n'), 1, FRAMES, "not valid JSON"),
    Case("a frame that is a word", (*_sse(BEGIN, END), "data: [DONE]\n\n"), 2, FRAMES, "not valid JSON"),
    Case("carriage returns", _sse(BEGIN, END, end="\r\n\r\n"), 0, FRAMES, "line feed alone"),
    Case("delta that is no text", _in_run(_text(), _said(delta=1), _text_end()), 2, SHAPE, "delta: Input should be a valid string"),
    Case("usage with a point", (BEGIN, {**END, "usage": [{"inputTokens": 1.5}]}), 1, SHAPE, "inputTokens: Input should be a valid integer"),
    Case("metadata that is none", _in_run(_of("CUSTOM", name="x", value=1, metadata=[1])), 1, SHAPE, "metadata: Input should be an object"),
    Case("interrupt without interrupts", (BEGIN, {**END, "outcome": {"type": "interrupt", "interrupts": []}}), 1, SHAPE, "at least 1"),
    Case("patch without a pointer", _in_run(_of("STATE_DELTA", delta=[{"op": "add", "path": "a", "value": 1}])), 1, SHAPE, "path: String should match pattern"),
    # --- of these it silently loses a part
    Case("unknown type", _in_run(_of("TOOL_CALL_PROGRESS", toolCallId="c")), 1, "type that the client knows", "'TOOL_CALL_PROGRESS'"),
    Case("unknown field", _in_run(_call(), _call_end(), _result(error="no")), 3, SHAPE, "no field 'error'"),
    Case("unknown outcome", (BEGIN, {**END, "outcome": {"type": "lost"}}), 1, SHAPE, "'success', 'interrupt', 'cancelled'"),
    Case("delta before a snapshot", _in_run(_delta()), 1, "begins with a snapshot", "no activity 'a'", quiet=True),
    Case("null result", (BEGIN, {**END, "result": None}), 1, SHAPE, "result: Expected no null"),
    Case("snapshot that is ignored", _in_run(_activity(), _activity(replace=False)), 2, "begins with a snapshot", "is ignored", quiet=True),
    Case("no end", (BEGIN,), None, PLACE, "has no end", quiet=True),
    Case("nothing at all", (), None, "begins with RUN_STARTED", "the stream has no events", quiet=True),
    Case("call id again", _in_run(_call(), _call_end(), _call(), _call_end()), 3, REUSE, "there was a tool call 'c'", quiet=True),
    Case("message id again", _in_run(_text(), _text_end(), _text(), _text_end()), 3, REUSE, "there was a message 'm'", quiet=True),
    Case("result before the end", _in_run(_call(), _result(), _call_end()), 2, "follows the end of its call", "has not ended", quiet=True),
    Case("result without a call", _in_run(_result()), 1, "follows the end of its call", "no tool call 'c'", quiet=True),
    Case("result twice", _in_run(_call(), _call_end(), _result(), _result(message="res2")), 4, "comes once", "a result of 'c' before", quiet=True),
    Case("result id again", _in_run(_text(), _text_end(), _call(), _call_end(), _result(message="m")), 5, REUSE, "a message 'm' before", quiet=True),
    Case("result of another owner", _in_run(_sub(), _call(), _call_end(), _result(subagentRunId="s"), _sub_end()), 4, OWNER, "the run itself", quiet=True),
    Case("another run ends", (BEGIN, {**END, "runId": "other"}), 1, PLACE, "runId of the run is 'r'", quiet=True),
    Case("tag that nobody has", _in_run(_sub(), _sub_end(), _text(subagentRunId="x"), _text_end()), 3, OWNER, "no sub-agent 'x'", quiet=True),
    Case("sub-agent ends with an open message", _in_run(_sub(), _text(subagentRunId="s"), _sub_end(), _text_end()), 3, OPEN, "message 'm'", quiet=True),
    Case("first chunk without an id", _in_run(_of("TEXT_MESSAGE_CHUNK", delta="a")), 1, CONTINUE, "messageId"),
    Case("activity and message of one id", _in_run(_activity("m"), _text(), _text_end()), 2, REUSE, "an activity 'm'"),
    Case("no object", ("data: [1]\n\n",), 0, FRAMES, "a JSON object"),
)  # fmt: skip
"""Streams that break a rule."""
