"""A check of the rules for a UI message stream of the Vercel AI SDK, without Node.

It rejects everything that `useChat` of the version rejects, and streams that `useChat` accepts but
shows wrong: an output after the final one, or a part that never ends.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["VercelStreamError", "assert_vercel", "check_vercel"]


class VercelStreamError(AssertionError):
    """A UI message stream violates a rule.

    Attributes:
        rule: The description of the rule.
        index: The index of the chunk that violates it; `None` if a chunk is missing.
        chunk: The chunk, or its text.
    """

    def __init__(self, rule: str, why: str, index: int | None, chunk: object) -> None:
        where = "At the end" if index is None else f"At chunk {index}, {chunk!r:.300}"
        super().__init__(f"Broken law: {rule}. {where}: {why}.")
        self.rule: Final = rule
        self.index: Final = index
        self.chunk: Final = chunk


def check_vercel(
    chunks: Iterable[Mapping[str, Any] | str],
    version: int = 7,
    *,
    before: Iterable[Mapping[str, Any] | str] = (),
) -> None:
    """Check that the chunks of one response follow the rules of the protocol.

    - each chunk is known to the version, has its required fields, no unknown fields and no null
    - the response begins with `start` and ends with `finish`; an `error` can follow, and text ends
      with `[DONE]`
    - a part begins before it continues, ends before the message does, and its id is not used twice
    - a call has its input before its output and one final output; its chunks are all dynamic, or
      none is
    - calls that wait for approval can stay open, and so can the enclosing calls

    Args:
        chunks: The chunks as JSON objects, or the text of the stream in pieces of whole frames.
        version: The major version of the npm package `ai`: 5, 6 or 7.
        before: The chunks of an earlier response that this one continues, as after an approval.

    Raises:
        VercelStreamError: A rule is violated; the message names the rule, the chunk and the reason.
    """
    if version not in _FINISH:
        raise ValueError(f"check_vercel(version=): expected 5, 6 or 7, got {version!r}.")
    message = _StreamedMessage(version)
    if before:
        for index, chunk in enumerate(_read(before)):
            message.take(index, chunk)
        message.start_response()
    for index, chunk in enumerate(_read(chunks)):
        message.take(index, chunk)
    message.end()


assert_vercel = check_vercel
"""An alias of `check_vercel`."""


# --- from text to chunks


def _read(pieces: Iterable[Mapping[str, Any] | str]) -> Iterator[Mapping[str, Any]]:
    """Yield the chunks, and check their frames."""
    index, is_text, is_done = 0, False, False
    for piece in pieces:
        if not isinstance(piece, str):
            yield piece
            index += 1
            continue
        is_text = True
        for frame in _frames(piece, index):
            if is_done:
                raise VercelStreamError("[DONE] is the last frame", "more follows", index, frame)
            if frame == "[DONE]":
                is_done = True
                continue
            yield _parsed(frame, index)
            index += 1
    if is_text and not is_done:
        raise VercelStreamError("[DONE] is the last frame", "it is missing", None, None)


def _frames(text: str, index: int) -> Iterator[str]:
    """Yield the data of the frames in a text."""
    if "\r" in text:
        raise VercelStreamError("lines end with LF", "there is a CR", index, text)
    if not text.endswith("\n\n"):
        raise VercelStreamError("a frame ends with an empty line", "it does not", index, text)
    for frame in text.removesuffix("\n\n").split("\n\n"):
        data = [line for line in frame.split("\n") if line.startswith("data:")]
        if len(data) > 1:
            raise VercelStreamError("a frame has one line of data", "it has more", index, frame)
        if data:
            yield data[0].removeprefix("data:").removeprefix(" ")


def _parsed(frame: str, index: int) -> Mapping[str, Any]:
    try:
        chunk = json.loads(frame, parse_constant=_no_constant)
    except ValueError as error:
        raise VercelStreamError("a frame is JSON", str(error), index, frame) from None
    if not isinstance(chunk, dict):
        raise VercelStreamError("a chunk is an object", "it is not", index, frame)
    return cast("dict[str, Any]", chunk)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


# --- the fields of each chunk


def _text(value: object) -> str | None:
    return None if isinstance(value, str) else "a string"


def _flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "true or false"


def _any(_value: object) -> str | None:
    return None


def _object(value: object) -> str | None:
    return None if isinstance(value, dict) else "an object"


def _metadata(value: object) -> str | None:
    if isinstance(value, dict):
        inner = cast("dict[str, object]", value).values()
        if all(isinstance(one, dict) for one in inner):
            return None
    return "an object of objects, one for each provider"


def _encoding(value: object) -> str | None:
    return None if value in ("json", "text") else "'json' or 'text'"


def _list(value: object) -> str | None:
    return None if isinstance(value, list) else "a list"


@dataclass(frozen=True, slots=True)
class _PartShape:
    required: Mapping[str, Callable[[object], str | None]] = field(default_factory=dict[str, Any])
    optional: Mapping[str, Callable[[object], str | None]] = field(default_factory=dict[str, Any])
    since: int = 5


_WITH_META: Final = {"providerMetadata": _metadata}
_BY_TOOL: Final = {"providerExecuted": _flag, "dynamic": _flag}
_SINCE_6: Final = {"providerMetadata": _metadata, "toolMetadata": _object, "title": _text}
_CALL: Final = {"toolCallId": _text, "toolName": _text}

_SHAPES: Final[Mapping[str, _PartShape]] = {
    "start": _PartShape({}, {"messageId": _text, "messageMetadata": _any}),
    "finish": _PartShape({}, {"messageMetadata": _any, "finishReason": _any}),
    "abort": _PartShape({}, {"reason": _text}),
    "error": _PartShape({"errorText": _text}),
    "message-metadata": _PartShape({"messageMetadata": _any}),
    "start-step": _PartShape(),
    "finish-step": _PartShape(),
    "reset-step": _PartShape(since=7),
    "text-start": _PartShape({"id": _text}, _WITH_META),
    "text-delta": _PartShape({"id": _text, "delta": _text}, _WITH_META),
    "text-end": _PartShape({"id": _text}, {**_WITH_META, "citations": _list}),
    "reasoning-start": _PartShape({"id": _text}, _WITH_META),
    "reasoning-delta": _PartShape({"id": _text, "delta": _text}, _WITH_META),
    "reasoning-end": _PartShape({"id": _text}, _WITH_META),
    "tool-input-start": _PartShape(_CALL, {**_BY_TOOL, **_SINCE_6, "inputEncoding": _encoding}),
    "tool-input-delta": _PartShape({"toolCallId": _text, "inputTextDelta": _text}),
    "tool-input-available": _PartShape({**_CALL, "input": _any}, {**_BY_TOOL, **_SINCE_6}),
    "tool-input-error": _PartShape(
        {**_CALL, "input": _any, "errorText": _text}, {**_BY_TOOL, **_SINCE_6}
    ),
    "tool-output-available": _PartShape(
        {"toolCallId": _text, "output": _any}, {**_BY_TOOL, **_SINCE_6, "preliminary": _flag}
    ),
    "tool-output-error": _PartShape(
        {"toolCallId": _text, "errorText": _text}, {**_BY_TOOL, **_SINCE_6}
    ),
    "tool-output-denied": _PartShape({"toolCallId": _text}, since=6),
    "tool-approval-request": _PartShape(
        {"approvalId": _text, "toolCallId": _text},
        {
            "signature": _text,
            "reason": _text,
            "isAutomatic": _flag,
            "approvalDescriptor": _any,
            "inputSchemaInput": _any,
        },
        since=6,
    ),
    "tool-approval-response": _PartShape(
        {"approvalId": _text, "approved": _flag},
        {**_WITH_META, "reason": _text, "providerExecuted": _flag},
        since=7,
    ),
    "source-url": _PartShape({"sourceId": _text, "url": _text}, {**_WITH_META, "title": _text}),
    "source-document": _PartShape(
        {"sourceId": _text, "mediaType": _text, "title": _text}, {**_WITH_META, "filename": _text}
    ),
    "file": _PartShape({"url": _text, "mediaType": _text}, _WITH_META),
    "reasoning-file": _PartShape({"url": _text, "mediaType": _text}, _WITH_META, since=7),
    "custom": _PartShape({"kind": _text}, _WITH_META, since=7),
    "steering-message": _PartShape({"id": _text, "parts": _list}, since=7),
}
_DATA: Final = _PartShape({"data": _any}, {"id": _text, "transient": _flag})
_FINISH: Final = {
    5: {"stop", "length", "content-filter", "tool-calls", "error", "other", "unknown"},
    6: {"stop", "length", "content-filter", "tool-calls", "error", "other"},
    7: {"stop", "length", "content-filter", "tool-calls", "error", "interrupted", "other"},
}


# --- the order of the chunks


@dataclass(slots=True)
class _PartCall:
    name: str
    dynamic: bool
    state: str  # "writing", "input", "final"
    step: int
    approval: str | None = None
    waits: bool = False


class _StreamedMessage:
    """The state of a message in the client, after some of its chunks."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._index: int | None = 0
        self._chunk: Mapping[str, Any] | None = None
        self._started = False
        self._message_id: str | None = None
        self._over: str | None = None
        self._step = 0
        self._in_step = False
        self._open: dict[tuple[str, str], int] = {}
        self._used: set[tuple[str, str]] = set()
        self._calls: dict[str, _PartCall] = {}
        self._questions: dict[str, str] = {}
        self._asked: set[str] = set()  # in this response; edited arguments can be asked about again

    def take(self, index: int, chunk: Mapping[str, Any]) -> None:
        """Check and apply the next chunk."""
        self._index, self._chunk = index, chunk
        kind = self._check_shape(chunk)
        self._check_place(kind)
        self._check_dynamic(kind, chunk)
        name = kind.replace("-", "_")
        if kind.startswith("data-"):
            self._data(chunk)
        elif kind.startswith(("text-", "reasoning-")) and kind != "reasoning-file":
            form, _, what = kind.partition("-")
            self._part(form, what, chunk)
        elif (handle := getattr(self, f"_{name}", None)) is not None:
            handle(chunk)

    def start_response(self) -> None:
        """Start another response that continues the message."""
        self._asked.clear()
        if self._over == "error":
            self._fail("nothing follows an error", "the client reads nothing more")
        self._started = False
        self._over = None

    def end(self) -> None:
        """Check the rules for the end of the message."""
        self._index = self._chunk = None
        if not self._started:
            self._fail("the first chunk is `start`", "there is none")
        if self._over is None or self._over == "abort":
            self._fail("the message ends with `finish`", "it is missing")
        for kind, part in self._open:
            self._fail("a part ends before the message does", f"{kind} {part!r} is open")
        if self._in_step:
            self._fail("a step ends before the message does", "there is an open one")
        if self._waits():
            return
        for call_id, call in self._calls.items():
            if call.state != "final":
                self._fail(
                    "a call has an output", f"{call_id!r} has none and waits for no approval"
                )

    # --- fields

    def _check_shape(self, chunk: Mapping[str, Any]) -> str:
        kind: object = chunk.get("type")
        if not isinstance(kind, str):
            self._fail("a chunk has a type", "it has none")
        shape = _DATA if kind.startswith("data-") else _SHAPES.get(kind)
        if shape is None:
            self._fail("the type of a chunk is known", f"there is no {kind!r}")
        if shape.since > self._version:
            self._fail(
                "the version knows the type of a chunk",
                f"version {self._version} has no {kind!r}, only {shape.since} and later have",
            )
        for name in chunk:
            if name != "type" and name not in shape.required and name not in shape.optional:
                self._fail(
                    "a chunk has no unknown fields",
                    f"{kind} has no {name!r}, and the first releases of all versions refuse it",
                )
        for name, check in shape.required.items():
            if name not in chunk:
                self._fail("a chunk has its fields", f"{kind} has no {name!r}")
            self._check_field(kind, name, check, chunk[name])
        for name, check in shape.optional.items():
            if name not in chunk:
                continue
            if chunk[name] is None:
                self._fail("no null in an optional field", f"{kind}.{name} is null")
            self._check_field(kind, name, check, chunk[name])
        return kind

    def _check_field(
        self, kind: str, name: str, check: Callable[[object], str | None], value: object
    ) -> None:
        if (expected := check(value)) is not None:
            self._fail("a field has its type", f"{kind}.{name} must be {expected}")

    def _check_place(self, kind: str) -> None:
        if not self._started and kind != "start":
            self._fail("the first chunk is `start`", f"it is {kind!r}")
        if self._over == "error":
            self._fail("nothing follows an error", "the client reads nothing more")
        if self._over == "abort" and kind != "finish":
            self._fail("only `finish` follows `abort`", f"it is {kind!r}")
        if self._over == "finish" and kind != "error":
            self._fail("only `error` follows `finish`", f"it is {kind!r}")

    def _check_dynamic(self, kind: str, chunk: Mapping[str, Any]) -> None:
        """Check that a call has no mixed chunks, for which version 5 shows two parts."""
        if "dynamic" not in _SHAPES.get(kind, _DATA).optional:
            return
        call = self._calls.get(chunk["toolCallId"])
        if call is not None and call.dynamic != bool(chunk.get("dynamic")):
            self._fail("all chunks of a call are dynamic, or none is", "this one differs")

    # --- the message

    def _start(self, chunk: Mapping[str, Any]) -> None:
        if self._started:
            self._fail("a response has one `start`", "this is another")
        self._started = True
        message_id: str | None = chunk.get("messageId")
        if self._message_id not in (None, message_id):
            self._fail(
                "a message keeps its id", f"it was {self._message_id!r} and is {message_id!r}"
            )
        self._message_id = message_id

    def _finish(self, chunk: Mapping[str, Any]) -> None:
        reason = chunk.get("finishReason")
        if reason is not None and reason not in _FINISH[self._version]:
            known = ", ".join(sorted(_FINISH[self._version]))
            self._fail("the finishReason is known", f"{reason!r} is not one of {known}")
        self._over = "finish"

    def _abort(self, _chunk: Mapping[str, Any]) -> None:
        self._over = "abort"

    def _error(self, _chunk: Mapping[str, Any]) -> None:
        self._over = "error"

    def _start_step(self, _chunk: Mapping[str, Any]) -> None:
        if self._in_step:
            self._fail("a step ends before the next begins", "there is an open one")
        self._in_step = True
        self._step += 1

    def _finish_step(self, _chunk: Mapping[str, Any]) -> None:
        if not self._in_step:
            self._fail("a step begins before it ends", "there is no open one")
        for kind, part in self._open:
            self._fail("a part ends before its step does", f"{kind} {part!r} is open")
        self._in_step = False

    def _reset_step(self, _chunk: Mapping[str, Any]) -> None:
        if not self._in_step:
            self._fail("a step begins before it is reset", "there is no open one")
        self._open.clear()
        gone = [call_id for call_id, call in self._calls.items() if call.step == self._step]
        for call_id in gone:
            if self._calls.pop(call_id).state == "final":
                self._fail("no step with an output is reset", f"call {call_id!r} was made")

    def _part(self, kind: str, what: str, chunk: Mapping[str, Any]) -> None:
        """Apply a chunk of text or reasoning."""
        part = (kind, chunk["id"])
        if what == "start":
            if part in self._used:
                self._fail("the id of a part is used once", f"{part[1]!r} was used before")
            self._used.add(part)
            self._open[part] = self._step
        elif part not in self._open:
            self._fail(f"a {kind} begins before it continues", f"{part[1]!r} did not begin")
        elif what == "end":
            del self._open[part]

    def _data(self, chunk: Mapping[str, Any]) -> None:
        """Apply a data part. In version 5, approval requests are data parts."""
        data = chunk["data"]
        if chunk["type"] == "data-agents-tool-approval" and isinstance(data, dict):
            approval = cast("dict[str, Any]", data)
            if approval.get("state") == "requested":
                self._questions[str(approval.get("approvalId"))] = str(approval.get("callId"))
            else:
                self._questions.pop(str(approval.get("approvalId")), None)

    # --- calls

    def _tool_input_start(self, chunk: Mapping[str, Any]) -> None:
        call_id = chunk["toolCallId"]
        if call_id in self._calls:
            self._fail("the id of a call is used once", f"{call_id!r} was used before")
        self._calls[call_id] = self._new_call(chunk, "writing")

    def _tool_input_delta(self, chunk: Mapping[str, Any]) -> None:
        call = self._calls.get(chunk["toolCallId"])
        if call is None or call.state != "writing":
            self._fail("an input begins before it continues", "it did not begin, or is complete")

    def _tool_input_available(self, chunk: Mapping[str, Any]) -> None:
        self._complete(chunk, "input")

    def _tool_input_error(self, chunk: Mapping[str, Any]) -> None:
        call = self._calls.get(chunk["toolCallId"])
        if call is not None and call.state == "input":
            if call.step != self._step:
                self._fail("an input fails in its own step", "the client creates another part")
            call.state = "final"
            return
        self._complete(chunk, "final")

    def _complete(self, chunk: Mapping[str, Any], state: str) -> None:
        call_id = chunk["toolCallId"]
        call = self._calls.get(call_id)
        if call is None:
            self._calls[call_id] = self._new_call(chunk, state)
            return
        if call.state != "writing":
            self._fail("the id of a call is used once", f"{call_id!r} has its input already")
        if call.name != chunk["toolName"]:
            self._fail("a call keeps its tool", f"it was {call.name!r}")
        if call.step != self._step:
            self._fail("an input is written in one step", "the client creates another part")
        call.state = state

    def _tool_output_available(self, chunk: Mapping[str, Any]) -> None:
        is_last = not chunk.get("preliminary")
        self._output(chunk, is_last=is_last)

    def _tool_output_error(self, chunk: Mapping[str, Any]) -> None:
        self._output(chunk, is_last=True)

    def _tool_output_denied(self, chunk: Mapping[str, Any]) -> None:
        call = self._output(chunk, is_last=True)
        if call.approval is None:
            self._fail(
                "only a call with an approval request is denied",
                "there was no tool-approval-request",
            )

    def _output(self, chunk: Mapping[str, Any], *, is_last: bool) -> _PartCall:
        call = self._calls.get(chunk["toolCallId"])
        if call is None:
            self._fail("a call has its input before its output", "it has none")
        if call.state == "final":
            self._fail("a call has one final output", "it has one already, and this replaces it")
        if call.state == "writing":
            self._fail("a call has its input before its output", "it is still being written")
        if is_last:
            call.state = "final"
            call.waits = False
        return call

    def _tool_approval_request(self, chunk: Mapping[str, Any]) -> None:
        call = self._calls.get(chunk["toolCallId"])
        if call is None or call.state != "input":
            self._fail("a call that needs approval has an input and no output", "it does not")
        question = chunk["approvalId"]
        if question in self._asked:
            self._fail("the id of an approval is used once", f"{question!r} was used before")
        self._asked.add(question)
        self._questions[question] = chunk["toolCallId"]
        call.approval, call.waits = question, True

    def _tool_approval_response(self, chunk: Mapping[str, Any]) -> None:
        call = self._calls.get(self._questions.get(chunk["approvalId"], ""))
        if call is None:
            self._fail("an approval is requested before it is answered", "it was not")
        call.waits = False

    def _waits(self) -> bool:
        if self._version < 6:  # noqa: PLR2004 - where the questions are data parts
            return bool(self._questions)
        return any(call.waits for call in self._calls.values())

    def _new_call(self, chunk: Mapping[str, Any], state: str) -> _PartCall:
        return _PartCall(chunk["toolName"], bool(chunk.get("dynamic")), state, self._step)

    def _fail(self, rule: str, why: str) -> NoReturn:
        raise VercelStreamError(rule, why, self._index, self._chunk)
