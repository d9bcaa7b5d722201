"""The runtime itself."""

from __future__ import annotations

import asyncio
import difflib
import logging
from contextlib import suppress
from contextvars import copy_context
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, cast
from weakref import WeakSet

from pydantic_core import to_json

from agents_tools.classes.action import Observation
from agents_tools.classes.event_types import (
    AgentErrorObservation,
    CmdKillAction,
    CmdOutputObservation,
    ErrorObservation,
    MCPAction,
    ToolObservation,
    event_of,
    is_runnable,
    setup_script_action,
)
from agents_tools.concurrency.supervisor import GRACE, finish
from agents_tools.errors import AgentsToolsError, Interruption, UserError, UserValueError
from agents_tools.event_driven.runtime.dispatch import (
    HANDLERS,
    ActionHandler,
    RuntimeCall,
    content_of,
    in_time,
    of_mcp,
)
from agents_tools.event_driven.runtime.tools import RuntimeTools
from agents_tools.events.envelope import EventSource, Origin
from agents_tools.events.kinds import ActionEvent, ObservationEvent
from agents_tools.persistence import EventFilter, PendingFuture
from agents_tools.persistence.stream import EventStream, EventStreamSubscriber
from agents_tools.tool.context import ToolContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agents_tools.classes.action import Action
    from agents_tools.classes.registry import ToolRegistry
    from agents_tools.events.base import Event
    from agents_tools.tool.declaration import CallOutcome

    _Begun: TypeAlias = tuple[ActionEvent[Any], asyncio.Task[Observation], ToolContext[Any]]

__all__ = ["ToolRuntime"]

logger = logging.getLogger("agents_tools")

_MISTAKES = {"invalid_args", "denied"}
"""How a call ends by a mistake of the agent's, which it can correct."""
_GONE = "The action was stopped before it had a result."
_NOT_BEGUN = "The runtime was closed before it came to the action; nothing was done."
_LOST = (
    "The action has no result: what carried it out has ended before there was one. It may have "
    "been done, as a whole or in part."
)
_LOOKED_AT: Final = 10_000
"""Among how many of the last events lost actions are looked for."""
_ACTIONS: Final = EventFilter(types=(ActionEvent.type,))
_served: Final[WeakSet[EventStream]] = WeakSet()
"""The streams on which a runtime of this process works or has worked."""
_BOTH: Final = EventFilter(types=(ActionEvent.type, ObservationEvent.type))


