"""What one call sees (the user's context, ids, arguments, deadline) and says (events)."""

from __future__ import annotations

import itertools
import threading
import time
import types
import typing
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic

from agents_tools._channel import listeners
from agents_tools._secrets import guard_logs, has_secrets, mask_json, mask_registered
from agents_tools.errors import ToolCancelledError, ToolTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from typing_extensions import TypeVar

    from agents_tools._channel import Channel
    from agents_tools.events import CallStatus, Emit, Event, Level, Origin
    from agents_tools.usage import Usage

    ContextT = TypeVar("ContextT", default=Any)
    Veil = Callable[["ToolContext[Any]", Event], Iterable[Event]]
    """Gives what may be heard of an event, and what was held back and is due before it."""
else:  # defaults of type variables are for type checkers; they come with a heavier import
    from typing import TypeVar

    ContextT = TypeVar("ContextT")

__all__ = [
    "Question",
    "RunContextWrapper",
    "RunScope",
    "ToolContext",
    "artifact",
    "current_context",
    "is_context_annotation",
    "notify",
    "progress",
    "track",
]

ItemT = TypeVar("ItemT")


class RunContextWrapper(Generic[ContextT]):
    """What the application gives to a run, as tools see it.

    Attributes:
        context: Any object of the application's; never shown to a model.
        usage: What the run has used so far; `None` outside a run.
    """

    def __init__(self, context: ContextT = None, usage: Usage | None = None) -> None:  # type: ignore[assignment]
        self.context = context
        self.usage = usage


class _Root:
    """What all calls of one run share: the count of its events, and the lock that orders them."""

    __slots__ = ("delivering", "dropped", "lock", "sequence", "unveiled")

    def __init__(self) -> None:
        self.sequence = itertools.count()
        self.lock = threading.RLock()
        self.delivering = False  # only looked at with the lock held, as is the next one
        self.unveiled = False
        self.dropped = 0


_ids = itertools.count(1)
_UNIQUE = 16
"""From this length on, the id of a call is taken to be of no other call."""
_FRESH, _RUNNING, _ENDED = range(3)


