"""What a backend and its workers say to each other in the `_meta` of MCP messages.

A worker is any server of ours. What a call of a backend has beyond its name and arguments stands
in the `_meta` of the request; what the call says travels, several events at a time, in the `_meta`
of reports of progress, and how it ended in that of the result. Everybody else sees ordinary MCP.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from agents_tools.errors import UserValueError
from agents_tools.events.kinds import ToolProgressEvent
from agents_tools.execution import CallEnvelope
from agents_tools.execution.protocol import ended, is_result
from agents_tools.mcp._coerce import an_object, objects, text_or_none
from agents_tools.mcp._sanitize import clean_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools.execution import CallEvent

__all__ = [
    "CALL_KEY",
    "EVENTS_KEY",
    "CallOrder",
    "CallReport",
    "begun",
    "content_of",
    "ended",
    "events_in",
    "meta_of",
    "order_in",
    "ordinary",
    "outcome_in",
    "outcome_meta",
    "record_of",
    "result_in",
    "size_of",
]

CALL_KEY = "agents_tools/call"
"""Where in the `_meta` of a request stands what a backend says of its call."""
EVENTS_KEY = "agents_tools/events"
"""Where in the `_meta` of a report of progress the events of such a call stand."""
OUTCOME_KEY = "agents_tools/outcome"
"""Where in the `_meta` of a result stands how such a call ended."""
TRACE_KEYS = ("traceparent", "tracestate", "baggage")
"""What of a trace crosses: the keys that the protocol has for it."""

VERSION = 1
_LONGEST_ID = 256
_LONGEST_TEXT = 1 << 20
_DEEPEST = 64
_MOST_RESTARTS = 1_000
_SOONEST, _LATEST = 0.05, 3600.0
_KINDS = frozenset({"accepted", "started", "event", "heartbeat"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOrder:
    """A call of a backend, as its worker sees it.

    Attributes:
        envelope: The call; its deadline is on the clock of this machine.
        restart: How often it was sent before, to workers that were lost.
        heartbeat: After how many silent seconds the worker says that it lives.
    """

    envelope: CallEnvelope
    restart: int = 0
    heartbeat: float = 10.0


class CallReport(NamedTuple):
    """One event as it came: its kind, its time and what it says.

    Attributes:
        seq: Its place among the events of the call at the worker.
        kind: One of the kinds of `CallEvent`.
        time: When, on the clock of the worker.
        payload: What it says; nothing is hidden in the texts of an event.
        size: About how many characters that is.
    """

    seq: int
    kind: Any
    time: float
    payload: Mapping[str, Any] = MappingProxyType({})
    size: int = 0


def meta_of(
    envelope: CallEnvelope, *, restart: int, heartbeat: float, most: float | None = None
) -> dict[str, Any]:
    """Return the `_meta` of the request for a call.

    The deadline is told as the time that is left, since clocks of two machines differ.

    Args:
        envelope: The call.
        restart: How often it was sent before, to workers that were lost.
        heartbeat: After how many silent seconds the worker is to say that it lives.
        most: How many seconds the call may take, whatever its deadline: a worker behind a proxy
            may never hear that no one waits any more.
    """
    told: dict[str, Any] = {
        "v": VERSION,
        "call_id": envelope.call_id,
        "attempt": envelope.attempt,
        "heartbeat": heartbeat,
    }
    if restart:
        told["restart"] = restart
    left = None if envelope.deadline is None else max(0.0, envelope.deadline - time.time())
    if left is not None or most is not None:
        told["left"] = min(one for one in (left, most) if one is not None)
    for key in ("definition", "idempotency_key", "idempotent", "principal", "bare"):
        value = getattr(envelope, key)
        if value:
            told[key] = value
    if envelope.limits:
        told["limits"] = dict(envelope.limits)
    trace = {key: envelope.trace[key] for key in TRACE_KEYS if envelope.trace.get(key)}
    return {**trace, CALL_KEY: told}


def order_in(meta: Mapping[str, Any], tool: str, arguments: Mapping[str, Any]) -> CallOrder | None:
    """Read what a backend says of its call; `None` for a request of anybody else.

    Args:
        meta: The `_meta` of the request.
        tool: The name of the tool.
        arguments: Its arguments.

    Raises:
        UserValueError: It is of another version, or makes no sense.
    """
    if CALL_KEY not in meta:
        return None
    told = an_object(meta[CALL_KEY])
    if told.get("v") != VERSION:
        raise UserValueError(
            f"This worker reads version {VERSION} of a backend's calls, not "
            f"{told.get('v')!r:.40}. Give both sides the same release of agents-tools."
        )
    call_id, attempt = told.get("call_id"), told.get("attempt")
    if not isinstance(call_id, str) or not 0 < len(call_id) <= _LONGEST_ID:
        raise UserValueError(f"A call has an id of 1 to {_LONGEST_ID} characters.")
    if type(attempt) is not int or attempt < 1:
        raise UserValueError(f"The attempt of a call is a number from 1 on, not {attempt!r:.40}.")
    left, restart = _number(told.get("left")), told.get("restart", 0)
    beat = _number(told.get("heartbeat"))
    return CallOrder(
        envelope=CallEnvelope(
            call_id=call_id,
            attempt=attempt,
            tool=tool,
            definition=text_or_none(told.get("definition")) or "",
            arguments=json.dumps(dict(arguments)),
            deadline=None if left is None else time.time() + left,
            idempotency_key=text_or_none(told.get("idempotency_key")),
            idempotent=told.get("idempotent") is True,
            principal=text_or_none(told.get("principal")),
            trace={key: meta[key] for key in TRACE_KEYS if isinstance(meta.get(key), str)},
            limits=an_object(told.get("limits")),
            bare=told.get("bare") is True,
        ),
        restart=restart if type(restart) is int and 0 < restart < _MOST_RESTARTS else 0,
        heartbeat=10.0 if beat is None else min(max(beat, _SOONEST), _LATEST),
    )


def record_of(seq: int, event: CallEvent, payload: Mapping[str, Any]) -> list[Any]:
    """Return an event as it travels: short, since this is what the way of an event costs most.

    What the call says itself goes without what the caller knows: whose voice it is.

    Args:
        seq: Its place among what is sent.
        event: The event.
        payload: What it says.
    """
    if not payload:
        return [seq, event.kind, event.time]
    left_out = _USUAL if payload.get("path") != [event.call_id] else _USUAL | _VOICE
    said = {key: value for key, value in payload.items() if key not in left_out}
    for key, usual in (("id", -1), ("cause", None)):
        if payload.get(key) != usual:
            said[key] = payload[key]
    return [seq, event.kind, event.time, said]


_VOICE = frozenset({"path", "tool_name", "tool_call_id", "source"})
_USUAL = frozenset({"v", "id", "cause"})


def events_in(
    meta: object, envelope: CallEnvelope, key: str = EVENTS_KEY
) -> list[CallReport] | None:
    """Return the events that came together; `None` where the sender is no worker of ours.

    Args:
        meta: The `_meta` that they stand in.
        envelope: The call.
        key: Where in it.
    """
    found = an_object(meta).get(key)
    if not isinstance(found, list):
        return None
    came = (_told(one, envelope) for one in cast("list[Any]", found))
    return [told for told in came if told is not None]


def outcome_in(
    result: Mapping[str, Any], envelope: CallEnvelope
) -> tuple[list[CallReport], CallReport] | None:
    """Return the last events and the end of a call; `None` where the sender is no worker of ours.

    Args:
        result: The result as it came.
        envelope: The call.
    """
    told = an_object(result.get("_meta")).get(OUTCOME_KEY)
    if not isinstance(told, dict):
        return None
    outcome = an_object(cast("Any", told))
    payload = an_object(outcome.get("payload"))  # a result is data: nothing is taken out of it
    payload["error"] = clean(payload.get("error"))
    if "output" not in payload:
        payload["output"] = text_of(result)
    if not is_result(payload):
        return None
    seq, at = _place(outcome.get("seq")), _number(outcome.get("time"))
    last = CallReport(seq=seq, kind="result", time=at or time.time(), payload=payload)
    return events_in(outcome, envelope, "events") or [], last


def outcome_meta(seq: int, last: CallEvent, events: Sequence[Any]) -> dict[str, Any]:
    """Return the `_meta` of the result of a call: how it ended, and what was not told before.

    Args:
        seq: The place of the result.
        last: The result; its text stands in the content beside.
        events: The records that were not sent before.
    """
    rest = {key: value for key, value in last.payload.items() if not _is_content(key, value)}
    told: dict[str, Any] = {"seq": seq, "time": last.time, "payload": rest}
    if events:
        told["events"] = list(events)
    return {OUTCOME_KEY: told}


def content_of(payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the text of a result as content; blocks stay in the outcome, where all of them fit."""
    output = payload.get("output")
    return [{"type": "text", "text": output}] if output and isinstance(output, str) else []