class ToolRuntime:
    """Carries out the actions of a stream with tools, and publishes what they observe.

    It runs on the event loop that it is made in, or without one on the background loop that all
    synchronous calls share. What is no action, or not runnable, is passed over. Actions that
    another process has left without an observation are not carried out once more: they are `lost`.
    The first runtime of a stream carries out what was published there before it was made.

    Args:
        stream: Where actions come from, and observations go.
        tools: The tools: a registry, whose tools are made when they are first needed, or a list.
        max_parallel: How many actions are carried out at once. By default one after the other, in
            the order they were published: a command finds what the one before it has left.
        working_dir: Where tools that are made for the runtime work.
        context: What tools see as `ctx.context`.

    Raises:
        UserError: The stream is closed, or something given is no tool.
    """

    def __init__(
        self,
        stream: EventStream,
        tools: ToolRegistry | Iterable[Any],
        *,
        max_parallel: int = 1,
        working_dir: object = None,
        context: object = None,
    ) -> None:
        if max_parallel < 1:
            raise UserValueError(
                f"ToolRuntime(max_parallel=...) is at least 1, not {max_parallel}."
            )
        self._stream = stream
        self._tools = RuntimeTools(tools, working_dir)
        self._context = context
        self._places = asyncio.Semaphore(max_parallel)
        self._handlers = dict(HANDLERS)
        self._running: dict[int, _Begun] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._own = copy_context()
        self._closed = False
        is_first = stream not in _served  # others answer what they have begun
        self._end = stream.last_id
        self._seen = stream.first_id - 1 if is_first else self._end
        self._lock = Lock()  # of the two: what was seen before closing is answered by a task
        self._subscription = stream.subscribe(
            EventStreamSubscriber.RUNTIME,
            self._take,
            f"runtime-{id(self):x}",
            after=self._seen,
            where=_ACTIONS,
        )
        if is_first:
            _served.add(stream)
            self._look_back(stream.first_id)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.aclose()

    def handles(
        self,
        kind: type[Action] | str,
        tool_name: str,
        to_arguments: Callable[[Any], Mapping[str, Any]],
        to_observation: Callable[[Any, CallOutcome], Observation] | None = None,
    ) -> None:
        """Return which tool carries out a class of actions.

        Args:
            kind: The class, or its name.
            tool_name: The tool.
            to_arguments: Returns the arguments of the call for an action.
            to_observation: Returns the observation for the action and what came of the call; by
                default the tool's own, or a `ToolObservation`. A call that failed without an
                observation is not shown to it.
        """
        name = kind if isinstance(kind, str) else kind.__name__
        self._handlers[name] = ActionHandler(
            tool_name=tool_name, to_arguments=to_arguments, to_observation=to_observation
        )

    def run_setup_script(self, path: str, timeout: float = 600.0) -> Event:
        """Publish the action that runs a script in the session of the terminal, unseen.

        Args:
            path: The script.
            timeout: Seconds after which it is stopped.
        """
        action = setup_script_action(path, timeout)
        return self._stream.add_event(action, EventSource.ENVIRONMENT)

    def close(self) -> None:
        """Stop what runs, and let go of what was made.

        From another thread than that of its loop, it waits for that; on the loop itself, `await
        aclose()` does.
        """
        loop = self._leave()
        self._refuse_rest()
        if loop is not None and _current_loop() is loop:
            self._stopped(list(self._running))
            self._tools.close()
        elif loop is not None:
            with suppress(RuntimeError):  # the loop has ended, and all that ran on it
                asyncio.run_coroutine_threadsafe(self._stop(), loop).result()
        self._tools.close()

    async def aclose(self) -> None:
        """Stop what runs, wait for it, and let go of what was made."""
        loop = self._leave()
        await asyncio.to_thread(self._refuse_rest)
        if loop is not None:
            if _current_loop() is loop:
                await self._stop()
            else:
                stopping = asyncio.run_coroutine_threadsafe(self._stop(), loop)
                await asyncio.wrap_future(stopping)
        await asyncio.to_thread(self._tools.close)

    def _leave(self) -> asyncio.AbstractEventLoop | None:
        with self._lock:
            first, self._closed = not self._closed, True
            if first:
                self._end = self._stream.last_id
        if first:
            self._stream.unsubscribe(
                self._subscription.subscriber_id, self._subscription.callback_id
            )
        loop = self._loop
        return None if loop is None or loop.is_closed() else loop

    async def _stop(self) -> None:
        """Stop what runs; who does not listen is answered for, and watched by the supervisor."""
        tasks = self._stopped(list(self._running))
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE)
        await asyncio.sleep(0)  # what has ended just now is answered
        for event, task, context in list(self._running.values()):
            del self._running[event.id]
            self._say(event, ErrorObservation(_GONE, "cancelled"))
            await finish(task, name=context.tool_name, grace=0)

    # --- what was not carried out

    def _refuse_rest(self) -> None:
        """Answer the actions that were published before closing, and not begun."""
        start, self._seen = self._seen + 1, self._end
        for said in self._stream.get_events(start, self._end, filter=_ACTIONS):
            event = cast("ActionEvent[Any]", said)
            if is_runnable(event):
                self._say(event, ErrorObservation(_NOT_BEGUN, "cancelled"))

    def _look_back(self, before: int) -> None:
        """Find the actions that another process has left, in the background."""
        store = self._stream.store
        if store is None or before == 0:
            return

        def read(_: PendingFuture[None]) -> None:
            found = store.read(before=before, where=_BOTH, limit=_LOOKED_AT, reverse=True)
            found.add_done_callback(self._answer_lost)

        self._stream.flush().add_done_callback(read)

    def _answer_lost(self, found: PendingFuture[list[Event]]) -> None:
        if found.error() is not None:
            logger.warning("Lost actions could not be looked for: %s", found.error())
            return
        events = found.result()
        answered = {event.cause for event in events if isinstance(event, ObservationEvent)}
        for event in reversed(events):
            if isinstance(event, ActionEvent) and event.id not in answered:
                action = cast("ActionEvent[Any]", event)
                if is_runnable(action):
                    self._say(action, ErrorObservation(_LOST, "lost"))

    # --- actions

    async def _take(self, said: Event) -> None:
        event = cast("ActionEvent[Any]", said)
        with self._lock:
            if self._closed:
                return
            self._seen = event.id
        if not is_runnable(event):
            return
        self._loop = asyncio.get_running_loop()
        if event.kind == CmdKillAction.__name__:
            self._say(event, self._killed(event))
            return
        context = self._context_of(event)
        task = self._loop.create_task(
            self._carry_out(event, context), name=f"action {event.id}", context=self._own.copy()
        )
        self._running[event.id] = (event, task, context)
        task.add_done_callback(lambda task: self._has_ended(event, task))

    async def _carry_out(self, event: ActionEvent[Any], context: ToolContext[Any]) -> Observation:
        async with self._places:
            return await self._observed(event, context)

    def _has_ended(self, event: ActionEvent[Any], task: asyncio.Task[Observation]) -> None:
        """Publish the one observation of an action, however it ended."""
        if self._running.pop(event.id, None) is None:  # it was answered for
            return
        if task.cancelled():
            self._say(event, ErrorObservation(_GONE, "cancelled"))
        elif (error := task.exception()) is not None:
            logger.error("Action %d failed.", event.id, exc_info=error)
            self._say(event, ErrorObservation(f"{type(error).__name__}: {error}", "error"))
        else:
            self._say(event, task.result())

    async def _observed(self, event: ActionEvent[Any], context: ToolContext[Any]) -> Observation:
        """Carry an action out; what goes wrong is an observation too."""
        try:
            call = self._call_for(event)
        except AgentsToolsError as error:
            return AgentErrorObservation(str(error), "invalid_action")
        context.tool_name = call.tool.name
        try:
            outcome = await call.tool.call(context, to_json(dict(call.arguments)).decode())
        except Interruption:
            text = f"Tool {call.tool.name!r} needs an approval, and nobody can be asked here."
            return AgentErrorObservation(text, "denied")
        return self._observation(call, outcome)

    def _call_for(self, event: ActionEvent[Any]) -> RuntimeCall:
        """Find the tool for an action, and what it is called with.

        Raises:
            UserError: There is none, or the action cannot be read.
        """
        handler = self._handlers.get(event.kind)
        if handler is not None:
            action = event.value
            tool = self._tools.named(handler.tool_name)
            if tool is None:
                raise UserError(self._unknown(handler.tool_name, f" for a {event.kind}"))
            arguments = {
                name: value
                for name, value in handler.to_arguments(action).items()
                if value is not None
            }
            return RuntimeCall(in_time(tool, action), arguments, action, handler.to_observation)
        if event.kind == MCPAction.__name__:
            action = cast("MCPAction", event.value)
            tool = self._tools.remote(action.server, action.name)
            if tool is None:
                raise UserError(self._unknown(action.name, " of an MCP server"))
            return RuntimeCall(in_time(tool, action), action.arguments, action, of_mcp)
        tool = self._tools.named(event.kind) or self._tools.for_kind(event.kind)
        if tool is None:
            raise UserError(self._unknown(event.kind, ""))
        return RuntimeCall(tool, event.action)

    def _unknown(self, name: str, what: str) -> str:
        known = self._tools.names()
        near = difflib.get_close_matches(name, [*known, *self._handlers], 3, 0.5)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        return f"There is no tool {name!r:.100}{what}.{hint} Tools: {', '.join(known) or 'none'}."

    def _observation(self, call: RuntimeCall, outcome: CallOutcome) -> Observation:
        seen = outcome.value
        if outcome.status != "ok" and not isinstance(seen, Observation):
            text = outcome.output or str(outcome.error or outcome.status)
            kind = AgentErrorObservation if outcome.status in _MISTAKES else ErrorObservation
            return kind(content_of(text), outcome.status)
        if call.to_observation is not None:
            try:
                return call.to_observation(call.action, outcome)
            except Exception as error:  # the action has its one observation, whatever a user wrote
                logger.exception("The observation of a %s failed.", type(call.action).__name__)
                return ErrorObservation(f"{type(error).__name__}: {error}", "to_observation")
        if isinstance(seen, Observation):
            return seen
        return ToolObservation(content_of(outcome.output), call.tool.name)

    # --- the stream

    def _context_of(self, event: ActionEvent[Any]) -> ToolContext[Any]:
        """Make the context of a call: what is said in it is published at once, with its path."""
        above: ToolContext[Any] | None = None
        for call_id in event.path:
            above = ToolContext(tool_call_id=call_id, parent=above)

        def publish(said: Event) -> None:
            self._stream.publish(said if said.cause is not None else said.replace(cause=event.id))

        call_id = event.tool_call_id or f"action_{event.id}"
        return ToolContext(self._context, tool_call_id=call_id, emit=publish, parent=above)

    def _say(self, event: ActionEvent[Any], observation: Observation) -> None:
        hidden = event.hidden or None
        try:
            said = event_of(observation, hidden=hidden)
        except Exception as error:  # what a tool or a mapping gave is none, or has no JSON form
            logger.exception("The observation of action %d cannot be published.", event.id)
            text = f"{type(error).__name__}: {error}"
            said = event_of(ErrorObservation(text, "observation"), hidden=hidden)
        source = EventSource.ENVIRONMENT
        origin = Origin(event.tool_name, event.tool_call_id, event.path, source)
        with suppress(UserError):  # a stream that was closed before its runtime
            self._stream.publish(said.replace(cause=event.id, origin=origin))

    def _killed(self, event: ActionEvent[Any]) -> Observation:
        wanted = event.action.get("action_id")
        ids = [one for one in self._running if wanted is None or one == wanted]
        self._stopped(ids)
        if ids or wanted is None:
            return CmdOutputObservation(f"Stopped: {', '.join(map(str, ids)) or 'nothing runs'}.")
        running = ", ".join(map(str, self._running)) or "none"
        return AgentErrorObservation(
            f"Action {wanted} does not run. Running are: {running}.", "invalid_action"
        )

    def _stopped(self, ids: Iterable[int]) -> list[asyncio.Task[Any]]:
        """Stop actions; code in threads sees that no one waits for it."""
        tasks: list[asyncio.Task[Any]] = []
        for one in ids:
            _, task, context = self._running[one]
            context.cancel()
            task.cancel()
            tasks.append(task)
        return tasks


def _current_loop() -> asyncio.AbstractEventLoop | None:
    with suppress(RuntimeError):
        return asyncio.get_running_loop()
    return None
