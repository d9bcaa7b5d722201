"""Encode the events of a run as AG-UI frames."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from agents_tools.errors import UserValueError
from agents_tools.events.kinds import (
    GapEvent,
    NotifyStreamEvent,
    RawResponseStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
    ToolArtifactEvent,
    ToolAttemptEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.text.output import release_text
from agents_tools.ui.ag_ui.frames import (
    FrameWriter,
    error_of,
    result_content,
    usage_of,
    wire_id,
)
from agents_tools.ui.ag_ui.interrupts import Interrupts
from agents_tools.ui.ag_ui.message_frames import MessageFrames, message_text, reasoning_text
from agents_tools.ui.ag_ui.messages import MessageHistory
from agents_tools.ui.ag_ui.subagents import SubAgents
from agents_tools.ui.ag_ui.tool_calls import AgUiCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from agents_tools.events.base import Event
    from agents_tools.ui.ag_ui.frames import Path, Version
    from agents_tools.ui.ag_ui.messages import Frame
    from agents_tools.ui.ag_ui.tool_calls import AgUiCall

__all__ = ["PROTOCOL_VERSION", "AgUiEncoder"]

PROTOCOL_VERSION: Final = "1.0"
"""The protocol version that runs report."""

Status = Literal["ok", "interrupted", "cancelled", "error"]

_INTERVAL = 50
_NOT_MADE = "The call was not made: the response of the model broke off."


class AgUiEncoder:
    """Encodes the events of one run as AG-UI frames.

    The frames depend on the events only. Frequent updates, such as the progress of a call, are sent
    at most every `interval` milliseconds by the times of the events; `flush` returns the updates
    that are held back.

    Args:
        version: The protocol version of the client: `1.0`, or `0.x` for earlier versions. Earlier
            versions have no SUBAGENT_* events, so nested agents are shown as activity.
        thread_id: The id of the conversation.
        run_id: The id of the run; by default the id in the events.
        messages: The messages of the request of the client. With them, wrong messages are
            corrected by a snapshot, and `prelude` returns the whole conversation.
        client_tools: The names of tools that the client runs itself. A call of such a tool ends the
            run and needs no approval.
        errors: Whether the client gets the message of an error that ends the run.
        interval: The shortest time between two updates of a call, in milliseconds.

    Raises:
        UserError: The version is unknown.
    """

    def __init__(
        self,
        *,
        version: Version = "1.0",
        thread_id: str = "",
        run_id: str = "",
        messages: Iterable[Mapping[str, Any]] | None = None,
        client_tools: Collection[str] = (),
        errors: Literal["hide", "show"] = "show",
        interval: int = _INTERVAL,
    ) -> None:
        if version not in {"1.0", "0.x"}:
            raise UserValueError(
                f"AgUiEncoder(version=): expected '1.0' or '0.x', got {version!r}."
            )
        self.version: Final = version
        self.thread_id = thread_id
        self.run_id = run_id
        history = [] if messages is None else list(messages)
        self._has_history = messages is not None
        self._client_results = {
            one.get("toolCallId") for one in history if one.get("role") == "tool"
        }
        self._errors = errors
        self._writer = FrameWriter(version, MessageHistory(history))
        self._calls = AgUiCalls(self._writer, run_id, interval)
        self._responses: dict[Path, MessageFrames] = {}
        self._subs = SubAgents(self._writer, self._calls, show_errors=errors == "show")
        self._interrupts = Interrupts(self._writer, client_tools)
        self._ids = 0
        self.started = False
        self.finished = False
        self._handlers: Mapping[type[Event], Callable[[Any], None]] = {
            RunStartedEvent: self._on_run_started,
            RunFinishedEvent: self._on_run_finished,
            RawResponseStreamEvent: self._raw,
            RunItemStreamEvent: self._item,
            ToolStreamStartEvent: self._on_call_started,
            ToolStreamEndEvent: self._on_call_ended,
            ToolProgressEvent: self._progress,
            ToolArtifactEvent: self._artifact,
            ToolAttemptEvent: self._attempt,
            NotifyStreamEvent: self._notify,
            GapEvent: self._gap,
        }
        self._raw_handlers: Mapping[
            str, Callable[[MessageFrames, Path, Mapping[str, Any]], None]
        ] = {
            "response.output_text.delta": self._text_delta,
            "response.refusal.delta": self._text_delta,
            "response.reasoning_summary_text.delta": self._reasoning_delta,
            "response.output_item.added": self._item_added,
            "response.function_call_arguments.delta": self._call_delta,
            "agents_tools.retry": self._retry,
        }
        self._item_handlers: Mapping[str, Callable[[Event, Mapping[str, Any]], None]] = {
            "message_output_created": self._message,
            "reasoning_item_created": self._reasoning,
            "tool_called": self._tool_call,
            "tool_output": self._output,
            "background_result": self._background_result,
            "tool_approval_requested": self._approval,
        }

    @property
    def held(self) -> bool:
        """Return whether updates are held back; see `flush`."""
        return self._calls.has_pending

    @property
    def messages(self) -> list[Frame]:
        """The conversation as a client has it after all frames."""
        return self._writer.messages.list()

    # --- encoding

    def encode(self, event: Event) -> list[Frame]:
        """Return the frames of an event: none, one or several."""
        handler = self._handlers.get(type(event))
        if handler is None or (self.finished and not _starts_run(event)):
            return []
        writer = self._writer
        writer.now = int(event.timestamp * 1000) or None
        writer.seq = event.seq
        if not _starts_run(event):
            self._start()
        handler(event)
        return writer.take()

    def flush(self) -> list[Frame]:
        """Return the updates that are held back. Call it when the events pause."""
        self._calls.flush()
        return self._writer.take()

    def close(self, status: Status = "cancelled") -> list[Frame]:
        """End all open messages and calls, and the run, if its last event is missing."""
        if self.finished:
            return []
        self._start()
        self._finish(status, RunFinishedEvent(status=status))
        return self._writer.take()

    def prelude(self) -> list[Frame]:
        """Return the frames for a client that joins late. The frames of `encode` follow them."""
        writer = self._writer
        pieces = [response.open_piece for response in self._responses.values()]
        calls = [call for call in self._calls if call.open]
        without = {piece.id for piece in pieces if piece} | {call.wire for call in calls}
        messages = writer.messages.list(without=without)
        frames: list[Frame] = [
            self._run_started(),
            {"type": "MESSAGES_SNAPSHOT", "messages": messages},
        ]
        writer.replaying = True
        self._resume(calls)
        writer.replaying = False
        return frames + writer.take()

    def _resume(self, calls: list[AgUiCall]) -> None:
        self._subs.resume()
        for response in self._responses.values():
            response.resume()
        for call in calls:
            caller = self._responses.get(call.path[:-1])
            self._calls.resume(call, caller.message if caller else None)
        self._calls.resend_activities()

    # --- the run

    def _run_started(self) -> Frame:
        frame: Frame = {"type": "RUN_STARTED", "threadId": self.thread_id, "runId": self.run_id}
        if self.version == "1.0":
            frame["protocolVersion"] = PROTOCOL_VERSION
        if self._writer.now is not None:
            frame["timestamp"] = self._writer.now
        return frame

    def _start(self) -> None:
        if self.started:
            return
        self.started = True
        self.run_id = self.run_id or f"run_{uuid.uuid4().hex}"
        self.thread_id = self.thread_id or self.run_id
        self._calls.run_id = self.run_id
        self._writer.frames.append(self._run_started())

    def _on_run_started(self, event: RunStartedEvent) -> None:
        if event.path:
            self._on_sub_started(event)
            return
        if self.finished:  # the run continues; in the protocol this is another run
            self.finished = self.started = False
            self.run_id = f"{self.run_id}+"
            self._interrupts.clear()
            self._responses.clear()
            self._subs.clear()
        self.run_id = self.run_id or event.run_id or ""
        self._start()

    def _on_run_finished(self, event: RunFinishedEvent) -> None:
        if event.path:
            self._on_sub_finished(event)
            return
        status = event.status if event.status in {"ok", "interrupted", "cancelled"} else "error"
        self._finish(cast("Status", status), event)

    def _finish(self, status: Status, event: RunFinishedEvent) -> None:
        for path, response in self._responses.items():
            self._end_response(response, path)
        self._calls.close("waiting" if status == "interrupted" else "cancelled")
        self._subs.close(status, event.error)
        self.finished = True
        usage = usage_of(event.usage) if self.version == "1.0" else None
        if status == "error":
            message, code = error_of(event.error, show=self._errors == "show")
            self._writer.put("RUN_ERROR", message=message, code=code, usage=usage)
            return
        self._writer.put(
            "RUN_FINISHED",
            threadId=self.thread_id,
            runId=self.run_id,
            result=event.output,
            outcome=self._outcome(status),
            usage=usage,
        )

    def _outcome(self, status: Status) -> Frame | None:
        if self.version == "1.0":
            return self._interrupts.outcome(status)
        if status == "interrupted" and self._interrupts.open:
            outcome = self._interrupts.outcome(status)  # the oldest clients do not support outcomes
            self._custom("agents_tools.approval", {"interrupts": outcome["interrupts"]})
            return outcome
        if status == "cancelled":
            self._custom("agents_tools.cancelled", {"runId": self.run_id})
        return None

    # --- nested agents

    @property
    def _nested(self) -> bool:
        return self.version == "1.0"

    def _on_sub_started(self, event: RunStartedEvent) -> None:
        sub = self._subs.get(event.path)
        if sub is not None and sub.open:
            sub.runs += 1
            return
        self._responses.pop(event.path, None)
        self._subs.begin(event.path, event.agent or event.tool_name or "agent")
        if not self._nested:
            call = self._calls.at(event.path, event.tool_name, None)
            self._calls.update(call, agent=release_text(event.agent or ""))

    def _on_sub_finished(self, event: RunFinishedEvent) -> None:
        sub = self._subs.get(event.path)
        if sub is not None and sub.runs == 1:
            self._end_sub(event.path, event.status, event.error)
        elif sub is not None and sub.open:
            sub.runs -= 1

    def _end_sub(self, path: Path, status: str, error: str | None) -> None:
        sub, response = self._subs.get(path), self._responses.get(path)
        if response is not None:
            self._end_response(response, path)
        if sub is not None:
            self._subs.end(sub, status, error)

    # --- output of models

    def _response(self, path: Path) -> MessageFrames | None:
        """Return the responses of an agent; `None` if the client does not see the agent."""
        if path and not self._nested:
            return None
        response = self._responses.get(path)
        if response is None:
            if path and self._subs.get(path) is None:
                call = self._calls.get(path)
                self._subs.begin(path, (call.tool if call else "") or "agent")
            response = self._responses[path] = MessageFrames(
                self._writer, self._subs.owner(path), self._new_id
            )
        return response

    def _new_id(self) -> str:
        self._ids += 1
        return f"{self.run_id}-{self._ids}"

    def _raw(self, event: RawResponseStreamEvent) -> None:
        raw: object = event.data
        if not isinstance(raw, Mapping):
            return
        data = cast("Mapping[str, Any]", raw)
        handler = self._raw_handlers.get(str(data.get("type")))
        response = self._response(event.path) if handler is not None else None
        if handler is not None and response is not None:
            if response.complete:
                self._remove_messages(self._drop_calls(response, event.path))
            handler(response, event.path, data)

    def _text_delta(self, response: MessageFrames, path: Path, data: Mapping[str, Any]) -> None:
        del path
        response.add_delta("text", str(data.get("delta", "")))

    def _reasoning_delta(
        self, response: MessageFrames, path: Path, data: Mapping[str, Any]
    ) -> None:
        del path
        response.add_delta("reasoning", str(data.get("delta", "")))

    def _item_added(self, response: MessageFrames, path: Path, data: Mapping[str, Any]) -> None:
        item: Mapping[str, Any] = data.get("item") or {}
        if item.get("type") == "message":
            response.next_message()
        elif item.get("type") == "function_call" and item.get("call_id") and response.begin():
            call_path = (*path, str(item["call_id"]))
            if self._is_new(call_path):
                call = self._calls.at(call_path, str(item.get("name", "")), self._subs.owner(path))
                self._calls.begin(call, response.call_parent())
                response.calls.add(call_path[-1])

    def _call_delta(self, response: MessageFrames, path: Path, data: Mapping[str, Any]) -> None:
        call_id = str(data.get("call_id", ""))
        call = self._calls.get((*path, call_id))
        if call is not None and call_id in response.calls and response.begin():
            self._calls.add_arguments(call, str(data.get("delta", "")))

    def _retry(self, response: MessageFrames, path: Path, data: Mapping[str, Any]) -> None:
        del data
        self._remove_messages(response.forget() + self._drop_calls(response, path))

    def _is_new(self, call_path: Path) -> bool:
        call = self._calls.get(call_path)
        is_sent = wire_id(call_path) in self._writer.messages.call_ids
        return not is_sent and (call is None or not call.has_start)

    def _end_response(self, response: MessageFrames, path: Path) -> None:
        response.end()
        self._remove_messages(self._drop_calls(response, path))

    def _drop_calls(self, response: MessageFrames, path: Path) -> list[str]:
        """End the calls that the model began to write but did not make."""
        dropped: list[str] = []
        for call_id in response.calls:
            call = self._calls.get((*path, call_id))
            if call is not None and call.open:
                self._calls.send_result(call, _NOT_MADE, "cancelled")
                dropped += [call.wire, f"{self.run_id}-result-{call.wire}"]
        response.calls.clear()
        return dropped

    def _remove_messages(self, ids: list[str]) -> None:
        """Remove wrong messages with a snapshot, if the messages of the client are known."""
        if ids and self._has_history:
            messages = self._writer.messages
            messages.forget(ids)
            self._writer.put("MESSAGES_SNAPSHOT", messages=messages.list())

    # --- items

    def _item(self, event: RunItemStreamEvent[Any]) -> None:
        handler = self._item_handlers.get(event.name)
        if handler is not None:
            handler(event, event.item)

    def _message(self, event: Event, item: Mapping[str, Any]) -> None:
        text = message_text(item)
        response = self._response(event.path)
        if response is not None:
            self._remove_messages(response.add_item("text", text))
        elif text:
            value = {
                "call": wire_id(event.path),
                "agent": item.get("agent"),
                "text": release_text(text),
            }
            self._custom("agents_tools.message", value)

    def _reasoning(self, event: Event, item: Mapping[str, Any]) -> None:
        response = self._response(event.path)
        if response is not None:
            self._remove_messages(response.add_item("reasoning", reasoning_text(item)))

    def _tool_call(self, event: Event, item: Mapping[str, Any]) -> None:
        response = self._response(event.path)
        call_id, name = str(item.get("call_id", "")), str(item.get("name", ""))
        call = self._calls.at((*event.path, call_id), name, self._subs.owner(event.path))
        if item.get("kind") == "hosted":
            call.status = "ok"
            self._calls.update(call, hosted=True)
        elif response is None:
            self._calls.update(call)
        else:
            if not call.has_start and self._is_new(call.path):
                self._calls.begin(call, response.call_parent())
            self._calls.complete(call, str(item.get("arguments", "")))
            response.calls.discard(call_id)

    def _output(self, event: Event, item: Mapping[str, Any]) -> None:
        call_path = (*event.path, str(item.get("call_id", "")))
        response = self._response(event.path)
        call = self._calls.at(call_path, str(item.get("name", "")), self._subs.owner(event.path))
        if response is not None:
            response.begin_response()
            call.has_start = True  # this run or the one that it continues has sent it
            call.has_result = call.has_result or call.wire in self._client_results
        self._calls.send_result(call, item.get("output", ""), str(item.get("status", "ok")))
        if item.get("in_background"):
            call.status = None
            self._calls.update(call, background=True)
        if response is None and call.activity_at is None:
            self._calls.update(call)

    def _background_result(self, event: Event, item: Mapping[str, Any]) -> None:
        """Send the result of a call whose TOOL_CALL_RESULT was an acknowledgement."""
        call_path = (*event.path, str(item.get("call_id", "")))
        call = self._calls.at(call_path, str(item.get("name", "")), self._subs.owner(event.path))
        call.status = call.status or str(item.get("status", "ok"))
        output = result_content(item.get("output", ""), self.version)
        self._calls.update(call, background=True, result=output)

    def _approval(self, event: Event, item: Mapping[str, Any]) -> None:
        inner = tuple(str(part) for part in item.get("path") or ())
        call_path = (*event.path, *inner, str(item.get("call_id", "")))
        if event.path and self._is_new(call_path):  # it was made by a hidden agent
            self._tool_call(event, item)
        wire = self._interrupts.add_call(call_path, item, self._subs.owner(call_path[:-1]))
        if wire is not None:
            self._subs.add_interrupt(call_path, wire)

    # --- calls

    def _call_of(self, event: Event) -> AgUiCall:
        """Return the call that an event comes from."""
        path = event.path or ((event.tool_call_id,) if event.tool_call_id else ("run",))
        return self._calls.at(path, event.tool_name, self._subs.owner(path[:-1]))

    def _on_call_started(self, event: ToolStreamStartEvent) -> None:
        call = self._call_of(event)
        call.status = None
        if len(call.path) > 1 and not call.has_start:  # the activity is its only frame
            self._calls.update(call, arguments=dict(event.input_args))

    def _on_call_ended(self, event: ToolStreamEndEvent) -> None:
        self._end_lines(event)
        call = self._call_of(event)
        sub = self._subs.get(event.path)
        status: str = event.status
        if sub is not None:
            self._end_sub(event.path, status, f"ToolError: {status}")
            if sub.interrupts and status == "cancelled":
                status = "waiting"  # for approval; the call continues after the decision
        self._calls.end(call, status, event.duration)

    def _progress(self, event: ToolProgressEvent) -> None:
        progress: Frame = {"current": event.current}
        if event.total is not None:
            progress["total"] = event.total
        if event.message is not None:
            progress["message"] = release_text(event.message)
        self._calls.update(self._call_of(event), progress=progress)

    def _artifact(self, event: ToolArtifactEvent) -> None:
        self._calls.add_artifact(self._call_of(event), event)

    def _attempt(self, event: ToolAttemptEvent) -> None:
        error = {} if event.error is None else {"error": release_text(event.error)}
        self._calls.update(self._call_of(event), attempt={"count": event.attempt, **error})

    def _notify(self, event: NotifyStreamEvent) -> None:
        lines = self._call_of(event).lines
        if event.is_delta:
            self._send_notify(event, lines.push(event.data))
            return
        self._end_lines(event)
        self._send_notify(event, event.data)

    def _end_lines(self, event: Event) -> None:
        """Send the text of a call that was held back."""
        if rest := self._call_of(event).lines.finish():
            delta = NotifyStreamEvent(rest, is_delta=True)
            self._send_notify(delta.replace(origin=event.origin, seq=event.seq), rest)

    def _send_notify(self, event: NotifyStreamEvent, data: str) -> None:
        if not data and event.data:
            return
        value: Frame = {
            "call": wire_id(event.path),
            "tool": event.tool_name,
            "data": data,
            "isDelta": event.is_delta,
            "tag": event.tag,
            "level": event.level,
            "seq": event.seq,
        }
        self._custom("agents_tools.notify", value, self._subs.owner(event.path[:-1]))

    def _gap(self, event: GapEvent) -> None:
        for response in self._responses.values():
            response.skip()
        self._custom("agents_tools.gap", {"dropped": event.dropped})

    def _custom(self, name: str, value: Frame, owner: str | None = None) -> None:
        present = {key: one for key, one in value.items() if one is not None}
        self._writer.put("CUSTOM", owner, name=name, value=present)


def _starts_run(event: Event) -> bool:
    return isinstance(event, RunStartedEvent) and not event.path