def begun() -> list[CallReport]:
    """Return the first events of a call at a server that has no events."""
    now = time.time()
    return [
        CallReport(seq=0, kind="accepted", time=now),
        CallReport(seq=1, kind="started", time=now),
    ]


def ordinary(report: Mapping[str, Any], at: int) -> list[CallReport]:
    """Return the events for a report of progress of a server that is none of ours.

    Args:
        report: The report as it came.
        at: The place of the next event.
    """
    current, total = _number(report.get("progress")), _number(report.get("total"))
    if current is None:
        return []
    message = clean(text_or_none(report.get("message")))
    before = begun() if at == 0 else []
    said = ToolProgressEvent(current, total=total, message=message).to_dict()
    told = CallReport(seq=at + len(before), kind="event", time=time.time(), payload=said)
    return [*before, told]


def result_in(result: Mapping[str, Any]) -> CallReport:
    """Return the end of a call at a server that is none of ours.

    Args:
        result: The result as it came.
    """
    from agents_tools.mcp.client.adapter import result_of

    read = result_of(result)
    content: Any = read.content
    output: Any = content
    if isinstance(content, list):
        output = [block.to_dict() for block in cast("list[Any]", content)]
    elif content is None:
        output = json.dumps(read.structured, ensure_ascii=False)
    payload: dict[str, Any] = {"status": "ok", "output": output, "error": None, "metadata": None}
    if read.structured is not None:
        payload["structured"] = read.structured
    if read.is_error:
        text = output if isinstance(output, str) else text_of(result)
        payload = ended("tool_error", text or "The tool failed and did not say why.")
    return CallReport(seq=-1, kind="result", time=time.time(), payload=payload)


