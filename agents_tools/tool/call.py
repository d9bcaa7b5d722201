"""The record of one tool call: its ids, arguments, deadline, events and lifetime."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar

from agents_tools.errors import ToolCancelledError, ToolTimeoutError, UserTypeError
from agents_tools.events.listener import current_listeners
from agents_tools.text.json_limits import parse_object
from agents_tools.text.nouns import type_with_article
from agents_tools.text.secrets import has_secrets, library_logger
from agents_tools.tool.event_filter import mask_event, without_content
from agents_tools.tool.state import ToolState

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import TypeGuard

    from agents_tools.content.usage import Usage
    from agents_tools.events.base import Emit, Event
    from agents_tools.events.channel import Channel
    from agents_tools.events.envelope import Origin
    from agents_tools.events.kinds import CallStatus, Level
    from agents_tools.tool.question import Question
    from agents_tools.tool.records import CallOutcome, Decision

    EventFilter = Callable[[Event], Iterable[Event]]
    """Returns the events to deliver in place of one."""

__all__ = ["Call", "RunScope", "current_call", "enter_scope", "leave_scope"]


class _RunState:
    """The state that all calls of a run share.

    Attributes:
        sequence: The numbers of the events of the run.
        lock: Held while an event is delivered; guards the other attributes.
        is_delivering: Whether sinks are being called. An event that a sink emits then is dropped.
        dropped: How many events were dropped.
    """

    __slots__ = ("dropped", "is_delivering", "lock", "sequence")

    def __init__(self) -> None:
        self.sequence = itertools.count()
        self.lock = threading.RLock()
        self.is_delivering = False
        self.dropped = 0


_ids = itertools.count(1)
_UNIQUE_LENGTH = 16
"""The length, in characters, from which a call id is assumed to be globally unique."""
_FRESH, _RUNNING, _ENDED = range(3)


class Call:
    """The record of one tool call, which the invocation, its policies and its source share.

    The function of a tool sees the call through `context`. All times are in seconds.

    Attributes:
        tool: The tool; `None` before the call begins.
        tool_name: The name of the tool.
        app_context: The application's own object.
        usage: The usage of the run so far; `None` outside a run.
        agent: The agent that made the call; `None` outside a run.
        run_id: The id of the run; `None` outside a run.
        sent: The arguments as the model sent them, as JSON text; repaired if they were not JSON.
        parsed: The validated `Arguments`; `None` before validation and for invalid arguments.
        hidden: The values that policies added to the arguments; only the tool receives them.
        deadline: The time by which the call must end, on the clock of `time.monotonic()`; `None`
            if there is no limit.
        attempt: 1 for the first attempt of the call, 2 for the first retry, and so on.
        security_risk: The risk of the call as the model rates it, if the tool has the policy
            `policies.security_risk()`.
        failure: The error for which the body is not run; `None` if there is none.
        is_caller_cancelled: Whether the caller of the tool was cancelled.
        receiver_cancellations: How often a receiver of an event of the call, or of a call inside
            it, has cancelled the task that delivered the event.
        argument_error: The error that says that the arguments are invalid.
        decision: The decision of a person about the call.
        resumed: The state of an interrupted run inside the call.
        incoming: The `IncomingArguments` that the model still writes; `None` if all are complete.
        notes: Facts from policies for the metadata of the outcome.
        filters: Change the events of the call before they are delivered, innermost first.
        asker: Handles questions of the tool.
        approver: Decides about calls inside the call that need approval.
        tool_state: The state of the tools that are called inside this call or run; `None` if it is
            that of the call or run around it.
        outcome: The outcome, while the end event is delivered.
        sinks: The functions that receive the events.
    """

    context_type: ClassVar[Callable[[Call], Any]]
    """`ToolContext`, whose module is built on this one and sets itself here."""

    # Class-level defaults: a call sets only the attributes that differ, which keeps calls fast.
    tool: Any = None
    tool_name: str = ""
    app_context: Any = None
    usage: Usage | None = None
    agent: Any = None
    run_id: str | None = None
    sent: str = ""
    parsed: Any = None
    hidden: Mapping[str, Any] = {}
    deadline: float | None = None
    attempt: int = 1
    security_risk: str = "UNKNOWN"
    failure: Exception | None = None
    argument_error: Exception | None = None
    is_caller_cancelled: bool = False
    receiver_cancellations: int = 0
    decision: Decision | None = None
    resumed: Any = None
    incoming: Any = None
    notes: dict[str, Any] | None = None
    filters: tuple[EventFilter, ...] = ()
    asker: Callable[[Question], Any] | None = None
    approver: Callable[[Call], Any] | None = None
    tool_state: ToolState | None = None
    outcome: CallOutcome | None = None
    sinks: tuple[Emit, ...] = ()
    _context: Any = None
    _call_id: str | None = None
    _has_generated_id: bool = False
    _key: str | None = None
    _key_counts: dict[str, int] | None = None
    _parent: Call | None = None
    _cancelled: bool = False
    _origin: Origin | None = None
    _root: _RunState | None = None
    _channel: Channel | None = None
    _children: dict[Call, None] | None = None
    _first: Call | None = None
    _make_end: Callable[[CallStatus], Event] | None = None
    _state: int = _RUNNING

    @classmethod
    def fresh(
        cls,
        app_context: object = None,
        *,
        tool_name: str = "",
        tool_call_id: str | None = None,
        agent: object = None,
        run_id: str | None = None,
        usage: Usage | None = None,
        deadline: float | None = None,
        emit: Emit | None = None,
        parent: Call | None = None,
        idempotency_key: str | None = None,
    ) -> Call:
        """Return the record of a call that is going to be made.

        Args:
            app_context: The application's own object.
            tool_name: The name of the tool.
            tool_call_id: The id of the call; generated by default.
            agent: The agent that makes the call.
            run_id: The id of the run.
            usage: The usage of the run.
            deadline: The time by which the call must end.
            emit: Receives the events.
            parent: The call or run inside which the call is made.
            idempotency_key: The key of the call; derived by default.
        """
        call = cls()
        call.app_context = app_context
        call.usage = usage
        call.agent = agent
        call.run_id = run_id
        call.tool_name = tool_name
        call.deadline = deadline
        call._key = idempotency_key
        call._call_id = tool_call_id
        call._parent = parent
        call._state = _FRESH
        if parent is not None:
            call.filters = parent.filters
        if emit is not None:
            call.sinks = (emit,)
        return call

    @staticmethod
    def fresh_for(context: object) -> Call:
        """Return a record that no call has used, with the application's object of `context`."""
        record = context if _is_call(context) else getattr(context, "_call", None)
        if record is not None and record._state == _FRESH:
            return record
        app_context = getattr(context, "context", None) if record is None else record.app_context
        return Call.fresh(app_context, usage=getattr(context, "usage", None))

    @staticmethod
    def running(context: Any, tool_name: str, args_json: str) -> Call:
        """Return the record of a call that begins.

        The record of a context that no call has used yet is used itself. Otherwise a new one is
        created, with the application's object of `context`. If the call is made by another call,
        that call becomes its parent, and events are delivered to the subscribers of the parent.

        Args:
            context: A `ToolContext`, a `RunContextWrapper`, a fresh `Call`, or `None`.
            tool_name: The name of the tool.
            args_json: The arguments as JSON text.

        Raises:
            UserError: `context` is none of these.
        """
        parent = _get_current()
        listeners = current_listeners()
        if context is None and parent is None and not listeners:  # faster for most direct calls
            call = _new_call(Call)
            call.tool_name = tool_name
            call.sent = args_json
            return call
        record = context if _is_call(context) else getattr(context, "_call", None)
        if record is not None and record._state == _FRESH:
            call = record
            call._state = _RUNNING
            parent = call._parent or parent
        else:
            call = _new_call(Call)
            if parent is None and record is not None:
                parent = record  # the context of another call: this one is made inside it
            if context is not None:
                try:
                    call.app_context = context.context if record is None else record.app_context
                    call.usage = context.usage
                except AttributeError:
                    raise UserTypeError(
                        f"The context of a call of tool {tool_name!r} is not valid: expected a "
                        "ToolContext, a RunContextWrapper or None, got "
                        f"{type_with_article(context)}. To pass an object of your application, "
                        "write RunContextWrapper(object)."
                    ) from None
        call.tool_name = tool_name
        call.sent = args_json
        if parent is not None:
            call._inherit_from(parent)
        if listeners:
            call.sinks += tuple(sink for sink in listeners if sink not in call.sinks)
        return call

    @property
    def context(self) -> Any:
        """The `ToolContext` of the call."""
        if self._context is None:
            self._context = Call.context_type(self)
        return self._context

    def share_context(self, context: object) -> None:
        """Use this `ToolContext` as the context of the call."""
        self._context = context

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The canonical arguments, without those that policies hide; do not modify them.

        Before validation they are those that the model sent, and for arguments that are not an
        object they are empty.
        """
        if self.parsed is None:
            return parse_object(self.sent) or {}
        return without_names(self.parsed.data, self.hidden)

    @property
    def text(self) -> str:
        """The accepted arguments as JSON text, those that policies hide included."""
        return self.sent if self.parsed is None else self.parsed.text

    def reject_arguments(self, error: Exception) -> None:
        """Note that an error of the function says that the arguments are invalid."""
        (self._first or self).argument_error = error

    def abandon(self) -> None:
        """End the call, because its caller no longer waits for it."""
        self.end("cancelled")

    def is_running_here(self) -> bool:
        """Return whether the current code was started by the function of this call.

        Receivers of its events, and what they start, are not part of it.
        """
        current = _get_current()
        return current is not None and self in current.ancestors and not _is_delivering.get()

    def comes_from_function(self, error: Exception) -> bool:
        """Return whether the function raised an error after it had accepted the arguments."""
        return error is not (self._first or self).argument_error

    @property
    def tool_call_id(self) -> str:
        """The id of the call: the model's, or a generated one for a call that has none."""
        if self._call_id is None:
            self._call_id = f"call_{next(_ids)}"
            self._has_generated_id = True
        return self._call_id

    @property
    def idempotency_key(self) -> str:
        """A key for services that execute a request with the same key only once.

        The key is unique to the call and the same for all its attempts, also if its run continues
        in another process. The key of a call made by another tool is derived from the tool name,
        the arguments, and the number of earlier calls with the same two.
        """
        call = self._first or self
        if call._key is None:
            call._key = call._make_key()
        return call._key

    @property
    def path(self) -> tuple[str, ...]:
        """The ids of the enclosing calls, outermost first; the last one is that of this call."""
        parent = self._parent
        return (self.tool_call_id,) if parent is None else (*parent.path, self.tool_call_id)

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled. Check it in long loops of sync tools."""
        parent = self._parent
        return self._cancelled or (parent is not None and parent.cancelled)

    def check(self) -> None:
        """Raise an error if the result of the call is no longer needed.

        Raises:
            ToolCancelledError: The call was cancelled or abandoned.
            ToolTimeoutError: The deadline of the call has passed.
        """
        if self.cancelled:
            raise ToolCancelledError(f"The call of {self.tool_name!r} was cancelled.")
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise ToolTimeoutError(f"The deadline of {self.tool_name!r} has passed.")

    @property
    def listening(self) -> bool:
        """Whether an event would reach a subscriber."""
        return bool(self.sinks)

    def emit(self, event: Event) -> None:
        """Deliver an event to the subscribers. It never blocks, and any thread can call it.

        The event gets the name, id and path of the call, the time, and its sequence number in the
        run. An event that another call has emitted keeps its origin. After the call has ended,
        events are dropped and counted.
        """
        if not self.sinks:
            return
        root = self._root or self._run_state()
        if has_secrets():
            event = mask_event(event)
        with root.lock:
            if self.filters:
                if event.origin is None:
                    event = event.stamped(self._origin or self._get_origin(), -1)
                for filtered in self._filtered(event, root):
                    self._deliver(filtered, root)
            else:
                self._deliver(event, root)

    def _deliver(self, event: Event, root: _RunState) -> None:
        """Number an event and pass it to the sinks; the lock of the run is held."""
        if root.is_delivering or self.is_over:
            root.dropped += 1  # emitted after the end of the call, or by a sink
            return
        origin, own, sinks = event.origin, self._origin or self._get_origin(), self.sinks
        if origin is None or origin is own:
            event = event.stamped(own, next(root.sequence))
        else:
            reached = origin.sinks  # the call that made the event has delivered it there
            sinks = tuple(sink for sink in sinks if sink not in reached)
            event = event.replace(seq=next(root.sequence))
        task = _current_task()
        cancellations = 0 if task is None else task.cancelling()
        root.is_delivering = True
        token = _is_delivering.set(True)
        try:
            for sink in sinks:
                try:
                    sink(event)
                except Exception:  # noqa: BLE001 - a failing subscriber must not fail the call
                    library_logger().exception(
                        "An event listener failed to process %r.", event.type
                    )
        finally:
            root.is_delivering = False
            _is_delivering.reset(token)
            if task is not None and (count := task.cancelling() - cancellations) > 0:
                for call in self.ancestors:
                    call.receiver_cancellations += count

    def _filtered(self, event: Event, root: _RunState) -> Iterable[Event]:
        """Return the events that the filters of the policies make of an event."""
        events = [event]
        try:
            for change in self.filters:
                events = [filtered for unfiltered in events for filtered in change(unfiltered)]
        except Exception:  # noqa: BLE001 - the event can hold values that the policy must hide
            library_logger().exception(
                "A policy failed to process %r; the content of the event was removed.", event.type
            )
            events = without_content(event)
            root.dropped += not events
        return events

    def notify(
        self, data: str, *, is_delta: bool = False, tag: str | None = None, level: Level = "info"
    ) -> None:
        """Emit a line of text; see `ToolContext.notify`."""
        if self.sinks:
            from agents_tools.events.kinds import NotifyStreamEvent

            self.emit(NotifyStreamEvent(data, is_delta=is_delta, tag=tag, level=level))

    def progress(
        self, current: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report the progress of the call; see `ToolContext.progress`."""
        if self.sinks:
            from agents_tools.events.kinds import ToolProgressEvent

            self.emit(ToolProgressEvent(current, total=total, message=message))

    def artifact(
        self,
        name: str,
        data: str | bytes | None = None,
        *,
        uri: str | None = None,
        mime_type: str | None = None,
    ) -> None:
        """Emit an artifact; see `ToolContext.artifact`."""
        if self.sinks:
            from agents_tools.events.kinds import ToolArtifactEvent

            self.emit(ToolArtifactEvent(name, data=data, uri=uri, mime_type=mime_type))

    async def ask(
        self, message: str, *, answer: Any = str, url: str | None = None, key: str | None = None
    ) -> Any:
        """Ask the user of the run a question; see `ToolContext.ask`."""
        from agents_tools.tool.question import ask_person

        return await ask_person(
            self.find_asker(),
            message,
            answer,
            tool_name=self.tool_name,
            tool_call_id=self.tool_call_id,
            path=self.path,
            url=url,
            key=key,
        )

    def note(self, name: str, value: object) -> None:
        """Add a value to the metadata of the outcome, which is not sent to the model."""
        call = self._first or self
        if call.notes is None:
            call.notes = {}
        call.notes[name] = value

    def _make_key(self) -> str:
        import uuid

        # The key of a call in a nested run is derived from the call around the run, because the
        # id of the nested run changes when the outer run continues in another process.
        parent = self._parent
        ordinals = ""
        while isinstance(parent, RunScope) and parent._parent is not None:
            ordinals = f"{parent.ordinal}{ordinals}"
            parent = parent._parent
        call_id = None if self._has_generated_id else self._call_id
        if parent is None or isinstance(parent, RunScope):
            run = self.run_id if parent is None else parent.run_id
            if call_id is None or (run is None and len(call_id) < _UNIQUE_LENGTH):
                call_id = uuid.uuid4().hex
            return call_id if run is None else f"{run}:{call_id}"
        return f"{parent.idempotency_key}{ordinals}/{call_id or parent._name_of(self)}"

    def _name_of(self, call: Call) -> str:
        """Return a name, unique among the calls that this one makes, for a call without an id."""
        from hashlib import sha256

        digest = sha256(call.sent.encode(errors="surrogatepass")).hexdigest()[:16]
        name = f"{call.tool_name}.{digest}"
        return f"{name}.{self._next_number(name)}"

    def _next_number(self, name: str) -> int:
        """Return how often this attempt of the call has used the name, this time included."""
        with self._run_state().lock:
            if self._key_counts is None:
                self._key_counts = {}
            number = self._key_counts[name] = self._key_counts.get(name, 0) + 1
        return number

    def find_asker(self) -> Callable[[Question], Any] | None:
        """Return the handler for questions of this call or of the nearest enclosing one."""
        call: Call | None = self
        while call is not None and call.asker is None:
            call = call._parent
        return None if call is None else call.asker

    def find_approver(self) -> Callable[[Call], Any] | None:
        """Return what decides about this call while the calls around it run, if anything does."""
        return next((call.approver for call in self.ancestors if call.approver is not None), None)

    def find_tool_state(self) -> ToolState | None:
        """Return the state of tools in this call: that of its run; `None` outside a run."""
        if self.tool_state is not None or self._parent is None:
            return self.tool_state
        return self._parent.find_tool_state()

    @property
    def scope(self) -> RunScope | None:
        """The run that the call belongs to; `None` outside a run."""
        parent = self._parent
        while parent is not None and not isinstance(parent, RunScope):
            parent = parent._parent
        return parent

    @property
    def parent(self) -> Call | None:
        """The call that made this one, or the scope of its run."""
        return self._parent

    async def record_remote(self, reference: Mapping[str, Any]) -> bool:
        """Record where the call continues outside of this process, if the process ends.

        If the run is resumed, `remote` of the call is this reference.

        Args:
            reference: What its tool needs to find it, as JSON.

        Returns:
            Whether it was recorded: the call belongs to a run with a log, and to no other call.
        """
        run = self._parent.run if isinstance(self._parent, RunScope) else None
        return run is not None and await run.record_remote(self.tool_call_id, reference)

    @property
    def remote(self) -> Mapping[str, Any] | None:
        """Where the call of an earlier process continues; `None` for other calls."""
        run = self._parent.run if isinstance(self._parent, RunScope) else None
        return None if run is None else run.remote_calls.get(self.tool_call_id)

    def forget_remote(self) -> None:
        """Forget `remote`: the tool has found the call, and further attempts begin again."""
        if isinstance(self._parent, RunScope) and self._parent.run is not None:
            self._parent.run.remote_calls.pop(self.tool_call_id, None)

    def _inherit_from(self, parent: Call) -> None:
        self._parent = parent
        if self.app_context is None:
            self.app_context = parent.app_context
        if self.usage is None:
            self.usage = parent.usage
        if self.agent is None:
            self.agent = parent.agent
        if self.run_id is None:
            self.run_id = parent.run_id
        if not self.sinks:
            self.sinks = parent.sinks
            self._channel = parent._channel
        if parent.filters:
            self.filters = parent.filters
        if parent.deadline is not None:
            deadline = self.deadline
            self.deadline = parent.deadline if deadline is None else min(deadline, parent.deadline)
        if self._context is not None:
            self._context.context, self._context.usage = self.app_context, self.usage

    def watch(self, channel: Channel) -> None:
        """Deliver the events of this call to a channel and to listeners, but not to its parent."""
        self._channel = channel
        self.sinks = (channel.push,)

    @property
    def channel(self) -> Channel | None:
        """The channel whose reader a tool waits for before it yields further events."""
        return self._channel

    def emit_blocking(self, event: Event) -> None:
        """Deliver an event from a worker thread, and block while the reader is too slow."""
        if (channel := self._channel) is not None:
            channel.wait_for_room_blocking()
        self.emit(event)

    @property
    def is_over(self) -> bool:
        """Whether the call or an enclosing call has ended."""
        if self._state == _ENDED:
            return True
        enclosing = self._first or self._parent
        return enclosing is not None and enclosing.is_over

    @property
    def ancestors(self) -> Iterator[Call]:
        """This call and the enclosing ones, from the inside out."""
        call: Call | None = self
        while call is not None:
            yield call._first or call
            call = call._parent

    def again(self, attempt: int) -> Call:
        """Return a record for another attempt of the call.

        Code that the previous attempt left running keeps the previous record, so it still sees
        that its attempt was cancelled.

        Args:
            attempt: The number of the attempt; 2 for the first retry.
        """
        if self._children is None:
            self._children = {}
        self._get_origin()
        call: Call = _new_call(Call)
        call.__dict__.update(self.__dict__)
        call._first = self._first or self
        call._root = self._run_state()
        call._context = None
        call._cancelled = False
        call._key_counts = None
        call.attempt = attempt
        return call

    def begin(self, start: Event | None, make_end: Callable[[CallStatus], Event] | None) -> None:
        """Emit the start event, and register the call with its parent.

        Args:
            start: The start event; `None` if the call has none.
            make_end: Creates the end event from the status of the call.
        """
        self._make_end = make_end
        with self._run_state().lock:  # the parent can end in another thread
            parent = self._parent
            if parent is not None and self.sinks:
                if parent._children is None:
                    parent._children = {}
                parent._children[self] = None
            if start is not None:
                self.emit(start)

    def end(self, status: CallStatus) -> None:
        """End the calls that this one left running as `lost`, then emit the end event.

        Ending a call twice has no effect.
        """
        if not self.sinks and self._children is None:
            self._state = _ENDED  # no event has a receiver, and no call inside it is registered
            return
        with self._run_state().lock:  # calls inside this one can begin or end in other threads
            if self._state == _ENDED:
                return
            for child in list(self._children or ()):
                child.end("lost")
            if self._make_end is not None and self.sinks:
                self.emit(self._make_end(status))
            self._state = _ENDED
            parent = self._parent
            if parent is not None and parent._children is not None:
                parent._children.pop(self, None)

    def cancel(self) -> None:
        """Mark the call as cancelled, for `cancelled` and `check`."""
        self._cancelled = True

    @property
    def dropped(self) -> int:
        """The number of dropped events of the run, such as those after the end of a call."""
        return self._run_state().dropped

    def _get_origin(self) -> Origin:
        if self._origin is None:
            from agents_tools.events.envelope import EventSource, Origin

            self._origin = Origin(
                self.tool_name,
                self.tool_call_id,
                self.path,
                EventSource.ENVIRONMENT,
                self.sinks,
            )
        return self._origin

    def _run_state(self) -> _RunState:
        if self._root is None:
            parent = self._parent
            self._root = _RunState() if parent is None else parent._run_state()
        return self._root


