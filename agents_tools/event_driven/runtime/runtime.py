"""`ToolRuntime`, which executes the actions of a stream."""

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
from agents_tools.events.kinds import ActionEvent, ObservationEvent, RunItemStreamEvent
from agents_tools.persistence import EventFilter, PendingFuture
from agents_tools.persistence.stream import EventStream, EventStreamSubscriber
from agents_tools.tool.context import ToolContext, call_of
from agents_tools.tool.records import Decision

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agents_tools.classes.action import Action
    from agents_tools.classes.registry import ToolRegistry
    from agents_tools.events.base import Event
    from agents_tools.tool.records import CallOutcome

    _RunningAction: TypeAlias = tuple[ActionEvent[Any], asyncio.Task[Observation], ToolContext[Any]]

__all__ = ["ToolRuntime"]

logger = logging.getLogger("agents_tools")

_CORRECTABLE = {"invalid_args", "denied"}
"""The statuses of calls that failed because of an error that the agent can correct."""
_STOPPED = "The action was stopped before it had a result."
_NOT_STARTED = "The runtime was closed before it started the action. Nothing was run."
_LOST = (
    "The action has no result: its runtime ended before there was one. The action possibly took "
    "effect, wholly or in part."
)
_SEARCHED_EVENTS: Final = 10_000
"""The number of most recent events that are searched for lost actions."""
_ACTIONS: Final = EventFilter(types=(ActionEvent.type,))
_served: Final[WeakSet[EventStream]] = WeakSet()
"""The streams that have or had a runtime in this process."""
_ITEMS: Final = EventFilter(types=(RunItemStreamEvent.type,))
_BOTH: Final = EventFilter(types=(ActionEvent.type, ObservationEvent.type))


