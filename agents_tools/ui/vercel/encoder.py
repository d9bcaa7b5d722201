"""Encode the events of a run as a UI message stream of the Vercel AI SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast
from uuid import uuid4

from agents_tools.errors import UserValueError
from agents_tools.events.kinds import (
    ActionEvent,
    AgentStateChangedEvent,
    AgentUpdatedStreamEvent,
    ErrorEvent,
    GapEvent,
    MessageEvent,
    NotifyStreamEvent,
    NullEvent,
    ObservationEvent,
    RawResponseStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunRecordEvent,
    RunStartedEvent,
    SummaryEvent,
    ToolArtifactEvent,
    ToolAttemptEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.text.output import release_json, release_text
from agents_tools.ui.vercel.data_parts import DataCalls
from agents_tools.ui.vercel.text import (
    LATEST,
    WITH_APPROVALS,
    drop_none,
    parse_arguments,
)
from agents_tools.ui.vercel.text_parts import TextParts
from agents_tools.ui.vercel.tool_parts import ToolParts, approval_id, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.events.base import Event
    from agents_tools.events.kinds import AnyEvent
    from agents_tools.ui.vercel.data_parts import DataCall
    from agents_tools.ui.vercel.text import Chunk

__all__ = ["VERSIONS", "VercelEncoder", "Version"]

Version: TypeAlias = Literal[5, 6, 7]
"""A major version of the npm package `ai`."""

VERSIONS: Final = (5, 6, 7)
"""All supported major versions."""

_MAX_OUTPUT: Final = 500


class VercelEncoder:
    """Encodes the events of one run as chunks of a UI message stream.

    The chunks depend on the events only, so a message can be sent again from its start. Call
    `close` at the end: it ends all open parts and the message.

    Args:
        version: The major version of the SDK in the page. Each version refuses chunks of later
            ones.
        message_id: The id of the message; by default derived from the id of the run.
        run_id: The id of the run, in case its first event is missing.
        preliminary: Whether streamed text of a tool is shown as its output until the result comes.
        errors: Whether the message contains the error of a failed run (`show`) or a general text.
        snapshots_per_second: The largest rate of updates about a running call.

    Raises:
        UserValueError: The version is unknown, or the rate is not above 0.
    """

    def __init__(
        self,
        version: Version = 7,
        *,
        message_id: str | None = None,
        run_id: str | None = None,
        preliminary: bool = False,
        errors: Literal["hide", "show"] = "hide",
        snapshots_per_second: float = 20.0,
    ) -> None:
        if version not in VERSIONS:
            raise UserValueError(
                "VercelEncoder(version=): expected 5, 6 or 7, the major version of the npm package "
                f"'ai' in the page, got {version!r}."
            )
        if not snapshots_per_second > 0:
            raise UserValueError(
                "VercelEncoder(snapshots_per_second=): expected a number above 0, got "
                f"{snapshots_per_second!r:.60}."
            )
        interval = 1.0 / snapshots_per_second
        self._version: Final = version
        self._errors: Final = errors
        self._message_id = message_id
        self._run_id = run_id
        self._meta: Chunk = drop_none(runId=run_id)
        self._started = False
        self._answer = TextParts()
        self._parts = ToolParts(version, interval)
        self._calls = DataCalls(interval, preliminary=preliminary)
        self._now = 0.0
        self._in_step = False
        self._answer_ended = False
        self._last_event: RunFinishedEvent | None = None
        self._closed = False

    @property
    def pending(self) -> bool:
        """Return whether chunks are held back; see `flush`."""
        return self._calls.pending

    def encode(self, event: Event) -> list[Chunk]:
        """Return the chunks of an event; often there are none."""
        if self._closed:
            return []
        if self._last_event is not None and not self._can_follow_end(event):
            return []  # the run has ended
        self._now = max(self._now, event.timestamp)
        chunks = [*self._dispatch(event), *self._calls.due(self._now)]
        if chunks and not self._started:  # the first events are missing
            return [*self._start(), *chunks]
        return chunks

    def flush(self) -> list[Chunk]:
        """Return the chunks that the rate limit holds back. Call it when the events pause."""
        return self._calls.flush(self._now)

    def restart(self) -> list[Chunk]:
        """Start the message in another response, which continues after the previous one.

        The encoder must have encoded the earlier events; their chunks are not sent again.
        """
        self._in_step = False
        return self._start()

    def close(self, status: str = "cancelled", reason: str | None = None) -> list[Chunk]:
        """End all open parts and the message.

        Args:
            status: The status of the run if its last event is missing.
            reason: The reason for the status, for users.
        """
        if self._closed:
            return []
        last, self._closed = self._last_event, True
        if last is None:
            last = RunFinishedEvent(status=status, error=reason)
        chunks = self._finish(last, reason or last.error)
        return chunks if self._started else [*self._start(), *chunks]

    # --- dispatch

    def _dispatch(self, event: Event) -> list[Chunk]:
        match known := cast("AnyEvent", event):
            case RunStartedEvent():
                return self._run_started(known)
            case RunFinishedEvent():
                return self._run_finished(known)
            case RawResponseStreamEvent():
                return self._raw(known)
            case RunItemStreamEvent():
                return self._item(cast("RunItemStreamEvent[Any]", event))
            case ToolStreamStartEvent():
                return self._call_started(known)
            case ToolStreamEndEvent():
                return self._call_ended(known)
            case GapEvent():
                self._answer.skip()
            case ToolProgressEvent() | NotifyStreamEvent():
                return self._display(known)
            case ToolAttemptEvent() | ToolArtifactEvent():
                return self._display(known)
            case MessageEvent() | ActionEvent() | ObservationEvent() | ErrorEvent():
                pass
            case (
                AgentUpdatedStreamEvent()
                | AgentStateChangedEvent()
                | NullEvent()
                | RunRecordEvent()
                | SummaryEvent()
            ):
                pass
        return []

    def _can_follow_end(self, event: Event) -> bool:
        """Return whether an event can follow the end of a run.

        A run that waits for approval can continue or be cancelled.
        """
        return isinstance(event, (RunStartedEvent, RunFinishedEvent)) and not event.path

    def _run_started(self, event: RunStartedEvent) -> list[Chunk]:
        if event.path:
            call = self._calls.at(event.path, event.tool_name)
            call.agent = release_text(event.agent or "") or None
            call.is_shown = True
            return self._calls.touch(call, self._now, at_once=True)
        if self._last_event is not None:  # the run waited for approval and continues
            self._last_event = None
            return []
        if self._meta:  # its process has ended, and another one continues the run
            return []
        self._run_id = release_text(event.run_id) if event.run_id else self._run_id
        self._meta = drop_none(runId=self._run_id, agent=release_text(event.agent or "") or None)
        return self._start()

    def _run_finished(self, event: RunFinishedEvent) -> list[Chunk]:
        if not event.path:
            self._last_event = event  # `close` encodes the end, because a waiting run can continue
            return []
        call = self._calls.get(event.path)
        if call is None:
            return []
        if event.status == "interrupted":
            call.status = "waiting"
            return self._calls.touch(call, self._now, at_once=True)
        return []

    def _raw(self, event: RawResponseStreamEvent) -> list[Chunk]:
        piece = _object(event.data)
        kind = piece.get("type")
        if event.path:
            return self._nested_raw(event, piece)
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                return self._model_delta("text", str(piece.get("delta", "")))
            case "response.reasoning_summary_text.delta":
                return self._model_delta("reasoning", str(piece.get("delta", "")))
            case "response.output_item.added":
                return self._item_begins(_object(piece.get("item")))
            case "response.function_call_arguments.delta":
                path = (str(piece.get("call_id")),)
                return self._parts.add_input(path, str(piece.get("delta", "")), self._now)
            case "agents_tools.retry":
                return self._retry()
            case _:
                return []

    def _item(self, event: RunItemStreamEvent[Any]) -> list[Chunk]:
        item = event.item
        if event.name == "tool_approval_requested":
            return self._approval_requested((*event.path, str(item.get("call_id"))), item)
        if event.name == "tool_approval_granted":
            return self._parts.set_decision((*event.path, str(item.get("call_id"))), approved=True)
        if event.path:
            return self._nested_item(event)
        match event.name:
            case "message_output_created":
                return self._model_text("text", _message_text(item))
            case "reasoning_item_created":
                return self._model_text("reasoning", _summary(item))
            case "tool_called":
                return self._tool_call(item)
            case "tool_output" | "background_result":
                return self._output((str(item.get("call_id")),), item)
            case "output_refused":
                self._answer_ended = True  # the next text of the model belongs to another answer
                return []
            case _:
                return []

    # --- output of the model

    def _model_delta(self, kind: Literal["text", "reasoning"], text: str) -> list[Chunk]:
        if not text or self._answer.has_gap:
            return []
        return [*self._step(), *self._answer.add_delta(kind, text)]

    def _model_text(self, kind: Literal["text", "reasoning"], text: str) -> list[Chunk]:
        return [*self._step(), *self._answer.add_item(kind, text)] if text else []

    def _item_begins(self, item: Mapping[str, Any]) -> list[Chunk]:
        if item.get("type") != "function_call":
            return self._answer.close()
        path = (str(item.get("call_id")),)
        if self._parts.get(path) is not None:
            return []
        chunks = [*self._step(), *self._answer.close()]
        return chunks + self._parts.begin(path, str(item.get("name") or "tool"))

    def _retry(self) -> list[Chunk]:
        """Remove the current answer of the model, if the version supports it."""
        if not self._in_step or self._answer_ended:  # the answer is still empty
            return []
        chunks, parts = self._answer.reset(), self._parts.remove_unfinished()
        if self._version >= LATEST:
            return [*chunks, {"type": "reset-step"}]
        reason = "The model request failed and was retried."
        return chunks + [chunk for part in parts for chunk in self._parts.end(part, reason)]

    def _tool_call(self, item: Mapping[str, Any]) -> list[Chunk]:
        path, name = (str(item.get("call_id")),), str(item.get("name") or "tool")
        chunks = [*self._step(), *self._answer.close()]
        value = parse_arguments(str(item.get("arguments") or ""))
        chunks += self._parts.set_input(path, name, value)
        if item.get("kind") == "hosted":  # the provider ran it, so there is no output
            chunks += self._parts.set_output(path, "ok", "")
        return chunks

    # --- calls

    def _call_started(self, event: ToolStreamStartEvent) -> list[Chunk]:
        call = self._calls.at(event.path, event.tool_name)
        call.status = "running"
        if len(event.path) > 1:
            call.input = release_json(dict(event.input_args))
            return [*self._step_for_parts(), *self._calls.touch(call, self._now, at_once=True)]
        part = self._parts.get(event.path)
        # A call with an `ArgumentStream` starts while the model writes it: its answer continues.
        if part is None or part.state != "writing":
            self._answer_ended = True
        if part is not None:
            return self._calls.touch(call, self._now, at_once=True) if call.is_shown else []
        value = release_json(dict(event.input_args))
        return [*self._step_for_parts(), *self._parts.set_input(event.path, call.name, value)]

    def _call_ended(self, event: ToolStreamEndEvent) -> list[Chunk]:
        call = self._calls.get(event.path)
        if call is None or call.status == "waiting":  # the call continues after the decision
            return []
        call.status, call.duration = event.status, event.duration
        call.end_deltas()
        return self._calls.touch(call, self._now, at_once=True) if call.is_shown else []

    def _display(self, event: Event) -> list[Chunk]:
        """Encode a display event of a call, unless the call has ended."""
        if not event.path:
            return self._root_notice(event)
        if self._calls.is_over(event.path):
            return []
        return [*self._step_for_parts(), *self._calls.update(event, self._now)]

    def _root_notice(self, event: Event) -> list[Chunk]:
        if not isinstance(event, NotifyStreamEvent):
            return []
        level = event.level if event.level != "info" else None
        entry = drop_none(text=release_text(event.data), level=level)
        return [{"type": "data-agents-tool-log", "data": {"entries": [entry]}, "transient": True}]

    def _output(self, path: tuple[str, ...], item: Mapping[str, Any]) -> list[Chunk]:
        self._answer_ended = True
        status = str(item.get("status") or "ok")
        in_background = bool(item.get("in_background"))
        call = self._calls.get(path)
        chunks: list[Chunk] = []
        if in_background:
            call = self._calls.at(path, str(item.get("name") or "tool"))
            call.is_shown = True
            chunks = self._calls.touch(call, self._now, at_once=True)
        elif call is not None and call.is_open:
            call.status = status
            chunks = self._calls.touch(call, self._now, at_once=True) if call.is_shown else []
        if self._parts.get(path) is None:
            chunks += self._step_for_parts()
            chunks += self._parts.set_input(path, str(item.get("name") or "tool"), {})
        if in_background:
            return chunks + self._parts.acknowledge(path, item.get("output", ""))
        return chunks + self._parts.set_output(path, status, item.get("output", ""))

    # --- agents that run as tools

    def _nested_raw(self, event: RawResponseStreamEvent, data: Mapping[str, Any]) -> list[Chunk]:
        if self._calls.is_over(event.path):
            return []
        call = self._calls.at(event.path, event.tool_name)
        match data.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                call.is_shown = True
                call.add_delta(str(data.get("delta", "")))
            case "agents_tools.retry":
                call.text = ""
            case _:
                return []
        return self._calls.touch(call, self._now)

    def _nested_item(self, event: RunItemStreamEvent[Any]) -> list[Chunk]:
        item = event.item
        if event.name == "message_output_created":
            call = self._calls.at(event.path, event.tool_name)
            text = _message_text(item)
            if not call.is_open or _was_streamed(call.text, release_text(text)):
                return []
            call.is_shown = True
            call.add_delta(text)
            return self._calls.touch(call, self._now)
        if event.name not in {"tool_called", "tool_output", "background_result"}:
            return []
        path = (*event.path, str(item.get("call_id")))
        call = self._calls.at(path, str(item.get("name") or "tool"))
        if event.name == "tool_called":
            call.input = parse_arguments(str(item.get("arguments") or ""))
            return [*self._step_for_parts(), *self._calls.touch(call, self._now, at_once=True)]
        return self._nested_output(call, item)

    def _nested_output(self, call: DataCall, item: Mapping[str, Any]) -> list[Chunk]:
        call.output = (
            release_text(text_of(item.get("output")), limit=_MAX_OUTPUT, patterns=True) or None
        )
        status = str(item.get("status") or "ok")
        if call.is_open and not item.get("in_background"):
            call.status = status
        chunks = self._calls.touch(call, self._now, at_once=True)
        if self._parts.get(call.path) is not None:  # its approval has a part
            chunks += self._parts.set_output(call.path, status, item.get("output", ""))
        return chunks

    # --- approvals

    def _approval_requested(self, path: tuple[str, ...], item: Mapping[str, Any]) -> list[Chunk]:
        name = str(item.get("name") or "tool")
        chunks = self._answer.close()
        details: Chunk = {}
        if len(path) > 1:
            call = self._calls.at(path, name)
            call.status = "waiting"
            call.input = parse_arguments(str(item.get("arguments") or ""))
            chunks += self._calls.touch(call, self._now, at_once=True)
            details = drop_none(parentCallId=call.snapshot()["data"]["parentCallId"])
            details |= drop_none(agent=release_text(str(item.get("agent") or "")) or None)
        part = self._parts.get(path)
        if part is None:
            # The enclosing call is a part without output. In the same step, it would prevent the
            # client from sending the decision by itself: the client checks only the last step.
            if len(path) > 1 and not self._last_step_waits():
                chunks += [*self._end_step(), *self._begin_step()]
            value = parse_arguments(str(item.get("arguments") or ""))
            chunks += [*self._step_for_parts(), *self._parts.set_input(path, name, value)]
        if item.get("error"):  # the arguments that a person edited are invalid
            call = self._calls.at(path, name)
            call.is_shown = True
            call.add_line(release_text(str(item["error"])), level="error")
            chunks += self._calls.touch(call, self._now, at_once=True)
        self._answer_ended = True
        approval = approval_id(self._run_id or "run", path)
        return chunks + self._parts.request_approval(path, approval, details)

    def _last_step_waits(self) -> bool:
        """Return whether the step has only approvals."""
        parts = [part for part in self._parts.open() if part.step == self._parts.step]
        return bool(parts) and all(part.state == "approval" for part in parts)

    # --- steps and the end of the message

    def _start(self) -> list[Chunk]:
        self._started = True
        if self._message_id is None:
            self._message_id = f"msg_{(self._run_id or uuid4().hex).removeprefix('run_')}"
        meta = {"messageMetadata": dict(self._meta)} if self._meta else {}
        return [{"type": "start", "messageId": self._message_id, **meta}]

    def _step(self) -> list[Chunk]:
        """Begin a step for each answer of the model, so that `reset-step` removes only that."""
        if self._in_step and not self._answer_ended:
            return []
        self._answer_ended = False
        return [*self._end_step(), *self._answer.reset(), *self._begin_step()]

    def _step_for_parts(self) -> list[Chunk]:
        return [] if self._in_step else self._begin_step()

    def _begin_step(self) -> list[Chunk]:
        self._in_step = True
        self._parts.step += 1
        return [{"type": "start-step"}]

    def _end_step(self) -> list[Chunk]:
        if not self._in_step:
            return []
        self._in_step = False
        return [*self._answer.close(), {"type": "finish-step"}]

    def _finish(self, last: RunFinishedEvent, reason: str | None) -> list[Chunk]:
        chunks = self._answer.close()
        if last.status != "interrupted":
            chunks += self._end_calls(last.status)
        chunks += [*self._calls.flush(self._now), *self._end_step()]
        reason = release_text(reason or "The run was cancelled.", patterns=True)
        meta = drop_none(usage=_usage(last.usage), status=last.status)
        if last.status == "cancelled":
            meta["reason"] = reason
        finish: Chunk = {"type": "finish"}
        if self._version >= WITH_APPROVALS:  # the first releases of version 5 refuse a reason
            finish["finishReason"] = self._finish_reason(last.status)
        finish["messageMetadata"] = {**self._meta, **meta}
        match last.status:
            case "cancelled":
                # Before version 7, only later releases accept the reason here.
                detail = {"reason": reason} if self._version >= LATEST else {}
                return [*chunks, {"type": "abort", **detail}, finish]
            case "error":
                # A client reads nothing after an error, so it comes last.
                return [*chunks, finish, {"type": "error", "errorText": self._error_text(last)}]
            case _:
                return [*chunks, finish]

    def _end_calls(self, status: str) -> list[Chunk]:
        chunks: list[Chunk] = []
        cancelled = status == "cancelled"
        reason = "The call was cancelled." if cancelled else "The run ended before the call."
        call_status = "cancelled" if cancelled else "lost"
        for call in self._calls.open():
            call.status = call_status
            if call.is_shown:
                chunks += self._calls.touch(call, self._now, at_once=True)
        for part in list(self._parts.open()):
            chunks += self._parts.end(part, reason)
        return chunks

    def _finish_reason(self, status: str) -> str:
        """Return the finish reason of the message.

        It is never `interrupted`: the first 148 releases of version 7 refuse it, and later ones do
        not send decisions by themselves after it. The metadata has the exact status.
        """
        reasons = {"ok": "stop", "interrupted": "tool-calls", "cancelled": "other"}
        return reasons.get(status, "error")

    def _error_text(self, last: RunFinishedEvent) -> str:
        if self._errors == "show" and last.error:
            return release_text(last.error, patterns=True)
        return "The run failed."


def _usage(usage: Mapping[str, Any] | None) -> Chunk | None:
    if usage is None:
        return None
    counts = {
        _in_camel_case(name): one for name, one in usage.items() if isinstance(one, (int, float))
    }
    total = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
    return {**counts, "totalTokens": total}


def _in_camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _message_text(item: Mapping[str, Any]) -> str:
    return "".join(
        str(part.get("text") or part.get("refusal") or "") for part in _objects(item.get("content"))
    )


def _was_streamed(streamed: str, text: str) -> bool:
    """Return whether a text was already sent as deltas, of which the beginning can be lost."""
    return not text or streamed.endswith(text) or (streamed != "" and text.endswith(streamed))


def _summary(item: Mapping[str, Any]) -> str:
    return "\n\n".join(str(part.get("text", "")) for part in _objects(item.get("summary")))


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [_object(one) for one in cast("list[object]", value)] if isinstance(value, list) else []