class ToolContext(RunContextWrapper[ContextT]):
    """One call of a tool: what it may know, and its voice.

    A parameter annotated with this class, or with `RunContextWrapper`, receives it.

    Attributes:
        context: The application's own object.
        usage: What the run has used so far; `None` outside a run.
        agent: The agent that called; `None` outside a run.
        run_id: The run's id; `None` outside a run.
        tool_name: The name of the tool.
        arguments_json: The arguments as the model sent them.
        deadline: When the call has to be over, on the clock of `time.monotonic()`; `None`
            when it may take its time.
        attempt: 1 for the first try of the call, one more for each retry.
        security_risk: How risky the model says the call is, below `policies.security_risk()`.
    """

    # Defaults of the class: a call sets only what differs, which keeps a bare call cheap.
    context: ContextT = None  # type: ignore[assignment]
    usage: Usage | None = None
    agent: Any = None
    run_id: str | None = None
    tool_name: str = ""
    arguments_json: str = ""
    deadline: float | None = None
    attempt: int = 1
    security_risk: str = "UNKNOWN"
    validated: bool = False
    admitted: bool = False
    refusal: Exception | None = None
    decision: Any = None
    resumed: Any = None
    tool: Any = None
    notes: dict[str, Any] | None = None
    veils: tuple[Veil, ...] = ()
    asker: Callable[[Question], Any] | None = None
    outcome: Any = None  # how the call ended, for those who hear its end while they hear it
    _call_id: str | None = None
    _made_up: bool = False
    _key: str | None = None
    _keyed: dict[str, int] | None = None
    _parent: ToolContext[Any] | None = None
    _cancelled: bool = False
    _origin: Origin | None = None
    _root: _Root | None = None
    _channel: Channel | None = None
    _children: dict[ToolContext[Any], None] | None = None
    _first: ToolContext[Any] | None = None
    _make_end: Callable[[CallStatus], Event] | None = None
    _state: int = _RUNNING
    sinks: tuple[Emit, ...] = ()

    def __init__(
        self,
        context: ContextT = None,  # type: ignore[assignment]
        *,
        tool_name: str = "",
        tool_call_id: str | None = None,
        arguments_json: str = "",
        agent: Any = None,
        run_id: str | None = None,
        usage: Usage | None = None,
        deadline: float | None = None,
        emit: Emit | None = None,
        parent: ToolContext[Any] | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        super().__init__(context, usage)
        self._key = idempotency_key
        self.agent = agent
        self.run_id = run_id
        self.tool_name = tool_name
        self.arguments_json = arguments_json
        self.deadline = deadline
        self._call_id = tool_call_id
        self._parent = parent
        self._state = _FRESH
        if parent is not None:
            self.veils = parent.veils
        if emit is not None:
            self.sinks = (emit,)

    @property
    def tool_call_id(self) -> str:
        """The id of the call: the model's, or one made up for a call that has none."""
        if self._call_id is None:
            self._call_id = f"call_{next(_ids)}"
            self._made_up = True
        return self._call_id

    @property
    def idempotency_key(self) -> str:
        """A name for what this call is to do, for services that do the same thing only once.

        It is the same for all attempts of a call, also when its run goes on in another process,
        and no other call has it. A call that another tool makes is told from its siblings by its
        tool, its arguments and how many of those came before.
        """
        call = self._first or self
        if call._key is None:
            call._key = call._make_key()
        return call._key

    @property
    def path(self) -> tuple[str, ...]:
        """The ids of the calls this one runs in, outermost first, its own last."""
        parent = self._parent
        return (self.tool_call_id,) if parent is None else (*parent.path, self.tool_call_id)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments as the model sent them, as plain JSON values; empty if they are none."""
        return _json_object(self.arguments_json)

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more. Long loops in sync tools look at it."""
        parent = self._parent
        return self._cancelled or (parent is not None and parent.cancelled)

    def check(self) -> None:
        """Stop here if nobody waits for the result any more.

        Raises:
            ToolCancelledError: The call was cancelled or abandoned.
            ToolTimeoutError: Its deadline has passed.
        """
        if self.cancelled:
            raise ToolCancelledError(f"The call of {self.tool_name!r} was cancelled.")
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise ToolTimeoutError(f"The deadline of {self.tool_name!r} has passed.")

    @property
    def listening(self) -> bool:
        """Whether anybody would receive an event."""
        return bool(self.sinks)

    def emit(self, event: Event) -> None:
        """Say something: deliver an event to whoever watches. Never waits; any thread may call.

        The event is stamped with the call's name, id and path, the time, and its place in the
        run. An event of another call keeps what it carries. After the call has ended, events
        are dropped and counted.
        """
        sinks = self.sinks
        if not sinks:
            return
        root = self._root or self._shared_root()
        if has_secrets():
            event = _without_secrets(event)
        with root.lock:
            if self.veils and not root.unveiled:
                self._emit_veiled(event, root)
                return
            above = self._first or self._parent
            if root.delivering or self._state == _ENDED or (above is not None and above.over):
                root.dropped += 1  # too late, or said by somebody who should only listen
                return
            if event.origin is None:
                event = event.stamped(self._origin or self._own_origin(), next(root.sequence))
            else:
                heard = event.origin.sinks  # from the call that made it
                sinks = tuple(sink for sink in sinks if sink not in heard)
                event = event.replace(seq=next(root.sequence))
            root.delivering = True
            try:
                for sink in sinks:
                    try:
                        sink(event)
                    except Exception:  # noqa: BLE001 - whoever listens never breaks a call
                        _log().exception("A listener failed on %r.", event.type)
            finally:
                root.delivering = False

    def _emit_veiled(self, event: Event, root: _Root) -> None:
        """Deliver what the policies around the call make of an event."""
        events = [event]
        try:
            for veil in self.veils:
                events = [seen for one in events for seen in veil(self, one)]
        except Exception:  # noqa: BLE001 - better unheard than heard by those who should not
            _log().exception("A policy failed on %r; what it says is left out.", event.type)
            events = _bare(event)
            root.dropped += not events
        root.unveiled = True
        try:
            for one in events:
                self.emit(one)
        finally:
            root.unveiled = False

    def notify(
        self, data: str, *, is_delta: bool = False, tag: str | None = None, level: Level = "info"
    ) -> None:
        """Say a line, or with `is_delta` the next piece of one.

        Args:
            data: The text.
            is_delta: Whether it continues the text of the delta before it.
            tag: A word of the application's own for its user interface.
            level: `debug`, `info`, `warning` or `error`.
        """
        if self.sinks:
            from agents_tools.events import NotifyStreamEvent

            self.emit(NotifyStreamEvent(data, is_delta=is_delta, tag=tag, level=level))

    def progress(
        self, current: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Say how far the work is.

        Args:
            current: What is done, in any unit.
            total: All there is to do, in the same unit; `None` when nobody knows.
            message: What is being done.
        """
        if self.sinks:
            from agents_tools.events import ToolProgressEvent

            self.emit(ToolProgressEvent(current, total=total, message=message))

    def artifact(
        self,
        name: str,
        data: str | bytes | None = None,
        *,
        uri: str | None = None,
        mime_type: str | None = None,
    ) -> None:
        """Hand over something the work has made: a file, an image, a table.

        Args:
            name: What it is called.
            data: The thing itself.
            uri: Where it is, instead of `data`.
            mime_type: Its media type, such as `image/png`.
        """
        if self.sinks:
            from agents_tools.events import ToolArtifactEvent

            self.emit(ToolArtifactEvent(name, data=data, uri=uri, mime_type=mime_type))

    async def ask(self, message: str, *, answer: Any = str) -> Any:
        """Ask the person behind the run, and wait for the answer.

        Args:
            message: The question.
            answer: The type of the answer: `str`, `bool`, a `Literal`, a pydantic model …

        Returns:
            The answer, of that type.

        Raises:
            ToolDeniedError: Nobody is there to ask (see `RunConfig.ask`), or the person declined.
        """
        from agents_tools.errors import ToolDeniedError

        asker = self.find_asker()
        if asker is None:
            raise ToolDeniedError(
                f"Tool {self.tool_name!r} has a question and nobody is there to answer it: "
                f"{message}"
            )
        from pydantic import TypeAdapter, ValidationError

        adapter: TypeAdapter[Any] = TypeAdapter(answer)
        given = asker(
            Question(message, adapter.json_schema(), self.tool_name, self.tool_call_id, self.path)
        )
        if hasattr(given, "__await__"):
            given = await given
        if given is None:
            raise ToolDeniedError(f"The person did not want to answer: {message}")
        try:
            return adapter.validate_python(given)
        except ValidationError as error:
            faults = "; ".join(fault["msg"] for fault in error.errors(include_url=False)[:3])
            raise ToolDeniedError(f"The answer to {message!r} does not fit: {faults}.") from None

    # What follows is for the framework: the life of a call.

    def note(self, name: str, value: Any) -> None:
        """Add a fact about the call to the metadata of its outcome, where only programs see it."""
        call = self._first or self
        if call.notes is None:
            call.notes = {}
        call.notes[name] = value

    def _make_key(self) -> str:
        import uuid

        above = self._parent
        runs = ""
        while isinstance(above, RunScope) and above._parent is not None:
            runs = f"{above.ordinal}{runs}"
            above = above._parent  # of a run in a call, the call is what stays the same
        given = None if self._made_up else self._call_id
        if above is None or isinstance(above, RunScope):
            run = self.run_id if above is None else above.run_id
            if given is None or (run is None and len(given) < _UNIQUE):
                given = uuid.uuid4().hex
            return given if run is None else f"{run}:{given}"
        return f"{above.idempotency_key}{runs}/{given or above._number(self)}"

    def _number(self, call: ToolContext[Any]) -> str:
        """Tell a call that has no id of its own from the others that this one makes."""
        from hashlib import sha256

        digest = sha256(call.arguments_json.encode(errors="surrogatepass")).hexdigest()[:16]
        name = f"{call.tool_name}.{digest}"
        return f"{name}.{self._count(name)}"

    def _count(self, name: str) -> int:
        """Count what this attempt of the call does under that name."""
        with self._shared_root().lock:
            if self._keyed is None:
                self._keyed = {}
            number = self._keyed[name] = self._keyed.get(name, 0) + 1
        return number

    def find_asker(self) -> Callable[[Question], Any] | None:
        """Give who takes questions: of the call itself, or of the nearest one around it."""
        return next((one.asker for one in self.ancestors if one.asker is not None), None)

    @property
    def scope(self) -> RunScope[Any] | None:
        """The run that the call belongs to; `None` outside a run."""
        above = self._parent
        while above is not None and not isinstance(above, RunScope):
            above = above._parent
        return above

    @property
    def parent(self) -> ToolContext[Any] | None:
        """What the call stands directly below: the call that made it, or the scope of its run."""
        return self._parent

    @staticmethod
    def fresh_for(given: Any) -> ToolContext[Any]:
        """Give a context that no call has used yet, with the application's object of `given`."""
        if _is_call(given) and given._state == _FRESH:
            return given
        return ToolContext(getattr(given, "context", None), usage=getattr(given, "usage", None))

    @staticmethod
    def enter(given: Any, tool_name: str, args_json: str) -> ToolContext[Any]:
        """Give the context that a new call runs in.

        A context made for this call is used as it is. Otherwise the call gets one of its own: below
        the call that it is made from, in whose voice its events travel, and with the application's
        object of the wrapper that was handed in.
        """
        parent = _get_current()
        heard = listeners()
        if given is None and parent is None and not heard:
            context = _new_context(ToolContext)
            context.tool_name = tool_name
            context.arguments_json = args_json
            return context
        if _is_call(given) and given._state == _FRESH:
            context = given
            context._state = _RUNNING
            parent = context._parent or parent
        else:
            context = _new_context(ToolContext)
            if parent is None and _is_call(given):
                parent = given
            if given is not None:
                context.context = given.context
                context.usage = given.usage
        context.tool_name = tool_name
        context.arguments_json = args_json
        if parent is not None:
            context._put_below(parent)
        if heard:
            context.sinks += tuple(sink for sink in heard if sink not in context.sinks)
        return context

    def _put_below(self, parent: ToolContext[Any]) -> None:
        self._parent = parent
        if self.context is None:
            self.context = parent.context
        if self.usage is None:
            self.usage = parent.usage
        if self.agent is None:
            self.agent = parent.agent
        if self.run_id is None:
            self.run_id = parent.run_id
        if not self.sinks:
            self.sinks = parent.sinks
            self._channel = parent._channel
        if parent.veils:
            self.veils = parent.veils
        if parent.deadline is not None:
            own = self.deadline
            self.deadline = parent.deadline if own is None else min(own, parent.deadline)

    def watch(self, channel: Channel) -> None:
        """Send the events of this call to a channel and to listeners, but not to its parent."""
        self._channel = channel
        self.sinks = (channel.push,)

    @property
    def channel(self) -> Channel | None:
        """Where a tool that yields its events may have to wait for their reader."""
        return self._channel

    def say_blocking(self, event: Event) -> None:
        """Deliver an event from a worker thread that waits with it: a slow reader slows it down."""
        if (channel := self._channel) is not None:
            channel.room_blocking()
        self.emit(event)

    @property
    def over(self) -> bool:
        """Whether the call has ended, or one that it runs in."""
        if self._state == _ENDED:
            return True
        above = self._first or self._parent
        return above is not None and above.over

    @property
    def ancestors(self) -> Iterator[ToolContext[Any]]:
        """The calls this one runs in, its own first."""
        context: ToolContext[Any] | None = self
        while context is not None:
            yield context._first or context
            context = context._parent

    def again(self, attempt: int) -> ToolContext[Any]:
        """Give the same call one more try: a context that no earlier try's end has touched.

        What the earlier try left running keeps its own context, and sees there that nobody
        waits for it.
        """
        if self._children is None:
            self._children = {}
        self._own_origin()
        context: ToolContext[Any] = _new_context(ToolContext)
        context.__dict__.update(self.__dict__)
        context._first = self._first or self
        context._root = self._shared_root()
        context._cancelled = False
        context._keyed = None
        context.validated = False
        context.attempt = attempt
        return context

    def begin(self, start: Event | None, make_end: Callable[[CallStatus], Event] | None) -> None:
        """Start the life of the call.

        Args:
            start: Its start event, where it has one.
            make_end: Makes its end event from the status it ended with.
        """
        self._make_end = make_end
        parent = self._parent
        if parent is not None and self.sinks:
            if parent._children is None:
                parent._children = {}
            parent._children[self] = None
        if start is not None:
            self.emit(start)

    def end(self, status: CallStatus) -> None:
        """End the life of the call: first of the calls that it left running, then its own."""
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
        """Let the code of the tool see that nobody waits for it."""
        self._cancelled = True

    @property
    def dropped(self) -> int:
        """How many events of the run came too late, after the end of their call."""
        return self._shared_root().dropped

    def _own_origin(self) -> Origin:
        if self._origin is None:
            from agents_tools.events import EventSource, Origin

            self._origin = Origin(
                self.tool_name,
                self.tool_call_id,
                self.path,
                EventSource.ENVIRONMENT,
                self.sinks,
            )
        return self._origin

    def _shared_root(self) -> _Root:
        if self._root is None:
            parent = self._parent
            self._root = _Root() if parent is None else parent._shared_root()
        return self._root


class Question(typing.NamedTuple):
    """What a tool asks the person behind a run."""

    message: str
    """The question."""
    schema: dict[str, Any]
    """The JSON Schema of the answer."""
    tool_name: str
    """The tool that asks."""
    tool_call_id: str
    """The call that asks."""
    path: tuple[str, ...]
    """The ids of the calls around the question, outermost first, its own last."""


class RunScope(ToolContext[ContextT]):
    """The place and the voice of one run: what its calls stand below, though it is no call.

    Args:
        context: The application's object.
        agent: The agent that runs.
        run_id: The id of the run.
        usage: What the run uses.
        sinks: Who hears its events.
        channel: Where what yields its events waits for their reader.
        parent: The call that the run is made in.
        deadline: When the run has to be over, on the clock of `time.monotonic()`.
        asker: Takes the questions of tools.
        sampler: Takes the requests of MCP servers for the answer of a model.
        run: The run itself, for runs inside it.
    """

    def __init__(
        self,
        context: ContextT = None,  # type: ignore[assignment]
        *,
        agent: Any,
        run_id: str,
        usage: Usage,
        sinks: tuple[Emit, ...],
        channel: Channel | None,
        parent: ToolContext[Any] | None,
        deadline: float | None,
        asker: Callable[[Question], Any] | None,
        sampler: Callable[[Mapping[str, Any], ToolContext[Any] | None], Any] | None = None,
        run: Any,
    ) -> None:
        super().__init__(context, agent=agent, run_id=run_id, usage=usage, parent=parent)
        self._state = _RUNNING
        self._channel = channel
        self.sinks = sinks
        self.asker = asker
        self.sampler = sampler
        self.run = run
        self.ordinal = ""  # what tells the keys of the second run in a call from those of the first
        if parent is not None and (number := parent._count("")) > 1:
            self.ordinal = f"#{number}"
        self.deadline = deadline
        if parent is not None and parent.deadline is not None:
            self.deadline = parent.deadline if deadline is None else min(deadline, parent.deadline)
        self.begin(None, None)  # a call that ends early ends the runs that it has left as well

    @property
    def tool_call_id(self) -> str:
        """The id of the call that the run is made in; empty for a run of its own."""
        return "" if self._parent is None else self._parent.tool_call_id

    @property
    def path(self) -> tuple[str, ...]:
        """The ids of the calls around the run; empty for a run of its own."""
        return () if self._parent is None else self._parent.path

    @property
    def depth(self) -> int:
        """How many runs this one is made in."""
        above = self.scope
        return 0 if above is None else above.depth + 1

    def close(self, last: Event) -> None:
        """End what the run has left running, say the last event, and hear nothing more of it."""
        for child in list(self._children or ()):
            child.end("lost")
        self.emit(last)
        self.end("ok")

    def _own_origin(self) -> Origin:
        if self._origin is None:
            from agents_tools.events import EventSource, Origin

            call = self._parent
            self._origin = Origin(
                None if call is None else call.tool_name,
                None if call is None else call.tool_call_id,
                self.path,
                EventSource.AGENT,
                self.sinks,
            )
        return self._origin


_current: ContextVar[ToolContext[Any] | None] = ContextVar("agents_tools_call", default=None)


enter_scope = _current.set
_get_current = _current.get
_new_context: Any = object.__new__


def leave_scope(token: Any) -> None:
    """Leave the scope of a call; one that is closed from elsewhere has none to leave."""
    try:  # noqa: SIM105 - every call comes through here, and `suppress` is five times as slow
        _current.reset(token)
    except ValueError:
        pass


def current_context() -> ToolContext[Any] | None:
    """Give the context of the call that is running here, or `None` outside a tool."""
    return _current.get()


def notify(
    data: str, *, is_delta: bool = False, tag: str | None = None, level: Level = "info"
) -> None:
    """Say a line from inside a tool, wherever in its code; see `ToolContext.notify`."""
    if (context := _current.get()) is not None:
        context.notify(data, is_delta=is_delta, tag=tag, level=level)


def progress(current: float, total: float | None = None, message: str | None = None) -> None:
    """Say how far the work of the running tool is; see `ToolContext.progress`."""
    if (context := _current.get()) is not None:
        context.progress(current, total, message)


def artifact(
    name: str,
    data: str | bytes | None = None,
    *,
    uri: str | None = None,
    mime_type: str | None = None,
) -> None:
    """Hand over something the running tool has made; see `ToolContext.artifact`."""
    if (context := _current.get()) is not None:
        context.artifact(name, data, uri=uri, mime_type=mime_type)


def track(
    items: Iterable[ItemT], *, total: float | None = None, message: str | None = None
) -> Iterator[ItemT]:
    """Go through items and report the progress of the running tool after each.

    Args:
        items: What to go through.
        total: How many there are; `len(items)` where it has one.
        message: What is being done.
    """
    if total is None and hasattr(items, "__len__"):
        total = len(typing.cast("list[ItemT]", items))
    for done, item in enumerate(items, start=1):
        yield item
        progress(done, total, message)


def _is_call(value: object) -> typing.TypeGuard[ToolContext[Any]]:
    return isinstance(value, ToolContext)


def is_context_annotation(annotation: Any) -> bool:
    """Whether a parameter with this annotation receives the context of the call."""
    while (origin := typing.get_origin(annotation)) is not None:
        if origin in {typing.Union, types.UnionType}:
            arms = [arm for arm in typing.get_args(annotation) if arm is not types.NoneType]
            return bool(arms) and all(map(is_context_annotation, arms))
        annotation = typing.get_args(annotation)[0] if origin is typing.Annotated else origin
    return isinstance(annotation, type) and issubclass(annotation, RunContextWrapper)


def _bare(event: Event) -> list[Event]:
    """Give what is left of an event without what anybody has put in it: that a call begins or ends.

    Whoever watches waits for the end of each call, so that has to be heard in any case.
    """
    from agents_tools.events import RunFinishedEvent, ToolStreamEndEvent, ToolStreamStartEvent

    match event:
        case ToolStreamStartEvent():
            return [event.replace(input_args={})]
        case RunFinishedEvent():
            return [event.replace(output=None, error=None)]
        case ToolStreamEndEvent():
            return [event]
        case _:
            return []


def _without_secrets(event: Event) -> Event:
    """Mask the registered secrets in what an event says."""
    if event.origin is not None:
        return event
    changes: dict[str, Any] = {}
    for field in typing.cast("Any", event).__event_slots__:
        value = getattr(event, field.name) if field.shape is not None else None
        if isinstance(value, str):
            changes[field.name] = mask_registered(value)
        elif isinstance(value, (dict, list)):
            changes[field.name] = mask_json(value)
    return event.replace(**changes) if changes else event


def _log() -> Any:
    import logging

    guard_logs()
    return logging.getLogger("agents_tools")


def _json_object(text: str) -> Mapping[str, Any]:
    from pydantic_core import from_json

    from agents_tools._json import check_bounds

    try:
        check_bounds(text)
        value = from_json(text)
    except (TypeError, ValueError):  # the former for half of a surrogate pair
        return {}
    return typing.cast("dict[str, Any]", value) if isinstance(value, dict) else {}