class ToolRuntime:
    """Executes the actions of a stream with tools, and publishes their observations.

    It runs on the event loop in which it is created, or, without one, on the background loop that
    all synchronous calls share. Events that are not runnable actions are ignored. Actions that
    another process has left without an observation are not executed again; their observation is an
    error `lost`. The first runtime of a stream also executes the actions that were published in
    this process before its creation.

    Args:
        stream: The stream of the actions and observations.
        tools: A registry, whose tools are created when they are first needed, or a list of tools.
        max_parallel: The maximum number of actions that run at once. By default they run one after
            the other in order of publication, so a command sees the effects of the previous one.
        working_dir: The working directory of tools that are created for the runtime.
        context: The `ctx.context` of the tools.

    Raises:
        UserError: The stream is closed, or an item is not a tool.
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
                f"max_parallel= is invalid: expected a positive integer, got {max_parallel}."
            )
        self._stream = stream
        self._tools = RuntimeTools(tools, working_dir)
        self._context = context
        self._slots = asyncio.Semaphore(max_parallel)
        self._handlers = dict(HANDLERS)
        self._running: dict[int, _RunningAction] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._variables = copy_context()
        self._closed = False
        is_first = stream not in _served  # an earlier runtime answers its own actions
        self._end = stream.last_id
        self._seen = stream.first_id - 1 if is_first else self._end
        self._lock = Lock()  # for `_closed` and `_seen`: a task answers actions seen before closing
        self._subscription = stream.subscribe(
            EventStreamSubscriber.RUNTIME,
            self._handle,
            f"runtime-{id(self):x}",
            after=self._seen,
            where=_ACTIONS,
        )
        if is_first:
            _served.add(stream)
            self._find_lost(stream.first_id)

    def __enter__(self) -> Self:
        """Return the runtime."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the runtime."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return the runtime."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the runtime."""
        await self.aclose()

    def handles(
        self,
        kind: type[Action] | str,
        tool_name: str,
        to_arguments: Callable[[Any], Mapping[str, Any]],
        to_observation: Callable[[Any, CallOutcome], Observation] | None = None,
    ) -> None:
        """Set the tool that executes a class of actions.

        Args:
            kind: The class, or its name.
            tool_name: The name of the tool.
            to_arguments: Returns the arguments of the call for an action.
            to_observation: Returns the observation for the action and the outcome of the call. By
                default, that is the observation of the tool, or a `ToolObservation`. It is not
                called for a call that failed without an observation.
        """
        name = kind if isinstance(kind, str) else kind.__name__
        self._handlers[name] = ActionHandler(
            tool_name=tool_name, to_arguments=to_arguments, to_observation=to_observation
        )

    def run_setup_script(self, path: str, timeout: float = 600.0) -> Event:
        """Publish the action that runs a setup script in the terminal session, hidden from people.

        Args:
            path: The script.
            timeout: The time limit in seconds.
        """
        action = setup_script_action(path, timeout)
        return self._stream.add_event(action, EventSource.ENVIRONMENT)

    def close(self) -> None:
        """Stop the running actions and close the created tools.

        In another thread than that of the event loop, this method waits for the actions to end. On
        the event loop it does not wait; use `await aclose()` there.
        """
        loop = self._unsubscribe()
        self._refuse_rest()
        if loop is not None and _current_loop() is loop:
            self._cancel_actions(list(self._running))
            self._tools.close()
        elif loop is not None:
            with suppress(RuntimeError):  # the loop has ended, with all its tasks
                asyncio.run_coroutine_threadsafe(self._stop(), loop).result()
        self._tools.close()

    async def aclose(self) -> None:
        """Stop the running actions, wait for their end, and close the created tools."""
        loop = self._unsubscribe()
        await asyncio.to_thread(self._refuse_rest)
        if loop is not None:
            if _current_loop() is loop:
                await self._stop()
            else:
                stopping = asyncio.run_coroutine_threadsafe(self._stop(), loop)
                await asyncio.wrap_future(stopping)
        await asyncio.to_thread(self._tools.close)

    def _unsubscribe(self) -> asyncio.AbstractEventLoop | None:
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
        """Stop the running actions; those that do not end are answered here and supervised."""
        tasks = self._cancel_actions(list(self._running))
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE)
        await asyncio.sleep(0)  # lets the callbacks of tasks that have just ended run
        for event, task, context in list(self._running.values()):
            del self._running[event.id]
            self._publish_observation(event, ErrorObservation(_STOPPED, "cancelled"))
            await finish(task, name=context.tool_name, grace=0)

    # --- actions that were not executed

    def _refuse_rest(self) -> None:
        """Answer the actions that were published before closing and have not started."""
        start, self._seen = self._seen + 1, self._end
        for item in self._stream.get_events(start, self._end, filter=_ACTIONS):
            event = cast("ActionEvent[Any]", item)
            if is_runnable(event):
                self._publish_observation(event, ErrorObservation(_NOT_STARTED, "cancelled"))

    def _find_lost(self, before: int) -> None:
        """Find the actions that another process has left without observation, in the background."""
        store = self._stream.store
        if store is None or before == 0:
            return

        def read(_: PendingFuture[None]) -> None:
            found = store.read(before=before, where=_BOTH, limit=_SEARCHED_EVENTS, reverse=True)
            found.add_done_callback(self._answer_lost)

        self._stream.flush().add_done_callback(read)

    def _answer_lost(self, found: PendingFuture[list[Event]]) -> None:
        if found.error() is not None:
            logger.warning("The search for lost actions failed: %s", found.error())
            return
        events = found.result()
        answered = {event.cause for event in events if isinstance(event, ObservationEvent)}
        for event in reversed(events):
            if isinstance(event, ActionEvent) and event.id not in answered:
                action = cast("ActionEvent[Any]", event)
                if is_runnable(action):
                    self._publish_observation(action, ErrorObservation(_LOST, "lost"))

    # --- actions

    async def _handle(self, item: Event) -> None:
        event = cast("ActionEvent[Any]", item)
        with self._lock:
            if self._closed:
                return
            self._seen = event.id
        if not is_runnable(event):
            return
        self._loop = asyncio.get_running_loop()
        if event.kind == CmdKillAction.__name__:
            self._publish_observation(event, self._kill(event))
            return
        context = self._context_of(event)
        task = self._loop.create_task(
            self._execute(event, context), name=f"action {event.id}", context=self._variables.copy()
        )
        self._running[event.id] = (event, task, context)
        task.add_done_callback(lambda task: self._on_done(event, task))

    async def _execute(self, event: ActionEvent[Any], context: ToolContext[Any]) -> Observation:
        async with self._slots:
            return await self._observe(event, context)

    def _on_done(self, event: ActionEvent[Any], task: asyncio.Task[Observation]) -> None:
        """Publish the observation of an action that has ended."""
        if self._running.pop(event.id, None) is None:  # `_stop` has published the observation
            return
        if task.cancelled():
            self._publish_observation(event, ErrorObservation(_STOPPED, "cancelled"))
        elif (error := task.exception()) is not None:
            logger.error("Action %d failed.", event.id, exc_info=error)
            self._publish_observation(
                event, ErrorObservation(f"{type(error).__name__}: {error}", "error")
            )
        else:
            self._publish_observation(event, task.result())

    async def _observe(self, event: ActionEvent[Any], context: ToolContext[Any]) -> Observation:
        """Execute an action, and return an observation even if it fails."""
        try:
            call = self._call_for(event)
        except AgentsToolsError as error:
            return AgentErrorObservation(str(error), "invalid_action")
        if call.tool.can_need_approval and self._is_approved(event):
            call_of(context).decision = Decision(approved=True)
        try:
            outcome = await call.tool.call(context, to_json(dict(call.arguments)).decode())
        except Interruption:
            text = f"Tool {call.tool.name!r} needs an approval, which a runtime cannot request."
            return AgentErrorObservation(text, "denied")
        return self._observation(call, outcome)

    def _is_approved(self, event: ActionEvent[Any]) -> bool:
        """Return whether the controller has recorded the approval of the call of an action.

        It publishes the record between the event to which the agent reacts and the action.
        """
        if event.cause is None or event.tool_call_id is None or event.source is EventSource.USER:
            return False
        records: Any = self._stream.get_events(event.cause, event.id, filter=_ITEMS)
        return any(
            one.name == "tool_approval_granted"
            and one.path == event.path
            and one.item.get("call_id") == event.tool_call_id
            for one in records
        )

    def _call_for(self, event: ActionEvent[Any]) -> RuntimeCall:
        """Return the tool and the arguments for an action.

        Raises:
            UserError: There is no tool for the action, or the action is invalid.
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

    def _unknown(self, name: str, suffix: str) -> str:
        known = self._tools.names()
        near = difflib.get_close_matches(name, [*known, *self._handlers], 3, 0.5)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        return f"There is no tool {name!r:.100}{suffix}.{hint} Tools: {', '.join(known) or 'none'}."

    def _observation(self, call: RuntimeCall, outcome: CallOutcome) -> Observation:
        seen = outcome.value
        if outcome.status != "ok" and not isinstance(seen, Observation):
            text = outcome.output or str(outcome.error or outcome.status)
            kind = AgentErrorObservation if outcome.status in _CORRECTABLE else ErrorObservation
            return kind(content_of(text), outcome.status)
        if call.to_observation is not None:
            try:
                return call.to_observation(call.action, outcome)
            except (
                Exception
            ) as error:  # the action needs its observation even if the function fails
                logger.exception("The observation of a %s failed.", type(call.action).__name__)
                return ErrorObservation(f"{type(error).__name__}: {error}", "to_observation")
        if isinstance(seen, Observation):
            return seen
        return ToolObservation(content_of(outcome.output), call.tool.name)

    # --- the stream

    def _context_of(self, event: ActionEvent[Any]) -> ToolContext[Any]:
        """Return the context of a call, which publishes the events of the call at once."""
        above: ToolContext[Any] | None = None
        for call_id in event.path:
            above = ToolContext(tool_call_id=call_id, parent=above)

        def publish(item: Event) -> None:
            self._stream.publish(item if item.cause is not None else item.replace(cause=event.id))

        call_id = event.tool_call_id or f"action_{event.id}"
        context = ToolContext(self._context, tool_call_id=call_id, emit=publish, parent=above)
        call_of(context).tool_state = self._tools.state
        return context

    def _publish_observation(self, event: ActionEvent[Any], observation: Observation) -> None:
        hidden = event.hidden or None
        try:
            answer = event_of(observation, hidden=hidden)
        except Exception as error:  # not an observation, or not serializable as JSON
            logger.exception("The observation of action %d cannot be published.", event.id)
            text = f"{type(error).__name__}: {error}"
            answer = event_of(ErrorObservation(text, "observation"), hidden=hidden)
        source = EventSource.ENVIRONMENT
        origin = Origin(event.tool_name, event.tool_call_id, event.path, source)
        with suppress(UserError):  # the stream was closed before the runtime
            self._stream.publish(answer.replace(cause=event.id, origin=origin))

    def _kill(self, event: ActionEvent[Any]) -> Observation:
        wanted = event.action.get("action_id")
        ids = [running for running in self._running if wanted is None or running == wanted]
        self._cancel_actions(ids)
        if ids or wanted is None:
            return CmdOutputObservation(
                f"Stopped: {', '.join(map(str, ids)) or 'no action was running'}."
            )
        running = ", ".join(map(str, self._running)) or "none"
        return AgentErrorObservation(
            f"Action {wanted} is not running. Running actions: {running}.", "invalid_action"
        )

    def _cancel_actions(self, ids: Iterable[int]) -> list[asyncio.Task[Any]]:
        """Cancel actions and return their tasks; code in threads sees `ctx.cancelled`."""
        tasks: list[asyncio.Task[Any]] = []
        for action_id in ids:
            _, task, context = self._running[action_id]
            call_of(context).cancel()
            task.cancel()
            tasks.append(task)
        return tasks


def _current_loop() -> asyncio.AbstractEventLoop | None:
    with suppress(RuntimeError):
        return asyncio.get_running_loop()
    return None