class RunScope(Call):
    """The record of a run, which is the parent of the records of its calls.

    Args:
        app_context: The application's object.
        agent: The agent that runs.
        run_id: The id of the run.
        usage: The usage of the run, updated while it runs.
        sinks: The functions that receive its events.
        channel: The channel whose reader streaming tools wait for.
        parent: The call in which the run was started; `None` for a run outside a call.
        deadline: The time by which the run must end, in seconds on the clock of
            `time.monotonic()`.
        asker: Handles the questions of tools.
        approver: Decides about calls that need approval inside the calls of the run.
        sampler: Answers the sampling requests of MCP servers: a function or a model.
        tool_state: The state of the tools of the run; by default its own, which `release` closes.
        run: The run, for runs that are started inside it.
    """

    def __init__(
        self,
        app_context: Any = None,
        *,
        agent: Any,
        run_id: str,
        usage: Usage,
        sinks: tuple[Emit, ...],
        channel: Channel | None,
        parent: Call | None,
        deadline: float | None,
        asker: Callable[[Question], Any] | None,
        approver: Callable[[Call], Any] | None = None,
        sampler: Any = None,
        tool_state: ToolState | None = None,
        run: Any,
    ) -> None:
        self.app_context = app_context
        self.agent = agent
        self.run_id = run_id
        self.usage = usage
        self._parent = parent
        if parent is not None:
            self.filters = parent.filters
        self._channel = channel
        self.sinks = sinks
        self.asker = asker
        self.approver = approver
        self.sampler = sampler
        self.tool_state = tool_state
        self._own_state: ToolState | None = None
        self._is_released = False
        self.run = run
        self.ordinal = ""  # distinguishes the idempotency keys of several runs in one call
        if parent is not None and (number := parent._next_number("")) > 1:
            self.ordinal = f"#{number}"
        self.deadline = deadline
        if parent is not None and parent.deadline is not None:
            self.deadline = parent.deadline if deadline is None else min(deadline, parent.deadline)
        self.begin(None, None)  # registers the run, so that the end of its parent ends it too

    @property
    def tool_call_id(self) -> str:
        """The id of the call in which the run was started; empty for a run outside a call."""
        return "" if self._parent is None else self._parent.tool_call_id

    @property
    def path(self) -> tuple[str, ...]:
        """The ids of the calls around the run; empty for a run outside a call."""
        return () if self._parent is None else self._parent.path

    @property
    def depth(self) -> int:
        """The number of runs around this one."""
        enclosing = self.scope
        return 0 if enclosing is None else enclosing.depth + 1

    async def is_handed_over(self) -> bool:
        """Return whether another process continues the run, so that its queued calls continue."""
        if self.run is not None and await self.run.is_handed_over():
            return True
        enclosing = self.scope
        return enclosing is not None and await enclosing.is_handed_over()

    def find_tool_state(self) -> ToolState:
        """Return the state of tools in this run; create it when it is first needed."""
        if self.tool_state is not None:
            return self.tool_state
        with self._run_state().lock:  # calls can begin in other threads
            if self._own_state is None:
                self._own_state = ToolState()
                if self._is_released:  # the caller outlived the run, and can create nothing
                    self._own_state.close()
        return self._own_state

    async def release(self) -> None:
        """Close the state of the tools, unless it is shared with other runs."""
        with self._run_state().lock:
            self._is_released = True
        if self._own_state is not None:
            await self._own_state.aclose()

    def close(self, last: Event) -> None:
        """End the calls that the run left running, emit the last event, and end the scope."""
        self._make_end = lambda _: last
        self.end("ok")

    def _get_origin(self) -> Origin:
        if self._origin is None:
            from agents_tools.events.envelope import EventSource, Origin

            call = self._parent
            self._origin = Origin(
                None if call is None else call.tool_name,
                None if call is None else call.tool_call_id,
                self.path,
                EventSource.AGENT,
                self.sinks,
            )
        return self._origin


_is_delivering: ContextVar[bool] = ContextVar("agents_tools_delivering", default=False)
_current: ContextVar[Call | None] = ContextVar("agents_tools_call", default=None)


enter_scope = _current.set
_get_current = _current.get
_new_call: Any = object.__new__


def leave_scope(token: Any) -> None:
    """Restore the record of the call around a call.

    A coroutine that is closed from another context has none to restore.
    """
    try:  # noqa: SIM105 - every call comes through here, and `suppress` is five times as slow
        _current.reset(token)
    except ValueError:
        pass


def _current_task() -> asyncio.Task[Any] | None:
    """Return the current task, also where no event loop runs."""
    module: Any = sys.modules.get("asyncio")  # a program that emits no events may not load it
    if module is None or (loop := module._get_running_loop()) is None:
        return None
    task: asyncio.Task[Any] | None = module.current_task(loop)
    return task


def current_call() -> Call | None:
    """Return the record of the running call, or `None` outside a tool."""
    return _current.get()


def without_names(values: Mapping[str, Any], names: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return arguments without some of them."""
    if not names:
        return values
    return {name: value for name, value in values.items() if name not in names}


def _is_call(value: object) -> TypeGuard[Call]:
    return isinstance(value, Call)