def _is_content(key: str, value: object) -> bool:
    return key == "output" and isinstance(value, str)


def text_of(result: Mapping[str, Any]) -> str:
    """Return the text in the content of a result."""
    texts = (text_or_none(one.get("text")) for one in objects(result.get("content")))
    return "\n".join(text for text in texts if text is not None)


def _told(one: Any, envelope: CallEnvelope) -> CallReport | None:
    if not isinstance(one, list):
        return None
    seq, kind, at, given = [*cast("list[Any]", one), None, None, None, None][:4]
    if text_or_none(kind) not in _KINDS or (at := _number(at)) is None:
        return None
    payload = an_object(clean(given))
    if kind == "event":
        own: dict[str, Any] = {}
        if "path" not in payload:
            own = {
                "path": [envelope.call_id],
                "tool_name": envelope.tool,
                "tool_call_id": envelope.call_id,
                "source": "environment",
            }
        payload = {"v": 1, "id": -1, "cause": None, **own, **payload}
    return CallReport(_place(seq), kind, at, payload, size_of(payload))


def _place(seq: object) -> int:
    return seq if type(seq) is int and 0 <= seq < 1 << 53 else -1


def clean(value: Any, _depth: int = 0) -> Any:
    """Take what is hidden out of the texts of a worker; what is nested too deeply becomes `None`.

    Args:
        value: JSON as it came.
    """
    if isinstance(value, str):
        if value.isascii() and value.isprintable():
            return value
        return clean_text(value, _LONGEST_TEXT)[0]
    if _depth > _DEEPEST:
        return None
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        return {clean(key): clean(one, _depth + 1) for key, one in given.items()}
    if isinstance(value, list):
        return [clean(one, _depth + 1) for one in cast("list[Any]", value)]
    return value


def size_of(payload: Mapping[str, Any]) -> int:
    """Return about how many characters the payload of an event has."""
    size = 0
    for value in payload.values():
        size += len(value) if value.__class__ is str else _size(value)
    return size


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        return sum(len(key) + _size(one) for key, one in given.items())
    if isinstance(value, list):
        return 1 + sum(_size(one) for one in cast("list[Any]", value))
    return 8


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:  # JSON knows whole numbers that are larger than any of these
        return None
    return number if math.isfinite(number) else None
